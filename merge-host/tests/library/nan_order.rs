//! Orders of NaNs, against the standard library's sort by a comparison that treats NaNs separately.

use crate::common::*;
use merge_host::{
    Bound, Engine, NanFirst, NanLast, NanOrder, SetOperation, SortOptions, SortOrder, TopK, first_unsorted,
    nan_first_mut, nan_last, nan_last_mut, unique,
};
use rand::Rng;
use rand::rngs::StdRng;
use std::cmp::Ordering;
use std::sync::Mutex;

/// The kinds of keys: half NaNs of many payloads, only NaNs, no NaN, special values, and NaNs at both ends of keys that
/// are in total order.
const NAN_KINDS: [&str; 5] = ["half NaNs", "only NaNs", "no NaN", "special", "in total order"];

fn draw<K: TestKey>(kind: &str, len: usize, rng: &mut StdRng) -> Vec<K> {
    let nans: Vec<K> = K::special().into_iter().filter(|key| key.nan().is_some()).collect();
    let special = K::special();
    let mut keys: Vec<K> = (0..len)
        .map(|i| {
            loop {
                let key = match kind {
                    "half NaNs" | "only NaNs" if !nans.is_empty() && (kind == "only NaNs" || i % 2 == 0) => {
                        // NaNs that differ in their last bits.
                        let mut nan = nans[rng.random_range(0..nans.len())];
                        bytemuck::bytes_of_mut(&mut nan)[0] ^= rng.random_range(0..3u8);
                        nan
                    }
                    "special" => special[rng.random_range(0..special.len())],
                    _ => K::from_random(rng.random()),
                };
                if kind != "no NaN" || key.nan().is_none() {
                    break key;
                }
            }
        })
        .collect();
    if kind == "in total order" {
        keys = sorted(keys);
    }
    keys
}

/// The order of a sort by these options: the NaNs are where `nans` has them in either direction.
fn expected_order<K: TestKey>(order: SortOrder, nans: NanOrder, a: &K, b: &K) -> Ordering {
    match (order, nans) {
        (SortOrder::Ascending, nans) => order_with(nans, a, b),
        (SortOrder::Descending, NanOrder::Last) => order_with(NanOrder::First, b, a),
        (SortOrder::Descending, NanOrder::First) => order_with(NanOrder::Last, b, a),
        (SortOrder::Descending, _) => b.order(a),
    }
}

/// The first `k` keys of each segment, as they are found and as they are expected. `sorted` has the sorted segments.
fn firsts_of_segments<K: TestKey>(
    engine: &Engine,
    options: SortOptions,
    (keys, sorted): (&[K], &[K]),
    offsets: &[usize],
    k: usize,
) -> (Vec<K>, Vec<K>) {
    let mut found = vec![K::number(7); (offsets.len() - 1) * k];
    let mut want = found.clone();
    for (slots, ends) in want.chunks_mut(k).zip(offsets.windows(2)) {
        slots.iter_mut().zip(&sorted[ends[0]..ends[1]]).for_each(|(slot, key)| *slot = *key);
    }
    engine.top_k_segments(options, keys, offsets, k, &mut found).unwrap();
    (found, want)
}

