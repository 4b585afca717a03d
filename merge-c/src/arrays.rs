//! Arrays of a caller. Each is checked before it becomes a slice.

use crate::format::gmerge_format;
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

/// The memory of the arrays of a call, for the check that no output overlaps another array.
#[derive(Default)]
pub(crate) struct Memory(Vec<Range>);

struct Range {
    name: String,
    begin: usize,
    bytes: usize,
    is_output: bool,
}

impl Memory {
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
    ///
    /// # Safety
    /// `at` is null or valid for reads of `count` elements during `'a`.
    pub unsafe fn read<'a, T: Pod>(&mut self, name: &str, at: *const c_void, count: usize) -> Outcome<&'a [T]> {
        self.add(name.to_owned(), at, size_of::<T>(), count, false)?;
        check_alignment::<T>(name, at, count)?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: the pointer is not null, by `add`, it is aligned, and it is then valid for `count` elements of any
        // bits.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), count) })
    }

    /// The elements of an array that a call writes. No other array of this call overlaps it.
    ///
    /// # Safety
    /// `at` is null or valid for reads and writes of `count` elements during `'a`, and nothing else uses them.
    pub unsafe fn write<'a, T: Pod>(&mut self, name: &str, at: *mut c_void, count: usize) -> Outcome<&'a mut [T]> {
        self.add(name.to_owned(), at, size_of::<T>(), count, true)?;
        check_alignment::<T>(name, at, count)?;
        if count == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the pointer is not null, by `add`, it is aligned, and it is then valid for `count` elements of any
        // bits, which no other slice of this call has.
        Ok(unsafe { std::slice::from_raw_parts_mut(at.cast(), count) })
    }

    /// The bytes of the values of elements that a call reads.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    pub unsafe fn read_values<'a>(
        &mut self,
        name: &str,
        from: gmerge_input,
        format: gmerge_format,
    ) -> Outcome<&'a [u8]> {
        let bytes = value_bytes(name, format, from.count)?;
        // SAFETY: the caller's array has `count` values of `value_size` bytes.
        unsafe { self.read(&format!("{name}.values"), from.values, bytes) }
    }

    /// The bytes of the values of elements that a call writes.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    pub unsafe fn write_values<'a>(
        &mut self,
        name: &str,
        to: gmerge_output,
        format: gmerge_format,
    ) -> Outcome<&'a mut [u8]> {
        let bytes = value_bytes(name, format, to.count)?;
        // SAFETY: the caller's array has `count` values of `value_size` bytes.
        unsafe { self.write(&format!("{name}.values"), to.values, bytes) }
    }
}

fn value_bytes(name: &str, format: gmerge_format, count: usize) -> Outcome<usize> {
    let size = format.value_size;
    size.checked_mul(count).ok_or_else(|| {
        invalid(format!("{name}.values has {count} elements of {size} bytes, more than memory can have"))
    })
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

/// The place for a result.
///
/// # Safety
/// `at` is null or valid for a write during `'a`.
pub(crate) unsafe fn place<'a, T>(name: &str, at: *mut T) -> Outcome<&'a mut MaybeUninit<T>> {
    // SAFETY: `at` is null or valid for a write, by `# Safety`. A `MaybeUninit` need not be initialised.
    let place = unsafe { at.cast::<MaybeUninit<T>>().as_mut() };
    place.ok_or_else(|| invalid(format!("{name} is null, expected the address of a variable")))
}
