//! Allocation of scratch memory, with an error if there is not enough.
//!
//! The system provides the pages of a large allocation to the thread that first writes to them. Therefore [`zeroed`]
//! and [`uninit`] leave the first write to the threads that use the memory.

use crate::{Error, allocation};
use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_slice_box;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError, mpsc};
use std::{env, io};

/// Bytes that must remain for the system and the standard library after an allocation of scratch memory.
const HEADROOM: usize = 2 << 20;
/// The least size of an allocation after which [`HEADROOM`] is checked, in bytes.
const LARGE: usize = 1 << 20;

/// `count` zeros.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Result<Box<[T]>, Error> {
    let zeros = allocation::handled(|| try_zeroed_slice_box(count)).map_err(|()| out_of_memory::<T>(count))?;
    prefer_huge_pages(&zeros);
    check_headroom_after(&zeros)?;
    Ok(zeros)
}

/// Uninitialised memory for `count` values.
pub(crate) fn uninit<V>(count: usize) -> Result<Vec<MaybeUninit<V>>, Error> {
    let mut values = reserved(count)?;
    // SAFETY: the capacity is at least `count`, and a `MaybeUninit` need not be initialised.
    unsafe { values.set_len(count) };
    prefer_huge_pages(&values);
    Ok(values)
}

/// An empty vector with capacity for `count` values.
pub(crate) fn reserved<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    allocation::handled(|| values.try_reserve_exact(count)).map_err(|_| out_of_memory::<T>(count))?;
    check_headroom_after(values.spare_capacity_mut())?;
    Ok(values)
}

/// A vector of `count` copies of `value`.
pub(crate) fn filled<T: Copy>(value: T, count: usize) -> Result<Vec<T>, Error> {
    let mut values = reserved(count)?;
    values.resize(count, value);
    Ok(values)
}

/// A vector of all `items`.
pub(crate) fn collected<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>, Error> {
    let items = items.into_iter();
    let mut values = reserved(items.size_hint().0)?;
    for item in items {
        push(&mut values, item)?;
    }
    Ok(values)
}

/// Appends a value.
#[inline]
pub(crate) fn push<T>(values: &mut Vec<T>, value: T) -> Result<(), Error> {
    if values.len() == values.capacity() {
        grow(values)?;
    }
    values.push(value);
    Ok(())
}

/// Makes room for another value. Compiled once for each type of values, and not for each caller of [`push`].
#[cold]
#[inline(never)]
fn grow<T>(values: &mut Vec<T>) -> Result<(), Error> {
    allocation::handled(|| values.try_reserve(1)).map_err(|_| out_of_memory::<T>(values.len().saturating_mul(2).max(1)))
}

/// Checks the headroom after an allocation of at least [`LARGE`] bytes.
pub(super) fn check_headroom_after<T>(memory: &[T]) -> Result<(), Error> {
    if size_of_val(memory) < LARGE { Ok(()) } else { check_headroom() }
}

/// Checks that [`HEADROOM`] bytes can be allocated. The standard library and rayon abort the program if a small
/// allocation fails, such as the job of a thread.
pub(crate) fn check_headroom() -> Result<(), Error> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    try_allocate(HEADROOM)
}

/// Keeps a check of one thread from taking the memory that a starting thread needs.
static ALONE: Mutex<()> = Mutex::new(());

/// What a thread drops as soon as it runs.
pub(crate) struct Starting {
    _ends: mpsc::Sender<()>,
}

/// Starts a thread by `spawn`, and waits until it has dropped its [`Starting`]. A thread that has started aborts the
/// program if it gets no memory for the handler of a stack overflow. Therefore [`HEADROOM`] bytes must remain beside
/// its stack, and no check takes them meanwhile.
pub(crate) fn start_thread<T>(spawn: impl FnOnce(Starting) -> io::Result<T>) -> io::Result<T> {
    /// The size of a thread's stack in bytes, unless the environment sets another.
    const STACK: usize = 2 << 20;
    let stack = env::var("RUST_MIN_STACK").ok().and_then(|stack| stack.parse().ok()).unwrap_or(STACK);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    try_map(HEADROOM.saturating_add(stack)).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let (sender, started) = mpsc::channel();
    let thread = spawn(Starting { _ends: sender })?;
    // Nothing is sent: the thread closes the channel.
    let _ = started.recv();
    Ok(thread)
}

