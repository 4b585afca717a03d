//! What both quicksorts share: the parts that wait to be sorted, and how words go to both sides of a division.

use super::lanes::Lanes;

/// Words that are to be sorted.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub begin: usize,
    pub end: usize,
    /// Whether they are in the scratch memory.
    pub in_scratch: bool,
    /// How often they may be divided.
    pub steps: u32,
}

impl Part {
    fn len(self) -> usize {
        self.end - self.begin
    }
}

/// Parts that wait. The shorter one of two is sorted first, so that each one that waits is at most half as long as that
/// before it.
pub(super) struct Parts {
    parts: [Part; usize::BITS as usize + 1],
    count: usize,
}

impl Parts {
    /// One part.
    #[inline(always)]
    pub fn of(part: Part) -> Self {
        Self { parts: [part; usize::BITS as usize + 1], count: 1 }
    }

    /// Takes the next one.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Part> {
        self.count = self.count.checked_sub(1)?;
        Some(self.parts[self.count])
    }

    /// Adds those that one has been divided into.
    #[inline(always)]
    pub fn add(&mut self, a: Part, b: Part) {
        let (shorter, longer) = if a.len() < b.len() { (a, b) } else { (b, a) };
        self.parts[self.count] = longer;
        self.parts[self.count + 1] = shorter;
        self.count += 2;
    }
}

/// The two sides of a division, each in its array, or both in the same one.
pub(super) struct Sides<L: Lanes> {
    arrays: [*mut L::Word; 2],
    /// Where in the first array the next word goes that is less than the pivot.
    pub below: usize,
    /// Before which word of the second one the next one of the others goes.
    pub above: usize,
    pivots: L,
}

impl<L: Lanes> Sides<L> {
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    pub unsafe fn new(arrays: [*mut L::Word; 2], (below, above): (usize, usize), pivot: L::Word) -> Self {
        // SAFETY: the caller's promise.
        Self { arrays, below, above, pivots: unsafe { L::splat(pivot) } }
    }

    /// Adds the words of a row.
    ///
    /// # Safety
    /// The processor has the instruction set. On both sides there is room for a row.
    #[inline(always)]
    pub unsafe fn add_row(&mut self, row: L) {
        let [low, high] = self.arrays;
        // SAFETY: the caller's promise.
        let less = unsafe { row.divide(self.pivots, low.add(self.below), high.add(self.above)) };
        self.below += less;
        self.above -= L::LANES - less;
    }

    /// Adds the first `count` words of a row.
    ///
    /// # Safety
    /// The processor has the instruction set. On both sides there is room for so many words.
    #[inline(always)]
    pub unsafe fn add_first(&mut self, row: L, count: usize) {
        let [low, high] = self.arrays;
        // SAFETY: the caller's promise.
        let less = unsafe { row.divide_first(count, self.pivots, low.add(self.below), high.add(self.above)) };
        self.below += less;
        self.above -= count - less;
    }
}
