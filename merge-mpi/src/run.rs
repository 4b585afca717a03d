//! The sorted run of a rank: in memory, or in unnamed temporary files.
//!
//! Of a run in a file, samples are in memory: the first key of each block. A search finds the block by the samples, and
//! then reads the block.
//!
//! ```text
//!   samples   3               17               40              in memory
//!   file      3 5 5 9 … 16 │ 17 20 21 … 38 │ 40 41 …           one block is read for a search
//! ```

use crate::bytes::Bytes;
use merge_cli::shared::{Failure, Result, Word, memory, name};
use merge_host::external::Target;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The least bytes of a block.
const BLOCK: usize = 16 << 10;
/// Samples take at most 1 / `PARTS` of the memory.
const PARTS: u64 = 32;

/// A sorted run with its payload.
#[derive(Debug)]
pub enum Run<W> {
    /// A run in memory.
    Memory {
        /// The keys.
        keys: Vec<W>,
        /// The payload of the keys.
        payload: Bytes,
    },
    /// A run in files.
    Spilled(Spilled<W>),
}

/// A run in files.
#[derive(Debug)]
pub struct Spilled<W> {
    folder: PathBuf,
    keys: File,
    /// The file of the payload, empty if there is none.
    payload: File,
    width: usize,
    count: usize,
    /// The keys at multiples of `stride`.
    samples: Vec<W>,
    stride: usize,
    /// The last block that was read, and its number.
    block: Vec<W>,
    block_number: Option<usize>,
}

impl<W: Word> Run<W> {
    /// The number of keys.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory { keys, .. } => keys.len(),
            Self::Spilled(spilled) => spilled.count,
        }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that keys and payload take.
    pub fn memory(&self) -> usize {
        match self {
            Self::Memory { keys, payload } => size_of_val(&keys[..]) + payload.get().len(),
            Self::Spilled(spilled) => size_of_val(&spilled.samples[..]) + BLOCK.max(spilled.stride * W::SIZE),
        }
    }

    /// The index of the first key in `window` that is not less than `key`, or the end of the window.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn search(&mut self, window: Range<usize>, key: W) -> Result<usize> {
        match self {
            Self::Memory { keys, .. } => Ok(window.start + keys[window].partition_point(|other| *other < key)),
            Self::Spilled(spilled) => spilled.search(window, key),
        }
    }

    /// The key at `index`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn key(&mut self, index: usize) -> Result<W> {
        match self {
            Self::Memory { keys, .. } => Ok(keys[index]),
            Self::Spilled(spilled) => {
                let stride = spilled.stride;
                Ok(spilled.block(index / stride)?[index % stride])
            }
        }
    }
}

impl<W: Word> Spilled<W> {
    /// Empty files in `folder` for `count` keys with payloads of `width` bytes. Samples take a small part of `memory`
    /// bytes.
    ///
    /// # Errors
    /// If the files cannot be created.
    pub fn create(folder: &Path, count: usize, width: usize, memory: u64) -> Result<Self> {
        let create = || {
            tempfile::tempfile_in(folder).map_err(|error| {
                let message = format!("cannot create a temporary file: {}", merge_cli::shared::os_message(&error));
                Failure::new(format!("{}: {message}", name(folder)))
            })
        };
        let most = (memory / PARTS / W::SIZE as u64).max(1) as usize;
        let stride = (BLOCK / W::SIZE).max(count.div_ceil(most));
        Ok(Self {
            folder: folder.to_owned(),
            keys: create()?,
            payload: create()?,
            width,
            count: 0,
            samples: Vec::new(),
            stride,
            block: Vec::new(),
            block_number: None,
        })
    }

    fn search(&mut self, window: Range<usize>, key: W) -> Result<usize> {
        // The blocks that begin in the window behind its first key.
        let blocks =
            window.start / self.stride + 1..window.end.div_ceil(self.stride).max(window.start / self.stride + 1);
        let before = self.samples[blocks.clone()].partition_point(|sample| *sample < key);
        let number = blocks.start + before - 1;
        let (begin, stride) = (number * self.stride, self.stride);
        let inside = window.start.max(begin)..window.end.min(begin + stride);
        if inside.is_empty() {
            return Ok(window.start);
        }
        let block = &self.block(number)?[inside.start - begin..inside.end - begin];
        Ok(inside.start + block.partition_point(|other| *other < key))
    }

