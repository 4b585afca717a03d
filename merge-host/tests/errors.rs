//! What is refused, in which words, and that nothing is written then.

use merge_host::{Engine, Error, MergeKernel};

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
    let error = Engine::cpu().merge_batch(&vec![1; a], &vec![2; b], &mut out, d, a_len).unwrap_err();
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
fn batches_need_whole_runs_and_as_many_of_each() {
    let error = refused_batch([4, 4, 9], 4, 2, "out has 9 keys, expected a multiple of 4 (d)");
    assert_eq!(error, Error::NotWholeRuns { what: "out", found: 9, run: 4 });
    refused_batch([3, 4, 8], 4, 2, "a has 3 keys, expected 4 (|out| / d * a_len)");
    refused_batch([4, 6, 8], 4, 2, "b has 6 keys, expected 4 (|out| / d * (d - a_len))");
    refused_batch([1, 8, 8], 4, 0, "a has 1 keys, expected 0 (|out| / d * a_len)");
}

#[test]
fn engines_need_1_to_4096_threads() {
    let refused = |threads| Engine::cpu_with_threads(threads).unwrap_err().to_string();
    assert_eq!(refused(0), "cannot use 0 threads: at least 1 is needed");
    assert_eq!(refused(4097), "cannot use 4097 threads: at most 4096 are allowed");
    assert!(Engine::cpu_with_threads(4096).is_ok());
}

#[test]
fn kernels_are_known_by_their_names() {
    for kernel in MergeKernel::ALL {
        assert_eq!(kernel.to_string().parse(), Ok(kernel));
    }
    let error = "fast".parse::<MergeKernel>().unwrap_err();
    let names = MergeKernel::ALL.map(|kernel| kernel.to_string()).join(", ");
    assert_eq!(error.to_string(), format!("there is no merge kernel `fast`, expected one of {names}"));
}

#[test]
fn other_messages_name_what_is_missing() {
    let messages = [
        (Error::NoDevice { reason: "no driver".into() }, "no GPU: no driver"),
        (Error::Device { call: "cuLaunchKernel".into(), reason: "lost".into() }, "cuLaunchKernel failed: lost"),
        (Error::OutOfDeviceMemory { needed: 800, free: 100 }, "the GPU has 100 bytes of memory free, 800 are needed"),
        (Error::OutOfHostMemory { needed: 64 }, "no host memory for 64 more bytes"),
        (Error::DeviceOrdinal { ordinal: 2, count: 2 }, "there is no GPU 2, only 2 of them, counted from 0"),
        (Error::NoGpuSupport, "this build has no GPU engine (the feature `gpu` is off)"),
    ];
    for (error, message) in messages {
        assert_eq!(error.to_string(), message);
    }
}
