//! Programs and shared libraries that use this crate have no symbols of the driver.
#![cfg(target_os = "linux")]

use libloading::Library;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The example `shared`, which `cargo test` builds beside the tests by default.
fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    let path = test.parent().unwrap().with_file_name("examples").join("libshared.so");
    assert!(path.exists(), "{} is missing: build it with cargo build -p gmerge-cust --examples", path.display());
    path
}

/// The symbols that a file defines, exports or imports, as nm(1) with one of its options lists them.
fn symbols(file: &Path, option: &str) -> Vec<String> {
    let output = Command::new("nm").args([option, "--format=just-symbols"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Whether a symbol has the form of the driver's: `cu` and a capital letter.
fn is_of_the_driver(symbol: &str) -> bool {
    symbol.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
}

#[test]
fn a_shared_library_calls_the_driver_without_its_symbols() {
    let path = library();
    // SAFETY: the library has no initialisers except the standard library's.
    let library = unsafe { Library::new(&path) }.unwrap();
    // SAFETY: `initialise` in the example `shared` is an `extern "C" fn() -> u32`.
    let initialise = unsafe { library.get::<extern "C" fn() -> u32>(b"initialise\0") }.unwrap();
    let status = initialise();
    assert_eq!(status == 100, cust::sys::open().is_err(), "status {status}");

    let dynamic = symbols(&path, "--dynamic");
    assert!(dynamic.iter().any(|symbol| symbol == "initialise"), "{dynamic:?}");
    assert!(!dynamic.iter().any(|symbol| is_of_the_driver(symbol)), "{dynamic:?}");
}

#[test]
fn a_program_calls_the_driver_without_its_symbols() {
    assert_eq!(cust::init().is_ok(), cust::driver_version().is_ok());
    let program = env::current_exe().unwrap();
    let all = [symbols(&program, "--debug-syms"), symbols(&program, "--dynamic")].concat();
    assert!(all.iter().any(|symbol| symbol.contains("cuDriverGetVersion")), "{all:?}");
    assert!(!all.iter().any(|symbol| is_of_the_driver(symbol)), "{all:?}");
}
