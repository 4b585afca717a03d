//! The types of keys.

use super::Endian;
use clap::ValueEnum;
use merge_host::f16;
use std::fmt;
use std::path::Path;

/// The type of the keys in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyType {
    /// Unsigned, 1 byte
    #[value(alias = "uint8")]
    U8,
    /// Signed, 1 byte
    #[value(alias = "int8")]
    I8,
    /// Unsigned, 2 bytes
    #[value(alias = "uint16")]
    U16,
    /// Signed, 2 bytes
    #[value(alias = "int16")]
    I16,
    /// IEEE 754 half precision
    #[value(aliases = ["float16", "half"])]
    F16,
    /// bfloat16: single precision without its 16 low bits
    #[value(alias = "bfloat16")]
    Bf16,
    /// Unsigned, 4 bytes
    #[value(alias = "uint32")]
    U32,
    /// Signed, 4 bytes
    #[value(alias = "int32")]
    I32,
    /// IEEE 754 single precision
    #[value(aliases = ["float32", "single"])]
    F32,
    /// Unsigned, 8 bytes
    #[value(alias = "uint64")]
    U64,
    /// Signed, 8 bytes
    #[value(alias = "int64")]
    I64,
    /// IEEE 754 double precision
    #[value(aliases = ["float64", "double"])]
    F64,
    /// Unsigned, 16 bytes
    U128,
    /// Signed, 16 bytes
    I128,
}

/// How the bits of a type stand for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An unsigned integer.
    Unsigned,
    /// A signed integer, in two's complement.
    Signed,
    /// A floating-point number: the sign, the exponent, and the mantissa.
    Float,
}

