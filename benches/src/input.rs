//! Inputs: the same ones for both engines, and for `peers.cu`, which makes them by the same rules.
//!
//! Word `i` of a seed is SplitMix64 (Steele, Lea and Flood, 2014) of its place, `mix(seed + i * 0x9e3779b97f4a7c15)`. An
//! integer key is the low bits of a word, a float the high 53 bits of it times 2^-53, so 0 <= key < 1.
//!
//! | keys of | seeds | |
//! | --- | --- | --- |
//! | merge | A 11, B 22 | sorted |
//! | sort | 7 | |
//! | batch, ragged | A 5, B 6 | each run sorted |
//! | lengths, ragged | A 31, B 32 | of run `p`: word `p` modulo 101, as long as there are keys; after that 0 |
//!
//! Values are places: 0, 1, … in A, and on from there in B. So a result is stable exactly if, where keys are equal, values
//! ascend.

use crate::{Case, Failure, Op};
use merge_host::{Engine, Key};

/// How the keys lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Random words on both sides.
    Uniform,
    /// All of A before all of B.
    ABeforeB,
    /// A key of A, a key of B, and so on.
    Alternating,
    /// Sixteen different keys.
    Dups16,
    /// Random words, a thousand times as many in B as in A.
    Skewed,
    /// Sorted already. Only for a sort.
    Sorted,
}

impl Distribution {
    /// Those of merges.
    pub const OF_MERGES: [Self; 5] = [Self::Uniform, Self::ABeforeB, Self::Alternating, Self::Dups16, Self::Skewed];

    /// Its name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::ABeforeB => "a-before-b",
            Self::Alternating => "alternating",
            Self::Dups16 => "dups16",
            Self::Skewed => "skewed",
            Self::Sorted => "sorted",
        }
    }
}

/// Keys of one side, with where its runs begin if it is ragged.
#[derive(Clone, Debug, PartialEq)]
pub struct Side<K> {
    /// The keys.
    pub keys: Vec<K>,
    /// One more than there are runs, or empty.
    pub offsets: Vec<usize>,
}

/// What a case works on. A sort has only A.
#[derive(Clone, Debug, PartialEq)]
pub struct Input<K> {
    /// The side whose keys go first where they are equal.
    pub a: Side<K>,
    /// The other side.
    pub b: Side<K>,
}

impl<K: Key> Input<K> {
    /// The input of a case, except that keys are in the order in which they are made.
    pub fn unsorted(case: Case) -> Self {
        let plain = |keys| Side { keys, offsets: Vec::new() };
        match case.op {
            Op::Merge(_) => {
                let m = if case.distribution == Distribution::Skewed { case.n / 1001 } else { case.n / 2 };
                let (mut a, mut b) = (Vec::new(), Vec::new());
                for (side, len, keys) in [(0, m, &mut a), (1, case.n - m, &mut b)] {
                    let seed = [11, 22][side as usize];
                    *keys = match case.distribution {
                        Distribution::ABeforeB => made(len, |i| low_bits(i + side * m as u64)),
                        Distribution::Alternating => made(len, |i| low_bits(2 * i + side)),
                        Distribution::Dups16 => made(len, |i| number(word(seed, i) & 15)),
                        _ => made(len, |i| key(word(seed, i))),
                    };
                }
                Self { a: plain(a), b: plain(b) }
            }
            Op::Batch { d, .. } => {
                let (pairs, a_len) = (case.n / d, d / 2);
                let runs = |seed, len: usize| {
                    let mut keys = made(pairs * len, |i| key(word(seed, i)));
                    sort_runs(&mut keys, pairs, |run| run * len);
                    plain(keys)
                };
                Self { a: runs(5, a_len), b: runs(6, d - a_len) }
            }
            Op::Ragged => {
                let (mut a, mut b) = (lengths(31, case.n / 2), lengths(32, case.n - case.n / 2));
                let runs = a.len().max(b.len());
                a.resize(runs, case.n / 2);
                b.resize(runs, case.n - case.n / 2);
                Self { a: ragged(5, a), b: ragged(6, b) }
            }
            Op::Sort => {
                let keys = match case.distribution {
                    Distribution::Dups16 => made(case.n, |i| number(word(7, i) & 15)),
                    _ => made(case.n, |i| key(word(7, i))),
                };
                Self { a: plain(keys), b: plain(Vec::new()) }
            }
        }
    }

    /// The input of a case.
    ///
    /// # Errors
    /// Those of the engine, which is asked to sort.
    pub fn new(case: Case, engine: &Engine) -> Result<Self, Failure> {
        let mut input = Self::unsorted(case);
        if to_be_sorted(case) {
            engine.sort(&mut input.a.keys)?;
            engine.sort(&mut input.b.keys)?;
        }
        Ok(input)
    }
}

/// Whether the keys of [`Input::unsorted`] have to be sorted to be what the case wants. Those of batches are made sorted.
pub fn to_be_sorted(case: Case) -> bool {
    match case.op {
        Op::Merge(_) => true,
        Op::Sort => case.distribution == Distribution::Sorted,
        Op::Batch { .. } | Op::Ragged => false,
    }
}

