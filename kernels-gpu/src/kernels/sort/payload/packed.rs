//! Keys with values, where a key or a value has 8 bytes: each key is packed with its slot.
//!
//! ```text
//!   shared     │ packed keys … │ low bits … │     sorted by a network and by rounds, like keys without values
//!   shared     │ values …      │                 at the end: loaded, and gathered by slot
//! ```

use super::Payload;
use super::packing::{
    PackedMemory, PackedTile, UNSURE_ROWS, copy_tile, each_row, gather, own, prefetch_tile, tile_bytes,
};
use crate::block::sort_tile::sort_tile;
use crate::block::tile;
use crate::elements::{Arrays, Source};
use crate::kernels::sort::merge_pass::plan::Plan;
use crate::kernels::sort::merge_pass::rounds::merge_segments;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Each key is packed with the slot of its value.
pub struct Packed;

impl<B: Bits, V: Word, const NT: usize, const VT: usize> Payload<B, V, NT, VT> for Packed {
    const KEEPS_ORDER: bool = true;
    const TILE_BYTES: u32 = {
        assert!(VT >= UNSURE_ROWS, "a full tile has rows that all threads have a key of, or none");
        tile_bytes(NT * VT)
    };

    #[inline(always)]
    unsafe fn sort(from: Arrays<B, V>, to: Arrays<B, V>, encode: Coding<B>, decode: Coding<B>, random: u64) {
        let count = from.keys.len();
        // SAFETY: the caller's launch has `TILE_BYTES`. Barriers separate the uses of the packed keys, the keys and the
        // values, which share their slots.
        let memory = unsafe { PackedMemory::<B, V>::at_start(NT * VT) };
        let mut tile = PackedTile::new(memory);

        prefetch_tile::<V, NT>(from.values);
        let keys = tile::global_to_registers::<B, NT, VT>(from.keys, encode, random);
        let slot = |i: usize| tile::column::<NT>(i, random) + (i * NT) as u32;
        // Full tiles have separate code, without a bounds check for each key.
        let mut packed = if count == NT * VT {
            tile.pack_all::<NT, VT>(keys, slot, |_| true)
        } else {
            tile.pack_all::<NT, VT>(keys, slot, |i| slot(i) < count as u32)
        };
        loop {
            sort_tile(packed, thread::block_dim_x(), tile.packed);
            if tile.is_in_order::<NT, VT>(count) {
                break;
            }
            let (packing, mut i) = (tile.packing(), thread::thread_idx_x());
            while i < (NT * VT) as u32 {
                let key = |i: u32| encode.encode(from.keys.get(i as usize));
                tile.packed.set(i, if (i as usize) < count { tile.pack_ranked(packing, key(i), i) } else { u64::MAX });
                i += NT as u32;
            }
            // A thread reads the slots that it has written.
            let own = tile.own();
            for i in 0..VT {
                packed[i] = own.get((i * NT) as u32);
            }
            thread::sync_threads();
        }

        let mut keys = [B::MAX; VT];
        let slots: [u32; VT] = tile.unpack::<NT, VT>(count, true, |i, key, _| keys[i] = B::from_register(key));
        // After this barrier, no thread reads packed keys.
        thread::sync_threads();
        if tile.ranked {
            copy_tile::<B, NT>(from.keys, memory.slots.keys);
            gather::<B, NT, VT>(memory.slots.keys, slots, to.keys, |key| decode.decode(encode.encode(key)));
            thread::sync_threads();
        }
        copy_tile::<V, NT>(from.values, memory.slots.values);
        if !tile.ranked {
            let own = own(to.keys);
            each_row::<NT, VT>(0, count, |i| own.set(i * NT, decode.decode(keys[i])));
        }
        gather::<V, NT, VT>(memory.slots.values, slots, to.values, |value| value);
    }

    #[inline(always)]
    unsafe fn merge(plan: Plan, from: Source<B, V>, to: Arrays<B, V>, encode: Coding<B>, decode: Coding<B>) {
        // SAFETY: the caller's launch has `TILE_BYTES`. Barriers separate the uses of the packed keys, the keys and the
        // values, which share their slots.
        let memory = unsafe { PackedMemory::<B, V>::at_start(NT * VT) };
        let mut tile = PackedTile::new(memory);
        plan.prefetch::<NT, V>(from.values);
        loop {
            if tile.ranked {
                plan.each_loaded_key::<NT, B, u64, _>(from.keys, tile.packed, || {
                    let packing = tile.packing();
                    move |key, slot, is_here| {
                        if is_here { tile.pack_ranked(packing, encode.encode(key), slot) } else { 0 }
                    }
                });
            } else {
                plan.each_loaded_key::<NT, B, u64, _>(from.keys, tile.packed, || {
                    let segment = thread::thread_idx_x();
                    let keys = (segment < plan.segments()).then(|| plan.segment_of(segment, from.keys));
                    let ends = keys.map(|keys| [0, keys.len() - 1].map(|i| encode.encode(keys.get(i))));
                    let packing = tile.choose_packing::<NT>(ends.into_iter().flatten());
                    move |key, slot, is_here| tile.pack(packing, encode.encode(key), slot, is_here)
                });
            }
            let greatest = PackedTile::<B>::greatest(plan.keys());
            plan.each_gap::<NT>(|slot| tile.packed.set(slot, greatest));
            merge_segments::<u64, NT, VT>(plan, tile.packed);
            if tile.is_in_order::<NT, VT>(plan.keys()) {
                break;
            }
        }

        let own = own(plan.part_of(to.keys));
        let slots: [u32; VT] = tile.unpack::<NT, VT>(plan.keys(), decode.is_identity(), |i, key, is_plain| {
            let key = B::from_register(key);
            own.set(i * NT, if is_plain { key } else { decode.decode(key) });
        });
        // After this barrier, no thread reads packed keys.
        thread::sync_threads();
        if tile.ranked {
            plan.each_segment::<NT, _>(|segment| {
                let (keys, before) = (plan.segment_of(segment, from.keys), plan.before.get(segment));
                move |i, _| memory.slots.keys.copy_async(before + i, keys, i as usize)
            });
            gather::<B, NT, VT>(memory.slots.keys, slots, plan.part_of(to.keys), |key| {
                decode.decode(encode.encode(key))
            });
            thread::sync_threads();
        }
        plan.each_segment::<NT, _>(|segment| {
            let (values, before) = (plan.segment_of(segment, from.values), plan.before.get(segment));
            move |i, _| memory.slots.values.copy_async(before + i, values, i as usize)
        });
        gather::<V, NT, VT>(memory.slots.values, slots, plan.part_of(to.values), |value| value);
    }
}
