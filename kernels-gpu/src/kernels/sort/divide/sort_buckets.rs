//! The end of the sort: one block sorts each bucket, by bins of its keys (`by_keys`), or of
//! numbers (`by_numbers`) for keys of 8 bytes or with values. Buckets that bins do not sort are left to
//! `sort_rest`.
//!
//! Keys of 4 bytes without values have two instances, one of them for long buckets. If such keys may be skewed, a
//! bucket that is half full or less is sorted with fewer keys for each thread.

use super::bins::{BucketMemory, MOST_FINER};
use super::by_keys::sort_by_keys;
use super::by_numbers::{MOST_ITEMS, Slots, sort_by_numbers};
use super::workspace::{Bucket, Job, Work, Workspace};
use crate::block::shared_memory::{self, of_widths, shared_memory};
use crate::elements::{Arrays, Elements, has_values};
use crate::key::{Bits, Coding};
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// Whether bins are of the keys themselves and not of numbers: for keys of 4 bytes without values.
pub const fn is_by_keys(key_bytes: usize, value_bytes: usize) -> bool {
    key_bytes == 4 && value_bytes == 0
}

/// `count` if buckets of keys of type `B` with values of type `V` are sorted by keys, and 0 if by numbers.
const fn if_by_keys<B, V>(count: usize) -> usize {
    if is_by_keys(size_of::<B>(), size_of::<V>()) { count } else { 0 }
}

shared_memory! {
    /// Shared memory of a bucket, for blocks of `threads` threads with `items_per_thread` keys each. Only one part is
    /// used, and the other part has no room for keys.
    pub(in crate::kernels::sort) union Memory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        keys: BucketMemory<B> { if_by_keys::<B, V>(threads), if_by_keys::<B, V>(items_per_thread) },
        numbers: Slots<B, V> {
            threads - if_by_keys::<B, V>(threads),
            items_per_thread - if_by_keys::<B, V>(items_per_thread)
        },
    }
}

impl<B: Bits, V: Word> Memory<B, V> {
    /// A word for the number of buckets.
    #[inline(always)]
    fn count(self) -> Shared<u32> {
        if const { is_by_keys(size_of::<B>(), size_of::<V>()) } { self.keys.buckets } else { self.numbers.buckets }
    }
}

/// Bytes of dynamic shared memory for buckets of up to `threads * items_per_thread` keys of `key_bytes` bytes with
/// values of `value_bytes` bytes, or 0.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    of_widths!(key_bytes, value_bytes, Memory::bytes(threads, items_per_thread))
}

/// Threads of a block for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
const fn threads(key_bytes: usize, value_bytes: usize) -> usize {
    ROW.sort_buckets.of(key_bytes, value_bytes).threads
}

/// Keys per thread.
const fn items(key_bytes: usize, value_bytes: usize) -> usize {
    ROW.sort_buckets.of(key_bytes, value_bytes).items_per_thread
}

/// The shape for long buckets.
const LONG_SHAPE: Tile = ROW.sort_long_buckets.of(4, 0);

