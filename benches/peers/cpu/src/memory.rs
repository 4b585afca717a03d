//! Copies of keys in memory with huge pages.

use std::mem::MaybeUninit;

/// A copy of the items. From 4 MiB on, huge pages are requested, as for numpy's arrays.
pub fn copy<T: Copy>(items: &[T]) -> Vec<T> {
    let mut copy = with_capacity(items.len());
    copy.extend_from_slice(items);
    copy
}

/// `n` equal items, in memory like the memory of [`copy`].
pub fn filled<T: Copy>(item: T, n: usize) -> Vec<T> {
    let mut items = with_capacity(n);
    items.resize(n, item);
    items
}

fn with_capacity<T>(n: usize) -> Vec<T> {
    let mut items = Vec::with_capacity(n);
    ask_for_huge_pages(items.spare_capacity_mut());
    items
}

/// Requests huge pages, which the system may refuse.
fn ask_for_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    const LEAST: usize = 4 << 20;
    const PAGE: usize = 4096;
    let bytes = size_of_val(memory);
    if bytes < LEAST {
        return;
    }
    let start = memory.as_mut_ptr().cast::<u8>();
    let before = start.align_offset(PAGE);
    // SAFETY: `before < PAGE < bytes`, so the range is inside `memory`; the advice changes no byte of it.
    unsafe {
        libc::madvise(start.add(before).cast(), bytes - before, libc::MADV_HUGEPAGE);
    }
}
