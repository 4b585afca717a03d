//! Sorts and merges of the arrays of a stream.

use super::raw::RawPairs;
use super::{DeviceArray, DeviceOffsets, Stream};
use crate::{BatchKernel, Error, GpuKey, Index, MergeKernel, Reduction, SetOperation, SortKernel, SortOrder, Summand};
use bytemuck::Pod;

/// Keys and their values.
type Pairs<'a, K, V> = (&'a DeviceArray<K>, &'a DeviceArray<V>);

/// Keys and their values, which are written.
type PairsMut<'a, K, V> = (&'a mut DeviceArray<K>, &'a mut DeviceArray<V>);

/// # Sorts and merges
///
/// Each of these methods puts work on the stream and returns before it is done. None allocates or waits, except that a
/// kernel is loaded by the first call that needs it ([`Gpu::prepare`](crate::Gpu::prepare)). All arrays belong to this
/// stream; another one is [`Error::OtherStream`] or [`Error::OtherGpu`], and nothing has been put on the stream then. A
/// workspace may be larger than needed, and the calls of a stream may share one. Its content is unspecified afterwards.
///
/// If the driver fails while work is put on the stream ([`Error::Device`]), the arrays that are written have
/// unspecified elements.
impl Stream {
    /// Sorts `keys`, ascending in total order, as [`sort_with`](Self::sort_with) does.
    ///
    /// # Errors
    /// Those of [`sort_with`](Self::sort_with).
    pub fn sort<K: GpuKey>(&self, keys: &mut DeviceArray<K>, workspace: &mut DeviceArray<u8>) -> Result<(), Error> {
        self.sort_with(SortOrder::Ascending, keys, workspace)
    }

