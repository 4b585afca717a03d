//! Memory for keys, or an error where there is not enough.

use crate::error::{Failure, Result};
use crate::key_type::FileKey;
use rayon::prelude::*;

/// Keys that a thread touches at once.
const PIECE: usize = 1 << 18;

/// `count` keys, all zero. `what` is what they are for, in a message.
///
/// The system gives the pages when they are first written to, so this costs no time. That is also why asking for too
/// much seems to succeed and later kills the program, and why this looks at what there is first.
pub fn zeroed<K: FileKey>(count: u64, what: &str) -> Result<Vec<K>> {
    let needed = u128::from(count) * K::SIZE as u128;
    let too_much = |free: String| Failure::new(format!("{what} takes {needed} bytes of memory, {free}"));
    if let Some(free) = available()
        && needed > free.into()
    {
        return Err(too_much(format!("and {free} are available")));
    }
    let count = usize::try_from(count).map_err(|_| too_much("which is too much".to_owned()))?;
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| too_much("and the system gives none".to_owned()))
}

/// Has the system give the pages of `keys` now, by all threads at once. A GPU's driver would do so page by page on one
/// thread while it copies, at a tenth of the speed.
pub fn touch<K: FileKey>(keys: &mut [K]) {
    keys.par_chunks_mut(PIECE).for_each(|piece| piece.fill(K::zeroed()));
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
