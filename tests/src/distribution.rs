//! The keys of benchmarks of sorts.
//!
//! `cargo bench`, the table of `gpu_test` and `benches/peers/peers.cu` sort the same arrays, bit for bit. Key i depends
//! only on i and the number of keys. So any number of threads makes the same array, on any machine. Every operation is
//! exact or rounded as IEEE 754 specifies. `tests/tests/distribution.rs` has the digests of the programs in both
//! languages.

use merge_host::{Key, parallel};

/// The distribution of the keys of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Random bits.
    Uniform,
    /// Floats from 0 to 1, uniform.
    Unit,
    /// Floats that are about normal, with mean 0 and variance 1: the sum of 12 uniform numbers, minus 6.
    Normal,
    /// Random bits, each 1 with a probability of 1/4: two random words ANDed.
    And2,
    /// Three random words ANDed.
    And3,
    /// Four random words ANDed.
    And4,
    /// Numbers k from 1 to 2^28 - 1 with a probability about proportional to 1/k: half of the keys are below 2^14.
    Zipf,
    /// Random keys with sixteen distinct values.
    Dups16,
    /// Equal keys.
    Equal,
    /// Ascending.
    Sorted,
    /// Descending.
    Reversed,
    /// Eight ascending runs of equal length.
    EightRuns,
    /// Ascending except for every 1000th key, which is random.
    NearlySorted,
    /// Each key at most 1000 places from its place in the sorted array.
    Displaced,
}

/// The number of keys that a thread makes at a time.
const BLOCK: usize = 1 << 16;

/// The seed of the first random word of a key. That of the next word is one greater, and so on.
const SEED: u64 = 7;

impl Distribution {
    /// The distributions of integers.
    pub const OF_INTEGERS: [Self; 12] = [
        Self::Uniform,
        Self::And2,
        Self::And3,
        Self::And4,
        Self::Zipf,
        Self::Dups16,
        Self::Equal,
        Self::Sorted,
        Self::Reversed,
        Self::EightRuns,
        Self::NearlySorted,
        Self::Displaced,
    ];

    /// The distributions of `f32` and `f64`.
    pub const OF_FLOATS: [Self; 2] = [Self::Unit, Self::Normal];

    /// The name in the output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Unit => "unit",
            Self::Normal => "normal",
            Self::And2 => "and2",
            Self::And3 => "and3",
            Self::And4 => "and4",
            Self::Zipf => "zipf",
            Self::Dups16 => "dups16",
            Self::Equal => "equal",
            Self::Sorted => "sorted",
            Self::Reversed => "reversed",
            Self::EightRuns => "8-runs",
            Self::NearlySorted => "nearly-sorted",
            Self::Displaced => "displaced",
        }
    }

    /// Key `i` of `n`.
    ///
    /// # Panics
    /// Panics if the distribution is for floats and `K` does not have 4 or 8 bytes.
    #[inline]
    pub fn key<K: Key>(self, i: u64, n: u64) -> K {
        let word = |index: u64| random(i, SEED + index);
        key(match self {
            Self::Uniform => word(0),
            Self::Unit => match size_of::<K>() {
                4 => ((word(0) >> 40) as f32 / (1u64 << 24) as f32).to_bits().into(),
                8 => ((word(0) >> 11) as f64 / (1u64 << 53) as f64).to_bits(),
                bytes => panic!("no floats of {bytes} bytes"),
            },
            Self::Normal => {
                let sum = (0..12).map(|index| (word(index) >> 12) as i64).sum::<i64>() - (6 << 52);
                match size_of::<K>() {
                    4 => (sum as f32 / (1u64 << 52) as f32).to_bits().into(),
                    8 => (sum as f64 / (1u64 << 52) as f64).to_bits(),
                    bytes => panic!("no floats of {bytes} bytes"),
                }
            }
            Self::And2 => word(0) & word(1),
            Self::And3 => word(0) & word(1) & word(2),
            Self::And4 => word(0) & word(1) & word(2) & word(3),
            Self::Zipf => {
                let power = 1 << (word(0) % 28);
                power | word(1) & (power - 1)
            }
            Self::Dups16 => word(0) & 15,
            Self::Equal => 7,
            Self::NearlySorted if i.is_multiple_of(1000) => word(0),
            Self::Sorted | Self::NearlySorted => i,
            Self::Displaced => i + word(0) % 1000,
            Self::Reversed => n - 1 - i,
            Self::EightRuns => i % n.div_ceil(8) * 8,
        })
    }

    /// `n` keys, computed on all cores.
    ///
    /// # Panics
    /// Panics as [`key`](Self::key) does.
    pub fn keys<K: Key>(self, n: usize) -> Vec<K> {
        let mut keys = bytemuck::allocation::zeroed_vec(n);
        parallel::for_each(keys.chunks_mut(BLOCK).enumerate(), |(block, keys)| {
            for (key, i) in keys.iter_mut().zip((block * BLOCK) as u64..) {
                *key = self.key(i, n as u64);
            }
        });
        keys
    }
}

/// The number of keys in a digest.
pub const DIGEST_KEYS: usize = 1 << 16;

/// A checksum that shows whether two programs sort the same keys, of up to 8 bytes. It is the sum of (2i + 1) times the
/// bits of key i, modulo 2^64, over the first [`DIGEST_KEYS`] keys.
pub fn digest<K: Key>(keys: &[K]) -> u64 {
    keys.iter().take(DIGEST_KEYS).zip(0..).fold(0, |sum: u64, (key, i)| {
        let mut bits = [0; 8];
        bits[..size_of::<K>()].copy_from_slice(bytemuck::bytes_of(key));
        sum.wrapping_add(u64::from_le_bytes(bits).wrapping_mul(2 * i + 1))
    })
}

/// Random word `i`: SplitMix64 (Steele, Lea and Flood, 2014).
#[inline]
pub fn random(i: u64, seed: u64) -> u64 {
    mix(seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The output function of SplitMix64.
#[inline]
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The key with the least significant bits of `bits`. A key of 16 bytes has all bits twice.
#[inline]
pub fn key<K: Key>(bits: u64) -> K {
    let bits = u128::from(bits) << 64 | u128::from(bits);
    bytemuck::pod_read_unaligned(&bits.to_le_bytes()[..size_of::<K>()])
}
