//! What the host does with the memory of an emulated device: copies in both directions, and memory of any type.

use super::{
    Emulator,
    fault::{Fault, FaultKind},
    memory::Buffer,
};
use crate::Word;
use core::{panic::Location as Caller, ptr::NonNull};
use std::{boxed::Box, vec::Vec};

/// In faults of the host's calls, the kernel's name begins so.
pub(super) const HOST: &str = "Emulator::";

impl Emulator {
    /// The elements of `buffer`.
    ///
    /// # Errors
    /// [`FaultKind::Uninitialised`] if an element was never written, and [`FaultKind::OutOfBounds`] if the buffer
    /// belongs to another emulator.
    #[track_caller]
    pub fn read<T: Word>(&mut self, buffer: Buffer<T>) -> Result<Vec<T>, Fault> {
        let (bytes, element) = (buffer.len() * size_of::<T>(), size_of::<T>().max(1));
        let written = self.memory.written(buffer.as_ptr().addr(), bytes, element).or_fault("Emulator::read")?;
        let mut values: Vec<T> = Vec::with_capacity(buffer.len());
        // SAFETY: `values` has capacity for `buffer.len()` elements, and `written` has their bytes. Any bytes are a
        // valid `T`.
        unsafe {
            values.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(written.as_ptr(), bytes);
            values.set_len(buffer.len());
        }
        Ok(values)
    }

    /// A new buffer of uninitialised bytes, for elements of any types. Returns its address, which is a multiple of 256.
    ///
    /// # Panics
    /// If the buffer is larger than the address space.
    pub fn allocate(&mut self, bytes: usize) -> usize {
        self.memory.bytes(bytes, false).addr().get()
    }

    /// A new buffer that the host accesses, too, between launches, like page-locked memory. All of its bytes count as
    /// written. Returns the first one.
    ///
    /// # Panics
    /// If the buffer is larger than the address space.
    pub fn allocate_shared(&mut self, bytes: usize) -> NonNull<u8> {
        self.memory.bytes(bytes, true)
    }

    /// Frees the buffer that begins at `address`. A later access to it is out of bounds. Returns whether there is such
    /// a buffer.
    pub fn free(&mut self, address: usize) -> bool {
        self.memory.free(address)
    }

    /// Writes `bytes` to the memory at `address`.
    ///
    /// # Errors
    /// [`FaultKind::OutOfBounds`] if no buffer has all of the memory.
    #[track_caller]
    pub fn upload(&mut self, address: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.memory.for_writing(address, bytes.len()).or_fault("Emulator::upload")?.copy_from_slice(bytes);
        Ok(())
    }

    /// Reads `bytes` from the memory at `address`.
    ///
    /// # Errors
    /// [`FaultKind::OutOfBounds`] if no buffer has all of the memory, and [`FaultKind::Uninitialised`] if a byte was
    /// never written.
    #[track_caller]
    pub fn download(&mut self, address: usize, bytes: &mut [u8]) -> Result<(), Fault> {
        bytes.copy_from_slice(self.memory.written(address, bytes.len(), 1).or_fault("Emulator::download")?);
        Ok(())
    }

    /// Copies `bytes` bytes from one place of the memory to another. Bytes that were never written may be copied, and
    /// are unwritten in the copy.
    ///
    /// # Errors
    /// [`FaultKind::OutOfBounds`] if no buffer has all of the memory on one side.
    #[track_caller]
    pub fn copy(&mut self, from: usize, to: usize, bytes: usize) -> Result<(), Fault> {
        self.memory.copy_bytes(from, to, bytes).or_fault("Emulator::copy")
    }

    /// Sets `bytes` bytes at `address` to `value`.
    ///
    /// # Errors
    /// Those of [`upload`](Self::upload).
    #[track_caller]
    pub fn fill(&mut self, address: usize, value: u8, bytes: usize) -> Result<(), Fault> {
        self.memory.for_writing(address, bytes).or_fault("Emulator::fill")?.fill(value);
        Ok(())
    }
}

/// Names the host's call that failed.
trait OrFault<T> {
    fn or_fault(self, call: &'static str) -> Result<T, Fault>;
}

impl<T> OrFault<T> for Result<T, Box<FaultKind>> {
    #[track_caller]
    fn or_fault(self, call: &'static str) -> Result<T, Fault> {
        let location = Caller::caller().into();
        self.map_err(|kind| Fault { kernel: call, kind: *kind, block: (0, 0, 0), thread: (0, 0, 0), location })
    }
}
