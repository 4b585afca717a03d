//! Mistakes on the command line. Each prints one line, like all other errors.

use crate::common::{Folder, GMERGE, Run};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Command lines with a mistake, and parts of the printed line.
const MISTAKES: &[(&str, &[&str])] = &[
    ("shuffle a.u32", &["no command shuffle", "gmerge --help"]),
    ("srot a.u32", &["no command srot", "did you mean sort?"]),
    ("-q", &["gmerge needs a command, one of sort, merge, "]),
    ("--reverse sort a.u32", &["gmerge has no flag --reverse"]),
    ("help shuffle", &["no command shuffle"]),
    ("sort", &["sort needs <IN>..."]),
    ("sort -o out.u32", &["<IN>"]),
    ("merge -o out.u32", &["<FILE>"]),
    ("batch a.u32 -d 2 -o out.u32", &["<B>"]),
    ("union a.u32 -o out.u32", &["<B>"]),
    ("gen -o out.u32", &["--count <N>"]),
    ("sort a.u32 -o", &["--output <OUT>: expected a value, found none"]),
    ("sort a.u32 -o out.u32 -o out.u32", &["--output <OUT> cannot be used multiple times"]),
    ("sort a.u32 -o out.u32 --revrese", &["sort has no flag --revrese: did you mean --reverse?"]),
    ("sort a.u32 -o out.u32 --threads 3", &["sort has no flag --threads: see gmerge sort --help"]),
    ("sort a.u32 -o out.u32 --reverse=yes", &["--reverse: expected no value, found yes"]),
    ("sort a.u32 -o out.u32 --type", &["--type <TYPE>: expected one of u8, ", "found none"]),
    (
        "sort a.u32 -o out.u32 --type U33",
        &[
            "--type <TYPE>: expected one of u8, i8, u16, i16, f16, bf16, u32, i32, f32, ",
            ", u64, i64, f64, u128, i128, found U33",
        ],
    ),
    ("sort a.u32 -o out.u32 --type u32be", &["found u32be: --endian tells the byte order"]),
    ("sort a.u32 -o out.u32 --engine CPU", &["--engine <ENGINE>: expected one of auto, gpu, cpu, found CPU"]),
    ("sort a.u32 -o out.u32 --kernel tiled", &["--kernel <KERNEL>: expected one of auto, merge-path, found tiled"]),
    ("merge a.u32 a.u32 -o out.u32 --kernel fast", &["--kernel <KERNEL>: ", "merge-path", "found fast"]),
    ("sort a.u32 -o out.u32 --stats xml", &["--stats <FORMAT>: expected one of json, text, found xml"]),
    ("gen -n 5 --dist normal -o out.u32", &["expected one of uniform, sorted, reverse, dups, zipf, found normal"]),
    ("sort a.u32 -o out.u32 --parallel 0", &["--parallel <N>: expected a whole number from 1 to 4096, found 0"]),
    ("sort a.u32 -o out.u32 --parallel 4097", &["--parallel <N>: expected a whole number from 1 to 4096, found 4097"]),
    ("sort a.u32 -o out.u32 --parallel -1", &["--parallel <N>: expected a whole number from 1 to 4096, found -1"]),
    ("sort a.u32 -o out.u32 --batch-size 1", &["--batch-size <N>: expected a whole number from 2 to ", "found 1"]),
    ("sort a.u32 -o out.u32 --top 1.5", &["--top <N>: expected a whole number from 0 to ", "found 1.5"]),
    ("sort a.u32 -o out.u32 --segment-len 0", &["--segment-len <D>: expected a whole number from 1 to ", "found 0"]),
    ("sort a.u32 -o out.u32 -S 8X", &["--memory <SIZE>: expected a size like 8G", "found 8X"]),
    ("sort a.u32 -o out.u32 --device 0,0", &["--device <LIST>: expected every GPU once", "found 0,0"]),
    ("sort a.u32 -o out.u32 --values a.u32", &["sort needs --values-out <OUTV>"]),
    ("sort a.u32 -o out.u32 --value-size 4", &["sort needs --values-out <OUTV>, --values <V>..."]),
    ("batch a.u32 a.u32 -d 2 -o out.u32 --value-size 4", &["batch needs ", "--values <VA> <VB>"]),
    (
        "merge a.u32 a.u32 -o out.u32 --value-size 0",
        &["--value-size <N>: expected a whole number from 1 to ", "found 0"],
    ),
    ("sort a.u32 -o out.u32 -q -v", &["--quiet and --verbose cannot be used together: --quiet prints less"]),
    ("sort -c a.u32 a.u32", &["-c checks one file IN, found 2"]),
    ("merge - - -o out.u32", &["A and B are both -"]),
    ("sort a.u32 -c -C", &["-c and -C cannot be used together: -c prints a message"]),
    ("merge a.u32 --files0-from names -o out.u32", &["--files0-from and FILE cannot be used together: "]),
    ("sort a.u32 --files0-from names -o out.u32", &["--files0-from and IN cannot be used together: "]),
    ("batch a.u32 a.u32 -o out.u32 -d 2 --offsets a.o b.o", &["--offsets and -d cannot be used together: "]),
    ("batch a.u32 a.u32 -o out.u32 --offsets a.o", &["--offsets <OA> <OB>: expected 2 values, found 1"]),
    ("check a.u32 b.u32", &["check: expected no further argument, found b.u32"]),
    ("gen -n -1 -o out.u32", &["--count <N>: expected a whole number from 0 to ", "found -1"]),
    ("gen -n 18446744073709551616 -o out.u32", &["from 0 to 18446744073709551615, found 18446744073709551616"]),
    ("search a.u32", &["search needs <KEY>..."]),
    ("search a.u32 -inf --type f32", &["search has no flag -i: -- precedes keys that begin with a hyphen"]),
    ("search a.u32 1 --revrese", &["search has no flag --revrese: did you mean --reverse?"]),
    ("search a.u32 1 --threads 2", &["search has no flag --threads: see gmerge search --help"]),
    ("search a.u32 1 --needles a.u32", &["[KEY]... and --needles <NEEDLES> cannot be used together"]),
    ("search a.u32 1 --right", &["--right needs --needles: the result for KEY is text"]),
    ("search a.u32 1 -o out.u32", &["--output needs --needles"]),
    ("search a.u32 1 --format raw", &["--format needs --needles"]),
    ("search a.u32 1 --sync", &["--sync needs --needles"]),
    ("search a.u32 1 --assume-sorted", &["--assume-sorted needs --needles"]),
    ("search a.u32 1 --key 0:u32 --type u32", &["--key and --type cannot be used together: records have no type"]),
    ("search a.u32 --needles a.u32 --key 0:u32", &["--key and --needles cannot be used together: "]),
    ("search - --needles - --type u32", &["FILE and NEEDLES are both -"]),
    ("completions csh", &["<SHELL>: expected one of bash, ", "found csh"]),
    ("man -x", &["man has no flag -x"]),
];

