//! The contenders of each task. The first is this library.

use crate::distribution::Distribution;
use crate::keys::{Keys, Peer, compare, equal};
use crate::measure::Contender;
use crate::memory;
use crate::numpy::Numpy;
use merge_host::{Engine, SortOrder};
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};
use rdst::RadixSort as _;
use std::cmp::Ordering;
use voracious_radix_sort::RadixSort as _;

/// The threads of the contenders.
pub struct Setup {
    pub threads: usize,
    engine: Engine,
    pool: ThreadPool,
    has_numpy: bool,
}

impl Setup {
    pub fn new(threads: usize, has_numpy: bool) -> Self {
        let engine = Engine::cpu_with_threads(threads).expect("the engine has that many threads");
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        Setup { threads, engine, pool, has_numpy }
    }
}

/// Arrays of `n` elements each, one after the other, which each contender sorts one by one.
pub struct Arrays<'a, T> {
    pub all: &'a [T],
    pub n: usize,
    pub dist: Keys,
}

/// The arrays in the order of the standard library's stable sort.
fn sorted<T: Clone>(elements: &[T], n: usize, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut sorted = elements.to_vec();
    sorted.chunks_mut(n).for_each(|array| array.sort_by(&compare));
    sorted
}

/// Sorts of keys alone.
pub fn sort<'a, K: Peer>(setup: &'a Setup, Arrays { all, n, dist }: Arrays<'a, K>) -> Vec<Contender<'a>> {
    let want = sorted(all, n, compare);
    let mut contenders = Vec::new();
    let mut add = |name, sort: fn(&Setup, &mut [K])| {
        let work = move |keys: &mut Vec<K>| keys.chunks_mut(n).for_each(|keys| sort(setup, keys));
        contenders.push(Contender::new(name, || memory::copy(all), work, |keys| equal(keys, &want)));
    };
    add("merge-host", |setup, keys| {
        setup.engine.sort(keys).expect("the CPU sorts");
    });
    if setup.threads == 1 {
        add("std sort", |_, keys| keys.sort_by(compare));
        add("std sort_unstable", |_, keys| keys.sort_unstable_by(compare));
        add("glidesort", |_, keys| glidesort::sort_by(keys, compare));
        add("radsort", |_, keys| radsort::sort(keys));
        add("rdst", |_, keys| {
            K::for_rdst(keys).radix_sort_builder().with_parallel(false).with_single_threaded_tuner().sort();
        });
    } else {
        add("rdst", |setup, keys| setup.pool.install(|| K::for_rdst(keys).radix_sort_unstable()));
        add("rayon par_sort", |setup, keys| setup.pool.install(|| keys.par_sort_by(compare)));
        add("rayon par_sort_unstable", |setup, keys| setup.pool.install(|| keys.par_sort_unstable_by(compare)));
    }
    if dist.has_nans() {
        return contenders;
    }
    if setup.threads == 1 {
        add("voracious", |_, keys| keys.voracious_sort());
        if K::VQSORT.is_some() {
            add("vqsort", |_, keys| K::VQSORT.expect("it was asked for")(keys));
        }
        contenders.extend(numpy(setup, "sort", all, n, |sorted| sorted == bytemuck::cast_slice::<K, u8>(&want)));
    } else {
        // It starts a pool of this number of threads in each call, but sorts fewer than about 2·10^6 keys with rayon in
        // the current pool.
        add("voracious", |setup, keys| setup.pool.install(|| keys.voracious_mt_sort(setup.threads)));
    }
    contenders
}

/// numpy, if it is available and has keys of type `K`. `is_right` judges the sorted keys; nothing judges an argsort,
/// because that of numpy is not stable.
fn numpy<'a, K: Peer>(
    setup: &Setup,
    task: &'static str,
    keys: &[K],
    n: usize,
    is_right: impl FnOnce(&[u8]) -> bool,
) -> Option<Contender<'a>> {
    let dtype = K::NUMPY.filter(|_| setup.has_numpy)?;
    let mut numpy = Numpy::start(dtype, bytemuck::cast_slice(keys), (n, keys.len() / n), task);
    if task == "sort" {
        assert!(is_right(&numpy.read_sorted(size_of_val(keys))), "the result of numpy is wrong");
    }
    Some(Contender::timed("numpy", move || numpy.run()))
}

