//! The header of NumPy's .npy files.
//!
//! ```text
//! offset 0           6        8             10 (12 from version 2.0 on)
//!        "\x93NUMPY" version  length, LE    {'descr': '<u4', 'fortran_order': False, 'shape': (3,), }   \n
//! ```
//!
//! The text is a Python dict of these three keys, in any order, padded with spaces. The numbers come right after it.

use super::Endian;
use crate::error::{Failure, Result};
use crate::key_type::KeyType;
use clap::ValueEnum;
use std::io::Read;
use std::path::Path;

/// What a file begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of a header that this program writes: as many as NumPy takes for an array of one dimension.
pub const LENGTH: usize = 128;
/// The longest text to read, in bytes. That of an array of numbers is far shorter.
const LONGEST: u32 = 1 << 16;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the numbers.
    pub key_type: KeyType,
    /// Their byte order.
    pub endian: Endian,
    /// How many there are.
    pub count: u64,
    /// The offset of the first.
    pub begin: u64,
    /// The offset after the last.
    pub end: u64,
}

impl Header {
    /// Reads the header of the file at `path`, of which `reader` gives the bytes after the magic ones.
    pub fn read(path: &Path, mut reader: impl Read) -> Result<Self> {
        let mut read = |length: usize, offset: usize| {
            let mut bytes = Vec::new();
            let result = reader.by_ref().take(length as u64).read_to_end(&mut bytes);
            result.map_err(|error| Failure::io(path, &error))?;
            if bytes.len() == length {
                return Ok(bytes);
            }
            let (end, expected) = (offset + bytes.len(), offset + length);
            Err(Failure::file(path, format!("ends at byte {end} in its .npy header, expected {expected} bytes of it")))
        };
        let begin = MAGIC.len();
        let version = read(2, begin)?;
        let length_bytes = match version[..] {
            [1, 0] => 2,
            [2 | 3, 0] => 4,
            _ => {
                let (major, minor) = (version[0], version[1]);
                let expected = "expected 1.0, 2.0 or 3.0";
                return Err(Failure::file(path, format!("has an .npy header of version {major}.{minor}, {expected}")));
            }
        };
        let begin = begin + version.len();
        let mut length = [0; 4];
        length[..length_bytes].copy_from_slice(&read(length_bytes, begin)?);
        let length = u32::from_le_bytes(length);
        if length > LONGEST {
            return Err(Failure::file(
                path,
                format!("has an .npy header of {length} bytes by what is at byte {begin}, expected at most {LONGEST}"),
            ));
        }
        let begin = begin + length_bytes;
        let text = read(length as usize, begin)?;
        let end = (begin + text.len()) as u64;
        parse(&text, end).map_err(|Problem { offset, message }| {
            Failure::file(path, format!(".npy header, at byte {}: {message}", begin + offset))
        })
    }
}

/// NumPy's name for keys of a type, with their byte order. It has none for 16 bytes.
pub fn descr(key_type: KeyType, endian: Endian) -> Option<String> {
    let name = key_type.to_string();
    let size = key_type.size();
    let order = match (size, endian) {
        (16, _) => return None,
        (1, _) => '|',
        (_, Endian::Little) => '<',
        (_, Endian::Big) => '>',
    };
    Some(format!("{order}{}{size}", &name[..1]))
}

/// The type and the byte order of keys that NumPy calls `descr`.
fn of_descr(descr: &str) -> Option<(KeyType, Endian)> {
    // Without a sign, or with one of these, they are as the machine has them.
    let name = descr.trim_start_matches(['<', '>', '=', '|']);
    if descr.len() > name.len() + 1 {
        return None;
    }
    let endian = if descr.starts_with('>') { Endian::Big } else { Endian::Little };
    let here = |key_type: &&KeyType| self::descr(**key_type, endian).is_some_and(|descr| &descr[1..] == name);
    KeyType::value_variants().iter().find(here).map(|&key_type| (key_type, endian))
}

/// The header of `count` keys, of [`LENGTH`] bytes. Empty for keys that NumPy has no type for.
pub fn header(key_type: KeyType, endian: Endian, count: u64) -> Vec<u8> {
    let Some(descr) = descr(key_type, endian) else { return Vec::new() };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}");
    let room = LENGTH - MAGIC.len() - 4;
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((room as u16).to_le_bytes());
    header.extend(format!("{text:<width$}\n", width = room - 1).bytes());
    header
}

