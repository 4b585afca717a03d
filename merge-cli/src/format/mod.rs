//! How files hold keys: which formats there are, and which one an output gets.
//!
//! ```text
//!        begins with         type of the keys          byte order
//! raw    the first key       --type or the extension   an extension such as .u32be, or --endian, or else little endian
//! npy    "\x93NUMPY"         the header                the header
//! ```
//!
//! What an input is, its first bytes tell, and for an output its extension or `--format`. Keys lie behind a header as
//! they do in a raw file, so that all formats are read straight to where the keys are worked on, and written from there.

mod bytes;
pub mod npy;

pub use bytes::{swap, swap_all};

use crate::args::{CommonArgs, OutputArgs};
use crate::error::{Failure, Result};
use crate::input::Input;
use crate::key_type::{Element, KeyType, Source};
use clap::ValueEnum;
use std::path::Path;

/// How a file holds keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The keys and nothing else
    Raw,
    /// A header of NumPy, then the keys
    Npy,
}

impl Format {
    /// The format that the extension of an output stands for.
    fn of_extension(path: &Path) -> Self {
        let is = |extension: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
        if is("npy") { Self::Npy } else { Self::Raw }
    }
}

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Endian {
    /// The least significant byte first
    Little,
    /// The most significant byte first
    Big,
}

impl Endian {
    /// The byte order of the raw file at `path`: what its extension says, or `--endian`, or else little.
    pub fn of_raw(path: &Path, given: Option<Self>) -> Self {
        let extension = KeyType::of_extension(path).and_then(|(_, endian)| endian);
        extension.or(given).unwrap_or(Self::Little)
    }
}

/// Looks at how `inputs` begin, and gives the type of their keys: the one that `--type`, a header or an extension tells,
/// of the output too. All of them must agree, but for extensions where there is a `--type`.
///
/// From here on, `inputs` read keys. Values are read without this: they have no format.
pub fn detect(common: &CommonArgs, inputs: &mut [Input], output: Option<&Path>) -> Result<KeyType> {
    for input in inputs.iter_mut() {
        input.detect(common.endian)?;
    }
    let sources = inputs.iter().map(|input| match input.header_type() {
        Some(key_type) => Source::header(input.path(), key_type),
        None => Source::extension(input.path()),
    });
    KeyType::of(common.key_type, &sources.chain(output.map(Source::extension)).collect::<Vec<_>>())
}

/// How an output holds its keys.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    pub format: Format,
    pub key_type: KeyType,
    pub endian: Endian,
}

impl Encoding {
    /// Bytes as they are.
    pub const RAW: Self = Self { format: Format::Raw, key_type: KeyType::U8, endian: Endian::Little };

    /// For keys of type `K`, which come from `inputs`.
    pub fn choose<K: Element>(output: &OutputArgs, common: &CommonArgs, inputs: &[Input]) -> Result<Self> {
        let path = &output.output;
        let format = output.format.unwrap_or_else(|| Format::of_extension(path));
        let endian = match (format, inputs) {
            (Format::Raw, _) => Endian::of_raw(path, common.endian),
            (Format::Npy, [first, ..]) => common.endian.unwrap_or(first.endian()),
            (Format::Npy, []) => common.endian.unwrap_or(Endian::Little),
        };
        if format == Format::Npy && npy::descr(K::KEY_TYPE, endian).is_none() {
            let name = K::TYPE;
            return Err(Failure::file(
                path,
                format!("NumPy has no type for {name} keys: write them with --format raw"),
            ));
        }
        Ok(Self { format, key_type: K::KEY_TYPE, endian })
    }

    /// The bytes that come before `count` keys; as many for every number of keys.
    pub fn header(&self, count: u64) -> Vec<u8> {
        match self.format {
            Format::Raw => Vec::new(),
            Format::Npy => npy::header(self.key_type, self.endian, count),
        }
    }

    /// Bytes of a number if they have to be turned round, or else 1.
    pub fn swap_size(&self) -> usize {
        if self.endian == Endian::Big { self.key_type.size() } else { 1 }
    }
}
