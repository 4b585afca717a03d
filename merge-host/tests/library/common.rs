//! Inputs, and expected results from the standard library's stable sort.

#[path = "../../../tests/src/cases.rs"]
mod cases;

use merge_host::{Descending, Engine, Key, NanFirst, NanLast, NanOrder, SortOrder, f16};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A key type, with the properties that the tests need.
pub trait TestKey: Key {
    /// The specified order, by the standard library.
    fn order(&self, other: &Self) -> Ordering;
    /// The key with the most significant bits of `bits`.
    fn from_random(bits: u128) -> Self;
    /// The key with all bits inverted.
    fn inverted(self) -> Self;
    /// The number `value`, or the nearest number of the type.
    fn number(value: i64) -> Self;
    /// The ends of the range, and for floats the special values.
    fn special() -> Vec<Self>;
    /// Whether the key is a NaN, and if so, whether it is one of the NaNs that are the least keys.
    fn nan(&self) -> Option<bool> {
        None
    }
}

macro_rules! integer {
    ($($t:ty)*) => {$(
        impl TestKey for $t {
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
            fn from_random(bits: u128) -> Self {
                (bits >> (128 - <$t>::BITS)) as $t
            }
            fn inverted(self) -> Self {
                !self
            }
            fn number(value: i64) -> Self {
                Self::try_from(value).unwrap_or(if value < 0 { <$t>::MIN } else { <$t>::MAX })
            }
            fn special() -> Vec<Self> {
                vec![0, 1, 2, <$t>::MIN, <$t>::MIN + 1, <$t>::MAX, <$t>::MAX - 1, <$t>::MAX / 2, <$t>::MAX / 2 + 1]
            }
        }
    )*};
}
integer!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize u128 i128);

macro_rules! float {
    ($($t:ty as $bits:ty: $from:expr;)*) => {$(
        impl TestKey for $t {
            fn order(&self, other: &Self) -> Ordering {
                self.total_cmp(other)
            }
            fn from_random(bits: u128) -> Self {
                <$t>::from_bits((bits >> (128 - <$bits>::BITS)) as $bits)
            }
            fn inverted(self) -> Self {
                <$t>::from_bits(!self.to_bits())
            }
            fn number(value: i64) -> Self {
                ($from)(value as f64)
            }
            fn special() -> Vec<Self> {
                let smallest = <$t>::from_bits(1);
                let largest_subnormal = <$t>::from_bits(<$t>::MIN_POSITIVE.to_bits() - 1);
                let nan_with_payload = <$t>::from_bits(<$t>::INFINITY.to_bits() | 0x1234);
                let mut special = vec![($from)(0.0), smallest, largest_subnormal, <$t>::MIN_POSITIVE, ($from)(1.0)];
                special.extend([<$t>::MAX, <$t>::INFINITY, <$t>::NAN, nan_with_payload]);
                special.extend(special.clone().into_iter().map(|value| -value));
                special
            }
            fn nan(&self) -> Option<bool> {
                self.is_nan().then(|| self.is_sign_negative())
            }
        }
    )*};
}
float!(f16 as u16: f16::from_f64; f32 as u32: |value| value as f32; f64 as u64: |value| value;);

/// The same keys in the opposite order.
impl<K: TestKey> TestKey for Descending<K> {
    fn order(&self, other: &Self) -> Ordering {
        other.0.order(&self.0)
    }
    fn from_random(bits: u128) -> Self {
        Self(K::from_random(bits))
    }
    fn inverted(self) -> Self {
        Self(self.0.inverted())
    }
    /// In the order of the numbers: a greater number is a greater key.
    fn number(value: i64) -> Self {
        Self(K::from_ordered(!K::number(value).to_ordered()))
    }
    fn special() -> Vec<Self> {
        K::special().into_iter().map(Self).collect()
    }
    fn nan(&self) -> Option<bool> {
        self.0.nan().map(|is_least| !is_least)
    }
}

