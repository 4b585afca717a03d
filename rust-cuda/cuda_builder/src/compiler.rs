//! Finds a rustc that can compile `core` for the GPU.

use crate::CudaBuilderError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A rustc with the sources of `core`.
#[derive(Clone, Debug)]
pub struct Compiler {
    path: PathBuf,
    version: String,
}

impl Compiler {
    /// Returns the first compiler of this list with `lib/rustlib/src/rust/library/core` in its sysroot:
    ///
    /// 1. the program named by the variable `CUDA_BUILDER_RUSTC`; if it is set, no other program is tried;
    /// 2. the workspace's own compiler: `RUSTC`, which cargo sets for build scripts, or `rustc`;
    /// 3. `/usr/bin/rustc`, the distribution's compiler.
    ///
    /// # Errors
    /// [`CudaBuilderError::NoCompiler`] lists the programs that were tried, and the reason in each case.
    pub fn find() -> Result<Self, CudaBuilderError> {
        let candidates: Vec<(&str, OsString)> = match std::env::var_os("CUDA_BUILDER_RUSTC") {
            Some(named) => vec![("CUDA_BUILDER_RUSTC", named)],
            None => vec![
                ("the workspace's toolchain", std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())),
                ("the distribution's", "/usr/bin/rustc".into()),
            ],
        };
        let mut looked = Vec::new();
        for (origin, path) in candidates {
            match Self::try_path(Path::new(&path)) {
                Ok(found) => return Ok(found),
                Err(why) => looked.push(format!("{origin}, {}: {why}", Path::new(&path).display())),
            }
        }
        Err(CudaBuilderError::NoCompiler { looked: looked.join("; ") })
    }

    /// The path of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The program's version, such as `rustc 1.96.0 (ac68faa20 2026-05-25)`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn try_path(path: &Path) -> Result<Self, String> {
        let ask = |args: &[&str]| -> Result<String, String> {
            let output = Command::new(path).args(args).output().map_err(|e| format!("cannot be run: {e}"))?;
            if !output.status.success() {
                return Err(format!("`{}` ended with {}", args.join(" "), output.status));
            }
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let core = Path::new(&ask(&["--print", "sysroot"])?).join("lib/rustlib/src/rust/library/core/src/lib.rs");
        if !core.is_file() {
            return Err(format!("has no {}", core.display()));
        }
        Ok(Self { path: path.to_owned(), version: ask(&["--version"])? })
    }
}
