//! Test keys. A key depends only on the seed and its index, so that any number of threads generates the same file, in
//! any order.

use crate::coding::{Coding, Word};
use crate::spec::{Distribution, Endian, KeyType, Kind};
use merge_host::{f16, parallel};

/// Keys that a thread makes at once.
const BLOCK: usize = 1 << 16;
/// Distinct values of [`Distribution::Dups`], as a power of two.
const DUPS_BITS: u32 = 4;
/// The greatest number of [`Distribution::Zipf`].
const ZIPF_MAX: u16 = 10_000;
/// Entries of the table that maps random bits to numbers of [`Distribution::Zipf`], as a power of two.
const ZIPF_GUIDE_BITS: u32 = 14;

/// Generates the keys of one file.
#[derive(Debug)]
pub struct Generator {
    key_type: KeyType,
    count: u64,
    start: u64,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Uniform,
    Sorted,
    Reverse,
    Dups,
    Zipf(Zipf),
}

impl Generator {
    /// A generator for a file of `count` keys of this type.
    pub fn new(key_type: KeyType, distribution: Distribution, count: u64, seed: u64) -> Self {
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Sorted => Shape::Sorted,
            Distribution::Reverse => Shape::Reverse,
            Distribution::Dups => Shape::Dups,
            Distribution::Zipf => Shape::Zipf(Zipf::new(ZIPF_MAX.min(greatest_small(key_type)))),
        };
        // Without mixing, neighbouring seeds would start close to each other in the same sequence.
        Self { key_type, count, start: mix(seed), shape }
    }

    /// The type of the keys.
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// Fills `keys` with the keys from index `begin` on, encoded for ascending order.
    pub fn fill<W: Word>(&self, begin: u64, keys: &mut [W]) {
        parallel::for_each(keys.chunks_mut(BLOCK).enumerate(), |(block, keys)| {
            let begin = begin + (block * BLOCK) as u64;
            match &self.shape {
                Shape::Uniform => self.fill_positions(begin, keys, |i| self.random(i)),
                Shape::Sorted => self.fill_positions(begin, keys, |i| self.step(i)),
                Shape::Reverse => self.fill_positions(begin, keys, |i| self.step(self.count - 1 - i)),
                Shape::Dups => {
                    self.fill_positions(begin, keys, |i| self.random(i) >> (64 - DUPS_BITS) << (64 - DUPS_BITS));
                }
                Shape::Zipf(zipf) => {
                    for (key, index) in keys.iter_mut().zip(begin..) {
                        *key = small(self.key_type, zipf.number(self.random(index)));
                    }
                }
            }
        });
    }

    /// Fills `keys` by the positions of their indices. A position in 0..2^64 maps linearly to the range of the type:
    /// all integers, or [-1, 1) for floating point.
    fn fill_positions<W: Word>(&self, begin: u64, keys: &mut [W], position: impl Fn(u64) -> u64) {
        let indices = keys.iter_mut().zip(begin..);
        if self.key_type.kind() == Kind::Float {
            indices.for_each(|(key, index)| *key = float_at(self.key_type, position(index)));
        } else {
            // The least encoded integer is 0.
            indices.for_each(|(key, index)| *key = integer_at(position(index)));
        }
    }

    /// The number at `index` of SplitMix64's sequence.
    fn random(&self, index: u64) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        mix(self.start.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// A position that ascends with `index`: 0..2^64 is divided into one step for each key, of equal widths. A key gets
    /// a random position in its step.
    fn step(&self, index: u64) -> u64 {
        let width = (u64::MAX / self.count).max(1);
        let offset = (u128::from(self.random(index)) * u128::from(width)) >> 64;
        index * width + offset as u64
    }
}

/// The encoded integer at a position. It does not decrease with the position.
fn integer_at<W: Word>(position: u64) -> W {
    // The position twice, for types of more than 64 bits.
    let bits = u128::from(position) << 64 | u128::from(position);
    W::truncate(bits >> (128 - 8 * W::SIZE))
}

/// The encoded float at a position. It does not decrease with the position.
fn float_at<W: Word>(key_type: KeyType, position: u64) -> W {
    // Only the bits that the mantissa holds exactly, so that rounding never reaches 1.
    let bits = mantissa_digits(key_type);
    let half = 1i64 << (bits - 1);
    encoded_float(key_type, ((position >> (64 - bits)) as i64 - half) as f64 / half as f64)
}

