//! Pipes in and out.

use crate::common::{Folder, GMERGE, Random, assert_same, spawn};
use std::fs;
use std::io::Read;
use std::process::Stdio;

#[test]
fn standard_input_of_any_length() {
    let mut random = Random::new();
    let folder = Folder::new();
    // Around the room that is made at first, and several times that.
    for size in [0, 1, 1000, 65_535, 65_536, 65_537, 1_000_003] {
        let keys = random.keys::<u32>(size);
        let mut expected = keys.clone();
        expected.sort();
        for name in ["-", "/dev/stdin"] {
            folder.run_with_input(&format!("sort {name} -o out.u32"), bytemuck::cast_slice(&keys)).succeeds();
            assert_same(&folder.read::<u32>("out.u32"), &expected, &format!("{name} {size}"));
        }
    }
}

#[test]
fn a_pipe_for_one_input_of_a_merge() {
    let folder = Folder::new();
    folder.write("b.u32", &[2u32, 3]);
    let bytes = bytemuck::cast_slice::<u32, u8>(&[1, 4]);
    folder.run_with_input("merge - b.u32 -o out.u32", bytes).succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3, 4]);
    folder.run_with_input("merge b.u32 - -o out.u32", bytes).succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3, 4]);
    let run = folder.run_with_input("batch b.u32 - -d 3 --a-len 2 -o out.u32", bytes);
    run.fails(2, &["b.u32: 2 keys in runs of 2 make 1, ", "-: 2 keys in runs of 1 make 2"]);
}

#[test]
fn named_pipes() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder
        .shell(
            "mkfifo one.u32 two.u32; cat in.u32 > one.u32 & gmerge sort one.u32 -o two.u32 & cat two.u32 > out; wait",
        )
        .succeeds();
    assert_eq!(folder.read::<u32>("out"), [1, 2, 3]);
}

#[test]
fn a_file_redirected_to_standard_input_is_read_from_where_it_is() {
    let folder = Folder::new();
    folder.write("in.u32", &[9u32, 3, 1, 2]);
    folder.shell("{ dd bs=4 count=1 of=/dev/null 2> /dev/null; gmerge sort - -o out.u32; } < in.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3]);
}

#[test]
fn a_reader_that_goes_away_is_no_news() {
    let folder = Folder::new();
    let mut command = folder.command(GMERGE);
    command.args("gen -n 100000000 --type u32 -o -".split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(&mut command);
    child.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
    let output = child.wait_with_output().unwrap();
    // As a shell reports it for other programs.
    assert_eq!((output.status.code(), &*output.stderr), (Some(141), &b""[..]));

    for arguments in ["info", "--help", "sort --help"] {
        let run = folder.shell(&format!("gmerge {arguments} | true"));
        run.succeeds();
    }
    let run = folder.shell("gmerge info > /dev/full");
    run.fails(2, &["standard output: No space left on device"]);
}

#[test]
fn closed_standard_streams() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder.shell("gmerge sort in.u32 -o out.u32 --stats text <&- >&- 2>&-").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3]);
    assert_eq!(folder.shell("gmerge sort none.u32 -o out.u32 2>&-").code(), Some(2));
    assert_eq!(folder.shell("gmerge check in.u32 --stats json 2>/dev/full").code(), Some(1));
}

#[test]
fn an_arrow_file_that_is_cut_is_an_error_in_a_pipe() {
    let folder = Folder::new();
    folder.run("gen -n 3000000 --type u32 --dist sorted -o k.arrow").succeeds();
    folder.write("k.u32", &[1u32]);
    let file = fs::read(folder.path("k.arrow")).unwrap();
    folder.run_with_input("check -", &file).succeeds();
    // Messages begin so. The last is empty, and followed by the footer.
    let is_message = |&at: &usize| file[at..].starts_with(&[0xff; 4]) && at % 64 == 8;
    let messages: Vec<usize> = (8..file.len()).filter(is_message).collect();
    assert!(messages.len() > 3, "{messages:?}");
    let footer = messages[messages.len() - 1] + 8;
    let cuts = messages[1..].iter().copied().chain([footer, footer + 100, file.len() - 10, file.len() - 1]);
    for cut in cuts {
        for command in [
            "check -",
            "sort - -o out.u32",
            "sort - -o out.u32 -S 1M",
            "merge - k.u32 -o out.u32 --assume-sorted",
            "union - k.u32 -o out.u32 --assume-sorted",
            "sort k.u32 --values - -o out.u32 --values-out out.rows",
        ] {
            folder.run_with_input(command, &file[..cut]).fails(2, &["-: Arrow file, at byte ", "is it complete?"]);
        }
    }
    assert_eq!(folder.files(), ["k.arrow", "k.u32"]);
}
