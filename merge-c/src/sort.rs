//! Sorts, permutations that sort, the first keys, and segments.

use crate::arrays::{Memory, gmerge_input, gmerge_output};
use crate::engine::{engine_of, gmerge_engine};
use crate::format::{gmerge_format, with_key};
use crate::status::{Failure, Outcome, gmerge_status, guard, invalid};
use crate::values::{InPlace, ToOutput, in_place, memory, to_output};
use merge_host::{Engine, Index, Key, SortOptions};
use std::ffi::c_void;

/// Sorts `elements` in place. Stable: equal keys keep their order.
///
/// # Safety
/// `engine` is null or an engine. The arrays of `elements` are null or have `elements.count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_sort(
    engine: *const gmerge_engine,
    format: gmerge_format,
    elements: gmerge_output,
) -> gmerge_status {
    // SAFETY: the engine and the arrays are as `change` and `new` need them, by `# Safety`.
    guard(|| unsafe {
        let memory = Memory::new();
        change(engine, format, elements, memory, |engine, options| Sort { engine, options }).map(drop)
    })
}

/// Sorts each segment of `elements` by itself, in place. Stable. Segment `i` has the elements with the indices
/// `offsets[i]` to `offsets[i + 1] - 1`, so there are `segments + 1` offsets, from 0 to `elements.count`.
///
/// # Safety
/// As for `gmerge_sort`; `offsets` is null or has `segments + 1` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_sort_segments(
    engine: *const gmerge_engine,
    format: gmerge_format,
    elements: gmerge_output,
    offsets: *const usize,
    segments: usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        let offsets = memory.read::<usize>("offsets", offsets.cast(), segments.saturating_add(1))?;
        let operation = |engine, options| SortSegments { engine, options, offsets };
        // SAFETY: the arguments are as `change` needs them, by `# Safety`.
        unsafe { change(engine, format, elements, memory, operation) }.map(drop)
    })
}

/// Sorts `elements` in place, keeps the first of equal keys with its value, and writes the number of elements that are
/// left to `count`. The elements behind them are unspecified.
///
/// # Safety
/// As for `gmerge_sort`; `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_sort_unique(
    engine: *const gmerge_engine,
    format: gmerge_format,
    elements: gmerge_output,
    count: *mut usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        let count = memory.place("count", count)?;
        let operation = |engine, options| SortUnique { engine, options, count: 0 };
        // SAFETY: the arguments are as `change` needs them, by `# Safety`.
        count.write(unsafe { change(engine, format, elements, memory, operation) }?.count);
        Ok(())
    })
}

/// Writes to `indices` the permutation that sorts `keys`, which do not change. Stable. An index has `index_size` bytes,
/// 4 or 8, and there is one for each key. Values are ignored.
///
/// # Safety
/// `engine` is null or an engine. The arrays are null or have `keys.count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_argsort(
    engine: *const gmerge_engine,
    format: gmerge_format,
    keys: gmerge_input,
    indices: *mut c_void,
    index_size: usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let engine = unsafe { engine_of(engine) }?;
        let options = format.options()?;
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        with_key!(format, K => {
            let from = memory.read::<K>("keys.keys", keys.keys, keys.count)?;
            match index_size {
                4 => argsort(engine, options, from, memory.write::<u32>("indices", indices, keys.count)?),
                8 => argsort(engine, options, from, memory.write::<u64>("indices", indices, keys.count)?),
                _ => Err(invalid(format!("index_size is {index_size}, expected 4 or 8"))),
            }
        })
    })
}

fn argsort<K: Key, I: Index>(engine: &Engine, options: SortOptions, keys: &[K], indices: &mut [I]) -> Outcome {
    engine.argsort(options, keys, indices)?;
    Ok(())
}

/// Writes to `out` the first `out.count` of the elements `from` in the order of `format`, sorted. `out.count` is at
/// most `from.count`.
///
/// # Safety
/// `engine` is null or an engine. The arrays are null or have `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_top_k(
    engine: *const gmerge_engine,
    format: gmerge_format,
    from: gmerge_input,
    out: gmerge_output,
) -> gmerge_status {
    guard(|| {
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let operation = TopK { engine: unsafe { engine_of(engine) }?, options: format.options()? };
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        with_key!(format, K => {
            let (keys, values, out) = (
                    memory.read::<K>("from.keys", from.keys, from.count)?,
                    memory.read_values("from", from, format)?,
                    (memory.write::<K>("out.keys", out.keys, out.count)?, memory.write_values("out", out, format)?),
                );
            to_output(format, &[(keys, values)], out, &operation)
        })
    })
}

