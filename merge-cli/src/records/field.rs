//! The fields of a record that are its key: how they are written on the command line, and whether they fit.

use crate::args::RecordArgs;
use crate::error::{Failure, Result};
use crate::key_type::{FileKey, KeyType, with_key_type};
use clap::ValueEnum;
use std::fmt;
use std::str::FromStr;

/// Bytes of a byte string that a message shows.
const SHOWN: usize = 16;

/// What the bytes of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A number, least significant byte first.
    Number(KeyType),
    /// So many bytes, compared one by one.
    Bytes(usize),
}

impl FieldType {
    /// The number of its bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Number(number) => with_key_type!(number, K => size_of::<K>()),
            Self::Bytes(count) => count,
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Bytes(count) => write!(f, "bytes{count}"),
        }
    }
}

/// A field that records are ordered by: `OFFSET:TYPE`, or `OFFSET:TYPE:desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// Bytes before it in the record.
    pub offset: usize,
    pub kind: FieldType,
    /// Whether the greatest comes first.
    pub descending: bool,
}

impl KeyField {
    /// The field of this record, for a message.
    fn show(&self, record: &[u8]) -> String {
        let bytes = &record[self.offset..][..self.kind.size()];
        match self.kind {
            FieldType::Number(number) => {
                with_key_type!(number, K => bytemuck::pod_read_unaligned::<K>(bytes).show())
            }
            FieldType::Bytes(count) => {
                let digits: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
                format!("0x{digits}{}", if count > SHOWN { "..." } else { "" })
            }
        }
    }
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, kind, descending } = self;
        write!(f, "{offset}:{kind}{}", if *descending { ":desc" } else { "" })
    }
}

impl FromStr for KeyField {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut parts = text.split(':');
        let offset = parts.next().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let offset = offset.and_then(|digits| digits.parse().ok());
        let offset = offset.ok_or("expected OFFSET:TYPE, such as 0:u32, 8:f64:desc or 0:bytes10")?;
        let kind = parts.next().and_then(field_type);
        let kind = kind.ok_or_else(|| {
            let numbers: Vec<_> = KeyType::value_variants().iter().map(KeyType::to_string).collect();
            format!("expected {} or bytesN after the offset, N being at least 1", numbers.join(", "))
        })?;
        let descending = match (parts.next(), parts.next()) {
            (None, _) => false,
            (Some("desc"), None) => true,
            _ => return Err("expected `:desc` or nothing after the type".to_owned()),
        };
        Ok(Self { offset, kind, descending })
    }
}

fn field_type(text: &str) -> Option<FieldType> {
    match text.strip_prefix("bytes") {
        Some(count) => count.parse().ok().filter(|&count| count > 0).map(FieldType::Bytes),
        None => KeyType::from_str(text, true).ok().map(FieldType::Number),
    }
}

/// The size of a record and the fields of its key, which lie in it side by side.
#[derive(Debug)]
pub struct Layout {
    /// Bytes of a record, at least 1.
    pub size: usize,
    /// From the one that decides first.
    pub fields: Vec<KeyField>,
}

impl Layout {
    /// What the command line says, if the file is records.
    pub fn of(args: &RecordArgs) -> Result<Option<Self>> {
        args.record_size.map(|size| Self::new(size, args.key.clone())).transpose()
    }

    fn new(size: usize, fields: Vec<KeyField>) -> Result<Self> {
        let end = |field: &KeyField| field.offset.saturating_add(field.kind.size());
        for (i, field) in fields.iter().enumerate() {
            if end(field) > size {
                let (begin, count) = (field.offset, field.kind.size());
                return Err(Failure::new(format!(
                    "--key {field}: takes {count} bytes from byte {begin} on, expected it to end within the {size} bytes of a \
                     record"
                )));
            }
            if let Some(other) = fields[..i].iter().find(|other| field.offset < end(other) && other.offset < end(field))
            {
                return Err(Failure::new(format!("--key {field}: overlaps {other}, expected fields side by side")));
            }
        }
        Ok(Self { size, fields })
    }

    /// The key of a record, for a message.
    pub fn show(&self, record: &[u8]) -> String {
        let fields: Vec<_> = self.fields.iter().map(|field| field.show(record)).collect();
        fields.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_they_are_read() {
        for text in ["0:u32", "8:f64:desc", "0:bytes10", "90:bytes1:desc", "3:u128", "18446744073709551615:i8"] {
            assert_eq!(text.parse::<KeyField>().unwrap().to_string(), text);
        }
        for text in ["", "u32", "0", ":u32", "+1:u32", "-1:u32", "0:", "0:u31", "0:bytes", "0:bytes0", "0:bytes-1"] {
            assert!(text.parse::<KeyField>().is_err(), "{text}");
        }
        for text in ["0:u32:", "0:u32:asc", "0:u32:desc:desc", "0:u32 ", "18446744073709551616:u8"] {
            assert!(text.parse::<KeyField>().is_err(), "{text}");
        }
    }

    #[test]
    fn fields_that_touch_fit_and_those_that_overlap_do_not() {
        let layout = |fields: &[&str]| Layout::new(16, fields.iter().map(|text| text.parse().unwrap()).collect());
        assert!(layout(&["0:u128"]).is_ok() && layout(&["8:bytes8", "0:f64"]).is_ok());
        assert!(layout(&["1:u128"]).is_err() && layout(&["18446744073709551615:bytes18446744073709551615"]).is_err());
        assert!(layout(&["8:bytes2", "0:bytes9"]).is_err() && layout(&["3:u8", "3:i8"]).is_err());
    }
}
