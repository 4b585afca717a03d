//! Bytes of workspace for the calls of a [`Stream`](crate::Stream), one function for each call.
//!
//! n counts all elements. `V` is the type of values, or `()`. The result is `usize::MAX` if no GPU has enough memory
//! for the call.
//!
//! ```
//! use merge_host::workspace;
//!
//! let n = 1 << 20;
//! assert!(workspace::sort::<u32, ()>(n) >= 4 * n);
//! assert!(workspace::sort::<u32, u64>(n) >= 12 * n);
//! ```

use super::elements::value_bytes;
use super::launch::bits::SortByBits;
use super::launch::many_ragged::RunGroups;
use super::launch::narrow::widened_bytes;
use super::launch::sort::Sort;
use super::launch::{batch, bounds as bounds_of, groups as groups_of, many_ragged, many_runs};
use super::launch::{merge as merge_of, own, segments, sets, top_k as top_k_of, top_k_segments as top_k_segments_of};
use super::operation::{Operation, Record};
use crate::key::sealed::{DeviceBits, Sealed};
use crate::{GpuKey, GpuSortKey, Index, MergeKernel, SortKernel};
use kernels_gpu::kernels::top_k::segments::MAX_SEGMENT;
use kernels_gpu::own::Compare;
use kernels_gpu::own::merge_groups::Groups;

/// A sort of `n` elements: a copy of the elements, and splits or counters (at most 1 %, or 24 KiB if that is more).
/// Fewer than 2^32 keys of 1 or 2 bytes alone need 2 KiB or 512 KiB. Keys of 16 bytes need twice the bytes of the
/// elements, and an index for each key if there are values.
pub fn sort<K: GpuSortKey, V>(n: usize) -> usize {
    sort_bytes::<K>(n, const { value_bytes::<V>() }, false)
}

/// An argsort of `n` keys with indices of type `I`: a copy of both, and splits or counters.
pub fn argsort<K: GpuSortKey, I: Index>(n: usize) -> usize {
    sort_bytes::<K>(n, size_of::<I>(), true)
}

fn sort_bytes<K: GpuSortKey>(n: usize, value_bytes: usize, indexes: bool) -> usize {
    let (kernel, coding, at) = (SortKernel::Auto, K::gpu_coding().into(), Record::arrays(n, value_bytes));
    Sort::new(kernel, coding, at, indexes).workspace_bytes()
}

/// A sort of `n` elements by some bits, or an argsort with indices of type `V`: the extracted bits, and a sort of these
/// with the keys as values. With values, it also needs gathered elements, and indices.
pub fn sort_by_bits<K: GpuKey, V>(n: usize) -> usize {
    let (kernel, coding, at) = (SortKernel::Auto, K::gpu_coding().into(), Record::arrays(n, value_bytes::<V>()));
    // An argsort has no other indices, and needs less.
    SortByBits { kernel, coding, at, indexes: false, bits: (0, 0) }.workspace_bytes()
}

/// The bits of the kernels for keys of type `K`.
type Bits<K> = <<K as Sealed>::OnGpu as DeviceBits>::Kernels;

/// `bytes`, and the bytes of `arrays` arrays of keys of type `K`, `keys` keys in all, that are widened for kernels.
const fn with_widened<K: GpuKey>(bytes: usize, arrays: usize, keys: usize) -> usize {
    if size_of::<K>() < 4 { bytes.saturating_add(widened_bytes(arrays, keys)) } else { bytes }
}

/// A sort of the segments of `n` elements, of any lengths: a copy of the elements, and at most 5 % of the keys. For an
/// argsort, `V` is the type of the indices.
pub const fn sort_segments<K: GpuKey, V>(n: usize) -> usize {
    with_widened::<K>(segments::workspace_bytes::<Bits<K>>(n, const { value_bytes::<V>() }), 1, n)
}

/// The first `k` of `n` elements: room for an eighth of the elements, up to 8 MiB of counts, and a sort of `k`
/// elements. For indices, `V` is their type.
pub fn top_k<K: GpuKey, V>(n: usize, k: usize) -> usize {
    with_widened::<K>(top_k_of::workspace_bytes::<Bits<K>>(n, k, const { value_bytes::<V>() }), 2, n.saturating_add(k))
}

/// The first `k` elements of each of `segments` segments of `n` elements, of any lengths. For indices, `V` is their
/// type.
///
/// Up to 2048 elements of each of many segments need none, and of up to 512 segments room for 1024 times `k` elements.
/// More than 2048 elements of each segment, or segments of more than 2^31 elements, need a copy of the elements and
/// the workspace of [`sort_segments`].
pub fn top_k_segments<K: GpuKey, V>(n: usize, segments: usize, k: usize) -> usize {
    let bytes = |longest| {
        top_k_segments_of::workspace_bytes::<Bits<K>>(n, (segments, longest), k, const { value_bytes::<V>() })
    };
    // Shorter segments may be selected from where longer ones are sorted.
    let keys = n.saturating_add(segments.saturating_mul(k));
    with_widened::<K>(bytes(n).max(bytes(n.min(MAX_SEGMENT))), 2, keys)
}

