//! A fingerprint of the sources that PTX was made from, to tell whether it still fits them.

use crate::CudaBuilderError;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// SHA-256 over a set of source files, their paths included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceHash(String);

/// The line of a PTX file that holds the hash begins with this.
const LABEL: &str = "// sources: sha256 ";

impl SourceHash {
    /// Hashes the files named, and in folders all `.rs` and `.toml` files but those under a folder whose path from
    /// `root` is in `skip`. Paths are relative to `root`, and enter the hash as they are written.
    ///
    /// # Errors
    /// Where a file or folder cannot be read.
    pub fn of(root: &Path, paths: &[&str], skip: &[&str]) -> Result<Self, CudaBuilderError> {
        let mut files = Vec::new();
        for path in paths {
            collect(root, Path::new(path), skip, &mut files)?;
        }
        files.sort();
        let mut hash = Sha256::new();
        for file in &files {
            let full = root.join(file);
            let text = std::fs::read(&full).map_err(CudaBuilderError::io(format!("reading {}", full.display())))?;
            hash.update(file.to_string_lossy().as_bytes());
            hash.update([0]);
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(&text);
        }
        Ok(Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The hash that a PTX text says it was made from.
    pub fn in_ptx(ptx: &str) -> Option<Self> {
        let line = ptx.lines().take(5).find_map(|line| line.strip_prefix(LABEL))?;
        Some(Self(line.trim().to_owned()))
    }

    /// The header for a PTX text made from these sources by `compiler`.
    pub fn header(&self, compiler: &str) -> String {
        format!("{LABEL}{}\n// compiler: {compiler}\n", self.0)
    }
}

fn collect(root: &Path, path: &Path, skip: &[&str], files: &mut Vec<PathBuf>) -> Result<(), CudaBuilderError> {
    let full = root.join(path);
    if !full.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let reading = || CudaBuilderError::io(format!("reading {}", full.display()));
    for entry in std::fs::read_dir(&full).map_err(reading())? {
        let entry = entry.map_err(reading())?;
        let child = path.join(entry.file_name());
        if entry.path().is_dir() {
            if !skip.iter().any(|skipped| child == Path::new(skipped)) {
                collect(root, &child, skip, files)?;
            }
        } else if child.extension().is_some_and(|e| e == "rs" || e == "toml") {
            files.push(child);
        }
    }
    Ok(())
}
