//! A tile of keys packed with their slots: a key and its slot are one number of 8 bytes.
//!
//! ```text
//!   key        │ key - least key of the tile: 64 bits         │
//!   packed     │ its upper 51 bits           │ slot: 13 bits  │     the number that is sorted
//!   low bits   │ …                                            │     the remaining bits, by slot
//! ```
//!
//! All packed numbers are distinct, so that any sort is stable. At the end, the slot of a key leads to its low bits and
//! its value. The keys of a tile are usually close: 51 bits distinguish most keys, and a key of at most 51 bits has no
//! low bits. If a few keys differ in their low bits only, neighbours are swapped. If many do, the tile is packed and
//! sorted again, with the rank of the upper bits instead of the upper bits:
//!
//! ```text
//!   packed     │ rank: 13 bits │ low bits: 13 │ slot: 13 bits │
//! ```

use crate::block::LINE;
use crate::block::shared_memory::shared_memory;
use crate::key::Bits;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Bits of a slot.
const SLOT_BITS: u32 = 13;

/// Maximum number of keys per tile.
const SLOTS: usize = 1 << SLOT_BITS;

/// Maximum number of warps per block.
const WARPS: u32 = 32;

/// Words of shared memory: two for each warp, and two for the packing.
const WORDS: u32 = WARPS * 2 + 2;

/// Index of the first word of the packing.
const PACKING: u32 = WARPS * 2;

shared_memory! {
    /// The slots of a tile: its packed keys, and at the end its keys or values, which take no more bytes.
    pub(super) union Slots<B: Word, V: Word>(slots: usize) {
        packed: [u64; slots],
        pub(super) keys: [B; slots],
        pub(super) values: [V; slots],
    }
}

shared_memory! {
    /// Shared memory of a tile of `slots` packed keys.
    pub(super) struct PackedMemory<B: Word, V: Word>(slots: usize) {
        pub(super) slots: Slots<B, V> { slots },
        /// Two numbers that each warp publishes, and the packing.
        words: [u32; WORDS],
        /// The low bits of the key of each slot.
        low_bits: [u16; slots],
    }
}

/// Bytes of shared memory for a tile of `slots` keys, for any widths of keys and values.
pub(super) const fn tile_bytes(slots: usize) -> u32 {
    assert!(slots <= SLOTS, "a slot has 13 bits");
    PackedMemory::<u64, u64>::bytes(slots)
}

/// The mapping of the keys of a tile to numbers of 51 bits.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    /// The upper half of the least key.
    least: u32,
    /// Number of bits that keys are shifted up: [`SLOT_BITS`], or fewer if fewer upper bits are 0.
    shift: u32,
}

impl Packing {
    /// For keys of 4 bytes.
    const NARROW: Self = Self { least: 0, shift: SLOT_BITS };

    /// The packing for keys with upper halves from `least` to `greatest`, or for no keys. Within the rank tolerance, a
    /// short tile may have no keys; then `least` is above `greatest`.
    #[inline(always)]
    fn of(least: u32, greatest: u32) -> Self {
        let free = (greatest.wrapping_sub(least) as u64) << 32 | u32::MAX as u64;
        Self { least, shift: SLOT_BITS.min(free.leading_zeros()) }
    }

    /// Whether keys have low bits that do not fit.
    #[inline(always)]
    fn has_low_bits(self) -> bool {
        self.shift < SLOT_BITS
    }

    #[inline(always)]
    fn low_bits(self, key: u64) -> u16 {
        (key as u32 & ((1 << (SLOT_BITS - self.shift)) - 1)) as u16
    }

    /// The result is unspecified for a key less than the least one.
    #[inline(always)]
    fn pack(self, key: u64, slot: u32) -> u64 {
        let key = with_upper_half(key, upper_half(key).wrapping_sub(self.least));
        key << self.shift & !SLOT_MASK | slot as u64
    }

    #[inline(always)]
    fn unpack(self, packed: u64, low_bits: u16) -> u64 {
        let key = (packed & !SLOT_MASK) >> self.shift | low_bits as u64;
        with_upper_half(key, upper_half(key).wrapping_add(self.least))
    }
}

#[inline(always)]
fn upper_half(bits: u64) -> u32 {
    (bits >> 32) as u32
}

#[inline(always)]
fn with_upper_half(bits: u64, upper_half: u32) -> u64 {
    (upper_half as u64) << 32 | bits as u32 as u64
}

