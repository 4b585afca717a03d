//! Batch merge in the emulator against the standard library, pair by pair.

mod common;
use common::*;
use cuda_std::emulator::{Emulator, Fault};
use kernels_gpu::merge_small_batch::{self, merge_small_batch};

fn run<K: TestKey>(seed: u64, a: &[K], b: &[K], pairs: usize, d: u32, a_len: u32, block: u32) -> Result<Vec<K>, Fault> {
    let mut emulator = Emulator::new(seed);
    let (a, b, c) = (emulator.buffer(a), emulator.buffer(b), emulator.uninit(pairs * d as usize));
    let grid = pairs.div_ceil((block / d) as usize) as u32;
    // SAFETY: the arguments are those that the kernel's documentation asks for.
    emulator.launch("merge_small_batch", grid, block, merge_small_batch::shared_bytes::<K>(block), || unsafe {
        merge_small_batch::<K>(a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), pairs, d, a_len)
    })?;
    emulator.read(c)
}

fn check<K: TestKey>(pairs: usize, d: u32, a_len: u32, block: u32) {
    let seed = fresh_seed();
    for keys in Keys::ALL {
        let runs = |len: u32, salt: u64| -> Vec<K> {
            (0..pairs as u64).flat_map(|p| keys.ascending::<K>(len as usize, seed ^ salt ^ p << 8)).collect()
        };
        let (a, b) = (runs(a_len, 1), runs(d - a_len, 2));
        let expected: Vec<K> = (0..pairs)
            .flat_map(|p| {
                let part = |all: &[K], len: usize| all[p * len..(p + 1) * len].to_vec();
                merged(&part(&a, a_len as usize), &part(&b, (d - a_len) as usize))
            })
            .collect();
        let at = || format!("{} {pairs} pairs, d {d}, a_len {a_len}, block {block}, {keys:?}, seed {seed}", K::NAME);
        let found = run(seed, &a, &b, pairs, d, a_len, block).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
        assert!(bits(&found) == bits(&expected), "{}", at());
    }
}

#[test]
fn every_d_with_several_pairs_a_block() {
    fn all<K: TestKey>() {
        for d in (1..=33).chain([63, 64, 65, 100, 127, 128]) {
            let block = (128 / d).max(1) * d;
            for a_len in [0, 1, d / 2, d - d / 3, d] {
                // As many pairs as a block takes, one less and one more, and one alone.
                let full = (block / d) as usize;
                for pairs in [1, full - full.min(2) + 1, full, 2 * full + 1] {
                    check::<K>(pairs, d, a_len, block);
                }
            }
        }
    }
    for_all_types!(all());
}

#[test]
fn long_pairs_have_a_block_of_their_own() {
    fn all<K: TestKey>() {
        for d in [255, 256, 257, 511, 513, 1000, 1023, 1024] {
            for a_len in [0, d / 2, d - 1] {
                check::<K>(3, d, a_len, d);
            }
        }
    }
    for_all_types!(all());
}
