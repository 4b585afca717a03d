//! File systems: free space, files in memory, and the folder for temporary files.

use super::memory;
use crate::say::error::{Failure, Result, name, os_message};
use crate::say::report;
use rustix::fs::FsWord;
use std::env;
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// File systems that hold files in memory, by their types in Linux's magic.h: TMPFS_MAGIC, RAMFS_MAGIC,
/// HUGETLBFS_MAGIC.
const IN_MEMORY: [FsWord; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// Folders for temporary files if `--tmp-dir` and TMPDIR are not set.
const DEFAULTS: [&str; 2] = ["/tmp", "/var/tmp"];

/// The most bytes that this user can write in `folder`, or `None` if the system does not report them: some file systems
/// have no number of blocks.
///
/// Quotas are included if the file system includes them in statvfs(3). In a folder in memory, the result is at most the
/// memory that the system can provide.
pub fn free_in(folder: &Path) -> Option<u128> {
    let system = rustix::fs::statvfs(folder).ok()?;
    // Some blocks are reserved for root.
    let blocks = if rustix::process::geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    let free = (system.f_blocks > 0).then(|| u128::from(blocks) * u128::from(system.f_frsize));
    let memory = if is_in_memory(folder) { memory::obtainable().map(u128::from) } else { None };
    free.into_iter().chain(memory).min()
}

/// Whether the files in `folder` take memory instead of a disk: a tmpfs such as /dev/shm, a ramfs or a hugetlbfs.
pub fn is_in_memory(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|system| IN_MEMORY.contains(&system.f_type))
}

/// A folder for temporary files. It exists and can be written to.
///
/// `Display` gives its name in messages: `--tmp-dir /scratch`, `TMPDIR: /scratch` or `/tmp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryFolder {
    /// Its path.
    pub path: PathBuf,
    /// Where the path comes from.
    pub origin: Origin,
}

/// The origin of the path of a folder for temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `--tmp-dir`
    Flag,
    /// The environment variable TMPDIR.
    Variable,
    /// The program's own choice.
    Default,
}

impl Display for TemporaryFolder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.origin {
            Origin::Flag => "--tmp-dir ",
            Origin::Variable => "TMPDIR: ",
            Origin::Default => "",
        })?;
        f.write_str(&name(&self.path))
    }
}

/// The folders for temporary files: `given`, the arguments of `--tmp-dir`; otherwise the folder in TMPDIR; otherwise
/// /tmp. If /tmp is in memory and /var/tmp is not, the folder is /var/tmp. If both are in memory, it is /tmp, with a
/// warning. A run should call this only if it needs the folders.
///
/// # Errors
/// If a folder does not exist, is not a directory, or cannot be written to. The message names the origin of its path.
pub fn temporary_folders(given: &[PathBuf]) -> Result<Vec<TemporaryFolder>> {
    let given = if given.is_empty() { vec![None] } else { given.iter().map(|path| Some(&**path)).collect() };
    let folders = given.into_iter().map(|given| {
        let folder = choose(given, env::var_os("TMPDIR"), &DEFAULTS.map(Path::new), is_in_memory)?;
        if folder.origin == Origin::Default && is_in_memory(&folder.path) {
            let hint = "is in memory, and so are temporary files: name a disk with --tmp-dir";
            report::warning(format_args!("{folder} {hint}"));
        }
        report::verbose(format_args!("temporary files: in {}", name(&folder.path)));
        Ok(folder)
    });
    folders.collect()
}

/// A folder of [`temporary_folders`], with `variable` as the value of TMPDIR. Chooses the first of `defaults` that is
/// not in memory.
fn choose(
    given: Option<&Path>,
    variable: Option<OsString>,
    defaults: &[&Path],
    is_in_memory: impl Fn(&Path) -> bool,
) -> Result<TemporaryFolder> {
    if let Some(path) = given {
        return usable(path, Origin::Flag);
    }
    if let Some(path) = variable.filter(|path| !path.is_empty()) {
        return usable(Path::new(&path), Origin::Variable);
    }
    let on_disk = defaults.iter().filter(|path| !is_in_memory(path));
    let mut folders = on_disk.chain(defaults).map(|path| usable(path, Origin::Default));
    folders.find(Result::is_ok).unwrap_or_else(|| usable(defaults[0], Origin::Default))
}

/// The folder at `path`, or an error that says why it cannot be used.
fn usable(path: &Path, origin: Origin) -> Result<TemporaryFolder> {
    let folder = TemporaryFolder { path: path.to_owned(), origin };
    // Permissions and type of a folder do not show whether its file system accepts new files: /proc does not.
    match tempfile::tempfile_in(path) {
        Ok(_) => Ok(folder),
        Err(error) => {
            let error = os_message(&error);
            Err(Failure::new(format!("{folder}: cannot create a temporary file: {error}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_dev_shm_are_memory() {
        assert!(is_in_memory(Path::new("/dev/shm")));
        assert!(!is_in_memory(Path::new("/proc")) && !is_in_memory(Path::new("/nonexistent")));
        let free = free_in(Path::new("/dev/shm")).unwrap();
        assert!(free <= memory::obtainable().unwrap().saturating_add(64 << 20).into());
        assert_eq!(free_in(Path::new("/proc")), None);
    }

    #[test]
    fn the_flag_comes_before_the_variable_and_that_before_the_defaults() {
        let [flag, variable, default, other] = [(); 4].map(|()| tempfile::tempdir().unwrap());
        let defaults = [default.path(), other.path()];
        let folder = |path: &Path, origin| TemporaryFolder { path: path.to_owned(), origin };
        let set = || Some(variable.path().into());
        let choose = |given, variable, in_memory: &[&Path]| {
            choose(given, variable, &defaults, |path| in_memory.contains(&path)).unwrap()
        };
        assert_eq!(choose(Some(flag.path()), set(), &[]), folder(flag.path(), Origin::Flag));
        assert_eq!(choose(None, set(), &[variable.path()]), folder(variable.path(), Origin::Variable));
        assert_eq!(choose(None, None, &[]), folder(defaults[0], Origin::Default));
        assert_eq!(choose(None, Some(OsString::new()), &[]), folder(defaults[0], Origin::Default));
        assert_eq!(choose(None, None, &[defaults[0]]), folder(defaults[1], Origin::Default));
        assert_eq!(choose(None, None, &defaults), folder(defaults[0], Origin::Default));
        std::fs::remove_dir(other.path()).unwrap();
        assert_eq!(choose(None, None, &[defaults[0]]), folder(defaults[0], Origin::Default));
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_named_with_its_origin() {
        let message = |given: Option<&str>, variable: Option<&str>| {
            let folder = choose(given.map(Path::new), variable.map(Into::into), &[Path::new("/none")], |_| false);
            folder.unwrap_err().message().unwrap().to_owned()
        };
        let why = "cannot create a temporary file: No such file or directory";
        assert_eq!(message(Some("/none"), None), format!("--tmp-dir /none: {why}"));
        assert_eq!(message(None, Some("/none")), format!("TMPDIR: /none: {why}"));
        assert_eq!(message(None, None), format!("/none: {why}"));
        assert_eq!(message(Some("/proc"), None), format!("--tmp-dir /proc: {why}"));
        let why = "cannot create a temporary file: Not a directory";
        assert_eq!(message(None, Some("/dev/null")), format!("TMPDIR: /dev/null: {why}"));
    }
}
