//! Misprints in the sources: for each mistake, the printed form fails on an input where the kernels here are right.
//!
//! The printed forms are in the module `printed`. If a function there can also omit its mistake, the test shows that
//! the mistake causes the failure: without it the result is right.

use crate::common::*;
use crate::printed::{self, Buffer, Circular, Failure, Rounding, Tiled};
use cuda_std::emulator::{Emulator, FaultKind};
use cuda_std::prelude::*;
use kernels_gpu::sequence::Sequence;
use kernels_gpu::textbook::co_rank::co_rank;
use kernels_gpu::thread::diagonal::diagonal_search;

fn two_runs(m: usize, n: usize) -> (u64, Vec<u32>, Vec<u32>) {
    let seed = fresh_seed();
    println!("seed {seed}");
    (seed, Keys::Any.ascending(m, seed), Keys::Any.ascending(n, seed ^ 1))
}

/// Figures 12.9, 12.11 and 12.12 divide integers before they round up. The first two let late threads and blocks start
/// beyond m + n.
#[test]
fn the_last_keys_are_merged_and_late_threads_have_none() {
    // 10 keys for 4 threads or blocks: the printed form gives each 2 keys and does not write the last 2 of C.
    let (_, a, b) = two_runs(5, 5);
    let c = printed::merge_in_parts(&a, &b, 4, Rounding::Down).unwrap();
    let expected: Vec<Option<u32>> = merged(&a, &b).into_iter().map(Some).collect();
    assert_eq!((&c[..8], &c[8..]), (&expected[..8], &[None, None][..]));
    // For tiles of 4 keys, line 21 computes 2 rounds, for 8 keys.
    let [rounds_down, rounds_up] = [Rounding::Down, Rounding::Up]
        .map(|rounds| printed::merge_tiled(&a, &b, 4, Tiled { rounds, tiles_are_full: false }).unwrap().0);
    assert_eq!((&rounds_down[..], &rounds_up[..]), (&merged(&a, &b)[..8], &merged(&a, &b)[..]));

    // 5 keys for 4 threads: rounded up, each gets 2, and the last thread would start at key 6. Its share of B would be
    // from key 4 to key 3.
    let (_, a, b) = two_runs(2, 3);
    assert_eq!(printed::merge_in_parts(&a, &b, 4, Rounding::Up), Err(Failure::Subarray("B", 4, 3)));
    // If the division has no remainder, both forms are right.
    let (_, a, b) = two_runs(5, 3);
    for rounding in [Rounding::Down, Rounding::Up] {
        let c: Vec<u32> = printed::merge_in_parts(&a, &b, 4, rounding).unwrap().into_iter().flatten().collect();
        assert_eq!(c, merged(&a, &b));
    }

    let threads = 4;
    for total in [10, 5, 1, 3] {
        let (seed, a, b) = two_runs(total / 2, total - total / 2);
        assert_eq!(run::basic(seed, &a, &b, 1, threads).unwrap(), merged(&a, &b), "basic, seed {seed}");
        assert_eq!(run::basic(seed, &a, &b, threads, 1).unwrap(), merged(&a, &b), "basic, seed {seed}");
        for (grid, block) in [(threads, 2), (1, threads)] {
            assert_eq!(run::tiled(seed, &a, &b, grid, block, 4).unwrap(), merged(&a, &b), "tiled, seed {seed}");
            assert_eq!(run::circular(seed, &a, &b, grid, block, 4).unwrap(), merged(&a, &b), "circular, seed {seed}");
        }
    }
}

