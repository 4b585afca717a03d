//! Moving and merging the keys of a tile: global memory, shared memory, registers.
//!
//! A tile is `NT * VT` keys: `NT` threads, `VT` keys each. Between memories keys move *strided*, thread `t` taking keys
//! `t, t + NT, t + 2 NT, …`, so that neighbouring threads touch neighbouring addresses. A merge leaves them in *thread
//! order*, thread `t` holding keys `t * VT` to `t * VT + VT - 1`; shared memory turns the one into the other.
//!
//! Two runs that are to be merged lie in shared memory with their ends together, A upwards and B downwards:
//!
//! ```text
//!   │ a0 a1 a2 a3 … │ … b3 b2 b1 b0 │
//!     a →                       ← b
//! ```
//!
//! A merge takes the lesser of the two outer keys, again and again. What is left is always one stretch between two
//! cursors, and its least key is at one of its ends even when one run is used up: so there are no bounds to check.
//!
//! Loops over registers count to `VT` with a constant step and are unrolled: an array that is indexed by constants only
//! stays in registers.

use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::sequence::Sequence;
use crate::thread::diagonal::{likely_window, search_near};
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Bytes of shared memory for a tile of `keys` keys.
pub const fn shared_bytes<B>(keys: usize) -> u32 {
    (keys * size_of::<B>()) as u32
}

/// The number of orders in which the threads of a block take the keys of a row.
const TURNS: usize = 8;

/// The column in which this thread has its key of row `row`, if blocks have `NT` threads, a power of two.
///
/// Eight times `random` tells which bits of its number a thread inverts to have its column in every eighth row. Which
/// keys a thread takes cannot be predicted.
///
/// ```text
///   row 0    t0 t1 t2 t3      inverted: none
///   row 1    t2 t3 t0 t1                the upper bit
///   row 2    t1 t0 t3 t2                the lower bit
/// ```
#[inline(always)]
pub fn column<const NT: usize>(row: usize, random: u64) -> u32 {
    thread::thread_idx_x() ^ ((random >> (8 * (row % TURNS))) as u32 & (NT as u32 - 1))
}

/// Global to registers: keys `0 .. from.len()` of a tile as `coding` encodes them, and the greatest key beyond.
///
/// The padding makes every tile a full one: it sorts to the end, where it is not stored.
///
/// Strided, but not each thread in a column of its own: see [`column()`]. `NT` is a power of two.
#[inline(always)]
#[track_caller]
pub fn global_to_registers<B: Bits, const NT: usize, const VT: usize>(
    from: GlobalMut<B>,
    coding: Coding<B>,
    random: u64,
) -> [B; VT] {
    const { assert!(NT.is_power_of_two()) };
    let count = from.len();
    let column = |turn: usize| column::<NT>(turn, random) as usize;
    let mut keys = [coding.decode(B::MAX); VT];
    // Each kind of tile has loads of its own, so that those of a full one are nothing else.
    if count == NT * VT {
        for turn in 0..TURNS {
            let rows = from.slice(column(turn), count - column(turn));
            for i in (turn..VT).step_by(TURNS) {
                keys[i] = rows.get(i * NT);
            }
        }
    } else {
        for i in 0..VT {
            let at = column(i) + i * NT;
            if at < count {
                keys[i] = from.get(at);
            }
        }
    }
    coding.encode_all(&mut keys);
    keys
}

/// Global to registers, strided: A for the slots upwards from the first, B for those downwards from the last, and the
/// greatest key for those between them where the two do not fill the tile.
#[inline(always)]
#[track_caller]
pub fn ends_to_registers<B: Bits, const NT: usize, const VT: usize>(a: Keys<B>, b: Keys<B>) -> [B; VT] {
    let thread = thread::thread_idx_x() as usize;
    let (upwards, downwards) = (a.bits().place(thread), b.bits().place(NT * VT - 1 - thread));
    // Relative to the thread, so that the slots of its keys compare as constants.
    let a_end = a.len() as i32 - thread as i32;
    let b_start = (NT * VT - b.len()) as i32 - thread as i32;
    let coding = a.coding();
    let mut keys = [coding.decode(B::MAX); VT];
    if a_end == b_start {
        for i in 0..VT {
            let step = i * NT;
            let from_a = (step as i32) < a_end;
            keys[i] = if from_a { upwards.get(step as isize) } else { downwards.get(-(step as isize)) };
        }
    } else {
        for i in 0..VT {
            let step = i * NT;
            if (step as i32) < a_end {
                keys[i] = upwards.get(step as isize);
            } else if step as i32 >= b_start {
                keys[i] = downwards.get(-(step as isize));
            }
        }
    }
    coding.encode_all(&mut keys);
    keys
}

