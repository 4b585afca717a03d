//! `gmerge gen`

use crate::common::{Folder, SIZES, TestKey, for_each_type};
use std::collections::HashSet;

fn generate<K: TestKey>(folder: &Folder, options: &str) -> Vec<K> {
    let file = format!("keys.{}", K::NAME);
    folder.run(&format!("gen {options} -o {file}")).succeeds();
    folder.read(&file)
}

fn shapes<K: TestKey>() {
    let folder = Folder::new();
    for n in SIZES {
        let uniform = generate::<K>(&folder, &format!("-n {n} --seed 3"));
        let sorted = generate::<K>(&folder, &format!("-n {n} --seed 3 --dist sorted"));
        let reverse = generate::<K>(&folder, &format!("-n {n} --seed 3 --dist reverse"));
        let dups = generate::<K>(&folder, &format!("-n {n} --seed 3 --dist dups"));
        let zipf = generate::<K>(&folder, &format!("-n {n} --seed 3 --dist zipf"));
        for keys in [&uniform, &sorted, &reverse, &dups, &zipf] {
            assert_eq!(keys.len(), n);
        }
        assert!(sorted.is_sorted_by(|x, y| x.order(y).is_le()));
        assert!(reverse.is_sorted_by(|x, y| x.order(y).is_ge()));
        if n >= 1000 {
            assert!(!uniform.is_sorted_by(|x, y| x.order(y).is_le()));
            assert_eq!(distinct(&dups), 16);
            // The most frequent number has a share of about 1/10.
            let most = zipf.iter().filter(|key| key.order(&zipf_one()).is_eq()).count();
            assert!((n / 20..n / 5).contains(&most), "{most} of {n}");
            assert!(distinct(&zipf) > 100);
        }
    }
}

fn zipf_one<K: TestKey>() -> K {
    // The key 1. For an integer it is one of the special values, and a float is made from the bits of 1.0.
    match K::NAME {
        "f16" => K::from_bits(0x3c00),
        "f32" => K::from_bits(1f32.to_bits().into()),
        "f64" => K::from_bits(1f64.to_bits().into()),
        _ => K::from_bits(1),
    }
}

fn distinct<K: TestKey>(keys: &[K]) -> usize {
    keys.iter().map(|key| bytemuck::bytes_of(key).to_vec()).collect::<HashSet<_>>().len()
}

#[test]
fn all_types_and_distributions() {
    for_each_type!(K => shapes::<K>());
}

#[test]
fn the_same_for_any_number_of_threads_and_another_for_another_seed() {
    let folder = Folder::new();
    // More keys than `gen` holds in memory at once.
    let one = generate::<u64>(&folder, "-n 9000000 --seed 5 --parallel 1");
    assert!(one == generate::<u64>(&folder, "-n 9000000 --seed 5 --parallel 7"));
    assert!(one[..1000] == generate::<u64>(&folder, "-n 1000 --seed 5")[..]);
    assert!(one[..1000] != generate::<u64>(&folder, "-n 1000 --seed 6")[..]);
    assert!(generate::<u64>(&folder, "-n 9000000 --dist sorted").is_sorted());
}

#[test]
fn floats_are_finite_and_fill_their_range() {
    let folder = Folder::new();
    let keys = generate::<f32>(&folder, "-n 100003");
    assert!(keys.iter().all(|key| (-1.0..1.0).contains(key)));
    let keys = generate::<f64>(&folder, "-n 100003");
    assert!(keys.iter().all(|key| (-1.0..1.0).contains(key)));
    assert!(keys.iter().any(|&key| key < -0.99) && keys.iter().any(|&key| key > 0.99));
    let mean = keys.iter().sum::<f64>() / keys.len() as f64;
    assert!(mean.abs() < 0.02, "{mean}");
}

#[test]
fn more_keys_than_fit_anywhere() {
    let folder = Folder::new();
    folder.write("keys.u32", &[7u32]);
    for (count, parts) in [
        ("18446744073709551615", ["keys.u32: ", "73786976294838206460 bytes"]),
        ("1000000000000000000", ["keys.u32: No space left", "4000000000000000000 bytes"]),
        ("18446744073709551616", ["18446744073709551616", "--count <N>"]),
        ("-1", ["--count <N>", "-1"]),
    ] {
        folder.refuses(&format!("gen -n {count} -o keys.u32"), &parts);
    }
}

#[test]
fn records_of_random_bytes() {
    let folder = Folder::new();
    folder.run("gen -n 30011 --record-size 7 --seed 5 -o records").succeeds();
    folder.run("gen -n 30011 --record-size 7 --seed 5 -o again --parallel 1").succeeds();
    folder.run("gen -n 30011 --record-size 7 --seed 6 -o other").succeeds();
    let records = folder.read::<u8>("records");
    assert_eq!((records.len(), &records), (7 * 30011, &folder.read::<u8>("again")));
    assert_ne!(records, folder.read::<u8>("other"));
    // All byte values are about equally frequent.
    for value in 0..=u8::MAX {
        let found = records.iter().filter(|byte| **byte == value).count();
        assert!((600..1100).contains(&found), "{value}: {found}");
    }
    folder.run("gen -n 3 --record-size 7 -o records --dist sorted").fails(2, &["--dist"]);
    folder.run("gen -n 3 --record-size 7 -o records --type u8").fails(2, &["--type"]);
    folder.run("gen -n 3 --record-size 0 -o records").fails(2, &["--record-size"]);
    let parts = ["none: ", "129127208515966861305 bytes are more than a file can hold"];
    folder.run("gen -n 18446744073709551615 --record-size 7 -o none").fails(2, &parts);
}

#[test]
fn small_numbers_of_bf16_are_exact() {
    let folder = Folder::new();
    folder.run("gen -n 100000 --dist zipf -o keys.bf16").succeeds();
    // The integers up to 256, which is 0x4380.
    let keys = folder.read::<u16>("keys.bf16");
    assert_eq!((keys.iter().max(), keys.iter().collect::<HashSet<_>>().len()), (Some(&0x4380), 256));
}
