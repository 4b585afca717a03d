//! Formats of values and of offsets, by content and by extension.

use crate::common::{Folder, npy};
use std::fs;

/// A folder with 1000 keys, their values in every format, and the sorted values in `expected`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.run("gen -n 1000 -o k.u32").succeeds();
    for name in ["v.f32", "v.arrow", "v.arrows", "v.ipc", "v.npy", "be.f32be", "be.npy --endian big"] {
        folder.run(&format!("gen -n 1000 --seed 1 --type f32 -o {name}")).succeeds();
    }
    folder.run("sort k.u32 --values v.f32 -o sorted.u32 --values-out expected").succeeds();
    folder.write("ascending.u32", &(0..1000u32).collect::<Vec<_>>());
    folder
}

/// The values of a file, as a raw file holds them.
#[track_caller]
fn raw(folder: &Folder, name: &str) -> Vec<u8> {
    folder.run(&format!("sort ascending.u32 --values {name} -o same.u32 --values-out raw")).succeeds();
    folder.read("raw")
}

const ARROW: [&str; 4] = ["out.arrow", "out.arrows", "out.ipc", "out.feather"];

#[test]
fn values_of_arrow_files_are_their_columns() {
    let folder = folder();
    let expected = folder.read::<u8>("expected");
    for input in ["v.arrow", "v.arrows", "v.ipc", "v.npy"] {
        for out in ["out", "out.npy"].iter().chain(&ARROW) {
            let run = format!("sort k.u32 --values {input} -o out.u32 --values-out {out}");
            folder.run(&run).succeeds();
            assert_eq!(folder.read::<u8>("out.u32"), folder.read::<u8>("sorted.u32"));
            assert!(raw(&folder, out) == expected, "{run}");
            let begin = fs::read(folder.path(out)).unwrap();
            let is_stream = begin.starts_with(&[0xff; 4]);
            assert_eq!(
                (begin.starts_with(b"ARROW1"), is_stream),
                (ARROW.contains(out) && *out != "out.arrows", *out == "out.arrows"),
                "{run}"
            );
            // The lengths of Arrow files in pipes are unknown.
            let run = format!("sort k.u32 --values - -o out.u32 --values-out {out}");
            folder.run_with_input(&run, &folder.read::<u8>(input)).succeeds();
            assert!(raw(&folder, out) == expected, "{run} < {input}");
        }
        let npy = fs::read(folder.path("out.npy")).unwrap();
        assert!(npy[10..].starts_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }"), "{input}");
    }
}

#[test]
fn every_command_with_values_takes_arrow_files() {
    let folder = folder();
    folder.run("sort k.u32 --segment-len 500 --values v.f32 -o k2.u32 --values-out v2").succeeds();
    let halves = |name: &str, size: usize| {
        let bytes = folder.read::<u8>(name);
        let (a, b) = bytes.split_at(500 * size);
        (a.to_vec(), b.to_vec())
    };
    let ((ka, kb), (va, vb)) = (halves("k2.u32", 4), halves("v2", 4));
    for (name, bytes) in [("a.u32", ka), ("b.u32", kb), ("va", va), ("vb", vb)] {
        fs::write(folder.path(name), bytes).unwrap();
    }
    folder.write("half.u32", &(0..500u32).collect::<Vec<_>>());
    for (name, from) in [("wa", "va"), ("wb", "vb")] {
        // The header of an .npy file gives the dtype of the values for the Arrow file.
        folder.write("w.npy", &npy("'<f4'", "(500,)", &folder.read::<u8>(from)));
        folder.run(&format!("sort half.u32 --values w.npy -o same.u32 --values-out {name}.arrow")).succeeds();
    }
    for command in ["merge", "sort -m", "batch -d 1000", "merge -S 1M", "sort"] {
        for out in ["out", "out.arrow", "out.npy"] {
            let values = if command.starts_with("sort") {
                "--values wa.arrow --values wb.arrow"
            } else {
                "--values wa.arrow wb.arrow"
            };
            folder.run(&format!("{command} a.u32 b.u32 {values} -o out.u32 --values-out {out}")).succeeds();
            assert!(raw(&folder, out) == folder.read::<u8>("expected"), "{command} {out}");
        }
    }
    folder.run("sort k.u32 --segment-len 500 --values v.arrow -o out.u32 --values-out out.arrow").succeeds();
    assert!(raw(&folder, "out.arrow") == folder.read::<u8>("v2"));
    folder.run("sort k.u32 --values v.arrow -o out.u32 --values-out out.npy --check").succeeds();
    assert!(raw(&folder, "out.npy") == folder.read::<u8>("expected"));
}

