//! How files hold keys: which formats there are, and which one an output gets.
//!
//! ```text
//!        begins with         type of the keys          byte order
//! raw    the first key       --type or the extension   an extension such as .u32be, or --endian, or else little endian
//! npy    "\x93NUMPY"         the header                the header
//! arrow  "ARROW1"            the footer                little endian
//! ```
//!
//! What an input is, its first bytes tell, and for an output its extension or `--format`. Keys lie behind a header as
//! they do in a raw file, so that all formats are read straight to where the keys are worked on, and written from there.

#[cfg(feature = "arrow")]
pub mod arrow;
#[cfg(not(feature = "arrow"))]
#[path = "no_arrow.rs"]
pub mod arrow;
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
    /// An IPC file of Apache Arrow with one column, in a build with the feature `arrow`
    Arrow,
}

/// What an Arrow file begins with.
pub const ARROW_MAGIC: &[u8] = b"ARROW1";

/// Where keys lie in a file, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The offset of the first, in bytes.
    pub begin: u64,
    /// Bytes of all.
    pub length: u64,
}

impl Format {
    /// The format that a file's extension stands for.
    pub fn of_extension(path: &Path) -> Self {
        let is = |extension: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
        match () {
            () if is("npy") => Self::Npy,
            () if is("arrow") => Self::Arrow,
            () => Self::Raw,
        }
    }

    /// What every file of the format begins with, and the format's name.
    pub fn magic(self) -> Option<(&'static [u8], &'static str)> {
        match self {
            Self::Raw => None,
            Self::Npy => Some((npy::MAGIC, ".npy")),
            Self::Arrow => Some((ARROW_MAGIC, "Arrow")),
        }
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
#[derive(Clone, Debug)]
pub struct Encoding {
    pub format: Format,
    pub key_type: KeyType,
    pub endian: Endian,
    /// The column of an Arrow file.
    pub schema: Option<arrow::Schema>,
}

impl Encoding {
    /// Bytes as they are.
    pub const RAW: Self = Self { format: Format::Raw, key_type: KeyType::U8, endian: Endian::Little, schema: None };

    /// For keys of type `K`, which come from `inputs`.
    pub fn choose<K: Element>(output: &OutputArgs, common: &CommonArgs, inputs: &[Input]) -> Result<Self> {
        let path = &output.output;
        let format = output.format.unwrap_or_else(|| Format::of_extension(path));
        let endian = match (format, inputs) {
            (Format::Raw, _) => Endian::of_raw(path, common.endian),
            (Format::Npy, [first, ..]) => common.endian.unwrap_or(first.endian()),
            (Format::Npy, []) => common.endian.unwrap_or(Endian::Little),
            (Format::Arrow, _) => Endian::Little,
        };
        let schema = match format {
            Format::Arrow => Some(arrow::schema(path, inputs.first().and_then(Input::schema), K::KEY_TYPE)?),
            _ => None,
        };
        if format == Format::Npy && npy::descr(K::KEY_TYPE, endian).is_none() {
            let name = K::TYPE;
            return Err(Failure::file(
                path,
                format!("NumPy has no type for {name} keys: write them with --format raw"),
            ));
        }
        Ok(Self { format, key_type: K::KEY_TYPE, endian, schema })
    }

    /// The bytes that come before `count` keys; as many for every number of keys.
    pub fn header(&self, count: u64) -> Vec<u8> {
        match self.format {
            Format::Raw | Format::Arrow => Vec::new(),
            Format::Npy => npy::header(self.key_type, self.endian, count),
        }
    }

    /// Bytes of a number if they have to be turned round, or else 1.
    pub fn swap_size(&self) -> usize {
        if self.endian == Endian::Big { self.key_type.size() } else { 1 }
    }
}
