//! The selection of merged keys.

use super::block::Block;
use super::error::Error;
use crate::Word;

/// Writes keys with their payloads.
type Write<'a, W, E> = &'a mut (dyn FnMut(&mut [W], &mut [u8]) -> Result<(), Error<E>> + Send);

/// Hands on all merged keys, or the first of equal keys.
pub(super) struct Sink<'a, W, E> {
    write: Write<'a, W, E>,
    /// Whether `write` writes to the temporary file.
    is_spilled: bool,
    unique: bool,
    last: Option<W>,
    /// The number of keys handed on.
    written: u64,
}

impl<'a, W: Word, E> Sink<'a, W, E> {
    pub(super) fn new(write: Write<'a, W, E>, is_spilled: bool, unique: bool) -> Self {
        Self { write, is_spilled, unique, last: None, written: 0 }
    }

    /// Whether keys go to the temporary file.
    pub(super) fn is_spilled(&self) -> bool {
        self.is_spilled
    }

    /// Takes the first `count` keys of a block, at least one. The contents of the block are unspecified afterwards.
    pub(super) fn put(&mut self, block: &mut Block, count: usize) -> Result<(), Error<E>> {
        let kept = if self.unique {
            let last = block.parts::<W>(0..count).0.last().copied();
            let before = std::mem::replace(&mut self.last, last);
            block.unique(0..count, before)
        } else {
            count
        };
        if kept == 0 {
            return Ok(());
        }
        self.written += kept as u64;
        let (keys, payload) = block.parts_mut(0..kept);
        (self.write)(keys, payload)
    }

    /// The number of keys handed on.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}
