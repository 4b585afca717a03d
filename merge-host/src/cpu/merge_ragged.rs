//! Batch merge of pairs of any lengths, in pieces that pay no heed to where pairs begin and end.
//!
//! ```text
//!   out     │ pair 0         │ pair 1        │ pair 2 │ …
//!   pieces  ├──────────┼──────────┼──────────┼──────────┤
//! ```
//!
//! A piece may begin and end inside a pair. Where it does is found as in a merge of that pair alone, so that one pair of
//! a billion keys is shared by all threads as well as millions of pairs of some keys each.

use super::merge_path::merge_piece;
use super::run::{Run, RunMut};
use super::split::part_ranges;
use crate::Key;
use rayon::prelude::*;

/// Pieces for each thread: more than one, so that a thread that is held up leaves some to the others.
const PIECES_A_THREAD: usize = 8;

/// What a pair costs beside its keys, in keys. It is what shares out pairs that are short or empty.
const PAIR: usize = 8;

/// Where the runs of each pair begin, and the last ones end.
#[derive(Clone, Copy)]
pub(super) struct Offsets<'a> {
    /// In A.
    pub a: &'a [usize],
    /// In B. As many as in A.
    pub b: &'a [usize],
}

/// A place in the output: before key `key` of pair `pair`.
#[derive(Clone, Copy)]
struct Place {
    pair: usize,
    key: usize,
}

impl Offsets<'_> {
    fn pairs(self) -> usize {
        self.a.len() - 1
    }

    /// Where pair `p` begins in the output.
    fn start(self, p: usize) -> usize {
        self.a[p] + self.b[p]
    }

    /// What pairs before `p` cost.
    ///
    /// This does not overflow: a slice is of `isize::MAX` bytes at most, so that there are no more keys than that in the
    /// output, which are those of A and B, and no more pairs than an eighth of it.
    fn cost_before(self, p: usize) -> usize {
        self.start(p) + p * PAIR
    }

    /// What all costs.
    pub fn cost(self) -> usize {
        self.cost_before(self.pairs())
    }

    /// The place up to which it costs `cost`.
    fn place(self, cost: usize) -> Place {
        // The last pair that begins there or before. Pair 0 does.
        let (mut pair, mut after) = (0, self.pairs() + 1);
        while after - pair > 1 {
            let middle = pair + (after - pair) / 2;
            if self.cost_before(middle) <= cost { pair = middle } else { after = middle }
        }
        if pair == self.pairs() {
            return Place { pair, key: 0 };
        }
        let length = self.start(pair + 1) - self.start(pair);
        Place { pair, key: length.min(cost - self.cost_before(pair)) }
    }

    /// Where in the output a place is.
    fn position(self, place: Place) -> usize {
        self.start(place.pair) + place.key
    }
}

/// Merges run `p` of `a` with run `p` of `b` into run `p` of `out`.
pub(super) fn merge<K: Key, V: Copy + Send + Sync>(
    a: Run<K, V>,
    b: Run<K, V>,
    offsets: Offsets,
    out: RunMut<K, V>,
    threads: usize,
) {
    let end = Place { pair: offsets.pairs(), key: 0 };
    if threads == 1 {
        return merge_piece_of_pairs(a, b, offsets, Place { pair: 0, key: 0 }, end, out);
    }
    let count = threads * PIECES_A_THREAD;
    let piece = offsets.cost().div_ceil(count);
    let mut pieces = Vec::with_capacity(count);
    let (mut from, mut rest) = (Place { pair: 0, key: 0 }, out);
    for i in 1..=count {
        let to = if i == count { end } else { offsets.place(i * piece) };
        let (out, after) = rest.split_at(offsets.position(to) - offsets.position(from));
        pieces.push((from, to, out));
        (from, rest) = (to, after);
    }
    pieces.into_par_iter().for_each(|(from, to, out)| merge_piece_of_pairs(a, b, offsets, from, to, out));
}

/// Fills `out`, which is the output from `from` to `to`.
fn merge_piece_of_pairs<K: Key, V: Copy>(
    a: Run<K, V>,
    b: Run<K, V>,
    offsets: Offsets,
    from: Place,
    to: Place,
    mut out: RunMut<K, V>,
) {
    let mut done = 0;
    for p in from.pair..offsets.pairs().min(to.pair + 1) {
        let a = a.part(offsets.a[p]..offsets.a[p + 1]);
        let b = b.part(offsets.b[p]..offsets.b[p + 1]);
        let length = a.keys.len() + b.keys.len();
        let begin = if p == from.pair { from.key } else { 0 };
        let end = if p == to.pair { to.key } else { length };
        if begin == end {
            continue;
        }
        let out = out.part(done..done + (end - begin));
        done += end - begin;
        if end - begin == length {
            merge_piece(a, b, out);
        } else {
            let (a_part, b_part) = part_ranges(a.keys, b.keys, begin, end);
            merge_piece(a.part(a_part), b.part(b_part), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Not which keys a piece has, which the result of the merge shows, but that no piece has more than its share.
        #[test]
        fn a_place_is_where_it_costs_as_much_as_asked_for(
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
            let place = offsets.place(cost);
            let found = offsets.cost_before(place.pair) + place.key;
            if place.pair < offsets.pairs() {
                let length = offsets.start(place.pair + 1) - offsets.start(place.pair);
                prop_assert!(place.key <= length);
                // What a pair costs beside its keys cannot be cut.
                prop_assert!(found == cost || place.key == length && found < cost && cost < found + PAIR);
            } else {
                prop_assert_eq!((place.key, found), (0, cost));
            }
        }
    }
}
