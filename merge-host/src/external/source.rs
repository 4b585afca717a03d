//! Sources and targets of keys.

use super::block::Block;
use crate::Word;
use std::marker::PhantomData;
use std::ops::Range;

/// A source of keys and their payloads, in order.
///
/// A sort reads a source on another thread while it sorts keys that were read before. A merge reads several sources at
/// the same time, on several threads.
#[expect(clippy::len_without_is_empty, reason = "the length may be unknown")]
pub trait Source<W: Word>: Send {
    /// The error of reading.
    type Error: Send;

    /// The number of keys, if it is known before they are read. At most this many keys are read.
    fn len(&self) -> Option<u64>;

    /// Fills `keys` and `payload` from the front and returns the number of keys.
    ///
    /// `keys` is not empty, and `payload` has [`Options::width`](super::Options::width) bytes for each key. Both slices
    /// have unspecified contents before the call. If fewer keys are returned than requested, they are the last ones:
    /// `read` is not called again.
    ///
    /// # Errors
    /// An error ends the sort or merge, which returns it as [`Error::Other`](super::Error::Other).
    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize, Self::Error>;

    /// Fills `keys` and `payload` again with the keys from index `index` of the source on, which earlier calls of
    /// [`read`](Self::read) returned. Returns `true`, or `false` if that is not possible, which is the default.
    ///
    /// A sort calls it after an engine has failed and left keys in disorder ([`Engines::run`](super::Engines::run)). It
    /// does not change the result of the next `read`.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<bool, Self::Error> {
        let _ = (index, keys, payload);
        Ok(false)
    }
}

/// A target of sorted keys and their payloads, which come part by part.
///
/// A merge writes to a target on another thread while it merges the next keys.
pub trait Target<W: Word>: Send {
    /// The error of writing.
    type Error: Send;

    /// Takes `keys`, which follow the keys of earlier calls.
    ///
    /// `keys` is not empty, and `payload` has [`Options::width`](super::Options::width) bytes for each key. The
    /// contents of both slices are unspecified afterwards: a target may decode keys in place.
    ///
    /// # Errors
    /// An error ends the sort or merge, which returns it as [`Error::Other`](super::Error::Other).
    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<(), Self::Error>;
}

impl<W: Word, E: Send> Source<W> for Box<dyn Source<W, Error = E> + '_> {
    type Error = E;

    fn len(&self) -> Option<u64> {
        (**self).len()
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize, E> {
        (**self).read(keys, payload)
    }

    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<bool, E> {
        (**self).read_again(index, keys, payload)
    }
}

impl<W: Word, T: Target<W> + ?Sized> Target<W> for &mut T {
    type Error = T::Error;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<(), T::Error> {
        (**self).write(keys, payload)
    }
}

/// A source of any type. External sorts are compiled once for each type of key, and not for each source.
pub(super) type AnySource<'a, W, E> = Box<dyn Source<W, Error = E> + 'a>;

/// A target of any type.
pub(super) type AnyTarget<'a, W, E> = &'a mut dyn Target<W, Error = E>;

/// A function that opens a target.
pub(super) type Begin<'a, W, E> = Box<dyn FnOnce() -> Result<AnyTarget<'a, W, E>, E> + 'a>;

/// A source with the number of keys read and the number of keys left.
#[derive(Debug)]
pub(super) struct Input<W, S> {
    source: S,
    len: Option<u64>,
    position: u64,
    ended: bool,
    words: PhantomData<fn() -> W>,
}

impl<W: Word, S: Source<W>> Input<W, S> {
    pub(super) fn new(source: S) -> Self {
        let len = source.len();
        Self { source, len, position: 0, ended: len == Some(0), words: PhantomData }
    }

    /// The number of keys, if the source knows it.
    pub(super) fn len(&self) -> Option<u64> {
        self.len
    }

    /// The number of keys read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The greatest number of keys left to read.
    pub(super) fn left(&self) -> u64 {
        if self.ended { 0 } else { self.len.map_or(u64::MAX, |len| len - self.position) }
    }

    /// Fills `slots` of `block` from the front, and returns the number of keys. It is less than the number of slots
    /// only at the end.
    pub(super) fn read(&mut self, block: &mut Block, slots: Range<usize>) -> Result<usize, S::Error> {
        let wanted = usize::try_from(self.left()).unwrap_or(usize::MAX).min(slots.len());
        if wanted == 0 {
            return Ok(0);
        }
        let (keys, payload) = block.parts_mut(slots.start..slots.start + wanted);
        let count = self.source.read(keys, payload)?;
        assert!(count <= wanted, "a source gave {count} keys, expected at most the {wanted} asked for");
        self.position += count as u64;
        self.ended = count < wanted || self.len == Some(self.position);
        Ok(count)
    }

    /// Fills `slots` of `block` again with the keys from `index` on. Returns `false` if the source cannot be read
    /// twice.
    pub(super) fn read_again(&mut self, index: u64, block: &mut Block, slots: Range<usize>) -> Result<bool, S::Error> {
        let (keys, payload) = block.parts_mut(slots);
        self.source.read_again(index, keys, payload)
    }
}
