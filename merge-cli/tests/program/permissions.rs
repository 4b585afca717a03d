//! Files and folders that may not be read or written. The superuser may, so these tests run the program as another
//! user.

use crate::common::{Folder, GMERGE, Run, cannot_run, run_interrupted, run_without_end};
use rustix::fs::XattrFlags;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

fn set_mode(folder: &Folder, name: &str, mode: u32) {
    fs::set_permissions(folder.path(name), Permissions::from_mode(mode)).unwrap();
}

/// The user and group without privileges.
const USER: u32 = 65534;
/// A group that the user may belong to, and a user that no test runs as.
const GROUP: u32 = 54321;
const OTHER: u32 = 12345;
/// A user that has no processes but those of one test.
const ALONE: u32 = 54399;

/// A command that runs `gmerge` in `folder` as a user without privileges.
fn command(folder: &Folder) -> Command {
    // Other users may have no access to the folder of the program.
    if !folder.path("gmerge").exists() {
        // Another process copies the program. If this process wrote the copy, children of other tests would briefly
        // hold it open for writing, and such a program cannot be started.
        assert!(folder.command("cp").args([GMERGE, "gmerge"]).status().unwrap().success());
        set_mode(folder, "gmerge", 0o755);
    }
    let mut command = folder.command(folder.path("gmerge"));
    if rustix::process::geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    command
}

/// Runs `gmerge` in `folder` as a user without privileges.
fn run(folder: &Folder, arguments: &str) -> Run {
    Run::of(command(folder).args(arguments.split_whitespace()))
}

/// A folder that all may write to, with keys in `in.u32`, and `out.u32` with this owner, group and mode. Only the
/// superuser can make it.
fn folder_with(user: u32, group: u32, mode: u32) -> Folder {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1]);
    folder.write("out.u32", &[9u32]);
    set_mode(&folder, ".", 0o777);
    if let Err(error) = std::os::unix::fs::chown(folder.path("out.u32"), Some(user), Some(group)) {
        cannot_run(format_args!("only the superuser can give files to others: {error}"));
    }
    set_mode(&folder, "out.u32", mode);
    folder
}

/// The owner, the group and the mode of a file.
fn access(folder: &Folder, name: &str) -> (u32, u32, u32) {
    let metadata = fs::metadata(folder.path(name)).unwrap();
    (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
}

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// An access control list: `user` may read and write, the owning group and others have no access. By its mask, the
/// group bits of the mode are 6.
fn list_for(user: u32) -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 6, user), (4, 0, u32::MAX), (0x10, 6, u32::MAX), (0x20, 0, u32::MAX)];
    let bytes = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2u32.to_le_bytes().to_vec()].into_iter().chain(entries.map(bytes)).flatten().collect()
}

/// Sets an extended attribute.
fn set_attribute(folder: &Folder, file: &str, name: &str, value: &[u8]) {
    let result = rustix::fs::setxattr(folder.path(file), name, value, XattrFlags::empty());
    result.unwrap_or_else(|error| cannot_run(format_args!("{name} cannot be set: {error}")));
}

fn attribute(folder: &Folder, file: &str, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1000];
    let length = rustix::fs::getxattr(folder.path(file), name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

#[test]
fn what_may_not_be_written_is_not_replaced() {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1]);
    folder.write("closed.u32", &[9u32]);
    folder.write("secret.u32", &[9u32]);
    fs::create_dir(folder.path("closed")).unwrap();
    folder.write("closed/old.u32", &[9u32]);
    // A read-only file in a writable folder, and a writable file in a read-only folder.
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
fn a_file_that_is_sorted_in_place_needs_no_writable_folder() {
    let folder = Folder::new();
    folder.write("open.u32", &[2u32, 1]);
    folder.write("closed.u32", &[2u32, 1]);
    set_mode(&folder, "open.u32", 0o666);
    set_mode(&folder, "closed.u32", 0o444);
    command(&folder);
    set_mode(&folder, ".", 0o555);
    run(&folder, "sort open.u32 --in-place").succeeds();
    run(&folder, "sort closed.u32 --in-place").fails(2, &["closed.u32: Permission denied"]);
    set_mode(&folder, ".", 0o755);
    assert_eq!((folder.read::<u32>("open.u32"), folder.read::<u32>("closed.u32")), (vec![1, 2], vec![2, 1]));
}

