//! Keys of records as words: numbers of up to 8 bytes that have the order of the records.
//!
//! The fields of a key are encoded in sequence, as bytes that are compared one by one. A number is encoded from its
//! most significant byte to its least significant byte. The sign bit of a signed number or a float is flipped, and in a
//! negative float all other bits are, too. In a descending field all bits are flipped. An order of NaNs other than the
//! total order then adds a number to a float ([`NanOrder`]). Whether a float is a NaN is a byte of its own: the carry
//! of such an addition. The bytes are cut into words:
//!
//! ```text
//!   fields   ├ i16 ┼───── bytes11 ─────┼── f32 ──┤
//!   words    ├────── 8 ──────┼────── 8 ──────┼ 1 ┤
//! ```

use super::field::{Endian, Field, Kind};
use crate::cpu::memory;
use crate::key::sealed::Sealed;
use crate::{Error, NanOrder, SortOrder, f16, parallel};
use std::cmp::Ordering;

/// Bytes of records of a block that a thread compares.
const BLOCK: usize = 1 << 20;
/// Bytes of a word.
const WORD: usize = 8;
/// Words of a part.
const WORDS_OF_PART: usize = size_of::<u128>() / WORD;
/// The greatest number of bytes of a key.
const MOST_BYTES: usize = 16 << 20;
/// The sizes of floating-point numbers, in bytes.
const FLOATS: [usize; 4] = [2, 4, 8, 16];
/// The number of NaNs of each sign among the floating-point numbers of these sizes, in the same order.
const NANS: [u128; 4] = [f16::NANS as u128, f32::NANS as u128, f64::NANS as u128, (1 << 112) - 1];

/// The number of NaNs of each sign among the numbers of type bfloat16.
const BFLOAT16_NANS: i128 = (1 << 7) - 1;

/// The order of records: by some fields, the most significant field first.
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
    /// The reason why there are no words.
    fault: Option<Fault>,
}

/// The reason why a key orders no records.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A field is a floating-point number of this size.
    Float(usize),
    TooLong,
    /// There was not enough memory.
    Memory,
}

impl RecordKey {
    /// The key that consists of `fields`. Fields may overlap, and fields of size 0 order nothing.
    ///
    /// `new` does not check whether records have these fields: [`check`](Self::check), [`sort`](super::sort()) and
    /// [`argsort`](super::argsort) do.
    pub fn new(fields: &[Field]) -> Self {
        let end = fields.iter().map(|field| field.offset.saturating_add(field.size)).max().unwrap_or(0);
        let size = fields.iter().map(Field::size_in_key).fold(0, usize::saturating_add);
        match words_of(fields, size) {
            Ok(words) => Self { words, end, size, fault: None },
            Err(fault) => Self { words: vec![Word::nowhere()], end, size, fault: Some(fault) },
        }
    }

    /// Checks that this key can order records of `size` bytes.
    ///
    /// # Errors
    /// - [`Error::FieldOutOfRecord`] if a field is not within a record.
    /// - [`Error::FloatSize`] if a field is a floating-point number of an unsupported size.
    /// - [`Error::KeyTooLong`] if the fields have more than 16 MiB in total.
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

    /// The least size of a record with all fields, in bytes; `usize::MAX` if it is greater.
    pub fn end(&self) -> usize {
        self.end
    }

