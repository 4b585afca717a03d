//! What the sources print wrong: for each place, an input on which the printed form fails, and the right result.

mod common;
use common::*;
use cuda_std::emulator::{Emulator, FaultKind};
use cuda_std::prelude::*;
use kernels_gpu::co_rank::co_rank;
use kernels_gpu::diagonal::diagonal_search;
use kernels_gpu::sequence::Sequence;

fn two_runs(m: usize, n: usize) -> (u64, Vec<u32>, Vec<u32>) {
    let seed = fresh_seed();
    (seed, Keys::Any.ascending(m, seed), Keys::Any.ascending(n, seed ^ 1))
}

/// Figures 12.9 and 12.11 divide integers before they round up, and let late threads start beyond m + n.
#[test]
fn the_last_keys_are_merged_and_late_threads_have_none() {
    // 10 keys over 4 threads: the printed form gives each 2 and loses 2.
    let (total, threads) = (10, 4);
    assert!(total / threads * threads < total);
    // 5 keys over 4 threads: rounded up they get 2 each, and the last would start at key 6.
    assert!(3 * 5usize.div_ceil(threads) > 5);
    for total in [10, 5, 1, 3] {
        let (seed, a, b) = two_runs(total / 2, total - total / 2);
        assert_eq!(run::basic(seed, &a, &b, 1, threads as u32).unwrap(), merged(&a, &b), "basic, seed {seed}");
        assert_eq!(run::tiled(seed, &a, &b, threads as u32, 2, 4).unwrap(), merged(&a, &b), "tiled, seed {seed}");
        assert_eq!(run::circular(seed, &a, &b, threads as u32, 2, 4).unwrap(), merged(&a, &b), "circular, seed {seed}");
    }
}

/// Figure 12.12 asks of a load only whether the input has the key, not whether the tile has the place.
#[test]
fn loads_stay_inside_a_tile_that_is_no_multiple_of_the_block() {
    let (tile, block, n) = (50, 32, 1000);
    let mut emulator = Emulator::new(fresh_seed());
    let input = emulator.buffer(&Keys::Any.ascending::<u32>(n, 1));
    // SAFETY: the view is the whole buffer, and the shared memory is as long as the launch gives it.
    let fault = emulator.launch("printed load", 1, block, tile * 4, || unsafe {
        let (from, to) = (Global::new(input.as_ptr(), n), Shared::<u32>::dynamic(0, tile));
        let mut i = thread::thread_idx_x();
        while i < tile.next_multiple_of(block) {
            if (i as usize) < n {
                to.set(i, from.get(i as usize));
            }
            i += block;
        }
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::OutOfView { .. }));

    let (seed, a, b) = two_runs(400, 300);
    assert_eq!(run::tiled(seed, &a, &b, 1, block, tile).unwrap(), merged(&a, &b), "seed {seed}");
    assert_eq!(run::circular(seed, &a, &b, 1, block, tile).unwrap(), merged(&a, &b), "seed {seed}");
}

/// Figure 12.13, line 53, takes both tiles for full in the last rounds, and counts keys that are left from before.
#[test]
fn stale_keys_at_the_end_are_not_counted() {
    // The end of a merge: A has 1 key left and B 2, in tiles of 4 that still hold smaller keys of the round before.
    let (a_tile, b_tile) = ([90u32, 3, 4, 5], [80u32, 95, 1, 2]);
    let right = co_rank(3, &a_tile[..1], &b_tile[..2]);
    let printed = co_rank(4, &a_tile[..], &b_tile[..]);
    assert_eq!(right, 1);
    assert_ne!(printed, right);
    for extra in 1..8 {
        let (seed, a, b) = two_runs(64 + extra, 64);
        assert_eq!(run::tiled(seed, &a, &b, 1, 4, 16).unwrap(), merged(&a, &b), "seed {seed}");
    }
}

/// Figure 12.16, line 37, refills B by as much as A was consumed.
#[test]
fn each_buffer_is_refilled_by_what_was_taken_from_it() {
    // In the first rounds all comes from one side. By the printed count the other would be refilled all the same.
    let (seed, both, _) = two_runs(300, 0);
    let (low, high) = both.split_at(140);
    assert_eq!(run::circular(seed, low, high, 1, 8, 32).unwrap(), both, "A first, seed {seed}");
    assert_eq!(run::circular(seed, high, low, 1, 8, 32).unwrap(), both, "B first, seed {seed}");
}

/// Figure 12.19 computes B's place j - 1 from A's place i.
#[test]
fn the_circular_search_reads_the_key_before_j() {
    // Buffers of 4 that start at 2 and 3. For k = 3 the search looks at A[1], A[0] and B[2], B[1]; from i it would read
    // B's key i - 1.
    #[derive(Clone, Copy)]
    struct Circular([u32; 4], u32);
    impl Sequence for Circular {
        type Index = u32;
        type Item = u32;
        fn length(self) -> u32 {
            4
        }
        fn at(self, i: u32) -> u32 {
            self.0[((self.1 + i) % 4) as usize]
        }
    }
    let (a, b) = (Circular([30, 40, 10, 20], 2), Circular([12, 13, 14, 11], 3));
    let expected = [0, 1, 1, 1, 1, 1, 2, 3, 4];
    for (k, i) in expected.into_iter().enumerate() {
        assert_eq!(co_rank(k as u32, a, b), i, "k {k}");
    }
    // The printed place at the answer for k = 3, i = 1 and j = 2: B's first key instead of its second.
    assert_ne!(b.at(1 - 1), b.at(2 - 1));
    // A merge in which i and j differ in every round, so that the buffers start at different places.
    let (seed, a, b) = two_runs(500, 90);
    assert_eq!(run::circular(seed, &a, &b, 1, 16, 33).unwrap(), merged(&a, &b), "seed {seed}");
}

