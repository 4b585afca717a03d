//! The end of the sort of keys with their indices: each bucket is sorted by one block, equal keys by their indices.
//!
//! ```text
//!   packed     │ key - least │ index │ slot │     numbers of 64 bits, all different, sorted as keys alone are
//!   values     │ …                            in the end: read by slot
//! ```
//!
//! Where that takes more than 64 bits, the index is left out, and then as many of the key's last bits as do not fit. If two packed
//! keys differ in nothing but the slot then, the bucket is left to `sort_rest_indexed`.

use super::sort_buckets::{self, Bins, BucketMemory, bins};
use super::workspace::{Bucket, Elements, Job, Workspace};
use crate::block_scan::{block_range, sum_before};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// Bytes of dynamic shared memory for buckets of up to `threads * items_per_thread` keys of `key_bytes` bytes with values of
/// `value_bytes`, or 0.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    let carried = Carried::of(key_bytes, value_bytes > 0);
    let (keys, values) = (if carried.keys { key_bytes } else { 0 }, if value_bytes > 0 { value_bytes } else { 4 });
    let bytes = keys + if carried.values { values } else { 0 };
    packed_bytes(threads, items_per_thread) + (threads * items_per_thread * bytes) as u32
}

/// Bytes of shared memory for packed keys.
const fn packed_bytes(threads: usize, items_per_thread: usize) -> u32 {
    sort_buckets::shared_bytes::<u64>(threads, items_per_thread).next_multiple_of(8)
}

/// What of an element is not in its packed key, so that it has to be found by its slot.
struct Carried {
    keys: bool,
    /// Its value, or its index if there are no values.
    values: bool,
}

impl Carried {
    const fn of(key_bytes: usize, has_values: bool) -> Self {
        Self { keys: key_bytes == 8, values: has_values || key_bytes == 8 }
    }

    /// Bits of a slot of buckets of up to `keys` keys, if it is needed.
    const fn slot_bits(self, keys: usize) -> u32 {
        if self.keys || self.values { usize::BITS - (keys - 1).leading_zeros() } else { 0 }
    }
}

/// How the keys of a bucket and their indices become one number.
#[derive(Clone, Copy)]
struct Packing<B> {
    least: B,
    first: u32,
    /// Bits of the index, or 0 if it is left out.
    index_bits: u32,
    /// How many of the key's last bits are left out.
    left_out: u32,
    /// Whether nothing is left out.
    is_complete: bool,
}

impl<B: Bits> Packing<B> {
    /// For keys from `least` to `greatest`, indices from `first` to `last`, and slots of `slot_bits`.
    #[inline(always)]
    fn new((least, greatest): (B, B), (first, last): (u32, u32), slot_bits: u32) -> Self {
        let key_bits = 8 * size_of::<B>() as u32 - (greatest - least).leading_zeros();
        let index_bits = 32 - (last - first).leading_zeros();
        if key_bits + index_bits + slot_bits <= 64 {
            Self { least, first, index_bits, left_out: 0, is_complete: true }
        } else {
            let left_out = (key_bits + slot_bits).saturating_sub(64);
            Self { least, first, index_bits: 0, left_out, is_complete: false }
        }
    }

    /// A key and its index, without a slot.
    #[inline(always)]
    fn pack(self, key: B, index: u32) -> u64 {
        let key = (key - self.least).shifted_down(self.left_out).to_register();
        key << self.index_bits | if self.is_complete { (index - self.first) as u64 } else { 0 }
    }

    /// The key of a number that is complete.
    #[inline(always)]
    fn key(self, number: u64) -> B {
        self.least + B::from_register(number >> self.index_bits)
    }

    /// The index of a number that is complete.
    #[inline(always)]
    fn index(self, number: u64) -> u32 {
        self.first + (number as u32 & ((1 << self.index_bits) - 1))
    }
}

