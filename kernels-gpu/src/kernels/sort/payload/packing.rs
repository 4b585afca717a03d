//! A tile of keys packed with their slots: one number of 8 bytes for each, made of the two.
//!
//! ```text
//!   key        │ key - least of the tile: 64 bits             │
//!   packed     │ its upper 51 bits           │ slot: 13 bits  │     what is sorted
//!   low bits   │ …                                            │     what does not fit, for each slot
//! ```
//!
//! No two of these numbers are equal, so that any sort of them is a stable one. In the end the slot says which low bits and
//! which value belong to a key. Keys of one tile are neighbours in the order, as a rule: 51 bits tell most of them apart, and
//! where they fit into 51 the low bits are none. Where a few keys differ in their low bits only, neighbours are swapped.
//! Where many do, the tile is packed and sorted once more, with the rank of the upper bits in their stead:
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

/// The most keys of a tile.
const SLOTS: usize = 1 << SLOT_BITS;

/// Warps of a block, at most.
const WARPS: u32 = 32;

/// Words of shared memory: two for each warp, and two for how keys are packed.
const WORDS: u32 = WARPS * 2 + 2;

/// The first of the words for how keys are packed.
const PACKING: u32 = WARPS * 2;

shared_memory! {
    /// What is in the slots of a tile: its packed keys, and in the end what their slots lead to, which takes no more bytes.
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
        /// Two numbers that each warp tells the others, and how keys are packed.
        words: [u32; WORDS],
        /// For each slot, those of its key.
        low_bits: [u16; slots],
    }
}

/// Bytes of shared memory of a tile of `slots` keys, whatever their width and that of their values.
pub(super) const fn tile_bytes(slots: usize) -> u32 {
    assert!(slots <= SLOTS, "a slot has 13 bits");
    PackedMemory::<u64, u64>::bytes(slots)
}

/// How the keys of a tile become numbers of 51 bits.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    /// The upper half of the least key.
    least: u32,
    /// Bits by which keys are shifted up: [`SLOT_BITS`], unless fewer are free above them.
    shift: u32,
}

impl Packing {
    /// For keys of 4 bytes.
    const NARROW: Self = Self { least: 0, shift: SLOT_BITS };

    /// For keys of which the upper halves are from `least` to `greatest`, or for none: a tile of few keys may have them all in the one before,
    /// within the tolerance, and `least` is greater then.
    #[inline(always)]
    fn of(least: u32, greatest: u32) -> Self {
        let free = (greatest.wrapping_sub(least) as u64) << 32 | u32::MAX as u64;
        Self { least, shift: SLOT_BITS.min(free.leading_zeros()) }
    }

    /// Whether there are low bits that do not fit.
    #[inline(always)]
    fn has_low_bits(self) -> bool {
        self.shift < SLOT_BITS
    }

    #[inline(always)]
    fn low_bits(self, key: u64) -> u16 {
        (key as u32 & ((1 << (SLOT_BITS - self.shift)) - 1)) as u16
    }

    /// Whatever for a key that is less than the least.
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

/// The bits of a slot in a packed key.
const SLOT_MASK: u64 = SLOTS as u64 - 1;

#[inline(always)]
fn slot_of(packed: u64) -> u32 {
    (packed & SLOT_MASK) as u32
}

#[inline(always)]
fn differ_in_slot_only(a: u64, b: u64) -> bool {
    a | SLOT_MASK == b | SLOT_MASK
}

/// How often keys with the same upper bits may be swapped before the tile is packed a second time: a few keys have come into
/// order by then.
const SETTLING_ROUNDS: usize = 4;

/// A tile in shared memory.
#[derive(Clone, Copy)]
pub(super) struct PackedTile<B> {
    pub(super) packed: Shared<u64>,
    /// The low bits of the key of each slot; if `ranked`, how many keys have lesser upper bits.
    low_bits: Shared<u16>,
    words: Shared<u32>,
    pub(super) ranked: bool,
    of: PhantomData<B>,
}

impl<B: Bits> PackedTile<B> {
    /// Whether keys may have bits that do not fit.
    const HAS_LOW_BITS: bool = size_of::<B>() == size_of::<u64>();

    /// In that memory.
    #[inline(always)]
    pub(super) fn new<V>(PackedMemory { slots, words, low_bits }: PackedMemory<B, V>) -> Self {
        Self { packed: slots.packed, low_bits, words, ranked: false, of: PhantomData }
    }

    /// The greatest of each of two numbers that the threads of the block pass. Has a barrier.
    #[inline(always)]
    #[track_caller]
    fn greatest_of_block<const NT: usize>(self, numbers: (u32, u32)) -> (u32, u32) {
        const { assert!(NT as u32 <= WARPS * WARP_SIZE, "each warp has two words") };
        // SAFETY: all threads of the block are here.
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

    /// Looks how keys are to be packed of which each thread passes some: all keys of the block are between two of these. Has a
    /// barrier.
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
        // For later, so that no registers are in use for it meanwhile.
        if thread::thread_idx_x() == 0 {
            self.words.set(PACKING, packing.least);
            self.words.set(PACKING + 1, packing.shift);
        }
        packing
    }