/// SplitMix64's finaliser.
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Word `i` of a seed.
pub fn word(seed: u64, i: u64) -> u64 {
    mix(seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// `n` elements, element `i` of which is `f(i)`, made by all cores.
pub fn made<T: bytemuck::Pod + Send>(n: usize, f: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let mut all = vec![T::zeroed(); n];
    let part = n.div_ceil(cores()).max(1 << 16);
    std::thread::scope(|scope| {
        for (p, part_of_all) in all.chunks_mut(part).enumerate() {
            let f = &f;
            scope.spawn(move || {
                part_of_all.iter_mut().zip((p * part) as u64..).for_each(|(element, i)| *element = f(i));
            });
        }
    });
    all
}

/// What `f` makes of each of as many ranges as there are cores, which together are `0..n`.
pub(crate) fn in_parts<R: Send>(n: usize, f: impl Fn(std::ops::Range<usize>) -> R + Sync) -> Vec<R> {
    let part = n.div_ceil(cores()).max(1 << 16);
    std::thread::scope(|scope| {
        let f = &f;
        let parts: Vec<_> =
            (0..n).step_by(part).map(|start| scope.spawn(move || f(start..n.min(start + part)))).collect();
        parts.into_iter().map(|part| part.join().expect("no part panics")).collect()
    })
}

fn is_float<K: Key>() -> bool {
    K::NAME.starts_with('f')
}

/// The element whose bits are the low ones of these.
pub(crate) fn low_bits<K: bytemuck::Pod>(bits: u64) -> K {
    bytemuck::pod_read_unaligned(&bits.to_le_bytes()[..size_of::<K>()])
}

/// The key that is this number.
fn number<K: Key>(number: u64) -> K {
    match (is_float::<K>(), size_of::<K>()) {
        (false, _) => low_bits(number),
        (true, 4) => low_bits(u64::from((number as f32).to_bits())),
        (true, _) => low_bits((number as f64).to_bits()),
    }
}

/// A key of a random word.
fn key<K: Key>(word: u64) -> K {
    const ULP: f64 = 1.0 / (1u64 << 53) as f64;
    match (is_float::<K>(), size_of::<K>()) {
        (false, _) => low_bits(word),
        (true, 4) => low_bits(u64::from(((word >> 11) as f32 * ULP as f32).to_bits())),
        (true, _) => low_bits(((word >> 11) as f64 * ULP).to_bits()),
    }
}

/// Where runs of random lengths begin, and where the last one ends.
fn lengths(seed: u64, keys: usize) -> Vec<usize> {
    let (mut offsets, mut end, mut run) = (vec![0], 0, 0);
    while end < keys {
        end = (end + (word(seed, run) % 101) as usize).min(keys);
        offsets.push(end);
        run += 1;
    }
    offsets
}

fn ragged<K: Key>(seed: u64, offsets: Vec<usize>) -> Side<K> {
    let runs = offsets.len() - 1;
    let mut keys = made(offsets[runs], |i| key(word(seed, i)));
    sort_runs(&mut keys, runs, |run| offsets[run]);
    Side { keys, offsets }
}

/// Sorts each of so many runs, by all cores. Run `r` is the keys from `start(r)` to `start(r + 1)`.
fn sort_runs<K: Key>(keys: &mut [K], runs: usize, start: impl Fn(usize) -> usize + Sync) {
    let part = runs.div_ceil(cores()).max(1);
    let (start, mut rest) = (&start, keys);
    std::thread::scope(|scope| {
        for first in (0..runs).step_by(part) {
            let last = runs.min(first + part);
            let (keys, after) = std::mem::take(&mut rest).split_at_mut(start(last) - start(first));
            rest = after;
            scope.spawn(move || {
                for run in first..last {
                    keys[start(run) - start(first)..start(run + 1) - start(first)]
                        .sort_unstable_by_key(|key| key.to_ordered());
                }
            });
        }
    });
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A type that values have.
pub(crate) trait Value:
    bytemuck::Pod + merge_host::cust::memory::DeviceCopy + Into<u64> + Ord + Send + Sync
{
}

impl Value for u32 {}
impl Value for u64 {}

/// The values of `len` keys from place `from` on, if the case has values.
pub(crate) fn values<V: Value>(case: Case, from: usize, len: usize) -> Vec<V> {
    made(if case.value.is_some() { len } else { 0 }, |i| low_bits(from as u64 + i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_splitmix64() {
        // The generator's first numbers for this seed, as published with it.
        let published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431];
        assert_eq!([1, 2, 3, 4].map(|i| word(1234567, i)), published);
    }

    #[test]
    fn floats_are_below_one() {
        let keys: Vec<f32> = made(100_000, |i| key(word(1, i)));
        assert!(keys.iter().all(|key| (0.0..=1.0).contains(key)));
        let mean = keys.iter().map(|&key| f64::from(key)).sum::<f64>() / 1e5;
        assert!((0.49..0.51).contains(&mean), "{mean}");
        assert_eq!(number::<f64>(15), 15.0);
    }

    #[test]
    fn ragged_runs_use_all_keys() {
        let offsets = lengths(31, 10_000);
        assert_eq!((offsets[0], offsets[offsets.len() - 1]), (0, 10_000));
        assert!(offsets.windows(2).all(|run| (0..=100).contains(&(run[1] - run[0]))));
        let side = ragged::<u64>(5, offsets);
        assert!(side.offsets.windows(2).all(|run| side.keys[run[0]..run[1]].is_sorted()));
    }
}
