//! The operating system: memory, disks, limits, threads, signals and the standard streams.

pub mod allocator;
mod cgroup;
pub mod disk;
pub mod limits;
pub mod memory;
pub mod process;
pub mod signals;
pub mod standard;
pub mod threads;

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The text of a file of the kernel, or `None` if it cannot be read. Such a file tells no length, and the kernel writes
/// it anew for each read: one read is enough for most.
fn text(path: impl AsRef<Path>) -> Option<String> {
    const MOST: usize = 1 << 12;
    let mut text = String::with_capacity(MOST);
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}
