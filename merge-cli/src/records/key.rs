//! Keys as numbers: words of up to 8 bytes, which compare as the records are to be ordered.
//!
//! The fields of a key, one after the other, are turned into bytes that are compared one by one: numbers from their most
//! significant byte to their least, a sign bit flipped, the other bits of a negative float too, and all bits of a field
//! whose greatest comes first. These bytes are cut into words:
//!
//! ```text
//!   fields   ├ i16 ┼───── bytes11 ─────┼── f32 ──┤
//!   words    ├────── 8 ──────┼────── 8 ──────┼ 1 ┤
//! ```

use super::field::{FieldType, KeyField, Layout};
use crate::key_type::KeyType;
use std::cmp::Ordering;

/// Bytes of a word.
const WORD: usize = 8;

/// How to compare the keys of records.
#[derive(Clone, Debug)]
pub struct Key {
    words: Vec<Word>,
}

impl Key {
    /// The keys of this layout, in the opposite order if `reverse`.
    pub fn new(layout: &Layout, reverse: bool) -> Self {
        let mut words = vec![Word::default()];
        let mut room = WORD;
        for field in &layout.fields {
            let mut done = 0;
            while done < field.kind.size() {
                if room == 0 {
                    words.push(Word::default());
                    room = WORD;
                }
                let count = room.min(field.kind.size() - done);
                if let Some(word) = words.last_mut() {
                    word.pieces.push(Piece::new(field, done, count, reverse));
                }
                done += count;
                room -= count;
            }
        }
        Self { words }
    }

    /// The words, at least one.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Bytes of all fields.
    pub fn size(&self) -> usize {
        self.words.iter().map(Word::size).sum()
    }

    /// The key of a record as one number, if it has no more than 16 bytes.
    pub fn whole(&self, record: &[u8]) -> u128 {
        self.words.iter().fold(0, |key, word| key << (8 * word.size()) | u128::from(word.of(record)))
    }

    /// The order of two records of which all words before the word `from` are equal.
    pub fn compare_from(&self, from: usize, a: &[u8], b: &[u8]) -> Ordering {
        let words = self.words[from..].iter();
        words.map(|word| word.of(a).cmp(&word.of(b))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// Up to 8 bytes of a key.
#[derive(Clone, Debug, Default)]
pub struct Word {
    pieces: Vec<Piece>,
}

impl Word {
    /// The number of its bytes.
    pub fn size(&self) -> usize {
        self.pieces.iter().map(|piece| piece.count).sum()
    }

    /// Where its first piece is in a record.
    pub fn begin(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.begin)
    }

    /// This word of a record's key.
    #[inline(always)]
    pub fn of(&self, record: &[u8]) -> u64 {
        match &self.pieces[..] {
            [piece] => piece.of(record),
            pieces => pieces.iter().fold(0, |word: u64, piece| word << (8 * piece.count) | piece.of(record)),
        }
    }
}

/// Bytes of one field in a word.
#[derive(Clone, Debug)]
struct Piece {
    /// Where they are in the record.
    begin: usize,
    count: usize,
    /// Whether the most significant byte is the first one.
    big_endian: bool,
    /// The byte whose first bit tells a negative float.
    sign: usize,
    /// Bits to flip, and those of a negative float.
    flips: [u64; 2],
}

impl Piece {
    /// The `count` bytes of a field after its first `done`, from the most significant on.
    fn new(field: &KeyField, done: usize, count: usize, reverse: bool) -> Self {
        let all = u64::MAX >> (64 - 8 * count);
        let sign_bit = if done == 0 { 1 << (8 * count - 1) } else { 0 };
        let mut flips = match field.kind {
            FieldType::Number(KeyType::F16 | KeyType::F32 | KeyType::F64) => [sign_bit, all],
            FieldType::Number(KeyType::I8 | KeyType::I16 | KeyType::I32 | KeyType::I64) => [sign_bit; 2],
            FieldType::Number(KeyType::U8 | KeyType::U16 | KeyType::U32 | KeyType::U64 | KeyType::U128)
            | FieldType::Bytes(_) => [0; 2],
        };
        if field.descending != reverse {
            flips = flips.map(|flip| flip ^ all);
        }
        let (begin, size) = (field.offset, field.kind.size());
        match field.kind {
            FieldType::Number(_) => {
                Self { begin: begin + size - done - count, count, big_endian: false, sign: begin + size - 1, flips }
            }
            FieldType::Bytes(_) => Self { begin: begin + done, count, big_endian: true, sign: begin, flips },
        }
    }

    #[inline(always)]
    fn of(&self, record: &[u8]) -> u64 {
        let bytes = &record[self.begin..][..self.count];
        let number = match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
        };
        let number = if self.big_endian { number.swap_bytes() >> (64 - 8 * self.count) } else { number };
        number ^ self.flips[usize::from(record[self.sign] >> 7)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fields: &str, reverse: bool) -> Key {
        let fields = fields.split(',').map(|text| text.parse().unwrap()).collect();
        Key::new(&Layout { size: 32, fields }, reverse)
    }

    #[test]
    fn words_are_cut_every_8_bytes_and_not_within() {
        let sizes = |fields| key(fields, false).words().iter().map(Word::size).collect::<Vec<_>>();
        assert_eq!(sizes("0:u8"), [1]);
        assert_eq!(sizes("0:bytes10"), [8, 2]);
        assert_eq!(sizes("0:i16,2:bytes11,16:f32"), [8, 8, 1]);
        assert_eq!(sizes("16:u128,0:u128"), [8, 8, 8, 8]);
    }

    #[test]
    fn words_of_known_records() {
        let record: Vec<u8> = (0..32).collect();
        let words = |fields, reverse| {
            let key = key(fields, reverse);
            key.words().iter().map(|word| word.of(&record)).collect::<Vec<_>>()
        };
        assert_eq!(words("1:bytes10", false), [0x0102030405060708, 0x090a]);
        assert_eq!(words("1:bytes10", true), [!0x0102030405060708, 0xf6f5]);
        assert_eq!(words("1:bytes10:desc", true), [0x0102030405060708, 0x090a]);
        assert_eq!(words("8:u16,1:i32", false), [0x0908_84030201]);
        assert_eq!(words("0:u8,16:u128", false), [0x00_1f1e1d1c1b1a19, 0x18171615_14131211, 0x10]);
    }

    #[test]
    fn a_float_keeps_its_order_where_a_word_ends_within_it() {
        let floats = [-f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f64::INFINITY, f64::NAN];
        let key = key("0:u8,8:f64", false);
        for (i, a) in floats.iter().enumerate() {
            for (j, b) in floats.iter().enumerate() {
                let record = |float: &f64| [[0; 8], float.to_le_bytes()].concat();
                assert_eq!(key.compare_from(0, &record(a), &record(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
