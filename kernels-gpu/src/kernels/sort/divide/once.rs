//! One division of few keys, without values, in three launches: here, launches take most of the time.
//!
//! ```text
//!   count_once     each block takes the same sample, chooses the same digits, and counts its share
//!   divide_once    each block finds the starts of digits and moves a tile; one more lists the buckets
//!   sort_once      each bucket sorted by one block; if keys are not divided, each tile, for merges
//! ```
//!
//! In the second step all blocks find out whether a digit has too many keys for a block. Then no key is moved.

use super::choose_digits::{Choice, ChooseMemory, How, Undivided, choose, note_parts, of_thread};
use super::count_digits::{COPIES, COUNT_THREADS, count};
use super::digits::{ANY, Curve, Digits, LINEAR};
use super::in_any_order::{TileMemory, load, move_keys};
use super::place_buckets::{Division, PlaceMemory, is_too_long, own_digits_capacity, place_digits};
use super::sort_buckets::{fail, few};
use super::tiles::{Tile, Tiles};
use super::workspace::{Bucket, Job, Segment, Workspace};
use super::{DIGITS_CAPACITY, sort_buckets};
use crate::block::clear;
use crate::block::counters::Counters;
use crate::block::shared_memory::{self, shared_memory};
use crate::block::sort_tile::{KeyTile, sort_tile};
use crate::block::tile;
use crate::elements::Arrays;
use crate::kernels::sort::detect_runs::Detection;
use crate::kernels::sort::is_whole_warps;
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use core::cell::Cell;
use cuda_std::prelude::*;

/// Blocks of a multiprocessor that count.
pub const ONCE_BLOCKS: usize = 2;

shared_memory! {
    /// Shared memory of a block that chooses digits and counts them.
    struct CountMemory() {
        choice: ChooseMemory {},
        counters: [u32; COPIES * DIGITS_CAPACITY],
    }
}

shared_memory! {
    /// Shared memory of a block that finds where digits begin and moves a tile of `slots` keys.
    struct MoveMemory<B: Word>(slots: usize) {
        tile: TileMemory<B> { slots },
        /// Number of threads that have found a digit with too many keys.
        too_long: [u32; 1],
    }
}

shared_memory! {
    /// A block moves a tile, or lists the buckets.
    union DivideMemory<B: Word>(slots: usize) {
        tile: MoveMemory<B> { slots },
        list: PlaceMemory {},
    }
}

/// Bytes of dynamic shared memory of [`count_once`].
pub const COUNT_ONCE_SHARED_BYTES: u32 = CountMemory::bytes();

/// Bytes of dynamic shared memory of [`divide_once`] for tiles of `tile` keys of `bytes` bytes, 4 or 8.
pub const fn shared_bytes(tile: usize, bytes: usize) -> u32 {
    if bytes == 8 { DivideMemory::<u64>::bytes(tile) } else { DivideMemory::<u32>::bytes(tile) }
}

