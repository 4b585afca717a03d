//! User-defined orders: by a comparison, or by bits that compare like the keys.

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
    /// The type of the items.
    type Item: Pod + Send + Sync;

    /// Whether `a` comes before `b`.
    ///
    /// A strict weak order, like `<`: no item is before itself, and the relation is transitive. Two items are equal if
    /// neither is before the other, and this equality is transitive, too. Otherwise the result of a sort or merge is
    /// unspecified: items may be missing or duplicated.
    fn is_before(a: &Self::Item, b: &Self::Item) -> bool;

    /// Bytes of [`ordered_bits`](Self::ordered_bits): 4 or 8, or 0 if the order is defined by the comparison only.
    #[doc(hidden)]
    const ORDERED_BYTES: usize = 0;

    /// Bits in the order of the items, in the low [`ORDERED_BYTES`](Self::ORDERED_BYTES) bytes. Longer arrays are
    /// sorted by them.
    #[doc(hidden)]
    fn ordered_bits(_: &Self::Item) -> u64 {
        0
    }
}

/// A key that some bits order. Keys are an [order](Compare) themselves, by these bits.
///
/// If the bits have 4 or 8 bytes, a sort of many keys sorts the bits with indices and moves each key twice. A sort by
/// comparisons moves each key in every pass.
///
/// ```
/// use kernels_gpu::own::{Compare, Key};
///
/// /// Decimal digits, the most significant first.
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

/// An item that compares by an order, for the generic searches.
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

    /// One call of `is_before` instead of two.
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
