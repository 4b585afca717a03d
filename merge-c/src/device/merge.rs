//! Merges of arrays in a GPU's memory.

use super::{
    Call, bytes_of, gmerge_device_elements, gmerge_device_offsets, gmerge_stream, gmerge_workspace, with_gpu_key,
    with_ordered_key, with_values,
};
use crate::format::gmerge_format;
use crate::status::{gmerge_status, guard, invalid};
use merge_host::{MergeKernel, workspace};

/// Elements in consecutive runs, in a GPU's memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_device_runs {
    /// The elements of all runs.
    pub elements: gmerge_device_elements,
    /// The offsets of the runs.
    pub offsets: gmerge_device_offsets,
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_merge` into `count` elements. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge_bytes(
    format: gmerge_format,
    count: usize,
    bytes: *mut usize,
) -> gmerge_status {
    // Elements with a number in the GPU's memory need that of this kernel, and no others need more.
    let kernel = MergeKernel::MergePath;
    let find = || with_gpu_key!(format, K => with_values!(format, V => Ok(workspace::merge::<K, V>(kernel, count))));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Merges the sorted elements `a` and `b` into `out`. Stable: of equal keys, those of `a` come first. If `a` or `b` has
/// a number in the GPU's memory, `out` has a place for its number, too.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge(
    stream: *const gmerge_stream,
    format: gmerge_format,
    a: gmerge_device_elements,
    b: gmerge_device_elements,
    out: gmerge_device_elements,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        with_ordered_key!(format, Ordered => with_values!(format, V => {
            let (a, b) = (call.elements::<Ordered, V>(a)?, call.elements::<Ordered, V>(b)?);
            let mut out = call.elements::<Ordered, V>(out)?;
            Ok(call.stream.merge(MergeKernel::Auto, a.read(), b.read(), out.written(), &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_merge_many` for `count` elements in `runs` runs. Needs no
/// GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge_many_bytes(
    format: gmerge_format,
    count: usize,
    runs: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => with_values!(format, V => Ok(workspace::merge_many::<K, V>(count, runs))));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count, runs], find) }
}

/// Merges the sorted runs of `from` into `out`, which has room for all of them. Stable. At most 2^32 - 1 elements.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge_many(
    stream: *const gmerge_stream,
    format: gmerge_format,
    from: gmerge_device_elements,
    offsets: gmerge_device_offsets,
    out: gmerge_device_elements,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let options = format.options()?;
        let offsets = call.offsets(offsets, from.count)?;
        with_gpu_key!(format, K => with_values!(format, V => {
            let (from, mut out) = (call.all::<K, V>(from)?, call.all::<K, V>(out)?);
            let (from, out) = ((&from.0, &from.1), (&mut out.0, &mut out.1));
            Ok(call.stream.merge_many(options, from, &offsets, out, &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_merge_pairs` into `count` elements. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge_pairs_bytes(
    format: gmerge_format,
    count: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => Ok(workspace::merge_ragged::<K>(count)));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Merges run `i` of `a` with run `i` of `b`, for all runs. Run `i` of `out` begins at the sum of both offsets. Stable:
/// of equal keys, those of `a` come first. Offsets end with the number of elements.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge_pairs(
    stream: *const gmerge_stream,
    format: gmerge_format,
    a: gmerge_device_runs,
    b: gmerge_device_runs,
    out: gmerge_device_elements,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let (of_a, of_b) = (call.offsets(a.offsets, a.elements.count)?, call.offsets(b.offsets, b.elements.count)?);
        with_ordered_key!(format, Ordered => with_values!(format, V => {
            let (a, b, mut out) = {
                let a = call.all::<Ordered, V>(a.elements)?;
                (a, call.all::<Ordered, V>(b.elements)?, call.all::<Ordered, V>(out)?)
            };
            let (a, b) = (((&a.0, &a.1), &of_a), ((&b.0, &b.1), &of_b));
            Ok(call.stream.merge_ragged(a, b, (&mut out.0, &mut out.1), &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_merge_groups` for `count` elements in `runs` runs and
/// `groups` groups. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge_groups_bytes(
    format: gmerge_format,
    count: usize,
    runs: usize,
    groups: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || {
        with_gpu_key!(format, K => with_values!(format, V => {
            Ok(workspace::merge_many_ragged::<K, V>(count, runs, groups, usize::MAX))
        }))
    };
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count, runs, groups], find) }
}

/// Merges the runs of each group of `from` to the same indices of `out`. Group `i` has the runs with the numbers
/// `groups[i]` to `groups[i + 1] - 1`. `groups` ends with the number of runs. Stable.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_merge_groups(
    stream: *const gmerge_stream,
    format: gmerge_format,
    from: gmerge_device_runs,
    groups: gmerge_device_offsets,
    out: gmerge_device_elements,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let options = format.options()?;
        let (offsets, groups) =
            (call.offsets(from.offsets, from.elements.count)?, call.offsets(groups, from.offsets.count)?);
        with_gpu_key!(format, K => with_values!(format, V => {
            let (from, mut out) = (call.all::<K, V>(from.elements)?, call.all::<K, V>(out)?);
            let (from, out) = ((&from.0, &from.1), (&mut out.0, &mut out.1));
            Ok(call.stream.merge_many(options, from, (&offsets, &groups), out, &mut call.workspace)?)
        }))
    })
}