/// A merge into `total` elements: 8 bytes for each tile of some thousand keys. A merge by a single launch needs none. A
/// merge of [`Counted`](crate::Counted) elements needs the workspace of [`MergeKernel::MergePath`].
pub const fn merge<K: GpuKey, V>(kernel: MergeKernel, total: usize) -> usize {
    with_widened::<K>(
        merge_of::bytes_of_workspace::<Bits<K>>(kernel, total, const { value_bytes::<V>() }),
        3,
        total.saturating_mul(2),
    )
}

/// A ragged batch into `total` elements: 16 bytes for each tile of some thousand keys.
pub const fn merge_ragged<K: GpuKey>(total: usize) -> usize {
    with_widened::<K>(batch::ragged_workspace_bytes::<Bits<K>>(total), 3, total.saturating_mul(2))
}

/// A merge of `n` elements in `runs` runs, empty runs included: a word for each run of a group and each tile of some
/// thousand keys. More than 32 runs also need a copy of the elements. `usize::MAX` if there are 2^32 keys or runs, or
/// more.
pub fn merge_many<K: GpuKey, V>(n: usize, runs: usize) -> usize {
    with_widened::<K>(
        many_runs::workspace_bytes::<Bits<K>>(n, runs, const { value_bytes::<V>() }),
        2,
        n.saturating_mul(2),
    )
}

/// Merges of `n` elements in `runs` runs and `groups` groups. A group has up to `most_runs` runs; `usize::MAX` stands
/// for any number. Runs and groups may be empty.
///
/// Groups of up to 32 runs with many keys need a word for each run and each tile of some thousand keys, and 8 bytes for
/// each run. Groups of more runs need a copy of the elements. Groups of few keys need the workspace of
/// [`sort_segments`] and 8 bytes for each group.
pub fn merge_many_ragged<K: GpuKey, V>(n: usize, runs: usize, groups: usize, most_runs: usize) -> usize {
    let groups = RunGroups { offsets: 0, runs, groups: 0, count: groups, most_runs, longest: usize::MAX };
    with_widened::<K>(
        many_ragged::workspace_bytes::<Bits<K>>(n, groups, const { value_bytes::<V>() }),
        2,
        n.saturating_mul(2),
    )
}

/// A set operation on `total` elements of both arrays, with or without values: 16 bytes for each tile of some thousand
/// keys.
pub const fn set_operation<K: GpuKey>(total: usize) -> usize {
    with_widened::<K>(sets::workspace_bytes::<Bits<K>>(total), 3, total.saturating_mul(2))
}

/// Unique keys, run lengths or a reduction by key of `n` elements, with or without values: 24 bytes for each tile of
/// some thousand keys.
pub const fn groups<K: GpuKey>(n: usize) -> usize {
    with_widened::<K>(groups_of::workspace_bytes::<Bits<K>>(n), 2, n.saturating_mul(2))
}

/// Bounds of `total` needles and keys: 8 bytes for each tile of some thousand.
pub const fn bounds<K: GpuKey>(total: usize) -> usize {
    with_widened::<K>(bounds_of::workspace_bytes::<Bits<K>>(total), 2, total)
}

/// A sort of `n` items by the order `C`: a copy of items and values, and splits. [Keys](kernels_gpu::own::Key) that are
/// sorted by their bits also need the bits and indices of 4 bytes, each twice. For an argsort, `V` is the type of the
/// indices.
pub fn sort_by<C: Compare, V>(n: usize) -> usize {
    own::sort_workspace_bytes::<C, V>(n)
}

/// A merge into `total` items of type `T`: 8 bytes for each tile of some hundred items.
pub const fn merge_by<T, V>(total: usize) -> usize {
    own::split_bytes::<T, V>(Groups::of_two(total, 0))
}

/// A batch of `problems` merges into `d` items each: 8 bytes for each tile of some hundred items.
pub const fn merge_batch_by<T, V>(problems: usize, d: usize) -> usize {
    own::split_bytes::<T, V>(Groups::of_batch(problems, d, 0))
}

/// Merges of any lengths into `total` items: 16 bytes for each tile of some hundred items.
pub const fn merge_ragged_by<T, V>(total: usize) -> usize {
    own::ragged_workspace_bytes::<T, V>(total)
}

/// A set operation on `total` items of both arrays: 24 bytes for each tile of some hundred items.
pub const fn set_operation_by<T, V>(total: usize) -> usize {
    own::set_operation_workspace_bytes::<T, V>(total)
}

/// A sort by a group of `members` GPUs, for a member that has `n` elements before the sort and `part` elements after
/// it.
pub fn group_sort<K: GpuKey, V>(members: usize, n: usize, part: usize) -> usize {
    super::group::group_sort::<K, V>(members, n, part)
}

/// A merge by a group of `members` GPUs, for a member that gets `part` elements. Many elements need a quarter of their
/// bytes in a group of two, and half of their bytes in a larger group.
pub fn group_merge<K: GpuKey, V>(members: usize, part: usize) -> usize {
    super::group::group_merge::<K, V>(members, part)
}