#[test]
#[ignore = "needs the superuser"]
fn without_a_second_process_a_file_is_not_sorted_in_place() {
    let folder = folder_with(ALONE, ALONE, 0o600);
    command(&folder);
    let mut refused = 0;
    for processes in 1..10 {
        folder.write("out.u32", &[2u32, 1]);
        let flags = "sort out.u32 --in-place --parallel 1 --engine cpu";
        let words = format!("--reuid={ALONE} --clear-groups prlimit --nproc={processes} ./gmerge {flags}");
        let run = Run::of(folder.command("setpriv").args(words.split(' ')));
        let expected = if run.code() == Some(0) { [1, 2] } else { [2, 1] };
        assert_eq!(folder.read::<u32>("out.u32"), expected, "{}", run.stderr());
        refused += usize::from(run.stderr().contains("out.u32: cannot start a process to write it, and is unchanged"));
    }
    assert!(refused > 0);
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

#[test]
#[ignore = "needs the superuser"]
fn a_group_that_the_user_belongs_to_is_kept() {
    let folder = folder_with(0, GROUP, 0o2670);
    run(&folder, "sort in.u32 -o out.u32").fails(2, &["out.u32: Permission denied"]);
    let groups = format!("--reuid={USER} --regid={USER} --groups={GROUP} ./gmerge sort in.u32 -o out.u32");
    let run = Run::of(folder.command("setpriv").args(groups.split(' ')));
    run.succeeds();
    assert_eq!((access(&folder, "out.u32"), folder.read::<u32>("out.u32")), ((USER, GROUP, 0o670), vec![1, 2]));
}

#[test]
#[ignore = "needs the superuser"]
fn the_rights_of_a_group_do_not_pass_to_another() {
    for (old, expected) in [(0o676, 0o666), (0o626, 0o622), (0o7662, 0o1622)] {
        let folder = folder_with(0, GROUP, old);
        run(&folder, "sort in.u32 -o out.u32").succeeds();
        assert_eq!(access(&folder, "out.u32"), (USER, USER, expected), "{old:o}");
    }
}

#[test]
#[ignore = "needs access control lists"]
fn an_access_control_list_is_kept() {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1]);
    folder.write("out.u32", &[9u32]);
    set_mode(&folder, "out.u32", 0o600);
    let list = list_for(OTHER);
    set_attribute(&folder, "out.u32", ACCESS, &list);
    let before = access(&folder, "out.u32");
    assert_eq!(before.2, 0o660);
    folder.run("sort in.u32 -o out.u32").succeeds();
    assert_eq!((access(&folder, "out.u32"), attribute(&folder, "out.u32", ACCESS)), (before, Some(list)));
}

#[test]
#[ignore = "needs the superuser"]
fn an_access_control_list_that_cannot_be_kept_becomes_a_private_file() {
    let folder = folder_with(0, 0, 0o600);
    set_attribute(&folder, "out.u32", ACCESS, &list_for(USER));
    run(&folder, "sort in.u32 -o out.u32").succeeds();
    let expected = ((USER, USER, 0o600), None);
    assert_eq!((access(&folder, "out.u32"), attribute(&folder, "out.u32", ACCESS)), expected);
}

#[test]
#[ignore = "needs access control lists"]
fn the_default_list_of_a_folder_is_for_new_files_only() {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1]);
    folder.write("out.u32", &[9u32]);
    set_mode(&folder, "out.u32", 0o660);
    let list = list_for(OTHER);
    set_attribute(&folder, ".", DEFAULT, &list);
    folder.run("sort in.u32 -o out.u32").succeeds();
    assert_eq!((access(&folder, "out.u32").2, attribute(&folder, "out.u32", ACCESS)), (0o660, None));
    folder.run("sort in.u32 -o new.u32").succeeds();
    assert_eq!((access(&folder, "new.u32").2, attribute(&folder, "new.u32", ACCESS)), (0o660, Some(list)));
}

#[test]
#[ignore = "needs extended attributes"]
fn user_attributes_are_kept() {
    let folder = Folder::new();
    folder.write("out.u32", &[9u32, 8]);
    set_attribute(&folder, "out.u32", "user.origin", b"a sensor");
    folder.run("sort out.u32 -o out.u32").succeeds();
    assert_eq!(attribute(&folder, "out.u32", "user.origin").unwrap(), b"a sensor");
}

#[test]
#[ignore = "needs the superuser"]
fn a_file_that_the_sticky_bit_protects_is_refused_before_the_work() {
    let folder = folder_with(OTHER, OTHER, 0o666);
    set_mode(&folder, ".", 0o1777);
    // The folder's owner may replace all files in it.
    std::os::unix::fs::chown(folder.path("."), Some(OTHER), None).unwrap();
    let mut command = command(&folder);
    let run = run_without_end(command.args(["sort", "-", "-o", "out.u32"]), &[0; 64]);
    run.fails(2, &["out.u32: cannot be replaced by a new file: Operation not permitted"]);
    assert_eq!((folder.files().len(), folder.read::<u32>("out.u32")), (3, vec![9]));
    // A user can create a file there, and replace their own file.
    for _ in 0..2 {
        self::run(&folder, "sort in.u32 -o new.u32").succeeds();
    }
}

