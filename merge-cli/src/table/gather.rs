//! Columns of rows in any order.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, GenericByteArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType};
use arrow_select::interleave::interleave;
use std::hint::black_box;
use std::sync::Arc;

/// The number of strings that are loaded to the cache before they are copied. Loads of strings do not wait for each
/// other, and copies do.
const AHEAD: usize = 64;

/// The elements of `arrays` at `places`: at the index of an array, and at an index there.
pub fn gather(arrays: &[&dyn Array], places: &[(usize, usize)]) -> Result<ArrayRef, ArrowError> {
    match arrays.first().map(|array| array.data_type()) {
        Some(DataType::Utf8) => strings::<Utf8Type>(arrays, places),
        Some(DataType::LargeUtf8) => strings::<LargeUtf8Type>(arrays, places),
        Some(DataType::Binary) => strings::<BinaryType>(arrays, places),
        Some(DataType::LargeBinary) => strings::<LargeBinaryType>(arrays, places),
        _ => interleave(arrays, places),
    }
}

/// [`gather`] of strings.
fn strings<T: ByteArrayType>(arrays: &[&dyn Array], places: &[(usize, usize)]) -> Result<ArrayRef, ArrowError> {
    let arrays: Vec<&GenericByteArray<T>> = arrays.iter().map(|array| array.as_bytes::<T>()).collect();
    let is_valid = |i: usize| {
        let (array, row) = places[i];
        arrays[array].is_valid(row)
    };
    let has_nulls = arrays.iter().any(|array| array.null_count() > 0);
    let nulls = has_nulls.then(|| NullBuffer::from(BooleanBuffer::collect_bool(places.len(), is_valid)));
    let sizes = arrays.iter().map(|array| (array.len(), array.value_data().len()));
    let (rows, bytes) = sizes.fold((0, 0), |(rows, bytes), (of_rows, of_bytes)| (rows + of_rows, bytes + of_bytes));
    let mut values = Vec::with_capacity(places.len() * bytes.div_ceil(rows.max(1)));
    let mut offsets = Vec::with_capacity(places.len() + 1);
    offsets.push(T::Offset::default());
    for places in places.chunks(AHEAD) {
        let mut strings: [&[u8]; AHEAD] = [&[]; AHEAD];
        for (string, &(array, row)) in strings.iter_mut().zip(places) {
            *string = arrays[array].value(row).as_ref();
        }
        black_box(strings.iter().filter_map(|string| string.first()).fold(0, |all, byte| all ^ byte));
        for string in &strings[..places.len()] {
            values.extend_from_slice(string);
            let end = T::Offset::from_usize(values.len());
            offsets.push(end.ok_or_else(|| ArrowError::OffsetOverflowError(values.len()))?);
        }
    }
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(GenericByteArray::<T>::try_new(offsets, values.into(), nulls)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BinaryArray, LargeStringArray, StringArray};

    /// Strings of 0 to 40 bytes, of which some are missing.
    fn strings(seed: usize, len: usize, has_nulls: bool) -> Vec<Option<String>> {
        let string = |i: usize| "xyz€".repeat((i * 2654435761 + seed) >> 3 & 7) + &i.to_string();
        (0..len).map(|i| (!has_nulls || !(i + seed).is_multiple_of(3)).then(|| string(i))).collect()
    }

    #[test]
    fn strings_are_gathered_as_by_arrow() {
        let lengths = [0, 1, 5, 700];
        for has_nulls in [false, true] {
            let parts: Vec<_> = lengths.iter().enumerate().map(|(i, &len)| strings(i, len, has_nulls)).collect();
            let of = |make: &dyn Fn(&Vec<Option<String>>) -> ArrayRef| parts.iter().map(make).collect::<Vec<_>>();
            let columns = [
                of(&|part| Arc::new(part.iter().map(Option::as_deref).collect::<StringArray>())),
                of(&|part| Arc::new(part.iter().map(Option::as_deref).collect::<LargeStringArray>())),
                of(&|part| {
                    Arc::new(part.iter().map(|string| string.as_ref().map(String::as_bytes)).collect::<BinaryArray>())
                }),
            ];
            for count in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 1000] {
                // A slice is an array with an offset.
                let place = |i: usize| if i.is_multiple_of(5) { (2, i % 4) } else { (3, i * 7919 % 690) };
                let places: Vec<_> = (0..count).map(place).collect();
                for column in &columns {
                    let last = column[3].slice(10, 690);
                    let arrays: [&dyn Array; 4] = [&column[0], &column[1], &column[2], &last];
                    let expected = interleave(&arrays, &places).unwrap();
                    assert_eq!(&gather(&arrays, &places).unwrap(), &expected, "{count} {has_nulls}");
                }
            }
        }
    }
}
