//! Vectors of 64 bytes, on processors with AVX-512.

use super::avx2::last;
use super::lanes::{Divide, Lanes};
use std::arch::x86_64::*;

/// Thirty-two words of 1 byte, in lanes of 2 bytes. With AVX-512BW as well.
#[derive(Clone, Copy)]
pub(super) struct U8x32(U16x32);

/// Thirty-two words of 2 bytes, with AVX-512BW and VBMI2 as well.
#[derive(Clone, Copy)]
pub(super) struct U16x32(__m512i);

/// Sixteen words of 4 bytes.
#[derive(Clone, Copy)]
pub(super) struct U32x16(__m512i);

/// Eight words of 8 bytes.
#[derive(Clone, Copy)]
pub(super) struct U64x8(__m512i);

/// Exclusive or of three words. If the first equals one of the other two, the result is the remaining one. Comparisons
/// of words have one port on Intel's processors; this instruction takes any vector port.
const THE_OTHER: i32 = 0b1001_0110;

/// A mask with a 1 for each lane that has bit `d` in its number.
const fn mask(d: usize) -> u32 {
    let (mut mask, mut lane) = (0, 0);
    while lane < 32 {
        if lane & d != 0 {
            mask |= 1 << lane;
        }
        lane += 1;
    }
    mask
}

/// A mask of the first `count` lanes. `count` is at most 32.
#[inline(always)]
fn first(count: usize) -> u32 {
    ((1u64 << count) - 1) as u32
}

/// For each number of bits below 8, the bytes to shuffle within 16 bytes such that words of 2 bytes move from lane
/// `i ^ bits` to lane `i`.
static FLIPS_OF_WORDS: [[u8; 64]; 8] = {
    let (mut flips, mut bits) = ([[0; 64]; 8], 0);
    while bits < flips.len() {
        let mut i = 0;
        while i < flips[bits].len() {
            flips[bits][i] = ((i % 16) ^ (2 * bits)) as u8;
            i += 1;
        }
        bits += 1;
    }
    flips
};

/// The numbers of 32 lanes.
static LANES_OF_32: [u16; 32] = {
    let (mut lanes, mut i) = ([0; 32], 0);
    while i < lanes.len() {
        lanes[i] = i as u16;
        i += 1;
    }
    lanes
};

