//! Vectors of 32 bytes, on processors with AVX2.
//!
//! AVX2 has no instruction that compresses some lanes. A table has, for each set of lanes, the permutation that moves
//! the lanes of the set behind all others.

use super::lanes::{Divide, Lanes, Word};
use std::arch::x86_64::*;

/// Eight words of 4 bytes.
#[derive(Clone, Copy)]
pub(super) struct U32x8(__m256i);

/// Four words of 8 bytes. They are signed because AVX2 compares 8 bytes as signed numbers only.
#[derive(Clone, Copy)]
pub(super) struct I64x4(__m256i);

/// For each set of eight lanes: the numbers of the lanes outside the set, followed by the numbers of the lanes in it.
static LAST_OF_8: [[u32; 8]; 256] = last(8);

/// [`LAST_OF_8`] for four lanes. Each lane is two words of 4 bytes, because the permutation moves words of 4 bytes.
static LAST_OF_4: [[u32; 8]; 16] = {
    let of_lanes: [[u32; 8]; 16] = last(4);
    let mut words = [[0; 8]; 16];
    let mut set = 0;
    while set < 16 {
        let mut lane = 0;
        while lane < 4 {
            words[set][2 * lane] = 2 * of_lanes[set][lane];
            words[set][2 * lane + 1] = 2 * of_lanes[set][lane] + 1;
            lane += 1;
        }
        set += 1;
    }
    words
};

/// For each of the `SETS` sets: a stable permutation of the lanes that puts the lanes of the set last.
pub(super) const fn last<const SETS: usize>(lanes: usize) -> [[u32; 8]; SETS] {
    let mut permutations = [[0; 8]; SETS];
    let mut set = 0;
    while set < SETS {
        let (mut next, mut pass) = (0, 0);
        while pass < 2 {
            let mut lane = 0;
            while lane < lanes {
                if set >> lane & 1 == pass {
                    permutations[set][next] = lane as u32;
                    next += 1;
                }
                lane += 1;
            }
            pass += 1;
        }
        set += 1;
    }
    permutations
}

/// A mask with a 1 for each 32-bit part that has bit `d` in its index.
const fn mask(d: usize) -> i32 {
    let (mut mask, mut part) = (0, 0);
    while part < 8 {
        if part & d != 0 {
            mask |= 1 << part;
        }
        part += 1;
    }
    mask
}

/// Stores the first `parts` 32-bit parts: all 8 if `parts` is greater, and none if it is not positive. Uses up to three
/// stores, because a masked store takes many times as long on some processors.
///
/// # Safety
/// The processor has AVX2; `parts.min(8)` parts may be written at `to`.
#[inline(always)]
unsafe fn store_first(row: __m256i, mut to: *mut u32, parts: isize) {
    // SAFETY: the processor has AVX2. With `parts >= 8` one store writes 8 parts. Otherwise `parts` is the sum of its
    // bits 4, 2 and 1, and for each bit that is set, a store writes this number of parts and `to` advances past them.
    unsafe {
        if parts >= 8 {
            _mm256_storeu_si256(to.cast(), row);
        } else if parts > 0 {
            let mut rest = _mm256_castsi256_si128(row);
            if parts & 4 != 0 {
                _mm_storeu_si128(to.cast(), rest);
                (rest, to) = (_mm256_extracti128_si256::<1>(row), to.add(4));
            }
            if parts & 2 != 0 {
                _mm_storel_epi64(to.cast(), rest);
                (rest, to) = (_mm_unpackhi_epi64(rest, rest), to.add(2));
            }
            if parts & 1 != 0 {
                to.write_unaligned(_mm_cvtsi128_si32(rest) as u32);
            }
        }
    }
}

/// Divides the first words one by one. Each word is written to both sides, and the next word overwrites one of the
/// copies, so there is no branch to mispredict.
///
/// # Safety
/// The conditions of [`Divide::divide_first`].
#[inline(always)]
unsafe fn divide_first<L: Lanes>(row: L, count: usize, pivot: L, below: *mut L::Word, above: *mut L::Word) -> usize {
    let (mut words, mut pivots) = ([L::Word::MAX; 8], [L::Word::MAX; 8]);
    let mut less = 0;
    // SAFETY: the processor has the instruction set. Both arrays have 8 words, and `L` has at most 8 lanes. `count`
    // words may be written from `below` on and before `above`. For word `i < count`, `less <= i`, so `less < count` and
    // `1 <= i - less + 1 <= count`.
    unsafe {
        row.store(words.as_mut_ptr());
        pivot.store(pivots.as_mut_ptr());
        for (i, &word) in words[..count].iter().enumerate() {
            below.add(less).write(word);
            above.sub(i - less + 1).write(word);
            less += usize::from(word < pivots[0]);
        }
    }
    less
}

