//! Merges of sorted runs.

use crate::arrays::{Memory, gmerge_input, gmerge_output};
use crate::engine::{engine_of, gmerge_engine};
use crate::format::{gmerge_format, with_key};
use crate::ordered::{Sorted, in_order};
use crate::status::{Outcome, gmerge_status, guard};
use crate::values::{ToOutput, to_output};
use merge_host::{Engine, Key};

/// Elements in consecutive runs: run `i` has the elements with the indices `offsets[i]` to `offsets[i + 1] - 1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_runs {
    /// The elements of all runs.
    pub elements: gmerge_input,
    /// `count + 1` offsets, from 0 to `elements.count`: one, which is 0, if there are no runs.
    pub offsets: *const usize,
    /// The number of runs.
    pub count: usize,
}

/// Merges `count` sorted runs into `out`, which has the number of elements of all runs. Stable: of equal keys, those of
/// an earlier run come first. If a run is not sorted, the result is unspecified.
///
/// # Safety
/// `engine` is null or an engine. `runs` is null or has `count` elements. Each array is null or has the `count`
/// elements of its run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_merge(
    engine: *const gmerge_engine,
    format: gmerge_format,
    runs: *const gmerge_input,
    count: usize,
    out: gmerge_output,
) -> gmerge_status {
    guard(|| {
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let engine = unsafe { engine_of(engine) }?;
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        let runs = memory.read_runs("runs", runs, count)?;
        with_key!(format, K => {
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            for (i, run) in runs.iter().enumerate() {
                let name = format!("runs[{i}]");
                {
                    keys.push(memory.read::<K>(&format!("{name}.keys"), run.keys, run.count)?);
                    values.push(memory.read_values(&name, *run, format)?);
                }
            }
            let bytes = memory.write_values("out", out, format)?;
            let out = memory.write::<K>("out.keys", out.keys, out.count)?;
            let operation = MergeRuns(engine);
            in_order(format, &keys, out, &mut Merge { format, values: &values, bytes, operation }).map(drop)
        })
    })
}

/// Merges run `i` of `a` with run `i` of `b`, for all runs. Run `i` of `out` begins at the sum of both offsets. Stable:
/// of equal keys, those of `a` come first.
///
/// # Safety
/// As for `gmerge_merge`; the offsets are null or have `count + 1` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_merge_pairs(
    engine: *const gmerge_engine,
    format: gmerge_format,
    a: gmerge_runs,
    b: gmerge_runs,
    out: gmerge_output,
) -> gmerge_status {
    guard(|| {
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let engine = unsafe { engine_of(engine) }?;
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        with_key!(format, K => {
            let (keys, values, offsets, out, bytes) = (
                    [
                        memory.read::<K>("a.elements.keys", a.elements.keys, a.elements.count)?,
                        memory.read::<K>("b.elements.keys", b.elements.keys, b.elements.count)?,
                    ],
                    [memory.read_values("a.elements", a.elements, format)?,
                     memory.read_values("b.elements", b.elements, format)?],
                    [
                        memory.read::<usize>("a.offsets", a.offsets.cast(), a.count.saturating_add(1))?,
                        memory.read::<usize>("b.offsets", b.offsets.cast(), b.count.saturating_add(1))?,
                    ],
                    memory.write::<K>("out.keys", out.keys, out.count)?,
                    memory.write_values("out", out, format)?,
                );
            let operation = MergeRunsOfPairs { engine, offsets };
            in_order(format, &keys, out, &mut Merge { format, values: &values, bytes, operation }).map(drop)
        })
    })
}

/// Merges the runs of each group of `from` to the same indices of `out`. Group `i` has the runs with the numbers
/// `groups[i]` to `groups[i + 1] - 1`, so there are `group_count + 1` numbers, from 0 to `from.count`. Stable.
///
/// # Safety
/// As for `gmerge_merge_pairs`; `groups` is null or has `group_count + 1` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_merge_groups(
    engine: *const gmerge_engine,
    format: gmerge_format,
    from: gmerge_runs,
    groups: *const usize,
    group_count: usize,
    out: gmerge_output,
) -> gmerge_status {
    guard(|| {
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let engine = unsafe { engine_of(engine) }?;
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        with_key!(format, K => {
            let elements = from.elements;
            let (keys, values, offsets, out, bytes) = (
                    memory.read::<K>("from.elements.keys", elements.keys, elements.count)?,
                    memory.read_values("from.elements", elements, format)?,
                    [
                        memory.read::<usize>("from.offsets", from.offsets.cast(), from.count.saturating_add(1))?,
                        memory.read::<usize>("groups", groups.cast(), group_count.saturating_add(1))?,
                    ],
                    memory.write::<K>("out.keys", out.keys, out.count)?,
                    memory.write_values("out", out, format)?,
                );
            let operation = MergeRunsOfGroups { engine, offsets };
            in_order(format, &[keys], out, &mut Merge { format, values: &[values], bytes, operation }).map(drop)
        })
    })
}

/// A merge of keys with the bytes of their values.
struct Merge<'a, O> {
    format: gmerge_format,
    /// The bytes of the values of each array.
    values: &'a [&'a [u8]],
    /// The bytes of the values of the result.
    bytes: &'a mut [u8],
    operation: O,
}

impl<O: ToOutput> Sorted for Merge<'_, O> {
    fn call<K: Key>(&mut self, from: &[&[K]], out: &mut [K]) -> Outcome<usize> {
        let from: Vec<_> = from.iter().copied().zip(self.values.iter().copied()).collect();
        let count = out.len();
        to_output(self.format, &from, (out, &mut *self.bytes), &self.operation)?;
        Ok(count)
    }
}

struct MergeRuns<'a>(&'a Engine);

impl ToOutput for MergeRuns<'_> {
    fn call<K: Key, V: Copy + Send + Sync>(&self, from: &[(&[K], &[V])], out: (&mut [K], &mut [V])) -> Outcome {
        match from {
            [a, b] => self.0.merge(*a, *b, out)?,
            runs => self.0.merge_many(runs, out)?,
        };
        Ok(())
    }
}

struct MergeRunsOfPairs<'a> {
    engine: &'a Engine,
    offsets: [&'a [usize]; 2],
}

impl ToOutput for MergeRunsOfPairs<'_> {
    fn call<K: Key, V: Copy + Send + Sync>(&self, from: &[(&[K], &[V])], out: (&mut [K], &mut [V])) -> Outcome {
        let [of_a, of_b] = self.offsets;
        self.engine.merge_ragged((from[0], of_a), (from[1], of_b), out)?;
        Ok(())
    }
}

struct MergeRunsOfGroups<'a> {
    engine: &'a Engine,
    /// The offsets of runs and of groups.
    offsets: [&'a [usize]; 2],
}

impl ToOutput for MergeRunsOfGroups<'_> {
    fn call<K: Key, V: Copy + Send + Sync>(&self, from: &[(&[K], &[V])], out: (&mut [K], &mut [V])) -> Outcome {
        let [offsets, groups] = self.offsets;
        self.engine.merge_many_ragged(from[0], (offsets, groups), out)?;
        Ok(())
    }
}
