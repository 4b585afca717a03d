//! `Engine::sort` and `sort_with` against the standard library's stable sort.

use crate::common::*;
use merge_host::{Engine, EngineKind, SortKernel, SortOptions, Work};

fn check<K: TestKey>(engine: &Engine, keys: Vec<K>, what: impl Fn() -> String) {
    check_with(SortOptions::default(), engine, keys, what);
}

fn check_with<K: TestKey>(options: SortOptions, engine: &Engine, keys: Vec<K>, what: impl Fn() -> String) {
    let mut found = keys.clone();
    engine.sort_with(options, &mut found).unwrap();
    assert_same(&found, &sorted(keys), || format!("{engine:?}, {}", what()));
}

fn every_length_and_kind<K: TestKey>(seed: u64) {
    let engine = Engine::cpu();
    let mut rng = rng(seed);
    let around = |length: usize| [length - 1, length, length + 1];
    let lengths = (0..70).chain([128, 1024, 4096, 16384].into_iter().flat_map(around));
    for length in lengths {
        for kind in KINDS {
            check(&engine, keys::<K>(kind, length, &mut rng), || format!("{length} keys, {kind}, seed {seed}"));
        }
    }
}

#[test]
fn sorts_every_length_and_kind() {
    let seed = seed();
    for_all_key_types!(every_length_and_kind(seed));
}

fn many_keys<K: TestKey>(seed: u64) {
    // Enough keys for all threads of each engine, and a shorter last run.
    let length = 200_003;
    let mut rng = rng(seed);
    for engine in cpu_engines() {
        for kind in KINDS {
            check(&engine, keys::<K>(kind, length, &mut rng), || format!("{length} keys, {kind}, seed {seed}"));
        }
    }
}

#[test]
fn sorts_many_keys_on_several_threads() {
    let seed = seed();
    for_keys_of_all_kinds!(many_keys(seed));
}

#[test]
fn sorts_on_many_threads_with_runs_of_several_passes() {
    let seed = seed();
    let engine = Engine::cpu_with_threads(7).unwrap();
    for length in [5 << 16, (6 << 16) + 1, (7 << 16) + 5] {
        check(&engine, keys::<u32>("any bits", length, &mut rng(seed)), || format!("{length} keys, seed {seed}"));
        check(&engine, keys::<f64>("16 values", length, &mut rng(seed)), || format!("{length} keys, seed {seed}"));
        check(&engine, keys::<u128>("any bits", length, &mut rng(seed)), || format!("{length} keys, seed {seed}"));
    }
}

#[test]
fn sorts_with_every_kernel() {
    let seed = seed();
    for kernel in SortKernel::ALL {
        for engine in [Engine::gpu(0), Ok(Engine::cpu())].into_iter().flatten() {
            let options = SortOptions::default().kernel(kernel);
            // GPUs divide many keys. The CPU's methods do not change above 2^20 keys.
            let is_gpu = engine.start_for::<u32>(&Work::sort::<u32>(0)).unwrap() == EngineKind::Gpu;
            let many = if is_gpu { 1 << 22 } else { 1 << 20 };
            let what = || format!("{kernel}, seed {seed}");
            check_with(options, &engine, keys::<u32>("any bits", many + 1, &mut rng(seed)), what);
            check_with(options, &engine, keys::<f64>("16 values", many / 2 + 1, &mut rng(seed)), what);
            if !is_gpu {
                check_with(options, &engine, keys::<u8>("any bits", 100_000, &mut rng(seed)), what);
            }
        }
    }
}

#[test]
fn sorts_keys_that_differ_in_eight_adjacent_bits() {
    let seed = seed();
    let mut rng = rng(seed);
    for shift in 0..57 {
        let keys: Vec<u64> = keys::<u64>("any bits", 10_000, &mut rng).iter().map(|key| (key >> 56) << shift).collect();
        check(&Engine::cpu(), keys, || format!("bits {shift} and up, seed {seed}"));
    }
    for shift in 0..25 {
        let keys: Vec<u32> = keys::<u32>("any bits", 10_000, &mut rng).iter().map(|key| (key >> 24) << shift).collect();
        check(&Engine::cpu(), keys, || format!("bits {shift} and up, seed {seed}"));
    }
    for shift in 0..121 {
        let keys = keys::<u128>("any bits", 10_000, &mut rng).iter().map(|key| (key >> 120) << shift).collect();
        check::<u128>(&Engine::cpu(), keys, || format!("bits {shift} and up, seed {seed}"));
    }
}

#[test]
fn sorts_descending_and_nearly_sorted_keys() {
    for length in [1000, 5000, 600_000] {
        let descending: Vec<i64> = (0..length).rev().collect();
        check(&Engine::cpu(), descending, || format!("{length} keys, descending"));
        let mut nearly: Vec<f32> = (0..length).map(|i| i as f32).collect();
        nearly[length as usize - 1] = -0.0;
        check(&Engine::cpu(), nearly, || format!("{length} keys, the last one out of order"));
        let but_first: Vec<u32> = [length as u32].into_iter().chain(0..length as u32).collect();
        let engine = Engine::cpu_with_threads(2).unwrap();
        check(&engine, but_first, || format!("{length} keys, the first one out of order"));
    }
}

#[test]
fn keeps_the_payload_of_nan_and_the_sign_of_zero() {
    let bits = [0x7fc0_0001, 0xffc0_0002, 0x8000_0000, 0, 0x7f80_0001, 0xff80_0001, 0x7f80_0000, 0xff80_0000u32];
    let mut keys = bits.map(f32::from_bits);
    Engine::cpu().sort(&mut keys).unwrap();
    let want = [0xffc0_0002, 0xff80_0001, 0xff80_0000, 0x8000_0000, 0, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0001u32];
    assert_eq!(keys.map(f32::to_bits), want);
}

#[test]
fn one_engine_serves_several_threads_at_once() {
    let engine = Engine::cpu_with_threads(2).unwrap();
    let seed = seed();
    std::thread::scope(|scope| {
        for i in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                let keys = keys::<i32>("any bits", 150_000, &mut rng(seed.wrapping_add(i)));
                check(engine, keys, || format!("seed {seed} + {i}"));
            });
        }
    });
}

#[test]
fn reports_the_time_as_computing() {
    let mut keys = keys::<u64>("any bits", 100_000, &mut rng(1));
    let timing = Engine::cpu().sort(&mut keys).unwrap();
    assert!(timing.compute.as_nanos() > 0, "{timing:?}");
    assert_eq!((timing.upload.as_nanos(), timing.download.as_nanos()), (0, 0), "{timing:?}");
}
