//! The layout of records: their size, and the fields that order them.

use super::Key;
use crate::coding::{Coding, KeyOrder, with_word};
use crate::os::memory;
use crate::say::error::{Failure, Result, shown};
use crate::spec::{Endian, FieldType, KeyField, KeyType, Kind, Location, quoted};
use merge_host::{SortOrder, records};

/// Bytes or characters of a string that a message shows.
const SHOWN: usize = 16;
/// Bytes of a character.
const CHARACTER: usize = size_of::<u32>();

/// A field that orders records, with its offset in the record.
#[derive(Clone, Debug)]
pub struct Field {
    /// The offset of the field in the record, in bytes.
    pub offset: usize,
    /// The type of the field.
    pub field_type: FieldType,
    /// The byte order of a number.
    pub endian: Endian,
    /// Whether the field descends.
    pub descending: bool,
}

impl Field {
    /// Bytes of the field.
    pub fn size(&self) -> usize {
        self.field_type.size()
    }

    /// The offset of the first byte behind the field.
    fn end(&self) -> usize {
        self.offset.saturating_add(self.size())
    }

    /// The field as fields of the library, in the opposite of its direction if `order` descends.
    fn of_key(&self, order: KeyOrder) -> Vec<records::Field> {
        let (offset, size) = (self.offset, self.size());
        let fields = match self.field_type {
            FieldType::Bytes(_) => vec![records::Field::bytes(offset, size)],
            FieldType::Time(_) => vec![records::Field::time(offset)],
            FieldType::Number(KeyType::Bf16, _) => vec![records::Field::bfloat16(offset)],
            FieldType::Number(number, _) => vec![match number.kind() {
                Kind::Unsigned => records::Field::unsigned(offset, size),
                Kind::Signed => records::Field::signed(offset, size),
                Kind::Float => records::Field::float(offset, size),
            }],
            FieldType::Complex(part, _) => {
                let parts = [offset, offset + part.size()];
                // NumPy orders numbers without NaNs first, then those with one in the imaginary part.
                let [re, im] = parts.map(|offset| records::Field::is_nan(offset, part.size()));
                [re, im].into_iter().chain(parts.map(|offset| records::Field::float(offset, part.size()))).collect()
            }
            FieldType::Text(count, _) => {
                (0..count).map(|i| records::Field::unsigned(offset + i * CHARACTER, CHARACTER)).collect()
            }
        };
        let endian = match self.endian {
            Endian::Little => records::Endian::Little,
            Endian::Big => records::Endian::Big,
        };
        let reverse = order.direction == SortOrder::Descending;
        let direction = if self.descending == reverse { SortOrder::Ascending } else { SortOrder::Descending };
        fields.into_iter().map(|field| field.endian(endian).order(direction).nans(order.nans)).collect()
    }

    /// Sets the `bytes` of the field to the value in `text`. An error says what is expected. `rest` is the value of the
    /// bytes that a prefix of a byte string lacks, if the field may be a prefix.
    fn parse(&self, text: &str, bytes: &mut [u8], rest: Option<u8>) -> std::result::Result<(), String> {
        let number = |key_type: KeyType, name: &str, text| {
            key_type.parse(text).ok_or_else(|| format!("a number of type {name}"))
        };
        match self.field_type {
            FieldType::Bytes(count) => {
                let least = if rest.is_some() { "1 to " } else { "" };
                parse_digits(text, bytes, rest).ok_or_else(|| format!("{least}{} hexadecimal digits", 2 * count))?;
            }
            FieldType::Text(count, _) => {
                if text.chars().count() > count {
                    return Err(format!("up to {count} characters"));
                }
                bytes.chunks_mut(CHARACTER).zip(text.chars()).for_each(|(to, code)| self.put(code.into(), to));
            }
            FieldType::Complex(part, _) => {
                let failure = || format!("a complex number, such as 1.5-2j, with parts of type {part}");
                let parts = complex_parts(text).and_then(|(re, im)| Some([part.parse(re)?, part.parse(im)?]));
                let parts = parts.ok_or_else(failure)?;
                bytes.chunks_mut(part.size()).zip(parts).for_each(|(to, part)| self.put(part, to));
            }
            FieldType::Time(_) if text == "NaT" => self.put(i64::MIN as u128, bytes),
            FieldType::Time(_) => self.put(number(KeyType::I64, "i64, or NaT", text)?, bytes),
            FieldType::Number(key_type, _) => self.put(number(key_type, key_type.name(), text)?, bytes),
        }
        Ok(())
    }

