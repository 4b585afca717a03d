//! Compiles a kernel crate to PTX, with rustc's own `nvptx64-nvidia-cuda` target and no CUDA toolkit.
//!
//! The builder has the name and, where they apply, the methods of Rust-CUDA's. A build script uses it like this:
//!
//! ```no_run
//! use cuda_builder::{CudaBuilder, NvvmArch};
//!
//! let ptx = CudaBuilder::new("../kernels").arch(NvvmArch::Compute90).copy_to("kernels.ptx").build()?;
//! # Ok::<(), cuda_builder::CudaBuilderError>(())
//! ```
//!
//! It needs a rustc with the sources of `core` in its sysroot, because no compiled `core` is distributed for the
//! target. [`Compiler::find`] documents the search.

mod assembler;
mod checked_in;
mod compiler;
mod modules;
mod sources;

pub use assembler::Assembler;
pub use checked_in::{Modules, current_modules, packaged_modules, read_modules, write_modules};
pub use compiler::Compiler;
pub use modules::{entry_points, split_modules};
pub use sources::SourceHash;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The remedy for a missing compiler.
const INSTALL_A_COMPILER: &str = "install one with `rustup component add rust-src` or, on Debian, `apt-get install \
                                  rustc-web rust-web-src`, or name one in CUDA_BUILDER_RUSTC";

/// The reason that a kernel crate was not compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    /// No compiler with the sources of `core` was found.
    #[error("no rustc with the sources of `core` was found ({looked}); {INSTALL_A_COMPILER}")]
    NoCompiler {
        /// The programs that were tried, and the reason in each case.
        looked: String,
    },
    /// The checked-in modules do not match the sources, and no compiler was found.
    #[error(
        "the modules in {folder} were compiled from other sources than those at hand, and no rustc with the sources of \
         `core` was found to compile them afresh ({looked}); {INSTALL_A_COMPILER}, or restore the sources",
        folder = folder.display()
    )]
    OutOfDate {
        /// The folder of the modules.
        folder: PathBuf,
        /// The programs that were tried, and the reason in each case.
        looked: String,
    },
    /// The modules of a package are not those that its manifest names.
    #[error("the modules in {folder} are not those that their manifest names", folder = folder.display())]
    Incomplete {
        /// The folder of the modules.
        folder: PathBuf,
    },
    /// The compiler ran and failed.
    #[error("`{command}` failed ({status}):\n{output}")]
    BuildFailed {
        /// The command line.
        command: String,
        /// The exit status.
        status: std::process::ExitStatus,
        /// The standard error of the command.
        output: String,
    },
    /// The compiler succeeded but left no PTX where it was expected.
    #[error("the build left no PTX at {0}")]
    NoPtx(PathBuf),
    /// A file or a program could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed, with the path.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The PTX does not have the form that the compiler writes.
    #[error("cannot divide the PTX into modules: {0}")]
    Ptx(String),
}

impl CudaBuilderError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }
}

/// The compute capability that PTX is written for. It runs on GPUs of that capability and newer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NvvmArch {
    /// Ampere: A100.
    Compute80,
    /// Ampere: GeForce 30, A10, A40.
    Compute86,
    /// Ada Lovelace: GeForce 40, L4, L40.
    Compute89,
    /// Hopper: H100, H200.
    Compute90,
    /// Blackwell: B100, B200.
    Compute100,
    /// Blackwell: GeForce 50.
    Compute120,
}

impl NvvmArch {
    /// The compiler's name of the target processor.
    pub fn target_cpu(self) -> &'static str {
        match self {
            Self::Compute80 => "sm_80",
            Self::Compute86 => "sm_86",
            Self::Compute89 => "sm_89",
            Self::Compute90 => "sm_90",
            Self::Compute100 => "sm_100",
            Self::Compute120 => "sm_120",
        }
    }
}

/// Compiles one kernel crate.
#[derive(Clone, Debug)]
pub struct CudaBuilder {
    path_to_crate: PathBuf,
    release: bool,
    arch: NvvmArch,
    generate_line_info: bool,
    build_args: Vec<String>,
    copy_to: Option<PathBuf>,
    target_dir: Option<PathBuf>,
}

impl CudaBuilder {
    /// A builder for the crate with its `Cargo.toml` in `path_to_crate_root`.
    pub fn new(path_to_crate_root: impl AsRef<Path>) -> Self {
        Self {
            path_to_crate: path_to_crate_root.as_ref().to_owned(),
            release: true,
            arch: NvvmArch::Compute80,
            generate_line_info: false,
            build_args: Vec::new(),
            copy_to: None,
            target_dir: None,
        }
    }

