//! Files and folders that may not be read or written. The superuser may, so that these tests become someone else.

use crate::common::{Folder, GMERGE, Run};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

fn set_mode(folder: &Folder, name: &str, mode: u32) {
    fs::set_permissions(folder.path(name), Permissions::from_mode(mode)).unwrap();
}

/// Runs `gmerge` in `folder` as somebody without privileges.
fn run(folder: &Folder, arguments: &str) -> Run {
    // The folder that the program was built in may be closed to others.
    if !folder.path("gmerge").exists() {
        // By another process: what this one has open for writing, children of other tests hold for a moment, and a
        // program that is being written to cannot be started.
        assert!(folder.command("cp").args([GMERGE, "gmerge"]).status().unwrap().success());
        set_mode(folder, "gmerge", 0o755);
    }
    let mut command = folder.command(folder.path("gmerge"));
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    Run::of(command.args(arguments.split_whitespace()))
}

#[test]
fn what_may_not_be_written_is_not_replaced() {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1]);
    folder.write("closed.u32", &[9u32]);
    folder.write("secret.u32", &[9u32]);
    fs::create_dir(folder.path("closed")).unwrap();
    folder.write("closed/old.u32", &[9u32]);
    // A folder that may be written to, with a file that may not; and the other way round.
    set_mode(&folder, ".", 0o777);
    set_mode(&folder, "closed.u32", 0o444);
    set_mode(&folder, "secret.u32", 0o000);
    set_mode(&folder, "closed/old.u32", 0o666);
    set_mode(&folder, "closed", 0o555);

    run(&folder, "sort in.u32 -o closed.u32").fails(2, &["closed.u32: Permission denied"]);
    run(&folder, "sort in.u32 -o closed/new.u32").fails(2, &["closed/new.u32: ", "folder closed: Permission denied"]);
    run(&folder, "sort in.u32 -o closed/old.u32").fails(2, &["closed/old.u32: ", "folder closed: Permission denied"]);
    run(&folder, "sort secret.u32 -o out.u32").fails(2, &["secret.u32: Permission denied"]);
    run(&folder, "check secret.u32").fails(2, &["secret.u32: Permission denied"]);
    assert_eq!(folder.files(), ["closed", "closed.u32", "gmerge", "in.u32", "secret.u32"]);
    assert_eq!(fs::read_dir(folder.path("closed")).unwrap().count(), 1);
    set_mode(&folder, "closed", 0o755);
}

#[test]
fn somebody_elses_file_keeps_its_mode_but_does_not_lend_new_rights() {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1]);
    folder.write("out.u32", &[9u32]);
    set_mode(&folder, ".", 0o777);
    set_mode(&folder, "out.u32", 0o4666);
    run(&folder, "sort in.u32 -o out.u32").succeeds();
    let mode = fs::metadata(folder.path("out.u32")).unwrap().permissions().mode() & 0o7777;
    let expected = if rustix::process::geteuid().is_root() { 0o666 } else { 0o4666 };
    assert_eq!((mode, folder.read::<u32>("out.u32")), (expected, vec![1, 2]));
}