    /// How keys are packed. A barrier divides this from choosing it.
    #[inline(always)]
    #[track_caller]
    pub(super) fn packing(self) -> Packing {
        if Self::HAS_LOW_BITS {
            Packing { least: self.words.get(PACKING), shift: self.words.get(PACKING + 1) }
        } else {
            Packing::NARROW
        }
    }

    /// The packed key. Its low bits are put aside if `is_here`.
    #[inline(always)]
    #[track_caller]
    pub(super) fn pack(self, packing: Packing, key: B, slot: u32, is_here: bool) -> u64 {
        if Self::HAS_LOW_BITS && is_here {
            self.low_bits.set(slot, packing.low_bits(key.to_register()));
        }
        packing.pack(key.to_register(), slot)
    }

    /// Chooses how the keys of the block are packed, and packs them: those of this thread that are there, at their slots, and
    /// the greatest number for the others.
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

    /// A number that is not less than any packed key of a tile of `count` keys, and has a slot of one of them: where runs are not ascending, it may
    /// come out among them.
    #[inline(always)]
    #[track_caller]
    pub(super) fn greatest(count: usize) -> u64 {
        !SLOT_MASK | (count as u64).wrapping_sub(1) & SLOT_MASK
    }

    /// The packed key, for a second time.
    #[inline(always)]
    #[track_caller]
    pub(super) fn pack_ranked(self, packing: Packing, key: B, slot: u32) -> u64 {
        let (rank, low_bits) = (self.low_bits.get(slot) as u64, packing.low_bits(key.to_register()) as u64);
        (rank << SLOT_BITS | low_bits) << SLOT_BITS | slot as u64
    }

    /// The packed keys from the thread's first one on, which is that of its number.
    #[inline(always)]
    #[track_caller]
    pub(super) fn own(self) -> Shared<u64> {
        let first = thread::thread_idx_x();
        self.packed.slice(first, self.packed.len() - first)
    }

    /// Whether the keys are in order now, of which the packed keys are. If not they have to be packed a second time: how many
    /// keys have lesser upper bits is where the low bits were. Begins after a barrier.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_in_order<const NT: usize, const VT: usize>(&mut self, count: usize) -> bool {
        if self.ranked || !self.packing().has_low_bits() {
            return true;
        }
        // Most often no two neighbours have the same upper bits, which is all that has to be known.
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
        // What the block has told each other has been read.
        thread::sync_threads();
        if self.settle::<NT>(count) {
            return true;
        }
        self.rank::<NT>(count);
        false
    }

    /// Swaps neighbours that have the same upper bits and are not in the order of their low bits, as long as there are any but
    /// not for ever. Whether there are none. Begins and ends with barriers.
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
            thread::sync_threads();
            if swapped == 0 {
                return true;
            }
        }
        false
    }

    /// Gives the slots of the thread's sorted keys, strided, and calls `put` with each key if they were packed for the first
    /// time, and with whether the tile is full and `is_plain`: full tiles have code of their own, in which nothing stands
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

    /// Puts how many keys have lesser upper bits where the low bits were. Between barriers.
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

/// The last rows of a full tile, of which it is not known whether the thread has a key there.
pub(super) const UNSURE_ROWS: usize = 2;

/// Whether there is a key for each thread in all rows but for the last ones.
const fn is_full<const NT: usize, const VT: usize>(count: usize) -> bool {
    count >= (VT - UNSURE_ROWS) * NT
}

/// Calls `each` with the rows from `first` on of `count` keys in which this thread has one: it has those from that of its number
/// on.
#[inline(always)]
pub(super) fn each_row<const NT: usize, const VT: usize>(first: usize, count: usize, mut each: impl FnMut(usize)) {
    let left = count as i32 - thread::thread_idx_x() as i32;
    for i in first..VT {
        if ((i * NT) as i32) < left {
            each(i);
        }
    }
}

/// What there is from the thread's first element on, so that its elements are at constant distances.
#[inline(always)]
#[track_caller]
pub(super) fn own<T: Word>(array: GlobalMut<T>) -> GlobalMut<T> {
    let first = array.len().min(thread::thread_idx_x() as usize);
    array.slice(first, array.len() - first)
}

/// Has the lines of what is to be copied brought to the cache.
#[inline(always)]
#[track_caller]
pub(super) fn prefetch_tile<T: Word, const NT: usize>(from: GlobalMut<T>) {
    let mut i = thread::thread_idx_x() as usize * LINE / size_of::<T>();
    while i < from.len() {
        from.prefetch(i);
        i += NT * LINE / size_of::<T>();
    }
}

/// Global to shared, strided: it is there when this thread's copies are.
#[inline(always)]
#[track_caller]
pub(super) fn copy_tile<T: Word, const NT: usize>(from: GlobalMut<T>, to: Shared<T>) {
    let mut i = thread::thread_idx_x();
    while (i as usize) < from.len() {
        to.copy_async_mut(i, from, i as usize);
        i += NT as u32;
    }
}

/// Shared to global, strided: what is at these slots. It is there when this thread's copies are.
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
