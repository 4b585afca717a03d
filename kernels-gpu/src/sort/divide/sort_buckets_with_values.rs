//! The end of the sort of keys with values: each bucket is sorted by one block, and equal keys stay in their order.
//!
//! ```text
//!   numbers    │ key - least │ slot │     all different, sorted as keys alone are
//!   values     │ …                       in the end: read by slot
//! ```
//!
//! Where a number has too few bits for both, the key's last ones are left out. Then those keys that differ in nothing else are put in order
//! once all are sorted. There are few, unless keys are made for it: if there are too many, the bucket is left to `sort_rest_with_values`.

use super::sort_buckets::{self, Bins, BucketMemory, bins};
use super::workspace::{Arrays, Bucket, Elements, Job, Work, Workspace};
use crate::block_scan::{block_range, sum_before};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// How many keys in a row may differ in nothing but what is left out of their numbers, on either side of one, if they are not in order.
const MOST_ALIKE: u32 = 32;

/// Bytes of dynamic shared memory for buckets of up to `threads * items_per_thread` keys with values of `value_bytes` bytes.
pub const fn shared_bytes<B>(threads: usize, items_per_thread: usize, value_bytes: usize) -> u32 {
    number_bytes::<B>(threads, items_per_thread) + (threads * items_per_thread * value_bytes) as u32
}

/// Bytes of shared memory for numbers.
const fn number_bytes<B>(threads: usize, items_per_thread: usize) -> u32 {
    sort_buckets::shared_bytes::<B>(threads, items_per_thread).next_multiple_of(8)
}

/// How a key and its slot become a number.
#[derive(Clone, Copy)]
struct Numbers<B> {
    least: B,
    /// Bits of a slot.
    slot_bits: u32,
    /// How many of the key's last bits are left out.
    left_out: u32,
}

impl<B: Bits> Numbers<B> {
    /// For keys from `least` to `greatest`, in up to `slots` slots.
    #[inline(always)]
    fn new(least: B, greatest: B, slots: u32) -> Self {
        let (bits, slot_bits) = (8 * size_of::<B>() as u32, u32::BITS - (slots - 1).leading_zeros());
        let key_bits = bits - (greatest - least).leading_zeros();
        Self { least, slot_bits, left_out: (key_bits + slot_bits).saturating_sub(bits) }
    }

    #[inline(always)]
    fn of(self, key: B, slot: u32) -> B {
        let key = (key - self.least).shifted_down(self.left_out).to_register();
        B::from_register(key << self.slot_bits | slot as u64)
    }

    /// What a number has of its key.
    #[inline(always)]
    fn upper(self, number: B) -> B {
        number.shifted_down(self.slot_bits)
    }

    /// The key of a number that nothing is left out of.
    #[inline(always)]
    fn key(self, number: B) -> B {
        self.least + self.upper(number)
    }

    #[inline(always)]
    fn slot(self, number: B) -> u32 {
        number.to_register() as u32 & ((1 << self.slot_bits) - 1)
    }
}

