//! Lists of the middle segments: those that one block sorts alone. They are segments of more than 1024 keys, or parts
//! of long segments.
//!
//! There is a list for each class of lengths, and one of those that are [sorted by bins](super::sort_middle_by_bins)
//! first. What bins do not sort is appended to the list of its class.

use super::long::MOST_LEVELS;
use super::middle_runs::MAX_MIDDLE;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// The most keys of the segments of each class. Digits that divide keys evenly leave about a power of two, or some
/// more.
const CLASS_KEYS: [usize; CLASSES] = [2048, 4096, 5120, 6144, 8192, MAX_MIDDLE];

/// Classes of middle segments.
pub const CLASSES: usize = 6;

/// Which list is of those that are sorted by bins. Lists before are of classes.
pub const BINNED: usize = CLASSES;

/// How many lists there are.
pub const LISTS: usize = BINNED + 1;

/// The most keys of a segment of `class`.
pub const fn class_keys(class: usize) -> usize {
    CLASS_KEYS[class]
}

/// The class of segments of `len` keys.
#[inline(always)]
const fn class_of(len: u32) -> u32 {
    let (mut class, mut c) = (0, 0);
    while c + 1 < CLASSES {
        class += (len > CLASS_KEYS[c] as u32) as u32;
        c += 1;
    }
    class
}

/// The most keys of a digit of a long segment that may be sorted together with others.
pub const MAX_LIGHT: usize = 2048;

/// The fewest keys of a segment that is listed to be sorted by bins. Merges of two runs take no longer for fewer.
pub const MIN_BINNED: usize = class_keys(0) + 1;

/// The most keys of such a segment, and of digits that are sorted together.
pub const MAX_BINNED: usize = ROW.sort_buckets.of(4, 0).keys();

/// The most segments of a list of an array of `n` keys, at all levels of the division of long segments.
///
/// No list has a key twice: only those of segments that bins leave are in two. A segment of the first class may have
/// few keys if it is what is left between digits that are alone: of a long segment, which has more than `MAX_MIDDLE`
/// keys, there is one such segment for each `MAX_LIGHT` of its keys, two for each digit that is alone, and one more.
/// Only those digits are divided again that have more than `MAX_MIDDLE` keys, at each level but the last one.
const fn most(list: usize, n: usize) -> usize {
    match list {
        0 => 2 * (n / MAX_LIGHT) + (2 * (MOST_LEVELS - 1) + MOST_LEVELS) * (n / MAX_MIDDLE) + 2,
        BINNED => n / MIN_BINNED,
        class => n / (class_keys(class - 1) + 1),
    }
}

/// The entries of all lists before `list`.
#[inline(always)]
const fn entries_before(list: usize, n: usize) -> usize {
    let (mut entries, mut l) = (0, 0);
    // Always over all lists, so that the loop is unrolled and a kernel has their numbers of keys as constants.
    while l < LISTS {
        entries += if l < list { most(l, n) } else { 0 };
        l += 1;
    }
    entries
}

/// Words of an entry: the first key, and how many there are, with the level above [`LEVEL`].
pub(super) const ENTRY_WORDS: u32 = 2;
const LEVEL: u32 = 16;
const _: () = assert!(MAX_MIDDLE < 1 << LEVEL, "both are in one word");

/// Words of the lists for an array of `n` keys.
pub const fn list_words(n: usize) -> usize {
    ENTRY_WORDS as usize * entries_before(LISTS, n)
}

/// The lists.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MiddleSegments {
    /// How many segments each of [`LISTS`] has, at first 0; or null, where there are no lists.
    pub counts: *mut u32,
    /// As many words as [`list_words`] says.
    pub list: *mut u32,
    /// Keys of the array.
    pub n: u32,
}

impl MiddleSegments {
    /// No lists.
    pub const NONE: Self = Self { counts: core::ptr::null_mut(), list: core::ptr::null_mut(), n: 0 };

    /// # Safety
    /// The pointers are null, or of as many words as they are described to have. Launches of one sort use them, those
    /// that list segments before those that read the lists.
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
        unsafe { GlobalMut::new(self.0.counts, LISTS) }
    }

    /// The entries of a list.
    #[inline(always)]
    fn entries(self, list: usize) -> GlobalMut<u32> {
        let n = self.0.n as usize;
        // SAFETY: as above: `list_words` are those of all lists.
        let all = unsafe { GlobalMut::new(self.0.list, list_words(n)) };
        let (begin, end) = (entries_before(list, n), entries_before(list + 1, n));
        let words = |entries: usize| ENTRY_WORDS as usize * entries;
        all.slice(words(begin), words(end - begin))
    }

    /// Whether segments of `len` keys are listed.
    #[inline(always)]
    pub fn takes(self, len: usize) -> bool {
        !self.0.counts.is_null() && len <= MAX_MIDDLE
    }

    /// Appends the segment of `len` keys from key `start` on, one of those that [are listed](Self::takes) and not 0,
    /// which has been divided by `level` digits.
    #[inline(always)]
    #[track_caller]
    pub fn append(self, start: usize, len: usize, level: u32) {
        let is_binned = (MIN_BINNED..=MAX_BINNED).contains(&len);
        let list = if is_binned { BINNED } else { class_of(len as u32) as usize };
        self.append_to(list, Listed { start, len: len as u32, level });
    }

    /// Appends a segment to the list of its class, which bins have not sorted.
    #[inline(always)]
    #[track_caller]
    pub fn append_to_class(self, segment: Listed) {
        self.append_to(class_of(segment.len) as usize, segment);
    }

    #[inline(always)]
    #[track_caller]
    fn append_to(self, list: usize, Listed { start, len, level }: Listed) {
        let at = ENTRY_WORDS as usize * self.counts().fetch_add(list, 1) as usize;
        let entries = self.entries(list);
        entries.set(at, start as u32);
        entries.set(at + 1, level << LEVEL | len);
    }

    /// How many segments a list has.
    #[inline(always)]
    #[track_caller]
    pub fn count(self, list: usize) -> usize {
        self.counts().get(list) as usize
    }

    /// Brings the entry of segment `i` of a list on its way to `entry`.
    #[inline(always)]
    #[track_caller]
    pub fn fetch(self, entry: Shared<u32>, list: usize, i: usize) {
        let entries = self.entries(list);
        for word in 0..ENTRY_WORDS {
            entry.copy_async_mut(word, entries, ENTRY_WORDS as usize * i + word as usize);
        }
    }
}

/// A segment of a list.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    /// The first key.
    pub start: usize,
    /// How many there are.
    pub len: u32,
    /// By how many digits it has been divided: after none, keys are as the user has them; after an odd number, they are
    /// in the scratch array.
    pub level: u32,
}

impl Listed {
    /// The segment of an entry of a list.
    #[inline(always)]
    #[track_caller]
    pub fn of_entry(entry: Shared<u32>) -> Self {
        let (start, len_and_level) = (entry.get(0), entry.get(1));
        Self { start: start as usize, len: len_and_level & ((1 << LEVEL) - 1), level: len_and_level >> LEVEL }
    }
}
