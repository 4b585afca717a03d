//! Software write combining: writes items to many buckets in turn, one cache line at a time.
//!
//! Written one by one, each item would touch another cache line and another page, and the processor would read every
//! line from memory only to overwrite it. Instead, the items of each bucket are collected in a line that stays in the
//! cache. A full line is written to memory as a whole, bypassing the cache.
//!
//! ```text
//!   collected    │ . . 1 2 │          │ 3 4 5 6 │          │ 7 8 . . │   in the same cache line, one after another
//!                      │                   │                    │
//!                    copied             streamed              copied
//!                      ▼                   ▼                    ▼
//!   memory    …  │ . . 1 2 │──────────│ 3 4 5 6 │──────────│ 7 8 . . │  …
//!                    └─────────────── bucket ──────────────────┘
//! ```
//!
//! An item has the same offset in its collected line as in memory. A bucket shares its first line with the bucket
//! before it, and its last line with the bucket after it. Only the bucket's part of the first and the last line is
//! copied.

use super::memory;
use crate::Error;
use std::mem;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Up to `BUCKETS` buckets, each with a line that is not full yet.
pub(super) struct WriteCombiner<'a, T, const BUCKETS: usize> {
    /// The lines of all buckets, one after another.
    lines: &'a mut [T],
    /// The end of the collected items in each line. Earlier slots of the line belong to items that are already in the
    /// bucket.
    ends: [u8; BUCKETS],
    /// The unwritten part of each bucket. It begins with the slots of the bucket's line.
    buckets: Vec<&'a mut [T]>,
}

impl<'a, T: Copy, const BUCKETS: usize> WriteCombiner<'a, T, BUCKETS> {
    /// The number of items of a line: the greatest power of two that fits, or 1 for items larger than a line or without
    /// a size.
    const ITEMS: usize = match size_of::<T>() {
        0 => 1,
        size if size > LINE => 1,
        size => 1 << (LINE / size).ilog2(),
    };

    /// Memory for the lines of `buckets` buckets, filled with `any`.
    pub fn buffer(any: T, buckets: usize) -> Result<Vec<T>, Error> {
        // One more line than needed, because the allocation may begin in the middle of a line.
        memory::filled(any, (buckets + 1) * Self::ITEMS)
    }

    /// A combiner of writes to `buckets`. `buffer` comes from [`buffer`](Self::buffer), for at least this number of
    /// buckets.
    pub fn new(buffer: &'a mut [T], buckets: Vec<&'a mut [T]>) -> Self {
        let skipped = (Self::ITEMS - Self::offset_in_line(buffer)) % Self::ITEMS;
        let lines = &mut buffer[skipped..][..buckets.len() * Self::ITEMS];
        let mut ends = [0; BUCKETS];
        assert!(buckets.len() <= BUCKETS);
        ends.iter_mut().zip(&buckets).for_each(|(end, bucket)| *end = Self::offset_in_line(bucket) as u8);
        WriteCombiner { lines, ends, buckets }
    }

    /// The number of items between the beginning of a cache line and `items`, or 0 if items are not aligned to lines.
    fn offset_in_line(items: &[T]) -> usize {
        let address = items.as_ptr().addr();
        let is_aligned = Self::ITEMS * size_of::<T>() == LINE && address.is_multiple_of(size_of::<T>());
        if is_aligned { address % LINE / size_of::<T>() } else { 0 }
    }

    /// Appends an item to a bucket.
    #[inline(always)]
    pub fn push(&mut self, bucket: usize, item: T) {
        if size_of::<T>() == 0 {
            return;
        }
        let offset = usize::from(self.ends[bucket]) % Self::ITEMS;
        self.lines[bucket * Self::ITEMS + offset] = item;
        self.ends[bucket] = offset as u8 + 1;
        if offset + 1 == Self::ITEMS {
            self.flush(bucket);
            self.ends[bucket] = 0;
        }
    }

    /// Writes the line of a bucket to the bucket.
    #[inline(always)]
    fn flush(&mut self, bucket: usize) {
        let to = mem::take(&mut self.buckets[bucket]);
        let line = &self.lines[bucket * Self::ITEMS..][..Self::ITEMS];
        let line = &line[Self::offset_in_line(to)..usize::from(self.ends[bucket])];
        let (to, rest) = to.split_at_mut(line.len());
        self.buckets[bucket] = rest;
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if size_of_val(line) == LINE && to.as_ptr().addr().is_multiple_of(LINE) {
            // SAFETY: `line` has `LINE` bytes and `to` the same number of items, at a multiple of `LINE`. `drop`
            // executes the fence, and the borrow of the buckets ends only afterwards.
            return unsafe { stream(line.as_ptr(), to.as_mut_ptr()) };
        }
        to.copy_from_slice(line);
    }

    /// Writes the lines that are not full.
    pub fn finish(mut self) {
        if size_of::<T>() > 0 {
            (0..self.buckets.len()).for_each(|bucket| self.flush(bucket));
        }
    }
}

impl<T, const BUCKETS: usize> Drop for WriteCombiner<'_, T, BUCKETS> {
    /// Waits for the stores that bypass the cache, because other threads read the buckets next.
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: `sfence` belongs to SSE, which every x86-64 processor has.
        unsafe {
            std::arch::x86_64::_mm_sfence()
        };
    }
}

