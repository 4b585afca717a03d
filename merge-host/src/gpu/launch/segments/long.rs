//! The sort of long segments of keys alone, or of 4-byte keys with values. Segments are divided digit by digit until
//! one block can sort each part, instead of by runs and passes of merges.

use super::super::{Address, Arrays, Queue, align, elements, suffix, with_values};
use super::has_short;
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::segments::long::count_long_segments::{self, COUNT_THREADS, CountLongSegments};
use kernels_gpu::kernels::sort::segments::long::divide_long_segments::{self, DivideLongSegments};
use kernels_gpu::kernels::sort::segments::long::find_long_segments::{self, FIND_THREADS, FindLongSegments};
use kernels_gpu::kernels::sort::segments::long::place_long_segments::{self, PLACE_THREADS, PlaceLongSegments};
use kernels_gpu::kernels::sort::segments::long::{self, LongSegments, levels, long_tile, most_units};
use kernels_gpu::kernels::sort::segments::middle::MiddleSegments;
use kernels_gpu::kernels::sort::segments::{Segments, Tiles};
use kernels_gpu::key::{Coding, Key};

/// Blocks for each multiprocessor that count, each a share of the units. It holds three or four at once, and this is a
/// multiple of both.
const COUNT_BLOCKS: usize = 12;

/// Blocks for each multiprocessor that count in levels that usually have nothing to do: fewer blocks find that sooner.
const FEW_COUNT_BLOCKS: usize = 4;

/// Blocks for each multiprocessor that place segments: it holds this many at once.
const PLACE_BLOCKS: usize = 6;

/// Levels that are likely to have a unit for all keys. With values, blocks begin in the order of their units there.
/// Units that move at the same time are then neighbours, which write to neighbouring places. Keys alone go to
/// neighbouring places in any order of units.
const BUSY_LEVELS: u32 = 2;

/// The sort of the long segments of an array.
#[derive(Clone, Copy)]
pub(super) struct LongPlan {
    n: u32,
    tiles: u32,
    key_bytes: usize,
    value_bytes: usize,
}

/// Offsets of the parts of a workspace, in bytes, and its end. The counts are at its start.
struct Layout {
    units: usize,
    end: usize,
}

impl LongPlan {
    /// The plan for the segments of `n` keys of type `K` with values of `value_bytes` bytes, or 0. `tiles` sort short
    /// segments. `None` if middle segments are not sorted by one block each, or if indices exceed 32 bits.
    pub(super) const fn of<K: Key>(n: usize, value_bytes: usize, tiles: Tiles) -> Option<Self> {
        if !has_short::<K>(value_bytes) || n > u32::MAX as usize {
            return None;
        }
        Some(Self { n: n as u32, tiles: tiles.count(n) as u32, key_bytes: size_of::<K>(), value_bytes })
    }

    const fn layout(self) -> Layout {
        let Self { key_bytes, value_bytes, .. } = self;
        let n = self.n as usize;
        let units = align(long::count_words(n, key_bytes, value_bytes) * size_of::<u32>());
        let end = units + align(long::unit_words(n, key_bytes, value_bytes) * size_of::<u32>());
        Layout { units, end }
    }

    /// Bytes of the workspace.
    pub(super) const fn bytes(self) -> usize {
        self.layout().end
    }

