//! The first k keys in an order.

use super::sort::{Sort, SortPlan};
use super::{Address, Arrays, Queue, align, bits, elements, slice, suffix, with_values};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers, Operation};
use crate::key::sealed::GpuBits;
use crate::{Error, SortKernel};
use kernels_gpu::kernels::top_k::choose_digit::{self, ChooseDigit};
use kernels_gpu::kernels::top_k::collect::{self, Collect};
use kernels_gpu::kernels::top_k::count_chunks::{self, CountChunks};
use kernels_gpu::kernels::top_k::count_digit::{self, CountDigit};
use kernels_gpu::kernels::top_k::gather::{self, Gather, PAGE, Pages, WARPS};
use kernels_gpu::kernels::top_k::pack::{self, MOST_WARPS, Pack};
use kernels_gpu::kernels::top_k::take_sample::{self, Lengths, MOST_RANK, SAMPLE, TakeSample};
use kernels_gpu::kernels::top_k::{
    CHUNK_UNIT, COUNT_WORDS, COUNTS, MAX_BLOCKS, PLACE_WORDS, PROGRESS_NUMBERS, most_digits,
};
use kernels_gpu::key::{Bits, Coding};

/// Candidates are collected if they are at most one key in this many.
const CANDIDATES: usize = 8;

/// Candidates may be collected once, after the choice of one of the first digits: this many.
const COLLECTIONS: u32 = 2;

/// Candidates are gathered in one reading if there are at least this many keys for each multiprocessor. Fewer keys are
/// read twice in the time that the launches of a gathering take.
const GATHERED_KEYS: usize = 1 << 15;

/// Offsets of the parts of a workspace, in bytes, and its end.
struct Layout {
    /// The number of pages that have been taken.
    taken: usize,
    counts: usize,
    /// The end of the cleared words, where the places of blocks begin.
    cleared: usize,
    /// The counts of blocks.
    of_blocks: usize,
    /// The counts of the warps, and the owners of the pages.
    of_warps: usize,
    owners: usize,
    candidate_keys: usize,
    candidate_values: usize,
    sort: usize,
    end: usize,
}

impl Layout {
    fn of<B: Bits>(n: usize, k: usize, value_bytes: usize) -> Self {
        let taken = align(PROGRESS_NUMBERS * size_of::<u64>());
        let counts = taken + align(size_of::<u32>());
        let cleared = counts + align(COUNT_WORDS * size_of::<u32>());
        let of_blocks = cleared + PLACE_WORDS * size_of::<u32>();
        let of_warps = of_blocks + align(most_blocks(n) * COUNTS * size_of::<u32>());
        let owners = of_warps + align(MOST_WARPS * size_of::<u32>());
        let candidate_keys = owners + align(2 * pages(n) * size_of::<u32>());
        let capacity = capacity(n);
        let candidate_values = candidate_keys + align(capacity * size_of::<B>());
        let sort = candidate_values + align(capacity * value_bytes);
        let sort_bytes = SortPlan::of::<B>(k, value_bytes, false).workspace_bytes::<B>(k);
        let end = sort.saturating_add(sort_bytes);
        Self { taken, counts, cleared, of_blocks, of_warps, owners, candidate_keys, candidate_values, sort, end }
    }
}

const fn capacity(n: usize) -> usize {
    n.div_ceil(CANDIDATES)
}

/// The number of pages of gathered keys, which take the second half of the room for candidates.
const fn pages(n: usize) -> usize {
    capacity(n) / 2 / PAGE
}

/// The rank of a key of the sample. Except once in some millions of times, at least `k` of the `n` keys do not exceed
/// this key. 0 if too many other keys do not exceed it either.
fn rank(n: usize, k: usize) -> u32 {
    // The usual number of the first k keys in the sample. The standard deviation is about its square root.
    let usual = k as f64 * SAMPLE as f64 / n as f64;
    let rank = (usual + 5.0 * usual.sqrt()).ceil() + 4.0;
    if rank <= MOST_RANK as f64 { rank as u32 } else { 0 }
}

/// The most blocks that count and collect: one for each unit of a chunk.
fn most_blocks(n: usize) -> usize {
    n.div_ceil(CHUNK_UNIT).min(MAX_BLOCKS)
}

/// Bytes of workspace for the first `k` of `n` keys with values of `value_bytes` bytes, or 0.
pub(in crate::gpu) fn workspace_bytes<B: Bits>(n: usize, k: usize, value_bytes: usize) -> usize {
    Layout::of::<B>(n, k, value_bytes).end
}

