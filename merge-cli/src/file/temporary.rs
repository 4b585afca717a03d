//! The temporary file that holds an output until it is complete.
//!
//! Where the file system supports `O_TMPFILE`, the file is unnamed, so that nothing remains of it however the program
//! ends. It gets a name only for the moment when it replaces the old file. Elsewhere it has a name in the same folder
//! from the start. A signal that ends the program removes this name.

use super::attributes::Attributes;
use super::identity::Identity;
use super::target::{Replacement, check_owner};
use crate::os::signals;
use crate::say::error::{Failure, Result, name, os_message};
use rustix::fs::{AtFlags, CWD, OFlags};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::iter;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Names to try before creating a temporary file fails.
const NAMES: usize = 1000;

/// A file that will replace another file or create a new one. It is removed when this is dropped.
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

    /// Creates an empty file with a name, so that programs on other machines can open it.
    pub fn create_named(replacement: Replacement) -> Result<Self> {
        Self::create_with(replacement, |_, _| Err(ErrorKind::Unsupported.into()))
    }

    /// Creates the file by `unnamed`. If that fails, creates it with a name.
    fn create_with(replacement: Replacement, unnamed: impl FnOnce(&Path, u32) -> io::Result<File>) -> Result<Self> {
        // A new file has the default mode. The new content of an old file must not become visible to more users, so
        // only the owner has access at first.
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

    /// A path by which programs on this machine can open the file. If the file has a name, programs on other machines
    /// can, too.
    pub fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => name.path().to_owned(),
            None => PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())),
        }
    }

    /// The folder of the file.
    pub fn folder(&self) -> &Path {
        &self.replacement.folder
    }

    /// The file, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the attributes of the file that it replaces, if there is one. These attributes may have changed
    /// since the work began.
    pub(super) fn take_attributes(&self) -> Result<()> {
        let Replacement { path, file, folder, old, sync: _ } = &self.replacement;
        let current = match fs::symlink_metadata(file) {
            Ok(metadata) => {
                check_owner(path, folder, &metadata)?;
                if metadata.is_file() { Attributes::of(file).ok() } else { None }
            }
            Err(_) => None,
        };
        let applied = current.as_ref().or(old.as_ref()).map_or(Ok(()), |old| old.apply(&self.file));
        applied.map_err(|error| Failure::io(path, &error))
    }

    /// Whether the file must be on its disk before it gets its name. It must if it replaces a file, so that a failure
    /// of the system leaves the old or the new file, and if the user asks for it. It also must if it has a temporary
    /// name: network file systems do not support unnamed files, and report some errors only when a file is synced.
    pub(super) fn must_be_durable(&self) -> bool {
        self.replacement.sync || self.replacement.old.is_some() || self.name.is_some() || self.has_target()
    }

    /// Whether there is a file at the target now.
    pub(super) fn has_target(&self) -> bool {
        fs::symlink_metadata(&self.replacement.file).is_ok()
    }

    /// Whether the target is this file.
    pub(super) fn is_target(&self) -> io::Result<bool> {
        match fs::symlink_metadata(&self.replacement.file) {
            Ok(target) => Ok(Identity::of(&target) == Identity::of(&self.file.metadata()?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives an unnamed file a temporary name.
    pub(super) fn give_name(&mut self) -> io::Result<()> {
        if self.name.is_none() {
            self.name = Some(Name::create(&self.replacement.folder, |path| link(&self.file, path))?.0);
        }
        Ok(())
    }

    /// The temporary name of the file. An unnamed file is linked directly to the target, and returns None. It gets a
    /// temporary name only if the target exists.
    pub(super) fn take_name(&mut self) -> io::Result<Option<Name>> {
        if self.name.is_none() {
            match link(&self.file, &self.replacement.file) {
                Ok(()) => return Ok(None),
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                // Another program has just created the target.
                Err(_) => {
                    self.file.sync_all()?;
                    self.give_name()?;
                }
            }
        }
        Ok(self.name.take())
    }
}

fn options(mode: u32) -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).mode(mode);
    options
}

/// Creates an unnamed file that [`link`] can name. An error if the system does not support unnamed files, or linking
/// them.
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
    pub fn create<T>(folder: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        let _delay = signals::delay();
        // The path is relative if `folder` is: the absolute one may be longer than a path can be.
        let paths = iter::repeat_with(|| folder.join(format!(".gmerge-{:016x}.tmp", RandomState::new().hash_one(0))));
        for path in paths.take(NAMES) {
            match make(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    let made = made?;
                    signals::register(&path);
                    return Ok((Self(path), made));
                }
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Renames the file to `target`, replacing the file there. Nothing is left to remove after that.
    pub fn rename(&self, target: &Path) -> io::Result<()> {
        fs::rename(&self.0, target)
    }

    /// Keeps the file under this name, which is no longer removed.
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
