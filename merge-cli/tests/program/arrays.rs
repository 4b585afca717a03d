//! Arrays of NumPy: values of any dtype and shape; dates, durations and booleans as keys; records in pipes. The headers
//! are built here.

use crate::common::{Folder, Random, npy as array};
use std::fs;

/// The rows of `bytes`, of `width` bytes each, at these indices.
fn rows(bytes: &[u8], width: usize, indices: &[usize]) -> Vec<u8> {
    indices.iter().flat_map(|&index| &bytes[width * index..][..width]).copied().collect()
}

/// A folder with unsorted and sorted keys. The unsorted keys have the sorted order 1, 2, 0.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("k.u32", &[3u32, 1, 2]);
    folder.write("none.u32", &[0u32; 0]);
    folder.write("a.u32", &[1u32, 3]);
    folder.write("b.u32", &[2u32]);
    folder
}

/// Commands on the keys of [`folder`] and their values in v.npy, with the permutation 1, 2, 0.
const COMMANDS: [&str; 4] = [
    "sort k.u32 --values v.npy",
    "sort k.u32 --values v.npy --check",
    "sort k.u32 --values v.npy --segment-len 3",
    "sort k.u32 none.u32 --values v.npy -u",
];

#[test]
fn whole_items_for_each_key_are_a_dimension() {
    let folder = folder();
    let bytes: Vec<u8> = (0..48).collect();
    let write = |name: &str, array: &[u8]| folder.write(name, array);
    let read = |name: &str| folder.read::<u8>(name);
    for (descr, shape, found) in [
        ("'<f4'", "(12,)", "(3, 4)"),
        ("'>f4'", "(3, 4)", "(3, 4)"),
        ("'<i2'", "(6, 4)", "(3, 2, 4)"),
        ("'|u1'", "(3, 4, 2, 2)", "(3, 4, 2, 2)"),
        ("'<c16'", "(3,)", "(3,)"),
        ("'<c16'", "(3, 1)", "(3, 1)"),
        ("[('a', '<f4'), ('b', '<i4')]", "(6,)", "(3, 2)"),
    ] {
        write("v.npy", &array(descr, shape, &bytes));
        let expected = array(descr, found, &rows(&bytes, 16, &[1, 2, 0]));
        for command in COMMANDS {
            folder.run(&format!("{command} -o out --type u32 --values-out out.npy")).succeeds();
            assert!(read("out.npy") == expected, "{descr} {shape}: {command}");
        }
        // In a pipe, the header of an array gives the number of values. The number of raw keys is unknown.
        let run = "sort k.u32 --values - -o out --type u32 --values-out out.npy --check";
        folder.run_with_input(run, &read("v.npy")).succeeds();
        assert!(read("out.npy") == expected, "{descr} {shape}: {run}");
        for more in ["", "--segment-len 3"] {
            let run = format!("sort - --type u32 --values v.npy -o out --values-out out.npy {more}");
            folder.run_with_input(&run, &read("k.u32")).succeeds();
            assert!(read("out.npy") == expected, "{descr} {shape}: {run}");
        }
    }
}

#[test]
fn merges_have_whole_items_for_each_key() {
    let folder = folder();
    let bytes: Vec<u8> = (0..48).collect();
    let expected = array("'<f4'", "(3, 4)", &rows(&bytes, 16, &[0, 2, 1]));
    for (of_a, of_b) in [("(8,)", "(4,)"), ("(2, 4)", "(1, 4)")] {
        fs::write(folder.path("va.npy"), array("'<f4'", of_a, &bytes[..32])).unwrap();
        fs::write(folder.path("vb.npy"), array("'<f4'", of_b, &bytes[32..])).unwrap();
        for command in ["merge", "merge --check", "merge -u", "sort -m", "batch -d 3 --a-len 2"] {
            let flags = "-o out.u32 --values-out out.npy";
            let values = "--values va.npy --values vb.npy"
                .replace(" --values vb", if command == "sort -m" { " --values vb" } else { " vb" });
            folder.run(&format!("{command} a.u32 b.u32 {values} {flags}")).succeeds();
            assert!(fs::read(folder.path("out.npy")).unwrap() == expected, "{command} {of_a}");
        }
        let run = "merge - b.u32 --type u32 --values va.npy vb.npy -o out --values-out out.npy";
        folder.run_with_input(run, bytemuck::cast_slice(&[1u32, 3])).succeeds();
        assert!(fs::read(folder.path("out.npy")).unwrap() == expected, "{of_a} from a pipe");
    }
}

