//! Sorts of all sizes and shapes.

use super::slices::{Calls, FromSlice, Pairs, ToVec, pairs};
use merge_host::external::{Options, Summary, sort};
use merge_host::{Engine, Word};

fn engine() -> Engine {
    Engine::cpu_with_threads(2).unwrap()
}

/// Sorts a source of known length and a source of unknown length, and returns the number of runs of the first sort.
fn check<W: Word>(options: &Options, input: &Pairs<W>) -> u64 {
    let expected = input.sorted(options);
    let engine = engine();
    let runs = [true, false].map(|is_len_known| {
        let source = FromSlice { is_len_known, ..FromSlice::new(input.clone(), options.width) };
        let begin = || Ok(ToVec::new(options.width, Calls::default()));
        let (target, summary) = sort(options, source, begin, &mut &engine, &mut ()).unwrap();
        let (read, written) = (input.keys.len() as u64, expected.keys.len() as u64);
        assert_eq!(summary, Summary { keys_read: read, keys_written: written, runs: summary.runs });
        assert!(target.pairs == expected, "{options:?}, {read} keys, length known: {is_len_known}");
        summary.runs
    });
    runs[0]
}

#[test]
fn sizes_around_every_edge_are_sorted() {
    for width in [0, 1, 3, 4, 8, 100] {
        let options = Options { width, ..Options::new(16 << 10) };
        let shape = options.shape::<u32>();
        let (most, chunk) = (shape.most_in_memory(16 << 10) as usize, shape.chunk(16 << 10, None).unwrap());
        for edge in [1, chunk, most, most + chunk, 3 * chunk, 20 * chunk] {
            for count in [edge - 1, edge, edge + 1] {
                let runs = check(&options, &pairs::<u32>(count, 1 << 31, width));
                assert_eq!(runs == 0, count <= most, "{count} of {most}, {width}");
            }
        }
    }
}

#[test]
fn words_of_every_size_are_sorted() {
    fn check_word<W: Word + TryFrom<u64>>() {
        for width in [0, 4, 5] {
            for unique in [false, true] {
                let options = Options { width, unique, ..Options::new(16 << 10) };
                assert!(check(&options, &pairs::<W>(14_000, 1 << 40, width)) > 0);
            }
        }
    }
    check_word::<u8>();
    check_word::<u16>();
    check_word::<u32>();
    check_word::<u64>();
    check_word::<u128>();
}

#[test]
fn equal_keys_keep_their_order() {
    for (distinct, width) in [(1, 4), (2, 3), (10, 8), (1000, 100)] {
        for unique in [false, true] {
            let options = Options { width, unique, ..Options::new(128 << 10) };
            assert!(check(&options, &pairs::<u64>(20_000, distinct, width)) > 0);
        }
    }
}

#[test]
fn any_memory_gives_the_same_result() {
    let input = pairs::<u64>(3000, 700, 3);
    for memory in [16 << 10, 17_000, 20_000, 100_000, 1 << 20, 1 << 40, u64::MAX] {
        for fan_in in [None, Some(0), Some(2), Some(3)] {
            check(&Options { width: 3, fan_in, ..Options::new(memory) }, &input);
        }
    }
}

#[test]
fn few_runs_at_once_take_more_passes() {
    let input = pairs::<u32>(40_000, 1 << 20, 4);
    for unique in [false, true] {
        let options = Options { width: 4, unique, ..Options::new(32 << 10) };
        let chunks = 40_000u64.div_ceil(options.shape::<u32>().chunk(options.memory, None).unwrap() as u64);
        assert_eq!((chunks, options.shape::<u32>().fan_in(options.memory, None).unwrap()), (40, 16));
        // Two merges to runs, of 16 and of 10 runs, leave 16 runs.
        assert_eq!(check(&options, &input), chunks + 2);
        // Each merge of two runs leaves one run less, until two are left.
        assert_eq!(check(&Options { fan_in: Some(2), ..options }, &input), chunks + chunks - 2);
    }
}

#[test]
fn a_source_that_ends_early_gives_fewer_keys() {
    struct Short(FromSlice<u32>);
    impl merge_host::external::Source<u32> for Short {
        type Error = String;
        fn len(&self) -> Option<u64> {
            Some(5000)
        }
        fn read(&mut self, keys: &mut [u32], payload: &mut [u8]) -> Result<usize, String> {
            self.0.read(keys, payload)
        }
    }
    for (memory, count) in [(1 << 20, 4000), (16 << 10, 4000), (1 << 20, 6000), (16 << 10, 6000)] {
        let input = pairs::<u32>(count, 1 << 30, 0);
        let options = Options::new(memory);
        let begin = || Ok(ToVec::new(0, Calls::default()));
        let source = Short(FromSlice::new(input.clone(), 0));
        let (target, summary) = sort(&options, source, begin, &mut &engine(), &mut ()).unwrap();
        // No more keys are read than the source's length.
        let read = Pairs { keys: input.keys[..count.min(5000)].to_vec(), payload: Vec::new() };
        assert_eq!(summary.keys_read, count.min(5000) as u64);
        assert!(target.pairs == read.sorted(&options), "{memory} {count}");
    }
}

#[test]
fn the_example_sorts_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let mut keys = pairs::<u64>(300_000, u64::MAX, 0).keys;
    std::fs::write(&input, bytemuck::cast_slice(&keys)).unwrap();
    let summary = super::example::sort_file(&input, &output, 1 << 20).unwrap();
    assert!(summary.runs > 1);
    keys.sort();
    assert!(std::fs::read(&output).unwrap() == bytemuck::cast_slice::<u64, u8>(&keys));
}
