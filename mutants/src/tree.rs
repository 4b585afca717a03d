//! The copy of the repository that has the planted errors.

use crate::find::{Place, Planted, places};
use crate::weave::{CHOICE, Mutant, Woven, weave};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// Places that cannot have an error, because the woven source does not compile: the file and the bytes in the source.
pub type Excluded = BTreeSet<(String, usize, usize)>;

/// The sources of the repository where errors can be planted: each file with its places.
pub struct Sources {
    repository: PathBuf,
    folders: Vec<String>,
    /// All files of the repository, relative to its root.
    listed: Vec<String>,
    found: BTreeMap<String, (String, Vec<Place>)>,
}

impl Sources {
    /// Reads the sources below `folders` of the repository. Leaves out the places in `excluded`.
    pub fn read(repository: &Path, folders: &[String], excluded: &Excluded) -> io::Result<Self> {
        if let Some(folder) = folders.iter().find(|folder| !repository.join(folder).join("lib.rs").is_file()) {
            return Err(io::Error::other(format!("{folder} has no lib.rs: --below names a part of a library")));
        }
        let mut git = Command::new("git");
        let listed = git.arg("-C").arg(repository).args(["ls-files", "-co", "--exclude-standard"]).output()?;
        let listed = String::from_utf8(listed.stdout).map_err(io::Error::other)?;
        let listed: Vec<String> = listed.lines().map(str::to_owned).collect();
        let is_source =
            |file: &&String| file.ends_with(".rs") && folders.iter().any(|folder| Path::new(file).starts_with(folder));
        let mut found = BTreeMap::new();
        for file in listed.iter().filter(is_source) {
            let text = fs::read_to_string(repository.join(file))?;
            let mut places = places(&text).map_err(|error| io::Error::other(format!("{file}: {error}")))?;
            places.retain(|place| !excluded.contains(&(file.clone(), place.range.start, place.range.end)));
            found.insert(file.clone(), (text, places));
        }
        Ok(Self { repository: repository.to_owned(), folders: folders.to_vec(), listed, found })
    }

    /// All errors.
    pub fn mutants(&self) -> Vec<Mutant> {
        let mut mutants = Vec::new();
        for (file, (_, places)) in &self.found {
            for place in places {
                let (first, line, column) = (mutants.len() as u32, place.line, place.column);
                let mutant = |(number, error): (u32, &Planted)| Mutant {
                    number,
                    place: first,
                    file: file.clone(),
                    line,
                    column,
                    what: error.what.clone(),
                };
                mutants.extend((first..).zip(&place.errors).map(mutant));
            }
        }
        mutants
    }

    /// Keeps the errors with these numbers of [`mutants`](Self::mutants), and numbers them again.
    pub fn keep(&mut self, numbers: &BTreeSet<u32>) {
        let mut number = 0;
        for (_, places) in self.found.values_mut() {
            for place in &mut *places {
                place.errors.retain(|_| {
                    number += 1;
                    numbers.contains(&(number - 1))
                });
            }
            places.retain(|place| !place.errors.is_empty());
        }
    }
}

/// A copy of the repository.
pub struct Tree {
    pub root: PathBuf,
    /// The source files, each with its places, relative to the root.
    files: BTreeMap<String, (Vec<Place>, Woven)>,
}

impl Tree {
    /// Copies the repository to `to`, with the errors of `sources`. Files that do not change keep their times.
    pub fn make(sources: Sources, to: &Path) -> io::Result<Self> {
        let mut tree = Self { root: to.to_owned(), files: BTreeMap::new() };
        for file in sources.listed.iter().filter(|file| !sources.found.contains_key(*file)) {
            // A listed file may have been removed.
            if let Ok(bytes) = fs::read(sources.repository.join(file)) {
                write(&to.join(file), &as_package(file, bytes))?;
            }
        }
        let mut first = 0;
        for (file, (text, places)) in sources.found {
            let mut woven = weave(&text, &places, first);
            first += places.iter().map(|place| place.errors.len() as u32).sum::<u32>();
            if sources.folders.iter().any(|folder| Path::new(&file) == Path::new(folder).join("lib.rs")) {
                woven.text.push_str(CHOICE);
            }
            write(&to.join(&file), woven.text.as_bytes())?;
            tree.files.insert(file, (places, woven));
        }
        Ok(tree)
    }

    /// The innermost place in the sources that has byte `at` of the woven file. If none has, the places that begin in
    /// the same line.
    pub fn places(&self, file: &str, at: usize) -> Excluded {
        let found = |woven: &Woven| woven.place_at(at).map_or_else(|| woven.places_in_line(at), |place| vec![place]);
        self.named(file, found)
    }

    /// The places in a range of the woven file, or the first one behind it. The borrow checker may report uses around a
    /// statement that was left out.
    pub fn places_in(&self, file: &str, range: Range<usize>) -> Excluded {
        self.named(file, |woven| woven.places_in(range))
    }

    /// The places that `find` returns for a woven file.
    fn named(&self, file: &str, find: impl FnOnce(&Woven) -> Vec<usize>) -> Excluded {
        let Some((places, woven)) = self.files.get(file) else { return Excluded::new() };
        let range = |place: usize| &places[place].range;
        find(woven).into_iter().map(|place| (file.to_owned(), range(place).start, range(place).end)).collect()
    }
}

/// The file's contents in the copy. There the library takes the compiled kernels as they are, as packages do.
fn as_package(file: &str, bytes: Vec<u8>) -> Vec<u8> {
    if file != "merge-host/build.rs" {
        return bytes;
    }
    String::from_utf8_lossy(&bytes).replace(".is_dir().then_some(root)", ".is_file().then_some(root)").into_bytes()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("a file is in a folder"))?;
    fs::write(path, bytes)
}