#[test]
fn values_in_chunks_and_in_streams_keep_their_shape() {
    let folder = Folder::new();
    let keys: Vec<u64> = (0..200_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&i| keys[i]);
    let bytes: Vec<u8> = (0..800_000u32).flat_map(|i| (i as u16 ^ (i >> 8) as u16).to_le_bytes()).collect();
    folder.write("k.u64", &keys);
    let expected = array("'<u2'", "(200000, 4)", &rows(&bytes, 8, &order));
    for shape in ["(800000,)", "(200000, 4)"] {
        fs::write(folder.path("v.npy"), array("'<u2'", shape, &bytes)).unwrap();
        folder.run("sort k.u64 --values v.npy -o out.u64 --values-out out.npy -S 1M --check").succeeds();
        assert!(fs::read(folder.path("out.npy")).unwrap() == expected, "{shape}");
        folder.run("merge out.u64 --values out.npy -o again.u64 --values-out again.npy -S 1M --check").succeeds();
        assert!(fs::read(folder.path("again.npy")).unwrap() == expected, "{shape}");
    }
}

#[test]
fn items_that_are_not_whole_for_each_key_are_refused() {
    let folder = folder();
    for (descr, shape, bytes, message) in [
        ("'|V12'", "(1,)", 12, "v.npy: has 1 items, expected a multiple of 3"),
        ("'<c8'", "(4,)", 32, "v.npy: has 4 items, expected a multiple of 3"),
        // Two rows cannot be divided among three keys.
        ("'<f4'", "(2, 6)", 48, "v.npy: has 2 rows, expected a multiple of 3"),
        ("'<f4'", "(3, 0)", 0, "v.npy: has no bytes, expected a value for each of the 3 keys"),
        ("'<U0'", "(3,)", 0, "v.npy: has no bytes, expected a value for each of the 3 keys"),
        ("'<f4'", "()", 4, "v.npy: .npy header, at byte 60: the array has 0 dimensions"),
        ("'|O'", "(3,)", 24, "v.npy: .npy header, at byte 20: dtype \"|O\" is Python objects"),
    ] {
        let v = array(descr, shape, &vec![1; bytes]);
        fs::write(folder.path("v.npy"), &v).unwrap();
        let merges = ["merge k.u32 --values v.npy --assume-sorted"];
        for command in COMMANDS.iter().chain(&merges) {
            for out in ["out.npy", "out"] {
                folder.refuses(&format!("{command} -o out.u32 --values-out {out}"), &[message]);
            }
        }
        let run = "sort - --type u32 --values v.npy -o out.u32 --values-out out.npy";
        folder.refuses_input(run, bytemuck::cast_slice(&[3u32, 1, 2]), &[message]);
        let run = "sort k.u32 --values - -o out.u32 --values-out out.npy";
        folder.refuses_input(run, &v, &[&message.replace("v.npy", "-")]);
    }
}

#[test]
fn no_keys_have_no_values_of_any_dtype() {
    let folder = folder();
    for (descr, shape) in [("'<f4'", "(0,)"), ("'<f4'", "(0, 4)"), ("'<U0'", "(0,)"), ("'|S3'", "(0, 2)")] {
        let none = array(descr, shape, &[]);
        fs::write(folder.path("v.npy"), &none).unwrap();
        for command in ["sort", "merge", "sort --segment-len 3", "sort --check"] {
            folder.run(&format!("{command} none.u32 --values v.npy -o out.u32 --values-out out.npy")).succeeds();
            assert!(fs::read(folder.path("out.npy")).unwrap() == none, "{descr} {shape} {command}");
        }
    }
}

