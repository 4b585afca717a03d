//! The sort of a segment by all bits of its keys, by one block, in shared memory.
//!
//! ```text
//!   registers  │ rows of each warp │     by the last digit →  shared  │ in order of it │  → registers, by the next digit → … → global
//! ```

use super::long::LONG_TILE;
use super::middle::{BY_BITS, MiddleSegments};
use crate::block::shared_memory::{self, shared_memory};
use crate::kernels::sort::radix::SWEEPS;
use crate::kernels::sort::radix::sweep::BitsAt;
use crate::kernels::sort::tile_in_order::{
    DIGIT_BITS, DIGITS, Places, Span, TileMemory, ToDigit, first_row, move_to_slots,
};
use crate::kernels::sort::{clear, is_whole_warps};
use crate::key::{Bits, Coding};
use crate::tuning::{DivideTile, ROW};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::WARP_SIZE;

shared_memory! {
    /// Shared memory of a block.
    struct Memory<B: Word>(threads: usize, items_per_thread: usize) {
        tile: TileMemory<B, ()> { threads, items_per_thread },
        /// Where the digit begins that keys are sorted by.
        bit: [u32; 1],
    }
}

/// The tile of a block, which has a slot for each key of a segment.
pub const MIDDLE_TILE: DivideTile = ROW.sort_middle_by_bits.of(4, 0);

const _: () = assert!(MIDDLE_TILE.keys() == LONG_TILE.keys(), "segments of more keys are long");

/// Bytes of dynamic shared memory.
pub const fn shared_bytes() -> u32 {
    Memory::<u32>::bytes(MIDDLE_TILE.threads, MIDDLE_TILE.items_per_thread)
}

/// Kernel: sorts each segment of the last class that `middle` lists, by `coding`. Persistent blocks take one after the other.
///
/// # Safety
/// `keys` has `n` keys, in global memory, and `middle` is what [`MiddleSegments`] says, after all launches that list segments, for keys of
/// 4 bytes. Blocks are of `NT` threads, with [`shared_bytes`] of dynamic shared memory, and segments have at most `NT * VT` keys.
#[kernel(
    u32 = <u32, { MIDDLE_TILE.threads }, { MIDDLE_TILE.items_per_thread }> within (MIDDLE_TILE.threads, MIDDLE_TILE.blocks),
)]
pub unsafe fn sort_middle_by_bits<B: Bits, const NT: usize, const VT: usize>(
    keys: *mut B,
    n: usize,
    middle: MiddleSegments,
    coding: Coding<B>,
) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    const { shared_memory::check(Memory::<B>::bytes(NT, VT)) };
    // SAFETY: the caller promises the keys, of which a segment is used by one block, the lists and the memory. Barriers are where `sort_tile` says.
    let (keys, middle, Memory { tile, bit }) =
        unsafe { (GlobalMut::new(keys, n), middle.open(), Memory::<B>::at_start(NT, VT)) };
    let (mut i, count) = (thread::block_idx_x() as usize, middle.count(BY_BITS));
    while i < count {
        let (start, len) = middle.get(BY_BITS, i);
        // SAFETY: all `NT` threads of the block are here, with the same segment, of 1 to `NT * VT` keys. A barrier comes before the next one.
        unsafe { sort_tile::<B, NT, VT>(keys.slice(start, len), coding, tile, bit) };
        thread::sync_threads();
        i += thread::grid_dim_x() as usize;
    }
}

/// Sorts `keys` by all bits: digit by digit from the last one on, each in the order of the one before.
///
/// # Safety
/// All `NT` threads of the block make this call, after a barrier, and nothing else uses the memory. There are 1 to `NT * VT` keys.
#[inline(always)]
unsafe fn sort_tile<B: Bits, const NT: usize, const VT: usize>(
    keys: GlobalMut<B>,
    coding: Coding<B>,
    memory: TileMemory<B, ()>,
    bit: Shared<u32>,
) {
    let TileMemory { keys: slots, counters, distances, .. } = memory;
    let len = keys.len() as u32;
    let first = first_row::<VT>();
    // What the tile is filled up with comes last.
    let mut own = [coding.decode(B::MAX); VT];
    for i in 0..VT {
        let at = first + i as u32 * WARP_SIZE;
        if at < len {
            own[i] = keys.get(at as usize);
        }
    }
    coding.encode_all(&mut own);
    // These tell nothing here.
    clear::<NT>(distances, DIGITS);
    let mut sweep = 0;
    loop {
        clear::<NT>(counters, counters.len());
        if thread::thread_idx_x() == 0 {
            bit.set(0, sweep * DIGIT_BITS);
        }
        thread::sync_threads();
        // Read anew at each call, which is after a barrier: else the assembler keeps the digits of all keys in local memory.
        let digits = || BitsAt(bit.get(0));
        let (of_tile, warp) = (digits(), recomputed(thread::thread_idx_x()) / WARP_SIZE);
        for i in 0..VT {
            // Lanes that add 1 to the same word take no longer.
            counters.fetch_add(TileMemory::<B, ()>::counter(warp, of_tile.of(own[i])), 1);
        }
        thread::sync_threads();
        // SAFETY: all threads of the block are here, after the barrier; the tile is full, as it has been filled up. There are no values to be read.
        unsafe {
            memory.place_warps::<NT>(&InShared);
            let (tile, values) =
                (Span { begin: 0, len: NT as u32 * VT as u32 }, GlobalMut::new(core::ptr::null_mut(), 0));
            move_to_slots::<B, (), _, NT, VT, true>(own, tile, digits(), values, false, memory);
        }
        thread::sync_threads();
        // Opaque, so that the loop is not unrolled.
        sweep = recomputed(sweep + 1);
        if sweep == SWEEPS {
            break;
        }
        let first = first_row::<VT>();
        for i in 0..VT {
            own[i] = slots.get(first + i as u32 * WARP_SIZE);
        }
    }
    let mut slot = recomputed(thread::thread_idx_x());
    while slot < len {
        keys.set(slot as usize, coding.decode(slots.get(slot)));
        slot += NT as u32;
    }
}

/// The slots of the tile, which are where keys go.
struct InShared;

impl Places for InShared {
    #[inline(always)]
    unsafe fn begin(&self, _distances: Shared<u32>, _scan: Shared<u32>) {}
}
