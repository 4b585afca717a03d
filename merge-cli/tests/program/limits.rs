//! Limits of the system: threads, memory and open files, and the folder for temporary files.
//!
//! Limits are set in the child, between fork and exec. The limit of threads does not hold for root, so that tests of it
//! run the program as another user if root runs them.

use crate::common::{Folder, GMERGE, Run, spawn, wait_until};
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A user who owns no process and no file.
const OTHER_USER: u32 = 54_321;
/// Threads that a run may have besides those of `--parallel`: main, signals, progress, a reader and a writer.
const OTHER_THREADS: usize = 5;
/// Keys whose sort is worth several threads.
const MANY: u64 = 1 << 20;

/// A folder that every user can write to, with the file `in.u64` of `MANY` keys in descending order.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::set_permissions(folder.path(""), PermissionsExt::from_mode(0o777)).unwrap();
    folder.write("in.u64", &(0..MANY).rev().collect::<Vec<u64>>());
    folder
}

/// The program with these arguments and this limit.
fn limited(folder: &Folder, resource: Resource, limit: u64, arguments: &str) -> Command {
    let mut command = folder.command(GMERGE);
    command.args(arguments.split_whitespace());
    let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
    // SAFETY: setrlimit(2) is async-signal-safe, and nothing here allocates.
    unsafe { command.pre_exec(move || Ok(setrlimit(resource, limit)?)) };
    command
}

/// It sorted, perhaps with a warning about threads, or it failed with a message. Returns whether it sorted.
#[track_caller]
fn sorts_or_fails(folder: &Folder, command: &mut Command) -> bool {
    let run = Run::of(command);
    if run.code() != Some(0) {
        // A warning may come before the error.
        let stderr = run.stderr();
        let lines: Vec<_> = stderr.lines().filter(|line| !line.starts_with("gmerge: warning: threads: ")).collect();
        assert_eq!((run.code(), lines.len()), (Some(2), 1), "{command:?}: {stderr}");
        assert!(lines[0].starts_with("gmerge: ") && !stderr.contains("internal error"), "{command:?}: {stderr}");
        return false;
    }
    let found = folder.read::<u64>("out.u64");
    assert!(found.into_iter().eq(0..MANY), "{command:?}");
    fs::remove_file(folder.path("out.u64")).unwrap();
    true
}

#[test]
fn where_few_threads_can_be_started_it_works_with_those_or_fails() {
    let folder = folder();
    for arguments in ["--parallel 64", "-S 4M", "-S 4M --parallel 64"] {
        let arguments = format!("sort in.u64 -o out.u64 --engine cpu {arguments}");
        let sorted = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16].map(|threads| {
            let mut command = limited(&folder, Resource::Nproc, threads, &arguments);
            if geteuid().is_root() {
                command.uid(OTHER_USER);
            }
            sorts_or_fails(&folder, &mut command)
        });
        if geteuid().is_root() {
            assert!(!sorted[0] && sorted[9], "{arguments}: {sorted:?}");
        }
    }
}

#[test]
fn where_little_can_be_mapped_it_sorts_in_chunks_or_fails() {
    let folder = folder();
    for arguments in ["", "--parallel 64", "--parallel 2 -S 4M"] {
        let arguments = format!("sort in.u64 -o out.u64 --engine cpu {arguments}");
        let sorted = [90, 100, 120, 150, 200, 300]
            .map(|megabytes| sorts_or_fails(&folder, &mut limited(&folder, Resource::As, megabytes << 20, &arguments)));
        assert!(sorted[5], "{arguments}: {sorted:?}");
    }
}

