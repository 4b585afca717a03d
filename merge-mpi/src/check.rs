//! `gmerge-mpi check`: each rank checks a slice of the file, and the key before it.

use crate::agree::{guarded, step};
use crate::exchange::{Exchange, Reduction};
use crate::job::Ranks;
use crate::pieces::part;
use merge_cli::shared::{
    self, CheckFlags, CheckJob, Concatenation, Failure, Input, Items, Result, Word, describe, first_disorder, memory,
    threads, with_word,
};

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
                let path = input.path().to_owned();
                let count = layout.count(&path, input.length().unwrap_or(0))?;
                let show = |records: &[u8], i: usize, index: u64| {
                    let [before, after] = [i - 1, i].map(|i| layout.show(&records[i * layout.size..][..layout.size]));
                    Failure::disorder(&path, format!("disorder at index {index}: {after} after {before}"))
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
    // Messages need another handle of the input, because the slice takes the input.
    let shown = input.again()?;
    let show = |keys: &[W], i: usize, index: u64| {
        let input = shown.as_ref();
        let byte = input.map_or(0, |input| input.offset_of::<W>(index));
        let pair = input.map_or_else(String::new, |input| describe(input, [keys[i - 1], keys[i]]));
        let message = format!("disorder at index {index}: {pair} (byte {byte})");
        input.map_or_else(|| Failure::new(message.clone()), |input| Failure::disorder(input.path(), &message))
    };
    in_slice(input, 1, part(count, size, rank), |keys: &[W]| first_disorder(keys, unique), show)
}

/// The first disorder among the items at `slice` and the item before the slice. An item has `per_item` words.
fn in_slice<W: Word>(
    input: Input,
    per_item: usize,
    slice: std::ops::Range<u64>,
    first: impl Fn(&[W]) -> Option<usize>,
    show: impl Fn(&[W], usize, u64) -> Failure,
) -> Result<Option<Disorder>> {
    if slice.is_empty() {
        return Ok(None);
    }
    let mut input = Concatenation::new(vec![input]);
    let mut begin = slice.start.saturating_sub(1);
    input.seek::<W>(begin * per_item as u64);
    let capacity = (BUFFER / W::SIZE / per_item).max(2) as u64;
    let capacity = capacity.min(slice.end - begin) as usize;
    let mut items = memory::zeroed::<W>((capacity * per_item) as u64, "a part of the file")?;
    // The number of items kept from the previous part: its last item.
    let mut kept = 0;
    loop {
        let wanted = ((slice.end - begin) as usize - kept).min(capacity - kept);
        let here = &mut items[kept * per_item..(kept + wanted) * per_item];
        guarded(|| input.read(here))?;
        let part = &items[..(kept + wanted) * per_item];
        if let Some(i) = first(part) {
            let index = begin + i as u64;
            return Ok(Some(Disorder { index, failure: show(part, i, index) }));
        }
        let last = kept + wanted - 1;
        begin += last as u64;
        if begin + 1 >= slice.end {
            return Ok(None);
        }
        items.copy_within(last * per_item..(last + 1) * per_item, 0);
        kept = 1;
    }
}