/// Kernel: sorts all buckets, or all long buckets if `LONG`, to the same indices of `at`. Keys in `at` are as `coding`
/// decodes them.
///
/// # Safety
/// The requirements of [`divide`](super::divide::divide) hold, and that kernel has run for all levels. `scratch` is the
/// other side of the divisions. Buckets have up to `NT * VT` keys, and blocks `NT` threads with [`shared_bytes`]. `FEW`
/// is [`few`] of `VT`. The launch for long buckets need not wait for the other one.
#[kernel(
    u32 = <u32, (), { threads(4, 0) }, { items(4, 0) }, { few(items(4, 0)) }, false>
        within (threads(4, 0), 3),
    u32long = <u32, (), { LONG_SHAPE.threads }, { LONG_SHAPE.items_per_thread },
        { few(LONG_SHAPE.items_per_thread) }, true>
        within (LONG_SHAPE.threads, 1),
    u64 = <u64, (), { threads(8, 0) }, { items(8, 0) }, { few(items(8, 0)) }, false>
        within (threads(8, 0), 2),
    u32v4 = <u32, u32, { threads(4, 4) }, { items(4, 4) }, { few(items(4, 4)) }, false>
        within (threads(4, 4), 2),
    u32v8 = <u32, u64, { threads(4, 8) }, { items(4, 8) }, { few(items(4, 8)) }, false>
        within (threads(4, 8), 2),
    u64v4 = <u64, u32, { threads(8, 4) }, { items(8, 4) }, { few(items(8, 4)) }, false>
        within (threads(8, 4), 2),
    u64v8 = <u64, u64, { threads(8, 8) }, { items(8, 8) }, { few(items(8, 8)) }, false>
        within (threads(8, 8), 2),
)]
pub unsafe fn sort_buckets<B: Bits, V: Word, const NT: usize, const VT: usize, const FEW: usize, const LONG: bool>(
    job: Job,
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    coding: Coding<B>,
) {
    const { assert!(LONG || VT <= MOST_ITEMS, "more keys of a thread are sorted by keys, in long buckets") };
    // SAFETY: all arrays have `plan.n` elements, and both sides do not overlap. The lists have `job.at.words` words, as
    // `Job` says. Buckets do not overlap, and one block uses each.
    let (workspace, sides) = unsafe { job.open([at, scratch]) };
    let fail = |bucket| fail(workspace, bucket);
    // SAFETY: `is_counted_twice` reads words of earlier launches, so that all `NT` threads of the block make the same
    // call. The launch has `shared_bytes`. Buckets have up to `NT * VT` keys, as this kernel requires.
    unsafe {
        if LONG {
            let (buckets, number) = (workspace.long_buckets(), |i| workspace.long_bucket(i));
            sort_listed::<B, V, NT, VT, FEW, true>(workspace, sides, coding, buckets, number, fail);
        } else if const { is_by_keys(size_of::<B>(), size_of::<V>()) } && workspace.is_counted_twice() {
            sort_all::<B, V, NT, VT, VT, false>(workspace, sides, coding, fail);
        } else {
            sort_all::<B, V, NT, VT, FEW, true>(workspace, sides, coding, fail);
        }
    };
}

/// Keys of a thread in the form of the sort for buckets that are about half full or less; `items_per_thread` are the
/// keys in the other form. The number is odd, so that the windows of a warp's threads use different banks.
pub const fn few(items_per_thread: usize) -> usize {
    (items_per_thread / 2) | 1
}

/// Stores that a bucket is left to `sort_rest`. All threads of its block make this call.
#[inline(always)]
pub(super) fn fail(workspace: Workspace, bucket: u32) {
    if thread::thread_idx_x() == 0 {
        workspace.fail(bucket);
    }
}

/// Sorts all buckets from both `sides` to the first side. A bucket that cannot be sorted stays as it is; all threads
/// call `fail` with its number.
///
/// # Safety
/// The requirements of [`sort_buckets`] hold.
#[inline(always)]
pub(super) unsafe fn sort_all<
    B: Bits,
    V: Word,
    const NT: usize,
    const VT: usize,
    const FEW: usize,
    const UNEVEN: bool,
>(
    workspace: Workspace,
    sides: [Arrays<B, V>; 2],
    coding: Coding<B>,
    fail: impl Fn(u32),
) {
    let (buckets, number) = (workspace.buckets(), |bucket| bucket);
    // SAFETY: the requirements of `sort_listed` are this function's own. `number` is the identity, so that each bucket
    // belongs to one block.
    unsafe { sort_listed::<B, V, NT, VT, FEW, UNEVEN>(workspace, sides, coding, buckets, number, fail) };
}

