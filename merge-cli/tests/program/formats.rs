//! Files with headers, and both byte orders. The headers are built here, byte by byte.

use crate::common::{
    self, Folder, GMERGE, Random, Run, TestKey, assert_same, for_each_type, npy_header, sorted_places,
};
use std::fs;

/// The content of an existing output, which must not change.
const OLD: &[u8] = b"old output";

/// NumPy's name for a type, without its byte order. NumPy has no name for u128.
fn descr<K: TestKey>() -> String {
    format!("{}{}", &K::NAME[..1], size_of::<K>())
}

/// The sign of a byte order in NumPy's header.
fn sign<K>(order: &str) -> &str {
    match (size_of::<K>(), order) {
        (1, _) => "|",
        (_, "big") => ">",
        _ => "<",
    }
}

/// The header that NumPy itself writes.
fn header<K: TestKey>(order: &str, count: usize) -> Vec<u8> {
    let (sign, descr) = (sign::<K>(order), descr::<K>());
    common::npy(&format!("'{sign}{descr}'"), &format!("({count},)"), &[])
}

/// The bytes of keys in a byte order.
fn bytes<K: TestKey>(order: &str, keys: &[K]) -> Vec<u8> {
    let mut bytes = bytemuck::cast_slice::<K, u8>(keys).to_vec();
    if order == "big" {
        bytes.chunks_mut(size_of::<K>()).for_each(<[u8]>::reverse);
    }
    bytes
}

/// A whole .npy file.
fn npy<K: TestKey>(order: &str, keys: &[K]) -> Vec<u8> {
    [header::<K>(order, keys.len()), bytes(order, keys)].concat()
}

/// The keys of a file in a byte order, from byte `begin` on.
fn keys_after<K: TestKey>(begin: usize, order: &str, file: &[u8]) -> Vec<K> {
    let mut file = file[begin..].to_vec();
    if order == "big" {
        file.chunks_mut(size_of::<K>()).for_each(<[u8]>::reverse);
    }
    bytemuck::pod_collect_to_vec(&file)
}

/// Checks that `found` is the .npy file of these keys, byte for byte.
#[track_caller]
fn assert_npy<K: TestKey>(found: &[u8], order: &str, expected: &[K], what: &str) {
    let header = header::<K>(order, expected.len());
    assert!(found.starts_with(&header), "{what}: begins with \"{}\"", found[..found.len().min(130)].escape_ascii());
    assert_same(&keys_after::<K>(header.len(), order, found), expected, what);
}

#[test]
fn messages_count_bytes_from_the_beginning_of_the_file() {
    let folder = Folder::new();
    let header = header::<u32>("little", 3);
    fs::write(folder.path("a.npy"), [&*header, &bytes("little", &[1u32, 7, 3])].concat()).unwrap();
    let byte = format!("(byte {})", header.len() + 8);
    folder.run("check a.npy").fails(1, &["index 2: 3 after 7", &byte]);
    folder.run("merge a.npy a.npy -o out.npy").fails(2, &["index 2: 3 after 7", &byte]);
}

#[test]
fn all_types_and_both_byte_orders_through_every_command() {
    let mut random = Random::new();
    for_each_type!(K => {
        for order in ["little", "big"] {
            for size in [0, 1, 5003] {
                every_command::<K>(&mut random, order, size);
            }
        }
    });
}