/// Kernel: chooses the digits of all keys, as [`choose_digits`](super::choose_digits::choose_digits) does if there is
/// one level and runs have not been detected. Then it counts the keys of each digit. If no sampled key is greater than
/// the next one, it looks for such a key among all keys instead.
///
/// # Safety
/// `keys` is the array to sort, as `coding` encodes it. The requirements of [`Job`] hold, for a plan with one level and
/// in any order. The words of [`Layout::once`](super::workspace::Layout::once) and of `job.order` are 0. Blocks have
/// [`COUNT_THREADS`] threads with [`COUNT_ONCE_SHARED_BYTES`].
#[kernel(
    u32 = <u32> within (COUNT_THREADS, ONCE_BLOCKS),
    u64 = <u64> within (COUNT_THREADS, ONCE_BLOCKS),
)]
pub unsafe fn count_once<B: Bits>(job: Job, keys: *mut B, coding: Coding<B>, random: u64, always_divides: u32) {
    let plan = job.plan;
    // SAFETY: `keys` has `plan.n` keys, which this launch only reads. The lists have `job.at.words` words, as `Job`
    // says. `job.order` has `DETECTION_WORDS`. Thread 0 of the first block sets these; other threads only raise `MANY`,
    // and then that thread sets another word.
    let (keys, workspace, detection) =
        unsafe { (GlobalMut::new(keys, plan.n as usize), Workspace::new(&job), Detection::new(job.order)) };
    // SAFETY: the launch has `COUNT_ONCE_SHARED_BYTES`. Barriers come between clearing, adding and reading.
    let CountMemory { choice: memory, counters: words } = unsafe { CountMemory::at_start() };
    let counts = Counters::<COPIES>(words);
    let (thread, block) = (thread::thread_idx_x(), thread::block_idx_x());
    if block == 0 && thread == 0 {
        workspace.clear();
    }
    // Keys below and above the sample take two more digits.
    let most = plan.most_first_digits() - 2;
    let always_divides = always_divides != 0;
    let how = How { level: 0, is_array: true, single: most, most, seed: random as u32, always_divides };
    // SAFETY: no branch surrounds the call, so that all `COUNT_THREADS` threads of the block make it. Nothing else uses
    // `memory`.
    let choice = unsafe { choose::<B, { of_thread(COUNT_THREADS as u32) }, true>(&job, keys, coding, how, memory) };
    // A share is whole rows of the block's threads.
    let share = keys.len().div_ceil(thread::grid_dim_x() as usize).next_multiple_of(COUNT_THREADS);
    let first = (block as usize * share).min(keys.len());
    let Choice { digits, exact, .. } = match choice {
        Err(Undivided { ascends: true, .. }) => {
            if block == 0 && thread == 0 {
                detection.expect_ascent();
            }
            if has_descent(keys, first, (first + share).min(keys.len() - 1), coding) {
                detection.note_descent();
            }
            return;
        }
        Err(_) => {
            if block == 0 && thread == 0 {
                detection.begin();
            }
            return;
        }
        Ok(choice) => choice,
    };
    let [counters, _] = workspace.once(plan, digits.count);
    if block == 0 {
        if thread == 0 {
            detection.begin();
            detection.divide();
            workspace.begin(plan.parts(plan.n));
            let counters = job.at.once(&plan).0 as u32;
            let segment = Segment { start: 0, len: plan.n, first_part: 0, counters, exact, skipped: false, digits };
            workspace.set_segment(0, segment);
        }
        note_parts(workspace, 0, 0, plan.parts(plan.n));
    }
    counts.clear::<COUNT_THREADS>(digits.count);
    thread::sync_threads();
    count::<B, COUNT_THREADS, true>(keys.slice(first, share.min(keys.len() - first)), digits, coding, counts);
    thread::sync_threads();
    counts.add_to::<COUNT_THREADS>(counters);
}

/// Whether one of the keys that this thread reads, from index `first` to before `end`, is greater than the next key.
#[inline(always)]
#[track_caller]
fn has_descent<B: Bits>(keys: GlobalMut<B>, first: usize, end: usize, coding: Coding<B>) -> bool {
    let (mut i, mut descends) = (first + thread::thread_idx_x() as usize, false);
    while i < end {
        descends |= coding.encode(keys.get(i + 1)) < coding.encode(keys.get(i));
        i += COUNT_THREADS;
    }
    descends
}

/// Bytes of dynamic shared memory of [`sort_once`] for buckets of up to `threads * items_per_thread` keys of `bytes`
/// bytes.
pub const fn sort_shared_bytes(threads: usize, items_per_thread: usize, bytes: usize) -> u32 {
    sort_buckets::shared_bytes(threads, items_per_thread, bytes, 0)
}

