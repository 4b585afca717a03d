//! Unusable input: one line with the reason, and no output.

use crate::common::{Folder, GMERGE, Run};
use std::fs;
use std::os::unix::fs::symlink;

/// The content of an existing output, which must not change.
const OLD: [u32; 2] = [8, 9];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("good.u32", &[1u32, 2, 3]);
    folder.write("out.u32", &OLD);
    folder
}

#[test]
fn lengths_that_are_no_multiple_of_the_key_size() {
    let folder = folder();
    for (length, key_type, size) in
        [(1, "u32", 4), (1002, "f32", 4), (4, "u64", 8), (100_003, "f64", 8), (3, "f16", 2), (40, "u128", 16)]
    {
        let name = format!("odd.{key_type}");
        folder.write(&name, &vec![0u8; length]);
        let length = format!("{length} bytes");
        let parts = [&*format!("{name}: "), &*length, &*format!("multiple of {size}"), key_type];
        folder.refuses(&format!("sort {name} -o out.u32 --type {key_type}"), &parts);
        folder.refuses(&format!("check {name}"), &parts);
        folder.refuses(&format!("merge {name} good.u32 -o out.u32 --type {key_type}"), &parts);
    }
    folder.write("odd.u32", &[0u8; 6]);
    folder.refuses("merge good.u32 odd.u32 -o out.u32", &["odd.u32: ", "6 bytes", "multiple of 4"]);
    folder.refuses("batch good.u32 odd.u32 -d 2 -o out.u32", &["odd.u32: ", "6 bytes", "multiple of 4"]);
    folder.refuses_input("sort - -o out.u32", &[0; 70_001], &["-: length is 70001 bytes", "multiple of 4"]);
}

#[test]
fn vector_instructions_that_there_are_not() {
    let folder = folder();
    let sort = |said: &str| {
        let mut command = folder.command(GMERGE);
        Run::of(command.env("MERGE_HOST_VECTORS", said).args(["sort", "good.u32", "-o", "out.u32", "--engine", "cpu"]))
    };
    for said in ["", "sse", "avx2 ", "AVX2"] {
        sort(said).fails(2, &["MERGE_HOST_VECTORS", &format!("'{said}'"), "none, avx2, avx512"]);
        assert_eq!(folder.read::<u32>("out.u32"), OLD);
    }
    for said in ["none", "avx2", "avx512"] {
        sort(said).succeeds();
    }
}

#[test]
fn costs_that_cannot_be_read() {
    let folder = folder();
    let sort = |costs: &str, engine: &str| {
        let mut command = folder.command(GMERGE);
        Run::of(command.env("MERGE_HOST_COSTS", costs).args(["sort", "good.u32", "-o", "out.u32", "--engine", engine]))
    };
    for (costs, parts) in [
        ("fast", ["\"fast\"", "expected name=value"]),
        ("gpu_up=1,cpu=2", ["\"cpu=2\"", "expected the name of a constant"]),
        ("gpu_up=-1", ["\"gpu_up=-1\"", "expected a number of at least 0"]),
    ] {
        for engine in ["auto", "cpu"] {
            sort(costs, engine).fails(2, &["MERGE_HOST_COSTS", parts[0], parts[1]]);
        }
        assert_eq!(folder.read::<u32>("out.u32"), OLD);
    }
    sort("", "auto").succeeds();
    sort("gpu_start_ms=1e9", "auto").succeeds();
}

#[test]
fn inputs_that_are_no_files() {
    let folder = folder();
    fs::create_dir(folder.path("dir.u32")).unwrap();
    symlink("nothing.u32", folder.path("lost.u32")).unwrap();
    for command in ["sort", "check", "merge good.u32", "batch -d 2 good.u32"] {
        let output = if command == "check" { "" } else { "-o out.u32" };
        folder.refuses(&format!("{command} none.u32 {output}"), &["none.u32: No such file or directory"]);
        folder.refuses(&format!("{command} lost.u32 {output}"), &["lost.u32: No such file or directory"]);
        folder.refuses(&format!("{command} good.u32/x.u32 {output}"), &["good.u32/x.u32: Not a directory"]);
        folder.refuses(&format!("{command} dir.u32 {output}"), &["dir.u32: is a directory"]);
    }
    // No file is created either.
    folder.run("sort none.u32 -o new.u32").fails(2, &["none.u32: "]);
    assert!(!folder.path("new.u32").exists());
}

