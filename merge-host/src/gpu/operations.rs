//! The calls of a stream: sorts, merges and selections of its arrays.

use super::elements::{
    Call, DeviceElements, DeviceElementsMut, DeviceInOut, DeviceInput, DeviceOutput, check_counts, counts_out,
    value_bytes,
};
use super::launch::Arrays;
use super::launch::batch::{Batch, Lengths, Ragged};
use super::launch::bits::SortByBits;
use super::launch::groups::{ReduceByKey, RunLengths, Unique};
use super::launch::many_ragged::{MergeManyRagged, RunGroups};
use super::launch::many_runs::{MOST, MergeMany};
use super::launch::merge::Merge;
use super::launch::offsets::SetOffsets;
use super::launch::sets::Sets;
use super::launch::sort::Sort;
use super::launch::top_k::TopK;
use super::launch::top_k_segments::TopKSegments;
use super::launch::{bounds, segments};
use super::{DeviceArray, DeviceOffsets, Stream};
use crate::engine::{
    check_batch, check_bits, check_capacity, check_k, check_kernel, check_length, check_offset_counts, check_values,
};
use crate::index::check_index_range;
use crate::{
    BatchKernel, Bound, Error, GpuKey, GpuSortKey, Index, MergeKernel, Reduction, SelectedAs, SetOperation,
    SortOptions, Summand,
};
use bytemuck::Pod;
use std::ops::Range;

const A: (&str, &str) = ("a", "values of a");
const B: (&str, &str) = ("b", "values of b");
const KEYS: (&str, &str) = ("keys", "values");
const INDEXED: (&str, &str) = ("keys", "indices");
const OUT: (&str, &str) = ("out", "values of out");

/// The segments of an array in a GPU's memory.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Segments<'a> {
    /// Segments of any lengths, from an offset to the next. The last offset is the number of keys, or at most that for
    /// offsets that the GPU has written.
    Offsets(&'a DeviceOffsets),
    /// Segments of this many keys, at least 1. The last segment is shorter if the length does not divide the number of
    /// keys.
    Length(usize),
}

/// The runs of an array in a GPU's memory, and which of them are merged together. `&offsets` converts to runs that are
/// all merged into one, and `(&offsets, &groups)` to groups of runs: `groups` are offsets in the runs.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    offsets: &'a DeviceOffsets,
    groups: Option<&'a DeviceOffsets>,
}

impl<'a> From<&'a DeviceOffsets> for Runs<'a> {
    fn from(offsets: &'a DeviceOffsets) -> Self {
        Self { offsets, groups: None }
    }
}

impl<'a> From<(&'a DeviceOffsets, &'a DeviceOffsets)> for Runs<'a> {
    fn from((offsets, groups): (&'a DeviceOffsets, &'a DeviceOffsets)) -> Self {
        Self { offsets, groups: Some(groups) }
    }
}