/// Stable sorts of elements by a key, and unstable ones that the library competes with where they are faster.
fn sorts_by_key<'a, K: Peer, T: Clone + Send + Sync + 'a>(
    setup: &'a Setup,
    elements: Vec<T>,
    n: usize,
    key: fn(&T) -> K,
    is_right: impl Fn(&Vec<T>) -> bool,
) -> Vec<Contender<'a>> {
    let mut contenders = Vec::new();
    let mut add = |name, sort: fn(&Setup, &mut [T], fn(&T) -> K)| {
        let elements = elements.clone();
        let work = move |all: &mut Vec<T>| all.chunks_mut(n).for_each(|array| sort(setup, array, key));
        contenders.push(Contender::new(name, move || elements.clone(), work, &is_right));
    };
    if setup.threads > 1 {
        add("rayon par_sort", |setup, array, key| {
            setup.pool.install(|| array.par_sort_by(|a, b| compare(&key(a), &key(b))));
        });
        return contenders;
    }
    add("std sort", |_, array, key| array.sort_by(|a, b| compare(&key(a), &key(b))));
    add("glidesort", |_, array, key| glidesort::sort_by(array, |a, b| compare(&key(a), &key(b))));
    add("radsort", |_, array, key| radsort::sort_by_key(array, key));
    contenders
}

/// Sorts of keys, each with a value of the same size. The other contenders sort an array of key-value pairs.
pub fn pairs<'a, K: Peer>(setup: &'a Setup, Arrays { all, n, .. }: Arrays<'a, K>) -> Vec<Contender<'a>> {
    let values: Vec<K::Bits> = Distribution::Sorted.keys(all.len());
    let pairs: Vec<(K, K::Bits)> = all.iter().copied().zip(values.iter().copied()).collect();
    let want = sorted(&pairs, n, |a, b| compare(&a.0, &b.0));
    let work = move |(keys, values): &mut (Vec<K>, Vec<K::Bits>)| {
        for (keys, values) in keys.chunks_mut(n).zip(values.chunks_mut(n)) {
            setup.engine.sort_with(SortOrder::Ascending, (keys, values)).expect("the CPU sorts");
        }
    };
    let prepare = move || (memory::copy(all), memory::copy(&values));
    let ours = Contender::new("merge-host", prepare, work, |(keys, values)| {
        keys.iter().zip(values).zip(&want).all(|((key, value), want)| compare(key, &want.0).is_eq() && *value == want.1)
    });
    let is_right = |pairs: &Vec<(K, K::Bits)>| *pairs == want;
    [vec![ours], sorts_by_key(setup, pairs.clone(), n, |pair| pair.0, is_right)].into_iter().flatten().collect()
}

/// The permutation that sorts the keys. The other contenders sort an array of keys with their indices.
pub fn argsort<'a, K: Peer>(setup: &'a Setup, Arrays { all, n, .. }: Arrays<'a, K>) -> Vec<Contender<'a>> {
    let pairs: Vec<(K, u32)> = all.chunks(n).flat_map(|keys| keys.iter().copied().zip(0..)).collect();
    let want = sorted(&pairs, n, |a, b| compare(&a.0, &b.0));
    let work = move |indices: &mut Vec<u32>| {
        for (keys, indices) in all.chunks(n).zip(indices.chunks_mut(n)) {
            setup.engine.argsort(SortOrder::Ascending, keys, indices).expect("the CPU sorts");
        }
    };
    let is_right = |indices: &Vec<u32>| indices.iter().copied().eq(want.iter().map(|pair| pair.1));
    let ours = Contender::new("merge-host", || memory::filled(1, all.len()), work, is_right);
    let peers = sorts_by_key(setup, pairs.clone(), n, |pair| pair.0, |pairs| *pairs == want);
    let numpy = if setup.threads == 1 { numpy(setup, "argsort", all, n, |_| true) } else { None };
    [ours].into_iter().chain(peers).chain(numpy).collect()
}

/// An element with a key of type `K`.
#[derive(Clone, Copy, PartialEq)]
struct Record<K> {
    key: K,
    rest: [u32; 4],
}

/// Sorts of structs by a key.
pub fn structs<'a, K: Peer>(setup: &'a Setup, Arrays { all, n, .. }: Arrays<'a, K>) -> Vec<Contender<'a>> {
    let records: Vec<_> = all.iter().zip(0..).map(|(&key, i)| Record { key, rest: [i; 4] }).collect();
    let want = sorted(&records, n, |a, b| compare(&a.key, &b.key));
    let again = records.clone();
    let work = move |all: &mut Vec<Record<K>>| {
        all.chunks_mut(n).for_each(|array| {
            setup.engine.sort_by_key(array, |record| record.key).expect("the CPU sorts");
        });
    };
    let is_right = |found: &Vec<Record<K>>| *found == want;
    let ours = Contender::new("merge-host", move || memory::copy(&again), work, is_right);
    [vec![ours], sorts_by_key(setup, records, n, |record| record.key, is_right)].into_iter().flatten().collect()
}