/// What is wrong in the text of a header, and where.
#[derive(Debug)]
struct Problem {
    offset: usize,
    message: String,
}

/// Reads the text of a header that ends at the offset `begin` of its file.
fn parse(text: &[u8], begin: u64) -> std::result::Result<Header, Problem> {
    let mut text = Text { bytes: text, position: 0 };
    let (mut descr, mut order, mut count) = (None, None, None);
    text.expect("{")?;
    while !text.take("}") {
        let offset = text.skip_spaces();
        let is_new = match text.string()?.as_str() {
            "descr" => {
                text.expect(":")?;
                descr.replace(text.key_type()?).is_none()
            }
            "fortran_order" => {
                text.expect(":")?;
                // Both orders are one for an array of one dimension.
                order.replace(text.truth()?).is_none()
            }
            "shape" => {
                text.expect(":")?;
                count.replace((text.skip_spaces(), text.shape()?)).is_none()
            }
            other => return Err(text.problem_at(offset, format!("expected no key {other:?}"))),
        };
        if !is_new {
            return Err(text.problem_at(offset, "a key is there twice".to_owned()));
        }
        if !text.take(",") {
            text.expect("}")?;
            break;
        }
    }
    let end = text.skip_spaces();
    if end < text.bytes.len() {
        return Err(text.problem("the end of the header"));
    }
    let (Some((key_type, endian)), Some(()), Some((offset, count))) = (descr, order, count) else {
        return Err(text.problem_at(end, "expected the keys 'descr', 'fortran_order' and 'shape'".to_owned()));
    };
    // So many that the file could not be: its length would be no number of the system.
    let bytes = count.checked_mul(key_type.size() as u64).and_then(|bytes| bytes.checked_add(begin));
    match bytes.filter(|&end| i64::try_from(end).is_ok()) {
        Some(end) => Ok(Header { key_type, endian, count, begin, end }),
        None => Err(text.problem_at(offset, format!("{count} {key_type} keys are more than a file can hold"))),
    }
}

