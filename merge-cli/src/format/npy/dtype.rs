//! NumPy's dtypes: of numbers, and structured dtypes of records.

use super::Purpose;
use super::literal::{Literal, Problem, Value, quote};
use crate::spec::Endian;
use crate::spec::KeyType;
use clap::ValueEnum;
use std::collections::HashSet;
use std::ops::Range;

/// The greatest number of bytes of a string of characters, or of a row, that orders records.
const MAX_WHOLE: usize = 16 << 20;

/// The type of the items of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// Numbers, and their byte order.
    Number(Number, Endian),
    /// Records.
    Record(Record),
    /// Items that this program does not order: their dtype as the header writes it, and the bytes of an item.
    Other(String, usize),
}

/// A dtype with items that are ordered as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The type of the numbers. Dates and durations are signed numbers of 8 bytes; `NaT` is the least number.
    /// Booleans are bytes.
    pub key_type: KeyType,
    /// NumPy's name without the byte order, such as `u4` or `M8[ns]`.
    pub name: String,
}

impl Number {
    /// Plain numbers of this type. NumPy has no integers of 16 bytes.
    pub fn plain(key_type: KeyType) -> Option<Self> {
        Some(Self { key_type, name: number_name(key_type)? })
    }

    /// The dtype that NumPy calls `name`, and its byte order. `None` unless it is a dtype of numbers.
    fn parse(name: &str) -> Option<(Self, Endian)> {
        if let Some((key_type, endian)) = number(name) {
            return Some((Self::plain(key_type)?, endian));
        }
        let (endian, name) = split_order(name);
        let (key_type, endian) = match name.split_at_checked(2)? {
            ("b1", "") => (KeyType::U8, Endian::Little),
            ("M8" | "m8", unit) if is_unit(unit) => (KeyType::I64, endian),
            _ => return None,
        };
        Some((Self { key_type, name: name.to_owned() }, endian))
    }

    /// Whether the dtype has plain numbers, and not dates, durations or booleans.
    pub fn is_plain(&self) -> bool {
        number_name(self.key_type).as_ref() == Some(&self.name)
    }

    /// Whether the dtype has dates or durations, whose least number is `NaT`.
    pub fn has_nat(&self) -> bool {
        self.name.starts_with(['M', 'm'])
    }

    /// The dtype in this byte order as a header writes it: a Python literal.
    pub fn descr(&self, endian: Endian) -> String {
        let order = match (self.key_type.size(), endian) {
            (1, _) => '|',
            (_, Endian::Little) => '<',
            (_, Endian::Big) => '>',
        };
        format!("'{order}{}'", self.name)
    }
}

/// Whether `text` is the unit of dates or durations, such as `[ns]` or `[25us/3]`, or empty.
fn is_unit(text: &str) -> bool {
    let unit = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    text.is_empty() || unit.is_some_and(|unit| unit.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'/'))
}

/// A structured dtype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Bytes of a record, at least 1.
    pub size: usize,
    /// The named fields, in the order of their offsets. They do not overlap. Padding is not a field.
    pub fields: Vec<Field>,
    /// The order of records without named fields: by one item of the dtypes `c`, `S`, `V` or `U`, or by all items of a
    /// row.
    pub whole: Vec<FieldKind>,
    /// Whether the record is a row of items.
    pub is_row: bool,
    /// The dtype as the header writes it: a Python literal.
    pub descr: String,
}

impl Record {
    /// An item of this type, which orders it as a whole.
    fn of_item(Item { kind, size }: Item, descr: String) -> Self {
        Self { size, fields: Vec::new(), whole: vec![kind], is_row: false, descr }
    }

    /// A row of `items` items of this dtype. `None` for structured dtypes, for no items, and for more than a key can
    /// have.
    pub(super) fn of_row(dtype: &Dtype, items: usize) -> Option<Self> {
        let kind = match dtype {
            Dtype::Number(number, endian) if number.has_nat() => FieldKind::Time(*endian),
            Dtype::Number(number, endian) => FieldKind::Number(number.key_type, *endian),
            Dtype::Record(record) => record.whole.first()?.clone(),
            Dtype::Other(..) => return None,
        };
        let size = items.checked_mul(dtype.size()).filter(|size| (1..=MAX_WHOLE).contains(size))?;
        Some(Self { size, fields: Vec::new(), whole: vec![kind; items], is_row: true, descr: dtype.descr() })
    }

    /// Bytes of an item of the array.
    fn item(&self) -> usize {
        if self.is_row { self.size / self.whole.len() } else { self.size }
    }
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// The offset of the field in the record, in bytes.
    pub offset: usize,
    pub kind: FieldKind,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number.
    Number(KeyType, Endian),
    /// A date or duration: a signed number of 8 bytes, with `NaT` as the least number.
    Time(Endian),
    /// A complex number with parts of this type.
    Complex(KeyType, Endian),
    /// This number of characters, at least 1, each a number of 4 bytes.
    Text(usize, Endian),
    /// This many bytes, which compare from the first to the last: `S`, `V`, booleans, and arrays of `u1`.
    Bytes(usize),
    /// Any other type, as the header writes it.
    Other(String),
}

