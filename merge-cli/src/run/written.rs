//! Targets of items in order: outputs of keys, records or indices, and which of the items are written.
//!
//! ```text
//!   merged   3A 3A 3B 5A 5B 7A ──► Chosen: a set operation ──► Written: one of equal keys, the first items ──► files
//! ```

use super::checksum::Checksum;
use super::spilled::add_records;
use crate::coding::{Word, with_word};
use crate::file::{Outputs, Writer, Writers};
use crate::job::Keep;
use crate::os::memory;
use crate::say::error::{Failure, Result};
use merge_host::external::Target;
use merge_host::{SetOperation, parallel};

/// Numbers that a thread converts at once.
const BLOCK: usize = 1 << 14;
/// Numbers that are converted at once before writing, so that the copy takes little memory.
const NUMBERS: usize = 1 << 20;
/// Items whose groups are found at once.
const GROUPED: usize = 1 << 18;

/// What is written of each item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The key, and its value if there is an output of values.
    Key,
    /// The payload, which is a record.
    Record,
    /// The last 8 bytes of the payload, which are an index.
    Index,
}

/// Which items are written, and how.
#[derive(Clone, Copy, Debug)]
pub struct Writing {
    pub form: Form,
    pub keep: Keep,
    /// The most items to write.
    pub most: u64,
}

/// The outputs of a sort or merge.
#[derive(Debug)]
pub struct Written<W> {
    writers: Writers,
    writing: Writing,
    /// Bytes of an index in the output.
    index_size: usize,
    /// The checksum of all items that are written, if it differs from the checksum of the items that are read.
    checksum: Option<Checksum>,
    /// The number of items that have been written.
    count: u64,
    /// The last group of equal keys, which may go on.
    open: Option<Group<W>>,
}

/// A group of equal keys.
#[derive(Debug)]
struct Group<W> {
    key: W,
    /// The payload of the key that is written.
    payload: Vec<u8>,
    /// The number of keys.
    count: u64,
}

impl<W: Word> Written<W> {
    /// Starts to write. Equal keys have equal words.
    pub fn begin(outputs: Outputs, writing: Writing, checksum: Option<Checksum>) -> Result<Self> {
        let index_size = outputs.keys.size();
        Ok(Self { writers: outputs.begin()?, writing, index_size, checksum, count: 0, open: None })
    }

    /// Writes all keys to outputs that are open already.
    pub fn resume(writers: Writers) -> Self {
        let writing = Writing { form: Form::Key, keep: Keep::All, most: u64::MAX };
        Self { writers, writing, index_size: 0, checksum: None, count: 0, open: None }
    }

    /// The outputs, and the number of items that were written.
    pub fn finish(mut self) -> Result<(Writers, u64)> {
        self.end_group()?;
        Ok((self.writers, self.count))
    }

    /// Writes one of each group of equal keys.
    fn write_groups(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        let (len, width) = (keys.len(), payload.len() / keys.len());
        let keeps_last = self.writing.keep == Keep::Last;
        let mut begin = 0;
        if let Some(open) = &mut self.open {
            begin = keys.iter().take_while(|key| **key == open.key).count();
            open.count += begin as u64;
            if keeps_last && begin > 0 {
                open.payload.copy_from_slice(&payload[(begin - 1) * width..begin * width]);
            }
        }
        if begin == len {
            return Ok(());
        }
        self.end_group()?;
        let (mut kept, mut counts) = (0, Vec::new());
        loop {
            let key = keys[begin];
            let end = begin + keys[begin..].iter().take_while(|other| **other == key).count();
            let chosen = if keeps_last { end - 1 } else { begin };
            let (bytes, count) = (chosen * width..(chosen + 1) * width, (end - begin) as u64);
            if end == len {
                self.open = Some(Group { key, payload: payload[bytes].to_vec(), count });
                break;
            }
            keys[kept] = key;
            payload.copy_within(bytes, kept * width);
            counts.push(count);
            (kept, begin) = (kept + 1, end);
        }
        self.put(&keys[..kept], &payload[..kept * width], &counts)
    }

    /// Writes the group that may go on.
    fn end_group(&mut self) -> Result<()> {
        match self.open.take() {
            Some(Group { key, payload, count }) => self.put(&[key], &payload, &[count]),
            None => Ok(()),
        }
    }

