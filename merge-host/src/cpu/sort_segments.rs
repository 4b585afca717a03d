//! Sort of segments, each on its own.
//!
//! ```text
//!   keys     │ 0 │ 1  │ 2 │ 3   │ segment 4                     │ 5 │ 6  │ …
//!   threads  ├────────┼─────────┤├────┼────┼────┼────┼────┼────┤├────────┤
//!             shares of one thread         all threads
//! ```
//!
//! A long segment is sorted by all threads. The others go to one thread each, neighbours together, so that millions of
//! short ones are shared as well as a few long ones.

use super::run::RunMut;
use super::{sort, sort_pairs};
use crate::{Error, Key, SortOrder};
use rayon::prelude::*;

/// Shares for each thread: more than one, so that a thread that is held up leaves some to the others.
const SHARES_A_THREAD: usize = 8;
/// What a segment costs beside its keys, in keys. It is what shares out segments that are short or empty.
const SEGMENT: usize = 8;
/// Keys that are worth all threads.
const LONG: usize = 1 << 18;
/// Keys alone that are faster to sort where they are.
const FEW_KEYS: usize = 32;
/// Keys with values that are faster to sort by comparisons.
const FEW_PAIRS: usize = 256;

/// What sorting costs, in keys.
pub(super) fn cost(offsets: &[usize]) -> usize {
    offsets[offsets.len() - 1] + (offsets.len() - 1) * SEGMENT
}

/// Sorts each segment of `keys`, from an offset to the next. If `threads` is more than 1, this thread belongs to the pool
/// to use.
pub(super) fn sort_keys<K: Key>(
    order: SortOrder,
    keys: &mut [K],
    offsets: &[usize],
    threads: usize,
) -> Result<(), Error> {
    each_segment(RunMut::of_keys(keys), offsets, threads, |_, run, threads| {
        if run.keys.len() <= FEW_KEYS {
            // Equal keys have equal bits, so that nobody can tell a stable sort of keys from another.
            run.keys.sort_unstable_by_key(|key| order.applied_to(*key).to_ordered());
            return Ok(());
        }
        sort::sort_keys(order, run.keys, threads)
    })
}

/// [`sort_keys`] of keys with values.
pub(super) fn sort_pairs<K: Key, V: Copy + Send + Sync>(
    order: SortOrder,
    run: RunMut<K, V>,
    offsets: &[usize],
    threads: usize,
) -> Result<(), Error> {
    each_segment(run, offsets, threads, |scratch, run, threads| {
        if run.keys.len() <= FEW_PAIRS {
            scratch.sort(order, run);
            return Ok(());
        }
        sort_pairs::sort_pairs(order, run.keys, run.values, threads)
    })
}

/// Room to sort few keys with values, for a thread.
struct Scratch<K: Key, V> {
    /// Ordered bits, and places, which tell equal keys apart.
    keys: Vec<(K::Bits, u32)>,
    values: Vec<V>,
}

impl<K: Key, V: Copy> Scratch<K, V> {
    fn sort(&mut self, order: SortOrder, run: RunMut<K, V>) {
        let places = run.keys.iter().zip(0..).map(|(key, place)| (order.applied_to(*key).to_ordered(), place));
        self.keys.clear();
        self.keys.extend(places);
        self.keys.sort_unstable();
        self.values.clear();
        self.values.extend_from_slice(run.values);
        for ((key, value), (bits, place)) in run.keys.iter_mut().zip(run.values).zip(&self.keys) {
            *key = order.applied_to(K::from_ordered(*bits));
            *value = self.values[*place as usize];
        }
    }
}

/// Neighbouring segments for one thread.
struct Share<'a, K, V> {
    offsets: &'a [usize],
    run: RunMut<'a, K, V>,
    /// A single segment that is worth all threads.
    is_long: bool,
}

/// Calls `sort` with each segment and how many threads are to sort it.
fn each_segment<K: Key, V: Send>(
    run: RunMut<K, V>,
    offsets: &[usize],
    threads: usize,
    sort: impl Fn(&mut Scratch<K, V>, RunMut<K, V>, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let sort_share = |mut share: Share<K, V>, threads| {
        let mut scratch = Scratch { keys: Vec::new(), values: Vec::new() };
        let begin = share.offsets[0];
        let mut segments = share.offsets.windows(2);
        segments.try_for_each(|ends| sort(&mut scratch, share.run.part(ends[0] - begin..ends[1] - begin), threads))
    };
    if threads == 1 {
        return sort_share(Share { offsets, run, is_long: false }, 1);
    }
    let (long, short): (Vec<_>, Vec<_>) = shares(run, offsets, threads).into_iter().partition(|share| share.is_long);
    long.into_iter().try_for_each(|share| sort_share(share, threads))?;
    short.into_par_iter().try_for_each(|share| sort_share(share, 1))
}

/// All segments, in shares that cost about the same, but for long ones.
fn shares<'a, K, V>(run: RunMut<'a, K, V>, offsets: &'a [usize], threads: usize) -> Vec<Share<'a, K, V>> {
    let (segments, cost) = (offsets.len() - 1, cost(offsets));
    let (enough, too_long) = (cost.div_ceil(threads * SHARES_A_THREAD), LONG.max(cost / (4 * threads)));
    let keys = |from: usize, to: usize| offsets[to] - offsets[from];
    let is_long = |segment| keys(segment, segment + 1) > too_long;
    let (mut shares, mut first, mut rest) = (Vec::new(), 0, run);
    while first < segments {
        let (mut end, alone) = (first + 1, is_long(first));
        while !alone && end < segments && !is_long(end) && keys(first, end) + (end - first) * SEGMENT < enough {
            end += 1;
        }
        let (run, after) = rest.split_at(keys(first, end));
        shares.push(Share { offsets: &offsets[first..=end], run, is_long: alone });
        (first, rest) = (end, after);
    }
    shares
}
