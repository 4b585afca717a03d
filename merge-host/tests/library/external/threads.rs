//! Threads that do not start.

use super::slices::{Calls, FromSlice, ToVec, pairs};
use merge_host::external::{Error, Options, merge, sort};
use merge_host::{Engine, parallel};
use std::env;
use std::process::Command;

/// Names the case of a child process.
const CASE: &str = "EXTERNAL_TEST_CASE";

fn sorted(count: usize) -> Result<(), Error<String>> {
    let engine = Engine::cpu_with_threads(1).unwrap();
    let source = FromSlice::new(pairs::<u32>(count, 1 << 30, 0), 0);
    let begin = || Ok(ToVec::new(0, Calls::default()));
    sort(&Options::new(16 << 10), source, begin, &mut &engine, &mut ()).map(drop)
}

/// No thread starts in this process, unless its stack has an explicit size.
fn check(case: &str) {
    if case == "pool" {
        // Parallel loops then run on the calling thread.
        for _ in 0..2 {
            sorted(10).unwrap();
            assert_eq!(parallel::map(0..3, |i| i * i), [0, 1, 4]);
            assert_eq!(parallel::join(|| 1, || 2), (1, 2));
        }
        return;
    }
    rayon::ThreadPoolBuilder::new().stack_size(1 << 20).build_global().unwrap();
    // A sort without runs needs no thread.
    sorted(10).unwrap();
    let engine = Engine::cpu_with_threads(1).unwrap();
    let begin = || Ok(ToVec::new(0, Calls::default()));
    let sources = vec![FromSlice::new(pairs::<u32>(10, 1, 0), 0)];
    let merged = merge(&Options::new(16 << 10), sources, begin, &engine, &mut ()).map(drop);
    for result in [sorted(10_000), merged] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Thread(_)), "{error}");
        assert!(error.to_string().starts_with("cannot start a thread: "), "{error}");
    }
}

#[test]
fn threads_that_do_not_start_are_errors() {
    if let Ok(case) = env::var(CASE) {
        return check(&case);
    }
    for case in ["pool", "readers and writers"] {
        // No machine has memory for a stack of this size.
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "external::threads::threads_that_do_not_start_are_errors", "--test-threads=1"])
            .envs([(CASE, case), ("RUST_MIN_STACK", "70368744177664")])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{case}: {text}");
    }
}