/// Queues the selection of the first `out.len` elements of `from` in this order, sorted and stable, to `out`. If
/// `from.values` is 0 and there are values, they become the indices of the keys. If `from` has a count of fewer
/// elements than `out` has, all of these are selected. The number of selected elements goes to the count of `out`, if
/// it has one.
///
/// # Safety
/// The arrays are in the GPU's memory. If `from` has a count, so has `out`. `out` is no longer than `from` and overlaps
/// no other array, and `workspace` has [`workspace_bytes`]. Until the selection has ended, nothing writes `from`, and
/// nothing else uses the other arrays.
pub(in crate::gpu) unsafe fn top_k<B: GpuBits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    from: Arrays,
    out: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let (n, k) = (from.len, out.len);
    if k == 0 {
        // SAFETY: a count has 8 bytes, which are two words.
        return if out.count == 0 { Ok(()) } else { unsafe { queue.clear(out.count, 2) } };
    }
    let layout = Layout::of::<B>(n, k, out.value_bytes);
    let sort_workspace = workspace + layout.sort as Address;
    let selection = Selection::<B> { queue, coding, from, out, workspace, layout };
    let sort = Sort::new(SortKernel::Auto, coding.into(), out, false);
    // SAFETY: the arrays and the workspace are as this function demands. The launches are in order: digits are counted
    // and chosen one after the other, and `out` and its count are complete before its sort.
    unsafe {
        selection.take_sample()?;
        selection.select()?;
        sort.launch(queue, sort_workspace)
    }
}

/// The steps of [`top_k`]. Its conditions are the conditions of each step.
struct Selection<'a, B: Bits> {
    queue: &'a dyn Queue,
    coding: Coding<B>,
    from: Arrays,
    out: Arrays,
    workspace: Address,
    layout: Layout,
}

