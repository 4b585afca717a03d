//! Keys and values of tests.

use crate::key_order::KeyOrder;
use crate::{GpuKey, NanOrder, SortOrder};
use cuda_std::Word;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cmp::Ordering;

/// The six key types, with an order for tests.
pub(super) trait TestKey: GpuKey + Word {
    /// The standard library's total order.
    fn compare(&self, other: &Self) -> Ordering;
    /// Whether the key is a NaN, and if so, whether its sign bit is set.
    fn nan(&self) -> Option<bool>;

    /// The comparison in an order of NaNs, without an encoding. +NaNs precede -NaNs, unless the order is total.
    fn compare_with(&self, other: &Self, nans: NanOrder) -> Ordering {
        let are_first = nans == NanOrder::First;
        match [self.nan(), other.nan()] {
            [Some(a), Some(b)] if nans != NanOrder::Total => a.cmp(&b).then(self.compare(other)),
            [a, b] if nans != NanOrder::Total && a.is_some() != b.is_some() => {
                if a.is_some() == are_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            _ => self.compare(other),
        }
    }

    /// The comparison in `order`. NaNs are where `order.nans` has them in either direction.
    fn compare_in(&self, other: &Self, order: KeyOrder) -> Ordering {
        match (order.direction, order.nans) {
            (SortOrder::Ascending, nans) => self.compare_with(other, nans),
            (SortOrder::Descending, NanOrder::Total) => other.compare(self),
            (SortOrder::Descending, NanOrder::Last) => other.compare_with(self, NanOrder::First),
            (SortOrder::Descending, NanOrder::First) => other.compare_with(self, NanOrder::Last),
        }
    }
}

/// Evaluates `$work` with a wrapper of keys that have the order of NaNs `$nans`.
macro_rules! with_nans {
    ($nans:expr, $Ordered:ident => $work:expr) => {
        match $nans {
            crate::NanOrder::Total => {
                type $Ordered<K> = K;
                $work
            }
            crate::NanOrder::Last => {
                type $Ordered<K> = crate::NanLast<K>;
                $work
            }
            crate::NanOrder::First => {
                type $Ordered<K> = crate::NanFirst<K>;
                $work
            }
        }
    };
}
pub(super) use with_nans;

/// Both directions, with each order of NaNs.
pub(super) const ORDERS: [KeyOrder; 6] = {
    let mut orders = [KeyOrder::ASCENDING; 6];
    let mut i = 0;
    while i < orders.len() {
        let direction = if i.is_multiple_of(2) { SortOrder::Ascending } else { SortOrder::Descending };
        orders[i] = KeyOrder { direction, nans: NanOrder::ALL[i / 2] };
        i += 1;
    }
    orders
};

/// One of [`ORDERS`], by the seed.
pub(super) fn order_of(seed: u64) -> KeyOrder {
    ORDERS[(seed % ORDERS.len() as u64) as usize]
}

macro_rules! keys {
    ($($t:ty: $compare:ident, $nan:expr;)*) => {$(
        impl TestKey for $t {
            fn compare(&self, other: &Self) -> Ordering {
                self.$compare(other)
            }
            fn nan(&self) -> Option<bool> {
                let nan: fn(&Self) -> Option<bool> = $nan;
                nan(self)
            }
        }
    )*};
}
keys! {
    u32: cmp, |_| None;
    i32: cmp, |_| None;
    f32: total_cmp, |key| key.is_nan().then(|| key.is_sign_negative());
    u64: cmp, |_| None;
    i64: cmp, |_| None;
    f64: total_cmp, |key| key.is_nan().then(|| key.is_sign_negative());
}

/// Calls a generic test for each key type.
macro_rules! for_all_types {
    ($function:ident($($argument:expr),*)) => {{
        $function::<u32>($($argument),*);
        $function::<i32>($($argument),*);
        $function::<f32>($($argument),*);
        $function::<u64>($($argument),*);
        $function::<i64>($($argument),*);
        $function::<f64>($($argument),*);
    }};
}
pub(super) use for_all_types;

/// A seed that is new in each run. Tests name it when they fail.
pub(super) fn fresh_seed() -> u64 {
    rand::random()
}

/// The distribution of a test's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Spread evenly over all bit patterns.
    Any,
    /// Seven bit patterns.
    Few,
    /// Half of the keys are near both ends: NaNs of both signs and several payloads, infinities and the greatest
    /// numbers. Some others are zeros.
    Ends,
    /// All keys equal.
    Equal,
    /// Nested clusters: nearly half of the keys are within a five hundredth of the range, nearly half of this cluster
    /// within a five hundredth of its range, and so on.
    Nested,
    /// Spread evenly, except for 4 of 100 keys that are close together.
    Cluster,
    /// In ascending order.
    Ascending,
    /// In descending order, without equal keys.
    Descending,
    /// In five ascending runs.
    Runs,
}

impl Keys {
    /// The ordered bits of `n` keys of `width` bits.
    fn ordered(self, width: u32, n: usize, random: &mut StdRng) -> Vec<u64> {
        let mask = u64::MAX >> (64 - width);
        let few: [u64; 7] = std::array::from_fn(|_| random.random::<u64>() & mask);
        let nans = if width == 32 { (1 << 23) - 1 } else { (1 << 52) - 1 };
        let mut bits: Vec<u64> = (0..n)
            .map(|i| match self {
                Self::Few => few[random.random_range(0..7)],
                Self::Ends => match random.random_range(0..8) {
                    0 | 1 => random.random_range(0..4),
                    2 => random.random_range(nans - 2..nans + 2),
                    3 | 4 => mask - random.random_range(0..4),
                    5 => mask - random.random_range(nans - 2..nans + 2),
                    6 => (mask >> 1) + random.random_range(0..2),
                    _ => random.random::<u64>() & mask,
                },
                Self::Equal => few[0],
                Self::Nested => {
                    let (mut least, mut range) = (0, mask);
                    while range > 1 << 9 && random.random_bool(0.45) {
                        (least, range) = (least + range / 8 * 5, range >> 9);
                    }
                    least + random.random_range(0..=range)
                }
                Self::Cluster if i % 25 == 0 => few[0] & !0x7f | random.random::<u64>() & 0x7f,
                Self::Descending => ((n - i) as u64) << (width - 24) | random.random::<u64>() & mask >> 24,
                Self::Any | Self::Cluster | Self::Ascending | Self::Runs => random.random::<u64>() & mask,
            })
            .collect();
        match self {
            Self::Ascending => bits.sort_unstable(),
            Self::Runs => bits.chunks_mut(n.div_ceil(5).max(1)).for_each(<[u64]>::sort_unstable),
            _ => {}
        }
        bits
    }

    /// `n` keys of type `K`.
    pub(super) fn random<K: TestKey>(self, n: usize, seed: u64) -> Vec<K> {
        let mut random = StdRng::seed_from_u64(seed);
        let ordered = self.ordered(8 * size_of::<K>() as u32, n, &mut random);
        ordered.into_iter().map(|bits| <K as kernels_gpu::key::Key>::from_ordered(Word::from_register(bits))).collect()
    }
}

/// Bits, because a NaN is not equal to itself and -0.0 is equal to 0.0.
pub(super) fn raw_bits<K: Word>(keys: &[K]) -> Vec<u64> {
    keys.iter().map(|key| key.to_register()).collect()
}
