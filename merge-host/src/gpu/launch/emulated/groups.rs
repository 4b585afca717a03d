//! Unique keys, run lengths and reductions by key, against loops over the keys.

use super::super::groups;
use super::keys::*;
use super::*;
use crate::{Reduction, Summand};
use kernels_gpu::tuning::{ROW, Tile};

/// `n` keys in groups of up to `most` equal keys, in no order. The first key of a group differs from the key before it.
fn in_groups<K: TestKey>(n: usize, most: usize, seed: u64) -> Vec<K> {
    let mut random = StdRng::seed_from_u64(seed);
    let different: Vec<K> = Keys::Any.random(n + 1, seed);
    let mut keys = Vec::with_capacity(n);
    for key in different {
        let len = random.random_range(1..=most).min(n - keys.len());
        if keys.last().is_none_or(|last: &K| raw_bits(&[*last]) != raw_bits(&[key])) {
            keys.extend(std::iter::repeat_n(key, len));
        }
    }
    keys
}

/// Where groups begin, and the end.
fn begins<K: TestKey>(keys: &[K]) -> Vec<usize> {
    let bits = raw_bits(keys);
    let is_head = |&i: &usize| i == 0 || i == bits.len() || bits[i] != bits[i - 1];
    (0..=bits.len()).filter(is_head).collect()
}

/// The results of the launches.
struct Output<K: Word, V: Word> {
    device: Device,
    keys: Buffer<K>,
    values: Buffer<V>,
    count: Buffer<u64>,
}

