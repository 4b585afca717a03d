//! Scratch memory that is kept for later calls.
//!
//! The system zeroes each page of memory at the first write. That takes longer than a sort of the keys on the page.
//! Therefore memory is kept until [`release`] is called: up to [`MOST_KEPT`] bytes in the whole process.

use super::memory::{check_headroom_after, out_of_memory, prefer_huge_pages};
use crate::{Error, allocation};
use bytemuck::Pod;
use bytemuck::allocation::try_zeroed_vec;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, take};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The greatest number of bytes that are kept.
const MOST_KEPT: usize = 64 << 20;

/// The greatest number of bytes that a processor's cache is expected to hold.
const CACHED_BYTES: usize = 8 << 20;

/// The unit of memory, aligned for keys and for most values.
type Block = MaybeUninit<u128>;

/// Kept memory that no call uses at present. The length of a vector is the number of first blocks that are initialised.
struct Kept(Vec<Vec<Block>>);

static KEPT: Mutex<Kept> = Mutex::new(Kept(vec![]));

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the kept memory to the system.
pub(crate) fn release() {
    let memory = take(&mut kept().0);
    // The lock is released before the memory is freed.
    drop(memory);
}

impl Kept {
    /// Takes the smallest memory of at least `blocks` blocks. If there is none, takes the largest, which the caller
    /// replaces. So no more memory is kept than was in use at once.
    fn take(&mut self, blocks: usize) -> Option<Vec<Block>> {
        let order = |memory: &Vec<Block>| (memory.capacity() < blocks, memory.capacity().abs_diff(blocks));
        let best = (0..self.0.len()).min_by_key(|&i| order(&self.0[i]))?;
        Some(self.0.swap_remove(best))
    }

    /// Keeps `memory`, or returns it if the kept memory would exceed [`MOST_KEPT`].
    fn put(&mut self, memory: Vec<Block>) -> Option<Vec<Block>> {
        let bytes = |memory: &Vec<Block>| memory.capacity() * size_of::<Block>();
        if self.0.iter().chain([&memory]).map(bytes).sum::<usize>() > MOST_KEPT {
            return Some(memory);
        }
        if memory.capacity() == 0 {
            return None;
        }
        if allocation::handled(|| self.0.try_reserve(1)).is_err() {
            return Some(memory);
        }
        self.0.push(memory);
        None
    }
}

/// Memory for `count` values of type `T`. The contents are unspecified.
pub(crate) struct Scratch<T> {
    blocks: Vec<Block>,
    count: usize,
    of: PhantomData<T>,
}

impl<T> Scratch<T> {
    /// Memory for `count` values that may be uninitialised.
    pub fn uninit(count: usize) -> Result<Scratch<MaybeUninit<T>>, Error> {
        let blocks = blocks_for::<T>(count)?;
        if let Some(mut kept) = take_kept(blocks) {
            // Values may leave uninitialised bytes behind.
            kept.clear();
            return Ok(Scratch { blocks: kept, count, of: PhantomData });
        }
        let mut fresh = Vec::new();
        allocation::handled(|| fresh.try_reserve_exact(blocks)).map_err(|_| out_of_memory::<T>(count))?;
        prefer_huge_pages(fresh.spare_capacity_mut());
        check_headroom_after(fresh.spare_capacity_mut())?;
        Ok(Scratch { blocks: fresh, count, of: PhantomData })
    }
}

impl<T: Pod> Scratch<T> {
    /// Memory for `count` values with any contents.
    pub fn init(count: usize) -> Result<Self, Error> {
        let blocks = blocks_for::<T>(count)?;
        if let Some(mut kept) = take_kept(blocks) {
            let initialised = kept.len().max(blocks);
            kept.resize(initialised, Block::zeroed());
            return Ok(Self { blocks: kept, count, of: PhantomData });
        }
        let zeros = allocation::handled(|| try_zeroed_vec::<u128>(blocks)).map_err(|()| out_of_memory::<T>(count))?;
        prefer_huge_pages(&zeros);
        check_headroom_after(&zeros)?;
        let mut zeros = ManuallyDrop::new(zeros);
        // SAFETY: `Block` has the layout of `u128`, so pointer, length and capacity are valid for a vector of blocks.
        // `zeros` is never dropped, so the new vector is the only owner.
        let blocks = unsafe { Vec::from_raw_parts(zeros.as_mut_ptr().cast(), zeros.len(), zeros.capacity()) };
        Ok(Self { blocks, count, of: PhantomData })
    }

    /// Memory for `count` values of zero bits.
    pub fn zeroed(count: usize) -> Result<Self, Error> {
        let mut scratch = Self::init(count)?;
        scratch.fill(T::zeroed());
        Ok(scratch)
    }

