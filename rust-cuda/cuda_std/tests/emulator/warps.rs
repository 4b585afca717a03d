//! Shuffles, ballots and reductions, of whole and of partial warps.

use crate::common::{
    SEEDS, ballot, global_mut, reduce_add, reduce_max, shuffle_idx, shuffle_up, shuffle_xor, sync_warp, tid,
};
use cuda_std::{
    emulator::Emulator,
    thread,
    warp::{self, FULL_MASK, WARP_SIZE},
};

/// The results of `f` in `threads` threads.
fn results(seed: u64, threads: u32, f: impl Fn() -> u32) -> Vec<u32> {
    let mut emulator = Emulator::new(seed);
    let out = emulator.uninit::<u32>(threads as usize);
    let write = || global_mut(out.as_mut_ptr(), out.len()).set(tid() as usize, f());
    emulator.launch("results", 1, threads, 0, write).unwrap();
    emulator.read(out).unwrap()
}

fn expect(threads: u32, value: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..threads).map(value).collect()
}

#[test]
fn lanes() {
    assert_eq!(results(1, 100, warp::lane_id), expect(100, |t| t % WARP_SIZE));
    let threads = 7 * 5 * 3;
    let mut emulator = Emulator::new(1);
    let out = emulator.uninit::<u32>(threads);
    let lanes = || {
        let (x, y, z) = (thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z());
        global_mut(out.as_mut_ptr(), threads).set((x + 7 * (y + 5 * z)) as usize, warp::lane_id());
    };
    emulator.launch("lanes", 1, (7, 5, 3), 0, lanes).unwrap();
    assert_eq!(emulator.read(out).unwrap(), expect(threads as u32, |t| t % WARP_SIZE));
}

#[test]
fn each_lane_gets_its_partners_value() {
    for seed in SEEDS {
        for lane_mask in 0..32 {
            let f = || shuffle_xor(FULL_MASK, tid() * 10, lane_mask);
            assert_eq!(results(seed, 96, f), expect(96, |t| (t ^ lane_mask) * 10));
        }
    }
}

#[test]
fn each_lane_gets_the_value_it_asks_for() {
    for seed in SEEDS {
        let f = || shuffle_idx(FULL_MASK, tid() * 10, (tid() * 7 + 3) % 32);
        assert_eq!(results(seed, 96, f), expect(96, |t| (t / 32 * 32 + (t * 7 + 3) % 32) * 10));
    }
}

#[test]
fn each_lane_gets_the_value_from_below() {
    for seed in SEEDS {
        for distance in 0..32 {
            let f = || shuffle_up(FULL_MASK, tid() * 10, distance);
            let from = |t: u32| if t % 32 >= distance { t - distance } else { t };
            assert_eq!(results(seed, 96, f), expect(96, |t| from(t) * 10));
        }
    }
}

#[test]
fn votes_of_a_warp() {
    for seed in SEEDS {
        let odd_or_high = |t: u32| t % 2 == 1 || t > 40;
        let f = || ballot(FULL_MASK, odd_or_high(tid()));
        let votes = |t: u32| (0..32).map(|lane| u32::from(odd_or_high(t / 32 * 32 + lane)) << lane).sum();
        assert_eq!(results(seed, 64, f), expect(64, votes));
    }
}

/// Values without a pattern, over all 32 bits.
fn scattered(t: u32) -> u32 {
    (t + 1).wrapping_mul(0x9e37_79b9)
}

#[test]
fn lanes_of_a_warp_that_are_alike() {
    // SAFETY: the block is whole warps, and all 32 lanes of each warp make both calls.
    let alike = |value: u32| unsafe { (warp::lanes_alike::<4>(value), warp::lanes_alike::<32>(value)) };
    for seed in SEEDS {
        for value in [scattered, |t| scattered(t) % 3, |_| 7] {
            let lanes = |t: u32, mask: u32| -> u32 {
                let is_alike = |lane: u32| (value(t / 32 * 32 + lane) ^ value(t)) & mask == 0;
                (0..32).map(|lane| u32::from(is_alike(lane)) << lane).sum()
            };
            assert_eq!(results(seed, 64, || alike(value(tid())).0), expect(64, |t| lanes(t, 15)));
            assert_eq!(results(seed, 64, || alike(value(tid())).1), expect(64, |t| lanes(t, u32::MAX)));
        }
    }
}