impl<B: Bits> Selection<'_, B> {
    fn at(&self, offset: usize) -> Address {
        self.workspace + offset as Address
    }

    /// The selection's progress, which the kernels tell each other.
    fn progress(&self) -> *mut u64 {
        self.workspace as *mut u64
    }

    /// The room for the keys and the values of candidates.
    fn candidates(&self) -> (Address, Address) {
        (self.at(self.layout.candidate_keys), self.at(self.layout.candidate_values))
    }

    /// Clears the counts and takes a sample. Gathers candidates by a bound from the sample, if that is faster.
    unsafe fn take_sample(&self) -> Result<(), Error> {
        let (queue, n, progress) = (self.queue, self.from.len, self.progress());
        // The rank of a bound depends on the number of keys.
        let gathers = n >= GATHERED_KEYS * queue.multiprocessors() && self.from.count == 0;
        let rank = if gathers { rank(n, self.out.len) } else { 0 };
        let shape = Shape { blocks: 1, threads: take_sample::THREADS as u32, shared_bytes: take_sample::SHARED_BYTES };
        let (keys, coding) = (self.from.keys as *const B, self.coding);
        let (count, selected) = (self.from.count as *const u64, self.out.count as *mut u64);
        let lengths = Lengths { n, k: self.out.len, count, selected };
        // SAFETY: the words that are cleared are in the workspace, and begin with those of the progress. `from` has `n`
        // keys.
        unsafe {
            queue.clear(self.workspace, self.layout.cleared / size_of::<u32>())?;
            queue.launch(&bits(size_of::<B>()), shape, &TakeSample { keys, lengths, progress, rank, coding })?;
            if rank > 0 { self.gather() } else { Ok(()) }
        }
    }

    /// Gathers the keys that do not exceed the bound from the sample, in one reading of all keys.
    unsafe fn gather(&self) -> Result<(), Error> {
        let (queue, value_bytes, candidates) = (self.queue, self.out.value_bytes, self.candidates());
        let shape = queue.persistent(gather::BLOCKS, gather::THREADS as u32, 0);
        let shape = Shape { blocks: shape.blocks.min(MOST_WARPS / WARPS), ..shape };
        let pages = Pages {
            taken: self.at(self.layout.taken) as *mut u32,
            of_warps: self.at(self.layout.of_warps) as *mut u32,
            owners: self.at(self.layout.owners) as *mut u32,
            count: pages(self.from.len) as u32,
            warps: (shape.blocks * WARPS) as u32,
        };
        let pack_shape = Shape { shared_bytes: pack::SHARED_BYTES, threads: pack::THREADS as u32, ..shape };
        // Behind the room for packed candidates.
        let first = pages.count as usize * PAGE;
        let behind = |at: Address, bytes: usize| at + (first * bytes) as Address;
        let to = (behind(candidates.0, size_of::<B>()), behind(candidates.1, value_bytes));
        let (progress, coding, k) = (self.progress(), self.coding, self.out.len);
        with_values!(value_bytes, V => {
            let (from, to) = (slice::<B, V>(self.from), elements::<B, V>(to));
            let candidates = elements::<B, V>(candidates);
            let suffix = suffix::<B>(value_bytes);
            // SAFETY: the sample has been taken by a launch before. The room for candidates has at least
            // `2 * pages.count * PAGE` elements: the packed candidates, and behind them the pages.
            unsafe {
                queue.launch(&suffix, shape, &Gather { from, to, pages, progress, coding })?;
                queue.launch(&suffix, pack_shape, &Pack { from: to, candidates, k, pages, progress })
            }
        })
    }

    /// Chooses digit by digit, and collects candidates after each of the first digits, and in the end the result.
    unsafe fn select(&self) -> Result<(), Error> {
        let (queue, n, progress) = (self.queue, self.from.len, self.progress());
        let (width, capacity, coding) = (bits(size_of::<B>()), capacity(n) as u64, self.coding);
        let shared_bytes = collect::SHARED_BYTES.max(count_digit::SHARED_BYTES);
        let persistent = queue.persistent(collect::BLOCKS, collect::THREADS as u32, shared_bytes);
        // The blocks of all launches have the same chunks.
        let blocks = persistent.blocks.min(most_blocks(n));
        let shape = |blocks, threads: usize, shared_bytes| Shape { blocks, threads: threads as u32, shared_bytes };
        let count_shape = shape(blocks, count_digit::THREADS, count_digit::SHARED_BYTES);
        let choose_shape = shape(1, choose_digit::THREADS, choose_digit::SHARED_BYTES);
        let chunks_shape = shape(blocks, count_chunks::THREADS, 0);
        let collect_shape = shape(blocks, collect::THREADS, collect::SHARED_BYTES);
        let (counts, of_blocks) = (self.at(self.layout.counts) as *mut u32, self.at(self.layout.of_blocks) as *mut u32);
        let places = self.at(self.layout.cleared) as *mut u32;
        let (keys, candidates) = (self.from.keys as *const B, self.candidates().0 as *const B);
        for number in 0..most_digits(size_of::<B>()) {
            // SAFETY: the parts of the workspace have the sizes that `Layout::of` computes from `n` and `k`, and the
            // counts have been cleared. `from` has `n` keys.
            unsafe {
                let count = CountDigit { keys, candidates, counts, of_blocks, progress, coding };
                queue.launch(&width, count_shape, &count)?;
                let choose = ChooseDigit { counts, progress, capacity, number, collections: COLLECTIONS };
                queue.launch(&width, choose_shape, &choose)?;
                let chunks = CountChunks { of_blocks: of_blocks.cast_const(), places, progress, number };
                queue.launch(&width, chunks_shape, &chunks)?;
                if number < COLLECTIONS {
                    self.collect(collect_shape, number)?;
                }
            }
        }
        // SAFETY: all digits have been chosen, and their chunks counted.
        unsafe { self.collect(collect_shape, collect::LAST) }
    }

    /// Collects candidates, or the result if `collection` is the last one.
    unsafe fn collect(&self, shape: Shape, collection: u32) -> Result<(), Error> {
        let value_bytes = self.out.value_bytes;
        let (progress, places, coding) = (self.progress(), self.at(self.layout.cleared) as *mut u32, self.coding);
        with_values!(value_bytes, V => {
            let (from, out) = (slice::<B, V>(self.from).at, slice::<B, V>(self.out).at);
            let candidates = elements::<B, V>(self.candidates());
            let collect = Collect { from, candidates, out, progress, places, collection, coding };
            // SAFETY: launches before have chosen the digits and counted the chunks. `from` has `n` elements, `out`
            // `k`, and the room for candidates `capacity` elements in the workspace.
            unsafe { self.queue.launch(&suffix::<B>(value_bytes), shape, &collect) }
        })
    }
}

/// The first `out.len` elements of `from`, sorted. If `from.values` is 0 and `out` has values, they become the indices
/// of the keys. If `from` has a count, so has `out`: the lesser one of `out.len` and this count.
#[derive(Clone, Copy)]
pub struct TopK {
    pub coding: KeyCoding,
    pub from: Arrays,
    pub out: Arrays,
}

impl OnNumbers for TopK {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.from.len, self.out.len, self.out.value_bytes)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart, and `workspace_bytes` of
        // workspace.
        unsafe { top_k::<B>(queue, coding, self.from, self.out, workspace) }
    }
}
