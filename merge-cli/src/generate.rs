//! Test keys: the key at an index is computed from the seed and that index alone, so that any number of threads makes
//! the same file, in any order.

use crate::args::Distribution;
use crate::key_type::FileKey;
use rayon::prelude::*;

/// Keys that a thread makes at once.
const PIECE: usize = 1 << 16;
/// Distinct values of [`Distribution::Dups`], as a power of two.
const DUPS_BITS: u32 = 4;
/// The greatest number of [`Distribution::Zipf`].
const ZIPF_MAX: u16 = 10_000;
/// Entries of the table that leads from random bits to a number of [`Distribution::Zipf`], as a power of two.
const ZIPF_GUIDE_BITS: u32 = 14;

/// Makes the keys of one file.
#[derive(Debug)]
pub struct Generator {
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
    /// For a file of `count` keys of type `K`.
    pub fn new<K: FileKey>(distribution: Distribution, count: u64, seed: u64) -> Self {
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Sorted => Shape::Sorted,
            Distribution::Reverse => Shape::Reverse,
            Distribution::Dups => Shape::Dups,
            Distribution::Zipf => Shape::Zipf(Zipf::new(ZIPF_MAX.min(K::MOST_SMALL))),
        };
        // Neighbouring seeds would otherwise start close to each other on the same sequence.
        Self { count, start: mix(seed), shape }
    }

    /// Fills `keys` with those from index `begin` on.
    pub fn fill<K: FileKey>(&self, begin: u64, keys: &mut [K]) {
        keys.par_chunks_mut(PIECE).enumerate().for_each(|(piece, keys)| {
            let begin = begin + (piece * PIECE) as u64;
            match &self.shape {
                Shape::Uniform => self.fill_piece(begin, keys, |i| K::from_position(self.random(i))),
                Shape::Sorted => self.fill_piece(begin, keys, |i| K::from_position(self.step(i))),
                Shape::Reverse => self.fill_piece(begin, keys, |i| K::from_position(self.step(self.count - 1 - i))),
                Shape::Dups => self.fill_piece(begin, keys, |i| {
                    K::from_position(self.random(i) >> (64 - DUPS_BITS) << (64 - DUPS_BITS))
                }),
                Shape::Zipf(zipf) => self.fill_piece(begin, keys, |i| K::from_small(zipf.number(self.random(i)))),
            }
        });
    }

    fn fill_piece<K>(&self, begin: u64, keys: &mut [K], key: impl Fn(u64) -> K) {
        keys.iter_mut().zip(begin..).for_each(|(slot, index)| *slot = key(index));
    }

    /// SplitMix64's number `index`.
    fn random(&self, index: u64) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        mix(self.start.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// A position that ascends with `index`: 0..2^64 is cut into as many equal steps as there are keys, and each key
    /// gets a random place on its own step.
    fn step(&self, index: u64) -> u64 {
        let width = (u64::MAX / self.count).max(1);
        let place = (u128::from(self.random(index)) * u128::from(width)) >> 64;
        index * width + place as u64
    }
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014): a one-to-one scrambling of 64 bits.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws k from 1 to a greatest number with a probability proportional to 1/k.
///
/// All in integers: logarithms and powers differ in the last bit between machines.
#[derive(Debug)]
struct Zipf {
    /// At k - 1, the end of the part of 0..2^64 that belongs to k. The parts follow each other.
    ends: Vec<u64>,
    /// For the top bits of a position, the first k - 1 whose part may hold it: the search from there takes a step or two.
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
        // The last part has no end, as 2^64 is no u64.
        while usize::from(k) + 1 < self.ends.len() && self.ends[usize::from(k)] <= position {
            k += 1;
        }
        k + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merge_host::f16;

    fn generate<K: FileKey>(distribution: Distribution, count: u64, seed: u64) -> Vec<K> {
        let mut keys = vec![K::from_small(0); count as usize];
        Generator::new::<K>(distribution, count, seed).fill(0, &mut keys);
        keys
    }

