//! The sorts and merges of words, compiled for each instruction set and size of words.

use super::avx2::{I64x4, U32x8};
use super::avx512::{U8x32, U16x32, U32x16, U64x8};
use super::coding::Coding;
use super::few::{self, Networks};
use super::lanes::{Lanes, Word};
use super::merge::{self, Inputs};
use super::{parallel, quicksort, short};

/// The operations of an instruction set on words of one size.
pub(super) trait Instructions: Sync {
    type Word: Word;

    /// Sorts words in the order of their encoding by `coding`, and decodes them. A part that remains after `steps`
    /// divisions is sorted by the standard library.
    fn sort(&self, words: &mut [Self::Word], steps: u32, coding: Coding<Self::Word>);

    /// [`sort`](Self::sort) on `threads` threads of the pool of the calling thread.
    fn sort_on(&self, words: &mut [Self::Word], threads: usize, coding: Coding<Self::Word>);

    /// Encodes words by the flips `encode`, and moves the words less than `pivot` to the front. Returns their number.
    ///
    /// # Panics
    /// Panics if there are fewer words than [`quicksort::LEAST_DIVIDED`] rows.
    fn divide(&self, words: &mut [Self::Word], pivot: Self::Word, encode: [Self::Word; 2]) -> usize;

    /// Sorts short segments: see [`short::sort`].
    ///
    /// # Safety
    /// The offsets do not descend, and `words` points to `offsets[last] - offsets[0]` words.
    unsafe fn sort_short(&self, words: *mut Self::Word, offsets: &[usize], coding: Coding<Self::Word>) -> bool;

    /// Merges short problems: see [`merge::merge`].
    fn merge_short(&self, inputs: Inputs<Self::Word>, out: &mut [Self::Word], coding: Coding<Self::Word>) -> bool;
}

/// Implements [`Networks`] for vectors: for these target features, with this greatest number of rows.
macro_rules! networks {
    ($lanes:ident, $features:literal, $rows:literal) => {
        impl Networks for $lanes {
            const ROWS: usize = $rows;

            unsafe fn sort_few(from: *const Self::Word, to: *mut Self::Word, len: usize) {
                /// # Safety
                /// `from` and `to` point to `len` words each, at most [`Networks::MOST`].
                #[target_feature(enable = $features)]
                unsafe fn compiled(from: *const <$lanes as Lanes>::Word, to: *mut <$lanes as Lanes>::Word, len: usize) {
                    // SAFETY: this function is compiled for the instruction set, and has the same conditions.
                    unsafe { few::sort::<$lanes, $rows, false>(from, to, len, Coding::NONE) }
                }
                // SAFETY: the caller ensures the target features, and at most `MOST` words at both places.
                unsafe { compiled(from, to, len) }
            }

            unsafe fn sort_coded(words: *mut Self::Word, len: usize, coding: &Coding<Self::Word>) {
                /// # Safety
                /// `words` points to `len` words, at most [`Networks::MOST`].
                #[target_feature(enable = $features)]
                unsafe fn compiled(
                    words: *mut <$lanes as Lanes>::Word,
                    len: usize,
                    coding: &Coding<<$lanes as Lanes>::Word>,
                ) {
                    // SAFETY: this function is compiled for the instruction set, and has the same conditions.
                    unsafe { few::sort_coded::<$lanes, $rows>(words, len, coding) }
                }
                // SAFETY: the caller ensures the target features, and at most `MOST` words.
                unsafe { compiled(words, len, coding) }
            }
        }
    };
}
networks!(U8x32, "avx512f,avx512bw,avx2,popcnt,bmi1,bmi2", 16);
networks!(U16x32, "avx512f,avx512bw,avx512vbmi2,avx2,popcnt,bmi1,bmi2", 16);
networks!(U32x8, "avx2,popcnt,bmi1,bmi2", 8);
networks!(I64x4, "avx2,popcnt,bmi1,bmi2", 8);
networks!(U32x16, "avx512f,avx2,popcnt,bmi1,bmi2", 16);
networks!(U64x8, "avx512f,avx2,popcnt,bmi1,bmi2", 16);