/// # Sorts, merges and selections
///
/// Each method puts work on the stream and returns before it is done. The methods do not allocate memory and do not
/// wait, so a CUDA graph can capture them. There is one exception: the first call that needs a kernel loads it
/// ([`Gpu::prepare`](crate::Gpu::prepare)).
///
/// Arguments are keys alone or keys with values ([`DeviceElements`]). Only the GPU may know the number of elements
/// ([`Counted`](crate::Counted)) of sorts, merges, set operations, operations on groups of equal keys,
/// [`top_k`](Self::top_k) and [`bounds`](Self::bounds). A workspace has at least the bytes that the function
/// for the call in [`workspace`](crate::workspace) returns. Calls of one stream may share it. Its content is
/// unspecified afterwards.
///
/// # Errors of all of them
/// - [`Error::OtherStream`] or [`Error::OtherGpu`] if an array does not belong to this stream,
/// - [`Error::ValuesMismatch`] if the numbers of keys and values differ,
/// - [`Error::WorkspaceTooSmall`],
/// - [`Error::Overlap`] if a written array overlaps another argument, which only [arrays of other
///   libraries](DeviceArray::from_address) can do,
/// - [`Error::Device`] where the driver fails: written arrays then have unspecified elements. After any other error
///   nothing has been put on the stream.
impl Stream {
    /// Sorts `elements` as `options` say: a [`SortOrder`](crate::SortOrder) or [`SortOptions`]. Stable: values of equal
    /// keys stay in their order. O(n log n).
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them).
    pub fn sort<K: GpuSortKey, V: Pod>(
        &self,
        options: impl Into<SortOptions>,
        elements: impl DeviceInOut<K, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let (mut call, SortOptions { order, kernel }) = (Call::new(self), options.into());
        let coding = order.coding::<K>().into();
        let at = call.writes(KEYS, &elements)?;
        call.run(&Sort::new(kernel, coding, at, false), workspace)
    }

    /// Sorts `keys` and sets `indices` to the index of each key before the sort. Stable. The previous content of
    /// `indices` is not read. O(n log n).
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), and [`Error::TooManyKeys`] if there are more than 2^32 keys and
    /// the indices are `u32`.
    pub fn argsort<K: GpuSortKey, I: Index>(
        &self,
        options: impl Into<SortOptions>,
        keys: impl DeviceInOut<K, ()>,
        indices: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (mut call, SortOptions { order, kernel }) = (Call::new(self), options.into());
        let coding = order.coding::<K>().into();
        let (at, found) = (call.writes(INDEXED, &keys)?, call.writes(("indices", ""), &indices)?);
        check_values(INDEXED.0, at.len, found.len)?;
        let at = Arrays { values: found.keys, value_bytes: size_of::<I>(), ..at };
        check_index_range::<I>(at.len)?;
        call.run(&Sort::new(kernel, coding, at, true), workspace)
    }

    /// Sorts `elements` by the bits `bits` of their ordered bits ([`Key::to_ordered`](crate::Key::to_ordered), in the
    /// order of `options`), counted from the least significant bit, 0. Stable: keys that differ only in other bits keep
    /// their order, and so do their values. O(n log n).
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), and [`Error::BitRange`] if `bits` ends before it begins, or after
    /// the bits of a key.
    pub fn sort_by_bits<K: GpuKey, V: Pod>(
        &self,
        options: impl Into<SortOptions>,
        bits: Range<u32>,
        elements: impl DeviceElementsMut<K, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let (mut call, (kernel, coding)) = (Call::new(self), options.into().on_gpu::<K>());
        let (at, bits) = (call.writes(KEYS, &elements)?, check_bits::<K>(bits)?);
        call.run(&SortByBits { kernel, coding, at, indexes: false, bits }, workspace)
    }

    /// [`sort_by_bits`](Self::sort_by_bits) that sets `indices` to the index of each key before the sort. The previous
    /// content of `indices` is not read.
    ///
    /// # Errors
    /// The errors of [`sort_by_bits`](Self::sort_by_bits), and [`Error::TooManyKeys`] if there are more than 2^32 keys
    /// and the indices are `u32`.
    pub fn argsort_by_bits<K: GpuKey, I: Index>(
        &self,
        options: impl Into<SortOptions>,
        bits: Range<u32>,
        keys: &mut DeviceArray<K>,
        indices: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (mut call, (kernel, coding)) = (Call::new(self), options.into().on_gpu::<K>());
        let (at, bits) = (call.writes(INDEXED, &(keys, indices))?, check_bits::<K>(bits)?);
        check_index_range::<I>(at.len)?;
        call.run(&SortByBits { kernel, coding, at, indexes: true, bits }, workspace)
    }

    /// Sorts each segment of `elements` on its own. Stable. O(n log l) for segments of l keys.
    ///
    /// Lengths may be mixed in any way: the time of a segment depends on its own length, and an empty segment takes
    /// almost none. The offsets stay on the GPU, and the launches do not depend on them.
    ///
    /// ```no_run
    /// use merge_host::{DeviceOffsets, Gpu, Segments, SortOrder, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let mut keys = stream.upload(&[9, 3, 5, /**/ /**/ 2, 1, /**/ 7])?;
    /// let offsets = DeviceOffsets::new(&stream, &[0, 3, 3, 5, 6])?;
    /// let mut memory = stream.zeroed(workspace::sort_segments::<i32, ()>(keys.len()))?;
    /// stream.sort_segments(SortOrder::Ascending, &mut keys, Segments::Offsets(&offsets), &mut memory)?;
    /// assert_eq!(keys.download()?, [3, 5, 9, /**/ /**/ 1, 2, /**/ 7]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), [`Error::LastOffset`] if the last offset is not the number of
    /// keys, and [`Error::SegmentLength`] if the segment length is 0.
    pub fn sort_segments<K: GpuKey, V: Pod>(
        &self,
        options: impl Into<SortOptions>,
        elements: impl DeviceElementsMut<K, V>,
        segments: Segments<'_>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let (mut call, SortOptions { order, .. }) = (Call::new(self), options.into());
        let coding = order.coding::<K>().into();
        let at = call.writes(KEYS, &elements)?;
        let bounds = call.segments(segments, at.len)?;
        call.run(&segments::SortSegments { coding, at, bounds, indexes: false }, workspace)
    }

    /// [`sort_segments`](Self::sort_segments) that also sets `indices` to the index of each key before the sort,
    /// counted from the beginning of the array. The indices are one permutation, like the result of
    /// [`argsort`](Self::argsort). The workspace is the one for values of type `I`.
    ///
    /// # Errors
    /// The errors of [`sort_segments`](Self::sort_segments), and [`Error::TooManyKeys`] if there are more than 2^32
    /// keys and the indices are `u32`.
    pub fn argsort_segments<K: GpuKey, I: Index>(
        &self,
        options: impl Into<SortOptions>,
        keys: &mut DeviceArray<K>,
        indices: &mut DeviceArray<I>,
        segments: Segments<'_>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (mut call, SortOptions { order, .. }) = (Call::new(self), options.into());
        let coding = order.coding::<K>().into();
        let at = call.writes(INDEXED, &(keys, indices))?;
        check_index_range::<I>(at.len)?;
        let bounds = call.segments(segments, at.len)?;
        call.run(&segments::SortSegments { coding, at, bounds, indexes: true }, workspace)
    }

    /// Sets `out`, of k elements, to the first k elements of `from` in the order of `options`, sorted. Stable: of equal
    /// keys the first ones are taken, and they stay in their order. Usually reads each key twice. O(n + k log k).
    ///
    /// If `from` is keys alone, `out` may be `(&mut keys, &mut indices)`, with indices of `u32`, `u64` or `usize`. The
    /// indices of the selected keys are written then.
    ///
    /// If `from` is [`Counted`](crate::Counted), `out` is, too, which is checked at compile time. Of fewer than k
    /// elements, all are taken. Each key is usually read twice then.
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), [`Error::TooFewKeys`] if `out` is longer than `from`, and
    /// [`Error::TooManyKeys`] if there are more than 2^32 keys and the indices are `u32`. If the count of `out` is
    /// `None` and that of `from` is not, [`Error::NoCount`].
    pub fn top_k<K: GpuKey, V: SelectedAs<W>, W: Pod>(
        &self,
        options: impl Into<SortOptions>,
        from: impl DeviceInput<K, V>,
        out: impl DeviceOutput<K, W>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<W>() };
        counts_out(&from, &from, &out);
        let (mut call, SortOptions { order, .. }) = (Call::new(self), options.into());
        let coding = order.coding::<K>().into();
        let (from, out) = (call.reads(KEYS, &from)?, call.writes(("out", V::NAME), &out)?);
        check_counts(&[from], out)?;
        check_k(from.len, out.len)?;
        V::check_range(from.len)?;
        call.run(&TopK { coding, from, out }, workspace)
    }

    /// Sets the elements of `out` from element `q * k` on to the first `k` elements of segment `q` of `from` in the
    /// order of `options`, sorted. Stable: of equal keys the first ones are taken, and they stay in their order.
    ///
    /// `out` has `k` elements for each segment. A segment of fewer elements sets as many elements of its part of `out`
    /// as it has, and the others keep their contents. The rows of a matrix are segments of one length.
    ///
    /// If `from` is keys alone, `out` may be `(&mut keys, &mut indices)`, as for [`top_k`](Self::top_k). An index
    /// counts from the beginning of the segment.
    ///
    /// # Complexity
    /// O(n + s k log² k) for s segments and `k` up to 2048, with one reading of the keys. For greater `k`, a copy of
    /// the segments is sorted in the workspace.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, Segments, SortOrder, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let rows = stream.upload(&[0.5f32, 0.1, 0.9, 0.7, /**/ 0.2, 0.8, 0.8, 0.1])?;
    /// let (mut out, mut indices) = (stream.zeroed(4)?, stream.zeroed::<u32>(4)?);
    /// let (segments, k) = (Segments::Length(4), 2);
    /// let mut memory = stream.zeroed(workspace::top_k_segments::<f32, u32>(rows.len(), 2, k))?;
    /// let to = (&mut out, &mut indices);
    /// stream.top_k_segments(SortOrder::Descending, &rows, segments, k, to, &mut memory)?;
    /// assert_eq!(out.download()?, [0.9, 0.7, /**/ 0.8, 0.8]);
    /// assert_eq!(indices.download()?, [2, 3, /**/ 1, 2]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`sort_segments`](Self::sort_segments), [`Error::LengthMismatch`] if `out` has another number of
    /// keys than `k` for each segment, and [`Error::TooManyKeys`] if a segment may have more than 2^32 keys and the
    /// indices are `u32`.
    pub fn top_k_segments<K: GpuKey, V: SelectedAs<W>, W: Pod>(
        &self,
        options: impl Into<SortOptions>,
        from: impl DeviceElements<K, V>,
        segments: Segments<'_>,
        k: usize,
        out: impl DeviceElementsMut<K, W>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<W>() };
        let (mut call, SortOptions { order, .. }) = (Call::new(self), options.into());
        let coding = order.coding::<K>().into();
        let (from, out) = (call.reads(KEYS, &from)?, call.writes(("out", V::NAME), &out)?);
        let bounds = call.segments(segments, from.len)?;
        check_length("out", bounds.count().saturating_mul(k), out.len, "segments * k")?;
        V::check_range(bounds.longest())?;
        call.run(&TopKSegments { coding, from, bounds, k, out }, workspace)
    }

    /// Merges `a` and `b`, both ascending by key, into `out`, which has the length of both together. Stable: of equal
    /// keys, keys of `a` go first. O(n).
    ///
    /// If `a` or `b` is not ascending, `out` gets elements of both in an unspecified order.
    ///
    /// If `a` or `b` is [`Counted`](crate::Counted), `out` is, too, which is checked at compile time, and has at least
    /// the capacity of both together. The merge has two phases then, and needs the workspace of
    /// [`MergeKernel::MergePath`].
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), [`Error::LengthMismatch`] if `out` has another number of keys,
    /// and [`Error::KeysAlone`] if there are values and the kernel is a textbook kernel. For a counted result,
    /// [`Error::CapacityTooSmall`] if `out` has fewer keys, and [`Error::LengthsOnGpu`] for a textbook kernel. If the
    /// count of `out` is `None` and another one is not, [`Error::NoCount`].
    pub fn merge<K: GpuKey, V: Pod>(
        &self,
        kernel: MergeKernel,
        a: impl DeviceInput<K, V>,
        b: impl DeviceInput<K, V>,
        out: impl DeviceOutput<K, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        counts_out(&a, &b, &out);
        let mut call = Call::new(self);
        let (a, b, out) = (call.reads(A, &a)?, call.reads(B, &b)?, call.writes(OUT, &out)?);
        check_counts(&[a, b], out)?;
        if out.count == 0 {
            check_sum(a, b, out)?;
        } else {
            check_capacity("out", a.len.saturating_add(b.len), out.len)?;
        }
        let takes_values = matches!(kernel, MergeKernel::Auto | MergeKernel::MergePath);
        check_kernel(takes_values || out.value_bytes == 0, kernel.name())?;
        if !takes_values && out.count != 0 {
            return Err(Error::LengthsOnGpu { kernel: kernel.name() });
        }
        call.run(&Merge { kernel, coding: K::gpu_coding().into(), a, b, out }, workspace)
    }

    /// Solves many merge problems of one length: merges run `p` of `a` with run `p` of `b` into run `p` of `out`. `d`
    /// and `a_len` are as in [`Engine::merge_batch`](crate::Engine::merge_batch). Needs no workspace. O(n log d).
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), the errors of
    /// [`Engine::merge_batch`](crate::Engine::merge_batch), and [`Error::KeysAlone`] if there are values and the kernel
    /// is [`BatchKernel::Small`].
    pub fn merge_batch<K: GpuKey, V: Pod>(
        &self,
        kernel: BatchKernel,
        a: impl DeviceElements<K, V>,
        b: impl DeviceElements<K, V>,
        out: impl DeviceElementsMut<K, V>,
        d: usize,
        a_len: usize,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let mut call = Call::new(self);
        let (a, b, out) = (call.reads(A, &a)?, call.reads(B, &b)?, call.writes(OUT, &out)?);
        let lengths = Lengths { problems: check_batch(a.len, b.len, out.len, d, a_len)?, d, a_len };
        check_kernel(kernel == BatchKernel::Auto || out.value_bytes == 0, kernel.name())?;
        call.run_without_workspace(&Batch { kernel, coding: K::gpu_coding().into(), arrays: [a, b, out], lengths })
    }

    /// Solves many merge problems of any lengths. Each side is elements and their offsets. The runs of problem `p` are
    /// the keys `a_offsets[p] .. a_offsets[p + 1]` of `a` and `b_offsets[p] .. b_offsets[p + 1]` of `b`. In `out` the
    /// problem begins at `a_offsets[p] + b_offsets[p]`. O(n log n).
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), and [`Error::LengthMismatch`] if `out` has another number of keys
    /// than both sides. [`Error::OffsetsMismatch`] if the sides have different numbers of offsets,
    /// [`Error::LastOffset`] if the last offset of a side is not its number of keys, and [`Error::LengthsOnGpu`] for
    /// offsets from [`DeviceOffsets::empty`].
    pub fn merge_ragged<K: GpuKey, V: Pod>(
        &self,
        a: (impl DeviceElements<K, V>, &DeviceOffsets),
        b: (impl DeviceElements<K, V>, &DeviceOffsets),
        out: impl DeviceElementsMut<K, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let mut call = Call::new(self);
        let ((a, of_a), (b, of_b)) = ((call.reads(A, &a.0)?, a.1), (call.reads(B, &b.0)?, b.1));
        let offsets = [
            call.exact_offsets(("offsets of a", "a"), of_a, a.len)?,
            call.exact_offsets(("offsets of b", "b"), of_b, b.len)?,
        ];
        let (problems, out) = (check_offset_counts(of_a.len(), of_b.len())?, call.writes(OUT, &out)?);
        check_sum(a, b, out)?;
        call.run(&Ragged { coding: K::gpu_coding().into(), a, b, offsets, problems, out }, workspace)
    }

    /// Merges the `runs` of `from` into `out`, which has the same number of keys. Run `i` is the keys
    /// `offsets[i] .. offsets[i + 1]`, sorted in the order of `options`. Runs have any lengths, and there may be any
    /// number of runs. Stable: of equal keys, keys of an earlier run come first.
    ///
    /// `runs` is `&offsets`, or `(&offsets, &groups)`, which merges the runs `groups[g] .. groups[g + 1]` of each group
    /// to the same indices of `out`.
    ///
    /// The offsets stay on the GPU, and the launches do not depend on them. If a run is not sorted in this order, `out`
    /// gets elements of all runs in an unspecified order.
    ///
    /// # Complexity
    /// O(n log k) for n keys and up to k runs that are merged into one. Up to 32 runs are merged in one pass, which
    /// reads and writes each key once. Up to 32² runs take two passes, and so on. Many groups of fewer than some two
    /// thousand keys are copied and sorted, which is faster.
    ///
    /// ```no_run
    /// use merge_host::{DeviceOffsets, Gpu, SortOrder, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let keys = stream.upload(&[1, 4, 6, /**/ 2, 4, /**/ /**/ 0, 9])?;
    /// let offsets = DeviceOffsets::new(&stream, &[0, 3, 5, 5, 7])?;
    /// let mut out = stream.zeroed(keys.len())?;
    /// let mut memory = stream.zeroed(workspace::merge_many::<i32, ()>(keys.len(), 4))?;
    /// stream.merge_many(SortOrder::Ascending, &keys, &offsets, &mut out, &mut memory)?;
    /// assert_eq!(out.download()?, [0, 1, 2, 4, 4, 6, 9]);
    ///
    /// // The first two runs, and the other two.
    /// let groups = DeviceOffsets::new(&stream, &[0, 2, 4])?;
    /// let bytes = workspace::merge_many_ragged::<i32, ()>(keys.len(), 4, 2, groups.longest());
    /// let mut memory = stream.zeroed(bytes)?;
    /// stream.merge_many(SortOrder::Ascending, &keys, (&offsets, &groups), &mut out, &mut memory)?;
    /// assert_eq!(out.download()?, [1, 2, 4, 4, 6, /**/ 0, 9]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), [`Error::LengthMismatch`] if `out` has another number of keys,
    /// and [`Error::LastOffset`] if the last offset is not the number of keys. Without groups, [`Error::TooManyKeys`]
    /// if there are 2^32 keys or more. With groups, [`Error::LastGroup`] if the last of `groups` is not the number of
    /// runs, and [`Error::LengthsOnGpu`] if `groups` are from [`DeviceOffsets::empty`].
    pub fn merge_many<'a, K: GpuKey, V: Pod>(
        &self,
        options: impl Into<SortOptions>,
        from: impl DeviceElements<K, V>,
        runs: impl Into<Runs<'a>>,
        out: impl DeviceElementsMut<K, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let (mut call, SortOptions { order, .. }) = (Call::new(self), options.into());
        let coding = order.coding::<K>().into();
        let (from, Runs { offsets, groups }) = (call.reads(KEYS, &from)?, runs.into());
        let (at, count) = (call.offsets(("offsets", "keys"), offsets, from.len)?, offsets.len() - 1);
        let groups = match groups {
            Some(groups) => Some(RunGroups {
                offsets: at,
                runs: count,
                groups: call.groups(groups, count)?,
                count: groups.len() - 1,
                most_runs: groups.longest(),
                longest: offsets.longest().saturating_mul(groups.longest()).min(from.len),
            }),
            None => None,
        };
        let out = call.writes(OUT, &out)?;
        check_length("out", from.len, out.len, "|keys|")?;
        match groups {
            Some(groups) => call.run(&MergeManyRagged { coding, from, groups, out }, workspace),
            None if from.len > MOST => Err(Error::TooManyKeys { found: from.len, most: MOST, index: "u32" }),
            None => call.run(&MergeMany { coding, from, offsets: (at, count), out }, workspace),
        }
    }

    /// Writes the elements of `a` and `b` that `operation` keeps to `out`, and their number to `count`, which has one
    /// element. `a` and `b` are ascending by key, and so is the result. `out` has at least [`SetOperation::most_keys`]
    /// keys; keys after the result are unspecified. O(n).
    ///
    /// A kept key keeps its value. Of two equal keys the key of `a` is kept, as in C++'s `std::set_union` and
    /// `std::set_intersection`. If `a` or `b` is not ascending, `out` gets an unspecified number of elements of both,
    /// in an unspecified order.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, SetOperation, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let (a, b) = (stream.upload(&[1u32, 4, 4, 6])?, stream.upload(&[2u32, 4])?);
    /// let (mut out, mut count) = (stream.zeroed(6)?, stream.zeroed(1)?);
    /// let mut memory = stream.zeroed(workspace::set_operation::<u32>(6))?;
    /// stream.set_operation(SetOperation::Union, &a, &b, &mut out, &mut count, &mut memory)?;
    /// assert_eq!(count.download()?, [5]);
    /// assert_eq!(out.download()?[..5], [1, 2, 4, 4, 6]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), [`Error::CapacityTooSmall`] if `out` has fewer keys than the
    /// result may have, and [`Error::LengthMismatch`] if the length of `count` is not 1.
    pub fn set_operation<K: GpuKey, V: Pod>(
        &self,
        operation: SetOperation,
        a: impl DeviceInput<K, V>,
        b: impl DeviceInput<K, V>,
        out: impl DeviceElementsMut<K, V>,
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let mut call = Call::new(self);
        let (a, b, out) = (call.reads(A, &a)?, call.reads(B, &b)?, call.writes(OUT, &out)?);
        check_capacity("out", operation.most_keys(a.len, b.len), out.len)?;
        let count = call.count(count)?;
        call.run(&Sets { coding: K::gpu_coding().into(), operation, a, b, out, count }, workspace)
    }

    /// Writes the first element of each group of equal neighbours of `from` to `out`, and the number of groups to
    /// `count`, which has one element. In a sorted array, all equal keys are one group. `out` has at least the length
    /// of `from`; elements after the result are unspecified. Two keys are equal if their bits are. O(n).
    ///
    /// ```no_run
    /// use merge_host::{Gpu, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let keys = stream.upload(&[1u32, 1, 4, 6, 6, 6])?;
    /// let (mut out, mut count) = (stream.zeroed(6)?, stream.zeroed(1)?);
    /// let mut memory = stream.zeroed(workspace::groups::<u32>(6))?;
    /// stream.unique(&keys, &mut out, &mut count, &mut memory)?;
    /// assert_eq!(count.download()?, [3]);
    /// assert_eq!(out.download()?[..3], [1, 4, 6]);
    ///
    /// let mut lengths = stream.zeroed(6)?;
    /// stream.run_lengths(&keys, (&mut out, &mut lengths), &mut count, &mut memory)?;
    /// assert_eq!(lengths.download()?[..3], [2, 1, 3]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), [`Error::CapacityTooSmall`] if `out` has fewer elements than
    /// `from`, and [`Error::LengthMismatch`] if the length of `count` is not 1.
    pub fn unique<K: GpuKey, V: Pod>(
        &self,
        from: impl DeviceInput<K, V>,
        out: impl DeviceElementsMut<K, V>,
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        const { value_bytes::<V>() };
        let mut call = Call::new(self);
        let (at, out) = (call.reads(KEYS, &from)?, call.writes(OUT, &out)?);
        check_capacity("out", at.len, out.len)?;
        let count = call.count(count)?;
        call.run(&Unique { coding: K::gpu_coding().into(), at, out, count }, workspace)
    }

    /// Writes the first key and the length of each group of equal neighbours to `out`, and the number of groups to
    /// `count`. All else is as for [`unique`](Self::unique).
    ///
    /// # Errors
    /// The errors of [`unique`](Self::unique).
    pub fn run_lengths<K: GpuKey>(
        &self,
        keys: impl DeviceInput<K, ()>,
        out: (&mut DeviceArray<K>, &mut DeviceArray<u64>),
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let (at, out) = (call.reads(KEYS, &keys)?, call.writes(("out", "lengths"), &out)?);
        check_capacity("out", at.len, out.len)?;
        let count = call.count(count)?;
        call.run(&RunLengths { coding: K::gpu_coding().into(), at, out, count }, workspace)
    }

    /// Writes the first key of each group of equal neighbours and the reduction of its values to `out`, and the number
    /// of groups to `count`. All else is as for [`unique`](Self::unique).
    ///
    /// A sum of floats is rounded at each addition. The order of the additions depends only on the number of keys and
    /// on where the groups begin, so the sum is the same each time. If it is a NaN, its bits are unspecified.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, Reduction, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let (keys, values) = (stream.upload(&[1u32, 1, 4])?, stream.upload(&[0.5f32, 2.0, 3.0])?);
    /// let (mut out, mut sums, mut count) = (stream.zeroed(3)?, stream.zeroed(3)?, stream.zeroed(1)?);
    /// let mut memory = stream.zeroed(workspace::groups::<u32>(3))?;
    /// let to = (&mut out, &mut sums);
    /// stream.reduce_by_key(Reduction::Sum, (&keys, &values), to, &mut count, &mut memory)?;
    /// assert_eq!(sums.download()?[..2], [2.5, 3.0]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`unique`](Self::unique).
    pub fn reduce_by_key<K: GpuKey, V: Summand>(
        &self,
        reduction: Reduction,
        from: impl DeviceInput<K, V>,
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let (at, out) = (call.reads(KEYS, &from)?, call.writes(OUT, &out)?);
        check_capacity("out", at.len, out.len)?;
        let count = call.count(count)?;
        let (coding, summands) = (K::gpu_coding().into(), V::gpu_coding().into());
        call.run(&ReduceByKey { reduction, coding, summands, at, out, count }, workspace)
    }

    /// Writes to `bounds`, for each needle, the number of `keys` that are less than it ([`Bound::Lower`]), or less than
    /// or equal to it ([`Bound::Upper`]), as `u32`, `u64` or `usize`. `needles` and `keys` are ascending. O(n), or
    /// O(m log n) for few needles, m of n keys.
    ///
    /// If `needles` or `keys` is not ascending, the bounds are unspecified. If `needles` is
    /// [`Counted`](crate::Counted), bounds behind those of the first needles are kept.
    ///
    /// ```no_run
    /// use merge_host::{Bound, Gpu, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let (needles, keys) = (stream.upload(&[2u32, 4])?, stream.upload(&[1u32, 4, 4, 6])?);
    /// let mut bounds = stream.zeroed::<u32>(2)?;
    /// let mut memory = stream.zeroed(workspace::bounds::<u32>(6))?;
    /// stream.bounds(Bound::Lower, &needles, &keys, &mut bounds, &mut memory)?;
    /// assert_eq!(bounds.download()?, [1, 1]);
    /// stream.bounds(Bound::Upper, &needles, &keys, &mut bounds, &mut memory)?;
    /// assert_eq!(bounds.download()?, [1, 3]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), [`Error::LengthMismatch`] if the numbers of bounds and needles
    /// differ, and [`Error::TooManyKeys`] if there are 2^32 keys or more and the bounds are `u32`.
    pub fn bounds<K: GpuKey, I: Index>(
        &self,
        bound: Bound,
        needles: impl DeviceInput<K, ()>,
        keys: impl DeviceInput<K, ()>,
        bounds: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let (needles, keys) = (call.reads(("needles", ""), &needles)?, call.reads(KEYS, &keys)?);
        let found = call.writes(("bounds", ""), &bounds)?;
        check_length("bounds", needles.len, found.len, "|needles|")?;
        // A bound is at most the number of keys, which has to fit the type.
        check_index_range::<I>(keys.len.saturating_add(1))?;
        let (lower, bounds) = (bound == Bound::Lower, (found.keys, size_of::<I>()));
        call.run(&bounds::Bounds { coding: K::gpu_coding().into(), lower, needles, keys, bounds }, workspace)
    }
}

