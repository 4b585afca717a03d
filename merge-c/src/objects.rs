//! Objects that the library makes for a caller, and places for results.

use crate::status::{Outcome, gmerge_status, guard, invalid};
use std::mem::MaybeUninit;

/// The place for a result.
///
/// # Safety
/// `at` is null or valid for a write during `'a`.
pub(crate) unsafe fn place<'a, T>(name: &str, at: *mut T) -> Outcome<&'a mut MaybeUninit<T>> {
    let align = align_of::<T>();
    if !at.addr().is_multiple_of(align) {
        return Err(invalid(format!("{name} is at address {at:?}, expected a multiple of {align}")));
    }
    // SAFETY: `at` is null or valid for a write, by `# Safety`, and aligned. A `MaybeUninit` need not be initialised.
    let place = unsafe { at.cast::<MaybeUninit<T>>().as_mut() };
    place.ok_or_else(|| invalid(format!("{name} is null, expected the address of a variable")))
}

/// Writes the address of a new object to `at`, or null if `new` fails.
///
/// # Safety
/// `at` is null or valid for a write.
pub(crate) unsafe fn make<T>(name: &str, at: *mut *mut T, new: impl FnOnce() -> Outcome<T>) -> gmerge_status {
    guard(|| {
        // SAFETY: `at` is null or valid for a write, by `# Safety`.
        let to = unsafe { place(name, at) }?;
        to.write(std::ptr::null_mut());
        to.write(Box::into_raw(Box::new(new()?)));
        Ok(())
    })
}

/// An object of this library.
///
/// # Safety
/// `at` is null, or an object that is not freed during `'a`.
pub(crate) unsafe fn object<'a, T>(name: &str, at: *const T) -> Outcome<&'a T> {
    // SAFETY: `at` is null or an object that lives long enough, by `# Safety`.
    let object = unsafe { at.as_ref() };
    object.ok_or_else(|| invalid(format!("{name} is null, expected one that this library has made")))
}

/// Frees an object. Does nothing if it is null.
///
/// # Safety
/// `at` is null, or comes from [`make`], and is used by nothing any more.
pub(crate) unsafe fn free<T>(at: *mut T) {
    if !at.is_null() {
        // SAFETY: `make` has leaked this box, and it is freed once, by `# Safety`.
        drop(unsafe { Box::from_raw(at) });
    }
}
