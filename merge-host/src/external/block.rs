//! A part of a source or of a run in memory.

use crate::{Error, Word, unique};
use bytemuck::Pod;
use std::ops::Range;

/// Memory for keys and a payload of `width` bytes for each.
#[derive(Debug)]
pub(super) struct Block<W> {
    keys: Vec<W>,
    /// The payloads' bytes, as numbers so that they are aligned as numbers.
    payload: Vec<u64>,
    width: usize,
}

impl<W: Word> Block<W> {
    /// Memory for `count` keys. The system gives its pages when they are first written to.
    pub(super) fn new(count: usize, width: usize) -> Result<Self, Error> {
        Ok(Self { keys: zeroed(count)?, payload: zeroed_bytes(count, width)?, width })
    }

    /// The number of slots.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of a key's payload.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Gives up all slots but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.keys.truncate(len);
        self.payload.truncate((len * self.width).div_ceil(size_of::<u64>()));
    }

    /// The keys and payloads of these slots.
    pub(super) fn parts(&self, slots: Range<usize>) -> (&[W], &[u8]) {
        let bytes = slots.start * self.width..slots.end * self.width;
        (&self.keys[slots], &bytemuck::cast_slice(&self.payload)[bytes])
    }

    /// The keys and payloads of these slots.
    pub(super) fn parts_mut(&mut self, slots: Range<usize>) -> (&mut [W], &mut [u8]) {
        let bytes = slots.start * self.width..slots.end * self.width;
        (&mut self.keys[slots], &mut bytemuck::cast_slice_mut(&mut self.payload)[bytes])
    }

    /// Moves the first of equal keys in these slots to the front of them, as [`unique()`] does, and returns how many there are.
    pub(super) fn unique(&mut self, slots: Range<usize>, before: Option<W>) -> usize {
        let width = self.width;
        let (keys, payload) = self.parts_mut(slots);
        unique(keys, payload, width, before)
    }

    /// Replaces all payloads by the first bytes of `payload`, which gets the old ones.
    pub(super) fn swap_payload(&mut self, payload: &mut Vec<u64>) {
        std::mem::swap(&mut self.payload, payload);
    }
}

/// `count` zeros.
pub(super) fn zeroed<T: Pod>(count: usize) -> Result<Vec<T>, Error> {
    let needed = || (count as u64).saturating_mul(size_of::<T>() as u64);
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| Error::OutOfHostMemory { needed: needed() })
}

/// At least `count` times `width` bytes, all zero.
pub(super) fn zeroed_bytes(count: usize, width: usize) -> Result<Vec<u64>, Error> {
    let bytes = count.checked_mul(width).ok_or(Error::OutOfHostMemory { needed: u64::MAX })?;
    zeroed(bytes.div_ceil(size_of::<u64>()))
}
