//! Operations on sorted arrays of keys: sets, groups of equal keys, and bounds.

use crate::arrays::{Memory, gmerge_input, gmerge_output, too_short};
use crate::engine::{engine_of, gmerge_engine};
use crate::format::{gmerge_format, gmerge_type, with_key};
use crate::ordered::{Sorted, in_order};
use crate::status::{Outcome, gmerge_status, guard, invalid};
use merge_host::{Bound, Engine, Key, Reduction, SetOperation, Summand};
use std::ffi::c_void;

/// A set operation on sorted arrays, which may have equal keys: a key that is m times in `a` and n times in `b`. Keys
/// are equal if their bits are: -0.0 and 0.0 are two keys.
pub type gmerge_set_operation = u32;
/// Each key max(m, n) times.
pub const GMERGE_UNION: gmerge_set_operation = 0;
/// Each key min(m, n) times.
pub const GMERGE_INTERSECTION: gmerge_set_operation = 1;
/// Each key m - n times, or not at all.
pub const GMERGE_DIFFERENCE: gmerge_set_operation = 2;
/// Each key |m - n| times.
pub const GMERGE_SYMMETRIC_DIFFERENCE: gmerge_set_operation = 3;

/// A reduction of the values of equal keys.
pub type gmerge_reduction = u32;
/// The sum. Integers are added modulo 2^32 or 2^64, and floats are rounded at each addition.
pub const GMERGE_SUM: gmerge_reduction = 0;
/// The least value, in total order.
pub const GMERGE_MIN: gmerge_reduction = 1;
/// The greatest value, in total order.
pub const GMERGE_MAX: gmerge_reduction = 2;

pub(crate) fn set_operation_of(operation: gmerge_set_operation) -> Outcome<SetOperation> {
    Ok(match operation {
        GMERGE_UNION => SetOperation::Union,
        GMERGE_INTERSECTION => SetOperation::Intersection,
        GMERGE_DIFFERENCE => SetOperation::Difference,
        GMERGE_SYMMETRIC_DIFFERENCE => SetOperation::SymmetricDifference,
        found => {
            return Err(invalid(format!(
                "operation is {found}, expected GMERGE_UNION (0) to GMERGE_SYMMETRIC_DIFFERENCE (3)"
            )));
        }
    })
}

pub(crate) fn reduction_of(reduction: gmerge_reduction) -> Outcome<Reduction> {
    Ok(match reduction {
        GMERGE_SUM => Reduction::Sum,
        GMERGE_MIN => Reduction::Min,
        GMERGE_MAX => Reduction::Max,
        found => return Err(invalid(format!("reduction is {found}, expected GMERGE_SUM (0) to GMERGE_MAX (2)"))),
    })
}

pub(crate) fn bound(is_upper: i32) -> Bound {
    if is_upper == 0 { Bound::Lower } else { Bound::Upper }
}

/// Evaluates an expression with `$V` as the type of values that are added, which has the size of a format's values.
macro_rules! with_summand {
    ($format:expr, $value_type:expr, $V:ident => $body:expr) => {
        $crate::format::with_number!("value_type" is $value_type, "", $V => {
            let (found, expected) = ($format.value_size, size_of::<$V>());
            if found == expected {
                $body
            } else {
                Err(invalid(format!("format.value_size is {found}, expected {expected}, the size of value_type")))
            }
        })
    };
}
#[cfg(feature = "gpu")]
pub(crate) use with_summand;

/// Writes the result of a set operation on the sorted keys of `a` and `b` to `out`, and its number of keys to `count`.
/// `out.count` is the number of keys that `out` has room for. Values are ignored.
///
/// # Safety
/// `engine` is null or an engine. The arrays are null or have `count` elements. `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_set(
    engine: *const gmerge_engine,
    format: gmerge_format,
    operation: gmerge_set_operation,
    a: gmerge_input,
    b: gmerge_input,
    out: gmerge_output,
    count: *mut usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let (engine, count) = (unsafe { engine_of(engine) }?, memory.place("count", count)?);
        let operation = set_operation_of(operation)?;
        with_key!(format, K => {
            let (from, out) = {
                let a = memory.read::<K>("a.keys", a.keys, a.count)?;
                let b = memory.read::<K>("b.keys", b.keys, b.count)?;
                ([a, b], memory.write::<K>("out.keys", out.keys, out.count)?)
            };
            count.write(in_order(format, &from, out, &mut Set { engine, operation })?);
            Ok(())
        })
    })
}

struct Set<'a> {
    engine: &'a Engine,
    operation: SetOperation,
}

impl Sorted for Set<'_> {
    fn call<K: Key>(&mut self, from: &[&[K]], out: &mut [K]) -> Outcome<usize> {
        let mut result = Vec::new();
        self.engine.set_operation(self.operation, from[0], from[1], &mut result)?;
        copy(&result, out)
    }
}

/// Writes the first key of each group of equal keys of the sorted `from` to `out`, the number of its keys to `lengths`
/// unless that is null, and the number of groups to `count`. `out.count` is the number of groups that `out` and
/// `lengths` have room for. Values are ignored.
///
/// # Safety
/// `engine` is null or an engine. The arrays are null or have `count` elements, and `lengths` has `out.count`. `count`
/// is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_unique(
    engine: *const gmerge_engine,
    format: gmerge_format,
    from: gmerge_input,
    out: gmerge_output,
    lengths: *mut u64,
    count: *mut usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let (engine, count) = (unsafe { engine_of(engine) }?, memory.place("count", count)?);
        format.options()?;
        with_key!(format, K => {
            let (from, to, lengths) = {
                let from = memory.read::<K>("from.keys", from.keys, from.count)?;
                let to = memory.write::<K>("out.keys", out.keys, out.count)?;
                let lengths = match lengths.is_null() {
                    true => None,
                    false => Some(memory.write::<u64>("lengths", lengths.cast(), out.count)?),
                };
                (from, to, lengths)
            };
            count.write(unique(engine, from, to, lengths)?);
            Ok(())
        })
    })
}

