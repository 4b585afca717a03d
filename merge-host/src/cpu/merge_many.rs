//! Merge of many runs: the output is divided into blocks that stay in a core's cache, and a tree of two-way merges
//! fills each block.
//!
//! ```text
//!   runs     ├──┊───┊────┤ ├─┊──┊──┤ ├────┊─┊──┤ ├─┊───┊───┤     the exact splits between blocks
//!                 └──────┬──────┘       └───┬──────┘
//!   scratch             ├──────────────┼────────────┤
//!                                └──┬──┘
//!   out      ├──────────────────────┼────…
//! ```
//!
//! Each key is read from memory once and written once, for any number of levels of the tree. A level halves the number
//! of keys, not of runs, so the keys of a long run go through few merges. With very many runs, each run has only a few
//! keys in a block. Then groups of runs are merged first, in a separate pass over memory.
//!
//! Large values do not move from level to level. Their indices move, and each value is copied once at the end.

use super::merge_path::{self, merge_block};
use super::multiway_split::MultiwaySplit;
use super::scratch::Scratch;
use super::split::part_ranges;
use super::{memory, run};
use crate::parallel::{self, Threads};
use crate::splits::InMemory;
use crate::{Error, Key};
use std::mem::MaybeUninit;

/// Bytes of a block. A block needs scratch memory of the same size, and both fit a core's second-level cache.
const BLOCK_BYTES: usize = 1 << 18;
/// The greatest number of runs that one pass merges: two passes of 8 are faster than one of 64.
const MAX_FAN_IN: usize = 32;
/// Shares for each thread: more than one, so that other threads take over some from a thread that is delayed.
const SHARES_PER_THREAD: usize = 8;
/// The greatest size of a value that moves together with its key, in bytes.
const MAX_MOVED_VALUE: usize = 16;

/// Runs with values that may be uninitialised: a value of scratch memory is, until a merge writes it.
pub(super) type Run<'a, K, V> = run::Run<'a, K, MaybeUninit<V>>;
pub(super) type RunMut<'a, K, V> = run::RunMut<'a, K, MaybeUninit<V>>;

/// Merges `runs` into `out`, which has the sum of their lengths. Equal keys keep the order of their runs.
pub(crate) fn merge<'a, K: Key, V: Copy + Send + Sync + 'a>(
    runs: impl Iterator<Item = run::Run<'a, K, V>>,
    out: run::RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    // SAFETY: merges write only copies of values to `out`. A pass reads values of `runs`, which are initialised, or
    // values that the pass before has written.
    let out = RunMut { keys: out.keys, values: unsafe { memory::as_uninit_mut(out.values) } };
    let runs = runs.filter(|run| !run.keys.is_empty());
    let mut with_keys = memory::reserved(runs.size_hint().1.unwrap_or(0))?;
    for run in runs {
        memory::push(&mut with_keys, Run { keys: run.keys, values: memory::as_uninit(run.values) })?;
    }
    merge_runs(&with_keys, out, threads)
}

/// [`merge`] of non-empty runs.
pub(super) fn merge_runs<K: Key, V: Copy + Send + Sync>(
    runs: &[Run<K, V>],
    mut out: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    let (fan_in, passes) = passes(runs.len());
    let spare = if passes > 1 { out.keys.len() } else { 0 };
    let mut spare = (Scratch::init(spare)?, Scratch::<V>::uninit(spare)?);
    let (all, mut spare) = (0..out.keys.len(), RunMut::new((&mut spare.0, &mut spare.1)));
    let mut out = out.part(all);

    // Passes alternate between two arrays such that the last pass writes to `out`.
    let (mut from, mut to) = if passes % 2 == 1 { (&mut spare, &mut out) } else { (&mut out, &mut spare) };
    let mut lengths = merge_groups(runs, fan_in, to, threads)?;
    for _ in 1..passes {
        (from, to) = (to, from);
        lengths = merge_groups(&adjacent_runs(from.as_run(), &lengths)?, fan_in, to, threads)?;
    }
    Ok(())
}

/// The least number of passes that merge `runs` runs into one, and the fan-in of each pass.
fn passes(runs: usize) -> (usize, u32) {
    let mut passes = 1;
    while MAX_FAN_IN.saturating_pow(passes) < runs {
        passes += 1;
    }
    let enough = |fan_in: &usize| fan_in.saturating_pow(passes) >= runs;
    ((1..MAX_FAN_IN).find(enough).unwrap_or(MAX_FAN_IN), passes)
}

