//! `--value-size`

use crate::common::{Folder, Random, assert_same, npy, sorted, sorted_places, values};

/// Flags about the outputs of keys and values.
const OUT: &str = "-o out.u32 --values-out out.rows";

/// A folder of sorted keys with values of 3 bytes, and of outputs that must not change.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 2, 3]);
    folder.write("b.u32", &[2u32]);
    folder.write("none.u32", &[0u32; 0]);
    folder.write("a.rows", b"aaabbbccc");
    folder.write("b.rows", b"xxx");
    folder.write("none.rows", b"");
    folder.write("ab.rows", b"aaabbbcccxxx");
    folder.write("out.u32", &[9u32]);
    folder.write("out.rows", b"old");
    folder
}

#[test]
fn a_file_of_another_length_is_an_error() {
    let folder = folder();
    let merged = (vec![1u32, 2, 2, 3], b"aaabbbxxxccc".to_vec());
    for (command, files) in [
        ("sort a.u32 b.u32 --values a.rows b.rows", ["a.rows", "a.u32"]),
        ("sort -m a.u32 b.u32 --values a.rows b.rows", ["a.rows", "a.u32"]),
        ("merge a.u32 b.u32 --values a.rows b.rows", ["a.rows", "a.u32"]),
        ("batch a.u32 b.u32 --values a.rows b.rows -d 4 --a-len 3", ["a.rows", "a.u32"]),
        ("sort a.u32 b.u32 --segment-len 4 --values ab.rows", ["ab.rows", "all inputs"]),
    ] {
        for wrong in [1, 2, 4, 9, 1 << 40, isize::MAX] {
            let keys = if files[1] == "a.u32" { 3 } else { 4 };
            let expected = format!(
                "{}: has {} bytes, expected {}, {wrong} by --value-size for each of the {keys} keys of {}",
                files[0],
                3 * keys,
                keys * wrong as i128,
                files[1]
            );
            folder.refuses(&format!("{command} {OUT} --value-size {wrong}"), &[&expected]);
        }
        folder.run(&format!("{command} {OUT} --value-size 3")).succeeds();
        assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.rows")), merged, "{command}");
    }
    folder.refuses(
        &format!("merge a.u32 b.u32 --values a.rows a.rows {OUT} --value-size 3"),
        &["a.rows: has 9 bytes, expected 3, 3 by --value-size for each of the 1 keys of b.u32"],
    );
    folder.refuses(
        &format!("sort none.u32 --values a.rows {OUT} --value-size 3"),
        &["a.rows: has 9 bytes, expected none: none.u32 has no keys"],
    );
}

#[test]
fn items_of_a_header_are_not_divided() {
    let folder = folder();
    folder.write("f4.npy", &npy("'<f4'", "(6,)", &[7; 24]));
    folder.write("rows.npy", &npy("'<f4'", "(3, 2)", &[7; 24]));
    let sort = |values: &str, size| format!("sort a.u32 --values {values} {OUT} --value-size {size}");
    for (values, size, item) in [("f4.npy", 6, 4), ("f4.npy", 2, 4), ("rows.npy", 4, 8)] {
        let expected =
            format!("{values}: has items of {item} bytes by its header, expected a multiple in --value-size {size}");
        folder.refuses(&sort(values, size), &[&expected]);
    }
    folder.refuses(&sort("f4.npy", 4), &["f4.npy: has 24 bytes, expected 12"]);
    for values in ["f4.npy", "rows.npy"] {
        folder.run(&sort(values, 8)).succeeds();
        assert_eq!(folder.read::<u8>("out.rows"), [7; 24]);
    }
    // Without keys, only the flag says how long a value is.
    folder.run("sort none.u32 --values none.rows -o out.u32 --values-out out.npy --value-size 5").succeeds();
    let header = folder.read::<u8>("out.npy");
    assert!(String::from_utf8_lossy(&header).contains("'descr': '|V5'"), "{header:?}");
}

/// A script that runs a command with named pipes, each with the bytes of a file. The pipe of `name` is `name.pipe`.
fn with_pipes(folder: &Folder, names: &[&str], command: &str) -> crate::common::Run {
    let fill = |name: &&str| format!("mkfifo {name}.pipe; cat {name} > {name}.pipe 2> /dev/null &\n");
    let script: String = names.iter().map(fill).collect();
    folder.shell(&format!("{script}{command}\ncode=$?\nkill $(jobs -p) 2> /dev/null\nrm -f *.pipe\nexit $code"))
}

