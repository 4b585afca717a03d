//! Where output goes: a file that is created or replaced, or one that is written to as it is.

use super::attributes::Attributes;
use crate::os::standard;
use crate::say::error::{Failure, Result, name, os_message};
use rustix::fs::{Access, AtFlags, CWD, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The number of symbolic links to follow before they count as a loop, as in Linux.
const LINKS: usize = 40;

/// Where the output for a path goes. Nothing has been changed yet.
#[derive(Debug)]
pub enum Target {
    /// Standard output, a file that is not regular, or an open one: bytes are written as they come. A regular file is
    /// emptied first if `truncate`.
    Through { file: File, truncate: bool },
    /// A regular file, or none yet.
    Replace(Replacement),
}

/// A file to create or to replace.
#[derive(Debug)]
pub struct Replacement {
    /// The path as it was given, for messages.
    pub(super) path: PathBuf,
    /// The same with symbolic links followed.
    pub(super) file: PathBuf,
    /// The folder of `file`.
    pub(super) folder: PathBuf,
    /// The attributes of the old file, if there is one.
    pub(super) old: Option<Attributes>,
}

impl Target {
    /// Finds out where the output for `path` goes, and whether the file can be written or replaced. `-` is standard output.
    pub fn find(path: &Path) -> Result<Self> {
        let failure = |error: io::Error| Failure::io(path, &error);
        if standard::is_output(path) {
            return standard_output(path);
        }
        let (file, metadata) = follow_links(path).map_err(failure)?;
        let folder = folder_of(&file);
        let Some(metadata) = metadata else {
            // "new/" and "new/." cannot become files.
            let names_folder = [&b"/"[..], b"/."].iter().any(|end| path.as_os_str().as_bytes().ends_with(end));
            if names_folder || file.file_name().is_none() {
                return Err(failure(Errno::NOENT.into()));
            }
            check_folder(path, &folder)?;
            return Ok(Self::Replace(Replacement { path: path.to_owned(), file, folder, old: None }));
        };
        if metadata.is_dir() {
            return Err(Failure::file(path, "is a directory, expected a file to write to"));
        }
        // A file that may not be written to is an error even where its folder would permit to replace it.
        let open = File::options().write(true).open(&file).map_err(failure)?;
        if !metadata.is_file() || is_open_file(&file) {
            return Ok(Self::Through { file: open, truncate: metadata.is_file() });
        }
        check_folder(path, &folder)?;
        check_replaceable(path, &file)?;
        let old = Some(Attributes::of(&file).map_err(failure)?);
        Ok(Self::Replace(Replacement { path: path.to_owned(), file, folder, old }))
    }

    /// Whether the two are one file, of which the second output would leave nothing of the first. A terminal or /dev/null
    /// may be written to twice.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Through { file, .. }, Self::Through { file: other, .. }) => {
                let (Ok(here), Ok(there)) = (file.metadata(), other.metadata()) else { return false };
                identity(&here) == identity(&there) && !here.file_type().is_char_device()
            }
            (Self::Through { file, .. }, Self::Replace(replacement))
            | (Self::Replace(replacement), Self::Through { file, .. }) => {
                let (Ok(here), Ok(there)) = (file.metadata(), fs::metadata(&replacement.file)) else { return false };
                identity(&here) == identity(&there)
            }
            // The names decide and not the files that have them now: two names of one file become two files.
            (Self::Replace(here), Self::Replace(there)) => {
                let folder = |replacement: &Replacement| fs::metadata(&replacement.folder).map(|it| identity(&it)).ok();
                here.file.file_name() == there.file.file_name() && folder(here) == folder(there)
            }
        }
    }

    /// Whether what was written can be written again: that of a regular file, unless all bytes are appended to it.
    pub fn can_be_rewritten(&self) -> bool {
        let Self::Through { file, .. } = self else { return true };
        let appends = rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::APPEND));
        !appends && file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// The folder that a new file will be written to. None for a target that is written to directly.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Through { .. } => None,
            Self::Replace(replacement) => Some(&replacement.folder),
        }
    }
}

/// Device and inode, which identify a file.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn standard_output(path: &Path) -> Result<Target> {
    let file = standard::output().map_err(|error| Failure::io(path, &error))?;
    if file.is_terminal() {
        return Err(Failure::file(
            path,
            "standard output is a terminal, expected a file or a pipe for binary keys: \
             name a file, or pipe them to a program such as od",
        ));
    }
    // The shell has emptied a file, or has not because it is to be appended to.
    Ok(Target::Through { file, truncate: false })
}

/// The file that `path` stands for, with its metadata if it exists. Its folder need not exist.
fn follow_links(path: &Path) -> io::Result<(PathBuf, Option<Metadata>)> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let folder = fs::canonicalize(folder_of(&path))?;
                if is_open_file(&folder.join("0")) {
                    // The links of /proc/*/fd stand for open files, which may have no name that leads to them.
                    let metadata = fs::metadata(&path)?;
                    return Ok((folder.join(path.file_name().unwrap_or_default()), Some(metadata)));
                }
                path = folder.join(fs::read_link(&path)?);
            }
            Ok(metadata) => return Ok((path, Some(metadata))),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((path, None)),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether a path without links in its folder is one of a process's open files.
fn is_open_file(path: &Path) -> bool {
    let folder = path.parent();
    folder.is_some_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd"))
}

/// The folder that a file is in.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) => PathBuf::from("."),
        None => PathBuf::from("/"),
    }
}

/// An error about `path` if no file can be created in `folder`.
fn check_folder(path: &Path, folder: &Path) -> Result<()> {
    let result = fs::metadata(folder).and_then(|metadata| {
        if !metadata.is_dir() {
            return Err(Errno::NOTDIR.into());
        }
        Ok(rustix::fs::accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
    });
    result.map_err(|error| {
        let (folder, error) = (name(folder), os_message(&error));
        Failure::file(path, format!("cannot write to folder {folder}: {error}"))
    })
}

/// An error about `path` if the regular file `file` cannot be renamed over: it is a mount point, or it belongs to another
/// user in a folder with the sticky bit, or it has a flag such as "append only".
fn check_replaceable(path: &Path, file: &Path) -> Result<()> {
    if is_mount_point(file) {
        return Err(Failure::file(
            path,
            "is a mount point, expected a file that can be replaced: write to another file",
        ));
    }
    // rmdir(2) never removes a file. The system refuses it with ENOTDIR, but not before it has checked that this process
    // may remove the name, by the rules for rename(2).
    match rustix::fs::unlinkat(CWD, file, AtFlags::REMOVEDIR) {
        Err(error @ (Errno::PERM | Errno::ACCESS | Errno::ROFS)) => {
            let error = os_message(&error.into());
            Err(Failure::file(path, format!("cannot be replaced by a new file: {error}: write to another file")))
        }
        _ => Ok(()),
    }
}

fn is_mount_point(file: &Path) -> bool {
    let status = rustix::fs::statx(CWD, file, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    status.is_ok_and(|status| status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
