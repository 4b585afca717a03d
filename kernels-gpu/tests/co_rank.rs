//! The searches: co-rank and diagonal against counting, and in the emulator.

mod common;
use common::*;
use cuda_std::emulator::Emulator;
use kernels_gpu::co_rank::{clamp_split, co_rank, co_rank_splits};
use kernels_gpu::diagonal::{diagonal_search, search_near};

/// How many of the first k keys of the stable merge come from A, by merging keys that remember where they are from.
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
            let (a, b, splits) = (emulator.buffer(&a), emulator.buffer(&b), emulator.uninit::<usize>(count));
            emulator
                // SAFETY: the arguments are those that the kernel's documentation asks for.
                .launch("co_rank_splits", count.div_ceil(8) as u32, 8, 0, || unsafe {
                    co_rank_splits::<K>(a.as_ptr(), m, b.as_ptr(), n, step, splits.as_mut_ptr(), count)
                })
                .unwrap_or_else(|fault| panic!("{fault}"));
            let found = emulator.read(splits).unwrap();
            let expected: Vec<usize> = (0..count).map(|t| expected[(t * step).min(m + n)]).collect();
            assert_eq!(found, expected, "{m} + {n}, step {step}, seed {seed}");
        }
    }
    for_all_types!(check(fresh_seed()));
}
