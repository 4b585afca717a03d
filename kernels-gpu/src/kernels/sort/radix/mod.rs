//! LSD radix sort: passes over all bits of a key, from the least significant digit. Its time does not depend on the
//! keys.
//!
//! ```text
//!   phase           bits of a key
//!     0    count    histograms of the digits of all passes
//!     1    sweep    │        │        │        │ ██████ │
//!     2    sweep    │        │        │ ██████ │        │     each pass is stable, so that after the last one
//!     3    sweep    │        │ ██████ │        │        │     keys are in the order of all bits
//!     4    sweep    │ ██████ │        │        │        │
//! ```
//!
//! Each pass reads and writes the keys once. The output index of a key depends on all earlier tiles, and a
//! [`look_back`] finds it in the same launch. This follows "Onesweep: A Faster Least Significant Digit Radix Sort for
//! GPUs" (Adinets and Merrill, 2022). Its base is "Single-pass Parallel Prefix Scan with Decoupled Look-back" (Merrill
//! and Garland, 2016).
//!
//! One launch runs all phases. A phase is a number of tasks: a share of the keys to count, or a tile to move. Blocks
//! take tasks in order, and wait before a phase until all tasks of the phase before are finished. Running blocks hold
//! all such tasks by then. The number of blocks that the GPU holds at once therefore does not matter.
//!
//! Skewed keys of 4 bytes are sorted by this algorithm, without and with values, and so are keys that the sort does not
//! [divide](super::divide).

pub mod count;
pub mod look_back;
pub mod sort_by_radix;
pub mod sweep;

use super::detect_runs::Detection;
use super::tasks::Tasks;
use super::tile_in_order::{DIGIT_BITS, DIGITS};
use cuda_std::prelude::*;

/// Upper limit on the passes, which all bits of keys of 4 bytes take.
pub const SWEEPS: u32 = u32::BITS / DIGIT_BITS;

/// Upper limit on the phases: the count, and the passes.
const PHASES: u32 = 1 + SWEEPS;

/// Words that must be 0 before the launch: the histograms of all passes, the finished tasks of each phase, and the
/// counter of tasks taken.
pub const CLEARED_WORDS: usize = TAKEN + 1;
const FINISHED: usize = (SWEEPS * DIGITS) as usize;
const TAKEN: usize = FINISHED + PHASES as usize;

/// A kernel's description of an array to sort.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// [`CLEARED_WORDS`] words, which are 0 before the launch. Nothing else uses these words or the words of
    /// `published`.
    pub words: *mut u32,
    /// The [`published_words`] words that tiles publish, aligned to 8 bytes.
    pub published: *mut u32,
    /// The results of `detect_runs` and `choose_digits`, or null to sort the keys in any case.
    pub order: *mut u32,
    /// Number of keys, below 2^32.
    pub n: u32,
    /// Number of tiles of `NT * VT` keys. The last tile may be shorter.
    pub tiles: u32,
    /// Number of shares of the keys in the first phase.
    pub shares: u32,
    /// Number of passes, from 1 to [`SWEEPS`]. Encoded keys have no bits above the digits of these passes. After an odd
    /// number of passes, the sorted keys are in the scratch arrays.
    pub sweeps: u32,
}

/// Number of words that tiles of `tile` keys publish, for `n` keys.
pub const fn published_words(n: usize, tile: usize) -> usize {
    look_back::words(n.div_ceil(tile))
}

/// The words that all blocks share.
#[derive(Clone, Copy)]
struct Workspace {
    cleared: GlobalMut<u32>,
    published: look_back::Published,
}

impl Job {
    /// Number of tasks of a phase.
    #[inline(always)]
    fn tasks(&self, phase: u32) -> u32 {
        if phase == 0 { self.shares } else { self.tiles }
    }

    /// The phase of a task and the task's number in it. The phase comes after the last pass if there are no more tasks.
    #[inline(always)]
    fn phase_of(&self, task: u32) -> (u32, u32) {
        let (mut phase, mut task) = (0, task);
        while phase <= self.sweeps && task >= self.tasks(phase) {
            task -= self.tasks(phase);
            phase += 1;
        }
        (phase, task)
    }

    /// The words of the job.
    ///
    /// # Safety
    /// The requirements of [`Job`] are met.
    #[inline(always)]
    unsafe fn open(&self) -> Workspace {
        // SAFETY: `Job` requires `CLEARED_WORDS` words, and the index `TAKEN` of the last one is below that. It
        // requires `published_words` for `tiles` tiles. Nothing else uses either.
        unsafe {
            Workspace {
                cleared: GlobalMut::new(self.words, CLEARED_WORDS),
                published: look_back::Published::new(self.published, self.tiles as usize),
            }
        }
    }

    /// The results of earlier kernels about the keys.
    ///
    /// # Safety
    /// The requirements of [`Job`] are met.
    #[inline(always)]
    unsafe fn detection(&self) -> Detection {
        // SAFETY: `order` is null or points to `DETECTION_WORDS` words, which this kernel only reads.
        unsafe { Detection::new(self.order) }
    }
}

impl Workspace {
    /// The histograms of all passes, in their order.
    #[inline(always)]
    fn counts(self) -> GlobalMut<u32> {
        self.cleared.slice(0, (SWEEPS * DIGITS) as usize)
    }

    /// The tasks, with a counter of finished tasks for each phase.
    #[inline(always)]
    fn tasks(self) -> Tasks {
        Tasks { taken: self.cleared.slice(TAKEN, 1), finished: self.cleared.slice(FINISHED, PHASES as usize) }
    }
}