/// The complement of a mask.
///
/// This is assembly because the compiler would emit another comparison, and Intel's processors compare on one port
/// only.
#[inline]
#[target_feature(enable = "avx512f")]
fn inverse(mask: u16) -> u16 {
    let inverse;
    // SAFETY: `knotw` belongs to AVX-512F, which this function enables. It reads one mask register and writes one.
    unsafe {
        std::arch::asm!(
            "knotw {inverse}, {mask}",
            mask = in(kreg) mask,
            inverse = lateout(kreg) inverse,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    inverse
}

/// The permutations of [`last`] for each set of eight lanes: four bits for each lane, the first lane in the least
/// significant ones.
static LAST_OF_8: [i64; 256] = {
    let permutations: [[u32; 8]; 256] = last(8);
    let (mut table, mut set) = ([0; 256], 0);
    while set < table.len() {
        let mut lane = 0;
        while lane < 8 {
            table[set] |= (permutations[set][lane] as i64) << (4 * lane);
            lane += 1;
        }
        set += 1;
    }
    table
};

/// A vector whose lanes can be moved by a number that is not a constant.
trait Movable: Lanes {
    /// The words, in the first bytes.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn bytes(self) -> __m512i;

    /// Moves lane `lane + i` to lane `i`. The last lanes are unspecified.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn moved_down(self, lane: usize) -> Self;
}

impl Movable for U8x32 {
    #[inline(always)]
    unsafe fn bytes(self) -> __m512i {
        // SAFETY: the processor has AVX-512BW. The instructions access registers only.
        unsafe { _mm512_castsi256_si512(_mm512_cvtepi16_epi8(self.0.0)) }
    }

    #[inline(always)]
    unsafe fn moved_down(self, lane: usize) -> Self {
        // SAFETY: the processor has AVX-512BW, the only condition of `moved_down`.
        unsafe { Self(self.0.moved_down(lane)) }
    }
}

impl Movable for U16x32 {
    #[inline(always)]
    unsafe fn bytes(self) -> __m512i {
        self.0
    }

    #[inline(always)]
    unsafe fn moved_down(self, lane: usize) -> Self {
        // SAFETY: the processor has AVX-512BW. The load reads the 64 bytes of a constant, and the other instructions
        // access registers only.
        unsafe {
            let lanes = _mm512_loadu_si512(LANES_OF_32.as_ptr().cast());
            Self(_mm512_permutexvar_epi16(_mm512_add_epi16(lanes, _mm512_set1_epi16(lane as i16)), self.0))
        }
    }
}

impl Movable for U32x16 {
    #[inline(always)]
    unsafe fn bytes(self) -> __m512i {
        self.0
    }

    #[inline(always)]
    unsafe fn moved_down(self, lane: usize) -> Self {
        // SAFETY: the processor has AVX-512F, the only condition of `parts_moved_down`.
        unsafe { Self(parts_moved_down(self.0, lane)) }
    }
}

impl Movable for U64x8 {
    #[inline(always)]
    unsafe fn bytes(self) -> __m512i {
        self.0
    }

    #[inline(always)]
    unsafe fn moved_down(self, lane: usize) -> Self {
        // SAFETY: the processor has AVX-512F, the only condition of `parts_moved_down`.
        unsafe { Self(parts_moved_down(self.0, 2 * lane)) }
    }
}

/// Moves the 32-bit part `part + i` to part `i`. The last parts are unspecified.
///
/// # Safety
/// The processor has AVX-512F.
#[inline(always)]
unsafe fn parts_moved_down(row: __m512i, part: usize) -> __m512i {
    // SAFETY: the processor has AVX-512F. The instructions access registers only.
    unsafe {
        let parts = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        _mm512_permutexvar_epi32(_mm512_add_epi32(parts, _mm512_set1_epi32(part as i32)), row)
    }
}

/// [`Lanes::store_only_first`]: by two stores that overlap. A masked store delays loads behind its last word, because
/// the processor does not know that the store leaves them alone.
///
/// # Safety
/// The conditions of [`Lanes::store_first`].
#[inline(always)]
unsafe fn store_only_first<L: Movable>(row: L, to: *mut L::Word, count: isize) {
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else { return };
    let size = const { size_of::<L::Word>() };
    let (end, bytes) = (to.wrapping_add(count), count * size);
    // SAFETY: the processor has the instruction set. Each branch stores up to `bytes` bytes from `to` on, and the same
    // number of bytes that end at `end`.
    unsafe {
        if count >= L::LANES {
            row.store(to);
        } else if bytes >= 32 {
            _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(row.bytes()));
            let last = row.moved_down(count - 32 / size).bytes();
            _mm256_storeu_si256(end.byte_sub(32).cast(), _mm512_castsi512_si256(last));
        } else if bytes >= 16 {
            _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(row.bytes()));
            let last = row.moved_down(count - 16 / size).bytes();
            _mm_storeu_si128(end.byte_sub(16).cast(), _mm512_castsi512_si128(last));
        } else {
            let first = _mm512_castsi512_si128(row.bytes());
            let (low, high) = (_mm_cvtsi128_si64(first) as u64, _mm_extract_epi64::<1>(first) as u64);
            // The last 8 bytes, or fewer if there are fewer.
            let last = (u128::from(high) << 64 | u128::from(low)) >> (8 * bytes.saturating_sub(8));
            match bytes {
                8.. => {
                    to.cast::<u64>().write_unaligned(low);
                    end.byte_sub(8).cast::<u64>().write_unaligned(last as u64);
                }
                4.. => {
                    to.cast::<u32>().write_unaligned(low as u32);
                    end.byte_sub(4).cast::<u32>().write_unaligned((low >> (8 * (bytes - 4))) as u32);
                }
                2.. => {
                    to.cast::<u16>().write_unaligned(low as u16);
                    end.byte_sub(2).cast::<u16>().write_unaligned((low >> (8 * (bytes - 2))) as u16);
                }
                _ => to.cast::<u8>().write(low as u8),
            }
        }
    }
}

