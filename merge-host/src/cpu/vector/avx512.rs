//! Vectors of 64 bytes, on processors with AVX-512.

use super::lanes::Lanes;
use std::arch::x86_64::*;

/// Sixteen words of 4 bytes.
#[derive(Clone, Copy)]
pub(super) struct U32x16(__m512i);

/// Eight words of 8 bytes.
#[derive(Clone, Copy)]
pub(super) struct U64x8(__m512i);

/// A mask of the lanes whose number has bit `d`.
const fn mask(d: usize) -> u16 {
    let (mut mask, mut lane) = (0, 0);
    while lane < 16 {
        if lane & d != 0 {
            mask |= 1 << lane;
        }
        lane += 1;
    }
    mask
}

impl Lanes for U32x16 {
    type Word = u32;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller's promise, here and below.
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u32, count: isize) -> Self {
        // SAFETY: as above. Nothing is read for other lanes.
        unsafe {
            let is_first = ((1u32 << count.clamp(0, 16)) - 1) as u16;
            Self(_mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), is_first, from.cast()))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm512_set1_epi32(word as i32)) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: as above.
        unsafe { (Self(_mm512_min_epu32(self.0, other.0)), Self(_mm512_max_epu32(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        // SAFETY: as above.
        unsafe {
            let order = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
            Self(_mm512_permutexvar_epi32(order, self.0))
        }
    }

    #[inline(always)]
    unsafe fn swapped<const D: usize>(self) -> Self {
        // SAFETY: as above.
        unsafe {
            Self(match D {
                1 => _mm512_shuffle_epi32::<0b10_11_00_01>(self.0),
                2 => _mm512_shuffle_epi32::<0b01_00_11_10>(self.0),
                4 => _mm512_shuffle_i64x2::<0b10_11_00_01>(self.0, self.0),
                _ => _mm512_shuffle_i64x2::<0b01_00_11_10>(self.0, self.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn blended<const D: usize>(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm512_mask_blend_epi32(const { mask(D) }, self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn divide(self, pivot: Self, below: *mut u32, above: *mut u32) -> usize {
        // SAFETY: as above. Only as many words are written before `above` as are not less.
        unsafe {
            let less = _mm512_cmplt_epu32_mask(self.0, pivot.0);
            let count = less.count_ones() as usize;
            Self(_mm512_maskz_compress_epi32(less, self.0)).store(below);
            let others = Self::LANES - count;
            let last = _mm512_maskz_compress_epi32(!less, self.0);
            _mm512_mask_storeu_epi32(above.sub(others).cast(), (0xffffu32 >> count) as u16, last);
            count
        }
    }
}

impl Lanes for U64x8 {
    type Word = u64;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: the caller's promise, here and below.
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u64, count: isize) -> Self {
        // SAFETY: as above. Nothing is read for other lanes.
        unsafe {
            let is_first = ((1u32 << count.clamp(0, 8)) - 1) as u8;
            Self(_mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), is_first, from.cast()))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm512_set1_epi64(word as i64)) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: as above.
        unsafe { (Self(_mm512_min_epu64(self.0, other.0)), Self(_mm512_max_epu64(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm512_permutexvar_epi64(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), self.0)) }
    }

    #[inline(always)]
    unsafe fn swapped<const D: usize>(self) -> Self {
        // SAFETY: as above.
        unsafe {
            Self(match D {
                1 => _mm512_shuffle_epi32::<0b01_00_11_10>(self.0),
                2 => _mm512_shuffle_i64x2::<0b10_11_00_01>(self.0, self.0),
                _ => _mm512_shuffle_i64x2::<0b01_00_11_10>(self.0, self.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn blended<const D: usize>(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm512_mask_blend_epi64(const { mask(D) as u8 }, self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn divide(self, pivot: Self, below: *mut u64, above: *mut u64) -> usize {
        // SAFETY: as above. Only as many words are written before `above` as are not less.
        unsafe {
            let less = _mm512_cmplt_epu64_mask(self.0, pivot.0);
            let count = less.count_ones() as usize;
            Self(_mm512_maskz_compress_epi64(less, self.0)).store(below);
            let others = Self::LANES - count;
            let last = _mm512_maskz_compress_epi64(!less, self.0);
            _mm512_mask_storeu_epi64(above.sub(others).cast(), (0xffu32 >> count) as u8, last);
            count
        }
    }
}
