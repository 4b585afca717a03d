//! Keys alone.

use super::Payload;
use crate::block::sort_tile::{KeyTile, sort_tile};
use crate::block::tile;
use crate::elements::{Arrays, Source};
use crate::kernels::sort::merge_pass::plan::Plan;
use crate::kernels::sort::merge_pass::rounds::merge_segments;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Nothing moves with the keys.
pub struct Nothing;

impl<B: Bits, const NT: usize, const VT: usize> Payload<B, (), NT, VT> for Nothing {
    const KEEPS_ORDER: bool = false;
    const TILE_BYTES: u32 = KeyTile::<B>::bytes(NT * VT);

    /// Which thread begins with which keys depends on `random`, so that no input can be made that is slow because of
    /// how its keys meet.
    #[inline(always)]
    unsafe fn sort(from: Arrays<B, ()>, to: Arrays<B, ()>, encode: Coding<B>, decode: Coding<B>, random: u64) {
        // SAFETY: the caller promises `TILE_BYTES`. In `sort_tile` each thread writes `VT` slots that no other one
        // writes, below `NT * VT`; barriers come between the writes and the reads of each round, and before the tile is
        // stored.
        let tile = unsafe { KeyTile::<B>::at_start(NT * VT) }.keys;
        // Any VT keys will do for a thread to begin with, so those that it loads.
        sort_tile(tile::global_to_registers::<B, NT, VT>(from.keys, encode, random), NT as u32, tile);
        tile::decode_to_global::<_, NT>(tile, to.keys, decode, thread::thread_idx_x());
    }

    #[inline(always)]
    unsafe fn merge(plan: Plan, from: Source<B, ()>, to: Arrays<B, ()>, encode: Coding<B>, decode: Coding<B>) {
        // SAFETY: the caller promises `TILE_BYTES`. Barriers come between loading and the rounds, and between the reads
        // and the writes of each.
        let keys = unsafe { KeyTile::<B>::at_start(NT * VT) }.keys;
        plan.each_segment::<NT, _>(|segment| {
            let source = plan.segment_of(segment, from.keys);
            move |i, slot| keys.copy_async(slot, source, i as usize)
        });
        plan.each_gap::<NT>(|slot| keys.set(slot, B::MAX));
        shared::wait_for_copies();
        plan.encode_own::<NT, B>(keys, encode);
        merge_segments::<B, NT, VT>(plan, keys);

        // Shared to global. A warp writes whole lines of memory, wherever the tile begins.
        const {
            assert!(NT.is_power_of_two(), "indices modulo 2^32 are different for all threads only if `NT` divides that")
        };
        let first = thread::thread_idx_x().wrapping_sub(plan.begin() as u32) % NT as u32;
        tile::decode_to_global::<_, NT>(keys, plan.part_of(to.keys), decode, first);
    }
}
