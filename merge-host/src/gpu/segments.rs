//! Sorts of the segments of arrays: of a stream, and by address.

use super::launch::segments::{self, Bounds};
use super::raw::{Argument, check_apart, pairs};
use super::{DeviceArray, DeviceOffsets, Gpu, RawArray, Stream};
use crate::index::check_index_range;
use crate::{Error, GpuKey, Index, SortOrder};
use bytemuck::Pod;
use std::ffi::c_void;

/// The segments of an array in a GPU's memory.
#[derive(Clone, Copy, Debug)]
pub enum Segments<'a> {
    /// Segments of any lengths, from an offset to the next. The last offset is the number of keys.
    Offsets(&'a DeviceOffsets),
    /// Segments of so many keys, 1 or more. The last one is shorter if that does not divide the number of keys.
    Length(usize),
}

/// The segments of an array in a GPU's memory, for the [raw layer](Gpu#the-raw-layer).
#[derive(Clone, Copy, Debug)]
pub enum RawSegments {
    /// Segments of any lengths, from an offset to the next: the first offset is 0, they never decrease, and the last
    /// one is the number of keys.
    Offsets {
        /// The offsets, one more than there are segments.
        offsets: RawArray<u64>,
        /// A number of keys that no segment exceeds, or `usize::MAX`: where it is small, launches that only long
        /// segments need are left out.
        longest: usize,
    },
    /// As [`Segments::Length`].
    Length(usize),
}

impl RawSegments {
    /// The segments of `n` keys for the kernels, and the offsets as an argument.
    fn checked(self, n: usize) -> Result<(Bounds, Option<Argument>), Error> {
        match self {
            Self::Offsets { offsets, longest } => {
                let count = offsets.len.checked_sub(1).ok_or(Error::NoOffsets)?;
                Ok((Bounds::of_offsets(offsets.address, count, longest.min(n)), Some(offsets.named("offsets")?)))
            }
            Self::Length(0) => Err(Error::SegmentLength),
            Self::Length(length) => Ok((Bounds::of_length(length, n), None)),
        }
    }
}

