//! The selection over many runs, by one warp in the emulator, compared with counting.

use crate::common::*;
use cuda_std::emulator::Emulator;
use cuda_std::warp::WARP_SIZE;
use cuda_std::{Global, GlobalMut, warp};
use kernels_gpu::key::Bits;
use kernels_gpu::sequence::Sequence;
use kernels_gpu::warp::multiway_co_rank::{Range, multiway_co_rank};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fmt::Debug;

const LANES: usize = WARP_SIZE as usize;

/// One ascending run per lane. Lanes beyond the last run have an empty one.
type Runs<B> = Vec<Vec<B>>;

/// A number of keys for each run.
type Counts = [u32; LANES];

/// For each rank, the number of keys of each run among the first `rank` keys of the stable merge, by merging keys with
/// their origin.
fn counted<B: Bits>(runs: &Runs<B>, ranks: &[usize]) -> Vec<Counts> {
    let mut all: Vec<(B, usize)> =
        runs.iter().enumerate().flat_map(|(lane, run)| run.iter().map(move |&key| (key, lane))).collect();
    all.sort();
    let mut ends: Vec<usize> = (0..ranks.len()).collect();
    ends.sort_by_key(|&i| ranks[i]);
    let (mut counts, mut taken, mut found) = ([0; LANES], 0, vec![[0; LANES]; ranks.len()]);
    for i in ends {
        all[taken..ranks[i]].iter().for_each(|&(_, lane)| counts[lane] += 1);
        taken = ranks[i];
        found[i] = counts;
    }
    found
}

/// The results of a warp's lanes for each of `ranks`, within `rank_tolerance`, in the range given for each rank.
fn found<B: Bits>(
    seed: u64,
    runs: &Runs<B>,
    ranks: &[usize],
    ranges: &[(Counts, Counts)],
    rank_tolerance: u32,
) -> Vec<Counts> {
    let mut emulator = Emulator::new(seed);
    let starts: Vec<usize> = (0..LANES).map(|lane| runs.iter().take(lane).map(Vec::len).sum()).collect();
    let lengths: Vec<usize> = (0..LANES).map(|lane| runs.get(lane).map_or(0, Vec::len)).collect();
    let (keys, out) = (emulator.buffer(&runs.concat()), emulator.uninit::<u32>(ranks.len() * LANES));
    emulator
        .launch("multiway_co_rank", 1, WARP_SIZE, 0, || {
            // SAFETY: `keys` and `out` cover their buffers; lane `l` alone writes elements `i * LANES + l` of `out`.
            let (keys, out) =
                unsafe { (Global::new(keys.as_ptr(), keys.len()), GlobalMut::new(out.as_mut_ptr(), out.len())) };
            let lane = warp::lane_id() as usize;
            let run = keys.slice(starts[lane], lengths[lane]);
            for (i, (&rank, (low, high))) in ranks.iter().zip(ranges).enumerate() {
                let range = Range { run, low: low[lane], high: high[lane] };
                // SAFETY: the launch is one warp, and all its lanes pass the same `rank` and `rank_tolerance`. The test
                // passes ranges that contain the answer.
                let count = unsafe { multiway_co_rank(range, rank as u64, rank_tolerance) };
                out.set(i * LANES + lane, count);
            }
        })
        .unwrap_or_else(|fault| panic!("{fault} (seed {seed})"));
    let counts = emulator.read(out).unwrap();
    counts.chunks(LANES).map(|counts| counts.try_into().unwrap()).collect()
}

/// Ranges that contain `answer`: whole runs, ends that are off by little or by any distance, and the answer alone.
fn narrowed(random: &mut StdRng, answer: &Counts, lengths: &Counts) -> Vec<(Counts, Counts)> {
    let mut off = |most: u32| {
        let reach = |random: &mut StdRng, room: u32| random.random_range(0..=room.min(most));
        let low = std::array::from_fn(|lane| answer[lane] - reach(random, answer[lane]));
        let high = std::array::from_fn(|lane| answer[lane] + reach(random, lengths[lane] - answer[lane]));
        (low, high)
    };
    let (near, far, one) = (off(5), off(u32::MAX), off(1));
    // As narrowed by `split_runs`: from below only.
    vec![([0; LANES], *lengths), near, far, one, (far.0, *lengths), ([0; LANES], far.1), (*answer, *answer)]
}

