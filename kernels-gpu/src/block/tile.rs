//! Moves and merges the keys of a tile: global memory, shared memory, registers.
//!
//! A tile is `NT * VT` keys: `NT` threads, `VT` keys each. Moves between memories are *striped*: thread `t` moves keys
//! `t, t + NT, t + 2 NT, …`, so that neighbouring threads access neighbouring addresses. A merge leaves keys *blocked*:
//! thread `t` holds keys `t * VT` to `t * VT + VT - 1`. Shared memory converts between the two arrangements.
//!
//! The two runs of a merge are stored in shared memory with their ends together, A in order and B reversed:
//!
//! ```text
//!   │ a0 a1 a2 a3 … │ … b3 b2 b1 b0 │
//!     a →                       ← b
//! ```
//!
//! Each step of a merge takes the lesser of the two outer keys. The remaining keys are always one range between two
//! cursors. Its least key is at one of its ends, even when a run is exhausted, so that no bounds are checked.
//!
//! Loops over registers count to `VT` with a constant step and are unrolled: only an array that is indexed by constants
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

/// Number of row patterns after which the assignment of columns to threads repeats.
const TURNS: usize = 8;

/// The column of this thread's key in row `row`, for blocks of `NT` threads, a power of two.
///
/// The column is the thread's number XOR bits of `random`, from bit `8 * (row % TURNS)`, modulo `NT`. The keys of a
/// thread are therefore unpredictable.
///
/// ```text
///   row 0    t0 t1 t2 t3      XOR 0
///   row 1    t2 t3 t0 t1      XOR 2
///   row 2    t1 t0 t3 t2      XOR 1
/// ```
#[inline(always)]
pub fn column<const NT: usize>(row: usize, random: u64) -> u32 {
    thread::thread_idx_x() ^ ((random >> (8 * (row % TURNS))) as u32 & (NT as u32 - 1))
}

/// Global memory to registers: loads keys `0 .. from.len()` of a tile, encoded by `coding`, and pads with the greatest
/// key.
///
/// The padding makes every tile a full one. It sorts to the end of the tile, which is not stored.
///
/// Striped, with the columns of each row assigned by [`column()`]. `NT` is a power of two.
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
    // Full and partial tiles have separate code, so that full tiles need no bounds checks.
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

/// Global memory to registers, striped: A for the first slots in order, B for the last slots in reverse order. If the
/// two do not fill the tile, the slots between them get the greatest key.
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

/// Registers to shared memory, striped.
#[inline(always)]
#[track_caller]
pub fn store_striped<B: Bits, const NT: usize, const VT: usize>(keys: [B; VT], shared: Shared<B>) {
    for i in 0..VT {
        shared.set(thread::thread_idx_x() + (i * NT) as u32, keys[i]);
    }
}

/// Registers to shared memory, blocked: stores a thread's keys in order from slot `first`.
#[inline(always)]
#[track_caller]
pub fn store_blocked<T: Word, const VT: usize>(keys: [T; VT], first: u32, shared: Shared<T>) {
    for i in 0..VT {
        shared.set(first + i as u32, keys[i]);
    }
}

/// Registers to shared memory, blocked: stores a thread's keys from slot `first`, in order or reversed.
///
/// If lanes of a warp differ in direction, all lanes write the same offsets in the same steps, so that the warp does
/// not diverge.
///
/// # Safety
/// All 32 lanes of a warp make this call.
#[inline(always)]
#[track_caller]
pub unsafe fn store_blocked_or_reversed<T: Word, const VT: usize>(
    keys: [T; VT],
    first: u32,
    upwards: bool,
    shared: Shared<T>,
) {
    // SAFETY: `FULL_MASK` names the 32 lanes of a warp, which all make this call, as `# Safety` requires.
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

/// Shared to global memory, striped: stores keys `0 .. to.len()`, at most a tile.
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
    // Keys without a coding have a loop of their own. The branch is uniform over the block.
    if coding.is_identity() { each(|_, key| key) } else { each(Coding::decode) }
}

/// Shared to global memory, decoded by `coding`: stores the first `to.len()` keys. The thread stores keys `first`,
/// `first + NT`, `first + 2 NT`, …; each thread of the block passes another `first` below `NT`.
///
/// The loop is not unrolled and takes fewer registers than [`shared_to_global`], so that kernels with many live
/// registers reach a higher occupancy.
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
    if coding.is_identity() { each(|_, key| key) } else { each(Coding::decode) }
}

/// Keys in shared memory, addressed by places in bytes: the places of two neighbours differ by the size of a key.
pub trait Slots<B: Bits>: Sequence<Index = u32, Item = B> {
    /// The `len` keys from key `start`.
    fn part(self, start: u32, len: u32) -> Self;
    /// The place of key `i`, which may be at or beyond the length.
    fn place(self, i: u32) -> u32;
    /// The key at `place`, which is the place of a key of this sequence.
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

/// A run in shared memory read backwards: key `j` is the key at `length - 1 - j`.
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

/// The number of A's keys among the first `diagonal` keys of the merge of the two runs in `runs`. A is the first
/// `a_count` keys.
///
/// The search starts where a straight path would cross, within the window that random keys need.
#[inline(always)]
#[track_caller]
fn a_taken<B: Bits>(runs: impl Slots<B>, a_count: u32, diagonal: u32) -> u32 {
    let (len, b_count) = (runs.length(), runs.length() - a_count);
    let guess = (diagonal as f32 * (a_count as f32 / len as f32)) as u32;
    let bounds = (diagonal.saturating_sub(b_count), diagonal.min(a_count));
    let (a, b) = (runs.part(0, a_count), Downwards(runs.part(a_count, b_count)));
    search_near(diagonal, a, b, bounds, guess, likely_window(len))
}

/// Shared memory to registers: keys `diagonal .. diagonal + VT` of the merge of the two runs in `runs`. A is the first
/// `a_count` keys, in order; B is the other keys, reversed. `diagonal + VT` is at most `runs.length()`.
///
/// Finds the start of the thread's keys by the diagonal and merges sequentially from there. Each step reads one key:
/// the successor of the key just taken, in the same run.
///
/// ```text
///   │ a0 a1 a2 a3 a4 … b4 b3 b2 b1 b0 │
///           a →   reach   ← b                b = a + reach; each step moves one cursor, so that reach shrinks by 1
/// ```
#[inline(always)]
#[track_caller]
pub fn merge_to_registers<B: Bits, const VT: usize>(runs: impl Slots<B>, a_count: u32, diagonal: u32) -> [B; VT] {
    let end = runs.length();
    let a_taken = a_taken(runs, a_count, diagonal);
    // In bytes, like the places.
    let size = size_of::<B>() as u32;
    let mut a = runs.place(a_taken);
    let reach = (end - 1 - diagonal) * size;
    // The key just read, whether it is from A, and the other run's next key.
    let (mut key, mut of_a, mut other) = (runs.at_place(a), true, runs.at_place(a + reach));
    let mut keys = [B::MAX; VT];
    for i in 0..VT {
        keys[i] = key.min(other);
        if i + 1 < VT {
            // Equal keys have the same bits, so that either may be taken.
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

/// Like [`merge_to_registers`], with the values of the keys, which have the size of a key and are in the same slots of
/// `values`. Stable: among equal keys, A's come first.
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
        // If A is exhausted, its cursor is at the last key of B, which must not be taken before equal keys of B.
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
