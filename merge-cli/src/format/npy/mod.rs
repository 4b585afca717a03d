//! The header of NumPy's .npy files.
//!
//! ```text
//! offset 0           6        8             10 (12 from version 2.0 on)
//!        "\x93NUMPY" version  length, LE    {'descr': '<u4', 'fortran_order': False, 'shape': (3,), }   \n
//! ```
//!
//! The text is a Python dict of these three keys, in any order, padded with spaces. It is Latin-1 up to version 2.0, and
//! UTF-8 in version 3.0. The items of the array follow it.

mod dtype;
mod literal;

#[expect(unused_imports, reason = "for records of .npy files, which are not sorted yet")]
pub use dtype::{Dtype, Field, FieldKind, Record, descr};

use crate::say::error::{Failure, Result};
use literal::{Literal, Problem, Value, quote};
use std::io::Read;
use std::path::Path;

/// What a file begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";
/// A header is a multiple of this many bytes long.
const ALIGNMENT: usize = 64;
/// Digits of the number of items for which a header has space, so that its length does not depend on the number.
const COUNT_DIGITS: usize = 21;
/// The longest text to read, in bytes.
const MAX_TEXT: u32 = 1 << 16;

/// The description of an array of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the items.
    pub dtype: Dtype,
    /// The number of items.
    pub count: u64,
    /// The offset of the first item in the file, in bytes.
    pub begin: u64,
    /// The offset after the last item, in bytes.
    pub end: u64,
}

impl Header {
    /// Reads the header of the file at `path`, of which `reader` gives the bytes after [`MAGIC`].
    ///
    /// # Errors
    ///
    /// One line that names the file, if the header is longer than 64 KiB or does not describe an array of one dimension of
    /// numbers or records.
    pub fn read(path: &Path, reader: impl Read) -> Result<Self> {
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
            3 => parse_utf8(bytes, source.offset as u64),
            _ => parse_latin1(&bytes, source.offset as u64),
        };
        header.map_err(|Problem { offset, message }| {
            Failure::file(path, format!(".npy header, at byte {}: {message}", text_offset + offset))
        })
    }
}

/// A file that is read from front to end.
struct Source<'a, R> {
    path: &'a Path,
    reader: R,
    /// Bytes read so far.
    offset: usize,
}

impl<R: Read> Source<'_, R> {
    /// The next `length` bytes. Memory is taken as they come.
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
fn parse_utf8(bytes: Vec<u8>, begin: u64) -> std::result::Result<Header, Problem> {
    let text = String::from_utf8(bytes).map_err(|error| Problem {
        offset: error.utf8_error().valid_up_to(),
        message: "expected UTF-8, as in every header of version 3.0".to_owned(),
    })?;
    parse(&text, begin)
}

/// Parses a text in Latin-1 that ends at the offset `begin` of its file.
fn parse_latin1(bytes: &[u8], begin: u64) -> std::result::Result<Header, Problem> {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    parse(&text, begin).map_err(|problem| Problem {
        // One byte is one character, of one or two bytes in memory.
        offset: text[..problem.offset].chars().count(),
        ..problem
    })
}

/// Parses the text of a header that ends at the offset `begin` of its file.
fn parse(text: &str, begin: u64) -> std::result::Result<Header, Problem> {
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
    // Both orders are the same for an array of one dimension.
    if !matches!(order.value, Value::Bool) {
        return Err(order.problem("expected True or False"));
    }
    let dtype = Dtype::parse(descr, text)?;
    let count = item_count(shape, text)?;
    // File offsets are signed numbers of the system.
    let end = count.checked_mul(dtype.size() as u64).and_then(|bytes| bytes.checked_add(begin));
    match end.filter(|&end| i64::try_from(end).is_ok()) {
        Some(end) => Ok(Header { dtype, count, begin, end }),
        None => Err(shape.problem(format!("{count} items of {} bytes are more than a file can hold", dtype.size()))),
    }
}

/// The number of items in an array of this shape, which must have one dimension.
fn item_count(shape: &Literal, text: &str) -> std::result::Result<u64, Problem> {
    let Value::Tuple(lengths) = &shape.value else {
        return Err(shape.problem("expected a shape: a tuple of one length, such as (3,)"));
    };
    match lengths[..] {
        [Literal { value: Value::Number(count), .. }] => Ok(count),
        [ref other] => Err(other.problem("expected a length")),
        _ => {
            let dimensions = lengths.len();
            let shape_text = quote(&text[shape.span.clone()]);
            let message = format!("the array has {dimensions} dimensions, {shape_text}, expected 1: save it flat");
            Err(shape.problem(message))
        }
    }
}

/// The header of an array of `count` items, byte for byte as NumPy writes it.
///
/// `descr` is the dtype as a Python literal: that of [`descr()`], or [`Record::descr`]. The length of a header does not
/// depend on `count`.
pub fn header(descr: &str, count: u64) -> Vec<u8> {
    let padding = COUNT_DIGITS - count.to_string().len();
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({count},), }}{:padding$}", "");
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

/// Bytes of `text` with padding, after a length of `length_bytes` bytes.
fn padded_length(length_bytes: usize, text: &[u8]) -> usize {
    let prefix = MAGIC.len() + 2 + length_bytes;
    // As NumPy does, 64 spaces are added to a text that needs none.
    (prefix + text.len() + 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT - prefix
}

#[cfg(test)]
mod tests;