fn every_command<K: TestKey>(random: &mut Random, order: &str, size: usize) {
    let folder = Folder::new();
    let what = format!("{} {order} {size}", K::NAME);
    let keys = random.keys::<K>(size);
    let sorted = common::sorted(&keys);
    let twice = common::sorted(&[&*sorted, &*sorted].concat());

    // Raw files, with the byte order from the flag and from the extension.
    let name = K::NAME;
    fs::write(folder.path("keys"), bytes(order, &keys)).unwrap();
    folder.run(&format!("sort keys -o out --type {name} --endian {order} --engine cpu")).succeeds();
    assert_same(&keys_after::<K>(0, order, &fs::read(folder.path("out")).unwrap()), &sorted, &what);
    let extension = format!("{name}{}", &order.replace("little", "le").replace("big", "be"));
    fs::write(folder.path(&format!("keys.{extension}")), bytes(order, &keys)).unwrap();
    folder.run(&format!("sort keys.{extension} -o out.{name} --engine cpu")).succeeds();
    assert_same(&folder.read::<K>(&format!("out.{name}")), &sorted, &what);
    folder.run(&format!("sort keys.{extension} -o out.{extension} --engine cpu")).succeeds();
    assert_eq!(fs::read(folder.path(&format!("out.{extension}"))).unwrap(), bytes(order, &sorted), "{what}");
    folder.run(&format!("check out.{extension}")).succeeds();
    if name == "u128" {
        let run = folder.run(&format!("sort keys.{extension} -o out.npy"));
        return run.fails(2, &["out.npy: NumPy has no type for u128 keys", "--format raw"]);
    }

    fs::write(folder.path("keys.npy"), npy(order, &keys)).unwrap();
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    folder.run("sort keys.npy -o sorted.npy --engine cpu").succeeds();
    assert_npy(&read("sorted.npy"), order, &sorted, &what);
    folder.run("sort keys.npy -o plain --engine cpu").succeeds();
    assert_same(&folder.read::<K>("plain"), &sorted, &what);
    folder.run("check sorted.npy").succeeds();
    folder.run("merge sorted.npy sorted.npy -o merged.npy --engine cpu").succeeds();
    assert_npy(&read("merged.npy"), order, &twice, &what);
    // The first input determines the byte order of the output.
    folder.run(&format!("merge sorted.npy out.{name} -o merged.npy --engine cpu")).succeeds();
    assert_npy(&read("merged.npy"), order, &twice, &what);
    folder.run("batch keys.npy keys.npy -d 2 -o pairs.npy --engine cpu").succeeds();
    let pairs: Vec<K> = keys.iter().flat_map(|&key| [key, key]).collect();
    assert_npy(&read("pairs.npy"), order, &pairs, &what);
    folder.run("sort keys.npy -o sorted.npy --endian little --engine cpu").succeeds();
    assert_npy(&read("sorted.npy"), "little", &sorted, &what);
}

#[test]
fn generated_keys_are_the_same_in_every_format() {
    let folder = Folder::new();
    for_each_type!(K => {
        let name = K::NAME;
        let gen_to = |output: &str| folder.run(&format!("gen -n 10007 --seed 7 --type {name} -o {output}")).succeeds();
        gen_to("keys");
        let keys = folder.read::<K>("keys");
        gen_to("big --endian big");
        assert_eq!(fs::read(folder.path("big")).unwrap(), bytes("big", &keys));
        if name != "u128" {
            gen_to("keys.npy");
            assert_npy(&fs::read(folder.path("keys.npy")).unwrap(), "little", &keys, name);
            gen_to("keys.npy --endian big");
            assert_npy(&fs::read(folder.path("keys.npy")).unwrap(), "big", &keys, name);
            gen_to("keys.bin --format npy");
            assert_npy(&fs::read(folder.path("keys.bin")).unwrap(), "little", &keys, name);
            gen_to("keys.npy --format raw");
            assert_same(&folder.read::<K>("keys.npy"), &keys, name);
        }
    });
    folder.run("gen -n 5 -o new.npy").fails(2, &["new.npy: no extension tells the type", "--type"]);
    assert!(!folder.path("new.npy").exists());
}

#[test]
fn every_version_and_spelling_of_a_header() {
    let folder = Folder::new();
    let keys = [3u16, 1, 2];
    for text in [
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }",
        "{'shape': (3,), 'fortran_order': True, 'descr': '=u2'}\n",
        "{\"descr\": \"u2\",\"shape\":(3L,),\"fortran_order\":False}    ",
    ] {
        for major in 1..=3 {
            let file = [npy_header(major, text), bytes("little", &keys)].concat();
            fs::write(folder.path("keys.npy"), file).unwrap();
            folder.run("sort keys.npy -o out.npy").succeeds();
            assert_npy(&fs::read(folder.path("out.npy")).unwrap(), "little", &[1u16, 2, 3], text);
        }
    }
}

