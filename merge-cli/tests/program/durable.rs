//! Which files a run syncs, and the order of its renames: seen in the system calls, if strace(1) is installed.

use crate::common::{Folder, GMERGE, Run, cannot_run};
use std::fs;
use std::process::Stdio;
use std::thread;

/// The system calls to trace.
const CALLS: &str = "fsync,syncfs,ftruncate,linkat,renameat,renameat2,rename,flock,pwrite64,write";

/// The names of the system calls of a run, with those of files that calls have.
fn calls(folder: &Folder, arguments: &str) -> Vec<String> {
    let trace = folder.path("trace");
    let mut command = folder.command("strace");
    command.args(["-f", "-qq", "-y", "-o"]).arg(&trace).args(["-e", &format!("trace={CALLS}"), GMERGE]);
    command.args(arguments.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| cannot_run(format_args!("strace(1): {error}")));
    let run = Run::until_end(arguments.to_owned(), child);
    if run.stderr().contains("ptrace") {
        cannot_run(format_args!("strace(1) may not trace: {}", run.stderr()));
    }
    assert_eq!(run.code(), Some(0), "{arguments}: {}", run.stderr());
    let text = fs::read_to_string(&trace).unwrap();
    fs::remove_file(&trace).unwrap();
    let path = folder.path("").canonicalize().unwrap();
    let path = path.to_str().unwrap().trim_end_matches('/').to_owned();
    // Calls on files of this folder, and links and renames, which have relative names.
    let ours = |line: &&str| line.contains(&path) || line.contains("link") || line.contains("rename");
    let call = |line: &str| {
        let call = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
        let name = call.split('(').next().unwrap_or("").to_owned();
        let is_folder = call.contains(&format!("<{path}>"));
        if name == "fsync" && is_folder { "fsync folder".to_owned() } else { name }
    };
    let mut calls: Vec<String> =
        text.lines().filter(ours).filter(|line| !line.contains("resumed>")).map(call).collect();
    calls.dedup();
    calls
}

fn position(calls: &[String], name: &str) -> usize {
    calls.iter().position(|call| call == name).unwrap_or_else(|| panic!("no {name} in {calls:?}"))
}

/// A folder with keys and values.
fn folder() -> Folder {
    let folder = Folder::new();
    let keys: Vec<u32> = (0..1_000_000).rev().collect();
    folder.write("in.u32", &keys);
    folder.write("in.rows", &keys);
    folder
}

const COMMANDS: [&str; 9] = [
    "sort in.u32",
    "sort in.u32 -u",
    "sort in.u32 --argsort",
    "sort in.u32 --record-size 4 --key 0:u32",
    "sort in.u32 --segment-len 1000",
    "merge -r in.u32 in.u32",
    "batch -r in.u32 in.u32 -d 2",
    "union -r in.u32 in.u32",
    "gen -n 1000000",
];

#[test]
#[ignore = "needs strace(1)"]
fn a_new_file_is_not_waited_for_and_has_no_length_before_its_data() {
    let folder = folder();
    for command in COMMANDS {
        let engine = if command.starts_with("gen") { "" } else { "--engine cpu" };
        let calls = calls(&folder, &format!("{command} -o out.u32 {engine}"));
        assert!(!calls.iter().any(|call| call.contains("sync") || call == "ftruncate"), "{command}: {calls:?}");
        fs::remove_file(folder.path("out.u32")).unwrap();
    }
}

#[test]
#[ignore = "needs strace(1)"]
fn sync_waits_for_files_and_then_for_names() {
    let folder = folder();
    for command in COMMANDS {
        for _old in [false, true] {
            let calls = calls(&folder, &format!("{command} -o out.u32 --sync"));
            let is_named = |call: &String| call.contains("link") || call.contains("rename");
            let named = calls.iter().position(is_named).unwrap();
            assert!(position(&calls, "fsync") < named && named < position(&calls, "fsync folder"), "{calls:?}");
        }
        fs::remove_file(folder.path("out.u32")).unwrap();
    }
}

#[test]
#[ignore = "needs strace(1)"]
fn nothing_is_waited_for_between_the_names_of_a_pair() {
    let folder = folder();
    for (keys_exist, values_exist) in [(true, true), (true, false), (false, true)] {
        let prepare = |name: &str, exists: bool| match exists {
            true => folder.write(name, &[9u32]),
            false => drop(fs::remove_file(folder.path(name))),
        };
        prepare("out.u32", keys_exist);
        prepare("out.rows", values_exist);
        let arguments = "sort in.u32 --values in.rows -o out.u32 --values-out out.rows --engine cpu";
        let calls = calls(&folder, arguments);
        // First both files are synced, then they get names, then they replace the old files, then the folder is synced.
        let names: Vec<&str> = calls[position(&calls, "fsync")..].iter().map(String::as_str).collect();
        let is_known = |call: &&str| !["flock", "write"].contains(call);
        let names: Vec<&str> = names.into_iter().filter(is_known).collect();
        // An exchange keeps the old keys, until the values have replaced the old ones.
        let keys = if keys_exist { &["renameat2", "rename"][..] } else { &["rename"] };
        let expected = [&["fsync", "linkat"], keys, &["fsync folder"]].concat();
        assert_eq!(names, expected, "keys {keys_exist}, values {values_exist}");
    }
}

#[test]
fn sync_is_accepted_wherever_something_is_written() {
    let folder = folder();
    folder.run("gen -n 10 --record-size 8 -o records --sync").succeeds();
    folder.run("sort in.u32 -o /dev/null --sync").succeeds();
    folder.shell("gmerge sort in.u32 -o - --sync | cat > piped.u32; gmerge check piped.u32").succeeds();
    folder.shell("gmerge sort in.u32 -o - --sync > redirected.u32; gmerge check redirected.u32").succeeds();
    let values = "sort in.u32 --values in.rows -o out.u32 --values-out";
    folder.run(&format!("{values} out.rows --sync --check")).succeeds();
    folder.run(&format!("{values} /dev/null --sync")).succeeds();
    let refused = "-c and --sync cannot be used together: -c writes nothing";
    folder.run("sort -c in.u32 --sync").fails(2, &[refused]);
    folder.run("check in.u32 --sync").fails(2, &["--sync"]);
}

#[test]
fn two_runs_leave_keys_and_values_of_one() {
    let folder = Folder::new();
    for (run, values) in [("a", 1u32), ("b", 2)] {
        folder.write(&format!("{run}.u32"), &vec![values; 1000]);
        folder.write(&format!("{run}.rows"), &vec![values; 1000]);
    }
    for round in 0..60 {
        if round % 3 == 0 {
            let _ = (fs::remove_file(folder.path("out.u32")), fs::remove_file(folder.path("out.rows")));
        }
        thread::scope(|scope| {
            for run in ["a", "b"] {
                let arguments = format!(
                    "sort {run}.u32 --values {run}.rows -o out.u32 --values-out out.rows --engine cpu --parallel 1"
                );
                let folder = &folder;
                scope.spawn(move || folder.run(&arguments).succeeds());
            }
        });
        assert!(folder.read::<u32>("out.u32") == folder.read::<u32>("out.rows"), "round {round}");
    }
    assert_eq!(folder.files(), ["a.rows", "a.u32", "b.rows", "b.u32", "out.rows", "out.u32"]);
}
