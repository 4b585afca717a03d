//! Assembles PTX to machine code. A driver loads machine code at once, and takes seconds to compile PTX.

use crate::CudaBuilderError;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// NVIDIA's `ptxas`, part of the CUDA toolkit and of the Python wheel `nvidia-cuda-nvcc`.
#[derive(Clone, Debug)]
pub struct Assembler(PathBuf);

impl Assembler {
    /// The program named by the variable `PTXAS`, or `ptxas`, if it can be run.
    pub fn find() -> Option<Self> {
        let path = PathBuf::from(std::env::var_os("PTXAS").unwrap_or_else(|| OsString::from("ptxas")));
        let version = Command::new(&path).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success()).then_some(Self(path))
    }

    /// Assembles `ptx` for GPUs of one compute capability, for instance 90. Later GPUs of the same generation also run
    /// the result.
    ///
    /// # Errors
    /// [`CudaBuilderError::BuildFailed`] if the assembler rejects the text, and [`CudaBuilderError::Io`] if a file
    /// cannot be written or the program cannot be run.
    pub fn assemble(&self, ptx: &str, capability: u32) -> Result<Vec<u8>, CudaBuilderError> {
        let mut source =
            tempfile::Builder::new().suffix(".ptx").tempfile().map_err(CudaBuilderError::io("a temporary file"))?;
        source.write_all(ptx.as_bytes()).map_err(CudaBuilderError::io("a temporary file"))?;
        let target = tempfile::NamedTempFile::new().map_err(CudaBuilderError::io("a temporary file"))?;
        let mut command = Command::new(&self.0);
        command.arg(format!("-arch=sm_{capability}")).arg(source.path()).arg("-o").arg(target.path());
        let output = command.output().map_err(CudaBuilderError::io(format!("running {}", self.0.display())))?;
        if !output.status.success() {
            return Err(CudaBuilderError::BuildFailed {
                command: format!("{command:?}"),
                status: output.status,
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        std::fs::read(target.path()).map_err(CudaBuilderError::io("reading machine code"))
    }
}