/// All counts are printed as `int`.
#[test]
fn counts_above_32_bits_do_not_wrap() {
    /// Key i is 2 i + shift: no memory is needed for a sequence longer than any.
    #[derive(Clone, Copy)]
    struct Ramp(usize, u64);
    impl Sequence for Ramp {
        type Index = usize;
        type Item = u64;
        fn length(self) -> usize {
            self.0
        }
        fn at(self, i: usize) -> u64 {
            2 * i as u64 + self.1
        }
    }
    let (a, b) = (Ramp(5 << 32, 0), Ramp(3 << 32, 1));
    for k in [i32::MAX as usize + 1, u32::MAX as usize + 2, 6 << 32] {
        assert_eq!(co_rank(k, a, b), k.div_ceil(2), "co_rank of {k}");
        assert_eq!(diagonal_search(k, a, b), k.div_ceil(2), "diagonal_search of {k}");
    }
    let end = 8 << 32;
    assert_eq!((co_rank(end, a, b), diagonal_search(end, a, b)), (5 << 32, 5 << 32));
}

/// The course's Algorithm 1 takes B first on equal keys.
#[test]
fn equal_keys_come_from_a_first() {
    // What of A is among the first k keys, all equal: as much as there is. (More on order in tests/stability.rs.)
    let (a, b) = ([7u32; 3], [7u32; 4]);
    for (k, i) in [0, 1, 2, 3, 3, 3, 3, 3].into_iter().enumerate() {
        assert_eq!(co_rank(k, &a[..], &b[..]), i, "co_rank of {k}");
        assert_eq!(diagonal_search(k, &a[..], &b[..]), i, "diagonal_search of {k}");
    }
}

/// The course asks for blocks of fewer than 1024 threads, a multiple of d: d = 1024 needs all of them, and d need not be
/// a power of two.
#[test]
fn a_block_may_have_1024_threads_and_d_may_be_any_number() {
    use kernels_gpu::merge_small_batch::{merge_small_batch, shared_bytes};
    for (d, block) in [(1024, 1024), (1000, 1000), (100, 1000), (341, 1023), (3, 1023)] {
        let (pairs, a_len) = (4, d / 3);
        let seed = fresh_seed();
        let runs = |len: u32, salt: u64| -> Vec<u32> {
            (0..pairs as u64).flat_map(|p| Keys::Any.ascending::<u32>(len as usize, seed ^ salt ^ p << 8)).collect()
        };
        let (a, b) = (runs(a_len, 1), runs(d - a_len, 2));
        let mut emulator = Emulator::new(seed);
        let (on_a, on_b) = (emulator.buffer(&a), emulator.buffer(&b));
        let c = emulator.uninit::<u32>(pairs * d as usize);
        let grid = pairs.div_ceil((block / d) as usize) as u32;
        emulator
            // SAFETY: the arguments are those that the kernel's documentation asks for.
            .launch("merge_small_batch", grid, block, shared_bytes::<u32>(block), || unsafe {
                merge_small_batch::<u32>(on_a.as_ptr(), on_b.as_ptr(), c.as_mut_ptr(), pairs, d, a_len)
            })
            .unwrap_or_else(|fault| panic!("d {d}: {fault}"));
        let found = emulator.read(c).unwrap();
        for p in 0..pairs {
            let part = |all: &[u32], len: u32| all[p * len as usize..(p + 1) * len as usize].to_vec();
            assert_eq!(part(&found, d), merged(&part(&a, a_len), &part(&b, d - a_len)), "pair {p}, d {d}, seed {seed}");
        }
    }
}

/// Modern GPU's serial merge reads the key after the last one of B, for which there must be a slot.
#[test]
fn the_serial_merge_reads_nothing_past_its_tile() {
    // A cursor that reads on after it has taken the last key, in memory without the slot.
    let keys = 8;
    let mut emulator = Emulator::new(fresh_seed());
    // SAFETY: the shared memory is as long as the launch gives it; the read past it is what is shown.
    let fault = emulator.launch("printed prefetch", 1, 1, keys * 4, || unsafe {
        let tile = Shared::<u32>::dynamic(0, keys);
        (0..keys).for_each(|i| tile.set(i, i));
        (0..keys).for_each(|i| {
            let _next = tile.get(i + 1);
        });
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::OutOfView { .. }));
    // Ours runs in memory of exactly a tile, whichever side is used up first.
    let (seed, both, _) = two_runs(32 * 5, 0);
    for m in [0, 1, 80, 159, 160] {
        let (low, high) = both.split_at(m);
        assert_eq!(run::big::<u32, 32, 5>(seed, low, high).unwrap(), both, "A first, {m} keys, seed {seed}");
        assert_eq!(run::big::<u32, 32, 5>(seed, high, low).unwrap(), both, "B first, {m} keys, seed {seed}");
    }
}
