//! Files of offsets, at which runs of keys begin and the last run ends. Offsets are unsigned integers of 8 bytes,
//! unless the file's header or extension names another integer type.

use super::Input;
use crate::coding::{Coding, Word, with_word};
use crate::format::{self, Content};
use crate::say::error::{Failure, Result, name};
use crate::spec::{Endian, KeyType, Kind};
use std::path::Path;

/// The offsets in a file.
#[derive(Debug)]
pub struct Offsets {
    /// The file's name, for messages.
    name: String,
    /// Ascending, beginning with 0.
    offsets: Vec<usize>,
}

impl Offsets {
    /// Opens the file at `path`, and detects the type of its offsets. A raw file has the byte order of its extension,
    /// or `endian`, if `--endian` gives it.
    pub fn open(path: &Path, endian: Option<Endian>) -> Result<Input> {
        let mut input = Input::open(path)?;
        input.read_header(None, Content::Offsets)?;
        let by_extension = || KeyType::of_extension(path).map(|(key_type, _)| key_type);
        let (key_type, endian) = input
            .header_type()
            .unwrap_or_else(|| (by_extension().unwrap_or(KeyType::U64), format::endian_of_raw(path, endian)));
        let other = input.number().filter(|number| !number.is_plain()).map(|number| number.name);
        let other = other.or_else(|| (key_type.kind() == Kind::Float).then(|| key_type.name().to_owned()));
        if let Some(other) = other {
            return Err(Failure::file(path, format!("holds {other} numbers, expected integers as offsets")));
        }
        input.set_coding(Coding::total(key_type, endian));
        Ok(input)
    }

    /// Reads an open file, and makes those checks of its offsets that need no keys.
    pub fn read(mut input: Input) -> Result<Self> {
        let offsets = read_integers(&mut input)?;
        let path = input.path();
        let failure = |message: String| Err(Failure::file(path, message));
        match offsets.first() {
            None => return failure("has no offsets, expected one more than there are runs".to_owned()),
            Some(0) => {}
            Some(first) => return failure(format!("the first offset is {first}, expected 0")),
        }
        if let Some(i) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
            let (index, found, before) = (i + 1, offsets[i + 1], offsets[i]);
            return failure(format!("offset {index} is {found}, below the one before it ({before})"));
        }
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

    /// An error unless `other` has the same number of runs.
    pub fn check_as_many(&self, other: &Self) -> Result<()> {
        let (runs, others) = (self.runs(), other.runs());
        if runs == others {
            return Ok(());
        }
        let (name, other) = (&self.name, &other.name);
        Err(Failure::new(format!("{name}: has offsets of {runs} runs, expected as many runs as in {other}: {others}")))
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The file's name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The offsets.
    pub fn get(&self) -> &[usize] {
        &self.offsets
    }

    /// The index of the run that holds the key at `index`.
    pub fn run_of(&self, index: usize) -> usize {
        self.offsets.partition_point(|&offset| offset <= index) - 1
    }
}

/// All integers of a file. An error if an integer cannot be a number of keys.
fn read_integers(input: &mut Input) -> Result<Vec<usize>> {
    let coding = input.coding();
    let key_type = coding.key_type;
    with_word!(key_type.size(), W => {
        let sign = if key_type.kind() == Kind::Signed { W::TOP_BIT } else { W::ZERO };
        let words = input.read_all::<W>()?;
        let offset = |(index, word): (usize, W)| {
            let offset = word.widen().checked_sub(sign.widen()).and_then(|offset| usize::try_from(offset).ok());
            offset.ok_or_else(|| {
                let (found, most) = (coding.show(word), usize::MAX);
                let message = format!("offset {index} is {found}, expected a number of keys from 0 to {most}");
                Failure::file(input.path(), message)
            })
        };
        words.into_iter().enumerate().map(offset).collect()
    })
}
