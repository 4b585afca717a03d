//! The first k keys in their order.

use super::sort::{SortPlan, sort};
use super::{Address, Arrays, Queue, align, bits, elements, slice, suffix, with_values};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::Operation;
use crate::{Error, SortKernel, SortOrder};
use kernels_gpu::kernels::top_k::choose_digit::{self, ChooseDigit};
use kernels_gpu::kernels::top_k::collect::{self, Collect};
use kernels_gpu::kernels::top_k::count_chunks::{self, CountChunks};
use kernels_gpu::kernels::top_k::count_digit::{self, CountDigit};
use kernels_gpu::kernels::top_k::gather::{self, Gather, PAGE, Pages, WARPS};
use kernels_gpu::kernels::top_k::pack::{self, MOST_WARPS, Pack};
use kernels_gpu::kernels::top_k::take_sample::{self, MOST_RANK, SAMPLE, TakeSample};
use kernels_gpu::kernels::top_k::{
    CHUNK_UNIT, COUNT_WORDS, COUNTS, MAX_BLOCKS, PLACE_WORDS, PROGRESS_NUMBERS, most_digits,
};
use kernels_gpu::key::{Coding, Key};

/// Candidates are collected if they are one key in so many, or fewer.
const CANDIDATES: usize = 8;

/// After the choice of how many digits candidates may be collected, once.
const COLLECTIONS: u32 = 2;

/// Candidates are gathered in one reading if there are as many keys for each multiprocessor, or more. Fewer are read
/// twice in the time of its launches.
const GATHERED_KEYS: usize = 1 << 15;

/// Addresses in a workspace, from its begin on, and how long it is.
struct Layout {
    /// How many pages have been taken.
    taken: usize,
    counts: usize,
    /// Where what is cleared ends, and the places of blocks begin.
    cleared: usize,
    /// The counts of blocks.
    of_blocks: usize,
    /// What the warps have found, and whose the pages are.
    of_warps: usize,
    owners: usize,
    candidate_keys: usize,
    candidate_values: usize,
    sort: usize,
    end: usize,
}

impl Layout {
    fn of<K: Key>(n: usize, k: usize, value_bytes: usize) -> Self {
        let taken = align(PROGRESS_NUMBERS * size_of::<u64>());
        let counts = taken + align(size_of::<u32>());
        let cleared = counts + align(COUNT_WORDS * size_of::<u32>());
        let of_blocks = cleared + PLACE_WORDS * size_of::<u32>();
        let of_warps = of_blocks + align(most_blocks(n) * COUNTS * size_of::<u32>());
        let owners = of_warps + align(MOST_WARPS * size_of::<u32>());
        let candidate_keys = owners + align(2 * pages(n) * size_of::<u32>());
        let capacity = capacity(n);
        let candidate_values = candidate_keys + align(capacity * size_of::<K>());
        let sort = candidate_values + align(capacity * value_bytes);
        let sort_bytes = SortPlan::of::<K>(k, value_bytes, false).workspace_bytes::<K>(k);
        let end = sort.saturating_add(sort_bytes);
        Self { taken, counts, cleared, of_blocks, of_warps, owners, candidate_keys, candidate_values, sort, end }
    }
}

const fn capacity(n: usize) -> usize {
    n.div_ceil(CANDIDATES)
}

/// The pages of gathered keys, which take the second half of the room for candidates.
const fn pages(n: usize) -> usize {
    capacity(n) / 2 / PAGE
}

/// The rank of the key of a sample that `k` of `n` keys do not exceed but once in some millions of times. 0 if too many
/// others do not exceed it either.
fn rank(n: usize, k: usize) -> u32 {
    // How many of the first k keys are in the sample, more or less: the deviation is about the root.
    let usual = k as f64 * SAMPLE as f64 / n as f64;
    let rank = (usual + 5.0 * usual.sqrt()).ceil() + 4.0;
    if rank <= MOST_RANK as f64 { rank as u32 } else { 0 }
}

/// The most blocks that count and collect: one for each unit of a chunk.
fn most_blocks(n: usize) -> usize {
    n.div_ceil(CHUNK_UNIT).min(MAX_BLOCKS)
}

/// Bytes of workspace for the first `k` of `n` keys with values of `value_bytes` bytes, or 0.
pub(in crate::gpu) fn workspace_bytes<K: Key>(n: usize, k: usize, value_bytes: usize) -> usize {
    Layout::of::<K>(n, k, value_bytes).end
}