#[test]
fn pipes_that_exceed_the_memory() {
    let (mut random, folder) = (Random::new(), Folder::new());
    let keys: Vec<u32> = (0..400_003).map(|_| random.next() as u32 % 100_000).collect();
    let width = 11;
    folder.write("a.u32", &keys);
    folder.write("a.rows", &values(0..keys.len(), width));
    let places = sorted_places(&keys, false);
    let check = |run: crate::common::Run, places: &[usize], what: &str| {
        run.succeeds();
        let expected: Vec<u32> = places.iter().map(|place| keys[*place]).collect();
        assert_same(&folder.read::<u32>("out.u32"), &expected, what);
        assert!(folder.read::<u8>("out.rows") == values(places.iter().copied(), width), "{what}: values");
    };
    for (pipes, keys_name, rows) in [
        (&["a.u32", "a.rows"][..], "a.u32.pipe", "a.rows.pipe"),
        (&["a.u32"], "a.u32.pipe", "a.rows"),
        (&["a.rows"], "a.u32", "a.rows.pipe"),
    ] {
        let sort = format!("gmerge sort {keys_name} --type u32 --values {rows} {OUT} -S 1M");
        with_pipes(&folder, pipes, &sort).fails(2, &["does not fit in the memory", "or --value-size"]);
        let sort = format!("{sort} --value-size {width}");
        check(with_pipes(&folder, pipes, &sort), &places, &sort);
        check(with_pipes(&folder, pipes, &format!("{sort} --check")), &places, &sort);
        let top = format!("{sort} --top 1000");
        check(with_pipes(&folder, pipes, &top), &places[..1000], &top);
    }
    // Sorted pipes, and a file.
    let third = keys.len() / 3;
    let ranges = [0..third, third..2 * third, 2 * third..keys.len()];
    for (i, range) in ranges.into_iter().enumerate() {
        let sorted_range = sorted(&keys[range.clone()]);
        let places = sorted_places(&keys[range.clone()], false);
        folder.write(&format!("{i}.u32"), &sorted_range);
        folder.write(&format!("{i}.rows"), &values(places.into_iter().map(|place| range.start + place), width));
    }
    let merge = format!(
        "gmerge merge 0.u32.pipe 1.u32 2.u32.pipe --type u32 --values 0.rows.pipe 1.rows.pipe 2.rows {OUT} -S 1M \
         --value-size {width}"
    );
    let pipes = ["0.u32", "2.u32", "0.rows", "1.rows"];
    check(with_pipes(&folder, &pipes, &merge), &places, &merge);
    let run = with_pipes(&folder, &pipes, &format!("{merge} -v"));
    assert!(run.stderr().contains("merged by the CPU while read"), "{}", run.stderr());
    // Several files of keys, with one pipe of values. Several pipes could hide that one has too few values.
    let sort = format!("gmerge sort 0.u32.pipe 1.u32 2.u32.pipe --type u32 {OUT} -S 1M --value-size {width} --values");
    let pipes = ["0.u32", "2.u32", "all.rows"];
    folder.write("all.rows", &["0.rows", "1.rows", "2.rows"].map(|name| folder.read::<u8>(name)).concat());
    check(with_pipes(&folder, &pipes, &format!("{sort} all.rows.pipe")), &places, &sort);
    folder.run("sort 0.u32 1.u32 -o few.u32 --top 9").succeeds();
    let sort =
        format!("gmerge sort few.u32.pipe few.u32 --type u32 {OUT} --value-size 1 --values few.txt few.txt.pipe");
    folder.write("few.txt", b"ninebytes");
    with_pipes(&folder, &["few.u32", "few.txt"], &sort)
        .fails(2, &["several files, and some are pipes", "or one file of values"]);
}

#[test]
fn values_in_pipes_end_with_the_keys() {
    let folder = folder();
    folder.write("long.rows", b"aaabbbcccd");
    folder.write("longer.rows", b"aaabbbcccddd");
    folder.write("short.rows", b"aaabbbcc");
    let pipe = |file: &str| format!("{file}.pipe");
    for command in ["sort", "merge", "sort --segment-len 3", "sort --top 2", "sort -u"] {
        for (rows, message) in [
            (
                "long.rows",
                ["goes on behind the value of the last key, expected 3 bytes for each", "has 10 bytes, expected 9"],
            ),
            ("longer.rows", ["goes on behind the value of the last key", "has 12 bytes, expected 9"]),
            ("short.rows", ["ends before the value of the last key", "has 8 bytes, expected 9"]),
        ] {
            for (pipes, keys, values) in [
                (&["a.u32", rows][..], pipe("a.u32"), pipe(rows)),
                (&["a.u32"], pipe("a.u32"), rows.to_owned()),
                (&[rows], "a.u32".to_owned(), pipe(rows)),
            ] {
                let flags = format!("--type u32 --values {values} {OUT} --value-size 3");
                let run = with_pipes(&folder, pipes, &format!("gmerge {command} {keys} {flags}"));
                // Segments are held in memory, and a merge of few keys, so that the lengths are compared.
                let in_memory = command.contains("segment") || command == "merge" && keys == "a.u32";
                run.fails(2, &[rows, message[usize::from(in_memory)]]);
                assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.rows")), (vec![9], b"old".to_vec()));
            }
        }
    }
    // Without keys, there are no values.
    for (pipes, keys) in [(&["none.u32", "a.rows"][..], "none.u32.pipe"), (&["a.rows"], "none.u32")] {
        for command in ["sort", "merge"] {
            let flags = format!("--type u32 --values a.rows.pipe {OUT} --value-size 3");
            with_pipes(&folder, pipes, &format!("gmerge {command} {keys} {flags}")).fails(2, &["a.rows.pipe: "]);
        }
    }
    // Values that no memory holds.
    let flags = format!("--type u32 --values a.rows.pipe {OUT} --value-size {}", isize::MAX);
    with_pipes(&folder, &["a.u32", "a.rows"], &format!("gmerge sort a.u32.pipe {flags}")).fails(2, &["memory"]);
    with_pipes(&folder, &["a.u32", "a.rows"], &format!("gmerge merge a.u32.pipe {flags}")).fails(2, &["memory"]);
}