impl Dtype {
    /// The dtype of the literal `descr`, which is in `text` at its span. Keys must have an order, values need none.
    pub fn parse(descr: &Literal, text: &str, purpose: Purpose) -> Result<Self, Problem> {
        match &descr.value {
            Value::String(name) => {
                if let Some((number, endian)) = Number::parse(name) {
                    return Ok(Self::Number(number, endian));
                }
                if let Some(item) = ordered_item(name) {
                    return Ok(Self::Record(Record::of_item(item, text[descr.span.clone()].to_owned())));
                }
                if purpose == Purpose::Values {
                    let Item { kind: _, size } = named_item(name).map_err(|message| descr.problem(message))?;
                    return Ok(Self::Other(text[descr.span.clone()].to_owned(), size));
                }
                let (name, expected) = (quote(name), number_names());
                Err(descr.problem(format!(
                    "dtype {name} is no type of keys, expected one of {expected}, c8, c16, b1, M8, m8"
                )))
            }
            Value::List(fields) => {
                let (fields, size) = parse_fields(fields, text)?;
                if size == 0 {
                    return Err(descr.problem("a structured dtype of 0 bytes, expected at least 1"));
                }
                check_names(&fields, descr)?;
                let descr = text[descr.span.clone()].to_owned();
                Ok(Self::Record(Record { size, fields, whole: Vec::new(), is_row: false, descr }))
            }
            _ => Err(descr.problem("expected a dtype: a string or a list of fields")),
        }
    }

    /// Bytes of an item of the array. It may be a part of a [`size`](Self::size): a number of a row.
    pub fn item(&self) -> usize {
        match self {
            Self::Record(record) => record.item(),
            Self::Number(..) | Self::Other(..) => self.size(),
        }
    }

    /// Bytes of a number, record or other item.
    pub fn size(&self) -> usize {
        match self {
            Self::Number(number, _) => number.key_type.size(),
            Self::Record(record) => record.size,
            Self::Other(_, size) => *size,
        }
    }

    /// The dtype as a header writes it: a Python literal.
    pub fn descr(&self) -> String {
        match self {
            Self::Number(number, endian) => number.descr(*endian),
            Self::Record(Record { descr, .. }) | Self::Other(descr, _) => descr.clone(),
        }
    }
}

/// The type of an item that NumPy calls `name`, if it is a complex number, or a string of bytes or of characters.
fn ordered_item(name: &str) -> Option<Item> {
    let item = named_item(name).ok()?;
    let (_, plain) = split_order(name);
    match item.kind {
        FieldKind::Complex(..) | FieldKind::Text(..) => Some(item),
        FieldKind::Bytes(_) if plain.starts_with(['S', 'V']) => Some(item),
        _ => None,
    }
}

/// NumPy's short name of a type, without the byte order: the letter of its kind, and its bytes. NumPy has no bfloat16,
/// and packages that add it have items of two bytes, `V`, with a byte order, which plain bytes do not have.
fn number_name(key_type: KeyType) -> Option<String> {
    match key_type {
        KeyType::U128 | KeyType::I128 => None,
        KeyType::Bf16 => Some("V2".to_owned()),
        _ => Some(format!("{}{}", &key_type.name()[..1], key_type.size())),
    }
}

/// The names of NumPy's own types of numbers, separated by commas.
fn number_names() -> String {
    let own = KeyType::value_variants().iter().filter(|&&key_type| key_type != KeyType::Bf16);
    own.filter_map(|&key_type| number_name(key_type)).collect::<Vec<_>>().join(", ")
}

/// The type and the byte order of the numbers that NumPy calls `name`.
fn number(name: &str) -> Option<(KeyType, Endian)> {
    let is_bytes = !name.starts_with(['<', '>']);
    let (endian, name) = split_order(name);
    let has_name = |key_type: &&KeyType| number_name(**key_type).as_deref() == Some(name);
    let key_type = KeyType::value_variants().iter().find(has_name)?;
    if *key_type == KeyType::Bf16 && is_bytes {
        return None;
    }
    // NumPy may write any byte order for numbers of one byte.
    let endian = if key_type.size() == 1 { Endian::Little } else { endian };
    Some((*key_type, endian))
}

/// Splits the sign of the byte order from a name. No sign, `=` and `|` stand for the machine's byte order.
fn split_order(name: &str) -> (Endian, &str) {
    match name.strip_prefix('>') {
        Some(name) => (Endian::Big, name),
        None => (Endian::Little, name.strip_prefix(['<', '=', '|']).unwrap_or(name)),
    }
}

/// A type inside a record, and its size in bytes.
struct Item {
    kind: FieldKind,
    size: usize,
}