#[test]
#[ignore = "needs the superuser"]
fn root_does_not_replace_the_file_of_another_user_in_a_sticky_folder() {
    let folder = folder_with(OTHER, OTHER, 0o666);
    folder.write("in.rows", &[1u8, 2]);
    set_mode(&folder, ".", 0o1777);
    let message =
        "out.u32: cannot be replaced by a new file: it belongs to another user, and its folder has the sticky bit";
    let mut command = folder.command(GMERGE);
    run_without_end(command.args(["sort", "-", "-o", "out.u32"]), &[0; 64]).fails(2, &[message]);
    folder.run("sort in.u32 --values in.rows -o new --values-out out.u32").fails(2, &[message]);
    // A file or link of another user that appears during the run is respected, too.
    let other = || std::os::unix::fs::lchown(folder.path("late.u32"), Some(OTHER), Some(OTHER)).unwrap();
    let file = || {
        folder.write("late.u32", &[5u32]);
        other();
    };
    let link = || {
        std::os::unix::fs::symlink("out.u32", folder.path("late.u32")).unwrap();
        other();
    };
    for late in [&file as &dyn Fn(), &link] {
        let mut command = folder.command(GMERGE);
        let run = run_interrupted(command.args(["sort", "-", "-o", "late.u32"]), &vec![0; 2 << 20], late);
        run.fails(2, &["late.u32: cannot be replaced by a new file: it belongs to another user"]);
        fs::remove_file(folder.path("late.u32")).unwrap();
    }
    assert_eq!(
        (folder.files(), folder.read::<u32>("out.u32")),
        (["in.rows", "in.u32", "out.u32"].map(str::to_owned).to_vec(), vec![9])
    );
    set_mode(&folder, ".", 0o777);
    folder.run("sort in.u32 -o out.u32").succeeds();
    assert_eq!((access(&folder, "out.u32"), folder.read::<u32>("out.u32")), ((OTHER, OTHER, 0o666), vec![1, 2]));
}

#[test]
#[ignore = "needs the superuser"]
fn somebody_elses_links_in_a_sticky_folder_are_not_followed() {
    let folder = folder_with(USER, USER, 0o666);
    let links = [("link.u32", "out.u32", OTHER), ("lost.u32", "new.u32", OTHER), ("own.u32", "own", USER)];
    for (link, target, user) in links {
        std::os::unix::fs::symlink(target, folder.path(link)).unwrap();
        std::os::unix::fs::lchown(folder.path(link), Some(user), Some(user)).unwrap();
    }
    set_mode(&folder, ".", 0o1777);
    let before = folder.files();
    // No file is opened here, so that the system does not check the link.
    run(&folder, "sort in.u32 -o lost.u32").fails(2, &["lost.u32: Permission denied"]);
    folder.run("sort in.u32 -o lost.u32").fails(2, &["lost.u32: Permission denied"]);
    let is_protected = fs::read_to_string("/proc/sys/fs/protected_symlinks").is_ok_and(|text| text.trim() == "1");
    if is_protected {
        run(&folder, "sort in.u32 -o link.u32").fails(2, &["link.u32: Permission denied"]);
        folder.run("sort in.u32 -o link.u32").fails(2, &["link.u32: Permission denied"]);
        assert_eq!(folder.read::<u32>("out.u32"), [9]);
    } else {
        run(&folder, "sort in.u32 -o link.u32").succeeds();
    }
    run(&folder, "sort in.u32 -o own.u32").succeeds();
    assert_eq!(folder.files().len(), before.len() + 2);
    set_mode(&folder, ".", 0o777);
    folder.run("sort in.u32 -o lost.u32").succeeds();
    assert_eq!((folder.read::<u32>("own"), folder.read::<u32>("new.u32")), (vec![1, 2], vec![1, 2]));
}

#[test]
fn a_folder_that_may_not_be_read_need_not_be_synced_alone() {
    let folder = Folder::new();
    folder.write("in.u32", &[2u32, 1]);
    fs::create_dir(folder.path("closed")).unwrap();
    folder.write("closed/out.u32", &[9u32]);
    set_mode(&folder, ".", 0o777);
    set_mode(&folder, "closed/out.u32", 0o666);
    set_mode(&folder, "closed", 0o333);
    for sync in ["", "--sync"] {
        run(&folder, &format!("sort in.u32 -o closed/out.u32 {sync}")).succeeds();
        run(&folder, &format!("sort in.u32 -o closed/new{sync} {sync}")).succeeds();
        run(&folder, &format!("sort in.u32 --values in.u32 -o closed/out.u32 --values-out closed/new{sync} {sync}"))
            .succeeds();
    }
    set_mode(&folder, "closed", 0o755);
    assert_eq!(folder.read::<u32>("closed/out.u32"), [1, 2]);
}
