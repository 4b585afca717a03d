//! What comes before what: a comparison, or a coding to bits that compare as the keys do.

use bytemuck::Pod;
use core::cmp::Ordering;

/// An order of items of one type.
///
/// An item is plain data of up to 64 bytes, a multiple of 4: a `#[repr(C)]` struct that derives `bytemuck::Pod`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no order of a user's own",
    note = "implement `kernels_gpu::own::Compare` for it, or `kernels_gpu::own::Key` if some bits compare as it does"
)]
pub trait Compare: Copy + Send + Sync + 'static {
    /// What is compared.
    type Item: Pod + Send + Sync;

    /// Whether `a` comes before `b`.
    ///
    /// This is a strict weak order, as `<` is: no item is before itself; if `a` is before `b` and `b` before `c`, then `a` is before
    /// `c`; and items of which neither is before the other are equal to the same items. Where it is not, what a sort or merge gives is
    /// unspecified: some items may be missing, and others there twice.
    fn is_before(a: &Self::Item, b: &Self::Item) -> bool;

    /// Bytes of [`ordered_bits`](Self::ordered_bits): 4 or 8, or 0 if only the comparison tells the order.
    #[doc(hidden)]
    const ORDERED_BYTES: usize = 0;

    /// Bits in the order of the items, in the low [`ORDERED_BYTES`](Self::ORDERED_BYTES), by which arrays that are not short are sorted.
    #[doc(hidden)]
    fn ordered_bits(_: &Self::Item) -> u64 {
        0
    }
}

/// A key whose order is that of some bits. Keys are an [order](Compare) themselves, by these.
///
/// If the bits are 4 or 8 bytes, a sort of many keys sorts these with indices, and moves each key twice, where a sort by comparisons moves it in each
/// pass.
///
/// ```
/// use kernels_gpu::own::{Compare, Key};
///
/// /// Decimals: tens before units.
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Digits([u8; 4]);
///
/// impl Key for Digits {
///     type Bits = u32;
///     fn to_ordered(self) -> u32 {
///         u32::from_be_bytes(self.0)
///     }
/// }
///
/// assert!(Digits::is_before(&Digits([0, 0, 1, 9]), &Digits([0, 0, 2, 0])));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key of a user's own",
    note = "implement `kernels_gpu::own::Key` for it if some bits compare as it does, or `kernels_gpu::own::Compare`"
)]
pub trait Key: Pod + Send + Sync {
    /// An unsigned integer: `u32`, `u64` or `u128`.
    type Bits: Bits;

    /// Bits in the order of the keys: `a` comes before `b` exactly if `a.to_ordered() < b.to_ordered()`.
    fn to_ordered(self) -> Self::Bits;
}

/// Ordered bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the ordered bits of a key",
    note = "expected `u32`, `u64` or `u128`; keys that need more are ordered by `kernels_gpu::own::Compare`"
)]
pub trait Bits: Ord + Copy + sealed::Sealed {}

mod sealed {
    pub trait Sealed {
        /// The low 64 bits.
        fn low(self) -> u64;
    }
}

macro_rules! bits {
    ($($t:ident)*) => {$(
        impl sealed::Sealed for $t {
            #[inline(always)]
            fn low(self) -> u64 {
                self as u64
            }
        }
        impl Bits for $t {}
    )*};
}
bits!(u32 u64 u128);

/// A key is its own order.
impl<K: Key> Compare for K {
    type Item = K;

    #[inline(always)]
    fn is_before(a: &K, b: &K) -> bool {
        a.to_ordered() < b.to_ordered()
    }

    const ORDERED_BYTES: usize = if size_of::<K::Bits>() > 8 { 0 } else { size_of::<K::Bits>() };

    #[inline(always)]
    fn ordered_bits(key: &K) -> u64 {
        sealed::Sealed::low(key.to_ordered())
    }
}

/// An item that compares as an order says, so that the searches for numbers find it.
pub(super) struct Ordered<C: Compare>(pub C::Item);

impl<C: Compare> Clone for Ordered<C> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Compare> Copy for Ordered<C> {}

impl<C: Compare> PartialEq for Ordered<C> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<C: Compare> Eq for Ordered<C> {}

impl<C: Compare> PartialOrd for Ordered<C> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// One comparison instead of two.
    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        !C::is_before(&other.0, &self.0)
    }
}

impl<C: Compare> Ord for Ordered<C> {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        match (C::is_before(&self.0, &other.0), C::is_before(&other.0, &self.0)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}
