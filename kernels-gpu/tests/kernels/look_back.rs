//! Look-backs over tiles with few or no published prefixes, as on a GPU that runs many blocks at once. The emulator
//! runs few blocks at once, so that in a launch of a whole operation almost every earlier tile is finished.

use cuda_std::Word;
use cuda_std::emulator::{Buffer, Emulator};
use cuda_std::thread::thread_idx_x;
use kernels_gpu::block::segmented::Tail;
use kernels_gpu::kernels::groups::reduction::{FloatSum, Reduction, Sum};
use kernels_gpu::warp::carry::{self, Carries};
use kernels_gpu::warp::look_back::{self, Tiles};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicU64, Ordering};

const TILES: usize = 200;

/// The emulator does not pause.
const PAUSE: u32 = 1000;

/// Runs `work` in one warp and returns its result, which must be equal in all lanes.
fn of_warp(emulator: &mut Emulator, work: impl Fn() -> u64) -> u64 {
    let lanes: [AtomicU64; 32] = std::array::from_fn(|_| AtomicU64::new(0));
    emulator
        .launch("look_back", 1, 32, 0, || lanes[thread_idx_x() as usize].store(work(), Ordering::Relaxed))
        .unwrap_or_else(|fault| panic!("{fault}"));
    let lanes = lanes.map(AtomicU64::into_inner);
    assert!(lanes.iter().all(|lane| *lane == lanes[0]), "{lanes:?}");
    lanes[0]
}

#[test]
fn counts_are_added_up_over_any_number_of_tiles() {
    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let mut emulator = Emulator::new(seed);
    let sums: Vec<u32> = (0..TILES).map(|_| random.random_range(0..9000)).collect();
    for finished in [0, 1, 3, 10, TILES] {
        let words: Buffer<u64> = emulator.buffer(&vec![0; look_back::words(TILES)]);
        // SAFETY: `words` has `look_back::words(TILES)` words, all 0, and nothing else uses them.
        let tiles = || unsafe { Tiles::new(words.as_mut_ptr(), TILES) };
        for (tile, &sum) in sums.iter().enumerate() {
            of_warp(&mut emulator, || {
                if thread_idx_x() == 0 {
                    tiles().publish(tile as u32, sum);
                }
                0
            });
        }
        let mut check = |tile: usize| {
            // SAFETY: the launch is one warp, and all its 32 lanes make this call with the same arguments.
            let found = of_warp(&mut emulator, || unsafe { tiles().sum_before(tile as u32, sums[tile], PAUSE) });
            assert_eq!(found, sums[..tile].iter().map(|&sum| sum as u64).sum::<u64>(), "tile {tile}, seed {seed}");
        };
        for _ in 0..finished {
            check(random.random_range(0..TILES));
        }
        check(TILES - 1);
        check(40);
    }
}

/// Checks tiles where one in `heads` has a head, after the carries of `finished` tiles have been found.
fn check_carries<R: Reduction>(heads: usize, finished: usize, value: fn(&mut StdRng) -> R::Value) {
    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let mut emulator = Emulator::new(seed);
    let tails: Vec<Tail<R::Value>> = (0..TILES)
        .map(|tile| Tail { has_head: tile == 0 || random.random_range(0..heads) == 0, value: value(&mut random) })
        .collect();
    let bytes = size_of::<R::Value>();
    let words: Buffer<u64> = emulator.buffer(&vec![0; carry::words(TILES, bytes)]);
    // SAFETY: `words` has `carry::words(TILES, bytes)` words, all 0, and nothing else uses them.
    let carries = || unsafe { Carries::new(words.as_mut_ptr(), TILES, bytes) };
    let publish = |emulator: &mut Emulator, tile: usize, tail: Tail<R::Value>| {
        of_warp(emulator, || {
            if thread_idx_x() == 0 {
                carries().publish(tile as u32, tail);
            }
            0
        });
    };
    for (tile, &tail) in tails.iter().enumerate() {
        publish(&mut emulator, tile, tail);
    }
    let carried = |tile: usize| {
        let none = Tail { has_head: false, value: R::IDENTITY };
        tails[..tile].iter().fold(none, |carried, tail| carried.then::<R>(*tail)).value
    };
    for round in 0..finished + 2 {
        let tile = if round < finished { random.random_range(1..TILES) } else { TILES - 1 - 60 * (round - finished) };
        // SAFETY: the launch is one warp, and all its 32 lanes make this call with the same arguments. `tile` is at
        // least 1.
        let found = of_warp(&mut emulator, || unsafe { carries().carried::<R>(tile as u32, PAUSE) }.to_register());
        assert_eq!(found, carried(tile).to_register(), "tile {tile}, one head in {heads}, seed {seed}");
        publish(&mut emulator, tile, Tail { has_head: true, value: carried(tile + 1) });
    }
}

#[test]
fn what_is_carried_is_combined_in_order() {
    for heads in [1, 2, 20, 100, 1000] {
        for finished in [0, 1, 5, 40] {
            check_carries::<Sum<u32>>(heads, finished, StdRng::random);
            check_carries::<Sum<u64>>(heads, finished, StdRng::random);
            // The bits of a sum of floats depend on the order.
            check_carries::<FloatSum<u32>>(heads, finished, |random| random.random::<f32>().to_bits());
            check_carries::<FloatSum<u64>>(heads, finished, |random| random.random::<f64>().to_bits());
        }
    }
}
