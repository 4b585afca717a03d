//! Co-rank and diagonal search, compared with counting, and in the emulator.

use crate::common::*;
use cuda_std::emulator::Emulator;
use kernels_gpu::elements::Slice;
use kernels_gpu::sequence::Sequence;
use kernels_gpu::textbook::co_rank::{clamp_split, co_rank, co_rank_splits};
use kernels_gpu::thread::diagonal::{diagonal_search, search_near};
use std::cell::RefCell;

/// For each k, the number of A's keys among the first k keys of the stable merge, by merging keys with their origin.
fn counted<K: TestKey>(a: &[K], b: &[K]) -> Vec<usize> {
    let mut both: Vec<(K, bool)> = a.iter().map(|&x| (x, true)).chain(b.iter().map(|&y| (y, false))).collect();
    both.sort_by(|x, y| x.0.compare(&y.0));
    let mut from_a = 0;
    let counts = both.iter().map(|(_, is_a)| {
        from_a += usize::from(*is_a);
        from_a
    });
    std::iter::once(0).chain(counts).collect()
}

fn shapes() -> Vec<(usize, usize)> {
    let mut shapes: Vec<_> = (0..6).flat_map(|m| (0..6).map(move |n| (m, n))).collect();
    shapes.extend([(0, 100), (100, 0), (1, 300), (300, 1), (127, 129), (64, 64), (200, 33)]);
    shapes
}

#[test]
fn both_searches_split_where_the_stable_merge_does() {
    fn check<K: TestKey>(seed: u64) {
        for (m, n) in shapes() {
            for keys in Keys::ALL {
                let (a, b) = (keys.ascending::<K>(m, seed), keys.ascending::<K>(n, seed ^ 7));
                for (k, expected) in counted(&a, &b).into_iter().enumerate() {
                    let at = || format!("k {k} of {m} + {n}, {keys:?}, seed {seed}");
                    assert_eq!(co_rank(k, &a[..], &b[..]), expected, "co_rank, {}", at());
                    assert_eq!(diagonal_search(k, &a[..], &b[..]), expected, "diagonal_search, {}", at());
                    let bounds = (k.saturating_sub(n), k.min(m));
                    for (guess, window) in [(0, 0), (k / 2, 2), (expected, 1), (m + n, 3), (expected + 9, 5)] {
                        let found = search_near(k, &a[..], &b[..], bounds, guess, window);
                        assert_eq!(found, expected, "search_near {guess} by {window}, {}", at());
                    }
                }
            }
        }
    }
    for_all_types!(check(fresh_seed()));
}

#[test]
fn searches_of_unsorted_input_end_inside_the_arrays() {
    for round in 0..2000 {
        let seed = fresh_seed();
        let (m, n) = (round % 17, round % 23);
        let (a, b) = (Keys::Few.random::<i32>(m, seed), Keys::Few.random::<i32>(n, seed ^ 1));
        for k in 0..=m + n {
            let bounds = (k.saturating_sub(n), k.min(m));
            let near = search_near(k, &a[..], &b[..], bounds, k / 3, 2);
            for i in [co_rank(k, &a[..], &b[..]), diagonal_search(k, &a[..], &b[..]), near] {
                assert!(i <= m && k - i <= n, "co-rank {i} of {k} in {m} + {n}, seed {seed}");
            }
        }
    }
}

#[test]
fn clamp_split_changes_only_what_cannot_follow() {
    assert_eq!(clamp_split(5usize, 7, 4), 7);
    assert_eq!(clamp_split(5usize, 5, 4), 5);
    assert_eq!(clamp_split(5usize, 9, 4), 9);
    assert_eq!(clamp_split(5usize, 3, 4), 5, "fewer keys of A than none");
    assert_eq!(clamp_split(5usize, 12, 4), 9, "more keys of A than the piece has");
}

#[test]
fn the_kernel_finds_the_splits_of_a_grid() {
    fn check<K: TestKey>(seed: u64) {
        for (m, n, step, count) in [(50, 70, 7, 18), (0, 9, 4, 4), (33, 0, 1, 40), (100, 100, 1000, 3)] {
            let (a, b) = (Keys::Few.ascending::<K>(m, seed), Keys::Few.ascending::<K>(n, seed ^ 7));
            let expected = counted(&a, &b);
            let mut emulator = Emulator::new(seed);
            let (a, b) = (load(&mut emulator, &a), load(&mut emulator, &b));
            let splits = emulator.uninit::<usize>(count);
            emulator
                // SAFETY: `a` and `b` have `m` and `n` keys, and `splits` has capacity for `count` indices. The
                // emulator reports every access outside of the buffers.
                .launch("co_rank_splits", count.div_ceil(8) as u32, 8, 0, || unsafe {
                    let (a, b) = (Slice { at: keys_alone(a), len: m }, Slice { at: keys_alone(b), len: n });
                    let splits = splits.as_mut_ptr();
                    co_rank_splits::<K::Bits>(a, b, step, splits, count, K::coding())
                })
                .unwrap_or_else(|fault| panic!("{fault}"));
            let found = emulator.read(splits).unwrap();
            let expected: Vec<usize> = (0..count).map(|t| expected[(t * step).min(m + n)]).collect();
            assert_eq!(found, expected, "{m} + {n}, step {step}, seed {seed}");
        }
    }
    for_all_types!(check(fresh_seed()));
}

