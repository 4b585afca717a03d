//! Sorts of arrays in a GPU's memory, permutations, and the first keys.

use super::{
    Call, Elements, bytes_of, gmerge_device_elements, gmerge_device_offsets, gmerge_stream, gmerge_workspace,
    with_gpu_key, with_index, with_values,
};
use crate::format::gmerge_format;
use crate::status::{gmerge_status, guard, invalid};
use merge_host::{Counted, Segments, workspace};

/// Writes to `bytes` the bytes of workspace of `gmerge_device_sort` for `count` elements. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_sort_bytes(
    format: gmerge_format,
    count: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => with_values!(format, V => Ok(workspace::sort::<K, V>(count))));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Sorts `elements` in place, as `gmerge_sort` does. Every call of a stream puts work on it, allocates nothing, waits
/// for nothing, and can be captured by a graph. The elements may have a number in the GPU's memory.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_sort(
    stream: *const gmerge_stream,
    format: gmerge_format,
    elements: gmerge_device_elements,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let options = format.options()?;
        with_gpu_key!(format, K => with_values!(format, V => {
            let mut elements = call.elements::<K, V>(elements)?;
            Ok(call.stream.sort(options, elements.sorted(), &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_argsort` for `count` keys. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_argsort_bytes(
    format: gmerge_format,
    count: usize,
    index_size: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => with_index!(index_size, I => Ok(workspace::argsort::<K, I>(count))));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Sorts `keys` in place, and writes the index of each key before the sort to `indices`, as numbers of `index_size`
/// bytes, 4 or 8. Values are ignored. The keys may have a number in the GPU's memory.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_argsort(
    stream: *const gmerge_stream,
    format: gmerge_format,
    keys: gmerge_device_elements,
    indices: u64,
    index_size: usize,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let options = format.options()?;
        with_gpu_key!(format, K => with_index!(index_size, I => {
            let elements = call.elements::<K, I>(gmerge_device_elements { values: indices, ..keys })?;
            let Elements { mut keys, values: mut indices, number } = elements;
            let keys = Counted(&mut keys, number.as_ref());
            Ok(call.stream.argsort(options, keys, &mut indices, &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_sort_segments` for `count` elements. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_sort_segments_bytes(
    format: gmerge_format,
    count: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => with_values!(format, V => Ok(workspace::sort_segments::<K, V>(count))));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Sorts each segment of `elements` by itself, in place.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_sort_segments(
    stream: *const gmerge_stream,
    format: gmerge_format,
    elements: gmerge_device_elements,
    offsets: gmerge_device_offsets,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let options = format.options()?;
        let offsets = call.offsets(offsets, elements.count)?;
        with_gpu_key!(format, K => with_values!(format, V => {
            let (mut keys, mut values) = call.all::<K, V>(elements)?;
            let segments = Segments::Offsets(&offsets);
            Ok(call.stream.sort_segments(options, (&mut keys, &mut values), segments, &mut call.workspace)?)
        }))
    })
}

/// Writes the offsets of runs or segments whose lengths are `offsets.count` numbers of type `uint64_t` at the address
/// `lengths` to `offsets`, one behind another. `number` is 0, or the address of the number of lengths that count, a
/// `uint64_t`: the runs behind them are empty. The parts of runs behind key `most`, the number of keys, are left out.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_set_offsets(
    stream: *const gmerge_stream,
    lengths: u64,
    number: u64,
    most: usize,
    offsets: gmerge_device_offsets,
) -> gmerge_status {
    guard(|| {
        let nothing = gmerge_workspace { address: 0, bytes: 0 };
        // SAFETY: the stream and the arrays are as `new` needs them, by `# Safety`. A workspace of 0 bytes is nowhere.
        let call = unsafe { Call::new(stream, nothing) }?;
        let count = offsets.count;
        let lengths = call.elements::<u64, ()>(gmerge_device_elements { keys: lengths, values: 0, count, number })?;
        Ok(call.offsets(offsets, most)?.set(call.stream, lengths.read())?)
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_top_k` for the first `k` of `count` elements. Needs no
/// GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_top_k_bytes(
    format: gmerge_format,
    count: usize,
    k: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => with_values!(format, V => Ok(workspace::top_k::<K, V>(count, k))));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count, k], find) }
}

/// Writes to `out` the first `out.count` of the elements `from` in the order of `format`, sorted. If `from` has a
/// number in the GPU's memory, `out` has a place for its number, too: all elements of `from` are taken if there are
/// fewer.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_top_k(
    stream: *const gmerge_stream,
    format: gmerge_format,
    from: gmerge_device_elements,
    out: gmerge_device_elements,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let options = format.options()?;
        with_gpu_key!(format, K => with_values!(format, V => {
            let (from, mut out) = (call.elements::<K, V>(from)?, call.elements::<K, V>(out)?);
            Ok(call.stream.top_k(options, from.read(), out.written(), &mut call.workspace)?)
        }))
    })
}

/// Writes to `bytes` the bytes of workspace of `gmerge_device_argsort_segments` for `count` keys. Needs no GPU.
///
/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_argsort_segments_bytes(
    format: gmerge_format,
    count: usize,
    index_size: usize,
    bytes: *mut usize,
) -> gmerge_status {
    let find = || with_gpu_key!(format, K => with_index!(index_size, I => Ok(workspace::sort_segments::<K, I>(count))));
    // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
    unsafe { bytes_of(bytes, &[count], find) }
}

/// Sorts each segment of `keys` by itself, in place, and writes the index of each key in the whole array before the
/// sort to `indices`, as numbers of `index_size` bytes, 4 or 8. Values are ignored.
///
/// # Safety
/// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
/// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_device_argsort_segments(
    stream: *const gmerge_stream,
    format: gmerge_format,
    keys: gmerge_device_elements,
    offsets: gmerge_device_offsets,
    indices: u64,
    index_size: usize,
    workspace: gmerge_workspace,
) -> gmerge_status {
    guard(|| {
        // SAFETY: the stream, the workspace and the arrays are as `new` needs them, by `# Safety`.
        let mut call = unsafe { Call::new(stream, workspace) }?;
        let options = format.options()?;
        let offsets = call.offsets(offsets, keys.count)?;
        with_gpu_key!(format, K => with_index!(index_size, I => {
            let (mut keys, mut indices) = call.all::<K, I>(gmerge_device_elements { values: indices, ..keys })?;
            let segments = Segments::Offsets(&offsets);
            Ok(call.stream.argsort_segments(options, &mut keys, &mut indices, segments, &mut call.workspace)?)
        }))
    })
}
