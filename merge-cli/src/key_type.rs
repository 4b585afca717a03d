//! The type of a file's keys: the six of them, how a file name tells, and the one place that turns it into a Rust type.

use crate::error::{Failure, Result, name};
use clap::ValueEnum;
use std::fmt;
use std::path::Path;

/// The type of the keys in a file, least significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyType {
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
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        })
    }
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
            let hint = "no extension tells the type of its keys (.u32, .i32, .f32, .u64, .i64 or .f64 would): \
                        name it with --type";
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
            $crate::key_type::KeyType::U32 => case!(u32),
            $crate::key_type::KeyType::I32 => case!(i32),
            $crate::key_type::KeyType::F32 => case!(f32),
            $crate::key_type::KeyType::U64 => case!(u64),
            $crate::key_type::KeyType::I64 => case!(i64),
            $crate::key_type::KeyType::F64 => case!(f64),
        }
    }};
}
pub(crate) use with_key_type;

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
element!(u8 u32 i32 f32 u64 i64 f64);

/// A key as this program needs it, beyond what the library does with it.
pub trait FileKey: merge_host::Key + Element {
    /// The key that lies as far up its type's range as `position` lies in 0..2^64: all of an integer's range, and
    /// [-1, 1) for floating point. A greater position never gives a lesser key.
    fn from_position(position: u64) -> Self;

    /// The key with this small number as its value.
    fn from_small(number: u16) -> Self;

    /// The key for a message: its value and, for a NaN, of which there are many, its bits.
    fn show(self) -> String;
}

macro_rules! integer_file_key {
    ($($t:ident)*) => {$(
        impl FileKey for $t {
            fn from_position(position: u64) -> Self {
                // MIN is 0, or the sign bit alone.
                ((position >> (64 - Self::BITS)) as Self) ^ Self::MIN
            }
            fn from_small(number: u16) -> Self {
                number.into()
            }
            fn show(self) -> String {
                self.to_string()
            }
        }
    )*};
}
integer_file_key!(u32 i32 u64 i64);

macro_rules! float_file_key {
    ($($t:ident as $signed:ident;)*) => {$(
        impl FileKey for $t {
            fn from_position(position: u64) -> Self {
                // As many bits as the mantissa holds exactly, so that no rounding reaches 1.
                let half = 1 << (Self::MANTISSA_DIGITS - 1);
                ((position >> (64 - Self::MANTISSA_DIGITS)) as $signed - half) as Self / half as Self
            }
            fn from_small(number: u16) -> Self {
                number.into()
            }
            fn show(self) -> String {
                if self.is_nan() { format!("NaN ({:#x})", self.to_bits()) } else { format!("{self:?}") }
            }
        }
    )*};
}
float_file_key!(f32 as i32; f64 as i64;);
