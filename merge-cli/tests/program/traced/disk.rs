//! What a disk can have after a power cut.
//!
//! The names of a folder may be those at any moment since the folder was last synced. Names change in the order of the
//! calls, as in the file systems with a journal. The content of a file is certain only if the file has been synced
//! since it was last written.

use super::tracer::{Call, Watch};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The number of a file.
type Inode = u64;

/// The files of a folder by name. The content is `None` if it is not certain.
pub type Files = BTreeMap<String, Option<Rc<Vec<u8>>>>;

/// Calls that write to a file.
const WRITES: [&str; 9] =
    ["write", "pwrite64", "writev", "pwritev", "copy_file_range", "sendfile", "splice", "ftruncate", "fallocate"];

/// A moment of a run.
#[derive(Clone)]
struct Moment {
    after: String,
    names: Rc<BTreeMap<String, Inode>>,
    certain: Rc<HashMap<Inode, Rc<Vec<u8>>>>,
    /// The index of the moment whose names are certain.
    synced: usize,
}

/// The moments of a run: after each call that changes what a power cut can leave.
pub struct Disk {
    folder: PathBuf,
    moments: Vec<Moment>,
}

impl Disk {
    /// A folder with all of its files on the disk.
    pub fn new(folder: &Path) -> Self {
        let mut disk = Disk { folder: folder.to_owned(), moments: Vec::new() };
        let names = disk.names();
        let read = |(name, &inode): (&String, &Inode)| (inode, Rc::new(fs::read(folder.join(name)).unwrap()));
        let certain = Rc::new(names.iter().map(read).collect());
        disk.moments.push(Moment { after: "the start".to_owned(), names: Rc::new(names), certain, synced: 0 });
        disk
    }

    /// The files of the folder by name.
    fn names(&self) -> BTreeMap<String, Inode> {
        let entries = fs::read_dir(&self.folder).unwrap().map(Result::unwrap);
        entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().ino())).collect()
    }

    /// Calls `check` with a text and with the files that the folder can have after a power cut, for every moment of the
    /// run and all names since the last sync. Returns the number of calls.
    pub fn after_power_cuts(&self, check: impl Fn(&str, &Files)) -> usize {
        let mut cuts = 0;
        for (now, moment) in self.moments.iter().enumerate() {
            for names in &self.moments[moment.synced..=now] {
                let content = |inode| moment.certain.get(inode).cloned();
                let files = names.names.iter().map(|(name, inode)| (name.clone(), content(inode))).collect();
                let what = format!("power cut after {}, with the names after {}", moment.after, names.after);
                check(&what, &files);
                cuts += 1;
            }
        }
        cuts
    }
}

impl Watch for Disk {
    fn succeeds(&mut self, call: &Call) {
        let Call { kind, path, open } = call;
        let mut moment = self.moments.last().unwrap().clone();
        moment.after = format!("{} of {}", kind.name, path.display());
        let number = || fs::metadata(open.as_ref()?).ok().map(|metadata| metadata.ino());
        if *path == self.folder && kind.name == "fsync" {
            moment.synced = self.moments.len();
        } else if ["fsync", "fdatasync"].contains(&kind.name) {
            let content = Rc::new(fs::read(open.as_ref().unwrap()).unwrap());
            Rc::make_mut(&mut moment.certain).insert(number().unwrap(), content);
        } else if WRITES.contains(&kind.name) {
            let Some(inode) = number().filter(|inode| moment.certain.contains_key(inode)) else { return };
            Rc::make_mut(&mut moment.certain).remove(&inode);
        } else if kind.name == "openat" || kind.name.contains("link") || kind.name.contains("rename") {
            let names = self.names();
            if names == *moment.names {
                return;
            }
            moment.names = Rc::new(names);
        } else {
            return;
        }
        self.moments.push(moment);
    }
}
