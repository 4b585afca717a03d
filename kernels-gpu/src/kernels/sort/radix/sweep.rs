//! A sweep: the keys of each tile go to the places of their digits.

use super::count::CountMemory;
use super::look_back::Counts;
use super::{DIGIT_BITS, DIGITS, Job, SWEEPS, Workspace};
use crate::block::scan::sum_before;
use crate::block::shared_memory::{of_widths, shared_memory};
use crate::elements::Elements;
use crate::kernels::sort::clear;
use crate::kernels::sort::tile_in_order::{BitsAt, Places, Span, TileMemory, move_tile};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, shuffle_xor};

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes with values of
/// `value_bytes`, or 0.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    of_widths!(key_bytes, value_bytes, Memory::bytes(threads, items_per_thread))
}

shared_memory! {
    /// Shared memory of a block that sweeps.
    pub(super) struct SweepMemory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        tile: TileMemory<B, V> { threads, items_per_thread },
        /// A sum for each digit over the tiles before one in its group, at first 0.
        sums: [u32; DIGITS],
        /// Where the keys of each digit begin, which is found with the first tile of a sweep.
        begins: [u32; DIGITS],
    }
}

shared_memory! {
    /// What a task uses: all of the first phase come before those of others, with a barrier between two.
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
    /// The words of a block in shared memory that tell its task. Thread 0 sets them.
    pub(super) struct TaskWords() {
        words: [u32; TASK_WORDS],
    }
}

const TASK_WORDS: u32 = 4;

/// Which of the words is the phase of the task, and which one its number there.
const PHASE: u32 = 0;
const TASK: u32 = 1;

/// Which one is the number of the next task, of those of all phases.
const NEXT: u32 = 2;

/// Which one tells how many tasks of this phase the block has begun.
const BEGUN: u32 = 3;

impl TaskWords {
    /// Before the first task, whose number among those of all phases is `next`.
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

/// Moves the keys of the tile that is the task, with their values, from one of both `sides` to the other.
///
/// # Safety
/// What [`Job`] says holds. All threads of the block make this call, after a barrier, and nothing else uses the memory;
/// its `begins` stay as they are from one tile of a sweep to the next. The rest is as for
/// [`sort_by_radix`](super::sort_by_radix::sort_by_radix).
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
    // SAFETY: all arrays have `n` elements and do not overlap. Tiles read one side and write the other; counts are put
    // where a tile's own keys were, once all threads have read these.
    let (from, to, counts) = unsafe {
        let counts = Counts::new(from.keys, job.n, const { (NT * VT) as u32 });
        (from.arrays(n), to.arrays(n), counts)
    };
    let encode = if sweep == 0 { coding } else { Coding::NONE };
    let decode = if sweep == SWEEPS - 1 { coding } else { Coding::NONE };
    clear::<NT>(sums, DIGITS);
    let begin = words.task() * const { (NT * VT) as u32 };
    let span = Span { begin, len: (job.n - begin).min(const { (NT * VT) as u32 }) };
    // Read anew at each call, which is after a barrier: else the assembler keeps the digits of all keys in local
    // memory.
    let digits = || BitsAt((words.phase() - 1) * DIGIT_BITS);
    let places = Swept::<NT, OWN> { job, words, counts, sums, begins };
    let codings = (encode, |key| decode.decode(key));
    let makes_indices = sweep == 0 && indexes;
    // SAFETY: all threads of the block are here. Tiles that are not full are filled up; each has one key at least, as
    // `tiles` is `n` divided by `NT * VT` and rounded up.
    unsafe { move_tile::<B, V, _, NT, VT, true>(span, digits, &places, from, makes_indices, codings, memory, to) };
}

/// The places of a tile's keys: after those of lower digits, and after those of the same digit in the tiles before.
struct Swept<'a, const NT: usize, const OWN: usize> {
    job: &'a Job,
    words: TaskWords,
    counts: Counts,
    /// A word for each digit, at first 0.
    sums: Shared<u32>,
    /// Where the keys of each digit begin, which is found with the first tile of a sweep.
    begins: Shared<u32>,
}

impl<const NT: usize, const OWN: usize> Swept<'_, NT, OWN> {
    /// The words that all tiles share. Found anew at each call: to keep their addresses takes registers.
    #[inline(always)]
    fn workspace(&self) -> Workspace {
        // SAFETY: `Job` is what the kernel was called with: its words are as long as it says, and no other kernel uses
        // them during this launch.
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
            // SAFETY: all threads of the block are in this loop, which has as many rounds for each. A barrier comes
            // between two uses of `scan`, and one before and one after this call.
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
        // SAFETY: `place_warps` calls this with `digit < DIGITS`, a multiple of a warp: whole warps are here, and the
        // lane of the other digit of a word is one of the 32. `word < TILE_WORDS` of a tile that is not the last is
        // within the keys.
        let next = unsafe { shuffle_xor(FULL_MASK, count, 1) };
        // Nothing comes after the last tile, which may be short of room.
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
        // SAFETY: all `NT` threads of the block are here. `sums` has been cleared before a barrier of `move_tile`, and
        // one follows before `distances` are used.
        unsafe { published.look_back::<NT, OWN>(self.sweep(), words.task(), counts, distances, sums) };
    }
}
