//! The sorts and merges of words, compiled for each instruction set and size of words.

use super::avx2::{I64x4, U32x8};
use super::avx512::{U32x16, U64x8};
use super::coding::Coding;
use super::lanes::{Lanes, Word};
use super::merge::{self, Problems};
use super::{quicksort, short};

/// What an instruction set does with words of one size, on one thread.
pub(super) trait Instructions: Sync {
    type Word: Word;

    /// Sorts words as `coding` encodes them, and decodes them. They are divided up to `steps` times before they are
    /// sorted in another way.
    fn sort(&self, words: &mut [Self::Word], steps: u32, coding: Coding<Self::Word>);

    /// Encodes words by those flips, and moves those that are less than `pivot` to the front. Returns how many these
    /// are.
    ///
    /// # Panics
    /// Panics if there are fewer words than [`quicksort::LEAST_DIVIDED`] rows.
    fn divide(&self, words: &mut [Self::Word], pivot: Self::Word, encode: [Self::Word; 2]) -> usize;

    /// Sorts short segments, as [`short::sort`] says.
    ///
    /// # Safety
    /// The offsets do not descend, and `words` points to as many words as are between the first and the last.
    unsafe fn sort_short(&self, words: *mut Self::Word, offsets: &[usize], coding: Coding<Self::Word>) -> bool;

    /// Merges short problems, as [`merge::merge`] says.
    fn merge_short(
        &self,
        problems: Problems<Self::Word, impl Fn(usize) -> [usize; 2]>,
        out: &mut [Self::Word],
        coding: Coding<Self::Word>,
    ) -> bool;
}

/// Declares a processor that has an instruction set: its vectors, those for fewer words, the features, and the most
/// rows of a network.
macro_rules! instructions {
    ($name:ident: $lanes:ident $few:ident, $features:literal, $rows:literal) => {
        #[doc = concat!("A processor that has the instructions of [`", stringify!($lanes), "`].")]
        pub(super) struct $name(());

        impl $name {
            /// # Safety
            /// The processor has them.
            pub unsafe fn new() -> Self {
                Self(())
            }
        }

        impl Instructions for $name {
            type Word = <$lanes as Lanes>::Word;

            fn sort(&self, words: &mut [Self::Word], steps: u32, coding: Coding<Self::Word>) {
                #[target_feature(enable = $features)]
                fn compiled(
                    words: &mut [<$lanes as Lanes>::Word],
                    steps: u32,
                    coding: Coding<<$lanes as Lanes>::Word>,
                ) {
                    // SAFETY: this is compiled for the instruction set; these are all words of the slice.
                    unsafe { quicksort::sort::<$lanes, $rows>(words.as_mut_ptr(), words.len(), steps, coding) }
                }
                // SAFETY: `new` was told that the processor has the instruction set.
                unsafe { compiled(words, steps, coding) }
            }

            fn divide(&self, words: &mut [Self::Word], pivot: Self::Word, encode: [Self::Word; 2]) -> usize {
                #[target_feature(enable = $features)]
                fn compiled(
                    words: &mut [<$lanes as Lanes>::Word],
                    pivot: <$lanes as Lanes>::Word,
                    encode: [<$lanes as Lanes>::Word; 2],
                ) -> usize {
                    assert!(words.len() >= quicksort::LEAST_DIVIDED * $lanes::LANES);
                    // SAFETY: as above; there are words enough.
                    unsafe { quicksort::divide::<$lanes>(words.as_mut_ptr(), words.len(), pivot, encode) }
                }
                // SAFETY: as above.
                unsafe { compiled(words, pivot, encode) }
            }

            unsafe fn sort_short(&self, words: *mut Self::Word, offsets: &[usize], coding: Coding<Self::Word>) -> bool {
                /// # Safety
                /// As for [`short::sort`].
                #[target_feature(enable = $features)]
                unsafe fn compiled(
                    words: *mut <$lanes as Lanes>::Word,
                    offsets: &[usize],
                    coding: Coding<<$lanes as Lanes>::Word>,
                ) -> bool {
                    // SAFETY: the caller's promise.
                    unsafe { short::sort::<$lanes, $few>(words, offsets, coding) }
                }
                // SAFETY: as above; the rest is the caller's promise.
                unsafe { compiled(words, offsets, coding) }
            }

            fn merge_short(
                &self,
                problems: Problems<Self::Word, impl Fn(usize) -> [usize; 2]>,
                out: &mut [Self::Word],
                coding: Coding<Self::Word>,
            ) -> bool {
                #[target_feature(enable = $features)]
                fn compiled(
                    problems: Problems<<$lanes as Lanes>::Word, impl Fn(usize) -> [usize; 2]>,
                    out: &mut [<$lanes as Lanes>::Word],
                    coding: Coding<<$lanes as Lanes>::Word>,
                ) -> bool {
                    // SAFETY: this is compiled for the instruction set.
                    unsafe { merge::merge::<$lanes, $few>(problems, out, coding) }
                }
                // SAFETY: as above.
                unsafe { compiled(problems, out, coding) }
            }
        }
    };
}
instructions!(U32Avx2: U32x8 U32x8, "avx2,popcnt,bmi1,bmi2", 8);
instructions!(I64Avx2: I64x4 I64x4, "avx2,popcnt,bmi1,bmi2", 8);
instructions!(U32Avx512: U32x16 U32x8, "avx512f,avx2,popcnt,bmi1,bmi2", 16);
instructions!(U64Avx512: U64x8 U64x8, "avx512f,avx2,popcnt,bmi1,bmi2", 16);

/// Does some work with the instructions of a level for keys of a type of 4 or 8 bytes. They are unsafe to make: the
/// processor has to have them.
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
