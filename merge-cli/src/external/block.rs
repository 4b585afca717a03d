//! A part of the input or of a run in memory: keys, and what goes along with each.

use crate::error::Result;
use crate::key_type::FileKey;
use crate::memory;
use std::ops::Range;

/// What goes along with the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Nothing.
    Nothing,
    /// Values of so many bytes.
    Values(usize),
    /// The place of each key in the input, as a number of 8 bytes.
    Places,
    /// A byte that tells which input the key is from.
    Origin(u8),
}

impl Along {
    /// Bytes for each key.
    pub fn width(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Values(width) => width,
            Self::Places => size_of::<u64>(),
            Self::Origin(_) => 1,
        }
    }
}

/// Room for keys and values. Each value has `width` bytes.
#[derive(Debug)]
pub struct Block<O> {
    pub keys: Vec<O>,
    /// The values' bytes, as numbers so that they lie as numbers have to.
    values: Vec<u64>,
    pub width: usize,
}

impl<O: FileKey> Block<O> {
    /// Room for so many keys.
    pub fn new(keys: usize, width: usize) -> Result<Self> {
        let words = (keys as u64 * width as u64).div_ceil(size_of::<u64>() as u64);
        let keys = memory::zeroed(keys as u64, "a part of the keys")?;
        Ok(Self { keys, values: memory::zeroed(words, "a part of the values")?, width })
    }

    /// The bytes of the values of the keys in that range.
    pub fn values(&self, keys: Range<usize>) -> &[u8] {
        &bytemuck::cast_slice(&self.values)[keys.start * self.width..keys.end * self.width]
    }

    /// The keys in that range, and the bytes of their values.
    pub fn parts(&mut self, keys: Range<usize>) -> (&mut [O], &mut [u8]) {
        let values: &mut [u8] = bytemuck::cast_slice_mut(&mut self.values);
        let values = &mut values[keys.start * self.width..keys.end * self.width];
        (&mut self.keys[keys], values)
    }

    /// Swaps the values for others of as many bytes.
    pub fn swap_values(&mut self, values: &mut Vec<u64>) {
        std::mem::swap(&mut self.values, values);
    }
}
