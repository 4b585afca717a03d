//! A shared library that uses this crate does not export the driver's functions.
#![cfg(target_os = "linux")]

use libloading::Library;
use std::env;
use std::ffi::c_void;
use std::path::PathBuf;

/// The example `shared`, which `cargo test` builds beside the tests by default.
fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    let path = test.parent().unwrap().with_file_name("examples").join("libshared.so");
    assert!(path.exists(), "{} is missing: build it with cargo build -p libcuda-lazy --examples", path.display());
    path
}

/// The functions that this crate defines, from its source.
fn functions() -> Vec<&'static str> {
    let lines = include_str!("../src/lib.rs").lines();
    let starts = lines.filter_map(|line| {
        let line = line.trim_start();
        let rest = line.strip_prefix("pub unsafe extern \"C\" fn ").unwrap_or(line);
        rest.starts_with("cu").then(|| rest.split('(').next().unwrap())
    });
    starts.collect()
}

#[test]
fn a_shared_library_calls_the_driver_and_exports_only_its_own_functions() {
    // SAFETY: the library has no initialisers except the standard library's.
    let library = unsafe { Library::new(library()) }.unwrap();
    // SAFETY: `initialise` in the example `shared` is an `extern "C" fn() -> i32`.
    let initialise = unsafe { library.get::<extern "C" fn() -> i32>(b"initialise\0") }.unwrap();
    let status = initialise();
    assert_eq!(status == 100, libcuda_lazy::open().is_err(), "status {status}");

    let functions = functions();
    assert!(functions.len() > 140 && functions.contains(&"cuGetErrorName"), "{functions:?}");
    // SAFETY: the symbol's address is looked up, and the function is not called.
    let is_exported = |name: &&str| unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_ok();
    let exported: Vec<_> = functions.into_iter().filter(is_exported).collect();
    assert!(exported.is_empty(), "exported: {exported:?}");
}
