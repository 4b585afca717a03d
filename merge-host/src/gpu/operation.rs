//! Operations as values: the work of a GPU on arrays in its memory.
//!
//! ```text
//!   Merge { a, b, out }  ──┬─ Call     arrays of a stream: checked, then queued
//!                          ├─ Gpu::run slices of the host: uploaded, then queued
//!                          └─ Record   nothing is launched: the entry points are listed
//! ```

use super::launch::{Arrays, Entry, Launch, OnTwo, Queue};
use super::{Address, launch};
use crate::Error;
use crate::key::sealed::GpuBits;
use std::cell::RefCell;
use std::collections::HashSet;

/// An operation on keys with bits `B`, `u32` or `u64`, or on a tuple of types if it depends on several.
///
/// It has the coding of the keys if it depends on their order. So it is compiled for two widths, and not for each type
/// of keys.
pub trait Operation<B> {
    /// Bytes of workspace. They depend on lengths and options, and not on addresses.
    fn workspace_bytes(&self) -> usize {
        0
    }

    /// Queues the launches.
    ///
    /// # Safety
    /// Every array is in the memory of the queue's GPU and has the length that the operation states. The workspace
    /// begins at a multiple of 16 and has [`workspace_bytes`](Self::workspace_bytes) bytes. An array that is written
    /// overlaps no other array. Until the launches have ended, nothing else writes an array, and nothing else reads an
    /// array that is written.
    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error>;
}

/// A queue that records the entry points of launches, and launches nothing.
pub(super) struct Record {
    entries: RefCell<HashSet<Entry>>,
    multiprocessors: usize,
}

/// Placeholder for the addresses of recorded arrays.
const NOWHERE: Address = 1 << 20;

impl Record {
    /// A record for a GPU with this number of multiprocessors.
    pub(super) fn new(multiprocessors: usize) -> Self {
        Self { entries: RefCell::default(), multiprocessors }
    }

    /// Arrays of this length with values of `value_bytes` bytes, for an operation that is only recorded.
    pub(super) const fn arrays(len: usize, value_bytes: usize) -> Arrays {
        Arrays { keys: NOWHERE, values: NOWHERE, len, value_bytes }
    }

    /// Adds the entry points that an operation launches.
    pub(super) fn add<B>(&self, operation: &impl Operation<B>) -> Result<(), Error> {
        // SAFETY: a `Record` only notes entry points, so no array is accessed.
        unsafe { operation.launch(self, NOWHERE) }
    }

    /// Adds the entry points of all operations on keys with bits `B`, for all lengths and widths of values.
    pub(super) fn add_all<B: GpuBits>(&self) -> Result<(), Error> {
        launch::all::record::<B>(self)
    }

    /// The recorded entry points.
    pub(super) fn entries(self) -> HashSet<Entry> {
        self.entries.into_inner()
    }
}

impl Queue for Record {
    fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    unsafe fn add(&self, launch: Launch<'_>) -> Result<(), Error> {
        debug_assert!(launch.exists, "{} {}", launch.kernel, launch.suffix);
        if launch.shape.blocks > 0 {
            self.entries.borrow_mut().insert((launch.kernel, launch.suffix.to_owned()));
        }
        Ok(())
    }

    unsafe fn clear(&self, _: Address, _: usize) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn copy(&self, _: Address, _: Address, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn join(&self, work: &OnTwo<'_>) -> Result<(), Error> {
        work(self, self)
    }
}
