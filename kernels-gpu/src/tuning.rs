//! Tile shapes: how many threads a block has and how many keys each of them merges.
//!
//! A table: a row for each architecture that was tuned, a column for each kernel and key size. Kernels are compiled with
//! the shapes of one row, [`ROW`], and run with them everywhere. To tune for another GPU, measure shapes there with
//! `scripts/tune`, add a row, name it in `ROW` and compile.

use crate::sort::runs::MAX_RUNS;

/// The shape of a tile: `threads * items_per_thread` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Threads of a block.
    pub threads: usize,
    /// Keys of a thread. Odd, as threads read shared memory this many words apart, and an odd stride uses all banks.
    pub items_per_thread: usize,
}

impl Tile {
    /// Keys of a tile.
    pub const fn keys(self) -> usize {
        self.threads * self.items_per_thread
    }
}

/// The shape of a division: tiles of `threads * items_per_thread` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivideTile {
    /// Threads of a block.
    pub threads: usize,
    /// Keys of a thread.
    pub items_per_thread: usize,
    /// Blocks of a multiprocessor.
    pub blocks: usize,
}

impl DivideTile {
    /// Keys of a tile.
    pub const fn keys(self) -> usize {
        self.threads * self.items_per_thread
    }
}

/// The shapes for one architecture. Names end in the bytes of a key.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The merge.
    pub merge_4: Tile,
    /// The merge.
    pub merge_8: Tile,
    /// The fused merge.
    pub fused_4: Tile,
    /// The fused merge.
    pub fused_8: Tile,
    /// Blocks of the fused merge on a multiprocessor, which holds at least this many at once.
    pub fused_blocks: usize,
    /// Merges that return source indices: with values, and of batches.
    pub indexed_4: Tile,
    /// Merges that return source indices.
    pub indexed_8: Tile,
    /// Ragged batches.
    pub ragged_4: Tile,
    /// Ragged batches.
    pub ragged_8: Tile,
    /// The first phase of the sort, in which a block sorts a tile: a power of two threads.
    pub block_4: Tile,
    /// The first phase of the sort.
    pub block_8: Tile,
    /// The passes of the sort.
    pub runs_4: Tile,
    /// The passes of the sort.
    pub runs_8: Tile,
    /// The first phase of the sort of few keys, where what counts is how long one block takes.
    pub small_block_4: Tile,
    /// The first phase of the sort of few keys.
    pub small_block_8: Tile,
    /// The same of so few that one pass merges all tiles: the smaller these are, the more blocks share the work.
    pub tiny_block_4: Tile,
    /// The same.
    pub tiny_block_8: Tile,
    /// The passes of the sort of few keys.
    pub small_runs_4: Tile,
    /// The passes of the sort of few keys.
    pub small_runs_8: Tile,
    /// The most keys that are few.
    pub small_sort: usize,
    /// The most keys of 4 bytes alone that are merged even if they could be sorted by all bits.
    pub merged_4: usize,
    /// The same of keys with values.
    pub merged_4v: usize,
    /// The most keys of 4 bytes alone that are too few to be divided.
    pub undivided_4: usize,
    /// The same of keys of 8 bytes.
    pub undivided_8: usize,
    /// The same of keys of 4 bytes with values.
    pub undivided_4v: usize,
    /// The same of keys of 8 bytes with values.
    pub undivided_8v: usize,
    /// The most keys that are few for a sort by all bits.
    pub few_radix: usize,
    /// The most keys that are not many for it.
    pub middle_radix: usize,
    /// The same with values of 4 bytes.
    pub few_radix_v4: usize,
    /// In the passes of the sort of keys alone: how many keys earlier or later than at its rank a tile may begin. A larger
    /// tolerance makes searches shorter and tiles smaller.
    pub rank_tolerance: u32,
    /// The same in the sort of few keys, alone or with values.
    pub small_rank_tolerance: u32,
    /// Warps that find the splits for a pass of the sort: as many as the GPU holds.
    pub split_warps: usize,
    /// The first phase of the sort of 4-byte keys with 4-byte values: a power of two threads.
    pub block_4v4: Tile,
    /// The passes of the sort of 4-byte keys with 4-byte values.
    pub runs_4v4: Tile,
    /// The first phase of the sort of keys with values, one of them of 8 bytes: a power of two threads.
    pub block_packed: Tile,
    /// The passes of that sort.
    pub runs_packed: Tile,
    /// Divisions.
    pub divide_4: DivideTile,
    /// Divisions.
    pub divide_8: DivideTile,
    /// Divisions of very many keys.
    pub divide_many_4: DivideTile,
    /// Divisions of keys of 4 bytes with values of 4 bytes.
    pub divide_4v4: DivideTile,
    /// Divisions of keys of 4 bytes with values of 8 bytes.
    pub divide_4v8: DivideTile,
    /// Divisions of keys of 8 bytes with values of 4 bytes.
    pub divide_8v4: DivideTile,
    /// Divisions of keys of 8 bytes with values of 8 bytes.
    pub divide_8v8: DivideTile,
    /// Sorts by all bits of keys of 4 bytes.
    pub radix_4: DivideTile,
    /// The same of few keys.
    pub few_radix_4: DivideTile,
    /// The same of some more keys.
    pub middle_radix_4: DivideTile,
    /// The same with values of 4 bytes.
    pub radix_4v4: DivideTile,
    /// The same of few keys.
    pub few_radix_4v4: DivideTile,
    /// The same with values of 8 bytes.
    pub radix_4v8: DivideTile,
    /// Buckets that one block sorts: a power of two threads.
    pub buckets_4: Tile,
    /// Buckets that one block sorts: a power of two threads.
    pub buckets_8: Tile,
    /// Long buckets, which one larger block sorts: a power of two threads.
    pub long_buckets_4: Tile,
    /// Buckets of keys with values: a power of two threads.
    pub buckets_4v: Tile,
    /// Buckets of keys with values: a power of two threads.
    pub buckets_8v: Tile,
    /// From so many keys of 4 bytes on they are very many.
    pub many_4: usize,
}

