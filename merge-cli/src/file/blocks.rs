//! Writing blocks as they are made, by all threads: a block is written while others are still being made. So the output
//! is never in memory as a whole.
//!
//! ```text
//!   thread 0   ├ make 0 ┼ write 0 ┼ make 3 ┼ write 3 ┤
//!   thread 1   ├ make 1 ┼ write 1 ┼ make 2 ┼ write 2 ┤
//! ```

use super::output::{KeyRegion, Writer};
use crate::say::error::{Failure, Result};
use crate::say::progress;
use merge_host::parallel;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of a block, which one thread makes and writes at once.
const BLOCK: usize = 1 << 20;
/// Blocks that are made at once for a pipe.
const BLOCKS_A_WRITE: usize = 16;

/// An output that will be made block by block.
#[derive(Debug)]
pub struct Blocks<'a> {
    length: u64,
    to: To<'a>,
}

#[derive(Debug)]
enum To<'a> {
    /// A pipe or a device.
    Stream(&'a mut Writer),
    File(KeyRegion<'a>),
    /// The input, which is written over.
    InPlace(&'a Writer),
}

impl Writer {
    /// Prepares for the whole output of `length` bytes. Pages of a file in memory are allocated from now on.
    pub fn blocks(&mut self, length: u64) -> Result<Blocks<'_>> {
        let to = if self.stream().is_some() {
            To::Stream(self)
        } else if self.in_place().is_some() {
            To::InPlace(self)
        } else {
            To::File(self.region(length)?)
        };
        Ok(Blocks { length, to })
    }
}

impl Blocks<'_> {
    /// Writes all blocks. Each call of `make` fills one range of the output, and the ranges cover each byte once. Its
    /// arguments are the offset of the range and memory for its bytes, with arbitrary contents.
    pub fn write(self, make: impl Fn(u64, &mut [u8]) + Sync) -> Result<()> {
        match self.to {
            To::File(region) => write_in_place(&region, self.length, &make),
            To::InPlace(writer) => writer.in_place().map_or(Ok(()), |place| place.write(self.length, make)),
            To::Stream(writer) => {
                let Some(file) = writer.stream() else { return Ok(()) };
                let result = write_through(file, self.length, &make);
                result.map_err(|error| writer.failure(&error))?;
                writer.count_bytes(self.length);
                Ok(())
            }
        }
    }
}

/// Writes blocks in order, while the next blocks are made.
fn write_through(file: &mut File, length: u64, make: &(impl Fn(u64, &mut [u8]) + Sync)) -> io::Result<()> {
    let capacity = length.min((BLOCK * BLOCKS_A_WRITE) as u64) as usize;
    let (mut made, mut next) = (vec![0; capacity], vec![0; capacity]);
    let mut waiting = 0;
    let mut begin = 0;
    loop {
        let count = (length - begin).min(capacity as u64) as usize;
        let make_next = || {
            let blocks = next[..count].chunks_mut(BLOCK).enumerate();
            parallel::for_each(blocks, |(i, block)| make(begin + (i * BLOCK) as u64, block));
        };
        let (written, ()) = parallel::join(|| file.write_all(&made[..waiting]), make_next);
        written?;
        progress::add(waiting);
        if count == 0 {
            return Ok(());
        }
        begin += count as u64;
        waiting = count;
        std::mem::swap(&mut made, &mut next);
    }
}

/// Writes each block at its offset in a file.
fn write_in_place(region: &KeyRegion, length: u64, make: &(impl Fn(u64, &mut [u8]) + Sync)) -> Result<()> {
    let next = AtomicU64::new(0);
    let failed: Mutex<Option<Failure>> = Mutex::new(None);
    // Blocks are handed out in order, so that the file grows from its beginning to its end.
    rayon::broadcast(|_| {
        let mut block = vec![0; BLOCK.min(length as usize)];
        loop {
            let begin = next.fetch_add(BLOCK as u64, Ordering::Relaxed);
            if begin >= length {
                return;
            }
            let block = &mut block[..(length - begin).min(BLOCK as u64) as usize];
            make(begin, block);
            if let Err(failure) = region.write(begin, block) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                next.store(length, Ordering::Relaxed);
            }
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
