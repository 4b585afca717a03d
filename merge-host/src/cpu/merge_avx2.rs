//! Merge of keys of 4 bytes, eight at a time, on processors with AVX2.
//!
//! Eight keys are held back. A step loads the next eight keys of the run with the lesser next key. A bitonic network
//! (Batcher, 1968) sorts the sixteen keys, which are two ascending sequences. No later key is less than one of the
//! lower eight, so the lower eight are the next keys of the output. The upper eight are held back.
//!
//! ```text
//!   held  │ 3 5 6 9 … │ ─┐
//!   A     │ 7 8 … │      ├─ network ─┬─► │ 3 4 5 5 … │  to the output
//!   B     │ 4 5 … │ ─────┘           └─► │ 6 7 9 9 … │  held
//! ```
//!
//! Each step depends on the one before. Therefore the output is divided in the middle, and steps of the two independent
//! halves alternate. Equal keys have equal bits, so a stable merge gives the same result.

use super::bidirectional::BidirectionalMerge;
use super::run::{Keys, Run, RunMut};
use crate::Key;
use bytemuck::Zeroable;
use kernels_gpu::textbook::co_rank::co_rank;
use std::arch::x86_64::*;

/// The number of keys that a step loads.
const WIDTH: usize = 8;
/// The least number of keys that is worth a search for the middle.
const MIN_KEYS: usize = 256;

/// Whether this is the fastest way on this processor to merge two runs of `keys` keys together.
pub(super) fn can_merge<K: Key>(keys: usize) -> bool {
    size_of::<K>() == 4 && keys >= MIN_KEYS && is_x86_feature_detected!("avx2")
}

/// Merges `a` and `b` into `out` on one thread. [`can_merge`] is true for the length of `out`.
pub(super) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K]) {
    assert!(can_merge::<K>(out.len()) && a.len() + b.len() == out.len());
    // SAFETY: `can_merge`, which the assertion checks, is true only on a processor with AVX2.
    unsafe { merge_halves(a, b, out) }
}

#[target_feature(enable = "avx2")]
fn merge_halves<K: Key>(a: &[K], b: &[K], out: &mut [K]) {
    let middle = out.len() / 2;
    let i = co_rank(middle, Keys(a), Keys(b));
    let ((a_left, a_right), (b_left, b_right)) = (a.split_at(i), b.split_at(middle - i));
    let (out_left, out_right) = out.split_at_mut(middle);
    let mut left = Half::new(a_left, b_left, out_left);
    let mut right = Half::new(a_right, b_right, out_right);
    loop {
        let steps = left.steps().min(right.steps());
        if steps == 0 {
            break;
        }
        for _ in 0..steps {
            left.step();
            right.step();
        }
    }
    left.finish();
    right.finish();
}

/// A merge with a complete front: the first `i` keys of `a` and `j` of `b` are at the front of `out`, or held back.
struct Half<'a, K> {
    a: &'a [K],
    b: &'a [K],
    out: &'a mut [K],
    i: usize,
    j: usize,
    /// The ordered bits of the greatest eight of the first `i` keys of `a` and `j` of `b`, ascending.
    held: __m256i,
    /// Whether keys are held back: not if `a` has fewer than eight keys.
    is_held: bool,
}

impl<'a, K: Key> Half<'a, K> {
    #[target_feature(enable = "avx2")]
    fn new(a: &'a [K], b: &'a [K], out: &'a mut [K]) -> Self {
        let is_held = a.len() >= WIDTH;
        let (i, held) = if is_held { (WIDTH, load(a, 0)) } else { (0, _mm256_setzero_si256()) };
        Half { a, b, out, i, j: 0, held, is_held }
    }

    /// A number of steps that cannot exhaust A or B.
    #[inline(always)]
    fn steps(&self) -> usize {
        if self.is_held { (self.a.len() - self.i).min(self.b.len() - self.j) / WIDTH } else { 0 }
    }

    /// Writes the next eight keys of the output. At least eight keys of A and of B remain.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn step(&mut self) {
        let from_b = self.b[self.j].to_ordered() < self.a[self.i].to_ordered();
        let next = if from_b { load(self.b, self.j) } else { load(self.a, self.i) };
        let to = self.i + self.j - WIDTH;
        self.i += if from_b { 0 } else { WIDTH };
        self.j += if from_b { WIDTH } else { 0 };
        let (lower, upper) = sort_two(self.held, next);
        store(lower, self.out, to);
        self.held = upper;
    }

    /// Merges the remaining keys.
    #[target_feature(enable = "avx2")]
    fn finish(mut self) {
        loop {
            let steps = self.steps();
            if steps == 0 {
                break;
            }
            for _ in 0..steps {
                self.step();
            }
        }
        let (a, b) = (&self.a[self.i..], &self.b[self.j..]);
        if !self.is_held {
            return merge_rest(a, b, self.out);
        }
        // Fewer than eight keys of one run remain. They are merged with the held keys into one short run first.
        let out = &mut self.out[self.i + self.j - WIDTH..];
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        let (mut held, mut both) = ([K::zeroed(); WIDTH], [K::zeroed(); 2 * WIDTH]);
        store(self.held, &mut held, 0);
        let both = &mut both[..WIDTH + short.len()];
        merge_rest(&held, short, both);
        merge_rest(both, long, out);
    }
}

fn merge_rest<K: Key>(a: &[K], b: &[K], out: &mut [K]) {
    BidirectionalMerge::new(Run::of_keys(a), Run::of_keys(b), RunMut::of_keys(out)).finish();
}

/// The ordered bits of `keys[i..i + 8]`.
#[inline]
#[target_feature(enable = "avx2")]
fn load<K: Key>(keys: &[K], i: usize) -> __m256i {
    let mut bits = [K::Bits::zeroed(); WIDTH];
    let keys = &keys[i..i + WIDTH];
    for lane in 0..WIDTH {
        bits[lane] = keys[lane].to_ordered();
    }
    bytemuck::cast(bits)
}

/// Writes the keys with the given ordered bits to `keys[i..i + 8]`.
#[inline]
#[target_feature(enable = "avx2")]
fn store<K: Key>(bits: __m256i, keys: &mut [K], i: usize) {
    let bits: [K::Bits; WIDTH] = bytemuck::cast(bits);
    let keys = &mut keys[i..i + WIDTH];
    for lane in 0..WIDTH {
        keys[lane] = K::from_ordered(bits[lane]);
    }
}

/// Sorts the keys of two ascending vectors: returns the lower eight and the upper eight, both ascending.
#[inline]
#[target_feature(enable = "avx2")]
fn sort_two(x: __m256i, y: __m256i) -> (__m256i, __m256i) {
    let y = _mm256_permutevar8x32_epi32(y, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
    (sort_bitonic(_mm256_min_epu32(x, y)), sort_bitonic(_mm256_max_epu32(x, y)))
}

/// Sorts a bitonic vector: one that ascends and then descends, or a rotation of such a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn sort_bitonic(x: __m256i) -> __m256i {
    let y = _mm256_permute2x128_si256::<1>(x, x);
    let x = _mm256_blend_epi32::<0b1111_0000>(_mm256_min_epu32(x, y), _mm256_max_epu32(x, y));
    let y = _mm256_shuffle_epi32::<0b01_00_11_10>(x);
    let x = _mm256_blend_epi32::<0b1100_1100>(_mm256_min_epu32(x, y), _mm256_max_epu32(x, y));
    let y = _mm256_shuffle_epi32::<0b10_11_00_01>(x);
    _mm256_blend_epi32::<0b1010_1010>(_mm256_min_epu32(x, y), _mm256_max_epu32(x, y))
}