impl KeyType {
    /// The name for `--type` and in extensions, such as `u32`.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] =
            ["u8", "i8", "u16", "i16", "f16", "bf16", "u32", "i32", "f32", "u64", "i64", "f64", "u128", "i128"];
        NAMES[self as usize]
    }

    /// Bytes of a key.
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U128 | Self::I128 => 16,
        }
    }

    /// How its bits stand for numbers.
    pub fn kind(self) -> Kind {
        match self.name().as_bytes()[0] {
            b'u' => Kind::Unsigned,
            b'i' => Kind::Signed,
            _ => Kind::Float,
        }
    }

    /// The type and the byte order of a name such as `f64`, `uint32`, `u32be` or `f64le`.
    pub fn with_endian(name: &str) -> Option<(Self, Option<Endian>)> {
        // `double` ends in `le`.
        if let Ok(key_type) = Self::from_str(name, true) {
            return Some((key_type, None));
        }
        let ends = [("le", Endian::Little), ("be", Endian::Big)].into_iter();
        let (name, endian) = ends
            .filter_map(|(end, endian)| Some((name.strip_suffix(end)?, Some(endian))))
            .next()
            .unwrap_or((name, None));
        Some((Self::from_str(name, true).ok()?, endian))
    }

    /// The type and the byte order that the extension of `file` names.
    pub fn of_extension(file: &Path) -> Option<(Self, Option<Endian>)> {
        Self::with_endian(&file.extension()?.to_str()?.to_ascii_lowercase())
    }

    /// The bits of the number in `text`. `None` if it is no number of this type, or out of its range.
    pub fn parse(self, text: &str) -> Option<u128> {
        let bits = 8 * self.size() as u32;
        match self.kind() {
            Kind::Unsigned => text.parse().ok().filter(|number: &u128| number.checked_shr(bits).unwrap_or(0) == 0),
            Kind::Signed => {
                let number: i128 = text.parse().ok()?;
                [0, -1].contains(&(number >> (bits - 1))).then_some(number as u128)
            }
            Kind::Float => self.parse_float(text),
        }
    }

    /// The bits of a floating-point number, rounded to this type.
    fn parse_float(self, text: &str) -> Option<u128> {
        let double: f64 = text.parse().ok()?;
        let single: f32 = text.parse().ok()?;
        let (bits, is_infinite) = match self {
            Self::F16 => {
                let half = f16::from_f64(double);
                (half.to_bits().into(), half.is_infinite())
            }
            Self::Bf16 => {
                // Of two numbers at the same distance, the even one is nearest.
                let bits = u64::from(single.to_bits());
                let rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
                (rounded.into(), rounded & 0x7fff == 0x7f80)
            }
            Self::F32 => (single.to_bits().into(), single.is_infinite()),
            _ => (double.to_bits().into(), double.is_infinite()),
        };
        (!is_infinite || text.to_ascii_lowercase().contains("inf")).then_some(bits)
    }

    /// The names of all types, separated by commas.
    pub fn names() -> String {
        Self::value_variants().iter().map(|key_type| key_type.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_command_line_takes() {
        for &key_type in KeyType::value_variants() {
            assert_eq!(KeyType::from_str(key_type.name(), false), Ok(key_type));
            let bits = key_type.name().trim_start_matches(char::is_alphabetic);
            assert_eq!(bits.parse(), Ok(8 * key_type.size()));
        }
    }

    #[test]
    fn numbers_are_parsed_up_to_the_limits_of_their_types() {
        let range = |least: i128, greatest: i128| [least - 1, least, greatest, greatest + 1].map(|n| n.to_string());
        for &key_type in KeyType::value_variants().iter().filter(|key_type| key_type.size() <= 8) {
            let bits = 8 * key_type.size() as u32;
            let texts = match key_type.kind() {
                Kind::Unsigned => range(0, (1 << bits) - 1),
                Kind::Signed => range(-1 << (bits - 1), (1 << (bits - 1)) - 1),
                Kind::Float => continue,
            };
            assert_eq!(texts.map(|text| key_type.parse(&text).is_some()), [false, true, true, false], "{key_type}");
        }
        assert_eq!(KeyType::I16.parse("-2").map(|bits| bits as u16), Some(0xfffe));
        assert_eq!(KeyType::U128.parse(&u128::MAX.to_string()), Some(u128::MAX));
        assert_eq!(KeyType::I128.parse(&i128::MIN.to_string()), Some(1 << 127));
        assert_eq!(KeyType::U32.parse("1.0").or(KeyType::U32.parse("")).or(KeyType::F32.parse("x")), None);
    }

    #[test]
    fn floats_are_rounded_and_do_not_overflow() {
        use KeyType::{Bf16, F16, F32, F64};
        for (key_type, text, bits) in [
            (F16, "1", Some(0x3c00)),
            (F16, "65504", Some(0x7bff)),
            (F16, "65520", None),
            (Bf16, "-2.5", Some(0xc020)),
            (Bf16, "1.00390625", Some(0x3f80)),
            (Bf16, "1.01171875", Some(0x3f82)),
            (Bf16, "3.4e38", None),
            (Bf16, "-inf", Some(0xff80)),
            (Bf16, "nan", Some(0x7fc0)),
            (F32, "16777217", Some(0x4b80_0000)),
            (F32, "1e39", None),
            (F64, "-0", Some(1 << 63)),
            (F64, "1e309", None),
            (F64, "Infinity", Some(0x7ff0 << 48)),
            (F64, "NaN", Some(u128::from(f64::NAN.to_bits()))),
        ] {
            assert_eq!(key_type.parse(text), bits, "{key_type} {text}");
        }
    }

    #[test]
    fn extensions_name_a_type_and_a_byte_order() {
        let of = |path: &str| KeyType::of_extension(Path::new(path));
        assert_eq!(of("a.u32"), Some((KeyType::U32, None)));
        assert_eq!(of("a.F64BE"), Some((KeyType::F64, Some(Endian::Big))));
        assert_eq!(of("a.u32.i16le"), Some((KeyType::I16, Some(Endian::Little))));
        assert_eq!(of("a.float32"), Some((KeyType::F32, None)));
        for path in ["a", "a.u33", "a.be", ".u32", "u32", "a.u32bele"] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
