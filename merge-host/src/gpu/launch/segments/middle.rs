//! The sort of middle segments, of keys alone or of 4 bytes with values: each by one block.

use super::super::{Address, Arrays, Entry, Queue, align, elements, suffix, with_values};
use super::{Bounds, has_short};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::segments::middle::{CLASSES, MiddleSegments, class_keys, list_words};
use kernels_gpu::kernels::sort::segments::sort_middle_segments::{
    self, SORT_MIDDLE_SEGMENTS, SortMiddleSegments, threads,
};
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::warp::sort_lanes::MINUS_ONE;

/// Threads of a multiprocessor that sort middle segments, of which it holds fewer at once.
const MIDDLE_THREADS: usize = 2048;

/// Whether an array of `n` keys of type `K` has lists of its middle segments: their indices have 32 bits.
pub(super) const fn has_lists<K: Key>(n: usize, value_bytes: usize) -> bool {
    has_short::<K>(value_bytes) && n <= u32::MAX as usize
}

/// Words of the counts of the lists, or 0 if there are none.
pub(super) const fn count_words<K: Key>(n: usize, value_bytes: usize) -> usize {
    if has_lists::<K>(n, value_bytes) { CLASSES } else { 0 }
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

/// The launch of up to `most` blocks that sort segments of up to `keys` keys.
fn shape<K: Key>(value_bytes: usize, keys: usize, most: usize) -> Shape {
    let threads = threads(keys);
    let shared_bytes = sort_middle_segments::shared_bytes(size_of::<K>(), value_bytes, threads);
    Shape { blocks: most, threads: threads as u32, shared_bytes }
}

/// Queues the sort of the segments of `at`, all of one length, at most [`MAX_MIDDLE`](sort_middle_segments::MAX_MIDDLE) and not 0.
///
/// # Safety
/// The keys and values are in the GPU's memory, and nothing else uses them until the sort has ended.
pub(super) unsafe fn sort_of_length<K: Key>(
    queue: &impl Queue,
    coding: Coding<K::Bits>,
    at: Arrays,
    bounds: Bounds,
) -> Result<(), Error> {
    let (shape, length) = (shape::<K>(at.value_bytes, bounds.longest, bounds.segments.count), bounds.longest as u32);
    with_values!(at.value_bytes, V => {
        let sort = SortMiddleSegments {
            at: elements::<K, V>((at.keys, at.values)),
            scratch: elements::<K, V>((0, 0)),
            n: at.len,
            length,
            middle: MiddleSegments::NONE,
            class: 0,
            coding,
            minus_one: MINUS_ONE,
        };
        // SAFETY: the caller's promise; the shape is what the kernel asks for.
        unsafe { queue.launch(&suffix::<K>(at.value_bytes), shape, &sort) }
    })
}

/// Queues the sort of the segments that are listed, of `at` or in `scratch`, none of them of more keys than `longest`.
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
    let mut shorter = 0;
    for class in (0..CLASSES).take_while(|&class| class == 0 || longest > class_keys(class - 1)) {
        let most = MIDDLE_THREADS / threads(class_keys(class)) * queue.multiprocessors();
        let shape = shape::<K>(at.value_bytes, class_keys(class), most.min(at.len / (shorter + 1)));
        with_values!(at.value_bytes, V => {
            let sort = SortMiddleSegments {
                at: elements::<K, V>((at.keys, at.values)),
                scratch: elements::<K, V>(scratch),
                n: at.len,
                length: 0,
                middle,
                class: class as u32,
                coding,
                minus_one: MINUS_ONE,
            };
            // SAFETY: the caller's promise; the shape is what the kernel asks for.
            unsafe { queue.launch(&suffix::<K>(at.value_bytes), shape, &sort)? };
        });
        shorter = class_keys(class);
    }
    Ok(())
}

/// The entry points for keys of type `K` with values of `value_bytes` bytes, or 0.
pub(super) fn entries<K: Key>(value_bytes: usize) -> Vec<Entry> {
    vec![(SORT_MIDDLE_SEGMENTS.name, suffix::<K>(value_bytes))]
}