#[test]
fn sums_and_greatest_of_a_warp() {
    let lanes = |t: u32| (t / 32 * 32..t / 32 * 32 + 32).map(scattered);
    for seed in SEEDS {
        // The sums exceed 2^32 and wrap around.
        let sums = |t: u32| lanes(t).fold(0, u32::wrapping_add);
        assert_eq!(results(seed, 96, || reduce_add(FULL_MASK, scattered(tid()))), expect(96, sums));
        let greatest = |t: u32| lanes(t).max().unwrap();
        assert_eq!(results(seed, 96, || reduce_max(FULL_MASK, scattered(tid()))), expect(96, greatest));
        // Unsigned: no number is below 0.
        assert_eq!(results(seed, 32, || reduce_max(FULL_MASK, 0)), [0; 32]);
        let one_high = || reduce_max(FULL_MASK, if tid() == 19 { 1 << 31 } else { tid() });
        assert_eq!(results(seed, 32, one_high), [1 << 31; 32]);
    }
}

#[test]
fn reductions_of_some_lanes() {
    // Lanes in groups by their remainder of 3, each with its mask; in a warp of 13 lanes, only those count.
    for seed in SEEDS {
        let mask = |t: u32| (0..32).filter(|lane| lane % 3 == t % 32 % 3).map(|lane| 1 << lane).sum::<u32>();
        let members = |t: u32| (t / 32 * 32..(t / 32 * 32 + 32).min(45)).filter(move |u| u % 32 % 3 == t % 32 % 3);
        let f = || reduce_add(mask(tid()), tid() + 1);
        assert_eq!(results(seed, 45, f), expect(45, |t| members(t).map(|u| u + 1).sum()));
        let f = || reduce_max(mask(tid()), scattered(tid()));
        assert_eq!(results(seed, 45, f), expect(45, |t| members(t).map(scattered).max().unwrap()));
        let f = || reduce_add(FULL_MASK, 1) * 100 + reduce_max(FULL_MASK, tid());
        assert_eq!(results(seed, 45, f), expect(45, |t| if t < 32 { 3231 } else { 1344 }));
        let f = || if tid() == 20 { reduce_add(1 << 20, 7) + reduce_max(1 << 20, 8) } else { 0 };
        assert_eq!(results(seed, 32, f), expect(32, |t| if t == 20 { 15 } else { 0 }));
    }
}

#[test]
fn two_halves_on_their_own() {
    for seed in SEEDS {
        let f = || {
            let mask = if tid() % 32 < 16 { 0xffff } else { 0xffff_0000 };
            let mut sum = tid();
            for step in [8, 4, 2, 1] {
                sum += shuffle_xor(mask, sum, step);
            }
            sum + (ballot(mask, tid().is_multiple_of(3)) << 16 >> 16)
        };
        let half = |t: u32| t / 16 * 16..t / 16 * 16 + 16;
        let votes = |t: u32| half(t).map(|u| u32::from(u % 3 == 0) << (u % 32)).sum::<u32>() << 16 >> 16;
        assert_eq!(results(seed, 64, f), expect(64, |t| half(t).sum::<u32>() + votes(t)));
    }
}

#[test]
fn a_partial_last_warp() {
    // 45 threads: the second warp has 13 lanes, and a full mask has 19 more.
    for seed in SEEDS {
        let f = || {
            sync_warp(FULL_MASK);
            ballot(FULL_MASK, tid().is_multiple_of(2))
        };
        assert_eq!(results(seed, 45, f), expect(45, |t| if t < 32 { 0x5555_5555 } else { 0x1555 }));
        let f = || shuffle_idx(FULL_MASK, tid(), 12);
        assert_eq!(results(seed, 45, f), expect(45, |t| t / 32 * 32 + 12));
        let f = || shuffle_xor(FULL_MASK, tid(), 1);
        let swapped = results(seed, 45, f);
        assert_eq!(swapped[..44], expect(44, |t| t ^ 1));
    }
}

#[test]
fn a_lane_that_is_absent_passes_anything() {
    let values: Vec<_> = SEEDS.map(|seed| results(seed, 1, || shuffle_idx(FULL_MASK, 5, 9))[0]).collect();
    assert!(values.iter().any(|&value| value != values[0]));
}

#[test]
fn values_of_an_early_call_do_not_mix_with_a_later_one() {
    for seed in SEEDS {
        let f = || {
            let mut value = tid();
            for round in 0..20 {
                value = shuffle_idx(FULL_MASK, value, (tid() + 1) % 32) + round * u32::from(round == 100);
            }
            value
        };
        assert_eq!(results(seed, 32, f), expect(32, |t| (t + 20) % 32));
    }
}
