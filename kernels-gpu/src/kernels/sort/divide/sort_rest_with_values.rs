//! What is left after all divisions of keys with values, as in `sort_rest`. One block sorts each, slowly: tiles by each half of their
//! keys, and tiles together by merging.

use super::sort_rest::each_left;
use super::workspace::{Job, Workspace};
use crate::block::shared_memory;
use crate::block::sort_tile::{KeyTile, sort_tile};
use crate::elements::{Arrays, Elements};
use crate::kernels::sort::is_whole_warps;
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for tiles of `slots` keys: a number of 8 bytes for each.
pub const fn shared_bytes(slots: usize) -> u32 {
    KeyTile::<u64>::bytes(slots)
}

/// Kernel: sorts the buckets that `sort_buckets_with_values` has given up, and the rests, to the same indices of `at`, keys as `coding`
/// decodes them. Rests are where the last level has put them.
///
/// # Safety
/// As for [`sort_buckets_with_values`](super::sort_buckets_with_values::sort_buckets_with_values), which has been called before; blocks are
/// of `NT` threads, a power of two, with [`shared_bytes`] for `NT * VT` keys.
#[kernel(
    u32v4 = <u32, u32, { ROW.sort_buckets.of(4, 4).threads }, { ROW.sort_buckets.of(4, 4).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.sort_buckets.of(8, 4).threads }, { ROW.sort_buckets.of(8, 4).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.sort_buckets.of(4, 8).threads }, { ROW.sort_buckets.of(4, 8).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.sort_buckets.of(8, 8).threads }, { ROW.sort_buckets.of(8, 8).items_per_thread }>,
)]
pub unsafe fn sort_rest_with_values<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    coding: Coding<B>,
) {
    const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "a round has a power of two threads, and whole warps") };
    const { assert!(NT * VT <= 1 << 16, "a slot and an element have 16 bits each") };
    const { shared_memory::check(shared_bytes(NT * VT)) };
    // SAFETY: the lists have `job.at.words` words, as `Job` says, and are only read.
    let workspace = unsafe { Workspace::new(&job) };
    let n = job.plan.n as usize;
    // SAFETY: all arrays have `plan.n` elements, and those of both sides do not overlap.
    let sides = unsafe { (at.arrays(n), scratch.arrays(n)) };
    each_left(workspace, job.plan.levels, |start, len, in_scratch| {
        // SAFETY: all threads of the block are here; neither buckets nor rests overlap.
        unsafe { sort_part::<B, V, NT, VT>(sides, (start, len), in_scratch, coding) };
    });
}

/// Sorts `len` elements from `start` on to the first of two sides: tiles, and passes of merges of two runs.
///
/// # Safety
/// All threads of the block make this call. Nothing else uses these elements.
#[inline(always)]
unsafe fn sort_part<B: Bits, V: Word, const NT: usize, const VT: usize>(
    sides: (Arrays<B, V>, Arrays<B, V>),
    (start, len): (u32, u32),
    in_scratch: bool,
    coding: Coding<B>,
) {
    let slots = (NT * VT) as u32;
    let side = |in_scratch: bool| if in_scratch { sides.1 } else { sides.0 }.slice(start as usize, len as usize);
    // The passes that are left: each goes from one side to the other, the last one to the first.
    let mut passes = 32 - (len.div_ceil(slots) - 1).leading_zeros();
    let decode = |passes: u32| if passes == 0 { coding } else { Coding::NONE };
    let mut at = 0;
    while at < len {
        let count = (len - at).min(slots);
        let part = |side: Arrays<B, V>| side.slice(at as usize, count as usize);
        let (from, to) = (part(side(in_scratch)), part(side(passes % 2 == 1)));
        sort_elements::<B, V, NT, VT>(from, to, decode(passes));
        at += slots;
    }
    let mut run = slots;
    while passes > 0 {
        let from = side(passes % 2 == 1);
        passes -= 1;
        merge_pairs_of_runs(from, side(passes % 2 == 1), run, decode(passes));
        thread::sync_threads();
        run *= 2;
    }
}

/// Sorts a tile, stably, by each half of its keys, the lower one first. Ends with a barrier.
#[inline(always)]
#[track_caller]
fn sort_elements<B: Bits, V: Word, const NT: usize, const VT: usize>(
    from: Arrays<B, V>,
    to: Arrays<B, V>,
    decode: Coding<B>,
) {
    let (thread, len) = (thread::thread_idx_x(), from.keys.len() as u32);
    // SAFETY: the launch has `shared_bytes`. `sort_tile` ends with a barrier, and another one comes between reading its
    // result and the next round.
    let tile = unsafe { KeyTile::<u64>::at_start(NT * VT) }.keys;
    let slot = |i: usize| thread + (i * NT) as u32;
    // Which element is in a slot.
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
    // What has been read may be overwritten.
    thread::sync_threads();
    for i in 0..VT {
        if slot(i) < len {
            to.set(slot(i), (decode.decode(own[i].0), own[i].1));
        }
    }
    thread::sync_threads();
}

/// Merges runs of `run` elements in pairs: each element finds its rank in the other run, where equal keys of the first run come first.
#[inline(always)]
#[track_caller]
fn merge_pairs_of_runs<B: Bits, V: Word>(from: Arrays<B, V>, to: Arrays<B, V>, run: u32, decode: Coding<B>) {
    let len = from.keys.len() as u32;
    let mut i = thread::thread_idx_x();
    while i < len {
        let own = i / run;
        let other = (own ^ 1) * run;
        let (key, value) = from.get(i);
        let is_before = |that: B| that < key || that == key && own % 2 == 1;
        let (mut low, mut high) = (other.min(len), other.saturating_add(run).min(len));
        while low < high {
            let middle = (low + high) / 2;
            if is_before(from.keys.get(middle as usize)) { low = middle + 1 } else { high = middle }
        }
        // As many of the other run come before it.
        let rank = low - other.min(len);
        to.set((own & !1) * run + i % run + rank, (decode.decode(key), value));
        i += thread::block_dim_x();
    }
}