/// Sorts `buckets` buckets as [`sort_all`] does; `number` maps each to its number in the list. Keys may be `UNEVEN`.
///
/// # Safety
/// The requirements of [`sort_buckets`] hold. `number` is injective.
#[inline(always)]
unsafe fn sort_listed<B: Bits, V: Word, const NT: usize, const VT: usize, const FEW: usize, const UNEVEN: bool>(
    workspace: Workspace,
    [at, scratch]: [Arrays<B, V>; 2],
    coding: Coding<B>,
    buckets: u32,
    number: impl Fn(u32) -> u32,
    fail: impl Fn(u32),
) {
    const { assert!(FEW <= VT, "the memory is that of a full bucket") };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    // SAFETY: the launch has `shared_bytes` for `NT` threads with `VT` keys. Barriers of `sort_bucket` come between
    // writing and reading, and another barrier before the next bucket. `count` is written once, before a barrier.
    let memory = unsafe { Memory::<B, V>::at_start(NT, VT) };
    if thread::thread_idx_x() == 0 {
        memory.count().set(0, buckets);
    }
    thread::sync_threads();
    let mut b = thread::block_idx_x();
    while b < memory.count().get(0) {
        let Bucket { start, len, in_scratch, work, .. } = workspace.bucket(number(b));
        let from = if in_scratch { scratch } else { at }.slice(start as usize, len as usize);
        // Destination of the bucket, computed again at each call.
        let to = || at.slice(recomputed(start) as usize, len as usize);
        if work == Work::Copy {
            copy::<B, V, NT>(from, to(), coding);
            b += thread::grid_dim_x();
            continue;
        }
        // SAFETY: `b` and `work` are the same for all threads, so that all `NT` threads of the block make the call.
        // Buckets do not overlap, and a barrier comes before the next use of `memory`.
        let is_sorted =
            unsafe { sort_bucket::<B, V, NT, VT, FEW, UNEVEN, MOST_FINER>(from, to, (Coding::NONE, coding), memory) };
        if !is_sorted {
            fail(number(b));
        }
        thread::sync_threads();
        b += thread::grid_dim_x();
    }
}

/// Copies a bucket of equal keys, and its values, to its destination. All threads of the block make this call.
#[inline(always)]
#[track_caller]
fn copy<B: Bits, V: Word, const NT: usize>(from: Arrays<B, V>, to: Arrays<B, V>, coding: Coding<B>) {
    let (key, mut i) = (coding.decode(from.keys.get(0)), thread::thread_idx_x() as usize);
    // The first key may be in its place already.
    thread::sync_threads();
    while i < to.len() {
        to.keys.set(i, key);
        if has_values::<V>() {
            to.values.set(i, from.values.get(i));
        }
        i += NT;
    }
}

/// Sorts a bucket of up to `NT * VT` elements from `from` to `to`, which may be the same array, and returns whether it
/// did. `from` has keys as the first coding encodes them, and `to` gets keys as the second decodes them. A bucket that
/// cannot be sorted is left as it is. Up to `NT * FEW` keys of 4 bytes without values are sorted with `FEW` keys for
/// each thread. Such keys may be `UNEVEN`, and others always may. Bins are made finer up to `FINER` times.
///
/// # Safety
/// All `NT` threads of the block make this call. Nothing else uses `memory`, or the elements of `from` and `to`.
#[inline(always)]
pub(in crate::kernels::sort) unsafe fn sort_bucket<
    B: Bits,
    V: Word,
    const NT: usize,
    const VT: usize,
    const FEW: usize,
    const UNEVEN: bool,
    const FINER: u32,
>(
    from: Arrays<B, V>,
    to: impl Fn() -> Arrays<B, V>,
    codings: (Coding<B>, Coding<B>),
    memory: Memory<B, V>,
) -> bool {
    // SAFETY: all conditions are constants or the length of `from`, so that all `NT` threads of the block make the same
    // call. The caller ensures that nothing else uses `memory`, `from` or `to`. The part of the union that is used has
    // room for `NT * VT` keys, and `FEW` is at most `VT`.
    unsafe {
        if const { !is_by_keys(size_of::<B>(), size_of::<V>()) } {
            sort_by_numbers::<B, V, NT, VT, FINER>(from, to, codings, memory.numbers)
        } else if FEW < VT && from.len() <= NT * FEW {
            sort_by_keys::<B, NT, FEW, UNEVEN, FINER>(from.keys, || to().keys, codings, memory.keys)
        } else {
            sort_by_keys::<B, NT, VT, UNEVEN, FINER>(from.keys, || to().keys, codings, memory.keys)
        }
    }
}
