//! Limits of the system: threads, memory and open files, and the folder for temporary files.
//!
//! Limits are set in the child, between fork and exec. The limit of threads does not apply to root. Tests of this limit
//! run the program as another user if root runs them.

use crate::common::{Folder, GMERGE, Run, cannot_run, spawn, wait_until};
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A user who owns no process and no file.
const OTHER_USER: u32 = 54_321;
/// Threads of a run outside the pool of `--parallel`: main, signals, progress, a reader and a writer.
const OTHER_THREADS: usize = 5;
/// A number of keys that justifies several threads.
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
    // SAFETY: between fork and exec, the closure only calls setrlimit(2), which is a plain system call. It takes no
    // lock, and nothing in the closure allocates.
    unsafe { command.pre_exec(move || Ok(setrlimit(resource, limit)?)) };
    command
}

/// Checks that the run sorted, perhaps with a warning about threads, or failed with a message. Returns whether it
/// sorted.
#[track_caller]
fn sorts_or_fails(folder: &Folder, command: &mut Command) -> bool {
    let run = Run::of(command);
    if run.code() != Some(0) {
        // A warning may precede the error.
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

/// A control group that limits memory, and a folder in memory. Dropping this removes both.
struct Group {
    path: PathBuf,
    shm: tempfile::TempDir,
}

impl Group {
    /// Only the superuser can make a group, and not in most containers.
    fn new(limit: u64) -> Self {
        let name = format!("gmerge-test-{}", std::process::id());
        let limits = [("memory", "memory.limit_in_bytes"), ("", "memory.max")];
        let made = limits.iter().find_map(|(controller, file)| {
            let path = Path::new("/sys/fs/cgroup").join(controller).join(&name);
            fs::create_dir(&path).ok()?;
            let limited = fs::write(path.join(file), limit.to_string());
            limited.map_err(|_| fs::remove_dir(&path)).ok().map(|()| path)
        });
        let path = made.unwrap_or_else(|| cannot_run("no control group can be made that limits memory"));
        // With swap, exceeding the limit would not kill a process.
        let _ = fs::write(path.join("memory.swap.max"), "0");
        Self { path, shm: tempfile::tempdir_in("/dev/shm").unwrap() }
    }

    /// Runs a shell script. In it, `gmerge` runs the program in this group, and SHM is the folder in memory.
    fn shell(&self, folder: &Folder, script: &str) -> Run {
        let procs = self.path.join("cgroup.procs");
        let script = script.replace("SHM", self.shm.path().to_str().unwrap());
        let run = folder.shell(&format!("echo $$ > {} && {script}", procs.display()));
        fs::read_dir(self.shm.path()).unwrap().for_each(|entry| fs::remove_file(entry.unwrap().path()).unwrap());
        run
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

#[test]
#[ignore = "needs the right to make control groups"]
fn a_control_group_kills_no_run_for_its_memory() {
    let group = Group::new(64 << 20);
    let folder = Folder::new();
    // Three quarters of the group's memory.
    folder.run("gen -n 6000000 -o in.u64").succeeds();
    folder.run("sort in.u64 -o sorted.u64").succeeds();
    folder.write("empty.u64", &[0u64; 0]);
    for command in [
        "sort in.u64 -u -o SHM/out.u64",
        "sort in.u64 -u -o SHM/out.arrow",
        "sort in.u64 --argsort -o SHM/out.u64",
        "sort in.u64 --argsort -o out.u32",
        "sort in.u64 --top 4000000 -o SHM/out.u64",
        "sort in.u64 --record-size 16 --key 0:u64 -o SHM/out",
        "merge -u sorted.u64 sorted.u64 -o SHM/out.u64",
        "union sorted.u64 sorted.u64 -o SHM/out.u64",
        "difference sorted.u64 empty.u64 -o SHM/out.u64",
    ] {
        group.shell(&folder, &format!("gmerge {command} --engine cpu")).succeeds();
    }
    // Input beyond the memory, of unknown length.
    for command in ["sort - --type u64 -o SHM/out.u64", "merge - sorted.u64 -o SHM/out.u64 --assume-sorted"] {
        let run = group.shell(&folder, &format!("cat sorted.u64 sorted.u64 | gmerge {command} --engine cpu"));
        run.fails(2, &["out.u64: No space left on device"]);
    }
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
fn where_memory_is_exhausted_it_says_so_in_one_line() {
    let folder = Folder::new();
    let sorted: Vec<u64> = (0..200_000).collect();
    folder.write("a.u64", &sorted);
    folder.write("in.u64", &sorted.iter().rev().copied().collect::<Vec<_>>());
    folder.write("a.rows", &vec![7u8; 12 * sorted.len()]);
    folder.write("names", b"a.u64\0".repeat(30).as_slice());
    // With less memory, the program cannot be mapped, and no code of it runs.
    let starts =
        |kilobytes: &u64| Run::of(&mut limited(&folder, Resource::As, kilobytes << 10, "--version")).code() == Some(0);
    let least = (8_000..200_000).step_by(500).find(starts).unwrap();
    for arguments in [
        "sort in.u64 -o out",
        "sort in.u64 -o out --argsort",
        "sort in.u64 -o out -S 1M -T . --unique",
        "sort in.u64 -o out --values a.rows --values-out outv",
        "sort in.u64 -o out --record-size 8 --key 0:bytes8",
        "sort in.u64 -o out --segment-len 1000",
        "merge --files0-from names -o out --engine cpu",
        "union a.u64 a.u64 -o out",
        "batch a.u64 a.u64 -o out -d 2",
        "check a.u64",
        "gen -n 1000000 -o out.u64",
        "sort --numeric-sort",
        "man",
    ] {
        let (mut failed, mut done) = (0, 0);
        // With each limit, another allocation may be the first to fail.
        for kilobytes in (least..least + 26_000).step_by(2657) {
            let run = Run::of(&mut limited(&folder, Resource::As, kilobytes << 10, arguments));
            let stderr = run.stderr();
            let lines: Vec<_> = stderr.lines().filter(|line| !line.starts_with("gmerge: warning: threads: ")).collect();
            match run.code() {
                Some(0) => (done, _) = (done + 1, assert_eq!(lines.len(), 0, "{arguments}, {kilobytes} kB: {stderr}")),
                code => {
                    assert_eq!((code, lines.len()), (Some(2), 1), "{arguments}, {kilobytes} kB: {stderr}");
                    assert!(lines[0].starts_with("gmerge: ") && !stderr.contains("internal error"), "{stderr}");
                    failed += 1;
                }
            }
        }
        println!("{arguments}: {failed} failed, {done} done");
    }
    assert!(folder.files().iter().all(|name| !name.contains("gmerge")), "{:?}", folder.files());
}

#[test]
fn indices_that_do_not_fit_are_refused_at_once() {
    let folder = Folder::new();
    let sparse = |name: &str, length: u64| fs::File::create(folder.path(name)).unwrap().set_len(length);
    let made = [("half.u8", (1 << 30) + 1), ("i32.u8", (1 << 31) + 1), ("u32.u8", (1 << 32) + 1), ("i16.u16", 1 << 33)];
    if let Err(error) = made.iter().try_for_each(|(name, length)| sparse(name, *length)) {
        return eprintln!("not run: no sparse files here: {error}");
    }
    let begin = Instant::now();
    for (arguments, found) in [
        ("i32.u8 -o out.i32", "at most 2147483648 keys, found at least 2147483649"),
        ("i32.u8 -o out.i32be --reverse", "at most 2147483648 keys, found at least 2147483649"),
        ("i32.u8 -o out.i32 --unique", "at most 2147483648 keys, found at least 2147483649"),
        ("i32.u8 -o out.i32 -S 1M", "at most 2147483648 keys, found at least 2147483649"),
        ("i32.u8 -o out.i32 --format npy", "at most 2147483648 keys, found at least 2147483649"),
        ("i32.u8 -o out.i32 --format arrow", "at most 2147483648 keys, found at least 2147483649"),
        ("i16.u16 -o out.i32", "at most 2147483648 keys, found at least 4294967296"),
        ("half.u8 half.u8 -o out.i32", "at most 2147483648 keys, found at least 2147483650"),
        ("u32.u8 -o out.i32", "at most 2147483648 keys, found at least 4294967297"),
        ("u32.u8 -o out.u32", "at most 4294967296 keys, found at least 4294967297"),
        ("u32.u8 -o out.u32 --format npy", "at most 4294967296 keys, found at least 4294967297"),
        ("u32.u8 -o out.u32be --format arrows", "at most 4294967296 keys, found at least 4294967297"),
    ] {
        let output = arguments.split(' ').find(|name| name.starts_with("out")).unwrap();
        folder
            .run(&format!("sort {arguments} --argsort"))
            .fails(2, &[output, "numbers hold the indices of", found, ".u64"]);
        assert!(!folder.path(output).exists());
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
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
    // Chunks of 4 MiB: the first chunks are sorted before the last ones arrive.
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
    // /proc accepts no files, even from root.
    sort("/proc", "-S 4M").fails(2, &["gmerge: TMPDIR: /proc: cannot create a temporary file"]);
    for arguments in ["-S 4M -T /proc", "-T /proc", "-S 4M --values in.u64 --values-out v --tmp-dir /proc"] {
        sort("", arguments).fails(2, &["gmerge: --tmp-dir /proc: cannot create a temporary file"]);
    }
    sort("/nonexistent", "-S 4M --tmp-dir none").fails(2, &["gmerge: --tmp-dir none: ", "No such file or directory"]);
    sort("/nonexistent", "-S 4M --tmp-dir .").succeeds();
    sort(".", "-S 4M").succeeds();
    // An empty variable counts as unset.
    sort("", "-S 4M").succeeds();
    // A sort without a temporary file needs no folder.
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