#[test]
fn values_of_two_dtypes_are_not_mixed() {
    let folder = folder();
    let write = |name: &str, array: &[u8]| fs::write(folder.path(name), array).unwrap();
    for (of_a, of_b) in [
        (array("'<f4'", "(2,)", &[1; 8]), array("'>f4'", "(1,)", &[2; 4])),
        (array("'<f4'", "(2,)", &[1; 8]), array("'<i4'", "(1,)", &[2; 4])),
        (array("'<M8[s]'", "(2,)", &[1; 16]), array("'<M8[ns]'", "(1,)", &[2; 8])),
        (array("'|S4'", "(2,)", &[1; 8]), array("'|V4'", "(1,)", &[2; 4])),
        (array("'<f4'", "(2, 4)", &[1; 32]), array("'<f4'", "(1, 2, 2)", &[2; 16])),
        (array("[('a', '<f4')]", "(2,)", &[1; 8]), array("[('b', '<f4')]", "(1,)", &[2; 4])),
    ] {
        write("va.npy", &of_a);
        write("vb.npy", &of_b);
        for out in ["out.npy", "out"] {
            for command in [
                "merge a.u32 b.u32 --values va.npy vb.npy",
                "batch a.u32 b.u32 -d 3 --a-len 2 --values va.npy vb.npy",
                "sort a.u32 b.u32 --values va.npy --values vb.npy",
                "sort -m a.u32 b.u32 --values va.npy --values vb.npy",
                "sort --segment-len 1 a.u32 b.u32 --values va.npy --values vb.npy",
            ] {
                let parts = ["va.npy holds values of dtype ", " and vb.npy of dtype ", "must hold the same"];
                folder.refuses(&format!("{command} -o out.u32 --values-out {out}"), &parts);
            }
        }
    }
    // If one file of values has no dtype, the output has none either.
    write("va.npy", &array("'<f4'", "(2,)", &[1; 8]));
    folder.write("vb", &[2u8; 4]);
    folder.run("merge a.u32 b.u32 --values va.npy vb -o out.u32 --values-out out.npy").succeeds();
    let expected = array("'|V4'", "(3,)", &[[1; 4], [2; 4], [1; 4]].concat());
    assert!(fs::read(folder.path("out.npy")).unwrap() == expected);
}

/// Dates, durations and booleans as keys: a dtype, the bytes of some keys, and their order.
fn dated_keys() -> Vec<(&'static str, usize, Vec<u8>, [usize; 4])> {
    let numbers = [5i64, i64::MIN, -7, 5];
    let little: Vec<u8> = numbers.iter().flat_map(|key| key.to_le_bytes()).collect();
    let big: Vec<u8> = numbers.iter().flat_map(|key| key.to_be_bytes()).collect();
    vec![
        ("'<M8[ns]'", 8, little.clone(), [2, 0, 3, 1]),
        ("'>M8[D]'", 8, big, [2, 0, 3, 1]),
        ("'<m8[25us]'", 8, little.clone(), [2, 0, 3, 1]),
        ("'<M8'", 8, little, [2, 0, 3, 1]),
        ("'|b1'", 1, vec![1, 0, 0, 1], [1, 2, 0, 3]),
    ]
}