/// The bits of the slot in a packed key.
const SLOT_MASK: u64 = SLOTS as u64 - 1;

#[inline(always)]
fn slot_of(packed: u64) -> u32 {
    (packed & SLOT_MASK) as u32
}

#[inline(always)]
fn differ_in_slot_only(a: u64, b: u64) -> bool {
    a | SLOT_MASK == b | SLOT_MASK
}

/// Number of rounds of swaps of keys with the same upper bits, after which the tile is packed again. A few such keys
/// are in order by then.
const SETTLING_ROUNDS: usize = 4;

/// A tile of packed keys in shared memory.
#[derive(Clone, Copy)]
pub(super) struct PackedTile<B> {
    pub(super) packed: Shared<u64>,
    /// The low bits of the key of each slot. If `ranked`, the number of keys with lesser upper bits.
    low_bits: Shared<u16>,
    words: Shared<u32>,
    pub(super) ranked: bool,
    of: PhantomData<B>,
}

impl<B: Bits> PackedTile<B> {
    /// Whether keys may have bits that do not fit.
    const HAS_LOW_BITS: bool = size_of::<B>() == size_of::<u64>();

    /// The tile in the given memory.
    #[inline(always)]
    pub(super) fn new<V>(PackedMemory { slots, words, low_bits }: PackedMemory<B, V>) -> Self {
        Self { packed: slots.packed, low_bits, words, ranked: false, of: PhantomData }
    }

