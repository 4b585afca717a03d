//! The copy of the repository that has the planted errors.

use crate::find::{Place, places};
use crate::weave::{CHOICE, Mutant, Woven, weave};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// Places that cannot have an error, because the woven source does not compile: the file and the bytes in the source.
pub type Excluded = BTreeSet<(String, usize, usize)>;

/// A copy of the repository.
pub struct Tree {
    pub root: PathBuf,
    /// The source files, each with its places, relative to the root.
    files: BTreeMap<String, (Vec<Place>, Woven)>,
}

impl Tree {
    /// Copies the files of the repository at `from` to `to`, and weaves errors into the sources below `folders`. Files
    /// that do not change keep their times.
    pub fn make(from: &Path, to: &Path, folders: &[String], excluded: &Excluded) -> io::Result<(Self, Vec<Mutant>)> {
        let listed = Command::new("git").arg("-C").arg(from).args(["ls-files", "-co", "--exclude-standard"]).output()?;
        let listed = String::from_utf8(listed.stdout).map_err(io::Error::other)?;
        let mut tree = Self { root: to.to_owned(), files: BTreeMap::new() };
        let mut mutants = Vec::new();
        for file in listed.lines() {
            let (source, target) = (from.join(file), to.join(file));
            let is_woven = file.ends_with(".rs") && folders.iter().any(|folder| Path::new(file).starts_with(folder));
            if !is_woven {
                if let Ok(bytes) = fs::read(&source) {
                    write(&target, &as_package(file, bytes))?;
                }
                continue;
            }
            let text = fs::read_to_string(&source)?;
            let mut found = places(&text).map_err(|error| io::Error::other(format!("{file}: {error}")))?;
            found.retain(|place| !excluded.contains(&(file.to_owned(), place.range.start, place.range.end)));
            let mut woven = weave(&text, &found, mutants.len() as u32);
            for (place, error) in found.iter().flat_map(|place| place.errors.iter().map(move |error| (place, error))) {
                let number = mutants.len() as u32;
                mutants.push(Mutant { number, file: file.to_owned(), line: place.line, what: error.what.clone() });
            }
            let is_root = folders.iter().any(|folder| Path::new(file) == Path::new(folder).join("lib.rs"));
            if is_root {
                woven.text.push_str(CHOICE);
            }
            write(&target, woven.text.as_bytes())?;
            tree.files.insert(file.to_owned(), (found, woven));
        }
        Ok((tree, mutants))
    }

    /// The innermost place in the sources that has byte `at` of the woven file. If none has, the places that begin in
    /// the same line.
    pub fn places(&self, file: &str, at: usize) -> Excluded {
        let Some((places, woven)) = self.files.get(file) else { return Excluded::new() };
        let found = woven.place_at(at).map_or_else(|| woven.places_in_line(at), |place| vec![place]);
        let range = |place: usize| &places[place].range;
        found.into_iter().map(|place| (file.to_owned(), range(place).start, range(place).end)).collect()
    }

    /// For each error, the number of the first error at its place.
    pub fn first_numbers(&self) -> Vec<u32> {
        let mut first = Vec::new();
        for place in self.files.values().flat_map(|(places, _)| places) {
            first.extend(std::iter::repeat_n(first.len() as u32, place.errors.len()));
        }
        first
    }
}

/// The file's contents in the copy. There the library takes the compiled kernels as they are, as packages do.
fn as_package(file: &str, bytes: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) if file == "merge-host/build.rs" => {
            text.replace(".is_dir().then_some(root)", ".is_file().then_some(root)").into_bytes()
        }
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("a file is in a folder"))?;
    fs::write(path, bytes)
}
