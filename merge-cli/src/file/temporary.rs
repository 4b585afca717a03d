//! The file that an output is in until it is complete.
//!
//! Where the file system supports `O_TMPFILE`, the file is unnamed, so that nothing is left of it however the program
//! ends, and gets a name only for the moment in which it replaces the old file. Elsewhere it has a name in the same folder
//! from the start, which is removed when a signal ends the program.

use super::attributes::Attributes;
use super::target::Replacement;
use crate::os::signals;
use crate::say::error::{Failure, Result, name, os_message};
use rustix::fs::{AtFlags, CWD, OFlags};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that will replace another, or that will be new. Dropping it removes it.
#[derive(Debug)]
pub struct Temporary {
    pub(super) replacement: Replacement,
    file: File,
    /// None while the file is unnamed.
    name: Option<Name>,
}

impl Temporary {
    /// Creates an empty file in the folder of the file to replace.
    pub fn create(replacement: Replacement) -> Result<Self> {
        Self::create_with(replacement, unnamed)
    }

    /// The same, with a name, by which programs on other machines can open it.
    pub fn create_named(replacement: Replacement) -> Result<Self> {
        Self::create_with(replacement, |_, _| Err(ErrorKind::Unsupported.into()))
    }

    /// Creates the file by `unnamed` or, if that fails, with a name.
    fn create_with(replacement: Replacement, unnamed: impl FnOnce(&Path, u32) -> io::Result<File>) -> Result<Self> {
        // A new file has the mode that any new file has. The content of an old one must not become visible to others.
        let mode = if replacement.old.is_some() { 0o600 } else { 0o666 };
        let folder = &replacement.folder;
        let created = unnamed(folder, mode).map(|file| (file, None)).or_else(|_| {
            let (name, file) = Name::create(folder, |path| options(mode).create_new(true).open(path))?;
            Ok((file, Some(name)))
        });
        let (file, name) = created.map_err(|error: io::Error| {
            let message = format!("cannot create a temporary file in folder {}", name(folder));
            Failure::file(&replacement.path, format!("{message}: {}", os_message(&error)))
        })?;
        Ok(Self { replacement, file, name })
    }

    /// A path at which other programs on this machine can open the file, and on others if it has a name.
    pub fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => name.path().to_owned(),
            None => PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())),
        }
    }

    /// The file, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the attributes of the one that it replaces, if there is one.
    ///
    /// Then waits until all of it is on its medium, so that a failure of the system leaves one of the two files. Where there is no old file,
    /// nothing can be lost, and the system may write the new one later, as it does for most programs. That holds for files without a
    /// name, which network file systems do not support: these tell of some errors no sooner than here.
    pub(super) fn complete(&self) -> io::Result<()> {
        // They may have changed since the work began.
        let current = Attributes::of(&self.replacement.file).ok();
        match current.as_ref().or(self.replacement.old.as_ref()) {
            Some(old) => old.apply(&self.file)?,
            None if self.name.is_none() => return Ok(()),
            None => {}
        }
        self.file.sync_all()
    }

    /// Makes an unnamed file the target if that does not exist, and tells whether it did so. Otherwise waits until the file is on its medium.
    pub(super) fn create_target(&self) -> io::Result<bool> {
        if self.name.is_none() {
            match link(&self.file, &self.replacement.file) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
        }
        self.file.sync_all()?;
        Ok(false)
    }

    /// The temporary name of the file, which gets one if it has none.
    pub(super) fn into_name(self) -> io::Result<Name> {
        let Self { replacement, file, name } = self;
        name.map_or_else(|| Ok(Name::create(&replacement.folder, |path| link(&file, path))?.0), Ok)
    }
}

fn options(mode: u32) -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).mode(mode);
    options
}

/// Creates an unnamed file that [`link`] can name. An error if the system does not support one of the two.
fn unnamed(folder: &Path, mode: u32) -> io::Result<File> {
    let file = options(mode).custom_flags(OFlags::TMPFILE.bits() as i32).open(folder)?;
    fs::symlink_metadata(descriptor(&file))?;
    Ok(file)
}

/// Gives an unnamed file the name `path`.
fn link(file: &File, path: &Path) -> io::Result<()> {
    Ok(rustix::fs::linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The path that stands for an open file.
fn descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A temporary name. It is removed when this is dropped, and when a signal ends the program.
#[derive(Debug)]
pub(super) struct Name(PathBuf);

impl Name {
    /// A new name in `folder`, for the file that `make` creates at a path that it is given. `make` is called again with
    /// another path if its error is that the path exists.
    pub fn create<T>(folder: &Path, make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        let _delay = signals::delay();
        let named = tempfile::Builder::new().prefix(".gmerge-").suffix(".tmp").make_in(folder, make)?;
        let (made, path) = named.keep().map_err(|error| error.error)?;
        signals::register(&path);
        Ok((Self(path), made))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Renames the file to `target`, replacing the file there. Nothing is left to remove after that.
    pub fn rename(&self, target: &Path) -> io::Result<()> {
        fs::rename(&self.0, target)
    }

    /// Leaves the file where it is.
    pub fn keep(mut self) -> PathBuf {
        signals::unregister(&self.0);
        std::mem::take(&mut self.0)
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _delay = signals::delay();
        let _ = fs::remove_file(&self.0);
        signals::unregister(&self.0);
    }
}