#[test]
fn dates_durations_and_booleans_are_keys() {
    let folder = Folder::new();
    let write = |name: &str, array: &[u8]| folder.write(name, array);
    let read = |name: &str| folder.read::<u8>(name);
    for (descr, size, bytes, order) in dated_keys() {
        write("k.npy", &array(descr, "(4,)", &bytes));
        let expect = |command: &str, order: &[usize]| {
            folder.run(&format!("{command} -o out.npy")).succeeds();
            let found = array(descr, &format!("({},)", order.len()), &rows(&bytes, size, order));
            assert!(read("out.npy") == found, "{descr} {command}: {}", read("out.npy").escape_ascii());
        };
        expect("sort k.npy --check", &order);
        write("sorted.npy", &read("out.npy"));
        expect("sort k.npy -u", if size == 1 { &[1, 0] } else { &[2, 0, 1] });
        expect("sort k.npy --top 3", &order[..3]);
        expect("sort k.npy --segment-len 2", if size == 1 { &[1, 0, 2, 3] } else { &[0, 1, 2, 3] });
        expect("sort k.npy -r", if size == 1 { &[0, 3, 1, 2] } else { &[0, 3, 2, 1] });
        for command in ["merge", "merge --check", "sort -m", "batch -d 8"] {
            expect(&format!("{command} sorted.npy sorted.npy"), &order.map(|index| [index, index]).concat());
        }
        expect("union sorted.npy sorted.npy", &order);
        expect("intersect sorted.npy sorted.npy", &order);
        expect("difference sorted.npy sorted.npy", &[]);
        folder.run("check sorted.npy").succeeds();
        for nans in ["first", "total"] {
            expect(&format!("sort k.npy --nan {nans}"), &[1, 2, 0, 3]);
            folder.run(&format!("check out.npy --nan {nans}")).succeeds();
        }
        expect("sort k.npy -r --nan first", if size == 1 { &[0, 3, 1, 2] } else { &[1, 0, 3, 2] });
        let disorder = if size == 1 { "index 1: 0 after 1" } else { "index 2: -7 after NaT" };
        folder.run("check k.npy").fails(1, &[&format!("k.npy: disorder at {disorder}")]);
        let indices: Vec<u64> = order.iter().map(|&index| index as u64).collect();
        folder.run("sort k.npy --argsort -o order.u64").succeeds();
        assert_eq!(folder.read::<u64>("order.u64"), indices);
        folder.run("sort k.npy --argsort -o order.npy").succeeds();
        assert!(read("order.npy") == array("'<u8'", "(4,)", bytemuck::cast_slice(&indices)));
        write("v.npy", &array("'|S1'", "(4,)", b"abcd"));
        folder.run("sort k.npy --values v.npy -o out.npy --values-out moved.npy --check").succeeds();
        assert!(
            read("moved.npy") == array("'|S1'", "(4,)", &rows(b"abcd", 1, &order))
                && read("out.npy") == read("sorted.npy")
        );
        let run = folder.run_with_input("sort - -o - --format npy", &read("k.npy"));
        run.succeeds();
        assert!(run.stdout() == read("sorted.npy"));
    }
}

#[test]
fn dates_durations_and_booleans_in_other_formats() {
    let folder = Folder::new();
    let write = |name: &str, array: &[u8]| folder.write(name, array);
    let read = |name: &str| folder.read::<u8>(name);
    for (descr, size, bytes, order) in dated_keys() {
        write("k.npy", &array(descr, "(4,)", &bytes));
        // Raw keys are the numbers, and take the dtype of the array that they are merged with.
        let raw = if size == 1 { "u8" } else { "i64" };
        folder.run(&format!("sort k.npy -o raw.{raw}")).succeeds();
        let numbers = |order: &[usize]| {
            let mut numbers = rows(&bytes, size, order);
            if descr.starts_with("'>") {
                numbers.chunks_mut(size).for_each(<[u8]>::reverse);
            }
            numbers
        };
        assert!(read(&format!("raw.{raw}")) == numbers(&order));
        folder.run("sort k.npy -o sorted.npy --endian little").succeeds();
        let little = descr.replace('>', "<");
        assert!(read("sorted.npy") == array(&little, "(4,)", &numbers(&order)));
        folder.run(&format!("merge raw.{raw} sorted.npy -o out.npy")).succeeds();
        let twice = [order[0], order[0], order[1], order[1], order[2], order[2], order[3], order[3]];
        assert!(read("out.npy") == array(&little, "(8,)", &numbers(&twice)));
        folder.run(&format!("sort k.npy -o out.npy --type {raw}")).succeeds();
        folder.refuses("sort k.npy -o new --type u64", &["k.npy: holds ", "by its header, expected u64 keys"]);
        for format in ["arrow", "arrows"] {
            let parts =
                [&*format!("new.{format}: keys of dtype {} ", descr.trim_matches(['\'', '<', '>', '|'])), "Arrow"];
            folder.refuses(&format!("sort k.npy -o new.{format}"), &parts);
            folder.refuses(&format!("merge sorted.npy sorted.npy -o new.{format}"), &parts);
        }
        folder.refuses("sort k.npy -o new --segments k.npy", &["k.npy: holds ", "expected integers as offsets"]);
    }
}

