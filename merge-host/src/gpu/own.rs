//! The calls of a stream in a user's own order.

use super::elements::{Call, DeviceElements, DeviceElementsMut};
use super::launch::own::{Merge, Ragged, Sets, Sort};
use super::operations::check_sum;
use super::{DeviceArray, DeviceOffsets, Gpu, Stream};
use crate::engine::{check_capacity, check_length, check_offset_counts};
use crate::index::check_index_range;
use crate::{Error, Index, SetOperation};
use bytemuck::Pod;
use kernels_gpu::own::Kernels;
use kernels_gpu::own::merge_groups::Groups;

const A: (&str, &str) = ("a", "values of a");
const B: (&str, &str) = ("b", "values of b");
const ITEMS: (&str, &str) = ("items", "values");
const OUT: (&str, &str) = ("out", "values of out");

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
}

/// # Sorts, merges and set operations in a user's own order
///
/// `C` is an order whose kernels a crate of the user's has, for items alone or with values of type `V`
/// ([`kernels_gpu::own::kernels!`]), and which [`Gpu::load_kernels`] has loaded. Otherwise these are as the methods
/// [above](#sorts-merges-and-selections): keys are items, of any type, and their workspaces are those of
/// [`workspace`](crate::workspace) whose names end in `_by`. To capture a sort by bits or an argsort needs kernels of
/// the library's own, too: [`Gpu::prepare`] loads those for `u32` and `u64`.
impl Stream {
    /// Sorts `elements`. Stable: items of which neither is before the other stay in their order. O(n log n).
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
    ///     stream.sort_by::<OddFirst, ()>(numbers, workspace)
    /// }
    /// ```
    ///
    /// # Errors
    /// [Those of all calls](#errors-of-all-of-them), [`Error::Device`] also if the kernels are not loaded.
    pub fn sort_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        elements: impl DeviceElementsMut<C::Item, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let at = call.writes(ITEMS, &elements)?;
        call.run::<(C, V)>(&Sort { at, indexes: false }, workspace)
    }

    /// Sorts `items`, and sets `indices` to the index of each before the sort. Stable. The content of `indices` before
    /// is not read. O(n log n).
    ///
    /// # Errors
    /// Those of [`sort_by`](Self::sort_by), and [`Error::TooManyKeys`] if there are more than 2^32 items and the
    /// indices are `u32`.
    pub fn argsort_by<C: Kernels<I>, I: Index>(
        &self,
        items: &mut DeviceArray<C::Item>,
        indices: &mut DeviceArray<I>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let at = call.writes(("items", "indices"), &(items, indices))?;
        check_index_range::<I>(at.len)?;
        call.run::<(C, I)>(&Sort { at, indexes: true }, workspace)
    }

    /// Merges `a` and `b`, both sorted, into `out`, which has as many items as both. Stable: of items of which neither
    /// is before the other, those of `a` go first. O(n).
    ///
    /// If `a` or `b` is not sorted, `out` gets elements of both; which ones and in which order is unspecified.
    ///
    /// # Errors
    /// Those of [`sort_by`](Self::sort_by), and [`Error::LengthMismatch`] if `out` has another length.
    pub fn merge_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        a: impl DeviceElements<C::Item, V>,
        b: impl DeviceElements<C::Item, V>,
        out: impl DeviceElementsMut<C::Item, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let (a, b, out) = (call.reads(A, &a)?, call.reads(B, &b)?, call.writes(OUT, &out)?);
        check_sum(a, b, out)?;
        let groups = Groups::of_two(a.len, b.len);
        call.run::<(C, V)>(&Merge { runs: [a, b], out, groups }, workspace)
    }

    /// Solves many merge problems of one length: merges run `p` of `a`, of `a_len` items, with run `p` of `b`, of `d -
    /// a_len` items, into run `p` of `out`, of `d` items. Stable. O(n log d). A problem is a tile of its own, so that
    /// short ones leave most of the GPU idle.
    ///
    /// # Errors
    /// Those of [`sort_by`](Self::sort_by), [`Error::BadBatchLength`] if `d` is 0, [`Error::BadSplit`] if `a_len`
    /// exceeds `d`, [`Error::NotWholeRuns`] if `out` does not hold whole runs, and [`Error::LengthMismatch`] if `a` or
    /// `b` has another length.
    pub fn merge_batch_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        a: impl DeviceElements<C::Item, V>,
        b: impl DeviceElements<C::Item, V>,
        out: impl DeviceElementsMut<C::Item, V>,
        d: usize,
        a_len: usize,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        if d == 0 {
            return Err(Error::BadBatchLength { d });
        }
        let mut call = Call::new(self);
        let (a, b, out) = (call.reads(A, &a)?, call.reads(B, &b)?, call.writes(OUT, &out)?);
        if a_len > d {
            return Err(Error::BadSplit { a_len, d });
        }
        if !out.len.is_multiple_of(d) {
            return Err(Error::NotWholeRuns { what: "out", found: out.len, run: d });
        }
        let problems = out.len / d;
        check_length("a", problems * a_len, a.len, "|out| / d * a_len")?;
        check_length("b", problems * (d - a_len), b.len, "|out| / d * (d - a_len)")?;
        let groups = Groups::of_batch(problems, a_len, d - a_len);
        call.run::<(C, V)>(&Merge { runs: [a, b], out, groups }, workspace)
    }

    /// Solves many merge problems of any lengths. Each side is elements and their offsets, as in
    /// [`merge_ragged`](Self::merge_ragged). Stable. O(n log n).
    ///
    /// # Errors
    /// Those of [`sort_by`](Self::sort_by), [`Error::LengthMismatch`] if `out` has another number of items than both
    /// sides, [`Error::OffsetsMismatch`] if the sides have different numbers of offsets, and [`Error::LastOffset`] if
    /// the last one is not the number of items.
    pub fn merge_ragged_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        a: (impl DeviceElements<C::Item, V>, &DeviceOffsets),
        b: (impl DeviceElements<C::Item, V>, &DeviceOffsets),
        out: impl DeviceElementsMut<C::Item, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let ((a, of_a), (b, of_b)) = ((call.reads(A, &a.0)?, a.1), (call.reads(B, &b.0)?, b.1));
        let runs = [
            (a, call.offsets(("offsets of a", "a"), of_a, a.len)?),
            (b, call.offsets(("offsets of b", "b"), of_b, b.len)?),
        ];
        let (problems, out) = (check_offset_counts(of_a.len(), of_b.len())?, call.writes(OUT, &out)?);
        check_sum(a, b, out)?;
        call.run::<(C, V)>(&Ragged { runs, problems, out }, workspace)
    }

    /// Writes the elements of `a` and `b`, both sorted, that `operation` keeps to `out`, sorted, and their number to
    /// `count`, which has one element. `out` has at least [`SetOperation::most_keys`] items; those behind the kept ones
    /// are unspecified. O(n).
    ///
    /// Items are equal if neither is before the other. Where equal items differ, those that C++'s `std::set_union` and
    /// its siblings keep are kept: of m equal items of `a` and n of `b` a union has those of `a`, and then the last n −
    /// m of `b`; an intersection the first min(m, n) of `a`; a difference the last m − n of `a`.
    ///
    /// If `a` or `b` is not sorted, `out` gets elements of both in an unspecified number and order.
    ///
    /// # Errors
    /// Those of [`sort_by`](Self::sort_by), [`Error::CapacityTooSmall`] if `out` has fewer items than the result may
    /// have, and [`Error::LengthMismatch`] if `count` has not one element.
    pub fn set_operation_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        operation: SetOperation,
        a: impl DeviceElements<C::Item, V>,
        b: impl DeviceElements<C::Item, V>,
        out: impl DeviceElementsMut<C::Item, V>,
        count: &mut DeviceArray<u64>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let (a, b, out) = (call.reads(A, &a)?, call.reads(B, &b)?, call.writes(OUT, &out)?);
        check_capacity("out", operation.most_keys(a.len, b.len), out.len)?;
        let count = call.count(count)?;
        call.run::<(C, V)>(&Sets { operation, of: [a, b], out, count }, workspace)
    }
}
