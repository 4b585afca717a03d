//! Keys and values of tests.

use crate::GpuKey;
use cuda_std::Word;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cmp::Ordering;

/// The six key types, with an order for tests.
pub(super) trait TestKey: GpuKey + Word {
    /// The standard library's total order.
    fn compare(&self, other: &Self) -> Ordering;
}

macro_rules! keys {
    ($($t:ty: $compare:ident;)*) => {$(
        impl TestKey for $t {
            fn compare(&self, other: &Self) -> Ordering {
                self.$compare(other)
            }
        }
    )*};
}
keys!(u32: cmp; i32: cmp; f32: total_cmp; u64: cmp; i64: cmp; f64: total_cmp;);

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
        let mut bits: Vec<u64> = (0..n)
            .map(|i| match self {
                Self::Few => few[random.random_range(0..7)],
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
