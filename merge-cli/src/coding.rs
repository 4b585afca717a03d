//! Encoding of keys: keys of every type become unsigned numbers when they are read, and keys again when they are
//! written.
//!
//! ```text
//!   in a file             in memory                                    in a file
//!   u8 … f64, i128   ──►  u8, u16, u32, u64 or u128, ascending   ──►   u8 … f64, i128
//!   either byte order     in the order that is wanted                  either byte order
//! ```
//!
//! In memory there are five types and one order instead of fourteen types and six orders. A key is encoded in at most
//! four steps, and each of the first three is its own inverse. Big endian: the bytes are reversed. Negative floats:
//! all bits but the sign bit are flipped. Then the bits of a mask are flipped. For ascending order, the mask is the
//! sign bit of signed types and floats, and empty for unsigned types. For descending order, it is the complement. Now
//! the NaNs of one sign are the least words, and the NaNs of the other sign the greatest. The last step rotates the
//! order: it adds a number, which moves the NaNs of one end to the other end.

use crate::spec::{Endian, KeyType, Kind};
use merge_host::{NanOrder, SortOrder};
use std::ops::{BitXor, BitXorAssign, Not};

/// The unsigned number that encodes a key.
pub trait Word: merge_host::Word + BitXorAssign + BitXor<Output = Self> + Not<Output = Self> {
    /// Bytes of the number.
    const SIZE: usize = size_of::<Self>();
    /// 0.
    const ZERO: Self;
    /// The most significant bit alone.
    const TOP_BIT: Self;
    /// The number with its bytes in the opposite order.
    fn swap_bytes(self) -> Self;
    /// If the most significant bit is set, the number with all other bits flipped. The function is its own inverse.
    fn flip_negative(self) -> Self;
    /// The sum, modulo 2 to the number of bits.
    fn wrapping_add(self, other: Self) -> Self;
    /// The difference, modulo 2 to the number of bits.
    fn wrapping_sub(self, other: Self) -> Self;
    /// The low bits of `value`.
    fn truncate(value: u128) -> Self;
    /// The number, extended to 16 bytes.
    fn widen(self) -> u128;
}

macro_rules! word {
    ($($t:ident as $signed:ident)*) => {$(
        impl Word for $t {
            const ZERO: Self = 0;
            const TOP_BIT: Self = 1 << (Self::BITS - 1);
            #[inline(always)]
            fn swap_bytes(self) -> Self {
                self.swap_bytes()
            }
            #[inline(always)]
            fn flip_negative(self) -> Self {
                self ^ ((self as $signed >> (Self::BITS - 1)) as Self & !Self::TOP_BIT)
            }
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn truncate(value: u128) -> Self {
                value as Self
            }
            #[inline(always)]
            fn widen(self) -> u128 {
                self.into()
            }
        }
    )*};
}
word!(u8 as i8 u16 as i16 u32 as i32 u64 as i64 u128 as i128);

/// Runs `$body` with `$W` as the unsigned type of `$size` bytes: 1, 2, 4 or 8; any other size means 16.
#[doc(hidden)]
#[macro_export]
macro_rules! with_word {
    ($size:expr, $W:ident => $body:expr) => {{
        macro_rules! case {
            ($t:ty) => {{
                type $W = $t;
                $body
            }};
        }
        match $size {
            1 => case!(u8),
            2 => case!(u16),
            4 => case!(u32),
            8 => case!(u64),
            _ => case!(u128),
        }
    }};
}
pub(crate) use with_word;

/// An order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyOrder {
    pub direction: SortOrder,
    /// Where the NaNs and `NaT` lie in the result, in either direction.
    pub nans: NanOrder,
}

impl KeyOrder {
    /// The ascending total order.
    pub const TOTAL: Self = Self { direction: SortOrder::Ascending, nans: NanOrder::Total };
}

/// How keys of a file are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// The type of the keys in the file.
    pub key_type: KeyType,
    /// The byte order of the keys in the file.
    pub endian: Endian,
    /// The order in which the encoded keys ascend.
    pub order: KeyOrder,
    /// Whether the keys are NumPy's dates or durations: the least key is `NaT`.
    pub has_nat: bool,
}