/// Without `--key`, strings are ordered by their bytes, and strings of characters by their characters.
#[test]
fn strings_are_ordered_as_a_whole() {
    let folder = Folder::new();
    let read = |name: &str| folder.read::<u8>(name);
    let characters = |texts: [&str; 4], endian: fn(u32) -> [u8; 4]| {
        let padded = texts.map(|text| text.chars().chain(['\0'; 2]).take(2).map(u32::from).collect::<Vec<_>>());
        padded.concat().into_iter().flat_map(endian).collect::<Vec<u8>>()
    };
    // The code points have more than one byte, and their little-endian bytes are in another order.
    let texts = ["éa", "z", "\u{1f600}", "Ā"];
    for (descr, width, bytes, order) in [
        ("'|S3'", 3, b"bcab\0\0\xff\0\0abc".to_vec(), [3, 1, 0, 2]),
        ("'|V20'", 20, [[1; 20], [0; 20], [255; 20], [7; 20]].concat(), [1, 0, 3, 2]),
        ("'<U2'", 8, characters(texts, u32::to_le_bytes), [1, 0, 3, 2]),
        ("'>U2'", 8, characters(texts, u32::to_be_bytes), [1, 0, 3, 2]),
    ] {
        folder.write("k.npy", &array(descr, "(4,)", &bytes));
        let sorted = |order: &[usize]| array(descr, "(4,)", &rows(&bytes, width, order));
        folder.run("sort k.npy -o out.npy --check").succeeds();
        assert!(read("out.npy") == sorted(&order), "{descr}");
        folder.run("check out.npy").succeeds();
        folder.run("check out.npy -u").succeeds();
        folder.run("check k.npy").fails(1, &["k.npy: disorder at index "]);
        folder.run("sort k.npy -r -o out.npy").succeeds();
        let reverse: Vec<usize> = order.into_iter().rev().collect();
        assert!(read("out.npy") == sorted(&reverse), "{descr}");
    }
}

/// bfloat16 of the package ml_dtypes is `V` with a byte order.
#[test]
fn bfloat16_in_arrays() {
    let folder = Folder::new();
    let read = |name: &str| folder.read::<u8>(name);
    let keys = [0x3f80u16, 0xbf80, 0x7fc0, 0xffc0, 0x8000, 0, 0xff80];
    for (descr, bytes) in [("'<V2'", keys.map(u16::to_le_bytes)), ("'>V2'", keys.map(u16::to_be_bytes))] {
        let bytes = bytes.as_flattened();
        folder.write("k.npy", &array(descr, "(7,)", bytes));
        for (flags, order) in
            [("", [6, 1, 4, 5, 0, 2, 3]), ("--nan total", [3, 6, 1, 4, 5, 0, 2]), ("-r", [0, 5, 4, 1, 6, 3, 2])]
        {
            folder.run(&format!("sort k.npy -o out.npy --check {flags}")).succeeds();
            assert!(read("out.npy") == array(descr, "(7,)", &rows(bytes, 2, &order)), "{descr} {flags}");
        }
        folder.run("sort k.npy -o out.bf16le").succeeds();
        assert_eq!(folder.read::<u16>("out.bf16le"), [6, 1, 4, 5, 0, 2, 3].map(|i: usize| keys[i]));
        folder.run("merge out.bf16le k.npy -o new.npy").fails(2, &["k.npy: not sorted at index 1: -1.0 after 1.0"]);
        folder.refuses("sort k.npy -o new.arrow", &["new.arrow: Arrow has no type for bf16 keys"]);
        folder.refuses("sort k.npy -o new --type f16", &["k.npy: holds bf16 keys by its header, expected f16"]);
    }
    // Without a byte order, these are bytes.
    folder.write("k.npy", &array("'|V2'", "(2,)", &[0, 0x80, 0, 0]));
    folder.run("sort k.npy -o out.npy").succeeds();
    assert!(read("out.npy") == array("'|V2'", "(2,)", &[0, 0, 0, 0x80]));
}