    /// Writes items with the numbers of their equal keys.
    fn put(&mut self, keys: &[W], payload: &[u8], counts: &[u64]) -> Result<()> {
        let width = payload.len() / keys.len().max(1);
        let kept = keys.len().min(usize::try_from(self.writing.most - self.count).unwrap_or(usize::MAX));
        if kept == 0 {
            return Ok(());
        }
        let (keys, payload) = (&keys[..kept], &payload[..kept * width]);
        self.count += kept as u64;
        if let Some(checksum) = &self.checksum {
            match self.writing.form {
                Form::Record => add_records(checksum, payload, width),
                Form::Key | Form::Index => checksum.add(keys, payload, width),
            }
        }
        if let Some((writer, limit)) = &mut self.writers.counts {
            limit.check_counts(&counts[..kept])?;
            write_numbers(writer, limit.key_type.size(), &counts[..kept])?;
        }
        match self.writing.form {
            Form::Key => self.writers.write(keys, payload),
            Form::Record => self.writers.keys.write(payload),
            Form::Index => payload.chunks(NUMBERS * width).try_for_each(|payload| {
                let tails = payload.chunks_exact(width).map(|payload| &payload[width - size_of::<u64>()..]);
                let indices: Vec<u64> = tails.map(bytemuck::pod_read_unaligned).collect();
                write_numbers(&mut self.writers.keys, self.index_size, &indices)
            }),
        }
    }
}

impl<W: Word> Target<W> for Written<W> {
    type Error = Failure;

    fn write(&mut self, mut keys: &mut [W], mut payload: &mut [u8]) -> Result<()> {
        let width = payload.len() / keys.len();
        if self.writing.keep == Keep::All {
            return self.put(keys, payload, &[]);
        }
        while !keys.is_empty() {
            let count = keys.len().min(GROUPED);
            let (some, others) = keys.split_at_mut(count);
            let (of_some, of_others) = payload.split_at_mut(count * width);
            self.write_groups(some, of_some)?;
            (keys, payload) = (others, of_others);
        }
        Ok(())
    }
}

/// Writes numbers as integers of `size` bytes. They fit.
pub fn write_numbers(writer: &mut Writer, size: usize, numbers: &[u64]) -> Result<()> {
    if size == size_of::<u64>() {
        return writer.write(numbers);
    }
    with_word!(size, W => {
        let mut short = memory::zeroed::<W>(numbers.len().min(NUMBERS) as u64, "a part of the numbers")?;
        numbers.chunks(NUMBERS).try_for_each(|numbers| {
            let short = &mut short[..numbers.len()];
            parallel::for_each(short.chunks_mut(BLOCK).zip(numbers.chunks(BLOCK)), |(short, numbers)| {
                short.iter_mut().zip(numbers).for_each(|(short, number)| *short = Word::truncate((*number).into()));
            });
            writer.write(short)
        })
    })
}

/// The choice of a set operation among merged records. The last byte of a payload is the number of the source of the
/// record. A record is kept by its index among the records of its source with an equal key, and by their number in an
/// earlier source.
#[derive(Debug)]
pub struct Chosen<W> {
    operation: SetOperation,
    key: Option<W>,
    /// The number of records of each source with this key so far.
    times: [u64; SOURCES],
    to: Written<W>,
}

/// The most sources of a set operation.
const SOURCES: usize = 3;

/// The sources of a set operation on A, the file with index 0, and B. Of equal keys, those of an earlier source come
/// first, so that all have been counted when a later source needs their number. No group has to be held.
pub fn sources_of(operation: SetOperation) -> &'static [usize] {
    match operation {
        SetOperation::Union => &[0, 1],
        SetOperation::Intersection | SetOperation::Difference => &[1, 0],
        SetOperation::SymmetricDifference => &[0, 1, 0],
    }
}

impl<W: Word> Chosen<W> {
    pub fn new(operation: SetOperation, to: Written<W>) -> Self {
        Self { operation, key: None, times: [0; SOURCES], to }
    }

    /// The outputs, and the number of records that were written.
    pub fn finish(self) -> Result<(Writers, u64)> {
        self.to.finish()
    }

    /// Whether to keep a record of `source` that comes after `index` others with its key.
    fn keeps(&self, source: usize, index: u64) -> bool {
        let [first, second, _] = self.times;
        match (self.operation, source) {
            (SetOperation::Union, 0) => true,
            (SetOperation::Union, _) => index >= first,
            (SetOperation::Intersection, 1) => index < first,
            (SetOperation::Difference, 1) => index >= first,
            (SetOperation::SymmetricDifference, 1) => index >= first,
            (SetOperation::SymmetricDifference, 2) => index >= second,
            _ => false,
        }
    }
}

impl<W: Word> Target<W> for Chosen<W> {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        let width = payload.len() / keys.len();
        let (size, mut kept) = (width - 1, 0);
        for i in 0..keys.len() {
            if self.key.replace(keys[i]) != Some(keys[i]) {
                self.times = [0; SOURCES];
            }
            let source = usize::from(payload[i * width + size]).min(SOURCES - 1);
            let index = self.times[source];
            self.times[source] += 1;
            if self.keeps(source, index) {
                keys[kept] = keys[i];
                payload.copy_within(i * width..i * width + size, kept * size);
                kept += 1;
            }
        }
        if kept == 0 { Ok(()) } else { self.to.write(&mut keys[..kept], &mut payload[..kept * size]) }
    }
}
