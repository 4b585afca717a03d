//! The second step of a division: how many keys of each segment have each digit.

use super::DIGITS_CAPACITY;
use super::workspace::{Segment, Workspace};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory: a counter for each digit.
pub const COUNT_SHARED_BYTES: u32 = DIGITS_CAPACITY * size_of::<u32>() as u32;

/// Kernel: adds to each counter of each segment of `level` how many keys have its digit. A block counts the tiles of a part of
/// the level, and adds up its counts where a segment ends.
///
/// # Safety
/// As for [`choose_digits`](super::choose_digits::choose_digits), which has been called before; blocks are of `NT` threads with
/// [`COUNT_SHARED_BYTES`].
#[kernel(
    u32 = <u32, { ROW.divide_4.threads }, { ROW.divide_4.items_per_thread }, { ROW.buckets_4.threads * ROW.buckets_4.items_per_thread }>,
    u64 = <u64, { ROW.divide_8.threads }, { ROW.divide_8.items_per_thread }, { ROW.buckets_8.threads * ROW.buckets_8.items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn count_digits<B: Bits, const NT: usize, const VT: usize, const BUCKET: usize>(
    keys: *mut B,
    n: usize,
    words: *mut u32,
    level: u32,
    levels: u32,
    always: B,
    when_negative: B,
    order: *mut u32,
) {
    // SAFETY: the caller's promise.
    let Some(workspace) = (unsafe { Workspace::if_divided(words, n, levels, (NT * VT, BUCKET), order) }) else {
        return;
    };
    let coding = Coding { always, when_negative };
    // SAFETY: the caller's promise.
    let keys = unsafe { GlobalMut::new(keys, n) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let counts = unsafe { Shared::<u32>::dynamic(0, DIGITS_CAPACITY) };
    let thread = thread::thread_idx_x();
    let tiles = workspace.tiles(level);
    let part = tiles.div_ceil(thread::grid_dim_x());
    let (mut t, end) = (thread::block_idx_x() * part, ((thread::block_idx_x() + 1) * part).min(tiles));
    while t < end {
        let segment: Segment<B> = workspace.segment(workspace.segment_of_tile(t));
        let (digits, count) = (segment.digits, segment.digits.count());
        let segment_end = end.min(segment.first_tile + segment.len.div_ceil((NT * VT) as u32));
        let mut digit = thread;
        while digit < count {
            counts.set(digit, 0);
            digit += NT as u32;
        }
        thread::sync_threads();
        let part = keys.slice(segment.start as usize, segment.len as usize);
        while t < segment_end {
            let first = (t - segment.first_tile) as usize * (NT * VT);
            let tile = part.slice(first, (part.len() - first).min(NT * VT));
            let mut own = [B::MIN; VT];
            if tile.len() == NT * VT {
                for i in 0..VT {
                    own[i] = tile.get(thread as usize + i * NT);
                }
                for i in 0..VT {
                    counts.fetch_add(digits.of(coding.encode(own[i])), 1);
                }
            } else {
                let mut i = thread as usize;
                while i < tile.len() {
                    counts.fetch_add(digits.of(coding.encode(tile.get(i))), 1);
                    i += NT;
                }
            }
            t += 1;
        }
        thread::sync_threads();
        let counters = workspace.counters(segment.counters, count);
        let mut digit = thread;
        while digit < count {
            let of_block = counts.get(digit);
            if of_block > 0 {
                counters.fetch_add(digit as usize, of_block);
            }
            digit += NT as u32;
        }
        // A thread sets to 0 again what it has read.
    }
}
