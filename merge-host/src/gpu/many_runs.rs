//! Merges of the runs of an array: of a stream, and by address.

use super::launch::many_runs::{MOST, merge_many_runs, workspace_bytes};
use super::raw::{check_apart, pairs, value_bytes};
use super::{DeviceArray, DeviceOffsets, Gpu, RawArray, Stream};
use crate::engine::check_length;
use crate::{Error, GpuKey, SortOrder};
use bytemuck::Pod;
use std::ffi::c_void;

/// The number of runs between `offsets` of `keys` keys.
fn runs_between(offsets: RawArray<u64>, keys: usize) -> Result<usize, Error> {
    let runs = offsets.len.checked_sub(1).ok_or(Error::NoOffsets)?;
    if runs == 0 && keys > 0 {
        // The only offset is the first, which is 0.
        return Err(Error::LastOffset { what: "keys", found: 0, expected: keys });
    }
    if keys > MOST {
        return Err(Error::TooManyKeys { found: keys, most: MOST, index: "u32" });
    }
    Ok(runs)
}

/// # Merges of many runs
///
/// The keys of an array are runs, one after the other, which are merged into another array. Runs have any lengths, some
/// may be empty, and there may be any number of them. The offsets stay on the GPU, and what is launched does not depend
/// on them.
impl Stream {
    /// Merges the runs of `keys` into `out`, which has as many keys. Run `i` is the keys `offsets[i] .. offsets[i +
    /// 1]`, sorted in `order`, and `out` is then sorted in `order`. Stable: of equal keys, those of an earlier run come
    /// first.
    ///
    /// If a run is not sorted in `order`, `out` gets keys of all runs in an unspecified order.
    ///
    /// # Complexity
    /// O(n log k) for n keys in k runs. Up to 32 runs are merged in one pass, which reads and writes each key once, up
    /// to 32² in two passes, and so on.
    ///
    /// ```no_run
    /// use merge_host::{Gpu, SortOrder};
    ///
    /// let stream = Gpu::new(0)?.stream()?;
    /// let keys = stream.upload(&[1, 4, 6, /**/ 2, 4, /**/ /**/ 0, 9])?;
    /// let offsets = stream.upload_offsets(&[0, 3, 5, 5, 7])?;
    /// let mut out = stream.zeroed(keys.len())?;
    /// let mut workspace = stream.zeroed(Gpu::merge_many_workspace_bytes::<i32>(keys.len(), 4))?;
    /// stream.merge_many(SortOrder::Ascending, &keys, &offsets, &mut out, &mut workspace)?;
    /// assert_eq!(out.download()?, [0, 1, 2, 4, 4, 6, 9]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of keys, [`Error::LastOffset`] if the last offset is not
    /// the number of keys, [`Error::TooManyKeys`] if there are 2^32 or more, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer bytes than [`Gpu::merge_many_workspace_bytes`], [`Error::Device`] where the driver fails.
    pub fn merge_many<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &DeviceArray<K>,
        offsets: &DeviceOffsets,
        out: &mut DeviceArray<K>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let offsets = offsets.checked(self, ("offsets", "keys"), keys.len())?;
        let (keys, out) = (self.owned("keys", keys)?, self.owned("out", out)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: all arrays belong to this stream: `owned` has checked that. All work on them is on it, they are freed
        // after that work, and they keep the stream and the `Gpu`. Those that are written are borrowed mutably, so that
        // they are apart from the others and in no other call at this time. Offsets are as they have to be:
        // `upload_offsets` and `checked` have checked that.
        unsafe { self.gpu().merge_many_raw(order, keys, offsets, out, workspace, self.handle()) }
    }

    /// As [`merge_many`](Self::merge_many), with a value of 4 or 8 bytes for each key, which is checked at compile
    /// time. Both arguments are keys and their values; the values of equal keys of a run stay in their order.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer bytes than [`Gpu::merge_many_pairs_workspace_bytes`], and those of
    /// [`merge_many`](Self::merge_many).
    pub fn merge_many_pairs<K: GpuKey, V: Pod>(
        &self,
        order: SortOrder,
        from: (&DeviceArray<K>, &DeviceArray<V>),
        offsets: &DeviceOffsets,
        out: (&mut DeviceArray<K>, &mut DeviceArray<V>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let offsets = offsets.checked(self, ("offsets", "keys"), from.0.len())?;
        let from = (self.owned("keys", from.0)?, self.owned("values", from.1)?);
        let out = (self.owned("out", out.0)?, self.owned("values of out", out.1)?);
        let workspace = self.owned("workspace", workspace)?;
        // SAFETY: as for `merge_many`.
        unsafe { self.gpu().merge_many_pairs_raw(order, from, offsets, out, workspace, self.handle()) }
    }
}

/// # Merges of many runs by address
impl Gpu {
    /// Bytes of workspace for the merge of `n` keys in `runs` runs, some of which may be empty: splits, a word for each
    /// run of a group and each tile of some thousand keys, and the keys once more if there are more than 32 runs.
    /// `usize::MAX` if there are 2^32 keys or runs, or more.
    pub fn merge_many_workspace_bytes<K: GpuKey>(n: usize, runs: usize) -> usize {
        workspace_bytes::<K>(n, runs, 0)
    }