    /// Sorts `keys` in the total order of their type, or descending. O(n log n).
    ///
    /// # Errors
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::sort_workspace_bytes`](crate::Gpu::sort_workspace_bytes), [`Error::Device`] where the driver fails.
    pub fn sort_with<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        self.sort_with_kernel(SortKernel::Auto, order, keys, workspace)
    }

    /// As [`sort_with`](Self::sort_with), with the kernel named.
    ///
    /// # Errors
    /// Those of [`sort_with`](Self::sort_with).
    pub fn sort_with_kernel<K: GpuKey>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (keys, workspace) = (self.owned("keys", keys)?, self.owned("workspace", workspace)?);
        // SAFETY: all arrays belong to this stream: `owned` has checked that. All work on them is on it, they are freed
        // after that work, and they keep the stream and the `Gpu`. Those that are written are borrowed mutably, so that
        // they are apart from the others and in no other call at this time.
        unsafe { self.gpu().sort_raw(kernel, order, keys, workspace, self.handle()) }
    }

    /// Sorts `keys` with as many `values` of 4 or 8 bytes, which is checked at compile time, in the total order of the
    /// keys' type or descending. Stable: equal keys stay in their order. O(n log n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, [`Error::WorkspaceTooSmall`] if `workspace`
    /// has fewer bytes than [`Gpu::sort_pairs_workspace_bytes`](crate::Gpu::sort_pairs_workspace_bytes),
    /// [`Error::Device`] where the driver fails.
    pub fn sort_pairs<K: GpuKey, V: Pod>(
        &self,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        values: &mut DeviceArray<V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        self.sort_pairs_with_kernel(SortKernel::Auto, order, keys, values, workspace)
    }

    /// As [`sort_pairs`](Self::sort_pairs), with the kernel named.
    ///
    /// # Errors
    /// Those of [`sort_pairs`](Self::sort_pairs).
    pub fn sort_pairs_with_kernel<K: GpuKey, V: Pod>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        values: &mut DeviceArray<V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (keys, values) = (self.owned("keys", keys)?, self.owned("values", values)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().sort_pairs_raw(kernel, order, keys, values, workspace, self.handle()) }
    }

    /// Sorts `keys` in the total order of their type or descending, and sets `indices` to the index of each before the
    /// sort. Stable: equal keys stay in their order. What is in `indices` before is not read. O(n log n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many indices as keys, [`Error::TooManyKeys`] if there are more
    /// than 2^32 and the indices are `u32`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::argsort_workspace_bytes`](crate::Gpu::argsort_workspace_bytes), [`Error::Device`] where the driver fails.
    pub fn argsort<K: GpuKey, I: Index>(
        &self,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        indices: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        self.argsort_with_kernel(SortKernel::Auto, order, keys, indices, workspace)
    }

    /// As [`argsort`](Self::argsort), with the kernel named.
    ///
    /// # Errors
    /// Those of [`argsort`](Self::argsort).
    pub fn argsort_with_kernel<K: GpuKey, I: Index>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut DeviceArray<K>,
        indices: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (keys, indices) = (self.owned("keys", keys)?, self.owned("indices", indices)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().argsort_raw(kernel, order, keys, indices, workspace, self.handle()) }
    }

    /// Sets `out` to the first `out.len()` of `keys` in the total order of their type, or descending: sorted. `keys`
    /// stays as it is. Reads each key twice as a rule. O(n + k log k).
    ///
    /// # Errors
    /// [`Error::TooFewKeys`] if `out` is longer than `keys`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer
    /// bytes than [`Gpu::top_k_workspace_bytes`](crate::Gpu::top_k_workspace_bytes), [`Error::Device`] where the driver
    /// fails.
    pub fn top_k<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (keys, out) = (self.owned("keys", keys)?, self.owned("out", out)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().top_k_raw(order, keys, out, workspace, self.handle()) }
    }

    /// As [`top_k`](Self::top_k), with a value of 4 or 8 bytes for each key. Stable: of equal keys, the first ones are
    /// taken, and they stay in their order.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, and those of [`top_k`](Self::top_k),
    /// with the workspace of [`Gpu::top_k_pairs_workspace_bytes`](crate::Gpu::top_k_pairs_workspace_bytes).
    pub fn top_k_pairs<K: GpuKey, V: Pod>(
        &self,
        order: SortOrder,
        from: (&DeviceArray<K>, &DeviceArray<V>),
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let from = (self.owned("keys", from.0)?, self.owned("values", from.1)?);
        let out = (self.owned("out", out.0)?, self.owned("values of out", out.1)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().top_k_pairs_raw(order, from, out, workspace, self.handle()) }
    }

    /// As [`top_k_pairs`](Self::top_k_pairs), with the index of each key for a value. What is in the indices before is
    /// not read.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`] if there are more than 2^32 keys and the indices are `u32`, and those of
    /// [`top_k_pairs`](Self::top_k_pairs).
    pub fn top_k_indices<K: GpuKey, I: Index>(
        &self,
        order: SortOrder,
        keys: &DeviceArray<K>,
        out: (&mut DeviceArray<K>, &mut DeviceArray<I>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let out = (self.owned("out", out.0)?, self.owned("indices", out.1)?);
        let (keys, workspace) = (self.owned("keys", keys)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().top_k_indices_raw(order, keys, out, workspace, self.handle()) }
    }

    /// Merges `a` and `b`, both ascending, into `out`, which has `a.len() + b.len()` keys. Stable: of equal keys, `a`'s
    /// go first. O(n).
    ///
    /// If `a` or `b` is not ascending, `out` gets keys of both in an unspecified order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another length, [`Error::WorkspaceTooSmall`] if `workspace` has fewer
    /// bytes than [`Gpu::merge_workspace_bytes`](crate::Gpu::merge_workspace_bytes), [`Error::Device`] where the driver
    /// fails.
    pub fn merge<K: GpuKey>(
        &self,
        kernel: MergeKernel,
        a: &DeviceArray<K>,
        b: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (a, b, out) = (self.owned("a", a)?, self.owned("b", b)?, self.owned("out", out)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().merge_raw(kernel, a, b, out, workspace, self.handle()) }
    }

    /// Merges keys with values: the pairs of `a` and of `b`, both ascending by key, into `out`. Stable: of pairs with
    /// equal keys, `a`'s go first. O(n).
    ///
    /// Each argument is keys and as many values of 4 or 8 bytes, which is checked at compile time. `out` has `|a| +
    /// |b|` pairs.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of keys, [`Error::ValuesMismatch`] if an argument has not
    /// as many values as keys, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::merge_pairs_workspace_bytes`](crate::Gpu::merge_pairs_workspace_bytes), [`Error::Device`] where the
    /// driver fails.
    pub fn merge_pairs<K: GpuKey, V: Pod>(
        &self,
        a: (&DeviceArray<K>, &DeviceArray<V>),
        b: (&DeviceArray<K>, &DeviceArray<V>),
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let [a, b, out] = self.owned_pairs(a, b, out)?;
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().merge_pairs_raw(a, b, out, workspace, self.handle()) }
    }

    /// Solves many merge problems of one length: merges run `p` of `a` with run `p` of `b` into run `p` of `out`.
    /// Lengths are as in [`Engine::merge_batch`](crate::Engine::merge_batch). Needs no workspace. O(n log d).
    ///
    /// # Errors
    /// Those of [`Engine::merge_batch`](crate::Engine::merge_batch).
    pub fn merge_batch<K: GpuKey>(
        &self,
        a: &DeviceArray<K>,
        b: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
        d: usize,
        a_len: usize,
    ) -> Result<(), Error> {
        self.merge_batch_with(BatchKernel::Auto, a, b, out, d, a_len)
    }

    /// As [`merge_batch`](Self::merge_batch), with the kernel named.
    ///
    /// # Errors
    /// Those of [`merge_batch`](Self::merge_batch).
    pub fn merge_batch_with<K: GpuKey>(
        &self,
        kernel: BatchKernel,
        a: &DeviceArray<K>,
        b: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
        d: usize,
        a_len: usize,
    ) -> Result<(), Error> {
        let (a, b, out) = (self.owned("a", a)?, self.owned("b", b)?, self.owned("out", out)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().merge_batch_raw(kernel, a, b, out, d, a_len, self.handle()) }
    }

    /// As [`merge_batch`](Self::merge_batch), with a value for each key, as in [`merge_pairs`](Self::merge_pairs).
    ///
    /// # Errors
    /// Those of [`merge_batch`](Self::merge_batch), and [`Error::ValuesMismatch`] if an argument has not as many values
    /// as keys.
    pub fn merge_batch_pairs<K: GpuKey, V: Pod>(
        &self,
        a: (&DeviceArray<K>, &DeviceArray<V>),
        b: (&DeviceArray<K>, &DeviceArray<V>),
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        d: usize,
        a_len: usize,
    ) -> Result<(), Error> {
        let [a, b, out] = self.owned_pairs(a, b, out)?;
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().merge_batch_pairs_raw(a, b, out, d, a_len, self.handle()) }
    }

    /// Solves many merge problems of any lengths. Each side is its keys and their offsets. The runs of problem `p` are
    /// the keys `a_offsets[p] .. a_offsets[p + 1]` of `a` and those of `b` accordingly; in `out` it begins at
    /// `a_offsets[p] + b_offsets[p]`. O(n log n).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of keys than `a` and `b` together,
    /// [`Error::OffsetsMismatch`] if the two sides have different numbers of offsets, [`Error::LastOffset`] if the last
    /// one is not the number of keys, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::merge_ragged_workspace_bytes`](crate::Gpu::merge_ragged_workspace_bytes), [`Error::Device`] where the
    /// driver fails.
    pub fn merge_ragged<K: GpuKey>(
        &self,
        a: (&DeviceArray<K>, &DeviceOffsets),
        b: (&DeviceArray<K>, &DeviceOffsets),
        out: &mut DeviceArray<K>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let a = (self.owned("a", a.0)?, a.1.checked(self, ("offsets of a", "a"), a.0.len())?);
        let b = (self.owned("b", b.0)?, b.1.checked(self, ("offsets of b", "b"), b.0.len())?);
        let (out, workspace) = (self.owned("out", out)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`. The offsets begin with 0, never decrease, and end with the number of keys:
        // `upload_offsets` and `checked` have checked that.
        unsafe { self.gpu().merge_ragged_raw(a, b, out, workspace, self.handle()) }
    }

    /// As [`merge_ragged`](Self::merge_ragged), with a value for each key, as in [`merge_pairs`](Self::merge_pairs).
    /// Each side is its keys, their values and their offsets.
    ///
    /// # Errors
    /// Those of [`merge_ragged`](Self::merge_ragged), and [`Error::ValuesMismatch`] if an argument has not as many
    /// values as keys.
    pub fn merge_ragged_pairs<K: GpuKey, V: Pod>(
        &self,
        a: (&DeviceArray<K>, &DeviceArray<V>, &DeviceOffsets),
        b: (&DeviceArray<K>, &DeviceArray<V>, &DeviceOffsets),
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let a_offsets = a.2.checked(self, ("offsets of a", "a"), a.0.len())?;
        let b_offsets = b.2.checked(self, ("offsets of b", "b"), b.0.len())?;
        let [a, b, out] = self.owned_pairs((a.0, a.1), (b.0, b.1), out)?;
        let workspace = self.owned("workspace", workspace)?;
        let (a, b) = ((a.0, a.1, a_offsets), (b.0, b.1, b_offsets));
        // SAFETY: as for `merge_ragged`.
        unsafe { self.gpu().merge_ragged_pairs_raw(a, b, out, workspace, self.handle()) }
    }

    /// Writes the keys of `a` and `b`, both ascending, that `operation` keeps to `out`, in ascending order, and their
    /// number to `count`, which has one element. `out` has at least [`SetOperation::most_keys`] keys; those after the
    /// keys kept are unspecified. O(n).
    ///
    /// If `a` or `b` is not ascending, `out` gets keys of both in an unspecified number and order.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, SetOperation};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let (a, b) = (stream.upload(&[1u32, 4, 4, 6])?, stream.upload(&[2u32, 4])?);
    /// let (mut out, mut count) = (stream.zeroed(6)?, stream.zeroed(1)?);
    /// let mut workspace = stream.zeroed(Gpu::set_operation_workspace_bytes::<u32>(6))?;
    /// stream.set_operation(SetOperation::Union, &a, &b, &mut out, &mut count, &mut workspace)?;
    /// assert_eq!(count.download()?, [5]);
    /// assert_eq!(out.download()?[..5], [1, 2, 4, 4, 6]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::CapacityTooSmall`] if `out` has fewer keys than the result may have, [`Error::LengthMismatch`] if
    /// `count` has not one element, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::set_operation_workspace_bytes`](crate::Gpu::set_operation_workspace_bytes), [`Error::Device`] where the
    /// driver fails.
    pub fn set_operation<K: GpuKey>(
        &self,
        operation: SetOperation,
        a: &DeviceArray<K>,
        b: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (a, b, out) = (self.owned("a", a)?, self.owned("b", b)?, self.owned("out", out)?);
        let (count, workspace) = (self.owned("count", count)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().set_operation_raw(operation, a, b, out, count, workspace, self.handle()) }
    }

    /// As [`set_operation`](Self::set_operation), with a value for each key, as in [`merge_pairs`](Self::merge_pairs).
    /// A key that is kept has its value. Of a pair of equal keys the one of `a` is kept, as in C++'s `std::set_union`
    /// and `std::set_intersection`.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, and those of
    /// [`set_operation`](Self::set_operation).
    pub fn set_operation_pairs<K: GpuKey, V: Pod>(
        &self,
        operation: SetOperation,
        a: (&DeviceArray<K>, &DeviceArray<V>),
        b: (&DeviceArray<K>, &DeviceArray<V>),
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let [a, b, out] = self.owned_pairs(a, b, out)?;
        let (count, workspace) = (self.owned("count", count)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().set_operation_pairs_raw(operation, a, b, out, count, workspace, self.handle()) }
    }

    /// Writes the first key of each group of equal keys that are next to each other, such as those of a sorted array,
    /// to `out`, and the number of groups to `count`, which has one element. `out` has at least as many elements as
    /// `keys`; those after the groups are unspecified. Two keys are equal if their bits are. O(n).
    ///
    /// ```no_run
    /// use merge_host::Gpu;
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let keys = stream.upload(&[1u32, 1, 4, 6, 6, 6])?;
    /// let (mut out, mut count) = (stream.zeroed(6)?, stream.zeroed(1)?);
    /// let mut workspace = stream.zeroed(Gpu::groups_workspace_bytes::<u32>(6))?;
    /// stream.unique(&keys, &mut out, &mut count, &mut workspace)?;
    /// assert_eq!(count.download()?, [3]);
    /// assert_eq!(out.download()?[..3], [1, 4, 6]);
    ///
    /// let mut lengths = stream.zeroed(6)?;
    /// stream.run_lengths(&keys, (&mut out, &mut lengths), &mut count, &mut workspace)?;
    /// assert_eq!(lengths.download()?[..3], [2, 1, 3]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::CapacityTooSmall`] if `out` has fewer elements than `keys`, [`Error::LengthMismatch`] if `count` has
    /// not one element, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::groups_workspace_bytes`](crate::Gpu::groups_workspace_bytes), [`Error::Device`] where the driver fails.
    pub fn unique<K: GpuKey>(
        &self,
        keys: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (keys, out) = (self.owned("keys", keys)?, self.owned("out", out)?);
        let (count, workspace) = (self.owned("count", count)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().unique_raw(keys, out, count, workspace, self.handle()) }
    }

    /// As [`unique`](Self::unique), with a value of 4 or 8 bytes for each key: the first one of each group is kept.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, and those of [`unique`](Self::unique).
    pub fn unique_pairs<K: GpuKey, V: Pod>(
        &self,
        keys: (&DeviceArray<K>, &DeviceArray<V>),
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let keys = (self.owned("keys", keys.0)?, self.owned("values", keys.1)?);
        let out = (self.owned("out", out.0)?, self.owned("values of out", out.1)?);
        let (count, workspace) = (self.owned("count", count)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().unique_pairs_raw(keys, out, count, workspace, self.handle()) }
    }

    /// Writes the first key of each group of equal keys that are next to each other, and the number of the group's
    /// keys, to `out`, and the number of groups to `count`. Otherwise as [`unique`](Self::unique).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if `out` has not as many lengths as keys, and those of [`unique`](Self::unique).
    pub fn run_lengths<K: GpuKey>(
        &self,
        keys: &DeviceArray<K>,
        out: (&mut DeviceArray<K>, &mut DeviceArray<u64>),
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (keys, out) = (self.owned("keys", keys)?, (self.owned("out", out.0)?, self.owned("lengths", out.1)?));
        let (count, workspace) = (self.owned("count", count)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().run_lengths_raw(keys, out, count, workspace, self.handle()) }
    }

    /// Writes the first key of each group of equal keys that are next to each other, and the reduction of the group's
    /// values, to `out`, and the number of groups to `count`. Otherwise as [`unique_pairs`](Self::unique_pairs).
    ///
    /// The sum of floats is rounded at each addition, in an order that depends on the number of keys and on where the
    /// groups begin, and on nothing else: it is the same each time. If the sum is a NaN, its bits are unspecified.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, Reduction};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let (keys, values) = (stream.upload(&[1u32, 1, 4])?, stream.upload(&[0.5f32, 2.0, 3.0])?);
    /// let (mut out, mut sums, mut count) = (stream.zeroed(3)?, stream.zeroed(3)?, stream.zeroed(1)?);
    /// let mut workspace = stream.zeroed(Gpu::groups_workspace_bytes::<u32>(3))?;
    /// let to = (&mut out, &mut sums);
    /// stream.reduce_by_key(Reduction::Sum, (&keys, &values), to, &mut count, &mut workspace)?;
    /// assert_eq!(sums.download()?[..2], [2.5, 3.0]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`unique_pairs`](Self::unique_pairs).
    pub fn reduce_by_key<K: GpuKey, V: Summand>(
        &self,
        reduction: Reduction,
        keys: (&DeviceArray<K>, &DeviceArray<V>),
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let keys = (self.owned("keys", keys.0)?, self.owned("values", keys.1)?);
        let out = (self.owned("out", out.0)?, self.owned("values of out", out.1)?);
        let (count, workspace) = (self.owned("count", count)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().reduce_by_key_raw(reduction, keys, out, count, workspace, self.handle()) }
    }

    /// Writes for each of the `needles` how many of the `keys` are less than it to `bounds`, as `u32` or `u64`. Both
    /// are ascending. O(n), or O(m log n) for m needles where these are few.
    ///
    /// If `needles` or `keys` is not ascending, the bounds are unspecified.
    ///
    /// ```no_run
    /// use merge_host::Gpu;
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let (needles, keys) = (stream.upload(&[2u32, 4])?, stream.upload(&[1u32, 4, 4, 6])?);
    /// let (mut lower, mut upper) = (stream.zeroed::<u32>(2)?, stream.zeroed::<u32>(2)?);
    /// let mut workspace = stream.zeroed(Gpu::bounds_workspace_bytes::<u32>(6))?;
    /// stream.lower_bounds(&needles, &keys, &mut lower, &mut workspace)?;
    /// stream.upper_bounds(&needles, &keys, &mut upper, &mut workspace)?;
    /// assert_eq!((lower.download()?, upper.download()?), (vec![1, 1], vec![1, 3]));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many bounds as needles, [`Error::TooManyKeys`] if there are 2^32
    /// keys or more and the bounds are `u32`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::bounds_workspace_bytes`](crate::Gpu::bounds_workspace_bytes), [`Error::Device`] where the driver fails.
    pub fn lower_bounds<K: GpuKey, I: Index>(
        &self,
        needles: &DeviceArray<K>,
        keys: &DeviceArray<K>,
        bounds: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (needles, keys) = (self.owned("needles", needles)?, self.owned("keys", keys)?);
        let (bounds, workspace) = (self.owned("bounds", bounds)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().lower_bounds_raw(needles, keys, bounds, workspace, self.handle()) }
    }

    /// As [`lower_bounds`](Self::lower_bounds), for how many of the `keys` are less than or equal to each needle.
    ///
    /// # Errors
    /// Those of [`lower_bounds`](Self::lower_bounds).
    pub fn upper_bounds<K: GpuKey, I: Index>(
        &self,
        needles: &DeviceArray<K>,
        keys: &DeviceArray<K>,
        bounds: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let (needles, keys) = (self.owned("needles", needles)?, self.owned("keys", keys)?);
        let (bounds, workspace) = (self.owned("bounds", bounds)?, self.owned("workspace", workspace)?);
        // SAFETY: as for `sort_with_kernel`.
        unsafe { self.gpu().upper_bounds_raw(needles, keys, bounds, workspace, self.handle()) }
    }

    /// Where the arrays of a merge of keys with values are, if all belong to this stream.
    fn owned_pairs<K, V>(
        &self,
        a: Pairs<'_, K, V>,
        b: Pairs<'_, K, V>,
        out: PairsMut<'_, K, V>,
    ) -> Result<[RawPairs<K, V>; 3], Error> {
        let a = (self.owned("a", a.0)?, self.owned("values of a", a.1)?);
        let b = (self.owned("b", b.0)?, self.owned("values of b", b.1)?);
        Ok([a, b, (self.owned("out", out.0)?, self.owned("values of out", out.1)?)])
    }
}
