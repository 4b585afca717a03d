//! The types and the distributions of keys.

use crate::distribution::{Distribution, key};
use bytemuck::TransparentWrapper;
use clap::ValueEnum;
use merge_host::Key;
use std::cmp::Ordering;

#[cfg(feature = "vqsort")]
pub use vqsort_rs::VqsortItem;

/// Replaces the trait of `vqsort_rs` in builds without vqsort.
#[cfg(not(feature = "vqsort"))]
pub trait VqsortItem {}

#[cfg(not(feature = "vqsort"))]
impl<K> VqsortItem for K {}

/// A key that every contender sorts.
pub trait Peer:
    Key + radsort::Key + voracious_radix_sort::Radixable<Self> + voracious_radix_sort::RadixKey + VqsortItem
{
    /// Whether keys are floats.
    const IS_FLOAT: bool;
    /// The type of numpy, in the machine's byte order.
    const NUMPY: &'static str;
    /// The key as rdst sorts it.
    type Rdst: rdst::RadixKey + Copy + Send + Sync;
    /// The same keys for rdst.
    fn for_rdst(keys: &mut [Self]) -> &mut [Self::Rdst];
    /// The key with the value `number`, rounded if it is a float.
    fn from_number(number: u64) -> Self;
}

/// A float in the order of `total_cmp`, which rdst leaves to its users.
#[derive(Clone, Copy, TransparentWrapper)]
#[repr(transparent)]
pub struct TotalOrder<K>(K);

macro_rules! integers {
    ($($t:ident $numpy:literal)*) => {$(
        impl Peer for $t {
            const IS_FLOAT: bool = false;
            const NUMPY: &'static str = $numpy;
            type Rdst = Self;
            fn for_rdst(keys: &mut [Self]) -> &mut [Self] {
                keys
            }
            fn from_number(number: u64) -> Self {
                number as $t
            }
        }
    )*};
}
integers!(u32 "u4" i32 "i4" u64 "u8" i64 "i8");

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
            const NUMPY: &'static str = $numpy;
            type Rdst = TotalOrder<Self>;
            fn for_rdst(keys: &mut [Self]) -> &mut [Self::Rdst] {
                TotalOrder::wrap_slice_mut(keys)
            }
            fn from_number(number: u64) -> Self {
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
    /// Random keys of 16 values
    Dups16,
    /// Floats that are about normal; every 1000th is a NaN
    NormalNans,
}

impl Keys {
    /// The name in the output and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Keys::Uniform => "uniform",
            Keys::Zipf => "zipf",
            Keys::Sorted => "sorted",
            Keys::Dups16 => "dups16",
            Keys::NormalNans => "normal-nans",
        }
    }

    /// Whether some keys are NaNs.
    pub fn has_nans(self) -> bool {
        self == Keys::NormalNans
    }

    /// Whether keys of type `K` have this distribution.
    pub fn suits<K: Peer>(self) -> bool {
        K::IS_FLOAT || !self.has_nans()
    }

    /// `n` keys.
    pub fn keys<K: Peer>(self, n: usize) -> Vec<K> {
        match self {
            Keys::Uniform if K::IS_FLOAT => Distribution::Unit.keys(n),
            Keys::Uniform => Distribution::Uniform.keys(n),
            Keys::Zipf => numbers(Distribution::Zipf, n),
            Keys::Sorted => numbers(Distribution::Sorted, n),
            Keys::Dups16 => numbers(Distribution::Dups16, n),
            Keys::NormalNans => with_nans(Distribution::Normal.keys(n)),
        }
    }
}

/// `n` keys with the distribution of their values, not of their bits.
fn numbers<K: Peer>(distribution: Distribution, n: usize) -> Vec<K> {
    (0..n as u64).map(|i| K::from_number(distribution.key(i, n as u64))).collect()
}

/// The keys with a NaN in place of every 1000th key: alternately the first and the last key in total order.
fn with_nans<K: Peer>(mut keys: Vec<K>) -> Vec<K> {
    let nans = [0, u64::MAX].map(|bits| K::from_ordered(key(bits)));
    for (key, nan) in keys.iter_mut().step_by(1000).zip(nans.into_iter().cycle()) {
        *key = nan;
    }
    keys
}