    /// The order of two records.
    ///
    /// # Panics
    /// Panics if a record does not have all bytes of the fields, or if [`check`](Self::check) returns another error for
    /// the key.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare_from(0, a, b)
    }

    /// The words of the key, at least one.
    pub(super) fn words(&self) -> &[Word] {
        &self.words
    }

    /// The total number of bytes of all fields in the key; `usize::MAX` if it is greater.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The number of parts of 16 bytes; the last one may be shorter.
    pub(crate) fn parts(&self) -> usize {
        self.words.len().div_ceil(WORDS_OF_PART)
    }

    /// Part `number` of the key of a record: 16 bytes, or those that are left, as one number. The numbers of records
    /// whose earlier parts are equal have the order of the records, unless later parts decide.
    ///
    /// ```
    /// use merge_host::records::{Field, RecordKey};
    ///
    /// let key = RecordKey::new(&[Field::bytes(0, 18)]);
    /// let record = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17];
    /// assert_eq!(key.part(0, &record), 0x00010203_04050607_08090a0b_0c0d0e0f);
    /// assert_eq!(key.part(1, &record), 0x1011);
    /// assert_eq!(key.part(2, &record), 0);
    /// ```
    ///
    /// # Panics
    /// Panics if [`compare`](Self::compare) does.
    #[inline]
    pub fn part(&self, number: usize, record: &[u8]) -> u128 {
        let words = self.words.iter().skip(number.saturating_mul(WORDS_OF_PART)).take(WORDS_OF_PART);
        words.fold(0, |key, word| key << (8 * word.size()) | u128::from(word.of(record)))
    }

    /// The order of two records with equal words before word `from`.
    pub(super) fn compare_from(&self, from: usize, a: &[u8], b: &[u8]) -> Ordering {
        let words = self.words[from..].iter();
        words.map(|word| word.of(a).cmp(&word.of(b))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The index of the first record that precedes the record before it in order, or, if `strict`, equals it. The
    /// records have `size` bytes each. Bytes after the last whole record are ignored.
    ///
    /// Scans the records at most once, on the threads of [`parallel`] loops.
    ///
    /// # Panics
    /// Panics if `size` is 0, or if there are at least two records and [`compare`](Self::compare) panics.
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

/// The words of the key that consists of `fields`, which have `size` bytes in it.
fn words_of(fields: &[Field], size: usize) -> Result<Vec<Word>, Fault> {
    let is_float = |field: &&Field| matches!(field.kind, Kind::Float | Kind::IsNan) && field.size > 0;
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
        let (mut done, size) = (0, field.size_in_key());
        while done < size {
            if free == 0 {
                words.push(Word::default());
                free = WORD;
            }
            let count = free.min(size - done);
            if let Some(word) = words.last_mut() {
                let bytes = if field.kind == Kind::IsNan { field.size.min(WORD) } else { count };
                memory::push(&mut word.pieces, Piece::new(field, done, bytes)).map_err(|_| Fault::Memory)?;
            }
            done += count;
            free -= count;
        }
    }
    Ok(words)
}

/// A word: up to 8 bytes of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pieces: Vec<Piece>,
}

impl Word {
    /// A word outside every record.
    fn nowhere() -> Self {
        let piece = Piece { begin: usize::MAX, count: 1, big_endian: false, sign: 0, flips: [0; 2], rotation: None };
        Self { pieces: vec![piece] }
    }

    /// The number of bytes.
    pub fn size(&self) -> usize {
        self.pieces.iter().map(Piece::size).sum()
    }

    /// The offset of the first piece in a record.
    pub fn begin(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.begin)
    }

    /// This word of a record's key.
    #[inline(always)]
    pub fn of(&self, record: &[u8]) -> u64 {
        match &self.pieces[..] {
            [piece] => piece.of(record),
            pieces => pieces.iter().fold(0, |word: u64, piece| word << (8 * piece.size()) | piece.of(record)),
        }
    }
}

/// A piece: bytes of one field in a word.
#[derive(Clone, Debug)]
struct Piece {
    /// The offset of the bytes in the record.
    begin: usize,
    count: usize,
    /// Whether the most significant byte comes first.
    big_endian: bool,
    /// The offset of the byte with the sign of a float as its most significant bit.
    sign: usize,
    /// The bits to flip if the sign bit is clear, and if it is set.
    flips: [u64; 2],
    rotation: Option<Rotation>,
}

/// The part of a piece in the addition that moves the NaNs of a field to one end of its order.
#[derive(Clone, Debug)]
struct Rotation {
    /// The bits of the summand in the piece.
    summand: u64,
    /// What replaces the sum: 1 or 0, as it carries or not, flipped by this bit.
    flag: Option<u64>,
    /// The piece with the next less significant bytes of the field, whose sum may carry.
    lower: Option<Box<Piece>>,
}

impl Piece {
    /// `count` bytes of a field after its `done` most significant bytes.
    fn new(field: &Field, done: usize, count: usize) -> Self {
        let all = u64::MAX >> (64 - 8 * count);
        let sign_bit = if done == 0 { 1 << (8 * count - 1) } else { 0 };
        let mut flips = match field.kind {
            Kind::Float | Kind::Bfloat16 => [sign_bit, all],
            // Without its sign, a NaN is greater than all numbers.
            Kind::IsNan => [0, sign_bit],
            Kind::Signed | Kind::Time => [sign_bit; 2],
            Kind::Unsigned | Kind::Bytes => [0; 2],
        };
        if field.order == SortOrder::Descending && field.kind != Kind::IsNan {
            flips = flips.map(|flip| flip ^ all);
        }
        let Field { offset, size, .. } = *field;
        // A comparison of bytes is a comparison of a big-endian number.
        let big_endian = field.endian == Endian::Big || field.kind == Kind::Bytes;
        let rotation = Rotation::new(field, done, count);
        if big_endian {
            Self { begin: offset + done, count, big_endian, sign: offset, flips, rotation }
        } else {
            Self { begin: offset + size - done - count, count, big_endian, sign: offset + size - 1, flips, rotation }
        }
    }

