//! Sorting a bucket of keys with values, or of keys of 8 bytes, by bins of 4-byte numbers.
//!
//! ```text
//!   numbers    │ key - least │ slot │     all different, sorted as keys alone are
//!   keys       │ …                       in the end: read by slot, unless they are in the numbers as a whole
//!   values     │ …                       in the end: read by slot
//! ```
//!
//! A number that has too few bits for both leaves out the key's last bits. Keys that differ only in these bits are put
//! in order once the numbers are sorted. There are few such keys, unless the input is adversarial. If there are too
//! many, the bucket is not sorted. The sort is stable.

use super::bins::{Bins, BucketMemory, bins};
use crate::block::scan::{block_range, sum_before};
use crate::block::shared_memory::shared_memory;
use crate::elements::{Arrays, has_values};
use crate::key::{Bits, Coding};
use crate::thread::insertion::insert;
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// Bits of the number of keys after a key that differ from it only in the bits left out.
const ALIKE_BITS: u32 = 3;

/// Upper limit on the keys of a thread: [`ALIKE_BITS`] bits for each fit one word.
pub(super) const MOST_ITEMS: usize = (u32::BITS / ALIKE_BITS) as usize;

/// A group of more than this many keys with equal leading bits is too long to be put in order.
const MOST_ALIKE: u32 = (1 << ALIKE_BITS) - 1;

/// Flag beside the number of bits that are left out.
const ALL_EQUAL: u32 = 1 << 8;

/// How a key and its slot become a number.
#[derive(Clone, Copy)]
struct Numbers<B> {
    least: B,
    /// Bits of a slot.
    slot_bits: u32,
    /// Number of the key's last bits that are left out.
    left_out: u32,
}

impl<B: Bits> Numbers<B> {
    /// Numbers for keys from `least` to `greatest` in `slots` slots, at least one.
    #[inline(always)]
    fn new(least: B, greatest: B, slots: u32) -> Self {
        let slot_bits = u32::BITS - (slots - 1).leading_zeros();
        let key_bits = 8 * size_of::<B>() as u32 - (greatest - least).leading_zeros();
        Self { least, slot_bits, left_out: (key_bits + slot_bits).saturating_sub(u32::BITS) }
    }

    #[inline(always)]
    fn of(self, key: B, slot: u32) -> u32 {
        ((key - self.least).shifted_down(self.left_out).to_register() as u32) << self.slot_bits | slot
    }

    /// The part of a number that comes from its key.
    #[inline(always)]
    fn upper(self, number: u32) -> u32 {
        number >> self.slot_bits
    }

    /// The key of a number, if no bits are left out.
    #[inline(always)]
    fn key(self, number: u32) -> B {
        self.least + B::from_register(self.upper(number) as u64)
    }

    #[inline(always)]
    fn slot(self, number: u32) -> u32 {
        number & ((1 << self.slot_bits) - 1)
    }
}

shared_memory! {
    /// Shared memory of a bucket, with values or without, for blocks of `threads` threads with `items_per_thread` keys
    /// each.
    pub(super) struct Slots<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        pub numbers: BucketMemory<u32> { threads, items_per_thread },
        /// How numbers are made: kept here because registers are scarce.
        least: [B; 1],
        left_out: [u32; 1],
        keys: [B; threads * items_per_thread],
        values: [V; threads * items_per_thread],
        /// The number of buckets. It lies behind the keys: threads may still read it while others fill the tile of
        /// `sort_once`, which lies at the start.
        pub buckets: [u32; 1],
    }
}

impl<B: Bits, V: Word> Slots<B, V> {
    /// Stores how numbers are made, and whether all keys are equal.
    #[inline(always)]
    #[track_caller]
    fn keep(self, numbers: Numbers<B>, all_equal: bool) {
        self.least.set(0, numbers.least);
        self.left_out.set(0, numbers.left_out | if all_equal { ALL_EQUAL } else { 0 });
    }

    /// The numbers stored by [`keep`](Self::keep), with the slots of `numbers`, after a barrier.
    #[inline(always)]
    #[track_caller]
    fn kept(self, numbers: Numbers<B>) -> (Numbers<B>, bool) {
        let left_out = self.left_out.get(0);
        let numbers = Numbers { least: self.least.get(0), left_out: left_out & (ALL_EQUAL - 1), ..numbers };
        (numbers, left_out & ALL_EQUAL != 0)
    }
}

