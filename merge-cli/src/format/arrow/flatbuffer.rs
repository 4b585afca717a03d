//! FlatBuffers, the encoding of Arrow's metadata, as far as Arrow uses them.
//!
//! ```text
//!   root        table                            vtable
//!   u32 ──────▶ i32 to its vtable, fields …      u16 size, u16 size of the table, u16 offset of each field in it
//! ```
//!
//! A field is a number, or a `u32` with the distance to a string, a table or a vector. Every read is checked against
//! the ends of the buffer and takes constant time, so that arbitrary bytes can be read safely.

use std::fmt;

/// The error of a damaged buffer: an offset in it points outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata is damaged")
    }
}

impl From<Damaged> for String {
    fn from(damaged: Damaged) -> Self {
        damaged.to_string()
    }
}

type Result<T> = std::result::Result<T, Damaged>;

/// A table in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    buffer: &'a [u8],
    begin: usize,
}

impl<'a> Table<'a> {
    /// The root table. The buffer begins with the distance to it.
    pub fn root(buffer: &'a [u8]) -> Result<Self> {
        Ok(Self { buffer, begin: follow(buffer, 0)? })
    }

    /// The offset of field `slot`, if the table has it.
    fn field(self, slot: usize) -> Result<Option<usize>> {
        let distance = i64::from(i32::from_le_bytes(array(self.buffer, self.begin)?));
        let vtable = usize::try_from(self.begin as i64 - distance).map_err(|_| Damaged)?;
        let size = usize::from(u16::from_le_bytes(array(self.buffer, vtable)?));
        // Two sizes precede the offsets.
        let entry = 2 * (slot + 2);
        if entry + 2 > size {
            return Ok(None);
        }
        let offset = usize::from(u16::from_le_bytes(array(self.buffer, vtable + entry)?));
        Ok((offset > 0).then_some(self.begin + offset))
    }

    /// The bytes of a number. They are 0 if the table does not have the field.
    fn number<const N: usize>(self, slot: usize) -> Result<[u8; N]> {
        self.field(slot)?.map_or(Ok([0; N]), |offset| array(self.buffer, offset))
    }

    pub fn u8(self, slot: usize) -> Result<u8> {
        self.number(slot).map(u8::from_le_bytes)
    }

    pub fn i16(self, slot: usize) -> Result<i16> {
        self.number(slot).map(i16::from_le_bytes)
    }

    pub fn i32(self, slot: usize) -> Result<i32> {
        self.number(slot).map(i32::from_le_bytes)
    }

    pub fn i64(self, slot: usize) -> Result<i64> {
        self.number(slot).map(i64::from_le_bytes)
    }

    pub fn table(self, slot: usize) -> Result<Option<Self>> {
        let Some(offset) = self.field(slot)? else { return Ok(None) };
        Ok(Some(Self { begin: follow(self.buffer, offset)?, ..self }))
    }

    /// The bytes of a string, or of a vector of structs of `size` bytes each. Empty if the table does not have the
    /// field.
    pub fn bytes(self, slot: usize, size: usize) -> Result<&'a [u8]> {
        let Some(offset) = self.field(slot)? else { return Ok(&[]) };
        let (count, begin) = vector(self.buffer, follow(self.buffer, offset)?)?;
        let end = count.checked_mul(size).and_then(|length| begin.checked_add(length)).ok_or(Damaged)?;
        self.buffer.get(begin..end).ok_or(Damaged)
    }

    /// The tables of a vector.
    pub fn tables(self, slot: usize) -> Result<impl ExactSizeIterator<Item = Result<Self>>> {
        let (count, begin) = match self.field(slot)? {
            Some(offset) => vector(self.buffer, follow(self.buffer, offset)?)?,
            None => (0, 0),
        };
        if count > (self.buffer.len() - begin) / 4 {
            return Err(Damaged);
        }
        Ok((0..count).map(move |i| Ok(Self { begin: follow(self.buffer, begin + 4 * i)?, ..self })))
    }
}