    #[inline(always)]
    fn of(&self, record: &[u8]) -> u64 {
        let number = self.in_total_order(record);
        match &self.rotation {
            None => number,
            Some(rotation) => {
                let (sum, bits) = (rotation.sum(number, record), 8 * self.count);
                rotation.flag.map_or(sum as u64 & (u64::MAX >> (64 - bits)), |flip| (sum >> bits) as u64 ^ flip)
            }
        }
    }

    /// The number of bytes in the word.
    fn size(&self) -> usize {
        let is_flag = self.rotation.as_ref().is_some_and(|rotation| rotation.flag.is_some());
        if is_flag { 1 } else { self.count }
    }

    /// Whether the sum of this piece carries to the next more significant piece.
    fn carries(&self, record: &[u8]) -> bool {
        let sum = |rotation: &Rotation| rotation.sum(self.in_total_order(record), record);
        self.rotation.as_ref().is_some_and(|rotation| sum(rotation) >> (8 * self.count) != 0)
    }

    /// The piece before the rotation.
    #[inline(always)]
    fn in_total_order(&self, record: &[u8]) -> u64 {
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

impl Rotation {
    /// The rotation of the `count` bytes of a field after its `done` most significant bytes. `None` for a field without
    /// NaNs, and in total order.
    fn new(field: &Field, done: usize, count: usize) -> Option<Self> {
        let summand = Self::of_field(field)?;
        let rest = field.size - done - count;
        let summand = (summand >> (8 * rest)) as u64 & (u64::MAX >> (64 - 8 * count));
        let lower = (rest > 0).then(|| Box::new(Piece::new(field, done + count, rest.min(WORD))));
        let flag = (field.kind == Kind::IsNan).then_some(u64::from(field.nans == NanOrder::First));
        Some(Self { summand, flag, lower })
    }

    /// The number to add to a whole field, in two's complement. The NaNs of one sign are the least numbers of a float,
    /// and the NaNs of the other sign the greatest. `NaT` is at one end.
    fn of_field(field: &Field) -> Option<i128> {
        let nans = || FLOATS.iter().position(|size| *size == field.size).map(|i| NANS[i] as i128);
        let [least, greatest] = match (field.kind, field.order) {
            (Kind::Float, _) => [nans()?; 2],
            // NaNs carry into the sign bit, which is clear, and from there out of the field.
            (Kind::IsNan, _) => return Some(nans()? + (1_i128 << (8 * field.size - 2) << 1)),
            (Kind::Bfloat16, _) => [BFLOAT16_NANS; 2],
            (Kind::Time, SortOrder::Ascending) => [1, 0],
            (Kind::Time, SortOrder::Descending) => [0, 1],
            _ => return None,
        };
        let summand = match field.nans {
            NanOrder::Total => 0,
            NanOrder::Last => -least,
            NanOrder::First => greatest,
        };
        (summand != 0).then_some(summand)
    }

    /// The sum of `number`, this part of the summand, and the carry of less significant bytes. Behind the bits of the
    /// piece, it has a bit that carries.
    fn sum(&self, number: u64, record: &[u8]) -> u128 {
        let carry = self.lower.as_ref().is_some_and(|piece| piece.carries(record));
        u128::from(number) + u128::from(self.summand) + u128::from(carry)
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
        let floats = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::from_bits(1), 1.5, f64::MAX, f64::INFINITY];
        // The least and the greatest bits, where sums carry.
        let nans = [f64::INFINITY.to_bits() + 1, f64::NAN.to_bits(), u64::MAX >> 1].map(f64::from_bits);
        let negative_nans = [nans[2], nans[1], nans[0]].map(|nan| -nan);
        let orders = [
            (NanOrder::Total, [&negative_nans[..], &floats, &nans].concat()),
            (NanOrder::Last, [&floats[..], &nans, &negative_nans].concat()),
            (NanOrder::First, [&nans[..], &negative_nans, &floats].concat()),
        ];
        let cases = orders.iter().flat_map(|order| (0..9).map(move |before| (order, before)));
        for ((nans, floats), before) in cases {
            for (endian, direction) in [(Endian::Little, SortOrder::Ascending), (BIG, SortOrder::Descending)] {
                let float = Field::float(8, 8).endian(endian).order(direction);
                let is_descending = direction == SortOrder::Descending;
                let float = float.nans(if is_descending { nans.reversed() } else { *nans });
                let key = RecordKey::new(&[Field::bytes(0, before), float]);
                for (i, a) in floats.iter().enumerate() {
                    for (j, b) in floats.iter().enumerate() {
                        let bytes = |float: &f64| if endian == BIG { float.to_be_bytes() } else { float.to_le_bytes() };
                        let record = |float: &f64| [[0; 8], bytes(float)].concat();
                        let expected = if is_descending { j.cmp(&i) } else { i.cmp(&j) };
                        assert_eq!(key.compare(&record(a), &record(b)), expected, "{a} {b} {nans} {before}");
                    }
                }
            }
        }
    }

    #[test]
    fn nat_is_at_the_end_that_is_asked_for() {
        for before in 0..9 {
            for (order, nans) in [SortOrder::Ascending, SortOrder::Descending]
                .into_iter()
                .flat_map(|order| [NanOrder::First, NanOrder::Last, NanOrder::Total].map(|nans| (order, nans)))
            {
                let mut expected = vec![i64::MIN + 1, -256, -1, 0, 255, i64::MAX];
                if order == SortOrder::Descending {
                    expected.reverse();
                }
                let is_first = nans == NanOrder::First || nans == NanOrder::Total && order == SortOrder::Ascending;
                expected.insert(if is_first { 0 } else { expected.len() }, i64::MIN);
                for endian in [Endian::Little, BIG] {
                    let field = Field::time(8).order(order).nans(nans).endian(endian);
                    let key = RecordKey::new(&[Field::bytes(0, before), field]);
                    let record = |time: &i64| {
                        [[0; 8], if endian == BIG { time.to_be_bytes() } else { time.to_le_bytes() }].concat()
                    };
                    assert!(
                        expected.is_sorted_by(|a, b| key.compare(&record(a), &record(b)).is_lt()),
                        "{before} {order:?} {nans:?} {endian:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn nans_of_bfloat16_are_last() {
        let keys = [0xff80u16, 0xbf80, 0x8000, 0, 0x3f80, 0x7f80, 0x7f81, 0x7fff, 0xffff, 0xff81];
        let key = RecordKey::new(&[Field::bfloat16(1).nans(NanOrder::Last)]);
        let record = |key: &u16| [[7].as_slice(), &key.to_le_bytes()].concat();
        assert!(keys.is_sorted_by(|a, b| key.compare(&record(a), &record(b)).is_lt()));
    }

    #[test]
    fn nans_of_all_sizes_are_last() {
        for (size, infinity) in [(2, 0x7c00_u128), (4, 0x7f80_0000), (16, 0x7fff << 112)] {
            let all = u128::MAX >> (128 - 8 * size);
            let (sign, most) = (all / 2 + 1, all / 2);
            // From -infinity to +infinity, and NaNs of both signs by their bits.
            let floats = [sign | infinity, sign, 0, 1, infinity, infinity + 1, most, all, sign | (infinity + 1)];
            for before in 0..9 {
                let key = RecordKey::new(&[Field::bytes(0, before), Field::float(8, size).nans(NanOrder::Last)]);
                let record = |bits: u128| [&[0; 8], &bits.to_le_bytes()[..size]].concat();
                assert!(floats.is_sorted_by(|a, b| key.compare(&record(*a), &record(*b)).is_lt()), "{size} {before}");
            }
        }
    }
    #[test]
    fn a_flag_tells_nans_of_all_sizes() {
        for (size, infinity) in [(2, 0x7c00_u128), (4, 0x7f80_0000), (8, 0x7ff0 << 48), (16, 0x7fff << 112)] {
            let sign = 1 << (8 * size - 1);
            let numbers = [0, 1, infinity - 1, infinity].map(|bits| [bits, sign | bits]);
            let nans = [infinity + 1, sign - 1].map(|bits| [bits, sign | bits]);
            let cases = (0..9).flat_map(|before| [Endian::Little, BIG].map(|endian| (before, endian)));
            for (before, endian) in cases {
                let record = |bits: &u128| match endian {
                    Endian::Little => [&[0; 8], &bits.to_le_bytes()[..size]].concat(),
                    Endian::Big => [&[0; 8], &bits.to_be_bytes()[16 - size..]].concat(),
                };
                for (nans_lie, [of_number, of_nan]) in
                    [(NanOrder::Last, [0, 1]), (NanOrder::First, [1, 0]), (NanOrder::Total, [0, 0])]
                {
                    let flag = Field::is_nan(8, size).endian(endian).nans(nans_lie);
                    let fields = [Field::bytes(0, before), flag.order(SortOrder::Descending), Field::bytes(7, 1)];
                    let key = RecordKey::new(&fields);
                    assert_eq!(key.size(), before + 1 + usize::from(nans_lie != NanOrder::Total));
                    let found = |bits: &u128| key.part(0, &record(bits)) >> 8;
                    assert!(numbers.as_flattened().iter().all(|bits| found(bits) == of_number), "{size} {before}");
                    assert!(nans.as_flattened().iter().all(|bits| found(bits) == of_nan), "{size} {before} {nans_lie}");
                }
            }
        }
        assert_eq!(RecordKey::new(&[Field::is_nan(0, 3)]).check(4), Err(Error::FloatSize { size: 3 }));
    }
}
