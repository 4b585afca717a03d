//! The mistakes of kernels, with their locations.

use super::host::HOST;
use core::fmt::{self, Display, Formatter};
use std::{boxed::Box, string::String, vec::Vec};

/// An index along x, y and z: a thread's in its block, or a block's in its grid.
pub type Index3 = (u32, u32, u32);

/// A mistake of a kernel, with the thread that made it and the line of source.
///
/// As text it is one sentence:
///
/// ```
/// use cuda_std::{emulator::Emulator, prelude::*};
///
/// let mut emulator = Emulator::new(1);
/// let fault = emulator
///     .launch("too_far", 1, 32, 64, || {
///         // SAFETY: none, the launch has room for 16 elements, not 32: the emulator reports it.
///         let tile = unsafe { Shared::<u32>::dynamic(0, 32) };
///         if thread::thread_idx_x() == 20 {
///             tile.set(20, 1);
///         }
///     })
///     .unwrap_err();
/// assert_eq!((fault.kernel, fault.block, fault.thread), ("too_far", (0, 0, 0), (20, 0, 0)));
/// let text = fault.to_string();
/// assert!(text.starts_with("too_far: block 0, thread 20, "), "{text}");
/// assert!(text.ends_with("writes element 20 (bytes 80..84 of 64) of shared memory: out of bounds"), "{text}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the launch, or `Emulator::read` and the like for the host's calls.
    pub kernel: &'static str,
    /// The kind of mistake.
    pub kind: FaultKind,
    /// The block, or zeros if no thread is at fault ([`FaultKind::Launch`], and faults of the host's calls).
    pub block: Index3,
    /// The thread in its block, or zeros if no thread is at fault.
    pub thread: Index3,
    /// The line of the kernel, or the line of the host if no thread is at fault.
    pub location: Location,
}

/// A position in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    file: Box<str>,
    line: u32,
    column: u32,
}

impl Location {
    /// The path of the file, as given to the compiler.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, counted from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column, counted from 1.
    pub fn column(&self) -> u32 {
        self.column
    }
}

impl From<&core::panic::Location<'_>> for Location {
    fn from(from: &core::panic::Location<'_>) -> Self {
        Self { file: from.file().into(), line: from.line(), column: from.column() }
    }
}

impl Display for Location {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The kinds of mistakes.
///
/// If one mistake can appear in two ways, the interleaving decides. For example, a read may race with the first write
/// of a shared location. It is [`Uninitialised`](Self::Uninitialised) if it comes first, and a [`Race`](Self::Race)
/// otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An element or a range beyond the elements of a view.
    OutOfView {
        /// The first element of the range.
        start: usize,
        /// Number of elements of the range.
        count: usize,
        /// Number of elements of the view.
        len: usize,
    },
    /// An access outside of the launch's memory, regardless of the view.
    OutOfBounds {
        /// The memory.
        space: Space,
        /// Whether the thread read or wrote.
        access: Access,
        /// The first byte of the access, counted from the start of shared memory or of the nearest buffer. Without any
        /// buffer, the address.
        byte: i64,
        /// Bytes of the access.
        size: usize,
        /// Bytes of shared memory or of the nearest buffer.
        len: usize,
    },
    /// An access at an address that is not a multiple of its size.
    Misaligned {
        /// The memory.
        space: Space,
        /// Whether the thread read or wrote.
        access: Access,
        /// The first byte of the access, counted like in [`OutOfBounds`](Self::OutOfBounds).
        byte: i64,
        /// Bytes of the access.
        size: usize,
    },
    /// A read of unwritten memory: shared memory that this block has not written, or global memory that was never
    /// written.
    Uninitialised {
        /// The memory.
        space: Space,
        /// The first byte of the read, counted from the start of shared memory or of its buffer.
        byte: usize,
        /// Bytes of the read.
        size: usize,
        /// Bytes of shared memory or of the buffer.
        len: usize,
    },
    /// Two conflicting accesses to one byte, in one of three ways:
    ///
    /// - Two threads access it, and nothing orders the accesses: a barrier does within a block, and a word with two
    ///   fences between blocks. One access is a write, or exactly one is an atomic update.
    /// - A launch reads it as constant (through `Global`) and writes it, by any threads.
    /// - An asynchronous copy writes it, and any thread accesses it before the copying thread has waited.
    Race {
        /// The memory.
        space: Space,
        /// A byte of both accesses, counted from the start of shared memory or of its buffer.
        byte: usize,
        /// The access of the reported thread.
        access: Access,
        /// The other access, which came first in this interleaving.
        with: Box<Conflict>,
    },
    /// A barrier that cannot be passed: every thread that has not returned waits, too.
    Barrier {
        /// The barrier where the reported thread waits.
        barrier: Barrier,
        /// The threads that the barrier waits for.
        missing: Vec<Missing>,
    },
    /// A wait that never ends: the thread loads a word again and again, and no thread that could store another value is
    /// running. A GPU promises no more: a block that has not started may wait until another one has ended.
    Deadlock {
        /// Blocks of the launch that have not started.
        not_started: u32,
    },
    /// A warp operation with a mask that lacks a participating lane, or a shuffle from a lane above 31.
    Mask {
        /// The mask of the operation.
        mask: u32,
        /// The missing lane: the calling lane, or the source lane of a shuffle.
        lane: u32,
    },
    /// A panic in the kernel, with its message.
    Panic(String),
    /// A launch that a GPU would reject, with the reason.
    Launch(String),
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The memory of the device.
    Global,
    /// The memory of a block.
    Shared,
}