impl Coding {
    /// Bytes, encoded unchanged.
    pub const BYTES: Self = Self::total(KeyType::U8, Endian::Little);

    /// The coding of numbers in the ascending total order.
    pub const fn total(key_type: KeyType, endian: Endian) -> Self {
        Self { key_type, endian, order: KeyOrder::TOTAL, has_nat: false }
    }

    /// Whether encoding leaves keys unchanged.
    pub fn is_identity(self) -> bool {
        let is_ascending = self.order.direction == SortOrder::Ascending;
        !self.swaps() && self.key_type.kind() == Kind::Unsigned && is_ascending
    }

    /// Encodes keys. Before, each word has the bytes of its key in the file.
    pub fn encode<W: Word>(self, keys: &mut [W]) {
        let (mask, rotation) = (self.mask::<W>(), self.rotation::<W>());
        let rotated = |key: W| (key ^ mask).wrapping_add(rotation);
        match (self.key_type.kind() == Kind::Float, self.swaps()) {
            _ if self.is_identity() => {}
            (false, false) => keys.iter_mut().for_each(|key| *key = rotated(*key)),
            (false, true) => keys.iter_mut().for_each(|key| *key = rotated(Word::swap_bytes(*key))),
            (true, false) => keys.iter_mut().for_each(|key| *key = rotated(key.flip_negative())),
            (true, true) => keys.iter_mut().for_each(|key| *key = rotated(Word::swap_bytes(*key).flip_negative())),
        }
    }

    /// Decodes keys: the inverse of [`encode`](Self::encode).
    pub fn decode<W: Word>(self, keys: &mut [W]) {
        let (mask, rotation) = (self.mask::<W>(), self.rotation::<W>());
        let plain = |key: W| key.wrapping_sub(rotation) ^ mask;
        match (self.key_type.kind() == Kind::Float, self.swaps()) {
            _ if self.is_identity() => {}
            (false, false) => keys.iter_mut().for_each(|key| *key = plain(*key)),
            (false, true) => keys.iter_mut().for_each(|key| *key = Word::swap_bytes(plain(*key))),
            (true, false) => keys.iter_mut().for_each(|key| *key = plain(*key).flip_negative()),
            (true, true) => keys.iter_mut().for_each(|key| *key = Word::swap_bytes(plain(*key).flip_negative())),
        }
    }

    /// An encoded key for a message: its value, and for a NaN also its bits, because there are many NaNs.
    pub fn show<W: Word>(self, mut key: W) -> String {
        Self { endian: Endian::Little, ..self }.decode(std::slice::from_mut(&mut key));
        let bits = key.widen();
        let text = match self.key_type {
            KeyType::I8 => (bits as i8).to_string(),
            KeyType::I16 => (bits as i16).to_string(),
            KeyType::I32 => (bits as i32).to_string(),
            KeyType::I64 if self.has_nat && bits as i64 == i64::MIN => "NaT".to_owned(),
            KeyType::I64 => (bits as i64).to_string(),
            KeyType::I128 => (bits as i128).to_string(),
            KeyType::F16 => format!("{:?}", merge_host::f16::from_bits(bits as u16)),
            KeyType::Bf16 => format!("{:?}", f32::from_bits((bits as u32) << 16)),
            KeyType::F32 => format!("{:?}", f32::from_bits(bits as u32)),
            KeyType::F64 => format!("{:?}", f64::from_bits(bits as u64)),
            KeyType::U8 | KeyType::U16 | KeyType::U32 | KeyType::U64 | KeyType::U128 => bits.to_string(),
        };
        if text == "NaN" { format!("NaN ({bits:#x})") } else { text }
    }

    fn swaps(self) -> bool {
        self.endian == Endian::Big && self.key_type.size() > 1
    }

    /// The bits to flip.
    fn mask<W: Word>(self) -> W {
        let mask = if self.key_type.kind() == Kind::Unsigned { W::ZERO } else { W::TOP_BIT };
        if self.order.direction == SortOrder::Descending { !mask } else { mask }
    }