#[test]
fn types_that_nobody_can_tell() {
    let folder = folder();
    folder.write("keys.bin", &[1u32]);
    folder.write("keys", &[1u32]);
    folder.write("keys.i64", &[1i64]);
    folder.refuses("sort keys.bin -o out", &["keys.bin: ", "(.u8, .i8, ", ".i128 would)", "--type"]);
    folder.refuses("check keys", &["keys: ", "--type"]);
    folder.refuses("gen -n 5 -o new.bin", &["new.bin: ", "--type"]);
    let both = ["good.u32 holds u32", "keys.i64 i64", "--type"];
    folder.refuses("merge good.u32 keys.i64 -o out.u32", &both);
    folder.refuses("batch good.u32 keys.i64 -d 4 -o out.u32", &both);
    folder.refuses("sort keys.i64 -o out.u32", &["keys.i64 holds i64", "out.u32 u32", "--type"]);
}

#[test]
fn a_sparse_file_larger_than_memory() {
    let folder = folder();
    let file = fs::File::create(folder.path("huge.u32")).unwrap();
    // If the file system does not support such a large file, there is nothing to test.
    if file.set_len(1 << 43).is_ok() {
        folder.run("sort huge.u32 -o /dev/null --engine cpu").fails(2, &["huge.u32", "8796093022208 bytes"]);
        folder.refuses("sort huge.u32 -o out.u32", &["8796093022208 bytes"]);
        for (command, bytes) in [("merge huge.u32", 1u64 << 43), ("batch huge.u32 huge.u32 -d 2", 1 << 44)] {
            // The limit ends a program that writes before it looks for the space.
            folder
                .shell(&format!("ulimit -f 1000; gmerge {command} -o out.u32"))
                .fails(2, &[&format!("out.u32: No space left on device: {bytes} bytes are needed")]);
        }
    }
}

#[test]
fn help_is_no_error() {
    let folder = Folder::new();
    for command in ["", "sort", "merge", "batch", "union", "check", "search", "gen", "info", "completions", "man"] {
        let run = folder.run(&format!("{command} --help"));
        run.succeeds();
        assert!(String::from_utf8_lossy(run.stdout()).contains("Usage: gmerge"));
    }
    folder.run("--version").succeeds();
}

#[test]
fn a_file_that_shrinks_while_it_is_read_never_kills_the_program() {
    let folder = Folder::new();
    folder.write("keys.u64", &[0u64; 4 << 20]);
    let file = fs::File::options().write(true).open(folder.path("keys.u64")).unwrap();
    let full = (4 << 20) * 8;
    let mut shrank = 0;
    for i in 0..40 {
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(i));
                file.set_len(full / 2).unwrap();
            });
            folder.run("check keys.u64")
        });
        file.set_len(full).unwrap();
        if run.code() != Some(0) {
            run.fails(2, &[&format!("keys.u64: shrank while being read: expected {full} bytes, found ")]);
            shrank += 1;
        }
    }
    // The number depends on the machine. The tests in input.rs always check the message.
    println!("{shrank} of 40 runs saw the file shrink");
}

#[test]
fn too_little_memory() {
    let folder = folder();
    folder.write("big.u32", &vec![1u32; 50 << 20]);
    // A sort would continue in chunks.
    let run = Run::of(folder.command("sh").args([
        "-c",
        &format!(
            "ulimit -v 150000; {GMERGE} batch big.u32 big.u32 -o out.u32 -d 2 --a-len 1 --engine cpu --parallel 1"
        ),
    ]));
    run.fails(2, &["the batch of big.u32 and big.u32 takes 838860800 bytes of memory"]);
    assert_eq!(folder.read::<u32>("out.u32"), OLD);
}
