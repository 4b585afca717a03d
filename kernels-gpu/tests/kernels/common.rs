//! Inputs, the oracle, and functions that run each kernel in the emulator.

#[path = "../../../tests/src/cases.rs"]
mod cases;

use cuda_std::Word;
use cuda_std::emulator::Buffer;
use cuda_std::emulator::{Emulator, Fault};
use kernels_gpu::elements::{Elements, Slice};
use kernels_gpu::key::{Coding, Key};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fmt::Debug;

/// The six key types, in both orders, and floats in all orders of NaNs, with the functions that tests need.
pub trait TestKey: Key + Debug + PartialEq {
    /// The key's bits.
    fn to_raw(self) -> Self::Bits;
    /// The key with these bits.
    fn from_raw(bits: Self::Bits) -> Self;
    /// Any bit pattern, including NaNs of both signs.
    fn any(random: &mut StdRng) -> Self;
    /// One of a few values, including the type's special values.
    fn few(random: &mut StdRng) -> Self;
    /// The standard library's total order, or an order of this file.
    fn compare(&self, other: &Self) -> std::cmp::Ordering;
    /// Whether the key is a NaN, and if so, whether its sign bit is set.
    fn nan(&self) -> Option<bool> {
        None
    }
}

macro_rules! integer_keys {
    ($($t:ty)*) => {$(
        impl TestKey for $t {
            fn to_raw(self) -> Self::Bits {
                Word::from_register(self.to_register())
            }
            fn from_raw(bits: Self::Bits) -> Self {
                Word::from_register(bits.to_register())
            }
            fn any(random: &mut StdRng) -> Self {
                random.random()
            }
            fn few(random: &mut StdRng) -> Self {
                [<$t>::MIN, <$t>::MIN + 1, 0, 1, 2, <$t>::MAX - 1, <$t>::MAX][random.random_range(0..7)]
            }
            fn compare(&self, other: &Self) -> std::cmp::Ordering {
                self.cmp(other)
            }
        }
    )*};
}
integer_keys!(u32 i32 u64 i64);

macro_rules! float_keys {
    ($($t:ident)*) => {$(
        impl TestKey for $t {
            fn to_raw(self) -> Self::Bits {
                Word::from_register(self.to_register())
            }
            fn from_raw(bits: Self::Bits) -> Self {
                Word::from_register(bits.to_register())
            }
            fn any(random: &mut StdRng) -> Self {
                $t::from_bits(random.random())
            }
            fn few(random: &mut StdRng) -> Self {
                let values = [-$t::NAN, -$t::INFINITY, -1.0, -0.0, 0.0, $t::MIN_POSITIVE / 2.0, $t::INFINITY, $t::NAN];
                values[random.random_range(0..8)]
            }
            fn compare(&self, other: &Self) -> std::cmp::Ordering {
                self.total_cmp(other)
            }
            fn nan(&self) -> Option<bool> {
                self.is_nan().then(|| self.is_sign_negative())
            }
        }
    )*};
}
float_keys!(f32 f64);

/// A key in descending order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descending<K>(K);

impl<K: TestKey> Key for Descending<K> {
    type Bits = K::Bits;
    const NAME: &'static str = K::NAME;
    fn coding() -> Coding<K::Bits> {
        K::coding().reversed()
    }
    fn to_ordered(self) -> K::Bits {
        Self::coding().encode(self.to_raw())
    }
    fn from_ordered(bits: K::Bits) -> Self {
        Self::from_raw(Self::coding().decode(bits))
    }
}

impl<K: TestKey> TestKey for Descending<K> {
    fn to_raw(self) -> K::Bits {
        self.0.to_raw()
    }
    fn from_raw(bits: K::Bits) -> Self {
        Self(K::from_raw(bits))
    }
    fn any(random: &mut StdRng) -> Self {
        Self(K::any(random))
    }
    fn few(random: &mut StdRng) -> Self {
        Self(K::few(random))
    }
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        other.0.compare(&self.0)
    }
}

