//! The sort that divides keys, again and again, until one block sorts what is left together.

use super::{Address, Entry, Queue, arguments, bits};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::sort::divide::workspace::{HEAD_WORDS, Layout};
use kernels_gpu::sort::divide::{choose_digits, count_digits, divide, place_buckets, sort_buckets};
use kernels_gpu::sort::{block_sort, divide as divisions};
use kernels_gpu::tuning::{self, Tile};
use std::ffi::c_void;

/// Up to so many keys one division is enough.
const ONE_DIVISION: usize = 1 << 22;

/// Up to so many keys, launches for a third one would take longer than they save.
const TWO_DIVISIONS: usize = 1 << 24;

/// The most digits of a division that is to be the last one, where there are few keys, and where there are many.
const MOST_DIGITS: (u32, u32) = (1024, 512);

/// Blocks of a multiprocessor, for kernels that count, place and sort what is left.
const COUNT_BLOCKS: usize = 4;

/// How keys are divided.
#[derive(Clone, Copy)]
pub(super) struct DividePlan {
    n: usize,
    /// Divisions, at most.
    levels: u32,
    /// The most digits of a last division.
    most_digits: u32,
    tile: Tile,
    bucket: Tile,
}

impl DividePlan {
    /// For `n` keys of type `K`, if there are not too many.
    pub(super) const fn of<K: Key>(n: usize) -> Option<Self> {
        if n > divisions::MOST_KEYS {
            return None;
        }
        // For many keys, one level more than are needed where keys are spread evenly.
        let (levels, most_digits) = match n {
            _ if n <= ONE_DIVISION => (1, MOST_DIGITS.0),
            _ if n <= TWO_DIVISIONS => (2, MOST_DIGITS.1),
            _ => (3, MOST_DIGITS.1),
        };
        let (tile, bucket) = tuning::divide(size_of::<K>());
        Some(Self { n, levels, most_digits, tile, bucket })
    }

    /// The entry points that may be launched.
    pub(super) fn entries<K: Key>() -> Vec<Entry> {
        let kernels = ["choose_digits", "count_digits", "place_buckets", "divide", "sort_buckets", "sort_rest"];
        kernels.into_iter().map(|kernel| (kernel, bits(size_of::<K>()))).collect()
    }

    /// Bytes of the lists.
    pub(super) fn workspace_bytes(self) -> usize {
        Layout::of(self.n, self.levels, self.tile.keys(), self.bucket.keys()).words * size_of::<u32>()
    }

    /// Queues the divisions of the first of two arrays and the sort of what they make, in place. `lists` has
    /// [`workspace_bytes`](Self::workspace_bytes). The words at `order` are those of `detect_runs`, if that `detects`, and else
    /// 0. Nothing is done where keys are in order, or not spread evenly.
    ///
    /// # Safety
    /// All of these are in the GPU's memory, both arrays have the plan's number of keys, and nothing else uses them until the
    /// sort has ended.
    pub(super) unsafe fn sort<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        (keys, scratch): (Address, Address),
        lists: Address,
        (order, detects): (Address, bool),
        random: u64,
    ) -> Result<(), Error> {
        let Self { n, levels, most_digits, tile, bucket } = self;
        let launch = |kernel, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { queue.launch(&(kernel, bits(size_of::<K>())), shape, arguments) }
        };
        // SAFETY: the caller's promise.
        unsafe { queue.clear(lists, HEAD_WORDS)? };
        let tiles = n.div_ceil(tile.keys());
        let (detects, always_divides) = (u32::from(detects), 0u32);
        let decodes = u32::from(coding != Coding::NONE);
        for level in 0..levels {
            let (from, to) = if level % 2 == 0 { (keys, scratch) } else { (scratch, keys) };
            let Coding { always, when_negative } = if level == 0 { coding } else { Coding::NONE };
            // The first level is one segment.
            let of_segments = if level == 0 { 1 } else { COUNT_BLOCKS * queue.multiprocessors() };
            let choose = Shape {
                blocks: of_segments,
                threads: choose_digits::CHOOSE_THREADS,
                shared_bytes: choose_digits::CHOOSE_SHARED_BYTES,
            };
            let arguments = arguments![
                from,
                n,
                lists,
                level,
                levels,
                always,
                when_negative,
                most_digits,
                random,
                detects,
                always_divides,
                order
            ];
            launch("choose_digits", choose, &arguments)?;
            let (threads, shared_bytes) = (tile.threads as u32, count_digits::COUNT_SHARED_BYTES);
            let count = Shape { blocks: tiles.min(COUNT_BLOCKS * queue.multiprocessors()), threads, shared_bytes };
            launch("count_digits", count, &arguments![from, n, lists, level, levels, always, when_negative, order])?;
            let place = Shape {
                blocks: of_segments,
                threads: place_buckets::PLACE_THREADS,
                shared_bytes: place_buckets::PLACE_SHARED_BYTES,
            };
            launch("place_buckets", place, &arguments![n, lists, level, levels, decodes, order])?;
            let shared_bytes = divide::shared_bytes::<K::Bits>(tile.keys());
            // Segments may have a tile each that is not full.
            let tiles = tiles + if level > 0 { divisions::MOST_DIGITS as usize } else { 0 };
            // Blocks that take one tile each are faster than those that take several. From the third level on there is nothing to
            // do, as a rule, and few blocks do it sooner.
            let blocks = if level < 2 { tiles } else { of_segments };
            let arguments = arguments![from, to, n, lists, level, levels, always, when_negative, order];
            launch("divide", Shape { blocks, threads, shared_bytes }, &arguments)?;
        }
        let Coding { always, when_negative } = coding;
        let arguments = arguments![keys, scratch, n, lists, levels, always, when_negative, order];
        let threads = bucket.threads as u32;
        let buckets = Shape {
            blocks: divisions::usual_buckets(n, bucket.keys()),
            threads,
            shared_bytes: sort_buckets::shared_bytes::<K::Bits>(bucket.threads, bucket.items_per_thread),
        };
        launch("sort_buckets", buckets, &arguments)?;
        let shared_bytes = block_sort::shared_bytes::<K::Bits>(bucket.threads, bucket.items_per_thread);
        launch("sort_rest", queue.persistent(COUNT_BLOCKS, threads, shared_bytes), &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_take_at_most_a_hundredth_of_what_the_keys_take() {
        fn check<K: Key>() {
            for n in [(1 << 21) + 1, 10_000_000, 1 << 28, divisions::MOST_KEYS] {
                let bytes = DividePlan::of::<K>(n).expect("there are not too many").workspace_bytes();
                assert!(bytes * 100 <= n * size_of::<K>(), "{bytes} bytes for {n} keys");
            }
        }
        check::<u32>();
        check::<u64>();
        assert!(DividePlan::of::<u32>(divisions::MOST_KEYS + 1).is_none());
    }
}