/// Figure 12.12 tests only whether the input has the key to load, not whether the tile has the slot.
#[test]
fn loads_stay_inside_a_tile_that_is_no_multiple_of_the_block() {
    let (tile, block, n) = (50, 32, 1000);
    let mut emulator = Emulator::new(fresh_seed());
    let input = emulator.buffer(&Keys::Any.ascending::<u32>(n, 1));
    // SAFETY: `from` covers the buffer of `n` keys, and `to` covers the `tile` keys of the launch's shared memory.
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

/// Figure 12.13, line 53, assumes full tiles in the last rounds, and counts stale keys of earlier rounds. The line
/// before it lets `C_completed` pass the end of C.
#[test]
fn stale_keys_at_the_end_are_not_counted() {
    let [full, loaded] = [true, false].map(|tiles_are_full| Tiled { rounds: Rounding::Up, tiles_are_full });
    // The second round loads one key of A. The other three keys of the tile are stale and smaller. They count as
    // consumed: 8 keys of A, which has 5.
    let (a, b) = ([1, 2, 3, 4, 90], [5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(printed::merge_tiled(&a, &b, 4, full), Err(Failure::Index("B_S", 4)));
    assert_eq!(printed::merge_tiled(&a, &b, 4, loaded), Ok((merged(&a, &b), 13)));
    assert_eq!(run::tiled(fresh_seed(), &a, &b, 1, 4, 4).unwrap(), merged(&a, &b));
    // In the first round, the slots of A have no keys where A has none.
    let (a, b) = ([3, 4], [5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(printed::merge_tiled(&a, &b, 4, full), Err(Failure::NoKey("A_S", 3)));
    assert_eq!(printed::merge_tiled(&a, &b, 4, loaded), Ok((merged(&a, &b), 10)));
    assert_eq!(run::tiled(fresh_seed(), &a, &b, 1, 4, 4).unwrap(), merged(&a, &b));
    // If no stale key counts, the keys are right and `C_completed` is not: 12 of 10.
    let (a, b) = ([1, 3, 5, 7, 9], [2, 4, 6, 8, 10]);
    assert_eq!(printed::merge_tiled(&a, &b, 4, full), Ok((merged(&a, &b), 12)));
    assert_eq!(printed::merge_tiled(&a, &b, 4, loaded), Ok((merged(&a, &b), 10)));

    for extra in 1..8 {
        let (seed, a, b) = two_runs(64 + extra, 64);
        assert_eq!(printed::merge_tiled(&a, &b, 16, loaded).unwrap().0, merged(&a, &b), "seed {seed}");
        assert_eq!(run::tiled(seed, &a, &b, 1, 4, 16).unwrap(), merged(&a, &b), "seed {seed}");
    }
}

/// Asserts that the circular-buffer merge fails in this form, and that the corrected form and the kernel succeed.
#[track_caller]
fn circular_fails(a: &[u32], b: &[u32], tile: u32, threads: u32, form: Circular, expected: Result<Vec<u32>, Failure>) {
    let merge = |form| printed::merge_circular(a, b, tile.into(), threads.into(), form);
    assert_eq!(merge(form), expected, "{form:?}");
    assert_ne!(expected, Ok(merged(a, b)), "{form:?} is right");
    assert_eq!(merge(Circular::MEANT), Ok(merged(a, b)));
    assert_eq!(run::circular(fresh_seed(), a, b, 1, threads, tile).unwrap(), merged(a, b));
}

/// Figure 12.16, line 37, places keys of B by the number of slots that A has kept.
#[test]
fn each_buffer_is_refilled_by_what_was_taken_from_it() {
    // The first round takes 3 keys of A and 1 of B. The next key of B, 8, belongs to the slot of the 4, behind 5, 6 and
    // 7. It goes to the slot of the 6.
    let (a, b) = ([1, 2, 3, 20, 21, 22, 23, 24], [4, 5, 6, 7, 8, 9, 10, 11]);
    let form = Circular { b_goes_where_a_does: true, ..Circular::MEANT };
    circular_fails(&a, &b, 4, 2, form, Ok(vec![1, 2, 3, 4, 5, 8, 4, 7, 9, 10, 11, 20, 21, 22, 23, 24]));

    // All keys from one side in the first rounds, and sides of random keys.
    let (seed, both, _) = two_runs(300, 0);
    let (low, high) = both.split_at(140);
    let (_, a, b) = two_runs(200, 170);
    for (a, b) in [(low, high), (high, low), (&a[..], &b[..])] {
        assert_eq!(printed::merge_circular(a, b, 32, 8, Circular::MEANT), Ok(merged(a, b)), "seed {seed}");
        assert_eq!(run::circular(seed, a, b, 1, 8, 32).unwrap(), merged(a, b), "seed {seed}");
    }
}

/// Figure 12.16, lines 32 and 37, load from `A_consumed` and `B_consumed`: these keys are still in the buffers.
#[test]
fn a_refill_begins_behind_the_keys_that_the_buffer_holds() {
    let (a, b) = ([1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]);
    let form = Circular { loads_from_consumed: true, ..Circular::MEANT };
    // The first round takes 1 to 4. The 5 and 7 of A are followed not by 9 and 11, but by 5 and 7 again; likewise in B.
    circular_fails(&a, &b, 4, 2, form, Ok(vec![1, 2, 3, 4, 5, 6, 6, 8, 5, 7, 7, 8]));
}

/// Figure 12.19 computes the index of B's key before j from i.
#[test]
fn the_circular_search_reads_the_key_before_j() {
    #[derive(Clone, Copy)]
    struct Ring([u32; 4], u32);
    impl Sequence for Ring {
        type Index = u32;
        type Item = u32;
        fn length(self) -> u32 {
            4
        }
        fn at(self, i: u32) -> u32 {
            self.0[((self.1 + i) % 4) as usize]
        }
    }
    // Buffers of 4 slots that start at 2 and 0.
    let (a, b) = (Ring([3, 5, 1, 2], 2), Ring([0, 4, 6, 7], 0));
    let (a_s, b_s) = (a.0.map(Some), b.0.map(Some));
    let on_a = Buffer { name: "A_S", keys: &a_s, start: a.1.into() };
    let on_b = Buffer { name: "B_S", keys: &b_s, start: b.1.into() };
    let form = Circular { b_before_is_of_i: true, ..Circular::MEANT };
    let mut failures = vec![];
    for (k, i) in [0, 0, 1, 2, 3, 3, 4, 4, 4].into_iter().enumerate() {
        assert_eq!(co_rank(k as u32, a, b), i, "k {k}");
        let search = |form| printed::co_rank_circular(k as i64, &on_a, &on_b, (4, 4), form);
        assert_eq!(search(Circular::MEANT), Ok(i.into()), "k {k}");
        let printed = search(form);
        if printed != Ok(i.into()) {
            failures.push((k, printed));
        }
    }
    // With i = 0 the index is -1, and the remainder of C leaves it negative.
    let (before, endless) = (Err(Failure::Index("B_S", -1)), Err(Failure::Endless));
    assert_eq!(failures, [(1, before), (3, Ok(1)), (4, endless), (5, endless)]);

    // The merge of the same keys.
    circular_fails(&[1, 2, 3, 5], &[0, 4, 6, 7], 4, 4, form, before.map(|_: i64| vec![]));
    let (seed, a, b) = two_runs(500, 90);
    assert_eq!(run::circular(seed, &a, &b, 1, 16, 33).unwrap(), merged(&a, &b), "seed {seed}");
}

/// Key i is 2 i + shift: a sequence of any length needs no memory.
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

/// All counts are printed as `int`.
#[test]
fn counts_above_32_bits_do_not_wrap() {
    // Two arrays with lengths that fit into `int`, but a total that does not. The segments of all 2^20 threads begin
    // and end below 0.
    let n = 3 << 29;
    let threads = 1 << 20;
    for thread in [1, threads / 2, threads - 1] {
        let (curr, next) = printed::bounds_int(thread, threads, (n, n));
        assert!(curr < 0 && next < 0, "thread {thread}: {curr} to {next}");
    }
    // The co-rank of the first k beyond `int` is a negative index, and k modulo 2^32 is another k.
    let ramp = |shift| move |i: i32| u64::try_from(i).map(|i| 2 * i + shift).map_err(|_| Failure::Index("", i.into()));
    let printed = |k: usize| printed::co_rank_int(k as u32 as i32, (n, n), ramp(0), ramp(1));
    let (a, b) = (Ramp(n as usize, 0), Ramp(n as usize, 1));
    let k = 1 << 31;
    assert_eq!((printed(k - 2), co_rank(k - 2, a, b)), (Ok((1 << 30) - 1), (1 << 30) - 1));
    assert_eq!((printed(k), co_rank(k, a, b)), (Ok(i32::MIN), 1 << 30));
    // Well before that, `(tid + 1) * elementsPerThread` of the last thread is 2^31.
    let total = i32::MAX - (1 << 19);
    assert_eq!(printed::bounds_int(threads - 2, threads, (total, 0)), (i32::MAX - 4095, total));
    assert_eq!(printed::bounds_int(threads - 1, threads, (total, 0)).1, i32::MIN);

    let (a, b) = (Ramp(5 << 32, 0), Ramp(3 << 32, 1));
    for k in [i32::MAX as usize + 1, u32::MAX as usize + 2, 6 << 32] {
        assert_eq!(co_rank(k, a, b), k.div_ceil(2), "co_rank of {k}");
        assert_eq!(diagonal_search(k, a, b), k.div_ceil(2), "diagonal_search of {k}");
    }
    let end = 8 << 32;
    assert_eq!((co_rank(end, a, b), diagonal_search(end, a, b)), (5 << 32, 5 << 32));
}

/// The course's Algorithm 1 takes B first among equal keys.
#[test]
fn equal_keys_come_from_a_first() {
    let (a, b) = ([7u32; 3], [7u32; 4]);
    assert_eq!(printed::algorithm_1(&a, &b), [false, false, false, false, true, true, true]);
    // The co-rank of k is the number of A's keys among the first k. From k = 3 on, these are all keys of A. (More on
    // order in `stability`.)
    for (k, i) in [0, 1, 2, 3, 3, 3, 3, 3].into_iter().enumerate() {
        assert_eq!(co_rank(k, &a[..], &b[..]), i, "co_rank of {k}");
        assert_eq!(diagonal_search(k, &a[..], &b[..]), i, "diagonal_search of {k}");
    }
    // For distinct keys the two agree.
    let (a, b) = ([1u32, 4, 5, 9], [2u32, 3, 7]);
    let from_a: Vec<bool> = (0..7).map(|k| co_rank(k + 1, &a[..], &b[..]) > co_rank(k, &a[..], &b[..])).collect();
    assert_eq!(printed::algorithm_1(&a, &b), from_a);
}

/// The course's Algorithm 2 compares `Q_x` with B instead of its length. The diagonals of a grid that is extended to a
/// square have points to the right of B.
#[test]
fn the_small_merge_reads_nothing_past_b() {
    // The search for key 4 begins at (2, 2), and compares with B[1].
    let (a, b) = ([1, 2, 3, 4, 5], [0]);
    assert_eq!(printed::algorithm_2(4, &a, &b, false), Err(Failure::Index("B", 1)));
    assert_eq!(printed::algorithm_2(4, &a, &b, true), Ok(4));
    assert_eq!(run::small(fresh_seed(), &a, &b, 6).unwrap(), [0, 1, 2, 3, 4, 5]);
    for (m, n) in [(60, 40), (40, 60), (7, 0)] {
        let (seed, a, b) = two_runs(m, n);
        let [unbounded, bounded] = [false, true].map(|bounded| {
            (0..(m + n) as i64)
                .map(|i| printed::algorithm_2(i, &a, &b, bounded))
                .collect::<printed::Outcome<Vec<u32>>>()
        });
        assert!(matches!(unbounded, Err(Failure::Index("B", _))), "{m} and {n} keys, seed {seed}");
        assert_eq!(bounded, Ok(merged(&a, &b)), "{m} and {n} keys, seed {seed}");
        assert_eq!(run::small(seed, &a, &b, 128).unwrap(), merged(&a, &b), "{m} and {n} keys, seed {seed}");
    }
}

/// The course asks for blocks of fewer than 1024 threads, a multiple of d. However, d = 1024 needs 1024 threads, and d
/// need not be a power of two.
#[test]
fn a_block_may_have_1024_threads_and_d_may_be_any_number() {
    use kernels_gpu::key::Coding;
    use kernels_gpu::textbook::merge_small_batch::{merge_small_batch, shared_bytes};
    // No such block has the 1024 threads that d = 1024 needs. For other d there are blocks, and none is a power of two
    // unless d is.
    assert_eq!(printed::blocks_of_course(1024), []);
    assert_eq!(printed::blocks_of_course(512), [512]);
    assert_eq!(printed::blocks_of_course(341), [341, 682, 1023]);
    assert!(printed::blocks_of_course(100).iter().all(|threads| !threads.is_power_of_two()));
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
            // SAFETY: `a` has `pairs * a_len` keys, `b` has `pairs * (d - a_len)`, and `c` has capacity for
            // `pairs * d`. `block` is a multiple of `d`, and the launch has its shared memory.
            .launch("merge_small_batch", grid, block, shared_bytes::<u32>(block), || unsafe {
                merge_small_batch::<u32>(on_a.as_ptr(), on_b.as_ptr(), c.as_mut_ptr(), pairs, d, a_len, Coding::NONE)
            })
            .unwrap_or_else(|fault| panic!("d {d}: {fault}"));
        let found = emulator.read(c).unwrap();
        for p in 0..pairs {
            let part = |all: &[u32], len: u32| all[p * len as usize..(p + 1) * len as usize].to_vec();
            assert_eq!(part(&found, d), merged(&part(&a, a_len), &part(&b, d - a_len)), "pair {p}, d {d}, seed {seed}");
        }
    }
}

/// Modern GPU's serial merge reads the key after the last key of B, which needs a slot.
#[test]
fn the_serial_merge_reads_nothing_past_its_tile() {
    // One thread merges a tile of two runs of 4 keys, and loads a cursor's next key when it has taken one.
    let (keys, a_end) = ([1u32, 3, 5, 7, 2, 4, 6, 8], 4);
    let end = keys.len() as u32;
    let serial_merge = |slots: u32| {
        let mut emulator = Emulator::new(fresh_seed());
        let out = emulator.uninit::<u32>(keys.len());
        // SAFETY: `out` covers its buffer of `keys.len()` keys, and `tile` covers the `slots` keys of the launch's
        // shared memory.
        emulator.launch("printed serial merge", 1, 1, slots * 4, || unsafe {
            let (tile, out) = (Shared::<u32>::dynamic(0, slots), GlobalMut::new(out.as_mut_ptr(), keys.len()));
            (0..slots).for_each(|slot| tile.set(slot, keys.get(slot as usize).copied().unwrap_or(0)));
            let (mut a, mut b) = (0, a_end);
            let (mut a_key, mut b_key) = (tile.get(a), tile.get(b));
            for i in 0..keys.len() {
                if b >= end || (a < a_end && a_key <= b_key) {
                    out.set(i, a_key);
                    a += 1;
                    a_key = tile.get(a);
                } else {
                    out.set(i, b_key);
                    b += 1;
                    b_key = tile.get(b);
                }
            }
        })?;
        emulator.read(out)
    };
    let fault = serial_merge(end).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::OutOfView { start: 8, .. }), "{fault}");
    assert_eq!(serial_merge(end + 1).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);

    // The merge here runs in shared memory of exactly one tile, whichever side is exhausted first.
    let (a, b) = keys.split_at(a_end as usize);
    assert_eq!(run::big::<u32, 1, 8>(fresh_seed(), a, b).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let (seed, both, _) = two_runs(32 * 5, 0);
    for m in [0, 1, 80, 159, 160] {
        let (low, high) = both.split_at(m);
        assert_eq!(run::big::<u32, 32, 5>(seed, low, high).unwrap(), both, "A first, {m} keys, seed {seed}");
        assert_eq!(run::big::<u32, 32, 5>(seed, high, low).unwrap(), both, "B first, {m} keys, seed {seed}");
    }
}

/// The lecture notes' co-rank never raises `i_low` and `j_low`.
#[test]
fn the_search_ends() {
    // It alternates between two splits, one on each side of the right one.
    let (a, b) = ([0u32, 0, 0, 2, 2, 2, 2], [1u32, 1, 1, 1, 3, 3, 3]);
    assert_eq!(printed::co_rank_of_notes(7, &a, &b), Err(Failure::Endless));
    assert_eq!(co_rank(7, &a[..], &b[..]), 3);
    // The notes' own example ends.
    let (a, b) = ([1u32, 3, 5, 7], [2u32, 4, 6, 8]);
    assert_eq!((printed::co_rank_of_notes(2, &a, &b), co_rank(2, &a[..], &b[..])), (Ok(1), 1));
}
