//! A pass: scatters the keys of each tile to the output ranges of their digits.

use super::count::CountMemory;
use super::look_back::Counts;
use super::{DIGIT_BITS, DIGITS, Job, Workspace};
use crate::block::clear;
use crate::block::scan::sum_before;
use crate::block::shared_memory::{of_widths, shared_memory};
use crate::elements::Elements;
use crate::kernels::sort::tile_in_order::{BitsAt, Places, TileElements, TileMemory, move_tile};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, shuffle_xor};

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes with values of
/// `value_bytes` bytes, or 0.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    of_widths!(key_bytes, value_bytes, Memory::bytes(threads, items_per_thread))
}

shared_memory! {
    /// Shared memory of a block in a pass.
    pub(super) struct SweepMemory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        tile: TileMemory<B, V> { threads, items_per_thread },
        /// For each digit, the sum over the earlier tiles of the group. Initially 0.
        sums: [u32; DIGITS],
        /// For each digit, the output index of its first key. The first tile of a pass computes it.
        begins: [u32; DIGITS],
    }
}

shared_memory! {
    /// The memory of a task. All tasks of the first phase come before all others, with a barrier between the two.
    pub(super) union TaskMemory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        pub count: CountMemory {},
        pub sweep: SweepMemory<B, V> { threads, items_per_thread },
    }
}

shared_memory! {
    /// Shared memory of a block.
    pub(super) struct Memory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        pub task: TaskMemory<B, V> { threads, items_per_thread },
        pub words: TaskWords {},
    }
}

shared_memory! {
    /// The words of a block that describe its task. Thread 0 writes them.
    pub(super) struct TaskWords() {
        words: [u32; TASK_WORDS],
    }
}

const TASK_WORDS: u32 = 4;

/// Indices of the words: the phase of the task, and its number in the phase.
const PHASE: u32 = 0;
const TASK: u32 = 1;

/// Index of the word with the number of the next task, counted over all phases.
const NEXT: u32 = 2;

/// Index of the word with the number of tasks of this phase that the block has begun.
const BEGUN: u32 = 3;

impl TaskWords {
    /// The state before the first task, number `next` over all phases.
    #[inline(always)]
    #[track_caller]
    pub fn begin(self, next: u32) {
        self.words.set(PHASE, 0);
        self.words.set(BEGUN, 0);
        self.words.set(NEXT, next);
    }

    /// Sets the task.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, phase: u32, task: u32) {
        let begun = if phase == self.phase() { self.begun() } else { 0 };
        self.words.set(PHASE, phase);
        self.words.set(TASK, task);
        self.words.set(BEGUN, begun + 1);
    }

    #[inline(always)]
    #[track_caller]
    pub fn set_next(self, next: u32) {
        self.words.set(NEXT, next);
    }

    #[inline(always)]
    #[track_caller]
    pub fn phase(self) -> u32 {
        self.words.get(PHASE)
    }

    #[inline(always)]
    #[track_caller]
    pub fn task(self) -> u32 {
        self.words.get(TASK)
    }

    #[inline(always)]
    #[track_caller]
    pub fn next(self) -> u32 {
        self.words.get(NEXT)
    }

    #[inline(always)]
    #[track_caller]
    pub fn begun(self) -> u32 {
        self.words.get(BEGUN)
    }
}

/// Moves the keys of the task's tile, with their values, from one of the two `sides` to the other.
///
/// # Safety
/// The requirements of [`sort_by_radix`](super::sort_by_radix::sort_by_radix) are met. All threads of the block make
/// this call after a barrier, and nothing else uses the memory. `begins` stays unchanged between two tiles of a pass.
#[inline(always)]
pub(super) unsafe fn sweep_tile<B: Bits, V: Word, const NT: usize, const VT: usize, const OWN: usize>(
    job: &Job,
    sides: [Elements<B, V>; 2],
    words: TaskWords,
    coding: Coding<B>,
    indexes: bool,
    SweepMemory { tile: memory, sums, begins }: SweepMemory<B, V>,
) {
    let sweep = words.phase() - 1;
    let [from, to] = if sweep.is_multiple_of(2) { sides } else { [sides[1], sides[0]] };
    let n = job.n as usize;
    // SAFETY: all arrays have `n` elements and do not overlap. A pass reads one side and writes the other. A tile's
    // counts overwrite its own keys, after all threads of the block have read them.
    let (from, to, counts) = unsafe {
        let counts = Counts::new(from.keys, job.n, const { (NT * VT) as u32 });
        (from.arrays(n), to.arrays(n), counts)
    };
    let encode = if sweep == 0 { coding } else { Coding::NONE };
    let decode = if sweep + 1 == job.sweeps { coding } else { Coding::NONE };
    clear::<NT>(sums, DIGITS);
    let begin = words.task() * const { (NT * VT) as u32 };
    let len = (job.n - begin).min(const { (NT * VT) as u32 });
    let tile = TileElements { array: from, begin, len, makes_indices: sweep == 0 && indexes };
    // The phase is read again at each call, which is after a barrier. Otherwise ptxas keeps the digits of all keys in
    // local memory.
    let digits = || BitsAt((words.phase() - 1) * DIGIT_BITS);
    let places = Swept::<NT, OWN> { job, words, counts, sums, begins };
    let codings = (encode, |key| decode.decode(key));
    // SAFETY: all threads of the block make this call. Partial tiles are padded, and each tile has at least one key,
    // since `tiles` is `n` divided by `NT * VT`, rounded up.
    unsafe { move_tile::<B, V, _, NT, VT, true>(tile, digits, &places, codings, memory, to) };
}

