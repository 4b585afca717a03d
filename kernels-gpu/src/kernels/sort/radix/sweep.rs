//! A sweep: the keys of each tile go to the places of their digits.

use super::count::CountMemory;
use super::look_back::{Counts, Published};
use super::{DIGIT_BITS, DIGITS, Job, SWEEPS, Workspace};
use crate::block::scan::sum_before;
use crate::block::shared_memory::{of_widths, shared_memory};
use crate::kernels::sort::clear;
use crate::kernels::sort::elements::Elements;
use crate::kernels::sort::tile_in_order::{Places, Span, TileMemory, ToDigit, move_tile};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::recomputed;
use cuda_std::warp::{FULL_MASK, shuffle_xor};

/// Bytes of dynamic shared memory for tiles of `threads * items_per_thread` keys of `key_bytes` bytes with values of `value_bytes`, or 0.
pub const fn shared_bytes(threads: usize, items_per_thread: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    of_widths!(key_bytes, value_bytes, Memory::bytes(threads, items_per_thread))
}

shared_memory! {
    /// Shared memory of a block that sweeps.
    pub(in crate::kernels::sort) struct SweepMemory<B: Word, V: Word>(threads: usize, items_per_thread: usize) {
        tile: TileMemory<B, V> { threads, items_per_thread },
        /// A sum for each digit over the tiles before one in its group, at first 0.
        sums: [u32; DIGITS],
        /// Where the keys of each digit begin, which is found with the first tile of a sweep.
        pub begins: [u32; DIGITS],
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

/// A tile that a block sweeps, and what it shares with the other tiles of its array: what is known of these is read anew at each call, as to keep
/// it takes registers.
pub(in crate::kernels::sort) trait SweptTile {
    /// The number of the sweep.
    fn sweep(&self) -> u32;

    /// The number of the tile in its array.
    fn tile(&self) -> u32;

    /// How many tiles the array has.
    fn tiles(&self) -> u32;

    /// The index of the array's first key among all keys.
    fn first_key(&self) -> u32;

    /// How many keys the array has.
    fn keys(&self) -> u32;

    /// What its tiles publish.
    fn published(&self) -> Published;

    /// Whether the block has found where digits begin with another tile of the same sweep and array.
    fn begins_are_known(&self) -> bool;

    /// How many keys of the array have each digit of this sweep. Each thread asks for digits of its own, whose words in `begins` may hold what
    /// has been loaded ahead.
    fn counts(&self, begins: Shared<u32>) -> impl Fn(u32) -> u32;
}

/// The tile of a [`Job`] that is the block's task.
#[derive(Clone, Copy)]
pub(super) struct TileOfJob<'a> {
    pub job: &'a Job,
    pub words: TaskWords,
}

impl TileOfJob<'_> {
    /// The words that all tiles share. Found anew at each call: to keep their addresses takes registers.
    #[inline(always)]
    fn workspace(&self) -> Workspace {
        // SAFETY: `Job` is what the kernel was called with: its words are as long as it says, and no other kernel uses
        // them during this launch.
        unsafe { self.job.open() }
    }
}

impl SweptTile for TileOfJob<'_> {
    #[inline(always)]
    fn sweep(&self) -> u32 {
        self.words.phase() - 1
    }

    #[inline(always)]
    fn tile(&self) -> u32 {
        self.words.task()
    }

    #[inline(always)]
    fn tiles(&self) -> u32 {
        self.job.tiles
    }

    #[inline(always)]
    fn first_key(&self) -> u32 {
        0
    }

    #[inline(always)]
    fn keys(&self) -> u32 {
        self.job.n
    }

    #[inline(always)]
    fn published(&self) -> Published {
        self.workspace().published
    }

    #[inline(always)]
    fn begins_are_known(&self) -> bool {
        self.words.begun() > 1
    }

    #[inline(always)]
    fn counts(&self, _: Shared<u32>) -> impl Fn(u32) -> u32 {
        let counts = self.workspace().counts().slice((self.sweep() * DIGITS) as usize, DIGITS as usize);
        move |digit| counts.get(digit as usize)
    }
}

/// Moves the keys of a tile, with their values, from one of both `sides` to the other. Both have `n` elements, of which the tile's array is a part.
///
/// # Safety
/// What [`SweptTile`] tells of the tile is so, and other blocks sweep the other tiles of its array. All threads of the block make this call, after a
/// barrier, and nothing else uses the memory; its `begins` stay as they are from one tile of a sweep to the next. The rest is as for
/// [`sort_by_radix`](super::sort_by_radix::sort_by_radix).
#[inline(always)]
pub(in crate::kernels::sort) unsafe fn sweep_tile<
    B: Bits,
    V: Word,
    T: SweptTile,
    const NT: usize,
    const VT: usize,
    const OWN: usize,
