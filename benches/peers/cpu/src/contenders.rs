//! The contenders of each task. The first is this library.

use crate::distribution::Distribution;
use crate::keys::{Keys, Peer, compare, equal};
use crate::measure::Contender;
use crate::memory;
use crate::numpy::Numpy;
use merge_host::{Engine, SortOrder};
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};
use rdst::RadixSort as _;
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

/// The keys in the order of the standard library's stable sort.
fn sorted<K: Peer>(keys: &[K]) -> Vec<K> {
    let mut keys = keys.to_vec();
    keys.sort_by(compare);
    keys
}

/// Sorts of keys alone.
pub fn sort<'a, K: Peer>(setup: &'a Setup, dist: Keys, keys: &'a [K]) -> Vec<Contender<'a>> {
    let want = sorted(keys);
    let mut contenders = Vec::new();
    let mut add = |name, sort: fn(&Setup, &mut [K])| {
        let work = move |keys: &mut Vec<K>| sort(setup, keys);
        contenders.push(Contender::new(name, || memory::copy(keys), work, |keys| equal(keys, &want)));
    };
    add("merge-host", |setup, keys| {
        setup.engine.sort(keys).expect("the CPU sorts");
    });
    if setup.threads == 1 {
        add("std sort", |_, keys| keys.sort_by(compare));
        add("std sort_unstable", |_, keys| keys.sort_unstable_by(compare));
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
        #[cfg(feature = "vqsort")]
        add("vqsort", |_, keys| vqsort_rs::sort(keys));
    } else {
        // It starts a pool of this number of threads in each call, but sorts fewer than about 2·10^6 keys with rayon in
        // the current pool.
        add("voracious", |setup, keys| setup.pool.install(|| keys.voracious_mt_sort(setup.threads)));
    }
    if setup.threads == 1 && setup.has_numpy {
        contenders.push(numpy(keys, &want));
    }
    contenders
}

fn numpy<'a, K: Peer>(keys: &[K], want: &[K]) -> Contender<'a> {
    let mut numpy = Numpy::start(K::NUMPY, bytemuck::cast_slice(keys), keys.len());
    assert!(
        numpy.read_sorted(size_of_val(keys)) == bytemuck::cast_slice::<K, u8>(want),
        "the result of numpy is wrong"
    );
    Contender::timed("numpy", move || numpy.sort())
}

/// Stable sorts of `pairs` by their keys, for comparison with sorts of keys with a payload.
fn sorts_of_pairs<'a, K: Peer, V: Copy + PartialEq + Send + Sync + 'a>(
    setup: &'a Setup,
    pairs: Vec<(K, V)>,
    want: &[(K, V)],
) -> Vec<Contender<'a>> {
    let is_right = |pairs: &Vec<(K, V)>| same_pairs(pairs.iter().copied(), want);
    if setup.threads > 1 {
        let work = |pairs: &mut Vec<(K, V)>| setup.pool.install(|| pairs.par_sort_by(|a, b| compare(&a.0, &b.0)));
        return vec![Contender::new("rayon par_sort", move || memory::copy(&pairs), work, is_right)];
    }
    let again = pairs.clone();
    let std = |pairs: &mut Vec<(K, V)>| pairs.sort_by(|a, b| compare(&a.0, &b.0));
    let radsort = |pairs: &mut Vec<(K, V)>| radsort::sort_by_key(pairs, |pair| pair.0);
    vec![
        Contender::new("std sort", move || memory::copy(&pairs), std, is_right),
        Contender::new("radsort", move || memory::copy(&again), radsort, is_right),
    ]
}

/// Whether the keys have the same bits and the values are equal.
fn same_pairs<K: Peer, V: PartialEq>(pairs: impl Iterator<Item = (K, V)>, want: &[(K, V)]) -> bool {
    pairs.zip(want).all(|(pair, want)| compare(&pair.0, &want.0).is_eq() && pair.1 == want.1)
}

/// The key-value pairs in the order of the standard library's stable sort.
fn sorted_pairs<K: Peer, V: Copy>(pairs: &[(K, V)]) -> Vec<(K, V)> {
    let mut pairs = pairs.to_vec();
    pairs.sort_by(|a, b| compare(&a.0, &b.0));
    pairs
}

/// Sorts of keys, each with a value of the same size. The other contenders sort an array of key-value pairs.
pub fn pairs<'a, K: Peer>(setup: &'a Setup, keys: &'a [K]) -> Vec<Contender<'a>> {
    let values: Vec<K::Bits> = Distribution::Sorted.keys(keys.len());
    let pairs: Vec<(K, K::Bits)> = keys.iter().copied().zip(values.iter().copied()).collect();
    let want = sorted_pairs(&pairs);
    let work = |(keys, values): &mut (Vec<K>, Vec<K::Bits>)| {
        setup.engine.sort_with(SortOrder::Ascending, (keys, values)).expect("the CPU sorts");
    };
    let prepare = move || (memory::copy(keys), memory::copy(&values));
    let ours = Contender::new("merge-host", prepare, work, |(keys, values)| {
        same_pairs(keys.iter().copied().zip(values.iter().copied()), &want)
    });
    [vec![ours], sorts_of_pairs(setup, pairs, &want)].into_iter().flatten().collect()
}

/// The permutation that sorts the keys. The other contenders sort an array of keys with their indices.
pub fn argsort<'a, K: Peer>(setup: &'a Setup, keys: &'a [K]) -> Vec<Contender<'a>> {
    let pairs: Vec<(K, u32)> = keys.iter().copied().zip(0..).collect();
    let want = sorted_pairs(&pairs);
    let work = |indices: &mut Vec<u32>| {
        setup.engine.argsort(SortOrder::Ascending, keys, indices).expect("the CPU sorts");
    };
    let ours = Contender::new(
        "merge-host",
        || memory::filled(1, keys.len()),
        work,
        |indices| indices.iter().copied().eq(want.iter().map(|pair| pair.1)),
    );
    [vec![ours], sorts_of_pairs(setup, pairs, &want)].into_iter().flatten().collect()
}

/// Merges of the two halves, which are sorted first, and copies for comparison.
pub fn merge<'a, K: Peer>(setup: &'a Setup, keys: &'a [K]) -> Vec<Contender<'a>> {
    let (a, b) = keys.split_at(keys.len() / 2);
    let (a, b) = (sorted(a), sorted(b));
    let want = sorted(keys);
    let again = (a.clone(), b.clone());
    let prepare = || memory::filled(K::zeroed(), keys.len());
    let copy = |out: &mut Vec<K>| setup.pool.install(|| copy_in_parallel(keys, out, setup.threads));
    let engines = move |out: &mut Vec<K>| {
        setup.engine.merge(&a, &b, out).expect("the CPU merges");
    };
    let mut contenders = vec![
        Contender::new("merge-host", prepare, engines, |out| equal(out, &want)),
        Contender::new("copy", prepare, copy, |out| equal(out, keys)),
    ];
    if setup.threads == 1 {
        let work = move |out: &mut Vec<K>| two_cursors(&again.0, &again.1, out);
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
