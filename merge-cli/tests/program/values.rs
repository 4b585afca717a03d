//! `--values` of `gmerge merge` and `gmerge batch`

use crate::common::{Folder, Random, TestKey, assert_same, engines, for_each_type, tried};
use crate::reference::Files;
use std::fs;
use std::os::unix::fs::symlink;

/// Bytes of values.
pub const WIDTHS: [usize; 8] = [1, 2, 3, 4, 8, 12, 16, 100];

fn merges<K: TestKey>(random: &mut Random, engine: &str, width: usize) {
    // Many duplicate keys show whether values keep their order.
    for (a_size, b_size) in [(0, 0), (0, 1), (1, 0), (1, 1), (1000, 0), (777, 20_011)] {
        let files = Files::new(&[random.sorted::<K>(a_size), random.sorted::<K>(b_size)], width);
        let kernel = if a_size % 2 == 0 { "auto" } else { "merge-path" };
        files.check(&format!("merge --engine {engine} --kernel {kernel}"), &files.sorted(false));
    }
}

#[test]
fn merge_of_all_types_and_widths() {
    let mut random = Random::new();
    for engine in engines() {
        for width in tried(WIDTHS) {
            if *engine == "cpu" {
                for_each_type!(K => merges::<K>(&mut random, engine, width));
            } else {
                merges::<f32>(&mut random, engine, width);
            }
        }
    }
}

#[test]
fn merge_on_several_threads() {
    let mut random = Random::new();
    for width in [4, 5] {
        let files = Files::new(&[random.sorted::<u32>(500_000), random.sorted::<u32>(300_001)], width);
        files.check("merge --engine cpu --parallel 3", &files.sorted(false));
    }
}

#[test]
fn of_equal_keys_those_of_a_come_first() {
    let folder = Folder::new();
    folder.write("k.u32", &[5u32; 4]);
    folder.write("a.txt", b"abcd");
    folder.write("b.txt", b"wxyz");
    folder.run("merge k.u32 k.u32 --values a.txt b.txt -o out.u32 --values-out out.txt").succeeds();
    assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.txt")), (vec![5; 8], b"abcdwxyz".to_vec()));
    folder.run("batch k.u32 k.u32 -d 4 --values a.txt b.txt -o out.u32 --values-out out.txt").succeeds();
    assert_eq!(folder.read::<u8>("out.txt"), b"abwxcdyz");
}

/// A folder of keys and values to merge, and of outputs that must not change.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 2, 3]);
    folder.write("b.u32", &[2u32, 3]);
    folder.write("none.u32", &[0u32; 0]);
    folder.write("a.rows", b"aabbcc");
    folder.write("b.rows", b"xxyy");
    folder.write("none.rows", b"");
    folder.write("out.u32", &[9u32]);
    folder.write("out.rows", b"old");
    folder
}

#[track_caller]
fn unchanged(folder: &Folder) {
    assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.rows")), (vec![9], b"old".to_vec()));
}

