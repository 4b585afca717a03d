//! `--key`: the fields of a record that order it.

use super::{Endian, KeyType};
use std::fmt;
use std::str::FromStr;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A number. Without a byte order of its own it has that of `--endian`.
    Number(KeyType, Option<Endian>),
    /// A string of that many bytes, compared byte by byte.
    Bytes(usize),
}

impl FieldType {
    /// Bytes of the field.
    pub fn size(self) -> usize {
        match self {
            Self::Number(number, _) => number.size(),
            Self::Bytes(count) => count,
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number, endian) => {
                let endian = match endian {
                    None => "",
                    Some(Endian::Little) => "le",
                    Some(Endian::Big) => "be",
                };
                write!(f, "{number}{endian}")
            }
            Self::Bytes(count) => write!(f, "bytes{count}"),
        }
    }
}

impl FromStr for FieldType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            let names = KeyType::names();
            format!("expected {names} or bytesN after the offset, N being at least 1")
        };
        match text.strip_prefix("bytes") {
            Some(count) => count.parse().ok().filter(|&count| count > 0).map(Self::Bytes),
            None => KeyType::with_endian(text).map(|(number, endian)| Self::Number(number, endian)),
        }
        .ok_or_else(expected)
    }
}

/// Where a field is in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// After that many bytes, and of that type.
    At(usize, FieldType),
    /// Where the file's header says that the field of this name is.
    Named(String),
}

/// A field that records are ordered by: `OFFSET:TYPE` or `NAME`, and `:desc` where the greatest comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// Where it is.
    pub location: Location,
    /// Whether the greatest comes first.
    pub descending: bool,
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Location::At(offset, field_type) => write!(f, "{offset}:{field_type}")?,
            Location::Named(name) => f.write_str(name)?,
        }
        f.write_str(if self.descending { ":desc" } else { "" })
    }
}

impl FromStr for KeyField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected OFFSET:TYPE, such as 0:u32, 8:f64:desc or 0:bytes10, or the NAME of a field";
        let mut parts = text.split(':');
        let first = parts.next().filter(|first| !first.is_empty()).ok_or_else(expected)?;
        let location = if first.bytes().all(|byte| byte.is_ascii_digit()) {
            let offset = first.parse().map_err(|_| expected())?;
            Location::At(offset, parts.next().ok_or_else(expected)?.parse()?)
        } else if first.starts_with(['+', '-']) {
            return Err(expected().to_owned());
        } else {
            Location::Named(first.to_owned())
        };
        match (parts.next(), parts.next()) {
            (None, _) => Ok(Self { location, descending: false }),
            (Some("desc"), None) => Ok(Self { location, descending: true }),
            _ => Err("expected `:desc` or nothing after the field".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_they_are_read() {
        for text in [
            "0:u32",
            "8:f64:desc",
            "0:bytes10",
            "90:bytes1:desc",
            "3:u128",
            "18446744073709551615:i8",
            "0:u32be",
            "4:f64le:desc",
            "price",
            "price:desc",
        ] {
            assert_eq!(text.parse::<KeyField>().unwrap().to_string(), text);
        }
        assert_eq!("0:float64".parse::<KeyField>().unwrap().to_string(), "0:f64");
        for text in
            ["", "0", ":u32", "+1:u32", "-1:u32", "0:", "0:u31", "0:bytes", "0:bytes0", "0:bytes-1", "price:u32"]
        {
            assert!(text.parse::<KeyField>().is_err(), "{text}");
        }
        for text in ["0:u32:", "0:u32:asc", "0:u32:desc:desc", "0:u32 ", "18446744073709551616:u8", "price:desc:desc"] {
            assert!(text.parse::<KeyField>().is_err(), "{text}");
        }
    }
}
