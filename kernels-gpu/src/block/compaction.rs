//! The elements of a tile that are kept, side by side with those of all tiles before.
//!
//! ```text
//!   tile       │ a b c d e f g h │        a thread has some of them: b, d, e and h are kept
//!   sources    │ 1 3 4 7 │                a scan over the block tells each thread where its own go
//!   output     … x y z b d e h …          a look-back tells where the tile's begin
//!                └ 3 ┘                    kept in all tiles before
//! ```

use super::scan::{BLOCK_WORDS, sum_before};
use super::shared_memory::shared_memory;
use crate::warp::look_back::Tiles;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

shared_memory! {
    /// Shared memory of a block that compacts a tile of some slots, at most 65536.
    pub struct CompactionMemory(slots: usize) {
        /// For each element that is kept, its index in the tile.
        pub sources: [u16; slots],
        scan: [u32; BLOCK_WORDS],
        /// The number of the tile.
        tile: [u32; 1],
        /// How many elements the tiles before it keep.
        before: [u64; 1],
    }
}

/// How many elements are kept, before a barrier for those of other tiles.
#[derive(Clone, Copy)]
pub struct Kept {
    /// By the threads before this one.
    pub before_thread: u32,
    /// By the block.
    pub of_tile: u32,
}

impl CompactionMemory {
    /// The next tile, for the whole block. Ends with a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn take(self, tiles: Tiles) -> u32 {
        if thread::thread_idx_x() == 0 {
            self.tile.set(0, tiles.take());
        }
        thread::sync_threads();
        self.tile.get(0)
    }

    /// Counts what the block keeps of `tile`, of which `bits` are this thread's, one for each element; publishes it; and sets the
    /// sources of those that are kept. There is a barrier between what threads do before and what they do after this.
    ///
    /// # Safety
    /// All threads of the block make this call, which are whole warps, for the tile that has been [taken](Self::take). The block keeps
    /// at most as many elements as there are slots.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn keep<const VT: usize>(self, tiles: Tiles, tile: u32, bits: u32, sources: [u32; VT]) -> Kept {
        // SAFETY: all threads of the block are here, whole warps, and nothing else uses `scan`.
        let (before_thread, of_tile) = unsafe { sum_before(bits.count_ones(), self.scan) };
        if thread::thread_idx_x() == 0 {
            tiles.publish(tile, of_tile);
        }
        let mut slot = before_thread;
        for i in 0..VT {
            if bits >> i & 1 != 0 {
                self.sources.set(slot, sources[i] as u16);
                slot += 1;
            }
        }
        Kept { before_thread, of_tile }
    }

    /// Has the first warp add up what the tiles before this one keep. After a barrier it is [there](Self::kept_before).
    ///
    /// # Safety
    /// All threads of the block make this call, which are whole warps, after [`keep`](Self::keep).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn look_back(self, tiles: Tiles, tile: u32, of_tile: u32) {
        if thread::thread_idx_x() < WARP_SIZE {
            // SAFETY: the whole first warp is here, with the block's tile.
            let before = unsafe { tiles.sum_before(tile, of_tile) };
            if thread::thread_idx_x() == 0 {
                self.before.set(0, before);
            }
        }
    }

    /// How many elements all tiles before this one keep.
    #[inline(always)]
    #[track_caller]
    pub fn kept_before(self) -> usize {
        self.before.get(0) as usize
    }

    /// Shared to global, strided: what is kept, by its source, through `convert`. The first `to.len()`, which is at most a tile.
    #[inline(always)]
    #[track_caller]
    pub fn write<T: Word, const NT: usize, const VT: usize>(
        self,
        tile: Shared<T>,
        to: GlobalMut<T>,
        convert: impl Fn(T) -> T,
    ) {
        let thread = thread::thread_idx_x() as usize;
        for i in 0..VT {
            let at = thread + i * NT;
            if at < to.len() {
                to.set(at, convert(tile.get(self.sources.get(at as u32) as u32)));
            }
        }
    }
}