#[test]
fn every_mistake_is_one_line() {
    let folder = Folder::new();
    folder.write("a.u32", &[3u32, 1]);
    let run = folder.run("");
    assert!(run.code() == Some(2) && run.stderr().contains("Usage: gmerge"), "{}", run.stderr());
    for (arguments, parts) in MISTAKES {
        folder.refuses(arguments, parts);
    }
}

#[test]
fn what_was_typed_is_shown_on_one_line() {
    let folder = Folder::new();
    let run =
        |arguments: &[&[u8]]| Run::of(folder.command(GMERGE).args(arguments.iter().map(|it| OsStr::from_bytes(it))));
    run(&[b"sort", b"a", b"--type", b"u\n32"]).fails(2, &["found \"u\\n32\""]);
    run(&[b"sort", b"a", b"--\x1b[31m"]).fails(2, &["no flag \"--\\u{1b}[31m\""]);
    run(&[b"sort", b"a", b"-o", b""]).fails(2, &["--output <OUT>: expected a value, found none"]);
    run(&[b"so\nrt"]).fails(2, &["no command \"so\\nrt\""]);
    run(&[b"check", b"a", b"\x1bb"]).fails(2, &["found \"\\u{1b}b\""]);
    run(&[b"sort", b"a", b"--type", b"\xff"]).fails(2, &["--type <TYPE>: expected one of"]);
    run(&[b"sort", b"a", b"--parallel", b"\xff"]).fails(2, &["UTF-8"]);
    run(&[b"sort", b"a", b"-o", b"b", b"--record-size", b"4", b"--key", b""]).fails(2, &["OFFSET:TYPE", "found \"\""]);
    for flag in [&b"--type"[..], b"--memory", b"--device", b"--parallel"] {
        let run = run(&[b"sort", b"a", flag, &[b'x'; 3000]]);
        run.fails(2, &[std::str::from_utf8(flag).unwrap(), "xxx...xxx"]);
        assert!(run.stderr().len() < 1000, "{}", run.stderr());
    }
}

