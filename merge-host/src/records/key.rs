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

use super::field::{Endian, Field, Kind};
use crate::cpu::memory;
use crate::{Error, SortOrder, parallel};
use std::cmp::Ordering;

/// Bytes of records that a thread compares at once.
const BLOCK: usize = 1 << 20;
/// Bytes of a word.
const WORD: usize = 8;
/// The greatest number of bytes of a key.
const MOST_BYTES: usize = 16 << 20;
/// The sizes of floating-point numbers, in bytes.
const FLOATS: [usize; 4] = [2, 4, 8, 16];

/// How to compare records: by some fields, the most significant one first.
///
/// ```
/// use merge_host::records::{Field, RecordKey};
///
/// let key = RecordKey::new(&[Field::signed(1, 2), Field::bytes(0, 1)]);
/// assert_eq!(key.size(), 3);
/// assert!(key.compare(b"x\xff\xff", b"a\0\0").is_lt(), "-1 comes before 0");
/// assert!(key.compare(b"x\0\0", b"a\0\0").is_gt());
/// ```
#[derive(Clone, Debug)]
pub struct RecordKey {
    words: Vec<Word>,
    end: usize,
    size: usize,
    /// Why there are no words.
    fault: Option<Fault>,
}

/// Why a key orders no records.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A field is a floating-point number of that size.
    Float(usize),
    TooLong,
    /// There was not enough memory.
    Memory,
}

impl RecordKey {
    /// The key that consists of these fields. They may overlap, and those of size 0 order nothing.
    ///
    /// Whether records have these fields is not checked here: [`check`](Self::check) does, and so do
    /// [`sort`](super::sort()) and [`argsort`](super::argsort).
    pub fn new(fields: &[Field]) -> Self {
        let end = fields.iter().map(|field| field.offset.saturating_add(field.size)).max().unwrap_or(0);
        let size = fields.iter().map(|field| field.size).fold(0, usize::saturating_add);
        match words_of(fields, size) {
            Ok(words) => Self { words, end, size, fault: None },
            Err(fault) => Self { words: vec![Word::nowhere()], end, size, fault: Some(fault) },
        }
    }

    /// Whether records of `size` bytes can be ordered by this key.
    ///
    /// # Errors
    /// - [`Error::FieldOutOfRecord`] if a field is not within a record.
    /// - [`Error::FloatSize`] if a field is a floating-point number of a size that there is not.
    /// - [`Error::KeyTooLong`] if the fields have more than 16 MiB together.
    /// - [`Error::OutOfHostMemory`] if there was not enough memory for the key.
    ///
    /// ```
    /// use merge_host::Error;
    /// use merge_host::records::{Field, RecordKey};
    ///
    /// let key = RecordKey::new(&[Field::float(0, 4)]);
    /// assert_eq!(key.check(4), Ok(()));
    /// assert_eq!(key.check(3), Err(Error::FieldOutOfRecord { end: 4, size: 3 }));
    /// assert_eq!(RecordKey::new(&[Field::float(0, 3)]).check(4), Err(Error::FloatSize { size: 3 }));
    /// ```
    pub fn check(&self, size: usize) -> Result<(), Error> {
        if self.end > size {
            return Err(Error::FieldOutOfRecord { end: self.end, size });
        }
        match self.fault {
            None => Ok(()),
            Some(Fault::Float(size)) => Err(Error::FloatSize { size }),
            Some(Fault::TooLong) => Err(Error::KeyTooLong { found: self.size, most: MOST_BYTES }),
            Some(Fault::Memory) => Err(memory::out_of_memory::<Word>(self.size.div_ceil(WORD))),
        }
    }

    /// The fewest bytes of a record that has all fields; `usize::MAX` if the number is greater.
    pub fn end(&self) -> usize {
        self.end
    }