/// Sorts a bucket of up to `NT * VT` elements from `from` to `to`, which may be the same array, and returns whether it
/// did. `from` has keys as `encode` encodes them, and `to` gets keys as `decode` decodes them. A bucket that cannot be
/// sorted is left as it is. Bins are made finer up to `FINER` times.
///
/// # Safety
/// All `NT` threads of the block make this call. Nothing else uses `memory`, or the elements of `from` and `to`.
#[inline(always)]
pub(super) unsafe fn sort_by_numbers<B: Bits, V: Word, const NT: usize, const VT: usize, const FINER: u32>(
    from: Arrays<B, V>,
    to: impl Fn() -> Arrays<B, V>,
    (encode, decode): (Coding<B>, Coding<B>),
    memory: Slots<B, V>,
) -> bool {
    let Slots { numbers: BucketMemory { scan, .. }, keys, values, .. } = memory;
    let thread = || recomputed(thread::thread_idx_x());
    let len = from.keys.len() as u32;
    let first = thread();
    let slot = |i: usize| first + (i * NT) as u32;
    // Compared again at each call: the compiler would keep all answers in registers.
    let is_here = |i: usize| slot(i) < recomputed(len);
    let mut own = [encode.decode(B::MAX); VT];
    for i in 0..VT {
        if is_here(i) {
            own[i] = from.keys.get(slot(i) as usize);
            if has_values::<V>() {
                values.copy_async_mut(slot(i), from.values, slot(i) as usize);
            }
        }
    }
    memory.numbers.clear::<NT>();
    encode.encode_all(&mut own);
    let (mut least, mut greatest) = (B::MAX, B::MIN);
    for i in 0..VT {
        least = least.min(own[i]);
        if is_here(i) {
            greatest = greatest.max(own[i]);
        }
    }
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. Nothing else uses `scan`, of
    // `BLOCK_WORDS` words.
    let (least, greatest) = unsafe { block_range(least, greatest, scan) };
    let numbers = Numbers::new(least, greatest, len);
    if thread() == 0 {
        memory.keep(numbers, least == greatest);
    }
    let mut own_numbers = [u32::MAX; VT];
    for i in 0..VT {
        if is_here(i) {
            own_numbers[i] = numbers.of(own[i], slot(i));
            if numbers.left_out > 0 {
                keys.set(slot(i), own[i]);
            }
        }
    }
    let of_bucket = Bins::new(0, numbers.of(greatest, len - 1), bins(NT));
    // If all keys are equal they are already in order.
    let mut is_sorted = least == greatest;
    if !is_sorted {
        // SAFETY: `least` and `greatest` are the same for all threads, so that all `NT` make the call. Barriers of
        // `block_range` come after `clear`.
        is_sorted = unsafe { memory.numbers.sort::<NT, VT, true, FINER>(own_numbers, len, of_bucket, is_here) };
    }
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. This thread has begun its copies
    // of the values.
    unsafe { write::<B, V, NT, VT>(memory, numbers, is_sorted, len, &to, decode) }
}

