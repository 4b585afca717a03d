//! Batch merge of problems of any lengths, in blocks that ignore the boundaries between problems.
//!
//! ```text
//!   out     │ problem 0      │ problem 1     │ problem 2 │ …
//!   blocks  ├──────────┼──────────┼──────────┼──────────┤
//! ```
//!
//! A block may begin and end inside a problem. Its bounds are then exact splits of this problem alone. So threads share
//! one problem of a billion keys as evenly as millions of problems of a few keys each.

use super::merge_path::merge_block;
use super::run::{Run, RunMut};
use super::split::part_ranges;
use super::{memory, vector};
use crate::{Error, Key, parallel};

/// Blocks for each thread: more than one, so that other threads take over some from a thread that is delayed.
const BLOCKS_PER_THREAD: usize = 8;

/// The cost of a problem in addition to its keys, in keys. With this cost, short and empty problems are divided evenly,
/// too.
const PROBLEM_COST: usize = 8;

/// The offsets of each problem's runs, including the ends of the last ones.
#[derive(Clone, Copy)]
pub(crate) struct Offsets<'a> {
    /// Offsets of the runs of A.
    pub a: &'a [usize],
    /// Offsets of the runs of B. Both arrays have the same length.
    pub b: &'a [usize],
}

/// The places of the runs of adjacent merge problems in A and in B.
///
/// An `enum` and not a closure, so that merges by vectors are compiled once for all types of keys and values.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only vectors merge short problems"))]
pub(crate) enum Problems<'a> {
    /// All problems have these numbers of keys in A and in B.
    OfLengths([usize; 2]),
    /// The problems begin at these offsets.
    At(Offsets<'a>),
}

/// A position in the output: before key `key` of problem `problem`.
#[derive(Clone, Copy)]
struct Position {
    problem: usize,
    key: usize,
}

impl Offsets<'_> {
    fn problems(self) -> usize {
        self.a.len() - 1
    }

    /// The index in the output at which problem `p` begins.
    fn start(self, p: usize) -> usize {
        self.a[p] + self.b[p]
    }

    /// The cost of the problems before `p`.
    ///
    /// The sum does not overflow. A process addresses less than 2^57 bytes, so A and B have less than 2^57 keys each,
    /// and there are less than 2^54 offsets.
    fn cost_before(self, p: usize) -> usize {
        self.start(p) + p * PROBLEM_COST
    }

    /// The cost of all problems.
    pub fn cost(self) -> usize {
        self.cost_before(self.problems())
    }

    /// The position with the cost `cost` before it, or the last position with a lower cost before it.
    fn position(self, cost: usize) -> Position {
        // The last problem that begins at this cost or a lower one. Problem 0 does.
        let (mut problem, mut after) = (0, self.problems() + 1);
        while after - problem > 1 {
            let middle = problem + (after - problem) / 2;
            if self.cost_before(middle) <= cost { problem = middle } else { after = middle }
        }
        if problem == self.problems() {
            return Position { problem, key: 0 };
        }
        let length = self.start(problem + 1) - self.start(problem);
        Position { problem, key: length.min(cost - self.cost_before(problem)) }
    }

    /// The output index of a position.
    fn index(self, position: Position) -> usize {
        self.start(position.problem) + position.key
    }
}

/// Merges run `p` of `a` with run `p` of `b` into run `p` of `out`, for every `p`.
pub(crate) fn merge<K: Key, V: Copy + Send + Sync>(
    a: Run<K, V>,
    b: Run<K, V>,
    offsets: Offsets,
    out: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    let end = Position { problem: offsets.problems(), key: 0 };
    if threads == 1 {
        merge_problems(a, b, offsets, Position { problem: 0, key: 0 }, end, out);
        return Ok(());
    }
    let count = threads * BLOCKS_PER_THREAD;
    let block = offsets.cost().div_ceil(count);
    let mut blocks = memory::reserved(count)?;
    let (mut from, mut rest) = (Position { problem: 0, key: 0 }, out);
    for i in 1..=count {
        let to = if i == count { end } else { offsets.position(i * block) };
        let (out, after) = rest.split_at(offsets.index(to) - offsets.index(from));
        blocks.push((from, to, out));
        (from, rest) = (to, after);
    }
    parallel::for_each_on(threads, blocks, |(from, to, out)| merge_problems(a, b, offsets, from, to, out));
    Ok(())
}

/// Fills `out`, the part of the output between the positions `from` and `to`.
fn merge_problems<K: Key, V: Copy>(
    a: Run<K, V>,
    b: Run<K, V>,
    offsets: Offsets,
    from: Position,
    to: Position,
    mut out: RunMut<K, V>,
) {
    let origin = offsets.index(from);
    // Problems that are entirely in this block. Vectors merge the short ones.
    let whole = from.problem + usize::from(from.key > 0)..to.problem;
    let short = if size_of::<V>() == 0 && !whole.is_empty() { vector::most_merged::<K>() } else { 0 };
    let mut rest = whole.start;
    if short > 0 {
        let out = &mut out.keys[offsets.start(whole.start) - origin..];
        if vector::merge_short(a.keys, b.keys, out, whole.clone(), Problems::At(offsets)) {
            rest = whole.end;
        }
    }
    for p in (from.problem..whole.start).chain(rest..offsets.problems().min(to.problem + 1)) {
        let a = a.part(offsets.a[p]..offsets.a[p + 1]);
        let b = b.part(offsets.b[p]..offsets.b[p + 1]);
        let length = a.keys.len() + b.keys.len();
        let begin = if p == from.problem { from.key } else { 0 };
        let end = if p == to.problem { to.key } else { length };
        if begin == end || length <= short && whole.contains(&p) {
            continue;
        }
        let done = offsets.start(p) + begin - origin;
        let out = out.part(done..done + (end - begin));
        if end - begin == length {
            merge_block(a, b, out);
        } else {
            let (a_part, b_part) = part_ranges(a.keys, b.keys, begin, end);
            merge_block(a.part(a_part), b.part(b_part), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Tests that no block exceeds its share. The result of a merge shows which keys a block has.
        #[test]
        fn a_position_is_where_the_cost_is_as_requested(
            lengths in prop::collection::vec((0usize..40, 0usize..40), 0..20),
            share in 0.0..1.0f64,
        ) {
            let (mut a, mut b) = (vec![0], vec![0]);
            for (p, (m, n)) in lengths.into_iter().enumerate() {
                a.push(a[p] + m);
                b.push(b[p] + n);
            }
            let offsets = Offsets { a: &a, b: &b };
            let cost = (offsets.cost() as f64 * share) as usize;
            let position = offsets.position(cost);
            let found = offsets.cost_before(position.problem) + position.key;
            if position.problem < offsets.problems() {
                let length = offsets.start(position.problem + 1) - offsets.start(position.problem);
                prop_assert!(position.key <= length);
                // The additional cost of a problem is indivisible.
                prop_assert!(found == cost || position.key == length && found < cost && cost < found + PROBLEM_COST);
            } else {
                prop_assert_eq!((position.key, found), (0, cost));
            }
        }
    }
}