    /// [`init`](Self::init) for values that are scattered over the memory. Scattered writes take less time if the
    /// memory is in the processor's cache, and writing it from begin to end brings it there.
    pub fn to_scatter(count: usize) -> Result<Self, Error> {
        if count.saturating_mul(size_of::<T>()) <= CACHED_BYTES { Self::zeroed(count) } else { Self::init(count) }
    }
}

/// The number of blocks that hold `count` values at any address of the first block.
fn blocks_for<T>(count: usize) -> Result<usize, Error> {
    let before = const { align_of::<T>().saturating_sub(align_of::<Block>()) };
    let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(before));
    Ok(bytes.ok_or_else(|| out_of_memory::<T>(count))?.div_ceil(size_of::<Block>()))
}

/// Kept memory of at least `blocks` blocks, if there is any.
fn take_kept(blocks: usize) -> Option<Vec<Block>> {
    if blocks == 0 {
        return None;
    }
    let memory = kept().take(blocks)?;
    (memory.capacity() >= blocks).then_some(memory)
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        let too_much = kept().put(take(&mut self.blocks));
        // The lock is released before the memory is freed.
        drop(too_much);
    }
}

impl<T> Scratch<T> {
    /// The offset of the first value from the first block, in bytes.
    fn offset(&self) -> usize {
        self.blocks.as_ptr().addr().next_multiple_of(align_of::<T>()) - self.blocks.as_ptr().addr()
    }
}

impl<T> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: blocks are aligned themselves, so the offset is at most the `before` bytes that `blocks_for` has
        // added. So `count` values fit behind it. `init` has initialised them, or `T` is a `MaybeUninit`.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().byte_add(self.offset()).cast(), self.count) }
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let offset = self.offset();
        // SAFETY: `count` values fit behind the offset and are initialised, for the reasons in `deref`. `self` is
        // borrowed exclusively, so nothing else refers to them.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().byte_add(offset).cast(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_until_it_is_released() {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Aligned {
            _bytes: [u8; 64],
        }
        let (mut a, mut b) = (Scratch::<u64>::zeroed(1000).unwrap(), Scratch::<Aligned>::uninit(77).unwrap());
        assert!(a.iter().all(|&number| number == 0) && a.len() == 1000);
        a.fill(7);
        b.fill(MaybeUninit::new(Aligned { _bytes: [9; 64] }));
        assert!(b.as_ptr().addr().is_multiple_of(64) && b.len() == 77);
        drop((a, b));
        // What another call has left behind is not seen.
        let again = Scratch::<u32>::zeroed(1500).unwrap();
        assert!(again.iter().all(|&number| number == 0) && again.len() == 1500);
        drop(again);
        // Memory that has held values counts as uninitialised.
        for _ in 0..2 {
            let (numbers, values) = (Scratch::<u128>::init(500).unwrap(), Scratch::<Aligned>::uninit(77).unwrap());
            assert!(numbers.blocks.len() >= 500 && values.blocks.is_empty());
        }
        release();
        let nothing = Scratch::<()>::uninit(5).unwrap();
        assert_eq!(nothing.len(), 5);
    }

    #[test]
    fn no_more_is_kept_than_is_in_use_at_once() {
        let (mut kept, mut largest) = (Kept(vec![]), 0);
        for blocks in (1..2000).chain([5, 70, 1, 1500]) {
            let mut in_use = vec![];
            for _ in 0..2 {
                let memory = kept.take(blocks).filter(|memory| memory.capacity() >= blocks);
                in_use.push(memory.unwrap_or_else(|| Vec::with_capacity(blocks)));
            }
            assert!(in_use.iter().all(|memory| memory.capacity() >= blocks));
            largest = largest.max(in_use.iter().map(Vec::capacity).max().unwrap());
            for memory in in_use {
                assert!(kept.put(memory).is_none());
            }
            assert!(kept.0.len() <= 2, "{} are kept", kept.0.len());
        }
        assert!(kept.0.iter().any(|memory| memory.capacity() == largest), "what is large stays");
        assert!(kept.put(Vec::new()).is_none() && kept.0.len() == 2, "what has no memory is not kept");
        let too_much = Vec::with_capacity(MOST_KEPT / size_of::<Block>());
        assert!(kept.put(too_much).is_some());
    }

    #[test]
    fn more_than_the_address_space_is_an_error() {
        assert_eq!(Scratch::<u64>::init(usize::MAX).map(drop).unwrap_err(), out_of_memory::<u64>(usize::MAX));
        let too_many = usize::MAX / 16;
        assert_eq!(Scratch::<u128>::uninit(too_many).map(drop).unwrap_err(), out_of_memory::<u128>(too_many));
    }
}