/// Kernel: moves all keys from `from` to the places of their digits in `to`, and lists the buckets. It does the work of
/// [`place_buckets`](super::place_buckets::place_buckets) and [`divide`](super::divide::divide).
///
/// # Safety
/// The requirements of [`count_once`] hold, and that kernel has run before. `to` has capacity for all keys and does not
/// overlap `from`. There is a block of `NT` threads for each part, which is a tile of `NT * VT` keys, and one more
/// block. Blocks have [`shared_bytes`]. `OWN` is [`own_digits_capacity`] of `NT`.
#[kernel(
    u32 = <u32, { ROW.divide.of(4, 0).threads }, { ROW.divide.of(4, 0).items_per_thread },
        { own_digits_capacity(ROW.divide.of(4, 0).threads) }>
        within (ROW.divide.of(4, 0).threads, ROW.divide.of(4, 0).blocks),
    u64 = <u64, { ROW.divide.of(8, 0).threads }, { ROW.divide.of(8, 0).items_per_thread },
        { own_digits_capacity(ROW.divide.of(8, 0).threads) }>
        within (ROW.divide.of(8, 0).threads, ROW.divide.of(8, 0).blocks - 1),
)]
pub unsafe fn divide_once<B: Bits, const NT: usize, const VT: usize, const OWN: usize>(
    job: Job,
    from: *mut B,
    to: *mut B,
    coding: Coding<B>,
    decodes: u32,
) {
    const { assert!(is_whole_warps(NT), "a block has up to 32 whole warps") };
    const { shared_memory::check(shared_bytes(NT * VT, size_of::<B>())) };
    let plan = job.plan;
    // SAFETY: the lists have `job.at.words` words, as `Job` says, and only these kernels write them.
    let workspace = unsafe { Workspace::new(&job) };
    let n = plan.n as usize;
    // SAFETY: both arrays have `n` keys and do not overlap. Keys are read from one and written to the other, each to
    // its own index: tiles reserve the indices of their keys by `fetch_add`.
    let (from, to) = unsafe { (GlobalMut::new(from, n), GlobalMut::new(to, n)) };
    if thread::block_idx_x() < plan.parts(plan.n) {
        let Some(tile) = Tiles::<B, ()>::of(plan, workspace, 0).next() else {
            return;
        };
        // SAFETY: `block_idx_x` and `tile` are the same for all threads of the block, so that all of them make one
        // call.
        unsafe {
            if tile.len == (NT * VT) as u32 && tile.curve == Curve::Distance {
                place_and_move::<B, NT, VT, OWN, true, LINEAR>(&job, workspace, tile, from, coding, to);
            } else {
                place_and_move::<B, NT, VT, OWN, false, ANY>(&job, workspace, tile, from, coding, to);
            }
        }
    } else if workspace.segments(0) > 0 {
        let segment = workspace.segment::<B>(0);
        let [counts, _] = workspace.once(plan, segment.digits.count);
        // SAFETY: the launch has `shared_bytes`, and this block uses only the part `list`. Barriers of
        // `Division::place` come between writing and reading.
        let memory = unsafe { DivideMemory::<B>::at_start(NT * VT) }.list;
        // SAFETY: the branches depend on `block_idx_x` and on a word of the last launch, so that all `NT` threads of
        // the block make the call. Nothing else uses `memory`.
        let is_possible = unsafe {
            // If all keys are equal, the other blocks move them nevertheless, and nothing reads the copy.
            let division = Division { job: &job, workspace, segment, level: 0, decodes: decodes != 0 };
            division.place::<NT, OWN>(counts, |_, _| (), || (), memory)
        };
        if !is_possible && thread::thread_idx_x() == 0 {
            // SAFETY: `job.order` has `DETECTION_WORDS`, and this is the only thread of the launch that uses them.
            unsafe { Detection::new(job.order) }.give_up();
        }
    }
}

