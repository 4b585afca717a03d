//! The order of keys that a call asks for, at run time.

use crate::key::sealed::Bits;
use crate::{Key, NanOrder, SortOrder};
#[cfg(feature = "gpu")]
use kernels_gpu::key::Coding;

/// The order of keys: the order of their type or its reverse, and where NaNs lie in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyOrder {
    /// The order of the keys' type, or its reverse.
    pub direction: SortOrder,
    /// Where NaNs lie in it.
    pub nans: NanOrder,
}

impl KeyOrder {
    /// The order of the keys' type.
    pub const ASCENDING: Self = Self { direction: SortOrder::Ascending, nans: NanOrder::Total };

    /// Encodes a key as ordered bits of this order, without a branch that depends on the order: a loop over keys need
    /// not be compiled once for each.
    #[inline(always)]
    pub fn encode<K: Key>(self, key: K) -> K::Bits {
        (key.to_ordered() ^ self.inverted::<K>()).plus(self.rotation::<K>())
    }

    /// Decodes a key: the inverse of [`encode`](Self::encode).
    #[inline(always)]
    pub fn decode<K: Key>(self, bits: K::Bits) -> K {
        K::from_ordered(bits.minus(self.rotation::<K>()) ^ self.inverted::<K>())
    }

    /// The bits that the direction inverts.
    #[inline(always)]
    fn inverted<K: Key>(self) -> K::Bits {
        let none = K::Bits::narrowed(0);
        match self.direction {
            SortOrder::Ascending => none,
            SortOrder::Descending => !none,
        }
    }

    /// The number that moves NaNs from their place in the order of `K`, or in its reverse, to their place in this
    /// order.
    #[inline(always)]
    fn rotation<K: Key>(self) -> K::Bits {
        let own = match self.direction {
            SortOrder::Ascending => K::NAN_ORDER,
            SortOrder::Descending => K::NAN_ORDER.reversed(),
        };
        match self.nans {
            NanOrder::Total => K::Bits::narrowed(0),
            nans => nans.rotation::<K>().minus(own.rotation::<K>()),
        }
    }

    /// Whether this is the order of `K` or its reverse.
    #[inline(always)]
    pub fn keeps_nans<K: Key>(self) -> bool {
        K::NANS == 0 || self.nans == NanOrder::Total
    }

    /// Whether [`encode`](Self::encode) only inverts bits, the same bits of all keys of one sign.
    #[inline(always)]
    pub fn inverts_bits<K: Key>(self) -> bool {
        inverts_bits::<K>() && self.keeps_nans::<K>()
    }

    /// Whether this is the order of `K`.
    #[inline(always)]
    pub fn is_of<K: Key>(self) -> bool {
        self.direction == SortOrder::Ascending && self.keeps_nans::<K>()
    }

    /// The coding of keys for kernels.
    #[cfg(feature = "gpu")]
    pub fn coding<K: Key>(self) -> Coding<K::OnGpu> {
        let coding = match self.direction {
            SortOrder::Ascending => K::gpu_coding(),
            SortOrder::Descending => K::gpu_coding().reversed(),
        };
        match self.nans {
            NanOrder::Total => coding,
            NanOrder::Last => coding.with_nans_last(),
            NanOrder::First => coding.with_nans_first(),
        }
    }
}

/// Whether the ordered bits of all keys of one sign differ from the keys' bits in the same bits.
pub(crate) const fn inverts_bits<K: Key>() -> bool {
    K::NANS == 0 || matches!(K::NAN_ORDER, NanOrder::Total)
}

impl From<SortOrder> for KeyOrder {
    fn from(direction: SortOrder) -> Self {
        Self { direction, ..Self::default() }
    }
}
