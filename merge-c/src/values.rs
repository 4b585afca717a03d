//! Values of any size. Values of 4 and 8 bytes are moved as numbers. For values of other sizes, an operation moves
//! their indices, and the values are gathered at the end.

use crate::format::gmerge_format;
use crate::status::Outcome;
use bytemuck::try_cast_slice;
use merge_host::{Error, Index, Key, permutation};

/// An operation that moves the values with the keys of an array in place.
pub(crate) trait InPlace {
    fn call<K: Key, V: Copy + Send + Sync>(&mut self, keys: &mut [K], values: &mut [V]) -> Outcome;
}

/// Calls `operation` with keys and the bytes of their values.
pub(crate) fn in_place<K: Key>(
    format: gmerge_format,
    keys: &mut [K],
    bytes: &mut [u8],
    operation: &mut impl InPlace,
) -> Outcome {
    match format.value_size {
        0 => return operation.call(keys, &mut vec![(); keys.len()]),
        4 if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, u32>(bytes) => return operation.call(keys, values),
        8 if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, u64>(bytes) => return operation.call(keys, values),
        _ => {}
    }
    if keys.len() as u64 <= 1 << 32 {
        in_place_by_index::<K, u32>(format, keys, bytes, operation)
    } else {
        in_place_by_index::<K, u64>(format, keys, bytes, operation)
    }
}

fn in_place_by_index<K: Key, I: Index>(
    format: gmerge_format,
    keys: &mut [K],
    bytes: &mut [u8],
    operation: &mut impl InPlace,
) -> Outcome {
    let mut indices = indices::<I>(keys.len(), 0)?;
    let mut moved = memory::<u8>(bytes.len())?;
    moved.resize(bytes.len(), 0);
    operation.call(keys, &mut indices)?;
    permutation::gather(format.value_size, &[bytes], &indices, &mut moved);
    bytes.copy_from_slice(&moved);
    Ok(())
}

/// An operation that reads elements of some arrays and writes elements to another one.
pub(crate) trait ToOutput {
    fn call<K: Key, V: Copy + Send + Sync>(&self, from: &[(&[K], &[V])], out: (&mut [K], &mut [V])) -> Outcome;
}

/// Calls `operation` with keys and the bytes of their values.
pub(crate) fn to_output<K: Key>(
    format: gmerge_format,
    from: &[(&[K], &[u8])],
    (keys, bytes): (&mut [K], &mut [u8]),
    operation: &impl ToOutput,
) -> Outcome {
    match format.value_size {
        0 => {
            let units = vec![(); from.iter().map(|run| run.0.len()).max().unwrap_or(0)];
            let from: Vec<_> = from.iter().map(|run| (run.0, &units[..run.0.len()])).collect();
            let mut values = vec![(); keys.len()];
            return operation.call(&from, (keys, &mut values));
        }
        4 if let (Some(from), Ok(values)) = (cast(from), bytemuck::try_cast_slice_mut::<u8, u32>(bytes)) => {
            return operation.call(&from, (keys, values));
        }
        8 if let (Some(from), Ok(values)) = (cast(from), bytemuck::try_cast_slice_mut::<u8, u64>(bytes)) => {
            return operation.call(&from, (keys, values));
        }
        _ => {}
    }
    if from.iter().map(|run| run.0.len() as u128).sum::<u128>() <= 1 << 32 {
        to_output_by_index::<K, u32>(format, from, (keys, bytes), operation)
    } else {
        to_output_by_index::<K, u64>(format, from, (keys, bytes), operation)
    }
}

/// The same elements with values of type `V`, if all are aligned.
fn cast<'a, K, V: bytemuck::Pod>(from: &[(&'a [K], &'a [u8])]) -> Option<Vec<(&'a [K], &'a [V])>> {
    from.iter().map(|run| Some((run.0, try_cast_slice(run.1).ok()?))).collect()
}

fn to_output_by_index<K: Key, I: Index>(
    format: gmerge_format,
    from: &[(&[K], &[u8])],
    (keys, bytes): (&mut [K], &mut [u8]),
    operation: &impl ToOutput,
) -> Outcome {
    let mut begin = 0;
    let mut numbered = Vec::new();
    for run in from {
        numbered.push(indices::<I>(run.0.len(), begin)?);
        begin += run.0.len();
    }
    let indexed: Vec<_> = from.iter().zip(&numbered).map(|(run, indices)| (run.0, indices.as_slice())).collect();
    let mut moved = indices::<I>(keys.len(), 0)?;
    operation.call(&indexed, (keys, &mut moved))?;
    let parts: Vec<&[u8]> = from.iter().map(|run| run.1).collect();
    permutation::gather(format.value_size, &parts, &moved, bytes);
    Ok(())
}

/// The indices of `count` elements, from `begin` on.
fn indices<I: Index>(count: usize, begin: usize) -> Outcome<Vec<I>> {
    let mut indices = memory(count)?;
    indices.extend((begin..begin + count).map(I::from_usize));
    Ok(indices)
}

/// An empty vector with capacity for `count` elements.
pub(crate) fn memory<T>(count: usize) -> Outcome<Vec<T>> {
    let mut memory = Vec::new();
    let needed = count.saturating_mul(size_of::<T>()) as u64;
    memory.try_reserve_exact(count).map_err(|_| Error::OutOfHostMemory { needed })?;
    Ok(memory)
}
