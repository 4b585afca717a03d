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
    /// What is reserved. It is given back as a whole, and with it the file's part.
    reserved: MmapRaw,
    /// Where in it the file begins, and how long that is.
    begin: usize,
    length: usize,
}

impl Mapping {
    /// Maps `file`, which can be read and written, and is not empty.
    pub fn of(file: &File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let bytes = length.checked_add(LARGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let reserved = MmapRaw::from(MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?);
        let begin = reserved.as_ptr().align_offset(LARGE_PAGE);
        let address = reserved.as_mut_ptr().wrapping_add(begin).cast();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: begin + length <= reserved.len(), so that these addresses are among those reserved above, and nothing
        // refers to them yet.
        unsafe { rustix::mm::mmap(address, length, protection, flags, file, 0) }?;
        Ok(Self { reserved, begin, length })
    }

    /// Asks for large pages at `range`, of which the beginning and the end are multiples of their size. Each of them
    /// has to have some page already.
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
        // SAFETY: `address` has checked that the range is inside the mapping, and the caller that it can be written to.
        unsafe { address.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Has the pages at `range` leave this program's memory, which takes a while, and one thread if it is left to the
    /// end. The file keeps them.
    pub fn leave(&self, range: Range<usize>) {
        self.address(&range);
        // SAFETY: the range lies inside the mapping. The file's bytes stay as they are.
        let _ = unsafe {
            self.reserved.unchecked_advise_range(UncheckedAdvice::DontNeed, self.begin + range.start, range.len())
        };
    }

    /// That of the first byte of `range`.
    fn address(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.length, "the range lies inside the file");
        self.reserved.as_mut_ptr().wrapping_add(self.begin + range.start)
    }
}
