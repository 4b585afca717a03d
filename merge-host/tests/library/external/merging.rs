//! Merges of sorted sources.

use super::slices::{Calls, FromSlice, Pairs, ToVec, pairs};
use merge_host::Engine;
use merge_host::external::{Options, Summary, merge};

/// Merges sources of these lengths, some of unknown length, and returns the number of runs spilled.
fn check(options: &Options, lengths: &[usize], distinct: u64) -> u64 {
    let plain = Options { unique: false, ..options.clone() };
    let mut rest = pairs::<u32>(lengths.iter().sum(), distinct, options.width);
    let mut all = Pairs::default();
    let mut sources = Vec::new();
    for (i, &length) in lengths.iter().enumerate() {
        let later =
            Pairs { keys: rest.keys.split_off(length), payload: rest.payload.split_off(length * options.width) };
        let run = std::mem::replace(&mut rest, later).sorted(&plain);
        all.keys.extend_from_slice(&run.keys);
        all.payload.extend_from_slice(&run.payload);
        let is_len_known = i % 3 != 1;
        sources.push(FromSlice { is_len_known, ..FromSlice::new(run, options.width) });
    }
    let expected = all.sorted(options);
    let begin = || Ok(ToVec::new(options.width, Calls::default()));
    let (target, summary) = merge(options, sources, begin, &Engine::cpu_with_threads(2).unwrap(), &mut ()).unwrap();
    let (keys_read, keys_written) = (all.keys.len() as u64, expected.keys.len() as u64);
    assert_eq!(summary, Summary { keys_read, keys_written, runs: summary.runs }, "{options:?} {lengths:?}");
    assert!(target.pairs == expected, "{options:?} {lengths:?}");
    summary.runs
}

#[test]
fn sources_of_any_length_are_merged() {
    let lengths: [&[usize]; 9] =
        [&[], &[0], &[0, 0, 0], &[5], &[1, 0, 1], &[3000, 1, 3000], &[10_000, 9_999], &[1; 50], &[777; 12]];
    for lengths in lengths {
        for (width, unique) in [(0, false), (0, true), (3, false), (4, true), (8, false)] {
            for memory in [16 << 10, 1 << 20] {
                check(&Options { width, unique, ..Options::new(memory) }, lengths, 4000);
            }
        }
    }
}

#[test]
fn equal_keys_come_from_earlier_sources_first() {
    for distinct in [1, 3, 100] {
        check(&Options { width: 4, ..Options::new(16 << 10) }, &[2000, 3000, 0, 1000, 4000], distinct);
    }
}

#[test]
fn more_sources_than_can_be_merged_at_once_are_merged_in_passes() {
    // Some sources have an unknown length.
    for (fan_in, passes) in [(2, true), (3, true), (16, false), (40, false)] {
        for width in [0, 5] {
            let options = Options { width, fan_in: Some(fan_in), ..Options::new(256 << 10) };
            assert_eq!(check(&options, &[300; 16], 1 << 30) > 0, passes, "{fan_in}");
        }
    }
}

#[test]
fn sources_that_are_not_sorted_lose_no_key() {
    let options = Options::new(16 << 10);
    let sources = [5, 6, 7].map(|seed| pairs::<u32>(9000 + seed, 1 << 31, 0));
    let count: usize = sources.iter().map(|pairs| pairs.keys.len()).sum();
    let sources = sources.map(|pairs| FromSlice::new(pairs, 0)).into();
    let begin = || Ok(ToVec::new(0, Calls::default()));
    let (target, summary) = merge(&options, sources, begin, &Engine::cpu_with_threads(2).unwrap(), &mut ()).unwrap();
    assert_eq!(summary.keys_written, count as u64);
    assert_eq!(target.pairs.keys.len(), count);
}
