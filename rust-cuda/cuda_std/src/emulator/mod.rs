//! A GPU on the CPU, for tests: runs kernels and checks every memory access through this crate's views.
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
//! Several blocks of a grid run at the same time, and others start as these end, in any order. One thread runs at a
//! time, until it waits, uses a word that blocks communicate with, or ends. The seed determines the order: another seed
//! gives another interleaving. A kernel's mistake ends the launch with a [`Fault`], which names the access, the thread
//! and the source line; see [`FaultKind`] for the checks. Two racing accesses are detected at any distance in time: the
//! condition is that nothing orders them.
//!
//! - A barrier of a block orders all accesses of the block before it and after it.
//!   [`sync_warp`](crate::warp::sync_warp) orders the accesses of the lanes in its mask. Shuffles and ballots
//!   synchronize lanes but order no memory, as on a GPU. Launches are always ordered.
//! - Blocks of one launch are ordered by a word and two fences: one thread executes
//!   [`device_fence`](crate::thread::device_fence) and then stores or updates the word, and another one loads that
//!   value and then executes a fence. What is ordered before the first fence is ordered before what comes after the
//!   second.
//! - Without such an order, a [`load`](crate::GlobalMut::load) may return an older value than the last one that another
//!   block has stored, and two loads may see two stores in the opposite order.
//! - Blocks that run go on. A thread that waits for a value which only a block that has not started could store is
//!   reported, as is any other endless wait.
//! - All threads of a block must arrive at each barrier, and all lanes in a warp operation's mask at that operation,
//!   even without further work. Lanes beyond the end of a partial last warp are not waited for; a value shuffled from
//!   one is arbitrary.
//! - [`Emulator::profile`] counts bank conflicts and uncoalesced accesses, for each source line.
//! - Accesses of a kernel through plain references and pointers are not observed. A [`Buffer`] that is written in this
//!   way must be made with [`Emulator::buffer`] for [`Emulator::read`] to accept it.

mod block;
mod clock;
mod fault;
mod host;
mod memory;
mod order;
mod profile;
mod random;
mod run;
mod schedule;
mod shadow;
mod stacks;
mod warp;
mod words;

pub(crate) mod backend;

pub use fault::{Access, Barrier, Conflict, Fault, FaultKind, Index3, Location, Missing, Space};
pub use memory::Buffer;
pub use profile::{Profile, Row};

use crate::Word;
use core::{
    fmt::{self, Display, Formatter},
    mem::take,
    panic::Location as Caller,
};
use memory::Memory;
use profile::Profiler;
use random::Random;
use run::{Run, Size};
use schedule::Threads;
use shadow::HOST_PHASE;
use std::{boxed::Box, format, string::String};

/// Maximum number of threads of a block.
pub const MAX_BLOCK_THREADS: u32 = 1024;

/// Maximum bytes of shared memory of a block: 227 KiB.
pub const MAX_SHARED_BYTES: u32 = 227 << 10;

