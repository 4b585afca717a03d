//! The check of the order of a table.

use crate::job::CheckTable;
use crate::os::{memory, threads};
use crate::say::error::{Failure, Result};
use crate::say::stats::Phase;
use arrow_array::{Array, BinaryArray};
use merge_host::parallel;

use super::PARTS;

/// The most bytes to read at once for a check.
const MOST_CHECKED: u64 = 256 << 20;

/// Checks the order of a table.
pub fn check(job: CheckTable) -> Result<()> {
    let CheckTable { mut reader, length, key, unique, silent, resources, mut stats } = job;
    threads::start(resources.threads, threads::useful(length))?;
    let memory = memory::budget(resources.memory, 0)?;
    let mut last: Option<Vec<u8>> = None;
    let disorder = loop {
        let batches = stats.time(Phase::Read, || reader.next((memory / PARTS).min(MOST_CHECKED)))?;
        if batches.is_empty() {
            break Ok(());
        }
        let keys = key.of_batches(&batches, reader.path())?;
        let is_wrong = |before: &[u8], after: &[u8]| before > after || unique && before == after;
        let found = stats.time(Phase::Check, || first_disorder(&keys, &mut last, is_wrong));
        if let Some(row) = found {
            let index = stats.keys + row as u64;
            let message = format!("disorder at index {index}: its key comes before the key of the row before it");
            let message = if unique { format!("{message}, or equals it") } else { message };
            break Err(Failure::disorder(reader.path(), message));
        }
        stats.keys += batches.iter().map(|(batch, _)| batch.num_rows() as u64).sum::<u64>();
    };
    stats.print();
    disorder.map_err(|failure| if silent { failure.silent_if_disorder() } else { failure })
}

/// The index of the first key that is in the wrong order after the key before it. `last` is the key before the first,
/// and becomes the last key.
pub fn first_disorder(
    keys: &[BinaryArray],
    last: &mut Option<Vec<u8>>,
    is_wrong: impl Fn(&[u8], &[u8]) -> bool + Sync,
) -> Option<usize> {
    let ends = keys.iter().map(|keys| keys.value(keys.len() - 1));
    let before: Vec<Option<&[u8]>> = [last.as_deref()].into_iter().chain(ends.map(Some)).collect();
    let found = parallel::map(keys.iter().zip(&before), |(keys, before)| {
        let first = before.is_some_and(|before| is_wrong(before, keys.value(0))).then_some(0);
        first.or_else(|| (1..keys.len()).find(|&i| is_wrong(keys.value(i - 1), keys.value(i))))
    });
    let mut begin = 0;
    for (found, keys) in found.into_iter().zip(keys) {
        if let Some(index) = found {
            return Some(begin + index);
        }
        begin += keys.len();
    }
    *last = before.last().copied().flatten().map(<[u8]>::to_vec);
    None
}
