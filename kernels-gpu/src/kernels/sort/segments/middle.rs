//! Lists of the middle segments: those of more than 1024 keys that one block sorts.
//!
//! There is a list for each class of lengths, and a list of segments that are first [sorted by
//! bins](super::sort_middle_by_bins). Segments that bins do not sort are appended to the list of their class.

use super::middle_runs::MAX_MIDDLE;
use super::sort_short_segments::MAX_SHORT;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Upper limit on the keys of a segment of each class.
const CLASS_KEYS: [usize; CLASSES] = [2048, 4096, 5120, 6144, 8192, MAX_MIDDLE];

/// Classes of middle segments.
pub const CLASSES: usize = 6;

/// Number of the list of segments that are sorted by bins. The lists before are the classes.
pub const BINNED: usize = CLASSES;

/// Number of lists.
pub const LISTS: usize = BINNED + 1;

/// Upper limit on the keys of a segment of `class`.
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

/// Lower limit on the keys of a segment that is sorted by bins. For shorter ones, merges of two runs take no longer.
pub const MIN_BINNED: usize = class_keys(0) + 1;

/// Upper limit on the keys of a segment that is sorted by bins.
pub const MAX_BINNED: usize = ROW.sort_buckets.of(4, 0).keys();

/// Upper limit on the segments of a list for an array of `n` keys. A key is in one list, except the keys of segments
/// that bins give up, which are in two. Only the last one of segments of one length may have up to [`MAX_SHORT`] keys.
const fn most(list: usize, n: usize) -> usize {
    match list {
        0 => n / (MAX_SHORT + 1) + 1,
        BINNED => n / MIN_BINNED,
        class => n / (class_keys(class - 1) + 1),
    }
}

/// Number of entries of all lists before `list`.
#[inline(always)]
const fn entries_before(list: usize, n: usize) -> usize {
    let (mut entries, mut l) = (0, 0);
    // The loop always covers all lists, so that it is unrolled and a kernel has their sizes as constants.
    while l < LISTS {
        entries += if l < list { most(l, n) } else { 0 };
        l += 1;
    }
    entries
}

/// Words of an entry: the first key, and the number of keys.
pub(super) const ENTRY_WORDS: u32 = 2;

/// Words of the lists for an array of `n` keys.
pub const fn list_words(n: usize) -> usize {
    ENTRY_WORDS as usize * entries_before(LISTS, n)
}

/// The lists.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MiddleSegments {
    /// Number of segments of each of the [`LISTS`], 0 at first; or null if there are no lists.
    pub counts: *mut u32,
    /// The entries, in [`list_words`] words.
    pub list: *mut u32,
    /// Keys of the array.
    pub n: u32,
}

impl MiddleSegments {
    /// No lists.
    pub const NONE: Self = Self { counts: core::ptr::null_mut(), list: core::ptr::null_mut(), n: 0 };

    /// # Safety
    /// The pointers are null, or have the documented numbers of words. Only launches of one sort use the words. The
    /// launches that list segments come before the launches that read the lists.
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
        // SAFETY: the caller of `open` ensures that `counts` has `LISTS` words. Callers look for null by `takes` first.
        unsafe { GlobalMut::new(self.0.counts, LISTS) }
    }

    /// The entries of a list.
    #[inline(always)]
    fn entries(self, list: usize) -> GlobalMut<u32> {
        let n = self.0.n as usize;
        // SAFETY: the caller of `open` ensures that `list` has `list_words(n)` words. `entries_before(list + 1, n)` is
        // at most the number of all entries.
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

    /// Appends the segment of `len` keys from key `start` on. `len` is not 0, and segments of that length [are
    /// listed](Self::takes).
    #[inline(always)]
    #[track_caller]
    pub fn append(self, start: usize, len: usize) {
        let is_binned = (MIN_BINNED..=MAX_BINNED).contains(&len);
        let list = if is_binned { BINNED } else { class_of(len as u32) as usize };
        self.append_to(list, Listed { start, len: len as u32 });
    }

    /// Appends a segment that bins have not sorted to the list of its class.
    #[inline(always)]
    #[track_caller]
    pub fn append_to_class(self, segment: Listed) {
        self.append_to(class_of(segment.len) as usize, segment);
    }

    #[inline(always)]
    #[track_caller]
    fn append_to(self, list: usize, Listed { start, len }: Listed) {
        let at = ENTRY_WORDS as usize * self.counts().fetch_add(list, 1) as usize;
        let entries = self.entries(list);
        entries.set(at, start as u32);
        entries.set(at + 1, len);
    }

    /// Number of segments of a list.
    #[inline(always)]
    #[track_caller]
    pub fn count(self, list: usize) -> usize {
        self.counts().get(list) as usize
    }

    /// Starts the load of the entry of segment `i` of a list to `entry`.
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
    /// Number of keys.
    pub len: u32,
}

impl Listed {
    /// The segment of an entry of a list.
    #[inline(always)]
    #[track_caller]
    pub fn of_entry(entry: Shared<u32>) -> Self {
        Self { start: entry.get(0) as usize, len: entry.get(1) }
    }
}
