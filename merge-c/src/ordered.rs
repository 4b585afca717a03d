//! Operations on arrays that are sorted in an order other than that of their type. The keys are encoded as unsigned
//! numbers in that order, and the keys of the result are decoded.

use crate::format::{GMERGE_F16, GMERGE_F32, GMERGE_F64, gmerge_format};
use crate::status::Outcome;
use crate::values::memory;
use bytemuck::Zeroable;
use merge_host::{Key, NanFirst, NanLast, NanOrder, SortOrder, f16, parallel};

/// An operation on sorted arrays.
pub(crate) trait Sorted {
    /// Reads `from`, and writes keys to the first slots of `out`. Returns the number of these keys.
    fn call<K: Key>(&mut self, from: &[&[K]], out: &mut [K]) -> Outcome<usize>;
}

/// Calls `operation` with arrays in the order of `format`. Returns the number of keys of the result.
pub(crate) fn in_order<K: Key>(
    format: gmerge_format,
    from: &[&[K]],
    out: &mut [K],
    operation: &mut impl Sorted,
) -> Outcome<usize> {
    let (direction, nans) = format.direction_and_nans()?;
    // An array may have several runs, each with NaNs at one end.
    let has_nans = |keys: &&[K]| {
        parallel::find_first(keys.chunks(BLOCK), |keys| keys.iter().any(|key| is_nan(format, *key)).then_some(()))
            .is_some()
    };
    if direction == SortOrder::Ascending && (nans == NanOrder::Total || !from.iter().any(has_nans)) {
        return operation.call(from, out);
    }
    // A descending order is the reverse of an ascending order, which has NaNs at the other end.
    let is_descending = direction == SortOrder::Descending;
    let nans = match nans {
        NanOrder::Last if is_descending => NanOrder::First,
        NanOrder::First if is_descending => NanOrder::Last,
        nans => nans,
    };
    let encoded: Vec<Vec<K::Bits>> =
        from.iter().map(|keys| encoded(keys, nans, is_descending)).collect::<Outcome<_>>()?;
    let encoded: Vec<&[K::Bits]> = encoded.iter().map(Vec::as_slice).collect();
    let bits = bytemuck::cast_slice_mut::<K, K::Bits>(out);
    let count = operation.call(&encoded, bits)?;
    decode::<K>(&mut bits[..count], nans, is_descending);
    Ok(count)
}

/// Whether a key of the format's type is a NaN.
fn is_nan<K: Key>(format: gmerge_format, key: K) -> bool {
    match format.key_type {
        GMERGE_F16 => bytemuck::cast::<K, f16>(key).is_nan(),
        GMERGE_F32 => bytemuck::cast::<K, f32>(key).is_nan(),
        GMERGE_F64 => bytemuck::cast::<K, f64>(key).is_nan(),
        _ => false,
    }
}

/// The number of keys that a thread encodes at once.
const BLOCK: usize = 1 << 14;

fn encoded<K: Key>(keys: &[K], nans: NanOrder, is_descending: bool) -> Outcome<Vec<K::Bits>> {
    let mut bits = memory(keys.len())?;
    bits.resize(keys.len(), K::Bits::zeroed());
    parallel::for_each(bits.chunks_mut(BLOCK).zip(keys.chunks(BLOCK)), |(bits, keys)| {
        for (bits, key) in bits.iter_mut().zip(keys) {
            let ascending = match nans {
                NanOrder::Last => NanLast(*key).to_ordered(),
                NanOrder::First => NanFirst(*key).to_ordered(),
                _ => key.to_ordered(),
            };
            *bits = if is_descending { !ascending } else { ascending };
        }
    });
    Ok(bits)
}

fn decode<K: Key>(bits: &mut [K::Bits], nans: NanOrder, is_descending: bool) {
    parallel::for_each(bits.chunks_mut(BLOCK), |bits| {
        for bits in bits {
            let ascending = if is_descending { !*bits } else { *bits };
            let key = match nans {
                NanOrder::Last => NanLast::from_ordered(ascending).0,
                NanOrder::First => NanFirst::from_ordered(ascending).0,
                _ => K::from_ordered(ascending),
            };
            *bits = bytemuck::cast(key);
        }
    });
}
