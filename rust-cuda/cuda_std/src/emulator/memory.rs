//! Global memory: the buffers of an emulated device.

use super::{
    fault::{Access, FaultKind, Space},
    shadow::{At, Era, HOST_PHASE, Past, Shadow, Trouble},
};
use crate::Word;
use core::{
    fmt::{self, Debug, Formatter},
    panic::Location,
    ptr::NonNull,
    slice,
};
use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    boxed::Box,
    vec,
    vec::Vec,
};

/// An array in the memory of an [`Emulator`](super::Emulator), which owns it. The handle can be copied, like the device
/// pointers that a kernel gets.
///
/// The address is a multiple of 256 bytes, like with `cudaMalloc`.
pub struct Buffer<T> {
    start: NonNull<T>,
    len: usize,
}

impl<T> Buffer<T> {
    /// The address of the first element, for reads.
    pub fn as_ptr(self) -> *const T {
        self.start.as_ptr()
    }

    /// The address of the first element, for writes.
    pub fn as_mut_ptr(self) -> *mut T {
        self.start.as_ptr()
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// The first `count` elements, as a buffer of their own in the same memory.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn first(self, count: usize) -> Self {
        assert!(count <= self.len, "{count} elements of {}", self.len);
        Self { len: count, ..self }
    }

    /// Whether the length is 0.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Buffer<T> {}

impl<T> Debug for Buffer<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:p}, {} elements)", self.start, self.len)
    }
}

/// All buffers, ordered by address.
#[derive(Default)]
pub(super) struct Memory {
    allocations: Vec<Allocation>,
    /// The index of the last buffer used: most accesses are to the same buffer as the one before.
    recent: usize,
}

/// The reason that an access to global memory is wrong.
pub(super) enum MemoryTrouble {
    Race { byte: usize, with: Past },
    Other(Box<FaultKind>),
}

impl Memory {
    /// A buffer with a copy of `values`.
    pub(super) fn copy<T: Word>(&mut self, values: &[T]) -> Buffer<T> {
        let buffer: Buffer<T> = self.allocate(values.len(), true);
        // SAFETY: the buffer is new and has `values.len()` elements, so that it is writable and does not overlap
        // `values`.
        unsafe { buffer.start.as_ptr().copy_from_nonoverlapping(values.as_ptr(), values.len()) }
        buffer
    }

    /// A buffer of unwritten elements.
    pub(super) fn uninit<T: Word>(&mut self, len: usize) -> Buffer<T> {
        self.allocate(len, false)
    }

    fn allocate<T: Word>(&mut self, len: usize, initialised: bool) -> Buffer<T> {
        let bytes = len.checked_mul(size_of::<T>()).expect("a buffer's bytes are counted in a usize");
        // An element may be `()`, of 0 bytes.
        let start = self.insert(Allocation::new(bytes, size_of::<T>().max(1), initialised)).cast();
        Buffer { start, len }
    }

    /// Adds an allocation, and returns its first byte.
    fn insert(&mut self, allocation: Allocation) -> NonNull<u8> {
        let start = allocation.block.data();
        let at = self.allocations.partition_point(|other| other.start < allocation.start);
        self.allocations.insert(at, allocation);
        start
    }

    /// Checks and records an access of a kernel.
    pub(super) fn access(
        &mut self,
        access: Access,
        address: usize,
        size: usize,
        at: &At<'_>,
        location: &'static Location<'static>,
    ) -> Result<(), MemoryTrouble> {
        let index = self.find(access, address, size).map_err(MemoryTrouble::Other)?;
        let allocation = &mut self.allocations[index];
        let (space, byte, len) = (Space::Global, address - allocation.start, allocation.len);
        if !byte.is_multiple_of(size) {
            let kind = FaultKind::Misaligned { space, access, byte: byte as i64, size };
            return Err(MemoryTrouble::Other(Box::new(kind)));
        }
        let first_write = if allocation.initialised { 0 } else { HOST_PHASE };
        let at = At { era: Era { start: at.now.launch_start, first_write }, ..*at };
        allocation.shadow.access(access, (byte, size), &at, location).map_err(|trouble| match trouble {
            Trouble::Uninitialised => {
                MemoryTrouble::Other(Box::new(FaultKind::Uninitialised { space, byte, size, len }))
            }
            Trouble::Race { byte, with } => MemoryTrouble::Race { byte, with },
        })
    }

    /// A buffer of `bytes` bytes, which are mostly accessed in words of 4 bytes. Returns its address.
    pub(super) fn bytes(&mut self, bytes: usize, initialised: bool) -> NonNull<u8> {
        self.insert(Allocation::new(bytes, size_of::<u32>(), initialised))
    }

    /// Frees the buffer that begins at `address`. Returns whether there is one.
    pub(super) fn free(&mut self, address: usize) -> bool {
        let found = self.allocations.binary_search_by_key(&address, |allocation| allocation.start);
        found.is_ok_and(|at| {
            self.allocations.remove(at);
            true
        })
    }

    /// The host's view of `size` written bytes at `address`, which are elements of `element` bytes.
    pub(super) fn written(&mut self, address: usize, size: usize, element: usize) -> Result<&[u8], Box<FaultKind>> {
        let at = self.find(Access::Read, address, size)?;
        let allocation = &self.allocations[at];
        let (begin, len) = (address - allocation.start, allocation.len);
        if !allocation.initialised
            && let Some(byte) = allocation.shadow.first_unwritten(begin..begin + size)
        {
            let byte = byte - (byte - begin) % element;
            return Err(Box::new(FaultKind::Uninitialised { space: Space::Global, byte, size: element, len }));
        }
        // SAFETY: `find` has checked that the allocation contains the bytes. All of them have values since its
        // creation, and `&mut self` excludes launches, which alone write them.
        Ok(unsafe { slice::from_raw_parts(allocation.block.data().as_ptr().add(begin), size) })
    }

