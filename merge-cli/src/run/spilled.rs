//! Files as sources of the library's external sort and merge.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, cpu};
use super::order::{first_disorder, not_sorted};
use crate::coding::Word;
use crate::file::{Concatenation, Input};
use crate::job::NumberLimit;
use crate::os::memory;
use crate::os::threads::cannot_start;
use crate::records::{Key, Layout, Records};
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use merge_host::external::{self, Options, Source, Summary, Target, Ties};
use merge_host::parallel;
use merge_host::records::Field;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Indices that a thread writes at once.
const BLOCK: usize = 1 << 14;
/// Bytes of records for which a thread makes keys at once.
const RECORDS: usize = 1 << 20;
/// Bytes of records that are read at once if payloads are made of them.
const READ: usize = 4 << 20;

/// The library's external sort of `source` to the target that `begin` opens. The argument of `begin` is the number of
/// keys to write, if known. All keys have been read by then, but with `unique` the number of distinct keys is unknown.
///
/// If words are not whole keys, payloads with equal words are ordered by the key `ties`.
pub fn sort<W: Word, T: Target<W, Error = Failure>>(
    options: &Options,
    ties: Option<&Key>,
    source: impl Source<W, Error = Failure>,
    begin: impl FnOnce(Option<u64>) -> Result<T>,
    engine: &mut ChosenEngine,
    stats: &mut Stats,
) -> Result<(T, Summary)> {
    let count = AtomicU64::new(0);
    let begin = || begin((!options.unique).then(|| count.load(Ordering::Relaxed)));
    let source = Counted { source, count: &count };
    let Some(key) = ties else { return external::sort(options, source, begin, engine, stats).map_err(Failure::from) };
    let mut target = None;
    let opened = &mut target;
    let begin = || Ok(Ties::new(key, options, opened.insert(begin()?), Failure::from));
    let of_sort = Ties::<W, Failure>::sort_options(key, options);
    let sorted = external::sort(&of_sort, source, begin, engine, stats);
    let (ties, summary) = sorted.map_err(|error| Ties::<W, _>::sort_error(key, options, error))?;
    stats.time(Phase::Write, || ties.finish())?;
    Ok((target.expect("the sort has opened the target"), summary))
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
/// and transfers to a GPU take too long. `ties` is as in a [`sort`].
pub fn merge<W: Word, T: Target<W, Error = Failure>>(
    options: &Options,
    ties: Option<&Key>,
    sources: Vec<SortedSource<W>>,
    begin: impl FnOnce() -> Result<T>,
    stats: &mut Stats,
) -> Result<(T, Summary)> {
    let Some(key) = ties else { return external::merge(options, sources, begin, &cpu(), stats).map_err(Failure::from) };
    let mut target = None;
    let opened = &mut target;
    let begin = || Ok(Ties::new(key, options, opened.insert(begin()?), Failure::from));
    let of_merge = Ties::<W, Failure>::sort_options(key, options);
    let merged = external::merge(&of_merge, sources, begin, &cpu(), stats);
    let (ties, summary) = merged.map_err(|error| Ties::<W, _>::sort_error(key, options, error))?;
    stats.time(Phase::Write, || ties.finish())?;
    Ok((target.expect("the merge has opened the target"), summary))
}

impl From<external::Error<Failure>> for Failure {
    fn from(error: external::Error<Failure>) -> Self {
        match error {
            external::Error::Engine(error) => error.into(),
            external::Error::Other(failure) => failure,
            external::Error::TooLittleMemory(error) => Self::new(format!("--memory: {error}")),
            external::Error::Scratch(error) => Self::new(format!("{error}: name another folder with --tmp-dir")),
            external::Error::Thread(error) => cannot_start(&error),
            _ => Self::new("the external sort failed"),
        }
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
    Indices(NumberLimit),
    /// This byte, which names the origin of a key: the first or the second input.
    Origin(u8),
    /// Records. The keys are made from them, so that there are no files of keys.
    Records(Records, Carried),
}

/// The payload that is made of a record.
#[derive(Clone, Debug)]
pub enum Carried {
    /// The record.
    Record,
    /// The record, and this byte, which names the origin of the record.
    RecordFrom(u8),
    /// The index of the record, of 8 bytes. If the word is not the whole key, the encoded key precedes it.
    Index(NumberLimit),
}

impl Carried {
    /// Makes the payload of `record`, which has the index `index`.
    fn make(&self, records: &Records, index: u64, record: &[u8], payload: &mut [u8]) {
        match self {
            Self::Record => payload.copy_from_slice(record),
            Self::RecordFrom(origin) => {
                payload[..record.len()].copy_from_slice(record);
                payload[record.len()] = *origin;
            }
            Self::Index(_) => {
                let (key, to) = payload.split_at_mut(payload.len() - size_of::<u64>());
                for (number, bytes) in key.chunks_mut(size_of::<u128>()).enumerate() {
                    let part = records.key.part(number, record).to_be_bytes();
                    bytes.copy_from_slice(&part[part.len() - bytes.len()..]);
                }
                to.copy_from_slice(&index.to_ne_bytes());
            }
        }
    }
}

impl PayloadSource {
    /// Whole records.
    pub fn records(layout: Layout, key: Key) -> Self {
        Self::Records(Records { layout, key }, Carried::Record)
    }

    /// Bytes of a payload.
    pub fn width(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Values(_, width) => *width,
            Self::Indices(_) => size_of::<u64>(),
            Self::Origin(_) => 1,
            Self::Records(records, Carried::Record) => records.layout.size,
            Self::Records(records, Carried::RecordFrom(_)) => records.layout.size + 1,
            Self::Records(records, Carried::Index(_)) if records.has_long_key() => {
                records.key.size() + size_of::<u64>()
            }
            Self::Records(_, Carried::Index(_)) => size_of::<u64>(),
        }
    }

    /// The key that orders payloads with equal words, if words are not whole keys.
    pub fn ties(&self) -> Option<Key> {
        match self {
            Self::Records(records, carried) if records.has_long_key() => Some(match carried {
                Carried::Record | Carried::RecordFrom(_) => records.key.clone(),
                Carried::Index(_) => Key::new(&[Field::bytes(0, records.key.size())]),
            }),
            _ => None,
        }
    }

    /// The limit of indices, if the payload has them.
    fn limit(&self) -> Option<&NumberLimit> {
        match self {
            Self::Indices(limit) | Self::Records(_, Carried::Index(limit)) => Some(limit),
            _ => None,
        }
    }

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
                limit.check_indices(index + (payload.len() / size_of::<u64>()) as u64)?;
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

    /// An error if values are left behind that of the last key. The length of a pipe is known only then.
    fn check_end(&mut self) -> Result<()> {
        let Self::Values(input, width) = self else { return Ok(()) };
        if input.read::<u8>(&mut [0])? == 0 {
            return Ok(());
        }
        let message = format!("goes on behind the value of the last key, expected {width} bytes for each key");
        Err(Failure::file(input.path(), message))
    }

    /// The most keys to read at once after `position` keys. A key beyond the limit of indices is an error as soon as it
    /// is read.
    fn most_after(&self, position: u64) -> u64 {
        self.limit().map_or(u64::MAX, |limit| (limit.most() - position).saturating_add(1))
    }

    fn again(&self) -> Result<Option<Self>> {
        Ok(match self {
            Self::None => Some(Self::None),
            Self::Values(input, width) => input.again()?.map(|input| Self::Values(input, *width)),
            Self::Indices(limit) => Some(Self::Indices(limit.clone())),
            Self::Origin(origin) => Some(Self::Origin(*origin)),
            Self::Records(records, carried) => Some(Self::Records(records.clone(), carried.clone())),
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
        let width = payload.len() / keys.len().max(1);
        let PayloadSource::Records(records, carried) = &self.payload else {
            let count = self.keys.read(keys)?;
            self.payload.read(index, &mut payload[..count * width])?;
            return Ok(count);
        };
        if matches!(carried, Carried::Record) {
            let count = read_records(&mut self.keys, &records.layout, index, payload)?;
            make_words(records, &mut keys[..count], &payload[..count * width]);
            return Ok(count);
        }
        let size = records.layout.size;
        let most = (READ / size).clamp(1, keys.len().max(1));
        let mut read = memory::zeroed::<u8>((most * size) as u64, "a part of the records")?;
        let mut done = 0;
        for (keys, payload) in keys.chunks_mut(most).zip(payload.chunks_mut(most * width)) {
            let (index, asked) = (index + done as u64, keys.len());
            let count = read_records(&mut self.keys, &records.layout, index, &mut read[..asked * size])?;
            let read = &read[..count * size];
            make_words(records, &mut keys[..count], read);
            let blocks = payload[..count * width].chunks_mut(BLOCK * width).zip(read.chunks(BLOCK * size));
            parallel::for_each(blocks.zip((index..).step_by(BLOCK)), |((payload, read), begin)| {
                let payloads = payload.chunks_exact_mut(width).zip(read.chunks_exact(size)).zip(begin..);
                payloads.for_each(|((payload, record), index)| carried.make(records, index, record, payload));
            });
            done += count;
            self.payload.limit().map_or(Ok(()), |limit| limit.check_indices(index + count as u64))?;
            if count < asked {
                break;
            }
        }
        Ok(done)
    }

    /// Goes to the key at `index` of regular files.
    fn seek<W: Word>(&mut self, index: u64) {
        match &mut self.payload {
            PayloadSource::Records(records, _) => {
                return self.keys.seek::<u8>(index * records.layout.size as u64);
            }
            PayloadSource::Values(values, width) => values.seek::<u8>(index * *width as u64),
            PayloadSource::None | PayloadSource::Indices(_) | PayloadSource::Origin(_) => {}
        }
        self.keys.seek::<W>(index);
    }

    fn again(&self) -> Result<Option<Self>> {
        Ok(self.keys.again()?.zip(self.payload.again()?).map(|(keys, payload)| Self { keys, payload }))
    }
}

/// Fills `records` with the records of a file from `index` on, which are next, and returns their number.
fn read_records(input: &mut Concatenation, layout: &Layout, index: u64, records: &mut [u8]) -> Result<usize> {
    let bytes = input.read::<u8>(records)?;
    Ok((layout.count(input.path(), index * layout.size as u64 + bytes as u64)? - index) as usize)
}

/// Makes the words of records.
fn make_words<W: Word>(records: &Records, words: &mut [W], bytes: &[u8]) {
    let size = records.layout.size;
    let block = (RECORDS / size).max(1);
    parallel::for_each(words.chunks_mut(block).zip(bytes.chunks(block * size)), |(words, bytes)| {
        let parts = bytes.chunks_exact(size).map(|record| records.key.part(0, record));
        words.iter_mut().zip(parts).for_each(|(word, part)| *word = W::truncate(part));
    });
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
        let is_last = count < asked || self.count == Some(self.position);
        if is_last && self.most == u64::MAX {
            self.files.payload.check_end()?;
        }
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
    files: Files,
    count: Option<u64>,
    position: u64,
    /// Whether an unsorted file is an error.
    checked: bool,
    /// The last key read, and its payload if the word is not the whole key.
    last: Option<(W, Vec<u8>)>,
    checksum: Option<Checksum>,
}

impl<W: Word> SortedSource<W> {
    /// A sorted file of `count` keys or records, if known. If `checked`, its order is checked as it is read.
    pub fn new(
        keys: Input,
        count: Option<u64>,
        payload: PayloadSource,
        checked: bool,
        checksum: Option<Checksum>,
    ) -> Self {
        let files = Files { keys: Concatenation::new(vec![keys]), payload };
        Self { files, count, position: 0, checked, last: None, checksum }
    }

    /// The number of keys, if known.
    pub fn count(&self) -> Option<u64> {
        self.count
    }

    /// The records, if the keys are those of records.
    fn records(&self) -> Option<&Records> {
        match &self.files.payload {
            PayloadSource::Records(records, _) => Some(records),
            _ => None,
        }
    }

    /// An error if `keys`, which follow the last key read, are not in order.
    fn check(&self, keys: &[W], payload: &[u8], width: usize) -> Result<()> {
        let before =
            |index: usize| if index > 0 { Some(keys[index - 1]) } else { self.last.as_ref().map(|last| last.0) };
        let of_words = match before(0).zip(keys.first()) {
            Some((last, first)) if *first < last => Some(0),
            _ => first_disorder(keys, false),
        };
        let long = self.records().filter(|records| records.has_long_key());
        let of_records = long.and_then(|Records { key, .. }| match &self.last {
            Some((_, last)) if !keys.is_empty() && key.compare(last, payload).is_gt() => Some(0),
            _ => key.first_disorder(width, payload, false),
        });
        let Some(index) = of_words.into_iter().chain(of_records).min() else { return Ok(()) };
        let (input, position) = (&self.files.keys.inputs()[0], self.position + index as u64);
        match self.records() {
            None => Err(not_sorted(input, [before(index).unwrap_or(W::ZERO), keys[index]], position, "", "")),
            Some(records) => {
                let after = records.layout.show(&payload[index * width..]);
                let found = format!("not sorted at index {position}: {after} is less than the key before it");
                Err(Failure::file(input.path(), format!("{found}; sort it first, with gmerge sort and the same --key")))
            }
        }
    }
}

impl<W: Word> Source<W> for SortedSource<W> {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        self.count
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let (asked, width) = (keys.len(), payload.len() / keys.len().max(1));
        let count = self.files.read(self.position, keys, payload)?;
        let (keys, payload) = (&keys[..count], &payload[..count * width]);
        if self.checked {
            self.check(keys, payload, width)?;
        }
        if let Some(checksum) = &self.checksum {
            match self.records() {
                Some(_) => add_records(checksum, payload, width),
                None => checksum.add(keys, payload, width),
            }
        }
        if let Some(key) = keys.last() {
            let of_record = if self.records().is_some() { &payload[(count - 1) * width..] } else { &[] };
            self.last = Some((*key, of_record.to_vec()));
        }
        self.position += count as u64;
        if count < asked || self.count == Some(self.position) {
            self.files.payload.check_end()?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::KeyType;

    #[test]
    fn a_key_too_many_for_the_indices_is_an_error_when_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.u8");
        let limit = NumberLimit { path: "out.i32".into(), key_type: KeyType::I32 };
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