#[test]
fn bits_come_out_as_they_went_in() {
    let folder = Folder::new();
    let bits = [0x7fc0_0001u32, 0x8000_0000, 0, 0xffc0_0002, 0xff80_0000, 0x7f80_0001, 1, 0x8000_0001];
    let sorted = [0xff80_0000u32, 0x8000_0001, 0x8000_0000, 0, 1, 0x7f80_0001, 0x7fc0_0001, 0xffc0_0002];
    let reverse = [1, 0, 0x8000_0000u32, 0x8000_0001, 0xff80_0000, 0xffc0_0002, 0x7fc0_0001, 0x7f80_0001];
    let [keys, sorted, reverse] = [bits, sorted, reverse].map(|bits| bits.map(f32::from_bits));
    for order in ["little", "big"] {
        fs::write(folder.path("keys.npy"), npy(order, &keys)).unwrap();
        folder.run("sort keys.npy -o out.npy").succeeds();
        assert_npy(&fs::read(folder.path("out.npy")).unwrap(), order, &sorted, order);
        folder.run("sort keys.npy -o out.npy --reverse").succeeds();
        assert_npy(&fs::read(folder.path("out.npy")).unwrap(), order, &reverse, order);
    }
}

#[test]
fn the_content_tells_and_the_extension_must_not_contradict() {
    let folder = Folder::new();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path(name), bytes).unwrap();
    let keys = npy("big", &[3i32, -1, 2]);
    // An .npy file is recognized under any name.
    for name in ["keys.npy", "keys.NPY", "keys.i32", "keys.i32be", "keys.bin", "keys"] {
        write(name, &keys);
        folder.run(&format!("sort {name} -o out.i32")).succeeds();
        assert_eq!(folder.read::<i32>("out.i32"), [-1, 2, 3]);
        folder.run(&format!("sort {name} -o out --type i32")).succeeds();
        assert_eq!(folder.read::<i32>("out"), [-1, 2, 3]);
        let parts = [name, "holds i32 keys by its header, expected u32 keys by --type"];
        folder.refuses(&format!("sort {name} -o out --type u32"), &parts);
        folder.refuses(&format!("check {name} --type u32"), &[name, "by its header"]);
    }
    // The flag affects raw files only.
    folder.run("sort keys.npy -o out.i32 --endian little").succeeds();
    assert_eq!(folder.read::<i32>("out.i32"), [-1, 2, 3]);

    write("keys.u32", &keys);
    write("other.npy", &npy("little", &[1.5f32]));
    // A header takes precedence over the name of the file.
    folder.run("sort keys.u32 -o out.i32").succeeds();
    assert_eq!(folder.read::<i32>("out.i32"), [-1, 2, 3]);
    for (arguments, part) in [
        ("sort keys.npy -o out.i64", "keys.npy holds i32 keys by its header and out.i64 i64 keys by its extension: "),
        ("merge keys.npy other.npy -o out", "keys.npy holds i32 keys by its header and other.npy f32 keys: both must"),
        ("merge keys.npy none.u8 -o out", "none.u8: No such file"),
    ] {
        folder.run(arguments).fails(2, &[part]);
    }

    // A raw file is not recognized as .npy.
    for content in [&b""[..], b"\x93NUM", b"\x93NUMPX\x01\x00", b"12345678"] {
        write("raw.npy", content);
        let begin = content[..content.len().min(6)].escape_ascii().to_string();
        let found = if content.is_empty() { "raw.npy: is empty, " } else { "raw.npy: begins with " };
        let parts = [found, &*begin, "expected \"\\x93NUMPY\"", "if it is raw, rename it"];
        folder.refuses("sort raw.npy -o out --type u8", &parts);
        fs::rename(folder.path("raw.npy"), folder.path("raw")).unwrap();
        folder.run("sort raw -o out --type u8").succeeds();
        let mut sorted = content.to_vec();
        sorted.sort();
        assert_eq!(fs::read(folder.path("out")).unwrap(), sorted);
    }
}