    /// A block of keys.
    fn block(&mut self, number: usize) -> Result<&[W]> {
        if self.block_number != Some(number) {
            self.block_number = None;
            let begin = number * self.stride;
            let count = self.stride.min(self.count - begin);
            let mut block = std::mem::take(&mut self.block);
            block.resize(count, W::ZERO);
            self.read_keys(begin, &mut block)?;
            (self.block, self.block_number) = (block, Some(number));
        }
        Ok(&self.block)
    }

    /// Fills `keys` with the keys from index `begin` on.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_keys(&self, begin: usize, keys: &mut [W]) -> Result<()> {
        let read = self.keys.read_exact_at(bytemuck::cast_slice_mut(keys), (begin * W::SIZE) as u64);
        read.map_err(|error| self.failure(&error))
    }

    /// Fills `payload` with the payload of the keys from index `begin` on.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_payload(&self, begin: usize, payload: &mut [u8]) -> Result<()> {
        self.payload.read_exact_at(payload, (begin * self.width) as u64).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        let message = match error.kind() {
            ErrorKind::UnexpectedEof => "is shorter than what was written".to_owned(),
            _ => merge_cli::shared::os_message(error),
        };
        Failure::new(format!("{}: temporary file for a sorted run: {message}", name(&self.folder)))
    }
}

impl<W: Word> Target<W> for Spilled<W> {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        let (begin, stride) = (self.count, self.stride);
        let written = self.keys.write_all_at(bytemuck::cast_slice(keys), (begin * W::SIZE) as u64);
        written.map_err(|error| self.failure(&error))?;
        let written = self.payload.write_all_at(payload, (begin * self.width) as u64);
        written.map_err(|error| self.failure(&error))?;
        let first = begin.next_multiple_of(stride) - begin;
        self.samples.extend(keys.iter().skip(first).step_by(stride));
        self.count += keys.len();
        Ok(())
    }
}

/// Collects a run that fits in memory.
#[derive(Debug)]
pub struct Collected<W> {
    keys: Vec<W>,
    payload: Bytes,
    count: usize,
}

impl<W: Word> Collected<W> {
    /// Memory for `count` keys with payloads of `width` bytes.
    ///
    /// # Errors
    /// If there is too little memory.
    pub fn new(count: usize, width: usize) -> Result<Self> {
        Ok(Self {
            keys: memory::zeroed(count as u64, "the keys of a rank")?,
            payload: Bytes::zeroed(count, width)?,
            count: 0,
        })
    }

    /// The run.
    pub fn run(self) -> Run<W> {
        Run::Memory { keys: self.keys, payload: self.payload }
    }
}

impl<W: Word> Target<W> for Collected<W> {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        let width = payload.len() / keys.len().max(1);
        self.keys[self.count..][..keys.len()].copy_from_slice(keys);
        self.payload.get_mut()[self.count * width..][..payload.len()].copy_from_slice(payload);
        self.count += keys.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_in_a_file_finds_what_one_in_memory_finds() {
        let folder = tempfile::tempdir().unwrap();
        let keys: Vec<u64> = (0..20_000).map(|i: u64| i / 3 * 2).collect();
        let mut spilled = Spilled::create(folder.path(), keys.len(), 0, 1 << 20).unwrap();
        for part in keys.chunks(777) {
            spilled.write(&mut part.to_vec(), &mut []).unwrap();
        }
        assert_eq!((spilled.count, spilled.samples.len()), (keys.len(), keys.len().div_ceil(spilled.stride)));
        let mut run = Run::Spilled(spilled);
        let mut random = 1u64;
        for _ in 0..5000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let [a, b] = [(random >> 20) as usize % 20_001, (random >> 40) as usize % 20_001];
            let (window, key) = (a.min(b)..a.max(b), random >> 33 & 0x3fff);
            let expected = window.start + keys[window.clone()].partition_point(|other| *other < key);
            assert_eq!(run.search(window.clone(), key).unwrap(), expected, "{window:?} {key}");
        }
        for index in [0, 1, 2047, 2048, 2049, 19_999] {
            assert_eq!(run.key(index).unwrap(), keys[index]);
        }
        for begin in [0, 5, 2048, 20_000] {
            assert_eq!(run.search(begin..begin, 3).unwrap(), begin);
        }
    }
}