#[test]
fn rows_of_arrays_are_sorted_each_on_its_own() {
    let folder = Folder::new();
    let read = |name: &str| folder.read::<u8>(name);
    let bytes = |numbers: &[i16]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
    let numbers = |shape: &str, numbers: &[i16]| array("'>i2'", shape, &bytes(numbers));
    folder.write("k.npy", &numbers("(2, 3)", &[3, -1, 2, 0, 9, -9]));
    for axis in [1, -1] {
        folder.run(&format!("sort k.npy --axis {axis} -o out.npy")).succeeds();
        assert!(read("out.npy") == numbers("(2, 3)", &[-1, 2, 3, -9, 0, 9]));
        folder.run(&format!("sort k.npy --axis {axis} -r -o out.npy")).succeeds();
        assert!(read("out.npy") == numbers("(2, 3)", &[3, 2, -1, 9, 0, -9]));
    }
    folder.run("sort k.npy k.npy --axis 1 -o out.i16be").succeeds();
    assert!(read("out.i16be") == bytes(&[-1, 2, 3, -9, 0, 9, -1, 2, 3, -9, 0, 9]));
    folder.write("v.npy", &array("'|u1'", "(6,)", &[0, 1, 2, 3, 4, 5]));
    folder.run("sort k.npy --axis 1 --values v.npy -o out.npy --values-out moved.u8").succeeds();
    assert_eq!(read("moved.u8"), [1, 2, 0, 5, 3, 4]);
    // In a pipe, and of three dimensions: the last one.
    folder.write("three.npy", &numbers("(2, 2, 2)", &[4, 3, 2, 1, 8, 7, 5, 6]));
    let run = folder.run_with_input("sort - --axis 2 -o - --format npy", &read("three.npy"));
    run.succeeds();
    assert!(run.stdout() == numbers("(2, 2, 2)", &[3, 4, 1, 2, 7, 8, 5, 6]));
    folder.write("none.npy", &numbers("(0, 3)", &[]));
    folder.run("sort none.npy --axis 1 -o out.npy").succeeds();
    assert!(read("out.npy") == read("none.npy"));
    folder.write("empty.npy", &numbers("(3, 0)", &[]));
    folder.write("flat.npy", &numbers("(3,)", &[1, 2, 3]));
    folder.write("wide.npy", &numbers("(1, 4)", &[1, 2, 3, 4]));
    folder.write("raw.u32", &[1u32]);
    for (arguments, parts) in [
        ("k.npy --axis 2", ["k.npy: has 2 dimensions", "--axis 0, the first, or 1 or -1, the last"]),
        ("k.npy --axis -2", ["k.npy: has 2 dimensions", "--axis 0, the first, or 1 or -1, the last"]),
        ("three.npy --axis 1", ["three.npy: has 3 dimensions", "--axis 0, the first, or 2 or -1, the last"]),
        ("k.npy", ["k.npy: .npy header", "see --rows and --axis"]),
        ("flat.npy --axis -1", ["flat.npy: .npy header", "2 or more"]),
        ("empty.npy --axis 1", ["empty.npy: has rows without keys", "--axis"]),
        ("raw.u32 --axis 1", ["raw.u32: is no .npy file", "--axis"]),
        ("k.npy wide.npy --axis 1", ["k.npy holds rows of dtype shape [3]", "wide.npy of dtype shape [4]"]),
        ("k.npy --axis 1 --segment-len 3", ["--axis", "--segment-len"]),
        ("k.npy --axis 1 -u", ["--axis", "--unique"]),
        ("k.npy --axis 1 --rows", ["--axis", "--rows"]),
    ] {
        folder.refuses(&format!("sort {arguments} -o new.npy"), &parts);
    }
}

