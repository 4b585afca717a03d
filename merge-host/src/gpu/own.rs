//! Sorts, merges and set operations in a user's own order.

use super::launch::OnStream;
use super::launch::own::{self, Items};
use super::{Address, DeviceArray, DeviceOffsets, Gpu, RawArray, Stream};
use crate::engine::{check_capacity, check_length, check_offset_counts, check_values};
use crate::index::check_index_range;
use crate::{Error, Index, SetOperation};
use bytemuck::Pod;
use kernels_gpu::own::merge_groups::Groups;
use kernels_gpu::own::{Compare, Kernels};

/// # Kernels for a user's own order
///
/// A kernel crate of the user's names them: [`kernels_gpu::own`]. `examples/own-key` is a whole program.
impl Gpu {
    /// Loads the kernels of a module of the user's, as `cuda_builder` has compiled it from a crate that depends on
    /// `kernels_gpu`. They stay loaded as long as this `Gpu` or a clone of it lives.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver refuses the module.
    ///
    /// # Safety
    /// The module was compiled from the crate that this program is compiled with: of two versions of a type or an
    /// order, one would be launched with the arguments of the other.
    pub unsafe fn load_kernels(&self, ptx: &str) -> Result<(), Error> {
        let _entered = self.enter()?;
        self.shared.kernels.add(ptx)
    }

    /// Bytes of workspace for a sort of `n` items by the order `C`, with values of type `V`, which may be `()`: both
    /// once more, and splits; of as many [keys](kernels_gpu::own::Key) as are sorted by their bits also these and
    /// indices of 4 bytes, both twice. An argsort has indices for values.
    pub fn sort_by_workspace_bytes<C: Compare, V>(n: usize) -> usize {
        own::sort_workspace_bytes::<C, V>(n)
    }

    /// Bytes of workspace for a merge into `total` items, with values of type `V`, which may be `()`: 8 bytes for each
    /// tile of some hundred items.
    pub const fn merge_by_workspace_bytes<T, V>(total: usize) -> usize {
        own::split_bytes::<T, V>(Groups::of_two(total, 0))
    }

    /// Bytes of workspace for a batch of `problems` merges into `d` items each.
    pub const fn merge_batch_by_workspace_bytes<T, V>(problems: usize, d: usize) -> usize {
        own::split_bytes::<T, V>(Groups::of_batch(problems, d, 0))
    }

    /// Bytes of workspace for merges of any lengths into `total` items, with values of type `V`, which may be `()`: 16
    /// bytes for each tile of some hundred items.
    pub const fn merge_ragged_by_workspace_bytes<T, V>(total: usize) -> usize {
        own::ragged_workspace_bytes::<T, V>(total)
    }

    /// Bytes of workspace for a set operation on `total` items of both arrays, with values of type `V`, which may be
    /// `()`: 24 bytes for each tile of some hundred items.
    pub const fn set_operation_by_workspace_bytes<T, V>(total: usize) -> usize {
        own::set_operation_workspace_bytes::<T, V>(total)
    }
}

/// # Sorts, merges and set operations in a user's own order
///
/// `C` is an order whose kernels a crate of the user's has, alone or with values ([`kernels_gpu::own::kernels!`]), and
/// which [`Gpu::load_kernels`] has loaded. Otherwise these are as the methods above: each puts work on the stream and
/// returns before it is done, and none allocates or waits. A stream that is captured needs kernels of the library's
/// own, too, for a sort by bits or an argsort: [`Gpu::prepare`] loads those for `u32` and `u64` before.
impl Stream {
    /// Sorts `items`. Stable: items of which neither is before the other stay in their order. O(n log n).
    ///
    /// Between 2^15 and 2^32 [keys](kernels_gpu::own::Key) whose bits are 4 or 8 bytes are sorted by these, as numbers
    /// are; all else by comparisons.
    ///
    /// An order without kernels does not compile; the message says how they are named:
    ///
    /// ```compile_fail,E0277
    /// use kernels_gpu::own::Compare;
    /// use merge_host::{DeviceArray, Error, Stream};
    ///
    /// #[derive(Clone, Copy)]
    /// struct OddFirst;
    ///
    /// impl Compare for OddFirst {
    ///     type Item = u32;
    ///     fn is_before(a: &u32, b: &u32) -> bool {
    ///         a % 2 > b % 2
    ///     }
    /// }
    ///
    /// fn sort(stream: &Stream, numbers: &mut DeviceArray<u32>, workspace: &mut DeviceArray<u8>) -> Result<(), Error> {
    ///     stream.sort_by::<OddFirst>(numbers, workspace)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than [`Gpu::sort_by_workspace_bytes`] of the order
    /// and `()`, [`Error::Device`] where the driver fails, or the kernels are not loaded.
    pub fn sort_by<C: Kernels>(
        &self,
        items: &mut DeviceArray<C::Item>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let items = without_values(self.owned("items", items)?);
        let workspace = self.own_workspace(workspace, own::sort_workspace_bytes::<C, ()>(items.len))?;
        // SAFETY: the arrays belong to this stream, on which all work on them is; those that are written are borrowed
        // mutably, so that they are apart from the others and in no other call at this time. Here and below.
        self.on_queue(|queue| unsafe { own::sort::<C, ()>(queue, items, workspace) })
    }