    /// Sets `bytes` to the bits of a number, in the byte order of the field.
    fn put(&self, bits: u128, bytes: &mut [u8]) {
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
        if self.endian == Endian::Big {
            bytes.reverse();
        }
    }

    /// The field of this record, for a message.
    fn show(&self, record: &[u8]) -> String {
        let bytes = &record[self.offset..][..self.size()];
        let number = |key_type: KeyType, has_nat, bytes: &[u8]| {
            let coding = Coding { has_nat, ..Coding::total(key_type, self.endian) };
            with_word!(key_type.size(), W => {
                let mut number = bytemuck::pod_read_unaligned::<W>(bytes);
                coding.encode(std::slice::from_mut(&mut number));
                coding.show(number)
            })
        };
        match self.field_type {
            FieldType::Number(key_type, _) => number(key_type, false, bytes),
            FieldType::Time(_) => number(KeyType::I64, true, bytes),
            FieldType::Complex(part, _) => {
                let (re, im) = bytes.split_at(part.size());
                format!("({}, {}j)", number(part, false, re), number(part, false, im))
            }
            FieldType::Text(count, _) => {
                let code = if self.endian == Endian::Big { u32::from_be_bytes } else { u32::from_le_bytes };
                let codes = bytes.as_chunks().0.iter().take(SHOWN).map(|bytes| char::from_u32(code(*bytes)));
                let text: String = codes.map(|code| code.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
                format!("{:?}{}", text.trim_end_matches('\0'), if count > SHOWN { "..." } else { "" })
            }
            FieldType::Bytes(count) => {
                let digits: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
                format!("0x{digits}{}", if count > SHOWN { "..." } else { "" })
            }
        }
    }
}

/// The real and the imaginary part of a complex number as Python writes it: `1.5-2j`, `1.5` or `2j`.
fn complex_parts(text: &str) -> Option<(&str, &str)> {
    let Some(sum) = text.strip_suffix('j') else { return Some((text, "0")) };
    // The sign of an exponent does not divide the parts.
    let is_sign = |&(at, sign): &(usize, char)| "+-".contains(sign) && !sum[..at].ends_with(['e', 'E']);
    let (re, im) = sum.split_at(sum.char_indices().rev().find(is_sign).map_or(0, |(at, _)| at));
    Some((if re.is_empty() { "0" } else { re }, im))
}

/// Sets `bytes` to the hexadecimal digits in `text`. If there are fewer digits, the other bits are those of `rest`.
fn parse_digits(text: &str, bytes: &mut [u8], rest: Option<u8>) -> Option<()> {
    let most = 2 * bytes.len();
    let least = if rest.is_some() { 1 } else { most };
    if !(least..=most).contains(&text.len()) {
        return None;
    }
    bytes.fill(rest.unwrap_or(0));
    for (i, digit) in text.chars().enumerate() {
        let (digit, byte) = (digit.to_digit(16)? as u8, &mut bytes[i / 2]);
        *byte = if i % 2 == 0 { digit << 4 | *byte & 0x0f } else { *byte & 0xf0 | digit };
    }
    Some(())
}

/// The size of a record and the fields of its key, which do not overlap.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Bytes of a record, at least 1.
    pub size: usize,
    /// The fields, the most significant field first.
    pub fields: Vec<Field>,
}

