//! The radix sort kernel in the emulator, against the standard library's stable sort. Tiles are so small that there are
//! more tiles than a group of the look-back has.

use crate::common::*;
use cuda_std::Word;
use cuda_std::emulator::{Buffer, Emulator, Fault};
use kernels_gpu::elements::Elements;
use kernels_gpu::kernels::sort::detect_runs::DETECTION_WORDS;
use kernels_gpu::kernels::sort::radix::look_back::own_tiles;
use kernels_gpu::kernels::sort::radix::sort_by_radix::sort_by_radix;
use kernels_gpu::kernels::sort::radix::{CLEARED_WORDS, Job, SWEEPS, published_words, sweep};
use kernels_gpu::key::Coding;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::LazyLock;

/// Threads of all blocks, and keys per thread.
const NT: usize = 128;
const VT: usize = 5;
const TILE: usize = NT * VT;

/// Words of a detection: keys that are in no order, and keys that are divided.
const IN_NO_ORDER: [u32; DETECTION_WORDS] = [0, 1, 1, 0, 0, 0];
const DIVIDED: [u32; DETECTION_WORDS] = [0, 1, 1, 1, 0, 0];

/// The initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// No values.
    None,
    /// Three times the index of the key, so that indices would be different values.
    Given,
    /// Uninitialized: the sort writes the indices of the keys.
    Indices,
}

/// Sorted keys with their values.
type Sorted<K> = (Vec<K>, Vec<u64>);

/// The sort as launched on the host.
fn run<K: TestKey<Bits = u32>, V: Word>(
    seed: u64,
    keys: &[K],
    descending: bool,
    values: Values,
    (known, sweeps): ([u32; DETECTION_WORDS], u32),
) -> Result<Sorted<K>, Fault> {
    let n = keys.len();
    let mut emulator = Emulator::new(seed);
    let bits: Vec<u32> = keys.iter().map(|key| key.to_raw()).collect();
    let (keys, scratch_keys) = (emulator.buffer(&bits), emulator.uninit::<u32>(n));
    let given: Vec<V> = (0..n as u64).map(|i| V::from_register(3 * i)).collect();
    let of_values = if values == Values::None { 0 } else { n };
    let at_values = match values {
        Values::Given => emulator.buffer(&given),
        Values::None | Values::Indices => emulator.uninit::<V>(of_values),
    };
    let values_scratch = emulator.uninit::<V>(of_values);
    let words = emulator.buffer(&[0; CLEARED_WORDS]);
    // 8-byte words provide the alignment. Their initial contents do not matter.
    let published = emulator.buffer(&vec![u64::MAX; published_words(n, TILE).div_ceil(2)]);
    let order = emulator.buffer(&known);
    let side =
        |keys: &Buffer<u32>, values: &Buffer<V>| Elements { keys: keys.as_mut_ptr(), values: values.as_mut_ptr() };
    let (at, scratch) = (side(&keys, &at_values), side(&scratch_keys, &values_scratch));
    let job = Job {
        words: words.as_mut_ptr(),
        published: published.as_mut_ptr().cast(),
        order: order.as_mut_ptr(),
        n: n as u32,
        tiles: n.div_ceil(TILE) as u32,
        shares: 3,
        sweeps,
    };
    let coding = Coding::<u32>::of::<K>(descending);
    let shared_bytes = sweep::shared_bytes(NT, VT, size_of::<u32>(), size_of::<V>());
    let indexes = u32::from(values == Values::Indices);
    // 4 blocks for all tiles, or one block per tile.
    let blocks = if seed.is_multiple_of(2) { 4 } else { n.div_ceil(TILE) as u32 };
    // SAFETY: `job` has `CLEARED_WORDS` words, which are 0, and `published_words` words aligned to 8 bytes. Both sides
    // have capacity for `n` keys and values. The launch has the shared memory of tiles of `NT * VT` keys.
    emulator.launch("sort_by_radix", blocks, NT as u32, shared_bytes, || unsafe {
        sort_by_radix::<u32, V, NT, VT, { own_tiles(NT) }>(job, at, scratch, coding, indexes)
    })?;
    // After an odd number of passes, the result is in the scratch arrays.
    let (keys, at_values) = if sweeps.is_multiple_of(2) { (keys, at_values) } else { (scratch_keys, values_scratch) };
    let sorted = emulator.read(keys)?.into_iter().map(K::from_raw).collect();
    let values = match values {
        Values::None => vec![],
        Values::Given | Values::Indices => emulator.read(at_values)?.into_iter().map(V::to_register).collect(),
    };
    Ok((sorted, values))
}

/// Sorts and compares, in either order or in both.
fn check<K: TestKey<Bits = u32>, V: Word>(keys: &[K], seed: u64, values: Values, what: &str) {
    for descending in tried([false, true]) {
        check_order::<K, V>(keys, seed, values, (descending, SWEEPS), what);
    }
}

