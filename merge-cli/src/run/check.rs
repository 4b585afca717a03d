//! Checks whether a file is sorted.

use super::order::{Scan, describe, first_disorder};
use crate::coding::Word;
use crate::file::Input;
use crate::job::{Check, CheckRecords, Resources};
use crate::os::{memory, threads};
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};

/// Bytes of keys or records to hold in memory at once, so that a file of any size can be checked.
const BUFFER: u64 = 64 << 20;

/// Checks keys.
pub fn keys<W: Word>(job: Check) -> Result<()> {
    let Check { input, key_type: _, unique, silent, resources, stats } = job;
    input.count::<W>()?;
    let show = |input: &Input, index: u64, [before, after]: [&[W]; 2]| {
        format!("{} (byte {})", describe(input, [before[0], after[0]]), input.offset_of::<W>(index))
    };
    let count = |_: &Input, read: u64| Ok(read);
    let items = Items { size: 1, count, first: |keys: &[W]| first_disorder(keys, unique), show };
    items.check(input, silent, resources, stats)
}

/// Checks records.
pub fn records(job: CheckRecords) -> Result<()> {
    let CheckRecords { input, layout, order, unique, silent, resources, stats } = job;
    let (size, key) = (layout.size, layout.key(order));
    input.length().map(|length| layout.count(input.path(), length)).transpose()?;
    let show = |input: &Input, index: u64, [before, after]: [&[u8]; 2]| {
        let offset = input.offset_of::<u8>(index * size as u64);
        format!("{} after {} (byte {offset})", layout.show(after), layout.show(before))
    };
    let count = |input: &Input, read| layout.count(input.path(), read);
    let items = Items { size, count, first: |records: &[u8]| key.first_disorder(size, records, unique), show };
    items.check(input, silent, resources, stats)
}

/// The items of a file, and their order.
struct Items<C, F, S> {
    /// Words of an item.
    size: usize,
    /// The number of items in a number of words.
    count: C,
    /// The index of the first item out of order.
    first: F,
    /// Describes the item at an index, by its predecessor and itself.
    show: S,
}

impl<C: Fn(&Input, u64) -> Result<u64>, F, S> Items<C, F, S> {
    /// Checks the order of a file. If it is `silent`, only the exit code reports the result.
    fn check<W: Word>(self, mut input: Input, silent: bool, resources: Resources, mut stats: Stats) -> Result<()>
    where
        F: Fn(&[W]) -> Option<usize>,
        S: Fn(&Input, u64, [&[W]; 2]) -> String,
    {
        let Self { size, count, first, show } = self;
        threads::start(resources.threads, threads::useful(input.length()))?;
        let (buffer, bytes) = (BUFFER.min(memory::budget(resources.memory, 0)?), (size * W::SIZE) as u64);
        let capacity = (buffer / bytes).min(input.length().unwrap_or(u64::MAX) / bytes).max(1);
        let mut scan = Scan::new(capacity, size, "a part of the file")?;
        let disorder = loop {
            let read = stats.time(Phase::Read, || input.read(scan.part()))?;
            let done = count(&input, stats.keys * size as u64 + read as u64)?;
            let found = stats.time(Phase::Check, || scan.first_disorder(read, &first));
            stats.keys = done;
            if let Some((index, pair)) = found {
                let message = format!("disorder at index {index}: {}", show(&input, index, pair));
                break Err(Failure::disorder(input.path(), message));
            }
            if read < capacity as usize * size {
                break Ok(());
            }
        };
        stats.print();
        disorder.map_err(|failure| if silent { failure.silent_if_disorder() } else { failure })
    }
}
