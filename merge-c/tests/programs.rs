//! Programs in C and C++ that use the library.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the library that cargo has built for this test.
fn libraries() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("libgmerge.so").exists(), "there is no libgmerge.so in {folder:?}");
    folder
}

/// Compiles a program without warnings, and runs it.
fn run(compiler: &[&str], source: &str, arguments: &[&OsStr]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("program");
    let libraries = libraries();
    let compiled = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(folder.join("include"))
        .arg(folder.join(source))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&libraries)
        .args(["-lgmerge", "-lm"])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{source}: {}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).args(arguments).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{source}: {}, {out}{errors}", ran.status);
    out.into_owned()
}

const C: [&str; 3] = ["cc", "-std=c99", "-pedantic"];
const CPP: [&str; 4] = ["c++", "-std=c++11", "-x", "c++"];

#[test]
fn calls_from_c_and_from_cpp() {
    for compiler in [&C[..], &CPP] {
        let out = run(compiler, "tests/calls.c", &[]);
        assert!(out.contains("all calls are right"), "{out}");
    }
}

#[test]
fn the_examples_run() {
    for compiler in [&C[..], &CPP] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("keys.u32");
        let keys: Vec<u32> = (0..10_000u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        std::fs::write(&path, bytemuck::cast_slice(&keys)).unwrap();
        run(compiler, "examples/sort_file.c", &[path.as_os_str()]);
        let sorted: Vec<u32> = bytemuck::pod_collect_to_vec(&std::fs::read(&path).unwrap());
        let mut expected = keys;
        expected.sort();
        assert!(sorted == expected);
        assert_eq!(run(compiler, "examples/argsort.c", &[]), "fig 1.50\nkiwi 2.00\npear 3.50\n");
    }
}