impl Call<'_> {
    /// Adds the offsets of the segments of `keys` keys, if the segments have offsets.
    fn segments(&mut self, segments: Segments<'_>, keys: usize) -> Result<segments::Bounds, Error> {
        match segments {
            Segments::Length(0) => Err(Error::SegmentLength),
            Segments::Length(length) => Ok(segments::Bounds::of_length(length, keys)),
            Segments::Offsets(offsets) => {
                let at = self.offsets(("offsets", "keys"), offsets, keys)?;
                Ok(segments::Bounds::of_offsets(at, offsets.len() - 1, offsets.longest()))
            }
        }
    }
}

/// Checks that `out` is as long as `a` and `b` together.
pub(super) fn check_sum(a: Arrays, b: Arrays, out: Arrays) -> Result<(), Error> {
    check_length("out", a.len.saturating_add(b.len), out.len, "|a| + |b|")
}

/// Offsets of lengths that only the GPU knows.
impl DeviceOffsets {
    /// Sets the offsets to the sums of `lengths`, by work on `stream`. One block adds 4096 lengths at a time.
    ///
    /// If `lengths` is [`Counted`](crate::Counted), the runs behind the first ones are empty. Parts of runs behind
    /// [`end`](Self::end) are left out. So segments, and runs that are merged, may have lengths and numbers that only
    /// the GPU knows:
    ///
    /// ```no_run
    /// use merge_host::{Counted, DeviceOffsets, Gpu, Segments, SortOrder, workspace};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let (of, mut values) = (stream.upload(&[1u32, 1, 1, 4, 4])?, stream.upload(&[9u32, 3, 5, 2, 1])?);
    /// let (mut heads, mut lengths, mut count) = (stream.zeroed(5)?, stream.zeroed(5)?, stream.zeroed(1)?);
    /// let mut offsets = DeviceOffsets::empty(&stream, 5, values.len())?;
    /// let bytes = workspace::groups::<u32>(5).max(workspace::sort_segments::<u32, ()>(5));
    /// let mut memory = stream.zeroed(bytes)?;
    /// // Each group of equal neighbours is a segment.
    /// stream.run_lengths(&of, (&mut heads, &mut lengths), &mut count, &mut memory)?;
    /// offsets.set(&stream, Counted(&lengths, &count))?;
    /// stream.sort_segments(SortOrder::Ascending, &mut values, Segments::Offsets(&offsets), &mut memory)?;
    /// assert_eq!(values.download()?, [3, 5, 9, /**/ 1, 2]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Errors of all calls](Stream#errors-of-all-of-them), and [`Error::LengthMismatch`] if `lengths` has not one
    /// number for each run.
    pub fn set(&mut self, stream: &Stream, lengths: impl DeviceInput<u64, ()>) -> Result<(), Error> {
        let mut call = Call::new(stream);
        let lengths = call.reads(("lengths", ""), &lengths)?;
        check_length("lengths", self.len() - 1, lengths.len, "the number of runs")?;
        let (most, offsets) = (self.end(), call.writes(("offsets", ""), &self.array_mut())?.keys);
        call.run_without_workspace(&SetOffsets { lengths, most, offsets })
    }
}