/// # Sorts of segments
///
/// Each segment of an array is sorted on its own. Lengths may be mixed in any way: of the time that a sort takes, a
/// segment has a share according to its own length, and an empty one next to nothing. The offsets stay on the GPU, and
/// what is launched does not depend on them.
impl Stream {
    /// Sorts each segment of `keys`, in the total order of their type or descending. O(n log l), where l is the length
    /// of a segment.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, Segments, SortOrder};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let mut keys = stream.upload(&[9, 3, 5, /**/ /**/ 2, 1, /**/ 7])?;
    /// let offsets = stream.upload_offsets(&[0, 3, 3, 5, 6])?;
    /// let mut workspace = stream.zeroed(Gpu::sort_segments_workspace_bytes::<i32>(keys.len()))?;
    /// stream.sort_segments(SortOrder::Ascending, &mut keys, Segments::Offsets(&offsets), &mut workspace)?;
    /// assert_eq!(keys.download()?, [3, 5, 9, /**/ /**/ 1, 2, /**/ 7]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LastOffset`] if the last offset is not the number of keys, [`Error::SegmentLength`] if segments have a
    /// length of 0, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::sort_segments_workspace_bytes`], [`Error::Device`] where the driver fails.
    pub fn sort_segments<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        segments: Segments<'_>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (segments, keys) = (self.owned_segments(segments, keys.len())?, self.owned("keys", keys)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: all arrays belong to this stream: `owned` has checked that. All work on them is on it, they are freed
        // after that work, and they keep the stream and the `Gpu`. Those that are written are borrowed mutably, so that
        // they are apart from the others and in no other call at this time. Offsets are as they have to be:
        // `upload_offsets` and `checked` have checked that.
        unsafe { self.gpu().sort_segments_raw(order, keys, segments, workspace, self.handle()) }
    }

    /// As [`sort_segments`](Self::sort_segments), with as many `values` of 4 or 8 bytes, which is checked at compile
    /// time. Stable: equal keys of a segment stay in their order.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, [`Error::WorkspaceTooSmall`] if `workspace`
    /// has fewer bytes than [`Gpu::sort_segments_pairs_workspace_bytes`], and those of
    /// [`sort_segments`](Self::sort_segments).
    pub fn sort_segments_pairs<K: GpuKey, V: Pod>(
        &self,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        values: &mut DeviceArray<V>,
        segments: Segments<'_>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (segments, keys) = (self.owned_segments(segments, keys.len())?, self.owned("keys", keys)?);
        let (values, workspace) = (self.owned("values", values)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_segments`.
        unsafe { self.gpu().sort_segments_pairs_raw(order, keys, values, segments, workspace, self.handle()) }
    }

    /// As [`sort_segments`](Self::sort_segments), and sets `indices` to the index of each key before the sort, counted
    /// from the beginning of the array, not of the segment: the result is one permutation, which applies to other
    /// arrays as that of [`argsort`](Self::argsort) does. Stable. What is in `indices` before is not read.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many indices as keys, [`Error::TooManyKeys`] if there are more
    /// than 2^32 and the indices are `u32`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::sort_segments_pairs_workspace_bytes`] for values of type `I`, and those of
    /// [`sort_segments`](Self::sort_segments).
    pub fn argsort_segments<K: GpuKey, I: Index>(
        &self,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        indices: &mut DeviceArray<I>,
        segments: Segments<'_>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (segments, keys) = (self.owned_segments(segments, keys.len())?, self.owned("keys", keys)?);
        let (indices, workspace) = (self.owned("indices", indices)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_segments`.
        unsafe { self.gpu().argsort_segments_raw(order, keys, indices, segments, workspace, self.handle()) }
    }

    /// Where the segments of `keys` keys are, if their offsets belong to this stream and are those of as many keys.
    fn owned_segments(&self, segments: Segments<'_>, keys: usize) -> Result<RawSegments, Error> {
        Ok(match segments {
            Segments::Length(length) => RawSegments::Length(length),
            Segments::Offsets(offsets) => RawSegments::Offsets {
                offsets: offsets.checked(self, ("offsets", "keys"), keys)?,
                longest: offsets.longest(),
            },
        })
    }
}

/// # Sorts of segments by address
impl Gpu {
    /// Bytes of workspace for a sort of the segments of `n` keys, however long they are: the keys once more, and 4 %,
    /// or 8 % of keys of 4 bytes. `usize::MAX` if there are more keys than any GPU has memory for.
    pub const fn sort_segments_workspace_bytes<K: GpuKey>(n: usize) -> usize {
        segments::workspace_bytes::<K>(n, 0)
    }

    /// As [`sort_segments_workspace_bytes`](Self::sort_segments_workspace_bytes), with values, or indices, of type `V`:
    /// keys and values once more, and 1 %.
    pub const fn sort_segments_pairs_workspace_bytes<K: GpuKey, V>(n: usize) -> usize {
        segments::workspace_bytes::<K>(n, const { super::raw::value_bytes::<V>() })
    }

    /// Sorts each segment of `keys`, in the total order of their type or descending.
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are no offsets, [`Error::SegmentLength`] if segments have a length of 0,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`sort_segments_workspace_bytes`](Self::sort_segments_workspace_bytes), [`Error::Overlap`] if arrays overlap,
    /// [`Error::BadAddress`] if an address is 0 or not aligned, [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer). Offsets are in the GPU's memory, begin with 0, never
    /// decrease, and end with the number of keys, and no segment is longer than it is said of them.
    pub unsafe fn sort_segments_raw<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: RawArray<K>,
        segments: RawSegments,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let (bounds, offsets) = segments.checked(keys.len)?;
        check_apart(&[keys.named("keys")?, workspace.named("workspace")?], offsets.as_slice())?;
        let workspace = workspace.workspace(Self::sort_segments_workspace_bytes::<K>(keys.len))?;
        // SAFETY: the caller's guarantees; there are as many bytes of workspace as the sort needs.
        unsafe {
            self.on(stream, |queue| segments::sort_segments::<K>(queue, order, keys.keys(), bounds, false, workspace))
        }
    }

    /// As [`sort_segments_raw`](Self::sort_segments_raw), with as many `values` of 4 or 8 bytes, which is checked at
    /// compile time. Stable.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, [`Error::WorkspaceTooSmall`] if `workspace`
    /// has fewer than [`sort_segments_pairs_workspace_bytes`](Self::sort_segments_pairs_workspace_bytes), and those of
    /// [`sort_segments_raw`](Self::sort_segments_raw).
    ///
    /// # Safety
    /// As for [`sort_segments_raw`](Self::sort_segments_raw).
    pub unsafe fn sort_segments_pairs_raw<K: GpuKey, V>(
        &self,
        order: SortOrder,
        keys: RawArray<K>,
        values: RawArray<V>,
        segments: RawSegments,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let (at, (bounds, offsets)) = (pairs("keys", keys, values)?, segments.checked(keys.len)?);
        let written = [keys.named("keys")?, values.named("values")?, workspace.named("workspace")?];
        check_apart(&written, offsets.as_slice())?;
        let workspace = workspace.workspace(Self::sort_segments_pairs_workspace_bytes::<K, V>(keys.len))?;
        // SAFETY: as for `sort_segments_raw`.
        unsafe { self.on(stream, |queue| segments::sort_segments::<K>(queue, order, at, bounds, false, workspace)) }
    }

    /// As [`sort_segments_raw`](Self::sort_segments_raw), and sets `indices` to the index of each key in the array
    /// before the sort. Stable.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many indices as keys, [`Error::TooManyKeys`] if there are more
    /// than 2^32 and the indices are `u32`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`sort_segments_pairs_workspace_bytes`](Self::sort_segments_pairs_workspace_bytes) for values of type `I`, and
    /// those of [`sort_segments_raw`](Self::sort_segments_raw).
    ///
    /// # Safety
    /// As for [`sort_segments_raw`](Self::sort_segments_raw).
    pub unsafe fn argsort_segments_raw<K: GpuKey, I: Index>(
        &self,
        order: SortOrder,
        keys: RawArray<K>,
        indices: RawArray<I>,
        segments: RawSegments,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let (at, (bounds, offsets)) = (pairs("keys", keys, indices)?, segments.checked(keys.len)?);
        check_index_range::<I>(keys.len)?;
        let written = [keys.named("keys")?, indices.named("indices")?, workspace.named("workspace")?];
        check_apart(&written, offsets.as_slice())?;
        let workspace = workspace.workspace(Self::sort_segments_pairs_workspace_bytes::<K, I>(keys.len))?;
        // SAFETY: as for `sort_segments_raw`.
        unsafe { self.on(stream, |queue| segments::sort_segments::<K>(queue, order, at, bounds, true, workspace)) }
    }
}
