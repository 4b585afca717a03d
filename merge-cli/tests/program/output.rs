//! Where output goes: files, links, devices, and what is there before.

use crate::common::{Folder, GMERGE, Run, run_interrupted, run_without_end};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// A folder with a file `in.u32` of the keys 3, 1, 2.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder
}

const SORTED: [u32; 3] = [1, 2, 3];

fn mode(folder: &Folder, name: &str) -> u32 {
    fs::metadata(folder.path(name)).unwrap().mode() & 0o7777
}

#[test]
fn the_input_may_be_the_output() {
    let folder = folder();
    folder.run("sort in.u32 -o in.u32").succeeds();
    assert_eq!((folder.files().len(), folder.read::<u32>("in.u32")), (1, SORTED.to_vec()));
    let path = folder.path("in.u32");
    folder.write("in.u32", &[3u32, 1, 2]);
    folder.run(&format!("sort in.u32 -o {}", path.display())).succeeds();
    assert_eq!(folder.read::<u32>("in.u32"), SORTED);
}

#[test]
fn symbolic_links_stay_and_what_they_point_at_is_replaced() {
    let folder = folder();
    fs::create_dir(folder.path("deep")).unwrap();
    symlink("deep/target.u32", folder.path("link.u32")).unwrap();
    symlink("../link.u32", folder.path("deep/second.u32")).unwrap();
    // First the target does not exist, then it does.
    for _ in 0..2 {
        folder.run("sort in.u32 -o deep/second.u32").succeeds();
        assert_eq!(folder.read::<u32>("deep/target.u32"), SORTED);
        assert!(folder.path("link.u32").is_symlink() && folder.path("deep/second.u32").is_symlink());
        assert!(!folder.path("deep/target.u32").is_symlink());
        folder.write("deep/target.u32", &[9u32; 9]);
    }
    symlink("in.u32", folder.path("same.u32")).unwrap();
    folder.run("sort in.u32 -o same.u32").succeeds();
    assert_eq!(folder.read::<u32>("in.u32"), SORTED);
    assert_eq!(folder.files(), ["deep", "in.u32", "link.u32", "same.u32"]);

    symlink("loop.u32", folder.path("loop.u32")).unwrap();
    folder.run("sort in.u32 -o loop.u32").fails(2, &["loop.u32: Too many levels of symbolic links"]);
    symlink("none/x.u32", folder.path("lost.u32")).unwrap();
    folder.run("sort in.u32 -o lost.u32").fails(2, &["lost.u32: ", "No such file or directory"]);
}

#[test]
fn another_name_of_the_old_file_keeps_the_old_keys() {
    let folder = folder();
    fs::hard_link(folder.path("in.u32"), folder.path("other.u32")).unwrap();
    folder.run("sort in.u32 -o other.u32").succeeds();
    assert_eq!((folder.read::<u32>("in.u32"), folder.read::<u32>("other.u32")), (vec![3, 1, 2], SORTED.to_vec()));
}

#[test]
fn the_old_mode_and_owner_are_kept_and_new_files_have_the_usual_mode() {
    let folder = folder();
    for old in [0o600, 0o640, 0o666, 0o4755] {
        folder.write("out.u32", &[0u32; 100]);
        fs::set_permissions(folder.path("out.u32"), Permissions::from_mode(old)).unwrap();
        folder.run("sort in.u32 -o out.u32").succeeds();
        assert_eq!((mode(&folder, "out.u32"), folder.read::<u32>("out.u32")), (old, SORTED.to_vec()));
    }
    // Only the superuser can give files away.
    if std::os::unix::fs::chown(folder.path("out.u32"), Some(12345), Some(54321)).is_ok() {
        folder.run("sort in.u32 -o out.u32").succeeds();
        let metadata = fs::metadata(folder.path("out.u32")).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12345, 54321));
    }
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        folder.shell(&format!("umask {umask}; gmerge sort in.u32 -o new{umask}.u32")).succeeds();
        assert_eq!(mode(&folder, &format!("new{umask}.u32")), expected);
    }
}