/// Shared to global: writes the elements in the order of their `numbers` to `to`, decoded by `decode`. Does nothing if
/// the numbers are not sorted, or if keys that differ only in bits that are left out cannot be put in order. Returns
/// whether the elements were written. Begins with a barrier, after which the values are in shared memory.
///
/// # Safety
/// All `NT` threads of the block make this call, and have begun the copies of the values.
#[inline(always)]
#[track_caller]
unsafe fn write<B: Bits, V: Word, const NT: usize, const VT: usize>(
    memory: Slots<B, V>,
    numbers: Numbers<B>,
    mut is_sorted: bool,
    len: u32,
    to: &impl Fn() -> Arrays<B, V>,
    decode: Coding<B>,
) -> bool {
    let Slots { numbers: BucketMemory { tile, .. }, keys, values, .. } = memory;
    if has_values::<V>() {
        shared::wait_for_copies();
    }
    thread::sync_threads();
    let (numbers, all_equal) = memory.kept(numbers);
    let to = to();
    let put = |rank: u32, key: B, slot: u32| {
        to.keys.set(rank as usize, decode.decode(key));
        if has_values::<V>() {
            to.values.set(rank as usize, values.get(slot));
        }
    };
    let first = recomputed(thread::thread_idx_x());
    let rank = |i: usize| first + (i * NT) as u32;
    if all_equal {
        for i in 0..VT {
            if rank(i) < len {
                put(rank(i), numbers.least, rank(i));
            }
        }
    } else if is_sorted && numbers.left_out == 0 {
        for i in 0..VT {
            if rank(i) < len {
                let number = tile.get(rank(i));
                put(rank(i), numbers.key(number), numbers.slot(number));
            }
        }
    } else if is_sorted {
        // SAFETY: `all_equal` and `is_sorted` are the same for all threads, so that all of them make the call. A
        // barrier came before. `rank` gives each number to one thread: rank `r` to thread `r % NT`.
        is_sorted = unsafe { put_in_order::<B, V, VT>(numbers, memory, len, rank) };
        for i in 0..VT {
            if is_sorted && rank(i) < len {
                let slot = numbers.slot(tile.get(rank(i)));
                put(rank(i), keys.get(slot), slot);
            }
        }
    }
    is_sorted
}

/// Puts keys in order whose numbers are sorted but differ only in their slots. One thread takes each group of such
/// keys. Returns whether that was possible.
///
/// # Safety
/// All threads of the block make this call, after a barrier. `rank` gives each number to one thread. Ends with a
/// barrier if the keys are in order now.
#[inline(always)]
unsafe fn put_in_order<B: Bits, V: Word, const VT: usize>(
    numbers: Numbers<B>,
    memory: Slots<B, V>,
    len: u32,
    rank: impl Fn(usize) -> u32,
) -> bool {
    let Slots { numbers: BucketMemory { tile, scan, .. }, keys, .. } = memory;
    let is_like_next = |rank: u32| rank + 1 < len && numbers.upper(tile.get(rank)) == numbers.upper(tile.get(rank + 1));
    let key = |number: u32| keys.get(numbers.slot(number));
    let is_inverted = |rank: u32| is_like_next(rank) && key(tile.get(rank)) > key(tile.get(rank + 1));
    // For each number of the thread that begins a group, the number of others in the group, if the group is out of
    // order and not too long.
    let (mut alike, mut inversions, mut too_many) = (0u32, 0, 0);
    for i in 0..VT {
        if is_like_next(rank(i)) && (rank(i) == 0 || !is_like_next(rank(i) - 1)) {
            let (mut last, mut inverted) = (rank(i), 0);
            while last - rank(i) < MOST_ALIKE && is_like_next(last) {
                inverted += u32::from(is_inverted(last));
                last += 1;
            }
            if last - rank(i) == MOST_ALIKE {
                too_many += 1;
            } else if inverted > 0 {
                alike |= (last - rank(i)) << (i as u32 * ALIKE_BITS);
                inversions += inverted;
            }
        }
    }
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. Nothing has used `scan` since the
    // barrier before `put_in_order`.
    let (_, both) = unsafe { sum_before(too_many << 16 | inversions, scan) };
    let (too_many, inversions) = (both >> 16, both & 0xffff);
    if too_many > 0 {
        // Groups that are too long may be in order nevertheless, if keys are equal. Then all inversions are in the
        // other groups.
        let mut own_inversions = 0;
        for i in 0..VT {
            own_inversions += u32::from(is_inverted(rank(i)));
        }
        thread::sync_threads();
        // SAFETY: `too_many` is the same for all threads, so that all of them make the call. A barrier comes between
        // the two uses of `scan`.
        let (_, all_inversions) = unsafe { sum_before(own_inversions, scan) };
        if all_inversions != inversions {
            return false;
        }
    }
    while alike != 0 {
        let i = alike.trailing_zeros() / ALIKE_BITS;
        let (first, others) = (rank(i as usize), alike >> (i * ALIKE_BITS) & MOST_ALIKE);
        alike &= !(MOST_ALIKE << (i * ALIKE_BITS));
        insert((first, first + others), |rank| tile.get(rank), |rank, number| tile.set(rank, number), key);
    }
    thread::sync_threads();
    true
}
