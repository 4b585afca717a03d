//! Replacing several files as one operation: all files or none.
//!
//! First, all new files are synced to their disks and get names. Then they replace the old files, one directly after
//! the other. Every old file except the last is kept under a temporary name until all files are replaced:
//!
//! ```text
//!   keys    exchange(temporary, target) ─► the temporary name is the old file's ─┐ undo: rename it back
//!   values  rename(temporary, target)   ─► fails: undo the others                │ else: remove it
//! ```
//!
//! A lock on the folder of the first file serializes two runs of gmerge that replace the same files.

use super::temporary::{Name, Temporary};
use crate::os::signals;
use crate::say::error::{Failure, Result, name, os_message};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, fsync, renameat_with, syncfs};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for a lock. A run of gmerge holds it only for some system calls, but another program may hold it
/// longer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The interval between two attempts to take a lock.
const INTERVAL: Duration = Duration::from_millis(1);

/// Replaces the targets of complete outputs. If an output replaces a file or must be permanent, waits until files and
/// names are on their disks. If a target cannot be replaced, all old files stay and no new files are created. Where a
/// file system does not permit that, the error says so. No signal ends the program while only some targets are
/// replaced.
pub fn replace_all(mut temporaries: Vec<Temporary>) -> Result<()> {
    temporaries.iter().try_for_each(Temporary::take_attributes)?;
    let is_group = temporaries.len() > 1;
    let mut is_durable = temporaries.iter().any(Temporary::must_be_durable);
    let folders = loop {
        if is_durable {
            each(&temporaries, |temporary| temporary.file().sync_all())?;
        }
        let folders = if is_durable || is_group { Folder::open_all(&temporaries)? } else { Vec::new() };
        if is_group {
            folders[0].lock();
        }
        // Another run may have created a target meanwhile.
        if is_durable || !temporaries.iter().any(Temporary::has_target) {
            break folders;
        }
        is_durable = true;
    };
    replace_or_undo(&mut temporaries)?;
    if is_group {
        check_group(&temporaries)?;
        folders[0].unlock();
    }
    if is_durable { folders.iter().try_for_each(|folder| folder.sync(&temporaries)) } else { Ok(()) }
}

/// Calls `each` for every output. An error names the path of its output.
fn each(temporaries: &[Temporary], each: impl Fn(&Temporary) -> io::Result<()>) -> Result<()> {
    temporaries.iter().try_for_each(|it| each(it).map_err(|error| Failure::io(&it.replacement.path, &error)))
}

fn replace_or_undo(temporaries: &mut [Temporary]) -> Result<()> {
    let _delay = signals::delay();
    let is_group = temporaries.len() > 1;
    // A kill between the names of a group leaves each output with one name or the other. Names that turn out to be
    // unnecessary are removed again.
    for temporary in temporaries.iter_mut().filter(|temporary| is_group || temporary.has_target()) {
        temporary.give_name().map_err(|error| Failure::io(&temporary.replacement.path, &error))?;
    }
    let mut left = temporaries.len();
    let mut replaced: Vec<Replaced> = Vec::new();
    for temporary in temporaries {
        left -= 1;
        match Replaced::by(temporary, left > 0) {
            Ok(done) => replaced.push(done),
            Err(error) => {
                let mut message = format!("{}: {}", name(&temporary.replacement.path), os_message(&error));
                replaced.into_iter().filter_map(Replaced::undo).for_each(|also| message += &also);
                return Err(Failure::new(message));
            }
        }
    }
    Ok(())
}

/// An error unless every output is at its target. Another program, or a run without the lock, may have replaced an
/// output.
fn check_group(temporaries: &[Temporary]) -> Result<()> {
    temporaries.iter().try_for_each(|temporary| {
        let message = match temporary.is_target() {
            Ok(true) => return Ok(()),
            Ok(false) => "was replaced by another program at the same time, so that keys and values may not belong \
                          together: run again"
                .to_owned(),
            Err(error) => format!(
                "is complete and in its place, but whether another program has replaced it is not known: {}",
                os_message(&error)
            ),
        };
        Err(Failure::file(&temporary.replacement.path, message))
    })
}

/// The folder of an output.
#[derive(Debug)]
struct Folder {
    /// The index of the first output in the folder.
    output: usize,
    /// The open folder. None if this process may not read it.
    file: Option<File>,
}

