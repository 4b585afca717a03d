//! Merges of groups of the runs of an array: of a stream, and by address.

use super::launch::many_ragged::{RunGroups, merge_many_ragged, workspace_bytes};
use super::raw::{Argument, check_apart, pairs, value_bytes};
use super::{DeviceArray, DeviceOffsets, Gpu, RawArray, Stream};
use crate::engine::{check_last_group, check_length};
use crate::{Error, GpuKey, SortOrder};
use bytemuck::Pod;
use std::ffi::c_void;

/// The runs of an array in a GPU's memory, and groups of consecutive ones, for the [raw layer](Gpu#the-raw-layer).
#[derive(Clone, Copy, Debug)]
pub struct RawRunGroups {
    /// Run `i` is the keys `offsets[i] .. offsets[i + 1]`: the first offset is 0, they never decrease, and the last one
    /// is the number of keys.
    pub offsets: RawArray<u64>,
    /// Group `g` is the runs `groups[g] .. groups[g + 1]`: the first of these is 0, they never decrease, and the last
    /// one is the number of runs.
    pub groups: RawArray<u64>,
    /// A number of runs that no group exceeds, or `usize::MAX`: up to 32 are merged in one pass. If a group has more,
    /// its keys are in an unspecified order.
    pub most_runs: usize,
    /// A number of keys that no group exceeds, or `usize::MAX`: where it is small, launches that only long groups need
    /// are left out.
    pub longest: usize,
}

impl RawRunGroups {
    /// The groups of the runs of `keys` keys for the kernels, and the arguments that are read.
    fn checked(self, keys: usize) -> Result<(RunGroups, [Argument; 2]), Error> {
        let Self { offsets, groups, most_runs, longest } = self;
        let runs = offsets.len.checked_sub(1).ok_or(Error::NoOffsets)?;
        let count = groups.len.checked_sub(1).ok_or(Error::NoOffsets)?;
        // Of a single offset it is known that it is 0.
        if runs == 0 && keys > 0 {
            return Err(Error::LastOffset { what: "keys", found: 0, expected: keys });
        }
        if count == 0 {
            check_last_group(0, runs)?;
        }
        let named = [offsets.named("offsets")?, groups.named("groups")?];
        let (offsets, groups) = (offsets.address, groups.address);
        Ok((RunGroups { offsets, runs, groups, count, most_runs, longest: longest.min(keys) }, named))
    }
}

/// Groups of which only the numbers are known, for the size of a workspace.
fn unknown(runs: usize, count: usize, most_runs: usize) -> RunGroups {
    RunGroups { offsets: 0, runs, groups: 0, count, most_runs, longest: usize::MAX }
}

/// # Merges of groups of runs
///
/// The keys of an array are runs, one after the other, and consecutive runs are groups. Each group is merged by itself,
/// to the same keys of another array. Runs and groups have any lengths, and some may be empty. The offsets stay on the
/// GPU, and what is launched does not depend on them.
impl Stream {
    /// Merges the runs of each group of `keys` into `out`, which has as many keys. Run `i` is the keys `offsets[i] ..
    /// offsets[i + 1]`, sorted in `order`. Group `g` is the runs `groups[g] .. groups[g + 1]`: its keys in `out`, which
    /// are at the same indices as in `keys`, are then sorted in `order`. Stable: of equal keys of a group, those of an
    /// earlier run come first.
    ///
    /// If a run is not sorted in `order`, the keys of `out` are keys of `keys` in an unspecified order.
    ///
    /// # Complexity
    /// O(n log k) for n keys and up to k runs in a group. Groups of up to 32 runs are merged in one pass, which reads
    /// and writes each key once, up to 32² in two passes, and so on. If groups have fewer than about two thousand keys
    /// on average, and are many, they are copied and sorted, which is faster then.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, SortOrder};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let keys = stream.upload(&[1, 4, 6, /**/ 2, 4, /**/ /**/ 0, 9, /**/ 5])?;
    /// let offsets = stream.upload_offsets(&[0, 3, 5, 5, 7, 8])?;
    /// // The first two runs, and the other three.
    /// let groups = stream.upload_offsets(&[0, 2, 5])?;
    /// let mut out = stream.zeroed(keys.len())?;
    /// let bytes = Gpu::merge_many_ragged_workspace_bytes::<i32>(keys.len(), 5, 2, groups.longest());
    /// let mut workspace = stream.zeroed(bytes)?;
    /// stream.merge_many_ragged(SortOrder::Ascending, &keys, &offsets, &groups, &mut out, &mut workspace)?;
    /// assert_eq!(out.download()?, [1, 2, 4, 4, 6, /**/ 0, 5, 9]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of keys, [`Error::LastOffset`] if the last offset is not
    /// the number of keys, [`Error::LastGroup`] if the last of `groups` is not the number of runs,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than [`Gpu::merge_many_ragged_workspace_bytes`],
    /// [`Error::Device`] where the driver fails.
    pub fn merge_many_ragged<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &DeviceArray<K>,
        offsets: &DeviceOffsets,
        groups: &DeviceOffsets,
        out: &mut DeviceArray<K>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let runs = self.owned_groups(offsets, groups, keys.len())?;
        let (keys, out) = (self.owned("keys", keys)?, self.owned("out", out)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: all arrays belong to this stream: `owned` has checked that. All work on them is on it, they are freed
        // after that work, and they keep the stream and the `Gpu`. Those that are written are borrowed mutably, so that
        // they are apart from the others and in no other call at this time. Offsets are as they have to be:
        // `upload_offsets` and `owned_groups` have checked that.
        unsafe { self.gpu().merge_many_ragged_raw(order, keys, runs, out, workspace, self.handle()) }
    }