/// A state of the search: `i`, `j`, `i_low` and `j_low`.
type State = [usize; 4];

/// The states of [`co_rank`] in each iteration, derived from the keys that it reads.
///
/// A comparison reads A[i - 1] and then B[j], or B[j - 1] and then A[i], which determines `i` and `j`. If `i` has
/// decreased since the last state, `j_low` is the last `j`; if it has increased, `i_low` is the last `i`.
fn trace(k: usize, a: &[u32], b: &[u32]) -> Vec<State> {
    #[derive(Clone, Copy)]
    struct Logged<'a> {
        name: char,
        keys: &'a [u32],
        reads: &'a RefCell<Vec<(char, usize)>>,
    }
    impl Sequence for Logged<'_> {
        type Index = usize;
        type Item = u32;
        fn length(self) -> usize {
            self.keys.len()
        }
        fn at(self, i: usize) -> u32 {
            self.reads.borrow_mut().push((self.name, i));
            self.keys[i]
        }
    }
    let reads = RefCell::default();
    let logged = |name, keys| Logged { name, keys, reads: &reads };
    let result = co_rank(k, logged('A', a), logged('B', b));

    let mut states = vec![[k.min(a.len()), k - k.min(a.len()), k.saturating_sub(b.len()), k.saturating_sub(a.len())]];
    let mut visit = |i: usize, j: usize| {
        let [last_i, last_j, i_low, j_low] = states[states.len() - 1];
        if i < last_i {
            states.push([i, j, i_low, last_j]);
        } else if i > last_i {
            states.push([i, j, last_i, j_low]);
        } else {
            assert_eq!(j, last_j, "i + j is not k");
        }
    };
    for comparison in reads.borrow().chunks(2) {
        match *comparison {
            [('A', i), ('B', j)] => visit(i + 1, j),
            [('B', j), ('A', i)] => visit(i, j + 1),
            _ => panic!("{comparison:?} is no comparison of a key of A with one of B"),
        }
    }
    // The last state may need no comparison.
    visit(result, k - result);
    states
}

/// The lecture notes' example: one of the first 2 keys is from A and one from B.
#[test]
fn the_search_for_k_2_of_the_notes() {
    let (a, b) = ([1, 3, 5, 7], [2, 4, 6, 8]);
    // A[1] = 3 > B[0] = 2: one key of A fewer. Then A[0] = 1 <= B[1] = 4, and B[0] = 2 < A[1] = 3.
    assert_eq!(trace(2, &a, &b), [[2, 0, 0, 0], [1, 1, 0, 0]]);
}

/// The textbook's example, where three threads merge 3 keys each: figure 12.4, and figures 12.6 to 12.8 for the three
/// iterations of thread 1. The caption of figure 12.8 mentions an iteration of thread 0. Thread 0 searches for k = 0
/// and has none.
#[test]
fn the_searches_of_the_textbooks_threads() {
    let (a, b) = ([1, 7, 8, 9, 10], [7, 10, 10, 12]);
    assert_eq!(trace(0, &a, &b), [[0, 0, 0, 0]]);
    let thread_1 = [
        // Figure 12.6: A[2] = 8 > B[0] = 7, so i decreases by half of 3, rounded up.
        [3, 0, 0, 0],
        // Figure 12.7: B[1] = 10 >= A[1] = 7, so j decreases by half of 2.
        [1, 2, 0, 0],
        // Figure 12.8: A[1] = 7 <= B[1] = 10 and B[0] = 7 < A[2] = 8.
        [2, 1, 1, 0],
    ];
    assert_eq!(trace(3, &a, &b), thread_1);
    // Thread 2 has its split at once: A[4] = 10 <= B[1] = 10, and A is exhausted.
    assert_eq!(trace(6, &a, &b), [[5, 1, 2, 1]]);
    // The segments of the threads match figure 12.4.
    let expected = merged(&a, &b);
    for k in [0, 3, 6] {
        let (i, next) = (co_rank(k, &a[..], &b[..]), co_rank(k + 3, &a[..], &b[..]));
        assert_eq!(merged(&a[i..next], &b[k - i..k + 3 - next]), expected[k..k + 3]);
    }
}

/// In every search, i is at least `i_low` and j at least `j_low`, and neither bound decreases. Each step halves the
/// range on its side.
#[test]
fn every_step_of_the_search_halves_a_range() {
    let seed = fresh_seed();
    for (m, n) in shapes() {
        for keys in Keys::ALL {
            let (a, b) = (keys.ascending::<u32>(m, seed), keys.ascending::<u32>(n, seed ^ 7));
            for k in 0..=m + n {
                let states = trace(k, &a, &b);
                for step in states.windows(2) {
                    let ([i, j, i_low, j_low], [next_i, next_j, next_i_low, next_j_low]) = (step[0], step[1]);
                    let at = || format!("{step:?}, k {k} of {m} + {n}, {keys:?}, seed {seed}");
                    assert!(next_i >= next_i_low && next_j >= next_j_low, "{}", at());
                    assert!(next_i_low >= i_low && next_j_low >= j_low, "{}", at());
                    if next_i < i {
                        assert_eq!(i - next_i, (i - i_low).div_ceil(2), "{}", at());
                    } else {
                        assert_eq!(j - next_j, (j - j_low).div_ceil(2), "{}", at());
                    }
                }
            }
        }
    }
}
