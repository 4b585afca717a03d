//! A file in memory, mapped so that it can have large pages.
//!
//! The address of a large page is a multiple of its size, and so is its offset in the file. More addresses are reserved
//! than the file needs, so that it can begin at such a multiple:
//!
//! ```text
//!   reserved   ├┄┄┄┄├────── file ──────┤┄┄┄┄┄┤
//!                   └ a multiple of 2 MiB
//! ```

use crate::os::memory::LARGE_PAGE;
use memmap2::{MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ops::Range;

/// A file's bytes at addresses of this program.
#[derive(Debug)]
pub struct Mapping {
    /// The reserved addresses. Dropping them unmaps the file, too.
    reserved: MmapRaw,
    /// The offset at which the file begins in the reserved addresses, and its length, in bytes.
    begin: usize,
    length: usize,
}

impl Mapping {
    /// Maps `file`, which is open for reading and writing, and not empty.
    pub fn of(file: &File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let bytes = length.checked_add(LARGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let reserved = MmapRaw::from(MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?);
        let begin = reserved.as_ptr().align_offset(LARGE_PAGE);
        let address = reserved.as_mut_ptr().wrapping_add(begin).cast();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: begin + length <= reserved.len(), so that these addresses lie in `reserved`, and nothing refers to
        // them yet.
        unsafe { rustix::mm::mmap(address, length, protection, flags, file, 0) }?;
        Ok(Self { reserved, begin, length })
    }

    /// Requests large pages for `range`, which begins and ends at multiples of their size. The system must have
    /// allocated at least one small page within each large page.
    pub fn make_large(&self, range: Range<usize>) -> io::Result<()> {
        let address = self.address(&range).cast();
        // SAFETY: the range lies inside the mapping. The file's bytes stay as they are.
        let failed = unsafe { libc::madvise(address, range.len(), libc::MADV_COLLAPSE) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Copies `bytes` to the file, from byte `begin` on.
    ///
    /// # Safety
    /// The file has pages there for as long as this mapping exists, and no other thread writes there.
    pub unsafe fn write(&self, begin: usize, bytes: &[u8]) {
        let address = self.address(&(begin..begin + bytes.len()));
        // SAFETY: `address` has checked that the range lies inside the mapping. The caller promises that the file has
        // pages there, so that the write cannot fault, and that no other thread writes there. `bytes` cannot overlap
        // the mapping, to which no reference exists.
        unsafe { address.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Removes the pages at `range` from this program's memory. The file keeps them. Unmapping takes long, and at the
    /// end of the program one thread would do all of it.
    pub fn leave(&self, range: Range<usize>) {
        self.address(&range);
        // SAFETY: the range lies inside the mapping. The file's bytes stay as they are.
        let _ = unsafe {
            self.reserved.unchecked_advise_range(UncheckedAdvice::DontNeed, self.begin + range.start, range.len())
        };
    }

    /// The address of the first byte of `range`.
    fn address(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.length, "the range lies inside the file");
        self.reserved.as_mut_ptr().wrapping_add(self.begin + range.start)
    }
}