/// The runs of the given lengths that `all` consists of.
fn adjacent_runs<'a, K: Key, V: Copy>(all: Run<'a, K, V>, lengths: &[usize]) -> Result<Vec<Run<'a, K, V>>, Error> {
    let mut end = 0;
    let run = |length: &usize| {
        end += length;
        all.part(end - length..end)
    };
    memory::collected(lengths.iter().map(run))
}

/// Merges each group of `fan_in` adjacent runs into one run; the last group may be smaller. Writes the merged runs one
/// after another to `out`, and returns their lengths.
fn merge_groups<K: Key, V: Copy + Send + Sync>(
    runs: &[Run<K, V>],
    fan_in: usize,
    out: &mut RunMut<K, V>,
    threads: usize,
) -> Result<Vec<usize>, Error> {
    let total = out.keys.len();
    if let [a, b] = runs {
        merge_path::merge(*a, *b, out.part(0..total), threads);
        return memory::collected([total]);
    }
    let share = total.div_ceil(threads * SHARES_PER_THREAD).next_multiple_of(block::<K, V>());
    let (mut shares, mut lengths, mut rest) = (Vec::new(), Vec::new(), out.part(0..total));
    for runs in runs.chunks(fan_in) {
        let length = runs.iter().map(|run| run.keys.len()).sum();
        memory::push(&mut lengths, length)?;
        for begin in (0..length).step_by(share) {
            let out;
            (out, rest) = rest.split_at(share.min(length - begin));
            memory::push(&mut shares, Share { runs, begin, out })?;
        }
    }
    parallel::try_for_each_on(Threads::OfPool(threads), shares, Share::fill)?;
    Ok(lengths)
}

/// Whether values move together with their keys.
const fn moves_values<V>() -> bool {
    size_of::<V>() <= MAX_MOVED_VALUE
}

/// The number of keys of a block.
const fn block<K, V>() -> usize {
    BLOCK_BYTES / (size_of::<K>() + if moves_values::<V>() { size_of::<V>() } else { size_of::<ValueIndex>() })
}

/// Scratch memory for small merges, which one thread does one after the other.
pub(super) struct SmallMerges<K, V> {
    keys: Box<[K]>,
    values: Vec<MaybeUninit<V>>,
}

impl<K: Key, V: Copy> SmallMerges<K, V> {
    pub fn new() -> Self {
        Self { keys: Box::default(), values: Vec::new() }
    }

    /// Whether a merge of `keys` keys fits one block, with values that move together with the keys.
    pub const fn can_merge(keys: usize) -> bool {
        moves_values::<V>() && keys <= block::<K, V>()
    }

    /// Merges `runs`, which are not empty, into `out`, which has the sum of their lengths. Equal keys keep the order of
    /// their runs.
    pub fn merge(&mut self, runs: &[Run<K, V>], mut out: RunMut<K, V>) -> Result<(), Error> {
        let count = out.keys.len();
        if self.keys.len() < count {
            let grown = count.next_power_of_two();
            *self = Self { keys: memory::zeroed(grown)?, values: memory::uninit(grown)? };
        }
        let scratch = RunMut::new((&mut self.keys[..count], &mut self.values[..count]));
        merge_tree(runs, &mut out, scratch);
        Ok(())
    }
}

/// The index of a value within a block.
type ValueIndex = u32;

/// One thread's part of a group's output.
struct Share<'a, K, V> {
    runs: &'a [Run<'a, K, V>],
    /// The number of keys of the group's output before this part.
    begin: usize,
    out: RunMut<'a, K, V>,
}

impl<'a, K: Key, V: Copy + Send + Sync> Share<'a, K, V> {
    fn fill(mut self) -> Result<(), Error> {
        let end = self.begin + self.out.keys.len();
        match self.runs {
            [run] => self.out.copy_from(run.part(self.begin..end)),
            [a, b] => {
                let (a_part, b_part) = part_ranges(a.keys, b.keys, self.begin, end);
                merge_block(a.part(a_part), b.part(b_part), self.out);
            }
            // The condition is a constant, so only one branch is compiled.
            _ => {
                if const { moves_values::<V>() } {
                    self.merge_values()?;
                } else {
                    self.merge_indices()?;
                }
            }
        }
        Ok(())
    }

    /// Merges keys with their values.
    fn merge_values(self) -> Result<(), Error> {
        let most = block::<K, V>().min(self.out.keys.len());
        let mut scratch = (Scratch::init(most)?, Scratch::<V>::uninit(most)?);
        self.for_each_block(|parts, mut out| {
            let count = out.keys.len();
            let scratch = run::RunMut::new((&mut scratch.0[..count], &mut scratch.1[..count]));
            merge_tree(parts, &mut out, scratch);
        })
    }

