//! `--sync`, and two runs that write the same files.

use crate::common::Folder;
use std::fs;
use std::thread;

/// A folder with keys and values.
pub fn folder() -> Folder {
    let folder = Folder::new();
    let keys: Vec<u32> = (0..1_000_000).rev().collect();
    folder.write("in.u32", &keys);
    folder.write("in.rows", &keys);
    folder
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
