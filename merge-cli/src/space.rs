//! Free space of file systems.

use std::path::Path;

/// Bytes that this user can write in `folder`, at most. `None` where nobody knows: some file systems say that they have no
/// blocks at all.
pub fn free_in(folder: &Path) -> Option<u128> {
    let system = rustix::fs::statvfs(folder).ok()?;
    // Some blocks are kept for root alone.
    let blocks = if rustix::process::geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    (system.f_blocks > 0).then(|| u128::from(blocks) * u128::from(system.f_frsize))
}