    /// The maxima, over the threads of the block, of two numbers. Contains a barrier.
    #[inline(always)]
    #[track_caller]
    fn greatest_of_block<const NT: usize>(self, numbers: (u32, u32)) -> (u32, u32) {
        const { assert!(NT as u32 <= WARPS * WARP_SIZE, "each warp has two words") };
        // SAFETY: all threads of the block, which are whole warps, make both calls of the closure. `FULL_MASK` names
        // the 32 lanes of each warp.
        let of_warp = |(a, b)| unsafe { (warp::reduce_max(FULL_MASK, a), warp::reduce_max(FULL_MASK, b)) };
        let (lane, warp, (a, b)) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE, of_warp(numbers));
        if lane == 0 {
            self.words.set(2 * warp, a);
            self.words.set(2 * warp + 1, b);
        }
        thread::sync_threads();
        let is_warp = lane < NT as u32 / WARP_SIZE;
        of_warp(if is_warp { (self.words.get(2 * lane), self.words.get(2 * lane + 1)) } else { (0, 0) })
    }

    /// Chooses the packing for the keys of the block. Each thread passes some keys, and all keys of the block are
    /// between two of the passed ones. Contains a barrier.
    #[inline(always)]
    #[track_caller]
    pub(super) fn choose_packing<const NT: usize>(self, keys: impl Iterator<Item = B>) -> Packing {
        if !Self::HAS_LOW_BITS {
            return Packing::NARROW;
        }
        let upper_halves = keys.map(|key| upper_half(key.to_register()));
        let range = upper_halves.fold((0, 0), |(a, b): (u32, u32), upper_half| (a.max(!upper_half), b.max(upper_half)));
        let (not_least, greatest) = self.greatest_of_block::<NT>(range);
        let packing = Packing::of(!not_least, greatest);
        // Stored for later, so that it occupies no registers meanwhile.
        if thread::thread_idx_x() == 0 {
            self.words.set(PACKING, packing.least);
            self.words.set(PACKING + 1, packing.shift);
        }
        packing
    }

    /// The chosen packing. A barrier must separate this call from the choice.
    #[inline(always)]
    #[track_caller]
    pub(super) fn packing(self) -> Packing {
        if Self::HAS_LOW_BITS {
            Packing { least: self.words.get(PACKING), shift: self.words.get(PACKING + 1) }
        } else {
            Packing::NARROW
        }
    }

    /// Packs a key. If `is_here`, also stores its low bits.
    #[inline(always)]
    #[track_caller]
    pub(super) fn pack(self, packing: Packing, key: B, slot: u32, is_here: bool) -> u64 {
        if Self::HAS_LOW_BITS && is_here {
            self.low_bits.set(slot, packing.low_bits(key.to_register()));
        }
        packing.pack(key.to_register(), slot)
    }

    /// Chooses the packing for the keys of the block and packs this thread's keys at their slots. Missing keys become
    /// the greatest number.
    #[inline(always)]
    #[track_caller]
    pub(super) fn pack_all<const NT: usize, const VT: usize>(
        self,
        keys: [B; VT],
        slot: impl Fn(usize) -> u32,
        is_here: impl Fn(usize) -> bool,
    ) -> [u64; VT] {
        let packing = self.choose_packing::<NT>((0..VT).filter(|i| is_here(*i)).map(|i| keys[i]));
        let mut packed = [u64::MAX; VT];
        for i in 0..VT {
            let key = self.pack(packing, keys[i], slot(i), is_here(i));
            packed[i] = if is_here(i) { key } else { u64::MAX };
        }
        packed
    }

    /// A number that is not less than any packed key of a tile of `count` keys, with the slot of its last key. With
    /// unsorted runs, it may appear among the results.
    #[inline(always)]
    #[track_caller]
    pub(super) fn greatest(count: usize) -> u64 {
        !SLOT_MASK | (count as u64).wrapping_sub(1) & SLOT_MASK
    }

    /// Packs a key for the second sort.
    #[inline(always)]
    #[track_caller]
    pub(super) fn pack_ranked(self, packing: Packing, key: B, slot: u32) -> u64 {
        let (rank, low_bits) = (self.low_bits.get(slot) as u64, packing.low_bits(key.to_register()) as u64);
        (rank << SLOT_BITS | low_bits) << SLOT_BITS | slot as u64
    }

    /// The packed keys from this thread's first one, at the index of the thread.
    #[inline(always)]
    #[track_caller]
    pub(super) fn own(self) -> Shared<u64> {
        let first = thread::thread_idx_x();
        self.packed.slice(first, self.packed.len() - first)
    }

    /// Whether the keys are in order, given that the packed keys are. If not, the keys must be packed again: `low_bits`
    /// then holds the number of keys with lesser upper bits. Begins after a barrier.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_in_order<const NT: usize, const VT: usize>(&mut self, count: usize) -> bool {
        if self.ranked || !self.packing().has_low_bits() {
            return true;
        }
        // Usually no two neighbours have the same upper bits, which is a sufficient condition.
        let first = thread::thread_idx_x() * VT as u32;
        let mut same = false;
        if (first as usize) + VT < count {
            let own = self.packed.slice(first, VT as u32 + 1);
            let mut least_difference = u32::MAX;
            for i in 0..VT {
                let difference = (own.get(i as u32) ^ own.get(i as u32 + 1)) & !SLOT_MASK;
                least_difference = least_difference.min(difference as u32 | (difference >> 32) as u32);
            }
            same = least_difference == 0;
        } else {
            for at in first..(count as u32).max(1) - 1 {
                same |= differ_in_slot_only(self.packed.get(at), self.packed.get(at + 1));
            }
        }
        if self.greatest_of_block::<NT>((same as u32, 0)).0 == 0 {
            return true;
        }
        if self.settle::<NT>(count) {
            return true;
        }
        self.rank::<NT>(count);
        false
    }

    /// Swaps neighbours with the same upper bits that are not in the order of their low bits, for up to
    /// [`SETTLING_ROUNDS`] rounds. Whether none are left. Begins with a barrier.
    #[inline(always)]
    #[track_caller]
    fn settle<const NT: usize>(self, count: usize) -> bool {
        for _ in 0..SETTLING_ROUNDS {
            let mut swapped = false;
            for first in 0..2 {
                let mut at = 2 * thread::thread_idx_x() + first;
                while at as usize + 1 < count {
                    let (this, next) = (self.packed.get(at), self.packed.get(at + 1));
                    if differ_in_slot_only(this, next)
                        && self.low_bits.get(slot_of(this)) > self.low_bits.get(slot_of(next))
                    {
                        self.packed.set(at, next);
                        self.packed.set(at + 1, this);
                        swapped = true;
                    }
                    at += 2 * NT as u32;
                }
                thread::sync_threads();
            }
            let (swapped, _) = self.greatest_of_block::<NT>((swapped as u32, 0));
            if swapped == 0 {
                return true;
            }
        }
        false
    }

    /// The slots of the thread's sorted keys, striped. Calls `put` with each key, if the keys were packed once. Its
    /// last argument is whether `is_plain` and the tile is full: full tiles have separate code, without branches
    /// between the loads of many rows.
    #[inline(always)]
    #[track_caller]
    pub(super) fn unpack<const NT: usize, const VT: usize>(
        self,
        count: usize,
        is_plain: bool,
        mut put: impl FnMut(usize, u64, bool),
    ) -> [u32; VT] {
        let (own, packing) = (self.own(), self.packing());
        let mut slots = [0; VT];
        let get = |i: usize| {
            let packed = own.get((i * NT) as u32);
            (packed, if Self::HAS_LOW_BITS { self.low_bits.get(slot_of(packed)) } else { 0 })
        };
        let mut put = |i, (packed, low_bits), is_plain| {
            slots[i] = slot_of(packed);
            put(i, packing.unpack(packed, low_bits), is_plain);
        };
        if self.ranked {
            each_row::<NT, VT>(0, count, |i| slots[i] = slot_of(own.get((i * NT) as u32)));
        } else if is_plain && is_full::<NT, VT>(count) {
            (0..VT - UNSURE_ROWS).for_each(|i| put(i, get(i), true));
            each_row::<NT, VT>(VT - UNSURE_ROWS, count, |i| put(i, get(i), true));
        } else {
            each_row::<NT, VT>(0, count, |i| put(i, get(i), false));
        }
        slots
    }

    /// Stores, instead of each key's low bits, the number of keys with lesser upper bits. Begins after a barrier and
    /// ends with one.
    #[inline(always)]
    #[track_caller]
    fn rank<const NT: usize>(&mut self, count: usize) {
        self.ranked = true;
        let mut at = thread::thread_idx_x();
        while (at as usize) < count {
            let this = self.packed.get(at);
            let (mut low, mut high) = (0, at);
            while low < high {
                let middle = (low + high) / 2;
                if self.packed.get(middle) < this & !SLOT_MASK { low = middle + 1 } else { high = middle }
            }
            self.low_bits.set(slot_of(this), low as u16);
            at += NT as u32;
        }
        thread::sync_threads();
    }
}

