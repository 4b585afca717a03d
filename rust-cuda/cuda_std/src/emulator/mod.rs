//! A GPU on the CPU, for tests: runs kernels and checks every memory access through the views of this crate.
//!
//! ```
//! use cuda_std::{emulator::Emulator, prelude::*};
//!
//! /// `y[i] = x[n - 1 - i]`, through shared memory.
//! unsafe fn reverse(x: *const u32, y: *mut u32, n: usize) {
//!     // SAFETY: the launch below passes buffers of `n` elements, `n` threads and room for `n` elements.
//!     let (x, y, tile) = unsafe { (Global::new(x, n), GlobalMut::new(y, n), Shared::dynamic(0, n as u32)) };
//!     let i = thread::thread_idx_x();
//!     tile.set(i, x.get(i as usize));
//!     thread::sync_threads();
//!     y.set(i as usize, tile.get(n as u32 - 1 - i));
//! }
//!
//! let mut emulator = Emulator::new(7);
//! let x = emulator.buffer(&[1, 2, 3, 4]);
//! let y = emulator.uninit::<u32>(x.len());
//! // SAFETY: what `reverse` asks for.
//! emulator.launch("reverse", 1, 4, 16, || unsafe { reverse(x.as_ptr(), y.as_mut_ptr(), 4) })?;
//! assert_eq!(emulator.read(y)?, [4, 3, 2, 1]);
//! # Ok::<(), cuda_std::emulator::Fault>(())
//! ```
//!
//! The blocks of a grid run one after another and so do the threads of a block, each until it waits or ends, in an order
//! that the seed decides: another seed is another interleaving. A kernel's mistake ends the launch with a [`Fault`] that
//! says who did what on which line; see [`FaultKind`] for what is checked. That an access races with another does not
//! depend on the two coming close: what counts is that no barrier orders them.
//!
//! - A block's barrier orders all accesses of the block before it and after it, [`sync_warp`](crate::warp::sync_warp)
//!   those of the lanes in its mask. Shuffles and votes let lanes wait for each other but order no memory, as on a GPU.
//!   Blocks of one launch are never ordered, launches always.
//! - All threads of a block have to come to each barrier, and all lanes in the mask of a warp operation to it, even if
//!   some of them have nothing left to do. Lanes that a partial last warp does not have are not waited for; a value
//!   shuffled from one is arbitrary.
//! - What a kernel does through plain references and pointers is not seen, so a [`Buffer`] written that way has to be made
//!   with [`Emulator::buffer`] for [`Emulator::read`] to accept it.

mod fault;
mod memory;
mod random;
mod run;
mod schedule;
mod shadow;
mod stacks;
mod warp;

pub(crate) mod backend;

pub use fault::{Access, Barrier, Conflict, Fault, FaultKind, Index3, Location, Missing, Space};
pub use memory::Buffer;

use crate::Word;
use core::{
    fmt::{self, Display, Formatter},
    mem::take,
    panic::Location as Caller,
};
use memory::Memory;
use random::Random;
use run::Run;
use schedule::Threads;
use shadow::HOST_PHASE;
use std::{boxed::Box, format, string::String, vec::Vec};

/// Threads that a block may have.
pub const MAX_BLOCK_THREADS: u32 = 1024;

/// Bytes of shared memory that a block may have: 227 KiB.
pub const MAX_SHARED_BYTES: u32 = 227 << 10;

/// The extent of a grid or of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// Along x: neighbours here are neighbours in a warp.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

impl Dim3 {
    fn count(self) -> u128 {
        u128::from(self.x) * u128::from(self.y) * u128::from(self.z)
    }

    /// The index of the `linear`th element, x first.
    fn index(self, linear: u32) -> Index3 {
        if linear < self.x {
            // Without divisions, as this is asked each time that a thread goes on.
            return (linear, 0, 0);
        }
        (linear % self.x, linear / self.x % self.y, linear / self.x / self.y)
    }
}

impl Display for Dim3 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} x {}", self.x, self.y, self.z)
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

/// A device with its memory.
pub struct Emulator {
    memory: Memory,
    random: Random,
    /// The last phase of the last launch.
    phase: u32,
}

impl Emulator {
    /// A device without buffers, on which `seed` decides how threads take turns.
    pub fn new(seed: u64) -> Self {
        Self { memory: Memory::default(), random: Random::new(seed), phase: HOST_PHASE }
    }

    /// A new buffer with a copy of `values`.
    ///
    /// # Panics
    /// If the buffer would be larger than an address space.
    pub fn buffer<T: Word>(&mut self, values: &[T]) -> Buffer<T> {
        self.memory.copy(values)
    }

    /// A new buffer of `len` elements without values: each has to be written before it is read.
    ///
    /// # Panics
    /// If the buffer would be larger than an address space.
    pub fn uninit<T: Word>(&mut self, len: usize) -> Buffer<T> {
        self.memory.uninit(len)
    }

    /// The elements of `buffer`.
    ///
    /// # Errors
    /// [`FaultKind::Uninitialised`] if an element was never written, [`FaultKind::OutOfBounds`] if the buffer is another
    /// emulator's.
    #[track_caller]
    pub fn read<T: Word>(&mut self, buffer: Buffer<T>) -> Result<Vec<T>, Fault> {
        let location = Caller::caller();
        self.memory.read(buffer).map_err(|kind| Fault {
            kernel: fault::HOST_READ,
            kind: *kind,
            block: (0, 0, 0),
            thread: (0, 0, 0),
            location: location.into(),
        })
    }