/// Kernel: sorts all buckets, from where they are to the same indices of the keys and of the values of `at`, or of the indices if there
/// are no `VALUES`; keys as `coding` decodes them.
///
/// # Safety
/// As for [`divide_indexed`](super::divide_indexed::divide_indexed), which has been called for all levels; `scratch` is the other side of
/// theirs; buckets are of `NT * VT` keys, blocks of `NT` threads with [`shared_bytes`].
#[kernel(
    u32v0 = <u32, u32, false, { ROW.buckets_indexed.threads }, { ROW.buckets_indexed.items_per_thread }> within (ROW.buckets_indexed.threads, 5),
    u64v0 = <u64, u32, false, { ROW.buckets_indexed.threads }, { ROW.buckets_indexed.items_per_thread }> within (ROW.buckets_indexed.threads, 5),
    u32v4 = <u32, u32, true, { ROW.buckets_indexed.threads }, { ROW.buckets_indexed.items_per_thread }> within (ROW.buckets_indexed.threads, 5),
    u64v4 = <u64, u32, true, { ROW.buckets_indexed.threads }, { ROW.buckets_indexed.items_per_thread }> within (ROW.buckets_indexed.threads, 5),
    u32v8 = <u32, u64, true, { ROW.buckets_indexed.threads }, { ROW.buckets_indexed.items_per_thread }> within (ROW.buckets_indexed.threads, 5),
    u64v8 = <u64, u64, true, { ROW.buckets_indexed.threads }, { ROW.buckets_indexed.items_per_thread }> within (ROW.buckets_indexed.threads, 5),
)]
pub unsafe fn sort_buckets_indexed<B: Bits, V: Word, const VALUES: bool, const NT: usize, const VT: usize>(
    job: Job,
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let workspace = unsafe { Workspace::new(&job) };
    let slots = const { (NT * VT) as u32 };
    let carried = const { Carried::of(size_of::<B>(), VALUES) };
    let slot_bits = const { Carried::of(size_of::<B>(), VALUES).slot_bits(NT * VT) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (memory, keys, values, own_indices) = unsafe {
        let keys_at = const { packed_bytes(NT, VT) };
        let (key_slots, value_slots) = (if carried.keys { slots } else { 0 }, if carried.values { slots } else { 0 });
        let values_at = keys_at + key_slots * 8;
        let memory = BucketMemory::<u64>::at_start(NT, VT);
        // Values, or indices if there are none.
        let values = Shared::<V>::dynamic(values_at, if VALUES { value_slots } else { 0 });
        let indices = Shared::<u32>::dynamic(values_at, if VALUES { 0 } else { value_slots });
        (memory, Shared::<B>::dynamic(keys_at, key_slots), values, indices)
    };
    // SAFETY: the caller's promise.
    let (at, scratch) = unsafe { (at.arrays(job.n, true, VALUES), scratch.arrays(job.n, true, VALUES)) };
    let thread = thread::thread_idx_x();
    let buckets = workspace.buckets();
    let mut b = thread::block_idx_x();
    while b < buckets {
        let Bucket { start, len, in_scratch, .. } = workspace.bucket(b);
        b += thread::grid_dim_x();
        let from = if in_scratch { scratch } else { at };
        let slot = |i: usize| thread + (i * NT) as u32;
        // Compared anew wherever it is asked: the compiler would keep all answers in registers.
        let is_here = |i: usize| slot(i) < recomputed(len);
        let (mut own, mut indices) = ([B::MAX; VT], [0; VT]);
        for i in 0..VT {
            if is_here(i) {
                own[i] = from.keys.get((start + slot(i)) as usize);
                indices[i] = from.indices.get((start + slot(i)) as usize);
                if VALUES {
                    values.copy_async_mut(slot(i), from.values, (start + slot(i)) as usize);
                }
            }
        }
        memory.clear::<NT>();
        let (mut least, mut greatest) = (B::MAX, B::MIN);
        for i in 0..VT {
            least = least.min(own[i]);
            greatest = greatest.max(select_unpredictable(is_here(i), own[i], B::MIN));
        }
        // SAFETY: all threads of the block are here, as below.
        let (least, greatest) = unsafe { block_range(least, greatest, memory.scan) };
        let (mut first, mut last) = (0, job.n - 1);
        if least == greatest {
            // Equal keys are sorted by their indices alone.
            (first, last) = (u32::MAX, 0);
            for i in 0..VT {
                first = first.min(select_unpredictable(is_here(i), indices[i], u32::MAX));
                last = last.max(indices[i]);
            }
            // SAFETY: as above.
            (first, last) = unsafe { block_range(first, last, memory.scan) };
        }
        let packing = Packing::new((least, greatest), (first, last), slot_bits);
        let mut packed = [u64::MAX; VT];
        for i in 0..VT {
            if is_here(i) {
                packed[i] =
                    packing.pack(own[i], indices[i]) << slot_bits | if slot_bits > 0 { slot(i) as u64 } else { 0 };
                if carried.keys {
                    keys.set(slot(i), own[i]);
                }
                if carried.values && !VALUES {
                    own_indices.set(slot(i), indices[i]);
                }
            }
        }
        let most = packing.pack(greatest, last) << slot_bits | (slots as u64 - 1);
        // SAFETY: as above; the range has ended with a barrier.
        let mut is_sorted = unsafe { memory.sort::<NT, VT>(packed, Bins::new(0, most, bins(NT)), is_here) };
        for i in 0..VT {
            packed[i] = memory.tile.get(slot(i));
        }
        if !packing.is_complete {
            // Are there two of which the order is not known?
            let mut ties = 0;
            for i in 0..VT {
                let next = slot(i) + 1;
                ties += u32::from(next < len && memory.tile.get(next) >> slot_bits == packed[i] >> slot_bits);
            }
            // SAFETY: as above.
            let (_, ties) = unsafe { sum_before(ties, memory.scan) };
            is_sorted &= ties == 0;
        }
        if VALUES {
            shared::wait_for_copies();
        }
        thread::sync_threads();
        if is_sorted {
            for i in 0..VT {
                if is_here(i) {
                    let place = (recomputed(start) + slot(i)) as usize;
                    let (number, from) = (packed[i] >> slot_bits, packed[i] as u32 & ((1 << slot_bits) - 1));
                    let key = if carried.keys { keys.get(from) } else { packing.key(number) };
                    at.keys.set(place, coding.decode(key));
                    if VALUES {
                        at.values.set(place, values.get(from));
                    } else {
                        at.indices
                            .set(place, if carried.values { own_indices.get(from) } else { packing.index(number) });
                    }
                }
            }
        } else if thread == 0 {
            workspace.fail(b - thread::grid_dim_x());
        }
        thread::sync_threads();
    }
}
