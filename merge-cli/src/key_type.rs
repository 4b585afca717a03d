//! The type of a file's keys: all of them, what tells which, and the one place that turns it into a Rust type.

use crate::error::{Failure, Result, name};
use crate::format::Endian;
use crate::report;
use clap::ValueEnum;
use merge_host::f16;
use std::fmt;
use std::path::Path;

/// The type of the keys in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyType {
    /// Unsigned, 1 byte
    U8,
    /// Signed, 1 byte
    I8,
    /// Unsigned, 2 bytes
    U16,
    /// Signed, 2 bytes
    I16,
    /// IEEE 754 half precision
    F16,
    /// Unsigned, 4 bytes
    U32,
    /// Signed, 4 bytes
    I32,
    /// IEEE 754 single precision
    F32,
    /// Unsigned, 8 bytes
    U64,
    /// Signed, 8 bytes
    I64,
    /// IEEE 754 double precision
    F64,
    /// Unsigned, 16 bytes
    U128,
}

/// What may tell the type of keys: a file's header or its extension.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    path: &'a Path,
    told: Option<KeyType>,
    /// "header" or "extension".
    by: &'static str,
}

impl<'a> Source<'a> {
    /// The extension of `path`.
    pub fn extension(path: &'a Path) -> Self {
        Self { path, told: KeyType::of_extension(path).map(|(key_type, _)| key_type), by: "extension" }
    }

    /// A header of the file at `path`, which says that its keys are of this type.
    pub fn header(path: &'a Path, key_type: KeyType) -> Self {
        Self { path, told: Some(key_type), by: "header" }
    }
}

impl KeyType {
    /// The type that `--type` gives or, without it, the headers and extensions of `sources`. One of them is enough, and
    /// all that tell a type must tell the same. `--type` overrules extensions, but no header.
    pub fn of(given: Option<Self>, sources: &[Source]) -> Result<Self> {
        if let Some(given) = given {
            for Source { path, told, by } in sources {
                if *by == "header" && *told != Some(given) {
                    let told = told.map(|key_type| key_type.to_string()).unwrap_or_default();
                    return Err(Failure::file(
                        path,
                        format!("holds {told} keys by its header, expected {given} keys by --type: leave --type out"),
                    ));
                }
            }
            report::verbose(format_args!("keys: {given}, by --type"));
            return Ok(given);
        }
        let mut found: Option<(Self, &Source)> = None;
        for source in sources {
            match (source.told, found) {
                (Some(here), Some((there, other))) if here != there => {
                    return Err(contradiction(other, there, source, here));
                }
                (Some(here), None) => found = Some((here, source)),
                _ => {}
            }
        }
        let found = found.inspect(|(key_type, Source { path, by, .. })| {
            report::verbose(format_args!("keys: {key_type}, by the {by} of {}", name(path)));
        });
        found.map(|(key_type, _)| key_type).ok_or_else(|| {
            let extensions = Self::value_variants().iter().map(|key_type| format!(".{key_type}")).collect::<Vec<_>>();
            let hint = format!(
                "no extension tells the type of its keys ({} would): name it with --type",
                extensions.join(", ")
            );
            match sources.first() {
                Some(first) => Failure::file(first.path, hint),
                None => Failure::new(hint),
            }
        })
    }

    /// The type and the byte order that the extension of `file` stands for: a type's name and, if wanted, le or be.
    pub fn of_extension(file: &Path) -> Option<(Self, Option<Endian>)> {
        let extension = file.extension()?.to_str()?.to_ascii_lowercase();
        let ends = [("le", Endian::Little), ("be", Endian::Big)].into_iter();
        let found = ends.filter_map(|(end, endian)| Some((extension.strip_suffix(end)?, Some(endian)))).next();
        let (name, endian) = found.unwrap_or((&extension, None));
        Some((Self::from_str(name, true).ok()?, endian))
    }

    /// Bytes of a key.
    pub fn size(self) -> usize {
        with_key_type!(self, K => size_of::<K>())
    }
}

/// The error of two files that tell different types.
fn contradiction(other: &Source, there: KeyType, source: &Source, here: KeyType) -> Failure {
    let (other_name, other_by, source_name, by) = (name(other.path), other.by, name(source.path), source.by);
    let by_other = if by == other_by { String::new() } else { format!(" by its {by}") };
    let hint = match (other_by, by) {
        ("header", "header") => "both must hold keys of the same type",
        ("extension", "extension") => "name the type of both with --type",
        _ => "rename the file, or name the type of the header with --type",
    };
    Failure::new(format!(
        "{other_name} holds {there} keys by its {other_by} and {source_name} {here} keys{by_other}: {hint}"
    ))
}

