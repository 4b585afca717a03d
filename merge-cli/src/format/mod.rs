//! The formats of files. These modules read and write headers, and do not depend on inputs and outputs.
//!
//! ```text
//!        begins with         type of the keys          byte order
//! raw    the first key       --type or the extension   an extension such as .u32be, --endian, or little endian
//! npy    "\x93NUMPY"         the header                the header
//! arrow  "ARROW1"            the footer                little endian
//! arrows a schema's message  that message              little endian
//! parquet "PAR1"             the footer                as a table
//! ```
//!
//! The first bytes of an input determine its format, and the extension of an output. `--format` overrules both. Keys
//! behind a header are stored as in a raw file. So keys of all formats are read directly into the memory where they are
//! sorted, and written from there.

pub mod arrow;
mod detect;
#[cfg(test)]
mod fuzz;
pub mod npy;
mod read_at;

pub use crate::spec::{Endian, Format};
pub use detect::{Axis, Content, PARQUET, PREFIX, detect, of_output, of_values};
pub use read_at::ReadAt;

use crate::say::error::{Failure, Result};
use crate::spec::KeyType;
use std::path::Path;

/// A range of a file with contiguous keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The offset of the first key, in bytes.
    pub begin: u64,
    /// Length of all keys, in bytes.
    pub length: u64,
}

/// The byte order of the raw file at `path`: from its extension, otherwise `given` by `--endian`, otherwise little
/// endian.
pub fn endian_of_raw(path: &Path, given: Option<Endian>) -> Endian {
    named_endian(path, given).unwrap_or(Endian::Little)
}

/// The byte order in the extension of the file at `path`, otherwise `given` by `--endian`.
fn named_endian(path: &Path, given: Option<Endian>) -> Option<Endian> {
    let extension = KeyType::of_extension(path).and_then(|(_, endian)| endian);
    extension.or(given)
}

/// The byte order of an output at `path` in this format: the [named](named_endian) byte order. Without one, an .npy
/// file has the byte order of its input.
pub fn endian_of_output(path: &Path, format: Format, given: Option<Endian>, input: Option<Endian>) -> Endian {
    match format {
        Format::Raw => endian_of_raw(path, given),
        Format::Npy => named_endian(path, given).or(input).unwrap_or(Endian::Little),
        Format::Arrow | Format::Arrows | Format::Parquet => Endian::Little,
    }
}

/// The metadata around the keys, values or records of a file.
#[derive(Clone, Debug)]
pub enum Container {
    /// No metadata.
    Raw,
    /// These bytes, which are no keys, and were copied from the input.
    Copied(Vec<u8>),
    /// NumPy's header of an array of these rows.
    Npy(npy::Rows),
    /// NumPy's header with the dtype of untyped bytes.
    Void,
    /// Arrow's messages of this column, in this format.
    Arrow(Format, arrow::Column),
}

impl Container {
    /// The container for keys of this type in an output at `path`. `number` is the dtype of the inputs and `column`
    /// their column, if they have one.
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
                        "keys of dtype {} cannot be written to Arrow files, expected .npy, or --format raw for \
                         {key_type} keys",
                        number.name
                    );
                    return Err(Failure::file(path, message));
                }
                Ok(Self::Arrow(format, arrow::Column::of_output(path, column, key_type)?))
            }
            Format::Parquet => Err(Failure::file(path, "keys cannot be written to Parquet files, which hold tables")),
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
            Self::Copied(header) => header.clone(),
            Self::Npy(rows) => rows.header(count, size),
            Self::Void => npy::Rows::of_bytes(size).header(count, size),
        }
    }

    /// Whether the header has the number of items.
    pub fn has_count(&self) -> bool {
        matches!(self, Self::Npy(_) | Self::Void)
    }

    /// Whether the items are contiguous behind the header.
    pub fn is_contiguous(&self) -> bool {
        !matches!(self, Self::Arrow(..))
    }
}