#[test]
fn values_that_arrow_files_cannot_hold_are_refused() {
    let folder = folder();
    folder.write("k2.u32", &[2u32, 1]);
    folder.write("complex.npy", &npy("'<c8'", "(2,)", &[1; 16]));
    folder.write("big.npy", &npy("'>f4'", "(2,)", &[1; 8]));
    folder.write("date.npy", &npy("'<M8[s]'", "(2,)", &[1; 16]));
    folder.write("two.npy", &npy("'<f4'", "(4,)", &[1; 16]));
    folder.write("raw", &[1u8; 8]);
    for out in ARROW {
        let expected = &format!("{out}: Arrow files hold little-endian numbers, one for each key");
        for (values, found) in [
            ("complex.npy", "dtype '<c8'"),
            ("big.npy", "dtype '>f4'"),
            ("date.npy", "dtype '<M8[s]'"),
            ("raw", "values without a dtype"),
        ] {
            for command in ["sort", "merge --assume-sorted", "sort --segment-len 2"] {
                let run = format!("{command} k2.u32 --values {values} -o out.u32 --values-out {out}");
                folder.refuses(&run, &[expected, found]);
            }
        }
        let expected = format!("{out}: Arrow files hold one f32 for each key, found 2: write .npy");
        for command in ["sort", "merge --assume-sorted", "sort --segment-len 2"] {
            let run = format!("{command} k2.u32 --values two.npy -o out.u32 --values-out {out}");
            folder.refuses(&run, &[&expected]);
            // From a pipe, the number of keys is known late.
            let run = format!("{command} - --type u32 --values two.npy -o out.u32 --values-out {out}");
            folder.refuses_input(&run, &[0; 8], &[&expected]);
        }
    }
    for (out, name) in [("--values-out out.arrow", "out.arrow"), ("--values-out -", "-")] {
        for command in ["sort", "merge --assume-sorted", "sort -u"] {
            let run = format!("{command} k.u32 --values v.npy -o out.u32 {out} --check");
            folder.refuses(&run, &[&format!("{name}: --check cannot read this --values-out back")]);
        }
    }
}

#[test]
fn extensions_of_other_formats_are_refused_for_values_and_offsets() {
    let folder = Folder::new();
    folder.write("k.u32", &[2u32, 1]);
    folder.write("v", b"aabb");
    for name in ["v.csv", "v.orc", "v.gz", "v.txt"] {
        folder.write(name, b"aabb");
    }
    folder.write("o.csv", &[0u64, 2]);
    folder.write("o.txt", &[0u64, 2]);
    let merges = ["sort", "merge --assume-sorted", "sort --segment-len 1", "sort --check"];
    for command in merges {
        for name in ["out.csv", "out.JSON", "out.npz", "out.u8.zst"] {
            let run = format!("{command} k.u32 --values v -o out --type u32 --values-out {name}");
            folder.refuses(&run, &[name, " is for ", "another extension for raw values", "give --format raw"]);
        }
        for name in ["v.csv", "v.orc", "v.gz"] {
            let run = format!("{command} k.u32 --values {name} -o out --type u32 --values-out out.rows");
            folder.refuses(&run, &[name, " is for ", "another extension for raw values", "give --format raw"]);
        }
    }
    for name in ["o.csv", "o.txt"] {
        folder.refuses(&format!("sort k.u32 --segments {name} -o out"), &[name, " is for ", "save it as .npy"]);
        let run = format!("batch k.u32 k.u32 --offsets {name} {name} --assume-sorted -o out");
        folder.refuses(&run, &[name, " is for ", "save it as .npy"]);
    }
    folder.refuses("sort k.u32 --argsort -o out.csv", &["out.csv", " is for "]);
    folder.refuses("sort k.u32 --argsort -o out.parquet", &["out.parquet: keys cannot be written to Parquet files"]);
    let command = "sort k.u32 --values v -o out --type u32 --values-out out.parquet";
    folder.refuses(command, &["out.parquet: values cannot be written to Parquet files"]);
    // Lines of equal length can be raw values, and with a flag any file can.
    folder.run("sort k.u32 --values v.txt -o out.u32 --values-out out.txt").succeeds();
    assert_eq!(folder.read::<u8>("out.txt"), b"bbaa");
    folder.run("sort k.u32 --values v.csv -o out.u32 --values-out out.csv --format raw").succeeds();
    assert_eq!(folder.read::<u8>("out.csv"), b"bbaa");
}

#[test]
fn ipc_is_an_arrow_file() {
    let folder = Folder::new();
    folder.write("k.u32", &[2u32, 1]);
    folder.run("sort k.u32 -o k.ipc").succeeds();
    assert!(folder.read::<u8>("k.ipc").starts_with(b"ARROW1"));
    folder.run("check k.ipc").succeeds();
    folder.run("sort k.u32 --argsort -o order.ipc").succeeds();
    assert!(folder.read::<u8>("order.ipc").starts_with(b"ARROW1"));
    folder.run("union k.ipc k.ipc -o both.IPC").succeeds();
    assert!(folder.read::<u8>("both.IPC").starts_with(b"ARROW1"));
    folder.write("raw.ipc", &[2u32, 1]);
    folder
        .run("sort raw.ipc -o out --type u32")
        .fails(2, &["raw.ipc: begins with ", "expected \"ARROW1\" of an Arrow file"]);
    folder.run("sort k.u32 --values raw.ipc -o out --values-out v").fails(2, &["raw.ipc: begins with "]);
}
