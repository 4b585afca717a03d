//! Fields of records.

use crate::{NanOrder, SortOrder};

/// The byte order of a number in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Endian {
    /// The least significant byte comes first.
    #[default]
    Little,
    /// The most significant byte comes first.
    Big,
}

/// The encoding of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    /// A signed number whose least value is `NaT`.
    Time,
    Float,
    Bfloat16,
    /// Whether a floating-point number is a NaN.
    IsNan,
    Bytes,
}

/// A field that orders records: bytes at an offset, which are a number or are compared one by one.
///
/// Numbers are little endian and in ascending order, and floating-point numbers are in total order, unless
/// [`endian`](Self::endian), [`order`](Self::order) and [`nans`](Self::nans) set others.
///
/// ```
/// use merge_host::SortOrder;
/// use merge_host::records::{Endian, Field};
///
/// // An f64 in the bytes 8 to 15 in descending order, and a u16 in the bytes 0 and 1 with the most significant byte
/// // first.
/// let fields = [Field::float(8, 8).order(SortOrder::Descending), Field::unsigned(0, 2).endian(Endian::Big)];
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) kind: Kind,
    pub(super) endian: Endian,
    pub(super) order: SortOrder,
    pub(super) nans: NanOrder,
}

impl Field {
    fn new(offset: usize, size: usize, kind: Kind) -> Self {
        Self { offset, size, kind, endian: Endian::Little, order: SortOrder::Ascending, nans: NanOrder::Total }
    }

    /// An unsigned integer of `size` bytes.
    pub fn unsigned(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Unsigned)
    }

    /// A signed integer of `size` bytes, in two's complement.
    pub fn signed(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Signed)
    }

    /// A date or duration of NumPy: a signed integer of 8 bytes whose least value is `NaT`, which is no time.
    ///
    /// ```
    /// use merge_host::NanOrder;
    /// use merge_host::records::{Field, RecordKey};
    ///
    /// let (nat, now) = (i64::MIN.to_le_bytes(), 1_764_288_000_i64.to_le_bytes());
    /// assert!(RecordKey::new(&[Field::time(0)]).compare(&nat, &now).is_lt());
    /// assert!(RecordKey::new(&[Field::time(0).nans(NanOrder::Last)]).compare(&nat, &now).is_gt());
    /// ```
    pub fn time(offset: usize) -> Self {
        Self::new(offset, size_of::<i64>(), Kind::Time)
    }

    /// An IEEE 754 floating-point number of `size` bytes. `size` is 2, 4, 8 or 16, or 0 for a field
    /// that orders nothing. A key with a float of another size orders no records
    /// ([`RecordKey::check`](super::RecordKey::check)).
    pub fn float(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Float)
    }

    /// A number of type bfloat16: the 2 most significant bytes of an IEEE 754 number of 4 bytes.
    pub fn bfloat16(offset: usize) -> Self {
        Self::new(offset, 2, Kind::Bfloat16)
    }

    /// Whether the number of a [`float`](Self::float) is a NaN: numbers and NaNs lie where [`nans`](Self::nans) says,
    /// in either direction. In total order, the field orders nothing. In a key, it takes 1 byte.
    ///
    /// Complex numbers are ordered as by NumPy if the key asks first which of both parts are NaNs:
    ///
    /// ```
    /// use merge_host::NanOrder;
    /// use merge_host::records::{Field, RecordKey};
    ///
    /// let fields = [Field::is_nan(0, 4), Field::is_nan(4, 4), Field::float(0, 4), Field::float(4, 4)];
    /// let key = RecordKey::new(&fields.map(|field| field.nans(NanOrder::Last)));
    /// let sorted = [[1.0, 2.0], [3.0, 0.0], [1.0, f32::NAN], [f32::NAN, 0.0], [f32::NAN, f32::NAN]];
    /// let records = sorted.map(|[re, im]| [re.to_le_bytes(), im.to_le_bytes()].concat());
    /// assert!(records.is_sorted_by(|a, b| key.compare(a, b).is_lt()));
    /// ```
    pub fn is_nan(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::IsNan)
    }

    /// `size` bytes, which are compared one by one as by `memcmp`.
    pub fn bytes(offset: usize, size: usize) -> Self {
        Self::new(offset, size, Kind::Bytes)
    }

    /// The same field in this byte order. [`bytes`](Self::bytes) have no byte order.
    #[must_use]
    pub fn endian(self, endian: Endian) -> Self {
        Self { endian, ..self }
    }

    /// The same field in this order.
    #[must_use]
    pub fn order(self, order: SortOrder) -> Self {
        Self { order, ..self }
    }

    /// The same field with NaNs in this order, which describes the result in either direction, as in
    /// [`SortOptions`](crate::SortOptions). Only [`float`](Self::float), [`is_nan`](Self::is_nan) and
    /// [`bfloat16`](Self::bfloat16) have NaNs, and [`time`](Self::time) has `NaT`, which lies where NaNs do, and first
    /// in total order.
    ///
    /// ```
    /// use merge_host::NanOrder;
    /// use merge_host::records::{Field, RecordKey};
    ///
    /// let key = RecordKey::new(&[Field::float(0, 4).nans(NanOrder::Last)]);
    /// assert!(key.compare(&(-f32::NAN).to_le_bytes(), &1.5f32.to_le_bytes()).is_gt());
    /// ```
    #[must_use]
    pub fn nans(self, nans: NanOrder) -> Self {
        Self { nans, ..self }
    }
    /// Bytes of the field in a key.
    pub(super) fn size_in_key(&self) -> usize {
        match (self.kind, self.nans) {
            (Kind::IsNan, NanOrder::Total) => 0,
            (Kind::IsNan, _) => self.size.min(1),
            _ => self.size,
        }
    }
}
