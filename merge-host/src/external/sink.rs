//! What is kept of merged keys.

use super::block::Block;
use super::error::Error;
use super::source::Target;
use crate::Word;

/// Hands on to a target all merged keys, or the first of equal ones.
#[derive(Debug)]
pub(super) struct Sink<W: Word, T: Target<W>, E> {
    target: T,
    /// Converts the target's errors.
    convert: fn(T::Error) -> Error<E>,
    unique: bool,
    last: Option<W>,
    /// Keys handed on.
    written: u64,
}

impl<W: Word, T: Target<W>, E> Sink<W, T, E> {
    pub(super) fn new(target: T, convert: fn(T::Error) -> Error<E>, unique: bool) -> Self {
        Self { target, convert, unique, last: None, written: 0 }
    }

    /// Takes the first `count` keys of a block, at least one. What the block holds afterwards is unspecified.
    pub(super) fn put(&mut self, block: &mut Block<W>, count: usize) -> Result<(), Error<E>> {
        let kept = if self.unique {
            let last = block.parts(0..count).0.last().copied();
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
        self.target.write(keys, payload).map_err(self.convert)
    }

    /// The target, and the number of keys handed on.
    pub(super) fn finish(self) -> (T, u64) {
        (self.target, self.written)
    }
}
