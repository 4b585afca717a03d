//! The GPU engine and the program on emulated GPUs: the driver of `examples/driver.rs` in place of NVIDIA's.
#![cfg(target_os = "linux")]

mod counted;
mod failures;
mod operations;
mod streams;
mod widths;

use rand::SeedableRng;
use rand::rngs::StdRng;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// The driver's settings, which are also the sign that a process is a child of a test.
const SETTINGS: &str = "EMULATED_GPU";

/// How long a process may take.
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
    let what = format!("{test} on emulated GPUs with {settings}");
    let status = ended(&what, command.spawn().unwrap()).status;
    assert_eq!(faults(&log), "", "{what}");
    assert!(status.success(), "{what}: {status}");
}

/// Waits until a process has ended. One that hangs is killed, and fails its test.
fn ended(what: &str, mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{what} has not ended after {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().unwrap()
}

/// The lines of the driver's log that report mistakes of the driver's user.
fn faults(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    log.lines().filter(|line| line.starts_with("fault")).collect::<Vec<_>>().join("\n")
}

/// Random numbers by a seed that is printed.
fn random() -> StdRng {
    let seed = env::var("GMERGE_TEST_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("GMERGE_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}
