//! Checks whether a file is sorted.

use super::order::{describe, first_disorder};
use crate::coding::Word;
use crate::job::{Check, CheckRecords};
use crate::os::{memory, threads};
use crate::say::error::{Failure, Result};
use crate::say::stats::Phase;

/// Bytes of keys or records to hold in memory at once, so that a file of any size can be checked.
const BUFFER: u64 = 64 << 20;

/// Checks keys.
pub fn keys<W: Word>(job: Check) -> Result<()> {
    let Check { mut input, key_type: _, unique, silent, resources, mut stats } = job;
    let count = input.count::<W>()?;
    threads::start(resources.threads, threads::useful(input.length()))?;
    let buffer = BUFFER.min(memory::budget(resources.memory, 0)?);
    let capacity = (buffer / W::SIZE as u64).min(count.unwrap_or(u64::MAX)).max(1);
    // The first slot is for the last key of the previous part.
    let mut keys = memory::zeroed::<W>(capacity + 1, "a part of the file")?;
    let mut carried = 0;
    let disorder = loop {
        let read = stats.time(Phase::Read, || input.read(&mut keys[1..]))?;
        let part = &keys[1 - carried..1 + read];
        let found = stats.time(Phase::Check, || first_disorder(part, unique));
        let index = found.map(|i| (stats.keys - carried as u64 + i as u64, [part[i - 1], part[i]]));
        stats.keys += read as u64;
        if let Some((index, pair)) = index {
            let (pair, byte) = (describe(&input, pair), input.offset_of::<W>(index));
            break Some(Failure::disorder(input.path(), format!("disorder at index {index}: {pair} (byte {byte})")));
        }
        if (read as u64) < capacity {
            break None;
        }
        keys[0] = keys[read];
        carried = 1;
    };
    stats.print();
    report(disorder, silent)
}

/// Checks records.
pub fn records(job: CheckRecords) -> Result<()> {
    let CheckRecords { mut input, layout, reverse, unique, silent, resources, mut stats } = job;
    let (size, key) = (layout.size, layout.key(reverse));
    let length = input.length();
    length.map(|length| layout.count(input.path(), length)).transpose()?;
    threads::start(resources.threads, threads::useful(length))?;
    let buffer = BUFFER.min(memory::budget(resources.memory, 0)?);
    let capacity = (buffer / size as u64).min(length.unwrap_or(u64::MAX) / size as u64).max(1) as usize * size;
    // The first slot is for the last record of the previous part.
    let mut bytes = memory::zeroed::<u8>((capacity + size) as u64, "a part of the file")?;
    let mut begin = size;
    let disorder = loop {
        let read = stats.time(Phase::Read, || input.read(&mut bytes[size..]))?;
        let count = layout.count(input.path(), stats.keys * size as u64 + read as u64)? - stats.keys;
        let part = &bytes[begin..size + read];
        let found = stats.time(Phase::Check, || key.first_disorder(size, part, unique));
        let index = found.map(|i| (stats.keys - ((size - begin) / size) as u64 + i as u64, i));
        stats.keys += count;
        if let Some((index, i)) = index {
            let [before, after] = [i - 1, i].map(|i| layout.show(&part[i * size..][..size]));
            break Some(Failure::disorder(input.path(), format!("disorder at index {index}: {after} after {before}")));
        }
        if read < capacity {
            break None;
        }
        bytes.copy_within(capacity.., 0);
        begin = 0;
    };
    stats.print();
    report(disorder, silent)
}

/// The outcome of a check, without a message if it is `silent`.
fn report(disorder: Option<Failure>, silent: bool) -> Result<()> {
    match disorder {
        None => Ok(()),
        Some(failure) => Err(if silent { failure.silent_if_disorder() } else { failure }),
    }
}
