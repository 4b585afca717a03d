//! Blocks: parts of a source or of a run in memory.

use super::shape::Shape;
use crate::unique::unique_on;
use crate::{Error, Word, allocation};
use bytemuck::Pod;
use bytemuck::allocation::try_zeroed_vec;
use std::ops::Range;

/// Memory for keys of any type, each with a payload.
///
/// The calls choose the type of the keys. So threads pass on blocks of one type for keys of any type.
#[derive(Debug)]
pub(super) struct Block {
    /// The bytes of the keys, as the widest numbers, so that they are aligned for keys of any width.
    keys: Vec<u128>,
    /// The bytes of the payloads, as numbers, so that they are aligned for numbers.
    payload: Vec<u64>,
    shape: Shape,
    len: usize,
}

impl Block {
    /// Memory for `len` keys. The system provides its pages at the first write.
    pub(super) fn new(len: usize, shape: Shape) -> Result<Self, Error> {
        let (keys, payload) = (zeroed_bytes(len, shape.key)?, zeroed_bytes(len, shape.width)?);
        Ok(Self { keys, payload, shape, len })
    }

    /// The number of slots.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of bytes of a payload.
    pub(super) fn width(&self) -> usize {
        self.shape.width
    }

    /// Frees all slots except the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.keys.truncate((len * self.shape.key).div_ceil(size_of::<u128>()));
        self.payload.truncate((len * self.shape.width).div_ceil(size_of::<u64>()));
    }

    /// The keys and payloads of `slots`.
    pub(super) fn parts<W: Word>(&self, slots: Range<usize>) -> (&[W], &[u8]) {
        let bytes = slots.start * self.shape.width..slots.end * self.shape.width;
        (&bytemuck::cast_slice(&self.keys)[slots], &bytemuck::cast_slice(&self.payload)[bytes])
    }

    /// The keys and payloads of `slots`, to be written.
    pub(super) fn parts_mut<W: Word>(&mut self, slots: Range<usize>) -> (&mut [W], &mut [u8]) {
        let bytes = slots.start * self.shape.width..slots.end * self.shape.width;
        (&mut bytemuck::cast_slice_mut(&mut self.keys)[slots], &mut bytemuck::cast_slice_mut(&mut self.payload)[bytes])
    }

    /// Moves the first of equal keys in `slots` to the front, as [`unique`](crate::unique()) does, and returns the
    /// number of keys kept.
    pub(super) fn unique<W: Word>(&mut self, slots: Range<usize>, before: Option<W>) -> usize {
        let width = self.width();
        let (keys, payload) = self.parts_mut(slots);
        unique_on(usize::MAX, keys, payload, width, before)
    }

    /// Exchanges the memory of all payloads with `payload`, which must be at least as long.
    pub(super) fn swap_payload(&mut self, payload: &mut Vec<u64>) {
        std::mem::swap(&mut self.payload, payload);
    }
}

/// `count` zeros.
pub(super) fn zeroed<T: Pod>(count: usize) -> Result<Vec<T>, Error> {
    let needed = || (count as u64).saturating_mul(size_of::<T>() as u64);
    allocation::handled(|| try_zeroed_vec(count)).map_err(|()| Error::OutOfHostMemory { needed: needed() })
}

/// At least `count` times `width` zero bytes, as numbers of type `T`.
pub(super) fn zeroed_bytes<T: Pod>(count: usize, width: usize) -> Result<Vec<T>, Error> {
    let bytes = count.checked_mul(width).ok_or(Error::OutOfHostMemory { needed: u64::MAX })?;
    zeroed(bytes.div_ceil(size_of::<T>()))
}
