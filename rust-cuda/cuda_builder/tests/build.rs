//! Compiles a user's kernel crate, in a folder of its own, to PTX.
//!
//! These tests need a rustc with the sources of `core`, which some machines lack, and half a minute to compile `core`:
//! `cargo test -p gmerge-cuda-builder -- --ignored`. Without such a compiler, they fail.

use cuda_builder::{CudaBuilder, CudaBuilderError, NvvmArch, entry_points};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MANIFEST: &str = r#"
[package]
name = "my-kernels"
version = "0.0.0"
edition = "2024"

[lib]
crate-type = ["cdylib", "rlib"]

[dependencies]
cuda_std = { package = "gmerge-cuda-std", path = "CUDA_STD" }

[workspace]
"#;

/// The example of Rust-CUDA's guide.
const KERNELS: &str = r#"
#![cfg_attr(target_arch = "nvptx64", no_std, feature(abi_ptx))]

use cuda_std::{kernel, thread};

/// # Safety
/// `a` and `b` have the same length, and `c` has capacity for it.
#[kernel]
pub unsafe fn add(a: &[f32], b: &[f32], c: *mut f32) {
    let index = thread::index_1d() as usize;
    if index < a.len() {
        let element = unsafe { &mut *c.add(index) };
        *element = a[index] + b[index];
    }
}
"#;

struct Project(TempDir);

impl Project {
    fn new(kernels: &str) -> Self {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let folder = TempDir::new().unwrap();
        let manifest = MANIFEST.replace("CUDA_STD", workspace.join("rust-cuda/cuda_std").to_str().unwrap());
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.path().join("src/lib.rs"), kernels).unwrap();
        // The same versions as in the workspace.
        fs::copy(workspace.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn builder(&self) -> CudaBuilder {
        CudaBuilder::new(self.0.path()).target_dir(self.path("target"))
    }
}

#[test]
#[ignore = "needs a rustc with the sources of core"]
fn a_kernel_crate_becomes_ptx() {
    let project = Project::new(KERNELS);
    let copy = project.path("kernels.ptx");
    let path = project.builder().arch(NvvmArch::Compute90).copy_to(&copy).build().unwrap();
    let ptx = fs::read_to_string(&path).unwrap();
    assert_eq!(ptx, fs::read_to_string(&copy).unwrap());
    assert_eq!(entry_points(&ptx), ["add"]);
    assert!(ptx.contains("\n.target sm_90"), "{ptx}");
    // Two slices, each a pointer and a length, and a pointer.
    let parameters = ptx.lines().filter(|line| line.contains(".param .u64")).count();
    assert_eq!(parameters, 5, "{ptx}");
    for part in ["%ctaid.x", "%ntid.x", "%tid.x", "add.rn.f32"] {
        assert!(ptx.contains(part), "no {part} in {ptx}");
    }

    // The same crate for another GPU and with another option: nothing of the first build is reused.
    let path = project.builder().arch(NvvmArch::Compute80).generate_line_info(true).build().unwrap();
    let ptx = fs::read_to_string(&path).unwrap();
    assert!(ptx.contains("\n.target sm_80") && ptx.contains(".loc"), "{ptx}");

    // The user sees the compiler's error message.
    fs::write(project.path("src/lib.rs"), KERNELS.replace("a.len()", "a.size()")).unwrap();
    let error = project.builder().build().unwrap_err();
    assert!(matches!(error, CudaBuilderError::BuildFailed { .. }), "{error}");
    assert!(error.to_string().contains("no method named `size` found"), "{error}");
}
