//! Merge of many runs: the output is cut into pieces that stay in a core's cache, and each is merged by a tree of merges
//! of two.
//!
//! ```text
//!   runs     ├──┊───┊────┤ ├─┊──┊──┤ ├────┊─┊──┤ ├─┊───┊───┤     the exact cuts between pieces
//!                 └──────┬──────┘       └───┬──────┘
//!   scratch             ├──────────────┼────────────┤
//!                                └──┬──┘
//!   out      ├──────────────────────┼────…
//! ```
//!
//! So every key is read from memory once and written once, however many levels the tree has. It halves keys and not runs,
//! so that the keys of a long run go through few merges. Where there are so many runs that each has but a few keys in a
//! piece, groups of them are merged first, in a pass over memory of their own.
//!
//! Large values are not moved from level to level: places are, and each value is copied once in the end.

use super::merge_path::{self, merge_piece};
use super::select::Cut;
use super::split::part_ranges;
use super::{memory, run};
use crate::{Error, Key};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Bytes of a piece. As much scratch memory goes with it, and both are in a core's second-level cache.
const PIECE_BYTES: usize = 1 << 18;
/// The most runs that one pass merges: of 64, two passes of 8 have shown to be faster.
const MAX_FAN: usize = 32;
/// Shares for each thread: more than one, so that a thread that is held up leaves some to the others.
const SHARES_A_THREAD: usize = 8;
/// The most bytes of a value that is moved along with its key.
const SMALL_VALUE: usize = 16;

/// Values that may be uninitialised: those of scratch memory are until something is merged there.
type Run<'a, K, V> = run::Run<'a, K, MaybeUninit<V>>;
type RunMut<'a, K, V> = run::RunMut<'a, K, MaybeUninit<V>>;

/// Merges `runs` into `out`, which has room for just these. Of equal keys, those of an earlier run come first. If
/// `threads` is more than 1, this thread belongs to the pool to use.
pub(super) fn merge<'a, K: Key, V: Copy + Send + Sync + 'a>(
    runs: impl Iterator<Item = run::Run<'a, K, V>>,
    out: run::RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    // SAFETY: values are copied from one place to another and nothing else is written.
    let mut out = RunMut { keys: out.keys, values: unsafe { memory::as_room(out.values) } };
    let runs = runs.filter(|run| !run.keys.is_empty());
    let runs: Vec<_> = runs.map(|run| Run { keys: run.keys, values: memory::as_maybe_uninit(run.values) }).collect();
    let (fan, passes) = passes(runs.len());
    let spare = if passes > 1 { out.keys.len() } else { 0 };
    let mut spare = (memory::zeroed(spare)?, memory::room(spare)?);
    let mut spare = RunMut::new((&mut spare.0, &mut spare.1));

    // Passes alternate between the two, and the last one is to end in `out`.
    let (mut from, mut to) = if passes % 2 == 1 { (&mut spare, &mut out) } else { (&mut out, &mut spare) };
    let mut lengths = merge_groups(&runs, fan, to, threads)?;
    for _ in 1..passes {
        (from, to) = (to, from);
        lengths = merge_groups(&one_after_the_other(from.as_run(), &lengths), fan, to, threads)?;
    }
    Ok(())
}

/// How many runs to merge into one at a time, and in how many passes, to make one of `runs`: as few passes as can be.
fn passes(runs: usize) -> (usize, u32) {
    let mut passes = 1;
    while MAX_FAN.saturating_pow(passes) < runs {
        passes += 1;
    }
    let enough = |fan: &usize| fan.saturating_pow(passes) >= runs;
    ((1..MAX_FAN).find(enough).unwrap_or(MAX_FAN), passes)
}

/// The runs of these lengths that `all` is made of.
fn one_after_the_other<'a, K: Key, V: Copy>(all: Run<'a, K, V>, lengths: &[usize]) -> Vec<Run<'a, K, V>> {
    let mut end = 0;
    let run = |length: &usize| {
        end += length;
        all.part(end - length..end)
    };
    lengths.iter().map(run).collect()
}

/// Merges groups of `fan` neighbouring runs, of which the last may be smaller, into one run each. These follow one another
/// in `out`; gives their lengths.
fn merge_groups<K: Key, V: Copy + Send + Sync>(
    runs: &[Run<K, V>],
    fan: usize,
    out: &mut RunMut<K, V>,
    threads: usize,
) -> Result<Vec<usize>, Error> {
    let total = out.keys.len();
    if let [a, b] = runs {
        merge_path::merge(*a, *b, out.part(0..total), threads);
        return Ok(vec![total]);
    }
    let share = total.div_ceil(threads * SHARES_A_THREAD).next_multiple_of(piece::<K, V>());
    let (mut shares, mut lengths, mut rest) = (Vec::new(), Vec::new(), out.part(0..total));
    for runs in runs.chunks(fan) {
        let length = runs.iter().map(|run| run.keys.len()).sum();
        lengths.push(length);
        for begin in (0..length).step_by(share) {
            let out;
            (out, rest) = rest.split_at(share.min(length - begin));
            shares.push(Share { runs, begin, out });
        }
    }
    if threads == 1 {
        shares.into_iter().try_for_each(Share::fill)?;
    } else {
        shares.into_par_iter().try_for_each(Share::fill)?;
    }
    Ok(lengths)
}

