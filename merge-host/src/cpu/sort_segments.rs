//! Sort of each segment of an array.
//!
//! ```text
//!   keys     │ 0 │ 1  │ 2 │ 3   │ segment 4                     │ 5 │ 6  │ …
//!   threads  ├────────┼─────────┤├────┼────┼────┼────┼────┼────┤├────────┤
//!             shares of one thread         all threads
//! ```
//!
//! All threads together sort a long segment. Shorter segments are sorted by one thread each, several adjacent ones at a
//! time, so threads share millions of short segments as evenly as a few long ones.

use super::memory::push;
use super::run::RunMut;
use super::{sort, vector};
use crate::key_order::KeyOrder;
use crate::parallel::{self, Threads};
use crate::{Error, Key};

/// Shares for each thread: more than one, so that other threads take over some from a thread that is delayed.
const SHARES_PER_THREAD: usize = 8;
/// The cost of a segment in addition to its keys, in keys. With this cost, short and empty segments are divided evenly,
/// too.
const SEGMENT_COST: usize = 8;
/// The least number of keys of a segment that is worth all threads.
const MIN_PARALLEL_KEYS: usize = 1 << 18;
/// The greatest number of keys without values that comparisons sort fastest, without vector instructions.
const MAX_COMPARED_KEYS: usize = 32;

/// The cost of sorting the segments, in keys.
///
/// The sum does not overflow: keys and offsets are in memory, and a process addresses less than 2^57 bytes.
pub(crate) fn cost(offsets: &[usize]) -> usize {
    offsets[offsets.len() - 1] + (offsets.len() - 1) * SEGMENT_COST
}

/// Sorts each segment, from an offset to the next, with values if these have any bytes. Stable.
pub(crate) fn sort<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    run: RunMut<K, V>,
    offsets: &[usize],
    threads: usize,
) -> Result<(), Error> {
    // A constant, so that the other way is not compiled.
    if const { size_of::<V>() > 0 } {
        return sort_pairs(order, run, offsets, threads);
    }
    let mut result = Ok(());
    sort::in_order(order, run.keys, threads, |bits| result = sort_bits(bits, offsets, threads));
    result
}

/// Sorts the segments of ordered bits alone.
fn sort_bits<B: Key>(bits: &mut [B], offsets: &[usize], threads: usize) -> Result<(), Error> {
    let short = vector::short::<B>();
    for_each_share(Share::all(RunMut::of_keys(bits), offsets), threads, |share, threads| {
        if vector::sort_short(share.run.keys, share.offsets) {
            return Ok(());
        }
        share.for_each_segment(|run| match run.keys.len() {
            len if len <= short => Ok(()),
            len if short == 0 && len <= MAX_COMPARED_KEYS => {
                run.keys.sort_unstable_by_key(|bits| bits.to_ordered());
                Ok(())
            }
            _ => sort::sort(KeyOrder::ASCENDING, run, threads),
        })
    })
}

/// Sorts the segments of keys with values.
fn sort_pairs<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    run: RunMut<K, V>,
    offsets: &[usize],
    threads: usize,
) -> Result<(), Error> {
    for_each_share(Share::all(run, offsets), threads, |share, threads| {
        share.for_each_segment(|run| sort::sort(order, run, threads))
    })
}

/// Adjacent segments for one thread.
pub(super) struct Share<'a, K, V> {
    /// The index of the first segment.
    pub first: usize,
    offsets: &'a [usize],
    /// The slots of `run` for each segment; `None` if `run` has the elements of the segments.
    slots: Option<usize>,
    run: RunMut<'a, K, V>,
}

impl<'a, K, V> Share<'a, K, V> {
    /// All segments of `run`.
    pub fn all(run: RunMut<'a, K, V>, offsets: &'a [usize]) -> Self {
        Self { first: 0, offsets, slots: None, run }
    }

    /// All segments of an array, with `slots` slots of `out` for the result of each.
    pub fn all_with_slots(out: RunMut<'a, K, V>, offsets: &'a [usize], slots: usize) -> Self {
        Self { first: 0, offsets, slots: Some(slots), run: out }
    }

    /// Calls `work` with the elements or slots of each segment.
    pub fn for_each_segment(self, mut work: impl FnMut(RunMut<K, V>) -> Result<(), Error>) -> Result<(), Error> {
        let Self { offsets, slots, mut run, .. } = self;
        let mut begin = 0;
        offsets.windows(2).try_for_each(|ends| {
            let end = begin + slots.unwrap_or(ends[1] - ends[0]);
            let part = run.part(begin..end);
            begin = end;
            work(part)
        })
    }
}

/// Calls `work` with shares of the segments of `all` and the number of threads for each share.
pub(super) fn for_each_share<K: Key, V: Send>(
    all: Share<K, V>,
    threads: usize,
    work: impl Fn(Share<K, V>, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    if threads == 1 {
        return work(all, 1);
    }
    let [long, short] = shares(all, threads)?;
    long.into_iter().try_for_each(|share| work(share, threads))?;
    parallel::try_for_each_on(Threads::OfPool(threads), short, |share| work(share, 1))
}

/// Long segments, one to a share, and all other segments, in shares of about the same cost.
fn shares<K, V>(all: Share<K, V>, threads: usize) -> Result<[Vec<Share<K, V>>; 2], Error> {
    let Share { offsets, slots, run, .. } = all;
    let (segments, cost) = (offsets.len() - 1, cost(offsets));
    let share_cost = cost.div_ceil(threads * SHARES_PER_THREAD);
    let max_serial_keys = MIN_PARALLEL_KEYS.max(cost / (4 * threads));
    let keys = |from: usize, to: usize| offsets[to] - offsets[from];
    let is_long = |segment| keys(segment, segment + 1) > max_serial_keys;
    let (mut long, mut short, mut first, mut rest) = (Vec::new(), Vec::new(), 0, run);
    while first < segments {
        let (mut end, alone) = (first + 1, is_long(first));
        let is_full = |end| keys(first, end) + (end - first) * SEGMENT_COST >= share_cost;
        while !alone && end < segments && !is_long(end) && !is_full(end) {
            end += 1;
        }
        let (run, after) = rest.split_at(slots.map_or(keys(first, end), |slots| (end - first) * slots));
        push(if alone { &mut long } else { &mut short }, Share { first, offsets: &offsets[first..=end], slots, run })?;
        (first, rest) = (end, after);
    }
    Ok([long, short])
}