/// Runs `$body` with the type named `$K` being the keys' Rust type. Every command passes here once.
macro_rules! with_key_type {
    ($key_type:expr, $K:ident => $body:expr) => {{
        macro_rules! case {
            ($t:ty) => {{
                type $K = $t;
                $body
            }};
        }
        match $key_type {
            $crate::key_type::KeyType::U8 => case!(u8),
            $crate::key_type::KeyType::I8 => case!(i8),
            $crate::key_type::KeyType::U16 => case!(u16),
            $crate::key_type::KeyType::I16 => case!(i16),
            $crate::key_type::KeyType::F16 => case!(merge_host::f16),
            $crate::key_type::KeyType::U32 => case!(u32),
            $crate::key_type::KeyType::I32 => case!(i32),
            $crate::key_type::KeyType::F32 => case!(f32),
            $crate::key_type::KeyType::U64 => case!(u64),
            $crate::key_type::KeyType::I64 => case!(i64),
            $crate::key_type::KeyType::F64 => case!(f64),
            $crate::key_type::KeyType::U128 => case!(u128),
        }
    }};
}
pub(crate) use with_key_type;

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(with_key_type!(self, K => <K as merge_host::Key>::NAME))
    }
}

/// What can be read from a file: a key, or a byte of a value.
pub trait Element: bytemuck::Pod + Send + Sync {
    /// The number of its bytes.
    const SIZE: usize = size_of::<Self>();
    /// The type's name, for messages.
    const TYPE: &'static str;
    /// The type.
    const KEY_TYPE: KeyType;
}

macro_rules! element {
    ($($t:ident: $variant:ident,)*) => {$(
        impl Element for $t {
            const TYPE: &'static str = stringify!($t);
            const KEY_TYPE: KeyType = KeyType::$variant;
        }
    )*};
}
element! {
    u8: U8, i8: I8, u16: U16, i16: I16, f16: F16, u32: U32, i32: I32, f32: F32, u64: U64, i64: I64, f64: F64, u128: U128,
}

/// A key as this program needs it, beyond what the library does with it.
pub trait FileKey: merge_host::Key + Element {
    /// The unsigned integer of as many bits, in whose order keys are when they are made
    /// [ordered bits](merge_host::Key::to_ordered).
    type Ordered: FileKey<Ordered = Self::Ordered>;
    /// The greatest number up to which the type has all numbers, or that of a `u16`.
    const MOST_SMALL: u16;

    /// The key that lies as far up its type's range as `position` lies in 0..2^64: all of an integer's range, and
    /// [-1, 1) for floating point. A greater position never gives a lesser key.
    fn from_position(position: u64) -> Self;

    /// The key with this number, which is at most `MOST_SMALL`, as its value.
    fn from_small(number: u16) -> Self;

    /// The key for a message: its value and, for a NaN, of which there are many, its bits.
    fn show(self) -> String;
}

macro_rules! integer_file_key {
    ($($t:ident as $ordered:ident;)*) => {$(
        impl FileKey for $t {
            type Ordered = $ordered;
            const MOST_SMALL: u16 = if (Self::MAX as u128) < u16::MAX as u128 { Self::MAX as u16 } else { u16::MAX };
            fn from_position(position: u64) -> Self {
                // The position twice, for types of more bits than it has. MIN is 0, or the sign bit alone.
                let bits = u128::from(position) << 64 | u128::from(position);
                ((bits >> (128 - Self::BITS)) as Self) ^ Self::MIN
            }
            fn from_small(number: u16) -> Self {
                number as Self
            }
            fn show(self) -> String {
                self.to_string()
            }
        }
    )*};
}
integer_file_key! {
    u8 as u8;
    i8 as u8;
    u16 as u16;
    i16 as u16;
    u32 as u32;
    i32 as u32;
    u64 as u64;
    i64 as u64;
    u128 as u128;
}

macro_rules! float_file_key {
    ($($t:ident as $ordered:ident: $from:expr;)*) => {$(
        impl FileKey for $t {
            type Ordered = $ordered;
            const MOST_SMALL: u16 = if Self::MANTISSA_DIGITS < 16 { 1 << Self::MANTISSA_DIGITS } else { u16::MAX };
            fn from_position(position: u64) -> Self {
                // As many bits as the mantissa holds exactly, so that no rounding reaches 1.
                let half = 1 << (Self::MANTISSA_DIGITS - 1);
                ($from)(((position >> (64 - Self::MANTISSA_DIGITS)) as i64 - half) as f64 / half as f64)
            }
            fn from_small(number: u16) -> Self {
                ($from)(number.into())
            }
            fn show(self) -> String {
                if self.is_nan() { format!("NaN ({:#x})", self.to_bits()) } else { format!("{self:?}") }
            }
        }
    )*};
}
float_file_key! {
    f16 as u16: f16::from_f64;
    f32 as u32: |number: f64| number as f32;
    f64 as u64: |number: f64| number;
}