>(
    at: T,
    n: u32,
    sides: [Elements<B, V>; 2],
    coding: Coding<B>,
    indexes: bool,
    SweepMemory { tile: memory, sums, begins }: SweepMemory<B, V>,
) {
    let sweep = at.sweep();
    let [from, to] = if sweep.is_multiple_of(2) { sides } else { [sides[1], sides[0]] };
    // SAFETY: all arrays have `n` elements and do not overlap. Tiles read one side and write the other; counts are put
    // where a tile's own keys were, once all threads have read these.
    let (from, to, counts) = unsafe {
        let counts = Counts::new(from.keys, n, at.first_key(), const { (NT * VT) as u32 });
        (from.arrays(n as usize), to.arrays(n as usize), counts)
    };
    let encode = if sweep == 0 { coding } else { Coding::NONE };
    let decode = if sweep == SWEEPS - 1 { coding } else { Coding::NONE };
    clear::<NT>(sums, DIGITS);
    let begin = at.tile() * const { (NT * VT) as u32 };
    let span = Span { begin: at.first_key() + begin, len: (at.keys() - begin).min(const { (NT * VT) as u32 }) };
    // Read anew at each call, which is after a barrier: else the assembler keeps the digits of all keys in local memory.
    let digits = || BitsAt(at.sweep() * DIGIT_BITS);
    let places = Swept::<T, NT, OWN> { at: &at, counts, sums, begins };
    let codings = (encode, |key| decode.decode(key));
    let makes_indices = sweep == 0 && indexes;
    // SAFETY: all threads of the block are here. Tiles that are not full are filled up; each has one key at least, as
    // `tiles` is `n` divided by `NT * VT` and rounded up.
    unsafe { move_tile::<B, V, _, NT, VT, true>(span, digits, &places, from, makes_indices, codings, memory, to) };
}

/// Digits that are the bits of a key from this one on.
#[derive(Clone, Copy)]
pub(in crate::kernels::sort) struct BitsAt(pub u32);

impl<B: Bits> ToDigit<B> for BitsAt {
    const FILLS_UP: bool = true;

    #[inline(always)]
    fn of(self, key: B) -> u32 {
        key.shifted_down(self.0).to_register() as u32 & (DIGITS - 1)
    }

    #[inline(always)]
    fn again(self) -> Self {
        Self(recomputed(self.0))
    }
}

/// The places of a tile's keys: after those of lower digits, and after those of the same digit in the tiles before.
struct Swept<'a, T, const NT: usize, const OWN: usize> {
    at: &'a T,
    counts: Counts,
    /// A word for each digit, at first 0.
    sums: Shared<u32>,
    /// Where the keys of each digit begin, which is found with the first tile of a sweep.
    begins: Shared<u32>,
}

impl<T: SweptTile, const NT: usize, const OWN: usize> Places for Swept<'_, T, NT, OWN> {
    #[inline(always)]
    unsafe fn begin(&self, distances: Shared<u32>, scan: Shared<u32>) {
        if self.at.begins_are_known() {
            let mut digit = thread::thread_idx_x();
            while digit < DIGITS {
                distances.set(digit, self.begins.get(digit));
                digit += NT as u32;
            }
            return;
        }
        let counts = self.at.counts(self.begins);
        let (mut first, mut before) = (0, self.at.first_key());
        while first < DIGITS {
            let digit = first + thread::thread_idx_x();
            let count = if digit < DIGITS { counts(digit) } else { 0 };
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
        if digit.is_multiple_of(2) && self.at.tile() + 1 < self.at.tiles() {
            self.counts.set(self.at.tile(), digit / 2, (count, next));
        }
    }

    #[inline(always)]
    unsafe fn placed(&self) {
        if thread::thread_idx_x() == const { NT as u32 - 1 } {
            self.at.published().note_counted(self.at.sweep(), self.at.tile());
        }
    }

    #[inline(always)]
    unsafe fn finish(&self, distances: Shared<u32>) {
        let Self { at, counts, sums, .. } = *self;
        // SAFETY: all `NT` threads of the block are here. `sums` has been cleared before a barrier of `move_tile`, and
        // one follows before `distances` are used.
        unsafe { at.published().look_back::<NT, OWN>(at.sweep(), at.tile(), counts, distances, sums) };
    }
}