#[test]
fn flags_of_sort_1_say_what_to_do_instead() {
    let folder = Folder::new();
    folder.write("a.u32", &[3u32, 1]);
    for (flags, hint) in [
        ("-n -nr -rn -g --numeric-sort --general-numeric-sort --sort=numeric", "--type"),
        ("-k1 -k1,1n -k", "--key OFFSET:TYPE"),
        ("-t, -t --field-separator=,", "--key OFFSET:TYPE"),
        ("-b -d -f -i -M -V --ignore-case --dictionary-order --month-sort --version-sort", "no text"),
        ("--human-numeric-sort --ignore-leading-blanks --ignore-nonprinting", "no text"),
        ("-z --zero-terminated", "same size"),
        ("-R --random-sort --random-source=a.u32", "shuffle"),
        ("--buffer-size=1M", "--memory"),
        ("--temporary-directory=/tmp", "--tmp-dir"),
        ("--compress-program=gzip", "not compressed"),
        ("--debug", "--verbose"),
        ("--check=quiet --check=silent", "gmerge check"),
    ] {
        for flag in flags.split(' ') {
            let run = folder.run(&format!("sort {flag} a.u32 -o out.u32"));
            run.fails(2, &[hint]);
            assert!(!run.stderr().contains("--help") && !run.stderr().contains("-- -"), "{}", run.stderr());
        }
    }
    folder
        .run("check --files0-from=names")
        .fails(2, &["check has no flag --files0-from", "gmerge sort and gmerge merge"]);
    folder.run("check -n a.u32").fails(2, &["check has no flag -n", "--type"]);
    // In other commands these letters are other flags, or unknown.
    folder.run("gen -k -n 3 -o out.u32").fails(2, &["gen has no flag -k: see gmerge gen --help"]);
    // A file may have such a name.
    folder.write("-5.u32", &[2u32, 1]);
    folder.run("sort -5.u32 -o out.u32").fails(2, &["sort has no flag -5"]);
    folder.write("-x", &[2u32, 1]);
    folder.run("sort -x -o out.u32 --type u32").fails(2, &["sort has no flag -x: ./-x names the file"]);
    folder.run("sort ./-x -o out.u32 --type u32").succeeds();
    folder.run("sort -o out.u32 --type u32 -- -x").succeeds();
}

#[test]
fn types_are_named_in_any_case() {
    let folder = Folder::new();
    folder.write("a.bin", &[3u32, 1]);
    for name in ["U32", "uint32", "UInt32", "u32"] {
        folder.run(&format!("sort a.bin -o out.bin --type {name}")).succeeds();
        assert_eq!(folder.read::<u32>("out.bin"), [1, 3]);
    }
    folder.run("sort a.bin -o out.bin --record-size 8 --key 0:U32BE").fails(2, &["found 0:U32BE"]);
    folder.run("sort a.bin -o out.bin --record-size 8 --key 0:U32").succeeds();
}

#[test]
fn flags_that_exclude_each_other_say_why() {
    let folder = Folder::new();
    folder.write("a.u32", &[3u32, 1]);
    let records = "--record-size 4 --key 0:u32";
    for (flags, why) in [
        ("--merge --segment-len 1", "--merge merges files of sorted keys, and --segment-len sorts segments"),
        ("-c --top 1", "-c checks one file, and --top writes"),
        ("--top 1 --unique", "--top counts equal keys, too"),
        ("--segment-len 1 --unique", "a segment with fewer keys would have other offsets"),
        ("--argsort --check", "--check reads keys back, and --argsort writes indices"),
        (&format!("{records} --segment-len 1"), "--record-size is about records, and --segment-len sorts segments"),
        (&format!("{records} --type u32"), "--key names that of each field"),
        (&format!("{records} --values a.u32 --values-out b"), "all bytes of a record move with its key"),
        ("--device 0 --engine cpu", "the CPU needs no GPU"),
        ("-c --compression lz4", "-c writes nothing"),
    ] {
        let output = if flags.starts_with("-c") { "" } else { "-o out.u32" };
        folder.run(&format!("sort a.u32 {output} {flags}")).fails(2, &["cannot be used together: ", why]);
    }
    folder.run(&format!("check a.u32 {records} --type u32")).fails(2, &["--key names that of each field"]);
    folder.run("gen -n 2 -o out.dat --record-size 4 --type u32").fails(2, &["records are random bytes"]);
}
