//! The merge sort in the emulator against the standard library's stable sort.

mod common;
use common::*;
use cuda_std::emulator::{Emulator, Fault};
use kernels_gpu::sort::block_sort::block_sort;
use kernels_gpu::sort::merge_pass::{merge_runs, path_runs};
use kernels_gpu::sort::network::sort_registers;
use kernels_gpu::{tile, tuning};

/// The sort as the host launches it: tiles, then passes between two buffers.
fn run<K: TestKey, const NT: usize, const VT: usize>(seed: u64, keys: &[K]) -> Result<Vec<K>, Fault> {
    let (n, tile_keys) = (keys.len(), NT * VT);
    let tiles = n.div_ceil(tile_keys);
    let mut emulator = Emulator::new(seed);
    let (mut from, mut to) = (emulator.buffer(keys), emulator.uninit::<K>(n));
    if n == 0 {
        return emulator.read(from);
    }
    let shared = tile::shared_bytes::<K>(tile_keys);
    // SAFETY: the arguments here and below are those that the kernels' documentation asks for.
    emulator.launch("block_sort", tiles as u32, NT as u32, shared, || unsafe {
        block_sort::<K, NT, VT>(from.as_mut_ptr(), from.as_mut_ptr(), n)
    })?;
    let mut run = tile_keys;
    while run < n {
        let splits = emulator.uninit::<usize>(tiles);
        // SAFETY: as above.
        emulator.launch("path_runs", tiles.div_ceil(32) as u32, 32, 0, || unsafe {
            path_runs::<K>(from.as_ptr(), n, run, splits.as_mut_ptr(), tiles, tile_keys)
        })?;
        // SAFETY: as above.
        emulator.launch("merge_runs", tiles as u32, NT as u32, shared, || unsafe {
            merge_runs::<K, NT, VT>(from.as_ptr(), n, run, to.as_mut_ptr(), splits.as_ptr())
        })?;
        std::mem::swap(&mut from, &mut to);
        run *= 2;
    }
    emulator.read(from)
}

fn check<K: TestKey, const NT: usize, const VT: usize>(sizes: &[usize]) {
    for &n in sizes {
        for keys in Keys::ALL {
            let seed = fresh_seed();
            let input = keys.random::<K>(n, seed);
            let at = || format!("{} {n} in tiles of {NT} x {VT}, {keys:?}, seed {seed}", K::NAME);
            let found = run::<K, NT, VT>(seed, &input).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
            assert!(bits(&found) == bits(&sorted(input)), "{}", at());
        }
    }
}

#[test]
fn small_tiles_and_many_passes() {
    fn all<K: TestKey>() {
        check::<K, 4, 3>(&[0, 1, 2, 11, 12, 13, 23, 24, 25, 100, 12 * 16, 12 * 16 + 1, 12 * 17 - 1, 500]);
        check::<K, 32, 5>(&[1, 159, 160, 161, 320, 481, 160 * 5 + 3]);
    }
    for_all_types!(all());
}

#[test]
fn the_tiles_that_ship() {
    const W4: tuning::Tile = tuning::ROW.sort_4;
    const W8: tuning::Tile = tuning::ROW.sort_8;
    fn all<K: TestKey, const NT: usize, const VT: usize>() {
        let tile = NT * VT;
        check::<K, NT, VT>(&[tile - 1, tile, 2 * tile + tile / 2]);
    }
    all::<u32, { W4.threads }, { W4.values }>();
    all::<i32, { W4.threads }, { W4.values }>();
    all::<f32, { W4.threads }, { W4.values }>();
    all::<u64, { W8.threads }, { W8.values }>();
    all::<i64, { W8.threads }, { W8.values }>();
    all::<f64, { W8.threads }, { W8.values }>();
}

/// A network that sorts every input of zeros and ones sorts every input (the 0-1 principle; Knuth, volume 3, 5.3.4).
#[test]
fn networks_sort_all_zeros_and_ones() {
    fn check<const N: usize>() {
        for pattern in 0u32..1 << N {
            let mut keys: [u32; N] = std::array::from_fn(|i| pattern >> i & 1);
            sort_registers(&mut keys);
            assert!(keys.is_sorted(), "{N} keys, input {pattern:b}: {keys:?}");
            assert_eq!(keys.iter().sum::<u32>(), pattern.count_ones(), "{N} keys, input {pattern:b}");
        }
    }
    check::<1>();
    check::<2>();
    check::<3>();
    check::<5>();
    check::<7>();
    check::<8>();
    check::<11>();
    check::<15>();
    check::<16>();
    check::<17>();
    check::<19>();
}