    /// As [`merge_many_ragged`](Self::merge_many_ragged), with a value of 4 or 8 bytes for each key, which is checked
    /// at compile time. Both arguments are keys and their values; the values of equal keys of a run stay in their
    /// order.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer bytes than [`Gpu::merge_many_ragged_pairs_workspace_bytes`], and those of
    /// [`merge_many_ragged`](Self::merge_many_ragged).
    pub fn merge_many_ragged_pairs<K: GpuKey, V: Pod>(
        &self,
        order: SortOrder,
        from: (&DeviceArray<K>, &DeviceArray<V>),
        offsets: &DeviceOffsets,
        groups: &DeviceOffsets,
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let runs = self.owned_groups(offsets, groups, from.0.len())?;
        let from = (self.owned("keys", from.0)?, self.owned("values", from.1)?);
        let out = (self.owned("out", out.0)?, self.owned("values of out", out.1)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `merge_many_ragged`.
        unsafe { self.gpu().merge_many_ragged_pairs_raw(order, from, runs, out, workspace, self.handle()) }
    }

    /// Where the groups of the runs of `keys` keys are, if their offsets belong to this stream and are those of as many
    /// runs and keys.
    fn owned_groups(
        &self,
        offsets: &DeviceOffsets,
        groups: &DeviceOffsets,
        keys: usize,
    ) -> Result<RawRunGroups, Error> {
        let (longest_run, most_runs) = (offsets.longest(), groups.longest());
        let offsets = offsets.checked(self, ("offsets", "keys"), keys)?;
        let groups = groups.checked_groups(self, offsets.len - 1)?;
        Ok(RawRunGroups { offsets, groups, most_runs, longest: longest_run.saturating_mul(most_runs) })
    }
}

/// # Merges of groups of runs by address
impl Gpu {
    /// Bytes of workspace for the merges of `n` keys in `runs` runs, in `groups` groups of up to `most_runs` runs, or
    /// `usize::MAX` for groups of any numbers of runs. Runs and groups may be empty.
    ///
    /// Groups of up to 32 runs with many keys need splits, a word for each run of a group and each tile of some
    /// thousand keys, and offsets, 8 bytes for each run; those of more runs need the keys once more; and groups of few
    /// keys need [`sort_segments_workspace_bytes`](Self::sort_segments_workspace_bytes), and offsets. `usize::MAX` if
    /// there are more keys than any GPU has memory for.
    pub fn merge_many_ragged_workspace_bytes<K: GpuKey>(
        n: usize,
        runs: usize,
        groups: usize,
        most_runs: usize,
    ) -> usize {
        workspace_bytes::<K>(n, unknown(runs, groups, most_runs), 0)
    }

    /// As [`merge_many_ragged_workspace_bytes`](Self::merge_many_ragged_workspace_bytes), with values of type `V`: keys
    /// and values once more where that has the keys.
    pub fn merge_many_ragged_pairs_workspace_bytes<K: GpuKey, V>(
        n: usize,
        runs: usize,
        groups: usize,
        most_runs: usize,
    ) -> usize {
        workspace_bytes::<K>(n, unknown(runs, groups, most_runs), const { value_bytes::<V>() })
    }

