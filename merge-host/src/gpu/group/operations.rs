//! Sorts and merges of arrays that are distributed over the GPUs of a group.

use super::{GpuGroup, is_exchanged};
use crate::engine::check_length;
use crate::gpu::KeyCoding;
use crate::gpu::elements::sealed::Group;
use crate::gpu::elements::{Call, GroupElements, GroupElementsMut, value_bytes, workspace_begin};
use crate::gpu::launch::Arrays;
use crate::gpu::launch::exchange::{self, ExchangePlan, Member, Share};
use crate::gpu::launch::sort::Sort;
use crate::gpu::operation::Operation;
use crate::gpu::{Address, DeviceArray};
use crate::index::check_index_range;
use crate::key::sealed::DeviceBits;
use crate::{Error, GpuKey, Index, SortKernel, SortOptions};
use bytemuck::Pod;

/// # Sorts and merges
///
/// Arguments are keys alone or keys with values ([`GroupElements`]): the parts of distributed arrays, one for each
/// member, on that member's stream. The result goes to `out`. The parts of `out` have the same number of keys in all as
/// the input, divided as the caller likes.
///
/// Keys have 4 or 8 bytes, which is checked at compile time.
///
/// These methods do not allocate GPU memory. Each waits until the runs are sorted, because the host needs their splits,
/// and returns before the runs are exchanged. Later work of the members' streams finds the result. A graph cannot
/// capture these methods.
///
/// # Errors of all of them
/// - [`Error::MembersMismatch`] if there is not one array for each member,
/// - [`Error::OtherStream`] or [`Error::OtherGpu`] if an array does not belong to its member's stream,
/// - [`Error::ValuesMismatch`] if the numbers of keys and values differ,
/// - [`Error::LengthMismatch`] if `out` has another number of keys in all,
/// - [`Error::WorkspaceTooSmall`],
/// - [`Error::Overlap`] if the arrays of a member overlap,
/// - [`Error::Device`] where the driver fails: arrays that are written then have unspecified elements.
impl GpuGroup {
    /// Sorts the elements of all members to `out` in the order of `options`, a [`SortOrder`](crate::SortOrder) or
    /// [`SortOptions`]. Stable: values of equal keys keep their order, by member and then by index. The content of
    /// `elements` is unspecified afterwards. O(n log n).
    ///
    /// A member with `n` keys before and `part` keys after the sort has a workspace of
    /// [`workspace::group_sort`](crate::workspace::group_sort) bytes.
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them).
    pub fn sort<K: GpuKey, V: Pod>(
        &self,
        options: impl Into<SortOptions>,
        elements: impl GroupElementsMut<K, V>,
        out: impl GroupElementsMut<K, V>,
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        const { check_exchanged::<K>() };
        let shares =
            self.shares(("keys", &elements), &out, workspace, |n, part| group_sort::<K, V>(self.len(), n, part))?;
        // SAFETY: `shares` has checked streams, lengths, workspaces and overlaps. All arrays are borrowed mutably, so
        // nothing else uses them, and they are freed after the work on their streams.
        unsafe { self.sort_shares(options.into().order.coding::<K>().into(), &shares) }
    }

    /// Sorts keys with their indices in the whole array, counted from 0 at the first key of the first member. The
    /// sorted keys and the permutation that sorts them go to `out`. Stable. The previous content of `indices` is not
    /// read. The contents of `keys` and `indices` are unspecified afterwards. O(n log n).
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them), and [`Error::TooManyKeys`] if there are more keys than `I` has
    /// values.
    pub fn argsort<K: GpuKey, I: Index>(
        &self,
        options: impl Into<SortOptions>,
        (keys, indices): (&mut [DeviceArray<K>], &mut [DeviceArray<I>]),
        out: (&mut [DeviceArray<K>], &mut [DeviceArray<I>]),
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        const { check_exchanged::<K>() };
        let shares = self
            .shares(("keys", &(keys, indices)), &out, workspace, |n, part| group_sort::<K, I>(self.len(), n, part))?;
        check_index_range::<I>(shares.iter().map(|share| share.run.len).sum())?;
        let mut first = 0;
        for (member, Share { run, .. }) in self.members.iter().zip(&shares) {
            member.with_queue(|queue| {
                // SAFETY: `run.values` holds `run.len` indices of `run.value_bytes` bytes on this member's stream
                // (`shares`), and is borrowed mutably.
                unsafe { exchange::number(queue, run.values, run.len, run.value_bytes, first) }
            })?;
            first += run.len;
        }
        // SAFETY: `shares` has checked streams, lengths, workspaces and overlaps, and all arrays are borrowed mutably.
        unsafe { self.sort_shares(options.into().order.coding::<K>().into(), &shares) }
    }

    /// Merges the runs of the members, each ascending, to `out`. Of equal keys, keys of earlier members come first.
    /// O(n).
    ///
    /// If two members have a run each, this is the merge of two arrays. In general there is one run for each member,
    /// and a run may be empty. A member that gets `part` keys has a workspace of
    /// [`workspace::group_merge`](crate::workspace::group_merge) bytes.
    ///
    /// # Errors
    /// [Errors of all calls](#errors-of-all-of-them).
    pub fn merge<K: GpuKey, V: Pod>(
        &self,
        runs: impl GroupElements<K, V>,
        out: impl GroupElementsMut<K, V>,
        workspace: &mut [DeviceArray<u8>],
    ) -> Result<(), Error> {
        const { check_exchanged::<K>() };
        let shares = self.shares(("runs", &runs), &out, workspace, |_, part| group_merge::<K, V>(self.len(), part))?;
        // SAFETY: `shares` has checked streams, lengths, workspaces and overlaps. `out` and `workspace` are borrowed
        // mutably. The runs are only read, and their streams wait until the other members have read them.
        unsafe { self.exchange(K::gpu_coding().into(), &shares) }
    }

    /// Sorts each member's run, and then exchanges the runs.
    ///
    /// # Safety
    /// The arrays of the shares belong to the members' streams, a workspace is enough for [`group_sort`], and nothing
    /// else uses the arrays.
    unsafe fn sort_shares(&self, coding: KeyCoding, shares: &[Share]) -> Result<(), Error> {
        for (member, share) in self.members.iter().zip(shares) {
            let sort = Sort::new(SortKernel::Auto, coding, share.run, false);
            // SAFETY: the arrays of `share` are on this member's stream and are freed after the work on it. Nothing
            // else uses them. The workspace is enough for the sort of `run.len` keys, because `group_sort` is at least
            // `workspace::sort`.
            member.with_queue(|queue| unsafe { sort.launch(queue, share.workspace) })?;
        }
        // SAFETY: the arrays of the shares meet this function's conditions, and the sorts of the runs are on the
        // members' streams.
        unsafe { self.exchange(coding, shares) }
    }

    /// The shares of an exchange of `runs` to `parts`, after all checks. A member with `n` and `part` keys needs
    /// `needed(n, part)` bytes of workspace.
    fn shares(
        &self,
        (what, runs): (&'static str, &impl Group),
        parts: &impl Group,
        workspace: &[DeviceArray<u8>],
        needed: impl Fn(usize, usize) -> usize,
    ) -> Result<Vec<Share>, Error> {
        for (what, found) in [(what, runs.members()), ("out", parts.members()), ("workspace", [workspace.len(); 2])] {
            let expected = self.len();
            if let Some(found) = found.into_iter().find(|&found| found != expected) {
                return Err(Error::MembersMismatch { what, found, expected });
            }
        }
        let share = |(i, stream)| {
            let mut call = Call::new(stream);
            let run = call.writes((what, "values"), &runs.member(i))?;
            let part = call.writes(("out", "values of out"), &parts.member(i))?;
            let workspace = call.writes(("workspace", ""), &&workspace[i])?;
            call.check()?;
            let workspace: Address = workspace_begin(workspace, needed(run.len, part.len))?;
            Ok(Share { run, part, workspace })
        };
        let shares = self.streams().enumerate().map(share).collect::<Result<Vec<_>, Error>>()?;
        let total = |of: fn(&Share) -> Arrays| shares.iter().map(|share| of(share).len).sum();
        check_length("out", total(|share| share.run), total(|share| share.part), "those of all members")?;
        Ok(shares)
    }
}

/// Checks that members exchange keys of type `K`.
const fn check_exchanged<K: GpuKey>() {
    assert!(is_exchanged::<K::OnGpu>(), "the GPUs of a group exchange keys of 4 and 8 bytes");
}

/// [`workspace::group_sort`](crate::workspace::group_sort).
pub(in crate::gpu) fn group_sort<K: GpuKey, V>(members: usize, n: usize, part: usize) -> usize {
    crate::workspace::sort::<K, V>(n).max(group_merge::<K, V>(members, part))
}

/// [`workspace::group_merge`](crate::workspace::group_merge).
pub(in crate::gpu) fn group_merge<K: GpuKey, V>(members: usize, part: usize) -> usize {
    ExchangePlan::of::<K>(members, part, const { value_bytes::<V>() })
        .workspace_bytes::<<K::OnGpu as DeviceBits>::Kernels>()
}
