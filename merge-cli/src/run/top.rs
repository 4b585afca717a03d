//! The N first keys of the order, without sorting the others.
//!
//! The input is read part by part. A threshold, the last of N keys that were seen, keeps most keys out; those that pass
//! are candidates, and when there are many the N first of them are selected, which lowers the threshold:
//!
//! ```text
//!   part ──► keys below the threshold ──► candidates (2 N or more) ──select──► N candidates, a lower threshold
//! ```
//!
//! Equal keys have equal bits, so that it does not matter which of them are kept. Where the memory is too small for the
//! candidates, all keys are sorted in chunks, and the N first of them are written.

use super::checksum::Checksum;
use super::engine::ChosenEngine;
use super::spilled::{self, KeySource, PayloadSource};
use super::verify::{Expected, verify};
use crate::coding::{Word, with_word};
use crate::file::output::commit;
use crate::file::{Concatenation, Writer};
use crate::job::Top;
use crate::os::{memory, threads};
use crate::plan::{Destination, SortPlan};
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use crate::spec::EngineChoice;
use merge_host::external::{Shape, Target};
use merge_host::parallel;

/// Bytes of keys to read at once.
const BUFFER: u64 = 32 << 20;
/// Keys that a thread compares with the threshold at once.
const BLOCK: usize = 1 << 17;
/// Candidates to collect at least before selecting among them.
const FEWEST_CANDIDATES: usize = 1 << 16;

/// Writes the first keys.
pub fn run(job: Top) -> Result<()> {
    with_word!(job.key_type.size(), W => top::<W>(job))
}

fn top<W: Word>(job: Top) -> Result<()> {
    let Top { keys, key_type, count: wanted, mut output, verify: is_verified, resources, mut stats } = job;
    if is_verified {
        output.check_can_be_read_back()?;
    }
    let count = keys.count::<W>()?;
    let wanted = wanted.min(count.unwrap_or(u64::MAX));
    let bytes = count.map_or(0, |_| u128::from(wanted) * W::SIZE as u128);
    output.check_space(bytes)?;
    threads::start(resources.threads, threads::useful(keys.length()))?;
    let mut engine = ChosenEngine::start(EngineChoice::Cpu, key_type, None)?;
    let destination = Destination::new(&output, None, [bytes, 0]);
    let budget = memory::budget(resources.memory, destination.in_memory())?;
    // The candidates and the capacity that they grow into, or the keys and what it takes to sort them.
    let candidates = 4 * u128::from(wanted).max(FEWEST_CANDIDATES as u128) * W::SIZE as u128;
    let buffer = BUFFER.min(budget / 4);
    let checksum = Checksum::default();
    let (writer, written) = if candidates + u128::from(buffer) <= budget.into() {
        let mut keys = keys;
        let mut first = first_keys::<W>(&mut keys, wanted as usize, buffer, &mut stats)?;
        stats.add(engine.run(&mut first, |engine, first| engine.sort(first))?);
        output.expect(first.len() as u64);
        let mut writer = output.begin()?;
        stats.time(Phase::Write, || writer.write(&first))?;
        if is_verified {
            checksum.add(&first, &[], 0);
        }
        (writer, first.len() as u64)
    } else {
        let mut device = || Ok(None);
        let plan =
            SortPlan::new(Shape { key: W::SIZE, width: 0 }, count, destination, &resources, &mut device, keys.path())?;
        let source = KeySource::new::<W>(keys, PayloadSource::None, None)?;
        if count.is_some() {
            output.expect(wanted);
        }
        let begin = || Ok(First { writer: output.begin()?, left: wanted, written: 0, checksum: checksum.clone() });
        let options = plan.options(0, false, resources.fan_in);
        let sorted = spilled::sort::<W, _>(&options, source, begin, &mut engine, &mut stats)?;
        let (First { writer, written, .. }, summary) = sorted;
        stats.keys = summary.keys_read;
        (writer, written)
    };
    stats.engine = engine.name()?;
    if is_verified {
        let expected = Expected { count: written, checksum: checksum.get(), unique: false, width: 0 };
        stats.time(Phase::Check, || verify::<W>(&writer, None, expected))?;
    }
    stats.time(Phase::Write, || commit([writer]))?;
    stats.print();
    Ok(())
}

/// The `wanted` first of all keys, in any order. `buffer` bytes are read at once.
fn first_keys<W: Word>(keys: &mut Concatenation, wanted: usize, buffer: u64, stats: &mut Stats) -> Result<Vec<W>> {
    let capacity = (buffer / W::SIZE as u64).min(keys.count::<W>()?.unwrap_or(u64::MAX)).max(1);
    let mut part = memory::zeroed::<W>(capacity, "a part of the file")?;
    let mut candidates = Candidates::<W>::new(wanted);
    loop {
        let read = stats.time(Phase::Read, || keys.read(&mut part))?;
        stats.time(Phase::Compute, || candidates.add(&part[..read]))?;
        stats.keys += read as u64;
        if read < part.len() {
            return Ok(stats.time(Phase::Compute, || candidates.finish()));
        }
    }
}

/// Writes the first keys of a sort, and drops the others.
struct First {
    writer: Writer,
    left: u64,
    written: u64,
    checksum: Checksum,
}

impl<W: Word> Target<W> for First {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], _payload: &mut [u8]) -> Result<()> {
        let count = self.left.min(keys.len() as u64);
        self.left -= count;
        self.written += count;
        let keys = &keys[..count as usize];
        self.checksum.add(keys, &[], 0);
        if keys.is_empty() { Ok(()) } else { self.writer.write(keys) }
    }
}

/// The keys that may be among the first of those that were added.
struct Candidates<W> {
    wanted: usize,
    candidates: Vec<W>,
    /// The last of `wanted` candidates, once there are that many. Only keys before it can be among the first.
    threshold: Option<W>,
}

impl<W: Word> Candidates<W> {
    fn new(wanted: usize) -> Self {
        Self { wanted, candidates: Vec::new(), threshold: None }
    }

    fn add(&mut self, keys: &[W]) -> Result<()> {
        if self.wanted == 0 {
            return Ok(());
        }
        let (wanted, threshold) = (self.wanted, self.threshold);
        let blocks = parallel::map(keys.chunks(BLOCK), |block| {
            let mut passed = Vec::new();
            match threshold {
                None => passed.extend_from_slice(block),
                Some(last) => passed.extend(block.iter().copied().filter(|key| *key < last)),
            }
            select(&mut passed, wanted);
            passed
        });
        for passed in blocks {
            memory::reserve(&mut self.candidates, passed.len(), "the first keys")?;
            self.candidates.extend(passed);
            if self.candidates.len() >= self.wanted.saturating_mul(2).max(FEWEST_CANDIDATES) {
                self.threshold = select(&mut self.candidates, self.wanted).or(self.threshold);
            }
        }
        Ok(())
    }

    /// As many of the first keys as are wanted, or all, in any order.
    fn finish(mut self) -> Vec<W> {
        select(&mut self.candidates, self.wanted);
        self.candidates
    }
}

/// Leaves the `wanted` least of `keys`, at least 1, in any order. Gives the greatest of these if there are that many.
fn select<W: Word>(keys: &mut Vec<W>, wanted: usize) -> Option<W> {
    let last = wanted.checked_sub(1).filter(|&last| last < keys.len())?;
    let (_, &mut last, _) = keys.select_nth_unstable(last);
    keys.truncate(wanted);
    Some(last)
}