/// A kind of access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// A read.
    Read = 0,
    /// A read through [`Global`](crate::Global): nothing may write there during the launch.
    ReadConstant,
    /// A write.
    Write,
    /// A read and a write in one step, such as [`GlobalMut::fetch_add`](crate::GlobalMut::fetch_add). Such accesses do
    /// not race with each other.
    Update,
    /// A write by an [asynchronous copy](crate::Shared::copy_async) that the thread has not waited for.
    Copy,
}

/// The earlier of two racing accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The block.
    pub block: Index3,
    /// The thread in its block.
    pub thread: Index3,
    /// The kind of access.
    pub access: Access,
    /// The line in the source. If several lanes of a warp have read the byte, the line of the last one.
    pub location: Location,
    /// Whether the block is that of the reported thread.
    pub is_own_block: bool,
}

/// A synchronization that threads wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// `thread::sync_threads`.
    Block,
    /// A function of [`warp`](crate::warp), with this mask.
    Warp(u32),
}

/// A thread that does not arrive at a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The thread in its block.
    pub thread: Index3,
    /// The location where it waits instead, or `None` if it has returned from the kernel.
    pub waits_at: Option<Location>,
}

impl std::error::Error for Fault {}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kernel)?;
        if !self.kernel.starts_with(HOST) && !matches!(self.kind, FaultKind::Launch(_)) {
            write!(f, "block {}, thread {}, ", Short(self.block), Short(self.thread))?;
        }
        write!(f, "{}: {}", self.location, self.kind)
    }
}

