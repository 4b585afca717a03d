//! The keys of the inputs that a rank reads and sorts, with their payload.

use merge_cli::shared::{Concatenation, Failure, Items, Key, Output, Result, Word};
use merge_host::external::Source;
use merge_host::parallel;
use std::ops::Range;

/// Bytes of records for which a thread makes keys at once.
const BLOCK: usize = 1 << 20;

/// The payload of the keys.
#[derive(Debug)]
enum Payload {
    /// No payload.
    None,
    /// Values from other files.
    Values(Concatenation),
    /// Records of this number of bytes, and the key that makes the keys from them. The keys are in no separate file.
    Records(usize, Key),
}

/// A slice of the keys of files.
#[derive(Debug)]
pub struct Slice {
    input: Concatenation,
    payload: Payload,
    width: usize,
    /// The indices of the unread keys.
    left: Range<u64>,
    /// The index of the first key of the slice.
    begin: u64,
}

impl Slice {
    /// The keys at `range` of `input`, with payloads of `width` bytes. Values come from `items`, and their output is
    /// returned.
    pub fn new<W: Word>(input: Concatenation, items: Items, width: usize, range: Range<u64>) -> (Self, Option<Output>) {
        let (payload, rest) = match items {
            Items::Keys(_) => (Payload::None, None),
            Items::Values(_, values) => (Payload::Values(values.input), Some(values.output)),
            Items::Records(layout, key) => (Payload::Records(layout.size, key), None),
        };
        let mut slice = Self { input, payload, width, left: range.clone(), begin: range.start };
        slice.seek::<W>(range.start);
        (slice, rest)
    }

    /// Goes to the key at `index`.
    fn seek<W: Word>(&mut self, index: u64) {
        match &mut self.payload {
            Payload::None => self.input.seek::<W>(index),
            Payload::Values(values) => {
                self.input.seek::<W>(index);
                values.seek::<u8>(index * self.width as u64);
            }
            Payload::Records(size, _) => self.input.seek::<u8>(index * *size as u64),
        }
    }

    /// Fills `keys` and `payload` with the next keys and payloads.
    fn fill<W: Word>(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        let is_whole = match &mut self.payload {
            Payload::None => self.input.read(keys)? == keys.len(),
            Payload::Values(values) => {
                if values.read::<u8>(payload)? < payload.len() {
                    return Err(Failure::file(
                        values.path(),
                        "ends before the value of the last key, expected a value for each",
                    ));
                }
                self.input.read(keys)? == keys.len()
            }
            Payload::Records(size, key) => {
                let is_whole = self.input.read::<u8>(payload)? == payload.len();
                make_keys(keys, payload, *size, key);
                is_whole
            }
        };
        if is_whole {
            return Ok(());
        }
        Err(Failure::file(self.input.path(), "ends before the keys that it had when it was opened"))
    }
}

/// Makes the keys of records.
fn make_keys<W: Word>(keys: &mut [W], records: &[u8], size: usize, key: &Key) {
    let block = (BLOCK / size).max(1);
    parallel::for_each(keys.chunks_mut(block).zip(records.chunks(block * size)), |(keys, records)| {
        let records = records.chunks_exact(size);
        keys.iter_mut().zip(records).for_each(|(to, record)| *to = W::truncate(key.whole(record)));
    });
}

impl<W: Word> Source<W> for Slice {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        Some(self.left.end - self.left.start)
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX);
        let count = keys.len().min(left);
        self.fill(&mut keys[..count], &mut payload[..count * self.width])?;
        self.left.start += count as u64;
        Ok(count)
    }

    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<bool> {
        self.seek::<W>(self.begin + index);
        self.fill(keys, payload)?;
        self.seek::<W>(self.left.start);
        Ok(true)
    }
}
