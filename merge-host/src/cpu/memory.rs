//! Scratch memory, or an error where there is not enough.
//!
//! The system gives the pages of large memory when they are first written to, each to the thread that does: so nothing is
//! written here.

use crate::Error;
use bytemuck::Zeroable;
use std::mem::MaybeUninit;

/// Bytes of a large page on x86-64.
const LARGE_PAGE: usize = 2 << 20;

/// `count` zeros.
pub(super) fn zeroed<T: Zeroable>(count: usize) -> Result<Box<[T]>, Error> {
    let zeros = bytemuck::allocation::try_zeroed_slice_box(count).map_err(|()| out_of_memory::<T>(count))?;
    prefer_large_pages(&zeros);
    Ok(zeros)
}

/// Room for `count` values.
pub(super) fn room<V>(count: usize) -> Result<Vec<MaybeUninit<V>>, Error> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| out_of_memory::<V>(count))?;
    // SAFETY: there is room for `count`, and what may be uninitialised need not be initialised.
    unsafe { room.set_len(count) };
    prefer_large_pages(&room);
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

/// The same of values that are only read.
pub(super) fn as_maybe_uninit<V>(values: &[V]) -> &[MaybeUninit<V>] {
    // SAFETY: both types have the same layout, and every value is one that may be uninitialised.
    unsafe { &*(std::ptr::from_ref(values) as *const [MaybeUninit<V>]) }
}

/// Has the system give pages of 2 MiB instead of 4 KiB where it can: fewer to clear one by one, and fewer addresses to
/// look up when keys go to 256 places in turn. Where it cannot, nothing changes.
fn prefer_large_pages<T>(memory: &[T]) {
    let range = memory.as_ptr_range();
    let begin = range.start.addr().next_multiple_of(LARGE_PAGE);
    let end = range.end.addr() / LARGE_PAGE * LARGE_PAGE;
    if begin < end {
        let start = memory.as_ptr().with_addr(begin).cast_mut().cast();
        // SAFETY: all of these pages belong to `memory`, and what they hold stays as it is.
        let _ = unsafe { rustix::mm::madvise(start, end - begin, rustix::mm::Advice::LinuxHugepage) };
    }
}

fn out_of_memory<T>(count: usize) -> Error {
    Error::OutOfHostMemory { needed: (count * size_of::<T>()) as u64 }
}