impl Display for FaultKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfView { start, count: 1, len } => {
                write!(f, "uses element {start} of a view of {len}: out of bounds")
            }
            Self::OutOfView { start, count, len } => {
                write!(f, "takes {count} elements from {start} of a view of {len}: out of bounds")
            }
            Self::OutOfBounds { space, access, byte, size, len } => {
                let place = Place { byte: *byte, size: *size, len: Some(*len) };
                write!(f, "{access} {place} of {space}: out of bounds")
            }
            Self::Misaligned { space, access, byte, size } => {
                let place = Place { byte: *byte, size: *size, len: None };
                write!(f, "{access} {place} of {space}: not at a multiple of {size} bytes")
            }
            Self::Uninitialised { space, byte, size, len } => {
                let place = Place { byte: *byte as i64, size: *size, len: Some(*len) };
                write!(f, "reads {place} of {space}: never written")
            }
            Self::Race { space, byte, access, with } => fmt_race(f, (*space, *byte), *access, with),
            Self::Barrier { barrier, missing } => fmt_barrier(f, barrier, missing),
            Self::Deadlock { not_started } => {
                write!(f, "waits for a value that no running thread stores: all others wait, too, or have returned")?;
                match not_started {
                    0 => Ok(()),
                    1 => write!(f, "; 1 block has not started"),
                    n => write!(f, "; {n} blocks have not started"),
                }
            }
            Self::Mask { mask, lane } => {
                write!(f, "makes a warp operation with mask {mask:#x}, without lane {lane}, which takes part in it")
            }
            Self::Panic(message) => write!(f, "panics: {message}"),
            Self::Launch(reason) => write!(f, "cannot start: {reason}"),
        }
    }
}

fn fmt_race(f: &mut Formatter<'_>, (space, byte): (Space, usize), access: Access, with: &Conflict) -> fmt::Result {
    let Conflict { block, thread, access: earlier, location, is_own_block } = with;
    let (block, thread) = (Short(*block), Short(*thread));
    let past = match earlier {
        Access::Read => "read",
        Access::ReadConstant => "read as constant",
        Access::Write => "wrote",
        Access::Update => "atomically updated",
        Access::Copy => "began to copy to",
    };
    let order = match (access, earlier) {
        (Access::ReadConstant, _) | (_, Access::ReadConstant) => "in the same launch",
        (_, Access::Copy) => "and has not waited for the copy",
        _ if *is_own_block => "and no barrier is between",
        _ => "and nothing orders the two blocks",
    };
    write!(
        f,
        "{access} byte {byte} of {space}, which block {block}, thread {thread} {past} at {location}, {order}: race"
    )
}

fn fmt_barrier(f: &mut Formatter<'_>, barrier: &Barrier, missing: &[Missing]) -> fmt::Result {
    /// Threads that a message names.
    const NAMED: usize = 4;
    match barrier {
        Barrier::Block => write!(f, "waits at a barrier of the block")?,
        Barrier::Warp(mask) => write!(f, "waits at a warp operation with mask {mask:#x}")?,
    }
    match missing.len() {
        1 => write!(f, " that 1 thread never reaches")?,
        n => write!(f, " that {n} threads never reach")?,
    }
    for (i, missing) in missing.iter().take(NAMED).enumerate() {
        let thread = Short(missing.thread);
        let comma = if i == 0 { ":" } else { "," };
        match &missing.waits_at {
            Some(location) => write!(f, "{comma} thread {thread} waits at {location}")?,
            None => write!(f, "{comma} thread {thread} has returned")?,
        }
    }
    if missing.len() > NAMED { write!(f, ", and {} more", missing.len() - NAMED) } else { Ok(()) }
}

impl Display for Space {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "a buffer in global memory",
            Self::Shared => "shared memory",
        })
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "reads",
            Self::ReadConstant => "reads as constant",
            Self::Write => "writes",
            Self::Update => "atomically updates",
            Self::Copy => "copies to",
        })
    }
}

/// An index, displayed without trailing dimensions of 0.
struct Short(Index3);

impl Display for Short {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            (x, 0, 0) => write!(f, "{x}"),
            (x, y, 0) => write!(f, "({x}, {y})"),
            (x, y, z) => write!(f, "({x}, {y}, {z})"),
        }
    }
}

/// The bytes of an access, displayed with the element's index if they are aligned.
struct Place {
    byte: i64,
    size: usize,
    len: Option<usize>,
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (byte, size) = (self.byte, self.size as i64);
        let range = format_args!("bytes {byte}..{}", byte.wrapping_add(size));
        match self.len {
            Some(len) if byte % size == 0 => write!(f, "element {} ({range} of {len})", byte / size),
            Some(len) => write!(f, "{range} of {len}"),
            None => write!(f, "{range}"),
        }
    }
}
