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
};
use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    boxed::Box,
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
        let allocation = Allocation::new(bytes, size_of::<T>().max(1), initialised);
        let start = allocation.block.data().cast();
        let at = self.allocations.partition_point(|other| other.start < allocation.start);
        self.allocations.insert(at, allocation);
        Buffer { start, len }
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

    /// Reads the elements of a buffer on the host.
    pub(super) fn read<T: Word>(&mut self, buffer: Buffer<T>) -> Result<Vec<T>, Box<FaultKind>> {
        let (address, bytes) = (buffer.start.addr().get(), buffer.len * size_of::<T>());
        let at = self.find(Access::Read, address, bytes)?;
        let allocation = &self.allocations[at];
        if !allocation.initialised
            && let Some(unwritten) = allocation.shadow.first_unwritten(bytes)
        {
            let size = size_of::<T>();
            let (space, byte) = (Space::Global, unwritten - unwritten % size);
            return Err(Box::new(FaultKind::Uninitialised { space, byte, size, len: allocation.len }));
        }
        let mut values: Vec<T> = Vec::with_capacity(buffer.len);
        // SAFETY: `find` has checked that an allocation contains the buffer's `len` elements. All its bytes have values
        // since its creation, and any bytes are a valid `T`. `values` has capacity for `len` elements.
        unsafe {
            values.as_mut_ptr().copy_from_nonoverlapping(buffer.start.as_ptr(), buffer.len);
            values.set_len(buffer.len);
        }
        Ok(values)
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
