//! Targets of output: files, links, devices, and existing files.

use crate::common::{Folder, GMERGE, Run, cannot_run, run_interrupted, run_without_end};
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
    // In the first pass the target does not exist, in the second it does.
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
        // The output goes to the file that the shell has opened.
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
fn an_output_that_is_written_directly_is_no_input() {
    let folder = Folder::new();
    let record = [2u32, 3, 1, 4];
    let files = [("a.u32", vec![1, 4]), ("b.u32", vec![2, 3]), ("values", vec![7, 8]), ("records", record.to_vec())];
    let offsets = [0u64, 1, 2];
    let reset = || {
        files.iter().for_each(|(name, keys)| folder.write(name, keys));
        folder.write("offsets", &offsets);
        fs::write(folder.path("list"), "a.u32\0b.u32\0").unwrap();
    };
    reset();
    fs::hard_link(folder.path("a.u32"), folder.path("other")).unwrap();
    symlink("a.u32", folder.path("link")).unwrap();
    let scripts = [
        ("sort a.u32 -o /dev/fd/3 3<>a.u32", "a.u32"),
        ("sort a.u32 -o /proc/self/fd/3 3>>a.u32", "a.u32"),
        ("sort b.u32 a.u32 -o - 1<>a.u32", "a.u32"),
        ("sort a.u32 -o - >>a.u32", "a.u32"),
        ("sort a.u32 -o /dev/stdout 1<>other", "a.u32"),
        ("sort link --type u32 -o - 1<>a.u32", "link"),
        ("sort - --type u32 -o - <a.u32 1<>a.u32", "-"),
        ("sort a.u32 -o - -u 1<>a.u32", "a.u32"),
        ("sort a.u32 -o - --top 1 1<>a.u32", "a.u32"),
        ("sort a.u32 -o - --argsort 1<>a.u32", "a.u32"),
        ("sort a.u32 -o - --segments offsets 1<>a.u32", "a.u32"),
        ("sort a.u32 -o - --segments offsets 1<>offsets", "offsets"),
        ("sort a.u32 --values values -o - --values-out out 1<>values", "values"),
        ("sort a.u32 --values values -o out --values-out - 1<>a.u32", "a.u32"),
        ("sort records --record-size 8 --key 0:u32 -o - 1<>records", "records"),
        ("sort -m a.u32 b.u32 -o - 1<>b.u32", "b.u32"),
        ("merge a.u32 b.u32 -o /dev/fd/3 -S 1M --type u32 3<>a.u32", "a.u32"),
        ("merge a.u32 b.u32 --values values values -o - --values-out out 1<>values", "values"),
        ("merge --files0-from list --type u32 -o - 1<>list", "list"),
        ("merge --files0-from - --type u32 -o - <list 1<>list", "-"),
        ("merge --files0-from list -o - 1<>b.u32", "b.u32"),
        ("sort --files0-from list --type u32 -o - 1<>list", "list"),
        ("batch a.u32 b.u32 -d 2 -o - 1<>b.u32", "b.u32"),
        ("batch a.u32 b.u32 --offsets offsets offsets -o - 1<>offsets", "offsets"),
        ("union a.u32 b.u32 -o - 1<>a.u32", "a.u32"),
        ("intersect a.u32 b.u32 -o /dev/fd/3 3<>b.u32", "b.u32"),
        ("search a.u32 --needles b.u32 -o - 1<>b.u32", "b.u32"),
        ("search a.u32 --needles b.u32 -o /dev/fd/3 3<>a.u32", "a.u32"),
    ];
    let before = folder.files();
    for (script, input) in scripts {
        let expected = format!("is the input {input}, which would be lost");
        folder.shell(&format!("gmerge {script}")).fails(2, &[&expected]);
        for (name, keys) in &files {
            assert_eq!(folder.read::<u32>(name), *keys, "{script}");
        }
        assert_eq!(folder.read::<u64>("offsets"), offsets, "{script}");
        assert_eq!(fs::read(folder.path("list")).unwrap(), b"a.u32\0b.u32\0", "{script}");
        assert_eq!(folder.files(), before, "{script}");
        reset();
    }
    // A device does not read back what is written to it, and a file that is replaced is read completely before.
    folder.run("sort /dev/null --type u32 -o /dev/null").succeeds();
    folder.run("merge a.u32 b.u32 /dev/null -o a.u32").succeeds();
    assert_eq!(folder.read::<u32>("a.u32"), [1, 2, 3, 4]);
    folder.shell("gmerge sort b.u32 -o /dev/fd/3 3<>a.u32").succeeds();
    assert_eq!(folder.read::<u32>("a.u32"), [2, 3]);
}

