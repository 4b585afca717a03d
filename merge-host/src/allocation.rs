//! Memory allocations with failures that the crate handles.
//!
//! If an allocation fails, most code cannot go on, and the standard library aborts the process. A program can install a
//! global allocator that ends the program in another way. This allocator must not do so if the crate turns the failure
//! into an [`Error`](crate::Error). [`is_handled`] tells it.

use std::cell::Cell;

thread_local! {
    static IS_HANDLED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `allocate`, which returns an error if the system refuses memory.
///
/// ```
/// use merge_host::allocation;
///
/// let mut buffer: Vec<u8> = Vec::new();
/// assert!(allocation::handled(|| buffer.try_reserve_exact(1 << 62)).is_err());
/// assert!(!allocation::is_handled());
/// ```
pub fn handled<T>(allocate: impl FnOnce() -> T) -> T {
    let before = IS_HANDLED.replace(true);
    let result = allocate();
    IS_HANDLED.set(before);
    result
}

/// Whether the calling thread is in [`handled`]. Does not allocate, so an allocator can call it.
pub fn is_handled() -> bool {
    IS_HANDLED.get()
}
