//! Invalid arguments: the errors, their messages, and that nothing is written.

use merge_host::{BatchKernel, Cause, Engine, EngineKind, Error, MergeKernel, SetOperation, SortKernel, SortOrder};
use std::error::Error as _;
use std::num::ParseIntError;

#[test]
fn more_keys_than_the_address_space_are_an_error() {
    let engines = [Engine::gpu(0), Ok(Engine::auto()), Ok(Engine::cpu()), Engine::cpu_with_threads(1)];
    for engine in engines.into_iter().flatten() {
        for len in [usize::MAX, usize::MAX / 2, isize::MAX as usize / 4 + 1] {
            let error = engine.sort_streamed::<u32, Error>(
                SortOrder::Ascending,
                len,
                |_, _| panic!("nothing is to be read"),
                |_, _| panic!("nothing is to be written"),
            );
            let error = error.unwrap_err();
            let is_expected = matches!(error, Error::OutOfHostMemory { .. } | Error::OutOfDeviceMemory { .. });
            assert!(is_expected, "{len} keys: {error}, {engine:?}");
        }
    }
    let error =
        Engine::cpu().sort_streamed::<u128, Error>(SortOrder::Descending, usize::MAX, |_, _| Ok(()), |_, _| Ok(()));
    assert_eq!(error.unwrap_err(), Error::OutOfHostMemory { needed: u64::MAX });
}

#[test]
fn lengths_near_the_greatest_number_do_not_overflow() {
    refused_batch([0, 0, 1024], 1024, usize::MAX, &format!("a_len is {}, expected at most 1024 (d)", usize::MAX));
    refused_offsets(&[0, usize::MAX], &[0, usize::MAX], 10, &last_offset("a", usize::MAX, 6));
    refused_offsets(&[0, 6], &[0, usize::MAX], 10, &last_offset("b", usize::MAX, 4));
    let (mut keys, offsets) = ([3, 2, 1], [0, usize::MAX]);
    let error = Engine::cpu().sort_segments(SortOrder::Ascending, &mut keys, &offsets).unwrap_err();
    assert_eq!(error.to_string(), last_offset("the input", usize::MAX, 3));
    // A slice of zero-sized values may have `usize::MAX` elements, and a run may occur many times.
    let (runs, none) = (vec![(&[0u8; 3][..], &[(); usize::MAX][..]); 3], (&mut [][..], &mut [][..]));
    let error = Engine::cpu().merge_many(&runs, none).unwrap_err();
    assert_eq!(error, Error::ValuesMismatch { what: "a run", keys: 3, values: usize::MAX });
}

fn last_offset(what: &str, found: usize, expected: usize) -> String {
    format!("the last offset of {what} is {found}, expected {expected} (its number of keys)")
}

#[test]
fn merge_needs_an_output_of_the_right_length() {
    for kernel in MergeKernel::ALL {
        for length in [0, 7, 9] {
            let mut out = vec![7; length];
            let error = Engine::cpu().merge_with(kernel, &[1, 2, 3], &[1, 2, 3, 4, 5], &mut out).unwrap_err();
            let rule = "|a| + |b|";
            assert_eq!(error, Error::LengthMismatch { what: "out", expected: 8, found: length, rule }, "{kernel}");
            assert_eq!(error.to_string(), format!("out has {length} keys, expected 8 (|a| + |b|)"));
            assert!(out.iter().all(|&key| key == 7), "{kernel} wrote to an output of the wrong length");
        }
    }
}

#[track_caller]
fn refused_batch(lengths: [usize; 3], d: usize, a_len: usize, message: &str) -> Error {
    let [a, b, out] = lengths;
    let mut out = vec![7u64; out];
    let error = Engine::cpu().merge_batch(vec![1; a], vec![2; b], &mut out, d, a_len).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(out.iter().all(|&key| key == 7), "a refused batch wrote to its output");
    error
}

#[test]
fn batches_need_runs_of_1_to_1024_keys() {
    let error = refused_batch([0, 0, 0], 0, 0, "d is 0, expected 1 to 1024");
    assert_eq!(error, Error::BadBatchLength { d: 0 });
    let error = refused_batch([1000, 25, 1025], 1025, 1000, "d is 1025, expected 1 to 1024");
    assert_eq!(error, Error::BadBatchLength { d: 1025 });
    refused_batch([0, 0, 0], usize::MAX, 0, &format!("d is {}, expected 1 to 1024", usize::MAX));
}

