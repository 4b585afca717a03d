//! The sort by all bits, for keys of 4 bytes that are not divided.

use super::many_runs::copy;
use super::{Address, Arrays, Queue, Thresholds, elements, suffix, with_values};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::divide::MOST_KEYS;
use kernels_gpu::kernels::sort::radix::sort_by_radix::SortByRadix;
use kernels_gpu::kernels::sort::radix::{self, Job, look_back, sweep};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning::DivideTile;

/// For few keys: the keys of a share, the unit of counting, and the most shares for each multiprocessor.
const SHARE: usize = 8192;
const SHARES: usize = 8;

/// The plan of a sort by all bits.
#[derive(Clone, Copy)]
pub(super) struct RadixPlan {
    n: u32,
    /// Bytes of a value, or 0.
    value_bytes: usize,
    /// Whether values begin as the keys' indices.
    indexes: bool,
    tile: DivideTile,
    /// The suffix of the kernel's name.
    shape: &'static str,
    /// Number of passes.
    sweeps: u32,
}

/// Addresses of the words of a sort by all bits.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// [`RadixPlan::CLEARED_WORDS`] words, which are 0 before the sort.
    pub cleared: Address,
    /// [`RadixPlan::published_bytes`] bytes.
    pub published: Address,
    /// The results of `detect_runs` and `choose_digits`, or 0.
    pub order: Address,
}

impl RadixPlan {
    /// Words that are 0 before the sort.
    pub(super) const CLEARED_WORDS: usize = radix::CLEARED_WORDS;

    /// The plan by these thresholds for `n` keys with bits `B` and values of `value_bytes` bytes, or 0. `None` if keys
    /// have other than 4 bytes, or if there are too many. Values begin as the keys' indices if it `indexes`.
    pub(super) const fn of<B: Bits>(
        thresholds: &Thresholds,
        n: usize,
        value_bytes: usize,
        indexes: bool,
    ) -> Option<Self> {
        // The limit is the one of divisions: of more keys, runs are detected and merged.
        if size_of::<B>() != 4 || n > MOST_KEYS {
            return None;
        }
        let (tile, shape) = thresholds.radix(value_bytes, n);
        assert!(tile.keys() <= look_back::MOST_KEYS, "a tile has more keys than are counted");
        Some(Self { n: n as u32, value_bytes, indexes, tile, shape, sweeps: radix::SWEEPS })
    }

    /// This plan for keys of which only the lowest `bits` bits differ from 0.
    pub(super) const fn with_bits(self, bits: u32) -> Self {
        let sweeps = bits.div_ceil(u32::BITS / radix::SWEEPS);
        Self { sweeps: if sweeps == 0 { 1 } else { sweeps }, ..self }
    }

    /// Bytes of the words that tiles publish.
    pub(super) const fn published_bytes(self) -> usize {
        radix::published_words(self.n as usize, self.tile.keys()) * size_of::<u32>()
    }

    /// Queues the sort of `at`, with `scratch` as the other side. The kernel does nothing if keys are in order or
    /// divided.
    ///
    /// # Safety
    /// All arrays are in the GPU's memory and have the plan's number of keys. If the kernel sorts, nothing else uses
    /// them until the sort has ended.
    pub(super) unsafe fn sort<B: Bits>(
        self,
        queue: &dyn Queue,
        coding: Coding<B>,
        at: Arrays,
        scratch: (Address, Address),
        words: Words,
    ) -> Result<(), Error> {
        let (n, tile) = (self.n as usize, self.tile);
        let tiles = n.div_ceil(tile.keys());
        // Few tiles get a multiprocessor each.
        let at_once = if tiles <= queue.multiprocessors() { 1 } else { tile.blocks } * queue.multiprocessors();
        let shares = n.div_ceil(SHARE).min(SHARES * queue.multiprocessors());
        let [words, published, order] = [words.cleared, words.published, words.order].map(|at| at as *mut u32);
        let (n, sweeps) = (self.n, self.sweeps);
        let job = Job { words, published, order, n, tiles: tiles as u32, shares: shares as u32, sweeps };
        let shared_bytes = sweep::shared_bytes(tile.threads, tile.items_per_thread, size_of::<B>(), self.value_bytes);
        let shape = Shape { blocks: tiles.max(shares).min(at_once), threads: tile.threads as u32, shared_bytes };
        let indexes = u32::from(self.indexes);
        let suffix = format!("{}{}", suffix::<B>(self.value_bytes), self.shape);
        let sorted = Arrays { keys: scratch.0, values: scratch.1, ..at };
        with_values!(self.value_bytes, V => {
            let [at, scratch] = [at, sorted].map(|side| elements::<B, V>((side.keys, side.values)));
            // SAFETY: `at` and `scratch` have the plan's `n` elements with values of type `V`, and the words have the
            // plan's sizes. The shape has the tile's threads and shared bytes, and no more blocks than run at the same
            // time.
            unsafe { queue.launch(&suffix, shape, &SortByRadix { job, at, scratch, coding, indexes })? }
        });
        if self.sweeps.is_multiple_of(2) {
            return Ok(());
        }
        // SAFETY: the last pass has written the scratch arrays, which are apart from `at`.
        unsafe { copy::<B>(queue, sorted, at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_take_at_most_a_hundredth_of_what_keys_and_values_take() {
        // For fewer keys, the counts take a little more.
        for n in [1 << 20, 5_000_000, 10_000_000, 1 << 24, 1 << 26, 1 << 28, MOST_KEYS] {
            for value_bytes in [0, 4, 8] {
                let plan =
                    RadixPlan::of::<u32>(&Thresholds::DEFAULT, n, value_bytes, false).expect("there are not too many");
                let bytes = RadixPlan::CLEARED_WORDS * size_of::<u32>() + plan.published_bytes();
                assert!(bytes * 100 <= n * (4 + value_bytes), "{bytes} bytes for {n} keys");
            }
        }
        assert!(RadixPlan::of::<u64>(&Thresholds::DEFAULT, 1 << 24, 0, false).is_none());
        assert!(RadixPlan::of::<u32>(&Thresholds::DEFAULT, MOST_KEYS + 1, 0, false).is_none());
    }
}
