//! Reading a whole file piece by piece, each handed on while it is still in the cache of the thread that read it.

use super::{Input, fill};
use crate::error::{Failure, Result};
use rayon::prelude::*;
use std::os::unix::fs::FileExt;

impl Input {
    /// Fills `bytes`, which are as many as a file of known length has left, with what comes next.
    ///
    /// Each `piece` bytes are read by one thread, which then calls `each` with them and with what `along` gives for that
    /// piece.
    pub fn read_pieces<T: Send>(
        &mut self,
        bytes: &mut [u8],
        piece: usize,
        along: impl IndexedParallelIterator<Item = T>,
        each: impl Fn(&[u8], T) + Sync,
    ) -> Result<()> {
        let begin = self.position;
        let expected = begin + bytes.len() as u64;
        self.position = expected;
        let pieces = bytes.par_chunks_mut(piece).zip(along).enumerate();
        pieces.try_for_each(|(i, (bytes, along))| {
            let offset = begin + (i * piece) as u64;
            let read = fill(bytes, |part, done| self.file.read_at(part, offset + done as u64));
            let read = read.map_err(|e| Failure::io(&self.path, &e))?;
            if read < bytes.len() {
                return Err(self.shrank(expected, offset + read as u64));
            }
            each(bytes, along);
            Ok(())
        })
    }
}