    /// Whether to optimise. The default is `true`.
    pub fn release(mut self, release: bool) -> Self {
        self.release = release;
        self
    }

    /// The oldest GPU that must run the PTX. The default is [`NvvmArch::Compute80`].
    pub fn arch(mut self, arch: NvvmArch) -> Self {
        self.arch = arch;
        self
    }

    /// Whether the PTX has the source line of each instruction, for profilers. The default is `false`.
    pub fn generate_line_info(mut self, generate_line_info: bool) -> Self {
        self.generate_line_info = generate_line_info;
        self
    }

    /// Arguments for the compiler of the kernel crate, such as `-Cllvm-args=…`.
    pub fn build_args(mut self, args: &[impl AsRef<str>]) -> Self {
        self.build_args.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Also copies the PTX to this file.
    pub fn copy_to(mut self, path: impl AsRef<Path>) -> Self {
        self.copy_to = Some(path.as_ref().to_owned());
        self
    }

    /// The folder for intermediate files. The default is `cuda-builder` in `OUT_DIR` if that is set, as in a build
    /// script, and otherwise in the system's temporary folder.
    pub fn target_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.target_dir = Some(path.as_ref().to_owned());
        self
    }

    /// Compiles the crate and its dependencies, and returns the path of the PTX file.
    ///
    /// # Errors
    /// If no compiler is found, the compiler fails, or a file cannot be written.
    pub fn build(self) -> Result<PathBuf, CudaBuilderError> {
        let compiler = Compiler::find()?;
        let target_dir = self.target_dir.clone().unwrap_or_else(|| {
            std::env::var_os("OUT_DIR").map_or_else(std::env::temp_dir, PathBuf::from).join("cuda-builder")
        });
        let profile = if self.release { "release" } else { "debug" };
        let ptx_dir = target_dir.join(TARGET).join(profile).join("deps");
        // Files of earlier builds would be mistaken for the result.
        for old in ptx_files(&ptx_dir) {
            std::fs::remove_file(&old).map_err(CudaBuilderError::io(format!("removing {}", old.display())))?;
        }

        let mut command = self.command(&compiler, &target_dir);
        let output = command.output().map_err(CudaBuilderError::io(format!("running {command:?}")))?;
        if !output.status.success() {
            return Err(CudaBuilderError::BuildFailed {
                command: format!("{command:?}"),
                status: output.status,
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        let Some(ptx) = ptx_files(&ptx_dir).pop() else {
            return Err(CudaBuilderError::NoPtx(ptx_dir));
        };
        if let Some(to) = &self.copy_to {
            std::fs::copy(&ptx, to).map_err(CudaBuilderError::io(format!("copying the PTX to {}", to.display())))?;
        }
        Ok(ptx)
    }

    fn command(&self, compiler: &Compiler, target_dir: &Path) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // These variables of a surrounding cargo apply to its own build only.
        for inherited in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
            command.env_remove(inherited);
        }
        // This pass ignores barriers. Between two tests of one condition it duplicates a barrier, one for each case,
        // and a warp with threads in both cases then deadlocks.
        command.env("RUSTFLAGS", "-Zmir-enable-passes=-JumpThreading");
        command
            .args(["rustc", "--lib", "--crate-type", "cdylib", "-Zbuild-std=core", "--target", TARGET])
            .arg("--manifest-path")
            .arg(self.path_to_crate.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(target_dir)
            .env("RUSTC", compiler.path())
            // Allows a stable compiler to use the target's unstable features.
            .env("RUSTC_BOOTSTRAP", "1");
        if self.release {
            command.arg("--release");
            for (setting, value) in [("LTO", "fat"), ("CODEGEN_UNITS", "1"), ("PANIC", "abort"), ("OPT_LEVEL", "3")] {
                command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
            }
        }
        // With fat LTO, the assembly of the crate is the whole program, so that the linker has no work.
        command
            .args(["--", "--emit=asm,link", "-Clinker=true"])
            .arg(format!("-Ctarget-cpu={}", self.arch.target_cpu()));
        if self.generate_line_info {
            command.arg("-Cdebuginfo=line-tables-only");
        }
        command.args(UNROLL).args(&self.build_args);
        command
    }
}

/// The compiler unrolls loops over register arrays only up to a size that tiles exceed. In a loop that is not unrolled,
/// the array would be in local memory.
const UNROLL: [&str; 2] = ["-Cllvm-args=-unroll-threshold=60000", "-Cllvm-args=-unroll-full-max-count=1024"];

/// The compiler's name of the target.
const TARGET: &str = "nvptx64-nvidia-cuda";

fn ptx_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "s"))
        .collect()
}