/// Kernel: sorts all buckets, from where they are to the same indices of `at`, keys as `coding` decodes them.
///
/// # Safety
/// As for [`divide_with_values`](super::divide_with_values::divide_with_values), which has been called for all levels; `scratch` is the
/// other side of theirs; buckets are of `NT * VT` keys, blocks of `NT` threads with [`shared_bytes`].
#[kernel(
    u32v4 = <u32, u32, { ROW.buckets_4v.threads }, { ROW.buckets_4v.items_per_thread }> within (ROW.buckets_4v.threads, 2),
    u64v4 = <u64, u32, { ROW.buckets_8v.threads }, { ROW.buckets_8v.items_per_thread }> within (ROW.buckets_8v.threads, 2),
    u32v8 = <u32, u64, { ROW.buckets_4v.threads }, { ROW.buckets_4v.items_per_thread }> within (ROW.buckets_4v.threads, 2),
    u64v8 = <u64, u64, { ROW.buckets_8v.threads }, { ROW.buckets_8v.items_per_thread }> within (ROW.buckets_8v.threads, 2),
)]
pub unsafe fn sort_buckets_with_values<B: Bits, V: Word, const NT: usize, const VT: usize>(
    job: Job,
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let workspace = unsafe { Workspace::new(&job) };
    let slots = const { (NT * VT) as u32 };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (memory, values) = unsafe {
        (BucketMemory::<B>::at_start(NT, VT), Shared::<V>::dynamic(const { number_bytes::<B>(NT, VT) }, slots))
    };
    // SAFETY: the caller's promise.
    let (at, scratch) = unsafe { (at.arrays(job.plan.n), scratch.arrays(job.plan.n)) };
    // What is computed from it is not kept in registers from one bucket to the next.
    let thread = || recomputed(thread::thread_idx_x());
    let buckets = workspace.buckets();
    let mut b = thread::block_idx_x();
    while b < buckets {
        let Bucket { start, len, in_scratch, work, .. } = workspace.bucket(b);
        b += thread::grid_dim_x();
        let from = if in_scratch { scratch } else { at }.slice(start, len);
        if work == Work::Copy {
            let mut i = thread();
            while i < len {
                let (key, value) = from.get(i);
                at.slice(start, len).set(i, (coding.decode(key), value));
                i += recomputed(NT as u32);
            }
            continue;
        }
        let first = thread();
        let slot = |i: usize| first + (i * NT) as u32;
        // Compared anew wherever it is asked: the compiler would keep all answers in registers.
        let is_here = |i: usize| slot(i) < recomputed(len);
        let mut own = [B::MAX; VT];
        for i in 0..VT {
            if is_here(i) {
                own[i] = from.keys.get(slot(i) as usize);
                values.copy_async_mut(slot(i), from.values, slot(i) as usize);
            }
        }
        memory.clear::<NT>();
        let (mut least, mut greatest) = (B::MAX, B::MIN);
        for i in 0..VT {
            least = least.min(own[i]);
            if is_here(i) {
                greatest = greatest.max(own[i]);
            }
        }
        // SAFETY: all threads of the block are here, as below.
        let (least, greatest) = unsafe { block_range(least, greatest, memory.scan) };
        let numbers = Numbers::new(least, greatest, slots);
        for i in 0..VT {
            own[i] = if is_here(i) { numbers.of(own[i], slot(i)) } else { B::MAX };
        }
        let of_bucket = Bins::new(B::MIN, numbers.of(greatest, slots - 1), bins(NT));
        // SAFETY: as above. If all keys are equal they are in order already.
        let mut is_sorted = least == greatest || unsafe { memory.sort::<NT, VT>(own, of_bucket, is_here) };
        // Read once more: there are no registers to spare.
        let Bucket { start, len, in_scratch, .. } = workspace.bucket(b - thread::grid_dim_x());
        let (from, to) = (if in_scratch { scratch } else { at }.slice(start, len), at.slice(start, len));
        shared::wait_for_copies();
        thread::sync_threads();
        if least == greatest {
            for i in 0..VT {
                if is_here(i) {
                    to.set(slot(i), (coding.decode(least), values.get(slot(i))));
                }
            }
        } else if numbers.left_out == 0 {
            if is_sorted {
                for i in 0..VT {
                    if is_here(i) {
                        let number = memory.tile.get(slot(i));
                        to.set(slot(i), (coding.decode(numbers.key(number)), values.get(numbers.slot(number))));
                    }
                }
            }
        } else if is_sorted {
            // SAFETY: as above.
            is_sorted = unsafe { put_in_order::<B, V, NT, VT>(numbers, memory, from, values, to, coding) };
        }
        if !is_sorted && thread() == 0 {
            workspace.fail(b - thread::grid_dim_x());
        }
        thread::sync_threads();
    }
}

/// Shared to global: keys in the order of their sorted numbers, from which bits are left out, and keys that differ in these only in their
/// own order. Gives whether that was possible.
///
/// # Safety
/// All threads of the block make this call, which are `NT`, after a barrier.
#[inline(always)]
unsafe fn put_in_order<B: Bits, V: Word, const NT: usize, const VT: usize>(
    numbers: Numbers<B>,
    memory: BucketMemory<B>,
    from: Arrays<B, V>,
    values: Shared<V>,
    to: Arrays<B, V>,
    coding: Coding<B>,
) -> bool {
    let (thread, len) = (thread::thread_idx_x(), to.keys.len() as u32);
    let rank = |i: usize| thread + (i * NT) as u32;
    let slot = |rank: u32| numbers.slot(memory.tile.get(rank));
    let key = |rank: u32| from.keys.get(slot(rank) as usize);
    let is_like_next =
        |rank: u32| rank + 1 < len && numbers.upper(memory.tile.get(rank)) == numbers.upper(memory.tile.get(rank + 1));
    let mut keys = [B::MIN; VT];
    let mut inversions = 0;
    for i in 0..VT {
        if rank(i) < len {
            keys[i] = key(rank(i));
            inversions += u32::from(is_like_next(rank(i)) && keys[i] > key(rank(i) + 1));
        }
    }
    // SAFETY: the caller's promise, as below.
    let (_, inversions) = unsafe { sum_before(inversions, memory.scan) };
    let (ranks, mut too_many) = (memory.ranks::<NT, VT>(), 0);
    for i in 0..VT {
        if rank(i) < len {
            let (mut own_rank, mut other) = (rank(i), rank(i));
            if inversions > 0 {
                // Those before that are greater come after it, and those after that are less before.
                while other > 0 && rank(i) - other < MOST_ALIKE && is_like_next(other - 1) {
                    other -= 1;
                    own_rank -= u32::from(key(other) > keys[i]);
                }
                too_many += u32::from(rank(i) - other == MOST_ALIKE);
                other = rank(i);
                while other - rank(i) < MOST_ALIKE && is_like_next(other) {
                    other += 1;
                    own_rank += u32::from(key(other) < keys[i]);
                }
                too_many += u32::from(other - rank(i) == MOST_ALIKE);
            }
            ranks.set(rank(i), own_rank as u16);
        }
    }
    // The sum before is read until here, and so are all keys before one is written.
    thread::sync_threads();
    // SAFETY: as above.
    let (_, too_many) = unsafe { sum_before(too_many, memory.scan) };
    if too_many > 0 {
        return false;
    }
    for i in 0..VT {
        if rank(i) < len {
            to.set(ranks.get(rank(i)) as u32, (coding.decode(keys[i]), values.get(slot(rank(i)))));
        }
    }
    true
}