#[test]
fn batches_need_a_split_inside_the_run() {
    let error = refused_batch([5, 0, 4], 4, 5, "a_len is 5, expected at most 4 (d)");
    assert_eq!(error, Error::BadSplit { a_len: 5, d: 4 });
}

#[test]
fn batches_need_whole_runs_and_the_same_number_of_each() {
    let error = refused_batch([4, 4, 9], 4, 2, "out has 9 keys, expected a multiple of 4 (d)");
    assert_eq!(error, Error::NotWholeRuns { what: "out", found: 9, run: 4 });
    refused_batch([3, 4, 8], 4, 2, "a has 3 keys, expected 4 (|out| / d * a_len)");
    refused_batch([4, 6, 8], 4, 2, "b has 6 keys, expected 4 (|out| / d * (d - a_len))");
    refused_batch([1, 8, 8], 4, 0, "a has 1 keys, expected 0 (|out| / d * a_len)");
}

/// Calls each merge of key-value pairs with these numbers of keys and values of A, B and the output.
#[track_caller]
fn refused_pairs(keys: [usize; 3], values: [usize; 3], message: &str) -> Error {
    let [a, b, _] = keys.map(|count| vec![1u32; count]);
    let [a_values, b_values, _] = values.map(|count| vec![2u64; count]);
    let mut errors = Vec::new();
    for merge in 0..3 {
        let (mut out, mut out_values) = (vec![7u32; keys[2]], vec![7u64; values[2]]);
        let (a, b, to) = ((&a[..], &a_values[..]), (&b[..], &b_values[..]), (&mut out[..], &mut out_values[..]));
        let (a_offsets, b_offsets) = ([0, a.0.len()], [0, b.0.len()]);
        let error = match merge {
            0 => Engine::cpu().merge(a, b, to),
            1 => Engine::cpu().merge_batch(a, b, to, 8, 3),
            _ => Engine::cpu().merge_ragged(((a.0, a.1), &a_offsets), ((b.0, b.1), &b_offsets), to),
        };
        errors.push(error.unwrap_err());
        assert!(out.iter().all(|&key| key == 7) && out_values.iter().all(|&value| value == 7), "wrote to its output");
    }
    assert_eq!(errors[0].to_string(), message);
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors.remove(0)
}

#[test]
fn pairs_need_a_value_for_each_key() {
    let error = refused_pairs([3, 5, 8], [2, 5, 8], "a has 3 keys and 2 values, expected a value for each key");
    assert_eq!(error, Error::ValuesMismatch { what: "a", keys: 3, values: 2 });
    refused_pairs([3, 5, 8], [4, 5, 8], "a has 3 keys and 4 values, expected a value for each key");
    refused_pairs([3, 5, 8], [3, 0, 8], "b has 5 keys and 0 values, expected a value for each key");
    refused_pairs([3, 5, 8], [3, 6, 8], "b has 5 keys and 6 values, expected a value for each key");
    refused_pairs([3, 5, 8], [3, 5, 7], "out has 8 keys and 7 values, expected a value for each key");
    refused_pairs([3, 5, 8], [3, 5, 9], "out has 8 keys and 9 values, expected a value for each key");
}

#[test]
fn a_sort_needs_a_value_or_an_index_for_each_key() {
    for length in [0, 2, 4] {
        let (mut keys, mut values) = ([3, 2, 1], vec![7u8; length]);
        let error = Engine::cpu().sort_with(SortOrder::Ascending, (&mut keys, &mut values)).unwrap_err();
        assert_eq!(error, Error::ValuesMismatch { what: "the input", keys: 3, values: length });
        assert!(keys == [3, 2, 1] && values.iter().all(|&value| value == 7), "a refused sort wrote to its input");
        let mut indices = vec![7u32; length];
        let error = Engine::cpu().argsort(SortOrder::Ascending, &keys, &mut indices).unwrap_err();
        assert_eq!(error, Error::LengthMismatch { what: "indices", expected: 3, found: length, rule: "|keys|" });
        assert_eq!(error.to_string(), format!("indices has {length} keys, expected 3 (|keys|)"));
        assert!(indices.iter().all(|&index| index == 7), "a refused argsort wrote to its output");
    }
}