/// The encoded key with this value, which is at most [`greatest_small`].
fn small<W: Word>(key_type: KeyType, number: u16) -> W {
    match key_type.kind() {
        Kind::Unsigned => W::truncate(number.into()),
        Kind::Signed => W::truncate(W::TOP_BIT.widen() | u128::from(number)),
        Kind::Float => encoded_float(key_type, number.into()),
    }
}

/// The greatest n so that the type represents all integers from 0 to n, at most `u16::MAX`.
fn greatest_small(key_type: KeyType) -> u16 {
    match key_type {
        KeyType::U8 => u8::MAX.into(),
        KeyType::I8 => i8::MAX as u16,
        KeyType::I16 => i16::MAX as u16,
        KeyType::F16 | KeyType::Bf16 => 1 << mantissa_digits(key_type),
        _ => u16::MAX,
    }
}

fn mantissa_digits(key_type: KeyType) -> u32 {
    match key_type {
        KeyType::F16 => f16::MANTISSA_DIGITS,
        KeyType::Bf16 => 8,
        KeyType::F32 => f32::MANTISSA_DIGITS,
        _ => f64::MANTISSA_DIGITS,
    }
}

fn encoded_float<W: Word>(key_type: KeyType, number: f64) -> W {
    let bits: u128 = match key_type {
        KeyType::F16 => f16::from_f64(number).to_bits().into(),
        // Every number here has at most 8 digits, so that nothing is rounded.
        KeyType::Bf16 => u128::from((number as f32).to_bits() >> 16),
        KeyType::F32 => (number as f32).to_bits().into(),
        _ => number.to_bits().into(),
    };
    let mut key = W::truncate(bits);
    Coding::total(key_type, Endian::Little).encode(std::slice::from_mut(&mut key));
    key
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014): a bijective scrambling of 64 bits.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws k from 1 to a greatest number with a probability proportional to 1/k.
///
/// Uses integers only, because logarithms and powers differ in the last bit between machines.
#[derive(Debug)]
struct Zipf {
    /// Entry k - 1 is the end of the interval of k. The intervals divide 0..2^64 without gaps.
    ends: Vec<u64>,
    /// For the top bits of a position, the first k - 1 whose interval may contain the position. The search from there
    /// takes one or two steps.
    guide: Vec<u16>,
}

impl Zipf {
    fn new(most: u16) -> Self {
        let weight = |k: u16| (1u64 << 48) / u64::from(k);
        let total: u64 = (1..=most).map(weight).sum();
        let mut sum = 0;
        let ends = (1..=most).map(|k| {
            sum += weight(k);
            ((u128::from(sum) << 64) / u128::from(total)).min(u64::MAX.into()) as u64
        });
        let ends: Vec<u64> = ends.collect();
        let guide = (0..1u64 << ZIPF_GUIDE_BITS).map(|top| {
            let position = top << (64 - ZIPF_GUIDE_BITS);
            ends.partition_point(|&end| end <= position) as u16
        });
        Self { guide: guide.collect(), ends }
    }

