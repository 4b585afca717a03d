//! Payloads in memory: bytes with the alignment of numbers, so that payloads of 4 and 8 bytes can be moved as numbers.

use merge_cli::shared::{Result, memory};

/// Bytes at an address that is a multiple of 8.
#[derive(Debug, Default)]
pub struct Bytes {
    words: Vec<u64>,
    len: usize,
}

impl Bytes {
    /// Zeros: `count` payloads of `width` bytes.
    ///
    /// # Errors
    /// If there is too little memory.
    pub fn zeroed(count: usize, width: usize) -> Result<Self> {
        let len = count * width;
        Ok(Self { words: memory::zeroed(len.div_ceil(size_of::<u64>()) as u64, "the payload of keys")?, len })
    }

    /// All bytes.
    pub fn get(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// All bytes.
    pub fn get_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}
