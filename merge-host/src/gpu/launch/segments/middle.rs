//! The sort of middle segments of keys alone, or of 4-byte keys with values: each by one block.

use super::super::{Address, Arrays, Queue, align, elements, suffix, with_values};
use super::{Bounds, has_short};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::segments::middle::{
    BINNED, CLASSES, LISTS, MAX_BINNED, MIN_BINNED, MiddleSegments, class_keys, list_words,
};
use kernels_gpu::kernels::sort::segments::middle_runs::{WhichSegments, threads};
use kernels_gpu::kernels::sort::segments::sort_middle_by_bins::{self, BINS_THREADS, SortMiddleByBins};
use kernels_gpu::kernels::sort::segments::sort_middle_segments::{self, SortMiddleSegments};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::warp::sort_lanes::MINUS_ONE;

/// Threads for each multiprocessor that sort middle segments. It holds fewer at once.
const MIDDLE_THREADS: usize = 2048;

/// Blocks for each multiprocessor that sort middle segments by bins, each block one segment after the other. It holds
/// two or three at once.
const BINS_BLOCKS: usize = 16;

/// Whether an array of `n` keys with bits `B` has lists of its middle segments: their indices have 32 bits.
pub(super) const fn has_lists<B: Bits>(n: usize, value_bytes: usize) -> bool {
    has_short::<B>(value_bytes) && n <= u32::MAX as usize
}

/// Words of the counts of the lists, or 0 if there are none.
pub(super) const fn count_words<B: Bits>(n: usize, value_bytes: usize) -> usize {
    if has_lists::<B>(n, value_bytes) { LISTS } else { 0 }
}

/// Bytes of the lists, or 0 if there are none.
pub(super) const fn list_bytes<B: Bits>(n: usize, value_bytes: usize) -> usize {
    if has_lists::<B>(n, value_bytes) { align(list_words(n) * size_of::<u32>()) } else { 0 }
}

/// The lists at these addresses, of an array of `n` keys with bits `B`, as kernels take them.
pub(super) fn lists<B: Bits>(n: usize, value_bytes: usize, counts: Address, list: Address) -> MiddleSegments {
    if !has_lists::<B>(n, value_bytes) {
        return MiddleSegments::NONE;
    }
    MiddleSegments { counts: counts as *mut u32, list: list as *mut u32, n: n as u32 }
}

/// Queues the launch of up to `most` blocks that sort the segments of `which`, each of at most `longest` keys.
///
/// # Safety
/// The arrays are in the GPU's memory, and nothing else uses them until the sort has ended. The launches before have
/// made the lists.
unsafe fn sort<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    (which, longest): (WhichSegments, usize),
    most: usize,
) -> Result<(), Error> {
    let (suffix, threads) = (suffix::<B>(at.value_bytes), threads(longest));
    let shared_bytes = sort_middle_segments::shared_bytes(size_of::<B>(), at.value_bytes, threads);
    let shape = Shape { blocks: most, threads: threads as u32, shared_bytes };
    with_values!(at.value_bytes, V => {
        let at = elements::<B, V>((at.keys, at.values));
        let sort = SortMiddleSegments { at, which, coding, minus_one: MINUS_ONE };
        // SAFETY: the segments of `which` are inside `at`, which has values of type `V`. The shape has the kernel's
        // threads and shared bytes.
        unsafe { queue.launch(&suffix, shape, &sort) }
    })
}

/// Queues the sort of the segments of `at`, all of one length, at most [`MAX_MIDDLE`] and not 0.
///
/// # Safety
/// The keys, the values, and the lists if [there are any](has_lists), are in the GPU's memory. Nothing else uses them
/// until the sort has ended.
pub(super) unsafe fn sort_of_length<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    (bounds, middle): (Bounds, MiddleSegments),
) -> Result<(), Error> {
    let (longest, length) = (bounds.longest, bounds.longest as u32);
    if !middle.counts.is_null() && (MIN_BINNED..=MAX_BINNED).contains(&longest) {
        // SAFETY: the lists have `LISTS` counts, which are cleared here.
        return unsafe {
            queue.clear(middle.counts as Address, LISTS)?;
            sort_by_bins::<B>(queue, coding, at, (middle, length))?;
            sort_classes::<B>(queue, coding, at, middle, longest)
        };
    }
    let which = WhichSegments { n: at.len, length, list: 0, middle: MiddleSegments::NONE };
    // SAFETY: the segments have `length` keys of `at`.
    unsafe { sort::<B>(queue, coding, at, (which, longest), bounds.segments.count) }
}

/// Queues the bin sort of the segments of `at` that are listed for it. If `length` is not 0, these are the segments of
/// `length` keys instead. Segments that bins do not sort are listed in `middle`.
///
/// # Safety
/// The conditions of [`sort_listed`] hold. The lists of classes are sorted later.
unsafe fn sort_by_bins<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    (middle, length): (MiddleSegments, u32),
) -> Result<(), Error> {
    let (least, n) = (if length == 0 { MIN_BINNED } else { length as usize }, at.len);
    let suffix = suffix::<B>(at.value_bytes);
    let shape = Shape {
        blocks: (BINS_BLOCKS * queue.multiprocessors()).min(n.div_ceil(least)),
        threads: BINS_THREADS as u32,
        shared_bytes: sort_middle_by_bins::shared_bytes(size_of::<B>(), at.value_bytes),
    };
    let which = WhichSegments { n, length, list: BINNED as u32, middle };
    with_values!(at.value_bytes, V => {
        let at = elements::<B, V>((at.keys, at.values));
        // SAFETY: the segments of `which` are inside `at`, which has values of type `V`. The shape has the kernel's
        // threads and shared bytes.
        unsafe { queue.launch(&suffix, shape, &SortMiddleByBins { at, which, coding }) }
    })
}

/// Queues the sort of the listed segments of `at`, of up to `longest` keys.
///
/// # Safety
/// The conditions of [`sort_of_length`] hold. The launches before have made the lists.
pub(super) unsafe fn sort_listed<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    middle: MiddleSegments,
    longest: usize,
) -> Result<(), Error> {
    // SAFETY: both functions require the conditions of this one. Bins list further segments before the classes are
    // sorted.
    unsafe {
        sort_by_bins::<B>(queue, coding, at, (middle, 0))?;
        sort_classes::<B>(queue, coding, at, middle, longest)
    }
}

/// Queues the sort of the segments of `at` in the lists of the classes for up to `longest` keys.
///
/// # Safety
/// The conditions of [`sort_listed`] hold.
unsafe fn sort_classes<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    at: Arrays,
    middle: MiddleSegments,
    longest: usize,
) -> Result<(), Error> {
    let mut shorter = 0;
    for class in (0..CLASSES).take_while(|&class| class == 0 || longest > class_keys(class - 1)) {
        let longest = class_keys(class);
        let most = MIDDLE_THREADS / threads(longest) * queue.multiprocessors();
        let which = WhichSegments { n: at.len, length: 0, list: class as u32, middle };
        // SAFETY: the list of `class` has segments of at most `class_keys(class)` keys, inside `at`.
        unsafe { sort::<B>(queue, coding, at, (which, longest), most.min(at.len / (shorter + 1)))? };
        shorter = longest;
    }
    Ok(())
}