/// The text of a header, read from front to end.
struct Text<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Text<'_> {
    /// Skips white space, and gives the offset of what comes then.
    fn skip_spaces(&mut self) -> usize {
        let spaces = self.bytes[self.position..].iter().take_while(|byte| byte.is_ascii_whitespace());
        self.position += spaces.count();
        self.position
    }

    /// Whether `token` comes next. If so, goes beyond it.
    fn take(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let is_next = self.bytes[self.position..].starts_with(token.as_bytes());
        if is_next {
            self.position += token.len();
        }
        is_next
    }

    fn expect(&mut self, token: &str) -> std::result::Result<(), Problem> {
        if self.take(token) { Ok(()) } else { Err(self.problem(&format!("`{token}`"))) }
    }

    /// A string without escapes, of which NumPy writes none for numbers.
    fn string(&mut self) -> std::result::Result<String, Problem> {
        self.skip_spaces();
        let rest = &self.bytes[self.position..];
        let Some(quote) = rest.first().filter(|quote| b"'\"".contains(quote)) else {
            return Err(self.problem("a string"));
        };
        let length = rest[1..].iter().position(|byte| byte == quote || *byte == b'\\');
        match length.filter(|&length| rest[1 + length] == *quote) {
            Some(length) => {
                self.position += length + 2;
                Ok(String::from_utf8_lossy(&rest[1..][..length]).into_owned())
            }
            None => Err(self.problem("a string without backslashes that ends")),
        }
    }

    fn key_type(&mut self) -> std::result::Result<(KeyType, Endian), Problem> {
        let offset = self.skip_spaces();
        if self.take("[") {
            let message = "a structured dtype, expected one number for each key: save one field by itself";
            return Err(self.problem_at(offset, message.to_owned()));
        }
        let descr = self.string()?;
        of_descr(&descr).ok_or_else(|| {
            let types = KeyType::value_variants().iter().filter_map(|&key_type| self::descr(key_type, Endian::Little));
            let types = types.map(|descr| descr[1..].to_owned()).collect::<Vec<_>>().join(", ");
            self.problem_at(offset, format!("dtype {descr:?} is no type of keys, expected one of {types}"))
        })
    }

    fn truth(&mut self) -> std::result::Result<(), Problem> {
        if self.take("True") || self.take("False") { Ok(()) } else { Err(self.problem("True or False")) }
    }

    /// The length of an array of one dimension.
    fn shape(&mut self) -> std::result::Result<u64, Problem> {
        let offset = self.skip_spaces();
        self.expect("(")?;
        let mut lengths = Vec::new();
        let mut is_tuple = true;
        while !self.take(")") {
            lengths.push(self.number()?);
            is_tuple = self.take(",");
            if !is_tuple {
                self.expect(")")?;
                // One number in parentheses is that number; only the comma makes a tuple of it.
                is_tuple = lengths.len() > 1;
                break;
            }
        }
        match lengths[..] {
            [length] if is_tuple => Ok(length),
            [_] => Err(self.problem("`,`")),
            _ => {
                let (dimensions, shape) = (lengths.len(), &self.bytes[offset..self.position]);
                let shape = String::from_utf8_lossy(shape);
                let message = format!("the array has {dimensions} dimensions, {shape:?}, expected 1: save it flat");
                Err(self.problem_at(offset, message))
            }
        }
    }

    fn number(&mut self) -> std::result::Result<u64, Problem> {
        self.skip_spaces();
        let digits = self.bytes[self.position..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = &self.bytes[self.position..][..digits];
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| self.problem("a length"))?;
        self.position += digits;
        // Python 2 marks long numbers.
        if self.bytes[self.position..].starts_with(b"L") {
            self.position += 1;
        }
        Ok(number)
    }

    /// Something other than `expected` comes next.
    fn problem(&self, expected: &str) -> Problem {
        let rest = String::from_utf8_lossy(&self.bytes[self.position..]);
        let found = match rest.chars().next() {
            Some(_) => format!("{:?}", rest.chars().take(20).collect::<String>()),
            None => "its end".to_owned(),
        };
        self.problem_at(self.position, format!("expected {expected}, found {found}"))
    }

    fn problem_at(&self, offset: usize, message: String) -> Problem {
        Problem { offset, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes after the magic ones of a header with this text.
    fn version(major: u8, text: &str) -> Vec<u8> {
        let mut bytes = vec![major, 0];
        match major {
            1 => bytes.extend((text.len() as u16).to_le_bytes()),
            _ => bytes.extend((text.len() as u32).to_le_bytes()),
        }
        bytes.extend(text.bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> std::result::Result<Header, String> {
        let failure = |failure: Failure| failure.message().unwrap().to_owned();
        Header::read(Path::new("x.npy"), bytes).map_err(failure)
    }

    #[track_caller]
    fn fails(text: &str, parts: &[&str]) {
        let message = read(&version(1, text)).unwrap_err();
        for part in ["x.npy: "].iter().chain(parts) {
            assert!(message.contains(part), "no {part:?} in {message:?}");
        }
    }

    #[test]
    fn a_header_reads_as_it_was_written() {
        for &key_type in KeyType::value_variants() {
            for endian in [Endian::Little, Endian::Big] {
                for count in [0, 1, 12_345_678_901] {
                    let header = header(key_type, endian, count);
                    if key_type == KeyType::U128 {
                        assert!(header.is_empty());
                        continue;
                    }
                    assert_eq!((header.len(), &header[..6], header[127]), (LENGTH, MAGIC, b'\n'));
                    let endian = if key_type.size() == 1 { Endian::Little } else { endian };
                    let end = 128 + count * key_type.size() as u64;
                    assert_eq!(read(&header[6..]), Ok(Header { key_type, endian, count, begin: 128, end }));
                }
            }
        }
        let text = "{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }";
        assert_eq!(&header(KeyType::U32, Endian::Little, 3)[10..][..text.len()], text.as_bytes());
        assert_eq!(header(KeyType::F16, Endian::Big, u64::MAX).len(), LENGTH);
    }

    #[test]
    fn every_version_and_every_way_to_write_it() {
        let expected = |begin| Header { key_type: KeyType::I16, endian: Endian::Big, count: 5, begin, end: begin + 10 };
        for text in [
            "{'descr': '>i2', 'fortran_order': False, 'shape': (5,), }\n",
            "{'shape': (5,), 'fortran_order': True, 'descr': '>i2'}",
            "  {\"shape\":( 5L , ) ,\n\"descr\":\">i2\",\t'fortran_order':False}     \n",
        ] {
            for (major, begin) in [(1, 10), (2, 12), (3, 12)] {
                assert_eq!(read(&version(major, text)), Ok(expected(begin + text.len() as u64)), "{text}");
            }
        }
        for (descr, key_type) in
            [("=f4", KeyType::F32), ("f8", KeyType::F64), ("|u1", KeyType::U8), (">i1", KeyType::I8)]
        {
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (0,)}}");
            let header = read(&version(1, &text)).unwrap();
            assert_eq!((header.key_type, header.count, header.begin), (key_type, 0, header.end));
        }
    }

    #[test]
    fn what_is_no_header_is_told_with_its_place() {
        let with = |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}");
        for shape in ["(3, 4)", "(1,1)", "()", "(2, 3, 4,)"] {
            fails(&with("'<u4'", shape), &["at byte 60: ", "dimensions", "expected 1: save it flat", shape]);
        }
        for descr in ["<c8", "|b1", "<U5", "|S3", "|O", "<M8[us]", "<f16", "<u16", "u", "", "<", "<<u4", "<u3", "é"] {
            let text = with(&format!("'{descr}'"), "(3,)");
            fails(&text, &["at byte 20: dtype ", &format!("{descr:?}"), "expected one of u1, i1, u2, i2, f2, u4"]);
        }
        fails(&with("[('a', '<i4'), ('b', '<f8')]", "(3,)"), &["at byte 20: ", "structured dtype"]);
        fails(&with("'<u4'", "(18446744073709551615,)"), &["18446744073709551615 u32 keys are more than a file"]);
        fails(&with("'<u4'", "(99999999999999999999,)"), &["at byte 61: expected a length"]);
        fails(&with("'<u4'", "(2305843009213693952,)"), &["more than a file"]);
        for (text, parts) in [
            ("", ["at byte 10: ", "expected `{`, found its end"]),
            ("{'descr': '<u4', 'fortran_order': False}", ["at byte 50: ", "'shape'"]),
            ("{'descr': '<u4', 'shape': (3,)}", ["at byte 41: ", "'fortran_order'"]),
            ("{'descr': '<u4', 'descr': '<u4'}", ["at byte 27: ", "twice"]),
            ("{'descr': '<u4', 'color': 3}", ["at byte 27: ", "expected no key \"color\""]),
            ("{'descr': '<u4'", ["at byte 25: ", "expected `}`, found its end"]),
            ("{'descr' '<u4'}", ["at byte 19: ", "expected `:`, found \"'<u4'}\""]),
            ("{'descr': '<u4}", ["at byte 20: ", "a string without backslashes that ends"]),
            ("{'des\\x63r': '<u4'}", ["at byte 11: ", "a string without backslashes that ends"]),
            ("{descr: '<u4'}", ["at byte 11: ", "expected a string, found \"descr: '<u4'}\""]),
            ("{'descr': <u4}", ["at byte 20: ", "expected a string"]),
            ("{'fortran_order': 1}", ["at byte 28: ", "True or False"]),
            ("{'shape': 3}", ["at byte 20: ", "expected `(`, found \"3}\""]),
            ("{'shape': (3)}", ["at byte 23: ", "expected `,`"]),
            ("{'shape': (-3,)}", ["at byte 21: ", "expected a length, found \"-3,)}\""]),
            ("{'shape': (3,}", ["at byte 23: ", "expected a length, found \"}\""]),
            ("{'shape': (3 4)}", ["at byte 23: ", "expected `)`, found \"4)}\""]),
        ] {
            fails(text, &parts);
        }
        fails(&format!("{} x", with("'<u4'", "(3,)")), &["expected the end of the header, found \"x\""]);
    }

    #[test]
    fn headers_that_end_early_and_versions_that_nobody_knows() {
        let whole = version(2, "{'descr': '<u4', 'fortran_order': False, 'shape': (3,)}");
        for length in 0..whole.len() {
            let message = read(&whole[..length]).unwrap_err();
            assert!(
                message.starts_with(&format!("x.npy: ends at byte {} in its .npy header", length + 6)),
                "{message}"
            );
        }
        for (major, minor) in [(0, 0), (1, 1), (4, 0)] {
            let message = read(&[major, minor, 1, 0, b'{']).unwrap_err();
            assert!(message.contains(&format!("version {major}.{minor}, expected 1.0, 2.0 or 3.0")), "{message}");
        }
        let message = read(&[2, 0, 255, 255, 255, 255]).unwrap_err();
        assert!(message.contains("4294967295 bytes by what is at byte 8, expected at most 65536"), "{message}");
    }
}