impl Folder {
    /// The folders of the outputs, without duplicates.
    fn open_all(temporaries: &[Temporary]) -> Result<Vec<Self>> {
        let mut folders: Vec<Self> = Vec::new();
        for (output, temporary) in temporaries.iter().enumerate() {
            let path = &temporary.replacement.folder;
            if folders.iter().any(|other| temporaries[other.output].replacement.folder == *path) {
                continue;
            }
            let file = match File::open(path) {
                Ok(file) => Some(file),
                Err(error) if error.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) => None,
                Err(error) => {
                    let message = format!("cannot open folder {}: {}", name(path), os_message(&error));
                    return Err(Failure::file(&temporary.replacement.path, message));
                }
            };
            folders.push(Self { output, file });
        }
        Ok(folders)
    }

    /// Locks the folder, after waiting for other runs that replace files there. Goes on without a lock where locking is
    /// impossible.
    fn lock(&self) {
        let Some(file) = &self.file else { return };
        let begin = Instant::now();
        while flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
            && begin.elapsed() < PATIENCE
        {
            thread::sleep(INTERVAL);
        }
    }

    /// Unlocks the folder.
    fn unlock(&self) {
        // This fails if there is no lock.
        let _ = self.file.as_ref().map(|file| flock(file, FlockOperation::Unlock));
    }

    /// Waits until the new names in the folder are permanent. A folder that may not be read cannot be synced, and some
    /// file systems do not support syncing a folder. There the whole file system is synced if the user asked for
    /// permanent output.
    fn sync(&self, temporaries: &[Temporary]) -> Result<()> {
        let Temporary { replacement, .. } = &temporaries[self.output];
        let synced = self.file.as_ref().map_or(Err(Errno::ACCESS), |file| retry_on_intr(|| fsync(file)));
        let synced = match synced {
            Err(Errno::ACCESS | Errno::INVAL) if !replacement.sync => Ok(()),
            Err(Errno::ACCESS | Errno::INVAL) => retry_on_intr(|| syncfs(temporaries[self.output].file())),
            synced => synced,
        };
        synced.map_err(|error| {
            let (folder, error) = (name(&replacement.folder), os_message(&error.into()));
            let message = format!(
                "is complete and in its place, but a failure of the system may undo that: cannot sync folder {folder}: \
                 {error}"
            );
            Failure::file(&replacement.path, message)
        })
    }
}

/// An output that has replaced its target.
#[derive(Debug)]
struct Replaced {
    target: PathBuf,
    old: Old,
}

/// The old file at the target.
#[derive(Debug)]
enum Old {
    /// There was no file.
    None,
    /// The file has another name, and is removed with that name.
    Kept(Name),
    /// The file is gone.
    Gone,
}

impl Replaced {
    /// Replaces the target of a file. If `keep_old` and the file system supports it, the old file is kept.
    fn by(temporary: &mut Temporary, keep_old: bool) -> io::Result<Self> {
        let target = temporary.replacement.file.clone();
        let old = match temporary.take_name()? {
            None => Old::None,
            Some(new) if keep_old => replace_keeping(new, &target)?,
            Some(new) => replace(&new, &target)?,
        };
        Ok(Self { target, old })
    }

    /// Puts the old file back, or returns the end of a message that says why that is not possible.
    fn undo(self) -> Option<String> {
        let target = name(&self.target);
        match self.old {
            Old::None => fs::remove_file(&self.target).err().map(|error| {
                let error = os_message(&error);
                format!("; {target} is complete, and cannot be removed again: {error}")
            }),
            Old::Kept(old) => old.rename(&self.target).err().map(|error| {
                let (error, old) = (os_message(&error), name(&old.keep()));
                format!("; {target} is replaced, and cannot be restored: {error}: its old content is in {old}")
            }),
            Old::Gone => Some(format!("; {target} is replaced: its file system cannot keep the old file")),
        }
    }
}

fn replace(new: &Name, target: &Path) -> io::Result<Old> {
    new.rename(target).map(|()| Old::Gone)
}

