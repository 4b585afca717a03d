//! The elements of a tile that are kept, side by side with those of all tiles before.
//!
//! ```text
//!   tile       │ a b c d e f g h │        a thread has some of them in registers: b, d, e and h are kept
//!   shared     │ b d e h │                a scan over the block tells each thread where its own go
//!   output     … x y z b d e h …          a look-back tells where the tile's begin
//!                └ 3 ┘                    kept in all tiles before
//! ```

use super::LINE;
use super::scan::{BLOCK_WORDS, sum_before};
use super::shared_memory::shared_memory;
use crate::key::{Bits, Coding};
use crate::warp::look_back::Tiles;
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::WARP_SIZE;

shared_memory! {
    /// Shared memory of a block that compacts a tile.
    pub struct CompactionMemory() {
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

    /// Counts what the block keeps of `tile`, of which `own` are this thread's, and publishes it. There is a barrier between what threads
    /// do before and what they do after this.
    ///
    /// # Safety
    /// All threads of the block make this call, which are whole warps, for the tile that has been [taken](Self::take).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn count(self, tiles: Tiles, tile: u32, own: u32) -> Kept {
        // SAFETY: all threads of the block are here, whole warps, and nothing else uses `scan`.
        let (before_thread, of_tile) = unsafe { sum_before(own, self.scan) };
        if thread::thread_idx_x() == 0 {
            tiles.publish(tile, of_tile);
        }
        Kept { before_thread, of_tile }
    }

    /// Has the first warp add up what the tiles before this one keep, after a pause of so many nanoseconds. After a barrier it is [there](Self::kept_before). A tile that keeps
    /// nothing [need not know](Tiles::may_skip), and is told 0.
    ///
    /// # Safety
    /// All threads of the block make this call, which are whole warps, after [`count`](Self::count).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn look_back(self, tiles: Tiles, tile: u32, of_tile: u32, pause: u32) {
        if thread::thread_idx_x() < WARP_SIZE {
            let mut before = 0;
            if of_tile > 0 || !tiles.may_skip(tile) {
                // SAFETY: the whole first warp is here, with the block's tile.
                before = unsafe { tiles.sum_before(tile, of_tile, pause) };
            }
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
}

/// Has elements `first .. end`, as far as there are any, brought to the L2 cache: a line by each thread of the block, and no more lines than it has threads.
#[inline(always)]
#[track_caller]
pub fn prefetch_lines<T: Word>(elements: Global<T>, first: usize, end: usize) {
    let at = first + recomputed(thread::thread_idx_x()) as usize * const { LINE / size_of::<T>() };
    if at < end.min(elements.len()) {
        elements.prefetch(at);
    }
}

/// Registers to shared: those of a thread's elements that it keeps, of which `kept` has a bit for each, from slot `first` on.
#[inline(always)]
#[track_caller]
pub fn scatter<T: Word, const VT: usize>(kept: u32, first: u32, elements: impl Fn(usize) -> T, to: Shared<T>) {
    let mut address = to.address(first);
    for i in 0..VT {
        address = to.push_if(kept, 1 << i, address, elements(i));
    }
}

/// Every so many rows of a tile that is not full the block asks whether all that follow are empty.
const ROWS: usize = 8;

/// Whether row `row` and all that follow have none of `len` elements, if this is a row at which to ask.
#[inline(always)]
pub const fn is_behind<const NT: usize>(row: usize, len: usize) -> bool {
    row.is_multiple_of(ROWS) && (row * NT) as u32 >= len as u32
}

/// Shared to global, strided: the first `to.len()` words, which are at most a tile, as `coding` decodes them.
#[inline(always)]
#[track_caller]
pub fn write<B: Bits, const NT: usize, const VT: usize>(from: Shared<B>, to: GlobalMut<B>, coding: Coding<B>) {
    let mut own = load_each::<B, NT, VT>(to.len(), |i| from.get(i));
    coding.decode_all(&mut own);
    put::<B, NT, VT>(own, to);
}

/// Elements `0 .. len`, at most a tile, to registers, strided. `element` loads each.
#[inline(always)]
pub fn load_each<T: Word, const NT: usize, const VT: usize>(len: usize, element: impl Fn(u32) -> T) -> [T; VT] {
    let thread = recomputed(thread::thread_idx_x());
    // Each kind of tile has moves of its own, so that those of a full one are nothing else.
    let mut own = [T::from_register(0); VT];
    if len == NT * VT {
        for i in 0..VT {
            own[i] = element(thread + (i * NT) as u32);
        }
        return own;
    }
    for i in 0..VT {
        if is_behind::<NT>(i, len) {
            break;
        }
        let at = thread + (i * NT) as u32;
        if at < len as u32 {
            own[i] = element(at);
        }
    }
    own
}

/// Registers to global, strided: what [`load_each`] has loaded, of as many elements.
#[inline(always)]
#[track_caller]
pub fn put<T: Word, const NT: usize, const VT: usize>(own: [T; VT], to: GlobalMut<T>) {
    let thread = recomputed(thread::thread_idx_x());
    for i in 0..VT {
        if is_behind::<NT>(i, to.len()) {
            break;
        }
        if thread + ((i * NT) as u32) < to.len() as u32 {
            // As an index of 64 bits, which is a distance from one address.
            to.set(thread as usize + i * NT, own[i]);
        }
    }
}