    fn number(&self, position: u64) -> u16 {
        let mut k = self.guide[(position >> (64 - ZIPF_GUIDE_BITS)) as usize];
        // The last interval needs no end: 2^64 does not fit in a u64.
        while usize::from(k) + 1 < self.ends.len() && self.ends[usize::from(k)] <= position {
            k += 1;
        }
        k + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys as their type's bits.
    fn generate<W: Word>(key_type: KeyType, distribution: Distribution, count: u64, seed: u64) -> Vec<W> {
        let mut keys = vec![W::ZERO; count as usize];
        Generator::new(key_type, distribution, count, seed).fill(0, &mut keys);
        decoded(key_type, keys)
    }

    fn decoded<W: Word>(key_type: KeyType, mut keys: Vec<W>) -> Vec<W> {
        Coding::total(key_type, Endian::Little).decode(&mut keys);
        keys
    }

    #[test]
    fn parts_make_the_same_file_as_the_whole() {
        for distribution in [Distribution::Uniform, Distribution::Sorted, Distribution::Reverse, Distribution::Zipf] {
            let whole = generate::<u64>(KeyType::U64, distribution, 200_000, 7);
            let generator = Generator::new(KeyType::U64, distribution, 200_000, 7);
            let mut parts = vec![0u64; 200_000];
            for (i, part) in parts.chunks_mut(77_777).enumerate() {
                generator.fill(i as u64 * 77_777, part);
            }
            assert_eq!(whole, parts);
        }
    }

    #[test]
    fn the_first_keys_never_change() {
        // Every version of this program generates the same file.
        const UNIFORM: [u64; 2] = [13830413928045401970, 6869446166584666695];
        const ZIPF: [u32; 8] = [864, 21, 41, 6382, 4, 191, 49, 3];
        assert_eq!(generate::<u64>(KeyType::U64, Distribution::Uniform, 2, 1), UNIFORM);
        assert_eq!(generate::<u32>(KeyType::U32, Distribution::Zipf, 8, 1), ZIPF);
    }

    #[test]
    fn sorted_is_reverse_backwards_up_to_the_largest_counts() {
        for count in [1, 2, 3, 1000, 65_537] {
            let sorted = generate::<u64>(KeyType::I64, Distribution::Sorted, count, 3);
            assert!(sorted.is_sorted_by_key(|key| *key as i64), "{count}");
            let mut reverse = generate::<u64>(KeyType::I64, Distribution::Reverse, count, 3);
            reverse.reverse();
            assert_eq!(sorted, reverse);
        }
        let generator = Generator::new(KeyType::U64, Distribution::Sorted, u64::MAX, 3);
        let mut last = [0u64; 4];
        generator.fill(u64::MAX - 4, &mut last);
        assert!(last.is_sorted());
    }

    #[test]
    fn positions_are_spread_over_the_range_of_each_type() {
        let integer = |key_type, position| decoded(key_type, vec![integer_at::<u8>(position)])[0] as i8;
        assert_eq!((integer(KeyType::I8, 0), integer(KeyType::I8, u64::MAX)), (i8::MIN, i8::MAX));
        assert_eq!((integer_at::<u64>(0), integer_at::<u64>(u64::MAX)), (0, u64::MAX));
        assert_eq!((integer_at::<u128>(0), integer_at::<u128>(u64::MAX)), (0, u128::MAX));
        let f64_at = |position| f64::from_bits(decoded(KeyType::F64, vec![float_at::<u64>(KeyType::F64, position)])[0]);
        let f32_at = |position| f32::from_bits(decoded(KeyType::F32, vec![float_at::<u32>(KeyType::F32, position)])[0]);
        let f16_at = |position| f16::from_bits(decoded(KeyType::F16, vec![float_at::<u16>(KeyType::F16, position)])[0]);
        assert_eq!((f16_at(0).to_f32(), f32_at(0), f64_at(0)), (-1.0, -1.0, -1.0));
        assert!(f16_at(u64::MAX).to_f32() < 1.0 && f32_at(u64::MAX) < 1.0 && f64_at(u64::MAX) < 1.0);
        assert_eq!((f16_at(1 << 63).to_bits(), f32_at(1 << 63).to_bits(), f64_at(1 << 63).to_bits()), (0, 0, 0));
    }

    #[test]
    fn small_numbers_are_what_every_type_has_all_of() {
        let most = [KeyType::U8, KeyType::I8, KeyType::U16, KeyType::I16, KeyType::F16, KeyType::F32, KeyType::U128];
        assert_eq!(most.map(greatest_small), [255, 127, 65535, 32767, 2048, 65535, 65535]);
        let f16_of = |k| f16::from_bits(decoded(KeyType::F16, vec![small::<u16>(KeyType::F16, k)])[0]).to_f32();
        assert!((1..=2048).all(|k| f16_of(k) == f32::from(k)));
        let keys = generate::<u8>(KeyType::I8, Distribution::Zipf, 100_000, 5);
        assert_eq!((keys.iter().min(), keys.iter().max()), (Some(&1), Some(&127)));
    }

    #[test]
    fn zipf_has_the_probabilities_it_promises() {
        let zipf = Zipf::new(ZIPF_MAX);
        assert_eq!((zipf.number(0), zipf.number(u64::MAX)), (1, ZIPF_MAX));
        let count = 1 << 20;
        let keys = generate::<u32>(KeyType::U32, Distribution::Zipf, count, 5);
        let harmonic: f64 = (1..=ZIPF_MAX).map(|k| 1.0 / f64::from(k)).sum();
        for k in [1u32, 2, 3, 10] {
            let expected = count as f64 / f64::from(k) / harmonic;
            let found = keys.iter().filter(|&&key| key == k).count() as f64;
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{k}: {found}, expected {expected}");
        }
    }
}
