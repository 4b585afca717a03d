//! Keys of tests, arrays of an emulated GPU, and expected results by the standard library's stable sort.

#[path = "../../../tests/src/cases.rs"]
mod cases;

pub use cases::tries_all;
use cuda_std::Word;
use cuda_std::emulator::Buffer;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::{Arrays, GpuBits, KeyOrder};
use merge_host::{GpuKey, Key, NanOrder, SortOrder};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cmp::Ordering;

/// The six key types, with an order for tests.
pub trait TestKey: GpuKey<OnGpu: GpuBits> + kernels_gpu::key::Key + Word {
    /// The type's number among the three types of its width.
    const TURN: usize;

    /// The standard library's total order.
    fn compare(&self, other: &Self) -> Ordering;

    /// Whether the key is not a number.
    fn is_nan(&self) -> bool;

    /// The key with these ordered bits.
    fn of_ordered(bits: u64) -> Self {
        <Self as kernels_gpu::key::Key>::from_ordered(Word::from_register(bits))
    }
}

macro_rules! keys {
    ($($t:ty: $compare:ident, $is_nan:expr, $turn:expr;)*) => {$(
        impl TestKey for $t {
            const TURN: usize = $turn;
            fn compare(&self, other: &Self) -> Ordering {
                self.$compare(other)
            }
            fn is_nan(&self) -> bool {
                $is_nan(*self)
            }
        }
    )*};
}
keys! {
    u32: cmp, |_| false, 0;
    i32: cmp, |_| false, 1;
    f32: total_cmp, f32::is_nan, 2;
    u64: cmp, |_| false, 0;
    i64: cmp, |_| false, 1;
    f64: total_cmp, f64::is_nan, 2;
}

/// Picks a third of the cases at random, or all cases with `GMERGE_TESTS=all`.
pub fn tried<T>(cases: impl IntoIterator<Item = T>) -> Vec<T> {
    cases::tried(cases, |end| rand::random_range(0..end))
}

/// Calls a generic test for a random key type of each width, or for all key types. Kernels are compiled for each width
/// of keys, and decode the type.
macro_rules! for_all_types {
    ($function:ident $arguments:tt) => {
        $crate::for_tried_types!(
            [tried(0..3), tried(3..6)].concat(),
            [(u32) (i32) (f32) (u64) (i64) (f64)],
            $function $arguments
        )
    };
}

/// Whether keys of type `K` take the case with this number. If all types are tried, the three types of a width take the
/// cases in turn. Otherwise the one type that is tried takes half of the cases, at random.
pub fn takes_turn<K: TestKey>(case: usize) -> bool {
    if tries_all() { case % 3 == K::TURN } else { rand::random() }
}

/// Calls a generic test for keys alone and with values of one width, at random, or of both, for one type of keys or for
/// the test's own.
macro_rules! with_all_values {
    ($function:ident::<$K:ty> $arguments:tt) => {{
        $function::<$K, ()> $arguments;
        $crate::for_tried_types!(tried(0..2), [($K, u32) ($K, u64)], $function $arguments);
    }};
    ($function:ident $arguments:tt) => {{
        $function::<()> $arguments;
        $crate::for_tried_types!(tried(0..2), [(u32) (u64)], $function $arguments);
    }};
}

/// Calls a generic test with one type of values: with the next one for the next case. Kernels for each type of values
/// divide the work of a launch in the same way.
macro_rules! with_values_in_turn {
    ($case:expr, $function:ident::<$K:ty>($($argument:expr),*)) => {
        match $case % 3 {
            0 => $function::<$K, ()>($($argument),*),
            1 => $function::<$K, u32>($($argument),*),
            _ => $function::<$K, u64>($($argument),*),
        }
    };
}

/// A seed that is new in each run. Tests name it when they fail.
pub fn fresh_seed() -> u64 {
    rand::random()
}

/// Random numbers of a new seed, for the shapes of inputs.
pub fn fresh_random() -> StdRng {
    StdRng::seed_from_u64(fresh_seed())
}

/// Either order, with one of the orders of NaNs, by the seed.
pub fn order_of(seed: u64) -> KeyOrder {
    let direction = if seed.is_multiple_of(2) { SortOrder::Ascending } else { SortOrder::Descending };
    KeyOrder { direction, nans: [NanOrder::Total, NanOrder::Last, NanOrder::First][(seed / 2 % 3) as usize] }
}

