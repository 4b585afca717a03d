//! Keys of 4 bytes with values of 4 bytes: the values are a second array in shared memory.
//!
//! ```text
//!   registers   VT keys per thread, with their indices, sorted by a network
//!   shared      │ keys … │       a round moves the keys, and the values in the same way
//!               │ values … │
//! ```
//!
//! The sort is stable: indices make all keys distinct in the network, and a merge takes A's keys first among equal
//! ones.

use super::Payload;
use crate::block::shared_memory::shared_memory;
use crate::block::tile;
use crate::elements::{Arrays, Source};
use crate::kernels::sort::merge_pass::plan::Plan;
use crate::kernels::sort::merge_pass::rounds::List;
use crate::key::Coding;
use crate::thread::indexed_key::{INDICES, indexed, key_and_index};
use crate::thread::network::sort_registers;
use cuda_std::prelude::*;

/// Each value moves with its key.
pub struct Beside;

shared_memory! {
    /// The keys and the values of a tile in shared memory.
    pub(super) struct PairTile(slots: usize) {
        keys: [u32; slots],
        values: [u32; slots],
    }
}

impl PairTile {
    /// Registers to shared memory: stores the thread's pairs, which begin at `slot` in the merge of `list`. The merged
    /// list is stored in order, or in reverse order from its end if not `upwards`.
    #[inline(always)]
    #[track_caller]
    fn store<const VT: usize>(self, (keys, values): ([u32; VT], [u32; VT]), list: List, slot: u32, upwards: bool) {
        let first = if upwards { slot } else { list.end - VT as u32 - (slot - list.begin) };
        // SAFETY: all threads of the block, which are whole warps, make this call: no branch around the callers depends
        // on the thread.
        unsafe {
            tile::store_blocked_or_reversed(keys, first, upwards, self.keys);
            tile::store_blocked_or_reversed(values, first, upwards, self.values);
        }
    }

    /// One round: merges `list`, where the thread has `VT` slots from `slot`, and stores it in order or reversed.
    #[inline(always)]
    #[track_caller]
    fn merge<const VT: usize>(self, list: List, slot: u32, upwards: bool) {
        let List { begin, half, end } = list;
        let runs = (self.keys.slice(begin, end - begin), self.values.slice(begin, end - begin));
        let merged: ([u32; VT], [u32; VT]) = tile::merge_pairs_to_registers(runs, half - begin, slot - begin);
        thread::sync_threads();
        self.store(merged, list, slot, upwards);
        thread::sync_threads();
    }

    /// Shared to global memory, striped.
    #[inline(always)]
    #[track_caller]
    fn store_to<const NT: usize>(self, to: Arrays<u32, u32>, coding: Coding<u32>) {
        tile::decode_to_global::<_, NT>(self.keys, to.keys, coding, thread::thread_idx_x());
        let mut i = thread::thread_idx_x() as usize;
        while i < to.values.len() {
            to.values.set(i, self.values.get(i as u32));
            i += NT;
        }
    }
}

impl<const NT: usize, const VT: usize> Payload<u32, u32, NT, VT> for Beside {
    const KEEPS_ORDER: bool = true;
    const TILE_BYTES: u32 = {
        assert!(VT <= INDICES, "a thread's keys have indices of 20 bits");
        PairTile::bytes(NT * VT)
    };

    #[inline(always)]
    unsafe fn sort(
        from: Arrays<u32, u32>,
        to: Arrays<u32, u32>,
        encode: Coding<u32>,
        decode: Coding<u32>,
        _random: u64,
    ) {
        // SAFETY: the caller's launch has `TILE_BYTES`. Thread `t < NT` copies to slots `t + i * NT`, and in each round
        // a thread writes `VT` slots of its own. Barriers separate the reads of a round from its writes.
        let tile = unsafe { PairTile::at_start(NT * VT) };
        let thread = thread::thread_idx_x();
        let mut i = thread;
        while i < (NT * VT) as u32 {
            if (i as usize) < from.keys.len() {
                tile.keys.copy_async_mut(i, from.keys, i as usize);
                tile.values.copy_async_mut(i, from.values, i as usize);
            } else {
                // The greatest key after encoding, behind all equal keys.
                tile.keys.set(i, encode.decode(u32::MAX));
                tile.values.set(i, 0);
            }
            i += NT as u32;
        }
        shared::wait_for_copies();
        thread::sync_threads();
        // A thread's keys are neighbours, so that the following rounds merge neighbouring runs.
        let slot = thread * VT as u32;
        let mut keys_at = [indexed(u32::MAX, 0); VT];
        for i in 0..VT as u32 {
            keys_at[i as usize] = indexed(encode.encode(tile.keys.get(slot + i)), i);
        }
        sort_registers(&mut keys_at);
        let (mut keys, mut values) = ([u32::MAX; VT], [0; VT]);
        for i in 0..VT {
            let (key, from) = key_and_index(keys_at[i]);
            (keys[i], values[i]) = (key, tile.values.get(slot + from));
        }
        // A thread writes the slots that it has read.
        let list = List { begin: slot, half: slot, end: slot + VT as u32 };
        tile.store((keys, values), list, slot, thread.is_multiple_of(2));
        thread::sync_threads();
        // Runs of `threads` threads become runs of `2 * threads`. Every second run is stored in reverse order.
        let mut threads = 1;
        while threads < NT as u32 {
            let first = thread & !(2 * threads - 1);
            let [begin, half, end] = [first, first + threads, first + 2 * threads].map(|thread| thread * VT as u32);
            tile.merge::<VT>(List { begin, half, end }, slot, first & (2 * threads) == 0);
            threads *= 2;
        }
        tile.store_to::<NT>(to, decode);
    }

    #[inline(always)]
    unsafe fn merge(
        plan: Plan,
        from: Source<u32, u32>,
        to: Arrays<u32, u32>,
        encode: Coding<u32>,
        decode: Coding<u32>,
    ) {
        // SAFETY: the caller's launch has `TILE_BYTES`. Each slot is filled by one thread. Barriers come between
        // filling and the rounds, and between the reads and the writes of each round.
        let tile = unsafe { PairTile::at_start(NT * VT) };
        plan.each_segment::<NT, _>(|segment| {
            let (keys, values) = (plan.segment_of(segment, from.keys), plan.segment_of(segment, from.values));
            move |i, slot| {
                tile.keys.copy_async(slot, keys, i as usize);
                tile.values.copy_async(slot, values, i as usize);
            }
        });
        let fill = |slot| {
            tile.keys.set(slot, u32::MAX);
            tile.values.set(slot, 0);
        };
        plan.each_gap::<NT>(fill);
        let slot = thread::thread_idx_x() * VT as u32;
        let position = plan.position(slot);
        if position.pair.is_none() {
            for i in 0..VT as u32 {
                fill(slot + i);
            }
        }
        shared::wait_for_copies();
        plan.encode_own::<NT, u32>(tile.keys, encode);
        thread::sync_threads();

        let levels = plan.levels();
        let mut level = 0;
        while level < levels {
            let (list, upwards) = plan.list(position, level, VT as u32);
            tile.merge::<VT>(list, slot, upwards);
            level += 1;
        }
        tile.store_to::<NT>(Arrays { keys: plan.part_of(to.keys), values: plan.part_of(to.values) }, decode);
    }
}
