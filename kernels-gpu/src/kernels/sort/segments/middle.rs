//! Lists of the middle segments: those of more than 1024 keys that one block holds.

use super::long::LONG_TILE;
use super::sort_middle_segments::max_middle;
use super::sort_short_segments::MAX_SHORT;
use cuda_std::prelude::*;

/// Classes of middle segments, each of up to twice as many keys as the one before: 2048, 4096, 8192 and more.
pub const CLASSES: usize = 4;

/// The class of segments that are sorted by all bits.
pub const BY_BITS: usize = CLASSES - 1;

const _: () = {
    assert!(class_keys(BY_BITS - 1) == max_middle(4), "longer ones than are merged are sorted by all bits");
    assert!(LONG_TILE.keys() > max_middle(4), "a block sorts more keys by all bits");
};

/// The most keys of a segment of `class`, but for the last one.
pub const fn class_keys(class: usize) -> usize {
    2 * MAX_SHORT << class
}

/// The class of segments of `len` keys, more than [`MAX_SHORT`].
#[inline(always)]
const fn class_of(len: u32) -> u32 {
    let bits = u32::BITS - ((len - 1) / class_keys(0) as u32).leading_zeros();
    if bits < CLASSES as u32 { bits } else { CLASSES as u32 - 1 }
}

/// The most segments of `class` of an array of `n` keys.
const fn most(class: usize, n: usize) -> usize {
    n / (class_keys(class) / 2 + 1)
}

/// The entries of all classes before `class`.
#[inline(always)]
const fn entries_before(class: usize, n: usize) -> usize {
    let (mut entries, mut c) = (0, 0);
    while c < class {
        entries += most(c, n);
        c += 1;
    }
    entries
}

/// Words of an entry: the first key, and how many there are.
const ENTRY_WORDS: usize = 2;

/// Words of the lists for an array of `n` keys.
pub const fn list_words(n: usize) -> usize {
    ENTRY_WORDS * entries_before(CLASSES, n)
}

/// The lists.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MiddleSegments {
    /// How many segments of each of [`CLASSES`] are listed, at first 0; or null, where there are no lists.
    pub counts: *mut u32,
    /// As many words as [`list_words`] says.
    pub list: *mut u32,
    /// Keys of the array.
    pub n: u32,
    /// The most keys of a segment that is listed.
    pub longest: u32,
}

impl MiddleSegments {
    /// No lists.
    pub const NONE: Self = Self { counts: core::ptr::null_mut(), list: core::ptr::null_mut(), n: 0, longest: 0 };

    /// # Safety
    /// The pointers are null, or of as many words as they are described to have. Launches of one sort use them, those that list segments before those
    /// that read the lists.
    #[inline(always)]
    pub(super) unsafe fn open(self) -> Lists {
        Lists(self)
    }
}

/// The lists, which have been opened.
#[derive(Clone, Copy)]
pub(super) struct Lists(MiddleSegments);

impl Lists {
    #[inline(always)]
    fn counts(self) -> GlobalMut<u32> {
        // SAFETY: `open` has promised the words.
        unsafe { GlobalMut::new(self.0.counts, CLASSES) }
    }

    /// The entries of a class.
    #[inline(always)]
    fn entries(self, class: usize) -> GlobalMut<u32> {
        let n = self.0.n as usize;
        // SAFETY: as above: `list_words` are those of all classes.
        let all = unsafe { GlobalMut::new(self.0.list, list_words(n)) };
        all.slice(ENTRY_WORDS * entries_before(class, n), ENTRY_WORDS * most(class, n))
    }

    /// Whether segments of `len` keys, more than [`MAX_SHORT`], are listed.
    #[inline(always)]
    pub fn takes(self, len: usize) -> bool {
        len <= self.0.longest as usize
    }

    /// Appends the segment of `len` keys from key `start` on, which is one of those that [are listed](Self::takes).
    #[inline(always)]
    #[track_caller]
    pub fn append(self, start: usize, len: usize) {
        let class = class_of(len as u32) as usize;
        let at = ENTRY_WORDS * self.counts().fetch_add(class, 1) as usize;
        let entries = self.entries(class);
        entries.set(at, start as u32);
        entries.set(at + 1, len as u32);
    }

    /// How many segments of `class` are listed.
    #[inline(always)]
    #[track_caller]
    pub fn count(self, class: usize) -> usize {
        self.counts().get(class) as usize
    }

    /// Where segment `i` of `class` begins, and how many keys it has.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, class: usize, i: usize) -> (usize, usize) {
        let entry = self.entries(class).slice(ENTRY_WORDS * i, ENTRY_WORDS);
        (entry.get(0) as usize, entry.get(1) as usize)
    }
}
