//! Runs that an array has before it is sorted: an array in order, an array in the opposite order, and a few long runs.
//!
//! ```text
//!   keys     1 4 7 9 │ 8 6 5 │ 2 3 6     an ascending run, a descending one, and an ascending one
//!   turned   1 4 7 9 │ 5 6 8 │ 2 3 6
//!   merged   1 2 3 4 5 6 6 7 8 9
//! ```
//!
//! A scan reads an array up to the first run that is too short, so it takes little time for most arrays.

use super::blocks::copy;
use super::run::RunMut;
use super::scratch::Scratch;
use super::{memory, merge_many};
use crate::key_order::KeyOrder;
use crate::sorted::first_break_on;
use crate::{Error, Key};
use std::mem::MaybeUninit;

/// The greatest number of runs that are merged. With more runs, another sort takes less time.
const MOST: usize = 8;
/// A run has at least this fraction of the keys. The last run may be shorter.
const LEAST_SHARE: usize = 32;
/// The first run has at least this number of pairs of neighbours in its order.
const FIRST_PAIRS: usize = 16;
/// The least number of keys for each run that is worth a merge.
const KEYS_PER_RUN: usize = 1 << 8;

/// The greatest number of runs of `keys` keys that a merge sorts in less time than other sorts.
pub(super) fn most_runs(keys: usize) -> usize {
    (keys / KEYS_PER_RUN).clamp(1, MOST)
}

/// The runs that an array consists of.
pub(super) struct Runs {
    /// The end of each run, and whether the run descends.
    ends: [(usize, bool); MOST],
    count: usize,
}

impl Runs {
    /// The runs of `keys` in this order, or `None` if some are short or there are more than `most`, which is at most
    /// [`MOST`]. Equal keys belong to any run.
    pub fn of<K: Key>(order: KeyOrder, keys: &[K], most: usize, threads: usize) -> Option<Self> {
        if !begins_in_order(order, keys) {
            return None;
        }
        let mut runs = Self { ends: [(0, false); MOST], count: 0 };
        let (mut begin, least) = (0, keys.len() / LEAST_SHARE);
        while begin < keys.len() {
            if runs.count == most {
                return None;
            }
            let rest = &keys[begin..];
            let ascending = run(order, rest, threads, |x, y| x > y);
            // A run that ends soon may begin with equal keys and descend.
            let descending =
                if ascending == rest.len() || ascending > least { 0 } else { run(order, rest, threads, |x, y| x < y) };
            let len = ascending.max(descending);
            begin += len;
            if len < least && begin < keys.len() {
                return None;
            }
            runs.ends[runs.count] = (begin, descending > ascending);
            runs.count += 1;
        }
        Some(runs)
    }

    /// Whether all keys ascend.
    pub fn is_ascending(&self) -> bool {
        self.count == 0 || self.is_one() && !self.ends[0].1
    }

    /// Whether there is one run.
    pub fn is_one(&self) -> bool {
        self.count == 1
    }

    /// Sorts the array that has these runs in ascending order. Stable.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is no scratch memory.
    pub fn merge<K: Key, V: Copy + Send + Sync>(
        &self,
        mut run: RunMut<K, MaybeUninit<V>>,
        threads: usize,
    ) -> Result<(), Error> {
        let (mut keys, mut values) = (Scratch::zeroed(run.keys.len())?, Scratch::<V>::uninit(run.keys.len())?);
        let mut begin = 0;
        for &(end, descends) in &self.ends[..self.count] {
            if descends {
                let RunMut { keys, values } = run.part(begin..end);
                if const { size_of::<V>() > 0 } {
                    turn(keys, values, |x, y| x.to_ordered() == y.to_ordered());
                }
                keys.reverse();
            }
            begin = end;
        }
        let mut begin = 0;
        let runs = self.ends[..self.count].iter().map(|&(end, _)| {
            let part = begin..end;
            begin = end;
            run.as_run().part(part)
        });
        merge_many::merge_runs(&memory::collected(runs)?, RunMut::new((&mut keys, &mut values)), threads)?;
        copy(&keys, run.keys, threads);
        copy(&values, run.values, threads);
        Ok(())
    }
}

/// The length of the run that ends before the first pair of neighbours for whose encoded keys `is_break` is true.
fn run<K: Key>(
    order: KeyOrder,
    keys: &[K],
    threads: usize,
    is_break: impl Fn(K::Bits, K::Bits) -> bool + Sync,
) -> usize {
    let end = if order.is_of::<K>() {
        // The most frequent order takes less time if it is compiled by itself.
        first_break_on(threads, keys, |x, y| is_break(x.to_ordered(), y.to_ordered()))
    } else {
        first_break_on(threads, keys, |x, y| is_break(order.encode(x), order.encode(y)))
    };
    end.unwrap_or(keys.len())
}

/// Whether the first keys ascend or descend.
#[inline(always)]
fn begins_in_order<K: Key>(order: KeyOrder, keys: &[K]) -> bool {
    // Without a branch, which could not be predicted.
    let (mut ascends, mut descends) = (true, true);
    let Some(first) = keys.first_chunk::<{ FIRST_PAIRS + 1 }>() else { return true };
    let mut before = order.encode(first[0]);
    for key in &first[1..] {
        let bits = order.encode(*key);
        ascends &= before <= bits;
        descends &= before >= bits;
        before = bits;
    }
    ascends | descends
}

/// Turns `items` round, which belong to descending `keys`. Items of equal keys keep their order.
pub(super) fn turn<K: Copy + Sync, T>(keys: &[K], items: &mut [T], is_equal: impl Fn(K, K) -> bool + Copy + Sync) {
    let mut begin = 0;
    while let Some(second) = first_break_on(1, &keys[begin..], is_equal) {
        let first = begin + second - 1;
        let count = keys[first..].windows(2).take_while(|pair| is_equal(pair[0], pair[1])).count() + 1;
        items[first..first + count].reverse();
        begin = first + count;
    }
    items.reverse();
}