/// The last rows of a full tile, where a thread may have no key.
pub(super) const UNSURE_ROWS: usize = 2;

/// Whether each thread has a key in all rows except the last [`UNSURE_ROWS`].
const fn is_full<const NT: usize, const VT: usize>(count: usize) -> bool {
    count >= (VT - UNSURE_ROWS) * NT
}

/// Calls `each` with the rows, from `first`, where this thread has one of `count` keys. The thread's key of row 0 is
/// the one at its own index.
#[inline(always)]
pub(super) fn each_row<const NT: usize, const VT: usize>(first: usize, count: usize, mut each: impl FnMut(usize)) {
    let left = count as i32 - thread::thread_idx_x() as i32;
    for i in first..VT {
        if ((i * NT) as i32) < left {
            each(i);
        }
    }
}

/// The array from the thread's first element, so that its elements are at constant distances.
#[inline(always)]
#[track_caller]
pub(super) fn own<T: Word>(array: GlobalMut<T>) -> GlobalMut<T> {
    let first = array.len().min(thread::thread_idx_x() as usize);
    array.slice(first, array.len() - first)
}

/// Prefetches the lines of the array into the L2 cache.
#[inline(always)]
#[track_caller]
pub(super) fn prefetch_tile<T: Word, const NT: usize>(from: GlobalMut<T>) {
    let mut i = thread::thread_idx_x() as usize * LINE / size_of::<T>();
    while i < from.len() {
        from.prefetch(i);
        i += NT * LINE / size_of::<T>();
    }
}

/// Global to shared memory, striped, by asynchronous copies.
#[inline(always)]
#[track_caller]
pub(super) fn copy_tile<T: Word, const NT: usize>(from: GlobalMut<T>, to: Shared<T>) {
    let mut i = thread::thread_idx_x();
    while (i as usize) < from.len() {
        to.copy_async_mut(i, from, i as usize);
        i += NT as u32;
    }
}

/// Shared to global memory, striped: stores the elements at these slots, after waiting for the asynchronous copies of
/// the block.
#[inline(always)]
#[track_caller]
pub(super) fn gather<T: Word, const NT: usize, const VT: usize>(
    from: Shared<T>,
    slots: [u32; VT],
    to: GlobalMut<T>,
    decode: impl Fn(T) -> T,
) {
    shared::wait_for_copies();
    thread::sync_threads();
    let own = own(to);
    let store = |i: usize| own.set(i * NT, decode(from.get(slots[i])));
    if is_full::<NT, VT>(to.len()) {
        (0..VT - UNSURE_ROWS).for_each(store);
        each_row::<NT, VT>(VT - UNSURE_ROWS, to.len(), store);
    } else {
        each_row::<NT, VT>(0, to.len(), store);
    }
}