/// The order of two keys that differs from `K::order` in the place of NaNs. NaNs that would be the least keys follow
/// the NaNs that would be the greatest.
pub fn order_with<K: TestKey>(nans: NanOrder, a: &K, b: &K) -> Ordering {
    let first = nans == NanOrder::First;
    match (a.nan(), b.nan()) {
        (Some(x), Some(y)) if nans != NanOrder::Total => x.cmp(&y).then(a.order(b)),
        (Some(_), None) if nans != NanOrder::Total => {
            if first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (None, Some(_)) if nans != NanOrder::Total => {
            if first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        _ => a.order(b),
    }
}

macro_rules! nan_wrapper {
    ($($name:ident: $order:ident;)*) => {$(
        impl<K: TestKey> TestKey for $name<K> {
            fn order(&self, other: &Self) -> Ordering {
                order_with(NanOrder::$order, &self.0, &other.0)
            }
            fn from_random(bits: u128) -> Self {
                Self(K::from_random(bits))
            }
            fn inverted(self) -> Self {
                Self(self.0.inverted())
            }
            fn number(value: i64) -> Self {
                Self(K::number(value))
            }
            fn special() -> Vec<Self> {
                K::special().into_iter().map(Self).collect()
            }
        }
    )*};
}
nan_wrapper!(NanLast: Last; NanFirst: First;);

/// Calls a generic test function once for each key type, and for some types in descending order.
#[macro_export]
macro_rules! for_all_key_types {
    ($test:ident($($argument:expr),*)) => {
        $test::<u8>($($argument),*);
        $test::<i8>($($argument),*);
        $test::<u16>($($argument),*);
        $test::<i16>($($argument),*);
        $test::<merge_host::f16>($($argument),*);
        $test::<u32>($($argument),*);
        $test::<i32>($($argument),*);
        $test::<f32>($($argument),*);
        $test::<u64>($($argument),*);
        $test::<i64>($($argument),*);
        $test::<f64>($($argument),*);
        $test::<usize>($($argument),*);
        $test::<u128>($($argument),*);
        $test::<i128>($($argument),*);
        $test::<merge_host::Descending<u8>>($($argument),*);
        $test::<merge_host::Descending<f32>>($($argument),*);
        $test::<merge_host::Descending<i64>>($($argument),*);
        $test::<merge_host::NanLast<merge_host::f16>>($($argument),*);
        $test::<merge_host::NanLast<f32>>($($argument),*);
        $test::<merge_host::NanFirst<f64>>($($argument),*);
    };
}

/// Calls a generic test function once with keys of each width and in each kind of order. [`for_all_key_types!`] tests
/// each type; here one type stands for all types that share the compiled code. The tests of `descending` are for
/// descending keys.
#[macro_export]
macro_rules! for_keys_of_all_kinds {
    ($test:ident($($argument:expr),*)) => {
        $test::<u8>($($argument),*);
        $test::<merge_host::f16>($($argument),*);
        $test::<u32>($($argument),*);
        $test::<f32>($($argument),*);
        $test::<i64>($($argument),*);
        $test::<f64>($($argument),*);
        $test::<u128>($($argument),*);
        $test::<merge_host::NanLast<f32>>($($argument),*);
    };
}

/// A new seed for each call, or the value of the variable `MERGE_TEST_SEED`, which reproduces a failure.
pub fn seed() -> u64 {
    match std::env::var("MERGE_TEST_SEED") {
        Ok(seed) => seed.parse().expect("MERGE_TEST_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    }
}

/// Whether a case is tried: one of two, at random, or with `GMERGE_TESTS=all` each.
pub fn is_tried() -> bool {
    cases::tries_all() || rand::random()
}

pub fn rng(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// The kinds of keys that [`keys`] makes.
pub const KINDS: [&str; 6] = ["any bits", "16 values", "all equal", "special", "small numbers", "ascending"];

pub fn keys<K: TestKey>(kind: &str, length: usize, rng: &mut StdRng) -> Vec<K> {
    let special = K::special();
    let one_of = |keys: &[K], rng: &mut StdRng| keys[rng.random_range(0..keys.len())];
    let sixteen: Vec<K> = (0..16).map(|_| K::from_random(rng.random())).collect();
    (0..length)
        .map(|i| match kind {
            "any bits" => K::from_random(rng.random()),
            "16 values" => one_of(&sixteen, rng),
            "all equal" => sixteen[0],
            "special" => one_of(&special, rng),
            "small numbers" => K::number(rng.random_range(-100..1000)),
            "ascending" => K::number(i as i64),
            _ => panic!("no kind of keys is called {kind}"),
        })
        .collect()
}

/// The indices up to `count` in the order of a comparison, by the standard library's stable sort. All types share one
/// instance of the sort, which compiles in a fraction of the time of one instance for each type.
pub fn sorted_indices_by(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..count).collect();
    indices.sort_by(|&x, &y| compare(x, y));
    indices
}

/// The indices of `keys` in the given order, by the standard library's stable sort.
pub fn sorted_indices<K: TestKey>(order: SortOrder, keys: &[K]) -> Vec<usize> {
    match order {
        SortOrder::Ascending => sorted_indices_by(keys.len(), &|x, y| keys[x].order(&keys[y])),
        SortOrder::Descending => sorted_indices_by(keys.len(), &|x, y| keys[y].order(&keys[x])),
    }
}

/// The offsets of segments of these lengths.
pub fn offsets(lengths: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    offsets
}

/// The elements with these indices.
pub fn gathered<T: Copy>(from: &[T], indices: &[usize]) -> Vec<T> {
    indices.iter().map(|&index| from[index]).collect()
}

pub fn sorted<K: TestKey>(keys: Vec<K>) -> Vec<K> {
    gathered(&keys, &sorted_indices(SortOrder::Ascending, &keys))
}

/// The pairs in the given order, by a stable sort.
pub fn sorted_pairs<K: TestKey, V: TestValue>(order: SortOrder, keys: &[K], values: &[V]) -> (Vec<K>, Vec<V>) {
    let indices = sorted_indices(order, keys);
    (gathered(keys, &indices), gathered(values, &indices))
}

pub fn merged<K: TestKey>(a: &[K], b: &[K]) -> Vec<K> {
    // The sort is stable, and A's keys precede B's.
    sorted([a, b].concat())
}

/// An output with wrong keys in all slots.
pub fn poisoned<K: TestKey>(want: &[K]) -> Vec<K> {
    want.iter().map(|key| key.inverted()).collect()
}

/// Fails unless both slices are identical, bit by bit. `what` describes the input.
#[track_caller]
pub fn assert_same<K: TestKey>(found: &[K], want: &[K], what: impl Fn() -> String) {
    assert_same_keys(found, want, &what);
}

/// [`assert_same`], compiled once for all descriptions.
#[track_caller]
fn assert_same_keys<K: TestKey>(found: &[K], want: &[K], what: &dyn Fn() -> String) {
    assert_eq!(found.len(), want.len(), "{}: number of keys", what());
    let bytes = |keys| bytemuck::cast_slice::<K, u8>(keys);
    if bytes(found) != bytes(want) {
        let differs = |&i: &usize| bytes(&found[i..=i]) != bytes(&want[i..=i]);
        let i = (0..want.len()).find(differs).expect("the bytes differ somewhere");
        panic!("{} {}: key {i} of {} is {:?}, expected {:?}", K::NAME, what(), want.len(), found[i], want[i]);
    }
}

/// Engines of one to four threads.
pub fn cpu_engines() -> Vec<Engine> {
    (1..=4).map(|threads| Engine::cpu_with_threads(threads).unwrap()).collect()
}

/// A value type, with the properties that the tests need.
pub trait TestValue: Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// The value with the given number. Values of different numbers differ, as far as the type has enough values.
    fn number(value: usize) -> Self;
}

impl TestValue for u8 {
    fn number(value: usize) -> Self {
        value as u8
    }
}

impl TestValue for [u16; 3] {
    fn number(value: usize) -> Self {
        [value as u16, (value >> 16) as u16, !value as u16]
    }
}

impl TestValue for u32 {
    fn number(value: usize) -> Self {
        value as u32
    }
}

impl TestValue for u64 {
    fn number(value: usize) -> Self {
        value as u64 | 0xabcd << 48
    }
}

impl TestValue for f64 {
    fn number(value: usize) -> Self {
        value as f64 + 0.5
    }
}

impl TestValue for [u8; 3] {
    fn number(value: usize) -> Self {
        std::array::from_fn(|i| (value >> (8 * i)) as u8)
    }
}

impl TestValue for (u64, u64, u64) {
    fn number(value: usize) -> Self {
        (value as u64, !value as u64, 7 * value as u64)
    }
}

impl TestValue for () {
    fn number(_: usize) -> Self {}
}

/// Calls a generic test function of a key type and a value type with a few pairs of types. Keys have each width and
/// each kind of order, and values have 4, 8 and other numbers of bytes. Few pairs suffice: the sort of keys depends
/// little on their values, and each pair is compiled. The pairs are those that most tests share.
#[macro_export]
macro_rules! for_all_pairs {
    (@ $test:ident $arguments:tt $($K:ty: $($V:ty),*;)*) => {
        $($($test::<$K, $V> $arguments;)*)*
    };
    ($test:ident($($argument:expr),*)) => {
        $crate::for_all_pairs! {
            @ $test ($($argument),*)
            u8: [u8; 3];
            merge_host::f16: ();
            u32: u32;
            f32: u64;
            i64: u32;
            f64: (u64, u64, u64);
            u128: u64;
            merge_host::NanFirst<f64>: u64;
        }
    };
}

/// The number of a value that occurs in no input.
const POISON: usize = 0xdead00;

/// The values with the numbers `first..first + count`, which distinguish equal keys.
pub fn values<V: TestValue>(first: usize, count: usize) -> Vec<V> {
    assert!(first + count <= POISON);
    (first..first + count).map(V::number).collect()
}

/// The pairs of `a` and `b`, merged by a stable sort.
pub fn merged_pairs<K: TestKey, V: TestValue>(a: (&[K], &[V]), b: (&[K], &[V])) -> (Vec<K>, Vec<V>) {
    sorted_pairs(SortOrder::Ascending, &[a.0, b.0].concat(), &[a.1, b.1].concat())
}

/// An output with wrong keys and values in all slots.
pub fn poisoned_pairs<K: TestKey, V: TestValue>(want: &(Vec<K>, Vec<V>)) -> (Vec<K>, Vec<V>) {
    (poisoned(&want.0), vec![V::number(POISON); want.1.len()])
}

/// Fails unless keys and values are equal.
#[track_caller]
pub fn assert_same_pairs<K: TestKey, V: TestValue>(
    found: &(Vec<K>, Vec<V>),
    want: &(Vec<K>, Vec<V>),
    what: impl Fn() -> String,
) {
    assert_same_keys_and_values(found, want, &what);
}

/// [`assert_same_pairs`], compiled once for all descriptions.
#[track_caller]
fn assert_same_keys_and_values<K: TestKey, V: TestValue>(
    found: &(Vec<K>, Vec<V>),
    want: &(Vec<K>, Vec<V>),
    what: &dyn Fn() -> String,
) {
    assert_same_keys(&found.0, &want.0, what);
    if found.1 != want.1 {
        let i = (0..want.1.len()).find(|&i| found.1[i] != want.1[i]).expect("they differ somewhere");
        let (key, found, want) = (want.0[i], found.1[i], want.1[i]);
        panic!("{} {}: the value of key {i} ({key:?}) is {found:?}, expected {want:?}", K::NAME, what());
    }
}