    /// Merges keys with the indices of their values, and then gathers the values.
    fn merge_indices(self) -> Result<(), Error> {
        let most = block::<K, V>().min(self.out.keys.len());
        let mut scratch = (Scratch::init(most)?, Scratch::<ValueIndex>::init(most)?);
        let mut merged = Scratch::<ValueIndex>::init(most)?;
        let identity = memory::collected(0..most as ValueIndex)?;
        let mut values: Vec<&MaybeUninit<V>> = memory::reserved(most)?;
        let mut with_indices = memory::reserved(self.runs.len())?;
        self.for_each_block(|parts, out| {
            let count = out.keys.len();
            values.clear();
            with_indices.clear();
            with_indices.extend(parts.iter().map(|part| {
                let begin = values.len();
                values.extend(part.values);
                run::Run { keys: part.keys, values: &identity[begin..values.len()] }
            }));
            let scratch = run::RunMut::new((&mut scratch.0[..count], &mut scratch.1[..count]));
            let mut sorted = run::RunMut::new((out.keys, &mut merged[..count]));
            merge_tree(&with_indices, &mut sorted, scratch);
            for (value, index) in out.values.iter_mut().zip(&*sorted.values) {
                *value = *values[*index as usize];
            }
        })
    }

    /// Calls `merge` with each block of the output and the non-empty parts of the runs that it is merged from.
    fn for_each_block(mut self, mut merge: impl FnMut(&[Run<'a, K, V>], RunMut<K, V>)) -> Result<(), Error> {
        let mut runs = InMemory::of_runs(self.runs)?;
        let mut from: Box<[usize]> = memory::zeroed(self.runs.len())?;
        let mut to = MultiwaySplit::at_begin(self.runs.len())?;
        to.move_to(&mut runs, self.begin);
        from.copy_from_slice(to.taken());
        let mut end = self.begin;
        let mut parts = memory::reserved(self.runs.len())?;
        for out in self.out.chunks(block::<K, V>()) {
            end += out.keys.len();
            to.move_to(&mut runs, end);
            let ranges = from.iter().zip(to.taken()).map(|(&from, &to)| from..to);
            let runs = self.runs.iter().zip(ranges).filter(|(_, range)| !range.is_empty());
            parts.clear();
            parts.extend(runs.map(|(run, range)| run.part(range)));
            merge(&parts, out);
            from.copy_from_slice(to.taken());
        }
        Ok(())
    }
}

/// Merges `parts`, which are not empty, into `out`. `out` and `scratch` have the sum of their lengths.
fn merge_tree<K: Key, W: Copy>(parts: &[run::Run<K, W>], out: &mut run::RunMut<K, W>, scratch: run::RunMut<K, W>) {
    let all = 0..out.keys.len();
    match parts {
        [] => {}
        [part] => out.copy_from(*part),
        [a, b] => merge_block(*a, *b, out.part(all)),
        _ => {
            let (count, middle) = half(parts);
            let (left, right) = parts.split_at(count);
            let (mut left_scratch, mut right_scratch) = scratch.split_at(middle);
            merge_block(
                merged(left, &mut left_scratch, out.part(0..middle)),
                merged(right, &mut right_scratch, out.part(middle..all.end)),
                out.part(all),
            );
        }
    }
}

/// The merge of `parts` in `out`. There is at least one part; a single part is returned without a copy.
fn merged<'a, K: Key, W: Copy>(
    parts: &[run::Run<'a, K, W>],
    out: &'a mut run::RunMut<K, W>,
    scratch: run::RunMut<K, W>,
) -> run::Run<'a, K, W> {
    if let [part] = parts {
        return *part;
    }
    merge_tree(parts, out, scratch);
    out.as_run()
}

/// The number of leading parts that have about half of the keys, and the number of their keys. There are at least two
/// parts.
fn half<K, W>(parts: &[run::Run<K, W>]) -> (usize, usize) {
    let total: usize = parts.iter().map(|part| part.keys.len()).sum();
    let (mut count, mut keys) = (1, parts[0].keys.len());
    while count + 1 < parts.len() {
        let next = keys + parts[count].keys.len();
        if next.abs_diff(total - next) >= keys.abs_diff(total - keys) {
            break;
        }
        (count, keys) = (count + 1, next);
    }
    (count, keys)
}