#[test]
fn values_and_indices_are_arrays_where_their_names_say_so() {
    let mut random = Random::new();
    let folder = Folder::new();
    let keys = random.keys::<f64>(5001);
    let values: Vec<u32> = (0..5001).collect();
    let places: Vec<u64> = sorted_places(&keys, false).into_iter().map(|place| place as u64).collect();
    let sorted = common::sorted(&keys);
    fs::write(folder.path("keys.npy"), npy("big", &keys)).unwrap();
    folder.write("values", &values);
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    folder.run("sort keys.npy --values values -o sorted.npy --values-out moved.npy").succeeds();
    assert_npy(&read("sorted.npy"), "big", &sorted, "keys");
    let moved = read("moved.npy");
    assert!(moved.starts_with(b"\x93NUMPY\x01\0v\0{'descr': '|V4', 'fortran_order': False, 'shape': (5001,), }"));
    let moved: Vec<u32> = bytemuck::pod_collect_to_vec(&moved[moved.len() - 4 * 5001..]);
    assert!(moved.into_iter().map(u64::from).eq(places.iter().copied()));
    folder.run("sort keys.npy --values values -o sorted.npy --values-out moved").succeeds();
    assert!(folder.read::<u32>("moved").into_iter().map(u64::from).eq(places.iter().copied()));
    // Indices are no keys, and do not have the byte order of the input.
    folder.run("sort keys.npy --argsort -o places.npy").succeeds();
    assert_npy(&read("places.npy"), "little", &places, "places");
    folder.run("sort keys.npy --argsort -o places").succeeds();
    assert_same(&folder.read::<u64>("places"), &places, "raw places");

    fs::write(folder.path("keys.f64be"), bytes("big", &keys)).unwrap();
    folder.run("sort keys.f64be --values values -o sorted --values-out moved").succeeds();
    assert_same(&folder.read::<f64>("sorted"), &sorted, "keys.f64be");
    let (a, b) = (npy("little", &sorted[..2000]), npy("little", &sorted[2000..]));
    fs::write(folder.path("a.npy"), a).unwrap();
    fs::write(folder.path("b.npy"), b).unwrap();
    folder.write("va", &values[..2000]);
    folder.write("vb", &values[2000..]);
    folder.run("merge a.npy b.npy --values va vb -o merged.npy --values-out merged").succeeds();
    assert_npy(&read("merged.npy"), "little", &sorted, "merged");
    assert_eq!(folder.read::<u32>("merged"), values);
}

#[test]
fn malformed_files_are_told_and_nothing_is_written() {
    let folder = Folder::new();
    let data = bytes("little", &[3u32, 1, 2]);
    let dict = |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
    let with = |text: &str| [npy_header(1, text), data.clone()].concat();
    let good = npy("little", &[3u32, 1, 2]);
    let mut newer = good.clone();
    newer[6] = 4;
    let mut endless = npy_header(2, &dict("'<u4'", "(3,)"));
    endless[8..12].fill(0xff);
    let cases = [
        (
            "two dimensions",
            with(&dict("'<u4'", "(3, 1)")),
            "at byte 60: the array has 2 dimensions, \"(3, 1)\", expected 1",
        ),
        ("no dimension", with(&dict("'<u4'", "()")), "at byte 60: the array has 0 dimensions"),
        ("objects in records", with(&dict("[('a', '|O')]", "(3,)")), "at byte 27: dtype \"|O\" is Python objects"),
        ("objects", with(&dict("'|O'", "(3,)")), "at byte 20: dtype \"|O\" is no type of keys, expected one of u1"),
        ("long complex", with(&dict("'<c32'", "(3,)")), "dtype \"<c32\" is no type of keys"),
        ("a key too many", with("{'descr': '<u4', 'size': 3}"), "at byte 27: expected no key \"'size'\""),
        (
            "a key too few",
            with("{'descr': '<u4', 'shape': (3,)}"),
            "expected the keys 'descr', 'fortran_order' and 'shape'",
        ),
        ("no dict", with("import os"), "at byte 10: expected a Python literal, found \"import os\""),
        ("version", newer, "has an .npy header of version 4.0, expected 1.0, 2.0 or 3.0"),
        ("endless", endless, "header of 4294967295 bytes by byte 8, expected at most 65536"),
        (
            "too many",
            with(&dict("'<u4'", "(18446744073709551615,)")),
            "18446744073709551615 items of 4 bytes are more than a file",
        ),
        ("only the magic", good[..6].to_vec(), "ends at byte 6 in its .npy header, expected 8 bytes of it"),
        ("no length", good[..9].to_vec(), "ends at byte 9 in its .npy header, expected 10 bytes of it"),
        ("half a header", good[..77].to_vec(), "ends at byte 77 in its .npy header, expected 128 bytes of it"),
        (
            "no keys",
            good[..128].to_vec(),
            "length is 128 bytes, expected 140 by its .npy header: 128 of the header and 3 u32",
        ),
        ("too short", good[..139].to_vec(), "length is 139 bytes, expected 140 by its .npy header"),
        ("too long", [&*good, b"x"].concat(), " bytes, expected 140 by its .npy header"),
    ];
    folder.write("good.u32", &[1u32]);
    fs::write(folder.path("out.npy"), OLD).unwrap();
    for (what, file, message) in cases {
        println!("{what}");
        for name in ["bad.npy", "bad.u32"] {
            fs::write(folder.path(name), &file).unwrap();
            let place = format!("{name}: ");
            for command in ["sort", "check", "merge good.u32", "batch -d 2 good.u32"] {
                let output = if command == "check" { "" } else { "-o out.npy" };
                folder.refuses(&format!("{command} {name} {output}"), &[&place, message]);
            }
            fs::remove_file(folder.path(name)).unwrap();
        }
        folder.refuses_input("sort - -o out.npy", &file, &["-: ", message]);
        folder.refuses_input("check -", &file, &["-: ", message]);
    }
}

