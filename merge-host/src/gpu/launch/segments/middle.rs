//! The sort of middle segments, of keys alone or of 4 bytes with values: each by one block.

use super::super::{Address, Arrays, Queue, align, elements, suffix, with_numbers, with_values};
use super::{Bounds, has_short};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::segments::middle::{
    CLASSES, LISTS, MAX_BINNED, MIN_BINNED, MiddleSegments, class_keys, list_words,
};
use kernels_gpu::kernels::sort::segments::middle_runs::threads;
use kernels_gpu::kernels::sort::segments::sort_middle_by_bins::{self, BINS_THREADS, SortMiddleByBins};
use kernels_gpu::kernels::sort::segments::sort_middle_by_numbers::{self, NUMBERS_THREADS, SortMiddleByNumbers};
use kernels_gpu::kernels::sort::segments::sort_middle_segments::{self, SortMiddleSegments};
use kernels_gpu::kernels::sort::segments::sort_middle_segments_with_values::{self, SortMiddleSegmentsWithValues};
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::warp::sort_lanes::MINUS_ONE;

/// Threads of a multiprocessor that sort middle segments, of which it holds fewer at once.
const MIDDLE_THREADS: usize = 2048;

/// Blocks of a multiprocessor that sort middle segments by bins, each one after the other. It holds two or three at
/// once.
const BINS_BLOCKS: usize = 16;

/// Whether an array of `n` keys of type `K` has lists of its middle segments: their indices have 32 bits.
pub(super) const fn has_lists<K: Key>(n: usize, value_bytes: usize) -> bool {
    has_short::<K>(value_bytes) && n <= u32::MAX as usize
}

/// Words of the counts of the lists, or 0 if there are none.
pub(super) const fn count_words<K: Key>(n: usize, value_bytes: usize) -> usize {
    if has_lists::<K>(n, value_bytes) { LISTS } else { 0 }
}

/// Bytes of the lists, or 0 if there are none.
pub(super) const fn list_bytes<K: Key>(n: usize, value_bytes: usize) -> usize {
    if has_lists::<K>(n, value_bytes) { align(list_words(n) * size_of::<u32>()) } else { 0 }
}

/// What kernels are told of the lists at these addresses, of an array of `n` keys of type `K`.
pub(super) fn lists<K: Key>(n: usize, value_bytes: usize, counts: Address, list: Address) -> MiddleSegments {
    if !has_lists::<K>(n, value_bytes) {
        return MiddleSegments::NONE;
    }
    MiddleSegments { counts: counts as *mut u32, list: list as *mut u32, n: n as u32 }
}

/// Which segments a launch sorts, as the kernels are told.
struct Which {
    /// The length of all segments, or 0 for those of `class` that `middle` lists.
    length: u32,
    middle: MiddleSegments,
    class: usize,
    /// None has more keys.
    longest: usize,
}

/// Queues the launch of up to `most` blocks that sort those segments of `at`, or of `scratch`, where segments have been
/// divided by an odd number of digits.
///
/// # Safety
/// The arrays are in the GPU's memory, and nothing else uses them until the sort has ended; the lists are what the
/// launches before have made.
unsafe fn sort<K: Key>(
    queue: &impl Queue,
    coding: Coding<K::Bits>,
    (at, scratch): (Arrays, (Address, Address)),
    Which { length, middle, class, longest }: Which,
    most: usize,
) -> Result<(), Error> {
    let (suffix, threads, n, class) = (suffix::<K>(at.value_bytes), threads(longest), at.len, class as u32);
    let shape = |shared_bytes: u32| Shape { blocks: most, threads: threads as u32, shared_bytes };
    if at.value_bytes == 0 {
        let (keys, scratch) = (at.keys as *mut K::Bits, scratch.0 as *mut K::Bits);
        let sort = SortMiddleSegments { keys, scratch, n, length, middle, class, coding, minus_one: MINUS_ONE };
        // SAFETY: the caller's promise; the shape is what the kernel asks for, here and below.
        return unsafe {
            queue.launch(&suffix, shape(sort_middle_segments::shared_bytes(size_of::<K>(), threads)), &sort)
        };
    }
    let shape = shape(sort_middle_segments_with_values::shared_bytes(size_of::<K>(), at.value_bytes, threads));
    with_numbers!(at.value_bytes, V => {
        let (at, scratch) = (elements::<K, V>((at.keys, at.values)), elements::<K, V>(scratch));
        let minus_one = MINUS_ONE;
        let sort = SortMiddleSegmentsWithValues { at, scratch, n, length, middle, class, coding, minus_one };
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, shape, &sort) }
    })
}