    /// Sorts `items` with as many `values`. Stable. O(n log n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as items, [`Error::WorkspaceTooSmall`] if `workspace`
    /// has fewer bytes than [`Gpu::sort_by_workspace_bytes`] of the order and the values, and those of
    /// [`sort_by`](Self::sort_by).
    pub fn sort_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        items: &mut DeviceArray<C::Item>,
        values: &mut DeviceArray<V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let items = with_values("items", self.owned("items", items)?, self.owned("values", values)?)?;
        let workspace = self.own_workspace(workspace, own::sort_workspace_bytes::<C, V>(items.len))?;
        // SAFETY: as for `sort_by`.
        self.on_queue(|queue| unsafe { own::sort::<C, V>(queue, items, workspace) })
    }

    /// Sorts `items`, and sets `indices` to the index of each before the sort. Stable. What is in `indices` before is
    /// not read. O(n log n).
    ///
    /// # Errors
    /// Those of [`sort_pairs_by`](Self::sort_pairs_by), and [`Error::TooManyKeys`] if there are more than 2^32 items
    /// and the indices are `u32`.
    pub fn argsort_by<C: Kernels<I>, I: Index>(
        &self,
        items: &mut DeviceArray<C::Item>,
        indices: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let items = with_values("items", self.owned("items", items)?, self.owned("indices", indices)?)?;
        check_index_range::<I>(items.len)?;
        let workspace = self.own_workspace(workspace, own::sort_workspace_bytes::<C, I>(items.len))?;
        // SAFETY: as for `sort_by`.
        self.on_queue(|queue| unsafe { own::argsort::<C, I>(queue, items, workspace) })
    }

    /// Merges `a` and `b`, both sorted, into `out`, which has `a.len() + b.len()` items. Stable: of items of which
    /// neither is before the other, those of `a` go first. O(n).
    ///
    /// If `a` or `b` is not sorted, `out` gets items of both, which ones and in which order is unspecified.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another length, [`Error::WorkspaceTooSmall`] if `workspace` has fewer
    /// bytes than [`Gpu::merge_by_workspace_bytes`], and those of [`sort_by`](Self::sort_by).
    pub fn merge_by<C: Kernels>(
        &self,
        a: &DeviceArray<C::Item>,
        b: &DeviceArray<C::Item>,
        out: &mut DeviceArray<C::Item>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let runs = [without_values(self.owned("a", a)?), without_values(self.owned("b", b)?)];
        self.merge_two::<C, ()>(runs, without_values(self.owned("out", out)?), workspace)
    }

    /// Merges items with values: the pairs of `a` and of `b`, both sorted by their items, into `out`. Stable. O(n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as items, and those of
    /// [`merge_by`](Self::merge_by).
    pub fn merge_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        a: (&DeviceArray<C::Item>, &DeviceArray<V>),
        b: (&DeviceArray<C::Item>, &DeviceArray<V>),
        out: (&mut DeviceArray<C::Item>, &mut DeviceArray<V>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let a = with_values("a", self.owned("a", a.0)?, self.owned("values of a", a.1)?)?;
        let b = with_values("b", self.owned("b", b.0)?, self.owned("values of b", b.1)?)?;
        let out = with_values("out", self.owned("out", out.0)?, self.owned("values of out", out.1)?)?;
        self.merge_two::<C, V>([a, b], out, workspace)
    }

    /// Solves many merge problems of one length: merges run `p` of `a`, of `a_len` items, with run `p` of `b`, of `d -
    /// a_len` items, into run `p` of `out`, of `d` items. Stable. O(n log d). A problem is a tile of its own, so that
    /// short ones leave most of the GPU idle.
    ///
    /// # Errors
    /// [`Error::BadBatchLength`] if `d` is 0, [`Error::BadSplit`] if `a_len` exceeds `d`, [`Error::NotWholeRuns`] if
    /// `out` does not hold whole runs, [`Error::LengthMismatch`] if `a` or `b` has another length,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than [`Gpu::merge_batch_by_workspace_bytes`], and
    /// those of [`sort_by`](Self::sort_by).
    pub fn merge_batch_by<C: Kernels>(
        &self,
        a: &DeviceArray<C::Item>,
        b: &DeviceArray<C::Item>,
        out: &mut DeviceArray<C::Item>,
        d: usize,
        a_len: usize,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let runs = [without_values(self.owned("a", a)?), without_values(self.owned("b", b)?)];
        let out = without_values(self.owned("out", out)?);
        if d == 0 {
            return Err(Error::BadBatchLength { d });
        }
        if a_len > d {
            return Err(Error::BadSplit { a_len, d });
        }
        if !out.len.is_multiple_of(d) {
            return Err(Error::NotWholeRuns { what: "out", found: out.len, run: d });
        }
        let problems = out.len / d;
        check_length("a", problems * a_len, runs[0].len, "|out| / d * a_len")?;
        check_length("b", problems * (d - a_len), runs[1].len, "|out| / d * (d - a_len)")?;
        let groups = Groups::of_batch(problems, a_len, d - a_len);
        let workspace = self.own_workspace(workspace, own::split_bytes::<C::Item, ()>(groups))?;
        // SAFETY: as for `sort_by`; lengths have been checked.
        self.on_queue(|queue| unsafe { own::merge::<C, ()>(queue, runs, out, groups, workspace) })
    }

    /// Solves many merge problems of any lengths. Each side is its items and their offsets. The runs of problem `p` are
    /// the items `a_offsets[p] .. a_offsets[p + 1]` of `a` and those of `b` accordingly; in `out` it begins at
    /// `a_offsets[p] + b_offsets[p]`. Stable. O(n log n).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of items than `a` and `b` together,
    /// [`Error::OffsetsMismatch`] if the two sides have different numbers of offsets, [`Error::LastOffset`] if the last
    /// one is not the number of items, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::merge_ragged_by_workspace_bytes`] of the items and `()`, and those of [`sort_by`](Self::sort_by).
    pub fn merge_ragged_by<C: Kernels>(
        &self,
        a: (&DeviceArray<C::Item>, &DeviceOffsets),
        b: (&DeviceArray<C::Item>, &DeviceOffsets),
        out: &mut DeviceArray<C::Item>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let offsets = self.own_offsets(a, b)?;
        let runs = [without_values(self.owned("a", a.0)?), without_values(self.owned("b", b.0)?)];
        self.merge_any::<C, ()>(runs, offsets, without_values(self.owned("out", out)?), workspace)
    }

    /// As [`merge_ragged_by`](Self::merge_ragged_by), with a value for each item. Each side is its items, their values
    /// and their offsets.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as items, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer bytes than [`Gpu::merge_ragged_by_workspace_bytes`] of the items and values, and those of
    /// [`merge_ragged_by`](Self::merge_ragged_by).
    pub fn merge_ragged_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        a: (&DeviceArray<C::Item>, &DeviceArray<V>, &DeviceOffsets),
        b: (&DeviceArray<C::Item>, &DeviceArray<V>, &DeviceOffsets),
        out: (&mut DeviceArray<C::Item>, &mut DeviceArray<V>),
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let offsets = self.own_offsets((a.0, a.2), (b.0, b.2))?;
        let a = with_values("a", self.owned("a", a.0)?, self.owned("values of a", a.1)?)?;
        let b = with_values("b", self.owned("b", b.0)?, self.owned("values of b", b.1)?)?;
        let out = with_values("out", self.owned("out", out.0)?, self.owned("values of out", out.1)?)?;
        self.merge_any::<C, V>([a, b], offsets, out, workspace)
    }

    fn merge_any<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        runs: [Items; 2],
        offsets: [RawArray<u64>; 2],
        out: Items,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        check_length("out", runs[0].len.saturating_add(runs[1].len), out.len, "|a| + |b|")?;
        let problems = check_offset_counts(offsets[0].len, offsets[1].len)?;
        let workspace = self.own_workspace(workspace, own::ragged_workspace_bytes::<C::Item, V>(out.len))?;
        let runs = [(runs[0], offsets[0].address), (runs[1], offsets[1].address)];
        // SAFETY: as for `sort_by`; lengths have been checked. The offsets begin with 0, never decrease, and end with
        // the number of items: `upload_offsets` and `checked` have checked that.
        self.on_queue(|queue| unsafe { own::merge_ragged::<C, V>(queue, runs, problems, out, workspace) })
    }

    /// The offsets of both sides, which are those of as many items.
    fn own_offsets<T>(
        &self,
        a: (&DeviceArray<T>, &DeviceOffsets),
        b: (&DeviceArray<T>, &DeviceOffsets),
    ) -> Result<[RawArray<u64>; 2], Error>
    where
        T: Pod + Send + Sync,
    {
        let a = a.1.checked(self, ("offsets of a", "a"), a.0.len())?;
        Ok([a, b.1.checked(self, ("offsets of b", "b"), b.0.len())?])
    }

    /// Writes the items of `a` and `b`, both sorted, that `operation` keeps to `out`, sorted, and their number to
    /// `count`, which has one element. `out` has at least [`SetOperation::most_keys`] items; those after the items kept
    /// are unspecified. O(n).
    ///
    /// Items are equal if neither is before the other. Where equal items differ, those that C++'s `std::set_union` and
    /// its siblings keep are kept: of m equal items of `a` and n of `b` a union has those of `a`, and then the last n −
    /// m of `b`; an intersection the first min(m, n) of `a`; a difference the last m − n of `a`.
    ///
    /// If `a` or `b` is not sorted, `out` gets items of both in an unspecified number and order.
    ///
    /// # Errors
    /// [`Error::CapacityTooSmall`] if `out` has fewer items than the result may have, [`Error::LengthMismatch`] if
    /// `count` has not one element, [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`Gpu::set_operation_by_workspace_bytes`] of the items and `()`, and those of [`sort_by`](Self::sort_by).
    pub fn set_operation_by<C: Kernels>(
        &self,
        operation: SetOperation,
        a: &DeviceArray<C::Item>,
        b: &DeviceArray<C::Item>,
        out: &mut DeviceArray<C::Item>,
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let of = [without_values(self.owned("a", a)?), without_values(self.owned("b", b)?)];
        self.combine::<C, ()>(operation, of, without_values(self.owned("out", out)?), count, workspace)
    }

    /// As [`set_operation_by`](Self::set_operation_by), with a value for each item. An item that is kept has its value.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as items, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer bytes than [`Gpu::set_operation_by_workspace_bytes`] of the items and values, and those of
    /// [`set_operation_by`](Self::set_operation_by).
    pub fn set_operation_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        operation: SetOperation,
        a: (&DeviceArray<C::Item>, &DeviceArray<V>),
        b: (&DeviceArray<C::Item>, &DeviceArray<V>),
        out: (&mut DeviceArray<C::Item>, &mut DeviceArray<V>),
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let a = with_values("a", self.owned("a", a.0)?, self.owned("values of a", a.1)?)?;
        let b = with_values("b", self.owned("b", b.0)?, self.owned("values of b", b.1)?)?;
        let out = with_values("out", self.owned("out", out.0)?, self.owned("values of out", out.1)?)?;
        self.combine::<C, V>(operation, [a, b], out, count, workspace)
    }

    fn combine<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        operation: SetOperation,
        of: [Items; 2],
        out: Items,
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        check_capacity("out", operation.most_keys(of[0].len, of[1].len), out.len)?;
        let count = self.owned("count", count)?;
        check_length("count", 1, count.len, "one number")?;
        let total = of[0].len.saturating_add(of[1].len);
        let workspace = self.own_workspace(workspace, own::set_operation_workspace_bytes::<C::Item, V>(total))?;
        // SAFETY: as for `sort_by`; lengths have been checked.
        self.on_queue(|queue| unsafe {
            own::set_operation::<C, V>(queue, operation, of, out, count.address, workspace)
        })
    }

    fn merge_two<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        runs: [Items; 2],
        out: Items,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let total = runs[0].len.saturating_add(runs[1].len);
        check_length("out", total, out.len, "|a| + |b|")?;
        let groups = Groups::of_two(runs[0].len, runs[1].len);
        let workspace = self.own_workspace(workspace, own::split_bytes::<C::Item, V>(groups))?;
        // SAFETY: as for `sort_by`; lengths have been checked.
        self.on_queue(|queue| unsafe { own::merge::<C, V>(queue, runs, out, groups, workspace) })
    }

    /// Where the workspace is, if it belongs to this stream and has `needed` bytes.
    fn own_workspace(&self, workspace: &mut DeviceArray<u8>, needed: usize) -> Result<Address, Error> {
        self.owned("workspace", workspace)?.workspace(needed)
    }

    /// Calls `work` with this stream's queue, while the GPU's context is current.
    fn on_queue(&self, work: impl FnOnce(&OnStream<'_>) -> Result<(), Error>) -> Result<(), Error> {
        // SAFETY: the stream is one of this GPU's, and lives.
        unsafe { self.gpu().on(self.handle(), work) }
    }
}

fn without_values<T>(items: RawArray<T>) -> Items {
    Items { items: items.address, values: items.address, len: items.len }
}

fn with_values<T, V>(what: &'static str, items: RawArray<T>, values: RawArray<V>) -> Result<Items, Error> {
    check_values(what, items.len, values.len)?;
    Ok(Items { items: items.address, values: values.address, len: items.len })
}
