//! Tile shapes: how many threads a block has and how many keys each of them merges.

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

/// The merge of 4-byte keys.
pub const MERGE_4: Tile = Tile { threads: 512, values: 23 };
/// The merge of 8-byte keys.
pub const MERGE_8: Tile = Tile { threads: 256, values: 19 };
/// The fused merge of 4-byte keys.
pub const FUSED_4: Tile = Tile { threads: 256, values: 19 };
/// The fused merge of 8-byte keys.
pub const FUSED_8: Tile = Tile { threads: 256, values: 11 };
/// Keys a thread in merges that keep places: with values, and in batches.
pub const STABLE_VALUES: usize = 15;
/// The sort of 4-byte keys.
pub const SORT_4: Tile = Tile { threads: 512, values: 23 };
/// The sort of 8-byte keys.
pub const SORT_8: Tile = Tile { threads: 256, values: 19 };

/// The shape for the merge of keys of `bytes` bytes, 4 or 8.
pub const fn merge(bytes: usize) -> Tile {
    if bytes == 8 { MERGE_8 } else { MERGE_4 }
}

/// The shape for the fused merge of keys of `bytes` bytes, 4 or 8.
pub const fn fused(bytes: usize) -> Tile {
    if bytes == 8 { FUSED_8 } else { FUSED_4 }
}

/// The shape for the merge of keys with values, and of ragged batches, whose wider part is of `bytes` bytes, 4 or 8.
pub const fn stable(bytes: usize) -> Tile {
    Tile { threads: if bytes == 8 { 256 } else { 512 }, values: STABLE_VALUES }
}

/// How a batch of pairs of length `d` is cut: pairs of a block, and its threads, for keys or values of `bytes` bytes.
///
/// Of all shapes with 128 to `stable(bytes).threads` threads the one with the fewest of them idle; of equal ones the
/// largest.
pub const fn batch(d: usize, bytes: usize) -> (usize, usize) {
    let most = stable(bytes).threads;
    let (mut best_pairs, mut best_threads) = (0, 1);
    let mut threads = 128;
    while threads <= most {
        let pairs = threads * STABLE_VALUES / d;
        // More keys a thread than the best so far, or as many: pairs / threads >= best_pairs / best_threads.
        if pairs * best_threads >= best_pairs * threads {
            (best_pairs, best_threads) = (pairs, threads);
        }
        threads += 32;
    }
    (best_pairs, best_threads)
}

/// The shape for the sort of keys of `bytes` bytes, 4 or 8.
pub const fn sort(bytes: usize) -> Tile {
    if bytes == 8 { SORT_8 } else { SORT_4 }
}