fn every_sort<K: TestKey>(length: usize, seed: u64) {
    let mut rng = rng(seed);
    for kind in NAN_KINDS {
        let keys = draw::<K>(kind, length, &mut rng);
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            for nans in NanOrder::ALL {
                // Many keys are tested in some of the orders.
                if length > 10_000 && rng.random_ratio(2, 3) {
                    continue;
                }
                let engine = Engine::cpu_with_threads(rng.random_range(1..4)).unwrap();
                let options = SortOptions::default().nans(nans).order(order);
                let what = || format!("{length} keys, {kind}, {order}, NaNs {nans}, {engine:?}, seed {seed}");
                let compare = |i: usize, j: usize| expected_order(order, nans, &keys[i], &keys[j]);
                let indices = sorted_indices_by(length, &compare);
                let want = gathered(&keys, &indices);

                let mut found = keys.clone();
                engine.sort_with(options, &mut found).unwrap();
                assert_same(&found, &want, what);
                // Keys that are in order stay in order.
                engine.sort_with(options, &mut found).unwrap();
                assert_same(&found, &want, what);

                let (mut found, mut values) = (keys.clone(), values::<u32>(0, length));
                engine.sort_with(options, (&mut found, &mut values)).unwrap();
                assert_same(&found, &want, what);
                assert!(values.iter().map(|&value| value as usize).eq(indices.iter().copied()), "values, {}", what());
                let (mut found, mut wide) = (keys.clone(), (0..length).map(|i| [i; 4]).collect::<Vec<_>>());
                engine.sort_with(options, (&mut found, &mut wide)).unwrap();
                assert!(wide.iter().map(|value| value[3]).eq(indices.iter().copied()), "wide values, {}", what());

                let mut permutation = vec![0u64; length];
                engine.argsort(options, &keys, &mut permutation).unwrap();
                assert!(permutation.iter().map(|&i| i as usize).eq(indices.iter().copied()), "argsort, {}", what());

                let (mut found, mut owned) = (keys.clone(), (0..length).map(Box::new).collect::<Vec<_>>());
                engine.sort_owned(options, (&mut found, &mut owned)).unwrap();
                assert!(owned.iter().map(|i| **i).eq(indices.iter().copied()), "owned, {}", what());

                let mut distinct = want.clone();
                distinct.dedup_by(|x, y| x.order(y).is_eq());
                let mut found = keys.clone();
                let (count, _) = engine.sort_unique(options, &mut found).unwrap();
                assert_same(&found[..count], &distinct, what);

                let read = |begin: usize, part: &mut [K]| {
                    part.copy_from_slice(&keys[begin..][..part.len()]);
                    Ok::<_, merge_host::Error>(())
                };
                let written = Mutex::new(poisoned(&want));
                let write = |begin: usize, part: &[K]| {
                    written.lock().unwrap()[begin..][..part.len()].copy_from_slice(part);
                    Ok(())
                };
                engine.sort_streamed(options, length, read, write).unwrap();
                assert_same(&written.into_inner().unwrap(), &want, what);

                let k = rng.random_range(0..=length);
                let (mut first, mut of_first) = (vec![K::number(0); k], vec![0u32; k]);
                engine.top_k(options, &keys, &mut first).unwrap();
                assert_same(&first, &want[..k], what);
                engine.top_k(options, &keys, (&mut first, &mut of_first)).unwrap();
                assert_same(&first, &want[..k], what);
                assert!(of_first.iter().map(|&i| i as usize).eq(indices[..k].iter().copied()), "top {k}, {}", what());
                let mut top = TopK::new(options, k);
                for part in keys.chunks(length / 3 + 1) {
                    top.add(&engine, part).unwrap();
                }
                assert_same(&top.into_sorted(&engine).unwrap().0, &want[..k], what);

                let mut offsets = vec![0];
                while let Some(&last) = offsets.last().filter(|&&last| last < length) {
                    offsets.push((last + rng.random_range(0..=40) * rng.random_range(1..30)).min(length));
                }
                let segment = |ends: &[usize]| {
                    sorted_indices_by(ends[1] - ends[0], &|i, j| compare(ends[0] + i, ends[0] + j))
                        .into_iter()
                        .map(|i| ends[0] + i)
                        .collect::<Vec<_>>()
                };
                let indices = offsets.windows(2).flat_map(segment).collect::<Vec<usize>>();
                let (want, mut found) = (gathered(&keys, &indices), keys.clone());
                engine.sort_segments(options, &mut found, &offsets).unwrap();
                assert_same(&found, &want, || format!("segments of {}", what()));
                let k = rng.random_range(1..100);
                let (first, want_first) = firsts_of_segments(&engine, options, (&keys, &want), &offsets, k);
                assert_same(&first, &want_first, || format!("{k} of segments of {}", what()));
                let (mut found, mut values) = (keys.clone(), crate::common::values::<u32>(0, length));
                engine.sort_segments(options, (&mut found, &mut values), &offsets).unwrap();
                assert_same(&found, &want, || format!("segments with values of {}", what()));
                assert!(values.iter().map(|&value| value as usize).eq(indices), "segments, {}", what());
            }
        }
    }
}

#[test]
fn sorts_have_nans_where_options_say() {
    let seed = seed();
    for length in [0, 1, 2, 100, 3000] {
        every_sort::<merge_host::f16>(length, seed);
        every_sort::<f32>(length, seed);
        every_sort::<f64>(length, seed);
        every_sort::<u32>(length, seed);
    }
    every_sort::<merge_host::f16>(70_000, seed);
    every_sort::<f32>(300_000, seed);
    every_sort::<f64>(300_000, seed);
}