/// Copies a line to memory, bypassing the cache.
///
/// This is assembly because the corresponding intrinsics take numbers, and the copied bytes may be uninitialised.
///
/// # Safety
/// `LINE` bytes are readable at `from` and writable at `to`, which is a multiple of `LINE`. The calling thread executes
/// `_mm_sfence` before `to` is read or written again.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn stream<T>(from: *const T, to: *mut T) {
    // SAFETY: the four loads and stores of 16 bytes access the `LINE = 64` bytes at `from` and at `to`. `to` is a
    // multiple of 64, so each store is aligned to 16 bytes. The instructions belong to SSE, which every x86-64
    // processor has.
    unsafe {
        std::arch::asm!(
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movntps [{to}], {a}",
            "movntps [{to} + 16], {b}",
            "movntps [{to} + 32], {c}",
            "movntps [{to} + 48], {d}",
            from = in(reg) from,
            to = in(reg) to,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;
    use std::mem::MaybeUninit;

    const BUCKETS: usize = 256;

    /// Checks buckets of `lengths` items, then empty buckets, then a bucket of `rest` items. The first `skipped` items
    /// of the memory belong to no bucket.
    fn check<T: Copy + PartialEq + Debug>(item: impl Fn(usize) -> T, skipped: usize, lengths: &[usize], rest: usize) {
        let length_of = |bucket: usize| match bucket {
            bucket if bucket < lengths.len() => lengths[bucket],
            bucket if bucket == BUCKETS - 1 => rest,
            _ => 0,
        };
        let total: usize = (0..BUCKETS).map(length_of).sum();
        let nothing = item(usize::MAX);
        let mut memory = vec![nothing; skipped + total + 1];
        let (mut buckets, mut left) = (Vec::new(), &mut memory[skipped..][..total]);
        for bucket in 0..BUCKETS {
            buckets.push(left.split_off_mut(..length_of(bucket)).unwrap());
        }
        let mut buffer = WriteCombiner::<_, BUCKETS>::buffer(nothing, BUCKETS).unwrap();
        let mut combiner = WriteCombiner::<_, BUCKETS>::new(&mut buffer, buckets);
        // One item for each bucket that is not full, until all buckets are full.
        let (mut want, mut pushed) = (vec![Vec::new(); BUCKETS], 0);
        for round in 0.. {
            let open: Vec<_> = (0..BUCKETS).filter(|bucket| length_of(*bucket) > round).collect();
            for bucket in open.iter().rev() {
                combiner.push(*bucket, item(pushed));
                want[*bucket].push(item(pushed));
                pushed += 1;
            }
            if open.is_empty() {
                break;
            }
        }
        combiner.finish();
        assert_eq!(memory[skipped..][..total], want.concat(), "{lengths:?}, {skipped} skipped");
        assert!(memory[..skipped].iter().chain(&memory[skipped + total..]).all(|item| *item == nothing));
    }

    fn check_all<T: Copy + PartialEq + Debug>(item: impl Fn(usize) -> T) {
        let line = LINE / size_of::<T>().max(1);
        let step = if cfg!(miri) { 7 } else { 1 };
        for skipped in (0..=line).step_by(step) {
            for length in [0, 1, line - 1, line, line + 1, 2 * line, 3 * line + 2] {
                check(&item, skipped, &[length, 2, line, 0, length, length], length);
            }
        }
    }

    #[test]
    fn items_of_all_sizes_go_to_buckets_of_all_lengths() {
        check_all(|i| i as u8);
        check_all(|i| i as u16);
        check_all(|i| i as u32);
        check_all(|i| i as u64);
        check_all(|i| i as u128);
        check_all(|i| [i as u8; 3]);
        check_all(|i| [i as u8; 8]);
        check_all(|i| [i as u32; 3]);
        check_all(|i| [i as u64; 2]);
        check_all(|i| [i as u64; 5]);
        check_all(|i| [i as u64; 9].map(|i| i as u8));
        check_all(|_| ());
    }

    #[test]
    fn uninitialised_items_are_copied() {
        let mut memory = [MaybeUninit::<(u8, u32)>::uninit(); 100];
        let (first, second) = memory.split_at_mut(3);
        let mut buckets: Vec<&mut [_]> = vec![first, second];
        buckets.resize_with(BUCKETS, Default::default);
        let mut buffer = WriteCombiner::<_, BUCKETS>::buffer(MaybeUninit::uninit(), BUCKETS).unwrap();
        let mut combiner = WriteCombiner::<_, BUCKETS>::new(&mut buffer, buckets);
        for i in 0..97 {
            combiner.push(1, if i % 2 == 0 { MaybeUninit::new((i, i.into())) } else { MaybeUninit::uninit() });
        }
        (0..3).for_each(|_| combiner.push(0, MaybeUninit::uninit()));
        combiner.finish();
        for i in (0..97).step_by(2) {
            // SAFETY: for each even `i < 97` an initialised item was pushed to the second bucket, which begins at index
            // 3.
            assert_eq!(unsafe { memory[3 + usize::from(i)].assume_init() }, (i, i.into()));
        }
    }

    #[test]
    #[should_panic]
    fn an_item_too_many_panics() {
        let mut memory = [0u64; 20];
        let mut buckets: Vec<&mut [_]> = vec![&mut memory[..5]];
        buckets.resize_with(BUCKETS, Default::default);
        let mut buffer = WriteCombiner::<_, BUCKETS>::buffer(0, BUCKETS).unwrap();
        let mut combiner = WriteCombiner::<_, BUCKETS>::new(&mut buffer, buckets);
        (0..20).for_each(|i| combiner.push(0, i));
        combiner.finish();
    }
}
