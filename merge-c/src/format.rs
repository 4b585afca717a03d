//! Types of keys, orders and sizes of values.

use crate::status::{Outcome, invalid};
use merge_host::{NanOrder, SortOptions, SortOrder};

/// The type of keys.
pub type gmerge_type = u32;
/// `uint8_t`
pub const GMERGE_U8: gmerge_type = 0;
/// `uint16_t`
pub const GMERGE_U16: gmerge_type = 1;
/// `uint32_t`
pub const GMERGE_U32: gmerge_type = 2;
/// `uint64_t`
pub const GMERGE_U64: gmerge_type = 3;
/// An unsigned number of 16 bytes in the byte order of the machine. Arrays need an alignment of 16.
pub const GMERGE_U128: gmerge_type = 4;
/// `int8_t`
pub const GMERGE_I8: gmerge_type = 5;
/// `int16_t`
pub const GMERGE_I16: gmerge_type = 6;
/// `int32_t`
pub const GMERGE_I32: gmerge_type = 7;
/// `int64_t`
pub const GMERGE_I64: gmerge_type = 8;
/// A signed number of 16 bytes in the byte order of the machine. Arrays need an alignment of 16.
pub const GMERGE_I128: gmerge_type = 9;
/// An IEEE 754 number of 2 bytes.
pub const GMERGE_F16: gmerge_type = 10;
/// `float`
pub const GMERGE_F32: gmerge_type = 11;
/// `double`
pub const GMERGE_F64: gmerge_type = 12;

/// The order of keys: a sum of the constants below. 0 is ascending, with floats in IEEE 754's total order: negative
/// NaNs first, other NaNs last, and -0.0 before 0.0.
pub type gmerge_order = u32;
/// Ascending, in total order.
pub const GMERGE_ASCENDING: gmerge_order = 0;
/// Descending.
pub const GMERGE_DESCENDING: gmerge_order = 1;
/// All NaNs at the end of the array, in ascending and in descending order. In ascending order, positive NaNs precede
/// negative ones. Integers are not affected.
pub const GMERGE_NANS_LAST: gmerge_order = 2;
/// All NaNs at the beginning of the array, in ascending and in descending order. In ascending order, positive NaNs
/// precede negative ones. Integers are not affected.
pub const GMERGE_NANS_FIRST: gmerge_order = 4;

/// What the arrays of a call have.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_format {
    /// The type of the keys.
    pub key_type: gmerge_type,
    /// The order of the keys. Runs of a merge, and arrays of other operations on sorted arrays, have this order.
    pub order: gmerge_order,
    /// Bytes of a value, or 0 for keys without values. Values of 4 and of 8 bytes that have the alignment of a number
    /// of that size take the least time.
    pub value_size: usize,
}

impl gmerge_format {
    /// The order as the library takes it.
    pub(crate) fn options(self) -> Outcome<SortOptions> {
        let (direction, nans) = self.direction_and_nans()?;
        Ok(SortOptions::default().order(direction).nans(nans))
    }

    pub(crate) fn direction_and_nans(self) -> Outcome<(SortOrder, NanOrder)> {
        let direction = match self.order & GMERGE_DESCENDING {
            0 => SortOrder::Ascending,
            _ => SortOrder::Descending,
        };
        let nans = match self.order & !GMERGE_DESCENDING {
            0 => NanOrder::Total,
            GMERGE_NANS_LAST => NanOrder::Last,
            GMERGE_NANS_FIRST => NanOrder::First,
            _ => {
                let order = self.order;
                return Err(invalid(format!(
                    "format.order is {order}, expected GMERGE_DESCENDING (1) or 0, plus at most one of \
                     GMERGE_NANS_LAST (2) and GMERGE_NANS_FIRST (4)"
                )));
            }
        };
        Ok((direction, nans))
    }

    /// The error of a type that does not exist.
    pub(crate) fn unknown_type(self) -> crate::status::Failure {
        let found = self.key_type;
        invalid(format!("format.key_type is {found}, expected GMERGE_U8 (0) to GMERGE_F64 ({GMERGE_F64})"))
    }
}

/// Evaluates an expression with `$K` as the type of the keys of a format.
macro_rules! with_key {
    ($format:expr, $K:ident => $body:expr) => {{
        use $crate::format::*;
        macro_rules! case {
            ($key:ty) => {{
                type $K = $key;
                $body
            }};
        }
        match $format.key_type {
            GMERGE_U8 => case!(u8),
            GMERGE_U16 => case!(u16),
            GMERGE_U32 => case!(u32),
            GMERGE_U64 => case!(u64),
            GMERGE_U128 => case!(u128),
            GMERGE_I8 => case!(i8),
            GMERGE_I16 => case!(i16),
            GMERGE_I32 => case!(i32),
            GMERGE_I64 => case!(i64),
            GMERGE_I128 => case!(i128),
            GMERGE_F16 => case!(merge_host::f16),
            GMERGE_F32 => case!(f32),
            GMERGE_F64 => case!(f64),
            _ => Err($format.unknown_type()),
        }
    }};
}
pub(crate) use with_key;

/// Evaluates an expression with `$T` as the type of numbers that the argument `$name` is, one of those with kernels.
/// The error of another type ends with `$why`.
macro_rules! with_number {
    ($name:literal is $type:expr, $why:literal, $T:ident => $body:expr) => {{
        macro_rules! case {
            ($number:ty) => {{
                type $T = $number;
                $body
            }};
        }
        match $type {
            $crate::format::GMERGE_U32 => case!(u32),
            $crate::format::GMERGE_I32 => case!(i32),
            $crate::format::GMERGE_F32 => case!(f32),
            $crate::format::GMERGE_U64 => case!(u64),
            $crate::format::GMERGE_I64 => case!(i64),
            $crate::format::GMERGE_F64 => case!(f64),
            found => Err($crate::status::invalid(format!(
                "{} is {found}, expected GMERGE_U32, GMERGE_I32, GMERGE_F32, GMERGE_U64, GMERGE_I64 or GMERGE_F64{}",
                $name, $why
            ))),
        }
    }};
}
pub(crate) use with_number;
