//! Memory for keys and values, or an error where there is not enough.

use crate::error::{Failure, Result};
use crate::report;
use bytemuck::Pod;
use rayon::prelude::*;

/// Numbers that a thread touches at once.
const PIECE: usize = 1 << 18;
/// Bytes of a large page on x86-64.
const LARGE_PAGE: usize = 2 << 20;
/// What to say where the system has refused.
const NONE_GIVEN: &str = "and the system gives none";

/// Bytes of memory that are worth a line of `--verbose`.
const LARGE: u128 = 1 << 20;

/// `count` numbers, all zero. `what` is what they are for, in a message.
///
/// The system gives the pages when they are first written to, so this costs no time. That is also why asking for too
/// much seems to succeed and later kills the program, and why this looks at what there is first.
pub fn zeroed<T: Pod>(count: u64, what: &str) -> Result<Vec<T>> {
    let needed = u128::from(count) * size_of::<T>() as u128;
    check(needed, what)?;
    let count = usize::try_from(count).map_err(|_| too_much(needed, what, "which is too much"))?;
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| too_much(needed, what, NONE_GIVEN))
}

/// Makes room for `more` numbers at the end of `numbers`, and for as many as there are at least, if there has to be more.
pub fn reserve<T>(numbers: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    if numbers.capacity() - numbers.len() >= more {
        return Ok(());
    }
    let needed = more.max(numbers.len()) as u128 * size_of::<T>() as u128;
    check(needed, what)?;
    numbers.try_reserve(more).map_err(|_| too_much(needed, what, NONE_GIVEN))
}

/// An error if so many bytes are not there. `what` is what they are for.
pub fn check(needed: u128, what: &str) -> Result<()> {
    let Some(free) = available() else { return Ok(()) };
    if needed > free.into() {
        return Err(too_much(needed, what, &format!("and {free} are available")));
    }
    if needed >= LARGE {
        report::verbose(format_args!("memory: {needed} bytes for {what}, of {free} available"));
    }
    Ok(())
}

fn too_much(needed: u128, what: &str, why: &str) -> Failure {
    Failure::new(format!("{what} takes {needed} bytes of memory, {why}"))
}

/// Has the system give pages of 2 MiB for `numbers` where it can: fewer to give one by one, and fewer addresses to look up
/// where places in them are visited in any order. Where it cannot, nothing changes.
pub fn prefer_large_pages<T: Pod>(numbers: &mut [T]) {
    let range = numbers.as_mut_ptr_range();
    let begin = range.start.addr().next_multiple_of(LARGE_PAGE);
    let end = range.end.addr() / LARGE_PAGE * LARGE_PAGE;
    if begin < end {
        let start = range.start.with_addr(begin).cast();
        // SAFETY: all of these pages belong to `numbers`, and what they hold stays as it is.
        let _ = unsafe { rustix::mm::madvise(start, end - begin, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Has the system give the pages of `numbers` now, by all threads at once. A GPU's driver would do so page by page on one
/// thread while it copies, at a tenth of the speed.
pub fn touch<T: Pod + Send + Sync>(numbers: &mut [T]) {
    numbers.par_chunks_mut(PIECE).for_each(|piece| piece.fill(T::zeroed()));
}

/// Bytes that a program can get without anything else having to go, as far as the system tells.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((field("MemAvailable")? + field("SwapFree").unwrap_or(0)).saturating_mul(1024))
}
