//! Replacing several files as one: all of them or none.
//!
//! Every output but the last one keeps the old file under a temporary name until all are replaced:
//!
//! ```text
//!   keys    exchange(temporary, target) ─► the temporary name is the old file's ─┐ undo: rename it back
//!   values  rename(temporary, target)   ─► fails: undo the others                │ else: remove it
//! ```

use super::temporary::{Name, Temporary};
use crate::os::signals;
use crate::say::error::{Failure, Result, name, os_message};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Replaces the targets of complete outputs, and waits until the names of those that were replaced are permanent. If a target cannot be replaced,
/// all old files stay and no new ones are created; where a file system does not permit that, the error says so. No signal
/// ends the program while only some targets are replaced.
pub fn replace_all(temporaries: Vec<Temporary>) -> Result<()> {
    for temporary in &temporaries {
        temporary.complete().map_err(|error| Failure::io(&temporary.replacement.path, &error))?;
    }
    let replacements = temporaries.iter().map(|temporary| &temporary.replacement).filter(|it| it.old.is_some());
    let folders: Vec<_> = replacements.map(|it| (it.path.clone(), it.folder.clone())).collect();
    replace_or_undo(temporaries)?;
    folders.iter().try_for_each(|(path, folder)| sync_folder(folder).map_err(|error| Failure::io(path, &error)))
}

fn replace_or_undo(temporaries: Vec<Temporary>) -> Result<()> {
    let _delay = signals::delay();
    let mut left = temporaries.len();
    let mut replaced: Vec<Replaced> = Vec::new();
    for temporary in temporaries {
        left -= 1;
        let path = temporary.replacement.path.clone();
        match Replaced::by(temporary, left > 0) {
            Ok(done) => replaced.push(done),
            Err(error) => {
                let mut message = format!("{}: {}", name(&path), os_message(&error));
                replaced.into_iter().filter_map(Replaced::undo).for_each(|also| message += &also);
                return Err(Failure::new(message));
            }
        }
    }
    Ok(())
}

/// An output whose target is replaced.
#[derive(Debug)]
struct Replaced {
    target: PathBuf,
    old: Old,
}

/// The file that was at the target before.
#[derive(Debug)]
enum Old {
    /// There was none.
    None,
    /// It has another name, and is removed with that.
    Kept(Name),
    /// It is gone.
    Gone,
}

impl Replaced {
    /// Replaces the target of a file. Where the file system supports it, the old file is kept if `keep_old`.
    fn by(temporary: Temporary, keep_old: bool) -> io::Result<Self> {
        let target = temporary.replacement.file.clone();
        if temporary.create_target()? {
            return Ok(Self { target, old: Old::None });
        }
        let new = temporary.into_name()?;
        let old = if keep_old { replace_keeping(new, &target)? } else { replace(&new, &target)? };
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
        // An exchange would accept it.
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

/// Does the same where files cannot be exchanged, by a hard link to the old file.
fn replace_linked(new: &Name, target: &Path) -> io::Result<Old> {
    let folder = new.path().parent().unwrap_or(Path::new("."));
    match Name::create(folder, |path| fs::hard_link(target, path)) {
        Ok((old, ())) => new.rename(target).map(|()| Old::Kept(old)),
        Err(_) => replace(new, target),
    }
}

/// Waits until the new names of files in a folder are permanent. A folder that may not be read cannot be synced, and
/// some file systems do not support it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).map(|folder| folder.sync_all()) {
        Ok(Err(error)) if error.kind() != ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::Target;
    use super::*;
    use std::io::Write;

    /// A temporary file that is to become the file at `path`, with the content "new".
    fn new(path: &Path) -> Temporary {
        let Ok(Target::Replace(replacement)) = Target::find(path) else { panic!("{path:?}") };
        let temporary = Temporary::create(replacement).unwrap();
        temporary.file().write_all(b"new").unwrap();
        temporary
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
        // First none of the files exists, then one of them, then all.
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
        let old = replace_linked(&new(&target).into_name().unwrap(), &target).unwrap();
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
        let old = replace_keeping(new(&target).into_name().unwrap(), &target).unwrap();
        fs::remove_file(&target).unwrap();
        fs::create_dir(&target).unwrap();
        let message = Replaced { target, old }.undo().unwrap();
        let kept = message.split_once("its old content is in ").unwrap().1;
        assert_eq!(fs::read(kept).unwrap(), b"old");
    }
}
