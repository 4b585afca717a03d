//! Which files a run syncs, and the order of its renames.

use super::tracer::{Call, Fault, Watch, run};
use crate::common::{Folder, GMERGE};
use crate::durable::folder;
use std::fs;
use std::path::Path;

/// The system calls whose order counts.
const CALLS: [&str; 10] =
    ["fsync", "syncfs", "ftruncate", "linkat", "renameat", "renameat2", "rename", "flock", "pwrite64", "write"];

/// The names of calls. Each stands once for a sequence of equal ones.
struct Order<'a> {
    folder: &'a Path,
    calls: Vec<&'static str>,
}

impl Watch for Order<'_> {
    fn begins(&mut self, _number: usize, call: &Call) -> Option<Fault> {
        if CALLS.contains(&call.kind.name) {
            let is_folder = call.kind.name == "fsync" && call.path == self.folder;
            self.calls.push(if is_folder { "fsync folder" } else { call.kind.name });
            self.calls.dedup();
        }
        None
    }
}

/// The names of the system calls of a run on files of `folder`.
fn calls(folder: &Folder, arguments: &str) -> Vec<&'static str> {
    let path = folder.path("").canonicalize().unwrap();
    let mut order = Order { folder: &path, calls: Vec::new() };
    run(folder.command(GMERGE).args(arguments.split_whitespace()), &path, &mut order).succeeds();
    order.calls
}

fn position(calls: &[&str], name: &str) -> usize {
    calls.iter().position(|call| *call == name).unwrap_or_else(|| panic!("no {name} in {calls:?}"))
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
fn a_new_file_is_not_waited_for_and_has_no_length_before_its_data() {
    let folder = folder();
    for command in COMMANDS {
        let engine = if command.starts_with("gen") { "" } else { "--engine cpu" };
        let calls = calls(&folder, &format!("{command} -o out.u32 {engine}"));
        assert!(!calls.iter().any(|call| call.contains("sync") || *call == "ftruncate"), "{command}: {calls:?}");
        fs::remove_file(folder.path("out.u32")).unwrap();
    }
}

#[test]
fn sync_waits_for_files_and_then_for_names() {
    let folder = folder();
    for command in COMMANDS {
        for _old in [false, true] {
            let calls = calls(&folder, &format!("{command} -o out.u32 --sync"));
            let is_named = |call: &&str| call.contains("link") || call.contains("rename");
            let named = calls.iter().position(is_named).unwrap();
            assert!(position(&calls, "fsync") < named && named < position(&calls, "fsync folder"), "{calls:?}");
        }
        fs::remove_file(folder.path("out.u32")).unwrap();
    }
}

#[test]
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
        let is_known = |call: &&str| !["flock", "write"].contains(call);
        let names: Vec<&str> = calls[position(&calls, "fsync")..].iter().copied().filter(is_known).collect();
        // An exchange keeps the old keys, until the values have replaced the old ones.
        let keys = if keys_exist { &["renameat2", "rename"][..] } else { &["rename"] };
        let expected = [&["fsync", "linkat"], keys, &["fsync folder"]].concat();
        assert_eq!(names, expected, "keys {keys_exist}, values {values_exist}");
    }
}