/// Declares the type of a processor with an instruction set: its vectors, the vectors for fewer words, and the target
/// features.
macro_rules! instructions {
    ($name:ident: $lanes:ident $few:ident, $features:literal) => {
        #[doc = concat!("A processor that has the instructions of [`", stringify!($lanes), "`].")]
        pub(super) struct $name(());

        impl $name {
            /// # Safety
            /// The processor has the target features that the functions of this type are compiled for.
            pub unsafe fn new() -> Self {
                Self(())
            }
        }

        impl Instructions for $name {
            type Word = <$lanes as Lanes>::Word;

            #[inline]
            fn sort(&self, words: &mut [Self::Word], steps: u32, coding: Coding<Self::Word>) {
                #[target_feature(enable = $features)]
                fn compiled(
                    words: &mut [<$lanes as Lanes>::Word],
                    steps: u32,
                    coding: Coding<<$lanes as Lanes>::Word>,
                ) {
                    // SAFETY: this function is compiled for the instruction set, and `words` is a slice of
                    // `words.len()` words.
                    unsafe { quicksort::sort::<$lanes>(words.as_mut_ptr(), words.len(), steps, coding) }
                }
                // SAFETY: `self` exists, so the caller of `new` has ensured that the processor has these target
                // features. Networks get at most `MOST` words.
                unsafe {
                    match words.len() {
                        len if len <= $lanes::MOST => few::sort_keys::<$lanes>(words.as_mut_ptr(), len, &coding),
                        _ => compiled(words, steps, coding),
                    }
                }
            }

            // Here, so that it is compiled in this crate, as the sort on one thread is.
            fn sort_on(&self, words: &mut [Self::Word], threads: usize, coding: Coding<Self::Word>) {
                parallel::sort(words, threads, coding, self)
            }

            fn divide(&self, words: &mut [Self::Word], pivot: Self::Word, encode: [Self::Word; 2]) -> usize {
                #[target_feature(enable = $features)]
                fn compiled(
                    words: &mut [<$lanes as Lanes>::Word],
                    pivot: <$lanes as Lanes>::Word,
                    encode: [<$lanes as Lanes>::Word; 2],
                ) -> usize {
                    assert!(words.len() >= quicksort::LEAST_DIVIDED * $lanes::LANES);
                    // SAFETY: this function is compiled for the instruction set. `words` is a slice, and by the
                    // assertion it has at least `LEAST_DIVIDED = 2 * BATCH` rows.
                    unsafe { quicksort::divide::<$lanes>(words.as_mut_ptr(), words.len(), pivot, encode) }
                }
                // SAFETY: `self` exists, so the caller of `new` has ensured that the processor has these target
                // features.
                unsafe { compiled(words, pivot, encode) }
            }

            unsafe fn sort_short(&self, words: *mut Self::Word, offsets: &[usize], coding: Coding<Self::Word>) -> bool {
                /// # Safety
                /// The conditions of [`short::sort`], other than the instruction sets.
                #[target_feature(enable = $features)]
                unsafe fn compiled(
                    words: *mut <$lanes as Lanes>::Word,
                    offsets: &[usize],
                    coding: Coding<<$lanes as Lanes>::Word>,
                ) -> bool {
                    // SAFETY: this function is compiled for both instruction sets. Its caller ensures that the offsets
                    // do not descend and that `words` points to `offsets[last] - offsets[0]` words.
                    unsafe { short::sort::<$lanes, $few>(words, offsets, coding) }
                }
                // SAFETY: `self` exists, so the processor has these target features. This method has the same
                // conditions on offsets and words.
                unsafe { compiled(words, offsets, coding) }
            }

            fn merge_short(
                &self,
                inputs: Inputs<Self::Word>,
                out: &mut [Self::Word],
                coding: Coding<Self::Word>,
            ) -> bool {
                #[target_feature(enable = $features)]
                fn compiled(
                    inputs: Inputs<<$lanes as Lanes>::Word>,
                    out: &mut [<$lanes as Lanes>::Word],
                    coding: Coding<<$lanes as Lanes>::Word>,
                ) -> bool {
                    // SAFETY: this function is compiled for both instruction sets, the only condition of
                    // `merge::merge`.
                    unsafe { merge::merge::<$lanes, $few>(inputs, out, coding) }
                }
                // SAFETY: `self` exists, so the caller of `new` has ensured that the processor has these target
                // features.
                unsafe { compiled(inputs, out, coding) }
            }
        }
    };
}
instructions!(U32Avx2: U32x8 U32x8, "avx2,popcnt,bmi1,bmi2");
instructions!(I64Avx2: I64x4 I64x4, "avx2,popcnt,bmi1,bmi2");
instructions!(U32Avx512: U32x16 U32x8, "avx512f,avx2,popcnt,bmi1,bmi2");
instructions!(U64Avx512: U64x8 U64x8, "avx512f,avx2,popcnt,bmi1,bmi2");

/// The greatest number of words of 1 byte that [`sort_bytes`] sorts.
pub(in crate::cpu) const MOST_BYTES: usize = U8x32::MOST;

/// [`Instructions::sort`] of words of 1 byte.
///
/// # Panics
/// Panics if there are more than [`MOST_BYTES`] words.
///
/// # Safety
/// The processor has the instruction set of [`U8x32`].
#[inline]
pub(super) unsafe fn sort_bytes(words: &mut [u8], coding: Coding<u8>) {
    assert!(words.len() <= MOST_BYTES);
    // SAFETY: the caller ensures the target features. By the assertion, the networks get at most `MOST` words.
    unsafe { few::sort_keys::<U8x32>(words.as_mut_ptr(), words.len(), &coding) }
}

/// [`Instructions::sort`] of words of 2 bytes.
///
/// # Safety
/// The processor has the instruction set of [`U16x32`].
#[inline]
pub(super) unsafe fn sort_2_bytes(words: &mut [u16], steps: u32, coding: Coding<u16>) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx2,popcnt,bmi1,bmi2")]
    fn compiled(words: &mut [u16], steps: u32, coding: Coding<u16>) {
        // SAFETY: this function is compiled for the instruction set, and `words` is a slice of `words.len()` words.
        unsafe { quicksort::sort::<U16x32>(words.as_mut_ptr(), words.len(), steps, coding) }
    }
    // SAFETY: the caller ensures the target features. Networks get at most `MOST` words.
    unsafe {
        match words.len() {
            len if len <= U16x32::MOST => few::sort_keys::<U16x32>(words.as_mut_ptr(), len, &coding),
            _ => compiled(words, steps, coding),
        }
    }
}

/// Evaluates `$work` with the instructions of a level for a key type of 4 or 8 bytes. The macro calls the unsafe `new`:
/// the processor must have the instructions of the level, which is not `None`.
macro_rules! with_instructions {
    ($level:expr, $key:ty, $instructions:ident => $work:expr) => {
        match (size_of::<$key>(), $level) {
            (4, Level::Avx512) => {
                let $instructions = instructions::U32Avx512::new();
                $work
            }
            (4, _) => {
                let $instructions = instructions::U32Avx2::new();
                $work
            }
            (_, Level::Avx512) => {
                let $instructions = instructions::U64Avx512::new();
                $work
            }
            _ => {
                let $instructions = instructions::I64Avx2::new();
                $work
            }
        }
    };
}
pub(super) use with_instructions;
