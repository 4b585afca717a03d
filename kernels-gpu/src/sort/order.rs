//! Finding out that there is nothing to sort.
//!
//! ```text
//!   look_for_order    3 ≤ 5 ≤ 5 ≤ 7 ≤ 9    no descent: sorted, and all that follows ends at once
//!                     9 > 7 > 5 > 3 > 1    no ascent: reverse turns it round, and all that follows ends at once
//!                     3 ≤ 9 > 4 …          both, which most arrays show in their first keys: to be sorted
//! ```
//!
//! What has been found is noted in two words of global memory, which are 0 before.

use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot};

/// Threads of a block of [`look_for_order`] and of [`reverse`].
pub const ORDER_THREADS: u32 = 256;

/// Words that [`look_for_order`] writes.
pub const ORDER_WORDS: usize = 2;

/// The words that tell what has been found, or none: then nothing is known.
#[derive(Clone, Copy)]
pub(super) struct Order(Option<GlobalMut<u32>>);

/// Which of the words is 1 if some key is less than the one before it.
const DESCENT: usize = 0;

/// Which of the words is 1 if some key is greater than the one before it.
const ASCENT: usize = 1;

impl Order {
    /// # Safety
    /// `found` is null or of [`ORDER_WORDS`] words in global memory that nothing but [`look_for_order`] writes.
    #[inline(always)]
    pub(super) unsafe fn new(found: *mut u32) -> Self {
        // SAFETY: the caller's promise.
        Self((!found.is_null()).then(|| unsafe { GlobalMut::new(found, ORDER_WORDS) }))
    }

    /// Whether keys were in order, or are by now because they have been turned round.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_found(self) -> bool {
        self.0.is_some_and(|found| found.get(DESCENT) == 0 || found.get(ASCENT) == 0)
    }
}

/// Keys that a thread compares between two votes of its warp.
const KEYS_BETWEEN_VOTES: usize = 8;

/// Kernel: looks whether the keys, as the [`Coding`] orders them, ascend or descend, and makes the words at `found` 1 where
/// they show that they do not.
///
/// Equal neighbours count as an ascent if `equal_ascends` is not 0: then an array without ascents may be turned round with
/// its values, and stays stable. A warp ends when it has found both, and reads all of its part only if it has not.
///
/// # Safety
/// `keys` has `n` keys, in global memory, and `found` [`ORDER_WORDS`] words. Blocks are of whole warps.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn look_for_order<B: Bits>(
    keys: *const B,
    n: usize,
    always: B,
    when_negative: B,
    equal_ascends: u32,
    found: *mut u32,
) {
    let coding = Coding { always, when_negative };
    // SAFETY: the caller's promise.
    let (keys, found) = unsafe { (Global::new(keys, n), GlobalMut::new(found, ORDER_WORDS)) };
    let warps = (thread::grid_dim_x() * (thread::block_dim_x() / WARP_SIZE)) as usize;
    let part = n.div_ceil(warps);
    let warp = thread::index_1d() / WARP_SIZE;
    let (mut at, end) = (warp as usize * part, ((warp as usize + 1) * part).min(n.saturating_sub(1)));
    let (mut descends, mut ascends) = (false, false);
    while at < end && !(descends && ascends) {
        for step in 0..KEYS_BETWEEN_VOTES {
            let i = at + step * WARP_SIZE as usize + warp::lane_id() as usize;
            if i < end {
                let (key, next) = (coding.encode(keys.get(i)), coding.encode(keys.get(i + 1)));
                descends |= next < key;
                ascends |= key < next || (equal_ascends != 0 && key == next);
            }
        }
        // SAFETY: the lanes of a warp have the same part, and leave the loop together.
        (descends, ascends) = unsafe { (ballot(FULL_MASK, descends) != 0, ballot(FULL_MASK, ascends) != 0) };
        at += KEYS_BETWEEN_VOTES * WARP_SIZE as usize;
    }
    if warp::lane_id() == 0 {
        if descends {
            found.raise(DESCENT);
        }
        if ascends {
            found.raise(ASCENT);
        }
    }
}

/// Kernel: turns an array of keys or of values round, if [`look_for_order`] has found that the keys descend.
///
/// # Safety
/// `array` has `n` elements, in global memory; `found` is what `look_for_order` wrote.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn reverse<T: Word>(array: *mut T, n: usize, found: *mut u32) {
    // SAFETY: the caller's promise. A thread swaps pairs of its own.
    let (array, found) = unsafe { (GlobalMut::new(array, n), GlobalMut::new(found, ORDER_WORDS)) };
    if found.get(DESCENT) == 0 || found.get(ASCENT) != 0 {
        return;
    }
    let threads = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
    let mut i = thread::index_1d() as usize;
    while i < n / 2 {
        let (low, high) = (array.get(i), array.get(n - 1 - i));
        array.set(i, high);
        array.set(n - 1 - i, low);
        i += threads;
    }
}