/// Finds the first place of each digit, and moves the keys of a tile there, unless a digit has too many keys. `FULL`
/// and `ALONG` are parameters of [`move_keys`].
///
/// # Safety
/// All threads of the block make this call. A `FULL` tile has `NT * VT` keys.
#[inline(always)]
unsafe fn place_and_move<
    B: Bits,
    const NT: usize,
    const VT: usize,
    const OWN: usize,
    const FULL: bool,
    const ALONG: u32,
>(
    job: &Job,
    workspace: Workspace,
    tile: Tile,
    from: GlobalMut<B>,
    coding: Coding<B>,
    to: GlobalMut<B>,
) {
    // SAFETY: the launch has `shared_bytes`, and this block uses only the part `tile`. Barriers of `place_digits`, of
    // this function and of `move_keys` come between writing and reading.
    let MoveMemory { tile: memory, too_long } = unsafe { DivideMemory::<B>::at_start(NT * VT) }.tile;
    let mut own = load::<B, NT, VT, FULL>(from.slice(tile.begin as usize, tile.len as usize));
    // The loads are in flight meanwhile.
    let digits: Digits<B> = tile.digits();
    let [counts, moved] = workspace.once(job.plan, digits.count);
    clear::<NT>(memory.begins, digits.count);
    if thread::thread_idx_x() == 0 {
        too_long.set(0, 0);
    }
    let mut is_possible = true;
    // SAFETY: no branch surrounds the call, so that all `NT` threads of the block make it. `sync_threads` follows
    // before the next use of `scan`.
    unsafe {
        place_digits::<NT, OWN>(counts, memory.scan, |digit, begin, length| {
            memory.distances.set(digit, begin);
            is_possible &= !is_too_long(job, workspace.segment::<B>(0), digit, length);
        });
    }
    if !is_possible {
        too_long.fetch_add(0, 1);
    }
    coding.encode_all(&mut own);
    thread::sync_threads();
    if too_long.get(0) > 0 {
        return;
    }
    let base = |digit: u32| memory.distances.get(digit);
    // SAFETY: `too_long` is the same for all threads after the barrier, so that all of them make the call. `begins` was
    // cleared before that barrier.
    unsafe { move_keys::<B, NT, VT, FULL, ALONG>(tile, digits, own, coding, memory, to, moved, base) };
}

/// The sort of tiles, for keys that have not been divided and are not in order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TileSort<B> {
    /// The array that sorted tiles go to.
    pub to: *mut B,
    /// How keys are decoded there.
    pub decode: Coding<B>,
    /// Not 0 if tiles are sorted, which merges follow.
    pub merges: u32,
}

