//! Tile shapes: the threads of a block, and the keys that each thread merges, sorts or moves.
//!
//! A [`Row`] has the shapes for one architecture: a line per kernel, and a column per width of keys and values
//! ([`ByWidths`]). Kernels are compiled with the shapes of one row, [`ROW`], and run with them on all GPUs. To tune for
//! another GPU, measure shapes there with `scripts/tune`, add a row, name it in `ROW` and compile. The numbers of keys
//! where one algorithm replaces another are in `merge-host/src/gpu/launch/thresholds.rs`.

use crate::kernels::sort::runs::MAX_RUNS;

/// The shape of a tile: `threads * items_per_thread` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Threads of a block.
    pub threads: usize,
    /// Keys per thread. Odd: threads access shared memory at this stride, in words, and an odd stride uses all banks.
    pub items_per_thread: usize,
}

impl Tile {
    /// Keys of a tile.
    pub const fn keys(self) -> usize {
        self.threads * self.items_per_thread
    }
}

/// The shape of a distribution pass (a division or a radix sort): tiles of `threads * items_per_thread` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivideTile {
    /// Threads of a block.
    pub threads: usize,
    /// Keys per thread.
    pub items_per_thread: usize,
    /// Blocks per multiprocessor.
    pub blocks: usize,
}

impl DivideTile {
    /// Keys of a tile.
    pub const fn keys(self) -> usize {
        self.threads * self.items_per_thread
    }
}

/// A [`Tile`] in the table.
const fn tile(threads: usize, items_per_thread: usize) -> Option<Tile> {
    Some(Tile { threads, items_per_thread })
}

/// A [`DivideTile`] in the table.
const fn tiles(threads: usize, items_per_thread: usize, blocks: usize) -> Option<DivideTile> {
    Some(DivideTile { threads, items_per_thread, blocks })
}

/// The shapes of a kernel for keys of 4 and of 8 bytes without values, then for keys with values. These have 4 + 4, 4 +
/// 8, 8 + 4 and 8 + 8 bytes. `None` if there is no such kernel.
#[derive(Clone, Copy, Debug)]
pub struct ByWidths<T>([Option<T>; 6]);

impl<T: Copy> ByWidths<T> {
    /// The shape for keys of `key_bytes` bytes, 4 or 8, with values of `value_bytes` bytes, 0, 4 or 8.
    ///
    /// # Panics
    /// If there is no shape for these widths.
    pub const fn of(self, key_bytes: usize, value_bytes: usize) -> T {
        match self.get(key_bytes, value_bytes) {
            Some(shape) => shape,
            None => panic!("the kernel has no shape for these widths"),
        }
    }

    /// The shape for keys of `key_bytes` bytes, 4 or 8, with values of `value_bytes` bytes, 0, 4 or 8, if there is one.
    pub(crate) const fn get(self, key_bytes: usize, value_bytes: usize) -> Option<T> {
        match (key_bytes, value_bytes) {
            (4, 0) => self.0[0],
            (8, 0) => self.0[1],
            (4, 4) => self.0[2],
            (4, 8) => self.0[3],
            (8, 4) => self.0[4],
            (8, 8) => self.0[5],
            _ => panic!("a key has 4 or 8 bytes, and a value 0, 4 or 8"),
        }
    }
}

impl ByWidths<Tile> {
    /// Keys of the smallest tile for keys of `key_bytes` bytes, 4 or 8, over all widths of values.
    pub const fn fewest_keys(self, key_bytes: usize) -> usize {
        let columns = if key_bytes == 4 { [0, 2, 3] } else { [1, 4, 5] };
        let (mut fewest, mut i) = (usize::MAX, 0);
        while i < columns.len() {
            if let Some(tile) = self.0[columns[i]]
                && tile.keys() < fewest
            {
                fewest = tile.keys();
            }
            i += 1;
        }
        fewest
    }
}