    /// Runs `kernel` once for each thread of each block of a grid, and waits for its end. `name` is for reports.
    ///
    /// Unlike a GPU's, the launch is over when a thread fails, and memory stays as it is then.
    ///
    /// # Errors
    /// The first mistake: one of the kernel, or [`FaultKind::Launch`] if `grid` or `block` have no elements or more
    /// than a GPU takes (2^31 - 1 blocks along x, 65 535 along y and z, 1024 threads, 64 of them along z), if there are
    /// 2^32 blocks or more, if `dynamic_shared_bytes` is above [`MAX_SHARED_BYTES`], or if the caller is itself a kernel.
    #[track_caller]
    pub fn launch(
        &mut self,
        name: &'static str,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        dynamic_shared_bytes: u32,
        kernel: impl Fn(),
    ) -> Result<(), Fault> {
        let launched_at = Caller::caller();
        let (grid, block) = (grid.into(), block.into());
        let refused = |reason| Fault {
            kernel: name,
            kind: FaultKind::Launch(reason),
            block: (0, 0, 0),
            thread: (0, 0, 0),
            location: launched_at.into(),
        };
        check_launch(grid, block, dynamic_shared_bytes).map_err(refused)?;
        if self.phase > u32::MAX / 2 {
            self.memory.forget_order();
            self.phase = HOST_PHASE;
        }
        let (state, random) = ((take(&mut self.memory), self.phase), Random::new(self.random.next()));
        let run = Run::new(name, (grid, block), dynamic_shared_bytes, state, random, launched_at);
        schedule::note_panics();
        if let Err(run) = run::enter(Box::new(run)) {
            (self.memory, self.phase, _) = run.finish();
            return Err(refused("a kernel cannot launch another".into()));
        }
        let order = run::within(Run::block_order);
        let mut threads = Threads::new(&kernel, block.count() as usize);
        for block in order {
            if !threads.run_block(block) {
                break;
            }
        }
        // Unwinds the threads that a fault has left in the middle, whose destructors may still call into the launch.
        drop(threads);
        let ended;
        (self.memory, self.phase, ended) = run::leave().finish();
        ended
    }
}

/// Why a GPU would refuse the launch.
fn check_launch(grid: Dim3, block: Dim3, shared_bytes: u32) -> Result<(), String> {
    let Dim3 { x, y, z } = grid;
    if grid.count() == 0 || block.count() == 0 {
        return Err(format!("a grid of {grid} blocks of {block} threads is empty"));
    }
    if x > i32::MAX as u32 || y > 65_535 || z > 65_535 || grid.count() > u128::from(u32::MAX) {
        return Err(format!("a grid of {grid} blocks is too large"));
    }
    if block.count() > u128::from(MAX_BLOCK_THREADS) || block.z > 64 {
        return Err(format!("a block of {block} threads is too large: it may have {MAX_BLOCK_THREADS}, 64 along z"));
    }
    if shared_bytes > MAX_SHARED_BYTES {
        return Err(format!("{shared_bytes} bytes of shared memory are more than the {MAX_SHARED_BYTES} of a block"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Global, GlobalMut};
    use std::vec;

    /// Phases are numbered in 32 bits: an emulator that has used half of them starts again.
    #[test]
    fn phases_start_again() {
        let mut emulator = Emulator::new(1);
        let x = emulator.uninit::<u64>(2);
        // SAFETY: element 0 is of the buffer.
        let element = || unsafe { GlobalMut::<u64>::new(x.as_mut_ptr(), 2) };
        emulator.phase = u32::MAX / 2;
        emulator.launch("write", 1, 1, 0, || element().set(0, 9)).unwrap();
        assert!(emulator.phase > u32::MAX / 2);
        // SAFETY: as above.
        let constant = || unsafe { Global::<u64>::new(x.as_ptr(), 2) };
        emulator.launch("read", 2, 1, 0, || assert_eq!(constant().get(0), 9)).unwrap();
        assert!(emulator.phase < 10);
        let fault = emulator.launch("race", 2, 1, 0, || element().set(0, 1)).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Race { .. }), "{fault}");
        let fault = emulator.launch("unwritten", 1, 1, 0, || _ = element().get(1)).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Uninitialised { byte: 8, .. }), "{fault}");
        emulator.launch("write", 1, 1, 0, || element().set(1, 8)).unwrap();
        assert_eq!(emulator.read(x).unwrap(), vec![1, 8]);
    }

    #[test]
    fn more_phases_than_there_are() {
        let run = |phase| {
            // Started by hand, as no launch begins this late.
            let run =
                Run::new("long", (3.into(), 1.into()), 0, (Memory::default(), phase), Random::new(1), Caller::caller());
            assert!(run::enter(Box::new(run)).is_ok());
            let mut threads = Threads::new(&|| (), 1);
            let ended = (0..3).all(|block| threads.run_block(block));
            drop(threads);
            assert_eq!(ended, run::leave().finish().2.is_ok());
            ended
        };
        assert!(run(u32::MAX - 3));
        assert!(!run(u32::MAX - 2));
    }
}
