//! `--reverse`, `--values` and `--argsort` of `gmerge sort`

use crate::common::{Folder, Random, TestKey, engine_for, engines, for_each_type, sizes, tried};
use crate::reference::Files;
use std::fs;
use std::os::unix::fs::symlink;

/// Sorts these keys in every way, and checks all outputs.
fn check<K: TestKey>(options: &str, keys: Vec<K>, width: usize) {
    let files = Files::new(&[keys], width);
    for (flag, reverse) in [("", false), ("--reverse", true)] {
        let (command, places) = (format!("sort {options} {flag}"), files.sorted(reverse));
        files.check(&command, &places);
        files.check_indices(&command, &places);
    }
}

#[test]
fn all_types_and_sizes() {
    let mut random = Random::new();
    for engine in engines() {
        for &size in sizes(engine) {
            for_each_type!(K => {
                let options = format!("--engine {}", engine_for::<K>(engine));
                check(&options, random.keys::<K>(size), 4)
            });
        }
    }
}

#[test]
fn values_of_any_width() {
    let mut random = Random::new();
    for engine in engines() {
        for width in [1, 2, 3, 8, 12, 16, 100] {
            check(&format!("--engine {engine}"), random.keys::<f32>(3001), width);
            check(&format!("--engine {engine}"), random.keys::<u64>(3001), width);
        }
    }
    for width in [1, 3, 8, 100] {
        check("", random.keys::<i8>(3001), width);
        check("", random.keys::<u128>(3001), width);
    }
}

#[test]
fn any_number_of_threads() {
    let mut random = Random::new();
    for threads in tried(1..=4) {
        let options = format!("--engine cpu --parallel {threads}");
        check(&options, random.keys::<i32>(300_007), 8);
        check(&options, random.keys::<f64>(300_007), 5);
        check(&options, random.keys::<i16>(600_007), 8);
        check(&options, random.keys::<u128>(300_007), 5);
    }
}

/// A folder of keys and values to sort, and of outputs that must not change.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1, 2, 1]);
    folder.write("in.txt", b"aabbccdd");
    folder.write("none.u32", &[0u32; 0]);
    folder.write("none.txt", b"");
    folder.write("out.u32", &[9u32]);
    folder.write("out.txt", b"old");
    folder
}

#[test]
fn of_equal_keys_the_first_stays_first() {
    let folder = folder();
    folder.run("sort in.u32 -r --values in.txt -o out.u32 --values-out out.txt").succeeds();
    assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.txt")), (vec![2, 2, 1, 1], b"aaccbbdd".to_vec()));
    // The extension of the output is about the indices.
    folder.run("sort in.u32 -r --argsort -o out.u64").succeeds();
    assert_eq!(folder.read::<u64>("out.u64"), [0, 2, 1, 3]);
    folder.run("sort in.u32 --argsort -o order").succeeds();
    assert_eq!(folder.read::<u64>("order"), [1, 3, 0, 2]);
    folder.run("sort in.u32 --argsort -o order.f32").fails(2, &["order.f32: ", "--argsort"]);
    folder.run("sort in.u32 --argsort -o in.u32").succeeds();
    assert_eq!(folder.read::<u32>("in.u32"), [1, 3, 0, 2]);
}

#[test]
fn inputs_may_be_outputs_and_pipes() {
    let folder = folder();
    folder.run("sort in.u32 --values in.txt -o in.u32 --values-out in.txt").succeeds();
    assert_eq!((folder.read::<u32>("in.u32"), folder.read::<u8>("in.txt")), (vec![1, 1, 2, 2], b"bbddaacc".to_vec()));
    let run = folder.run_with_input("sort in.u32 -r --values - -o out.u32 --values-out -", b"wxyz");
    run.succeeds();
    assert_eq!((folder.read::<u32>("out.u32"), run.stdout()), (vec![2, 2, 1, 1], &b"yzwx"[..]));
    let keys = bytemuck::cast_slice::<u32, u8>(&[3, 1, 2]);
    let run = folder.run_with_input("sort - --type u32 --argsort -o -", keys);
    run.succeeds();
    assert_eq!(run.stdout(), bytemuck::cast_slice::<u64, u8>(&[1, 2, 0]));
    folder.run("sort none.u32 --values none.txt -o out.u32 --values-out out.txt").succeeds();
    assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.txt")), (vec![], vec![]));
}

#[test]
fn values_that_do_not_fit_the_keys() {
    let folder = folder();
    folder.write("6.txt", b"aabbcc");
    let cases: [(&str, &str, &[&str]); 4] = [
        ("in.u32", "6.txt", &["6.txt: has 6 bytes, expected a multiple of 4, the number of keys of in.u32"]),
        ("in.u32", "none.txt", &["none.txt: has no bytes, expected a value for each of the 4 keys of in.u32"]),
        ("none.u32", "in.txt", &["in.txt: has 8 bytes, expected none: none.u32 has no keys"]),
        ("in.u32", "lost.txt", &["lost.txt: No such file or directory"]),
    ];
    for (keys, values, parts) in cases {
        folder.refuses(&format!("sort {keys} --values {values} -o out.u32 --values-out out.txt"), parts);
    }
    // The length of a pipe is unknown until it ends.
    let run = "sort in.u32 --values - -o out.u32 --values-out out.txt";
    folder.refuses_input(run, b"aabbcc", &["-: has 6 bytes, expected a multiple of 4"]);
}