#[test]
fn values_that_do_not_fit_the_keys() {
    let folder = folder();
    folder.write("5.rows", b"12345");
    folder.write("6.rows", b"123456");
    folder.write("unsorted.u32", &[2u32, 1]);
    let options = "-o out.u32 --values-out out.rows";
    // The same inputs through pipes, with unknown lengths until they end.
    let run_with_pipes = |keys: &str, values: &str| {
        let (files, mut script) = ([keys, values].map(|names| names.split(' ')), String::new());
        for name in files.into_iter().flatten() {
            script += &format!("mkfifo {name}.pipe; cat {name} > {name}.pipe 2> /dev/null &\n");
        }
        let pipes = |names: &str| names.replace(".u32", ".u32.pipe").replace(".rows", ".rows.pipe");
        let (keys, values) = (pipes(keys), pipes(values));
        script += &format!("gmerge merge {keys} --type u32 --values {values} {options}\ncode=$?\n");
        script += "kill $(jobs -p) 2> /dev/null\nrm *.pipe\nexit $code";
        folder.shell(&script)
    };
    let cases: [(&str, &str, &[&str]); 7] = [
        ("a.u32 b.u32", "5.rows b.rows", &["5.rows", "has 5 bytes", "multiple of 3", "keys of a.u32"]),
        ("a.u32 b.u32", "a.rows 5.rows", &["5.rows", "has 5 bytes", "multiple of 2", "keys of b.u32"]),
        (
            "a.u32 b.u32",
            "none.rows b.rows",
            &["none.rows", "no bytes, expected a value for each of the 3 keys of a.u32"],
        ),
        (
            "a.u32 b.u32",
            "a.rows none.rows",
            &["none.rows", "no bytes, expected a value for each of the 2 keys of b.u32"],
        ),
        (
            "a.u32 b.u32",
            "a.rows 6.rows",
            &["a.rows", "values of 2 bytes (6 bytes for 3 keys)", "6.rows", "3 bytes (6 bytes for 2 keys)"],
        ),
        ("none.u32 b.u32", "a.rows b.rows", &["a.rows", "has 6 bytes, expected none", "none.u32", "has no keys"]),
        ("a.u32 none.u32", "a.rows b.rows", &["b.rows", "has 4 bytes, expected none", "none.u32", "has no keys"]),
    ];
    for (keys, values, parts) in cases {
        folder.refuses(&format!("merge {keys} --values {values} {options}"), parts);
        // Through pipes, the names have another ending.
        let parts: Vec<&str> =
            parts.iter().map(|part| part.trim_end_matches(".u32").trim_end_matches(".rows")).collect();
        run_with_pipes(keys, values).fails(2, &parts);
    }
    let values = format!("--values a.rows b.rows {options}");
    folder
        .refuses(&format!("merge a.u32 unsorted.u32 {values}"), &["unsorted.u32: not sorted at index 1", "1 after 2"]);
    folder.refuses(&format!("batch a.u32 b.u32 -d 5 --a-len 4 {values}"), &["a.u32: has 3 keys", "multiple of 4"]);
    unchanged(&folder);
}

#[test]
fn files_that_cannot_be_used() {
    let folder = folder();
    fs::create_dir(folder.path("dir")).unwrap();
    let out = "-o out.u32 --values-out out.rows";
    for (keys, values, out, part) in [
        ("a.u32 b.u32", "a.rows lost.rows", out, "lost.rows: No such file or directory"),
        ("a.u32 b.u32", "dir b.rows", out, "dir: is a directory"),
        ("a.u32 b.u32", "a.rows b.rows", "-o out.u32 --values-out dir", "dir: is a directory"),
        (
            "a.u32 b.u32",
            "a.rows b.rows",
            "-o out.u32 --values-out lost/x",
            "lost/x: cannot write to folder lost: No such",
        ),
        (
            "a.u32 b.u32",
            "a.rows b.rows",
            "-o lost/x --values-out out.rows",
            "lost/x: cannot write to folder lost: No such",
        ),
        ("a.u32 b.u32", "a.rows b.rows", "-o out.u32 --values-out /dev/full", "/dev/full: No space left on device"),
        ("a.u32 b.u32", "a.rows b.rows", "-o /dev/full --values-out out.rows", "/dev/full: No space left on device"),
        ("a.u32 b.u32", "- -", out, "VA and VB are both -"),
        ("a.u32 -", "- b.rows", out, "B and VA are both -"),
    ] {
        folder.refuses(&format!("merge {keys} --values {values} {out}"), &[part]);
    }
}

#[test]
fn keys_and_values_go_to_different_files() {
    let folder = folder();
    symlink("out.u32", folder.path("link.u32")).unwrap();
    symlink(".", folder.path("here")).unwrap();
    let command = "merge a.u32 b.u32 --values a.rows b.rows";
    for (keys, values) in [
        ("out.u32", "out.u32"),
        ("out.u32", "./out.u32"),
        ("out.u32", "here/out.u32"),
        ("link.u32", "out.u32"),
        ("out.u32", "link.u32"),
        ("new.u32", "new.u32"),
        ("here/new.u32", "new.u32"),
    ] {
        let parts = [&*format!("{values}: is where the keys go"), "--values-out"];
        folder.refuses(&format!("{command} -o {keys} --values-out {values}"), &parts);
    }
    let both = folder.run(&format!("{command} -o - --values-out - --type u32"));
    both.fails(2, &["-: is where the keys go"]);
    assert_eq!(both.stdout(), b"");
    // The null device may be both outputs.
    folder.run(&format!("{command} -o /dev/null --values-out /dev/null")).succeeds();
    unchanged(&folder);
}

