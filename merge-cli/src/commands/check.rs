//! `gmerge check`

use crate::args::{CheckArgs, SortArgs};
use crate::engine::start_threads;
use crate::error::{Failure, Result};
use crate::format;
use crate::input::Input;
use crate::key_type::{FileKey, with_key_type};
use crate::memory;
use crate::order::{describe, first_unsorted_in, order_of};
use crate::records::Layout;
use crate::stats::{Phase, Stats};

/// Bytes of keys to hold in memory at once, so that a file of any size can be checked.
const ROOM: u64 = 64 << 20;

pub fn run(args: &CheckArgs) -> Result<()> {
    if let Some(layout) = Layout::of(&args.records)? {
        return super::records::check(args, &layout);
    }
    let mut inputs = [Input::open(&args.input)?];
    let key_type = format::detect(&args.common, &mut inputs, None)?;
    let [input] = inputs;
    with_key_type!(key_type, K => check::<K>(args, input))
}

/// `gmerge sort -c` and `-C`
pub fn run_for_sort(args: &SortArgs) -> Result<()> {
    let SortArgs { input, reverse, records, common, .. } = args;
    let (input, records, common) = (input.clone(), records.clone(), common.clone());
    let result = run(&CheckArgs { input, reverse: *reverse, records, common });
    result.map_err(|failure| if args.only_check_silently { failure.silent_if_disorder() } else { failure })
}

fn check<K: FileKey>(args: &CheckArgs, mut input: Input) -> Result<()> {
    let order = order_of(args.reverse);
    let mut stats = Stats::begin::<K>("check");
    let count = input.count::<K>()?;
    start_threads(args.common.parallel)?;

    let room = (ROOM / K::SIZE as u64).min(count.unwrap_or(u64::MAX));
    // The first place is for the last key of the part before.
    let mut keys = memory::zeroed::<K>(room + 1, "a part of the file")?;
    let mut carried = 0;
    let disorder = loop {
        let read = stats.time(Phase::Read, || input.read(&mut keys[1..]))?;
        let part = &keys[1 - carried..1 + read];
        let found = stats.time(Phase::Check, || first_unsorted_in(order, part));
        if let Some(i) = found {
            let index = stats.keys - carried as u64 + i as u64;
            stats.keys += read as u64;
            let (what, byte) = (describe(part, i), input.offset_of::<K>(index));
            break Some(Failure::disorder(&args.input, format!("disorder at index {index}: {what} (byte {byte})")));
        }
        stats.keys += read as u64;
        if (read as u64) < room || read == 0 {
            break None;
        }
        keys[0] = keys[read];
        carried = 1;
    };
    stats.print(args.common.stats);
    disorder.map_or(Ok(()), Err)
}