/// Merges, sets, bounds and groups of keys of type `K`, whose order is `K::order`.
fn every_operation<K: TestKey>(of: fn(&str, usize, &mut StdRng) -> Vec<K>, seed: u64) {
    let mut rng = rng(seed);
    for kind in NAN_KINDS {
        for (m, n) in [(0, 3), (1, 1), (9, 40), (1000, 1500), (40_000, 50_000)] {
            let engine = Engine::cpu_with_threads(rng.random_range(1..4)).unwrap();
            let what = || format!("{m} and {n}, {kind}, {engine:?}, seed {seed}");
            let [a, b] = [m, n].map(|len| sorted(of(kind, len, &mut rng)));
            assert_eq!(first_unsorted(&a), None, "{}", what());
            let want = merged(&a, &b);
            let mut out = poisoned(&want);
            engine.merge(&a, &b, &mut out).unwrap();
            assert_same(&out, &want, what);
            out = poisoned(&want);
            engine.merge_many(&[&a[..], &[], &b[..]], &mut out).unwrap();
            assert_same(&out, &want, what);
            out = poisoned(&want);
            engine.merge_ragged((&a, &[0, 0, m]), (&b, &[0, 0, n]), &mut out).unwrap();
            assert_same(&out, &want, what);
            if m + n <= 1024 {
                out = poisoned(&want);
                engine.merge_batch(&a, &b, &mut out, m + n, m).unwrap();
                assert_same(&out, &want, what);
            }

            let is_in = |keys: &[K], key: &K| keys.binary_search_by(|other| other.order(key)).is_ok();
            let distinct = |keys: &[K]| {
                let mut keys = keys.to_vec();
                keys.dedup_by(|x, y| x.order(y).is_eq());
                keys
            };
            let (a, b) = (distinct(&a), distinct(&b));
            let mut found = vec![];
            for operation in SetOperation::ALL {
                let keep = |key: &&K| match operation {
                    SetOperation::Intersection => is_in(&a, key) && is_in(&b, key),
                    SetOperation::Difference => !is_in(&b, key),
                    SetOperation::SymmetricDifference => is_in(&a, key) != is_in(&b, key),
                    _ => true,
                };
                engine.set_operation(operation, &a, &b, &mut found).unwrap();
                let all = if operation == SetOperation::Difference { a.clone() } else { distinct(&merged(&a, &b)) };
                let want: Vec<K> = all.iter().filter(keep).copied().collect();
                assert_same(&found, &want, || format!("{operation}, {}", what()));
            }

            let mut kept = want.clone();
            let count = unique(&mut kept, &mut [], 0, None);
            assert_same(&kept[..count], &distinct(&want), what);
            engine.unique(&want, &mut found).unwrap();
            assert_same(&found, &distinct(&want), what);
            for bound in Bound::ALL {
                let mut bounds = vec![0u32; b.len()];
                engine.bounds(bound, &b, &want, &mut bounds).unwrap();
                let of = |needle: &K| match bound {
                    Bound::Lower => want.partition_point(|key| key.order(needle).is_lt()),
                    _ => want.partition_point(|key| key.order(needle).is_le()),
                };
                assert!(bounds.iter().map(|&i| i as usize).eq(b.iter().map(of)), "bounds, {}", what());
            }
        }
    }
}

#[test]
fn operations_take_keys_with_orders_of_nans() {
    let seed = seed();
    every_operation::<NanLast<f32>>(|kind, len, rng| draw(kind, len, rng).into_iter().map(NanLast).collect(), seed);
    every_operation::<NanFirst<f64>>(|kind, len, rng| draw(kind, len, rng).into_iter().map(NanFirst).collect(), seed);
}

#[test]
fn wrapped_keys_and_options_agree() {
    let seed = seed();
    let keys = draw::<f64>("half NaNs", 5000, &mut rng(seed));
    let sorted = |options: SortOptions| {
        let mut keys = keys.clone();
        Engine::cpu().sort_with(options, &mut keys).unwrap();
        keys
    };
    let what = || format!("seed {seed}");
    let mut wrapped = keys.clone();
    Engine::cpu().sort(nan_last_mut(&mut wrapped)).unwrap();
    assert_same(&wrapped, &sorted(NanOrder::Last.into()), what);
    Engine::cpu().sort(nan_first_mut(&mut wrapped)).unwrap();
    assert_same(&wrapped, &sorted(NanOrder::First.into()), what);
    let descending = SortOptions::from(SortOrder::Descending);
    // A descending sort of wrapped keys reverses their order.
    Engine::cpu().sort_with(descending, nan_last_mut(&mut wrapped)).unwrap();
    assert_same(&wrapped, &sorted(descending.nans(NanOrder::First)), what);
    Engine::cpu().sort(nan_last_mut(merge_host::descending_mut(&mut wrapped))).unwrap();
    assert_same(&wrapped, &sorted(descending.nans(NanOrder::Last)), what);
    // An order of NaNs among the options replaces the order of the keys' type.
    for nans in [NanOrder::Last, NanOrder::First] {
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            let options = SortOptions::from(order).nans(nans);
            Engine::cpu().sort_with(options, nan_first_mut(&mut wrapped)).unwrap();
            assert_same(&wrapped, &sorted(options), what);
            let mut indices = vec![0u32; keys.len()];
            Engine::cpu().argsort(options, nan_last(&keys), &mut indices).unwrap();
            let found: Vec<f64> = indices.iter().map(|&i| keys[i as usize]).collect();
            assert_same(&found, &sorted(options), what);
        }
    }
}
