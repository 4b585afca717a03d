//! A search in a sorted file: of keys on the command line, by few reads of the file, or of the keys of another file,
//! the needles, while the file is read.
//!
//! ```text
//!   file      1 3 3 5 │ 5 5 8 8 │ 9        parts
//!   needles   3 5     │ 7       │ 9 9      sorted: each is decided by the first part that ends behind its bound
//!   bounds    1 3     │ 6       │ 8 8      of a part, plus the number of keys before it
//! ```

use super::engine::cpu;
use super::finish;
use super::order::{Scan, first_disorder, not_sorted};
use super::written::write_numbers;
use crate::coding::Word;
use crate::file::Input;
use crate::job::{LookUp, Needle, Search};
use crate::os::standard::print;
use crate::os::{memory, threads};
use crate::records::Records;
use crate::say::error::{Failure, Result};
use crate::say::progress;
use crate::say::stats::{Phase, Stats};
use merge_host::{Bound, permutation};
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes of keys to hold in memory at once, beside the needles.
const BUFFER: u64 = 64 << 20;

/// Prints where keys on the command line are in a file.
pub fn look_up(job: LookUp) -> Result<()> {
    let LookUp { input, count, records: Records { layout, key }, needles, threads, mut stats } = job;
    threads::start(threads, 1)?;
    // Few of its bytes are read.
    progress::expect(None);
    let mut record = memory::zeroed::<u8>(layout.size as u64, "a record")?;
    let mut compare = |index: u64, needle: &[u8]| -> Result<Ordering> {
        input.read_at(index * layout.size as u64, &mut record)?;
        Ok(key.compare(&record, needle))
    };
    let (mut lines, mut all_found) = (String::new(), true);
    stats.keys = needles.len() as u64;
    stats.time(Phase::Read, || -> Result<()> {
        for Needle { text, ends: [first, last] } in &needles {
            let begin = partition_point(0..count, |index| Ok(compare(index, first)?.is_lt()))?;
            let end = partition_point(begin..count, |index| Ok(compare(index, last)?.is_le()))?;
            lines += &format!("{text}\t{begin}\t{}\n", end - begin);
            all_found &= begin < end;
        }
        Ok(())
    })?;
    print(lines.as_bytes())?;
    stats.print();
    if all_found { Ok(()) } else { Err(Failure::not_found()) }
}

/// The first of `indices` for which `precedes` returns false, or their end. The first indices are those for which it
/// returns true.
fn partition_point(mut indices: Range<u64>, mut precedes: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    while !indices.is_empty() {
        let middle = indices.start + (indices.end - indices.start) / 2;
        if precedes(middle)? { indices.start = middle + 1 } else { indices.end = middle }
    }
    Ok(indices.start)
}

/// Writes the bounds of needles in a file.
pub fn run<W: Word>(job: Search) -> Result<()> {
    let Search {
        inputs: [mut input, needles],
        key_type: _,
        bound,
        mut output,
        limit,
        assume_sorted,
        threads,
        mut stats,
    } = job;
    let length: Option<u64> = [input.length(), needles.length()].into_iter().sum();
    threads::start(threads, threads::useful(length))?;
    let count = input.count::<W>()?;
    limit.check_bounds(count.unwrap_or(0))?;
    let mut needles = Needles::<W>::read(needles, bound, &mut stats)?;
    output.check_space(needles.keys.len() as u128 * output.size() as u128)?;
    let capacity = BUFFER.min(memory::budget(None, 0)?) / W::SIZE as u64;
    let mut scan = Scan::new(capacity.min(count.unwrap_or(u64::MAX)).max(1), 1, "a part of the file")?;
    let mut done = 0;
    loop {
        let read = stats.time(Phase::Read, || input.read(scan.part()))?;
        limit.check_bounds(done + read as u64)?;
        if !assume_sorted {
            let found = stats.time(Phase::Check, || scan.first_disorder(read, |keys| first_disorder(keys, false)));
            let failure =
                found.map(|(index, [before, after])| not_sorted(&input, [before[0], after[0]], index, "", ""));
            failure.map_or(Ok(()), Err)?;
        }
        let part = scan.part();
        needles.find_among(&part[..read], done, &mut stats)?;
        done += read as u64;
        if read < part.len() {
            break;
        }
    }
    stats.keys = done + needles.keys.len() as u64;
    let bounds = needles.bounds_among(done, &mut stats)?;
    let size = output.size();
    output.expect(bounds.len() as u64);
    let mut writer = output.begin()?;
    stats.time(Phase::Write, || write_numbers(&mut writer, size, &bounds))?;
    finish([writer], stats)
}

/// Needles, and their bounds in a file that is read part by part.
struct Needles<W> {
    /// The needles, sorted.
    keys: Vec<W>,
    /// The index of each in its file.
    indices: Vec<u64>,
    /// The bounds of the first `decided` needles. The others are behind all keys that have been read.
    bounds: Vec<u64>,
    decided: usize,
    bound: Bound,
}

impl<W: Word> Needles<W> {
    fn read(mut input: Input, bound: Bound, stats: &mut Stats) -> Result<Self> {
        // The sort takes the same memory again.
        let each = 2 * (W::SIZE + 2 * size_of::<u64>());
        memory::check(u128::from(input.count::<W>()?.unwrap_or(0)) * each as u128, "the search for all needles")?;
        let mut keys = stats.time(Phase::Read, || input.read_all::<W>())?;
        let mut indices = memory::zeroed(keys.len() as u64, "the indices of the needles")?;
        permutation::fill_identity(&mut indices);
        stats.add(cpu().sort((&mut keys[..], &mut indices[..]))?);
        let bounds = memory::zeroed(keys.len() as u64, "the bounds of the needles")?;
        Ok(Self { keys, indices, bounds, decided: 0, bound })
    }

    /// Finds the bounds that lie among `part`, the keys of the file from the index `begin` on.
    fn find_among(&mut self, part: &[W], begin: u64, stats: &mut Stats) -> Result<()> {
        let Some(last) = part.last() else { return Ok(()) };
        let rest = &self.keys[self.decided..];
        let here = self.decided
            + match self.bound {
                Bound::Lower => rest.partition_point(|needle| needle <= last),
                Bound::Upper => rest.partition_point(|needle| needle < last),
            };
        let needles = self.decided..here;
        let bounds = &mut self.bounds[needles.clone()];
        stats.add(cpu().bounds(self.bound, &self.keys[needles], part, bounds)?);
        bounds.iter_mut().for_each(|bound| *bound += begin);
        self.decided = here;
        Ok(())
    }

    /// The bounds in a file of `count` keys, in the order in which the needles were read.
    fn bounds_among(self, count: u64, stats: &mut Stats) -> Result<Vec<u64>> {
        let Self { keys: _, mut indices, mut bounds, decided, bound: _ } = self;
        bounds[decided..].fill(count);
        stats.add(cpu().sort((&mut indices[..], &mut bounds[..]))?);
        Ok(bounds)
    }
}
