//! Moving and merging the keys of a tile: global memory, shared memory, registers.
//!
//! A tile is `NT * VT` keys: `NT` threads, `VT` keys each. Between memories keys move *strided*, thread `t` taking keys
//! `t, t + NT, t + 2 NT, …`, so that neighbouring threads touch neighbouring addresses. A merge leaves them in *thread
//! order*, thread `t` holding keys `t * VT` to `t * VT + VT - 1`; shared memory turns the one into the other.
//!
//! Loops over registers count to `VT` with a constant step and are unrolled: an array that is indexed by constants only
//! stays in registers.

use crate::diagonal::diagonal_search;
use crate::key::{Bits, Key};
use cuda_std::prelude::*;

/// Bytes of shared memory for a tile of `keys` keys: one slot more than the tile, because the serial merge reads one key
/// past the end of B.
pub const fn shared_bytes<K: Key>(keys: usize) -> u32 {
    ((keys + 1) * size_of::<K>()) as u32
}

/// Global to shared, strided: keys `0 .. count` of a tile from `key`, and the greatest key from there to the end of the
/// shared memory, slot past the end included.
///
/// The padding makes every tile a full one: it sorts to the end, where it is not stored.
#[inline(always)]
#[track_caller]
pub fn global_to_shared<B: Bits, const NT: usize, const VT: usize>(
    count: u32,
    shared: Shared<B>,
    key: impl Fn(u32) -> B,
) {
    let thread = thread::thread_idx_x();
    // All loads first, so that they are in flight together.
    let mut keys = [B::MAX; VT];
    if count == (NT * VT) as u32 {
        for i in 0..VT {
            keys[i] = key((i * NT) as u32 + thread);
        }
    } else {
        for i in 0..VT {
            let at = (i * NT) as u32 + thread;
            if at < count {
                keys[i] = key(at);
            }
        }
    }
    for i in 0..VT {
        shared.set((i * NT) as u32 + thread, keys[i]);
    }
    if thread == 0 {
        shared.set((NT * VT) as u32, B::MAX);
    }
}

/// Shared to global, strided: keys `0 .. to.len()` of a tile, which is at most the tile.
#[inline(always)]
#[track_caller]
pub fn shared_to_global<K: Key, const NT: usize, const VT: usize>(shared: Shared<K::Bits>, to: GlobalMut<K>) {
    let (thread, count) = (thread::thread_idx_x(), to.len() as u32);
    let put = |at: u32| to.set(at as usize, K::from_ordered(shared.get(at)));
    if count == (NT * VT) as u32 {
        for i in 0..VT {
            put((i * NT) as u32 + thread);
        }
    } else {
        for i in 0..VT {
            let at = (i * NT) as u32 + thread;
            if at < count {
                put(at);
            }
        }
    }
}

/// Registers to shared, in thread order.
#[inline(always)]
#[track_caller]
pub fn registers_to_shared<B: Bits, const VT: usize>(keys: [B; VT], shared: Shared<B>) {
    let first = thread::thread_idx_x() * VT as u32;
    for i in 0..VT {
        shared.set(first + i as u32, keys[i]);
    }
}

/// Shared to registers, in thread order.
#[inline(always)]
#[track_caller]
pub fn shared_to_registers<B: Bits, const VT: usize>(shared: Shared<B>) -> [B; VT] {
    let first = thread::thread_idx_x() * VT as u32;
    let mut keys = [B::MAX; VT];
    for i in 0..VT {
        keys[i] = shared.get(first + i as u32);
    }
    keys
}

/// Two neighbouring runs in shared memory: A, and B right behind it.
#[derive(Clone, Copy)]
pub struct Runs {
    /// Where A begins.
    pub a: u32,
    /// Where A ends and B begins.
    pub b: u32,
    /// Where B ends.
    pub end: u32,
}

/// Shared to registers: keys `diagonal .. diagonal + VT` of the merge of two runs, of which there are as many.
///
/// Finds by the diagonal where the thread's share begins and merges serially from there, reading one key a step: the
/// one that follows the key just taken.
#[inline(always)]
#[track_caller]
pub fn merge_to_registers<B: Bits, const VT: usize>(shared: Shared<B>, runs: Runs, diagonal: u32) -> [B; VT] {
    let a_taken =
        diagonal_search(diagonal, shared.slice(runs.a, runs.b - runs.a), shared.slice(runs.b, runs.end - runs.b));
    let (mut a, mut b) = (runs.a + a_taken, runs.b + (diagonal - a_taken));
    let (mut a_key, mut b_key) = (shared.get(a), shared.get(b));
    let mut keys = [B::MAX; VT];
    for i in 0..VT {
        let take_a = b >= runs.end || (a < runs.b && a_key <= b_key);
        keys[i] = if take_a { a_key } else { b_key };
        if i + 1 < VT {
            let next = if take_a { a + 1 } else { b + 1 };
            let next_key = shared.get(next);
            if take_a {
                (a, a_key) = (next, next_key);
            } else {
                (b, b_key) = (next, next_key);
            }
        }
    }
    keys
}
