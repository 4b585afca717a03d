//! Tests of the keys of benchmarks of sorts: they are the same as in `benches/peers/run --digest`, and have the right
//! distributions.

use merge_host::Key;
use tests::distribution::{DIGEST_KEYS, Distribution, digest};

/// The output of `benches/peers/run --digest`: the type and the distribution, and the digests of 2^16 and of 2^28 keys.
const PEERS: &str = "\
u32 uniform       7fe98a85656419b9 7fe98a85656419b9
u64 uniform       5e51d0a7656419b9 5e51d0a7656419b9
u32 and2          405d51ca57e1d19e 405d51ca57e1d19e
u64 and2          55e6bd8c57e1d19e 55e6bd8c57e1d19e
u32 and3          2035e66cff529a07 2035e66cff529a07
u64 and3          fc8e3bf8ff529a07 fc8e3bf8ff529a07
u32 and4          0ff72ab0501d8fca 0ff72ab0501d8fca
u64 and4          94dd61ba501d8fca 94dd61ba501d8fca
u32 zipf          00d8b6a04d35177e 00d8b6a04d35177e
u64 zipf          00d8b6a04d35177e 00d8b6a04d35177e
u32 dups16        0000000772469519 0000000772469519
u64 dups16        0000000772469519 0000000772469519
u32 equal         0000000700000000 0000000700000000
u64 equal         0000000700000000 0000000700000000
u32 sorted        0000aaaa2aaa8000 0000aaaa2aaa8000
u64 sorted        0000aaaa2aaa8000 0000aaaa2aaa8000
u32 reversed      00005554d5558000 0fff5554d5558000
u64 reversed      00005554d5558000 0fff5554d5558000
u32 8-runs        0000855155540000 0005555155540000
u64 8-runs        0000855155540000 0005555155540000
u32 nearly-sorted 00202a41545c0937 00202a41545c0937
u64 nearly-sorted cf24bf9e545c0937 cf24bf9e545c0937
u32 displaced     0000ac9d82ccfd79 0000ac9d82ccfd79
u64 displaced     0000ac9d82ccfd79 0000ac9d82ccfd79
f32 unit          3ec0689a6fe7bc20 3ec0689a6fe7bc20
f64 unit          f0628f305fcbde59 f0628f305fcbde59
f32 normal        7eef3767e15deb1f 7eef3767e15deb1f
f64 normal        8c25aea126897cb5 8c25aea126897cb5
";

/// The digest of the first of `n` keys.
fn digest_of<K: Key>(distribution: Distribution, n: u64) -> u64 {
    digest(&(0..DIGEST_KEYS as u64).map(|i| distribution.key::<K>(i, n)).collect::<Vec<K>>())
}

fn line<K: Key>(distribution: Distribution) -> String {
    let digests = [DIGEST_KEYS as u64, 1 << 28].map(|n| digest_of::<K>(distribution, n));
    format!("{} {:<13} {:016x} {:016x}\n", K::NAME, distribution.name(), digests[0], digests[1])
}

#[test]
fn the_peers_sort_the_same_keys() {
    let integers = Distribution::OF_INTEGERS.map(|distribution| line::<u32>(distribution) + &line::<u64>(distribution));
    let floats = Distribution::OF_FLOATS.map(|distribution| line::<f32>(distribution) + &line::<f64>(distribution));
    let found = integers.concat() + &floats.concat();
    for (found, expected) in found.lines().zip(PEERS.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), PEERS.len());
}

#[test]
fn arrays_have_the_keys() {
    for n in [0, 1, 7, 100_003, 2 * DIGEST_KEYS] {
        for distribution in Distribution::OF_INTEGERS {
            let keys: Vec<u64> = distribution.keys(n);
            assert!(keys.into_iter().eq((0..n as u64).map(|i| distribution.key(i, n as u64))), "{distribution:?}, {n}");
        }
    }
}

#[test]
fn digests_depend_on_the_order() {
    let keys: Vec<u32> = Distribution::Uniform.keys(1000);
    let swapped = [&keys[1..2], &keys[..1], &keys[2..]].concat();
    assert_ne!(digest(&keys), digest(&swapped));
    assert_eq!(digest(&[3u32, 5]), 3 + 3 * 5);
}

#[test]
fn keys_are_distributed_as_named() {
    const N: usize = 1 << 16;
    let ones = |distribution: Distribution| -> f64 {
        let ones: u32 = distribution.keys::<u64>(N).iter().map(|key| key.count_ones()).sum();
        f64::from(ones) / (64 * N) as f64
    };
    for (distribution, share) in [
        (Distribution::Uniform, 0.5),
        (Distribution::And2, 0.25),
        (Distribution::And3, 0.125),
        (Distribution::And4, 0.0625),
    ] {
        assert!((ones(distribution) - share).abs() < 0.001, "{distribution:?}");
    }

    let share = |keys: &[f64], low: f64, high: f64| {
        keys.iter().filter(|key| (low..high).contains(*key)).count() as f64 / keys.len() as f64
    };
    let unit: Vec<f64> = Distribution::Unit.keys(N);
    assert_eq!(share(&unit, 0.0, 1.0), 1.0);
    assert!((share(&unit, 0.25, 0.5) - 0.25).abs() < 0.01);
    let normal: Vec<f64> = Distribution::Normal.keys(N);
    assert!((share(&normal, -1.0, 1.0) - 0.683).abs() < 0.01);
    assert!((share(&normal, -2.0, 2.0) - 0.954).abs() < 0.01);
    assert!((share(&normal, 0.0, 9.0) - 0.5).abs() < 0.01);
    // The floats of 4 bytes are the floats of 8 bytes, rounded.
    assert!(Distribution::Normal.keys::<f32>(N).iter().zip(&normal).all(|(&small, &key)| small == key as f32));

    let zipf: Vec<u32> = Distribution::Zipf.keys(N);
    assert!(zipf.iter().all(|key| (1..1 << 28).contains(key)));
    assert!((zipf.iter().filter(|key| **key < 1 << 14).count() as f64 / N as f64 - 0.5).abs() < 0.01);
    let mut values: Vec<u32> = Distribution::Dups16.keys(N);
    values.sort_unstable();
    values.dedup();
    assert_eq!(values, Vec::from_iter(0..16));

    let descents = |keys: &[u32]| keys.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert_eq!(descents(&Distribution::Sorted.keys(N)), 0);
    assert_eq!(descents(&Distribution::Reversed.keys(N)), N - 1);
    assert_eq!(descents(&Distribution::EightRuns.keys(N)), 7);
    let nearly: Vec<u32> = Distribution::NearlySorted.keys(N);
    assert_eq!(nearly.iter().zip(0..).filter(|(key, i)| *key != i).count(), N.div_ceil(1000));
    let displaced: Vec<u32> = Distribution::Displaced.keys(N);
    assert!(displaced.iter().zip(0..).all(|(key, i)| (i..i + 1000).contains(key)));
    assert!(descents(&displaced) > N / 3);
}
