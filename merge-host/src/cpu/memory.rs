//! Scratch memory, or an error where there is not enough.
//!
//! The system gives the pages of large memory when they are first written to, each to the thread that does: so nothing is
//! written here.

use crate::Error;
use bytemuck::Zeroable;
use std::mem::MaybeUninit;

/// `count` zeros.
pub(super) fn zeroed<T: Zeroable>(count: usize) -> Result<Box<[T]>, Error> {
    bytemuck::allocation::try_zeroed_slice_box(count).map_err(|()| out_of_memory::<T>(count))
}

/// Room for `count` values.
pub(super) fn room<V>(count: usize) -> Result<Vec<MaybeUninit<V>>, Error> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| out_of_memory::<V>(count))?;
    // SAFETY: there is room for `count`, and what may be uninitialised need not be initialised.
    unsafe { room.set_len(count) };
    Ok(room)
}

/// The values as what may be uninitialised: what values and [`room`] for them have in common.
///
/// # Safety
/// Nothing is written there but copies of values of the same type.
pub(super) unsafe fn as_room<V: Copy>(values: &mut [V]) -> &mut [MaybeUninit<V>] {
    // SAFETY: both types have the same layout, and the caller leaves values behind.
    unsafe { &mut *(std::ptr::from_mut(values) as *mut [MaybeUninit<V>]) }
}

fn out_of_memory<T>(count: usize) -> Error {
    Error::OutOfHostMemory { needed: (count * size_of::<T>()) as u64 }
}