impl Lanes for U8x32 {
    type Word = u8;
    const LANES: usize = 32;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the processor has AVX-512BW, and `from` points to 32 words: the 32 bytes of an unaligned load.
        unsafe { Self(U16x32(_mm512_cvtepu8_epi16(_mm256_loadu_si256(from.cast())))) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, count: isize, others: Self) -> Self {
        // SAFETY: the processor has AVX-512BW. The masked load reads only the first `count.clamp(0, 32)` words, which
        // `from` has.
        unsafe {
            let is_first = first(count.clamp(0, 32) as usize);
            let words = _mm512_castsi512_si256(_mm512_maskz_loadu_epi8(u64::from(is_first), from.cast()));
            Self(U16x32(_mm512_mask_cvtepu8_epi16(others.0.0, is_first, words)))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the processor has AVX-512BW, and 32 words may be written at `to`: the 32 bytes of an unaligned store.
        unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtepi16_epi8(self.0.0)) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, count: isize) {
        // SAFETY: the processor has AVX-512BW. The masked store writes only the first `count.clamp(0, 32)` words, which
        // `to` has.
        unsafe {
            let bytes = _mm512_castsi256_si512(_mm512_cvtepi16_epi8(self.0.0));
            _mm512_mask_storeu_epi8(to.cast(), u64::from(first(count.clamp(0, 32) as usize)), bytes)
        }
    }

    #[inline(always)]
    unsafe fn store_only_first(self, to: *mut u8, count: isize) {
        // SAFETY: the processor has AVX-512BW, and `count.min(32)` words may be written at `to`.
        unsafe { store_only_first(self, to, count) }
    }

    #[inline(always)]
    unsafe fn splat(word: u8) -> Self {
        // SAFETY: the processor has AVX-512BW, the only condition of `splat`.
        unsafe { Self(U16x32::splat(u16::from(word))) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: the processor has AVX-512BW, the only condition of `exchange`.
        let (lesser, greater) = unsafe { self.0.exchange(other.0) };
        (Self(lesser), Self(greater))
    }

    #[inline(always)]
    unsafe fn ordered(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512BW, the only condition of `ordered`.
        unsafe { Self(self.0.ordered(other.0, bit)) }
    }

    #[inline(always)]
    unsafe fn flipped(self, bits: usize) -> Self {
        // SAFETY: the processor has AVX-512BW, the only condition of `flipped`.
        unsafe { Self(self.0.flipped(bits)) }
    }

    #[inline(always)]
    unsafe fn blended(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512BW, the only condition of `blended`.
        unsafe { Self(self.0.blended(other.0, bit)) }
    }

    #[inline(always)]
    unsafe fn coded(self, [flips, others]: [Self; 2]) -> Self {
        // SAFETY: the processor has AVX-512BW. The instructions access registers only.
        unsafe {
            let is_set = _mm512_test_epi16_mask(self.0.0, _mm512_set1_epi16(1 << 7));
            Self(U16x32(_mm512_xor_si512(self.0.0, _mm512_mask_blend_epi16(is_set, flips.0.0, others.0.0))))
        }
    }
}

impl Lanes for U16x32 {
    type Word = u16;
    const LANES: usize = 32;

