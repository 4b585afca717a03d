//! The first k keys, against the standard library's stable sort.

use super::super::top_k;
use super::keys::*;
use super::*;
use crate::SortOrder;
use kernels_gpu::kernels::top_k::CHUNK_UNIT as TILE;
use std::cmp::Ordering;

/// What comes with the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    Nothing,
    Values,
    Indices,
}

/// Selects the first `k` of these keys in both orders.
fn check<K: TestKey, V: Word>(keys: &[K], k: usize, with: With, seed: u64) -> Device {
    let n = keys.len();
    let device = Device::new(seed);
    for order in [SortOrder::Ascending, SortOrder::Descending] {
        let compare = |i: &usize, j: &usize| match order {
            SortOrder::Ascending => keys[*i].compare(&keys[*j]),
            SortOrder::Descending => keys[*j].compare(&keys[*i]),
        };
        let mut expected: Vec<usize> = (0..n).collect();
        expected.sort_by(|i, j| compare(i, j).then(Ordering::Equal));
        expected.truncate(k);
        let value = |i: usize| V::from_register(if with == With::Values { 3 * i as u64 + 1 } else { i as u64 });
        let values: Vec<V> = (0..n).map(value).collect();
        let from = device.array(keys);
        let from_values = if with == With::Values { address(device.array(&values)) } else { 0 };
        let (out, out_values) = (device.uninit::<K>(k), device.uninit::<V>(if with == With::Nothing { 0 } else { k }));
        let value_bytes = if with == With::Nothing { 0 } else { size_of::<V>() };
        let arrays = |keys, values, len| Arrays { keys, values, len, value_bytes };
        let workspace = device.workspace(top_k::workspace_bytes::<K>(n, k, value_bytes));
        // SAFETY: the arrays are the device's, and nothing else uses them.
        let queued = unsafe {
            let (from, out) = (arrays(address(from), from_values, n), arrays(address(out), address(out_values), k));
            top_k::top_k::<K>(&device.queue(), order, from, out, workspace)
        };
        queued.unwrap();
        let what = format!("{k} of {n} {}, {order:?}, seed {seed}", <K as crate::Key>::NAME);
        let of_keys: Vec<K> = expected.iter().map(|&i| keys[i]).collect();
        assert!(raw_bits(&device.read(out)) == raw_bits(&of_keys), "keys: {what}");
        if with != With::Nothing {
            let of_values: Vec<V> = expected.iter().map(|&i| values[i]).collect();
            assert!(raw_bits(&device.read(out_values)) == raw_bits(&of_values), "values: {what}");
        }
    }
    device
}

fn check_all<K: TestKey>() {
    let seed = fresh_seed();
    let kinds = [Keys::Any, Keys::Few, Keys::Equal, Keys::Nested, Keys::Descending];
    for (n, ks) in [(1, vec![0, 1]), (2, vec![1, 2]), (100, vec![1, 7, 99, 100]), (1000, vec![500])] {
        for (i, keys) in kinds.into_iter().enumerate() {
            let of_kind: Vec<K> = keys.random(n, seed);
            for &k in &ks {
                match (i + k) % 3 {
                    0 => check::<K, u32>(&of_kind, k, With::Nothing, seed),
                    1 => check::<K, u64>(&of_kind, k, With::Values, seed),
                    _ => check::<K, u32>(&of_kind, k, With::Indices, seed),
                };
            }
        }
    }
}

#[test]
fn tiles_one_after_the_other() {
    let seed = fresh_seed();
    for (n, k) in [(TILE - 1, 5), (TILE, TILE), (TILE + 1, TILE), (3 * TILE + 77, TILE + 3)] {
        check::<u32, u32>(&Keys::Any.random::<u32>(n, seed), k, With::Values, seed);
        check::<f32, u64>(&Keys::Equal.random::<f32>(n, seed), k, With::Indices, seed);
        check::<i64, u32>(&Keys::Few.random::<i64>(n, seed), k, With::Nothing, seed);
    }
}

#[test]
fn the_first_keys_of_every_type_and_kind() {
    check_all::<f32>();
    check_all::<i64>();
    fn check_some<K: TestKey>() {
        let seed = fresh_seed();
        check::<K, u32>(&Keys::Any.random::<K>(100, seed), 7, With::Values, seed);
    }
    for_all_types!(check_some());
}

#[test]
fn candidates_are_collected_where_they_are_few() {
    let seed = fresh_seed();
    let keys: Vec<u32> = Keys::Any.random(4 * TILE, seed);
    let device = check::<u32, u64>(&keys, 100, With::Indices, seed);
    assert!(["count_digit", "choose_digit", "collect"].iter().all(|kernel| device.kernels().contains(kernel)));
}

#[test]
fn floats_that_are_no_numbers_and_both_zeros() {
    let special = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1.0];
    let keys: Vec<f32> = (0..3000).map(|i| special[i * i % 7]).collect();
    for k in [1, 500, 2999] {
        check::<f32, u32>(&keys, k, With::Values, fresh_seed());
    }
}
