//! Keys as numbers: words of up to 8 bytes, which compare as the records are to be ordered.
//!
//! The fields of a key, one after the other, are encoded as bytes that are compared one by one: numbers from their most
//! significant byte to their least, a sign bit flipped, the other bits of a negative float too, and all bits of a field
//! whose greatest comes first. These bytes are cut into words:
//!
//! ```text
//!   fields   ├ i16 ┼───── bytes11 ─────┼── f32 ──┤
//!   words    ├────── 8 ──────┼────── 8 ──────┼ 1 ┤
//! ```

use super::layout::{Field, Layout};
use crate::spec::{Endian, FieldType, Kind};
use merge_host::parallel;
use std::cmp::Ordering;

/// Bytes of records that a thread compares at once.
const BLOCK: usize = 1 << 20;
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
        let mut free = WORD;
        for field in &layout.fields {
            let mut done = 0;
            while done < field.size() {
                if free == 0 {
                    words.push(Word::default());
                    free = WORD;
                }
                let count = free.min(field.size() - done);
                if let Some(word) = words.last_mut() {
                    word.pieces.push(Piece::new(field, done, count, reverse));
                }
                done += count;
                free -= count;
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

impl Key {
    /// The first of these records, of `size` bytes each, that comes before the one before it, or, if `strict`, equals it.
    pub fn first_disorder(&self, size: usize, records: &[u8], strict: bool) -> Option<usize> {
        let record = |i: usize| &records[i * size..][..size];
        let is_wrong = |i: &usize| {
            let order = self.compare_from(0, record(i - 1), record(*i));
            order.is_gt() || strict && order.is_eq()
        };
        let (count, block) = (records.len() / size, (BLOCK / size).max(1));
        parallel::find_first((1..count).step_by(block), |begin| (begin..count.min(begin + block)).find(is_wrong))
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
    fn new(field: &Field, done: usize, count: usize, reverse: bool) -> Self {
        let all = u64::MAX >> (64 - 8 * count);
        let sign_bit = if done == 0 { 1 << (8 * count - 1) } else { 0 };
        let (kind, endian) = match field.field_type {
            FieldType::Number(number, _) => (number.kind(), field.endian),
            // Bytes are compared as a number is whose most significant byte comes first.
            FieldType::Bytes(_) => (Kind::Unsigned, Endian::Big),
        };
        let mut flips = match kind {
            Kind::Float => [sign_bit, all],
            Kind::Signed => [sign_bit; 2],
            Kind::Unsigned => [0; 2],
        };
        if field.descending != reverse {
            flips = flips.map(|flip| flip ^ all);
        }
        let (begin, size) = (field.offset, field.size());
        match endian {
            Endian::Little => {
                Self { begin: begin + size - done - count, count, big_endian: false, sign: begin + size - 1, flips }
            }
            Endian::Big => Self { begin: begin + done, count, big_endian: true, sign: begin, flips },
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
    use crate::spec::KeyField;

    fn key(fields: &str, reverse: bool) -> Key {
        let fields: Vec<KeyField> = fields.split(',').map(|text| text.parse().unwrap()).collect();
        let layout = Layout::new(32, &fields, |_| Endian::Little, |name| panic!("{name}")).unwrap();
        Key::new(&layout, reverse)
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
        assert_eq!(words("8:u16be,1:i32be", false), [0x0809_81020304]);
        assert_eq!(words("0:u8,16:u128be", false), [0x00_10111213141516, 0x1718191a_1b1c1d1e, 0x1f]);
        assert_eq!(words("0:u8,16:u128", false), [0x00_1f1e1d1c1b1a19, 0x18171615_14131211, 0x10]);
    }

    #[test]
    fn a_float_keeps_its_order_where_a_word_ends_within_it() {
        let floats = [-f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f64::INFINITY, f64::NAN];
        for fields in ["0:u8,8:f64", "0:u8,8:f64be"] {
            let key = key(fields, false);
            for (i, a) in floats.iter().enumerate() {
                for (j, b) in floats.iter().enumerate() {
                    let bytes =
                        |float: &f64| if fields.ends_with("be") { float.to_be_bytes() } else { float.to_le_bytes() };
                    let record = |float: &f64| [[0; 8], bytes(float)].concat();
                    assert_eq!(key.compare_from(0, &record(a), &record(b)), i.cmp(&j), "{a} {b}");
                }
            }
        }
    }
}