#[test]
fn one_flag_needs_the_other_and_a_kernel_that_moves_values() {
    let folder = folder();
    let batch = "batch -d 2 a.u32 b.u32 -o out.u32";
    for (options, parts) in [
        ("--values a.rows b.rows", &["--values-out <OUTV>"][..]),
        ("--values-out out.rows", &["--values <VA> <VB>"]),
        ("--values a.rows --values-out out.rows", &["--values <VA> <VB>", "expected 2 values, found 1"]),
        ("--values a.rows b.rows a.rows --values-out out.rows", &["a.rows"]),
    ] {
        folder.refuses(&format!("{batch} {options}"), parts);
    }
    for (options, part) in [
        ("--values a.rows b.rows", "--values-out <OUTV>"),
        ("--values-out out.rows", "--values <V>..."),
        ("--values a.rows --values-out out.rows", "--values names 1 files, expected 2"),
        ("--values a.rows b.rows a.rows --values-out out.rows", "--values names 3 files, expected 2"),
    ] {
        folder.refuses(&format!("merge a.u32 b.u32 -o out.u32 {options}"), &[part]);
    }
    let merge = "sort -m a.u32 b.u32 -o out.u32 --values a.rows --values-out out.rows";
    folder.refuses(merge, &["--values names 1 files, expected 2 with --merge"]);
    for kernel in ["basic", "tiled", "circular"] {
        let command =
            format!("merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows --kernel {kernel}");
        folder.refuses(&command, &[&format!("--kernel {kernel}"), "--values", "auto or merge-path"]);
    }
}

#[test]
fn inputs_may_be_outputs_and_pipes() {
    let folder = folder();
    folder.run("merge a.u32 b.u32 --values a.rows b.rows -o a.u32 --values-out a.rows").succeeds();
    assert_eq!(
        (folder.read::<u32>("a.u32"), folder.read::<u8>("a.rows")),
        (vec![1, 2, 2, 3, 3], b"aabbxxccyy".to_vec())
    );

    let run = folder.run_with_input("merge b.u32 b.u32 --values b.rows - -o out.u32 --values-out -", b"vvww");
    run.succeeds();
    assert_eq!((folder.read::<u32>("out.u32"), run.stdout()), (vec![2, 2, 3, 3], &b"xxvvyyww"[..]));
    // One file with two names becomes two files.
    fs::hard_link(folder.path("out.u32"), folder.path("out2")).unwrap();
    folder.run("merge b.u32 b.u32 --values b.rows b.rows -o out.u32 --values-out out2").succeeds();
    assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out2")), (vec![2, 2, 3, 3], b"xxxxyyyy".to_vec()));
}

#[test]
fn unsorted_keys_that_nobody_looks_at_keep_their_values() {
    let mut random = Random::new();
    let folder = folder();
    let (a, b) = (random.keys::<u32>(1000), random.keys::<u32>(2000));
    folder.write("a.u32", &a);
    folder.write("b.u32", &b);
    folder.write("a.rows", &a);
    folder.write("b.rows", &b);
    folder.run("merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows --assume-sorted").succeeds();
    let keys = folder.read::<u32>("out.u32");
    assert_eq!(keys.len(), 3000);
    assert_same(&folder.read::<u32>("out.rows"), &keys, "each value is its key");
}

#[test]
fn a_file_that_grows_too_large_leaves_both_old_ones() {
    let folder = folder();
    folder.write("a.u32", &vec![1u32; 100_000]);
    folder.write("b.u32", &[2u32]);
    folder.write("a.rows", &vec![1u8; 1_200_000]);
    folder.write("b.rows", &[2u8; 12]);
    // 1000 blocks of 512 bytes (or 1024, in some shells): the limit admits the keys and not the values.
    let command = "gmerge merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows";
    folder.shell(&format!("ulimit -f 1000; {command}")).fails(2, &["out.rows: File too large"]);
    unchanged(&folder);
    folder.shell(command).succeeds();
}