/// Queues the sort of the segments of `at`, all of one length, at most [`MAX_MIDDLE`] and not 0.
///
/// # Safety
/// The keys and values are in the GPU's memory, and the lists, if [there are any](has_lists). Nothing else uses them
/// until the sort has ended.
pub(super) unsafe fn sort_of_length<K: Key>(
    queue: &impl Queue,
    coding: Coding<K::Bits>,
    at: Arrays,
    (bounds, middle): (Bounds, MiddleSegments),
) -> Result<(), Error> {
    let (longest, length) = (bounds.longest, bounds.longest as u32);
    if !middle.counts.is_null() && (MIN_BINNED..=MAX_BINNED).contains(&longest) {
        // SAFETY: the caller's promise; the lists have as many counts.
        return unsafe {
            queue.clear(middle.counts as Address, LISTS)?;
            sort_by_bins::<K>(queue, coding, (at, (0, 0)), (middle, length))?;
            sort_classes::<K>(queue, coding, (at, (0, 0)), middle, longest)
        };
    }
    let which = Which { length, middle: MiddleSegments::NONE, class: 0, longest };
    // SAFETY: the caller's promise; there is no scratch, as no segment has been divided.
    unsafe { sort::<K>(queue, coding, (at, (0, 0)), which, bounds.segments.count) }
}

/// Queues the sort of the segments that are listed to be sorted by bins, of `at` or in `scratch`, or, if `length` is
/// not 0, of the segments of `length` keys of `at`. Those that bins do not sort are listed in `middle`.
///
/// # Safety
/// As for [`sort_listed`], before which this is called.
unsafe fn sort_by_bins<K: Key>(
    queue: &impl Queue,
    coding: Coding<K::Bits>,
    (at, scratch): (Arrays, (Address, Address)),
    (middle, length): (MiddleSegments, u32),
) -> Result<(), Error> {
    let (least, n) = (if length == 0 { MIN_BINNED } else { length as usize }, at.len);
    let (suffix, blocks) =
        (suffix::<K>(at.value_bytes), (BINS_BLOCKS * queue.multiprocessors()).min(n.div_ceil(least)));
    if is_by_keys(size_of::<K>(), at.value_bytes) {
        let shared_bytes = sort_middle_by_bins::shared_bytes();
        let (keys, scratch) = (at.keys as *mut K::Bits, scratch.0 as *mut K::Bits);
        let sort = SortMiddleByBins { keys, scratch, n, length, middle, coding };
        // SAFETY: the caller's promise; the shape is what the kernel asks for, here and below.
        return unsafe { queue.launch(&suffix, Shape { blocks, threads: BINS_THREADS as u32, shared_bytes }, &sort) };
    }
    let shared_bytes = sort_middle_by_numbers::shared_bytes(size_of::<K>(), at.value_bytes);
    with_values!(at.value_bytes, V => {
        let (at, scratch) = (elements::<K, V>((at.keys, at.values)), elements::<K, V>(scratch));
        let sort = SortMiddleByNumbers { at, scratch, n, length, middle, coding };
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, Shape { blocks, threads: NUMBERS_THREADS as u32, shared_bytes }, &sort) }
    })
}

/// Whether the bins of keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0, are of the keys themselves,
/// and not of numbers.
const fn is_by_keys(key_bytes: usize, value_bytes: usize) -> bool {
    key_bytes == 4 && value_bytes == 0
}

/// Queues the sort of the segments that are listed, of `at` or in `scratch`, which were segments of up to `longest`
/// keys before they were divided.
///
/// # Safety
/// As for [`sort_of_length`], of both; the lists are what the launches before have made.
pub(super) unsafe fn sort_listed<K: Key>(
    queue: &impl Queue,
    coding: Coding<K::Bits>,
    (at, scratch): (Arrays, (Address, Address)),
    middle: MiddleSegments,
    longest: usize,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        sort_by_bins::<K>(queue, coding, (at, scratch), (middle, 0))?;
        sort_classes::<K>(queue, coding, (at, scratch), middle, longest)
    }
}

/// Queues the sort of the segments that the classes for up to `longest` keys list, of `at` or in `scratch`.
///
/// # Safety
/// As for [`sort_listed`].
unsafe fn sort_classes<K: Key>(
    queue: &impl Queue,
    coding: Coding<K::Bits>,
    (at, scratch): (Arrays, (Address, Address)),
    middle: MiddleSegments,
    longest: usize,
) -> Result<(), Error> {
    let mut shorter = 0;
    for class in (0..CLASSES).take_while(|&class| class == 0 || longest > class_keys(class - 1)) {
        let longest = class_keys(class);
        let most = MIDDLE_THREADS / threads(longest) * queue.multiprocessors();
        let which = Which { length: 0, middle, class, longest };
        // SAFETY: the caller's promise.
        unsafe { sort::<K>(queue, coding, (at, scratch), which, most.min(at.len / (shorter + 1)))? };
        shorter = longest;
    }
    Ok(())
}
