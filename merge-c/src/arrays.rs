//! Arrays of a caller. Each is checked before it becomes a slice.

use crate::format::gmerge_format;
use crate::objects::place;
use crate::status::{Failure, Outcome, invalid};
use bytemuck::Pod;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// Elements that a call reads: `count` keys, and a value for each if `format.value_size` is not 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_input {
    /// The keys, with the alignment of their type. May be null if `count` is 0.
    pub keys: *const c_void,
    /// The values. Ignored if `format.value_size` is 0.
    pub values: *const c_void,
    /// The number of keys.
    pub count: usize,
}

/// Elements that a call writes: `count` keys, and a value for each if `format.value_size` is not 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_output {
    /// The keys, with the alignment of their type. May be null if `count` is 0.
    pub keys: *mut c_void,
    /// The values. Ignored if `format.value_size` is 0.
    pub values: *mut c_void,
    /// The number of keys.
    pub count: usize,
}

/// The memory of the arrays of a call. Each array is checked, also that no output overlaps another array, before it
/// becomes a slice.
pub(crate) struct Memory(Vec<Range>);

struct Range {
    name: String,
    begin: usize,
    bytes: usize,
    is_output: bool,
}

impl Memory {
    /// # Safety
    /// Every pointer that is passed to a method is null, or valid for reads of the given number of elements until the
    /// call ends. If the call writes the elements, the pointer is valid for writes, too, and nothing else uses them.
    pub unsafe fn new() -> Self {
        Self(Vec::new())
    }

    /// Checks an array of `count` elements of `size` bytes, and notes where it is.
    fn add(&mut self, name: String, at: *const c_void, size: usize, count: usize, is_output: bool) -> Outcome {
        let bytes = size.checked_mul(count).filter(|bytes| isize::try_from(*bytes).is_ok());
        let Some(bytes) = bytes else {
            return Err(invalid(format!("{name} has {count} elements of {size} bytes, more than memory can have")));
        };
        if bytes == 0 {
            return Ok(());
        }
        if at.is_null() {
            return Err(invalid(format!("{name} is null, expected {count} elements of {size} bytes")));
        }
        let range = Range { name, begin: at.addr(), bytes, is_output };
        let end = range.begin.saturating_add(bytes);
        for other in &self.0 {
            let are_apart = end <= other.begin || other.begin.saturating_add(other.bytes) <= range.begin;
            if (range.is_output || other.is_output) && !are_apart {
                return Err(invalid(format!("{} overlaps {}", range.name, other.name)));
            }
        }
        self.0.push(range);
        Ok(())
    }

    /// The elements of an array that a call reads.
    pub fn read<'a, T: Pod>(&mut self, name: &str, at: *const c_void, count: usize) -> Outcome<&'a [T]> {
        self.add(name.to_owned(), at, size_of::<T>(), count, false)?;
        check_alignment::<T>(name, at, count)?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: the pointer is not null, by `add`, and it is aligned. Then it is, by the contract of `new`, valid for
        // `count` elements of any bits.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), count) })
    }

    /// The elements of an array that a call writes. No other array of this call overlaps it.
    pub fn write<'a, T: Pod>(&mut self, name: &str, at: *mut c_void, count: usize) -> Outcome<&'a mut [T]> {
        self.add(name.to_owned(), at, size_of::<T>(), count, true)?;
        check_alignment::<T>(name, at, count)?;
        if count == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the pointer is not null, by `add`, and it is aligned. Then it is, by the contract of `new`, valid for
        // `count` elements of any bits, which no other slice of this call has.
        Ok(unsafe { std::slice::from_raw_parts_mut(at.cast(), count) })
    }

    /// The bytes of the values of elements that a call reads.
    pub fn read_values<'a>(&mut self, name: &str, from: gmerge_input, format: gmerge_format) -> Outcome<&'a [u8]> {
        self.add(format!("{name}.values"), from.values, format.value_size, from.count, false)?;
        match format.value_size * from.count {
            0 => Ok(&[]),
            // SAFETY: the pointer is not null, by `add`. Then it is, by the contract of `new`, valid for `count` values
            // of `value_size` bytes.
            bytes => Ok(unsafe { std::slice::from_raw_parts(from.values.cast(), bytes) }),
        }
    }

    /// The bytes of the values of elements that a call writes.
    pub fn write_values<'a>(&mut self, name: &str, to: gmerge_output, format: gmerge_format) -> Outcome<&'a mut [u8]> {
        self.add(format!("{name}.values"), to.values, format.value_size, to.count, true)?;
        match format.value_size * to.count {
            0 => Ok(&mut []),
            // SAFETY: the pointer is not null, by `add`. Then it is, by the contract of `new`, valid for `count` values
            // of `value_size` bytes, which no other slice of this call has.
            bytes => Ok(unsafe { std::slice::from_raw_parts_mut(to.values.cast(), bytes) }),
        }
    }

    /// The runs that a call reads.
    pub fn read_runs<'a>(&mut self, name: &str, at: *const gmerge_input, count: usize) -> Outcome<&'a [gmerge_input]> {
        self.add(name.to_owned(), at.cast(), size_of::<gmerge_input>(), count, false)?;
        check_alignment::<gmerge_input>(name, at.cast(), count)?;
        // SAFETY: the pointer is not null, by `add`, and it is aligned. Then it is, by the contract of `new`, valid for
        // `count` runs.
        if count == 0 { Ok(&[]) } else { Ok(unsafe { std::slice::from_raw_parts(at, count) }) }
    }

    /// The place for a number that a call writes.
    pub fn place<'a>(&mut self, name: &str, at: *mut usize) -> Outcome<&'a mut MaybeUninit<usize>> {
        self.add(name.to_owned(), at.cast(), size_of::<usize>(), 1, true)?;
        // SAFETY: the pointer is null or valid for a write, by the contract of `new`.
        unsafe { place(name, at) }
    }
}

fn check_alignment<T>(name: &str, at: *const c_void, count: usize) -> Outcome {
    let align = align_of::<T>();
    if count == 0 || at.addr().is_multiple_of(align) {
        return Ok(());
    }
    Err(invalid(format!("{name} is at address {at:?}, expected a multiple of {align}")))
}

/// The error of an array that the result does not fit.
pub(crate) fn too_short(name: &str, found: usize, needed: usize) -> Failure {
    invalid(format!("{name}.count is {found}, but the result has {needed} keys"))
}