#[test]
fn rows_of_arrays_are_records() {
    let (folder, mut random) = (Folder::new(), Random::new());
    let read = |name: &str| folder.read::<u8>(name);
    for count in [0, 1, 5000] {
        let rows: Vec<[i32; 3]> = (0..count).map(|_| std::array::from_fn(|_| (random.next() % 5) as i32 - 2)).collect();
        let of = |rows: &[[i32; 3]]| {
            array("'<i4'", &format!("({}, 3)", rows.len()), bytemuck::cast_slice(rows.as_flattened()))
        };
        folder.write("k.npy", &of(&rows));
        let mut sorted = rows.clone();
        sorted.sort();
        let mut by_columns = rows.clone();
        by_columns.sort_by_key(|row| (std::cmp::Reverse(row[2]), row[0]));
        let mut distinct = sorted.clone();
        distinct.dedup();
        for (flags, expected) in [
            ("--rows", &sorted),
            ("--rows --check -S 1M", &sorted),
            ("--rows --key 0,1,2", &sorted),
            ("--rows --key 2:desc,0", &by_columns),
            ("--rows --key 2,0:desc -r", &{
                let mut rows = rows.clone();
                rows.sort_by_key(|row| (std::cmp::Reverse(row[2]), row[0]));
                rows
            }),
            ("--rows -u", &distinct),
            ("--rows --top 7", &sorted[..sorted.len().min(7)].to_vec()),
        ] {
            folder.run(&format!("sort k.npy {flags} -o out.npy")).succeeds();
            assert!(read("out.npy") == of(expected), "{count} {flags}");
        }
        folder.write("sorted.npy", &of(&sorted));
        folder.run("check sorted.npy --rows").succeeds();
        folder.run("merge sorted.npy sorted.npy --rows -u -o out.npy").succeeds();
        assert!(read("out.npy") == of(&distinct));
        folder.run("intersect sorted.npy sorted.npy --rows -o out.npy").succeeds();
        assert!(read("out.npy") == of(&sorted));
    }
    // A field at an offset has the byte order of the array.
    folder.write("big.npy", &array("'>i2'", "(2, 1)", &[1, 0, 0, 1]));
    folder.run("sort big.npy --rows --key 0:i16 -o out.npy").succeeds();
    assert!(read("out.npy") == array("'>i2'", "(2, 1)", &[0, 1, 1, 0]));
    folder.write("flat.npy", &array("'<i4'", "(1,)", &[0; 4]));
    folder.write("fields.npy", &array("[('a', '|S2')]", "(1, 2)", &[0; 4]));
    folder.write("raw.u32", &[1u32]);
    for (arguments, parts) in [
        ("k.npy --rows --key 3", ["k.npy: has rows of 3 items", "columns 0 to 2"]),
        ("k.npy --rows --key x", ["k.npy: has no field", "\"x\""]),
        ("flat.npy --rows", ["flat.npy: .npy header", "2 or more"]),
        ("fields.npy --rows", ["fields.npy: has no rows for --rows", "numbers or strings"]),
        ("raw.u32 --rows", ["raw.u32: is no .npy file", "--rows"]),
        ("raw.u32 --record-size 4 --key 0", ["--key 0: is a column", "0:f64"]),
        ("k.npy --rows --type i32", ["--rows", "--type"]),
    ] {
        folder.refuses(&format!("sort {arguments} -o new.npy"), &parts);
    }
}

