//! How files hold keys. The modules here know headers, and nothing of inputs and outputs.
//!
//! ```text
//!        begins with         type of the keys          byte order
//! raw    the first key       --type or the extension   an extension such as .u32be, or --endian, or else little endian
//! npy    "\x93NUMPY"         the header                the header
//! arrow  "ARROW1"            the footer                little endian
//! arrows a schema's message  that message              little endian
//! ```
//!
//! The format of an input is told by its first bytes, that of an output by its extension; `--format` overrules both.
//! Keys lie behind a header as they do in a raw file, so that all formats are read straight to where the keys are
//! sorted, and written from there.

pub mod arrow;
mod detect;
#[cfg(test)]
mod fuzz;
pub mod npy;
mod read_at;

pub use crate::spec::{Endian, Format};
pub use detect::{Content, PREFIX, detect, of_output, of_values};
pub use read_at::ReadAt;

use crate::say::error::{Failure, Result};
use crate::spec::KeyType;
use std::path::Path;

/// Where keys lie in a file, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The offset of the first, in bytes.
    pub begin: u64,
    /// Bytes of all.
    pub length: u64,
}

/// The byte order of the raw file at `path`: that of its extension, or `given` by `--endian`, or else little endian.
pub fn endian_of_raw(path: &Path, given: Option<Endian>) -> Endian {
    named_endian(path, given).unwrap_or(Endian::Little)
}

/// The byte order of a file at `path` that its extension names, or else `given` by `--endian`.
fn named_endian(path: &Path, given: Option<Endian>) -> Option<Endian> {
    let extension = KeyType::of_extension(path).and_then(|(_, endian)| endian);
    extension.or(given)
}

/// The byte order of an output at `path` in that format: the one that is [named](named_endian), or else for an .npy
/// file that of the input it comes from.
pub fn endian_of_output(path: &Path, format: Format, given: Option<Endian>, input: Option<Endian>) -> Endian {
    match format {
        Format::Raw => endian_of_raw(path, given),
        Format::Npy => named_endian(path, given).or(input).unwrap_or(Endian::Little),
        Format::Arrow | Format::Arrows => Endian::Little,
    }
}

/// The description that a file has around its keys, values or records.
#[derive(Clone, Debug)]
pub enum Container {
    /// None.
    Raw,
    /// NumPy's header, of an array of such rows.
    Npy(npy::Rows),
    /// NumPy's header, with the dtype of bytes that have no type.
    Void,
    /// Arrow's messages, in this format, of such a column.
    Arrow(Format, arrow::Column),
}

impl Container {
    /// For keys of that type in an output at `path`. `number` is the dtype and `column` the column of the inputs, if
    /// they have one.
    pub fn of_keys(
        path: &Path,
        format: Format,
        key_type: KeyType,
        endian: Endian,
        number: Option<npy::Number>,
        column: Option<&arrow::Column>,
    ) -> Result<Self> {
        match format {
            Format::Raw => Ok(Self::Raw),
            Format::Arrow | Format::Arrows => {
                if let Some(number) = number.filter(|number| !number.is_plain()) {
                    let message = format!(
                        "keys of dtype {} cannot be written to Arrow files, expected .npy, or --format raw for {key_type} keys",
                        number.name
                    );
                    return Err(Failure::file(path, message));
                }
                Ok(Self::Arrow(format, arrow::Column::of_output(path, column, key_type)?))
            }
            Format::Npy => {
                let number = number.or_else(|| npy::Number::plain(key_type)).ok_or_else(|| {
                    Failure::file(path, format!("NumPy has no type for {key_type} keys: write them with --format raw"))
                })?;
                Ok(Self::Npy(npy::Rows::of_numbers(&number, endian)))
            }
        }
    }

    /// The bytes before `count` keys, values or records of `size` bytes: the same number of bytes for every count.
    pub fn header(&self, count: u64, size: usize) -> Vec<u8> {
        match self {
            Self::Raw | Self::Arrow(..) => Vec::new(),
            Self::Npy(rows) => rows.header(count, size),
            Self::Void => npy::Rows { descr: format!("'|V{size}'"), item: size, shape: Vec::new() }.header(count, size),
        }
    }

    /// Whether the items lie one after the other behind the header.
    pub fn is_contiguous(&self) -> bool {
        !matches!(self, Self::Arrow(..))
    }
}