#[test]
fn standard_output_is_the_default() {
    let folder = folder();
    folder.write("in.rows", &[1u8, 2, 3]);
    for (command, expected) in [
        ("sort in.u32", &[1u32, 2, 3][..]),
        ("sort in.u32 --top 1", &[1]),
        ("sort in.u32 --segment-len 1", &[3, 1, 2]),
        ("sort in.u32 --values in.rows --values-out out.rows", &[1, 2, 3]),
        ("sort in.u32 --record-size 4 --key 0:u32:desc", &[3, 2, 1]),
        ("batch in.u32 in.u32 -d 2", &[3, 3, 1, 1, 2, 2]),
        ("gen -n 0 --type u32", &[]),
    ] {
        let run = folder.run(command);
        run.succeeds();
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, u32>(run.stdout()), expected, "{command}");
    }
    folder.run("sort in.u32 -o sorted.u32").succeeds();
    for command in ["merge sorted.u32", "sort -m sorted.u32", "union sorted.u32 sorted.u32"] {
        folder.shell(&format!("gmerge {command} | cmp - sorted.u32")).succeeds();
        folder.shell(&format!("gmerge {command} > out && cmp out sorted.u32")).succeeds();
    }
    // The name of an output gives the type of the keys; standard output has none.
    folder.write("in", &[1u32]);
    folder.refuses("sort in", &["in: no extension tells the type of its keys"]);
    folder.shell("gmerge sort in.u32 >&-").fails(2, &["-: standard output is closed"]);
}

#[test]
fn a_terminal_is_refused_by_any_name() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let folder = folder();
    folder.write("in.rows", &[1u8, 2, 3]);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    symlink(&path, folder.path("link")).unwrap();
    let commands = ["sort in.u32", "sort in.u32 --argsort", "sort in.u32 --top 1", "gen -n 9 --type u32"];
    let others = ["merge in.u32", "union in.u32 in.u32", "batch in.u32 in.u32 -d 2", "sort in.u32 --format npy"];
    for command in commands.into_iter().chain(others) {
        for name in [&path, "link"] {
            let run = folder.run(&format!("{command} -o {name}"));
            run.fails(2, &[&format!("{name}: is a terminal, expected a file or a pipe")]);
        }
    }
    let values = format!("sort in.u32 --values in.rows -o out --values-out {path}");
    folder.run(&values).fails(2, &[&path, "is a terminal"]);
    let keys = format!("sort in.u32 --values in.rows -o {path} --values-out out");
    folder.run(&keys).fails(2, &[&path, "is a terminal"]);
    folder.shell(&format!("gmerge sort in.u32 -o - > {path}")).fails(2, &["-: standard output is a terminal"]);
    for command in commands.into_iter().chain(others) {
        let run = folder.shell(&format!("gmerge {command} > {path}"));
        run.fails(2, &["-: standard output is a terminal, expected a file or a pipe", "name a file with -o"]);
    }
    assert_eq!(folder.files(), ["in.rows", "in.u32", "link"]);
}