/// The shapes for one architecture.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    // Merges.
    /// The merge in two phases.
    pub merge: ByWidths<Tile>,
    /// The fused merge.
    pub fused: ByWidths<Tile>,
    /// Blocks of the fused merge per multiprocessor, which holds at least this many at once.
    pub fused_blocks: usize,
    /// Merges of batches, and of needles that are searched.
    pub indexed: ByWidths<Tile>,
    /// Ragged batches.
    pub ragged: ByWidths<Tile>,

    // Operations on sorted keys: at most 31 keys per thread.
    /// Set operations.
    pub sets: ByWidths<Tile>,
    /// Unique keys.
    pub unique: ByWidths<Tile>,
    /// Run lengths.
    pub run_lengths: ByWidths<Tile>,
    /// Reductions by key.
    pub reduce: ByWidths<Tile>,
    /// Blocks of set operations per multiprocessor, for keys of 4 bytes without values. Each multiprocessor holds at
    /// least this many at once.
    pub sets_blocks: usize,
    /// Blocks per multiprocessor: unique keys of 4 bytes without values.
    pub unique_blocks: usize,
    /// Blocks per multiprocessor: set operations for keys of 8 bytes without values.
    pub wide_sets_blocks: usize,
    /// Blocks per multiprocessor: run lengths.
    pub run_lengths_blocks: usize,
    /// Blocks per multiprocessor: unique keys with values.
    pub unique_pairs_blocks: usize,
    /// Blocks per multiprocessor: reductions by key.
    pub reduce_blocks: usize,
    /// Pause of a set operation's tile before its look-back, in nanoseconds.
    pub sets_pause: u32,
    /// Pause of set operations with values, and of user-defined key types, in nanoseconds.
    pub sets_pairs_pause: u32,
    /// Pause of unique keys without values, run lengths and reductions by key, in nanoseconds.
    pub groups_pause: u32,
    /// Pause of unique keys with values, in nanoseconds.
    pub unique_pairs_pause: u32,

    // The sort. Fields have the names of kernels and of their instances.
    /// The sort of all elements by one block, in one launch: a power of two threads. If keys are not spread evenly,
    /// several blocks are faster for keys of 8 bytes alone, and for more than a few elements with values.
    pub sort_small: ByWidths<Tile>,
    /// The sort by one block of very few elements. Fewer threads have fewer instructions without a key.
    pub sort_tiny: ByWidths<Tile>,
    /// The first phase of the sort: a block, of a power of two threads, sorts a tile.
    pub block_sort: ByWidths<Tile>,
    /// The first phase of the sort of few keys, where the latency of one block matters.
    pub block_sort_small: ByWidths<Tile>,
    /// The first phase of the sort of very few keys, where one pass merges all tiles. Smaller tiles spread the work
    /// over more blocks.
    pub block_sort_tiny: ByWidths<Tile>,
    /// The merge passes of the sort.
    pub merge_runs: ByWidths<Tile>,
    /// The merge passes of the sort of few keys.
    pub merge_runs_small: ByWidths<Tile>,
    /// The merge of two halves of windows of nearly sorted keys.
    pub merge_windows: ByWidths<Tile>,
    /// Distribution passes, which divide keys into buckets.
    pub divide: ByWidths<DivideTile>,
    /// Distribution passes over very many keys.
    pub divide_many: ByWidths<DivideTile>,
    /// Buckets that one block sorts: a power of two threads.
    pub sort_buckets: ByWidths<Tile>,
    /// Long buckets, which one larger block sorts: a power of two threads.
    pub sort_long_buckets: ByWidths<Tile>,
    /// Tiles of segments, and runs of long ones: a power of two threads.
    pub sort_segments: ByWidths<Tile>,
    /// Radix sort.
    pub sort_by_radix: ByWidths<DivideTile>,
    /// Radix sort of few keys.
    pub sort_by_radix_small: ByWidths<DivideTile>,
    /// Radix sort of an intermediate number of keys.
    pub sort_by_radix_middle: ByWidths<DivideTile>,

    // Searches of the sort.
    /// In the merge passes of keys without values: how far from its rank, in keys, a tile may begin. A larger tolerance
    /// makes searches shorter and tiles smaller.
    pub rank_tolerance: u32,
    /// The tolerance in the sort of few keys, without and with values.
    pub small_rank_tolerance: u32,
    /// Warps per multiprocessor that find the splits for a merge pass. Each multiprocessor holds this many at once.
    pub split_warps: usize,
}