/// The name of a number: its digits to the base of 26, as letters.
fn name(mut number: u64) -> String {
    let mut letters = vec![];
    while number > 0 {
        letters.push(b'a' + (number % 26) as u8);
        number /= 26;
    }
    letters.reverse();
    String::from_utf8(letters).expect("letters are ASCII")
}

/// Sorts of strings: the names of the keys' numbers.
pub fn strings<'a, K: Peer>(setup: &'a Setup, Arrays { all, n, .. }: Arrays<'a, K>) -> Vec<Contender<'a>> {
    let number = |key: &K| {
        let mut bytes = [0; 16];
        bytes[..size_of::<K>()].copy_from_slice(bytemuck::bytes_of(key));
        u128::from_le_bytes(bytes) as u64
    };
    let strings: Vec<String> = all.iter().map(|key| name(number(key))).collect();
    let want = sorted(&strings, n, Ord::cmp);
    let mut contenders = vec![];
    let mut add = |name, sort: fn(&Setup, &mut [String])| {
        let strings = strings.clone();
        let work = move |all: &mut Vec<String>| all.chunks_mut(n).for_each(|array| sort(setup, array));
        contenders.push(Contender::new(name, move || strings.clone(), work, |found| *found == want));
    };
    add("merge-host", |setup, array| {
        setup.engine.sort_by_bytes(array, |string| string.as_bytes()).expect("the CPU sorts");
    });
    add("merge-host sort_by", |setup, array| {
        setup.engine.sort_by(array, Ord::cmp).expect("the CPU sorts");
    });
    if setup.threads > 1 {
        add("rayon par_sort", |setup, array| setup.pool.install(|| array.par_sort()));
        add("rayon par_sort_unstable", |setup, array| setup.pool.install(|| array.par_sort_unstable()));
    } else {
        add("std sort", |_, array| array.sort());
        add("std sort_unstable", |_, array| array.sort_unstable());
        add("glidesort", |_, array| glidesort::sort(array));
    }
    contenders
}

/// Merges of the two halves of each array, which are sorted first, and copies for comparison.
pub fn merge<'a, K: Peer>(setup: &'a Setup, Arrays { all, n, .. }: Arrays<'a, K>) -> Vec<Contender<'a>> {
    let half = n / 2;
    let mut halves = all.to_vec();
    for array in halves.chunks_mut(n) {
        let (a, b) = array.split_at_mut(half);
        a.sort_by(compare);
        b.sort_by(compare);
    }
    let (want, again) = (sorted(all, n, compare), halves.clone());
    let prepare = || memory::filled(K::zeroed(), all.len());
    let copy = move |out: &mut Vec<K>| setup.pool.install(|| copy_in_parallel(all, out, setup.threads));
    let engines = move |out: &mut Vec<K>| {
        for (array, out) in halves.chunks(n).zip(out.chunks_mut(n)) {
            setup.engine.merge(&array[..half], &array[half..], out).expect("the CPU merges");
        }
    };
    let mut contenders = vec![
        Contender::new("merge-host", prepare, engines, |out| equal(out, &want)),
        Contender::new("copy", prepare, copy, |out| equal(out, all)),
    ];
    if setup.threads == 1 {
        let work = move |out: &mut Vec<K>| {
            for (array, out) in again.chunks(n).zip(out.chunks_mut(n)) {
                two_cursors(&array[..half], &array[half..], out);
            }
        };
        contenders.push(Contender::new("two cursors", prepare, work, |out| equal(out, &want)));
    }
    contenders
}

fn copy_in_parallel<K: Peer>(from: &[K], to: &mut [K], threads: usize) {
    let part = from.len().div_ceil(threads);
    to.par_chunks_mut(part).zip(from.par_chunks(part)).for_each(|(to, from)| to.copy_from_slice(from));
}

/// The textbook merge with two cursors.
fn two_cursors<K: Peer>(a: &[K], b: &[K], out: &mut [K]) {
    let (mut i, mut j) = (0, 0);
    for to in out {
        let from_a = j == b.len() || i < a.len() && compare(&a[i], &b[j]).is_le();
        if from_a {
            *to = a[i];
            i += 1;
        } else {
            *to = b[j];
            j += 1;
        }
    }
}
