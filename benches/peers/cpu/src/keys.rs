//! The types and the distributions of keys.

use crate::distribution::{Distribution, key};
use bytemuck::TransparentWrapper;
use clap::ValueEnum;
use merge_host::Key;
use std::cmp::Ordering;

/// A key that every contender sorts.
pub trait Peer: Key + radsort::Key + voracious_radix_sort::Radixable<Self> + voracious_radix_sort::RadixKey {
    /// Whether keys are floats.
    const IS_FLOAT: bool;
    /// The type of numpy, in the machine's byte order, or `None` if numpy has none.
    const NUMPY: Option<&'static str>;
    /// The sort of vqsort, if this build has it for keys of this type.
    const VQSORT: Option<fn(&mut [Self])> = None;
    /// The key as rdst sorts it.
    type Rdst: rdst::RadixKey + Copy + Send + Sync;
    /// The same keys for rdst.
    fn for_rdst(keys: &mut [Self]) -> &mut [Self::Rdst];
    /// Key `number` of `count` keys of ascending values. Numbers that a type cannot distinguish become equal keys.
    fn from_number(number: u64, count: u64) -> Self;
}

/// A float in the order of `total_cmp`, which rdst leaves to its users.
#[derive(Clone, Copy, TransparentWrapper)]
#[repr(transparent)]
pub struct TotalOrder<K>(K);

macro_rules! integers {
    ($($t:ident $numpy:expr, $vqsort:expr;)*) => {$(
        impl Peer for $t {
            const IS_FLOAT: bool = false;
            const NUMPY: Option<&'static str> = $numpy;
            #[cfg(feature = "vqsort")]
            const VQSORT: Option<fn(&mut [Self])> = $vqsort;
            type Rdst = Self;
            fn for_rdst(keys: &mut [Self]) -> &mut [Self] {
                keys
            }
            fn from_number(number: u64, count: u64) -> Self {
                let values = 1 << (8 * size_of::<Self>()).min(63);
                let scaled = u128::from(number) * u128::from(values) / u128::from(count);
                if count <= values / 2 { number as $t } else { (scaled as $t).wrapping_add(<$t>::MIN) }
            }
        }
    )*};
}
integers! {
    u8 Some("u1"), None;
    i16 Some("i2"), Some(vqsort_rs::sort);
    u32 Some("u4"), Some(vqsort_rs::sort);
    i32 Some("i4"), Some(vqsort_rs::sort);
    u64 Some("u8"), Some(vqsort_rs::sort);
    i64 Some("i8"), Some(vqsort_rs::sort);
    u128 None, None;
}

macro_rules! floats {
    ($($t:ident $numpy:literal)*) => {$(
        impl rdst::RadixKey for TotalOrder<$t> {
            const LEVELS: usize = size_of::<$t>();
            #[inline]
            fn get_level(&self, level: usize) -> u8 {
                (self.0.to_ordered() >> (level * 8)) as u8
            }
        }
        impl Peer for $t {
            const IS_FLOAT: bool = true;
            const NUMPY: Option<&'static str> = Some($numpy);
            #[cfg(feature = "vqsort")]
            const VQSORT: Option<fn(&mut [Self])> = Some(vqsort_rs::sort);
            type Rdst = TotalOrder<Self>;
            fn for_rdst(keys: &mut [Self]) -> &mut [Self::Rdst] {
                TotalOrder::wrap_slice_mut(keys)
            }
            fn from_number(number: u64, _: u64) -> Self {
                number as $t
            }
        }
    )*};
}
floats!(f32 "f4" f64 "f8");

/// The usual order of integers, and the order of `total_cmp` for floats.
pub fn compare<K: Key>(a: &K, b: &K) -> Ordering {
    a.to_ordered().cmp(&b.to_ordered())
}

/// Whether the keys have the same bits.
pub fn equal<K: Key>(a: &[K], b: &[K]) -> bool {
    bytemuck::cast_slice::<K, u8>(a) == bytemuck::cast_slice::<K, u8>(b)
}

/// The distribution of the keys.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Keys {
    /// Random integers, or floats from 0 to 1
    Uniform,
    /// Numbers below 2^28, half of them below 2^14
    Zipf,
    /// Ascending numbers
    Sorted,
    /// Descending numbers
    Reversed,
    /// Random keys of 8 values
    Few,
    /// Ascending numbers; every 1000th is another
    NearlySorted,
    /// Ascending numbers, then descending ones
    OrganPipe,
    /// Eight ascending runs
    Runs,
    /// Floats that are about normal; every 1000th is a NaN
    NormalNans,
}

impl Keys {
    /// The name in the output and on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().expect("no value is skipped").get_name().to_owned()
    }

    /// Whether some keys are NaNs.
    pub fn has_nans(self) -> bool {
        self == Keys::NormalNans
    }

    /// Whether keys of type `K` have this distribution.
    pub fn suits<K: Peer>(self) -> bool {
        K::IS_FLOAT || !self.has_nans()
    }

    /// `arrays` arrays of `n` keys each, one after the other. Random keys differ from array to array.
    pub fn keys<K: Peer>(self, n: usize, arrays: usize) -> Vec<K> {
        let count = n as u64;
        let ascending = |number: u64| K::from_number(number, count);
        match self {
            Keys::Uniform if K::IS_FLOAT => Distribution::Unit.keys(n * arrays),
            Keys::Uniform => Distribution::Uniform.keys(n * arrays),
            Keys::NormalNans => with_nans(Distribution::Normal.keys(n * arrays)),
            _ => (0..n as u64 * arrays as u64)
                .map(|index| {
                    let i = index % count;
                    let random = || Distribution::Uniform.key::<u64>(index, 0);
                    match self {
                        Keys::Zipf => K::from_number(Distribution::Zipf.key(index, 0), 1 << 28),
                        Keys::Few => K::from_number(random() & 7, 8),
                        Keys::Reversed => ascending(count - 1 - i),
                        Keys::NearlySorted if i.is_multiple_of(1000) => ascending(random() % count),
                        Keys::OrganPipe => ascending(if i < count / 2 { 2 * i } else { 2 * (count - 1 - i) + 1 }),
                        Keys::Runs => ascending(i % count.div_ceil(8) * 8 % count),
                        _ => ascending(i),
                    }
                })
                .collect(),
        }
    }
}

/// The keys with a NaN in place of every 1000th key: alternately the first and the last key in total order.
fn with_nans<K: Peer>(mut keys: Vec<K>) -> Vec<K> {
    let nans = [0, u64::MAX].map(|bits| K::from_ordered(key(bits)));
    for (key, nan) in keys.iter_mut().step_by(1000).zip(nans.into_iter().cycle()) {
        *key = nan;
    }
    keys
}
