//! Keys with values that remain after all divisions: tiles are sorted by each half of their keys, and runs are merged
//! by the rank of each element.

use crate::block::sort_tile::{KeyTile, sort_tile};
use crate::elements::Arrays;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;

/// Sorts a tile, stably, by each half of its keys, the lower one first. Ends with a barrier.
#[inline(always)]
#[track_caller]
pub(super) fn sort_elements<B: Bits, V: Word, const NT: usize, const VT: usize>(
    from: Arrays<B, V>,
    to: Arrays<B, V>,
    decode: Coding<B>,
) {
    let (thread, len) = (thread::thread_idx_x(), from.keys.len() as u32);
    // SAFETY: the launch has `sort_rest::shared_bytes`, a number of 8 bytes for each of `NT * VT` slots. `sort_tile`
    // ends with a barrier, and another one comes between reading its result and the next round.
    let tile = unsafe { KeyTile::<u64>::at_start(NT * VT) }.keys;
    let slot = |i: usize| thread + (i * NT) as u32;
    // The element of each slot.
    let mut elements = [0; VT];
    for i in 0..VT {
        elements[i] = slot(i);
    }
    let mut round = 0;
    while round < size_of::<B>() / 4 {
        let mut packed = [u64::MAX; VT];
        for i in 0..VT {
            if slot(i) < len {
                let element = elements[i] as usize;
                let number = (from.keys.get(element).to_register() >> (32 * round)) as u32;
                packed[i] = (number as u64) << 32 | (slot(i) << 16) as u64 | element as u64;
            }
        }
        // The size of the block as a variable, so that rounds are not unrolled.
        sort_tile(packed, thread::block_dim_x(), tile);
        for i in 0..VT {
            elements[i] = tile.get(slot(i)) as u32 & 0xffff;
        }
        thread::sync_threads();
        round += 1;
    }
    let mut own = [(B::MIN, V::from_register(0)); VT];
    for i in 0..VT {
        if slot(i) < len {
            own[i] = from.get(elements[i]);
        }
    }
    // All elements have been read, and may be overwritten.
    thread::sync_threads();
    for i in 0..VT {
        if slot(i) < len {
            to.set(slot(i), (decode.decode(own[i].0), own[i].1));
        }
    }
    thread::sync_threads();
}

/// Merges runs of `run` elements in pairs, stably: each element finds its rank in the other run by a binary search.
#[inline(always)]
#[track_caller]
pub(super) fn merge_pairs_of_runs<B: Bits, V: Word>(from: Arrays<B, V>, to: Arrays<B, V>, run: u32, decode: Coding<B>) {
    let len = from.keys.len() as u32;
    let mut i = thread::thread_idx_x();
    while i < len {
        let own = i / run;
        let other = (own ^ 1).saturating_mul(run);
        let (key, value) = from.get(i);
        let is_before = |that: B| that < key || that == key && own % 2 == 1;
        let (mut low, mut high) = (other.min(len), other.saturating_add(run).min(len));
        while low < high {
            let middle = (low + high) / 2;
            if is_before(from.keys.get(middle as usize)) { low = middle + 1 } else { high = middle }
        }
        // Number of elements of the other run that come before this one.
        let rank = low - other.min(len);
        to.set((own & !1) * run + i % run + rank, (decode.decode(key), value));
        i += thread::block_dim_x();
    }
}
