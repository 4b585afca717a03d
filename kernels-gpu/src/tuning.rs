//! Tile shapes: how many threads a block has and how many keys each of them merges.
//!
//! A table: a row for each architecture that was tuned, a column for each kernel and key size. Kernels are compiled with
//! the shapes of one row, [`ROW`], and run with them everywhere. To tune for another GPU, measure shapes there with
//! `scripts/tune`, add a row, name it in `ROW` and compile.

/// The shape of a tile: `threads * values` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Threads of a block.
    pub threads: usize,
    /// Keys a thread. Odd: threads read shared memory `values` words apart, and an odd stride meets all banks.
    pub values: usize,
}

impl Tile {
    /// Keys of a tile.
    pub const fn keys(self) -> usize {
        self.threads * self.values
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
    /// Blocks of the fused merge on a multiprocessor, which holds at least so many at once.
    pub fused_blocks: usize,
    /// Merges that keep places: with values, and of batches.
    pub stable_4: Tile,
    /// Merges that keep places.
    pub stable_8: Tile,
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
    /// The passes of the sort of few keys.
    pub small_runs_4: Tile,
    /// The passes of the sort of few keys.
    pub small_runs_8: Tile,
    /// Up to so many keys are few.
    pub small_sort: usize,
    /// In the passes of the sort of keys alone: how many keys earlier or later than at its rank a tile may begin. The more, the
    /// sooner is found where; but tiles are that much smaller.
    pub slack: u32,
    /// The same in the sort of few keys, alone or with values.
    pub small_slack: u32,
    /// Warps that find the splits for a pass of the sort: so many as the GPU holds.
    pub split_warps: usize,
    /// The first phase of the sort of 4-byte keys with 4-byte values: a power of two threads.
    pub block_4v4: Tile,
    /// The passes of the sort of 4-byte keys with 4-byte values.
    pub runs_4v4: Tile,
    /// The first phase of the sort of keys with values, one of them of 8 bytes: a power of two threads.
    pub block_packed: Tile,
    /// The passes of that sort.
    pub runs_packed: Tile,
}

/// Compute capability 9.0, measured on an H200.
pub const SM_90: Row = Row {
    merge_4: Tile { threads: 256, values: 31 },
    merge_8: Tile { threads: 256, values: 19 },
    fused_4: Tile { threads: 256, values: 19 },
    fused_8: Tile { threads: 256, values: 11 },
    fused_blocks: 4,
    stable_4: Tile { threads: 256, values: 17 },
    stable_8: Tile { threads: 320, values: 15 },
    ragged_4: Tile { threads: 256, values: 15 },
    ragged_8: Tile { threads: 160, values: 15 },
    block_4: Tile { threads: 256, values: 37 },
    block_8: Tile { threads: 256, values: 19 },
    runs_4: Tile { threads: 256, values: 55 },
    runs_8: Tile { threads: 256, values: 29 },
    small_block_4: Tile { threads: 512, values: 9 },
    small_block_8: Tile { threads: 512, values: 9 },
    small_runs_4: Tile { threads: 256, values: 9 },
    small_runs_8: Tile { threads: 256, values: 9 },
    small_sort: 1 << 21,
    slack: 16,
    small_slack: 64,
    split_warps: 5280,
    block_4v4: Tile { threads: 256, values: 33 },
    runs_4v4: Tile { threads: 256, values: 29 },
    block_packed: Tile { threads: 256, values: 19 },
    runs_packed: Tile { threads: 256, values: 29 },
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

/// The shape for merges that keep places, with values or of batches, for keys of `bytes` bytes, 4 or 8.
pub const fn stable(bytes: usize) -> Tile {
    if bytes == 8 { ROW.stable_8 } else { ROW.stable_4 }
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

/// The shape for the first phase of the sort of few keys of `bytes` bytes, 4 or 8.
pub const fn small_block(bytes: usize) -> Tile {
    if bytes == 8 { ROW.small_block_8 } else { ROW.small_block_4 }
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
