//! Sorts and merges of arrays that are distributed over the GPUs of a group.

use super::GpuGroup;
use crate::engine::check_length;
use crate::gpu::launch::Arrays;
use crate::gpu::launch::exchange::{self, ExchangePlan, Member, Share};
use crate::gpu::raw::{pairs, value_bytes};
use crate::gpu::{DeviceArray, Gpu};
use crate::index::check_index_range;
use crate::{Descending, Error, GpuKey, Index, SortKernel, SortOrder};
use bytemuck::Pod;

/// The parts of an array of keys, and those of their values.
type Pairs<'a, K, V> = (&'a [DeviceArray<K>], &'a [DeviceArray<V>]);

/// The same, which are written.
type PairsMut<'a, K, V> = (&'a mut [DeviceArray<K>], &'a mut [DeviceArray<V>]);

/// # Sorts and merges
///
/// Arguments are the parts of distributed arrays, one for each member, and of its stream: others are
/// [`Error::MembersMismatch`], [`Error::OtherStream`] or [`Error::OtherGpu`]. The result goes to `out`, whose parts
/// have as many keys in all as the input's ([`Error::LengthMismatch`]), divided as the caller likes.
///
/// None of these methods allocates memory of a GPU. Each waits until the runs are sorted, because the host has to know
/// their splits, and returns before they are exchanged. Later work of the members' streams finds the result. The
/// methods cannot be captured in a graph.
///
/// If the driver fails ([`Error::Device`]), the arrays that are written have unspecified elements.
impl GpuGroup {
    /// Loads all kernels for keys of type `K`, as [`Gpu::prepare`] does, on each member.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn prepare<K: GpuKey>(&self) -> Result<(), Error> {
        self.gpus().try_for_each(|gpu| {
            gpu.prepare::<K>()?;
            let _entered = gpu.enter()?;
            [0, 4, 8].into_iter().try_for_each(|value_bytes| gpu.load(&exchange::entries::<K>(value_bytes)))
        })
    }

    /// Bytes of workspace for a member that has `n` keys before a sort, and `part` keys after it: about as many as `n`
    /// keys have.
    pub fn sort_workspace_bytes<K: GpuKey>(&self, n: usize, part: usize) -> usize {
        Gpu::sort_workspace_bytes::<K>(n).max(self.merge_workspace_bytes::<K>(part))
    }

    /// Bytes of workspace for a member that has `n` keys with values of type `V` before a sort, and `part` after it;
    /// also for [`argsort`](Self::argsort), with the type of the indices.
    pub fn sort_pairs_workspace_bytes<K: GpuKey, V>(&self, n: usize, part: usize) -> usize {
        Gpu::sort_pairs_workspace_bytes::<K, V>(n).max(self.merge_pairs_workspace_bytes::<K, V>(part))
    }

    /// Bytes of workspace for a member that gets `part` keys of a merge: a quarter of the bytes of these keys if they
    /// are many, and half of them in a group of more than two.
    pub fn merge_workspace_bytes<K: GpuKey>(&self, part: usize) -> usize {
        ExchangePlan::of::<K>(self.len(), part, 0).workspace_bytes::<K>()
    }

    /// Bytes of workspace for a member that gets `part` keys with values of type `V` of a merge.
    pub fn merge_pairs_workspace_bytes<K: GpuKey, V>(&self, part: usize) -> usize {
        ExchangePlan::of::<K>(self.len(), part, const { value_bytes::<V>() }).workspace_bytes::<K>()
    }

    /// Sorts the keys of all members to `out`, in the total order of their type, or descending. `keys` are unspecified
    /// afterwards. O(n log n).
    ///
    /// # Errors
    /// Those that [all](#sorts-and-merges) have, and [`Error::WorkspaceTooSmall`] if a member's `workspace` has fewer
    /// bytes than [`sort_workspace_bytes`](Self::sort_workspace_bytes).
    pub fn sort<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &mut [DeviceArray<K>],
        out: &mut [DeviceArray<K>],
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        let (runs, parts) = (self.keys("keys", keys)?, self.keys("out", out)?);
        let needed = |n, part| self.sort_workspace_bytes::<K>(n, part);
        let shares = self.shares(&runs, &parts, workspace, needed)?;
        for ((stream, keys), workspace) in self.streams().zip(&*keys).zip(&*workspace) {
            // SAFETY: the arrays belong to the stream, as has been checked; they are freed after the work on it, and
            // are borrowed mutably, so that nothing else uses them.
            unsafe { stream.gpu().sort_raw(SortKernel::Auto, order, keys.raw(), workspace.raw(), stream.handle())? };
        }
        // SAFETY: as above; what writes the runs has been put on the members' streams.
        unsafe { self.exchange_in_order::<K>(order, &shares) }
    }

    /// Sorts keys with their values of 4 or 8 bytes, which is checked at compile time, to `out`. Stable: values of
    /// equal keys keep their order, that of the members and of their parts. `pairs` are unspecified afterwards. O(n log
    /// n).
    ///
    /// # Errors
    /// Those that [all](#sorts-and-merges) have, [`Error::ValuesMismatch`] if a member has not as many values as keys,
    /// and [`Error::WorkspaceTooSmall`] if its `workspace` has fewer bytes than
    /// [`sort_pairs_workspace_bytes`](Self::sort_pairs_workspace_bytes).
    pub fn sort_pairs<K: GpuKey, V: Pod>(
        &self,
        order: SortOrder,
        pairs: PairsMut<'_, K, V>,
        out: PairsMut<'_, K, V>,
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        let (runs, parts) = (self.pairs("keys", (pairs.0, pairs.1))?, self.pairs("out", (out.0, out.1))?);
        let needed = |n, part| self.sort_pairs_workspace_bytes::<K, V>(n, part);
        let shares = self.shares(&runs, &parts, workspace, needed)?;
        for (((stream, keys), values), workspace) in self.streams().zip(&*pairs.0).zip(&*pairs.1).zip(&*workspace) {
            let (keys, values, workspace) = (keys.raw(), values.raw(), workspace.raw());
            let kernel = SortKernel::Auto;
            // SAFETY: as in `sort`.
            unsafe { stream.gpu().sort_pairs_raw(kernel, order, keys, values, workspace, stream.handle())? };
        }
        // SAFETY: as in `sort`.
        unsafe { self.exchange_in_order::<K>(order, &shares) }
    }

    /// Sorts keys with their indices in the whole array, counted from 0 at the first key of the first member: to `out`
    /// go the sorted keys and the permutation that sorts them. Stable. What `indices` held before does not matter; they
    /// and `keys` are unspecified afterwards. O(n log n).
    ///
    /// # Errors
    /// [`Error::TooManyKeys`] if there are more keys than `I` has values, and those of
    /// [`sort_pairs`](Self::sort_pairs).
    pub fn argsort<K: GpuKey, I: Index>(
        &self,
        order: SortOrder,
        (keys, indices): PairsMut<'_, K, I>,
        out: PairsMut<'_, K, I>,
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        let runs = self.pairs("keys", (keys, indices))?;
        check_index_range::<I>(runs.iter().map(|run| run.len).sum())?;
        let mut first = 0;
        for (member, run) in self.members.iter().zip(runs) {
            member.with_queue(|queue| {
                // SAFETY: the indices belong to the member's stream, and are borrowed mutably.
                unsafe { exchange::number(queue, run.values, run.len, run.value_bytes, first) }
            })?;
            first += run.len;
        }
        self.sort_pairs(order, (keys, indices), out, workspace)
    }

    /// Merges the runs of the members, each of which is ascending, to `out`. Of equal keys, those of earlier members
    /// come first. O(n).
    ///
    /// This is the merge of two arrays if two members have one each, and in general of one run for each member. A run
    /// may be empty, so that other members have none.
    ///
    /// # Errors
    /// Those that [all](#sorts-and-merges) have, and [`Error::WorkspaceTooSmall`] if a member's `workspace` has fewer
    /// bytes than [`merge_workspace_bytes`](Self::merge_workspace_bytes).
    pub fn merge<K: GpuKey>(
        &self,
        runs: &[DeviceArray<K>],
        out: &mut [DeviceArray<K>],
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        let (runs, parts) = (self.keys("runs", runs)?, self.keys("out", out)?);
        let shares = self.shares(&runs, &parts, workspace, |_, part| self.merge_workspace_bytes::<K>(part))?;
        // SAFETY: as in `sort`; the runs are read only, and their streams wait for that.
        unsafe { self.exchange::<K>(&shares) }
    }

    /// [`merge`](Self::merge) with values of 4 or 8 bytes, which is checked at compile time.
    ///
    /// # Errors
    /// Those of [`merge`](Self::merge) with [`merge_pairs_workspace_bytes`](Self::merge_pairs_workspace_bytes), and
    /// [`Error::ValuesMismatch`] if a member has not as many values as keys.
    pub fn merge_pairs<K: GpuKey, V: Pod>(
        &self,
        runs: Pairs<'_, K, V>,
        out: PairsMut<'_, K, V>,
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        let (runs, parts) = (self.pairs("runs", runs)?, self.pairs("out", (out.0, out.1))?);
        let shares = self.shares(&runs, &parts, workspace, |_, part| self.merge_pairs_workspace_bytes::<K, V>(part))?;
        // SAFETY: as in `merge`.
        unsafe { self.exchange::<K>(&shares) }
    }

    /// [`exchange`](Self::exchange) of runs in that order.
    ///
    /// # Safety
    /// As for `exchange`.
    pub(super) unsafe fn exchange_in_order<K: GpuKey>(&self, order: SortOrder, shares: &[Share]) -> Result<(), Error> {
        match order {
            // SAFETY: the caller's promise.
            SortOrder::Ascending => unsafe { self.exchange::<K>(shares) },
            // SAFETY: the caller's promise, about runs that are ascending as `Descending` keys.
            SortOrder::Descending => unsafe { self.exchange::<Descending<K>>(shares) },
        }
    }

    /// Where the parts of the argument `what` are, if there is one for each member, of its stream.
    fn keys<K: GpuKey>(&self, what: &'static str, keys: &[DeviceArray<K>]) -> Result<Vec<Arrays>, Error> {
        self.check_members(what, keys.len())?;
        self.streams().zip(keys).map(|(stream, keys)| Ok(stream.owned(what, keys)?.keys())).collect()
    }

    /// The same with values.
    fn pairs<K: GpuKey, V: Pod>(&self, what: &'static str, at: Pairs<'_, K, V>) -> Result<Vec<Arrays>, Error> {
        self.check_members(what, at.0.len())?;
        self.check_members(what, at.1.len())?;
        let all = self.streams().zip(at.0.iter().zip(at.1));
        all.map(|(stream, (keys, values))| pairs(what, stream.owned(what, keys)?, stream.owned(what, values)?))
            .collect()
    }

    fn check_members(&self, what: &'static str, found: usize) -> Result<(), Error> {
        let expected = self.len();
        if found == expected { Ok(()) } else { Err(Error::MembersMismatch { what, found, expected }) }
    }

    /// The shares of an exchange of runs to parts. A member with `n` and `part` keys needs `needed(n, part)` bytes of
    /// workspace.
    fn shares(
        &self,
        runs: &[Arrays],
        parts: &[Arrays],
        workspace: &[DeviceArray<u8>],
        needed: impl Fn(usize, usize) -> usize,
    ) -> Result<Vec<Share>, Error> {
        let total = |arrays: &[Arrays]| arrays.iter().map(|array| array.len).sum();
        check_length("out", total(runs), total(parts), "those of all members")?;
        self.check_members("workspace", workspace.len())?;
        let all = self.streams().zip(workspace).zip(runs.iter().zip(parts));
        all.map(|((stream, workspace), (&run, &part))| {
            let workspace = stream.owned("workspace", workspace)?.workspace(needed(run.len, part.len))?;
            Ok(Share { run, part, workspace })
        })
        .collect()
    }
}
