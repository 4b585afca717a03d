//! Writing what is made block by block, by all threads: a block is written while others are still being made, so that
//! the output is never in memory as a whole.
//!
//! ```text
//!   thread 0   ├ make 0 ┼ write 0 ┼ make 3 ┼ write 3 ┤
//!   thread 1   ├ make 1 ┼ write 1 ┼ make 2 ┼ write 2 ┤
//! ```
//!
//! The system lets only one thread at a time write(2) to a file. On a disk that is no loss. In a file system in main
//! memory it is all that many threads would do, so there they make the blocks right in the file's pages: a block is
//! mapped, and its pages are asked for with madvise(2), which tells where there is no space left; a mere access would
//! kill the program.

use super::{Sink, Writer};
use crate::error::Result;
use crate::progress;
use rayon::prelude::*;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes that are made and written at once: whole pages.
const BLOCK: usize = 1 << 20;
/// Blocks that are made at once for a pipe.
const BLOCKS_A_WRITE: usize = 16;
/// So many threads are no faster at asking for pages than one of them is at writing.
const FEW_THREADS: usize = 4;
/// What statfs(2) says of a file system in main memory.
const TMPFS: i64 = 0x0102_1994;

impl Writer {
    /// Writes `length` bytes after those written before. `make` is called for parts of them, each byte once, with where the
    /// part begins, from 0, and room for it, which may hold anything.
    pub fn write_blocks(&mut self, length: u64, make: impl Fn(u64, &mut [u8]) + Sync) -> Result<()> {
        let result = match &mut self.sink {
            Sink::Through(file) => write_through(file, length, &make),
            Sink::Temporary { temporary, position, .. } => {
                let begin = *position;
                *position += length;
                write_in_place(temporary.file(), begin, length, &make)
            }
        };
        result.map_err(|error| self.failure(&error))
    }
}

/// Writes blocks in order, and makes the next ones meanwhile.
fn write_through(file: &mut File, length: u64, make: &(impl Fn(u64, &mut [u8]) + Sync)) -> io::Result<()> {
    let room = length.min((BLOCK * BLOCKS_A_WRITE) as u64) as usize;
    let (mut made, mut next) = (vec![0; room], vec![0; room]);
    let mut waiting = 0;
    let mut begin = 0;
    loop {
        let count = (length - begin).min(room as u64) as usize;
        let make_next = || {
            let blocks = next[..count].par_chunks_mut(BLOCK).enumerate();
            blocks.for_each(|(i, block)| make(begin + (i * BLOCK) as u64, block));
        };
        let (written, ()) = rayon::join(|| file.write_all(&made[..waiting]), make_next);
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

/// Writes blocks to where they belong in a file, from `begin` on.
fn write_in_place(file: &File, begin: u64, length: u64, make: &(impl Fn(u64, &mut [u8]) + Sync)) -> io::Result<()> {
    let mapped = rayon::current_num_threads() > FEW_THREADS && can_map(file, begin);
    if mapped {
        file.set_len(begin + length)?;
    }
    let next = AtomicU64::new(0);
    let failed = Mutex::new(None);
    let fail = |error| {
        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        next.store(length, Ordering::Relaxed);
    };
    // Blocks are handed out in order, so that the file grows from its beginning to its end.
    rayon::broadcast(|_| {
        let mut room = Vec::new();
        loop {
            let from = next.fetch_add(BLOCK as u64, Ordering::Relaxed);
            if from >= length {
                return;
            }
            let count = (length - from).min(BLOCK as u64) as usize;
            if mapped && let Ok(mut block) = MappedBlock::new(file, begin + from, count) {
                make(from, block.bytes());
                progress::add(count);
                continue;
            }
            room.resize(BLOCK, 0);
            let block = &mut room[..count];
            make(from, block);
            if let Err(error) = file.write_all_at(block, begin + from) {
                return fail(error);
            }
            progress::add(count);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Whether blocks of a file, from `begin` on, can be made right in its pages, and are better made there.
fn can_map(file: &File, begin: u64) -> bool {
    begin.is_multiple_of(BLOCK as u64) && rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == TMPFS)
}

/// A part of a file as memory, with pages that are there.
struct MappedBlock {
    address: *mut std::ffi::c_void,
    length: usize,
}

impl MappedBlock {
    /// The part at `begin`, where a page begins. The file is at least so long.
    fn new(file: &File, begin: u64, length: usize) -> rustix::io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the system chooses, touches no memory that there is.
        let address = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file, begin)? };
        let block = Self { address, length };
        // SAFETY: the pages are those of the new mapping, the last one whole, and they keep what they hold.
        unsafe { rustix::mm::madvise(address, length, Advice::LinuxPopulateWrite)? };
        Ok(block)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is this block's own and lives as long. Its file is a temporary one of this program, under a
        // name that nobody else knows, and has been made as long before.
        unsafe { std::slice::from_raw_parts_mut(self.address.cast(), self.length) }
    }
}

impl Drop for MappedBlock {
    fn drop(&mut self) {
        // SAFETY: nobody else has this mapping, and no reference to it is left.
        let _ = unsafe { rustix::mm::munmap(self.address, self.length) };
    }
}
