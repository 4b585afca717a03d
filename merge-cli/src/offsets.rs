//! Files of offsets: where runs of keys begin, and the last one ends.

use crate::error::{Failure, Result, name};
use crate::input::Input;
use std::path::Path;

/// Offsets that a file holds.
#[derive(Debug)]
pub struct Offsets {
    /// The file's name, for messages.
    name: String,
    /// From 0 on, ascending.
    offsets: Vec<usize>,
}

impl Offsets {
    /// Reads the file at `path`, and checks what it holds as far as that can be done without the keys.
    pub fn read(path: &Path) -> Result<Self> {
        let failure = |message: String| Err(Failure::file(path, message));
        let offsets = Input::open(path)?.read_all::<u64>()?;
        match offsets.first() {
            None => return failure("has no offsets, expected one more than there are runs".to_owned()),
            Some(0) => {}
            Some(first) => return failure(format!("the first offset is {first}, expected 0")),
        }
        if let Some(i) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
            let (index, found, before) = (i + 1, offsets[i + 1], offsets[i]);
            return failure(format!("offset {index} is {found}, below the one before it ({before})"));
        }
        // One that does not fit is more than any number of keys, as `check` says then.
        let offsets = offsets.into_iter().map(|offset| usize::try_from(offset).unwrap_or(usize::MAX)).collect();
        Ok(Self { name: name(path), offsets })
    }

    /// An error unless the last offset is the number of keys of the file at `path`.
    pub fn check(&self, path: &Path, keys: u64) -> Result<()> {
        let last = self.offsets.last().copied().unwrap_or(0);
        if last as u64 == keys {
            return Ok(());
        }
        let (offsets, path) = (&self.name, name(path));
        Err(Failure::new(format!(
            "{offsets}: the last offset is {last}, expected {keys}, the number of keys of {path}"
        )))
    }

    /// An error unless there are as many runs in `other`.
    pub fn check_as_many(&self, other: &Self) -> Result<()> {
        let (runs, others) = (self.runs(), other.runs());
        if runs == others {
            return Ok(());
        }
        let (name, other) = (&self.name, &other.name);
        Err(Failure::new(format!("{name}: has offsets of {runs} runs, expected as many runs as in {other}: {others}")))
    }

    fn runs(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The offsets.
    pub fn get(&self) -> &[usize] {
        &self.offsets
    }

    /// The offsets, for good.
    pub fn into_inner(self) -> Vec<usize> {
        self.offsets
    }

    /// The run that the key at `index` is in.
    pub fn run_of(&self, index: usize) -> usize {
        self.offsets.partition_point(|&offset| offset <= index) - 1
    }
}
