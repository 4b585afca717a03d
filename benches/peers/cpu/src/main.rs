//! Compares the CPU engine with rdst, rayon and plain loops, and prints a table of nanoseconds per key.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/cpu/Cargo.toml -- [KEYS] [THREADS]
//! ```
//!
//! All keys are uniform. The contenders of a table alternate, so that a change of the machine's speed affects all of them,
//! and the minimum of the repetitions counts. Every result is compared with that of rayon's stable sort.

use merge_host::{Engine, Key, SortOrder};
use rayon::prelude::*;
use rdst::RadixSort;
use std::time::Instant;

/// The number of repetitions.
const REPEATS: usize = 5;

/// A name, and a function that prepares the input, runs the contender and returns the seconds that it took.
type Contender<'a> = (&'static str, Box<dyn FnMut() -> f64 + 'a>);

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn random(i: usize) -> u64 {
    let z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(7);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The duration of `work` in seconds.
fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Prints a row for each contender, with its time and the ratio to the time of the first, which is this library.
fn table(task: &str, keys: usize, mut contenders: Vec<Contender>) {
    let mut best = vec![f64::INFINITY; contenders.len()];
    for _ in 0..REPEATS {
        for ((_, run), best) in contenders.iter_mut().zip(&mut best) {
            *best = best.min(run());
        }
    }
    for ((name, _), time) in contenders.iter().zip(&best) {
        println!("| {task} | {name} | {:.2} | {:.2} |", time * 1e9 / keys as f64, time / best[0]);
    }
}

/// A contender that sorts a copy of the keys.
fn sorts<'a, K: Copy + PartialEq>(
    name: &'static str,
    keys: &'a [K],
    want: &'a [K],
    sort: impl Fn(&mut [K]) + 'a,
) -> Contender<'a> {
    let run = move || {
        let mut keys = keys.to_vec();
        let time = seconds(|| sort(&mut keys));
        assert!(keys == want, "{name} sorts");
        time
    };
    (name, Box::new(run))
}

fn sort_keys<K: Key + Ord + rdst::RadixKey>(engine: &Engine, keys: &[K]) {
    let mut want = keys.to_vec();
    want.par_sort();
    let contenders = vec![
        sorts("merge-host", keys, &want, |keys| {
            engine.sort(keys).expect("the CPU sorts");
        }),
        sorts("rdst", keys, &want, |keys| keys.radix_sort_unstable()),
        sorts("rayon par_sort_unstable", keys, &want, |keys| keys.par_sort_unstable()),
        sorts("rayon par_sort", keys, &want, |keys| keys.par_sort()),
    ];
    table(&format!("sort, {}", K::NAME), keys.len(), contenders);
}

fn sort_pairs<K: Key + Ord>(engine: &Engine, keys: &[K], values: &[K]) {
    let pairs: Vec<(K, K)> = keys.iter().copied().zip(values.iter().copied()).collect();
    let mut want = pairs.clone();
    want.par_sort_by_key(|pair| pair.0);
    let ours = || {
        let (mut keys, mut values) = (keys.to_vec(), values.to_vec());
        let time = seconds(|| {
            engine.sort_pairs(SortOrder::Ascending, &mut keys, &mut values).expect("the CPU sorts");
        });
        assert!(keys.into_iter().zip(values).eq(want.iter().copied()), "pairs are sorted");
        time
    };
    let argsort = || {
        let mut indices = vec![1u32; keys.len()];
        let time = seconds(|| {
            engine.argsort(SortOrder::Ascending, keys, &mut indices).expect("the CPU sorts");
        });
        assert!(indices.iter().map(|&i| pairs[i as usize]).eq(want.iter().copied()), "indices are sorted");
        time
    };
    let rayons = || {
        let mut pairs = pairs.clone();
        seconds(|| pairs.par_sort_by_key(|pair| pair.0))
    };
    let name = format!("sort, {0} with values of {0}", K::NAME);
    table(&name, keys.len(), vec![("merge-host", Box::new(ours)), ("rayon par_sort_by_key", Box::new(rayons))]);
    let name = format!("argsort, {}, u32 indices", K::NAME);
    table(&name, keys.len(), vec![("merge-host", Box::new(argsort)), ("rayon par_sort_by_key", Box::new(rayons))]);
}

/// The merge with two cursors of textbooks, on one thread.
fn two_cursors<K: Ord + Copy>(a: &[K], b: &[K], out: &mut [K]) {
    let (mut i, mut j) = (0, 0);
    for to in out {
        let from_a = j == b.len() || i < a.len() && a[i] <= b[j];
        if from_a {
            *to = a[i];
            i += 1;
        } else {
            *to = b[j];
            j += 1;
        }
    }
}

fn merge<K: Key + Ord>(engine: &Engine, keys: &[K], threads: usize) {
    let (a, b) = keys.split_at(keys.len() / 2);
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    a.par_sort();
    b.par_sort();
    let mut want = keys.to_vec();
    two_cursors(&a, &b, &mut want);
    let into = |work: &dyn Fn(&mut [K])| {
        let mut out = vec![K::zeroed(); keys.len()];
        out.fill(want[0]);
        let time = seconds(|| work(&mut out));
        (time, out)
    };
    let ours = || {
        let (time, out) = into(&|out| {
            engine.merge(&a, &b, out).expect("the CPU merges");
        });
        assert!(out == want, "the merge is right");
        time
    };
    let copy = |out: &mut [K]| {
        let part = keys.len().div_ceil(threads);
        out.par_chunks_mut(part).zip(keys.par_chunks(part)).for_each(|(to, from)| to.copy_from_slice(from));
    };
    let contenders: Vec<Contender> = vec![
        ("merge-host", Box::new(ours)),
        ("a copy by all threads", Box::new(|| into(&copy).0)),
        ("two cursors, one thread", Box::new(|| into(&|out| two_cursors(&a, &b, out)).0)),
    ];
    table(&format!("merge, {}", K::NAME), keys.len(), contenders);
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let n: usize = arguments.next().unwrap_or(20_000_000);
    let threads = arguments.next().unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads start");
    let engine = Engine::cpu_with_threads(threads).expect("threads start");
    let k64: Vec<u64> = (0..n / 2).map(random).collect();
    let k32: Vec<u32> = (0..n).map(|i| random(i) as u32).collect();
    let indices: Vec<u32> = (0..n as u32).collect();
    let indices64: Vec<u64> = (0..n as u64 / 2).collect();
    println!("{n} keys of 4 bytes, half as many of 8, {threads} threads; minimum of {REPEATS}\n");
    println!("| task | implementation | ns per key | ratio to merge-host |");
    println!("| --- | --- | ---: | ---: |");
    sort_keys(&engine, &k32);
    sort_keys(&engine, &k64);
    sort_pairs(&engine, &k32, &indices);
    sort_pairs(&engine, &k64, &indices64);
    merge(&engine, &k32, threads);
    merge(&engine, &k64, threads);
}
