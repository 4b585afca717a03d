//! `gmerge batch`

use crate::common::{Folder, Random, TestKey, assert_same, engine_for, engines, for_each_type, sorted};

/// `count` sorted runs of `length` keys, one after the other.
fn runs<K: TestKey>(random: &mut Random, count: usize, length: usize) -> Vec<K> {
    (0..count).flat_map(|_| random.sorted(length)).collect()
}

fn merges<K: TestKey>(random: &mut Random, engine: &str) {
    let folder = Folder::new();
    let name = K::NAME;
    for (d, a_len) in [(1, None), (2, None), (7, None), (64, Some(0)), (64, Some(64)), (100, Some(33)), (1024, None)] {
        let a_length = a_len.unwrap_or(d / 2);
        for &count in if engine == "cpu" { &[0, 1, 333][..] } else { &[333] } {
            let (a, b) = (runs::<K>(random, count, a_length), runs::<K>(random, count, d - a_length));
            folder.write(&format!("a.{name}"), &a);
            folder.write(&format!("b.{name}"), &b);
            let option = a_len.map(|length| format!("--a-len {length}")).unwrap_or_default();
            let run = format!("batch a.{name} b.{name} -o out.{name} -d {d} {option} --engine {engine}");
            folder.run(&run).succeeds();
            let expected = (0..count).flat_map(|i| {
                let a_run = &a[i * a_length..][..a_length];
                sorted(&[a_run, &b[i * (d - a_length)..][..d - a_length]].concat())
            });
            let expected: Vec<K> = expected.collect();
            assert_same(&folder.read::<K>(&format!("out.{name}")), &expected, &format!("{count} pairs: {run}"));
        }
    }
}

#[test]
fn all_types_and_lengths() {
    let mut random = Random::new();
    for engine in engines() {
        for_each_type!(K => merges::<K>(&mut random, engine_for::<K>(engine)));
    }
}

#[test]
fn lengths_out_of_bounds() {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 2]);
    for (lengths, parts) in [
        ("-d 0", &["-d <D>", "from 1 to 1024, found 0"][..]),
        ("-d 1025", &["-d <D>", "from 1 to 1024, found 1025"]),
        ("", &["-d <D>"]),
        ("-d 8 --a-len 9", &["--a-len is 9", "at most 8"]),
    ] {
        folder.refuses(&format!("batch a.u32 a.u32 -o out.u32 {lengths}"), parts);
    }
}

#[test]
fn files_that_do_not_hold_the_same_number_of_runs() {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32; 12]);
    folder.write("b.u32", &[1u32; 8]);
    folder.write("e.u32", &[0u32; 0]);
    for (options, parts) in [
        ("a.u32 b.u32 -d 8", ["a.u32: 12 keys in runs of 4 make 3, ", "b.u32: 8 keys in runs of 4 make 2"]),
        ("a.u32 b.u32 -d 10", ["a.u32: has 12 keys", "multiple of 5"]),
        ("a.u32 b.u32 -d 9 --a-len 6", ["b.u32: has 8 keys", "multiple of 3"]),
        ("a.u32 b.u32 -d 4 --a-len 0", ["a.u32: has 12 keys", "expected none"]),
        ("a.u32 b.u32 -d 4 --a-len 4", ["b.u32: has 8 keys", "expected none"]),
        ("a.u32 e.u32 -d 4", ["a.u32: 12 keys in runs of 2 make 6, ", "e.u32: 0 keys in runs of 2 make 0"]),
    ] {
        folder.refuses(&format!("batch {options} -o out.u32"), &parts);
    }
    // If the runs of a side have no keys, its file has none.
    folder.run("batch e.u32 b.u32 -d 4 --a-len 0 -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1; 8]);
}

#[test]
fn an_unsorted_run_is_named_with_its_index_in_the_file() {
    let folder = Folder::new();
    folder.write("a.i64", &[5i64, 6, /**/ 1, 2, /**/ 4, 3]);
    folder.write("b.i64", &[1i64, 1, 1]);
    folder.refuses("batch a.i64 b.i64 -o out.i64 -d 3 --a-len 2", &["a.i64: ", "index 5", "run 2", "3 after 4"]);
    folder.refuses("batch b.i64 a.i64 -o out.i64 -d 3", &["a.i64: ", "index 5", "run 2"]);
    folder.run("batch a.i64 b.i64 -o out.i64 -d 3 --a-len 2 --assume-sorted").succeeds();
    let out = folder.read::<i64>("out.i64");
    assert_eq!((&out[..6], out.len()), (&[1, 5, 6, 1, 1, 2][..], 9));
}