/// Whether values are moved along with their keys.
const fn is_small<V>() -> bool {
    size_of::<V>() <= SMALL_VALUE
}

/// Keys of a piece.
const fn piece<K, V>() -> usize {
    PIECE_BYTES / (size_of::<K>() + if is_small::<V>() { size_of::<V>() } else { size_of::<Place>() })
}

/// Which of a piece's values goes with a key.
type Place = u32;

/// A part of a group's output, for one thread.
struct Share<'a, K, V> {
    runs: &'a [Run<'a, K, V>],
    /// Keys of the group's output before it.
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
                merge_piece(a.part(a_part), b.part(b_part), self.out);
            }
            _ if is_small::<V>() => self.move_values()?,
            _ => self.move_places()?,
        }
        Ok(())
    }

    fn move_values(self) -> Result<(), Error> {
        let room = piece::<K, V>().min(self.out.keys.len());
        let mut scratch = (memory::zeroed(room)?, memory::room(room)?);
        self.for_each_piece(|parts, mut out| {
            let count = out.keys.len();
            let scratch = run::RunMut::new((&mut scratch.0[..count], &mut scratch.1[..count]));
            merge_tree(parts, &mut out, scratch);
        });
        Ok(())
    }

    fn move_places(self) -> Result<(), Error> {
        let room = piece::<K, V>().min(self.out.keys.len());
        let mut scratch = (memory::zeroed(room)?, memory::zeroed::<Place>(room)?);
        let mut merged = memory::zeroed::<Place>(room)?;
        let places: Vec<Place> = (0..room as Place).collect();
        let mut sources: Vec<&MaybeUninit<V>> = Vec::with_capacity(room);
        self.for_each_piece(|parts, out| {
            let count = out.keys.len();
            sources.clear();
            let with_places = parts.iter().map(|part| {
                let begin = sources.len();
                sources.extend(part.values);
                run::Run { keys: part.keys, values: &places[begin..sources.len()] }
            });
            let with_places: Vec<_> = with_places.collect();
            let scratch = run::RunMut::new((&mut scratch.0[..count], &mut scratch.1[..count]));
            let mut sorted = run::RunMut::new((out.keys, &mut merged[..count]));
            merge_tree(&with_places, &mut sorted, scratch);
            for (value, place) in out.values.iter_mut().zip(&*sorted.values) {
                *value = *sources[*place as usize];
            }
        });
        Ok(())
    }

    /// Calls `merge` with each piece of the output and the parts of the runs that it is merged from, without empty ones.
    fn for_each_piece(mut self, mut merge: impl FnMut(&[Run<'a, K, V>], RunMut<K, V>)) {
        let mut from = Cut::at_begin(self.runs.len());
        from.move_to(self.runs, self.begin);
        let (mut end, mut to) = (self.begin, from.clone());
        let mut parts = Vec::with_capacity(self.runs.len());
        for out in self.out.chunks(piece::<K, V>()) {
            end += out.keys.len();
            to.move_to(self.runs, end);
            let ranges = from.taken.iter().zip(&to.taken).map(|(&from, &to)| from..to);
            parts.clear();
            parts.extend(
                self.runs.iter().zip(ranges).filter(|(_, range)| !range.is_empty()).map(|(run, range)| run.part(range)),
            );
            merge(&parts, out);
            from.taken.clone_from(&to.taken);
        }
    }
}

/// Merges `parts` into `out`, which has room for just these, as has `scratch`. No part is empty.
fn merge_tree<K: Key, W: Copy>(parts: &[run::Run<K, W>], out: &mut run::RunMut<K, W>, scratch: run::RunMut<K, W>) {
    let all = 0..out.keys.len();
    match parts {
        [] => {}
        [part] => out.copy_from(*part),
        [a, b] => merge_piece(*a, *b, out.part(all)),
        _ => {
            let (count, middle) = half(parts);
            let (left, right) = parts.split_at(count);
            let (mut left_scratch, mut right_scratch) = scratch.split_at(middle);
            merge_piece(
                merged(left, &mut left_scratch, out.part(0..middle)),
                merged(right, &mut right_scratch, out.part(middle..all.end)),
                out.part(all),
            );
        }
    }
}

/// The merge of `parts`, of which there are some: in `out`, but for a single one, which is merged already.
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

/// How many of `parts`, of which there are two or more, have about half of the keys, and how many keys these have.
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
