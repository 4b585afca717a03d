//! Sorting by all bits of a key, the last ones first: what takes the same time for any keys.
//!
//! ```text
//!   phase           bits of a key
//!     0    count    how many keys have each digit, of all sweeps at once
//!     1    sweep    │        │        │        │ ██████ │
//!     2    sweep    │        │        │ ██████ │        │     each sweep keeps the order of the one before, so that
//!     3    sweep    │        │ ██████ │        │        │     after the last one keys are in order by all bits
//!     4    sweep    │ ██████ │        │        │        │
//! ```
//!
//! Each sweep reads and writes the keys once. Where the keys of a tile go depends on all tiles before it, and [`look_back`] tells without
//! another kernel: "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs" (Adinets and Merrill, 2022), after "Single-pass Parallel
//! Prefix Scan with Decoupled Look-back" (Merrill and Garland, 2016).
//!
//! All phases are one launch. A phase is a number of tasks: a share of the keys to count, or a tile to move. Blocks take one task after the other,
//! and wait before the first one of a phase until those of the phase before are finished. They have all been taken by then, so that a block waits
//! only for others that run already, however many of them the GPU holds at once.
//!
//! Uneven keys of 4 bytes are sorted so, alone or with values, and those that the others are not [divided](super::divide) for.

pub mod count;
pub mod look_back;
pub mod sort_by_radix;
pub mod sweep;

use super::detect_runs::Detection;
use super::tile_in_order::{DIGIT_BITS, DIGITS};
use cuda_std::prelude::*;

/// Sweeps of keys of 4 bytes. An even number, so that the last one ends where the first one began.
pub const SWEEPS: u32 = u32::BITS / DIGIT_BITS;

const _: () = assert!(SWEEPS.is_multiple_of(2), "the last sweep ends where the first one began");

/// The phases: counting, and the sweeps.
pub const PHASES: u32 = 1 + SWEEPS;

/// Words that are 0 before: the counts of all digits, how many tasks of each phase are finished, and how many have been taken of all.
pub const CLEARED_WORDS: usize = TAKEN + 1;
const FINISHED: usize = (SWEEPS * DIGITS) as usize;
const TAKEN: usize = FINISHED + PHASES as usize;

/// What the kernel is told of an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// [`CLEARED_WORDS`], which are 0 before. Nothing else uses these words, nor the next ones.
    pub words: *mut u32,
    /// What tiles publish: as many words as [`published_words`] says, at an address for numbers of 8 bytes.
    pub published: *mut u32,
    /// What `detect_runs` and `choose_digits` have found, or null: then keys are sorted in any case.
    pub order: *mut u32,
    /// How many keys there are: fewer than 2^32.
    pub n: u32,
    /// Tiles of `NT * VT` keys: all keys, and the last tile may have fewer.
    pub tiles: u32,
    /// Shares in which keys are counted.
    pub shares: u32,
}

/// Words that the tiles of `tile` keys publish of `n` keys.
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
    /// Tasks of a phase.
    #[inline(always)]
    fn tasks(&self, phase: u32) -> u32 {
        if phase == 0 { self.shares } else { self.tiles }
    }

    /// The phase of a task, and its number there; or [`PHASES`], if there are no more tasks.
    #[inline(always)]
    fn phase_of(&self, task: u32) -> (u32, u32) {
        let (mut phase, mut task) = (0, task);
        while phase < PHASES && task >= self.tasks(phase) {
            task -= self.tasks(phase);
            phase += 1;
        }
        (phase, task)
    }

    /// The words.
    ///
    /// # Safety
    /// What [`Job`] says holds.
    #[inline(always)]
    unsafe fn open(&self) -> Workspace {
        // SAFETY: `Job` promises `CLEARED_WORDS`, of which `TAKEN` is the last that is used, and `published_words` for
        // `tiles` tiles; nothing else uses them.
        unsafe {
            Workspace {
                cleared: GlobalMut::new(self.words, CLEARED_WORDS),
                published: look_back::Published::new(self.published, self.tiles as usize),
            }
        }
    }

    /// What is known of the keys.
    ///
    /// # Safety
    /// What [`Job`] says holds.
    #[inline(always)]
    unsafe fn detection(&self) -> Detection {
        // SAFETY: `order` is null, or `DETECTION_WORDS` words, which this kernel only reads.
        unsafe { Detection::new(self.order) }
    }
}

impl Workspace {
    /// How many keys have each digit of all sweeps, those of the first sweep first.
    #[inline(always)]
    fn counts(self) -> GlobalMut<u32> {
        self.cleared.slice(0, (SWEEPS * DIGITS) as usize)
    }

    /// The number of the next task of all phases: each call gives another one, in ascending order.
    #[inline(always)]
    #[track_caller]
    fn take_task(self) -> u32 {
        self.cleared.fetch_add(TAKEN, 1)
    }

    /// Notes that `tasks` tasks of `phase` are finished, whose threads have come to a barrier.
    #[inline(always)]
    #[track_caller]
    fn finish_tasks(self, phase: u32, tasks: u32) {
        thread::device_fence();
        self.cleared.fetch_add(FINISHED + phase as usize, tasks);
    }

    /// Waits until all `tasks` of `phase` are finished. After another barrier threads see what these have written.
    #[inline(always)]
    #[track_caller]
    fn wait_for_tasks(self, phase: u32, tasks: u32) {
        while self.cleared.load(FINISHED + phase as usize) < tasks {}
        thread::device_fence();
    }
}
