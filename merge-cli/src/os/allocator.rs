//! Refused allocations: one line of message, and the exit code of an error.
//!
//! Code that allocates memory for keys and values [handles](merge_host::allocation) a refusal, and gets the null
//! pointer. Where a vector or a string grows, the program cannot continue: the standard library would print several
//! lines and abort. It has no stable hook for that. Therefore this allocator ends the program itself if the refusal is
//! not handled.

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

/// Maximum length of the message, in bytes.
const LINE: usize = 512;
/// Exit code of any error.
const ERROR: i32 = 2;
/// Bytes that must be available at the start of the program. The standard library aborts if it gets no memory for its
/// own start.
const TO_START: usize = 1 << 20;

/// The thread that ends the program, or 0.
static ENDING: AtomicI32 = AtomicI32::new(0);
/// Whether an error that ends the program has been printed.
static HAS_SAID: AtomicBool = AtomicBool::new(false);

// SAFETY: The C runtime calls the functions in this section once, on one thread, before `main`. `check_start` has the
// expected calling convention, and a C function may ignore its arguments. It needs nothing that Rust's runtime sets up.
#[unsafe(link_section = ".init_array")]
#[used]
static CHECK_START: extern "C" fn() = check_start;

extern "C" fn check_start() {
    // SAFETY: Without MAP_FIXED, mmap(2) replaces no mapping. `munmap` gets the address and the length of the new
    // mapping, to which nothing refers.
    let is_refused = unsafe {
        let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = libc::mmap(std::ptr::null_mut(), TO_START, protection, flags, -1, 0);
        pages == libc::MAP_FAILED || libc::munmap(pages, TO_START) != 0
    };
    if is_refused {
        exhausted(format_args!("memory to start with"));
    }
}

/// The system's allocator. A failed allocation ends the program, unless the caller handles it.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

// SAFETY: Every function passes its arguments to the function of the same name of `System`, which fulfils the contract.
// `checked` returns its pointer unchanged, or does not return.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `alloc` of this trait has the contract of `System.alloc`: the size of `layout` is not 0.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `alloc_zeroed` of this trait has the contract of `System.alloc_zeroed`: the size of `layout` is not
        // 0.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `memory` comes from this allocator with `layout`, so `System` allocated it with `layout`. By the
        // contract of `realloc`, `size` is not 0 and fits the alignment.
        checked(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` comes from this allocator with `layout`, so `System` allocated it with `layout`.
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

/// Ends the program. Unless an error has been printed, prints that the system gives no memory for `what`. Nothing here
/// allocates.
#[cold]
pub fn exhausted(what: Arguments<'_>) -> ! {
    begin_to_end();
    if HAS_SAID.swap(true, Ordering::Relaxed) {
        low_level::exit(ERROR);
    }
    let mut line = [0; LINE];
    let mut rest = &mut line[..];
    let _ = rest.write_all(progress::line_end());
    // The message is cut where the name of the program is too long.
    let _ = writeln!(rest, "{}: {}", report::program(), out_of_memory(what));
    let length = LINE - rest.len();
    let _ = io::stderr().write_all(&line[..length]);
    signals::quit(ERROR)
}

/// Reserves the end of the program for the calling thread: another thread without memory waits here.
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

/// Suppresses the message about a lack of memory, because another error has been printed.
pub fn has_said_error() {
    HAS_SAID.store(true, Ordering::Relaxed);
}