    /// Copies `size` bytes. Bytes that were never written remain so in the copy.
    pub(super) fn copy_bytes(&mut self, from: usize, to: usize, size: usize) -> Result<(), Box<FaultKind>> {
        let at = self.find(Access::Read, from, size)?;
        let source = &self.allocations[at];
        let begin = from - source.start;
        let ranges = match source.initialised {
            true => vec![(begin..begin + size, true)],
            false => source.shadow.written_ranges(begin..begin + size),
        };
        // SAFETY: `find` has checked that the allocation contains the bytes. All of them have values since its
        // creation, and `&mut self` excludes launches, which alone write them.
        let copied = unsafe { slice::from_raw_parts(source.block.data().as_ptr().add(begin), size) }.to_vec();
        self.for_writing(to, size)?.copy_from_slice(&copied);
        let at = self.find(Access::Write, to, size)?;
        let target = &mut self.allocations[at];
        let moved = |byte: usize| byte - begin + (to - target.start);
        for (range, is_written) in ranges {
            target.shadow.host_has_written(moved(range.start)..moved(range.end), is_written);
        }
        Ok(())
    }

    /// The host's view of `size` bytes at `address`, which it writes.
    pub(super) fn for_writing(&mut self, address: usize, size: usize) -> Result<&mut [u8], Box<FaultKind>> {
        let at = self.find(Access::Write, address, size)?;
        let allocation = &mut self.allocations[at];
        let begin = address - allocation.start;
        allocation.shadow.host_has_written(begin..begin + size, true);
        // SAFETY: `find` has checked that the allocation contains the bytes. All of them have values since its
        // creation, and `&mut self` excludes launches and other views of them.
        Ok(unsafe { slice::from_raw_parts_mut(allocation.block.data().as_ptr().add(begin), size) })
    }

    /// The allocation with the `size` bytes at `address`.
    #[inline]
    fn find(&mut self, access: Access, address: usize, size: usize) -> Result<usize, Box<FaultKind>> {
        if let Some(recent) = self.allocations.get(self.recent)
            && recent.holds(address, size)
        {
            return Ok(self.recent);
        }
        let after = self.allocations.partition_point(|allocation| allocation.start <= address);
        match after.checked_sub(1) {
            Some(at) if self.allocations[at].holds(address, size) => {
                self.recent = at;
                Ok(at)
            }
            _ => {
                let (space, (byte, len)) = (Space::Global, self.outside(address, after));
                Err(Box::new(FaultKind::OutOfBounds { space, access, byte, size, len }))
            }
        }
    }

    /// For an address outside of all buffers: its offset from the nearest buffer, and the length of that buffer.
    /// `after` is the index of the first buffer beyond the address.
    #[cold]
    fn outside(&self, address: usize, after: usize) -> (i64, usize) {
        let neighbours = &self.allocations[after.saturating_sub(1)..self.allocations.len().min(after + 1)];
        let distance = |a: &&Allocation| {
            if address < a.start { a.start - address } else { (address - a.start).saturating_sub(a.len) }
        };
        match neighbours.iter().min_by_key(distance) {
            Some(nearest) => (address.wrapping_sub(nearest.start) as i64, nearest.len),
            None => (address as i64, 0),
        }
    }

    pub(super) fn forget_order(&mut self) {
        for allocation in &mut self.allocations {
            allocation.shadow.forget_order();
        }
    }
}

struct Allocation {
    /// The address of the first byte.
    start: usize,
    len: usize,
    /// Whether the host has initialized all elements.
    initialised: bool,
    block: Block,
    shadow: Shadow,
}

impl Allocation {
    fn new(len: usize, element: usize, initialised: bool) -> Self {
        let block = Block::new(len);
        Self { start: block.data().addr().get(), len, initialised, block, shadow: Shadow::new(len, element) }
    }

    #[inline]
    fn holds(&self, address: usize, size: usize) -> bool {
        let byte = address.wrapping_sub(self.start);
        byte <= self.len && size <= self.len - byte
    }
}

// SAFETY: a block owns its bytes, like a `Box<[u8]>`, and only functions that take `&mut self` access them.
unsafe impl Send for Block {}

/// Memory between two guard areas, so that an access slightly out of bounds does not hit another buffer.
struct Block {
    base: NonNull<u8>,
    layout: Layout,
}

impl Block {
    const ALIGN: usize = 256;
    const GUARD: usize = 16 * Self::ALIGN;
    /// The bytes of uninitialized memory, for a kernel that reads it without checks.
    const POISON: u8 = 0xa5;

    fn new(len: usize) -> Self {
        let layout = len.checked_add(2 * Self::GUARD).and_then(|n| Layout::from_size_align(n, Self::ALIGN).ok());
        let layout = layout.expect("a buffer's bytes are counted in an isize");
        // SAFETY: the layout has at least `2 * GUARD` bytes, so that `alloc` may be called. Its result has
        // `layout.size()` writable bytes.
        unsafe {
            let Some(base) = NonNull::new(alloc(layout)) else { handle_alloc_error(layout) };
            base.write_bytes(Self::POISON, layout.size());
            Self { base, layout }
        }
    }

    fn data(&self) -> NonNull<u8> {
        // SAFETY: the allocation begins with `GUARD` bytes, so that the offset is inside it.
        unsafe { self.base.add(Self::GUARD) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated `base` with `layout`, and nothing frees it earlier.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}