#[test]
fn a_few_keys_start_one_thread_whatever_is_asked_for() {
    let folder = Folder::new();
    folder.write("in.u32", &(0..1000).rev().collect::<Vec<u32>>());
    let begin = Instant::now();
    let run = folder.run("sort in.u32 -o out.u32 --engine cpu --parallel 4096 -v");
    let elapsed = begin.elapsed();
    assert!(run.stderr().contains("threads to read, sort and write: 1, as many as have work\n"), "{}", run.stderr());
    assert!(folder.read::<u32>("out.u32").into_iter().eq(0..1000));
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[test]
fn a_sort_in_chunks_has_no_more_threads_than_it_was_given() {
    const THREADS: usize = 4;
    let folder = Folder::new();
    let arguments = format!("sort - -o out.u64 --engine cpu --parallel {THREADS} --memory 16M");
    let mut command = folder.command(GMERGE);
    let mut child = spawn(command.args(arguments.split_whitespace()).stdin(Stdio::piped()));
    let mut pipe = child.stdin.take().unwrap();
    let keys: Vec<u64> = (0..MANY).rev().collect();
    let chunk: &[u8] = bytemuck::cast_slice(&keys);
    let tasks = format!("/proc/{}/task", child.id());
    let count = || fs::read_dir(&tasks).map_or(0, Iterator::count);
    // Chunks of 4 MiB: the first ones are sorted while others are still to come.
    for _ in 0..4 {
        pipe.write_all(chunk).unwrap();
    }
    wait_until("the pool has started", || count() > THREADS);
    let mut most = 0;
    for _ in 0..100 {
        most = most.max(count());
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(pipe);
    assert!(child.wait().unwrap().success());
    assert_eq!(folder.read::<u64>("out.u64").len() as u64, 4 * MANY);
    assert!((THREADS + 1..=THREADS + OTHER_THREADS).contains(&most), "{most} threads");
}

#[test]
fn a_folder_for_temporary_files_is_named_as_it_was_given() {
    let folder = folder();
    let sort = |variable: &str, arguments: &str| {
        let mut command = folder.command(GMERGE);
        command.args("sort in.u64 -o out.u64 --engine cpu".split(' ')).args(arguments.split_whitespace());
        Run::of(command.env("TMPDIR", variable))
    };
    sort("/nonexistent", "-S 4M").fails(2, &["gmerge: TMPDIR: /nonexistent: ", "No such file or directory"]);
    sort("in.u64", "-S 4M").fails(2, &["gmerge: TMPDIR: in.u64: ", "Not a directory"]);
    sort("/nonexistent", "-S 4M --tmp-dir none").fails(2, &["gmerge: --tmp-dir none: ", "No such file or directory"]);
    sort("/nonexistent", "-S 4M --tmp-dir .").succeeds();
    sort(".", "-S 4M").succeeds();
    // Empty is as if it were not set.
    sort("", "-S 4M").succeeds();
    // What needs no temporary file needs no folder for it.
    sort("/nonexistent", "-S 1G").succeeds();
    assert_eq!(folder.files(), ["in.u64", "out.u64"]);
}

#[test]
fn more_files_than_can_be_open_are_read_in_several_passes() {
    let folder = Folder::new();
    let mut expected = Vec::new();
    let mut names = String::new();
    for i in 0..300u64 {
        let keys: Vec<u64> = (0..2000).map(|j| (j * 7919 + i * 104_729) % 1_000_003).collect();
        let mut sorted = keys.clone();
        sorted.sort();
        folder.write(&format!("{i}.u64"), &sorted);
        folder.write(&format!("{i}.rows"), &sorted.iter().map(|key| !key).collect::<Vec<u64>>());
        expected.extend(keys);
        names += &format!(" {i}.u64");
    }
    expected.sort();
    let values = names.replace(".u64", ".rows");
    for options in ["", "-S 2M", "-S 1M --batch-size 5"] {
        folder.shell(&format!("ulimit -n 64; gmerge merge {names} -o out.u64 {options}")).succeeds();
        assert_eq!(folder.read::<u64>("out.u64"), expected, "{options}");
        folder.shell(&format!("ulimit -n 64; gmerge sort {names} -o out.u64 {options}")).succeeds();
        assert_eq!(folder.read::<u64>("out.u64"), expected, "{options}");
        let command = format!("gmerge merge {names} --values {values} -o out.u64 --values-out out.rows {options}");
        folder.shell(&format!("ulimit -n 64; {command}")).succeeds();
        assert_eq!(folder.read::<u64>("out.u64"), expected, "{options}");
        assert!(folder.read::<u64>("out.rows").iter().zip(&expected).all(|(value, key)| *value == !key), "{options}");
    }
}
