//! Batch merge in the emulator against the standard library, pair by pair.
//!
//! # Why d divides the block
//!
//! The course's question 4. A thread's number in its block is divided by d with remainder:
//!
//! ```text
//!   tidx = threadIdx % d                   index of the key in its merged pair, and of its diagonal
//!   qt   = (threadIdx - tidx) / d          index of the pair in the block
//!   gbx  = qt + blockIdx * (blockDim / d)  index of the pair in the batch
//! ```
//!
//! `blockDim / d` is rounded down. If d does not divide the block, `qt` also counts a last pair with fewer than d
//! threads. With blocks of 256 threads and d = 100, that is pair 2 of a block, with 56 threads:
//!
//! - `gbx` gives it the number of the next block's first pair: two blocks write the same keys. If each thread loads one
//!   key to shared memory, the first of the two blocks has only 56 keys of the pair.
//! - A kernel that skips it, like the one here, has 56 idle threads in each block. A grid with one thread per key is
//!   then too small: its last pairs are never merged.
//! - A block of fewer than d threads has no pair.
//!
//! `threadsPerBlock` is therefore a multiple of d, and d is at most 1024. `merge-host` launches blocks of the greatest
//! multiple of d up to 256, or of d threads if d is above 256.

use crate::common::*;
use cuda_std::emulator::{Emulator, Fault, FaultKind};
use cuda_std::prelude::*;
use kernels_gpu::textbook::co_rank::co_rank;
use kernels_gpu::textbook::merge_small_batch::{self, merge_small_batch};

fn run<K: TestKey>(seed: u64, a: &[K], b: &[K], pairs: usize, d: u32, a_len: u32, block: u32) -> Result<Vec<K>, Fault> {
    let grid = pairs.div_ceil((block / d) as usize) as u32;
    run_grid(seed, a, b, (pairs, d, a_len), grid, block)
}

fn run_grid<K: TestKey>(
    seed: u64,
    a: &[K],
    b: &[K],
    (pairs, d, a_len): (usize, u32, u32),
    grid: u32,
    block: u32,
) -> Result<Vec<K>, Fault> {
    let mut emulator = Emulator::new(seed);
    let (a, b, c) = (load(&mut emulator, a), load(&mut emulator, b), emulator.uninit(pairs * d as usize));
    emulator.launch(
        "merge_small_batch",
        grid,
        block,
        merge_small_batch::shared_bytes::<K::Bits>(block),
        // SAFETY: `a` has `pairs * a_len` keys, `b` has `pairs * (d - a_len)`, and `c` has capacity for `pairs * d`.
        // The launch has the shared memory of `block` threads. The emulator reports every access outside of the
        // buffers.
        || unsafe {
            merge_small_batch::<K::Bits>(a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), pairs, d, a_len, K::coding())
        },
    )?;
    store(&mut emulator, c)
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
                // The number of pairs of a full block, one less, one more, and one pair.
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

/// Pairs of random runs with `a_len` of `d` keys from A, and the merged pairs.
fn pairs_of_runs(seed: u64, pairs: usize, d: usize, a_len: usize) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let run = |p: usize, len, salt| Keys::Any.ascending::<u32>(len, seed ^ salt ^ (p as u64) << 8);
    let all = |len, salt| (0..pairs).flat_map(|p| run(p, len, salt)).collect();
    let expected = (0..pairs).flat_map(|p| merged(&run(p, a_len, 1), &run(p, d - a_len, 2))).collect();
    (all(a_len, 1), all(d - a_len, 2), expected)
}

/// The blocks and threads of key `tidx` of pair `gbx`, by the course's indices.
fn threads_of_key(gbx: u32, tidx: u32, d: u32, grid: u32, block: u32) -> Vec<(u32, u32)> {
    let all = (0..grid).flat_map(|index| (0..block).map(move |thread| (index, thread)));
    all.filter(|(index, thread)| (thread % d, (thread - thread % d) / d + index * (block / d)) == (tidx, gbx)).collect()
}

