//! Files as sources and targets of the library's external sort and merge.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, cpu};
use super::order::{first_disorder, not_sorted};
use crate::coding::Word;
use crate::file::{Concatenation, Input, Writer};
use crate::job::IndexLimit;
use crate::os::memory;
use crate::os::threads::cannot_start;
use crate::say::error::{Failure, Result};
use crate::say::stats::Stats;
use merge_host::external::{self, Options, Source, Summary, Target};
use merge_host::parallel;
use std::sync::atomic::{AtomicU64, Ordering};

/// Indices that a thread writes at once.
const BLOCK: usize = 1 << 14;
/// Indices that are copied at once before writing, so that the copy takes little memory.
const INDICES: usize = 1 << 20;

/// The library's external sort of `source` to the target that `begin` opens. The argument of `begin` is the number of
/// keys to write, if known. All keys have been read by then, but with `unique` the number of distinct keys is unknown.
pub fn sort<W: Word, T: Target<W, Error = Failure>>(
    options: &Options,
    source: impl Source<W, Error = Failure>,
    begin: impl FnOnce(Option<u64>) -> Result<T>,
    engine: &mut ChosenEngine,
    stats: &mut Stats,
) -> Result<(T, Summary)> {
    let count = AtomicU64::new(0);
    let begin = || begin((!options.unique).then(|| count.load(Ordering::Relaxed)));
    external::sort(options, Counted { source, count: &count }, begin, engine, stats).map_err(failure)
}

/// A source that counts its keys as they are read.
#[derive(Debug)]
struct Counted<'a, S> {
    source: S,
    count: &'a AtomicU64,
}

impl<W: Word, S: Source<W>> Source<W> for Counted<'_, S> {
    type Error = S::Error;

    fn len(&self) -> Option<u64> {
        self.source.len()
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> std::result::Result<usize, S::Error> {
        let count = self.source.read(keys, payload)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> std::result::Result<bool, S::Error> {
        self.source.read_again(index, keys, payload)
    }
}

/// The library's external merge of `sources` to the target that `begin` opens, on the CPU. Merges of parts are short,
/// and transfers to a GPU take too long.
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
        external::Error::Scratch(error) => Failure::new(format!("{error}: name another folder with --tmp-dir")),
        external::Error::Thread(error) => cannot_start(&error),
        _ => Failure::new("the external sort failed"),
    }
}

/// The payload of the keys of a source.
#[derive(Debug)]
pub enum PayloadSource {
    None,
    /// Values of files, of this number of bytes each.
    Values(Concatenation, usize),
    /// The index of each key, of 8 bytes.
    Indices(IndexLimit),
    /// This byte, which names the origin of a key: the first or the second input.
    Origin(u8),
}

impl PayloadSource {
    /// Fills `payload` with the payload of the keys from `index` on.
    fn read(&mut self, index: u64, payload: &mut [u8]) -> Result<()> {
        match self {
            Self::None => {}
            Self::Values(input, _) => {
                if input.read::<u8>(payload)? < payload.len() {
                    return Err(Failure::file(
                        input.path(),
                        "ends before the value of the last key, expected a value for each",
                    ));
                }
            }
            Self::Indices(limit) => {
                limit.check(index + (payload.len() / size_of::<u64>()) as u64)?;
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

    /// The most keys to read at once after `position` keys. A key beyond the limit of indices is an error as soon as it
    /// is read.
    fn most_after(&self, position: u64) -> usize {
        match self {
            Self::Indices(limit) => usize::try_from((limit.most() - position).saturating_add(1)).unwrap_or(usize::MAX),
            _ => usize::MAX,
        }
    }

    fn again(&self) -> Result<Option<Self>> {
        Ok(match self {
            Self::None => Some(Self::None),
            Self::Values(input, width) => input.again()?.map(|input| Self::Values(input, *width)),
            Self::Indices(limit) => Some(Self::Indices(limit.clone())),
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
    /// The number of keys, if known.
    count: Option<u64>,
    /// The number of keys that have been read.
    position: u64,
    /// The checksum of all keys that are read.
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
        let asked = keys.len().min(self.payload.most_after(self.position));
        let count = self.keys.read(&mut keys[..asked])?;
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

/// Keys and values that have been read already.
#[derive(Debug)]
pub struct BufferedSource<W> {
    keys: Vec<W>,
    values: Vec<u8>,
    /// The number of keys that the source has returned.
    position: usize,
}

impl<W: Word> BufferedSource<W> {
    /// A source of `keys` with one value for each key.
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
    /// Whether an unsorted file is an error.
    checked: bool,
    /// The last key read.
    last: Option<W>,
    checksum: Option<Checksum>,
}

impl<W: Word> SortedSource<W> {
    /// A sorted file. If `checked`, its order is checked as it is read.
    pub fn new(keys: Input, payload: PayloadSource, checked: bool, checksum: Option<Checksum>) -> Result<Self> {
        Ok(Self { count: keys.count::<W>()?, keys, payload, position: 0, checked, last: None, checksum })
    }

    /// An error if `keys`, which follow the last key read, are not in order.
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
    /// The checksum of all keys that are written, if it differs from the checksum of the keys that are read.
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

/// The output of only the payload: indices or records.
#[derive(Debug)]
pub struct PayloadOutput {
    pub writer: Writer,
    /// Bytes of an index to write: 4 or 8. `None` if the payload is written unchanged.
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

/// Writes indices as numbers of `size` bytes, 4 or 8. They fit, because an [`IndexLimit`] has been checked.
pub fn write_indices(writer: &mut Writer, size: usize, indices: &[u64]) -> Result<()> {
    if size == size_of::<u64>() {
        return writer.write(indices);
    }
    let mut short = memory::zeroed::<u32>(indices.len().min(INDICES) as u64, "a part of the indices")?;
    indices.chunks(INDICES).try_for_each(|indices| {
        let short = &mut short[..indices.len()];
        parallel::for_each(short.chunks_mut(BLOCK).zip(indices.chunks(BLOCK)), |(short, indices)| {
            short.iter_mut().zip(indices).for_each(|(short, index)| *short = *index as u32);
        });
        writer.write(short)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::KeyType;

    #[test]
    fn a_key_too_many_for_the_indices_is_an_error_when_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.u8");
        let limit = IndexLimit { path: "out.i32".into(), key_type: KeyType::I32 };
        let most = limit.most();
        for (count, left) in [(most, 4), (most + 1, 5)] {
            std::fs::File::create(&path).unwrap().set_len(count).unwrap();
            let keys = Concatenation::new(vec![Input::open(&path).unwrap()]);
            let mut source = KeySource::new::<u8>(keys, PayloadSource::Indices(limit.clone()), None).unwrap();
            // The state after reading all but the last keys.
            source.keys.seek::<u8>(most - 4);
            source.position = most - 4;
            let (mut keys, mut indices) = ([0u8; 100], vec![0u8; 800]);
            let read = source.read(&mut keys, &mut indices);
            match left {
                4 => assert_eq!(read.unwrap(), 4),
                _ => assert!(
                    read.unwrap_err().message().unwrap().starts_with("out.i32: i32 numbers hold the indices of ")
                ),
            }
        }
    }
}