/// Compute capability 9.0, measured on an H200.
#[rustfmt::skip]
pub const SM_90: Row = Row {
    // Threads and keys per thread, by bytes of a key and of a value.
    //     4               8               4 + 4           4 + 8           8 + 4           8 + 8
    merge: ByWidths([
        tile(256, 31),  tile(256, 19),  tile(256, 17),  tile(256, 17),  tile(320, 15),  tile(320, 15)]),
    fused: ByWidths([
        tile(256, 19),  tile(256, 11),  None,           None,           None,           None]),
    indexed: ByWidths([
        tile(256, 17),  tile(320, 15),  tile(256, 17),  tile(256, 17),  tile(320, 15),  tile(320, 15)]),
    ragged: ByWidths([
        tile(256, 15),  tile(160, 15),  tile(256, 15),  tile(256, 15),  tile(160, 15),  tile(160, 15)]),
    sets: ByWidths([
        tile(256, 27),  tile(256, 17),  tile(256, 17),  tile(256, 17),  tile(256, 13),  tile(256, 13)]),
    unique: ByWidths([
        tile(256, 29),  tile(256, 17),  tile(256, 25),  tile(256, 17),  tile(256, 17),  tile(256, 13)]),
    run_lengths: ByWidths([
        tile(256, 29),  tile(256, 15),  None,           None,           None,           None]),
    reduce: ByWidths([
        None,           None,           tile(256, 25),  tile(256, 17),  tile(256, 17),  tile(256, 13)]),
    sort_small: ByWidths([
        tile(1024, 9),  None,           None,           None,           None,           None]),
    sort_tiny: ByWidths([
        tile(256, 9),   None,           tile(256, 9),   tile(256, 9),   tile(256, 9),   tile(256, 9)]),
    block_sort: ByWidths([
        tile(256, 37),  tile(256, 19),  tile(256, 33),  tile(256, 19),  tile(256, 19),  tile(256, 19)]),
    block_sort_small: ByWidths([
        tile(512, 9),   tile(512, 9),   None,           None,           None,           None]),
    block_sort_tiny: ByWidths([
        tile(256, 9),   tile(256, 9),   None,           None,           None,           None]),
    merge_runs: ByWidths([
        tile(256, 55),  tile(256, 29),  tile(256, 29),  tile(256, 29),  tile(256, 29),  tile(256, 29)]),
    merge_runs_small: ByWidths([
        tile(256, 5),   tile(256, 9),   None,           None,           None,           None]),
    merge_windows: ByWidths([
        tile(256, 19),  None,           tile(256, 19),  None,           None,           None]),
    sort_buckets: ByWidths([
        tile(512, 9),   tile(512, 9),   tile(512, 9),   tile(512, 9),   tile(512, 9),   tile(512, 9)]),
    sort_segments: ByWidths([
        tile(512, 9),   tile(512, 9),   tile(512, 9),   tile(512, 9),   tile(512, 7),   tile(512, 7)]),
    sort_long_buckets: ByWidths([
        tile(1024, 15), None,           None,           None,           None,           None]),

    // Threads, keys per thread, and blocks per multiprocessor.
    //     4                  8                  4 + 4              4 + 8              8 + 4              8 + 8
    divide: ByWidths([
        tiles(512, 16, 3), tiles(384, 16, 3), tiles(384, 32, 2), tiles(384, 22, 2), tiles(384, 22, 2), tiles(384, 16, 2)
    ]),
    divide_many: ByWidths([
        tiles(512, 24, 2), None,              None,              None,              None,              None]),
    sort_by_radix: ByWidths([
        tiles(512, 33, 2), None,              tiles(384, 30, 2), tiles(512, 15, 2), None,              None]),
    sort_by_radix_small: ByWidths([
        tiles(512, 9, 1),  None,              tiles(512, 7, 1),  None,              None,              None]),
    sort_by_radix_middle: ByWidths([
        tiles(512, 17, 2), None,              tiles(384, 21, 2), None,              None,              None]),

    fused_blocks: 4,
    sets_blocks: 6,
    unique_blocks: 6,
    wide_sets_blocks: 4,
    run_lengths_blocks: 5,
    unique_pairs_blocks: 4,
    reduce_blocks: 4,
    sets_pause: 1400,
    sets_pairs_pause: 1000,
    groups_pause: 1500,
    unique_pairs_pause: 1000,
    rank_tolerance: 16,
    small_rank_tolerance: 64,
    split_warps: 40,
};