/// Queues the selection of the first `out.len` elements of `from` in that order, sorted and stable, to `out`. Their
/// indices take the place of values, if `from.values` is 0 and there are values.
///
/// # Safety
/// The arrays are in the GPU's memory, `out` no longer than `from`, and `workspace` of [`workspace_bytes`]; `out`
/// overlaps no other; and nothing writes `from`, or uses the others, until the selection has ended.
pub(in crate::gpu) unsafe fn top_k<K: Key>(
    queue: &impl Queue,
    order: SortOrder,
    from: Arrays,
    out: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let (n, k, value_bytes) = (from.len, out.len, out.value_bytes);
    if k == 0 {
        return Ok(());
    }
    let layout = Layout::of::<K>(n, k, value_bytes);
    let at = |offset: usize| workspace + offset as u64;
    let (progress, counts) = (workspace as *mut u64, at(layout.counts) as *mut u32);
    let (coding, capacity, width) =
        (Coding::of::<K>(order == SortOrder::Descending), capacity(n) as u64, bits(size_of::<K>()));
    let candidates = (at(layout.candidate_keys), at(layout.candidate_values));
    let (places, of_blocks) = (at(layout.cleared) as *mut u32, at(layout.of_blocks) as *mut u32);
    let persistent = queue.persistent(
        collect::BLOCKS,
        collect::THREADS as u32,
        collect::SHARED_BYTES.max(count_digit::SHARED_BYTES),
    );
    // The blocks of all launches have the same chunks.
    let blocks = persistent.blocks.min(most_blocks(n));
    let count_shape = Shape { blocks, threads: count_digit::THREADS as u32, shared_bytes: count_digit::SHARED_BYTES };
    let chunks_shape = Shape { blocks, threads: count_chunks::THREADS as u32, shared_bytes: 0 };
    let collect_shape = Shape { blocks, threads: collect::THREADS as u32, shared_bytes: collect::SHARED_BYTES };
    let sample_shape =
        Shape { blocks: 1, threads: take_sample::THREADS as u32, shared_bytes: take_sample::SHARED_BYTES };
    let choose_shape =
        Shape { blocks: 1, threads: choose_digit::THREADS as u32, shared_bytes: choose_digit::SHARED_BYTES };
    let collect = |collection: u32| {
        with_values!(value_bytes, V => {
            let (from, out, candidates) = (slice::<K, V>(from), slice::<K, V>(out), elements::<K, V>(candidates));
            let collect = Collect { from, candidates, out, progress, places, collection, coding };
            // SAFETY: the caller's promise for the arrays; the digits have been chosen, and the chunks counted.
            unsafe { queue.launch(&suffix::<K>(value_bytes), collect_shape, &collect) }
        })
    };
    let rank = if n >= GATHERED_KEYS * queue.multiprocessors() { rank(n, k) } else { 0 };
    let gather = || {
        let shape = queue.persistent(gather::BLOCKS, gather::THREADS as u32, 0);
        let shape = Shape { blocks: shape.blocks.min(MOST_WARPS / WARPS), ..shape };
        let pages = Pages {
            taken: at(layout.taken) as *mut u32,
            of_warps: at(layout.of_warps) as *mut u32,
            owners: at(layout.owners) as *mut u32,
            count: pages(n) as u32,
            warps: (shape.blocks * WARPS) as u32,
        };
        let pack_shape = Shape { shared_bytes: pack::SHARED_BYTES, threads: pack::THREADS as u32, ..shape };
        // Behind as many candidates as fit.
        let first = pages.count as usize * PAGE;
        let behind = |at: Address, bytes: usize| at + (first * bytes) as Address;
        let to = (behind(candidates.0, size_of::<K>()), behind(candidates.1, value_bytes));
        with_values!(value_bytes, V => {
            let (from, to) = (slice::<K, V>(from), elements::<K, V>(to));
            let candidates = elements::<K, V>(candidates);
            let suffix = suffix::<K>(value_bytes);
            // SAFETY: the caller's promise for the arrays; the sample has been taken, and the room for candidates is of
            // two times the pages.
            unsafe {
                queue.launch(&suffix, shape, &Gather { from, to, pages, progress, coding })?;
                queue.launch(&suffix, pack_shape, &Pack { from: to, candidates, k, pages, progress })
            }
        })
    };
    // SAFETY: the caller's promise for the arrays; the workspace has what the layout says. Digits are counted and
    // chosen one after the other.
    unsafe {
        queue.clear(workspace, layout.cleared / size_of::<u32>())?;
        let (keys, candidates) = (from.keys as *const K::Bits, candidates.0 as *const K::Bits);
        queue.launch(&width, sample_shape, &TakeSample { keys, n, progress, rank, coding })?;
        if rank > 0 {
            gather()?;
        }
        for number in 0..most_digits(size_of::<K>()) {
            let count = CountDigit { keys, n, candidates, counts, of_blocks, progress, coding };
            queue.launch(&width, count_shape, &count)?;
            let (k, collections) = (k as u64, COLLECTIONS);
            queue.launch(&width, choose_shape, &ChooseDigit { counts, progress, k, capacity, number, collections })?;
            let chunks = CountChunks { of_blocks: of_blocks.cast_const(), places, progress, number };
            queue.launch(&width, chunks_shape, &chunks)?;
            if number < COLLECTIONS {
                collect(number)?;
            }
        }
        collect(collect::LAST)?;
        sort::<K>(queue, (SortKernel::Auto, order), out, false, at(layout.sort))
    }
}

/// The first `out.len` elements of `from`, sorted. Indices take the place of values if `from.values` is 0 and `out` has
/// values.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct TopK {
    pub(in crate::gpu) order: SortOrder,
    pub(in crate::gpu) from: Arrays,
    pub(in crate::gpu) out: Arrays,
}

impl<K: Key> Operation<K> for TopK {
    fn workspace_bytes(&self) -> usize {
        workspace_bytes::<K>(self.from.len, self.out.len, self.out.value_bytes)
    }

    unsafe fn launch(&self, queue: &impl Queue, workspace: Address) -> Result<(), Error> {
        // SAFETY: the caller's arrays and workspace.
        unsafe { top_k::<K>(queue, self.order, self.from, self.out, workspace) }
    }
}