#[test]
fn pairs_need_an_output_of_the_right_length() {
    for length in [0, 7, 9] {
        let (mut keys, mut values) = (vec![7; length], vec![7; length]);
        let out = (&mut keys[..], &mut values[..]);
        let error = Engine::cpu().merge((&[1, 2, 3], &[1; 3]), (&[1, 2, 3, 4, 5], &[2; 5]), out).unwrap_err();
        assert_eq!(error, Error::LengthMismatch { what: "out", expected: 8, found: length, rule: "|a| + |b|" });
        assert!(keys.iter().chain(&values).all(|&x| x == 7), "wrote to an output of the wrong length");
    }
}

#[test]
fn batches_of_pairs_need_the_lengths_that_batches_need() {
    let refused = |[a, b, out]: [usize; 3], d, a_len| {
        let (mut keys, mut values) = (vec![7u32; out], vec![7u8; out]);
        let (a, b) = ((vec![1u32; a], vec![1u8; a]), (vec![1u32; b], vec![1u8; b]));
        let out = (&mut keys[..], &mut values[..]);
        let error = Engine::cpu().merge_batch((&a.0, &a.1), (&b.0, &b.1), out, d, a_len).unwrap_err();
        assert!(keys.iter().all(|&key| key == 7) && values.iter().all(|&value| value == 7));
        error.to_string()
    };
    assert_eq!(refused([0, 0, 0], 0, 0), "d is 0, expected 1 to 1024");
    assert_eq!(refused([1000, 25, 1025], 1025, 1000), "d is 1025, expected 1 to 1024");
    assert_eq!(refused([5, 0, 4], 4, 5), "a_len is 5, expected at most 4 (d)");
    assert_eq!(refused([4, 4, 9], 4, 2), "out has 9 keys, expected a multiple of 4 (d)");
    assert_eq!(refused([3, 4, 8], 4, 2), "a has 3 keys, expected 4 (|out| / d * a_len)");
    assert_eq!(refused([4, 6, 8], 4, 2), "b has 6 keys, expected 4 (|out| / d * (d - a_len))");
}

/// Calls both ragged merges with these offsets, 6 keys of A, 4 keys of B, and an output of `out` keys.
#[track_caller]
fn refused_offsets(a: &[usize], b: &[usize], out: usize, message: &str) -> Error {
    let (a_keys, b_keys, a_values, b_values) = ([1u32; 6], [2u32; 4], [3u8; 6], [4u8; 4]);
    let (mut keys, mut values) = (vec![7u32; out], vec![7u8; out]);
    let error = Engine::cpu().merge_ragged((&a_keys, a), (&b_keys, b), &mut keys).unwrap_err();
    let (of_a, of_b) = (((&a_keys, &a_values), a), ((&b_keys, &b_values), b));
    let of_pairs = Engine::cpu().merge_ragged(of_a, of_b, (&mut keys, &mut values)).unwrap_err();
    assert_eq!((error.to_string().as_str(), &error), (message, &of_pairs));
    assert!(keys.iter().all(|&key| key == 7) && values.iter().all(|&value| value == 7), "wrote to its output");
    error
}

#[test]
fn ragged_batches_need_offsets_from_0_up_to_the_end() {
    let error = refused_offsets(&[0, 2, 6], &[0, 4], 10, "a has 3 offsets and b has 2, expected the same number");
    assert_eq!(error, Error::OffsetsMismatch { a: 3, b: 2 });
    let error = refused_offsets(&[], &[], 10, "there are no offsets, expected one more than there are runs");
    assert_eq!(error, Error::NoOffsets);
    let error = refused_offsets(&[1, 6], &[0, 4], 10, "the first offset of a is 1, expected 0");
    assert_eq!(error, Error::FirstOffset { what: "a", found: 1 });
    refused_offsets(&[0, 6], &[4, 4], 10, "the first offset of b is 4, expected 0");
    let error =
        refused_offsets(&[0, 3, 5, 4, 6], &[0, 1, 2, 3, 4], 10, "offset 3 of a is 4, less than the one before it (5)");
    assert_eq!(error, Error::DescendingOffsets { what: "a", index: 3, found: 4, before: 5 });
    refused_offsets(&[0, 3, 6], &[0, 5, 4], 10, "offset 2 of b is 4, less than the one before it (5)");
    refused_offsets(
        &[0, usize::MAX, 6],
        &[0, 2, 4],
        10,
        &format!("offset 2 of a is 6, less than the one before it ({})", usize::MAX),
    );
    let error =
        refused_offsets(&[0, 2, 5], &[0, 2, 4], 10, "the last offset of a is 5, expected 6 (its number of keys)");
    assert_eq!(error, Error::LastOffset { what: "a", found: 5, expected: 6 });
    refused_offsets(&[0, 2, 6], &[0, 2, 5], 10, "the last offset of b is 5, expected 4 (its number of keys)");
    refused_offsets(&[0], &[0], 10, "the last offset of a is 0, expected 6 (its number of keys)");
    let error = refused_offsets(&[0, 2, 6], &[0, 2, 4], 9, "out has 9 keys, expected 10 (|a| + |b|)");
    assert_eq!(error, Error::LengthMismatch { what: "out", expected: 10, found: 9, rule: "|a| + |b|" });
    refused_offsets(&[0, 2, 6], &[0, 2, 4], 11, "out has 11 keys, expected 10 (|a| + |b|)");
}

