//! The header of NumPy's .npy files.
//!
//! ```text
//! offset 0           6        8             10 (12 from version 2.0 on)
//!        "\x93NUMPY" version  length, LE    {'descr': '<u4', 'fortran_order': False, 'shape': (3,), }   \n
//! ```
//!
//! The text is a Python dict with these three keys, in any order, padded with spaces. It is Latin-1 up to version 2.0,
//! and UTF-8 in version 3.0. The items of the array follow it.

mod dtype;
mod literal;

pub use dtype::{Dtype, FieldKind, Number, Record};

use crate::say::error::{Failure, Result};
use crate::spec::Endian;
use literal::{Literal, Problem, Value, quote};
use std::fmt;
use std::io::Read;
use std::path::Path;

/// The first bytes of a file.
pub const MAGIC: &[u8] = b"\x93NUMPY";
/// A header is a multiple of this many bytes long.
const ALIGNMENT: usize = 64;
/// A header has space for this number of digits of the number of items, so that its length does not depend on that
/// number.
const COUNT_DIGITS: usize = 21;
/// The longest text to read, in bytes.
const MAX_TEXT: u32 = 1 << 16;

/// The use of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Keys or records: one dimension of items that have an order.
    Keys,
    /// Rows of keys: two dimensions or more of items that have an order.
    Rows,
    /// Columns of keys: the rows of the transposed array.
    Columns,
    /// Values: items of any type, in rows of any shape.
    Values,
}

/// The description of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the items.
    pub dtype: Dtype,
    /// The number of rows: the length of the first dimension.
    pub count: u64,
    /// The lengths of the other dimensions: empty for an array of one dimension, because its rows are single items.
    pub row: Vec<u64>,
    /// Whether an array with several dimensions is in Fortran order: in the file, the first index varies fastest.
    pub is_fortran: bool,
    /// Whether the dimensions are those of the transposed array.
    pub is_transposed: bool,
    /// The offset of the first item in the file, in bytes.
    pub begin: u64,
    /// The offset after the last item, in bytes.
    pub end: u64,
}

impl Header {
    /// Reads the header of the file at `path`. `reader` gives the bytes after [`MAGIC`].
    ///
    /// # Errors
    ///
    /// One line that names the file, if the header is longer than 64 KiB or does not describe an array for this
    /// purpose.
    pub fn read(path: &Path, reader: impl Read, purpose: Purpose) -> Result<Self> {
        let mut source = Source { path, reader, offset: MAGIC.len() };
        let version = source.read(2)?;
        let length_bytes = match version[..] {
            [1, 0] => 2,
            [2 | 3, 0] => 4,
            _ => {
                let (major, minor) = (version[0], version[1]);
                let expected = "expected 1.0, 2.0 or 3.0";
                return Err(Failure::file(path, format!("has an .npy header of version {major}.{minor}, {expected}")));
            }
        };
        let mut length = [0; 4];
        let length_offset = source.offset;
        length[..length_bytes].copy_from_slice(&source.read(length_bytes)?);
        let length = u32::from_le_bytes(length);
        if length > MAX_TEXT {
            return Err(Failure::file(
                path,
                format!("has an .npy header of {length} bytes by byte {length_offset}, expected at most {MAX_TEXT}"),
            ));
        }
        let text_offset = source.offset;
        let bytes = source.read(length as usize)?;
        let header = match version[0] {
            3 => parse_utf8(bytes, source.offset as u64, purpose),
            _ => parse_latin1(&bytes, source.offset as u64, purpose),
        };
        header.map_err(|Problem { offset, message }| {
            Failure::file(path, format!(".npy header, at byte {}: {message}", text_offset + offset))
        })
    }

    /// The rows of the array.
    pub fn rows(&self) -> Rows {
        let (descr, item, shape) = (self.dtype.descr(), self.dtype.item(), self.row.clone());
        Rows { descr, item, shape, is_transposed: self.is_transposed }
    }

    /// Turns each row into a record, which is ordered by its items. Returns whether the array has such rows.
    pub fn rows_to_records(&mut self) -> bool {
        let items = self.row.iter().try_fold(1, |items: u64, &length| items.checked_mul(length));
        let items = items.and_then(|items| usize::try_from(items).ok());
        match items.and_then(|items| Record::of_row(&self.dtype, items)) {
            Some(record) if !self.row.is_empty() => {
                self.dtype = Dtype::Record(record);
                true
            }
            _ => false,
        }
    }
}

