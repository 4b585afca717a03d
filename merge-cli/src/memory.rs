//! Memory for keys and values, or an error where there is not enough.

use crate::error::{Failure, Result};
use bytemuck::Pod;
use rayon::prelude::*;

/// Numbers that a thread touches at once.
const PIECE: usize = 1 << 18;

/// `count` numbers, all zero. `what` is what they are for, in a message.
///
/// The system gives the pages when they are first written to, so this costs no time. That is also why asking for too
/// much seems to succeed and later kills the program, and why this looks at what there is first.
pub fn zeroed<T: Pod>(count: u64, what: &str) -> Result<Vec<T>> {
    let needed = u128::from(count) * size_of::<T>() as u128;
    let too_much = |free: String| Failure::new(format!("{what} takes {needed} bytes of memory, {free}"));
    if let Some(free) = available()
        && needed > free.into()
    {
        return Err(too_much(format!("and {free} are available")));
    }
    let count = usize::try_from(count).map_err(|_| too_much("which is too much".to_owned()))?;
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| too_much("and the system gives none".to_owned()))
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