/// Compares two keys. NaNs with the sign bit clear precede NaNs with the sign bit set, unless the order is total.
fn compare_in<K: TestKey>(order: KeyOrder, a: &K, b: &K) -> Ordering {
    let directed = |ordering: Ordering| match order.direction {
        SortOrder::Ascending => ordering,
        SortOrder::Descending => ordering.reverse(),
    };
    let nans = [a, b].map(TestKey::is_nan);
    let of_nans = nans[0].cmp(&nans[1]);
    match order.nans {
        NanOrder::Total => directed(a.compare(b)),
        _ if of_nans.is_ne() => {
            if order.nans == NanOrder::Last {
                of_nans
            } else {
                of_nans.reverse()
            }
        }
        _ if nans[0] => {
            let sign = |key: &K| key.to_register() >> (8 * size_of::<K>() - 1);
            directed(sign(a).cmp(&sign(b)).then(a.compare(b)))
        }
        _ => directed(a.compare(b)),
    }
}

/// Puts elements in random order.
pub fn shuffle<T>(elements: &mut [T], random: &mut StdRng) {
    for i in (1..elements.len()).rev() {
        elements.swap(i, random.random_range(0..=i));
    }
}

/// The distribution of a test's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Spread evenly over all bit patterns.
    Any,
    /// Seven bit patterns.
    Few,
    /// All keys equal.
    Equal,
    /// Nested clusters: nearly half of the keys are within a five hundredth of the range, nearly half of this cluster
    /// within a five hundredth of its range, and so on.
    Nested,
    /// Spread evenly, except for 4 of 100 keys that are close together.
    Cluster,
    /// Half of the keys are one value: the least, the greatest or one between. The others are spread evenly.
    Frequent,
    /// Half of the keys are 16 consecutive numbers. The others are spread evenly.
    Consecutive,
    /// In ascending order.
    Ascending,
    /// In descending order, without equal keys.
    Descending,
    /// In five ascending runs.
    Runs,
    /// Out of order only within 1000 places.
    Displaced,
    /// [`Displaced`](Self::Displaced), except for one key that is far from its place.
    DisplacedButOne,
    /// [`Nested`](Self::Nested) clusters, out of order only within 1000 places.
    NestedDisplaced,
}

impl Keys {
    /// The ordered bits of `n` keys of `width` bits.
    fn ordered(self, width: u32, n: usize, random: &mut StdRng) -> Vec<u64> {
        let mask = u64::MAX >> (64 - width);
        let few: [u64; 7] = std::array::from_fn(|_| random.random::<u64>() & mask);
        let frequent = [0, mask, few[0]][random.random_range(0..3)];
        let mut bits: Vec<u64> = (0..n)
            .map(|i| match self {
                Self::Frequent if random.random() => frequent,
                Self::Consecutive if random.random() => few[0] & !15 | random.random_range(0..16),
                Self::Few => few[random.random_range(0..7)],
                Self::Equal => few[0],
                Self::Nested | Self::NestedDisplaced => {
                    let (mut least, mut range) = (0, mask);
                    while range > 1 << 9 && random.random_bool(0.45) {
                        (least, range) = (least + range / 8 * 5, range >> 9);
                    }
                    least + random.random_range(0..=range)
                }
                Self::Cluster if i % 25 == 0 => few[0] & !0x7f | random.random::<u64>() & 0x7f,
                Self::Descending => ((n - i) as u64) << (width - 24) | random.random::<u64>() & mask >> 24,
                _ => random.random::<u64>() & mask,
            })
            .collect();
        match self {
            Self::Ascending => bits.sort_unstable(),
            Self::Runs => bits.chunks_mut(n.div_ceil(5).max(1)).for_each(<[u64]>::sort_unstable),
            Self::Displaced | Self::DisplacedButOne | Self::NestedDisplaced => {
                bits.sort_unstable();
                let mut moved: Vec<_> = (0..n).map(|i| (i + random.random_range(0..=1000), bits[i])).collect();
                moved.sort_by_key(|&(place, _)| place);
                bits = moved.into_iter().map(|(_, key)| key).collect();
                if matches!(self, Self::DisplacedButOne) {
                    bits[n / 40..n / 40 * 39].rotate_left(1);
                }
            }
            _ => {}
        }
        bits
    }

    /// `n` keys of type `K`.
    pub fn random<K: TestKey>(self, n: usize, seed: u64) -> Vec<K> {
        let mut random = StdRng::seed_from_u64(seed);
        self.ordered(8 * size_of::<K>() as u32, n, &mut random).into_iter().map(K::of_ordered).collect()
    }

    /// Keys of type `K` in runs of the given lengths, each in order.
    pub fn in_runs<K: TestKey>(self, lengths: &[usize], order: KeyOrder, seed: u64) -> Vec<K> {
        let keys = self.random::<K>(lengths.iter().sum(), seed);
        sorted_segments(&keys, order, &offsets_of(lengths)).into_iter().map(|i| keys[i]).collect()
    }
}

/// Keys with an order that only their bits define: NaNs of both signs, zeros of both signs, and infinities.
pub fn odd_floats(n: usize, random: &mut StdRng) -> Vec<f32> {
    let odd = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1.5, f32::from_bits(1)];
    (0..n).map(|_| odd[random.random_range(0..odd.len())]).collect()
}

