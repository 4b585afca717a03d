//! The sort of long segments of keys of 4 bytes alone: by all bits, instead of by runs and passes of merges.

use super::super::{Address, Entry, Queue, align, suffix};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::radix::SWEEPS;
use kernels_gpu::kernels::sort::segments::long::count_long_segments::{
    self, COUNT_LONG_SEGMENTS, COUNT_THREADS, CountLongSegments,
};
use kernels_gpu::kernels::sort::segments::long::find_long_segments::{
    self, FIND_LONG_SEGMENTS, FIND_THREADS, FindLongSegments,
};
use kernels_gpu::kernels::sort::segments::long::sweep_long_segments::{self, SWEEP_LONG_SEGMENTS, SweepLongSegments};
use kernels_gpu::kernels::sort::segments::long::{self, COUNTERS, LONG_TILE, LongSegments, most_units};
use kernels_gpu::kernels::sort::segments::{Segments, Tiles};
use kernels_gpu::key::{Coding, Key};

/// Blocks of a multiprocessor that count, each a share of the units. It holds three or four at once, of which this is a multiple.
const COUNT_BLOCKS: usize = 12;

/// The sort of the long segments of an array.
#[derive(Clone, Copy)]
pub(super) struct LongPlan {
    n: u32,
    tiles: u32,
}

/// Where the parts of a workspace begin, in bytes, and where it ends. The words that are cleared are at its start, up to `cleared`.
struct Layout {
    counters: usize,
    cleared: usize,
    sums: usize,
    counted: usize,
    counts: usize,
    units: usize,
    end: usize,
}

impl LongPlan {
    /// For the segments of `n` keys of type `K` with values of `value_bytes` bytes, or 0, of which short ones are sorted by `tiles`; if keys have 4 bytes and no
    /// values, and indices 32 bits.
    pub(super) const fn of<K: Key>(n: usize, value_bytes: usize, tiles: Tiles) -> Option<Self> {
        if size_of::<K>() != 4 || value_bytes != 0 || n > u32::MAX as usize {
            return None;
        }
        Some(Self { n: n as u32, tiles: tiles.count(n) as u32 })
    }

    const fn layout(self) -> Layout {
        let (tiles, units) = (self.tiles as usize, most_units(self.n as usize));
        let counters = long::scan_words(tiles) * size_of::<u64>();
        let cleared = counters + COUNTERS * size_of::<u32>();
        let sums = align(cleared);
        let counted = sums + align(long::sums(units) * size_of::<u64>());
        let counts = counted + align(units * size_of::<u32>());
        let list = counts + align(long::counts(units) * size_of::<u32>());
        let end = list + align(long::unit_words(units) * size_of::<u32>());
        Layout { counters, cleared, sums, counted, counts, units: list, end }
    }

    /// Bytes of the workspace.
    pub(super) const fn bytes(self) -> usize {
        self.layout().end
    }

    /// Queues the sort of the segments that are longer than one block holds.
    ///
    /// # Safety
    /// The keys, as many in `scratch` and the workspace are in the GPU's memory, at multiples of 16 but for the keys, and `firsts` is what
    /// `find_segments` has written. Nothing else uses them until the sort has ended.
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn sort<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        (segments, firsts): (Segments, *const usize),
        (keys, scratch): (Address, Address),
        workspace: Address,
    ) -> Result<(), Error> {
        let (layout, suffix) = (self.layout(), suffix::<K>(0));
        let [scan, counters, sums, counted, counts, units] =
            [0, layout.counters, layout.sums, layout.counted, layout.counts, layout.units]
                .map(|begin| workspace + begin as Address);
        let long = LongSegments {
            scan: scan as *mut u64,
            counters: counters as *mut u32,
            sums: sums as *mut u64,
            counted: counted as *mut u32,
            counts: counts as *mut u32,
            units: units as *mut u32,
            n: self.n,
            tiles: self.tiles,
        };
        let (keys, scratch) = (keys as *mut K::Bits, scratch as *mut K::Bits);
        let find = Shape {
            blocks: (self.tiles as usize).div_ceil(FIND_THREADS as usize),
            threads: FIND_THREADS,
            shared_bytes: find_long_segments::shared_bytes(),
        };
        // SAFETY: the caller's promise for the arrays, here and below; shapes are those that the kernels ask for.
        unsafe {
            queue.clear(workspace, layout.cleared / size_of::<u32>())?;
            queue.launch(&suffix, find, &FindLongSegments { segments, firsts, long })?;
        }
        let most = |blocks: usize| (blocks * queue.multiprocessors()).min(most_units(self.n as usize));
        let count = Shape {
            blocks: most(COUNT_BLOCKS),
            threads: COUNT_THREADS as u32,
            shared_bytes: count_long_segments::shared_bytes(),
        };
        let shape = Shape {
            blocks: most(LONG_TILE.blocks),
            threads: LONG_TILE.threads as u32,
            shared_bytes: sweep_long_segments::shared_bytes(),
        };
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, count, &CountLongSegments { keys, long, coding })? };
        for sweep in 0..SWEEPS {
            // SAFETY: as above.
            unsafe { queue.launch(&suffix, shape, &SweepLongSegments { keys, scratch, long, sweep, coding })? };
        }
        Ok(())
    }
}

/// The entry points for keys of type `K` with values of `value_bytes` bytes, or 0.
pub(super) fn entries<K: Key>(value_bytes: usize) -> Vec<Entry> {
    if size_of::<K>() != 4 || value_bytes != 0 {
        return vec![];
    }
    let suffix = suffix::<K>(0);
    let kernels = [FIND_LONG_SEGMENTS, COUNT_LONG_SEGMENTS, SWEEP_LONG_SEGMENTS];
    kernels.map(|kernel| (kernel.name, suffix.clone())).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gpu::tuning::ROW;

    #[test]
    fn the_workspace_takes_at_most_a_fourteenth_of_what_keys_take() {
        let tiles = Tiles::of(ROW.sort_segments.of(4, 0).keys());
        for n in [1 << 20, 5_000_000, 1 << 24, 1 << 28, u32::MAX as usize] {
            let plan = LongPlan::of::<u32>(n, 0, tiles).expect("there are not too many");
            assert!(plan.bytes() * 14 <= n * 4, "{} bytes for {n} keys", plan.bytes());
        }
        assert!(LongPlan::of::<u32>(1 << 32, 0, tiles).is_none());
        assert!(LongPlan::of::<u32>(1 << 20, 4, tiles).is_none());
        assert!(LongPlan::of::<f64>(1 << 20, 0, tiles).is_none());
    }
}