/// The rows of an array. A row is the part of the array at one index of its first dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The dtype as a Python literal.
    pub descr: String,
    /// Bytes of an item.
    pub item: usize,
    /// The lengths of the dimensions after the first.
    pub shape: Vec<u64>,
    /// Whether these are the rows of a transposed array, which is in Fortran order before it is transposed.
    pub is_transposed: bool,
}

impl Rows {
    /// Rows of one number.
    pub fn of_numbers(number: &Number, endian: Endian) -> Self {
        let (descr, item) = (number.descr(endian), number.key_type.size());
        Self { descr, item, shape: Vec::new(), is_transposed: false }
    }

    /// Rows of one item of untyped bytes.
    pub fn of_bytes(count: usize) -> Self {
        Self { descr: format!("'|V{count}'"), item: count, shape: Vec::new(), is_transposed: false }
    }

    /// Bytes of a row.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.item as u64, |bytes, &length| bytes.saturating_mul(length))
    }

    /// The shape of an array with `count` parts of `size` bytes. A part of several rows adds one dimension. Several
    /// parts may be a row.
    fn shape_of(&self, count: u64, size: usize) -> Vec<u64> {
        let (size, row) = (size as u64, self.bytes().max(1));
        let several = Some(size / row).filter(|&rows| rows > 1);
        let count = if (1..row).contains(&size) { count / (row / size) } else { count };
        [count].into_iter().chain(several).chain(self.shape.iter().copied()).collect()
    }

    /// The header of an array with `count` parts of `size` bytes: rows, several rows, or items of a row. Its length
    /// does not depend on `count`.
    pub fn header(&self, count: u64, size: usize) -> Vec<u8> {
        header(&self.descr, self.shape_of(count, size), self.is_transposed)
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descr, item: _, shape, is_transposed: _ } = self;
        if shape.is_empty() { f.write_str(descr) } else { write!(f, "{descr} in rows of {}", tuple(shape)) }
    }
}

/// A file that is read in order.
struct Source<'a, R> {
    path: &'a Path,
    reader: R,
    /// Bytes read so far.
    offset: usize,
}

impl<R: Read> Source<'_, R> {
    /// The next `length` bytes. Memory is allocated as bytes arrive.
    fn read(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let result = self.reader.by_ref().take(length as u64).read_to_end(&mut bytes);
        result.map_err(|error| Failure::io(self.path, &error))?;
        let expected = self.offset + length;
        self.offset += bytes.len();
        if self.offset == expected {
            return Ok(bytes);
        }
        let end = self.offset;
        let message = format!("ends at byte {end} in its .npy header, expected {expected} bytes of it");
        Err(Failure::file(self.path, message))
    }
}

/// Parses a text in UTF-8 that ends at the offset `begin` of its file.
fn parse_utf8(bytes: Vec<u8>, begin: u64, purpose: Purpose) -> std::result::Result<Header, Problem> {
    let text = String::from_utf8(bytes).map_err(|error| Problem {
        offset: error.utf8_error().valid_up_to(),
        message: "expected UTF-8, as in every header of version 3.0".to_owned(),
    })?;
    parse(&text, begin, purpose)
}

/// Parses a text in Latin-1 that ends at the offset `begin` of its file.
fn parse_latin1(bytes: &[u8], begin: u64, purpose: Purpose) -> std::result::Result<Header, Problem> {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    parse(&text, begin, purpose).map_err(|problem| Problem {
        // The text is in UTF-8 in memory, so the number of characters is the offset in Latin-1.
        offset: text[..problem.offset].chars().count(),
        ..problem
    })
}