fn array<const N: usize>(buffer: &[u8], offset: usize) -> Result<[u8; N]> {
    buffer.get(offset..).and_then(|rest| rest.first_chunk()).copied().ok_or(Damaged)
}

/// The target of the distance at `offset`, as an offset.
fn follow(buffer: &[u8], offset: usize) -> Result<usize> {
    Ok(offset + u32::from_le_bytes(array(buffer, offset)?) as usize)
}

/// The number of elements of the vector at `offset`, and the offset of the first element, at most the end of the
/// buffer.
fn vector(buffer: &[u8], offset: usize) -> Result<(usize, usize)> {
    Ok((u32::from_le_bytes(array(buffer, offset)?) as usize, offset + 4))
}

/// The fields of a table to encode, and their slots.
pub type Fields<'a> = Vec<(usize, Value<'a>)>;

/// A field of a table to encode.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    U8(u8),
    I16(i16),
    I32(i32),
    I64(i64),
    String(&'a [u8]),
    Table(Fields<'a>),
    Tables(Vec<Fields<'a>>),
    /// Structs of three or fewer numbers of 8 bytes each, as their bytes, and the number of structs.
    Structs(Vec<u8>, usize),
}

impl Value<'_> {
    /// The bytes of a number, or zeros that a distance will replace.
    fn inline(&self) -> Vec<u8> {
        match self {
            Self::U8(number) => number.to_le_bytes().to_vec(),
            Self::I16(number) => number.to_le_bytes().to_vec(),
            Self::I32(number) => number.to_le_bytes().to_vec(),
            Self::I64(number) => number.to_le_bytes().to_vec(),
            Self::String(_) | Self::Table(_) | Self::Tables(_) | Self::Structs(..) => vec![0; 4],
        }
    }
}

/// A buffer with this root table. Its length is a multiple of 8. Its offset in a file must be one, too.
pub fn encode(root: &Fields) -> Vec<u8> {
    let mut buffer = vec![0; 4];
    let table = push_table(&mut buffer, root);
    set_distance(&mut buffer, 0, table);
    align(&mut buffer, 8, 0);
    buffer
}

/// Appends zeros, so that `ahead` further bytes will end at a multiple of `alignment`.
fn align(buffer: &mut Vec<u8>, alignment: usize, ahead: usize) {
    buffer.resize((buffer.len() + ahead).next_multiple_of(alignment) - ahead, 0);
}

/// Writes the distance to `target` at `offset`.
fn set_distance(buffer: &mut [u8], offset: usize, target: usize) {
    buffer[offset..][..4].copy_from_slice(&((target - offset) as u32).to_le_bytes());
}

/// Appends the vtable, the table, and then all targets of its fields. Returns the table's offset.
fn push_table(buffer: &mut Vec<u8>, fields: &Fields) -> usize {
    let slots = fields.iter().map(|(slot, _)| slot + 1).max().unwrap_or(0);
    let vtable_size = 2 * (slots + 2);
    align(buffer, 8, vtable_size);
    let vtable = buffer.len();
    let table = vtable + vtable_size;
    buffer.resize(table, 0);
    buffer.extend((vtable_size as u32).to_le_bytes());
    for (slot, value) in fields {
        let bytes = value.inline();
        align(buffer, bytes.len(), 0);
        let offset = buffer.len() - table;
        set_u16(buffer, vtable + 2 * (slot + 2), offset);
        buffer.extend(bytes);
    }
    let table_size = buffer.len() - table;
    set_u16(buffer, vtable, vtable_size);
    set_u16(buffer, vtable + 2, table_size);
    for (slot, value) in fields {
        let entry = vtable + 2 * (slot + 2);
        let field = table + usize::from(u16::from_le_bytes([buffer[entry], buffer[entry + 1]]));
        push_target(buffer, field, value);
    }
    table
}

fn set_u16(buffer: &mut [u8], offset: usize, number: usize) {
    buffer[offset..][..2].copy_from_slice(&(number as u16).to_le_bytes());
}

/// Appends the target of the field at the offset `field`, and writes the distance to the target there.
fn push_target(buffer: &mut Vec<u8>, field: usize, value: &Value) {
    let target = match value {
        Value::U8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => return,
        Value::Table(fields) => push_table(buffer, fields),
        Value::String(bytes) => {
            let vector = push_vector(buffer, bytes.len(), bytes);
            // Strings end with a zero byte that is not part of their length.
            buffer.push(0);
            vector
        }
        Value::Structs(bytes, count) => push_vector(buffer, *count, bytes),
        Value::Tables(tables) => {
            let vector = push_vector(buffer, tables.len(), &vec![0; 4 * tables.len()]);
            for (i, fields) in tables.iter().enumerate() {
                let table = push_table(buffer, fields);
                set_distance(buffer, vector + 4 * (i + 1), table);
            }
            vector
        }
    };
    set_distance(buffer, field, target);
}

/// Appends a vector with its first element at a multiple of 8. Returns the vector's offset.
fn push_vector(buffer: &mut Vec<u8>, count: usize, bytes: &[u8]) -> usize {
    align(buffer, 8, 4);
    let vector = buffer.len();
    buffer.extend((count as u32).to_le_bytes());
    buffer.extend(bytes);
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let inner = vec![(1, Value::I16(-5)), (0, Value::String(b"a name"))];
        encode(&vec![
            (0, Value::U8(7)),
            (2, Value::I64(i64::MIN)),
            (3, Value::Table(inner.clone())),
            (4, Value::Tables(vec![inner, Vec::new()])),
            (5, Value::Structs((0..48).collect(), 2)),
            (6, Value::I32(-1)),
        ])
    }

    #[test]
    fn a_buffer_reads_as_it_was_encoded() {
        let buffer = example();
        assert_eq!(buffer.len() % 8, 0);
        let root = Table::root(&buffer).unwrap();
        assert_eq!((root.u8(0), root.i64(1), root.i64(2)), (Ok(7), Ok(0), Ok(i64::MIN)));
        assert_eq!((root.i32(6), root.i32(7), root.i32(700)), (Ok(-1), Ok(0), Ok(0)));
        let inner = root.table(3).unwrap().unwrap();
        assert_eq!((inner.bytes(0, 1), inner.i16(1)), (Ok(&b"a name"[..]), Ok(-5)));
        let tables: Vec<_> = root.tables(4).unwrap().map(Result::unwrap).collect();
        assert_eq!((tables.len(), tables[0].i16(1), tables[1].i16(1)), (2, Ok(-5), Ok(0)));
        let structs = root.bytes(5, 24).unwrap();
        assert!(structs.iter().copied().eq(0..48));
        assert_eq!((structs.as_ptr() as usize - buffer.as_ptr() as usize) % 8, 0);
        assert!(root.table(1).unwrap().is_none() && root.tables(1).unwrap().len() == 0);
        assert_eq!(root.bytes(1, 8), Ok(&[][..]));
    }

    #[test]
    fn buffers_that_end_early_are_damaged() {
        let buffer = example();
        let read = |buffer| -> Result<()> {
            let root = Table::root(buffer)?;
            root.i32(6)?;
            root.bytes(5, 24)?;
            root.table(3)?.ok_or(Damaged)?.bytes(0, 1)?;
            root.tables(4)?.try_for_each(|table| table?.i16(1).map(drop))
        };
        assert_eq!(read(&buffer), Ok(()));
        let needed = (0..buffer.len()).rev().find(|&length| read(&buffer[..length]).is_err()).unwrap();
        assert!(needed > buffer.len() - 16);
        assert!((0..needed).all(|length| read(&buffer[..length]) == Err(Damaged)));
    }
}