/// Bits, because a NaN is not equal to itself and -0.0 is equal to 0.0.
pub fn raw_bits<K: Word>(keys: &[K]) -> Vec<u64> {
    keys.iter().map(|key| key.to_register()).collect()
}

/// Offsets of segments of the given lengths.
pub fn offsets_of(lengths: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    offsets
}

/// `indices` of keys, with each segment between two offsets sorted by its keys: a stable sort. All types share one
/// instance of it.
pub fn sorted_indices<K: TestKey>(
    keys: &[K],
    order: KeyOrder,
    mut indices: Vec<usize>,
    offsets: &[usize],
) -> Vec<usize> {
    fn sort(indices: &mut [usize], offsets: &[usize], compare: &dyn Fn(usize, usize) -> Ordering) {
        offsets.windows(2).for_each(|ends| indices[ends[0]..ends[1]].sort_by(|&i, &j| compare(i, j)));
    }
    sort(&mut indices, offsets, &|i, j| compare_in(order, &keys[i], &keys[j]));
    indices
}

/// [`sorted_indices`] of all keys.
pub fn sorted_segments<K: TestKey>(keys: &[K], order: KeyOrder, offsets: &[usize]) -> Vec<usize> {
    sorted_indices(keys, order, (0..keys.len()).collect(), offsets)
}

/// The values that move with the keys, if values have bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    Nothing,
    /// Three times the index of each key, so that values differ from indices.
    Values,
    /// Uninitialised values, which become the indices of the keys.
    Indices,
}

impl With {
    /// The ways to move values of type `V`.
    pub fn all<V>() -> &'static [Self] {
        if size_of::<V>() == 0 { &[Self::Nothing] } else { &[Self::Values, Self::Indices] }
    }

    /// One of the ways to move values of type `V`, by the seed.
    pub fn by<V>(seed: u64) -> Self {
        Self::all::<V>()[(seed / 2) as usize % Self::all::<V>().len()]
    }
}

/// Keys in the device's memory, with values unless `V` has no bytes.
#[derive(Clone, Copy)]
pub struct Pairs<K, V> {
    pub keys: Buffer<K>,
    pub values: Buffer<V>,
    /// The factor between an index and its value.
    factor: usize,
}

impl<K: TestKey, V: Word> Pairs<K, V> {
    /// A copy of `keys`, with values that count on from `first`.
    pub fn of(device: &Device, keys: &[K], first: usize) -> Self {
        let last = first + Self::count(keys.len());
        let values: Vec<V> = (first..last).map(|i| V::from_register(3 * i as u64)).collect();
        Self { keys: device.array(keys), values: device.array(&values), factor: 3 }
    }

    /// A copy of `keys`, with the given values.
    pub fn with(device: &Device, keys: &[K], with: With) -> Self {
        match with {
            With::Indices => {
                let values = device.uninit(Self::count(keys.len()));
                Self { keys: device.array(keys), values, factor: 3 }.of_indices()
            }
            _ => Self::of(device, keys, 0),
        }
    }

    pub fn uninit(device: &Device, len: usize) -> Self {
        Self { keys: device.uninit(len), values: device.uninit(Self::count(len)), factor: 3 }
    }

    /// The same arrays, with values that are the indices of their keys.
    pub fn of_indices(self) -> Self {
        Self { factor: 1, ..self }
    }

    /// Values of `len` keys.
    fn count(len: usize) -> usize {
        if size_of::<V>() > 0 { len } else { 0 }
    }

    pub fn arrays(self) -> Arrays {
        let (keys, values) = (address(self.keys), address(self.values));
        Arrays { keys, values, len: self.keys.len(), value_bytes: size_of::<V>(), count: 0 }
    }

    /// Fails unless the array begins with the keys of `input` at the indices `from`, and with their values.
    pub fn check(self, device: &Device, input: &[K], from: &[usize], what: &dyn Fn() -> String) {
        let expected: Vec<u64> = from.iter().map(|&i| input[i].to_register()).collect();
        let of = || {
            let (name, bytes, seed) = (<K as Key>::NAME, size_of::<V>(), device.seed());
            format!("{} of {name} with values of {bytes} bytes, seed {seed}", what())
        };
        assert!(first_bits(device, self.keys, from.len()) == expected, "keys: {}", of());
        if size_of::<V>() > 0 {
            let expected = from.iter().map(|&i| V::from_register((self.factor * i) as u64).to_register());
            assert!(first_bits(device, self.values, from.len()).into_iter().eq(expected), "values: {}", of());
        }
    }
}

/// The bits of the first `count` elements of an array. Further elements may be uninitialised.
fn first_bits<T: Word>(device: &Device, array: Buffer<T>, count: usize) -> Vec<u64> {
    if count == array.len() { raw_bits(&device.read(array)) } else { device.elements(array, count) }
}
