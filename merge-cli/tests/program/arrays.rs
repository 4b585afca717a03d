//! Arrays of NumPy: values of any dtype and shape. The headers are built here.

use crate::common::Folder;
use std::fs;

/// The .npy file of an array, as NumPy writes it.
fn array(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    // NumPy leaves space for a first length of 21 digits.
    let digits = shape[1..].bytes().take_while(u8::is_ascii_digit).count();
    let length = (10 + text.len() + 21 - digits + 1).next_multiple_of(64) - 10;
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((length as u16).to_le_bytes());
    file.extend(format!("{text:<width$}\n", width = length - 1).bytes());
    file.extend(bytes);
    file
}

/// The rows of `bytes`, which are of `width` bytes each, at these indices.
fn rows(bytes: &[u8], width: usize, indices: &[usize]) -> Vec<u8> {
    indices.iter().flat_map(|&index| &bytes[width * index..][..width]).copied().collect()
}

/// A folder with keys, sorted and not, whose order is 1, 2, 0.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("k.u32", &[3u32, 1, 2]);
    folder.write("none.u32", &[0u32; 0]);
    folder.write("a.u32", &[1u32, 3]);
    folder.write("b.u32", &[2u32]);
    folder
}

/// Commands on the keys of [`folder`] and their values in v.npy, which move as `1, 2, 0`.
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
    let write = |name: &str, array: &[u8]| fs::write(folder.path(name), array).unwrap();
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
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
        // The number of values in an array is known in a pipe, too, and that of raw keys is not.
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
        // Rows of 6 that three keys would have to share.
        ("'<f4'", "(2, 6)", 48, "v.npy: has 2 rows, expected a multiple of 3"),
        ("'<f4'", "(3, 0)", 0, "v.npy: has no bytes, expected a value for each of the 3 keys"),
        ("'<U0'", "(3,)", 0, "v.npy: has no bytes, expected a value for each of the 3 keys"),
        ("'<f4'", "()", 4, "v.npy: .npy header, at byte 60: the array has 0 dimensions"),
        ("'|O'", "(3,)", 24, "v.npy: .npy header, at byte 20: dtype \"|O\" is Python objects"),
    ] {
        let v = array(descr, shape, &vec![1; bytes]);
        fs::write(folder.path("v.npy"), &v).unwrap();
        let before = folder.files();
        let merges = ["merge k.u32 --values v.npy --assume-sorted"];
        for command in COMMANDS.iter().chain(&merges) {
            for out in ["out.npy", "out"] {
                folder.run(&format!("{command} -o out.u32 --values-out {out}")).fails(2, &[message]);
            }
        }
        let run = "sort - --type u32 --values v.npy -o out.u32 --values-out out.npy";
        folder.run_with_input(run, bytemuck::cast_slice(&[3u32, 1, 2])).fails(2, &[message]);
        let run = "sort k.u32 --values - -o out.u32 --values-out out.npy";
        folder.run_with_input(run, &v).fails(2, &[&message.replace("v.npy", "-")]);
        assert_eq!(folder.files(), before, "{shape}");
    }
    let fortran = array("'<f4'", "(3, 2)", &[0; 24]);
    let fortran: Vec<u8> = String::from_utf8_lossy(&fortran[10..]).replace("False", "True ").bytes().collect();
    fs::write(folder.path("v.npy"), [&array("'<f4'", "(3, 2)", &[])[..10], &fortran].concat()).unwrap();
    folder.run("sort k.u32 --values v.npy -o out.u32 --values-out out.npy").fails(2, &["v.npy: ", "Fortran order"]);
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
        let before = folder.files();
        for out in ["out.npy", "out"] {
            for command in [
                "merge a.u32 b.u32 --values va.npy vb.npy",
                "batch a.u32 b.u32 -d 3 --a-len 2 --values va.npy vb.npy",
                "sort a.u32 b.u32 --values va.npy --values vb.npy",
                "sort -m a.u32 b.u32 --values va.npy --values vb.npy",
                "sort --segment-len 1 a.u32 b.u32 --values va.npy --values vb.npy",
            ] {
                let run = folder.run(&format!("{command} -o out.u32 --values-out {out}"));
                run.fails(2, &["va.npy holds values of dtype ", " and vb.npy of dtype ", "must hold the same"]);
            }
        }
        assert_eq!(folder.files(), before);
    }
    // Bytes without a dtype leave the others without one.
    write("va.npy", &array("'<f4'", "(2,)", &[1; 8]));
    folder.write("vb", &[2u8; 4]);
    folder.run("merge a.u32 b.u32 --values va.npy vb -o out.u32 --values-out out.npy").succeeds();
    let expected = array("'|V4'", "(3,)", &[[1; 4], [2; 4], [1; 4]].concat());
    assert!(fs::read(folder.path("out.npy")).unwrap() == expected);
}
