//! Operations as values: the work of a GPU on arrays in its memory.
//!
//! ```text
//!   Merge { a, b, out }  ──┬─ Call     arrays of a stream: checked, then queued
//!                          ├─ Gpu::run slices of the host: uploaded, then queued
//!                          └─ Record   nothing is launched: the entry points are listed
//! ```

use super::launch::batch::{Batch, Ragged};
use super::launch::bits::SortByBits;
use super::launch::bounds::Bounds;
use super::launch::groups::{ReduceByKey, RunLengths, SortUnique, Unique};
use super::launch::many_ragged::MergeManyRagged;
use super::launch::many_runs::MergeMany;
use super::launch::merge::{Merge, MergeTree};
use super::launch::narrow::{self, Use, Widened};
use super::launch::segments::SortSegments;
use super::launch::sets::Sets;
use super::launch::sort::Sort;
use super::launch::top_k::TopK;
use super::launch::top_k_segments::TopKSegments;
use super::launch::{Arrays, Entry, Launch, OnTwo, Queue};
use super::{Address, launch};
use crate::Error;
use crate::key::sealed::{DeviceBits, GpuBits};
use kernels_gpu::key::Coding;
use std::cell::RefCell;
use std::collections::HashSet;

/// An operation. `T` is a tuple of the types that a user's own order depends on, and `()` for numbers.
pub trait Operation<T = ()> {
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

/// The coding of keys of any width.
#[derive(Clone, Copy, Debug)]
pub enum KeyCoding {
    /// Of keys of 1 byte.
    U8(Coding<u8>),
    /// Of keys of 2 bytes.
    U16(Coding<u16>),
    /// Of keys of 4 bytes.
    U32(Coding<u32>),
    /// Of keys of 8 bytes.
    U64(Coding<u64>),
    /// Of keys of 16 bytes.
    U128(Coding<u128>),
}

impl KeyCoding {
    /// The bits of a key.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::U8(_) => u8::BITS,
            Self::U16(_) => u16::BITS,
            Self::U32(_) => u32::BITS,
            Self::U64(_) => u64::BITS,
            Self::U128(_) => u128::BITS,
        }
    }
}

impl<B: DeviceBits> From<Coding<B>> for KeyCoding {
    fn from(coding: Coding<B>) -> Self {
        B::key_coding(coding)
    }
}

/// Evaluates an expression with `coding` as the coding of keys of 4 or 8 bytes. For keys of other widths, the value is
/// the expression after `else`.
macro_rules! with_coding {
    ($of:expr, $coding:ident => $work:expr, else $other:expr) => {
        match $of {
            $crate::gpu::operation::KeyCoding::U32($coding) => $work,
            $crate::gpu::operation::KeyCoding::U64($coding) => $work,
            _ => $other,
        }
    };
}
pub(super) use with_coding;

/// An operation on numbers, written for keys with any bits.
pub trait OnNumbers {
    /// [`Operation::workspace_bytes`] for keys with bits `B`.
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        0
    }

    /// [`Operation::launch`] for keys with this coding.
    ///
    /// # Safety
    /// The conditions of [`Operation::launch`] hold.
    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error>;
}

/// [`Operation::workspace_bytes`] of an operation on numbers with this coding.
pub(super) fn workspace_bytes<O: Widened>(operation: &O, coding: KeyCoding) -> usize {
    match coding {
        KeyCoding::U8(_) | KeyCoding::U16(_) => narrow::workspace_bytes(operation),
        KeyCoding::U32(_) => operation.workspace_bytes_of::<u32>(),
        KeyCoding::U64(_) => operation.workspace_bytes_of::<u64>(),
        KeyCoding::U128(_) => 0,
    }
}

/// [`Operation::launch`] of an operation on numbers with this coding.
///
/// # Safety
/// The conditions of [`Operation::launch`] hold.
pub(super) unsafe fn launch<O: Widened>(
    operation: &O,
    coding: KeyCoding,
    queue: &dyn Queue,
    workspace: Address,
) -> Result<(), Error> {
    // SAFETY: this function and the functions that it calls have the same conditions.
    unsafe {
        match coding {
            KeyCoding::U8(coding) => narrow::launch(operation, coding, queue, workspace),
            KeyCoding::U16(coding) => narrow::launch(operation, coding, queue, workspace),
            KeyCoding::U32(coding) => operation.queue(coding, queue, workspace),
            KeyCoding::U64(coding) => operation.queue(coding, queue, workspace),
            KeyCoding::U128(_) => Err(Error::NoKernels { key: "u128" }),
        }
    }
}