#[test]
fn engines_need_1_to_4096_threads() {
    let refused = |threads| Engine::cpu_with_threads(threads).unwrap_err().to_string();
    assert_eq!(refused(0), "cannot use 0 threads: at least 1 is needed");
    assert_eq!(refused(4097), "cannot use 4097 threads: at most 4096 are allowed");
    assert!(Engine::cpu_with_threads(4096).is_ok());
}

/// Checks that each value parses from its own name, and that the error for another name lists all names.
macro_rules! check_names {
    ($type:ident, $what:literal, $expected:literal) => {
        let names = $type::ALL.map(|value| value.to_string());
        assert_eq!(names.join(", "), $expected);
        assert_eq!(names.each_ref().map(|name| name.parse()), $type::ALL.map(Ok));
        assert_eq!(format!("{:>22}", $type::ALL[0]), format!("{:>22}", names[0]), "padded");
        for wrong in ["", "fast", &names[0].to_uppercase(), &format!("{} ", names[0])] {
            let error = wrong.parse::<$type>().unwrap_err();
            let message = concat!("expected one of ", $expected);
            assert_eq!(error.to_string(), format!("there is no {} `{wrong}`, {message}", $what));
            assert_eq!(error, Error::UnknownName { what: $what, name: wrong.to_owned(), expected: $expected });
        }
    };
}

#[test]
fn values_have_names() {
    check_names!(MergeKernel, "merge kernel", "auto, basic, tiled, circular, merge-path");
    check_names!(SortKernel, "sort kernel", "auto, merge-path");
    check_names!(BatchKernel, "batch kernel", "auto, small");
    check_names!(SortOrder, "order", "ascending, descending");
    check_names!(SetOperation, "set operation", "union, intersection, difference, symmetric-difference");
    check_names!(EngineKind, "engine", "cpu, gpu");
}

#[test]
fn a_device_error_gives_its_code_and_its_cause() {
    let (call, reason) = ("cuLaunchKernel".to_owned(), "lost".to_owned());
    let error = |cause| Error::Device { call: call.clone(), reason: reason.clone(), code: Some(719), cause };
    assert!(error(None).source().is_none());
    let cause = || Some(Cause::from("x".parse::<u32>().unwrap_err()));
    assert_eq!(error(cause()).to_string(), "cuLaunchKernel failed: lost");
    assert!(error(cause()).source().unwrap().is::<ParseIntError>());
    assert_eq!(error(cause()), error(cause()), "causes with the same text");
    assert_ne!(error(cause()), error(None));
    assert_ne!(error(cause()), error(Some("".parse::<u32>().unwrap_err().into())));
}

#[test]
fn other_messages_name_the_cause() {
    let messages = [
        (Error::NoDevice { reason: "no driver".into() }, "no GPU: no driver"),
        (
            Error::Device { call: "cuLaunchKernel".into(), reason: "lost".into(), code: None, cause: None },
            "cuLaunchKernel failed: lost",
        ),
        (Error::OutOfDeviceMemory { needed: 800, free: 100 }, "the GPU has 100 bytes of memory free, 800 are needed"),
        (Error::OutOfHostMemory { needed: 64 }, "no host memory for 64 more bytes"),
        (
            Error::DeviceOrdinal { ordinal: 2, count: 2 },
            "there is no GPU 2, the number of GPUs is 2 and the first is GPU 0",
        ),
        (
            Error::NoKernels { key: "u128" },
            "the GPU has no kernels for u128 keys, only for integers and floats of 1 to 8 bytes, and sorts of 16 \
             bytes: use the CPU",
        ),
        (Error::NoGpuSupport, "this build has no GPU engine (the feature `gpu` is off)"),
    ];
    for (error, message) in messages {
        assert_eq!(error.to_string(), message);
    }
}