/// Sorts in one order, in a number of passes, and compares.
fn check_order<K: TestKey<Bits = u32>, V: Word>(
    keys: &[K],
    seed: u64,
    values: Values,
    (descending, sweeps): (bool, u32),
    what: &str,
) {
    let what = || {
        let (n, bytes) = (keys.len(), size_of::<V>());
        format!("{what}, n = {n}, values of {bytes}: {values:?}, descending: {descending}, seed {seed}")
    };
    let (sorted, moved) = run::<K, V>(seed, keys, descending, values, (IN_NO_ORDER, sweeps))
        .unwrap_or_else(|fault| panic!("{}: {fault}", what()));
    let mut expected: Vec<u64> = (0..keys.len() as u64).collect();
    let order = |&i: &u64, &j: &u64| keys[i as usize].compare(&keys[j as usize]);
    expected.sort_by(|i, j| if descending { order(j, i) } else { order(i, j) });
    assert!(bits(&sorted) == bits(&expected.iter().map(|&i| keys[i as usize]).collect::<Vec<_>>()), "{}", what());
    match values {
        Values::None => (),
        Values::Given => assert!(moved == expected.iter().map(|i| 3 * i).collect::<Vec<_>>(), "{}", what()),
        Values::Indices => assert!(moved == expected, "{}", what()),
    }
}

/// Checks keys without values, with values of each size, and with indices.
fn check_all<K: TestKey<Bits = u32>>(keys: &[K], seed: u64, what: &str) {
    check::<K, ()>(keys, seed, Values::None, what);
    check::<K, u32>(keys, seed, Values::Given, what);
    check::<K, u32>(keys, seed, Values::Indices, what);
    check::<K, u64>(keys, seed, Values::Given, what);
}

/// Lengths around multiples of tiles, and for more than two groups of 32 tiles.
const LENGTHS: [usize; 6] = [1, TILE - 1, TILE, TILE + 1, 33 * TILE + 1, 66 * TILE - 1];

/// Checks each of three types at short lengths, and one type at each long length. The type rotates with the lengths and
/// with the runs.
fn check_distributions<K: TestKey<Bits = u32>>(which: u64) {
    static FIRST: LazyLock<u64> = LazyLock::new(fresh_seed);
    let seed = fresh_seed();
    for (i, keys) in (0..).zip(Keys::ALL) {
        for (j, n) in (0..).zip(LENGTHS) {
            if n <= TILE + 1 || (*FIRST % 3 + i + j) % 3 == which {
                let seed = seed.wrapping_add(i);
                check_all::<K>(&keys.random(n, seed), seed, &format!("{keys:?} {}", K::NAME));
            }
        }
    }
}

#[test]
fn all_distributions_of_unsigned_keys_are_sorted() {
    check_distributions::<u32>(0);
}

#[test]
fn all_distributions_of_signed_keys_are_sorted() {
    check_distributions::<i32>(1);
}

#[test]
fn all_distributions_of_floats_are_sorted() {
    check_distributions::<f32>(2);
}

#[test]
fn keys_with_one_digit_in_some_sweeps_are_sorted() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    for shift in [0, 8, 16, 24] {
        // All keys of a tile have one digit in three passes, and nearly all keys in the other pass.
        let mut key = |i: u32| if i.is_multiple_of(40) { random.random_range(0..256) << shift } else { 7 << shift };
        let keys: Vec<u32> = (0..3 * TILE as u32).map(&mut key).collect();
        check_all(&keys, seed, &format!("digits at bit {shift}"));
    }
}

/// The highest bits are 0, and have no passes.
#[test]
fn keys_of_few_bits_take_few_sweeps() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    for (bits, n) in [1, 8, 9, 16, 17, 24].into_iter().flat_map(|bits| LENGTHS.map(|n| (bits, n))) {
        let keys: Vec<u32> = (0..n).map(|_| random.random::<u32>() >> (u32::BITS - bits)).collect();
        let (order, what) = ((false, bits.div_ceil(8)), format!("{bits} bits"));
        match (n > TILE + 1, bits % 3) {
            (true, 0) => check_order::<u32, ()>(&keys, seed, Values::None, order, &what),
            (true, 1) => check_order::<u32, u64>(&keys, seed, Values::Indices, order, &what),
            _ => check_order::<u32, u32>(&keys, seed, Values::Given, order, &what),
        }
    }
}

#[test]
fn what_is_divided_or_in_order_is_left_as_it_is() {
    let seed = fresh_seed();
    let keys: Vec<u32> = Keys::Any.random(5 * TILE, seed);
    // Either there are not many descents, or there is no ascent.
    for known in [DIVIDED, [0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]] {
        let (left, _) =
            run::<u32, ()>(seed, &keys, false, Values::None, (known, 4)).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(left, keys, "{known:?}, seed {seed}");
    }
}