    #[test]
    fn parts_make_the_same_file_as_the_whole() {
        for distribution in [Distribution::Uniform, Distribution::Sorted, Distribution::Reverse, Distribution::Zipf] {
            let whole = generate::<u64>(distribution, 200_000, 7);
            let generator = Generator::new::<u64>(distribution, 200_000, 7);
            let mut parts = vec![0; 200_000];
            for (i, part) in parts.chunks_mut(77_777).enumerate() {
                generator.fill(i as u64 * 77_777, part);
            }
            assert_eq!(whole, parts);
        }
    }

    #[test]
    fn the_first_keys_never_change() {
        // A file made by one version of this program is the same when another makes it.
        const UNIFORM: [u64; 2] = [13830413928045401970, 6869446166584666695];
        const ZIPF: [u32; 8] = [864, 21, 41, 6382, 4, 191, 49, 3];
        assert_eq!(generate::<u64>(Distribution::Uniform, 2, 1), UNIFORM);
        assert_eq!(generate::<u32>(Distribution::Zipf, 8, 1), ZIPF);
    }

    #[test]
    fn sorted_is_reverse_backwards_up_to_the_largest_counts() {
        for count in [1, 2, 3, 1000, 65_537] {
            let sorted = generate::<i64>(Distribution::Sorted, count, 3);
            assert!(sorted.is_sorted(), "{count}");
            let mut reverse = generate::<i64>(Distribution::Reverse, count, 3);
            reverse.reverse();
            assert_eq!(sorted, reverse);
        }
        let generator = Generator::new::<u64>(Distribution::Sorted, u64::MAX, 3);
        let mut last = [0u64; 4];
        generator.fill(u64::MAX - 4, &mut last);
        assert!(last.is_sorted());
    }

    #[test]
    fn floats_are_finite_and_between_minus_one_and_one() {
        assert_eq!((f32::from_position(0), f64::from_position(0)), (-1.0, -1.0));
        assert!(f32::from_position(u64::MAX) < 1.0 && f64::from_position(u64::MAX) < 1.0);
        assert_eq!(f32::from_position(1 << 63).to_bits(), 0);
        assert_eq!((i32::from_position(0), i32::from_position(u64::MAX)), (i32::MIN, i32::MAX));
        assert_eq!((u64::from_position(0), u64::from_position(u64::MAX)), (0, u64::MAX));
        assert_eq!((u128::from_position(0), u128::from_position(u64::MAX)), (0, u128::MAX));
        assert_eq!((i8::from_position(0), i8::from_position(u64::MAX)), (i8::MIN, i8::MAX));
        assert_eq!((f16::from_position(0).to_f32(), f16::from_position(1 << 63).to_bits()), (-1.0, 0));
        assert!(f16::from_position(u64::MAX).to_f32() < 1.0);
    }

    #[test]
    fn small_numbers_are_what_every_type_has_all_of() {
        fn most<K: FileKey>() -> String {
            K::from_small(K::MOST_SMALL).to_string()
        }
        let found =
            [most::<u8>(), most::<i8>(), most::<u16>(), most::<i16>(), most::<f16>(), most::<f32>(), most::<u128>()];
        assert_eq!(found, ["255", "127", "65535", "32767", "2048", "65535", "65535"]);
        assert!((1..=2048).all(|k| f16::from_small(k).to_f32() == f32::from(k)));
        let keys = generate::<i8>(Distribution::Zipf, 100_000, 5);
        assert_eq!((keys.iter().min(), keys.iter().max()), (Some(&1), Some(&127)));
    }

    #[test]
    fn zipf_has_the_probabilities_it_promises() {
        let zipf = Zipf::new(ZIPF_MAX);
        assert_eq!((zipf.number(0), zipf.number(u64::MAX)), (1, ZIPF_MAX));
        let count = 1 << 20;
        let keys = generate::<u32>(Distribution::Zipf, count, 5);
        let harmonic: f64 = (1..=ZIPF_MAX).map(|k| 1.0 / f64::from(k)).sum();
        for k in [1u32, 2, 3, 10] {
            let expected = count as f64 / f64::from(k) / harmonic;
            let found = keys.iter().filter(|&&key| key == k).count() as f64;
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{k}: {found}, expected {expected}");
        }
    }
}