/// Declares floats with an order of NaNs.
macro_rules! nan_orders {
    ($($name:ident: $with_nans:ident, are_first: $are_first:literal;)*) => {$(
        /// A float with its NaNs at one end, +NaNs before -NaNs.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name<K>(K);

        impl<K: TestKey> Key for $name<K> {
            type Bits = K::Bits;
            const NAME: &'static str = K::NAME;
            fn coding() -> Coding<K::Bits> {
                K::coding().$with_nans()
            }
            fn to_ordered(self) -> K::Bits {
                Self::coding().encode(self.to_raw())
            }
            fn from_ordered(bits: K::Bits) -> Self {
                Self::from_raw(Self::coding().decode(bits))
            }
        }

        impl<K: TestKey> TestKey for $name<K> {
            fn to_raw(self) -> K::Bits {
                self.0.to_raw()
            }
            fn from_raw(bits: K::Bits) -> Self {
                Self(K::from_raw(bits))
            }
            fn any(random: &mut StdRng) -> Self {
                // Half of the keys are special values, of which a quarter are NaNs.
                Self(if random.random() { K::any(random) } else { K::few(random) })
            }
            fn few(random: &mut StdRng) -> Self {
                Self(K::few(random))
            }
            fn compare(&self, other: &Self) -> std::cmp::Ordering {
                match [self, other].map(|key| key.0.nan()) {
                    [None, None] => self.0.compare(&other.0),
                    [Some(a), Some(b)] => a.cmp(&b).then(self.0.compare(&other.0)),
                    [of_self, _] if of_self.is_some() == $are_first => std::cmp::Ordering::Less,
                    _ => std::cmp::Ordering::Greater,
                }
            }
        }
    )*};
}
nan_orders! {
    NanLast: with_nans_last, are_first: false;
    NanFirst: with_nans_first, are_first: true;
}

/// Picks a third of the cases at random, or all cases with `GMERGE_TESTS=all`.
pub fn tried<T>(cases: impl IntoIterator<Item = T>) -> Vec<T> {
    cases::tried(cases, |end| rand::random_range(0..end))
}

/// Calls a generic test for a random type of each pair below, or for all types. Among them are the six key types,
/// descending types, and floats in orders of NaNs.
macro_rules! for_all_types {
    ($function:ident $arguments:tt) => {
        $crate::for_tried_types!(
            [tried(0..2), tried(2..4), tried(4..6), tried(6..8), tried(8..10)].concat(),
            [(u32) (i32) (f32) (u64) (i64) (f64) (Descending<f32>) (Descending<i64>) (NanLast<f32>) (NanFirst<f64>)],
            $function $arguments
        )
    };
}

/// A new seed for each run. A failing test prints its seed.
pub fn fresh_seed() -> u64 {
    rand::random()
}

/// Distributions of a test's keys.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    Any,
    Few,
    Equal,
}

impl Keys {
    pub const ALL: [Self; 3] = [Self::Any, Self::Few, Self::Equal];

    pub fn random<K: TestKey>(self, n: usize, seed: u64) -> Vec<K> {
        let mut random = StdRng::seed_from_u64(seed);
        let equal = K::few(&mut random);
        (0..n)
            .map(|_| match self {
                Self::Any => K::any(&mut random),
                Self::Few => K::few(&mut random),
                Self::Equal => equal,
            })
            .collect()
    }

    pub fn ascending<K: TestKey>(self, n: usize, seed: u64) -> Vec<K> {
        sorted(self.random(n, seed))
    }
}

/// The standard library's stable sort.
pub fn sorted<K: TestKey>(mut keys: Vec<K>) -> Vec<K> {
    keys.sort_by(K::compare);
    keys
}

/// The oracle of every merge: the standard library's stable sort of A followed by B.
pub fn merged<K: TestKey>(a: &[K], b: &[K]) -> Vec<K> {
    sorted([a, b].concat())
}

/// The bits of keys: unlike floats, they compare equal for a NaN, and unequal for -0.0 and 0.0.
pub fn bits<K: TestKey>(keys: &[K]) -> Vec<u64> {
    keys.iter().map(|key| key.to_raw().to_register()).collect()
}

/// Copies keys to the emulator's memory.
pub fn load<K: TestKey>(emulator: &mut Emulator, keys: &[K]) -> Buffer<K::Bits> {
    emulator.buffer(&keys.iter().map(|key| key.to_raw()).collect::<Vec<_>>())
}

/// Copies keys from the emulator's memory.
pub fn store<K: TestKey>(emulator: &mut Emulator, from: Buffer<K::Bits>) -> Result<Vec<K>, Fault> {
    Ok(emulator.read(from)?.into_iter().map(K::from_raw).collect())
}

/// The addresses of keys and their values, from index `begin` on.
pub fn elements_from<B: Word, V: Word>(keys: Buffer<B>, values: Buffer<V>, begin: usize) -> Elements<B, V> {
    Elements { keys: keys.as_mut_ptr().wrapping_add(begin), values: values.as_mut_ptr().wrapping_add(begin) }
}

/// The addresses of keys alone.
pub fn keys_alone<B: Word>(keys: Buffer<B>) -> Elements<B, ()> {
    Elements { keys: keys.as_mut_ptr(), values: std::ptr::null_mut() }
}