impl<K: TestKey, V: Word> Output<K, V> {
    /// The output of `work` for `keys`, with values of type `W`.
    fn of<W: Word>(
        keys: &[K],
        values: &[W],
        seed: u64,
        work: impl FnOnce(&Emulated<'_>, Arrays, Arrays, Address, Address),
    ) -> Self {
        let (device, n) = (Device::new(seed), keys.len());
        let at = Arrays {
            keys: address(device.array(keys)),
            values: address(device.array(values)),
            len: n,
            value_bytes: size_of::<W>(),
        };
        let (keys, values) = (device.uninit::<K>(n), device.uninit::<V>(if size_of::<V>() > 0 { n } else { 0 }));
        let count = device.array(&[u64::MAX]);
        let out = Arrays { keys: address(keys), values: address(values), len: n, value_bytes: size_of::<V>() };
        let workspace = device.workspace(groups::workspace_bytes::<K>(n));
        work(&device.queue(), at, out, address(count), workspace);
        Self { device, keys, values, count }
    }

    fn check(self, keys: &[K], values: &[V], what: &str) {
        let what = || format!("{what}, seed {}", self.device.seed);
        assert_eq!(self.device.read(self.count), [keys.len() as u64], "{}", what());
        assert!(self.device.elements(self.keys, keys.len()) == raw_bits(keys), "keys: {}", what());
        if size_of::<V>() > 0 {
            let found = self.device.elements(self.values, keys.len());
            assert!(found == raw_bits(values), "values: {found:?}, {:?}: {}", raw_bits(values), what());
        }
    }
}

fn check_unique<K: TestKey, V: Word>(n: usize, most: usize) {
    let seed = fresh_seed();
    let keys: Vec<K> = in_groups(n, most, seed);
    let values: Vec<V> = (0..if size_of::<V>() > 0 { n } else { 0 }).map(|i| V::from_register(3 * i as u64)).collect();
    let output = Output::<K, V>::of(&keys, &values, seed, |queue, at, out, count, workspace| {
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        unsafe { groups::unique::<K>(queue, at, out, count, workspace).expect("all is launched") };
    });
    let mut begins = begins(&keys);
    begins.pop();
    let first: Vec<K> = begins.iter().map(|&i| keys[i]).collect();
    let of_first: Vec<V> = begins.iter().map(|&i| V::from_register(3 * i as u64)).collect();
    output.check(&first, &of_first, &format!("{n} {} keys in groups of up to {most}", <K as crate::Key>::NAME));
}

fn check_lengths<K: TestKey>(n: usize, most: usize) {
    let seed = fresh_seed();
    let keys: Vec<K> = in_groups(n, most, seed);
    let output = Output::<K, u64>::of::<()>(&keys, &[], seed, |queue, at, out, count, workspace| {
        // SAFETY: the arrays have the lengths that the kernels are told, and the emulator checks accesses.
        unsafe { groups::run_lengths::<K>(queue, at, out, count, workspace).expect("all is launched") };
    });
    let begins = begins(&keys);
    let (first, lengths): (Vec<K>, Vec<u64>) =
        begins.windows(2).map(|ends| (keys[ends[0]], (ends[1] - ends[0]) as u64)).unzip();
    output.check(&first, &lengths, &format!("{n} {} keys in groups of up to {most}", <K as crate::Key>::NAME));
}

/// Sums of integers below a thousand, so that sums of floats are exact, and extremes of any values.
fn check_reduction<K: TestKey, V: TestKey + Summand>(reduction: Reduction, n: usize, most: usize, small: fn(i32) -> V) {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(!seed);
    let keys: Vec<K> = in_groups(n, most, seed);
    let values: Vec<V> = match reduction {
        Reduction::Sum => (0..n).map(|_| small(random.random_range(-1000..1000))).collect(),
        _ => Keys::Any.random(n, !seed),
    };
    let output = Output::<K, V>::of(&keys, &values, seed, |queue, at, out, count, workspace| {
        // SAFETY: the arrays have the lengths that the kernels are told, and the emulator checks accesses.
        unsafe { groups::reduce_by_key::<K, V>(queue, reduction, at, out, count, workspace).expect("all is launched") };
    });
    let begins = begins(&keys);
    let reduced = |values: &[V]| match reduction {
        Reduction::Sum => values.iter().copied().reduce(V::plus).unwrap(),
        Reduction::Min => values.iter().copied().min_by(V::compare).unwrap(),
        Reduction::Max => values.iter().copied().max_by(V::compare).unwrap(),
    };
    let (first, totals): (Vec<K>, Vec<V>) =
        begins.windows(2).map(|ends| (keys[ends[0]], reduced(&values[ends[0]..ends[1]]))).unzip();
    let (key, value) = (<K as crate::Key>::NAME, <V as crate::Key>::NAME);
    output.check(&first, &totals, &format!("{reduction} of {n} {value} of {key} keys in groups of up to {most}"));
}

/// Numbers of keys around the ends of tiles, and longest groups: much shorter and longer than a tile.
fn shapes(tile: Tile) -> impl Iterator<Item = (usize, usize)> {
    let tile = tile.keys();
    let numbers = [0, 1, 2, 33, tile - 1, tile, tile + 1, 3 * tile - 1, 3 * tile + 1];
    numbers.into_iter().flat_map(move |n| [1, 50, tile, 10 * tile].map(|most| (n, most)))
}

/// More tiles than a warp has lanes, in one group and in several.
fn many_tiles(tile: Tile) -> [(usize, usize); 2] {
    let tile = tile.keys();
    [(75 * tile, 100 * tile), (70 * tile + 5, 30 * tile)]
}

#[test]
fn the_first_of_equal_keys_is_kept_with_its_value() {
    fn all<K: TestKey>() {
        for (n, most) in shapes(ROW.unique.of(size_of::<K>(), 0)) {
            check_unique::<K, ()>(n, most);
        }
        for (n, most) in shapes(ROW.unique.of(size_of::<K>(), 4)) {
            check_unique::<K, u32>(n, most);
            check_unique::<K, u64>(n, most);
        }
    }
    for_all_types!(all());
}

#[test]
fn lengths_of_groups_are_counted_over_tiles() {
    fn all<K: TestKey>() {
        for (n, most) in shapes(ROW.run_lengths.of(size_of::<K>(), 0)) {
            check_lengths::<K>(n, most);
        }
    }
    for_all_types!(all());
    for (n, most) in many_tiles(ROW.run_lengths.of(8, 0)) {
        check_lengths::<f64>(n, most);
    }
}

#[test]
fn values_of_equal_keys_are_reduced() {
    for reduction in Reduction::ALL {
        for (n, most) in shapes(ROW.reduce.of(4, 4)) {
            check_reduction::<u32, u32>(reduction, n, most, |small| small as u32);
        }
        for (n, most) in shapes(ROW.reduce.of(4, 8)) {
            check_reduction::<f32, i64>(reduction, n, most, |small| small.into());
        }
        for (n, most) in shapes(ROW.reduce.of(8, 4)) {
            check_reduction::<i64, f32>(reduction, n, most, |small| small as f32);
        }
        for (n, most) in shapes(ROW.reduce.of(8, 8)).chain(many_tiles(ROW.reduce.of(8, 8))) {
            check_reduction::<f64, f64>(reduction, n, most, |small| small.into());
        }
    }
    for reduction in Reduction::ALL {
        check_reduction::<u32, i32>(reduction, 1000, 9, |small| small);
        check_reduction::<u64, u64>(reduction, 1000, 9, |small| small as u64);
    }
}

#[test]
fn zeros_of_both_signs_and_nans_are_groups_of_their_own() {
    let keys = [-0.0f32, -0.0, 0.0, f32::NAN, f32::NAN, -f32::NAN];
    let output = Output::<f32, u64>::of::<()>(&keys, &[], 1, |queue, at, out, count, workspace| {
        // SAFETY: the arrays have the lengths that the kernels are told, and the emulator checks accesses.
        unsafe { groups::run_lengths::<f32>(queue, at, out, count, workspace).expect("all is launched") };
    });
    output.check(&[-0.0, 0.0, f32::NAN, -f32::NAN], &[2, 1, 2, 1], "special floats");
}

#[test]
fn the_sum_of_floats_is_the_same_each_time() {
    let tile = ROW.reduce.of(4, 4).keys();
    let (keys, values) = (vec![7u32; 40 * tile], Keys::Any.random::<f32>(40 * tile, 5));
    let values: Vec<f32> =
        values.into_iter().map(|value| value.fract()).map(|v| if v.is_nan() { 0.1 } else { v }).collect();
    let sums: HashSet<u32> = (0..4)
        .map(|seed| {
            let output = Output::<u32, f32>::of(&keys, &values, seed, |queue, at, out, count, workspace| {
                // SAFETY: the arrays have the lengths that the kernels are told, and the emulator checks accesses.
                unsafe { groups::reduce_by_key::<u32, f32>(queue, Reduction::Sum, at, out, count, workspace) }
                    .expect("all is launched");
            });
            output.device.elements(output.values, 1)[0] as u32
        })
        .collect();
    assert_eq!(sums.len(), 1);
}
