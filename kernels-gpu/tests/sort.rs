//! The merge sort in the emulator against the standard library's stable sort.

mod common;
use common::*;
use cuda_std::Word;
use cuda_std::emulator::{Emulator, Fault};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::sort::block_sort::block_sort;
use kernels_gpu::sort::merge_pass::{self, merge_runs, split_runs};
use kernels_gpu::sort::network::sort_registers;
use kernels_gpu::sort::runs::{Runs, levels_of_pass};
use kernels_gpu::{tile, tuning};

/// The sort as the host launches it: tiles, then passes between two buffers.
fn run<K: TestKey, const NT: usize, const VT: usize>(seed: u64, keys: &[K], descending: bool) -> Result<Vec<K>, Fault>
where
    K::Bits: Bits,
{
    let (n, slots) = (keys.len(), NT * VT);
    let mut emulator = Emulator::new(seed);
    let bits: Vec<K::Bits> = keys.iter().map(|key| Word::from_register(key.to_register())).collect();
    let (mut from, mut to) = (emulator.buffer(&bits), emulator.uninit::<K::Bits>(n));
    let read = |emulator: &mut Emulator, from| -> Result<Vec<K>, Fault> {
        Ok(emulator.read(from)?.into_iter().map(|bits: K::Bits| K::from_register(bits.to_register())).collect())
    };
    if n == 0 {
        return read(&mut emulator, from);
    }
    let coding = Coding::of::<K>(descending);
    let mut levels = n.div_ceil(slots).next_power_of_two().trailing_zeros();
    let decode = if levels == 0 { coding } else { Coding::NONE };
    // SAFETY: the arguments here and below are those that the kernels' documentation asks for.
    emulator.launch("block_sort", n.div_ceil(slots) as u32, NT as u32, tile::shared_bytes::<K>(slots), || unsafe {
        let (encode, decode) = ((coding.always, coding.when_negative), (decode.always, decode.when_negative));
        block_sort::<_, NT, VT>(from.as_mut_ptr(), from.as_mut_ptr(), n, encode.0, encode.1, decode.0, decode.1)
    })?;
    let mut run = slots;
    while levels > 0 {
        let k = 1 << levels_of_pass(levels);
        let runs = Runs { n, run, k, tile_keys: merge_pass::tile_keys(slots, VT, k) };
        let splits = emulator.uninit::<u32>(runs.tiles() * k as usize);
        let warps = runs.tiles().div_ceil(3);
        // SAFETY: as above.
        emulator.launch("split_runs", warps.div_ceil(2) as u32, 64, 0, || unsafe {
            split_runs(from.as_ptr(), n, run, k, runs.tile_keys, splits.as_mut_ptr(), 3)
        })?;
        levels -= k.trailing_zeros();
        let decode = if levels == 0 { coding } else { Coding::NONE };
        let shared = merge_pass::shared_bytes::<K::Bits>(slots);
        // SAFETY: as above.
        emulator.launch("merge_runs", runs.tiles() as u32, NT as u32, shared, || unsafe {
            let (always, when_negative) = (decode.always, decode.when_negative);
            merge_runs::<_, NT, VT>(from.as_ptr(), n, run, k, to.as_mut_ptr(), splits.as_ptr(), always, when_negative)
        })?;
        std::mem::swap(&mut from, &mut to);
        run *= k as usize;
    }
    read(&mut emulator, from)
}

fn check<K: TestKey, const NT: usize, const VT: usize>(sizes: &[usize]) {
    for &n in sizes {
        for keys in Keys::ALL {
            let seed = fresh_seed();
            let input = keys.random::<K>(n, seed);
            let at = || format!("{} {n} in tiles of {NT} x {VT}, {keys:?}, seed {seed}", K::NAME);
            let mut expected = sorted(input.clone());
            for descending in [false, true] {
                let found = run::<K, NT, VT>(seed, &input, descending).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
                assert!(bits(&found) == bits(&expected), "{}, descending: {descending}", at());
                expected.reverse();
            }
        }
    }
}

#[test]
fn small_tiles_and_many_passes() {
    fn all<K: TestKey>() {
        check::<K, 32, 5>(&[0, 1, 2, 159, 160, 161, 320, 481, 160 * 5 + 3, 160 * 16, 160 * 32 + 1, 160 * 67]);
        check::<K, 64, 3>(&[191, 193, 1000, 192 * 32 + 191]);
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