/// The keys of a run.
pub fn keys_of<B, V>(run: Slice<B, V>) -> Slice<B, ()> {
    Slice { at: Elements { keys: run.at.keys, values: std::ptr::null_mut() }, len: run.len }
}

/// Runs `work` on a fresh emulator. A fault fails the test with the fault's message.
pub fn emulated<T>(seed: u64, work: impl FnOnce(&mut Emulator) -> Result<T, Fault>) -> T {
    work(&mut Emulator::new(seed)).unwrap_or_else(|fault| panic!("{fault} (emulator seed {seed})"))
}

pub mod run {
    //! Each merge, launched as on the host, with any grid.
    use super::*;
    use kernels_gpu::kernels::merge_fused::{self, merge_fused};
    use kernels_gpu::kernels::merge_path::{self, PATH_SHARED_BYTES, PATH_THREADS, TwoRuns, merge_big, path_big};
    use kernels_gpu::textbook::merge_basic::merge_basic;
    use kernels_gpu::textbook::merge_circular::{self, merge_circular};
    use kernels_gpu::textbook::merge_small::{self, merge_small};
    use kernels_gpu::textbook::merge_tiled::{self, merge_tiled};
    use kernels_gpu::textbook::sequential::merge_one_thread;

    pub fn one_thread<K: TestKey>(seed: u64, a: &[K], b: &[K]) -> Result<Vec<K>, Fault> {
        let mut emulator = Emulator::new(seed);
        let (a, b, c) = (load(&mut emulator, a), load(&mut emulator, b), emulator.uninit(a.len() + b.len()));
        // SAFETY: `a` and `b` have the lengths that are passed, and `c` has capacity for both. The launch is one
        // thread. The emulator reports every access outside of the buffers.
        emulator.launch("merge_one_thread", 1, 1, 0, || unsafe {
            merge_one_thread::<K::Bits>(a.as_ptr(), a.len(), b.as_ptr(), b.len(), c.as_mut_ptr(), K::coding())
        })?;
        store(&mut emulator, c)
    }

    pub fn basic<K: TestKey>(seed: u64, a: &[K], b: &[K], grid: u32, block: u32) -> Result<Vec<K>, Fault> {
        let mut emulator = Emulator::new(seed);
        let (a, b, c) = (load(&mut emulator, a), load(&mut emulator, b), emulator.uninit(a.len() + b.len()));
        // SAFETY: `a` and `b` have the lengths that are passed, and `c` has capacity for both. The emulator reports
        // every access outside of the buffers.
        emulator.launch("merge_basic", grid, block, 0, || unsafe {
            merge_basic::<K::Bits>(a.as_ptr(), a.len(), b.as_ptr(), b.len(), c.as_mut_ptr(), K::coding())
        })?;
        store(&mut emulator, c)
    }

    pub fn tiled<K: TestKey>(seed: u64, a: &[K], b: &[K], grid: u32, block: u32, tile: u32) -> Result<Vec<K>, Fault> {
        let mut emulator = Emulator::new(seed);
        let (a, b, c) = (load(&mut emulator, a), load(&mut emulator, b), emulator.uninit(a.len() + b.len()));
        // SAFETY: `a` and `b` have the lengths that are passed, and `c` has capacity for both. The launch has the
        // shared memory of tiles of `tile >= 1` keys.
        emulator.launch("merge_tiled", grid, block, merge_tiled::shared_bytes::<K::Bits>(tile), || unsafe {
            merge_tiled::<K::Bits>(a.as_ptr(), a.len(), b.as_ptr(), b.len(), c.as_mut_ptr(), tile, K::coding())
        })?;
        store(&mut emulator, c)
    }

    pub fn circular<K: TestKey>(
        seed: u64,
        a: &[K],
        b: &[K],
        grid: u32,
        block: u32,
        tile: u32,
    ) -> Result<Vec<K>, Fault> {
        let mut emulator = Emulator::new(seed);
        let (a, b, c) = (load(&mut emulator, a), load(&mut emulator, b), emulator.uninit(a.len() + b.len()));
        // SAFETY: `a` and `b` have the lengths that are passed, and `c` has capacity for both. The launch has the
        // shared memory of buffers of `tile >= 1` keys.
        emulator.launch("merge_circular", grid, block, merge_circular::shared_bytes::<K::Bits>(tile), || unsafe {
            merge_circular::<K::Bits>(a.as_ptr(), a.len(), b.as_ptr(), b.len(), c.as_mut_ptr(), tile, K::coding())
        })?;
        store(&mut emulator, c)
    }

