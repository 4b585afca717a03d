//! `merge-host` as a dependency of a crate outside the workspace. The crate has no GPU engine, and is built and run
//! offline, with the dependencies on this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = r#"
[package]
name = "library-user"
version = "0.0.0"
edition = "2024"

[dependencies]
merge-host = { path = "MERGE_HOST", default-features = false }

[profile.dev]
debug = false

[workspace]
"#;

const MAIN: &str = r#"
#![deny(warnings)]

use merge_host::{Engine, EngineKind, Error, Key, MergeKernel, first_unsorted};

fn sorted<K: Key>(engine: &Engine, keys: &[K]) -> Result<Vec<K>, Error> {
    let mut keys = keys.to_vec();
    engine.sort(&mut keys)?;
    Ok(keys)
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let engine = Engine::auto();
    assert_eq!(engine.sort(&mut [2, 1])?.engine, EngineKind::Cpu);
    assert!(matches!(Engine::gpu(0), Err(Error::NoGpuSupport)));
    assert!(matches!(merge_host::devices(), Err(Error::NoGpuSupport)));

    // Several threads can use an engine at once, and it may outlive the thread that created it.
    let engine = std::sync::Arc::new(engine);
    let threads: Vec<_> = (0..4u64)
        .map(|seed| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                let key = |i: u64| f64::from_bits((i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let keys: Vec<f64> = (0..100_003).map(key).chain([f64::NAN, -f64::NAN, 0.0, -0.0]).collect();
                let found = sorted(&engine, &keys).unwrap();
                let mut expected = keys;
                expected.sort_by(f64::total_cmp);
                assert!(found.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits())));
                assert_eq!(first_unsorted(&found), None);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }

    for kernel in MergeKernel::ALL {
        let mut out = [0; 6];
        engine.merge_with(kernel, &[1i32, 3, 5], &[-2, 3, 9], &mut out)?;
        assert_eq!(out, [-2, 1, 3, 3, 5, 9]);
    }
    let (mut out, mut values) = ([0; 4], [' '; 4]);
    engine.merge((&[3u64, 5], &['a', 'b']), (&[2, 9], &['c', 'd']), (&mut out, &mut values))?;
    assert_eq!((out, values), ([2, 3, 5, 9], ['c', 'a', 'b', 'd']));
    engine.merge_batch(&[3u64, 5], &[2, 9], &mut out, 2, 1)?;
    assert_eq!(out, [2, 3, 5, 9]);

    let error = engine.merge(&[1u32], &[2], &mut [0; 3]).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 2, found: 3, .. }));
    println!("done");
    Ok(())
}
"#;

#[test]
#[ignore = "builds the library and all that it depends on once more"]
fn a_crate_that_depends_on_the_library_builds_and_runs() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let merge_host = workspace.join("merge-host");
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("Cargo.toml"), MANIFEST.replace("MERGE_HOST", merge_host.to_str().unwrap())).unwrap();
    fs::write(folder.path().join("src/main.rs"), MAIN).unwrap();
    // The versions in the workspace's Cargo.lock are certainly on this machine.
    fs::copy(workspace.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();

    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline"]).current_dir(folder.path());
    cargo.env("CARGO_TARGET_DIR", folder.path().join("target"));
    let output = cargo.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout == "done\n", "{stdout}{stderr}");
}
