//! The GPU engine and the program on emulated GPUs: the driver of `examples/driver.rs` in place of NVIDIA's.
#![cfg(target_os = "linux")]

mod failures;
mod operations;
mod streams;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{env, fs, thread};

/// The driver's settings, which are also the sign that a process is a child of a test.
const SETTINGS: &str = "EMULATED_GPU";

/// How long a process may take. One that hangs fails its test.
const LIMIT: Duration = Duration::from_secs(300);

/// A folder in which the library of the emulated driver has the name of NVIDIA's.
static DRIVER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    symlink(example("libdriver.so"), folder.path().join("libcuda.so.1")).unwrap();
    folder
});

/// An example of this package, which `cargo test` builds beside the tests.
fn example(name: &str) -> PathBuf {
    let path = env::current_exe().unwrap().parent().unwrap().with_file_name("examples").join(name);
    assert!(path.exists(), "{} is missing: build it with cargo build -p emulated-gpu --examples", path.display());
    path
}

/// Lets a program use the emulated driver with these settings and a log.
fn on_emulated_gpus(command: &mut Command, settings: &str, log: &Path) {
    command.env("LD_LIBRARY_PATH", DRIVER.path()).env(SETTINGS, format!("{settings},log={}", log.display()));
}

/// Runs `work` in another process, on emulated GPUs with these settings. `test` is the calling test.
fn in_process(test: &str, settings: &str, work: impl FnOnce()) {
    if env::var_os(SETTINGS).is_some() {
        return work();
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]);
    on_emulated_gpus(&mut command, settings, &log);
    let status = ends(&mut command.spawn().unwrap());
    assert_eq!(faults(&log), "", "{test} on emulated GPUs with {settings}");
    assert!(status.success(), "{test} on emulated GPUs with {settings}: {status}");
}

/// Waits until a process has ended.
fn ends(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("a process has not ended after {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The lines of the driver's log that report mistakes of the driver's user.
fn faults(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    log.lines().filter(|line| line.starts_with("fault")).collect::<Vec<_>>().join("\n")
}

/// Standard output and standard error, which a test reads.
fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// SplitMix64 (Steele, Lea and Flood, 2014), with a seed that it prints.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = env::var("GMERGE_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 % 1_000_000);
        println!("GMERGE_TEST_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        tests::distribution::mix(self.0)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Offsets of runs of random lengths, some of them empty, which end with `len`.
    fn offsets(&mut self, runs: usize, len: usize) -> Vec<usize> {
        let mut offsets: Vec<usize> = (1..runs).map(|_| self.below(len + 1)).collect();
        offsets.extend([0, len]);
        offsets.sort();
        offsets
    }
}