/// Parses the text of a header that ends at the offset `begin` of its file.
fn parse(text: &str, begin: u64, purpose: Purpose) -> std::result::Result<Header, Problem> {
    let literal = Literal::parse(text)?;
    let Value::Dict(entries) = &literal.value else {
        return Err(literal.problem("expected a dict of 'descr', 'fortran_order' and 'shape'"));
    };
    let (mut descr, mut order, mut shape) = (None, None, None);
    for (key, value) in entries {
        let entry = match &key.value {
            Value::String(name) if name == "descr" => &mut descr,
            Value::String(name) if name == "fortran_order" => &mut order,
            Value::String(name) if name == "shape" => &mut shape,
            _ => return Err(key.problem(format!("expected no key {}", quote(&text[key.span.clone()])))),
        };
        if entry.replace(value).is_some() {
            return Err(key.problem(format!("the key {} is there twice", quote(&text[key.span.clone()]))));
        }
    }
    let (Some(descr), Some(order), Some(shape)) = (descr, order, shape) else {
        let message = "expected the keys 'descr', 'fortran_order' and 'shape'".to_owned();
        return Err(Problem { offset: literal.span.end, message });
    };
    let Value::Bool(is_fortran) = order.value else { return Err(order.problem("expected True or False")) };
    let dtype = Dtype::parse(descr, text, purpose)?;
    let mut lengths = lengths(shape, text, purpose)?;
    let is_transposed = purpose == Purpose::Columns;
    if is_transposed {
        lengths.reverse();
    }
    let row = lengths.split_off(1);
    let count = lengths[0];
    // Both orders are the same for an array of one dimension.
    let is_fortran = is_fortran != is_transposed && !row.is_empty();
    let items = row.iter().try_fold(count, |items, &length| items.checked_mul(length));
    // File offsets are signed numbers of the system.
    let bytes = items.and_then(|items| items.checked_mul(dtype.size() as u64));
    match bytes.and_then(|bytes| bytes.checked_add(begin)).filter(|&end| i64::try_from(end).is_ok()) {
        Some(end) => Ok(Header { dtype, count, row, is_fortran, is_transposed, begin, end }),
        None => {
            let items = items.unwrap_or(u64::MAX);
            Err(shape.problem(format!("{items} items of {} bytes are more than a file can hold", dtype.size())))
        }
    }
}

/// The lengths of the dimensions, at least one. Keys have one dimension, and rows of keys have more.
fn lengths(shape: &Literal, text: &str, purpose: Purpose) -> std::result::Result<Vec<u64>, Problem> {
    let Value::Tuple(lengths) = &shape.value else {
        return Err(shape.problem("expected a shape: a tuple of one length, such as (3,)"));
    };
    let length = |literal: &Literal| match literal.value {
        Value::Number(length) => Ok(length),
        _ => Err(literal.problem("expected a length")),
    };
    match (lengths.len(), purpose) {
        (1, Purpose::Keys) | (2.., Purpose::Rows | Purpose::Columns) | (1.., Purpose::Values) => {
            lengths.iter().map(length).collect()
        }
        _ => {
            let (dimensions, shape_text) = (lengths.len(), quote(&text[shape.span.clone()]));
            let (expected, hint) = match purpose {
                Purpose::Keys => ("1", ": save it flat, or see --rows and --axis"),
                Purpose::Rows | Purpose::Columns => ("2 or more for --rows and --axis", ""),
                Purpose::Values => ("1 or more", ""),
            };
            let message = format!("the array has {dimensions} dimensions, {shape_text}, expected {expected}{hint}");
            Err(shape.problem(message))
        }
    }
}

/// The header of an array of this shape, byte for byte as NumPy writes it. A transposed array is the transpose of an
/// array in Fortran order, and has the other shape.
///
/// `descr` is the dtype as a Python literal. The length of a header does not depend on the first length of `shape`.
fn header(descr: &str, mut shape: Vec<u64>, is_transposed: bool) -> Vec<u8> {
    let padding = COUNT_DIGITS - shape[0].to_string().len();
    let order = if is_transposed { "True" } else { "False" };
    if is_transposed {
        shape.reverse();
    }
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {}, }}{:padding$}", tuple(&shape), "");
    let latin1 = text.chars().map(|character| u8::try_from(character).ok()).collect::<Option<Vec<u8>>>();
    let (version, length_bytes, text) = match latin1 {
        Some(text) if padded_length(2, &text) <= u16::MAX.into() => (1, 2, text),
        Some(text) => (2, 4, text),
        None => (3, 4, text.into_bytes()),
    };
    let length = padded_length(length_bytes, &text);
    let mut header = [MAGIC, &[version, 0], &length.to_le_bytes()[..length_bytes], &text].concat();
    header.resize(header.len() + length - text.len() - 1, b' ');
    header.push(b'\n');
    header
}

/// Lengths as a Python tuple.
fn tuple(lengths: &[u64]) -> String {
    let text = lengths.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if lengths.len() == 1 { format!("({text},)") } else { format!("({text})") }
}

/// Bytes of `text` with padding, after a length of `length_bytes` bytes.
fn padded_length(length_bytes: usize, text: &[u8]) -> usize {
    let prefix = MAGIC.len() + 2 + length_bytes;
    // As in NumPy, a text that needs no padding gets 64 spaces.
    (prefix + text.len() + 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT - prefix
}

#[cfg(test)]
mod tests;