#[test]
fn standard_input_and_output() {
    let mut random = Random::new();
    let folder = Folder::new();
    for order in ["little", "big"] {
        for size in [0, 1, 3, 70_001] {
            let keys = random.keys::<u64>(size);
            let mut sorted = keys.clone();
            sorted.sort();
            let what = format!("{order} {size}");
            let run = folder.run_with_input("sort - -o - --format npy", &npy(order, &keys));
            run.succeeds();
            assert_npy(run.stdout(), order, &sorted, &what);
            let run = folder.run_with_input("sort - -o -", &npy(order, &keys));
            run.succeeds();
            assert_same(&keys_after::<u64>(0, "little", run.stdout()), &sorted, &what);
            let run = folder.run_with_input(&format!("sort - --type u64 -o - --endian {order}"), &bytes(order, &keys));
            run.succeeds();
            assert_same(&keys_after::<u64>(0, order, run.stdout()), &sorted, &what);
            folder.run_with_input("check -", &npy(order, &sorted)).succeeds();
            folder
                .run_with_input(&format!("sort - -o out.npy --type u64 --endian {order}"), &bytes(order, &keys))
                .succeeds();
            assert_npy(&fs::read(folder.path("out.npy")).unwrap(), order, &sorted, &what);
        }
    }
    // Bytes that detection has read are not lost.
    for size in 0..10 {
        let input = &b"\x93NUMPXyz9"[..size];
        let run = folder.run_with_input("sort - --type u8 -o -", input);
        run.succeeds();
        let mut sorted = input.to_vec();
        sorted.sort();
        assert_eq!(run.stdout(), sorted);
    }
}

#[test]
fn pipes_are_read_in_parts() {
    // More keys than `check` holds in memory at once.
    let folder = Folder::new();
    let count = (64 << 20) / 4 + 10_000;
    for order in ["little", "big"] {
        let generate = format!("gmerge gen -n {count} --dist sorted --type u32 --format npy --endian {order} -o -");
        folder.shell(&format!("{generate} | gmerge check -")).succeeds();
        let last = 128 + 4 * count;
        let run = folder.shell(&format!("{generate} | head -c {} | gmerge check -", last - 4));
        run.fails(2, &[&format!("-: length is {} bytes, expected {last} by its .npy header", last - 4)]);
        let run = folder.shell(&format!("{{ {generate}; printf x; }} | gmerge check -"));
        run.fails(2, &[&format!("-: has more bytes, expected {last} by its .npy header")]);
    }
    folder.run(&format!("gen -n {count} --dist sorted -o keys.u32be")).succeeds();
    folder.run("check keys.u32be").succeeds();
    let mut keys = fs::read(folder.path("keys.u32be")).unwrap();
    let place = count - 3;
    keys[4 * place..][..4].fill(0);
    fs::write(folder.path("keys.u32be"), keys).unwrap();
    folder.run("check keys.u32be").fails(1, &[&format!("disorder at index {place}: 0 after 42")]);
}