/// Renames `new` to `target`, so that the old file gets another name.
fn replace_keeping(new: Name, target: &Path) -> io::Result<Old> {
    match fs::symlink_metadata(target) {
        // The exchange would accept a directory.
        Ok(metadata) if metadata.is_dir() => return Err(Errno::ISDIR.into()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return new.rename(target).map(|()| Old::None),
        Err(error) => return Err(error),
    }
    match renameat_with(CWD, new.path(), CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(Old::Kept(new)),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => replace_linked(&new, target),
        Err(error) => Err(error.into()),
    }
}

/// Renames `new` to `target` where files cannot be exchanged. A hard link keeps the old file.
fn replace_linked(new: &Name, target: &Path) -> io::Result<Old> {
    let folder = new.path().parent().unwrap_or(Path::new("."));
    match Name::create(folder, |path| fs::hard_link(target, path)) {
        Ok((old, ())) => new.rename(target).map(|()| Old::Kept(old)),
        Err(_) => replace(new, target),
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::{Kind, Target};
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::io::Write;

    /// A temporary file that is to become the file at `path`, with the content "new".
    fn new(path: &Path) -> Temporary {
        let Ok(Target { kind: Kind::Replace(replacement), .. }) = Target::find(path, false) else { panic!("{path:?}") };
        let temporary = Temporary::create(replacement).unwrap();
        temporary.file().write_all(b"new").unwrap();
        temporary
    }

    /// The temporary name of such a file.
    fn named(path: &Path) -> Name {
        let mut temporary = new(path);
        temporary.give_name().unwrap();
        temporary.take_name().unwrap().unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn all_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
        // At first no file exists, then one file, then all files.
        for _ in 0..3 {
            let temporaries: Vec<_> = paths.iter().map(|path| new(path)).collect();
            replace_all(temporaries).unwrap();
            assert!(paths.iter().all(|path| fs::read(path).unwrap() == b"new"));
            assert_eq!(names(folder.path()), ["a", "b", "c"]);
            fs::remove_file(&paths[1]).unwrap();
            fs::write(&paths[0], "old").unwrap();
        }
    }

    #[test]
    fn the_others_are_restored_if_one_cannot_be_replaced() {
        for old in [true, false] {
            for failing in 0..3 {
                let folder = tempfile::tempdir().unwrap();
                let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
                let others = || (0..3).filter(|&i| i != failing).map(|i| &paths[i]);
                if old {
                    others().for_each(|path| fs::write(path, "old").unwrap());
                }
                let temporaries: Vec<_> = paths.iter().map(|path| new(path)).collect();
                fs::create_dir(&paths[failing]).unwrap();
                let before = names(folder.path());
                let failure = replace_all(temporaries).unwrap_err();
                let expected = format!("{}: Is a directory", paths[failing].display());
                assert_eq!(failure.message(), Some(&*expected));
                assert_eq!(names(folder.path()), before);
                assert!(!old || others().all(|path| fs::read(path).unwrap() == b"old"));
            }
        }
    }

    #[test]
    fn a_hard_link_keeps_the_old_file_where_files_cannot_be_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        fs::write(&target, "old").unwrap();
        let old = replace_linked(&named(&target), &target).unwrap();
        assert!(matches!(old, Old::Kept(_)));
        assert_eq!((fs::read(&target).unwrap(), names(folder.path()).len()), (b"new".to_vec(), 2));
        assert_eq!(Replaced { target: target.clone(), old }.undo(), None);
        assert_eq!((fs::read(&target).unwrap(), names(folder.path()).len()), (b"old".to_vec(), 1));
    }

    #[test]
    fn a_file_that_cannot_be_restored_is_said_and_its_old_content_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        fs::write(&target, "old").unwrap();
        let old = replace_keeping(named(&target), &target).unwrap();
        fs::remove_file(&target).unwrap();
        fs::create_dir(&target).unwrap();
        let message = Replaced { target, old }.undo().unwrap();
        let kept = message.split_once("its old content is in ").unwrap().1;
        assert_eq!(fs::read(kept).unwrap(), b"old");
    }

    #[test]
    fn a_folder_that_cannot_be_opened_is_an_error_before_the_old_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("there/a"), folder.path().join("moved"));
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, "old").unwrap();
        let temporary = new(&path);
        fs::rename(path.parent().unwrap(), &moved).unwrap();
        let failure = replace_all(vec![temporary]).unwrap_err();
        let there = path.parent().unwrap().display();
        let expected = format!("{}: cannot open folder {there}: No such file or directory", path.display());
        assert_eq!(failure.message(), Some(&*expected));
        assert_eq!((fs::read(moved.join("a")).unwrap(), names(&moved).len()), (b"old".to_vec(), 1));
    }

    #[test]
    fn a_folder_that_cannot_be_synced_is_an_error_that_says_where_the_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        // A folder that is open only as a path cannot be synced.
        let file = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        let failure = Folder { output: 0, file: Some(file.into()) }.sync(&[new(&path)]).unwrap_err();
        let (path, folder) = (path.display(), folder.path().display());
        let why = "is complete and in its place, but a failure of the system may undo that";
        let expected = format!("{path}: {why}: cannot sync folder {folder}: Bad file descriptor");
        assert_eq!(failure.message(), Some(&*expected));
        assert!(Folder { output: 0, file: None }.sync(&[new(Path::new("/tmp/a"))]).is_ok());
    }

    #[test]
    fn a_file_of_a_group_that_another_program_replaces_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, other] = ["a", "b", "other"].map(|name| folder.path().join(name));
        let mut temporaries = [new(&a), new(&b)];
        for temporary in &mut temporaries {
            temporary.give_name().unwrap();
            fs::rename(temporary.path(), &temporary.replacement.file).unwrap();
        }
        let lost = || check_group(&temporaries).err().map(|failure| failure.message().unwrap().to_owned());
        let message =
            |path: &Path| Some(format!("{}: was replaced by another program at the same time", path.display()));
        let begins = |lost: Option<String>| lost.map(|lost| lost.split_once(", ").unwrap().0.to_owned());
        assert_eq!(lost(), None);
        fs::write(&other, "other").unwrap();
        fs::rename(&other, &b).unwrap();
        assert_eq!(begins(lost()), message(&b));
        fs::remove_file(&a).unwrap();
        assert_eq!(begins(lost()), message(&a));
    }
}
