//! `--key`: the fields of a record that order it.

use super::{Endian, KeyType};
use std::fmt;
use std::str::FromStr;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A number. If it has no byte order of its own, it has the byte order of `--endian`.
    Number(KeyType, Option<Endian>),
    /// A date or duration of NumPy, of 8 bytes, with `NaT`.
    Time(Endian),
    /// A complex number of NumPy, whose parts are floating-point numbers of this type.
    Complex(KeyType, Endian),
    /// This number of characters of NumPy, each a number of 4 bytes.
    Text(usize, Endian),
    /// A string of this number of bytes, compared byte by byte.
    Bytes(usize),
}

impl FieldType {
    /// Bytes of the field.
    pub fn size(self) -> usize {
        match self {
            Self::Number(number, _) => number.size(),
            Self::Time(_) => size_of::<i64>(),
            Self::Complex(part, _) => 2 * part.size(),
            Self::Text(count, _) => count * size_of::<u32>(),
            Self::Bytes(count) => count,
        }
    }

    /// The byte order of the field, if it has one of its own.
    pub fn endian(self) -> Option<Endian> {
        match self {
            Self::Number(_, endian) => endian,
            Self::Time(endian) | Self::Complex(_, endian) | Self::Text(_, endian) => Some(endian),
            Self::Bytes(_) => None,
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
            Self::Time(_) => f.write_str("M8"),
            Self::Complex(..) => write!(f, "c{}", self.size()),
            Self::Text(count, _) => write!(f, "U{count}"),
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

/// The location of a field in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// At this offset in bytes, and of this type.
    At(usize, FieldType),
    /// The field of this name in the file's header.
    Named(String),
    /// The number of this index in a row.
    Column(usize),
}

/// A field that orders records, or the column of a table: `OFFSET:TYPE`, `NAME`, `"NAME"` or `COLUMN`, then `:desc` for
/// descending order and `:nulls-first` for a column with its nulls first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// The location of the field.
    pub location: Location,
    /// Whether the field descends.
    pub descending: bool,
    /// Whether nulls come first, in either direction.
    pub nulls_first: bool,
}

/// The fields of one `--key`, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFields(pub Vec<KeyField>);

/// The name of a field as an argument of `--key`. A name that could be read as something else is in double quotes, and
/// quotes in the name are doubled.
pub fn quoted(name: &str) -> String {
    let is_offset = name.bytes().all(|byte| byte.is_ascii_digit());
    if is_offset || name.contains([',', ':']) || name.starts_with(['"', '+', '-']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

/// Length of the name in quotes at the beginning of `text`, in bytes, quotes included. 0 if there is no such name.
fn quoted_length(text: &str) -> Result<usize, String> {
    let Some(mut rest) = text.strip_prefix('"') else { return Ok(0) };
    while let Some((_, after)) = rest.split_once('"') {
        match after.strip_prefix('"') {
            Some(more) => rest = more,
            None => return Ok(text.len() - after.len()),
        }
    }
    Err("expected a double quote after the NAME, too".to_owned())
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Location::At(offset, field_type) => write!(f, "{offset}:{field_type}")?,
            Location::Named(name) => f.write_str(&quoted(name))?,
            Location::Column(column) => write!(f, "{column}")?,
        }
        f.write_str(if self.descending { ":desc" } else { "" })?;
        f.write_str(if self.nulls_first { ":nulls-first" } else { "" })
    }
}

impl FromStr for KeyFields {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut fields, mut rest) = (Vec::new(), Some(text));
        while let Some(text) = rest {
            let name = quoted_length(text)?;
            let end = text[name..].find(',').map(|comma| name + comma);
            let field = &text[..end.unwrap_or(text.len())];
            fields.push(field.parse().map_err(|why| match (&fields[..], end) {
                ([], None) => why,
                _ => format!("field {field:?}: {why}"),
            })?);
            rest = end.map(|end| &text[end + 1..]);
        }
        Ok(Self(fields))
    }
}

impl FromStr for KeyField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected OFFSET:TYPE, such as 0:u32, 8:f64:desc or 0:bytes10, the NAME of a field, in double quotes if it \
             has a comma or colon or is a number, or the number of a column of --rows"
        };
        let quoted = quoted_length(text)?;
        let (first, rest) = text.split_at(if quoted > 0 { quoted } else { text.find(':').unwrap_or(text.len()) });
        let mut parts = rest.split(':');
        let before = parts.next();
        let location = if first.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = first.parse().map_err(|_| expected())?;
            match parts.clone().next() {
                None | Some("desc") => Location::Column(number),
                Some(field_type) => {
                    parts.next();
                    Location::At(number, field_type.parse()?)
                }
            }
        } else if first.starts_with(['+', '-']) || first == "\"\"" {
            return Err(expected().to_owned());
        } else if quoted > 0 {
            Location::Named(first[1..quoted - 1].replace("\"\"", "\""))
        } else {
            Location::Named(first.to_owned())
        };
        let mut field = Self { location, descending: false, nulls_first: false };
        let is_known = before == Some("")
            && parts.all(|part| match part {
                "desc" => !std::mem::replace(&mut field.descending, true),
                "nulls-first" => !std::mem::replace(&mut field.nulls_first, true),
                _ => false,
            });
        if is_known { Ok(field) } else { Err("expected `:desc`, `:nulls-first` or nothing after the field".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_fields_but_not_in_quotes() {
        let names = |text: &str| {
            let KeyFields(fields) = text.parse()?;
            Ok::<_, String>(fields.into_iter().map(|field| format!("{:?}", field.location)).collect::<Vec<_>>())
        };
        let named = |names: &[&str]| Ok(names.iter().map(|name| format!("Named({name:?})")).collect::<Vec<_>>());
        assert_eq!(names("a,b:desc,c\"d"), named(&["a", "b", "c\"d"]));
        assert_eq!(names(r#""a,b","c:d":desc,"0","x""y""#), named(&["a,b", "c:d", "0", "x\"y"]));
        for (text, part) in [
            ("a,,b", "field \"\": expected OFFSET:TYPE"),
            ("0:u8,0:u31", "field \"0:u31\": expected u8"),
            ("\"a", "expected a double quote"),
            ("a,\"b,c", "expected a double quote"),
            ("\"a\"b", "expected `:desc`"),
            ("\"a\":u8", "expected `:desc`"),
            ("\"\"", "expected OFFSET:TYPE"),
        ] {
            assert!(names(text).unwrap_err().starts_with(part), "{text}: {:?}", names(text));
        }
    }

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
            "\"0\"",
            "\"a,b:c\":desc",
            "\"\"\"quoted\"\" and -1\"",
            "12\" disk",
            "price:nulls-first",
            "price:desc:nulls-first",
            "0",
            "12:desc",
        ] {
            assert_eq!(text.parse::<KeyField>().unwrap().to_string(), text);
        }
        assert_eq!("0:float64".parse::<KeyField>().unwrap().to_string(), "0:f64");
        for text in ["", ":u32", "+1:u32", "-1:u32", "0:", "0:u31", "0:bytes", "0:bytes0", "0:bytes-1", "price:u32"] {
            assert!(text.parse::<KeyField>().is_err(), "{text}");
        }
        for text in ["0:u32:", "0:u32:asc", "0:u32:desc:desc", "0:u32 ", "18446744073709551616:u8", "price:desc:desc"] {
            assert!(text.parse::<KeyField>().is_err(), "{text}");
        }
    }
}
