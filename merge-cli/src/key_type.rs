//! The type of a file's keys: all of them, how a file name tells, and the one place that turns it into a Rust type.

use crate::error::{Failure, Result, name};
use clap::ValueEnum;
use merge_host::f16;
use std::fmt;
use std::path::Path;

/// The type of the keys in a file, least significant byte first.
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

impl KeyType {
    /// The type that `--type` gives or, without it, the extensions of `files`. One extension is enough, and all that
    /// name a type must name the same.
    pub fn of(given: Option<Self>, files: &[&Path]) -> Result<Self> {
        if let Some(given) = given {
            return Ok(given);
        }
        let mut found: Option<(Self, &Path)> = None;
        for &file in files {
            match (Self::of_extension(file), found) {
                (Some(here), Some((there, other))) if here != there => {
                    let (here_name, other) = (name(file), name(other));
                    return Err(Failure::new(format!(
                        "{other} holds {there} keys by its extension and {here_name} {here} keys: \
                         name the type of both with --type"
                    )));
                }
                (Some(here), None) => found = Some((here, file)),
                _ => {}
            }
        }
        found.map(|(key_type, _)| key_type).ok_or_else(|| {
            let extensions = Self::value_variants().iter().map(|key_type| format!(".{key_type}")).collect::<Vec<_>>();
            let hint = format!(
                "no extension tells the type of its keys ({} would): name it with --type",
                extensions.join(", ")
            );
            match files.first() {
                Some(first) => Failure::file(first, hint),
                None => Failure::new(hint),
            }
        })
    }

    fn of_extension(file: &Path) -> Option<Self> {
        Self::from_str(file.extension()?.to_str()?, true).ok()
    }
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
}

macro_rules! element {
    ($($t:ident)*) => {$(
        impl Element for $t {
            const TYPE: &'static str = stringify!($t);
        }
    )*};
}
element!(u8 i8 u16 i16 f16 u32 i32 f32 u64 i64 f64 u128);

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
