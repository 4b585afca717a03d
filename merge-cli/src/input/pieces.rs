//! Reading a whole file piece by piece, each handed on while it is still in the cache of the thread that read it.

use super::Input;
use crate::error::Result;
use rayon::prelude::*;

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
        self.position += bytes.len() as u64;
        let this = &*self;
        let pieces = bytes.par_chunks_mut(piece).zip(along).enumerate();
        pieces.try_for_each(|(i, (bytes, along))| {
            this.read_piece(begin + (i * piece) as u64, bytes, 1)?;
            each(bytes, along);
            Ok(())
        })
    }
}