#[test]
fn outputs_of_many_pieces_in_either_byte_order() {
    let folder = Folder::new();
    for (order, extension) in [("little", "u64"), ("big", "u64be")] {
        folder.run(&format!("gen -n 3000001 --seed 5 -o keys.{extension}")).succeeds();
        let mut keys = keys_after::<u64>(0, order, &fs::read(folder.path(&format!("keys.{extension}"))).unwrap());
        keys.sort();
        folder.run(&format!("sort keys.{extension} -o out.npy")).succeeds();
        assert_npy(&fs::read(folder.path("out.npy")).unwrap(), order, &keys, order);
        folder.run("sort out.npy -o out.u64be").succeeds();
        assert!(fs::read(folder.path("out.u64be")).unwrap() == bytes("big", &keys), "{order}");
    }
}

#[test]
fn an_extension_knows_better_than_the_flag() {
    let folder = Folder::new();
    folder.write("keys.u32le", &[2u32, 1]);
    folder.run("sort keys.u32le -o out.u32 --endian big").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1 << 24, 2 << 24]);
    folder.run("sort out.u32 -o out.U32LE --endian big").succeeds();
    assert_eq!(folder.read::<u32>("out.U32LE"), [1, 2]);
    folder.run("sort keys.u32le -o out.npy --endian big").succeeds();
    assert_npy(&fs::read(folder.path("out.npy")).unwrap(), "big", &[1u32, 2], "to .npy");
}

#[test]
fn names_of_numpy_for_types() {
    let folder = Folder::new();
    folder.write("keys.float32", &[2.5f32, -1.0]);
    folder.run("sort keys.float32 -o out.single").succeeds();
    assert_eq!(folder.read::<f32>("out.single"), [-1.0, 2.5]);
    folder.run("sort keys.float32 -o out --type single").succeeds();
    assert_eq!(folder.read::<f32>("out"), [-1.0, 2.5]);
    folder
        .run("sort keys.float32 -o out.float64")
        .fails(2, &["holds f32 keys by its extension and out.float64 f64 keys"]);
    folder.write("keys.double", &[2.5f64, -1.0]);
    folder.run("sort keys.double -o out.float64be").succeeds();
    assert_eq!(fs::read(folder.path("out.float64be")).unwrap(), bytes("big", &[-1.0f64, 2.5]));
}