/// The named fields of a structured dtype, and the size of a record in bytes.
fn parse_fields(list: &[Literal], text: &str) -> Result<(Vec<Field>, usize), Problem> {
    let mut fields = Vec::new();
    let mut size = 0_usize;
    for literal in list {
        let (name, dtype, shape) = match &literal.value {
            Value::Tuple(parts) if let [name, dtype] = &parts[..] => (name, dtype, None),
            Value::Tuple(parts) if let [name, dtype, shape] = &parts[..] => (name, dtype, Some(shape)),
            _ => return Err(literal.problem("expected a field: (name, dtype) or (name, dtype, shape)")),
        };
        let item = parse_item(dtype, shape, text)?;
        let name = field_name(name)?;
        // Padding has no name.
        if !name.is_empty() {
            fields.push(Field { name: name.to_owned(), offset: size, kind: item.kind });
        }
        let end = size.checked_add(item.size).filter(|&end| i32::try_from(end).is_ok());
        size = end.ok_or_else(|| literal.problem("the record is larger than 2 GiB"))?;
    }
    Ok((fields, size))
}

/// The name of a field, which may have a title before it.
fn field_name(literal: &Literal) -> Result<&str, Problem> {
    match &literal.value {
        Value::String(name) => Ok(name),
        Value::Tuple(parts) if let [_, Literal { value: Value::String(name), .. }] = &parts[..] => Ok(name),
        _ => Err(literal.problem("expected a field's name: a string, or (title, name)")),
    }
}

fn check_names(fields: &[Field], descr: &Literal) -> Result<(), Problem> {
    let mut names = HashSet::new();
    match fields.iter().find(|field| !names.insert(&field.name)) {
        Some(Field { name, .. }) => Err(descr.problem(format!("two fields have the name {}", quote(name)))),
        None => Ok(()),
    }
}

/// The type of a field, with the shape of its arrays if it holds arrays.
fn parse_item(dtype: &Literal, shape: Option<&Literal>, text: &str) -> Result<Item, Problem> {
    let source = |span: Range<usize>| FieldKind::Other(text[span].to_owned());
    let Item { kind, size } = match &dtype.value {
        Value::String(name) => named_item(name).map_err(|message| dtype.problem(message))?,
        Value::List(fields) => Item { size: parse_fields(fields, text)?.1, kind: source(dtype.span.clone()) },
        _ => return Err(dtype.problem("expected a dtype: a string or a list of fields")),
    };
    let Some(shape) = shape else { return Ok(Item { kind, size }) };
    let count = item_count(shape)?;
    let total = count.checked_mul(size).ok_or_else(|| shape.problem("the record is larger than 2 GiB"))?;
    let kind = match kind {
        kind if count == 1 => kind,
        FieldKind::Number(KeyType::U8, _) | FieldKind::Bytes(_) if total > 0 => FieldKind::Bytes(total),
        _ => source(dtype.span.start..shape.span.end),
    };
    Ok(Item { kind, size: total })
}

/// The type that NumPy calls `name`, or why it cannot be in a record.
fn named_item(name: &str) -> Result<Item, String> {
    if let Some((key_type, endian)) = number(name) {
        return Ok(Item { kind: FieldKind::Number(key_type, endian), size: key_type.size() });
    }
    let (endian, plain) = split_order(name);
    let (letter, rest) = plain.split_at_checked(1).unwrap_or_default();
    let (count, unit) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
    let count = count.parse().ok();
    let other = |size| Item { kind: FieldKind::Other(format!("'{name}'")), size };
    match (letter, count, unit) {
        ("O", _, _) => Err(format!("dtype {} is Python objects, which are not in the file as they are", quote(name))),
        ("m" | "M", Some(8), _) => Ok(Item { kind: FieldKind::Time(endian), size: 8 }),
        ("b", Some(1), "") => Ok(Item { kind: FieldKind::Bytes(1), size: 1 }),
        ("S" | "V" | "a", Some(size @ 1..), "") => Ok(Item { kind: FieldKind::Bytes(size), size }),
        ("S" | "V" | "a", Some(0), "") => Ok(other(0)),
        ("U", Some(count), "") => {
            let size = count.saturating_mul(size_of::<u32>());
            let has_order = (1..=MAX_WHOLE).contains(&size);
            Ok(if has_order { Item { kind: FieldKind::Text(count, endian), size } } else { other(size) })
        }
        ("c", Some(8), "") => Ok(Item { kind: FieldKind::Complex(KeyType::F32, endian), size: 8 }),
        ("c", Some(16), "") => Ok(Item { kind: FieldKind::Complex(KeyType::F64, endian), size: 16 }),
        ("f" | "c", Some(size @ (8..=32)), "") => Ok(other(size)),
        _ => Err(format!("dtype {} is not known", quote(name))),
    }
}

/// The number of items in an array of this shape.
fn item_count(shape: &Literal) -> Result<usize, Problem> {
    let length = |literal: &Literal| match literal.value {
        Value::Number(length) => {
            usize::try_from(length).map_err(|_| literal.problem("the record is larger than 2 GiB"))
        }
        _ => Err(literal.problem("expected a length")),
    };
    let lengths = match &shape.value {
        Value::Tuple(lengths) => lengths.iter().map(length).collect::<Result<Vec<_>, _>>()?,
        _ => vec![length(shape)?],
    };
    let count = lengths.iter().try_fold(1_usize, |count, &length| count.checked_mul(length));
    count.ok_or_else(|| shape.problem("the record is larger than 2 GiB"))
}