impl Lanes for U32x8 {
    type Word = u32;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the processor has AVX2, and `from` points to 8 words: the 32 bytes of an unaligned load.
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u32, count: isize, others: Self) -> Self {
        // SAFETY: the processor has AVX2. The masked load reads only the first `count.clamp(0, 8)` words, which `from`
        // has.
        unsafe {
            let count = _mm256_set1_epi32(count.clamp(0, 8) as i32);
            let is_first = _mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let words = _mm256_maskload_epi32(from.cast(), is_first);
            Self(_mm256_blendv_epi8(others.0, words, is_first))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the processor has AVX2, and 8 words may be written at `to`: the 32 bytes of an unaligned store.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u32, count: isize) {
        // SAFETY: the processor has AVX2. One part is one word, so `count.min(8)` parts may be written at `to`.
        unsafe { store_first(self.0, to, count) }
    }

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the processor has AVX2. The instruction accesses registers only.
        unsafe { Self(_mm256_set1_epi32(word as i32)) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe { (Self(_mm256_min_epu32(self.0, other.0)), Self(_mm256_max_epu32(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn ordered(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX2, the only condition of `exchange` and `blended`.
        unsafe {
            let (lesser, greater) = self.exchange(other);
            lesser.blended(greater, bit)
        }
    }

    #[inline(always)]
    unsafe fn flipped(self, bits: usize) -> Self {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe {
            Self(match bits {
                1 => _mm256_shuffle_epi32::<0b10_11_00_01>(self.0),
                2 => _mm256_shuffle_epi32::<0b01_00_11_10>(self.0),
                3 => _mm256_shuffle_epi32::<0b00_01_10_11>(self.0),
                4 => _mm256_permute2x128_si256::<1>(self.0, self.0),
                _ => {
                    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                    _mm256_permutevar8x32_epi32(self.0, _mm256_xor_si256(lanes, _mm256_set1_epi32(bits as i32)))
                }
            })
        }
    }

    #[inline(always)]
    unsafe fn blended(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe {
            Self(match bit {
                1 => _mm256_blend_epi32::<{ mask(1) }>(self.0, other.0),
                2 => _mm256_blend_epi32::<{ mask(2) }>(self.0, other.0),
                _ => _mm256_blend_epi32::<{ mask(4) }>(self.0, other.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn coded(self, [flips, others]: [Self; 2]) -> Self {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe {
            let is_set = _mm256_srai_epi32::<31>(self.0);
            Self(_mm256_xor_si256(self.0, _mm256_blendv_epi8(flips.0, others.0, is_set)))
        }
    }
}

impl Divide for U32x8 {
    #[inline(always)]
    unsafe fn divide(self, pivot: Self, below: *mut u32, above: *mut u32) -> usize {
        // SAFETY: the processor has AVX2. `set` has one bit for each of 8 lanes, so `set < 256`, the length of the
        // table. A table entry has 32 bytes. 8 words may be written from `below` on and before `above`.
        unsafe {
            // AVX2 has no unsigned comparison: a word is not less than the pivot if it is the maximum of both.
            let not_less = _mm256_cmpeq_epi32(_mm256_max_epu32(self.0, pivot.0), self.0);
            let set = _mm256_movemask_ps(_mm256_castsi256_ps(not_less)) as usize;
            let order = _mm256_loadu_si256(LAST_OF_8.get_unchecked(set).as_ptr().cast());
            let divided = Self(_mm256_permutevar8x32_epi32(self.0, order));
            divided.store(below);
            divided.store(above.sub(Self::LANES));
            Self::LANES - set.count_ones() as usize
        }
    }
    #[inline(always)]
    unsafe fn divide_first(self, count: usize, pivot: Self, below: *mut u32, above: *mut u32) -> usize {
        // SAFETY: the function has the conditions of this method: the instruction set, and `count` words to write on
        // each side.
        unsafe { divide_first(self, count, pivot, below, above) }
    }
}

impl Lanes for I64x4 {
    type Word = i64;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const i64) -> Self {
        // SAFETY: the processor has AVX2, and `from` points to 4 words: the 32 bytes of an unaligned load.
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const i64, count: isize, others: Self) -> Self {
        // SAFETY: the processor has AVX2. The masked load reads only the first `count.clamp(0, 4)` words, which `from`
        // has.
        unsafe {
            let count = _mm256_set1_epi64x(count.clamp(0, 4) as i64);
            let is_first = _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(0, 1, 2, 3));
            let words = _mm256_maskload_epi64(from.cast(), is_first);
            Self(_mm256_blendv_epi8(others.0, words, is_first))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut i64) {
        // SAFETY: the processor has AVX2, and 4 words may be written at `to`: the 32 bytes of an unaligned store.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut i64, count: isize) {
        // SAFETY: the processor has AVX2. A word is two parts: `count.min(4)` words may be written, so `(2 *
        // count).min(8)` parts.
        unsafe { store_first(self.0, to.cast(), 2 * count) }
    }

    #[inline(always)]
    unsafe fn splat(word: i64) -> Self {
        // SAFETY: the processor has AVX2. The instruction accesses registers only.
        unsafe { Self(_mm256_set1_epi64x(word)) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe {
            let (a, b) = (_mm256_castsi256_pd(self.0), _mm256_castsi256_pd(other.0));
            let greater = _mm256_castsi256_pd(_mm256_cmpgt_epi64(self.0, other.0));
            let (least, greatest) = (_mm256_blendv_pd(a, b, greater), _mm256_blendv_pd(b, a, greater));
            (Self(_mm256_castpd_si256(least)), Self(_mm256_castpd_si256(greatest)))
        }
    }

    #[inline(always)]
    unsafe fn ordered(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX2, the only condition of `blended`. The instructions access registers only.
        unsafe {
            // One comparison decides for each lane whether it takes the other word. Either choice is right for equal
            // words.
            let is_greater = _mm256_cmpgt_epi64(self.0, other.0);
            let (none, all) = (_mm256_setzero_si256(), _mm256_set1_epi64x(-1));
            let is_other = _mm256_xor_si256(is_greater, Self(none).blended(Self(all), bit).0);
            Self(_mm256_blendv_epi8(self.0, other.0, is_other))
        }
    }

    #[inline(always)]
    unsafe fn flipped(self, bits: usize) -> Self {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe {
            Self(match bits {
                1 => _mm256_shuffle_epi32::<0b01_00_11_10>(self.0),
                2 => _mm256_permute2x128_si256::<1>(self.0, self.0),
                _ => _mm256_permute4x64_epi64::<0b00_01_10_11>(self.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn blended(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe {
            Self(match bit {
                1 => _mm256_blend_epi32::<{ mask(2) }>(self.0, other.0),
                _ => _mm256_blend_epi32::<{ mask(4) }>(self.0, other.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn coded(self, [flips, others]: [Self; 2]) -> Self {
        // SAFETY: the processor has AVX2. The instructions access registers only.
        unsafe {
            let is_set = _mm256_cmpgt_epi64(_mm256_setzero_si256(), self.0);
            Self(_mm256_xor_si256(self.0, _mm256_blendv_epi8(flips.0, others.0, is_set)))
        }
    }
}

impl Divide for I64x4 {
    #[inline(always)]
    unsafe fn divide(self, pivot: Self, below: *mut i64, above: *mut i64) -> usize {
        // SAFETY: the processor has AVX2. `set` is masked to 4 bits, so `set < 16`, the length of the table. A table
        // entry has 32 bytes. 4 words may be written from `below` on and before `above`.
        unsafe {
            let less = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(pivot.0, self.0))) as usize;
            let set = !less & 0xf;
            let order = _mm256_loadu_si256(LAST_OF_4.get_unchecked(set).as_ptr().cast());
            let divided = Self(_mm256_permutevar8x32_epi32(self.0, order));
            divided.store(below);
            divided.store(above.sub(Self::LANES));
            less.count_ones() as usize
        }
    }
    #[inline(always)]
    unsafe fn divide_first(self, count: usize, pivot: Self, below: *mut i64, above: *mut i64) -> usize {
        // SAFETY: the function has the conditions of this method: the instruction set, and `count` words to write on
        // each side.
        unsafe { divide_first(self, count, pivot, below, above) }
    }
}
