//! Stability: among equal keys, A's keys come first. The keys carry their origin, which comparisons ignore.

use crate::common::*;
use kernels_gpu::sequence::Sequence;
use kernels_gpu::textbook::co_rank::co_rank;
use kernels_gpu::textbook::merge_small::key_on_diagonal;
use kernels_gpu::textbook::sequential::merge_sequential;
use kernels_gpu::thread::diagonal::diagonal_search;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A key with its origin. Compares by the key only.
#[derive(Clone, Copy, Debug)]
struct Tagged {
    key: u8,
    origin: (char, u32),
}

impl Ord for Tagged {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
impl PartialOrd for Tagged {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Tagged {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Tagged {}

#[derive(Clone, Copy)]
struct Run<'a>(&'a [Tagged]);

impl Sequence for Run<'_> {
    type Index = u32;
    type Item = Tagged;
    fn length(self) -> u32 {
        self.0.len() as u32
    }
    fn at(self, i: u32) -> Tagged {
        self.0[i as usize]
    }
}

fn random_run(name: char, n: u32, random: &mut StdRng) -> Vec<Tagged> {
    let mut keys: Vec<u8> = (0..n).map(|_| random.random_range(0..5)).collect();
    keys.sort_unstable();
    keys.into_iter().zip(0..).map(|(key, i)| Tagged { key, origin: (name, i) }).collect()
}

#[test]
fn searches_and_merges_keep_the_order_of_equal_keys() {
    for round in 0..300 {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let a = random_run('A', round % 13, &mut random);
        let b = random_run('B', round % 17, &mut random);
        let mut expected = [&a[..], &b[..]].concat();
        expected.sort_by_key(|item| item.key);
        let expected: Vec<_> = expected.iter().map(|item| item.origin).collect();

        let mut merged = vec![('?', 0); expected.len()];
        merge_sequential(Run(&a), Run(&b), |k: u32, item: Tagged| merged[k as usize] = item.origin);
        assert_eq!(merged, expected, "merge_sequential, seed {seed}");

        for k in 0..=expected.len() {
            let of_a = expected[..k].iter().filter(|origin| origin.0 == 'A').count() as u32;
            assert_eq!(co_rank(k as u32, Run(&a), Run(&b)), of_a, "co_rank of {k}, seed {seed}");
            assert_eq!(diagonal_search(k as u32, Run(&a), Run(&b)), of_a, "diagonal_search of {k}, seed {seed}");
        }
        for (i, &origin) in expected.iter().enumerate() {
            assert_eq!(key_on_diagonal(i as u32, Run(&a), Run(&b)).origin, origin, "diagonal {i}, seed {seed}");
        }
    }
}