/// Compute capability 9.0, measured on an H200.
pub const SM_90: Row = Row {
    merge_4: Tile { threads: 256, items_per_thread: 31 },
    merge_8: Tile { threads: 256, items_per_thread: 19 },
    fused_4: Tile { threads: 256, items_per_thread: 19 },
    fused_8: Tile { threads: 256, items_per_thread: 11 },
    fused_blocks: 4,
    indexed_4: Tile { threads: 256, items_per_thread: 17 },
    indexed_8: Tile { threads: 320, items_per_thread: 15 },
    ragged_4: Tile { threads: 256, items_per_thread: 15 },
    ragged_8: Tile { threads: 160, items_per_thread: 15 },
    block_4: Tile { threads: 256, items_per_thread: 37 },
    block_8: Tile { threads: 256, items_per_thread: 19 },
    runs_4: Tile { threads: 256, items_per_thread: 55 },
    runs_8: Tile { threads: 256, items_per_thread: 29 },
    small_block_4: Tile { threads: 512, items_per_thread: 9 },
    small_block_8: Tile { threads: 512, items_per_thread: 9 },
    tiny_block_4: Tile { threads: 256, items_per_thread: 9 },
    tiny_block_8: Tile { threads: 256, items_per_thread: 9 },
    small_runs_4: Tile { threads: 256, items_per_thread: 5 },
    small_runs_8: Tile { threads: 256, items_per_thread: 9 },
    small_sort: 1 << 20,
    merged_4: 1 << 17,
    merged_4v: 1 << 15,
    undivided_4: 1 << 17,
    undivided_8: 1 << 19,
    undivided_4v: 1 << 23,
    undivided_8v: 1 << 20,
    few_radix: 1 << 19,
    middle_radix: 1 << 20,
    few_radix_v4: 1 << 18,
    rank_tolerance: 16,
    small_rank_tolerance: 64,
    split_warps: 5280,
    block_4v4: Tile { threads: 256, items_per_thread: 33 },
    runs_4v4: Tile { threads: 256, items_per_thread: 29 },
    block_packed: Tile { threads: 256, items_per_thread: 19 },
    runs_packed: Tile { threads: 256, items_per_thread: 29 },
    divide_4: DivideTile { threads: 512, items_per_thread: 16, blocks: 3 },
    divide_8: DivideTile { threads: 384, items_per_thread: 16, blocks: 3 },
    divide_many_4: DivideTile { threads: 512, items_per_thread: 24, blocks: 2 },
    divide_4v4: DivideTile { threads: 384, items_per_thread: 32, blocks: 2 },
    divide_4v8: DivideTile { threads: 384, items_per_thread: 22, blocks: 2 },
    divide_8v4: DivideTile { threads: 384, items_per_thread: 22, blocks: 2 },
    divide_8v8: DivideTile { threads: 384, items_per_thread: 16, blocks: 2 },
    radix_4: DivideTile { threads: 512, items_per_thread: 33, blocks: 2 },
    few_radix_4: DivideTile { threads: 512, items_per_thread: 9, blocks: 1 },
    middle_radix_4: DivideTile { threads: 512, items_per_thread: 17, blocks: 2 },
    radix_4v4: DivideTile { threads: 384, items_per_thread: 30, blocks: 2 },
    few_radix_4v4: DivideTile { threads: 512, items_per_thread: 7, blocks: 1 },
    radix_4v8: DivideTile { threads: 512, items_per_thread: 15, blocks: 2 },
    buckets_4: Tile { threads: 512, items_per_thread: 9 },
    buckets_8: Tile { threads: 512, items_per_thread: 9 },
    long_buckets_4: Tile { threads: 1024, items_per_thread: 15 },
    buckets_4v: Tile { threads: 512, items_per_thread: 9 },
    buckets_8v: Tile { threads: 512, items_per_thread: 9 },
    many_4: 1 << 29,
};

/// The row that kernels are compiled with.
pub const ROW: Row = SM_90;