#[test]
fn files_that_cannot_be_used() {
    let folder = folder();
    symlink("out.u32", folder.path("link")).unwrap();
    let refused =
        |options: &str, part: &str| folder.refuses(&format!("sort in.u32 --values in.txt {options}"), &[part]);
    for path in ["out.u32", "./out.u32", "link"] {
        refused(&format!("-o out.u32 --values-out {path}"), &format!("{path}: is where the keys go"));
    }
    refused("-o out.u32 --values-out lost/x", "lost/x: cannot write to folder lost: No such file or directory");
    refused("-o out.u32 --values-out /dev/full", "/dev/full: No space left on device");
    refused("-o /dev/full --values-out out.txt", "/dev/full: No space left on device");
    folder.refuses("sort - --values - -o out.u32 --values-out out.txt", &["IN and V are both -"]);
    folder.refuses("sort in.txt --argsort -o out.u32", &["in.txt: ", "--type"]);
}

#[test]
fn flags_that_do_not_go_together() {
    let folder = folder();
    for (options, part) in [
        ("--values in.txt", "--values-out <OUTV>"),
        ("--values-out out.txt", "--values <V>"),
        ("--values in.txt in.txt --values-out out.txt", "--values names 2 files, expected 1, one for each"),
        ("--argsort --values in.txt --values-out out.txt", "--argsort and --values cannot be used together"),
        ("--argsort --values-out out.txt", "--values <V>"),
    ] {
        folder.refuses(&format!("sort in.u32 -o out.u32 {options}"), &[part]);
    }
}

#[test]
fn a_file_that_grows_too_large_leaves_both_old_ones() {
    let folder = folder();
    folder.write("in.u32", &vec![1u32; 100_000]);
    folder.write("in.txt", &vec![1u8; 1_200_000]);
    // 1000 blocks of 512 bytes (or 1024, in some shells): the limit admits the keys and not the values.
    let command = "gmerge sort in.u32 --values in.txt -o out.u32 --values-out out.txt";
    folder.shell(&format!("ulimit -f 1000; {command}")).fails(2, &["out.txt: File too large"]);
    assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.txt")), (vec![9], b"old".to_vec()));
    folder.shell(command).succeeds();
}

#[test]
fn files_of_values_are_named_as_in_merge() {
    let folder = Folder::new();
    folder.write("a.u32", &[3u32, 1]);
    folder.write("b.u32", &[2u32]);
    // By their lengths, these files could also be keys.
    folder.write("va.u32", b"aaaacccc");
    folder.write("vb.u32", b"bbbb");
    folder.write("all.u32", b"aaaaccccbbbb");
    folder.write("sa.u32", &[1u32, 3]);
    let out = "-o out.u32 --values-out out.rows";
    let succeeds = |arguments: &str, keys: &[u32], values: &[u8]| {
        folder.run(arguments).succeeds();
        assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.rows")), (keys.to_vec(), values.to_vec()));
        fs::remove_file(folder.path("out.u32")).unwrap();
        fs::remove_file(folder.path("out.rows")).unwrap();
    };
    for arguments in [
        format!("sort a.u32 b.u32 --values va.u32 vb.u32 {out}"),
        format!("sort {out} a.u32 b.u32 --values va.u32 vb.u32"),
        format!("sort a.u32 b.u32 --values va.u32 --values vb.u32 {out}"),
        format!("sort a.u32 b.u32 --values va.u32 {out} --values vb.u32"),
        format!("sort --values va.u32 --values vb.u32 a.u32 b.u32 {out}"),
        format!("sort --values va.u32 vb.u32 {out} a.u32 b.u32"),
        format!("sort --values va.u32 vb.u32 {out} -- a.u32 b.u32"),
        format!("sort a.u32 b.u32 --values all.u32 {out}"),
        format!("sort --values all.u32 a.u32 b.u32 {out}"),
        format!("sort {out} --values=all.u32 a.u32 b.u32"),
        format!("sort a.u32 --values all.u32 {out} b.u32"),
    ] {
        succeeds(&arguments, &[1, 2, 3], b"ccccbbbbaaaa");
    }
    for arguments in [
        format!("sort -m sa.u32 b.u32 --values va.u32 vb.u32 {out}"),
        format!("sort -m --values va.u32 vb.u32 sa.u32 b.u32 {out}"),
        format!("sort -m --values va.u32 --values vb.u32 sa.u32 b.u32 {out}"),
        format!("merge sa.u32 b.u32 --values va.u32 --values vb.u32 {out}"),
        format!("merge --values va.u32 --values vb.u32 sa.u32 b.u32 {out}"),
        format!("merge --values va.u32 vb.u32 sa.u32 b.u32 {out}"),
    ] {
        succeeds(&arguments, &[1, 2, 3], b"aaaabbbbcccc");
    }
    succeeds(&format!("sort --values va.u32 a.u32 {out}"), &[1, 3], b"ccccaaaa");
    succeeds(&format!("sort --values=all.u32 b.u32 b.u32 b.u32 {out}"), &[2; 3], b"aaaaccccbbbb");
    for (arguments, message) in [
        ("sort --values va.u32 vb.u32 a.u32 b.u32", "followed by 4 names, which may be 1 file of values or 2"),
        ("sort --values va.u32", "--values needs files of keys: name them before --values"),
        ("sort --values va.u32 --values vb.u32", "--values needs files of keys"),
        ("sort --values va.u32 --values vb.u32 a.u32", "--values names 2 files, expected 1, one for each file"),
        ("sort a.u32 --values va.u32 b.u32", "names 2 files, expected 1, one for each file of keys: files of keys are"),
        ("sort a.u32 b.u32 a.u32 --values va.u32 vb.u32", "--values names 2 files, expected 1 or 3, one for each"),
        ("sort -m --values va.u32 sa.u32 b.u32", "--values names 1 files, expected 2 with --merge"),
        ("merge --values va.u32 sa.u32 b.u32", "--values names 1 files, expected 2, one for each"),
        ("merge --values va.u32", "--values needs files of keys"),
    ] {
        folder.refuses(&format!("{arguments} {out}"), &[message]);
    }
}
