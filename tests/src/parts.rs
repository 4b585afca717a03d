//! Parts of arrays in a GPU's memory.

use bytemuck::Pod;
use merge_host::{DeviceArray, Stream};
use std::ops::Range;

/// The elements `range` of an array, by their address, as an array of `stream`.
///
/// # Panics
/// If the array has no such elements.
///
/// # Safety
/// The array is dropped after the work on the part. No call takes the array and the part, or two parts, if it writes an
/// element that both have. If `stream` is not the array's, the work of both streams on the elements is in order.
pub unsafe fn part<T: Pod>(stream: &Stream, array: &DeviceArray<T>, range: Range<usize>) -> DeviceArray<T> {
    assert!(range.start <= range.end && range.end <= array.len(), "the part exceeds the array");
    let address = array.address() + (range.start * size_of::<T>()) as u64;
    // SAFETY: the elements are in the array's memory, because `range.end <= array.len()`. The caller keeps the array
    // and orders the accesses.
    let part = unsafe { DeviceArray::from_address(stream, address, range.len()) };
    part.expect("the address of an element is aligned")
}
