//! The last step of a division: keys go to the places of their digits.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │     each key has its rank among those of its digit, by an atomic addition
//!   shared     │ 0 0 1 1 2 3 3 3 │     … and goes to its place among those of all digits
//!   to         … 0 0 … 1 1 … 2 … 3 3 3 …     neighbours go to neighbours, room reserved by another one
//! ```

use super::DIGITS_CAPACITY;
use super::workspace::{Segment, Workspace};
use crate::block_scan::{BLOCK_WORDS, sum_before};
use crate::key::{Bits, Coding};
use crate::sort::detect_runs::Detection;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Words of shared memory besides the tile: those of a scan, and two for each digit.
const WORDS: u32 = BLOCK_WORDS + 2 * DIGITS_CAPACITY;

/// Bytes of dynamic shared memory for tiles of that many keys.
pub const fn shared_bytes<B>(tile: usize) -> u32 {
    (tile * size_of::<B>()) as u32 + WORDS * size_of::<u32>() as u32
}

/// Kernel: moves the keys of each segment of `level` from `from` to `to`, to where `place_buckets` says.
///
/// # Safety
/// As for [`place_buckets`](super::place_buckets::place_buckets), which has been called before; `to` has capacity for `n` keys and
/// does not overlap `from`; blocks are of `NT` threads with [`shared_bytes`].
#[kernel(
    u32 = <u32, { ROW.divide_4.threads }, { ROW.divide_4.items_per_thread }, { ROW.buckets_4.threads * ROW.buckets_4.items_per_thread }> within (ROW.divide_4.threads, 3),
    u64 = <u64, { ROW.divide_8.threads }, { ROW.divide_8.items_per_thread }, { ROW.buckets_8.threads * ROW.buckets_8.items_per_thread }> within (ROW.divide_8.threads, 3),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn divide<B: Bits, const NT: usize, const VT: usize, const BUCKET: usize>(
    from: *mut B,
    to: *mut B,
    n: usize,
    words: *mut u32,
    level: u32,
    levels: u32,
    always: B,
    when_negative: B,
    order: *mut u32,
) {
    // SAFETY: the caller's promise.
    if unsafe { Detection::new(order) }.is_ordered() {
        return;
    }
    let coding = Coding { always, when_negative };
    // SAFETY: the caller's promise.
    let (from, to, workspace) = unsafe {
        (GlobalMut::new(from, n), GlobalMut::new(to, n), Workspace::new(words, n, levels, NT * VT, BUCKET))
    };
    let tile_bytes = (NT * VT * size_of::<B>()) as u32;
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (tile, scan, begins, distances) = unsafe {
        (
            Shared::<B>::dynamic(0, (NT * VT) as u32),
            Shared::<u32>::dynamic(tile_bytes, BLOCK_WORDS),
            Shared::<u32>::dynamic(tile_bytes + BLOCK_WORDS * 4, DIGITS_CAPACITY),
            Shared::<u32>::dynamic(tile_bytes + (BLOCK_WORDS + DIGITS_CAPACITY) * 4, DIGITS_CAPACITY),
        )
    };
    let thread = thread::thread_idx_x();
    let tiles = workspace.tiles(level);
    let mut t = thread::block_idx_x();
    while t < tiles {
        let Segment::<B> { start, len, first_tile, counters, digits, .. } =
            workspace.segment(workspace.segment_of_tile(t));
        let count = digits.count();
        let first = (t - first_tile) * (NT * VT) as u32;
        let keys = (len - first).min((NT * VT) as u32);
        let source = from.slice((start + first) as usize, keys as usize);

        let mut digit = thread;
        while digit < count {
            begins.set(digit, 0);
            digit += NT as u32;
        }
        let mut own = [B::MIN; VT];
        for i in 0..VT {
            let at = thread as usize + i * NT;
            if at < keys as usize {
                own[i] = source.get(at);
            }
        }
        thread::sync_threads();
        // The digit, and the rank among the tile's keys of that digit.
        let mut ranks = [0; VT];
        for i in 0..VT {
            if thread + ((i * NT) as u32) < keys {
                own[i] = coding.encode(own[i]);
                let digit = digits.of(own[i]);
                ranks[i] = digit << 16 | begins.fetch_add(digit, 1);
            }
        }
        thread::sync_threads();

        let per_thread = count.div_ceil(NT as u32);
        let own_digits = (thread * per_thread).min(count)..((thread + 1) * per_thread).min(count);
        let mut sum = 0;
        for digit in own_digits.clone() {
            sum += begins.get(digit);
        }
        // SAFETY: all threads of the block are here.
        let (mut begin, _) = unsafe { sum_before(sum, scan) };
        let counters = workspace.counters(counters, count);
        for digit in own_digits {
            let keys = begins.get(digit);
            if keys > 0 {
                distances.set(digit, counters.fetch_add(digit as usize, keys).wrapping_sub(begin));
            }
            begins.set(digit, begin);
            begin += keys;
        }
        thread::sync_threads();

        for i in 0..VT {
            if thread + ((i * NT) as u32) < keys {
                tile.set(begins.get(ranks[i] >> 16) + (ranks[i] & 0xffff), own[i]);
            }
        }
        thread::sync_threads();
        for i in 0..VT {
            let slot = thread + (i * NT) as u32;
            if slot < keys {
                let key = tile.get(slot);
                to.set(slot.wrapping_add(distances.get(digits.of(key))) as usize, key);
            }
        }
        t += thread::grid_dim_x();
        if t < tiles {
            thread::sync_threads();
        }
    }
}