/// The row of the compiled kernels.
pub const ROW: Row = SM_90;

/// The shape for the merge of keys of `bytes` bytes, 4 or 8, with values of `value_bytes` bytes, or 0.
pub const fn merge(bytes: usize, value_bytes: usize) -> Tile {
    ROW.merge.of(bytes, value_bytes)
}

/// The shape for the fused merge of keys of `bytes` bytes, 4 or 8.
pub const fn fused(bytes: usize) -> Tile {
    ROW.fused.of(bytes, 0)
}

/// The shape for merges of batches, and of needles that are searched, for keys of `bytes` bytes, 4 or 8, and any
/// values.
pub const fn indexed(bytes: usize) -> Tile {
    ROW.indexed.of(bytes, 0)
}

/// The shape for ragged batches of keys of `bytes` bytes, 4 or 8, and any values.
pub const fn ragged(bytes: usize) -> Tile {
    ROW.ragged.of(bytes, 0)
}

/// The shape for the sort by one block, and the suffix of the kernel that is compiled with it. The sort has `n` keys of
/// `bytes` bytes with values of `value_bytes` bytes, or 0. `None` if several blocks are faster, or one does not hold
/// them.
pub const fn sort_small(bytes: usize, value_bytes: usize, n: usize) -> Option<(Tile, &'static str)> {
    match (ROW.sort_tiny.get(bytes, value_bytes), ROW.sort_small.get(bytes, value_bytes)) {
        (Some(tiny), _) if n <= tiny.keys() => Some((tiny, "tiny")),
        (_, Some(small)) if n <= small.keys() => Some((small, "")),
        _ => None,
    }
}

/// The shape for the first phase of the sort of keys of `bytes` bytes, 4 or 8.
pub const fn block(bytes: usize) -> Tile {
    ROW.block_sort.of(bytes, 0)
}

/// The shape for the passes of the sort of keys of `bytes` bytes, 4 or 8.
pub const fn runs(bytes: usize) -> Tile {
    ROW.merge_runs.of(bytes, 0)
}

/// The shape for the first phase of the sort of few keys, and the suffix of the kernels that are compiled with it. The
/// sort has `n` keys of `bytes` bytes, 4 or 8.
pub const fn small_block(bytes: usize, n: usize) -> (Tile, &'static str) {
    let (small, tiny) = (ROW.block_sort_small.of(bytes, 0), ROW.block_sort_tiny.of(bytes, 0));
    // Up to `small.keys()` keys, one block with a larger tile is faster than several blocks with smaller tiles.
    let is_one_pass = n > small.keys() && n <= tiny.keys() * MAX_RUNS as usize;
    if n <= tiny.keys() || is_one_pass { (tiny, "tiny") } else { (small, "small") }
}

/// The shape for the passes of the sort of few keys of `bytes` bytes, 4 or 8.
pub const fn small_runs(bytes: usize) -> Tile {
    ROW.merge_runs_small.of(bytes, 0)
}

/// The shapes for the two phases of the sort of keys of `bytes` bytes with values of `value_bytes` bytes, each 4 or 8.
pub const fn sort_pairs(bytes: usize, value_bytes: usize) -> (Tile, Tile) {
    (ROW.block_sort.of(bytes, value_bytes), ROW.merge_runs.of(bytes, value_bytes))
}