/// The output indices of a tile's keys: behind all keys of lesser digits, and behind the keys of the same digit in
/// earlier tiles.
struct Swept<'a, const NT: usize, const OWN: usize> {
    job: &'a Job,
    words: TaskWords,
    counts: Counts,
    /// A word for each digit, initially 0.
    sums: Shared<u32>,
    /// For each digit, the output index of its first key. The first tile of a pass computes it.
    begins: Shared<u32>,
}

impl<const NT: usize, const OWN: usize> Swept<'_, NT, OWN> {
    /// The words that all blocks share. Computed at each call, since keeping the addresses takes registers.
    #[inline(always)]
    fn workspace(&self) -> Workspace {
        // SAFETY: the kernel's caller passes a `Job` that meets its requirements, and no other kernel uses its words
        // during this launch.
        unsafe { self.job.open() }
    }

    #[inline(always)]
    fn sweep(&self) -> u32 {
        self.words.phase() - 1
    }
}

impl<const NT: usize, const OWN: usize> Places for Swept<'_, NT, OWN> {
    #[inline(always)]
    unsafe fn begin(&self, distances: Shared<u32>, scan: Shared<u32>) {
        if self.words.begun() > 1 {
            let mut digit = thread::thread_idx_x();
            while digit < DIGITS {
                distances.set(digit, self.begins.get(digit));
                digit += NT as u32;
            }
            return;
        }
        let counts = self.workspace().counts().slice((self.sweep() * DIGITS) as usize, DIGITS as usize);
        let (mut first, mut before) = (0, 0);
        while first < DIGITS {
            let digit = first + thread::thread_idx_x();
            let count = if digit < DIGITS { counts.get(digit as usize) } else { 0 };
            // SAFETY: all threads of the block make this call, since the loop has the same rounds in each. A barrier
            // comes between two uses of `scan`, and nothing else uses it until the barrier behind `begin`, as
            // `Places::begin` requires.
            let (sum, all) = unsafe { sum_before(count, scan) };
            if digit < DIGITS {
                self.begins.set(digit, before + sum);
                distances.set(digit, before + sum);
            }
            before += all;
            first += NT as u32;
            if first < DIGITS {
                thread::sync_threads();
            }
        }
    }

    #[inline(always)]
    unsafe fn counted(&self, digit: u32, count: u32) {
        // SAFETY: `place_warps` calls this for `digit < DIGITS`, and `DIGITS` is a multiple of 32, so that whole warps
        // make the call. `lane ^ 1`, with the other digit of a word, is one of the 32 lanes. `word < TILE_WORDS` is
        // inside the keys of every tile but the last.
        let next = unsafe { shuffle_xor(FULL_MASK, count, 1) };
        // No tile reads the counts of the last one, which may have too few keys to hold them.
        if digit.is_multiple_of(2) && self.words.task() + 1 < self.job.tiles {
            self.counts.set(self.words.task(), digit / 2, (count, next));
        }
    }

    #[inline(always)]
    unsafe fn placed(&self) {
        if thread::thread_idx_x() == const { NT as u32 - 1 } {
            self.workspace().published.note_counted(self.sweep(), self.words.task());
        }
    }

    #[inline(always)]
    unsafe fn finish(&self, distances: Shared<u32>) {
        let Self { words, counts, sums, .. } = *self;
        let published = self.workspace().published;
        // SAFETY: all `NT` threads of the block make this call. `move_tile` has a barrier between the clearing of
        // `sums` and this call, and another one before the next use of `distances`.
        unsafe { published.look_back::<NT, OWN>(self.sweep(), words.task(), counts, distances, sums) };
    }
}