// Equal keys are next to each other in every order, so keys need not be encoded for one.
fn unique<K: Key>(engine: &Engine, from: &[K], out: &mut [K], lengths: Option<&mut [u64]>) -> Outcome<usize> {
    let (mut keys, mut found) = (Vec::new(), Vec::new());
    match lengths {
        None => {
            engine.unique(from, &mut keys)?;
        }
        Some(lengths) => {
            engine.run_lengths(from, (&mut keys, &mut found))?;
            copy(&found, lengths)?;
        }
    }
    copy(&keys, out)
}

/// Writes the first key of each group of equal keys of the sorted `from` to `out`, with the reduction of the group's
/// values, and the number of groups to `count`. `value_type` is the type of the values: GMERGE_U32, GMERGE_I32,
/// GMERGE_F32, GMERGE_U64, GMERGE_I64 or GMERGE_F64; `format.value_size` is its size. `out.count` is the number of
/// groups that `out` has room for.
///
/// # Safety
/// `engine` is null or an engine. The arrays are null or have `count` elements. `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_reduce_by_key(
    engine: *const gmerge_engine,
    format: gmerge_format,
    reduction: gmerge_reduction,
    value_type: gmerge_type,
    from: gmerge_input,
    out: gmerge_output,
    count: *mut usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let (engine, count) = (unsafe { engine_of(engine) }?, memory.place("count", count)?);
        let reduction = reduction_of(reduction)?;
        format.options()?;
        with_summand!(format, value_type, V => {
            let (values, totals) = {
                let values = memory.read::<V>("from.values", from.values, from.count)?;
                (values, memory.write::<V>("out.values", out.values, out.count)?)
            };
            with_key!(format, K => {
                let (from, to) = {
                    let from = memory.read::<K>("from.keys", from.keys, from.count)?;
                    (from, memory.write::<K>("out.keys", out.keys, out.count)?)
                };
                count.write(reduce(engine, reduction, (from, values), (to, totals))?);
                Ok(())
            })
        })
    })
}

fn reduce<K: Key, V: Summand>(
    engine: &Engine,
    reduction: Reduction,
    from: (&[K], &[V]),
    (out, of_groups): (&mut [K], &mut [V]),
) -> Outcome<usize> {
    let (mut keys, mut totals) = (Vec::new(), Vec::new());
    engine.reduce_by_key(reduction, from, (&mut keys, &mut totals))?;
    copy(&totals, of_groups)?;
    copy(&keys, out)
}

/// Writes to `bounds` the number of `keys` that come before each of the `needles`, or before or equal to it if
/// `is_upper` is not 0. Both are sorted in the order of `format`. A bound has `index_size` bytes, 4 or 8, and there is
/// one for each needle. Values are ignored.
///
/// # Safety
/// `engine` is null or an engine. The arrays are null or have `count` elements, and `bounds` has `needles.count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_bounds(
    engine: *const gmerge_engine,
    format: gmerge_format,
    is_upper: i32,
    needles: gmerge_input,
    keys: gmerge_input,
    bounds: *mut c_void,
    index_size: usize,
) -> gmerge_status {
    guard(|| {
        // SAFETY: `engine` is null or an engine, by `# Safety`.
        let engine = unsafe { engine_of(engine) }?;
        let bound = bound(is_upper);
        // SAFETY: the arrays are null or have their lengths, by `# Safety`.
        let mut memory = unsafe { Memory::new() };
        let bounds = match index_size {
            4 => Indices::Of4(memory.write("bounds", bounds, needles.count)?),
            8 => Indices::Of8(memory.write("bounds", bounds, needles.count)?),
            _ => return Err(invalid(format!("index_size is {index_size}, expected 4 or 8"))),
        };
        with_key!(format, K => {
            let from = [
                    memory.read::<K>("needles.keys", needles.keys, needles.count)?,
                    memory.read::<K>("keys.keys", keys.keys, keys.count)?,
                ];
            in_order(format, &from, &mut [], &mut Bounds { engine, bound, bounds }).map(drop)
        })
    })
}

/// Indices of 4 or 8 bytes.
enum Indices<'a> {
    Of4(&'a mut [u32]),
    Of8(&'a mut [u64]),
}

struct Bounds<'a> {
    engine: &'a Engine,
    bound: Bound,
    bounds: Indices<'a>,
}

impl Sorted for Bounds<'_> {
    fn call<K: Key>(&mut self, from: &[&[K]], _out: &mut [K]) -> Outcome<usize> {
        match &mut self.bounds {
            Indices::Of4(bounds) => self.engine.bounds(self.bound, from[0], from[1], bounds)?,
            Indices::Of8(bounds) => self.engine.bounds(self.bound, from[0], from[1], bounds)?,
        };
        Ok(0)
    }
}

/// Copies a result to the caller's array, if it fits. Returns its length.
fn copy<T: Copy>(result: &[T], out: &mut [T]) -> Outcome<usize> {
    let (found, needed) = (out.len(), result.len());
    out.get_mut(..needed).ok_or_else(|| too_short("out", found, needed))?.copy_from_slice(result);
    Ok(needed)
}