    /// As [`merge_many_workspace_bytes`](Self::merge_many_workspace_bytes), with values of type `V`: keys and values
    /// once more if there are more than 32 runs.
    pub fn merge_many_pairs_workspace_bytes<K: GpuKey, V>(n: usize, runs: usize) -> usize {
        workspace_bytes::<K>(n, runs, const { value_bytes::<V>() })
    }

    /// Merges the runs of `keys`, each sorted in `order`, into `out`, which has as many keys. Run `i` is the keys
    /// `offsets[i] .. offsets[i + 1]`. Stable: of equal keys, those of an earlier run go first. O(n log k) for k runs,
    /// and one pass for up to 32.
    ///
    /// Runs may be empty: a caller that knows only how many there are at most, for instance when a graph is captured,
    /// has further ones begin and end with the last key.
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are no offsets, [`Error::LengthMismatch`] if `out` has another length,
    /// [`Error::LastOffset`] if there are keys but no runs, [`Error::TooManyKeys`] if there are 2^32 keys or more,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`merge_many_workspace_bytes`](Self::merge_many_workspace_bytes), [`Error::Overlap`] if `out` or `workspace`
    /// overlaps another array, [`Error::BadAddress`] if an address is 0 or not aligned, [`Error::Device`] where the
    /// driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer). Offsets are in the GPU's memory, begin with 0, never
    /// decrease, and end with the number of keys.
    pub unsafe fn merge_many_raw<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: RawArray<K>,
        offsets: RawArray<u64>,
        out: RawArray<K>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        check_length("out", keys.len, out.len, "|keys|")?;
        let runs = runs_between(offsets, keys.len)?;
        let read = [keys.named("keys")?, offsets.named("offsets")?];
        check_apart(&[out.named("out")?, workspace.named("workspace")?], &read)?;
        let workspace = workspace.workspace(Self::merge_many_workspace_bytes::<K>(keys.len, runs))?;
        let (from, out, offsets) = (keys.keys(), out.keys(), (offsets.address, runs));
        // SAFETY: the caller's guarantees; `out` is as long as `keys`, and there is as much workspace as the merge
        // needs.
        unsafe { self.on(stream, |queue| merge_many_runs::<K>(queue, order, from, offsets, out, workspace)) }
    }

    /// As [`merge_many_raw`](Self::merge_many_raw), with a value of 4 or 8 bytes for each key, which is checked at
    /// compile time.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer than [`merge_many_pairs_workspace_bytes`](Self::merge_many_pairs_workspace_bytes), and
    /// those of [`merge_many_raw`](Self::merge_many_raw).
    ///
    /// # Safety
    /// As for [`merge_many_raw`](Self::merge_many_raw).
    pub unsafe fn merge_many_pairs_raw<K: GpuKey, V>(
        &self,
        order: SortOrder,
        from: (RawArray<K>, RawArray<V>),
        offsets: RawArray<u64>,
        out: (RawArray<K>, RawArray<V>),
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let at = [pairs("keys", from.0, from.1)?, pairs("out", out.0, out.1)?];
        check_length("out", from.0.len, out.0.len, "|keys|")?;
        let runs = runs_between(offsets, from.0.len)?;
        let read = [from.0.named("keys")?, from.1.named("values")?, offsets.named("offsets")?];
        check_apart(&[out.0.named("out")?, out.1.named("values of out")?, workspace.named("workspace")?], &read)?;
        let workspace = workspace.workspace(Self::merge_many_pairs_workspace_bytes::<K, V>(from.0.len, runs))?;
        let offsets = (offsets.address, runs);
        // SAFETY: as for `merge_many_raw`.
        unsafe { self.on(stream, |queue| merge_many_runs::<K>(queue, order, at[0], offsets, at[1], workspace)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_runs_and_are_counted_by_32_bits() {
        let offsets = |len| RawArray::<u64>::new(1 << 20, len);
        assert_eq!(runs_between(offsets(5), 100), Ok(4));
        assert_eq!(runs_between(offsets(1), 0), Ok(0));
        assert_eq!(runs_between(offsets(0), 0), Err(Error::NoOffsets));
        assert_eq!(runs_between(offsets(1), 7), Err(Error::LastOffset { what: "keys", found: 0, expected: 7 }));
        assert_eq!(runs_between(offsets(2), MOST), Ok(1));
        let found = MOST + 1;
        assert_eq!(runs_between(offsets(2), found), Err(Error::TooManyKeys { found, most: MOST, index: "u32" }));
    }
}
