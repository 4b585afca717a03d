//! Calls of a stream in a user's own order.

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
/// A kernel crate of the user declares them: see [`kernels_gpu::own`]. `examples/own-key` is a whole program.
impl Gpu {
    /// Loads the kernels of a user's module, which `cuda_builder` has compiled from a crate that depends on
    /// `kernels_gpu`. They stay loaded while this `Gpu` or a clone of it lives.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver refuses the module.
    ///
    /// # Safety
    /// The module was compiled from the same version of the crate as this program. Otherwise kernels for one version of
    /// a type or an order would get arguments of another version.
    pub unsafe fn load_kernels(&self, ptx: &str) -> Result<(), Error> {
        let _entered = self.enter()?;
        self.shared.kernels.add(ptx)
    }
}

/// # Sorts, merges and set operations in a user's own order
///
/// `C` is an order with kernels in a user's crate, for items alone or with values of type `V`
/// ([`kernels_gpu::own::kernels!`]). [`Gpu::load_kernels`] has loaded these kernels. Keys are items of any type, and
/// the functions of [`workspace`](crate::workspace) for these calls end in `_by`. All else is as for the methods
/// [above](#sorts-merges-and-selections).
///
/// Capturing a sort by bits or an argsort also needs kernels of this library: [`Gpu::prepare`] loads them for `u32` and
/// `u64`.
impl Stream {
    /// Sorts `elements`. Stable: two items stay in their order if neither is before the other. O(n log n).
    ///
    /// [Keys](kernels_gpu::own::Key) with bits of 4 or 8 bytes are sorted by their bits, like numbers, if there are
    /// between 2^15 and 2^32. All other items are sorted by comparisons.
    ///
    /// An order without kernels does not compile. The message says how to name them:
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
    /// [Errors of all calls](#errors-of-all-of-them), and [`Error::Device`] if the kernels are not loaded.
    pub fn sort_by<C: Kernels<V>, V: Pod + Send + Sync>(
        &self,
        elements: impl DeviceElementsMut<C::Item, V>,
        workspace: &mut DeviceArray<u8>,
    ) -> Result<(), Error> {
        let mut call = Call::new(self);
        let at = call.writes(ITEMS, &elements)?;
        call.run::<(C, V)>(&Sort { at, indexes: false }, workspace)
    }

    /// Sorts `items` and sets `indices` to the index of each item before the sort. Stable. The previous content of
    /// `indices` is not read. O(n log n).
    ///
    /// # Errors
    /// The errors of [`sort_by`](Self::sort_by), and [`Error::TooManyKeys`] if there are more than 2^32 items and the
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

    /// Merges `a` and `b`, both sorted, into `out`, which has the length of both together. Stable: if neither of two
    /// items is before the other, the item of `a` goes first. O(n).
    ///
    /// If `a` or `b` is not sorted, `out` gets unspecified elements of both, in an unspecified order.
    ///
    /// # Errors
    /// The errors of [`sort_by`](Self::sort_by), and [`Error::LengthMismatch`] if `out` has another length.
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

    /// Solves many merge problems of one length. Problem `p` merges run `p` of `a`, of `a_len` items, with run `p` of
    /// `b`, of `d - a_len` items, into run `p` of `out`, of `d` items. Stable. O(n log d). Each problem has tiles of
    /// its own, so short problems leave most of the GPU idle.
    ///
    /// # Errors
    /// The errors of [`sort_by`](Self::sort_by), [`Error::BadBatchLength`] if `d` is 0, [`Error::BadSplit`] if `a_len`
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
    /// The errors of [`sort_by`](Self::sort_by), and [`Error::LengthMismatch`] if `out` has another number of items
    /// than both sides. [`Error::OffsetsMismatch`] if the sides have different numbers of offsets, and
    /// [`Error::LastOffset`] if the last offset of a side is not its number of items.
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
            (a, call.exact_offsets(("offsets of a", "a"), of_a, a.len)?),
            (b, call.exact_offsets(("offsets of b", "b"), of_b, b.len)?),
        ];
        let (problems, out) = (check_offset_counts(of_a.len(), of_b.len())?, call.writes(OUT, &out)?);
        check_sum(a, b, out)?;
        call.run::<(C, V)>(&Ragged { runs, problems, out }, workspace)
    }

    /// Writes the elements of `a` and `b` that `operation` keeps to `out`, and their number to `count`, which has one
    /// element. `a` and `b` are sorted, and so is the result. `out` has at least [`SetOperation::most_keys`] items;
    /// items after the result are unspecified. O(n).
    ///
    /// Items are equal if neither is before the other. Equal items may differ: the result then has the items that C++'s
    /// `std::set_union` and its siblings keep. For m equal items of `a` and n of `b`, a union has the m items of `a`,
    /// then the last n − m items of `b`. An intersection has the first min(m, n) items of `a`, and a difference the
    /// last m − n items of `a`.
    ///
    /// If `a` or `b` is not sorted, `out` gets an unspecified number of elements of both, in an unspecified order.
    ///
    /// # Errors
    /// The errors of [`sort_by`](Self::sort_by), [`Error::CapacityTooSmall`] if `out` has fewer items than the result
    /// may have, and [`Error::LengthMismatch`] if the length of `count` is not 1.
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
