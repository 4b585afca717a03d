//! The input that provokes bank conflicts: the emulator counts them in the kernels, and compares with random keys.

#[path = "../../../tests/src/bank_conflicts.rs"]
mod input;

use cuda_std::emulator::{Access, Buffer, Emulator, Fault, Space};
use input::conflicting;
use kernels_gpu::elements::Elements;
use kernels_gpu::kernels::sort::block_sort::{self, block_sort};
use kernels_gpu::kernels::sort::merge_pass::merge_runs::{self, merge_runs};
use kernels_gpu::kernels::sort::merge_pass::runs_in_tiles;
use kernels_gpu::kernels::sort::payload::Payload;
use kernels_gpu::kernels::sort::payload::nothing::Nothing;
use kernels_gpu::kernels::sort::runs::Passes;
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning::{ROW, Tile};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::ptr;

/// Wavefronts per request in a launch, of the source line that reads shared memory most: of the merges, with a part of
/// the searches for where threads begin.
fn wavefronts_per_read(launch: impl FnOnce(&mut Emulator) -> Result<(), Fault>) -> f64 {
    let mut emulator = Emulator::new(1);
    emulator.set_profiled(true);
    launch(&mut emulator).unwrap_or_else(|fault| panic!("{fault}"));
    let mut rows = emulator.profile().rows;
    rows.retain(|row| (row.space, row.access) == (Space::Shared, Access::Read));
    let row = rows.iter().max_by_key(|row| row.requests).expect("a kernel reads shared memory");
    row.units as f64 / row.requests as f64
}

/// The keys, and values of no bytes.
fn elements<B: Bits>(keys: Buffer<B>) -> Elements<B, ()> {
    Elements { keys: keys.as_mut_ptr(), values: ptr::dangling_mut() }
}

fn keys_of<B: Bits>(numbers: &[u32]) -> Vec<B> {
    numbers.iter().map(|&number| B::from_register(number.into())).collect()
}

/// Wavefronts per read of the first phase, with the keys of each thread that [`conflicting`] assumes.
fn of_tiles<B: Bits, const NT: usize, const VT: usize>(numbers: &[u32]) -> f64
where
    Nothing: Payload<B, (), NT, VT>,
{
    let n = numbers.len();
    wavefronts_per_read(|emulator| {
        let at = elements(emulator.buffer(&keys_of::<B>(numbers)));
        let bytes = block_sort::shared_bytes(size_of::<B>(), 0, NT * VT);
        let (blocks, order) = (n.div_ceil(NT * VT) as u32, ptr::null_mut());
        // SAFETY: `at` has `n` keys, and there is a block of `NT` threads for each tile, with its shared memory.
        emulator.launch("block_sort", blocks, NT as u32, bytes, || unsafe {
            block_sort::<B, (), Nothing, NT, VT>(at, at, n, Coding::NONE, Coding::NONE, order, 0)
        })
    })
}

/// Wavefronts per read of a pass over runs of `run` keys, in its first tiles. Sorts the runs first.
fn of_pass<B: Bits, const NT: usize, const VT: usize>(numbers: &mut [u32], run: usize, k: u32) -> f64
where
    Nothing: Payload<B, (), NT, VT>,
{
    const TILES: usize = 2;
    numbers.chunks_mut(run).for_each(<[u32]>::sort);
    let shape = Tile { threads: NT, items_per_thread: VT };
    let runs = runs_in_tiles(numbers.len(), run, k, shape, ROW.rank_tolerance);
    wavefronts_per_read(|emulator| {
        let from = elements(emulator.buffer(&keys_of::<B>(numbers)));
        let to = elements(emulator.uninit(numbers.len()));
        let bytes = merge_runs::shared_bytes(size_of::<B>(), 0, NT * VT);
        // SAFETY: `from` and `to` have the keys of `runs`. Blocks have `NT` threads and the shared memory of a tile.
        // The tiles without a block stay unwritten, and nothing reads them.
        emulator.launch("merge_runs", TILES as u32, NT as u32, bytes, || unsafe {
            let (splits, order) = (ptr::null(), ptr::null_mut());
            merge_runs::<B, (), Nothing, NT, VT, false>(from, to, runs, splits, Coding::NONE, order)
        })
    })
}

/// Checks that the conflicts of `conflicting` keys exceed those of random keys by these factors, in the first phase and
/// in the passes over 32 and over 48 tiles.
fn check<B: Bits, const NT: usize, const VT: usize, const RUNS_NT: usize, const RUNS_VT: usize>(least: [f64; 2])
where
    Nothing: Payload<B, (), NT, VT> + Payload<B, (), RUNS_NT, RUNS_VT>,
{
    let block = Tile { threads: NT, items_per_thread: VT };
    let shape = Tile { threads: RUNS_NT, items_per_thread: RUNS_VT };
    let keys = |n: usize| {
        let mut random: Vec<u32> = (0..n as u32).collect();
        random.shuffle(&mut StdRng::seed_from_u64(1));
        [conflicting(n, block, shape, size_of::<B>()), random]
    };
    let compare = |what: &str, [bad, random]: [f64; 2], least: f64| {
        println!("{what}, {block:?}, {shape:?}: {bad:.1}, random {random:.1}");
        assert!(bad > least * random, "{what}, {block:?}, {shape:?}: {bad} for {random}");
    };
    compare("first phase", keys(2 * NT * VT).map(|keys| of_tiles::<B, NT, VT>(&keys)), least[0]);
    for tiles in [32, 48] {
        let (mut keys, mut run) = (keys(tiles * NT * VT), NT * VT);
        for k in Passes::of(tiles) {
            let found = keys.each_mut().map(|keys| of_pass::<B, RUNS_NT, RUNS_VT>(keys, run, k));
            compare(&format!("pass of {k} runs"), found, least[1]);
            run *= k as usize;
        }
    }
}

/// The shapes that ship.
macro_rules! check {
    ($B:ty, $block:ident, $runs:ident, $least:expr) => {{
        const BLOCK: Tile = ROW.$block.of(size_of::<$B>(), 0);
        const RUNS: Tile = ROW.$runs.of(size_of::<$B>(), 0);
        check::<$B, { BLOCK.threads }, { BLOCK.items_per_thread }, { RUNS.threads }, { RUNS.items_per_thread }>($least)
    }};
}

#[test]
fn conflicts_of_many_keys() {
    check!(u32, block_sort, merge_runs, [4.4, 3.2]);
    check!(u64, block_sort, merge_runs, [2.5, 1.9]);
}

/// With few keys per thread, lanes begin at two or four banks instead of one; with five keys they
/// conflict no more than random keys do.
#[test]
fn conflicts_of_few_keys() {
    check!(u32, block_sort_small, merge_runs_small, [1.2, 0.9]);
    check!(u64, block_sort_small, merge_runs_small, [1.5, 1.35]);
}

#[test]
fn each_number_once_for_any_length() {
    let (block, runs) = (Tile { threads: 64, items_per_thread: 5 }, Tile { threads: 64, items_per_thread: 7 });
    for bytes in [4, 8] {
        for n in [0, 1, 2, 319, 320, 321, 640, 961, 320 * 16 + 3, 320 * 32, 320 * 33 + 1, 320 * 1025 + 77] {
            let mut keys = conflicting(n, block, runs, bytes);
            assert_eq!(keys, conflicting(n, block, runs, bytes), "not the same again, {n}");
            keys.sort();
            assert!(keys.iter().copied().eq(0..n as u32), "{n}");
        }
    }
}
