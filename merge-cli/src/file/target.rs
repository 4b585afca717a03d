//! The target of output: a file that is created or replaced, or an existing file that is written to directly.

use super::attributes::Attributes;
use super::identity::Identity;
use super::in_place::InPlace;
use crate::os::standard;
use crate::say::error::{Failure, Result, name, os_message};
use rustix::fs::{Access, AtFlags, CWD, FsWord, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The number of times that a target is opened before other programs count as replacing it all the time.
const OPENINGS: usize = 100;
/// The number of symbolic links to follow before they count as a loop, as in Linux.
const LINKS: usize = 40;
/// The type of the file system /proc, PROC_SUPER_MAGIC in Linux's magic.h.
const PROC: FsWord = 0x9fa0;
/// The sticky bit of a folder's mode.
const STICKY: u32 = 0o1000;
/// The sticky bit and the permission for everyone to write to a folder.
const STICKY_FOR_ALL: u32 = STICKY | 0o002;

/// The checked target of the output for a path. Nothing has been changed yet.
#[derive(Debug)]
pub struct Target {
    /// The path as the user gave it.
    pub path: PathBuf,
    pub kind: Kind,
}

/// How a target is written.
#[derive(Debug)]
pub enum Kind {
    /// Standard output, a file that is not regular, or an open file: bytes are written directly, in order. A regular
    /// file is emptied first if `truncate`.
    Through { file: File, truncate: bool },
    /// A regular file, or none yet.
    Replace(Replacement),
    /// The input, which is written over.
    InPlace(InPlace),
}

/// A file to create or to replace.
#[derive(Debug)]
pub struct Replacement {
    /// The path as the user gave it, for messages.
    pub(super) path: PathBuf,
    /// The path with symbolic links followed.
    pub(super) file: PathBuf,
    /// The folder of `file`.
    pub(super) folder: PathBuf,
    /// The attributes of the old file, if there is one.
    pub(super) old: Option<Attributes>,
    /// Whether to wait until the file and its name are permanent even if there is no old file.
    pub(super) sync: bool,
}

/// The targets of keys or records, of values, and of the numbers of equal keys.
#[derive(Debug)]
pub struct Targets {
    pub keys: Target,
    pub values: Option<Target>,
    pub counts: Option<Target>,
}

impl Targets {
    /// Calls [`Target::find`] for each path.
    pub fn find(keys: &Path, values: Option<&Path>, counts: Option<&Path>, sync: bool) -> Result<Self> {
        let find = |path| Target::find(path, sync);
        Ok(Self { keys: find(keys)?, values: values.map(find).transpose()?, counts: counts.map(find).transpose()? })
    }

    /// All targets.
    pub fn iter(&self) -> impl Iterator<Item = &Target> {
        [&self.keys].into_iter().chain(&self.values).chain(&self.counts)
    }
}

impl From<InPlace> for Target {
    fn from(place: InPlace) -> Self {
        Self { path: place.path.clone(), kind: Kind::InPlace(place) }
    }
}

impl Target {
    /// Finds out whether `path` can be written to or replaced, before any work is done for it. `-` is standard output.
    /// With `sync`, the output must be permanent before it counts as written.
    pub fn find(path: &Path, sync: bool) -> Result<Self> {
        Ok(Self { path: path.to_owned(), kind: Kind::find(path, sync)? })
    }

    /// An error if the output is written directly to the file that is read as `input`. A file that is replaced when
    /// the output is complete may be an input. So may character devices and sockets, which do not read back the written
    /// bytes.
    pub fn check_is_no_input(&self, input: &Path, file: Identity) -> Result<()> {
        let Kind::Through { file: output, .. } = &self.kind else { return Ok(()) };
        let Ok(metadata) = output.metadata() else { return Ok(()) };
        let kind = metadata.file_type();
        if kind.is_char_device() || kind.is_socket() || Identity::of(&metadata) != file {
            return Ok(());
        }
        let input = name(input);
        let what =
            format!("is the input {input}, which would be lost: expected another file, or that file by its name");
        Err(Failure::file(&self.path, what))
    }

    /// Whether both targets are the same file, so that the second output would overwrite the first. A terminal or
    /// /dev/null may be written to twice.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Through { file, .. }, Kind::Through { file: other, .. }) => {
                let (Ok(here), Ok(there)) = (file.metadata(), other.metadata()) else { return false };
                Identity::of(&here) == Identity::of(&there) && !here.file_type().is_char_device()
            }
            (Kind::Through { file, .. }, Kind::Replace(replacement))
            | (Kind::Replace(replacement), Kind::Through { file, .. }) => {
                let (Ok(here), Ok(there)) = (file.metadata(), fs::metadata(&replacement.file)) else { return false };
                Identity::of(&here) == Identity::of(&there)
            }
            // Names are compared and not the present files: two names of one file become two files.
            (Kind::Replace(here), Kind::Replace(there)) => {
                let folder = |replacement: &Replacement| fs::metadata(&replacement.folder).map(|it| Identity::of(&it));
                here.file.file_name() == there.file.file_name() && folder(here).ok() == folder(there).ok()
            }
            // The input is the only output.
            (Kind::InPlace(_), _) | (_, Kind::InPlace(_)) => false,
        }
    }

    /// Whether written bytes can be overwritten later: true for a regular file, unless it is open for appending.
    pub fn can_be_rewritten(&self) -> bool {
        let Kind::Through { file, .. } = &self.kind else { return true };
        let appends = rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::APPEND));
        !appends && file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// The folder of the new file. None for a target that is written to directly.
    pub fn folder(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Through { .. } | Kind::InPlace(_) => None,
            Kind::Replace(replacement) => Some(&replacement.folder),
        }
    }
}

