//! `gmerge batch`

use crate::common::{Folder, Random, TestKey, engine_for, engines, for_each_type, tried};
use crate::reference::Files;
use crate::values::WIDTHS;

/// Merges `pairs` pairs of runs, of `a_len` and of `d - a_len` keys, with values of `width` bytes unless it is 0.
fn check<K: TestKey>(random: &mut Random, engine: &str, pairs: usize, (d, a_len): (usize, usize), width: usize) {
    let mut runs = |length| (0..pairs).flat_map(|_| random.sorted::<K>(length)).collect::<Vec<K>>();
    let (b_len, files) = (d - a_len, [runs(a_len), runs(d - a_len)]);
    let (begin_of_b, files) = (files[0].len(), Files::new(&files, width));
    let of_b = |i: usize| begin_of_b + i * b_len;
    let pair = |i: usize| (i * a_len..(i + 1) * a_len).chain(of_b(i)..of_b(i + 1)).collect();
    let places = files.sorted_groups((0..pairs).map(pair), false);
    // By default, A has half of the keys.
    let option = if a_len == d / 2 { String::new() } else { format!("--a-len {a_len}") };
    files.check(&format!("batch -d {d} {option} --engine {engine}"), &places);
}

fn merges<K: TestKey>(random: &mut Random, engine: &str) {
    for lengths in [(1, 0), (2, 1), (7, 3), (64, 0), (64, 64), (100, 33), (1024, 512)] {
        for &count in if engine == "cpu" { &[0, 1, 333][..] } else { &[333] } {
            check::<K>(random, engine, count, lengths, 0);
        }
    }
}

#[test]
fn values_of_all_widths() {
    let lengths =
        [(0, (5, 2)), (1, (1, 0)), (300, (7, 3)), (50, (100, 33)), (3, (1024, 512)), (9, (8, 0)), (9, (8, 8))];
    let mut random = Random::new();
    let cases = engines().iter().flat_map(|engine| WIDTHS.map(|width| (*engine, width)));
    for (engine, width) in tried(cases) {
        let mut merges = |check: fn(&mut Random, &str, usize, (usize, usize), usize)| {
            lengths.iter().for_each(|&(pairs, lengths)| check(&mut random, engine, pairs, lengths, width));
        };
        if engine == "cpu" {
            for_each_type!(K => merges(check::<K>));
        } else {
            merges(check::<f32>);
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