impl Layout {
    /// Records of `size` bytes, ordered by `fields`. A number without a byte order of its own has the byte order that
    /// `endian_at` returns for its offset. `find` finds the offset and the type of a field.
    pub fn new(
        size: usize,
        fields: &[KeyField],
        endian_at: impl Fn(usize) -> Endian,
        find: impl Fn(&Location) -> Result<(usize, FieldType)>,
    ) -> Result<Self> {
        let mut found: Vec<Field> = Vec::new();
        for typed in fields {
            let (offset, field_type) = find(&typed.location)?;
            let endian = field_type.endian().unwrap_or_else(|| endian_at(offset));
            let field = Field { offset, field_type, endian, descending: typed.descending };
            if field.end() > size {
                let count = field.size();
                return Err(Failure::new(format!(
                    "--key {typed}: takes {count} bytes from byte {offset} on, expected it to end within the {size} \
                     bytes of a record"
                )));
            }
            let overlap = found.iter().position(|other| field.offset < other.end() && other.offset < field.end());
            if let Some(other) = overlap.map(|i| &fields[i]) {
                let why = match other.location == typed.location {
                    true => "is there twice, expected each field once".to_owned(),
                    false => format!("overlaps {other}, expected fields that share no byte"),
                };
                return Err(Failure::new(format!("--key {typed}: {why}")));
            }
            found.push(field);
        }
        Ok(Self { size, fields: found })
    }

    /// Keys of this coding as records of one field.
    pub fn of_keys(coding: Coding) -> Self {
        let Coding { key_type, endian, order: _, has_nat } = coding;
        let field_type = if has_nat { FieldType::Time(endian) } else { FieldType::Number(key_type, Some(endian)) };
        Self { size: key_type.size(), fields: vec![Field { offset: 0, field_type, endian, descending: false }] }
    }

    /// The key that compares the records, each field in the opposite of its direction if `order` descends.
    pub fn key(&self, order: KeyOrder) -> Key {
        let fields: Vec<records::Field> = self.fields.iter().flat_map(|field| field.of_key(order)).collect();
        Key::new(&fields)
    }

    /// The number of records in `length` bytes of the file at `path`.
    pub fn count(&self, path: &std::path::Path, length: u64) -> Result<u64> {
        let size = self.size as u64;
        if length.is_multiple_of(size) {
            return Ok(length / size);
        }
        let expected = format!("a multiple of {size}, the size of a record");
        Err(Failure::file(path, format!("length is {length} bytes, expected {expected}")))
    }

    /// Two records with the first key and the last key that `text` stands for: the values of all fields, with commas
    /// between them. The keys differ if the last field is a byte string, and `text` has a prefix of it.
    pub fn parse(&self, text: &str) -> Result<[Vec<u8>; 2]> {
        let failure = |expected: String| Failure::new(format!("KEY: expected {expected}, found {}", shown(text)));
        let count = self.fields.len();
        let values: Vec<&str> = if count == 1 { vec![text] } else { text.split(',').collect() };
        if values.len() != count {
            let each = "one for each field of --key";
            return Err(failure(format!("{count} values with commas between them, {each}")));
        }
        let mut ends = [vec![], vec![]];
        for (record, rest) in ends.iter_mut().zip([0, u8::MAX]) {
            *record = memory::zeroed(self.size as u64, "a record")?;
            for (i, (field, value)) in self.fields.iter().zip(&values).enumerate() {
                let rest = Some(rest).filter(|_| i + 1 == count);
                let of_field = if count > 1 { format!(" as value {}", i + 1) } else { String::new() };
                let parsed = field.parse(value, &mut record[field.offset..field.end()], rest);
                parsed.map_err(|expected| failure(expected + &of_field))?;
            }
        }
        Ok(ends)
    }

    /// The key of a record, for a message.
    pub fn show(&self, record: &[u8]) -> String {
        let fields: Vec<_> = self.fields.iter().map(|field| field.show(record)).collect();
        fields.join(",")
    }
}

