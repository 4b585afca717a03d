//! Columns of rows in any order.

use super::chunk::Place;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, GenericByteArray, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use arrow_select::interleave::interleave;
use std::hint::black_box;
use std::sync::Arc;

/// The number of strings that are loaded to the cache before they are copied. Loads of strings do not wait for each
/// other, and copies do.
const AHEAD: usize = 64;

/// A column in several arrays, from which rows are gathered part by part.
pub trait Column: Send + Sync {
    /// The elements at `places`: at the index of an array, and at an index there.
    fn gather(&self, places: &[Place]) -> Result<ArrayRef, ArrowError>;
}

/// The column in `arrays` of one type. The type and the nulls are looked up now, and not for each part.
pub fn column(arrays: Vec<&dyn Array>) -> Box<dyn Column + '_> {
    let Some(data_type) = arrays.first().map(|array| array.data_type()) else { return Box::new(Any(arrays)) };
    match data_type {
        DataType::Utf8 => Strings::<Utf8Type>::of(&arrays),
        DataType::LargeUtf8 => Strings::<LargeUtf8Type>::of(&arrays),
        DataType::Binary => Strings::<BinaryType>::of(&arrays),
        DataType::LargeBinary => Strings::<LargeBinaryType>::of(&arrays),
        _ => match data_type.primitive_width() {
            Some(1) => Numbers::<u8>::of(&arrays),
            Some(2) => Numbers::<u16>::of(&arrays),
            Some(4) => Numbers::<u32>::of(&arrays),
            Some(8) => Numbers::<u64>::of(&arrays),
            _ => Box::new(Any(arrays)),
        },
    }
}

/// Arrays of any type.
struct Any<'a>(Vec<&'a dyn Array>);

impl Column for Any<'_> {
    fn gather(&self, places: &[Place]) -> Result<ArrayRef, ArrowError> {
        interleave(&self.0, places)
    }
}

/// The nulls of each array, if one of them has some.
struct Nulls(Option<Vec<Option<NullBuffer>>>);

impl Nulls {
    fn of(arrays: &[&dyn Array]) -> Self {
        let has_nulls = arrays.iter().any(|array| array.null_count() > 0);
        Self(has_nulls.then(|| arrays.iter().map(|array| array.nulls().cloned()).collect()))
    }

    fn gather(&self, places: &[Place]) -> Option<NullBuffer> {
        let nulls = self.0.as_ref()?;
        let is_valid = |i: usize| {
            let (array, row) = places[i];
            nulls[array].as_ref().is_none_or(|nulls| nulls.is_valid(row))
        };
        Some(NullBuffer::from(BooleanBuffer::collect_bool(places.len(), is_valid)))
    }
}

/// Numbers of any type with the size of `T`.
struct Numbers<T: ArrowNativeType> {
    data_type: DataType,
    values: Vec<ScalarBuffer<T>>,
    nulls: Nulls,
}

impl<T: ArrowNativeType> Numbers<T> {
    fn of<'a>(arrays: &[&'a dyn Array]) -> Box<dyn Column + 'a> {
        let values = |array: &&dyn Array| {
            let data = array.to_data();
            ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
        };
        let (data_type, nulls) = (arrays[0].data_type().clone(), Nulls::of(arrays));
        Box::new(Self { data_type, values: arrays.iter().map(values).collect(), nulls })
    }
}

impl<T: ArrowNativeType> Column for Numbers<T> {
    fn gather(&self, places: &[Place]) -> Result<ArrayRef, ArrowError> {
        let slices: Vec<&[T]> = self.values.iter().map(|values| &**values).collect();
        let values: Vec<T> = places.iter().map(|&(array, row)| slices[array][row]).collect();
        let data = ArrayData::builder(self.data_type.clone()).len(places.len()).nulls(self.nulls.gather(places));
        Ok(make_array(data.add_buffer(Buffer::from_vec(values)).build()?))
    }
}

/// Strings of text or of bytes.
struct Strings<'a, T: ByteArrayType> {
    arrays: Vec<&'a GenericByteArray<T>>,
    nulls: Nulls,
    /// Bytes of an average string, rounded up.
    average: usize,
}

impl<'a, T: ByteArrayType> Strings<'a, T> {
    fn of(arrays: &[&'a dyn Array]) -> Box<dyn Column + 'a> {
        let nulls = Nulls::of(arrays);
        let arrays: Vec<_> = arrays.iter().map(|array| array.as_bytes::<T>()).collect();
        let bytes = |array: &&GenericByteArray<T>| {
            let offsets = array.value_offsets();
            offsets[array.len()].as_usize() - offsets[0].as_usize()
        };
        let rows = arrays.iter().map(|array| array.len()).sum::<usize>();
        let average = arrays.iter().map(bytes).sum::<usize>().div_ceil(rows.max(1));
        Box::new(Self { arrays, nulls, average })
    }
}

impl<T: ByteArrayType> Column for Strings<'_, T> {
    fn gather(&self, places: &[Place]) -> Result<ArrayRef, ArrowError> {
        let mut values = Vec::with_capacity(places.len() * self.average);
        let mut offsets = Vec::with_capacity(places.len() + 1);
        offsets.push(T::Offset::default());
        for part in places.chunks(AHEAD) {
            let mut strings: [&[u8]; AHEAD] = [&[]; AHEAD];
            for (string, &(array, row)) in strings.iter_mut().zip(part) {
                *string = self.arrays[array].value(row).as_ref();
            }
            black_box(strings.iter().filter_map(|string| string.first()).fold(0, |all, byte| all ^ byte));
            for string in &strings[..part.len()] {
                values.extend_from_slice(string);
                let end = T::Offset::from_usize(values.len());
                offsets.push(end.ok_or_else(|| ArrowError::OffsetOverflowError(values.len()))?);
            }
        }
        let offsets = OffsetBuffer::new(offsets.into());
        let nulls = self.nulls.gather(places);
        Ok(Arc::new(GenericByteArray::<T>::try_new(offsets, values.into(), nulls)?))
    }
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
                for parts in &columns {
                    let last = parts[3].slice(10, 690);
                    let arrays: [&dyn Array; 4] = [&parts[0], &parts[1], &parts[2], &last];
                    let expected = interleave(&arrays, &places).unwrap();
                    assert_eq!(&column(arrays.to_vec()).gather(&places).unwrap(), &expected, "{count} {has_nulls}");
                }
            }
        }
    }
}