/// Registers to shared, strided.
#[inline(always)]
#[track_caller]
pub fn store_striped<B: Bits, const NT: usize, const VT: usize>(keys: [B; VT], shared: Shared<B>) {
    for i in 0..VT {
        shared.set(thread::thread_idx_x() + (i * NT) as u32, keys[i]);
    }
}

/// Registers to shared: a thread's keys upwards from slot `first`.
#[inline(always)]
#[track_caller]
pub fn store_blocked<T: Word, const VT: usize>(keys: [T; VT], first: u32, shared: Shared<T>) {
    for i in 0..VT {
        shared.set(first + i as u32, keys[i]);
    }
}

/// Registers to shared: a thread's keys from slot `first` on, in order or reversed.
///
/// Where threads of a warp go different ways, all write the same slots in the same steps, so that they do not wait for each
/// other.
///
/// # Safety
/// The lanes of whole warps make this call.
#[inline(always)]
#[track_caller]
pub unsafe fn store_blocked_or_reversed<T: Word, const VT: usize>(
    keys: [T; VT],
    first: u32,
    upwards: bool,
    shared: Shared<T>,
) {
    // SAFETY: `FULL_MASK` names the 32 lanes of a warp. The lanes of whole warps make this call, so that all of them
    // vote.
    let lanes = unsafe { warp::ballot(FULL_MASK, upwards) };
    if lanes == FULL_MASK {
        store_blocked(keys, first, shared);
    } else if lanes == 0 {
        for i in 0..VT {
            shared.set(first + i as u32, keys[VT - 1 - i]);
        }
    } else {
        for i in 0..VT {
            shared.set(first + i as u32, select_unpredictable(upwards, keys[i], keys[VT - 1 - i]));
        }
    }
}

/// Shared to global, strided: keys `0 .. to.len()` of a tile, which is at most the tile.
#[inline(always)]
#[track_caller]
pub fn shared_to_global<B: Bits, const NT: usize, const VT: usize>(shared: Shared<B>, to: KeysMut<B>) {
    let (thread, count, coding) = (thread::thread_idx_x() as usize, to.len(), to.coding());
    let each = |decode: fn(Coding<B>, B) -> B| {
        for i in 0..VT {
            let at = thread + i * NT;
            if count == NT * VT || at < count {
                to.bits().set(at, decode(coding, shared.get(at as u32)));
            }
        }
    };
    // Bits that are in order already, which the whole block knows, have a loop of their own.
    if coding == Coding::NONE { each(|_, key| key) } else { each(Coding::decode) }
}

/// Shared to global, strided, as `coding` decodes them: the first `to.len()` keys. The thread begins with key `first`, another
/// one for each.
///
/// In a loop that stays one, which takes fewer registers than [`shared_to_global`]: a kernel that has many in use for
/// other things can have more threads.
#[inline(always)]
#[track_caller]
pub fn decode_to_global<B: Bits, const NT: usize>(shared: Shared<B>, to: GlobalMut<B>, coding: Coding<B>, first: u32) {
    let each = |decode: fn(Coding<B>, B) -> B| {
        let mut i = first as usize;
        while i < to.len() {
            to.set(i, decode(coding, shared.get(i as u32)));
            i += NT;
        }
    };
    if coding == Coding::NONE { each(|_, key| key) } else { each(Coding::decode) }
}

/// Keys in shared memory, each of which has a place, in bytes: those of two neighbours differ by the size of a key.
pub trait Slots<B: Bits>: Sequence<Index = u32, Item = B> {
    /// The `len` keys from `start` on.
    fn part(self, start: u32, len: u32) -> Self;
    /// The place of key `i`, which need not be below the length.
    fn place(self, i: u32) -> u32;
    /// The key at a place that is that of one of these.
    fn at_place(self, place: u32) -> B;
}

impl<B: Bits> Slots<B> for Shared<B> {
    #[inline(always)]
    #[track_caller]
    fn part(self, start: u32, len: u32) -> Self {
        self.slice(start, len)
    }
    #[inline(always)]
    fn place(self, i: u32) -> u32 {
        self.address(i)
    }
    #[inline(always)]
    #[track_caller]
    fn at_place(self, place: u32) -> B {
        self.get_at(place)
    }
}

