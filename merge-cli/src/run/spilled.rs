//! Files as the sources and targets of the library's external sort and merge.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, cpu};
use super::order::{first_disorder, not_sorted};
use crate::coding::Word;
use crate::file::{Concatenation, Input, Writer};
use crate::os::memory;
use crate::say::error::{Failure, Result, name, os_message};
use crate::say::stats::Stats;
use merge_host::external::{self, Options, Source, Summary, Target};
use merge_host::parallel;
use std::path::Path;

/// Indices that a thread writes at once.
const BLOCK: usize = 1 << 14;
/// Indices that are copied at once to be written, so that the copy takes little memory.
const INDICES: usize = 1 << 20;

/// The library's external sort of `source` to the target that `begin` opens.
pub fn sort<W: Word, T: Target<W, Error = Failure>>(
    options: &Options,
    source: impl Source<W, Error = Failure>,
    begin: impl FnOnce() -> Result<T>,
    engine: &mut ChosenEngine,
    stats: &mut Stats,
) -> Result<(T, Summary)> {
    external::sort(options, source, begin, engine, stats).map_err(failure)
}

/// The library's external merge of `sources` to the target that `begin` opens, on the CPU: merges of parts are short, and the
/// way to a GPU is long.
pub fn merge<W: Word, T: Target<W, Error = Failure>>(
    options: &Options,
    sources: Vec<SortedSource<W>>,
    begin: impl FnOnce() -> Result<T>,
    stats: &mut Stats,
) -> Result<(T, Summary)> {
    external::merge(options, sources, begin, &cpu(), stats).map_err(failure)
}

/// The failure of an external sort or merge.
fn failure(error: external::Error<Failure>) -> Failure {
    match error {
        external::Error::Engine(error) => error.into(),
        external::Error::Other(failure) => failure,
        external::Error::TooLittleMemory(error) => Failure::new(format!("--memory: {error}")),
        external::Error::Scratch(error) => Failure::new(error.to_string()),
        external::Error::Thread(error) => Failure::new(format!("cannot start a thread: {}", os_message(&error))),
        _ => Failure::new("the external sort failed"),
    }
}

/// The payload that comes with the keys of a source.
#[derive(Debug)]
pub enum PayloadSource {
    None,
    /// Values of a file, of that many bytes each.
    Values(Concatenation, usize),
    /// The index of each key, of 8 bytes.
    Indices,
    /// This byte, which tells from which of two inputs a key is.
    Origin(u8),
}

impl PayloadSource {
    /// Fills `payload` with that of the keys from `index` on.
    fn read(&mut self, index: u64, payload: &mut [u8]) -> Result<()> {
        match self {
            Self::None => {}
            Self::Values(input, _) => {
                if input.read::<u8>(payload)? < payload.len() {
                    return Err(Failure::file(input.path(), "has fewer values than there are keys"));
                }
            }
            Self::Indices => {
                let blocks = payload.chunks_mut(BLOCK * size_of::<u64>()).zip((index..).step_by(BLOCK));
                parallel::for_each(blocks, |(payload, begin)| {
                    let indices = payload.chunks_exact_mut(size_of::<u64>()).zip(begin..);
                    indices.for_each(|(bytes, index)| bytes.copy_from_slice(&index.to_ne_bytes()));
                });
            }
            Self::Origin(origin) => payload.fill(*origin),
        }
        Ok(())
    }

    fn again(&self) -> Result<Option<Self>> {
        Ok(match self {
            Self::None => Some(Self::None),
            Self::Values(input, width) => input.again()?.map(|input| Self::Values(input, *width)),
            Self::Indices => Some(Self::Indices),
            Self::Origin(origin) => Some(Self::Origin(*origin)),
        })
    }

    fn seek(&mut self, index: u64) {
        if let Self::Values(input, width) = self {
            input.seek::<u8>(index * *width as u64);
        }
    }
}

/// Keys of files with their payload.
#[derive(Debug)]
pub struct KeySource {
    keys: Concatenation,
    payload: PayloadSource,
    /// The number of keys, if it is known.
    count: Option<u64>,
    /// Keys read so far.
    position: u64,
    /// Of all keys that are read.
    checksum: Option<Checksum>,
}

impl KeySource {
    /// Keys of type `W`.
    pub fn new<W: Word>(keys: Concatenation, payload: PayloadSource, checksum: Option<Checksum>) -> Result<Self> {
        Ok(Self { count: keys.count::<W>()?, keys, payload, position: 0, checksum })
    }
}

impl<W: Word> Source<W> for KeySource {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        self.count
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let width = payload.len() / keys.len().max(1);
        let count = self.keys.read(keys)?;
        let payload = &mut payload[..count * width];
        self.payload.read(self.position, payload)?;
        if let Some(checksum) = &self.checksum {
            checksum.add(&keys[..count], payload, width);
        }
        self.position += count as u64;
        Ok(count)
    }

    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<bool> {
        let (Some(mut again), Some(mut values)) = (self.keys.again()?, self.payload.again()?) else { return Ok(false) };
        again.seek::<W>(index);
        values.seek(index);
        let count = again.read(keys)?;
        values.read(index, payload)?;
        Ok(count == keys.len())
    }
}