/// The extent of a grid or of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// Along x: neighbouring threads are neighbouring lanes of a warp.
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

    /// The index of element number `linear`, in the order x, y, z.
    fn index(self, linear: u32) -> Index3 {
        if linear < self.x {
            // Without divisions, since this runs each time that a thread is resumed.
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

/// An emulated device with its memory.
pub struct Emulator {
    memory: Memory,
    random: Random,
    /// The last phase of the last launch.
    phase: u32,
    /// Maximum number of blocks that run at the same time, if it is not random.
    resident: Option<usize>,
    /// `None` if accesses are not counted.
    profiler: Option<Box<Profiler>>,
}

/// Maximum number of threads of a launch that run at the same time, if the number of blocks is random.
const RESIDENT_THREADS: usize = 2048;

impl Emulator {
    /// A device without buffers. `seed` determines the interleaving of threads.
    pub fn new(seed: u64) -> Self {
        let (memory, random) = (Memory::default(), Random::new(seed));
        Self { memory, random, phase: HOST_PHASE, resident: None, profiler: None }
    }

    /// Lets at most `count` blocks of a launch, and at least one, run at the same time, up to 8192 threads. By default
    /// each launch chooses a random number from 1 to 4.
    pub fn set_resident_blocks(&mut self, count: usize) {
        self.resident = Some(count);
    }

    /// Begins a [profile](Self::profile) of the next launches, or ends counting. By default, accesses are not counted.
    pub fn set_profiled(&mut self, on: bool) {
        self.profiler = on.then(Box::default);
    }

    /// The bank conflicts and the sectors of all launches since [`set_profiled`](Self::set_profiled), for each source
    /// line. Empty if accesses are not counted.
    pub fn profile(&self) -> Profile {
        self.profiler.as_ref().map_or_else(Profile::default, |profiler| profiler.profile())
    }

    /// The number of blocks of `threads` threads that run at the same time in the next launch.
    fn resident(&mut self, threads: usize) -> usize {
        match self.resident {
            Some(count) => count.min(4 * RESIDENT_THREADS / threads).max(1),
            // A launch whose blocks run one after another takes less time, and still reports what nothing orders.
            None => [1, 1, 1, 2, 3, 4][self.random.below(6)].min(RESIDENT_THREADS / threads).max(1),
        }
    }

    /// A new buffer with a copy of `values`.
    ///
    /// # Panics
    /// If the buffer is larger than the address space.
    pub fn buffer<T: Word>(&mut self, values: &[T]) -> Buffer<T> {
        self.memory.copy(values)
    }

    /// A new buffer of `len` uninitialized elements: each must be written before it is read.
    ///
    /// # Panics
    /// If the buffer is larger than the address space.
    pub fn uninit<T: Word>(&mut self, len: usize) -> Buffer<T> {
        self.memory.uninit(len)
    }

    /// Runs `kernel` once for each thread of each block of a grid, and waits for its end. Faults contain `name`.
    ///
    /// Unlike on a GPU, the launch ends when a thread fails, and memory keeps its contents at that time.
    ///
    /// # Errors
    /// The first mistake of the kernel, or [`FaultKind::Launch`] for a launch that a GPU or the emulator rejects:
    ///
    /// - `grid` or `block` is empty;
    /// - `grid` has more than 2^31 - 1 blocks along x, 65 535 along y or z, or 2^32 - 1 in total;
    /// - `block` has more than 1024 threads, or 64 along z;
    /// - `dynamic_shared_bytes` is above [`MAX_SHARED_BYTES`];
    /// - the caller is itself a kernel.
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
        let threads = block.count() as usize;
        let resident = self.resident(threads).min(grid.count() as usize);
        let size = Size { grid, block, shared_bytes: dynamic_shared_bytes, resident };
        let (state, random) = ((take(&mut self.memory), self.phase), Random::new(self.random.next()));
        let mut run = Run::new(name, size, state, random, launched_at);
        run.profiler = self.profiler.take();
        schedule::note_panics();
        if let Err(run) = run::enter(Box::new(run)) {
            (self.memory, self.phase, _, self.profiler) = run.finish();
            return Err(refused("a kernel cannot launch another".into()));
        }
        let mut threads = Threads::new(&kernel, resident, threads);
        threads.run();
        // Unwinds the threads that a fault has left inside the kernel. Their destructors may still call into the
        // launch.
        drop(threads);
        let ended;
        (self.memory, self.phase, ended, self.profiler) = run::leave().finish();
        ended
    }
}

/// Checks the launch, with the reason why a GPU would reject it.
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

    /// Phases have 32 bits: an emulator that has used half of the numbers starts again.
    #[test]
    fn phases_start_again() {
        let mut emulator = Emulator::new(1);
        let x = emulator.uninit::<u64>(2);
        // SAFETY: the buffer has 2 elements, and the emulator outlives the launches that use the view.
        let element = || unsafe { GlobalMut::<u64>::new(x.as_mut_ptr(), 2) };
        emulator.phase = u32::MAX / 2;
        emulator.launch("write", 1, 1, 0, || element().set(0, 9)).unwrap();
        assert!(emulator.phase > u32::MAX / 2);
        // SAFETY: the buffer has 2 elements, and the launch that uses the view does not write to it.
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
            // Started directly, since no launch begins with so late a phase.
            let size = Size { grid: 3.into(), block: 1.into(), shared_bytes: 0, resident: 1 };
            let run = Run::new("long", size, (Memory::default(), phase), Random::new(1), Caller::caller());
            assert!(run::enter(Box::new(run)).is_ok());
            let mut threads = Threads::new(&|| (), 1, 1);
            threads.run();
            drop(threads);
            run::leave().finish().2.is_ok()
        };
        assert!(run(u32::MAX - 3));
        assert!(!run(u32::MAX - 2));
    }
}