    /// The number to add in the last step.
    fn rotation<W: Word>(self) -> W {
        // The numbers of NaNs, or of `NaT`, among the least keys of the type and among the greatest keys.
        let of_type = match self.key_type {
            KeyType::F16 => [(1 << 10) - 1; 2],
            KeyType::Bf16 => [(1 << 7) - 1; 2],
            KeyType::F32 => [(1 << 23) - 1; 2],
            KeyType::F64 => [(1 << 52) - 1; 2],
            _ => [self.has_nat.into(), 0],
        };
        let [least, greatest] = match self.order.direction {
            SortOrder::Ascending => of_type,
            SortOrder::Descending => [of_type[1], of_type[0]],
        };
        match self.order.nans {
            NanOrder::Last => W::ZERO.wrapping_sub(W::truncate(least)),
            NanOrder::First => W::truncate(greatest),
            _ => W::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    /// Encodes `keys`, which ascend, in each byte order and sort order, and checks the order of the words.
    fn check<W: Word, const N: usize>(key_type: KeyType, keys: [W; N]) {
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            for endian in [Endian::Little, Endian::Big] {
                let order = KeyOrder { direction: order, nans: NanOrder::Total };
                let coding = Coding { order, ..Coding::total(key_type, endian) };
                let in_file = keys.map(|key| if endian == Endian::Big { Word::swap_bytes(key) } else { key });
                let mut words = in_file;
                coding.encode(&mut words);
                let ascending = words.is_sorted_by(|x, y| x < y);
                let descending = words.is_sorted_by(|x, y| x > y);
                let is_ascending = order.direction == SortOrder::Ascending;
                assert_eq!((ascending, descending), (is_ascending, !is_ascending));
                coding.decode(&mut words);
                assert_eq!(words, in_file, "{coding:?}");
                assert_eq!(
                    coding.is_identity(),
                    {
                        coding.encode(&mut words);
                        words == in_file
                    },
                    "{coding:?}"
                );
            }
        }
    }

    #[test]
    fn words_are_in_the_order_of_the_keys() {
        let nan = f64::NAN;
        check(KeyType::U8, [0u8, 1, 127, 128, 255]);
        check(KeyType::I8, [-128i8, -1, 0, 1, 127].map(|key| key as u8));
        check(KeyType::U16, [0u16, 1, 255, 256, u16::MAX]);
        check(KeyType::I16, [i16::MIN, -256, -1, 0, 255, i16::MAX].map(|key| key as u16));
        check(KeyType::U32, [0u32, 1, 1 << 31, u32::MAX]);
        check(KeyType::I32, [i32::MIN, -1, 0, 1, i32::MAX].map(|key| key as u32));
        check(KeyType::U64, [0u64, 1, 1 << 63, u64::MAX]);
        check(KeyType::I64, [i64::MIN, -1, 0, 1, i64::MAX].map(|key| key as u64));
        check(KeyType::U128, [0u128, 1, 1 << 127, u128::MAX]);
        check(KeyType::I128, [i128::MIN, -1, 0, 1, i128::MAX].map(|key| key as u128));
        let floats = [-nan, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.5, f64::INFINITY, nan];
        check(KeyType::F64, floats.map(f64::to_bits));
        check(KeyType::F32, floats.map(|key| (key as f32).to_bits()));
        check(KeyType::F16, floats.map(|key| merge_host::f16::from_f64(key).to_bits()));
        check(KeyType::Bf16, floats.map(|key| ((key as f32).to_bits() >> 16) as u16));
    }

    /// Encodes `keys`, which are in this order of NaNs in this direction, and checks that the words ascend.
    fn check_nans<W: Word, const N: usize>(plain: Coding, (direction, nans): (SortOrder, NanOrder), keys: [W; N]) {
        for endian in [Endian::Little, Endian::Big] {
            let coding = Coding { endian, order: KeyOrder { direction, nans }, ..plain };
            let in_file = keys.map(|key| if endian == Endian::Big { Word::swap_bytes(key) } else { key });
            let mut words = in_file;
            coding.encode(&mut words);
            assert!(words.is_sorted_by(|x, y| x < y), "{coding:?}");
            coding.decode(&mut words);
            assert_eq!(words, in_file, "{coding:?}");
        }
    }

    #[test]
    fn nans_and_nat_are_last_or_first() {
        use NanOrder::{First, Last};
        use SortOrder::{Ascending, Descending};
        let [nan, most] = [f64::INFINITY.to_bits() + 1, u64::MAX >> 1].map(f64::from_bits);
        let bits = |keys: [f64; 8]| keys.map(f64::to_bits);
        let f64s = Coding::total(KeyType::F64, Endian::Little);
        let infinity = f64::INFINITY;
        check_nans(f64s, (Ascending, Last), bits([-infinity, -0.0, 0.0, infinity, nan, most, -most, -nan]));
        check_nans(f64s, (Descending, Last), bits([infinity, 0.0, -0.0, -infinity, -nan, -most, most, nan]));
        check_nans(f64s, (Ascending, First), bits([nan, most, -most, -nan, -infinity, -0.0, 0.0, infinity]));
        check_nans(f64s, (Descending, First), bits([-nan, -most, most, nan, infinity, 0.0, -0.0, -infinity]));
        let f32s = Coding::total(KeyType::F32, Endian::Little);
        check_nans(f32s, (Ascending, Last), [0xff80_0000u32, 0, 0x7f80_0000, 0x7f80_0001, u32::MAX, 0xff80_0001]);
        let f16s = Coding::total(KeyType::F16, Endian::Little);
        check_nans(f16s, (Ascending, Last), [0xfc00u16, 0, 0x7c00, 0x7c01, u16::MAX, 0xfc01]);
        let bf16s = Coding::total(KeyType::Bf16, Endian::Little);
        check_nans(bf16s, (Ascending, Last), [0xff80u16, 0, 0x7f80, 0x7f81, u16::MAX, 0xff81]);
        let dates = Coding { has_nat: true, ..Coding::total(KeyType::I64, Endian::Little) };
        let bits = |keys: [i64; 4]| keys.map(|key| key as u64);
        check_nans(dates, (Ascending, Last), bits([i64::MIN + 1, -1, i64::MAX, i64::MIN]));
        check_nans(dates, (Descending, Last), bits([i64::MAX, -1, i64::MIN + 1, i64::MIN]));
        check_nans(dates, (Ascending, First), bits([i64::MIN, i64::MIN + 1, -1, i64::MAX]));
        check_nans(dates, (Descending, First), bits([i64::MIN, i64::MAX, -1, i64::MIN + 1]));
        for nans in [First, Last] {
            let plain = Coding { has_nat: false, ..dates };
            check_nans(plain, (Ascending, nans), bits([i64::MIN, i64::MIN + 1, -1, i64::MAX]));
        }
    }

    #[test]
    fn keys_are_shown_with_their_values() {
        let show = |key_type: KeyType, bits: u128| {
            let order = KeyOrder { direction: SortOrder::Descending, nans: NanOrder::Last };
            let coding = Coding { order, ..Coding::total(key_type, Endian::Big) };
            with_word!(key_type.size(), W => {
                let mut key = W::truncate(bits);
                Coding { endian: Endian::Little, ..coding }.encode(std::slice::from_mut(&mut key));
                coding.show(key)
            })
        };
        for &key_type in KeyType::value_variants() {
            assert_eq!(show(key_type, 0).trim_end_matches(".0"), "0", "{key_type}");
        }
        assert_eq!(show(KeyType::I16, u16::MAX.into()), "-1");
        assert_eq!(show(KeyType::F32, (-2.5f32).to_bits().into()), "-2.5");
        assert_eq!(show(KeyType::F64, f64::NAN.to_bits().into()), "NaN (0x7ff8000000000000)");
        assert_eq!(show(KeyType::F16, 0xfc00), "-inf");
        assert_eq!(show(KeyType::Bf16, 0xc020), "-2.5");
        assert_eq!(show(KeyType::I128, u128::MAX), "-1");
    }
}
