//! Modules that are checked in beside the sources of their kernels, so that a build needs no kernel compiler.

use crate::{CudaBuilderError, SourceHash};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Module names with their PTX.
pub type Modules = BTreeMap<String, String>;

/// The modules in `folder` if all of them were compiled from the sources with this hash, or else those that `compile` makes.
///
/// # Errors
/// [`CudaBuilderError::OutOfDate`] where the modules are of other sources, or there are none, and `compile` finds no compiler;
/// other errors of `compile`; and [`CudaBuilderError::Io`] where a module cannot be read.
pub fn current_modules(
    folder: &Path,
    hash: &SourceHash,
    compile: impl FnOnce() -> Result<Modules, CudaBuilderError>,
) -> Result<Modules, CudaBuilderError> {
    let modules = read_modules(folder)?;
    if !modules.is_empty() && modules.values().all(|text| SourceHash::in_ptx(text).as_ref() == Some(hash)) {
        return Ok(modules);
    }
    compile().map_err(|error| match error {
        CudaBuilderError::NoCompiler { looked } => CudaBuilderError::OutOfDate { folder: folder.to_owned(), looked },
        other => other,
    })
}

/// The modules in `folder`: the files with the extension `ptx`. None if there is no such folder.
///
/// # Errors
/// [`CudaBuilderError::Io`] where the folder or a module cannot be read.
pub fn read_modules(folder: &Path) -> Result<Modules, CudaBuilderError> {
    let module = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(CudaBuilderError::io(format!("reading {}", path.display())))?;
        Ok((name_of(&path), text))
    };
    module_paths(folder)?.into_iter().map(module).collect()
}

/// Makes `modules` the modules in `folder`, which is created if there is none. Modules of other names are removed.
///
/// # Errors
/// [`CudaBuilderError::Io`] where a file cannot be written or removed.
pub fn write_modules(modules: &Modules, folder: &Path) -> Result<(), CudaBuilderError> {
    let writing = |path: &Path| CudaBuilderError::io(format!("writing {}", path.display()));
    fs::create_dir_all(folder).map_err(writing(folder))?;
    // A module of a kernel that has been removed would otherwise stay, with a hash that is never current.
    for path in module_paths(folder)?.iter().filter(|path| !modules.contains_key(&name_of(path))) {
        fs::remove_file(path).map_err(CudaBuilderError::io(format!("removing {}", path.display())))?;
    }
    modules.iter().try_for_each(|(name, text)| {
        let path = folder.join(format!("{name}.ptx"));
        fs::write(&path, text).map_err(writing(&path))
    })
}

fn module_paths(folder: &Path) -> Result<Vec<PathBuf>, CudaBuilderError> {
    let reading = || CudaBuilderError::io(format!("reading {}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(reading())?,
    };
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry.map_err(reading())?.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "ptx")).collect())
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