/// Kernel: sorts all buckets to the same indices of `keys`, as `coding` decodes them. If keys have not been divided and
/// are not in order, and `tiles.merges` is not 0, it sorts tiles instead, as
/// [`block_sort`](crate::kernels::sort::block_sort::block_sort) does. Each tile of `NT * VT` keys, as `coding` encodes
/// them, goes to the same indices of `tiles.to`.
///
/// # Safety
/// The requirements of [`divide_once`] hold, and that kernel has run before. `scratch` is the other array, and
/// `tiles.to` is `keys` or `scratch`. Blocks have
/// `NT` threads, a power of two, with [`sort_shared_bytes`]. `FEW` is [`few`] of `VT`.
#[kernel(
    u32 = <u32, { ROW.sort_buckets.of(4, 0).threads }, { ROW.sort_buckets.of(4, 0).items_per_thread },
        { few(ROW.sort_buckets.of(4, 0).items_per_thread) }>
        within (ROW.sort_buckets.of(4, 0).threads, 2),
    u64 = <u64, { ROW.sort_buckets.of(8, 0).threads }, { ROW.sort_buckets.of(8, 0).items_per_thread },
        { few(ROW.sort_buckets.of(8, 0).items_per_thread) }>
        within (ROW.sort_buckets.of(8, 0).threads, 2),
)]
pub unsafe fn sort_once<B: Bits, const NT: usize, const VT: usize, const FEW: usize>(
    job: Job,
    keys: *mut B,
    scratch: *mut B,
    coding: Coding<B>,
    tiles: TileSort<B>,
    random: u64,
) {
    let TileSort { to, decode, merges } = tiles;
    const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "threads are a power of two, in whole warps") };
    const { shared_memory::check(sort_shared_bytes(NT, VT, size_of::<B>())) };
    let n = job.plan.n as usize;
    // SAFETY: all arrays have `n` keys. If two are the same array, a block uses one after the other. No two blocks use
    // the same keys, since buckets do not overlap, and neither do tiles. The lists have `job.at.words` words, as `Job`
    // says. `job.order` is only read.
    let (workspace, detection, keys, scratch, to) = unsafe {
        let [keys, scratch, to] = [keys, scratch, to].map(|keys| GlobalMut::new(keys, n));
        (Workspace::new(&job), Detection::new(job.order), keys, scratch, to)
    };
    // Read again below: registers are scarce.
    let mut left = if merges != 0 && !detection.is_ordered() { n.div_ceil(NT * VT) as u32 } else { 0 };
    if detection.is_divided() {
        let failed = Cell::new(false);
        let fail = |bucket: u32| {
            failed.set(true);
            fail(workspace, bucket);
        };
        // SAFETY: `detection.is_divided()` is the same for all threads, so that all `NT` threads of the block make the
        // call. The launch has `sort_shared_bytes`. `divide_once` has listed the buckets, which have up to `NT * VT`
        // keys.
        unsafe {
            let sides = [keys, scratch].map(Arrays::alone);
            sort_buckets::sort_all::<B, (), NT, VT, FEW, true>(workspace, sides, coding, fail);
        }
        left = if failed.get() { workspace.buckets() } else { 0 };
    }
    const { assert!(KeyTile::<B>::bytes(NT * VT) <= sort_shared_bytes(NT, VT, size_of::<B>()), "a tile fits") };
    // SAFETY: the tile fits the `sort_shared_bytes` of the launch, as the assertion above checks. After its last
    // barrier, the sort of buckets reads only the number of buckets, which lies behind the tile's keys. Barriers of
    // `sort_tile`, and one after each tile, come between writing and reading.
    let tile = unsafe { KeyTile::<B>::at_start(NT * VT) }.keys;
    let (is_divided, mut i) = (detection.is_divided(), thread::block_idx_x());
    while i < left {
        let (from, to, start, len, is_left) = if is_divided {
            let Bucket { start, len, in_scratch, failed, .. } = workspace.bucket(i);
            (if in_scratch { scratch } else { keys }, keys, start as usize, len as usize, failed)
        } else {
            let start = i as usize * NT * VT;
            (keys, to, start, (n - start).min(NT * VT), true)
        };
        i += thread::grid_dim_x();
        if is_left {
            let codings = if is_divided { (Coding::NONE, coding) } else { (coding, decode) };
            sort_in_tile::<B, NT, VT>(from.slice(start, len), to.slice(start, len), codings, random, tile);
        }
    }
}

/// Sorts up to `NT * VT` keys from `from`, as the first coding encodes them, to `to`, as the second one decodes them,
/// in the slots of `tile`. All threads of the block make this call, which ends with a barrier.
#[inline(always)]
#[track_caller]
fn sort_in_tile<B: Bits, const NT: usize, const VT: usize>(
    from: GlobalMut<B>,
    to: GlobalMut<B>,
    (encode, decode): (Coding<B>, Coding<B>),
    random: u64,
    tile: Shared<B>,
) {
    let own = tile::global_to_registers::<B, NT, VT>(from, encode, random);
    sort_tile(own, NT as u32, tile);
    tile::decode_to_global::<_, NT>(tile, to, decode, thread::thread_idx_x());
    thread::sync_threads();
}