/// Writes to `indices` the indices of the first `k` of `keys` in the order of `format`, sorted. These are the first `k`
/// indices that `gmerge_argsort` writes. An index has `index_size` bytes, 4 or 8. `k` is at most `keys.count`. Values
/// are ignored.
///
/// # Safety
/// `engine` is null or an engine. The keys are null or have `keys.count` elements, and `indices` is null or has `k`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_top_k_indices(
    engine: *const gmerge_engine,
    format: gmerge_format,
    keys: gmerge_input,
    indices: *mut c_void,
    index_size: usize,
    k: usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let engine = unsafe { engine_of(engine) }?;
        let options = format.options()?;
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        with_key!(format, K => {
            let from = memory.read::<K>("keys.keys", keys.keys, keys.count)?;
            match index_size {
                4 => top_k_indices(engine, options, from, memory.write::<u32>("indices", indices, k)?),
                8 => top_k_indices(engine, options, from, memory.write::<u64>("indices", indices, k)?),
                _ => Err(invalid(format!("index_size is {index_size}, expected 4 or 8"))),
            }
        })
    })
}

fn top_k_indices<K: Key, I: Index>(engine: &Engine, options: SortOptions, keys: &[K], indices: &mut [I]) -> Outcome {
    let (count, k) = (keys.len(), indices.len());
    if k > count {
        return Err(invalid(format!("k is {k}, expected at most {count}, the number of keys")));
    }
    // The library also writes the keys, which the caller does not need.
    let mut first = memory(k)?;
    first.resize(k, K::zeroed());
    engine.top_k(options, keys, (first.as_mut_slice(), indices))?;
    Ok(())
}

/// Calls an operation that changes `elements` in place, and returns the operation. `memory` has the other arrays of the
/// call.
///
/// # Safety
/// As for `gmerge_sort`.
unsafe fn change<'a, O: InPlace>(
    engine: *const gmerge_engine,
    format: gmerge_format,
    elements: gmerge_output,
    mut memory: Memory,
    operation: impl FnOnce(&'a Engine, SortOptions) -> O,
) -> Outcome<O> {
    // SAFETY: `engine` is null or an engine, by `# Safety`.
    let mut operation = operation(unsafe { engine_of(engine) }?, format.options()?);
    with_key!(format, K => {
        let (keys, values) = {
            let keys = memory.write::<K>("elements.keys", elements.keys, elements.count)?;
            (keys, memory.write_values("elements", elements, format)?)
        };
        in_place(format, keys, values, &mut operation)
    })?;
    Ok(operation)
}

struct Sort<'a> {
    engine: &'a Engine,
    options: SortOptions,
}

impl InPlace for Sort<'_> {
    fn call<K: Key, V: Copy + Send + Sync>(&mut self, keys: &mut [K], values: &mut [V]) -> Outcome {
        self.engine.sort_with(self.options, (keys, values))?;
        Ok(())
    }
}

struct SortSegments<'a> {
    engine: &'a Engine,
    options: SortOptions,
    offsets: &'a [usize],
}

impl InPlace for SortSegments<'_> {
    fn call<K: Key, V: Copy + Send + Sync>(&mut self, keys: &mut [K], values: &mut [V]) -> Outcome {
        self.engine.sort_segments(self.options, (keys, values), self.offsets)?;
        Ok(())
    }
}

struct SortUnique<'a> {
    engine: &'a Engine,
    options: SortOptions,
    count: usize,
}

impl InPlace for SortUnique<'_> {
    fn call<K: Key, V: Copy + Send + Sync>(&mut self, keys: &mut [K], values: &mut [V]) -> Outcome {
        (self.count, _) = self.engine.sort_unique(self.options, (keys, values))?;
        Ok(())
    }
}

struct TopK<'a> {
    engine: &'a Engine,
    options: SortOptions,
}

impl ToOutput for TopK<'_> {
    fn call<K: Key, V: Copy + Send + Sync>(&self, from: &[(&[K], &[V])], out: (&mut [K], &mut [V])) -> Outcome {
        self.engine.top_k(self.options, from[0], out).map(drop).map_err(Failure::from)
    }
}
