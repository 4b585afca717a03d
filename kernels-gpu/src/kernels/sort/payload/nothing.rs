//! Keys without values.

use super::Payload;
use crate::block::sort_tile::{KeyTile, sort_tile};
use crate::block::tile;
use crate::elements::{Arrays, Source};
use crate::kernels::sort::merge_pass::plan::Plan;
use crate::kernels::sort::merge_pass::rounds::merge_segments;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// No payload.
pub struct Nothing;

impl<B: Bits, const NT: usize, const VT: usize> Payload<B, (), NT, VT> for Nothing {
    const KEEPS_ORDER: bool = false;
    const TILE_BYTES: u32 = KeyTile::<B>::bytes(NT * VT);

    /// `random` determines the initial keys of each thread, so that no input can be constructed that is always slow.
    #[inline(always)]
    unsafe fn sort(from: Arrays<B, ()>, to: Arrays<B, ()>, encode: Coding<B>, decode: Coding<B>, random: u64) {
        // SAFETY: the caller's launch has `TILE_BYTES`. In `sort_tile`, each thread writes `VT` slots of its own below
        // `NT * VT`. Barriers come between the writes and the reads of each round, and before the tile is stored.
        let tile = unsafe { KeyTile::<B>::at_start(NT * VT) }.keys;
        // The sort may begin with any assignment of keys to threads, so that each thread takes the keys that it loads.
        sort_tile(tile::global_to_registers::<B, NT, VT>(from.keys, encode, random), NT as u32, tile);
        tile::decode_to_global::<_, NT>(tile, to.keys, decode, thread::thread_idx_x());
    }

    #[inline(always)]
    unsafe fn merge(plan: Plan, from: Source<B, ()>, to: Arrays<B, ()>, encode: Coding<B>, decode: Coding<B>) {
        // SAFETY: the caller's launch has `TILE_BYTES`. Each slot is filled by one thread. Barriers come between
        // filling and the rounds, and between the reads and the writes of each round.
        let keys = unsafe { KeyTile::<B>::at_start(NT * VT) }.keys;
        plan.each_segment::<NT, _>(|segment| {
            let source = plan.segment_of(segment, from.keys);
            move |i, slot| keys.copy_async(slot, source, i as usize)
        });
        plan.each_gap::<NT>(|slot| keys.set(slot, B::MAX));
        shared::wait_for_copies();
        plan.encode_own::<NT, B>(keys, encode);
        merge_segments::<B, NT, VT>(plan, keys);

        // Shared to global memory. A warp writes whole cache lines for any start of the tile.
        const {
            assert!(NT.is_power_of_two(), "indices modulo 2^32 are different for all threads only if `NT` divides that")
        };
        let first = thread::thread_idx_x().wrapping_sub(plan.begin() as u32) % NT as u32;
        tile::decode_to_global::<_, NT>(keys, plan.part_of(to.keys), decode, first);
    }
}
