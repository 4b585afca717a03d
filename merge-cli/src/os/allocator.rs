//! Memory that the system refuses: one line and the exit code of an error.
//!
//! Memory for keys and values is asked for by code that [handles](merge_host::allocation) a refusal: it gets the null
//! pointer. Where a vector or a text grows, nothing can go on, and the standard library would print several lines and
//! abort. It has no stable hook for that. Therefore this allocator, which knows that the refusal is not handled, ends
//! the program itself.

use super::signals;
use crate::say::error::out_of_memory;
use crate::say::{progress, report};
use merge_host::allocation::is_handled;
use signal_hook::low_level;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// Bytes of a line, at most.
const LINE: usize = 512;
/// Exit code of any error.
const ERROR: i32 = 2;
/// Bytes of memory that a program has to get before it starts: for the standard library, which aborts if it gets none.
const TO_START: usize = 1 << 20;

/// The thread that ends the program, or 0.
static ENDING: AtomicI32 = AtomicI32::new(0);
/// Whether an error was said that ends the program.
static HAS_SAID: AtomicBool = AtomicBool::new(false);

// SAFETY: The C runtime calls the functions in this section once, on one thread, before `main`. `check_start` has the
// calling convention it expects and may ignore the arguments. It needs nothing that Rust's runtime sets up.
#[unsafe(link_section = ".init_array")]
#[used]
static CHECK_START: extern "C" fn() = check_start;

extern "C" fn check_start() {
    // SAFETY: New pages at any address, which nothing uses before they are given back.
    let is_refused = unsafe {
        let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = libc::mmap(std::ptr::null_mut(), TO_START, protection, flags, -1, 0);
        pages == libc::MAP_FAILED || libc::munmap(pages, TO_START) != 0
    };
    if is_refused {
        exhausted(format_args!("memory to start with"));
    }
}

/// The system's allocator. An allocation that fails ends the program, unless that is handled.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

// SAFETY: All calls are the system's allocator's, with what the caller passes. `checked` returns the pointer that it is
// given, or does not return.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller keeps the contract of `alloc`.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller keeps the contract of `alloc_zeroed`.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: The caller keeps the contract of `realloc`, and `memory` is the system's allocator's.
        checked(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: The caller keeps the contract of `dealloc`, and `memory` is the system's allocator's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() && !is_handled() {
        exhausted(format_args!("{bytes} bytes more"));
    }
    memory
}

/// Says that the system does not give memory for `what`, unless an error was said already, and ends the program.
/// Nothing here allocates.
#[cold]
pub fn exhausted(what: Arguments<'_>) -> ! {
    begin_to_end();
    if HAS_SAID.swap(true, Ordering::Relaxed) {
        low_level::exit(ERROR);
    }
    let mut line = [0; LINE];
    let mut rest = &mut line[..];
    let _ = rest.write_all(progress::line_end());
    // A name that is too long is cut.
    let _ = writeln!(rest, "{}: {}", report::program(), out_of_memory(what));
    let length = LINE - rest.len();
    let _ = io::stderr().write_all(&line[..length]);
    signals::quit(ERROR)
}

/// Has no other thread end the program for lack of memory: the calling thread is about to end it.
pub fn begin_to_end() {
    // SAFETY: gettid(2) has no arguments, and always succeeds.
    let this = unsafe { libc::gettid() };
    let before = ENDING.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed);
    if before.is_err_and(|other| other != this) {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Has the lack of memory be no error any more that is worth a line: another one was said.
pub fn has_said_error() {
    HAS_SAID.store(true, Ordering::Relaxed);
}