    /// Merges the runs of each group of `keys`, each run sorted in `order`, to the same indices of `out`, which has as
    /// many keys. Stable: of equal keys of a group, those of an earlier run go first. O(n log k) for groups of up to k
    /// runs, and one pass for up to 32.
    ///
    /// Runs and groups may be empty: a caller that knows only how many there are at most, for instance when a graph is
    /// captured, has further runs begin and end with the last key, and further groups with the last run.
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are no offsets or no groups' offsets, [`Error::LengthMismatch`] if `out` has
    /// another length, [`Error::LastOffset`] if there are keys but no runs, [`Error::LastGroup`] if there are runs but
    /// no groups, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`merge_many_ragged_workspace_bytes`](Self::merge_many_ragged_workspace_bytes) for the same `most_runs`,
    /// [`Error::Overlap`] if `out` or `workspace` overlaps another array, [`Error::BadAddress`] if an address is 0 or
    /// not aligned, [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer). Both kinds of offsets are in the GPU's memory and as the
    /// fields of [`RawRunGroups`] say, and no group has more than [`longest`](RawRunGroups::longest) keys.
    pub unsafe fn merge_many_ragged_raw<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: RawArray<K>,
        runs: RawRunGroups,
        out: RawArray<K>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        check_length("out", keys.len, out.len, "|keys|")?;
        let (groups, offsets) = runs.checked(keys.len)?;
        let written = [out.named("out")?, workspace.named("workspace")?];
        check_apart(&written, &[&offsets[..], &[keys.named("keys")?]].concat())?;
        let workspace = workspace.workspace(workspace_bytes::<K>(keys.len, groups, 0))?;
        let (from, out) = (keys.keys(), out.keys());
        // SAFETY: the caller's guarantees; `out` is as long as `keys`, and there is as much workspace as the merges
        // need.
        unsafe { self.on(stream, |queue| merge_many_ragged::<K>(queue, order, from, groups, out, workspace)) }
    }

    /// As [`merge_many_ragged_raw`](Self::merge_many_ragged_raw), with a value of 4 or 8 bytes for each key, which is
    /// checked at compile time.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer bytes than
    /// [`merge_many_ragged_pairs_workspace_bytes`](Self::merge_many_ragged_pairs_workspace_bytes), and those of
    /// [`merge_many_ragged_raw`](Self::merge_many_ragged_raw).
    ///
    /// # Safety
    /// As for [`merge_many_ragged_raw`](Self::merge_many_ragged_raw).
    pub unsafe fn merge_many_ragged_pairs_raw<K: GpuKey, V>(
        &self,
        order: SortOrder,
        from: (RawArray<K>, RawArray<V>),
        runs: RawRunGroups,
        out: (RawArray<K>, RawArray<V>),
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let at = [pairs("keys", from.0, from.1)?, pairs("out", out.0, out.1)?];
        check_length("out", from.0.len, out.0.len, "|keys|")?;
        let (groups, offsets) = runs.checked(from.0.len)?;
        let written = [out.0.named("out")?, out.1.named("values of out")?, workspace.named("workspace")?];
        check_apart(&written, &[&offsets[..], &[from.0.named("keys")?, from.1.named("values")?]].concat())?;
        let workspace = workspace.workspace(workspace_bytes::<K>(from.0.len, groups, at[0].value_bytes))?;
        // SAFETY: as for `merge_many_ragged_raw`.
        unsafe { self.on(stream, |queue| merge_many_ragged::<K>(queue, order, at[0], groups, at[1], workspace)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_runs_and_runs_have_groups() {
        let checked = |keys, offsets, groups| {
            let array = |len| RawArray::<u64>::new(1 << 20, len);
            let (offsets, groups) = (array(offsets), array(groups));
            let runs = RawRunGroups { offsets, groups, most_runs: 7, longest: usize::MAX };
            runs.checked(keys).map(|(groups, _)| (groups.runs, groups.count, groups.longest))
        };
        assert_eq!(checked(100, 5, 3), Ok((4, 2, 100)));
        assert_eq!(checked(0, 5, 3), Ok((4, 2, 0)));
        assert_eq!(checked(0, 1, 3), Ok((0, 2, 0)));
        assert_eq!(checked(0, 1, 1), Ok((0, 0, 0)));
        assert_eq!(checked(0, 0, 1), Err(Error::NoOffsets));
        assert_eq!(checked(0, 1, 0), Err(Error::NoOffsets));
        assert_eq!(checked(7, 1, 3), Err(Error::LastOffset { what: "keys", found: 0, expected: 7 }));
        assert_eq!(checked(7, 3, 1), Err(Error::LastGroup { found: 0, expected: 2 }));
    }
}