/// The offset and the type of a field in a file that has neither names of fields nor columns.
pub fn no_names(location: &Location) -> Result<(usize, FieldType)> {
    let message = match location {
        Location::At(offset, field_type) => return Ok((*offset, *field_type)),
        Location::Named(name) => format!(
            "--key {}: names a field, which only an .npy file with a structured dtype has: expected OFFSET:TYPE, such \
             as 8:f64",
            quoted(name)
        ),
        Location::Column(column) => format!(
            "--key {column}: is a column, which only --rows of an .npy array have: expected OFFSET:TYPE, such as \
             {column}:f64"
        ),
    };
    Err(Failure::new(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCENDING: KeyOrder = KeyOrder { direction: SortOrder::Descending, ..KeyOrder::TOTAL };

    fn layout(size: usize, fields: &[&str], endian: Endian) -> Result<Layout> {
        let fields: Vec<KeyField> = fields.iter().map(|text| text.parse().unwrap()).collect();
        Layout::new(size, &fields, |_| endian, no_names)
    }

    #[test]
    fn fields_that_touch_fit_and_those_that_overlap_do_not() {
        let layout = |fields: &[&str]| layout(16, fields, Endian::Little);
        assert!(layout(&["0:u128"]).is_ok() && layout(&["8:bytes8", "0:f64"]).is_ok());
        assert!(layout(&["1:u128"]).is_err() && layout(&["18446744073709551615:bytes18446744073709551615"]).is_err());
        assert!(layout(&["8:bytes2", "0:bytes9"]).is_err() && layout(&["3:u8", "3:i8"]).is_err());
        assert!(layout(&["price"]).is_err());
    }

    #[test]
    fn fields_are_shown_in_their_byte_order() {
        let record = [0, 0, 1, 2, 0xff, 0xfe, b'x', 0];
        let show = |fields: &[&str], endian| layout(8, fields, endian).unwrap().show(&record);
        assert_eq!(show(&["0:u32", "4:i16"], Endian::Big), "258,-2");
        assert_eq!(show(&["0:u32le", "4:i16le", "6:bytes2"], Endian::Big), "33619968,-257,0x7800");
    }

    #[test]
    fn keys_are_parsed_in_the_byte_orders_of_their_fields() {
        let parse = |fields: &[&str], text| layout(8, fields, Endian::Big).unwrap().parse(text).ok();
        let whole = |record: [u8; 8]| Some([record.to_vec(), record.to_vec()]);
        assert_eq!(parse(&["0:u16", "4:i16le"], "258,-2"), whole([1, 2, 0, 0, 0xfe, 0xff, 0, 0]));
        assert_eq!(parse(&["6:bytes2", "0:u8"], "aB01,7"), whole([7, 0, 0, 0, 0, 0, 0xab, 1]));
        let prefix = |low, high| Some([vec![0, 0, 0xab, low, 0, 0, 0, 0], vec![0, 0, 0xab, high, 0xff, 0, 0, 0]]);
        assert_eq!(parse(&["2:bytes3"], "ab"), prefix(0, 0xff));
        assert_eq!(parse(&["2:bytes3"], "abc"), prefix(0xc0, 0xcf));
        for text in ["", "abcdef0", "ag", "ab,", "ä"] {
            assert_eq!(parse(&["2:bytes3"], text), None, "{text}");
        }
        assert_eq!(parse(&["2:bytes3", "0:u8"], "ab,1"), None);
        assert_eq!(parse(&["2:bytes3", "0:u8"], "abcdef,256"), None);
    }

    #[test]
    fn keys_have_the_types_and_orders_of_the_fields() {
        let record: Vec<u8> = (0xf0..=0xff).collect();
        let whole = |fields: &[&str], reverse| {
            let order = if reverse { DESCENDING } else { KeyOrder::TOTAL };
            layout(16, fields, Endian::Little).unwrap().key(order).part(0, &record)
        };
        assert_eq!(whole(&["1:bytes10"], false), 0xf1f2f3f4f5f6f7f8f9fa);
        assert_eq!(whole(&["1:bytes3"], true), 0x0e0d0c);
        assert_eq!(whole(&["1:bytes3:desc"], true), 0xf1f2f3);
        assert_eq!(whole(&["8:u16", "0:i32"], false), 0xf9f8_73f2f1f0);
        assert_eq!(whole(&["8:u16be:desc", "0:f32be"], false), 0x0706_0f0e0d0c);
    }
}