/// Compares with the oracle at each of `ranks`, in several kinds of ranges.
fn check_at<B: Bits + Debug>(what: &str, seed: u64, runs: &Runs<B>, ranks: &[usize]) {
    let random = &mut StdRng::seed_from_u64(seed);
    let lengths: Counts = std::array::from_fn(|lane| runs.get(lane).map_or(0, Vec::len) as u32);
    let (mut each, mut ranges, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (&rank, answer) in ranks.iter().zip(counted(runs, ranks)) {
        for range in narrowed(random, &answer, &lengths) {
            each.push(rank);
            ranges.push(range);
            expected.push(answer);
        }
    }
    for (i, found) in found(seed, runs, &each, &ranges, 0).into_iter().enumerate() {
        let (bits, (low, high)) = (8 * size_of::<B>(), ranges[i]);
        assert_eq!(
            found, expected[i],
            "{what}, {bits} bits, rank {}, runs of {lengths:?} in ranges {low:?} to {high:?}, seed {seed}",
            each[i]
        );
    }
}

/// Checks, at each of `ranks`, that a result with tolerance is the answer for a rank nearby. The ranges are whole runs,
/// and ranges that `split_runs` narrows from its last result.
fn check_tolerance_at<B: Bits + Debug>(what: &str, seed: u64, runs: &Runs<B>, ranks: &[usize]) {
    const TOLERANCES: [u32; 3] = [1, 7, 64];
    let lengths: Counts = std::array::from_fn(|lane| runs.get(lane).map_or(0, Vec::len) as u32);
    for rank_tolerance in TOLERANCES {
        let check = |ranks: &[usize], ranges: &[(Counts, Counts)]| {
            let found = found(seed, runs, ranks, ranges, rank_tolerance);
            let near: Vec<usize> = found.iter().map(|counts| counts.iter().sum::<u32>() as usize).collect();
            for (i, answer) in counted(runs, &near).iter().enumerate() {
                let case = || {
                    format!("{what}, rank {}, rank_tolerance {rank_tolerance}, {:?}, seed {seed}", ranks[i], ranges[i])
                };
                assert!(near[i].abs_diff(ranks[i]) <= rank_tolerance as usize, "{} found: {}", near[i], case());
                assert_eq!(found[i], *answer, "{}", case());
            }
            found
        };
        let whole = vec![([0; LANES], lengths); ranks.len()];
        let before = check(ranks, &whole);
        for tile_keys in [2 * rank_tolerance + 1, 1000] {
            let too_many = tile_keys + 2 * rank_tolerance + 1;
            let total = lengths.iter().sum::<u32>() as usize;
            let next: Vec<usize> = ranks.iter().map(|rank| (rank + tile_keys as usize).min(total)).collect();
            let high = |low: &Counts| std::array::from_fn(|lane| (low[lane] + too_many).min(lengths[lane]));
            check(&next, &before.iter().map(|low| (*low, high(low))).collect::<Vec<_>>());
        }
    }
}

/// Checks all ranks of few keys, and otherwise both ends and some ranks between.
fn check<B: Bits + Debug>(what: &str, seed: u64, runs: &Runs<B>) {
    assert!(runs.iter().all(|run| run.is_sorted()));
    let total = runs.iter().map(Vec::len).sum::<usize>();
    if total <= 100 {
        let ranks: Vec<_> = (0..=total).collect();
        check_tolerance_at(what, seed, runs, &ranks);
        return check_at(what, seed, runs, &ranks);
    }
    let mut random = StdRng::seed_from_u64(!seed);
    let mut ranks = vec![0, 1, 2, total / 2, total - 2, total - 1, total];
    ranks.extend((0..8).map(|_| random.random_range(0..=total)));
    check_at(what, seed, runs, &ranks);
    check_tolerance_at(what, seed, runs, &ranks);
}

/// A distribution of keys: its name, and random bits. A type takes its lowest bits.
type Distribution = (&'static str, fn(&mut StdRng) -> u64);

const DISTRIBUTIONS: [Distribution; 9] = [
    ("any keys", |random| random.random()),
    ("all 0", |_| 0),
    ("all the greatest", |_| u64::MAX),
    ("2 values", |random| random.random_range(7..9)),
    ("the least and the greatest", |random| if random.random() { 0 } else { u64::MAX }),
    ("16 values", |random| random.random_range(0..16) << 28 | 0xdead << 40),
    // The upper halves are equal, and the lower halves are not small.
    ("equal upper halves", |random| 0x1234_5678 << 32 | random.random::<u32>() as u64),
    ("2 upper halves", |random| random.random_range(5..7) << 32 | random.random::<u32>() as u64),
    // Far from evenly distributed.
    ("any widths", |random| random.random::<u64>() >> random.random_range(0..64)),
];

fn runs_of<B: Bits>(random: &mut StdRng, lengths: &[usize], key: fn(&mut StdRng) -> u64) -> Runs<B> {
    let run = |&length: &usize| {
        let mut run: Vec<B> = (0..length).map(|_| B::from_register(key(random))).collect();
        run.sort();
        run
    };
    lengths.iter().map(run).collect()
}

/// Checks runs of `lengths`, generated for each distribution, as keys of either width or of both.
fn check_lengths(what: &str, lengths: impl Fn(&mut StdRng) -> Vec<usize>) {
    for (keys, key) in DISTRIBUTIONS {
        let seed = fresh_seed();
        let what = format!("{what}, {keys}");
        let random = &mut StdRng::seed_from_u64(seed);
        let lengths = lengths(random);
        crate::for_tried_types!(tried(0..2), [(u32)(u64)], check(&what, seed, &runs_of(random, &lengths, key)));
    }
}

#[test]
fn few_keys_at_all_ranks() {
    check_lengths("no run", |_| vec![]);
    check_lengths("empty runs", |_| vec![0; 32]);
    check_lengths("a key a run", |_| vec![1; 32]);
    check_lengths("two runs", |random| vec![random.random_range(0..40), random.random_range(0..40)]);
    for _ in 0..3 {
        check_lengths("few keys", |random| {
            let runs = random.random_range(1..=32);
            (0..runs).map(|_| random.random_range(0..=100 / runs)).collect()
        });
    }
}

#[test]
fn runs_of_random_lengths() {
    for _ in 0..5 {
        check_lengths("random lengths", |random| {
            let (runs, most) = (random.random_range(1..=32), 1 << random.random_range(1..12));
            // One run in four is empty.
            let length = |random: &mut StdRng| random.random_range(0..most) * usize::from(random.random_ratio(3, 4));
            (0..runs).map(|_| length(random)).collect()
        });
    }
    check_lengths("runs of a pass", |_| vec![3000; 32]);
    check_lengths("runs of a pass, the last one short", |_| (0..16).map(|i| if i < 15 { 3000 } else { 5 }).collect());
}

#[test]
fn one_run_among_empty_ones() {
    for lane in [0, 1, 17, 31] {
        for length in [1, 2, 33, 5000] {
            check_lengths("one run", |_| (0..32).map(|i| if i == lane { length } else { 0 }).collect());
        }
    }
}

#[test]
fn runs_of_very_different_lengths() {
    for _ in 0..2 {
        check_lengths("very different lengths", |random| {
            let mut lengths = vec![100_000, 1, 0, 10, 1000, 2, 0, 1, 31, 20_000];
            lengths.extend((0..22).map(|_| random.random_range(0..3)));
            for i in (1..32).rev() {
                lengths.swap(i, random.random_range(0..=i));
            }
            lengths
        });
    }
    check_lengths("one long run", |_| (0..32).map(|i| if i == 9 { 100_000 } else { 1 }).collect());
    check_lengths("one long run", |_| vec![1, 100_000]);
}

/// All keys of a run are below the keys of the next, or above them: the division is in one run.
#[test]
fn runs_that_do_not_overlap() {
    fn check_both<B: Bits + Debug>() {
        for lengths in [vec![3; 32], vec![1, 2, 0, 5, 90], vec![700; 32], vec![1, 5000, 0, 1, 40, 3000, 2]] {
            for shift in [0, 8 * size_of::<B>() as u64 - 20] {
                let seed = fresh_seed();
                let random = &mut StdRng::seed_from_u64(seed);
                let mut keys: Vec<u64> = (0..lengths.iter().sum()).map(|_| random.random_range(0..1 << 19)).collect();
                keys.sort();
                // Keys at the ends of neighbouring runs may be equal.
                let mut rest = &keys[..];
                let mut runs: Runs<B> = Vec::new();
                for &length in &lengths {
                    let (run, after) = rest.split_at(length);
                    runs.push(run.iter().map(|&key| B::from_register(key << shift)).collect());
                    rest = after;
                }
                check("each run below the next", seed, &runs);
                runs.reverse();
                check("each run above the next", seed, &runs);
            }
        }
    }
    check_both::<u32>();
    check_both::<u64>();
}

/// The worst case for a guess by fractions: runs with all keys but one together at one end.
#[test]
fn runs_that_are_not_alike() {
    fn check_one<B: Bits + Debug>() {
        let seed = fresh_seed();
        let random = &mut StdRng::seed_from_u64(seed);
        let length = |random: &mut StdRng| random.random_range(1..2000);
        let runs: Runs<B> = (0..32)
            .map(|lane| {
                let length = length(random);
                let mut run: Vec<u64> = match lane % 4 {
                    // Low keys and a great one; great keys and a low one; powers of two; equal keys.
                    0 => (0..length).map(|i| if i == 0 { u64::MAX } else { random.random_range(0..50) }).collect(),
                    1 => (0..length).map(|i| if i == 0 { 0 } else { u64::MAX - random.random_range(0..50) }).collect(),
                    2 => (0..length).map(|_| 1 << random.random_range(0..B::MAX.to_register().count_ones())).collect(),
                    _ => vec![lane; length],
                };
                let mut run: Vec<B> = run.drain(..).map(B::from_register).collect();
                run.sort();
                run
            })
            .collect();
        check("runs that are not alike", seed, &runs);
    }
    for _ in 0..10 {
        check_one::<u32>();
        check_one::<u64>();
    }
}

/// A run with computed keys, so that memory does not limit its length.
#[derive(Clone, Copy)]
struct ComputedRun<B> {
    length: u32,
    key: fn(u32) -> B,
}

impl<B: Bits> Sequence for ComputedRun<B> {
    type Index = usize;
    type Item = B;
    fn length(self) -> usize {
        self.length as usize
    }
    fn at(self, i: usize) -> B {
        assert!(i < self.length(), "key {i} of {} is read", self.length);
        (self.key)(i as u32)
    }
}

/// The results of a warp's lanes at `rank`, in the whole of `runs`.
fn found_in_computed<B: Bits>(runs: &[ComputedRun<B>], rank: u64, rank_tolerance: u32) -> Counts {
    let mut emulator = Emulator::new(rank);
    let out = emulator.uninit::<u32>(LANES);
    emulator
        .launch("multiway_co_rank", 1, WARP_SIZE, 0, || {
            let lane = warp::lane_id() as usize;
            let run = runs.get(lane).copied().unwrap_or(ComputedRun { length: 0, key: |_| B::MAX });
            // SAFETY: the launch is one warp, and all its lanes pass the same `rank` and `rank_tolerance`. A whole run
            // contains the answer.
            let count = unsafe { multiway_co_rank(Range { run, low: 0, high: run.length }, rank, rank_tolerance) };
            // SAFETY: the view covers the buffer of `LANES` numbers, and lane `l` alone writes number `l`.
            unsafe { GlobalMut::new(out.as_mut_ptr(), out.len()) }.set(lane, count);
        })
        .unwrap_or_else(|fault| panic!("rank {rank}: {fault}"));
    emulator.read(out).unwrap().try_into().unwrap()
}

/// Checks that `counts` keys of each run are the first of the stable merge: each key taken comes before each key left.
fn assert_divides<B: Bits + Debug>(runs: &[ComputedRun<B>], rank: u64, rank_tolerance: u32, counts: Counts) {
    let found: u64 = counts.iter().map(|&count| count as u64).sum();
    assert!(
        found.abs_diff(rank) <= rank_tolerance as u64,
        "{found} keys found for rank {rank}, rank_tolerance {rank_tolerance}: {counts:?}"
    );
    let ends = || runs.iter().zip(counts).enumerate();
    let last_taken =
        ends().filter(|(_, (_, count))| *count > 0).map(|(lane, (run, count))| ((run.key)(count - 1), lane));
    let first_left =
        ends().filter(|(_, (run, count))| *count < run.length).map(|(lane, (run, count))| ((run.key)(count), lane));
    if let (Some(last), Some(first)) = (last_taken.max(), first_left.min()) {
        // The same key and lane: equal keys of one run.
        assert!(last <= first, "rank {rank}: {last:?} is taken and {first:?} left: {counts:?}");
    }
}

/// Checks both ends, the ends of each run, 9 ranks between, and random ranks.
fn check_computed<B: Bits + Debug>(runs: &[ComputedRun<B>]) {
    let total: u64 = runs.iter().map(|run| run.length as u64).sum();
    let mut random = StdRng::seed_from_u64(total);
    let mut ranks: Vec<u64> = (0..=10).map(|tenth| total / 10 * tenth).collect();
    ranks.extend([1, total - 1, total]);
    ranks.extend(runs.iter().flat_map(|run| [run.length as u64 - 1, run.length as u64]));
    ranks.extend((0..20).map(|_| random.random_range(0..=total)));
    for rank in ranks {
        for rank_tolerance in [0, 16] {
            assert_divides(runs, rank, rank_tolerance, found_in_computed(runs, rank, rank_tolerance));
        }
    }
}

/// Three runs of 10^9 keys in all. In one run, the search from the expected index steps beyond 2^32.
#[test]
fn a_long_run_below_two_others() {
    let above: ComputedRun<u32> = ComputedRun { length: 50_000_000, key: |i| 3_100_000_000 + i };
    let runs = [ComputedRun { length: 900_000_000, key: |i| i }, above, above];
    check_computed(&runs);
    // The other runs share the ranks beyond the first run. Among equal keys, the key of the earlier run comes first.
    let counts = found_in_computed(&runs, 900_000_000 + 70_000_001, 0);
    assert_eq!(counts[..4], [900_000_000, 35_000_001, 35_000_000, 0]);
}

#[test]
fn runs_of_almost_2_to_the_32_keys() {
    const LONGEST: u32 = u32::MAX;
    let square = |i: u32| ((i as u64 * i as u64) >> 32) as u32;
    check_computed::<u32>(&[ComputedRun { length: LONGEST, key: |i| i }, ComputedRun { length: 10, key: |_| 1 << 31 }]);
    check_computed(&[ComputedRun { length: LONGEST, key: square }, ComputedRun { length: LONGEST, key: |i| i }]);
    // All keys are equal, or together at one end.
    check_computed::<u32>(&[ComputedRun { length: LONGEST, key: |_| 5 }; 3]);
    let low: ComputedRun<u64> = ComputedRun { length: LONGEST, key: |i| i as u64 };
    let high = ComputedRun { length: LONGEST, key: |i| u64::MAX - (u32::MAX - i) as u64 };
    check_computed(&[low, high]);
    check_computed(&[high, low]);
    check_computed(&[low, ComputedRun { length: 1, key: |_| u64::MAX / 2 }, high, low, high]);
}
