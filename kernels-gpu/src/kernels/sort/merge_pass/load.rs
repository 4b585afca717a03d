//! Moves the segments of a tile from global memory to the slots that the [plan](Plan) assigns.
//!
//! ```text
//!   from       … ░░░ …  … ░░ …
//!   shared     │░░░→ MAX ←░░│     ascending from a pair's first slot, descending from its last; the gap is filled
//! ```
//!
//! Keys without packing come by asynchronous copies ([`Plan::each_segment`]). Other keys come through registers and are
//! packed with their index in the tile ([`Plan::each_loaded_key`]).

use super::plan::Plan;
use crate::block::LINE;
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Keys that a thread holds in registers between global and shared memory.
const AT_ONCE: usize = 16;

/// Keys that a warp takes at once.
const AT_ONCE_OF_WARP: u32 = AT_ONCE as u32 * WARP_SIZE;

impl Plan {
    /// Calls `source` for each segment, and calls the function that it returns for each key of the segment, with the
    /// key's index in the segment and its slot in the tile. A warp takes a segment. If there are at most two segments,
    /// all warps take one after the other.
    #[inline(always)]
    pub(in crate::kernels::sort) fn each_segment<const NT: usize, F: Fn(u32, u32)>(self, source: impl Fn(u32) -> F) {
        let (thread, segments) = (thread::thread_idx_x(), self.segments.get(0));
        if segments > 2 {
            let mut segment = thread / WARP_SIZE;
            while segment < segments {
                self.each_key(segment, thread % WARP_SIZE, WARP_SIZE, source(segment));
                segment += NT as u32 / WARP_SIZE;
            }
        } else {
            let mut segment = 0;
            while segment < segments {
                self.each_key(segment, thread, NT as u32, source(segment));
                segment += 1;
            }
        }
    }

    /// Encodes the keys in `tile` that this thread has copied there by [`each_segment`](Self::each_segment). Does
    /// nothing if the bits are in order already. The thread has waited for its copies.
    #[inline(always)]
    #[track_caller]
    pub(in crate::kernels::sort) fn encode_own<const NT: usize, B: Bits>(self, tile: Shared<B>, encode: Coding<B>) {
        if !encode.is_identity() {
            self.each_segment::<NT, _>(|_| move |_, slot| tile.set(slot, encode.encode(tile.get(slot))));
        }
    }

    /// Reads the keys of all segments, many at once, and stores each in its slot of `tile`, as `pack` returns it. The
    /// arguments of `pack` are the key and the number of keys before it in all segments. `packing` returns `pack`. All
    /// threads call `packing` once, while the first keys are in flight.
    ///
    /// A warp takes [`AT_ONCE`] rows of a segment at a time.
    #[inline(always)]
    pub(in crate::kernels::sort) fn each_loaded_key<const NT: usize, T: Word, U: Word, P: Fn(T, u32, bool) -> U>(
        self,
        keys: Global<T>,
        tile: Shared<U>,
        packing: impl FnOnce() -> P,
    ) {
        let (lane, segments) = (thread::thread_idx_x() % WARP_SIZE, self.segments());
        let load = |(segment, begin): (u32, u32)| {
            let mut loaded = [T::from_register(0); AT_ONCE];
            if segment < segments {
                let keys = self.segment_of(segment, keys);
                let first = (begin + lane) as usize;
                let left = keys.len() as i32 - first as i32;
                let keys = keys.place(first);
                for i in 0..AT_ONCE {
                    let row = i * WARP_SIZE as usize;
                    if (row as i32) < left {
                        loaded[i] = keys.get(row as isize);
                    }
                }
            }
            loaded
        };
        let mut at = self.advance((0, 0), thread::thread_idx_x() / WARP_SIZE * AT_ONCE_OF_WARP);
        let mut loaded = load(at);
        let pack = packing();
        while at.0 < segments {
            let (segment, first) = (at.0, at.1 + lane);
            let (left, before) = (self.lengths.get(segment) as i32 - first as i32, self.before.get(segment) + first);
            let (first_slot, row_bytes) = (self.first_slots.get(segment), WARP_SIZE * size_of::<U>() as u32);
            let store = |slot: u32, row_bytes: u32| {
                let address = tile.address(slot);
                for i in 0..AT_ONCE {
                    let row = i as u32 * WARP_SIZE;
                    let is_here = (row as i32) < left;
                    let packed = pack(loaded[i], before + row, is_here);
                    if is_here {
                        tile.set_at(address.wrapping_add((i as u32).wrapping_mul(row_bytes)), packed);
                    }
                }
            };
            if segment.is_multiple_of(2) {
                store(first_slot + first, row_bytes);
            } else {
                store(first_slot.wrapping_sub(first), row_bytes.wrapping_neg());
            }
            at = self.advance(at, NT as u32 / WARP_SIZE * AT_ONCE_OF_WARP);
            loaded = load(at);
        }
    }

    /// Moves on by `keys` keys from a segment and a key of it, as if every segment were filled up to a multiple of the
    /// keys that a warp takes at once.
    #[inline(always)]
    fn advance(self, (mut segment, begin): (u32, u32), keys: u32) -> (u32, u32) {
        let mut begin = begin + keys;
        while segment < self.segments() {
            let taken = self.lengths.get(segment).next_multiple_of(AT_ONCE_OF_WARP);
            if begin < taken {
                break;
            }
            (segment, begin) = (segment + 1, begin - taken);
        }
        (segment, begin)
    }

    /// Prefetches all lines of the values of all segments into the cache.
    #[inline(always)]
    pub(in crate::kernels::sort) fn prefetch<const NT: usize, T: Word>(self, values: Global<T>) {
        let line = LINE / size_of::<T>();
        let mut segment = thread::thread_idx_x() / WARP_SIZE;
        while segment < self.segments() {
            let values = self.segment_of(segment, values);
            let mut i = (thread::thread_idx_x() % WARP_SIZE) as usize * line;
            while i < values.len() {
                values.prefetch(i);
                i += WARP_SIZE as usize * line;
            }
            segment += NT as u32 / WARP_SIZE;
        }
    }

    /// Calls `load` for keys `first`, `first + stride`, … of a segment.
    #[inline(always)]
    fn each_key(self, segment: u32, first: u32, stride: u32, load: impl Fn(u32, u32)) {
        let (length, first_slot) = (self.lengths.get(segment), self.first_slots.get(segment));
        let mut i = first;
        if segment.is_multiple_of(2) {
            while i < length {
                load(i, first_slot + i);
                i += stride;
            }
        } else {
            while i < length {
                load(i, first_slot - i);
                i += stride;
            }
        }
    }

    /// Calls `fill` for the slots between the two segments of each pair. A warp takes a pair.
    #[inline(always)]
    pub(in crate::kernels::sort) fn each_gap<const NT: usize>(self, fill: impl Fn(u32)) {
        let (lane, mut segment) = (thread::thread_idx_x() % WARP_SIZE, thread::thread_idx_x() / WARP_SIZE * 2);
        let segments = self.segments.get(0);
        while segment < segments {
            let mut slot = self.first_slots.get(segment) + self.lengths.get(segment) + lane;
            let end = self.siblings.get(segment / 2 + 1) - self.lengths.get(segment + 1);
            while slot < end {
                fill(slot);
                slot += WARP_SIZE;
            }
            segment += NT as u32 / WARP_SIZE * 2;
        }
    }
}
