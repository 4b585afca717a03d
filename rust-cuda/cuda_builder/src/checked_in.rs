//! Compiled modules that are checked in beside their kernels' sources, or packaged without them, so that a build needs
//! no kernel compiler.

use crate::{CudaBuilderError, SourceHash};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Module names with their PTX.
pub type Modules = BTreeMap<String, String>;

/// The file beside the modules with the hashes of the sources and of the modules.
const MANIFEST: &str = "MANIFEST";

/// The modules in `folder`, if its manifest matches `hash` and the modules' contents. Otherwise the modules that
/// `compile` makes.
///
/// # Errors
/// [`CudaBuilderError::OutOfDate`] if the modules are missing or do not match, and `compile` finds no compiler. Other
/// errors of `compile` are returned unchanged. [`CudaBuilderError::Io`] if a module or the manifest cannot be read.
pub fn current_modules(
    folder: &Path,
    hash: &SourceHash,
    compile: impl FnOnce() -> Result<Modules, CudaBuilderError>,
) -> Result<Modules, CudaBuilderError> {
    let modules = read_modules(folder)?;
    if !modules.is_empty() && Manifest::read(folder)?.is_some_and(|manifest| manifest.fits(hash, &modules)) {
        return Ok(modules);
    }
    compile().map_err(|error| match error {
        CudaBuilderError::NoCompiler { looked } => CudaBuilderError::OutOfDate { folder: folder.to_owned(), looked },
        other => other,
    })
}

/// The modules in `folder`, which is part of a package without the sources that the modules were compiled from.
///
/// # Errors
/// [`CudaBuilderError::Incomplete`] if they are not the modules that the manifest names. [`CudaBuilderError::Io`] if a
/// module or the manifest cannot be read.
pub fn packaged_modules(folder: &Path) -> Result<Modules, CudaBuilderError> {
    let modules = read_modules(folder)?;
    if Manifest::read(folder)?.is_some_and(|manifest| manifest.names(&modules)) {
        return Ok(modules);
    }
    Err(CudaBuilderError::Incomplete { folder: folder.to_owned() })
}

/// The hashes of the sources and of the modules.
struct Manifest {
    sources: SourceHash,
    modules: BTreeMap<String, SourceHash>,
}

impl Manifest {
    /// The manifest in `folder`, if any.
    fn read(folder: &Path) -> Result<Option<Self>, CudaBuilderError> {
        let path = folder.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(CudaBuilderError::io(format!("reading {}", path.display())))?,
        };
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let sources = lines.next().filter(|(word, _)| *word == "sources").map(|(_, hash)| SourceHash::from_text(hash));
        let modules = lines.filter_map(|(word, rest)| Some((rest.strip_prefix("module ")?, word)));
        let modules = modules.map(|(name, hash)| (name.to_owned(), SourceHash::from_text(hash))).collect();
        Ok(sources.map(|sources| Self { sources, modules }))
    }

    fn fits(&self, sources: &SourceHash, modules: &Modules) -> bool {
        self.sources == *sources && self.names(modules)
    }

    /// Whether it has the hashes of these modules and of no others.
    fn names(&self, modules: &Modules) -> bool {
        let is_same = |(name, text): (&String, &String)| self.modules.get(name) == Some(&SourceHash::of_text(text));
        self.modules.len() == modules.len() && modules.iter().all(is_same)
    }
}

/// The modules in `folder`: the files with the extension `ptx`. Empty if there is no such folder.
///
/// # Errors
/// [`CudaBuilderError::Io`] if the folder or a module cannot be read.
pub fn read_modules(folder: &Path) -> Result<Modules, CudaBuilderError> {
    let module = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(CudaBuilderError::io(format!("reading {}", path.display())))?;
        Ok((name_of(&path), text))
    };
    module_paths(folder)?.into_iter().map(module).collect()
}

/// Replaces the modules in `folder` by `modules`, which `compiler` made from the sources with the hash `sources`.
/// Creates the folder if necessary, and removes modules with other names.
///
/// # Errors
/// [`CudaBuilderError::Io`] if a file cannot be written or removed.
pub fn write_modules(
    modules: &Modules,
    sources: &SourceHash,
    compiler: &str,
    folder: &Path,
) -> Result<(), CudaBuilderError> {
    let writing = |path: &Path| CudaBuilderError::io(format!("writing {}", path.display()));
    fs::create_dir_all(folder).map_err(writing(folder))?;
    // The module of a removed kernel would otherwise stay, and the manifest would never match.
    for path in module_paths(folder)?.iter().filter(|path| !modules.contains_key(&name_of(path))) {
        fs::remove_file(path).map_err(CudaBuilderError::io(format!("removing {}", path.display())))?;
    }
    let mut manifest = format!("sources {sources}\ncompiler {compiler}\n");
    for (name, text) in modules {
        let path = folder.join(format!("{name}.ptx"));
        fs::write(&path, text).map_err(writing(&path))?;
        manifest += &format!("{} module {name}\n", SourceHash::of_text(text));
    }
    let path = folder.join(MANIFEST);
    fs::write(&path, manifest).map_err(writing(&path))
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
