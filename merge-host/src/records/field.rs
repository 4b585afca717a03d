//! Fields of records.

use crate::SortOrder;

/// Which byte of a number comes first in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Endian {
    /// The least significant one.
    #[default]
    Little,
    /// The most significant one.
    Big,
}

/// How the bytes of a field stand for its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    Float,
    Bytes,
}

/// A field that orders records: bytes at an offset, which are a number or are compared one by one.
///
/// Numbers are little endian and in ascending order unless [`endian`](Self::endian) and [`order`](Self::order) say
/// otherwise.
///
/// ```
/// use merge_host::SortOrder;
/// use merge_host::records::{Endian, Field};
///
/// // An f64 in the bytes 8 to 15, the greatest first, and a u16 in the bytes 0 and 1, the first of which is the most
/// // significant one.
/// let fields = [Field::float(8, 8).order(SortOrder::Descending), Field::unsigned(0, 2).endian(Endian::Big)];
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) kind: Kind,
    pub(super) endian: Endian,
    pub(super) order: SortOrder,
}

impl Field {
    fn new(offset: usize, size: usize, kind: Kind) -> Self {
        Self { offset, size, kind, endian: Endian::Little, order: SortOrder::Ascending }
    }

    /// An unsigned integer of `size` bytes.
    pub fn unsigned(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Unsigned)
    }

    /// A signed integer of `size` bytes, in two's complement.
    pub fn signed(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Signed)
    }

    /// An IEEE 754 floating-point number of `size` bytes, in total order. `size` is 2, 4, 8 or 16, or 0 for a field
    /// that orders nothing; a key that has a float of another size orders no records
    /// ([`RecordKey::check`](super::RecordKey::check)).
    pub fn float(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Float)
    }

    /// `size` bytes, which are compared one by one as by `memcmp`.
    pub fn bytes(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Bytes)
    }

    /// The same field in this byte order, which means nothing for [`bytes`](Self::bytes).
    #[must_use]
    pub fn endian(self, endian: Endian) -> Self {
        Self { endian, ..self }
    }

    /// The same field in this order.
    #[must_use]
    pub fn order(self, order: SortOrder) -> Self {
        Self { order, ..self }
    }
}
