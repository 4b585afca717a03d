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
/// Merges that keep places, of 4-byte keys: with values, and of batches.
pub const STABLE_4: Tile = Tile { threads: 256, values: 17 };
/// Merges that keep places, of 8-byte keys.
pub const STABLE_8: Tile = Tile { threads: 320, values: 15 };
/// Ragged batches of 4-byte keys.
pub const RAGGED_4: Tile = Tile { threads: 256, values: 15 };
/// Ragged batches of 8-byte keys.
pub const RAGGED_8: Tile = Tile { threads: 160, values: 15 };
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

/// The shape for merges that keep places, with values or of batches, for keys of `bytes` bytes, 4 or 8.
pub const fn stable(bytes: usize) -> Tile {
    if bytes == 8 { STABLE_8 } else { STABLE_4 }
}

/// The shape for ragged batches of keys of `bytes` bytes, 4 or 8.
pub const fn ragged(bytes: usize) -> Tile {
    if bytes == 8 { RAGGED_8 } else { RAGGED_4 }
}

/// The shape for the sort of keys of `bytes` bytes, 4 or 8.
pub const fn sort(bytes: usize) -> Tile {
    if bytes == 8 { SORT_8 } else { SORT_4 }
}
