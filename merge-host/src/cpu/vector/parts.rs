//! The parts of both quicksorts: a stack of unsorted parts, and the two sides of a division.

use super::lanes::Divide;
use std::mem::MaybeUninit;

/// A range of words to sort.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub begin: usize,
    pub end: usize,
    /// Whether the words are in the scratch memory.
    pub in_scratch: bool,
    /// The number of divisions that are left.
    pub steps: u32,
}

impl Part {
    fn len(self) -> usize {
        self.end - self.begin
    }
}

/// A stack of parts. The shorter of two parts is sorted first, so each part is at most half as long as the part below
/// it, and the stack has at most `usize::BITS + 1` parts.
pub(super) struct Parts {
    /// The first `count` parts are initialised: to initialise all would take as long as a sort of a few words.
    parts: [MaybeUninit<Part>; usize::BITS as usize + 1],
    count: usize,
}

impl Parts {
    /// A stack of one part.
    #[inline(always)]
    pub fn of(part: Part) -> Self {
        let mut parts = Self { parts: [const { MaybeUninit::uninit() }; _], count: 1 };
        parts.parts[0].write(part);
        parts
    }

    /// Takes the next part.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Part> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: this part was among the first `count` before, and these are initialised: `of` and `add` write each
        // part that they count.
        Some(unsafe { self.parts[self.count].assume_init() })
    }

    /// Adds the two parts of a division.
    #[inline(always)]
    pub fn add(&mut self, a: Part, b: Part) {
        let (shorter, longer) = if a.len() < b.len() { (a, b) } else { (b, a) };
        self.parts[self.count].write(longer);
        self.parts[self.count + 1].write(shorter);
        self.count += 2;
    }
}

/// The two sides of a division, each in its own array, or both in the same array.
pub(super) struct Sides<L: Divide> {
    arrays: [*mut L::Word; 2],
    /// The index in the first array of the next word that is less than the pivot.
    pub below: usize,
    /// The index in the second array of the last other word: the next one precedes it.
    pub above: usize,
    pivots: L,
}

impl<L: Divide> Sides<L> {
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    pub unsafe fn new(arrays: [*mut L::Word; 2], (below, above): (usize, usize), pivot: L::Word) -> Self {
        // SAFETY: the processor has the instruction set, the only condition of `splat`.
        Self { arrays, below, above, pivots: unsafe { L::splat(pivot) } }
    }

    /// Adds the words of a row.
    ///
    /// # Safety
    /// The processor has the instruction set. `LANES` words may be written from `below` on in the first array, and
    /// before `above` in the second.
    #[inline(always)]
    pub unsafe fn add_row(&mut self, row: L) {
        let [low, high] = self.arrays;
        // SAFETY: the processor has the instruction set, and each array has room for the `LANES` words that `divide`
        // may write.
        let less = unsafe { row.divide(self.pivots, low.add(self.below), high.add(self.above)) };
        self.below += less;
        self.above -= L::LANES - less;
    }

    /// Adds the first `count` words of a row.
    ///
    /// # Safety
    /// The processor has the instruction set. `count <= LANES` words may be written from `below` on in the first array,
    /// and before `above` in the second.
    #[inline(always)]
    pub unsafe fn add_first(&mut self, row: L, count: usize) {
        let [low, high] = self.arrays;
        // SAFETY: the processor has the instruction set, and each array has room for the `count` words that
        // `divide_first` may write.
        let less = unsafe { row.divide_first(count, self.pivots, low.add(self.below), high.add(self.above)) };
        self.below += less;
        self.above -= count - less;
    }
}