#[test]
fn keys_of_two_dtypes_are_not_mixed() {
    let folder = Folder::new();
    for (of_a, of_b) in [("'<M8[s]'", "'<M8[ns]'"), ("'<M8[s]'", "'<m8[s]'"), ("'<M8[s]'", "'<i8'"), ("'|b1'", "'|u1'")]
    {
        let bytes = vec![0; if of_a == "'|b1'" { 2 } else { 16 }];
        fs::write(folder.path("a.npy"), array(of_a, "(2,)", &bytes)).unwrap();
        fs::write(folder.path("b.npy"), array(of_b, "(2,)", &bytes)).unwrap();
        for command in
            ["merge", "sort", "sort -m", "batch -d 2", "union", "intersect", "sort --argsort", "sort --top 1"]
        {
            let name = |descr: &str| descr.trim_matches(['\'', '<', '|']).to_owned();
            let parts =
                [format!("a.npy holds keys of dtype {} ", name(of_a)), format!("b.npy of dtype {}:", name(of_b))];
            folder.refuses(&format!("{command} a.npy b.npy -o out"), &parts.each_ref().map(|part| &**part));
        }
    }
    // The byte order may differ.
    fs::write(folder.path("a.npy"), array("'<M8[s]'", "(1,)", &3i64.to_le_bytes())).unwrap();
    fs::write(folder.path("b.npy"), array("'>M8[s]'", "(1,)", &2i64.to_be_bytes())).unwrap();
    folder.run("merge a.npy b.npy -o out.npy").succeeds();
    let expected = array("'<M8[s]'", "(2,)", bytemuck::cast_slice(&[2i64, 3]));
    assert!(fs::read(folder.path("out.npy")).unwrap() == expected);
}

#[test]
fn records_of_arrays_in_pipes() {
    let folder = Folder::new();
    let descr = "[('id', '<u4'), ('tag', '|S20')]";
    for count in [0u32, 1, 3, 40_000] {
        let record = |i: u32| [&i.to_le_bytes()[..], &[(i % 251) as u8; 20]].concat();
        let ids: Vec<u32> = (0..count).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        let mut sorted = ids.clone();
        sorted.sort();
        let of = |ids: &[u32]| {
            array(descr, &format!("({count},)"), &ids.iter().flat_map(|&id| record(id)).collect::<Vec<u8>>())
        };
        let (file, sorted) = (of(&ids), of(&sorted));
        // Short keys, long keys, and keys that exceed the memory.
        for flags in ["--key id", "--key id,tag", "--key id -S 1M", "--key id --check", "--key id --record-size 24"] {
            folder.run_with_input(&format!("sort - -o out.npy {flags}"), &file).succeeds();
            assert!(fs::read(folder.path("out.npy")).unwrap() == sorted, "{count} {flags}");
            let run =
                folder.run_with_input(&format!("sort - -o - --format npy {}", flags.replace(" --check", "")), &file);
            run.succeeds();
            assert!(run.stdout() == sorted, "{count} {flags}");
        }
        folder.run_with_input("check - --key id", &sorted).succeeds();
        folder.run_with_input("sort -c - --key id -u", &sorted).succeeds();
        let cut = folder.run_with_input("sort - -o new.npy --key id", &[&file[..], b"x"].concat());
        cut.fails(2, &["-: ", "by its .npy header"]);
        let cut = folder.run_with_input("sort - -o new.npy --key id", &file[..file.len() - 1]);
        cut.fails(2, &["-: "]);
    }
    // A pipe beside a file.
    let ids = |name: &str| array(descr, "(1,)", &[&[name.len() as u8, 0, 0, 0][..], &[b'x'; 20]].concat());
    fs::write(folder.path("two.npy"), ids("12")).unwrap();
    folder.run_with_input("sort two.npy - -o out.npy --key id", &ids("1")).succeeds();
    let expected = [&[1u8, 0, 0, 0][..], &[b'x'; 20], &[2, 0, 0, 0], &[b'x'; 20]].concat();
    assert!(fs::read(folder.path("out.npy")).unwrap() == array(descr, "(2,)", &expected));
    folder.shell("mkfifo p.npy; cat two.npy > p.npy & gmerge sort p.npy -o out.npy --key tag,id; wait").succeeds();
    assert!(fs::read(folder.path("out.npy")).unwrap() == ids("12"));
}