#[test]
fn devices_are_written_to_and_stay() {
    let folder = folder();
    folder.run("sort in.u32 -o /dev/null").succeeds();
    folder.run("gen -n 1000000 -o /dev/null --type u64").succeeds();
    folder.run("sort in.u32 -o /dev/full").fails(2, &["/dev/full: No space left on device"]);
    folder.run("gen -n 1000000 -o /dev/full --type u64").fails(2, &["/dev/full: No space left on device"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file() && !fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn standard_output_and_open_files() {
    let folder = folder();
    for name in ["-", "/dev/stdout", "/dev/fd/1"] {
        let run = folder.run(&format!("sort in.u32 -o {name}"));
        run.succeeds();
        assert_eq!(run.stdout(), bytemuck::cast_slice::<u32, u8>(&SORTED));
        // The file that the shell has opened is the one that is written to.
        folder
            .shell(&format!("ln -f in.u32 x; : > x.u32; ln -f x.u32 y.u32; gmerge sort in.u32 -o {name} > x.u32"))
            .succeeds();
        assert_eq!((folder.read::<u32>("y.u32"), folder.read::<u32>("in.u32")), (SORTED.to_vec(), vec![3, 1, 2]));
        folder.shell(&format!("gmerge sort in.u32 -o {name} >> y.u32")).succeeds();
        assert_eq!(folder.read::<u32>("y.u32"), [SORTED, SORTED].concat());
    }
    folder.write("three.u32", &[0u32; 100]);
    folder.shell("gmerge sort in.u32 -o /dev/fd/3 3<> three.u32").succeeds();
    assert_eq!(folder.read::<u32>("three.u32"), SORTED);
}

#[test]
fn folders_are_no_files() {
    let folder = folder();
    fs::create_dir(folder.path("dir.u32")).unwrap();
    symlink("dir.u32", folder.path("link.u32")).unwrap();
    let before = folder.files();
    for name in ["dir.u32", "dir.u32/", "link.u32", ".", "..", "/"] {
        folder.run(&format!("sort in.u32 -o {name}")).fails(2, &[&format!("{name}: is a directory")]);
    }
    folder.run("sort in.u32 -o none/x.u32").fails(2, &["none/x.u32: ", "No such file or directory"]);
    folder.run("sort in.u32 -o in.u32/x.u32").fails(2, &["in.u32/x.u32: ", "Not a directory"]);
    folder.run("sort in.u32 -o new.u32/").fails(2, &["new.u32/: No such file or directory"]);
    Run::of(folder.command(GMERGE).args(["sort", "in.u32", "-o", ""])).fails(2, &["--output <OUT>"]);
    // No user can create files here, root included.
    folder.run("sort in.u32 -o /proc/self/x.u32").fails(2, &["/proc/self/x.u32: "]);
    assert_eq!(folder.files(), before);
}

#[test]
fn a_name_of_two_lines_makes_a_message_of_one() {
    let folder = folder();
    Run::of(folder.command(GMERGE).args(["sort", "in.u32", "-o", "no\n/x.u32"])).fails(2, &["\"no\\n/x.u32\": "]);
}

#[test]
fn a_file_that_grows_too_large_leaves_the_old_one() {
    let folder = folder();
    folder.write("out.u32", &[9u32]);
    let before = folder.files();
    // 1000 blocks of 512 bytes (or 1024, in some shells).
    let run = folder.shell("ulimit -f 1000; gmerge gen -n 1000000 -o out.u32");
    run.fails(2, &["out.u32: File too large"]);
    let run =
        folder.shell("ulimit -f 1000; gmerge gen -n 1000000 -o - --type u32 | gmerge sort - --type u32 -o out.u32");
    run.fails(2, &["out.u32: File too large"]);
    assert_eq!((folder.files(), folder.read::<u32>("out.u32")), (before, vec![9]));
}

#[test]
fn keys_and_values_are_restored_if_one_of_them_cannot_be_replaced() {
    let keys: Vec<u32> = (0..1 << 19).rev().collect();
    for (keys_out, values_out) in [("old", "new"), ("new", "old")] {
        let folder = Folder::new();
        folder.write("in.rows", &keys);
        folder.write("old", &[9u32]);
        let mut command = folder.command(GMERGE);
        command.args(["sort", "-", "--type", "u32", "--values", "in.rows", "--engine", "cpu"]);
        command.args(["-o", keys_out, "--values-out", values_out]);
        let input = bytemuck::cast_slice(&keys);
        let run = run_interrupted(&mut command, input, || fs::create_dir(folder.path("new")).unwrap());
        run.fails(2, &["new: Is a directory"]);
        assert_eq!(folder.files(), ["in.rows", "new", "old"]);
        assert!(folder.read::<u32>("old") == [9]);
    }
}

#[test]
fn a_mount_point_is_refused_before_the_work() {
    let folder = folder();
    folder.write("out.u32", &[9u32]);
    let script = format!("mount --bind out.u32 out.u32 && echo mounted && exec {GMERGE} sort - -o out.u32");
    let run = run_without_end(folder.command("unshare").args(["--mount", "sh", "-c", &script]), &[0; 64]);
    if run.stdout() != b"mounted\n" {
        eprintln!("NOT TESTED: unshare(1) and mount(8) cannot mount a file: {}", run.stderr());
        return;
    }
    run.fails(2, &["out.u32: is a mount point"]);
    assert_eq!((folder.files(), folder.read::<u32>("out.u32")), (vec!["in.u32".into(), "out.u32".into()], vec![9]));
}

#[test]
fn an_output_that_another_one_is_redirected_to_is_refused() {
    let folder = folder();
    folder.write("in.rows", &[1u8, 2, 3]);
    for script in [
        "gmerge sort in.u32 --values in.rows -o - --values-out out > out",
        "gmerge sort in.u32 --values in.rows -o out --values-out - > out",
    ] {
        folder.shell(script).fails(2, &["out"]);
        assert_eq!(fs::metadata(folder.path("out")).unwrap().len(), 0);
    }
}

#[test]
fn a_mode_that_changes_during_the_work_is_the_one_that_is_kept() {
    let folder = folder();
    fs::set_permissions(folder.path("in.u32"), Permissions::from_mode(0o666)).unwrap();
    let mut command = folder.command(GMERGE);
    let keys: Vec<u32> = (0..1 << 19).rev().collect();
    let private = || fs::set_permissions(folder.path("in.u32"), Permissions::from_mode(0o600)).unwrap();
    run_interrupted(command.args(["sort", "-", "-o", "in.u32"]), bytemuck::cast_slice(&keys), private).succeeds();
    assert_eq!((mode(&folder, "in.u32"), folder.read::<u32>("in.u32")[..3].to_vec()), (0o600, vec![0, 1, 2]));
}

#[test]
fn closed_standard_streams_are_errors() {
    let folder = folder();
    for arguments in ["sort - -o out.u32", "sort /dev/stdin -o out.u32", "check -", "merge --files0-from - -o out.u32"]
    {
        folder.shell(&format!("gmerge {arguments} <&-")).fails(2, &["standard input is closed"]);
    }
    let outputs = ["sort in.u32 -o -", "sort in.u32 -o /dev/stdout", "gen -n 10 --type u32 -o -", "info", "man"];
    for arguments in outputs.into_iter().chain(["completions bash", "--help", "sort --help", "--version"]) {
        folder.shell(&format!("gmerge {arguments} >&-")).fails(2, &["standard output is closed"]);
    }
    // A stream that is open for reading only.
    folder.shell("gmerge info 1< in.u32").fails(2, &["standard output: Bad file descriptor"]);
    assert_eq!(folder.files(), ["in.u32"]);
}