/// Allocates `bytes` bytes, and frees them.
fn try_allocate(bytes: usize) -> Result<(), Error> {
    let mut memory = Vec::<u8>::new();
    allocation::handled(|| memory.try_reserve_exact(bytes)).map_err(|_| out_of_memory::<u8>(bytes))?;
    // Without this the compiler removes the allocation, because nothing uses it.
    black_box(&mut memory);
    Ok(())
}

/// Maps `bytes` bytes, and unmaps them. The stacks of a thread are mapped. An allocator may serve an allocation from
/// address space that it has reserved, although the system would refuse a mapping.
#[cfg(target_os = "linux")]
fn try_map(bytes: usize) -> Result<(), Error> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the system chooses the address, so no other mapping changes. Nothing uses the memory before it is
    // unmapped.
    unsafe {
        let memory = mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE);
        memory.and_then(|memory| munmap(memory, bytes)).map_err(|_| out_of_memory::<u8>(bytes))
    }
}

#[cfg(not(target_os = "linux"))]
fn try_map(bytes: usize) -> Result<(), Error> {
    try_allocate(bytes)
}

/// Initialised values as elements of the type that [`uninit`] returns.
///
/// # Safety
/// The caller writes only copies of initialised values of type `V` to the slice.
pub(super) unsafe fn as_uninit_mut<V: Copy>(values: &mut [V]) -> &mut [MaybeUninit<V>] {
    // SAFETY: `MaybeUninit<V>` has the layout of `V`. The caller writes only initialised values, so `values` stays
    // initialised.
    unsafe { &mut *(std::ptr::from_mut(values) as *mut [MaybeUninit<V>]) }
}

/// [`as_uninit_mut`] of values that are only read.
pub(super) fn as_uninit<V>(values: &[V]) -> &[MaybeUninit<V>] {
    // SAFETY: `MaybeUninit<V>` has the layout of `V`, and a shared slice of it cannot be written.
    unsafe { &*(std::ptr::from_ref(values) as *const [MaybeUninit<V>]) }
}

/// Asks the system for pages of 2 MiB instead of 4 KiB: fewer pages are cleared one by one, and writes to many buckets
/// need fewer address translations. If the system refuses, nothing changes. Only Linux is asked.
pub(super) fn prefer_huge_pages<T>(memory: &[T]) {
    #[cfg(target_os = "linux")]
    advise_huge_pages(memory);
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(target_os = "linux")]
fn advise_huge_pages<T>(memory: &[T]) {
    /// Bytes of a huge page on x86-64, and on aarch64 with pages of 4 KiB.
    const HUGE_PAGE: usize = 2 << 20;
    let range = memory.as_ptr_range();
    let begin = range.start.addr().next_multiple_of(HUGE_PAGE);
    let end = range.end.addr() / HUGE_PAGE * HUGE_PAGE;
    if begin < end {
        let start = memory.as_ptr().with_addr(begin).cast_mut().cast();
        // SAFETY: `begin..end` is a non-empty range of whole pages inside `memory`, and this advice does not change
        // their contents.
        let _ = unsafe { rustix::mm::madvise(start, end - begin, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Prefetches the cache line of the value at `index`. There need not be such a value.
#[inline(always)]
pub(crate) fn prefetch<T>(values: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch does not change the program's state and does not fault at any address. Every x86-64
        // processor has SSE.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (values, index);
}

/// The error of a failed allocation of `count` values. `count` values may exceed the address space.
pub(crate) fn out_of_memory<T>(count: usize) -> Error {
    Error::OutOfHostMemory { needed: (count as u64).saturating_mul(size_of::<T>() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_address_space_is_an_error() {
        assert_eq!(zeroed::<u32>(usize::MAX).unwrap_err(), Error::OutOfHostMemory { needed: u64::MAX });
        assert_eq!(uninit::<u32>(usize::MAX).unwrap_err(), Error::OutOfHostMemory { needed: u64::MAX });
        let needed = usize::MAX as u64;
        assert_eq!(zeroed::<u8>(usize::MAX).unwrap_err(), Error::OutOfHostMemory { needed });
    }
}
