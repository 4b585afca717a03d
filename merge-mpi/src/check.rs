//! `gmerge-mpi check`: each rank checks a slice of the file, and the key before it.

use crate::agree::{guarded, step};
use crate::exchange::{Exchange, Reduction};
use crate::job::Ranks;
use crate::pieces::part;
use merge_cli::shared::{
    self, CheckFlags, CheckJob, Concatenation, Failure, Input, Items, Result, Scan, Word, describe, first_disorder,
    threads, with_word,
};
use std::ops::Range;

/// Bytes of keys or records that are in memory at once.
const BUFFER: usize = 16 << 20;

/// A key out of order.
struct Disorder {
    index: u64,
    failure: Failure,
}

/// Checks a file on all ranks.
///
/// # Errors
/// If a rank fails, or the first key out of order on the rank that has it. The other ranks return a failure without a
/// message.
pub fn run<X: Exchange>(ranks: Ranks<X>, flags: CheckFlags) -> Result<()> {
    let (exchange, path) = (ranks.exchange, flags.input.clone());
    let found = step(exchange, || {
        let CheckJob { input, items, unique, threads: wanted } = shared::check(flags)?;
        if !input.is_regular() {
            return Err(Failure::file(input.path(), "is no regular file, expected one: each rank reads a part of it"));
        }
        threads::start(Some(wanted.unwrap_or(ranks.threads)), threads::useful(input.length()))?;
        let (rank, size) = (exchange.rank(), exchange.size());
        match items {
            Items::Keys(key_type) | Items::Values(key_type, _) => {
                with_word!(key_type.size(), W => keys::<W>(input, unique, rank, size))
            }
            Items::Records(layout, key) => {
                let count = layout.count(input.path(), input.length().unwrap_or(0))?;
                let show = |_: &Input, _, [before, after]: [&[u8]; 2]| {
                    format!("{} after {}", layout.show(after), layout.show(before))
                };
                let first = |records: &[u8]| key.first_disorder(layout.size, records, unique);
                in_slice(input, layout.size, part(count, size, rank), first, show)
            }
        }
    })?;
    // The message is about the first key out of order on any rank.
    let mut first = [found.as_ref().map_or(u64::MAX, |found| found.index)];
    exchange.all_reduce(Reduction::Min, &mut first);
    match found {
        Some(found) if found.index == first[0] => Err(found.failure),
        _ if first[0] == u64::MAX => Ok(()),
        // All ranks have the same exit code, because mpirun may return the code of any rank.
        _ => Err(Failure::disorder(&path, "").silent_if_disorder()),
    }
}

fn keys<W: Word>(input: Input, unique: bool, rank: usize, size: usize) -> Result<Option<Disorder>> {
    let count = input.count::<W>()?.unwrap_or(0);
    let show = |input: &Input, index: u64, [before, after]: [&[W]; 2]| {
        format!("{} (byte {})", describe(input, [before[0], after[0]]), input.offset_of::<W>(index))
    };
    in_slice(input, 1, part(count, size, rank), |keys: &[W]| first_disorder(keys, unique), show)
}

/// The first disorder among the items at `slice` and the item before the slice. An item has `per_item` words. `show`
/// describes the item at an index, by its predecessor and itself.
fn in_slice<W: Word>(
    input: Input,
    per_item: usize,
    slice: Range<u64>,
    first: impl Fn(&[W]) -> Option<usize>,
    show: impl Fn(&Input, u64, [&[W]; 2]) -> String,
) -> Result<Option<Disorder>> {
    if slice.is_empty() {
        return Ok(None);
    }
    let mut files = Concatenation::new(vec![input]);
    let begin = slice.start.saturating_sub(1);
    files.seek::<W>(begin * per_item as u64);
    let mut left = slice.end - begin;
    let capacity = left.min((BUFFER / W::SIZE / per_item).max(2) as u64);
    let mut scan = Scan::new(capacity, per_item, "a part of the file")?;
    while left > 0 {
        let count = left.min(capacity);
        let words = count as usize * per_item;
        guarded(|| files.read(&mut scan.part()[..words]))?;
        if let Some((index, pair)) = scan.first_disorder(words, &first) {
            let (index, input) = (begin + index, &files.inputs()[0]);
            let message = format!("disorder at index {index}: {}", show(input, index, pair));
            return Ok(Some(Disorder { index, failure: Failure::disorder(input.path(), message) }));
        }
        left -= count;
    }
    Ok(None)
}