/// A run that lies downwards in shared memory: key `j` is the last but `j`.
#[derive(Clone, Copy)]
struct Downwards<S>(S);

impl<S: Sequence<Index = u32>> Sequence for Downwards<S> {
    type Index = u32;
    type Item = S::Item;
    #[inline(always)]
    fn length(self) -> u32 {
        self.0.length()
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, j: u32) -> S::Item {
        self.0.at(self.0.length() - 1 - j)
    }
}

/// How many of the first `diagonal` keys of the merge of the two runs in `runs` are of A, which is the first `a_count`.
///
/// Looks first where the path would be if it were straight, and as far around as it usually is.
#[inline(always)]
#[track_caller]
fn a_taken<B: Bits>(runs: impl Slots<B>, a_count: u32, diagonal: u32) -> u32 {
    let (len, b_count) = (runs.length(), runs.length() - a_count);
    let guess = (diagonal as f32 * (a_count as f32 / len as f32)) as u32;
    let bounds = (diagonal.saturating_sub(b_count), diagonal.min(a_count));
    let (a, b) = (runs.part(0, a_count), Downwards(runs.part(a_count, b_count)));
    search_near(diagonal, a, b, bounds, guess, likely_window(len))
}

/// Shared to registers: keys `diagonal .. diagonal + VT` of the merge of the two runs in `runs`, of which there are as
/// many. A is the first `a_count` keys, upwards; B the others, downwards.
///
/// Finds by the diagonal where the thread's share begins and merges serially from there, reading one key a step: the
/// one that follows the key just taken, on the same side.
///
/// ```text
///   │ a0 a1 a2 a3 a4 … b4 b3 b2 b1 b0 │
///           a →   reach   ← b                b = a + reach; a step moves one of them, so reach is 1 less after each
/// ```
#[inline(always)]
#[track_caller]
pub fn merge_to_registers<B: Bits, const VT: usize>(runs: impl Slots<B>, a_count: u32, diagonal: u32) -> [B; VT] {
    let end = runs.length();
    let a_taken = a_taken(runs, a_count, diagonal);
    // In bytes, as the places are.
    let size = size_of::<B>() as u32;
    let mut a = runs.place(a_taken);
    let reach = (end - 1 - diagonal) * size;
    // The key just read, which side it is from, and the one that the other side offers.
    let (mut key, mut of_a, mut other) = (runs.at_place(a), true, runs.at_place(a + reach));
    let mut keys = [B::MAX; VT];
    for i in 0..VT {
        keys[i] = key.min(other);
        if i + 1 < VT {
            // Of equal keys either will do: they are the same bits.
            let take_a = (key <= other) == of_a;
            other = key.max(other);
            a = select_unpredictable(take_a, a + size, a);
            let moved = (i as u32 + 1) * size;
            key = runs.at_place(select_unpredictable(take_a, a, a + reach - moved));
            of_a = take_a;
        }
    }
    keys
}

/// As [`merge_to_registers`], with the values of the keys, which are in the same slots of `values` and of the same size.
/// Stable: of equal keys A's go first.
#[inline(always)]
#[track_caller]
pub fn merge_pairs_to_registers<B: Bits, const VT: usize>(
    (runs, values): (Shared<B>, Shared<B>),
    a_count: u32,
    diagonal: u32,
) -> ([B; VT], [B; VT]) {
    let size = size_of::<B>() as u32;
    let (start, a_end) = (runs.address(0), runs.address(a_count));
    let mut a = runs.address(a_taken(runs, a_count, diagonal));
    let reach = (runs.len() - 1 - diagonal) * size;
    let (mut a_key, mut b_key) = (runs.get_at(a), runs.get_at(a + reach));
    let (mut keys, mut merged) = ([B::MAX; VT], [B::MIN; VT]);
    for i in 0..VT {
        // Where A is used up, its cursor is at the last key of B, which must not be taken before others that equal it.
        let take_a = (a < a_end) & (a_key <= b_key);
        let b = a + reach - i as u32 * size;
        let from = select_unpredictable(take_a, a, b);
        keys[i] = a_key.min(b_key);
        merged[i] = values.get_at(values.address(0) + (from - start));
        if i + 1 < VT {
            a = select_unpredictable(take_a, a + size, a);
            let key = runs.get_at(select_unpredictable(take_a, a, b.wrapping_sub(size)));
            a_key = select_unpredictable(take_a, key, a_key);
            b_key = select_unpredictable(take_a, b_key, key);
        }
    }
    (keys, merged)
}