#[test]
fn files_are_replaced_in_a_folder_whose_path_is_too_long() {
    let folder = Folder::new();
    let deep = "d".repeat(250);
    // 20 nested folders, so that the absolute path exceeds the limit.
    let script = format!(
        "i=0; while [ $i -lt 20 ]; do mkdir {deep} && cd -P {deep} || exit 9; i=$((i+1)); done 2> /dev/null
         gmerge gen -n 1000 -o in.u32 && cp in.u32 out.u32 && mkdir sub && cp in.u32 sub/out.u32 || exit 9
         ln -s sub/out.u32 link.u32 && ln -s none.u32 new.u32 || exit 9
         gmerge sort in.u32 -o out.u32 && gmerge sort in.u32 -o link.u32 && gmerge sort in.u32 -o new.u32 || exit 9
         gmerge sort in.u32 --values in.u32 -o out.u32 --values-out sub/out.u32 || exit 9
         gmerge check out.u32 && gmerge check link.u32 && gmerge check new.u32 && test -h link.u32 && test -h new.u32
         ls -A . sub > {list}",
        list = folder.path("list").display()
    );
    folder.shell(&script).succeeds();
    let list = fs::read_to_string(folder.path("list")).unwrap();
    assert_eq!(list, ".:\nin.u32\nlink.u32\nnew.u32\nnone.u32\nout.u32\nsub\n\nsub:\nout.u32\n");
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
fn control_characters_are_escaped_wherever_they_come_from() {
    let folder = folder();
    let bad = "\x1b]0;owned\x07\x1b[31m\u{9b}2J\n";
    // A name with line breaks indicates a list with one name a line.
    let list = format!("{}\0", bad.trim_end());
    fs::write(folder.path("list"), list).unwrap();
    let commands: [&[&str]; 16] = [
        &["sort", "in.u32", "-o", "out.u32", "--type", bad],
        &["sort", "in.u32", "-o", "out.u32", "--record-size", "4", "--key", bad],
        &["sort", "in.u32", "-o", "out.u32", "--record-size", "4", "--key", &format!("0:{bad}")],
        &["sort", "in.u32", "-o", "out.u32", "--record-size", "4", "--key", &format!("{bad}:desc")],
        &["sort", bad, "-o", "out.u32"],
        &["sort", "in.u32", "-o", &format!("none/{bad}")],
        &["sort", "in.u32", "-o", &format!("{bad}/none")],
        &["sort", "in.u32", "-o", "out.u32", "--values", bad, "--values-out", bad],
        &["sort", "in.u32", "-o", "out.u32", "-S", bad],
        &["sort", "in.u32", "-o", "out.u32", "-S", "1M", "-T", bad],
        &["sort", "in.u32", "-o", "out.u32", "--device", bad],
        &["sort", "in.u32", "-o", &format!("{bad}.parquet")],
        &["sort", "in.u32", "-o", "out.u32", &format!("--{bad}")],
        &["merge", "--files0-from", "list", "-o", "out.u32"],
        &["gen", "-n", bad, "-o", "out.u32"],
        &[bad],
    ];
    let shown = |run: &Run| {
        let stderr = run.stderr();
        assert_eq!(run.code(), Some(2), "{stderr:?}");
        assert!(!stderr.chars().any(|character| character.is_control() && character != '\n'), "{stderr:?}");
        assert!(stderr.contains("owned"), "{stderr:?}");
    };
    for arguments in commands {
        shown(&Run::of(folder.command(GMERGE).args(arguments)));
    }
    for variable in ["MERGE_HOST_VECTORS", "MERGE_HOST_COSTS", "TMPDIR"] {
        let mut command = folder.command(GMERGE);
        command.args(["sort", "-", "--type", "u32", "-o", "out.u32", "-S", "1M"]).env(variable, bad);
        let run = run_without_end(&mut command, &vec![0; 4 << 20]);
        shown(&run);
        assert_eq!(run.stderr().lines().count(), 1, "{variable}: {:?}", run.stderr());
    }
    assert_eq!(folder.files(), ["in.u32", "list"]);
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
#[ignore = "needs the right to mount"]
fn a_mount_point_is_refused_before_the_work() {
    let folder = folder();
    folder.write("out.u32", &[9u32]);
    let script = format!("mount --bind out.u32 out.u32 && echo mounted && exec {GMERGE} sort - -o out.u32");
    let run = run_without_end(folder.command("unshare").args(["--mount", "sh", "-c", &script]), &[0; 64]);
    if run.stdout() != b"mounted\n" {
        cannot_run(format_args!("unshare(1) and mount(8) cannot mount a file: {}", run.stderr()));
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
    // Standard output is open only for reading.
    folder.shell("gmerge info 1< in.u32").fails(2, &["standard output: Bad file descriptor"]);
    assert_eq!(folder.files(), ["in.u32"]);
}
