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