#[test]
fn extensions_of_other_formats_are_refused() {
    let folder = Folder::new();
    folder.write("keys.u32", &[2u32, 1]);
    folder.write("keys.csv", &[2u32, 1]);
    folder.write("keys.parquet", &[2u32, 1]);
    for name in ["out.csv", "out.npz", "out.JSON", "out.u32.gz"] {
        let parts = [name, " is for ", "expected .npy, .arrow", "or give --format raw"];
        folder.run(&format!("sort keys.u32 -o {name}")).fails(2, &parts);
        folder.run(&format!("gen -n 5 --type u32 -o {name}")).fails(2, &parts);
    }
    for command in
        ["sort keys.u32 -o out.parquet", "gen -n 5 --type u32 -o out.pq", "sort keys.u32 -o x --format parquet"]
    {
        folder.run(command).fails(2, &["keys cannot be written to Parquet files, which hold tables"]);
    }
    folder.run("sort keys.csv -o out.u32").fails(2, &["keys.csv: .csv is for CSV, expected .npy"]);
    let parts = ["keys.parquet: begins with", "expected \"PAR1\" of a Parquet file"];
    folder.run("sort keys.parquet -o out.u32 --type u32").fails(2, &parts);
    assert_eq!(folder.files(), ["keys.csv", "keys.parquet", "keys.u32"]);
    // A flag with the type makes the file raw.
    folder.run("sort keys.csv -o out.u32 --type u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2]);
    folder.run("sort keys.u32 -o out.txt --format raw").succeeds();
    assert_eq!(folder.read::<u32>("out.txt"), [1, 2]);
}

#[test]
fn raw_keys_may_begin_like_a_parquet_file() {
    let folder = Folder::new();
    let keys = [u32::from_le_bytes(*b"PAR1"), 1];
    folder.write("keys.u32", &keys);
    folder.run("sort keys.u32 -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, keys[0]]);
    let run = folder.run_with_input("sort - -o - --type u32", bytemuck::bytes_of(&keys));
    run.succeeds();
    assert_eq!(run.stdout(), bytemuck::bytes_of(&[1, keys[0]]));
}

#[test]
fn structured_arrays_are_not_sorted_as_numbers() {
    let folder = Folder::new();
    let text = "{'descr': [('a', '<u4')], 'fortran_order': False, 'shape': (3,), }";
    fs::write(folder.path("keys.npy"), [npy_header(1, text), bytes("little", &[3u32, 1, 2])].concat()).unwrap();
    folder.run("sort keys.npy -o out").fails(2, &["keys.npy: holds records", "--key", "of a"]);
    assert_eq!(folder.files(), ["keys.npy"]);
}

#[test]
fn names_of_fields_that_are_no_plain_words_are_quoted() {
    let folder = Folder::new();
    let text = "{'descr': [('0', '<u2'), ('a,b', '<u2'), ('c:desc', '<u2'), ('say \"x\"', '<u2'), ('\"', '<u2'), \
                ('-1', '<u2')], 'fortran_order': False, 'shape': (3,), }";
    // Each column has another least row.
    let rows = [[2u16, 1, 3, 1, 2, 3], [3, 2, 1, 3, 1, 2], [1, 3, 2, 2, 3, 1]];
    fs::write(folder.path("in.npy"), [npy_header(1, text), bytes("little", rows.as_flattened())].concat()).unwrap();
    let sorted = |key: &str| {
        Run::of(folder.command(GMERGE).args(["sort", "in.npy", "-o", "out.dat", "--format", "raw", "--key", key]))
            .succeeds();
        folder.read::<[u16; 6]>("out.dat")
    };
    for (column, key) in ["\"0\"", "\"a,b\"", "\"c:desc\"", "say \"x\"", "\"\"\"\"", "\"-1\""].iter().enumerate() {
        let firsts = |rows: Vec<[u16; 6]>| rows.iter().map(|row| row[column]).collect::<Vec<_>>();
        assert_eq!(firsts(sorted(key)), [1, 2, 3], "{key}");
        assert_eq!(firsts(sorted(&format!("{key}:desc"))), [3, 2, 1], "{key}");
    }
    assert_eq!(sorted("\"say \"\"x\"\"\""), sorted("say \"x\""));
    assert_eq!(sorted("\"c:desc\":desc,\"a,b\"")[0], rows[0]);
    folder
        .run("sort in.npy -o new --key none")
        .fails(2, &["of \"0\", \"a,b\", \"c:desc\", say \"x\", \"\"\"\", \"-1\""]);
    folder.run("sort in.npy -o new --key a,b").fails(2, &["has no field \"a\" for --key", "\"a,b\""]);
    folder.run("sort in.npy -o new --key 0").fails(2, &["--key 0: is a column", "expected OFFSET:TYPE"]);
    folder.run("sort in.npy -o new --key \"a").fails(2, &["expected a double quote after the NAME"]);
    folder
        .run("sort in.npy -o new --key \"0\":u16")
        .fails(2, &["expected `:desc`, `:nulls-first` or nothing after the field"]);
    folder.run("sort in.npy -o new --key \"0\",0:u8").fails(2, &["--key 0:u8: overlaps \"0\""]);
}

#[test]
fn raw_files_that_begin_like_others_are_read_raw_if_asked_for() {
    let folder = Folder::new();
    for magic in [&b"ARROW1"[..], b"\x93NUMPY", b"\xff\xff\xff\xff\x08\0\0\0"] {
        let mut keys = magic.to_vec();
        keys.extend(b"raw bytes, sorted as they are...");
        fs::write(folder.path("keys.u8"), &keys).unwrap();
        folder.run("sort keys.u8 -o out.u8 --format raw").succeeds();
        let mut sorted = keys.clone();
        sorted.sort();
        assert_eq!(fs::read(folder.path("out.u8")).unwrap(), sorted);
        folder.run_with_input("sort - --type u8 -o out.u8 --format raw", &keys).succeeds();
        assert_eq!(fs::read(folder.path("out.u8")).unwrap(), sorted);
    }
    // The name still determines the format of a file. So does a header if nothing else gives the type.
    fs::write(folder.path("keys.npy"), npy("little", &[2u8, 1])).unwrap();
    folder.run("sort keys.npy -o out.u8 --format raw").succeeds();
    assert_eq!(fs::read(folder.path("out.u8")).unwrap(), [1, 2]);
    folder.run_with_input("sort - -o out.u8 --format raw", &npy("little", &[2u8, 1])).succeeds();
    assert_eq!(fs::read(folder.path("out.u8")).unwrap(), [1, 2]);
}

#[test]
fn records_of_structured_arrays_are_sorted_by_their_names() {
    let folder = Folder::new();
    let text = "{'descr': [('time', '>i4'), ('', '|V1'), ('price', '<f8'), ('tag', 'S3')], 'fortran_order': False, \
                'shape': (4,), }";
    let rows = [(7i32, 2.5f64, b"abc"), (-1, 2.5, b"abd"), (3, -0.0, b"abe"), (9, 1e9, b"abf")];
    let record = |&(time, price, tag): &(i32, f64, &[u8; 3])| {
        [&time.to_be_bytes()[..], &[9], &price.to_le_bytes(), tag].concat()
    };
    let header = npy_header(1, text);
    fs::write(folder.path("trades.npy"), [header, rows.iter().flat_map(record).collect()].concat()).unwrap();
    let sorted = |order: [usize; 4]| order.iter().flat_map(|&row| record(&rows[row])).collect::<Vec<u8>>();
    for (key, order) in [
        ("price:desc,time", [3, 1, 0, 2]),
        ("time", [1, 2, 0, 3]),
        ("tag:desc", [3, 2, 1, 0]),
        ("5:f64,time:desc", [2, 0, 1, 3]),
    ] {
        folder.run(&format!("sort trades.npy -o out.npy --key {key} --check")).succeeds();
        let out = fs::read(folder.path("out.npy")).unwrap();
        assert!(out.ends_with(&sorted(order)), "{key}");
        let descr = text.split_once(", 'fortran").unwrap().0.as_bytes();
        assert!(out.windows(descr.len()).any(|part| part == descr), "{key}");
        folder.run(&format!("check out.npy --key {key}")).succeeds();
        let run = folder.run(&format!("sort trades.npy -o - --format npy --key {key}"));
        assert_eq!(run.stdout(), out, "{key}, to a pipe");
        run.succeeds();
        folder.run(&format!("sort trades.npy -o out.dat --key {key} --record-size 16")).succeeds();
        assert_eq!(fs::read(folder.path("out.dat")).unwrap(), sorted(order), "{key}");
    }
    folder
        .run("sort trades.npy -o new --key time,time")
        .fails(2, &["--key time: is there twice, expected each field once"]);
    folder.run("sort trades.npy -o new --key tag,12:u16").fails(2, &["--key 12:u16: overlaps tag, expected fields"]);
    folder.run("sort trades.npy -o new --key price,5:f64:desc").fails(2, &["--key 5:f64:desc: overlaps price"]);
    folder.run("sort trades.npy -o new --key cost").fails(2, &["trades.npy: ", "\"cost\"", "time, price, tag"]);
    folder.run("sort trades.npy -o new --key time --record-size 20").fails(2, &["16 bytes", "20", "--record-size"]);
    folder.run("sort out.dat -o new --key time --record-size 16").fails(2, &["--key time", "OFFSET:TYPE"]);
    assert!(!folder.path("new").exists());
}