/// Implements [`Operation`] for operations on numbers, which have the coding of their keys as a field. These functions
/// are not generic. So all widths are compiled in this crate, and not again in each crate that uses it.
macro_rules! operations {
    ($($O:ty)*) => {$(
        impl Operation for $O {
            fn workspace_bytes(&self) -> usize {
                workspace_bytes(self, self.coding)
            }

            unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
                // SAFETY: both functions have the same conditions.
                unsafe { launch(self, self.coding, queue, workspace) }
            }
        }
    )*};
}
operations! {
    Batch Bounds Merge MergeMany MergeManyRagged MergeTree<'_> Ragged ReduceByKey RunLengths Sets SortByBits
    SortSegments SortUnique TopK TopKSegments Unique
}

/// Implements [`Widened`]: names the arrays of keys of each operation.
macro_rules! widened {
    ($($O:ty: $operation:ident => $arrays:expr;)*) => {$(
        impl Widened for $O {
            fn arrays(&mut self) -> Vec<(Use, &mut Arrays)> {
                let $operation = self;
                $arrays.into()
            }

            fn set_coding(&mut self, coding: KeyCoding) {
                self.coding = coding;
            }
        }
    )*};
}
widened! {
    Batch: it => {
        let [a, b, out] = &mut it.arrays;
        [(Use::READ, a), (Use::READ, b), (Use::WRITE, out)]
    };
    Bounds: it => [(Use::READ, &mut it.needles), (Use::READ, &mut it.keys)];
    Merge: it => {
        let out = Use::write_first(it.out.count);
        [(Use::READ, &mut it.a), (Use::READ, &mut it.b), (out, &mut it.out)]
    };
    MergeMany: it => [(Use::READ, &mut it.from), (Use::WRITE, &mut it.out)];
    MergeManyRagged: it => [(Use::READ, &mut it.from), (Use::WRITE, &mut it.out)];
    MergeTree<'_>: it => {
        let ends_in_to = MergeTree::ends_in_to(it.lengths.len());
        let [from, to] = if ends_in_to { [Use::READ, Use::WRITE] } else { [Use::UPDATE, Use::SCRATCH] };
        [(from, &mut it.from), (to, &mut it.to)]
    };
    Ragged: it => [(Use::READ, &mut it.a), (Use::READ, &mut it.b), (Use::WRITE, &mut it.out)];
    ReduceByKey: it => {
        it.out.len = it.out.len.min(it.at.len);
        [(Use::READ, &mut it.at), (Use::write_first(it.count), &mut it.out)]
    };
    RunLengths: it => {
        it.out.len = it.out.len.min(it.at.len);
        [(Use::READ, &mut it.at), (Use::write_first(it.count), &mut it.out)]
    };
    Sets: it => {
        it.out.len = it.out.len.min(it.a.len.saturating_add(it.b.len));
        [(Use::READ, &mut it.a), (Use::READ, &mut it.b), (Use::write_first(it.count), &mut it.out)]
    };
    Sort: it => {
        it.bits = it.coding.bits();
        [(Use::UPDATE, &mut it.at)]
    };
    SortByBits: it => [(Use::UPDATE, &mut it.at)];
    SortSegments: it => [(Use::UPDATE, &mut it.at)];
    SortUnique: it => [(Use::update_first(it.count), &mut it.at)];
    TopK: it => [(Use::READ, &mut it.from), (Use::write_first(it.out.count), &mut it.out)];
    TopKSegments: it => [(Use::READ, &mut it.from), (Use::UPDATE, &mut it.out)];
    Unique: it => {
        it.out.len = it.out.len.min(it.at.len);
        [(Use::READ, &mut it.at), (Use::write_first(it.count), &mut it.out)]
    };
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
        Arrays { keys: NOWHERE, values: NOWHERE, len, value_bytes, count: 0 }
    }

    /// Adds the entry points that an operation launches.
    pub(super) fn add(&self, operation: &dyn Operation) -> Result<(), Error> {
        // SAFETY: a `Record` only notes entry points, so no array is accessed.
        unsafe { operation.launch(self, NOWHERE) }
    }

    /// Adds the entry points of all operations on keys of the width of `coding`, for all lengths and widths of values.
    pub(super) fn add_all(&self, coding: KeyCoding) -> Result<(), Error> {
        launch::all::record(self, coding)
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