    /// Queues the division of the segments that are too long for one block. The parts are appended to `middle`, in `at`
    /// or in `scratch`. The `counters`, [`long::COUNTERS`] words, are 0 before.
    ///
    /// # Safety
    /// The elements of `at`, the same number of elements at `scratch`, and the workspace are in the GPU's memory.
    /// `scratch` and the workspace begin at multiples of 16. `find_segments` has written `firsts`. Nothing else uses
    /// the arrays until the sort has ended.
    pub(super) unsafe fn divide<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        (segments, firsts): (Segments, *const usize),
        (at, scratch): (Arrays, (Address, Address)),
        middle: MiddleSegments,
        (counters, workspace): (Address, Address),
    ) -> Result<(), Error> {
        let Self { key_bytes, value_bytes, .. } = self;
        let (layout, suffix) = (self.layout(), suffix::<K>(value_bytes));
        let part = |begin: usize| (workspace + begin as Address) as *mut u32;
        let long = LongSegments {
            counters: counters as *mut u32,
            counts: part(0),
            units: part(layout.units),
            n: self.n,
            tiles: self.tiles,
        };
        let find = Shape {
            blocks: (self.tiles as usize).div_ceil(FIND_THREADS as usize),
            threads: FIND_THREADS,
            shared_bytes: find_long_segments::shared_bytes(),
        };
        // SAFETY: `find_segments` has written `firsts`, and the counts and units have the sizes of `layout`. There is a
        // thread for each tile.
        unsafe { queue.launch(&suffix, find, &FindLongSegments { segments, firsts, long })? };
        let (tile, most) = (long_tile(key_bytes, value_bytes), most_units(self.n as usize, key_bytes, value_bytes));
        let shape = |blocks: usize, threads: usize, shared_bytes: u32| Shape {
            blocks: (blocks * queue.multiprocessors()).min(most),
            threads: threads as u32,
            shared_bytes,
        };
        let place_shape = shape(PLACE_BLOCKS, PLACE_THREADS as usize, place_long_segments::shared_bytes());
        let divide_bytes = divide_long_segments::shared_bytes(key_bytes, value_bytes);
        let persistent = shape(tile.blocks, tile.threads, divide_bytes);
        let whole_units = self.n as usize / tile.keys();
        let (keys, scratch_keys) = (at.keys as *mut K::Bits, scratch.0 as *mut K::Bits);
        for level in 0..levels(key_bytes) {
            let from = if level.is_multiple_of(2) { keys } else { scratch_keys };
            let divide_shape = if value_bytes > 0 && level < BUSY_LEVELS {
                Shape { blocks: whole_units.max(persistent.blocks), ..persistent }
            } else {
                persistent
            };
            let coding_of_level = if level == 0 { coding } else { Coding::NONE };
            let count_blocks = if level < BUSY_LEVELS { COUNT_BLOCKS } else { FEW_COUNT_BLOCKS };
            let count_shape = shape(count_blocks, COUNT_THREADS, count_long_segments::shared_bytes());
            let count = CountLongSegments { keys: from, long, level, coding: coding_of_level };
            // SAFETY: `from` is the side that this level reads, with `n` keys, and the launch before has written the
            // units of the level. Shapes have the threads and shared bytes of their kernels.
            unsafe {
                queue.launch(&suffix, count_shape, &count)?;
                queue.launch(&suffix, place_shape, &PlaceLongSegments { long, middle, level })?;
            }
            with_values!(value_bytes, V => {
                let (at, scratch) = (elements::<K, V>((at.keys, at.values)), elements::<K, V>(scratch));
                let divide = DivideLongSegments { at, scratch, long, level, coding };
                // SAFETY: both sides have `n` elements with values of type `V`, and the launch before has placed the
                // units of the level. The shape has the kernel's threads and shared bytes.
                unsafe { queue.launch(&suffix, divide_shape, &divide)? };
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gpu::tuning::ROW;

    #[test]
    fn the_workspace_takes_at_most_a_fourteenth_of_what_keys_and_values_take() {
        for value_bytes in [0, 4, 8] {
            let tiles = Tiles::of(ROW.sort_segments.of(4, value_bytes).keys());
            for n in [1 << 20, 5_000_000, 1 << 24, 1 << 28, u32::MAX as usize] {
                let plan = LongPlan::of::<u32>(n, value_bytes, tiles).expect("there are not too many");
                let all = n * (4 + value_bytes);
                assert!(plan.bytes() * 14 <= all, "{} bytes for {n} keys and values of {value_bytes}", plan.bytes());
            }
            assert!(LongPlan::of::<u32>(1 << 32, value_bytes, tiles).is_none());
            assert!(LongPlan::of::<u64>(1 << 20, value_bytes, tiles).is_some() == (value_bytes == 0));
        }
    }
}
