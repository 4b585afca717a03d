//! Stream compaction: writes the elements of a tile that are kept behind the elements that earlier tiles keep.
//!
//! ```text
//!   tile       │ a b c d e f g h │        a thread holds some of the elements in registers; b, d, e and h are kept
//!   shared     │ b d e h │                a scan over the block gives each thread the slot of its first kept element
//!   output     … x y z b d e h …          a look-back gives the index of the tile's first kept element
//!                └ 3 ┘                    kept by earlier tiles
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
        /// Number of elements that earlier tiles keep.
        before: [u64; 1],
    }
}

/// Numbers of kept elements, known before the look-back over earlier tiles.
#[derive(Clone, Copy)]
pub struct Kept {
    /// Kept by the threads before this one.
    pub before_thread: u32,
    /// Kept by the block.
    pub of_tile: u32,
}

impl CompactionMemory {
    /// Takes the next tile for the whole block. Ends with a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn take(self, tiles: Tiles) -> u32 {
        if thread::thread_idx_x() == 0 {
            self.tile.set(0, tiles.take());
        }
        thread::sync_threads();
        self.tile.get(0)
    }

    /// [Takes](Self::take) the next of `number` tiles. Returns `None` if all are taken. Only a `COUNTED` launch can
    /// have too few tiles: it has a block for each tile of the capacity. If there is no tile at all, one thread sets
    /// `count` to 0.
    ///
    /// # Safety
    /// `count` points to one number in global memory, which no block writes if there is no tile.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn take_of<const COUNTED: bool>(self, tiles: Tiles, number: usize, count: *mut u64) -> Option<u32> {
        let tile = self.take(tiles);
        if !COUNTED || (tile as usize) < number {
            return Some(tile);
        }
        if tile == 0 && thread::thread_idx_x() == 0 {
            // SAFETY: `count` points to one number. There is no tile, and only one block takes tile 0.
            unsafe { GlobalMut::new(count, 1) }.set(0, 0);
        }
        None
    }

    /// Counts the elements that the block keeps of `tile` and publishes the sum. This thread keeps `own` elements.
    /// Contains a barrier.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call for the tile that has been [taken](Self::take).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn count(self, tiles: Tiles, tile: u32, own: u32) -> Kept {
        // SAFETY: all threads of the block, which are whole warps, make this call. `scan` is a part of this memory that
        // only this function uses.
        let (before_thread, of_tile) = unsafe { sum_before(own, self.scan) };
        if thread::thread_idx_x() == 0 {
            tiles.publish(tile, of_tile);
        }
        Kept { before_thread, of_tile }
    }

    /// The first warp adds up the elements that earlier tiles keep, after a pause of `pause` nanoseconds. The sum is
    /// available from [`kept_before`](Self::kept_before) after the next barrier. A tile that keeps nothing may
    /// [skip](Tiles::may_skip) the look-back; its sum is then 0.
    ///
    /// # Safety
    /// All threads of the block, which are whole warps, make this call after [`count`](Self::count).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn look_back(self, tiles: Tiles, tile: u32, of_tile: u32, pause: u32) {
        if thread::thread_idx_x() < WARP_SIZE {
            let mut before = 0;
            if of_tile > 0 || !tiles.may_skip(tile) {
                // SAFETY: the block is whole warps, and the conditions are equal in all threads. The 32 lanes of the
                // first warp make this call with the same arguments.
                before = unsafe { tiles.sum_before(tile, of_tile, pause) };
            }
            if thread::thread_idx_x() == 0 {
                self.before.set(0, before);
            }
        }
    }

    /// Number of elements that all earlier tiles keep.
    #[inline(always)]
    #[track_caller]
    pub fn kept_before(self) -> usize {
        self.before.get(0) as usize
    }
}

/// Prefetches elements `first .. end`, clipped to the array, into the L2 cache. Each thread of the block prefetches at
/// most one line of 128 bytes.
#[inline(always)]
#[track_caller]
pub fn prefetch_lines<T: Word>(elements: Global<T>, first: usize, end: usize) {
    let at = first + recomputed(thread::thread_idx_x()) as usize * const { LINE / size_of::<T>() };
    if at < end.min(elements.len()) {
        elements.prefetch(at);
    }
}

/// Registers to shared memory: stores the thread's kept elements from slot `first`. Bit i of `kept` tells whether
/// element i is kept.
#[inline(always)]
#[track_caller]
pub fn scatter<T: Word, const VT: usize>(kept: u32, first: u32, elements: impl Fn(usize) -> T, to: Shared<T>) {
    let mut address = to.address(first);
    for i in 0..VT {
        address = to.push_if(kept, 1 << i, address, elements(i));
    }
}

/// In a partial tile, the block checks once in this many rows whether all further rows are empty.
const ROWS: usize = 8;

/// Whether row `row` and all further rows are empty in a tile of `len` elements. False in rows that make no check.
#[inline(always)]
pub const fn is_behind<const NT: usize>(row: usize, len: usize) -> bool {
    row.is_multiple_of(ROWS) && (row * NT) as u32 >= len as u32
}

/// Shared to global memory, striped: decodes the first `to.len()` words, at most a tile, by `coding`.
#[inline(always)]
#[track_caller]
pub fn write<B: Bits, const NT: usize, const VT: usize>(from: Shared<B>, to: GlobalMut<B>, coding: Coding<B>) {
    let mut own = load_each::<B, NT, VT>(to.len(), |i| from.get(i));
    coding.decode_all(&mut own);
    put::<B, NT, VT>(own, to);
}

/// Loads elements `0 .. len`, at most a tile, to registers, striped. `element` loads one element.
#[inline(always)]
pub fn load_each<T: Word, const NT: usize, const VT: usize>(len: usize, element: impl Fn(u32) -> T) -> [T; VT] {
    let thread = recomputed(thread::thread_idx_x());
    // Full and partial tiles have separate code, so that full tiles need no bounds checks.
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

/// Registers to global memory, striped: stores `to.len()` elements from [`load_each`].
#[inline(always)]
#[track_caller]
pub fn put<T: Word, const NT: usize, const VT: usize>(own: [T; VT], to: GlobalMut<T>) {
    let thread = recomputed(thread::thread_idx_x());
    for i in 0..VT {
        if is_behind::<NT>(i, to.len()) {
            break;
        }
        if thread + ((i * NT) as u32) < to.len() as u32 {
            // A 64-bit index lets the compiler address all rows relative to one address.
            to.set(thread as usize + i * NT, own[i]);
        }
    }
}
