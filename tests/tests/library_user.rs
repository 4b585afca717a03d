//! `merge-host` as a dependency of a crate outside the repository: by its path, with and without the GPU engine, and
//! from packages for a registry. The crate is built and run offline, with the dependencies on this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = r#"
[package]
name = "library-user"
version = "0.0.0"
edition = "2024"

[profile.dev]
debug = false

[workspace]

[dependencies]
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
    assert!(matches!(Engine::gpu(0), GPU));
    assert!(matches!(merge_host::devices(), GPU));

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

/// The results for a GPU, as a pattern, with and without the GPU engine. This machine may have a GPU.
const WITH_GPU_ENGINE: &str = "Ok(_) | Err(Error::NoDevice { .. })";
const WITHOUT_GPU_ENGINE: &str = "Err(Error::NoGpuSupport)";

/// The packages that the library consists of.
const PACKAGES: [&str; 6] =
    ["gmerge-cuda-builder", "gmerge-cuda-std", "gmerge-cuda-std-macros", "gmerge-cust", "kernels-gpu", "merge-host"];

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Runs a command, and returns what it prints.
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {stdout}{stderr}");
    stdout.into_owned()
}

/// Builds and runs the crate in `folder`, with these lines about its dependency.
#[track_caller]
fn assert_runs(folder: &Path, dependency: &str, gpu: &str) {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), format!("{MANIFEST}{dependency}")).unwrap();
    fs::write(folder.join("src/main.rs"), MAIN.replace("GPU", gpu)).unwrap();
    // The versions in the workspace's Cargo.lock are certainly on this machine.
    fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--target-dir", "target"]).current_dir(folder);
    assert_eq!(output_of(&mut cargo), "done\n", "{dependency}");
}

/// Packages the library as for a registry, unpacks it in `folder`, and returns the lines that replace the registry's
/// packages by these.
fn packages(folder: &Path) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--workspace", "--exclude", "benches", "--exclude", "tests"]).current_dir(workspace());
    cargo.args(["--quiet", "--no-verify", "--allow-dirty", "--offline", "--target-dir"]).arg(folder.join("target"));
    output_of(&mut cargo);
    let version = env!("CARGO_PKG_VERSION");
    let mut patch = String::from("[patch.crates-io]\n");
    for package in PACKAGES {
        let name = format!("{package}-{version}");
        let file = folder.join("target/package").join(format!("{name}.crate"));
        output_of(Command::new("tar").arg("-xzf").arg(file).current_dir(folder));
        patch += &format!("{package} = {{ path = {:?} }}\n", folder.join(name));
    }
    patch
}

#[test]
#[ignore = "builds the library and all that it depends on three times"]
fn a_crate_that_depends_on_the_library_builds_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, path) = (folder.path(), workspace().join("merge-host"));
    assert_runs(folder, &format!("merge-host = {{ path = {path:?} }}"), WITH_GPU_ENGINE);
    let without = format!("merge-host = {{ path = {path:?}, default-features = false }}");
    assert_runs(folder, &without, WITHOUT_GPU_ENGINE);

    let patch = packages(folder);
    let version = env!("CARGO_PKG_VERSION");
    assert_runs(folder, &format!("merge-host = \"{version}\"\n\n{patch}"), WITH_GPU_ENGINE);
}