impl Kind {
    fn find(path: &Path, sync: bool) -> Result<Self> {
        let failure = |error: io::Error| Failure::io(path, &error);
        if standard::is_output(path) {
            // The shell has opened the file, and has emptied it unless the output is appended to it.
            return Self::through(path, standard::output().map_err(failure)?, false);
        }
        // The system follows symbolic links here, or refuses to (proc(5), protected_symlinks). A file without write
        // permission is an error, even if the permissions of its folder would allow replacing it.
        for _ in 0..OPENINGS {
            let found = match File::options().write(true).custom_flags(OFlags::NOCTTY.bits() as i32).open(path) {
                Ok(file) => Self::existing(path, file, sync)?,
                Err(error) if error.kind() == ErrorKind::NotFound => Some(Self::new(path, sync)?),
                Err(error) if error.kind() == ErrorKind::IsADirectory => {
                    return Err(Failure::file(path, "is a directory, expected a file to write to"));
                }
                Err(error) => return Err(failure(error)),
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(Failure::file(path, "was replaced by another file each time that it was opened: run again"))
    }

    /// The target at `path`, where `file` is the open file; `None` if another file has taken its place.
    fn existing(path: &Path, file: File, sync: bool) -> Result<Option<Self>> {
        let failure = |error: io::Error| Failure::io(path, &error);
        let metadata = file.metadata().map_err(failure)?;
        if !metadata.is_file() {
            return Self::through(path, file, false).map(Some);
        }
        let Some(name) = follow_links(path, true).map_err(failure)? else {
            return Self::through(path, file, true).map(Some);
        };
        let found = match fs::symlink_metadata(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.map_err(failure)?,
        };
        if Identity::of(&found) != Identity::of(&metadata) {
            return Ok(None);
        }
        let folder = folder_of(&name);
        check_folder(path, &folder)?;
        check_replaceable(path, &name)?;
        check_owner(path, &folder, &metadata)?;
        let old = Some(Attributes::of(&name).map_err(failure)?);
        Ok(Some(Self::Replace(Replacement { path: path.to_owned(), file: name, folder, old, sync })))
    }

    /// The target at `path`, where there is no file yet.
    fn new(path: &Path, sync: bool) -> Result<Self> {
        let failure = |error: io::Error| Failure::io(path, &error);
        let file = follow_links(path, false).map_err(failure)?;
        // "new/" and "new/." cannot become files.
        let names_folder = [&b"/"[..], b"/."].iter().any(|end| path.as_os_str().as_bytes().ends_with(end));
        let Some(file) = file.filter(|file| !names_folder && file.file_name().is_some()) else {
            return Err(failure(Errno::NOENT.into()));
        };
        let folder = folder_of(&file);
        check_folder(path, &folder)?;
        Ok(Self::Replace(Replacement { path: path.to_owned(), file, folder, old: None, sync }))
    }

    /// The target at `path` that is written to directly.
    fn through(path: &Path, file: File, truncate: bool) -> Result<Self> {
        if file.is_terminal() {
            let what = if standard::is_output(path) { "standard output is" } else { "is" };
            return Err(Failure::file(
                path,
                format!(
                    "{what} a terminal, expected a file or a pipe for binary keys: name a file with -o, or pipe them \
                     to a program such as od"
                ),
            ));
        }
        Ok(Self::Through { file, truncate })
    }
}

/// The path behind all symbolic links of `path`. Neither a file there nor its folder need exist. None for a link of
/// /proc, which stands for an open file. If the file `is_open`, the system has followed the links itself, and links are
/// not checked again.
fn follow_links(path: &Path, is_open: bool) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let link = match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => metadata,
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => return Ok(Some(path)),
        };
        let folder = folder_of(&path);
        if rustix::fs::statfs(&folder)?.f_type == PROC {
            return Ok(None);
        }
        if !is_open && is_planted(&fs::metadata(&folder)?, &link) {
            return Err(Errno::ACCESS.into());
        }
        path = folder.join(fs::read_link(&path)?);
    }
    Err(Errno::LOOP.into())
}

/// Whether another user may have planted `link`, so that this user creates a file at its target. This is the rule of
/// `protected_symlinks`, which the system applies when it opens a file.
fn is_planted(folder: &Metadata, link: &Metadata) -> bool {
    folder.mode() & STICKY_FOR_ALL == STICKY_FOR_ALL && ![user(), folder.uid()].contains(&link.uid())
}

/// The effective user of this process.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The folder of a file.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) => PathBuf::from("."),
        None => PathBuf::from("/"),
    }
}

/// An error about `path` if the file there belongs to another user and its `folder` has the sticky bit. Root could
/// replace the file, and the new file would belong to that user.
pub(super) fn check_owner(path: &Path, folder: &Path, old: &Metadata) -> Result<()> {
    let is_sticky = fs::metadata(folder).map_err(|error| Failure::io(path, &error))?.mode() & STICKY != 0;
    if !is_sticky || old.uid() == user() {
        return Ok(());
    }
    let why = "it belongs to another user, and its folder has the sticky bit";
    Err(Failure::file(path, format!("cannot be replaced by a new file: {why}: write to another file")))
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

/// An error about `path` if a rename cannot replace the regular file `file`. It may be a mount point, belong to another
/// user in a folder with the sticky bit, or have a flag such as "append only".
fn check_replaceable(path: &Path, file: &Path) -> Result<()> {
    if is_mount_point(file) {
        return Err(Failure::file(
            path,
            "is a mount point, expected a file that can be replaced: write to another file",
        ));
    }
    // rmdir(2) never removes a file. The system refuses with ENOTDIR, but first it checks whether this process may
    // remove the name, by the rules for rename(2).
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
