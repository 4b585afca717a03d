//! Runs that an array has before it is sorted: an array in order, an array in the opposite order, and a few long runs.
//!
//! ```text
//!   keys     1 4 7 9 │ 8 6 5 │ 2 3 6     an ascending run, a descending one, and an ascending one
//!   turned   1 4 7 9 │ 5 6 8 │ 2 3 6
//!   merged   1 2 3 4 5 6 6 7 8 9
//! ```
//!
//! A scan reads an array up to the first run that is too short, so it takes little time for most arrays.

use super::blocks::{copy, reverse};
use super::run::RunMut;
use super::scratch::Scratch;
use super::{memory, merge_many};
use crate::key_order::KeyOrder;
use crate::sorted::{first_break, first_break_on};
use crate::{Error, Key};
use std::mem::MaybeUninit;

/// The greatest number of runs that are merged. With more runs, another sort takes less time.
const MOST: usize = 8;
/// A run has at least this fraction of the keys. The last run may be shorter.
const LEAST_SHARE: usize = 32;
/// The number of first keys that are compared without a branch.
const FIRST: usize = 16;
/// The least number of keys for each run that is worth a merge.
const KEYS_PER_RUN: usize = 1 << 8;

/// The greatest number of runs of `keys` keys of type `K`, with values of type `V`, that a merge sorts in less time
/// than other sorts. Keys of 2 bytes alone are sorted as fast as they are merged.
pub(super) fn most_runs<K, V>(keys: usize) -> usize {
    if const { size_of::<K>() <= 2 && size_of::<V>() == 0 } { 1 } else { (keys / KEYS_PER_RUN).clamp(1, MOST) }
}

/// The runs that an array consists of.
pub(super) struct Runs {
    /// The end of each run.
    ends: [usize; MOST],
    /// Whether each run descends.
    descends: [bool; MOST],
    count: usize,
}

impl Runs {
    /// The runs of `keys` in this order, or `None` if some are short or there are more than `most`, which is at most
    /// [`MOST`]. Equal keys belong to any run.
    pub fn of<K: Key>(order: KeyOrder, keys: &[K], most: usize, threads: usize) -> Option<Self> {
        // Keys of 16 bytes take longer to compare than a branch.
        if const { size_of::<K>() <= size_of::<u64>() }
            && let Some(first) = keys.first_chunk::<FIRST>()
            && !are_in_order(first, |key| order.encode(key), |x, y| x <= y)
            && !are_in_order(first, |key| order.encode(key), |x, y| x >= y)
        {
            return None;
        }
        let mut runs = Self { ends: [0; MOST], descends: [false; MOST], count: 0 };
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
            (runs.ends[runs.count], runs.descends[runs.count]) = (begin, descending > ascending);
            runs.count += 1;
        }
        Some(runs)
    }

    /// Whether all keys ascend.
    pub fn is_ascending(&self) -> bool {
        self.is_one() && !self.descends[0]
    }

    /// Whether there is one run, or none.
    pub fn is_one(&self) -> bool {
        self.count <= 1
    }

    /// The number of times that a merge of two runs at a time reads each key.
    pub fn passes(&self) -> usize {
        self.count.next_power_of_two().ilog2() as usize
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
        let (mut keys, mut values) = (Scratch::init(run.keys.len())?, Scratch::<V>::uninit(run.keys.len())?);
        let mut begin = 0;
        for (&end, descends) in self.ends[..self.count].iter().zip(self.descends) {
            if descends {
                let RunMut { keys, values } = run.part(begin..end);
                if const { size_of::<V>() > 0 } {
                    turn(keys, values, |x, y| x.to_ordered() == y.to_ordered());
                }
                reverse(keys, threads);
            }
            begin = end;
        }
        let mut begin = 0;
        let runs = self.ends[..self.count].iter().map(|&end| {
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

/// Whether `is_order` holds for the encoded keys of all neighbours. The first ones are compared without a branch, which
/// could not be predicted, unless a comparison takes longer than that.
#[inline(always)]
pub(super) fn is_run<K: Key>(
    keys: &[K],
    encode: impl Fn(K) -> K::Bits + Copy,
    is_order: impl Fn(K::Bits, K::Bits) -> bool + Copy,
) -> bool {
    let is_break = |x, y| !is_order(encode(x), encode(y));
    match keys.first_chunk::<FIRST>() {
        _ if const { size_of::<K>() > size_of::<u64>() } => first_break(keys, is_break).is_none(),
        Some(first) => are_in_order(first, encode, is_order) && first_break(&keys[FIRST - 1..], is_break).is_none(),
        None => are_in_order(keys, encode, is_order),
    }
}

/// Whether `is_order` holds for the encoded keys of all neighbours, which are compared without a branch.
#[inline(always)]
fn are_in_order<K: Key>(
    keys: &[K],
    encode: impl Fn(K) -> K::Bits,
    is_order: impl Fn(K::Bits, K::Bits) -> bool,
) -> bool {
    let mut bits = keys.iter().map(|key| encode(*key));
    let Some(mut before) = bits.next() else { return true };
    let mut are_in_order = true;
    for bits in bits {
        are_in_order &= is_order(before, bits);
        before = bits;
    }
    are_in_order
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
