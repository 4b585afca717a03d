//! Operations on sorted arrays in a GPU's memory: sets, groups of equal keys, and bounds.

use super::{
    Call, Elements, bytes_of, gmerge_device_elements, gmerge_stream, gmerge_workspace, with_gpu_key, with_index,
    with_ordered_key, with_values,
};
use crate::format::{gmerge_format, gmerge_type};
use crate::sorted::{bound, gmerge_reduction, gmerge_set_operation, reduction_of, set_operation_of, with_summand};
use crate::status::{gmerge_status, guard, invalid};
use merge_host::{Counted, workspace};

/// Writes to `bytes` the bytes of workspace of `gmerge_device_set` for `count` elements of both arrays. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_set_bytes(
    format: gmerge_format,
    count: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => Ok(workspace::set_operation::<K>(count)));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Writes the elements of the sorted `a` and `b` that a set operation keeps to `out`, and their number to the
/// `uint64_t` at the address `count` in the GPU's memory. Of two equal keys the key of `a` is kept, with its value.
/// `out.count` is at least the number of elements that any `a` and `b` of these lengths could give. `a` and `b` may
/// have a number in the GPU's memory.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_set(
    stream: *const gmerge_stream,
    format: gmerge_format,
    operation: gmerge_set_operation,
    a: gmerge_device_elements,
    b: gmerge_device_elements,
    out: gmerge_device_elements,
    count: u64,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let operation = set_operation_of(operation)?;
        let mut count = call.number(count)?;
        with_ordered_key!(format, Ordered => with_values!(format, V => {
            let (a, b, mut out) = {
                let a = call.elements::<Ordered, V>(a)?;
                (a, call.elements::<Ordered, V>(b)?, call.all::<Ordered, V>(out)?)
            };
            let (a, b, out) = (a.read(), b.read(), (&mut out.0, &mut out.1));
            Ok(call.stream.set_operation(operation, a, b, out, &mut count, &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_unique` for `count` elements. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_unique_bytes(
    format: gmerge_format,
    count: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => Ok(workspace::groups::<K>(count)));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Writes the first element of each group of equal keys of the sorted `from` to `out`, which has the length of `from`.
/// Writes the number of groups to the `uint64_t` at the address `count` in the GPU's memory. `from` may have a number
/// there, too.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_unique(
    stream: *const gmerge_stream,
    format: gmerge_format,
    from: gmerge_device_elements,
    out: gmerge_device_elements,
    count: u64,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let mut count = call.number(count)?;
        with_gpu_key!(format, K => with_values!(format, V => {
            let (from, mut out) = (call.elements::<K, V>(from)?, call.all::<K, V>(out)?);
            let (from, out) = (from.read(), (&mut out.0, &mut out.1));
            Ok(call.stream.unique(from, out, &mut count, &mut call.workspace)?)
        }))
    })
}

/// Writes the first key of each group of equal keys of the sorted `from` to the keys of `out`, and the number of its
/// keys to the values, which are numbers of type `uint64_t`. All else is as for `gmerge_device_unique`, with its
/// workspace. Values of `from` are ignored.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_run_lengths(
    stream: *const gmerge_stream,
    format: gmerge_format,
    from: gmerge_device_elements,
    out: gmerge_device_elements,
    count: u64,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let mut count = call.number(count)?;
        with_gpu_key!(format, K => {
            let (from, mut out) = (call.elements::<K, ()>(from)?, call.all::<K, u64>(out)?);
            let out = (&mut out.0, &mut out.1);
            Ok(call.stream.run_lengths(from.read(), out, &mut count, &mut call.workspace)?)
        })
    })
}

/// Writes the first key of each group of equal keys of the sorted `from` to `out`, with the reduction of the group's
/// values. `value_type` is their type, as for `gmerge_reduce_by_key`. All else is as for `gmerge_device_unique`, with
/// its workspace.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_reduce_by_key(
    stream: *const gmerge_stream,
    format: gmerge_format,
    reduction: gmerge_reduction,
    value_type: gmerge_type,
    from: gmerge_device_elements,
    out: gmerge_device_elements,
    count: u64,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let reduction = reduction_of(reduction)?;
        let mut count = call.number(count)?;
        with_gpu_key!(format, K => with_summand!(format, value_type, V => {
            let (from, mut out) = (call.elements::<K, V>(from)?, call.all::<K, V>(out)?);
            let (from, out) = (from.read(), (&mut out.0, &mut out.1));
            Ok(call.stream.reduce_by_key(reduction, from, out, &mut count, &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_bounds` for `count` needles and keys together. Needs no
/// GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_bounds_bytes(
    format: gmerge_format,
    count: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => Ok(workspace::bounds::<K>(count)));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Writes to `bounds` the number of `keys` that are less than each of the `needles`, or less or equal if `is_upper` is
/// not 0, as numbers of `index_size` bytes, 4 or 8. Both are sorted. Values are ignored. Both may have a number in the
/// GPU's memory; the bounds of the first needles are written then.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_bounds(
    stream: *const gmerge_stream,
    format: gmerge_format,
    is_upper: i32,
    needles: gmerge_device_elements,
    keys: gmerge_device_elements,
    bounds: u64,
    index_size: usize,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let which = bound(is_upper);
        with_ordered_key!(format, Ordered => with_index!(index_size, I => {
            let keys = call.elements::<Ordered, ()>(keys)?;
            let needles = call.elements::<Ordered, I>(gmerge_device_elements { values: bounds, ..needles })?;
            let Elements { keys: needles, values: mut bounds, number } = needles;
            let needles = Counted(&needles, number.as_ref());
            Ok(call.stream.bounds(which, needles, keys.read(), &mut bounds, &mut call.workspace)?)
        }))
    })
}
