//! Files as sources and targets of the library's external sort and merge.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, cpu};
use super::order::{first_disorder, not_sorted};
use crate::coding::Word;
use crate::file::{Concatenation, Input, Writer, Writers};
use crate::job::IndexLimit;
use crate::os::memory;
use crate::os::threads::cannot_start;
use crate::records::{Key, Layout};
use crate::say::error::{Failure, Result};
use crate::say::stats::Stats;
use merge_host::external::{self, Options, Source, Summary, Target};
use merge_host::parallel;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Indices that a thread writes at once.
const BLOCK: usize = 1 << 14;
/// Indices that are copied at once before writing, so that the copy takes little memory.
const INDICES: usize = 1 << 20;
/// Bytes of records for which a thread makes keys at once.
const RECORDS: usize = 1 << 20;

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
pub fn failure(error: external::Error<Failure>) -> Failure {
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
    /// No payload.
    None,
    /// Values of files, of this number of bytes each.
    Values(Concatenation, usize),
    /// The index of each key, of 8 bytes.
    Indices(IndexLimit),
    /// This byte, which names the origin of a key: the first or the second input.
    Origin(u8),
    /// Whole records, from which the keys are made. There are no files of keys.
    Records(Layout, Key),
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
            Self::Records(..) => {}
        }
        Ok(())
    }

    /// The most keys to read at once after `position` keys. A key beyond the limit of indices is an error as soon as it
    /// is read.
    fn most_after(&self, position: u64) -> u64 {
        match self {
            Self::Indices(limit) => (limit.most() - position).saturating_add(1),
            _ => u64::MAX,
        }
    }

    fn again(&self) -> Result<Option<Self>> {
        Ok(match self {
            Self::None => Some(Self::None),
            Self::Values(input, width) => input.again()?.map(|input| Self::Values(input, *width)),
            Self::Indices(limit) => Some(Self::Indices(limit.clone())),
            Self::Origin(origin) => Some(Self::Origin(*origin)),
            Self::Records(layout, key) => Some(Self::Records(layout.clone(), key.clone())),
        })
    }
}

/// Files of keys with their payload, or of records.
#[derive(Debug)]
struct Files {
    keys: Concatenation,
    payload: PayloadSource,
}

impl Files {
    /// Fills `keys` and `payload` with the next keys and payloads, and returns their number. `index` is the index of
    /// the first.
    fn read<W: Word>(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let PayloadSource::Records(layout, key) = &self.payload else {
            let width = payload.len() / keys.len().max(1);
            let count = self.keys.read(keys)?;
            self.payload.read(index, &mut payload[..count * width])?;
            return Ok(count);
        };
        let size = layout.size;
        let bytes = self.keys.read::<u8>(payload)?;
        let count = (layout.count(self.keys.path(), index * size as u64 + bytes as u64)? - index) as usize;
        let block = (RECORDS / size).max(1);
        let records = payload[..bytes].chunks(block * size);
        parallel::for_each(keys[..count].chunks_mut(block).zip(records), |(keys, records)| {
            let records = records.chunks_exact(size);
            keys.iter_mut().zip(records).for_each(|(to, record)| *to = W::truncate(key.part(0, record)));
        });
        Ok(count)
    }

    /// Goes to the key at `index` of regular files.
    fn seek<W: Word>(&mut self, index: u64) {
        match &mut self.payload {
            PayloadSource::Records(layout, _) => return self.keys.seek::<u8>(index * layout.size as u64),
            PayloadSource::Values(values, width) => values.seek::<u8>(index * *width as u64),
            PayloadSource::None | PayloadSource::Indices(_) | PayloadSource::Origin(_) => {}
        }
        self.keys.seek::<W>(index);
    }

    fn again(&self) -> Result<Option<Self>> {
        Ok(self.keys.again()?.zip(self.payload.again()?).map(|(keys, payload)| Self { keys, payload }))
    }
}

/// Keys of files with their payload, all or a range of them.
#[derive(Debug)]
pub struct KeySource {
    files: Files,
    /// The index of the first key in the files, and the most keys to read from there on.
    begin: u64,
    most: u64,
    /// The number of keys, if known.
    count: Option<u64>,
    /// The number of keys that have been read.
    position: u64,
    /// The checksum of all keys that are read.
    checksum: Option<Checksum>,
}

impl KeySource {
    /// All keys of files: `count`, if known.
    pub fn new(keys: Concatenation, payload: PayloadSource, count: Option<u64>, checksum: Option<Checksum>) -> Self {
        Self { files: Files { keys, payload }, begin: 0, most: u64::MAX, count, position: 0, checksum }
    }

    /// The keys of type `W` at `range` of regular files.
    pub fn of_range<W: Word>(keys: Concatenation, payload: PayloadSource, range: Range<u64>) -> Self {
        let (mut files, begin, most) = (Files { keys, payload }, range.start, range.end - range.start);
        files.seek::<W>(begin);
        Self { files, begin, most, count: Some(most), position: 0, checksum: None }
    }
}

impl<W: Word> Source<W> for KeySource {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        self.count
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let width = payload.len() / keys.len().max(1);
        let most = (self.most - self.position).min(self.files.payload.most_after(self.position));
        let asked = keys.len().min(most.try_into().unwrap_or(usize::MAX));
        let (keys, payload) = (&mut keys[..asked], &mut payload[..asked * width]);
        let count = self.files.read(self.position, keys, payload)?;
        if let Some(checksum) = &self.checksum {
            let (keys, payload) = (&keys[..count], &payload[..count * width]);
            match self.files.payload {
                PayloadSource::Records(..) => add_records(checksum, payload, width),
                _ => checksum.add(keys, payload, width),
            }
        }
        self.position += count as u64;
        Ok(count)
    }

    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<bool> {
        let Some(mut again) = self.files.again()? else { return Ok(false) };
        again.seek::<W>(self.begin + index);
        Ok(again.read(index, keys, payload)? == keys.len())
    }
}

/// Adds records of `size` bytes to a checksum.
pub fn add_records(checksum: &Checksum, records: &[u8], size: usize) {
    checksum.add(&vec![0u8; records.len() / size], records, size);
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
pub struct Written {
    pub writers: Writers,
    /// The checksum of all keys that are written, if it differs from the checksum of the keys that are read.
    pub checksum: Option<Checksum>,
}

impl<W: Word> Target<W> for Written {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        if let Some(checksum) = &self.checksum {
            checksum.add(keys, payload, payload.len() / keys.len().max(1));
        }
        self.writers.write(keys, payload)
    }
}

/// The output of only the payload, which is indices.
#[derive(Debug)]
pub struct IndexOutput {
    pub writer: Writer,
    /// Bytes of an index to write: 4 or 8.
    pub size: usize,
}

impl<W: Word> Target<W> for IndexOutput {
    type Error = Failure;

    fn write(&mut self, _keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        payload.chunks(INDICES * size_of::<u64>()).try_for_each(|payload| {
            write_indices(&mut self.writer, self.size, &bytemuck::pod_collect_to_vec::<u8, u64>(payload))
        })
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
            let mut source = KeySource::new(keys, PayloadSource::Indices(limit.clone()), Some(count), None);
            // The state after reading all but the last keys.
            source.files.seek::<u8>(most - 4);
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