    #[inline(always)]
    unsafe fn load(from: *const u16) -> Self {
        // SAFETY: the processor has AVX-512F, and `from` points to 32 words: the 64 bytes of an unaligned load.
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u16, count: isize, others: Self) -> Self {
        // SAFETY: the processor has AVX-512BW. The masked load reads only the first `count.clamp(0, 32)` words, which
        // `from` has.
        unsafe {
            let is_first = first(count.clamp(0, 32) as usize);
            Self(_mm512_mask_loadu_epi16(others.0, is_first, from.cast()))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u16) {
        // SAFETY: the processor has AVX-512F, and 32 words may be written at `to`: the 64 bytes of an unaligned store.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u16, count: isize) {
        // SAFETY: the processor has AVX-512BW. The masked store writes only the first `count.clamp(0, 32)` words, which
        // `to` has.
        unsafe { _mm512_mask_storeu_epi16(to.cast(), first(count.clamp(0, 32) as usize), self.0) }
    }

    #[inline(always)]
    unsafe fn store_only_first(self, to: *mut u16, count: isize) {
        // SAFETY: the processor has AVX-512BW, and `count.min(32)` words may be written at `to`.
        unsafe { store_only_first(self, to, count) }
    }

    #[inline(always)]
    unsafe fn splat(word: u16) -> Self {
        // SAFETY: the processor has AVX-512F. The instruction accesses registers only.
        unsafe { Self(_mm512_set1_epi16(word as i16)) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: the processor has AVX-512BW. The instructions access registers only.
        unsafe { (Self(_mm512_min_epu16(self.0, other.0)), Self(_mm512_max_epu16(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn ordered(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512BW. The instructions access registers only.
        unsafe {
            let lesser = _mm512_min_epu16(self.0, other.0);
            Self(_mm512_mask_max_epu16(lesser, mask(bit), self.0, other.0))
        }
    }

    #[inline(always)]
    unsafe fn flipped(self, bits: usize) -> Self {
        // SAFETY: the processor has AVX-512BW. The loads read the 64 bytes of a constant, and the other instructions
        // access registers only.
        unsafe {
            Self(match bits {
                1 => _mm512_rol_epi32::<16>(self.0),
                2 => _mm512_shuffle_epi32::<0b10_11_00_01>(self.0),
                4 => _mm512_shuffle_epi32::<0b01_00_11_10>(self.0),
                3 | 5..=7 => _mm512_shuffle_epi8(self.0, _mm512_loadu_si512(FLIPS_OF_WORDS[bits].as_ptr().cast())),
                8 => _mm512_shuffle_i64x2::<0b10_11_00_01>(self.0, self.0),
                16 => _mm512_shuffle_i64x2::<0b01_00_11_10>(self.0, self.0),
                24 => _mm512_shuffle_i64x2::<0b00_01_10_11>(self.0, self.0),
                _ => {
                    let lanes = _mm512_loadu_si512(LANES_OF_32.as_ptr().cast());
                    _mm512_permutexvar_epi16(_mm512_xor_si512(lanes, _mm512_set1_epi16(bits as i16)), self.0)
                }
            })
        }
    }

    #[inline(always)]
    unsafe fn blended(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512BW. The instruction accesses registers only.
        unsafe { Self(_mm512_mask_blend_epi16(mask(bit), self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn coded(self, [flips, others]: [Self; 2]) -> Self {
        // SAFETY: the processor has AVX-512BW. The instructions access registers only.
        unsafe {
            let is_set = _mm512_srai_epi16::<15>(self.0);
            Self(_mm512_xor_si512(self.0, _mm512_ternarylogic_epi64::<0b1100_1010>(is_set, others.0, flips.0)))
        }
    }
}

impl Divide for U16x32 {
    #[inline(always)]
    unsafe fn divide(self, pivot: Self, below: *mut u16, above: *mut u16) -> usize {
        // SAFETY: the processor has AVX-512BW and VBMI2. 32 words may be written from `below` on and before `above`.
        // The masked store writes the `32 - count = others` words from `above - others` on.
        unsafe {
            let less = _mm512_cmplt_epu16_mask(self.0, pivot.0);
            let count = less.count_ones() as usize;
            Self(_mm512_maskz_compress_epi16(less, self.0)).store(below);
            let others = Self::LANES - count;
            let last = _mm512_maskz_compress_epi16(!less, self.0);
            _mm512_mask_storeu_epi16(above.sub(others).cast(), first(others), last);
            count
        }
    }

    #[inline(always)]
    unsafe fn divide_first(self, count: usize, pivot: Self, below: *mut u16, above: *mut u16) -> usize {
        // SAFETY: the processor has AVX-512BW and VBMI2. `of_less + others = count`, and `count` words may be written
        // from `below` on and before `above`.
        unsafe {
            let less = _mm512_mask_cmplt_epu16_mask(first(count), self.0, pivot.0);
            let of_less = less.count_ones() as usize;
            let others = count - of_less;
            Self(_mm512_maskz_compress_epi16(less, self.0)).store_first(below, of_less as isize);
            let last = Self(_mm512_maskz_compress_epi16(!less & first(count), self.0));
            last.store_first(above.sub(others), others as isize);
            of_less
        }
    }
}

impl Lanes for U32x16 {
    type Word = u32;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the processor has AVX-512F, and `from` points to 16 words: the 64 bytes of an unaligned load.
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u32, count: isize, others: Self) -> Self {
        // SAFETY: the processor has AVX-512F. The masked load reads only the first `count.clamp(0, 16)` words, which
        // `from` has.
        unsafe {
            let is_first = first(count.clamp(0, 16) as usize) as u16;
            Self(_mm512_mask_loadu_epi32(others.0, is_first, from.cast()))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the processor has AVX-512F, and 16 words may be written at `to`: the 64 bytes of an unaligned store.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u32, count: isize) {
        // SAFETY: the processor has AVX-512F. The masked store writes only the first `count.clamp(0, 16)` words, which
        // `to` has.
        unsafe { _mm512_mask_storeu_epi32(to.cast(), first(count.clamp(0, 16) as usize) as u16, self.0) }
    }

    #[inline(always)]
    unsafe fn store_only_first(self, to: *mut u32, count: isize) {
        // SAFETY: the processor has AVX-512F, and `count.min(16)` words may be written at `to`.
        unsafe { store_only_first(self, to, count) }
    }

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the processor has AVX-512F. The instruction accesses registers only.
        unsafe { Self(_mm512_set1_epi32(word as i32)) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            let lesser = _mm512_min_epu32(self.0, other.0);
            (Self(lesser), Self(_mm512_ternarylogic_epi32::<THE_OTHER>(lesser, self.0, other.0)))
        }
    }

    #[inline(always)]
    unsafe fn ordered(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            let lesser = _mm512_min_epu32(self.0, other.0);
            Self(_mm512_mask_ternarylogic_epi32::<THE_OTHER>(lesser, mask(bit) as u16, self.0, other.0))
        }
    }

    #[inline(always)]
    unsafe fn flipped(self, bits: usize) -> Self {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            Self(match bits {
                1 => _mm512_shuffle_epi32::<0b10_11_00_01>(self.0),
                2 => _mm512_shuffle_epi32::<0b01_00_11_10>(self.0),
                3 => _mm512_shuffle_epi32::<0b00_01_10_11>(self.0),
                4 => _mm512_shuffle_i64x2::<0b10_11_00_01>(self.0, self.0),
                8 => _mm512_shuffle_i64x2::<0b01_00_11_10>(self.0, self.0),
                12 => _mm512_shuffle_i64x2::<0b00_01_10_11>(self.0, self.0),
                _ => {
                    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
                    _mm512_permutexvar_epi32(_mm512_xor_si512(lanes, _mm512_set1_epi32(bits as i32)), self.0)
                }
            })
        }
    }

    #[inline(always)]
    unsafe fn blended(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512F. The instruction accesses registers only.
        unsafe { Self(_mm512_mask_blend_epi32(mask(bit) as u16, self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn coded(self, [flips, others]: [Self; 2]) -> Self {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            let is_set = _mm512_srai_epi32::<31>(self.0);
            // For each bit: the second operand where the first is set, and the third where it is clear.
            Self(_mm512_xor_si512(self.0, _mm512_ternarylogic_epi32::<0b1100_1010>(is_set, others.0, flips.0)))
        }
    }
}

impl Divide for U32x16 {
    #[inline(always)]
    unsafe fn divide(self, pivot: Self, below: *mut u32, above: *mut u32) -> usize {
        // SAFETY: the processor has AVX-512F. 16 words may be written from `below` on and before `above`. The masked
        // store writes the `16 - count = others` words from `above - others` on.
        unsafe {
            let less = _mm512_cmplt_epu32_mask(self.0, pivot.0);
            let count = less.count_ones() as usize;
            Self(_mm512_maskz_compress_epi32(less, self.0)).store(below);
            let others = Self::LANES - count;
            let last = _mm512_maskz_compress_epi32(inverse(less), self.0);
            _mm512_mask_storeu_epi32(above.sub(others).cast(), (0xffffu32 >> count) as u16, last);
            count
        }
    }
    #[inline(always)]
    unsafe fn divide_first(self, count: usize, pivot: Self, below: *mut u32, above: *mut u32) -> usize {
        // SAFETY: the processor has AVX-512F. `of_less + others = count`, and `count` words may be written from `below`
        // on and before `above`.
        unsafe {
            let less = _mm512_mask_cmplt_epu32_mask(first(count) as u16, self.0, pivot.0);
            let of_less = less.count_ones() as usize;
            let others = count - of_less;
            Self(_mm512_maskz_compress_epi32(less, self.0)).store_first(below, of_less as isize);
            let last = Self(_mm512_maskz_compress_epi32(!less & first(count) as u16, self.0));
            last.store_first(above.sub(others), others as isize);
            of_less
        }
    }
}

impl Lanes for U64x8 {
    type Word = u64;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: the processor has AVX-512F, and `from` points to 8 words: the 64 bytes of an unaligned load.
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u64, count: isize, others: Self) -> Self {
        // SAFETY: the processor has AVX-512F. The masked load reads only the first `count.clamp(0, 8)` words, which
        // `from` has.
        unsafe {
            let is_first = first(count.clamp(0, 8) as usize) as u8;
            Self(_mm512_mask_loadu_epi64(others.0, is_first, from.cast()))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: the processor has AVX-512F, and 8 words may be written at `to`: the 64 bytes of an unaligned store.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u64, count: isize) {
        // SAFETY: the processor has AVX-512F. The masked store writes only the first `count.clamp(0, 8)` words, which
        // `to` has.
        unsafe { _mm512_mask_storeu_epi64(to.cast(), first(count.clamp(0, 8) as usize) as u8, self.0) }
    }

    #[inline(always)]
    unsafe fn store_only_first(self, to: *mut u64, count: isize) {
        // SAFETY: the processor has AVX-512F, and `count.min(8)` words may be written at `to`.
        unsafe { store_only_first(self, to, count) }
    }

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the processor has AVX-512F. The instruction accesses registers only.
        unsafe { Self(_mm512_set1_epi64(word as i64)) }
    }

    #[inline(always)]
    unsafe fn exchange(self, other: Self) -> (Self, Self) {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            let lesser = _mm512_min_epu64(self.0, other.0);
            (Self(lesser), Self(_mm512_ternarylogic_epi64::<THE_OTHER>(lesser, self.0, other.0)))
        }
    }

    #[inline(always)]
    unsafe fn ordered(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            let lesser = _mm512_min_epu64(self.0, other.0);
            Self(_mm512_mask_ternarylogic_epi64::<THE_OTHER>(lesser, mask(bit) as u8, self.0, other.0))
        }
    }

    #[inline(always)]
    unsafe fn flipped(self, bits: usize) -> Self {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            Self(match bits {
                1 => _mm512_shuffle_epi32::<0b01_00_11_10>(self.0),
                2 => _mm512_shuffle_i64x2::<0b10_11_00_01>(self.0, self.0),
                3 => _mm512_permutex_epi64::<0b00_01_10_11>(self.0),
                4 => _mm512_shuffle_i64x2::<0b01_00_11_10>(self.0, self.0),
                6 => _mm512_shuffle_i64x2::<0b00_01_10_11>(self.0, self.0),
                _ => {
                    let lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
                    _mm512_permutexvar_epi64(_mm512_xor_si512(lanes, _mm512_set1_epi64(bits as i64)), self.0)
                }
            })
        }
    }

    #[inline(always)]
    unsafe fn blended(self, other: Self, bit: usize) -> Self {
        // SAFETY: the processor has AVX-512F. The instruction accesses registers only.
        unsafe { Self(_mm512_mask_blend_epi64(mask(bit) as u8, self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn coded(self, [flips, others]: [Self; 2]) -> Self {
        // SAFETY: the processor has AVX-512F. The instructions access registers only.
        unsafe {
            let is_set = _mm512_srai_epi64::<63>(self.0);
            Self(_mm512_xor_si512(self.0, _mm512_ternarylogic_epi64::<0b1100_1010>(is_set, others.0, flips.0)))
        }
    }
}

impl Divide for U64x8 {
    #[inline(always)]
    unsafe fn divide(self, pivot: Self, below: *mut u64, above: *mut u64) -> usize {
        // SAFETY: the processor has AVX-512F. 8 words may be written from `below` on and before `above`, and each store
        // writes 8.
        unsafe {
            let not_less = _mm512_cmpge_epu64_mask(self.0, pivot.0);
            let shifts = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
            let lanes = _mm512_srlv_epi64(_mm512_set1_epi64(LAST_OF_8[usize::from(not_less)]), shifts);
            let divided = Self(_mm512_permutexvar_epi64(lanes, self.0));
            divided.store(below);
            divided.store(above.sub(Self::LANES));
            not_less.count_zeros() as usize
        }
    }
    #[inline(always)]
    unsafe fn divide_first(self, count: usize, pivot: Self, below: *mut u64, above: *mut u64) -> usize {
        // SAFETY: the processor has AVX-512F. `of_less + others = count`, and `count` words may be written from `below`
        // on and before `above`.
        unsafe {
            let is_first = first(count) as u8;
            let less = _mm512_mask_cmplt_epu64_mask(is_first, self.0, pivot.0);
            let of_less = less.count_ones() as usize;
            let others = count - of_less;
            Self(_mm512_maskz_compress_epi64(less, self.0)).store_first(below, of_less as isize);
            let last = Self(_mm512_maskz_compress_epi64(!less & is_first, self.0));
            last.store_first(above.sub(others), others as isize);
            of_less
        }
    }
}