    pub fn small<K: TestKey>(seed: u64, a: &[K], b: &[K], block: u32) -> Result<Vec<K>, Fault> {
        let mut emulator = Emulator::new(seed);
        let (a, b, c) = (load(&mut emulator, a), load(&mut emulator, b), emulator.uninit(a.len() + b.len()));
        let bytes = merge_small::shared_bytes::<K::Bits>((a.len() + b.len()) as u32);
        // SAFETY: `a` and `b` have the lengths that are passed, and `c` has capacity for both. The launch is one block,
        // with shared memory for all keys; the test passes at least one thread per key.
        emulator.launch("merge_small", 1, block, bytes, || unsafe {
            merge_small::<K::Bits>(a.as_ptr(), a.len(), b.as_ptr(), b.len(), c.as_mut_ptr(), K::coding())
        })?;
        store(&mut emulator, c)
    }

    pub fn fused<K: TestKey, const NT: usize, const VT: usize>(
        seed: u64,
        a: &[K],
        b: &[K],
        grid: u32,
    ) -> Result<Vec<K>, Fault> {
        let mut emulator = Emulator::new(seed);
        let (a, b, c) = (load(&mut emulator, a), load(&mut emulator, b), emulator.uninit(a.len() + b.len()));
        let (threads, bytes) = (merge_fused::block_threads(NT), merge_fused::shared_bytes::<K::Bits>(NT * VT));
        // SAFETY: `a` and `b` have the lengths that are passed, and `c` has capacity for both. The launch has the
        // threads and the shared memory of tiles of `NT * VT` keys.
        emulator.launch("merge_fused", grid, threads, bytes, || unsafe {
            merge_fused::<K::Bits, NT, VT>(a.as_ptr(), a.len(), b.as_ptr(), b.len(), c.as_mut_ptr(), K::coding())
        })?;
        store(&mut emulator, c)
    }

    /// `path_big`, then `merge_big` with tiles of `NT * VT`.
    pub fn big<K: TestKey, const NT: usize, const VT: usize>(seed: u64, a: &[K], b: &[K]) -> Result<Vec<K>, Fault> {
        let mut emulator = Emulator::new(seed);
        let [a, b] = [a, b].map(|keys| Slice { at: keys_alone(load(&mut emulator, keys)), len: keys.len() });
        let c = emulator.uninit(a.len + b.len);
        merge_in_two_phases::<K, (), NT, VT>(&mut emulator, a, b, keys_alone(c))?;
        store(&mut emulator, c)
    }

    /// Two arrays as the runs of a merge.
    fn two_runs<B, V>(a: Slice<B, V>, b: Slice<B, V>) -> TwoRuns<B, V> {
        let (offsets, count) = (std::ptr::null(), std::ptr::null());
        TwoRuns { a: a.at, b: b.at, len: a.len + b.len, a_len: a.len, offsets, a_count: count, b_count: count }
    }

    /// The same in the emulator's memory, with values.
    pub fn merge_in_two_phases<K: TestKey, V: Word, const NT: usize, const VT: usize>(
        emulator: &mut Emulator,
        a: Slice<K::Bits, V>,
        b: Slice<K::Bits, V>,
        c: Elements<K::Bits, V>,
    ) -> Result<(), Fault> {
        let tiles = (a.len + b.len).div_ceil(NT * VT);
        if tiles == 0 {
            return Ok(());
        }
        let splits = emulator.uninit::<usize>(tiles + 2);
        let blocks = tiles.div_ceil(PATH_THREADS as usize) as u32;
        // SAFETY: `a` and `b` have the lengths that are passed, and `splits` has capacity for `tiles + 2` numbers. The
        // launch has one thread per tile, rounded up to whole blocks.
        emulator.launch("path_big", blocks, PATH_THREADS, PATH_SHARED_BYTES, || unsafe {
            let runs = two_runs(keys_of(a), keys_of(b));
            path_big(runs, splits.as_mut_ptr(), tiles, NT * VT, std::ptr::null_mut(), K::coding())
        })?;
        let bytes = merge_path::shared_bytes::<K::Bits>(NT * VT, VT, size_of::<V>() > 0);
        // SAFETY: `path_big` has written the `splits` of `a` and `b`, and `c` has capacity for both. The launch has one
        // block of `NT` threads per tile, with the shared memory of a tile.
        emulator.launch("merge_big", tiles as u32, NT as u32, bytes, || unsafe {
            merge_big::<K::Bits, V, NT, VT, false>(two_runs(a, b), c, splits.as_ptr(), K::coding())
        })
    }
}
