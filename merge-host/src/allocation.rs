//! Allocations whose failure is handled.
//!
//! Where the system refuses memory, most code has no way to go on, and the standard library aborts the process. A
//! program that wants to end in its own way installs a global allocator that does so. That allocator must not end it
//! where the failure is an [`Error`](crate::Error) of this crate: [`is_handled`] tells.

use std::cell::Cell;

thread_local! {
    static IS_HANDLED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `allocate`, which returns an error where the system refuses memory.
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

/// Whether the calling thread is in [`handled`]. It does not allocate, so that an allocator can call it.
pub fn is_handled() -> bool {
    IS_HANDLED.get()
}
