//! Which file a name or a descriptor stands for.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// The identity of a file, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device that holds the file, or the device number of a block device.
    pub device: u64,
    /// The inode; 0 for a block device.
    pub inode: u64,
}

impl Identity {
    /// The identity of the file with this metadata.
    pub fn of(metadata: &Metadata) -> Self {
        match metadata.file_type().is_block_device() {
            // Several device nodes may stand for one device.
            true => Self { device: metadata.rdev(), inode: 0 },
            false => Self { device: metadata.dev(), inode: metadata.ino() },
        }
    }
}