#[test]
fn each_key_has_one_thread_if_d_divides_the_block() {
    for (d, block) in [(100, 200), (4, 256), (7, 252), (1024, 1024)] {
        let per_block = block / d;
        for (gbx, tidx) in [(0, 0), (per_block - 1, d - 1), (per_block, 0), (2 * per_block, d / 2)] {
            let expected = (gbx / per_block, gbx % per_block * d + tidx);
            assert_eq!(threads_of_key(gbx, tidx, d, 4, block), [expected], "key {tidx} of pair {gbx}, d {d}");
        }
    }
    // The first 56 keys of a pair that begins a block have two threads, the other keys one.
    assert_eq!(threads_of_key(2, 0, 100, 4, 256), [(0, 200), (1, 0)]);
    assert_eq!(threads_of_key(2, 55, 100, 4, 256), [(0, 255), (1, 55)]);
    assert_eq!(threads_of_key(2, 56, 100, 4, 256), [(1, 56)]);
    assert_eq!(threads_of_key(3, 0, 100, 4, 256), [(1, 100)]);
}

/// The course's indices without a kernel: each thread merges the key of its diagonal in global memory.
#[test]
fn two_blocks_write_one_pair_if_d_does_not_divide_the_block() {
    let (seed, pairs, d, a_len) = (fresh_seed(), 8, 100, 40);
    let (a, b, expected) = pairs_of_runs(seed, pairs, d, a_len);
    let launch = |block: u32| {
        let mut emulator = Emulator::new(seed);
        let (on_a, on_b, c) = (emulator.buffer(&a), emulator.buffer(&b), emulator.uninit::<u32>(pairs * d));
        let grid = pairs.div_ceil(block as usize / d) as u32;
        // SAFETY: the views cover the buffers: `a`, `b` and `c` have `a.len()`, `b.len()` and `expected.len()` keys.
        emulator.launch("the course's indices", grid, block, 0, || unsafe {
            let (a, b) = (Global::new(on_a.as_ptr(), a.len()), Global::new(on_b.as_ptr(), b.len()));
            let c = GlobalMut::new(c.as_mut_ptr(), expected.len());
            let (thread, block) = (thread::thread_idx_x() as usize, thread::block_dim_x() as usize);
            let tidx = thread % d;
            let qt = (thread - tidx) / d;
            let gbx = qt + thread::block_idx_x() as usize * (block / d);
            if gbx < pairs {
                let (a, b) = (a.slice(gbx * a_len, a_len), b.slice(gbx * (d - a_len), d - a_len));
                let i = co_rank(tidx, a, b);
                let from_a = i < a_len && (tidx - i == d - a_len || a.get(i) <= b.get(tidx - i));
                c.set(gbx * d + tidx, if from_a { a.get(i) } else { b.get(tidx - i) });
            }
        })?;
        store::<u32>(&mut emulator, c)
    };
    let fault = launch(256).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Race { .. }), "{fault}, seed {seed}");
    assert_eq!(launch(200).unwrap(), expected, "seed {seed}");
    assert_eq!(launch(300).unwrap(), expected, "seed {seed}");
}

#[test]
fn pairs_are_left_out_if_d_does_not_divide_the_block() {
    let (seed, pairs, d, a_len) = (fresh_seed(), 16, 100, 40);
    let (a, b, expected) = pairs_of_runs(seed, pairs, d, a_len);
    let threads = (pairs * d) as u32;
    let merge = |grid, block| run_grid(seed, &a, &b, (pairs, d as u32, a_len as u32), grid, block);
    // 7 blocks of 256 threads are at least one thread per key, but merge 2 pairs each, of 16. No block writes pair 14.
    let fault = merge(threads.div_ceil(256), 256).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Uninitialised { byte: 5600, .. }), "{fault}, seed {seed}");
    // Blocks of fewer than d threads merge no pair.
    let fault = merge(threads.div_ceil(64), 64).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Uninitialised { byte: 0, .. }), "{fault}, seed {seed}");
    // Blocks of a multiple of d threads: one thread per key suffices.
    for block in [100, 200, 400, 800] {
        assert_eq!(merge(threads / block, block).unwrap(), expected, "block {block}, seed {seed}");
    }
}