    /// The order of two records.
    ///
    /// # Panics
    /// Panics if a record does not have all bytes of the fields, or if [`check`](Self::check) refuses the key for
    /// another reason.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare_from(0, a, b)
    }

    /// The words, at least one.
    pub(super) fn words(&self) -> &[Word] {
        &self.words
    }

    /// Bytes of all fields; `usize::MAX` if the number is greater.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The key of a record as one number, in the order of the records, if it has no more than 16 bytes; otherwise its
    /// last 16 bytes.
    ///
    /// # Panics
    /// As [`compare`](Self::compare).
    #[inline]
    pub fn whole(&self, record: &[u8]) -> u128 {
        self.words.iter().fold(0, |key, word| key << (8 * word.size()) | u128::from(word.of(record)))
    }

    /// The order of two records of which all words before the word `from` are equal.
    pub(super) fn compare_from(&self, from: usize, a: &[u8], b: &[u8]) -> Ordering {
        let words = self.words[from..].iter();
        words.map(|word| word.of(a).cmp(&word.of(b))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The first of these records, of `size` bytes each, that comes before the one before it, or, if `strict`, equals
    /// it. Bytes after the last whole record are ignored.
    ///
    /// Scans the records once at most, on the threads of [`parallel`] loops.
    ///
    /// # Panics
    /// Panics if `size` is 0, and as [`compare`](Self::compare) if there are two records.
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

/// The words of the key that consists of these fields, which have `size` bytes together.
fn words_of(fields: &[Field], size: usize) -> Result<Vec<Word>, Fault> {
    let is_float = |field: &&Field| field.kind == Kind::Float && field.size > 0;
    if let Some(field) = fields.iter().filter(is_float).find(|field| !FLOATS.contains(&field.size)) {
        return Err(Fault::Float(field.size));
    }
    if size > MOST_BYTES || fields.iter().any(|field| field.offset.checked_add(field.size).is_none()) {
        return Err(Fault::TooLong);
    }
    let mut words = memory::reserved(size.div_ceil(WORD).max(1)).map_err(|_| Fault::Memory)?;
    words.push(Word::default());
    let mut free = WORD;
    for field in fields {
        let mut done = 0;
        while done < field.size {
            if free == 0 {
                words.push(Word::default());
                free = WORD;
            }
            let count = free.min(field.size - done);
            if let Some(word) = words.last_mut() {
                memory::push(&mut word.pieces, Piece::new(field, done, count)).map_err(|_| Fault::Memory)?;
            }
            done += count;
            free -= count;
        }
    }
    Ok(words)
}

/// Up to 8 bytes of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pieces: Vec<Piece>,
}

impl Word {
    /// A word that no record has.
    fn nowhere() -> Self {
        let piece = Piece { begin: usize::MAX, count: 1, big_endian: false, sign: 0, flips: [0; 2] };
        Self { pieces: vec![piece] }
    }

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
    fn new(field: &Field, done: usize, count: usize) -> Self {
        let all = u64::MAX >> (64 - 8 * count);
        let sign_bit = if done == 0 { 1 << (8 * count - 1) } else { 0 };
        let mut flips = match field.kind {
            Kind::Float => [sign_bit, all],
            Kind::Signed => [sign_bit; 2],
            Kind::Unsigned | Kind::Bytes => [0; 2],
        };
        if field.order == SortOrder::Descending {
            flips = flips.map(|flip| flip ^ all);
        }
        let Field { offset, size, .. } = *field;
        // Bytes are compared as a number is whose most significant byte comes first.
        let big_endian = field.endian == Endian::Big || field.kind == Kind::Bytes;
        if big_endian {
            Self { begin: offset + done, count, big_endian, sign: offset, flips }
        } else {
            Self { begin: offset + size - done - count, count, big_endian, sign: offset + size - 1, flips }
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

    const BIG: Endian = Endian::Big;

    #[test]
    fn words_are_cut_every_8_bytes_and_not_within() {
        let sizes = |fields: &[Field]| RecordKey::new(fields).words().iter().map(Word::size).collect::<Vec<_>>();
        assert_eq!(sizes(&[Field::unsigned(0, 1)]), [1]);
        assert_eq!(sizes(&[Field::bytes(0, 10)]), [8, 2]);
        assert_eq!(sizes(&[Field::signed(0, 2), Field::bytes(2, 11), Field::float(16, 4)]), [8, 8, 1]);
        assert_eq!(sizes(&[Field::unsigned(16, 16), Field::unsigned(0, 16)]), [8, 8, 8, 8]);
        assert_eq!(sizes(&[]), [0]);
    }

    #[test]
    fn words_of_known_records() {
        let record: Vec<u8> = (0..32).collect();
        let words =
            |fields: &[Field]| RecordKey::new(fields).words().iter().map(|word| word.of(&record)).collect::<Vec<_>>();
        assert_eq!(words(&[Field::bytes(1, 10)]), [0x0102030405060708, 0x090a]);
        assert_eq!(words(&[Field::bytes(1, 10).order(SortOrder::Descending)]), [!0x0102030405060708, 0xf6f5]);
        assert_eq!(words(&[Field::unsigned(8, 2), Field::signed(1, 4)]), [0x0908_84030201]);
        assert_eq!(words(&[Field::unsigned(8, 2).endian(BIG), Field::signed(1, 4).endian(BIG)]), [0x0809_81020304]);
        let byte = Field::unsigned(0, 1);
        let expected = [0x00_10111213141516, 0x1718191a_1b1c1d1e, 0x1f];
        assert_eq!(words(&[byte, Field::unsigned(16, 16).endian(BIG)]), expected);
        let expected = [0x00_1f1e1d1c1b1a19, 0x18171615_14131211, 0x10];
        assert_eq!(words(&[byte, Field::unsigned(16, 16)]), expected);
    }

    #[test]
    fn a_float_keeps_its_order_where_a_word_ends_within_it() {
        let floats = [-f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f64::INFINITY, f64::NAN];
        for endian in [Endian::Little, BIG] {
            let key = RecordKey::new(&[Field::unsigned(0, 1), Field::float(8, 8).endian(endian)]);
            for (i, a) in floats.iter().enumerate() {
                for (j, b) in floats.iter().enumerate() {
                    let bytes = |float: &f64| if endian == BIG { float.to_be_bytes() } else { float.to_le_bytes() };
                    let record = |float: &f64| [[0; 8], bytes(float)].concat();
                    assert_eq!(key.compare(&record(a), &record(b)), i.cmp(&j), "{a} {b}");
                }
            }
        }
    }
}
