//! What a kernel did wrong, and where.

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
    /// The name given to the launch, or `Emulator::read` where the host read.
    pub kernel: &'static str,
    /// What is wrong.
    pub kind: FaultKind,
    /// The block; zeros where no thread is at fault ([`FaultKind::Launch`], and what `Emulator::read` reports).
    pub block: Index3,
    /// The thread in its block; zeros where no thread is at fault.
    pub thread: Index3,
    /// The kernel's line, or the host's if no thread is at fault.
    pub location: Location,
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    file: Box<str>,
    line: u32,
    column: u32,
}

impl Location {
    /// The file's path, as the compiler was given it.
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
/// Where one mistake can show up in two ways, the interleaving decides: a read that races with the first write of a
/// shared location is [`Uninitialised`](Self::Uninitialised) if it comes first and a [`Race`](Self::Race) otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An element, or a part, beyond the elements of a view.
    OutOfView {
        /// The first element asked for.
        start: usize,
        /// Elements asked for.
        count: usize,
        /// Elements of the view.
        len: usize,
    },
    /// An access that is not in the memory of the launch, whatever the view says.
    OutOfBounds {
        /// The memory.
        space: Space,
        /// Whether the thread read or wrote.
        access: Access,
        /// The first byte of the access, counted from the start of shared memory or of the nearest buffer. With no
        /// buffer at all it is the address.
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
        /// The first byte of the access, counted as for [`OutOfBounds`](Self::OutOfBounds).
        byte: i64,
        /// Bytes of the access.
        size: usize,
    },
    /// A read of memory that was never written: in shared memory by this block, in global memory by anyone.
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
    /// Two accesses of different threads to one byte that no barrier orders, one of them a write, or one of them an atomic
    /// update and the other not; a read as constant (through `Global`) and a write in one launch, by whatever threads; or
    /// an access to the destination of an asynchronous copy before the wait for it, by whatever threads.
    Race {
        /// The memory.
        space: Space,
        /// A byte that both used, counted from the start of shared memory or of its buffer.
        byte: usize,
        /// What the reported thread did.
        access: Access,
        /// The other access, which came first in this interleaving.
        with: Box<Conflict>,
    },
    /// A barrier that cannot be passed: all threads that could still run wait, too.
    Barrier {
        /// The barrier that the reported thread waits at.
        barrier: Barrier,
        /// The threads that it waits for.
        missing: Vec<Missing>,
    },
    /// A warp operation whose mask leaves out a lane that it needs, or a shuffle from a lane past the warp's 32.
    Mask {
        /// The mask of the operation.
        mask: u32,
        /// The lane that the mask leaves out: the calling one, or the one that it shuffles from.
        lane: u32,
    },
    /// A panic in the kernel, with its message.
    Panic(String),
    /// A launch that a GPU would refuse, with the reason.
    Launch(String),
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The memory of the device.
    Global,
    /// The memory of a block.
    Shared,
}

/// What a thread does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// It reads.
    Read = 0,
    /// It reads through [`Global`](crate::Global): nothing may write there during the launch.
    ReadConstant,
    /// It writes.
    Write,
    /// It reads and writes in one step, as [`GlobalMut::fetch_add`](crate::GlobalMut::fetch_add) does. Such accesses do not
    /// race with each other.
    Update,
    /// It writes by an [asynchronous copy](crate::Shared::copy_async) that it has not waited for.
    Copy,
}

/// The earlier one of two racing accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The block.
    pub block: Index3,
    /// The thread in its block.
    pub thread: Index3,
    /// What it did.
    pub access: Access,
    /// Where in the source. If several lanes of a warp read the byte side by side it is the last one's line.
    pub location: Location,
}

/// What threads wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// `thread::sync_threads`.
    Block,
    /// A function of [`warp`](crate::warp), with this mask.
    Warp(u32),
}

/// A thread that does not come to a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The thread in its block.
    pub thread: Index3,
    /// Where it waits instead, or `None` if it has returned from the kernel.
    pub waits_at: Option<Location>,
}

/// The name that `Emulator::read` puts in the place of a kernel's.
pub(super) const HOST_READ: &str = "Emulator::read";

impl std::error::Error for Fault {}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kernel)?;
        if self.kernel != HOST_READ && !matches!(self.kind, FaultKind::Launch(_)) {
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
            Self::Race { space, byte, access, with } => {
                let Conflict { block, thread, access: earlier, location } = &**with;
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
                    _ => "and no barrier is between",
                };
                write!(
                    f,
                    "{access} byte {byte} of {space}, which block {block}, thread {thread} {past} at {location}, {order}: race"
                )
            }
            Self::Barrier { barrier, missing } => {
                match barrier {
                    Barrier::Block => write!(f, "waits at a barrier of the block")?,
                    Barrier::Warp(mask) => write!(f, "waits at a warp operation with mask {mask:#x}")?,
                }
                match missing.len() {
                    1 => write!(f, " that 1 thread never reaches")?,
                    n => write!(f, " that {n} threads never reach")?,
                }
                const NAMED: usize = 4;
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
            Self::Mask { mask, lane } => {
                write!(f, "makes a warp operation with mask {mask:#x}, without lane {lane}, which takes part in it")
            }
            Self::Panic(message) => write!(f, "panics: {message}"),
            Self::Launch(reason) => write!(f, "cannot start: {reason}"),
        }
    }
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

/// An index with only as many dimensions as it uses.
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

/// The bytes of an access, and which element of that size they are.
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