/// Keys and values that were read already.
#[derive(Debug)]
pub struct BufferedSource<W> {
    keys: Vec<W>,
    values: Vec<u8>,
    /// Keys given so far.
    position: usize,
}

impl<W: Word> BufferedSource<W> {
    /// Keys, and as many values.
    pub fn new(keys: Vec<W>, values: Vec<u8>, checksum: Option<Checksum>) -> Self {
        if let Some(checksum) = checksum {
            checksum.add(&keys, &values, values.len() / keys.len().max(1));
        }
        Self { keys, values, position: 0 }
    }
}

impl<W: Word> Source<W> for BufferedSource<W> {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        Some(self.keys.len() as u64)
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let count = keys.len().min(self.keys.len() - self.position);
        let width = payload.len() / keys.len().max(1);
        self.read_again(self.position as u64, &mut keys[..count], &mut payload[..count * width])?;
        self.position += count;
        Ok(count)
    }

    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<bool> {
        let (index, width) = (index as usize, payload.len() / keys.len().max(1));
        keys.copy_from_slice(&self.keys[index..][..keys.len()]);
        payload.copy_from_slice(&self.values[index * width..][..payload.len()]);
        Ok(true)
    }
}

/// A sorted file with its payload.
#[derive(Debug)]
pub struct SortedSource<W> {
    keys: Input,
    payload: PayloadSource,
    count: Option<u64>,
    position: u64,
    /// Whether it is an error if the file is not sorted.
    checked: bool,
    /// The last key read.
    last: Option<W>,
    checksum: Option<Checksum>,
}

impl<W: Word> SortedSource<W> {
    /// A file whose order is checked as it is read if `checked`.
    pub fn new(keys: Input, payload: PayloadSource, checked: bool, checksum: Option<Checksum>) -> Result<Self> {
        Ok(Self { count: keys.count::<W>()?, keys, payload, position: 0, checked, last: None, checksum })
    }

    /// An error if these keys, which come after the last one, are not in order.
    fn check(&self, keys: &[W]) -> Result<()> {
        let (index, pair) = match (self.last, keys.first()) {
            (Some(last), Some(first)) if *first < last => (0, [last, *first]),
            _ => match first_disorder(keys, false) {
                Some(index) => (index, [keys[index - 1], keys[index]]),
                None => return Ok(()),
            },
        };
        Err(not_sorted(&self.keys, pair, self.position + index as u64, "", ""))
    }
}

impl<W: Word> Source<W> for SortedSource<W> {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        self.count
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let width = payload.len() / keys.len().max(1);
        let count = self.keys.read(keys)?;
        let (keys, payload) = (&keys[..count], &mut payload[..count * width]);
        if self.checked {
            self.check(keys)?;
        }
        self.payload.read(self.position, payload)?;
        if let Some(checksum) = &self.checksum {
            checksum.add(keys, payload, width);
        }
        self.last = keys.last().copied().or(self.last);
        self.position += count as u64;
        Ok(count)
    }
}

/// The outputs of a sort or merge.
#[derive(Debug)]
pub struct Outputs {
    pub keys: Writer,
    pub values: Option<Writer>,
    /// Of all keys that are written, where that of those read is another.
    pub checksum: Option<Checksum>,
}

impl<W: Word> Target<W> for Outputs {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        if let Some(checksum) = &self.checksum {
            checksum.add(keys, payload, payload.len() / keys.len().max(1));
        }
        self.keys.write::<W>(keys)?;
        self.values.as_mut().map_or(Ok(()), |values| values.write::<u8>(payload))
    }
}

/// The output of the payload alone: indices, or records.
#[derive(Debug)]
pub struct PayloadOutput {
    pub writer: Writer,
    /// Bytes of an index to write: 4 or 8. Otherwise the payload is written as it is.
    pub index_size: Option<usize>,
}

impl<W: Word> Target<W> for PayloadOutput {
    type Error = Failure;

    fn write(&mut self, _keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        match self.index_size {
            None => self.writer.write::<u8>(payload),
            Some(size) => payload.chunks(INDICES * size_of::<u64>()).try_for_each(|payload| {
                write_indices(&mut self.writer, size, &bytemuck::pod_collect_to_vec::<u8, u64>(payload))
            }),
        }
    }
}

/// Writes indices as numbers of `size` bytes, 4 or 8.
pub fn write_indices(writer: &mut Writer, size: usize, indices: &[u64]) -> Result<()> {
    if size == size_of::<u64>() {
        return writer.write(indices);
    }
    let mut short = memory::zeroed::<u32>(indices.len().min(INDICES) as u64, "a part of the indices")?;
    indices.chunks(INDICES).try_for_each(|indices| {
        let short = &mut short[..indices.len()];
        parallel::try_for_each(short.chunks_mut(BLOCK).zip(indices.chunks(BLOCK)), |(short, indices)| {
            let mut pairs = short.iter_mut().zip(indices);
            pairs.try_for_each(|(short, index)| u32::try_from(*index).map(|index| *short = index))
        })
        .map_err(|_| too_many_indices(writer.path()))?;
        writer.write(short)
    })
}

/// The error of indices that do not fit in 4 bytes.
pub fn too_many_indices(output: &Path) -> Failure {
    let name = name(output);
    Failure::new(format!("{name}: there are more than 2^32 keys, expected an output of .u64 with --argsort"))
}