/// The shape for the merge of keys of `bytes` bytes, 4 or 8.
pub const fn merge(bytes: usize) -> Tile {
    if bytes == 8 { ROW.merge_8 } else { ROW.merge_4 }
}

/// The shape for the fused merge of keys of `bytes` bytes, 4 or 8.
pub const fn fused(bytes: usize) -> Tile {
    if bytes == 8 { ROW.fused_8 } else { ROW.fused_4 }
}

/// The shape for merges that return source indices, with values or of batches, for keys of `bytes` bytes, 4 or 8.
pub const fn indexed(bytes: usize) -> Tile {
    if bytes == 8 { ROW.indexed_8 } else { ROW.indexed_4 }
}

/// The shape for ragged batches of keys of `bytes` bytes, 4 or 8.
pub const fn ragged(bytes: usize) -> Tile {
    if bytes == 8 { ROW.ragged_8 } else { ROW.ragged_4 }
}

/// The shape for the first phase of the sort of keys of `bytes` bytes, 4 or 8.
pub const fn block(bytes: usize) -> Tile {
    if bytes == 8 { ROW.block_8 } else { ROW.block_4 }
}

/// The shape for the passes of the sort of keys of `bytes` bytes, 4 or 8.
pub const fn runs(bytes: usize) -> Tile {
    if bytes == 8 { ROW.runs_8 } else { ROW.runs_4 }
}

/// The shape for the first phase of the sort of `n` keys of `bytes` bytes, 4 or 8, which are few, and how the names of the kernels end that are
/// compiled with it.
pub const fn small_block(bytes: usize, n: usize) -> (Tile, &'static str) {
    let (small, tiny) = match bytes {
        8 => (ROW.small_block_8, ROW.tiny_block_8),
        _ => (ROW.small_block_4, ROW.tiny_block_4),
    };
    // One larger block sorts all keys sooner than several do.
    let is_one_pass = n > small.keys() && n <= tiny.keys() * MAX_RUNS as usize;
    if n <= tiny.keys() || is_one_pass { (tiny, "tiny") } else { (small, "small") }
}

/// The shape for the passes of the sort of few keys of `bytes` bytes, 4 or 8.
pub const fn small_runs(bytes: usize) -> Tile {
    if bytes == 8 { ROW.small_runs_8 } else { ROW.small_runs_4 }
}

/// The shapes for the two phases of the sort of keys of `bytes` bytes with values of `value_bytes` bytes, each 4 or 8.
pub const fn sort_pairs(bytes: usize, value_bytes: usize) -> (Tile, Tile) {
    match (bytes, value_bytes) {
        (4, 4) => (ROW.block_4v4, ROW.runs_4v4),
        _ => (ROW.block_packed, ROW.runs_packed),
    }
}

/// The shapes of tiles and of buckets for the sort that divides `n` keys of `bytes` bytes, 4 or 8.
pub const fn divide(bytes: usize, n: usize) -> (DivideTile, Tile) {
    match bytes {
        8 => (ROW.divide_8, ROW.buckets_8),
        _ if n >= ROW.many_4 => (ROW.divide_many_4, ROW.buckets_4),
        _ => (ROW.divide_4, ROW.buckets_4),
    }
}

/// The shape of tiles in sorts by all bits of `n` keys of 4 bytes with values of `value_bytes` bytes, or 0, and how the names of the kernels end
/// that are compiled with it.
pub const fn radix(value_bytes: usize, n: usize) -> (DivideTile, &'static str) {
    match value_bytes {
        0 if n <= ROW.few_radix => (ROW.few_radix_4, "small"),
        0 if n <= ROW.middle_radix => (ROW.middle_radix_4, "middle"),
        0 => (ROW.radix_4, ""),
        4 if n <= ROW.few_radix_v4 => (ROW.few_radix_4v4, "small"),
        4 => (ROW.radix_4v4, ""),
        _ => (ROW.radix_4v8, ""),
    }
}

/// The most keys that are merged even if they could be sorted by all bits, with values of `value_bytes` bytes, or 0.
pub const fn merged(value_bytes: usize) -> usize {
    if value_bytes == 0 { ROW.merged_4 } else { ROW.merged_4v }
}

/// The most keys of `bytes` bytes that are too few to be divided, with values of `value_bytes` bytes, or 0.
pub const fn undivided(bytes: usize, value_bytes: usize) -> usize {
    match (bytes, value_bytes) {
        (4, 0) => ROW.undivided_4,
        (_, 0) => ROW.undivided_8,
        (4, _) => ROW.undivided_4v,
        _ => ROW.undivided_8v,
    }
}

/// The same as [`divide`] for keys with values of `value_bytes` bytes, 4 or 8.
pub const fn divide_with_values(bytes: usize, value_bytes: usize) -> (DivideTile, Tile) {
    match (bytes, value_bytes) {
        (4, 4) => (ROW.divide_4v4, ROW.buckets_4v),
        (4, _) => (ROW.divide_4v8, ROW.buckets_4v),
        (_, 4) => (ROW.divide_8v4, ROW.buckets_8v),
        _ => (ROW.divide_8v8, ROW.buckets_8v),
    }
}
