//! Flags with the same names in sort(1): `-c`, `-C`, `-m`, `--stable`, `--files0-from`.

use crate::common::{Folder, GMERGE, Run};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("up.u32", &[1u32, 2, 2, 9]);
    folder.write("down.u32", &[9u32, 5, 5, 2]);
    folder.write("mixed.u32", &[3u32, 7, 6, 8]);
    folder
}

#[test]
fn checks_in_either_order() {
    let folder = folder();
    for command in ["sort -c", "check"] {
        folder.run(&format!("{command} up.u32")).succeeds();
        folder.run(&format!("{command} -r down.u32")).succeeds();
        let parts = ["mixed.u32: disorder at index 2: 6 after 7 (byte 8)"];
        folder.run(&format!("{command} mixed.u32")).fails(1, &parts);
        folder
            .run(&format!("{command} -r mixed.u32"))
            .fails(1, &["mixed.u32: disorder at index 1: 7 after 3 (byte 4)"]);
        folder.run(&format!("{command} down.u32")).fails(1, &["index 1: 5 after 9"]);
        folder.run(&format!("{command} none.u32")).fails(2, &["none.u32: No such file or directory"]);
    }
    folder.run("sort -C up.u32").succeeds();
    let run = folder.run("sort -C mixed.u32");
    assert_eq!((run.code(), &*run.stderr(), run.stdout()), (Some(1), "", &b""[..]));
    folder.run("sort -C none.u32").fails(2, &["none.u32: No such file or directory"]);
    folder.run("sort -c up.u32 -o out.u32").fails(2, &["-c", "--output"]);
    folder.run("sort -C up.u32 --argsort").fails(2, &["-C", "--argsort"]);
    folder.run("sort -c -C up.u32").fails(2, &["-c", "-C"]);
    folder.run("sort -c up.u32 down.u32").fails(2, &["-c checks one file IN, found 2"]);
}

#[test]
fn descending_order_of_many_keys() {
    let folder = Folder::new();
    let mut keys: Vec<u32> = (0..1_000_000).rev().collect();
    folder.write("keys.u32", &keys);
    folder.run("check -r keys.u32").succeeds();
    keys[777_777] = u32::MAX;
    folder.write("keys.u32", &keys);
    folder.run("check -r keys.u32").fails(1, &["index 777777: "]);
}

#[test]
fn sort_m_is_merge() {
    let folder = folder();
    folder.run("sort -m up.u32 up.u32 -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 1, 2, 2, 2, 2, 9, 9]);
    folder.run("sort --merge up.u32 mixed.u32 -o out.u32").fails(2, &["mixed.u32: not sorted at index 2: 6 after 7"]);
    folder.run("sort -m -u up.u32 up.u32 -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 9]);
    // Without -m, all files are sorted as if they were one.
    folder.run("sort mixed.u32 up.u32 -o out.u32").succeeds();
    let mut expected = [folder.read::<u32>("mixed.u32"), folder.read("up.u32")].concat();
    expected.sort();
    assert_eq!(folder.read::<u32>("out.u32"), expected);
    folder.run("sort mixed.u32 up.u32 --top 1 -r -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [*expected.last().unwrap()]);
}

#[test]
fn stable_changes_nothing() {
    let folder = folder();
    for flag in ["--stable", "-s"] {
        folder.run(&format!("sort {flag} mixed.u32 -o out.u32")).succeeds();
        assert_eq!(folder.read::<u32>("out.u32"), [3, 6, 7, 8]);
    }
}

#[test]
fn names_from_a_file() {
    let folder = folder();
    folder.write("a b\n.u32", &[4u32]);
    folder.write("list", b"up.u32\0a b\n.u32\0");
    folder.run("merge --files0-from list -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 2, 4, 9]);
    folder.run_with_input("merge --files0-from - -o out.u32", b"up.u32\0up.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 1, 2, 2, 2, 2, 9, 9]);
    folder
        .shell("find . -name 'up.u32' -print0 > one; cat one one | gmerge merge --files0-from - -o out.u32")
        .succeeds();
    folder.run("sort --files0-from list -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 2, 4, 9]);
    folder.run("sort --files0-from list -o order --argsort -r").succeeds();
    assert_eq!(folder.read::<u64>("order"), [3, 4, 1, 2, 0]);
    folder.write("rows", b"abcde");
    folder.run("sort --files0-from list --values rows -o out.u32 --values-out out.rows").succeeds();
    assert_eq!(folder.read::<u8>("out.rows"), b"abced");
    folder.run_with_input("sort -c --files0-from -", b"up.u32\0").succeeds();
    folder.run("sort -c --files0-from list").fails(2, &["-c checks one file IN, found 2"]);
    folder.run("sort --files0-from none -o out.u32").fails(2, &["none: No such file or directory"]);
    folder.write("hole", b"up.u32\0\0up.u32\0");
    folder.run("merge --files0-from hole -o out.u32").fails(2, &["hole: the name at byte 7 is empty"]);
    folder.run("merge --files0-from none -o out.u32").fails(2, &["none: No such file or directory"]);
    folder.run_with_input("merge --files0-from - -o out.u32", b"").fails(2, &["-: has no names"]);
    // A list with one name a line, as ls(1) writes it.
    let lines = (0..10_000).map(|i| format!("folder/{i}.u32\n")).collect::<String>();
    for list in [lines.as_bytes(), b"up.u32\nup.u32\n", b"up.u32\0up.u32\n"] {
        let run = folder.run_with_input("merge --files0-from - -o out.u32", list);
        run.fails(2, &["-: the name at byte ", "line breaks", "expected a zero byte after each name"]);
        assert!(run.stderr().len() < 1000, "{}", run.stderr());
    }
    let long = [vec![b'x'; 100_000], vec![0]].concat();
    let run = folder.run_with_input("merge --files0-from - -o out.u32", &long);
    run.fails(2, &["xxx...xxx", "File name too long"]);
    assert!(run.stderr().len() < 1000, "{}", run.stderr());
    folder.run("merge up.u32 --files0-from list -o out.u32").fails(2, &["--files0-from"]);
    Run::of(folder.command(GMERGE).args(["merge", "-o", "out.u32"])).fails(2, &["<FILE>"]);
}
