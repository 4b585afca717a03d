//! Where NaNs lie in the order of keys.

use crate::key::sealed::{Bits, Sealed};
use crate::names::names;
use crate::sort_key::sort_key;
use crate::{GpuKey, GpuSortKey, Key};
use bytemuck::{Pod, TransparentWrapper, Zeroable};
#[cfg(feature = "gpu")]
use kernels_gpu::key::Coding;
use std::fmt;

/// Where the NaNs lie in the result of a sort.
///
/// [`Last`](Self::Last) and [`First`](Self::First) describe the result in either direction: a sort by
/// [`SortOrder::Descending`](crate::SortOrder::Descending) with `Last` has its NaNs last, too. Integers are not
/// affected.
///
/// Each order is total. Every key keeps its bits, and -0.0 precedes +0.0. With `Last` and `First`, +NaNs precede -NaNs,
/// and NaNs of one sign are in total order. A descending sort reverses both.
///
/// [`NanLast`] and [`NanFirst`] are keys in these orders for merges and all other operations.
///
/// ```
/// use merge_host::{Engine, NanOrder, SortOptions, SortOrder};
///
/// let mut keys = [-f32::NAN, 2.0, f32::NAN, 1.0];
/// Engine::auto().sort_with(NanOrder::Last, &mut keys)?;
/// assert_eq!(keys[..2], [1.0, 2.0]);
/// let options = SortOptions::default().order(SortOrder::Descending).nans(NanOrder::Last);
/// Engine::auto().sort_with(options, &mut keys)?;
/// assert_eq!(keys[..2], [2.0, 1.0]);
///
/// assert_eq!(NanOrder::default(), NanOrder::Total);
/// assert_eq!("last".parse(), Ok(NanOrder::Last));
/// assert_eq!(NanOrder::First.to_string(), "first");
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NanOrder {
    /// The order of the keys' type. For `f16`, `f32` and `f64` this is the order of `total_cmp`: NaNs with the sign bit
    /// set are the least keys, and other NaNs the greatest keys.
    #[default]
    Total,
    /// All NaNs, of both signs, follow all numbers.
    Last,
    /// All NaNs, of both signs, precede all numbers.
    First,
}

names! {
    NanOrder, "order of NaNs":
    Total = "total",
    Last = "last",
    First = "first",
}

impl NanOrder {
    /// Where NaNs lie in the reverse of this order.
    pub(crate) const fn reversed(self) -> Self {
        match self {
            NanOrder::Total => NanOrder::Total,
            NanOrder::Last => NanOrder::First,
            NanOrder::First => NanOrder::Last,
        }
    }

    /// The number to add, modulo 2 to the number of bits, to the ordered bits of a key of type `K` in total order.
    ///
    /// In total order the NaNs of one sign have the least ordered bits, and the NaNs of the other sign the greatest. A
    /// rotation by their number moves the NaNs of one end to the other end.
    #[inline(always)]
    pub(crate) fn rotation<K: Key>(self) -> K::Bits {
        let (none, nans) = (K::Bits::narrowed(0), K::Bits::narrowed(K::NANS.into()));
        match self {
            NanOrder::Total => none,
            NanOrder::Last => none.minus(nans),
            NanOrder::First => nans,
        }
    }
}

/// Declares a wrapper of keys with an order of NaNs, and the functions that wrap slices.
macro_rules! wrapper {
    (
        $name:ident: $order:ident, $with_nans:ident;
        $(#[$of_type:meta])*;
        $(#[$of_slice:meta])* $wrap:ident; $(#[$of_slice_mut:meta])* $wrap_mut:ident;
    ) => {
        $(#[$of_type])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name<K>(pub K);

        // SAFETY: the wrapper is transparent, so a zeroed wrapper of a `K` is a zeroed `K`.
        unsafe impl<K: Zeroable> Zeroable for $name<K> {}
        // SAFETY: the wrapper is transparent. It has the layout and the values of `K`, which is plain data.
        unsafe impl<K: Pod> Pod for $name<K> {}
        // SAFETY: the wrapper is transparent, and its only field is of type `K`.
        unsafe impl<K> TransparentWrapper<K> for $name<K> {}

        impl<K: fmt::Display> fmt::Display for $name<K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        $(#[$of_slice])*
        pub fn $wrap<K: Key>(keys: &[K]) -> &[$name<K>] {
            $name::wrap_slice(keys)
        }

        $(#[$of_slice_mut])*
        pub fn $wrap_mut<K: Key>(keys: &mut [K]) -> &mut [$name<K>] {
            $name::wrap_slice_mut(keys)
        }

        impl<K: Key> Sealed for $name<K> {
            type OnGpu = K::OnGpu;
            #[cfg(feature = "gpu")]
            fn gpu_coding() -> Coding<K::OnGpu> {
                K::gpu_coding().$with_nans()
            }
            const NANS: u64 = K::NANS;
            const NAN_ORDER: NanOrder = NanOrder::$order;
        }

        impl<K: Key> Key for $name<K> {
            type Bits = K::Bits;
            const NAME: &'static str = K::NAME;
            const ON_GPU: bool = K::ON_GPU;
            #[inline(always)]
            fn to_ordered(self) -> K::Bits {
                let rotation = NanOrder::$order.rotation::<K>().minus(K::NAN_ORDER.rotation::<K>());
                self.0.to_ordered().plus(rotation)
            }
            #[inline(always)]
            fn from_ordered(bits: K::Bits) -> Self {
                let rotation = NanOrder::$order.rotation::<K>().minus(K::NAN_ORDER.rotation::<K>());
                Self(K::from_ordered(bits.minus(rotation)))
            }
        }

        sort_key! { (K) $name<K> }

        impl<K: GpuKey> GpuKey for $name<K> {}
        impl<K: GpuSortKey> GpuSortKey for $name<K> {}
    };
}
wrapper! {
    NanLast: Last, with_nans_last;
    /// A key in the order of `K`, except that all NaNs, of both signs, follow all numbers.
    ///
    /// Everything that takes keys takes keys in this wrapper, as it takes [`Descending`](crate::Descending) keys.
    /// [`nan_last`] and [`nan_last_mut`] wrap the keys of a slice in place. For integers the order is the order of `K`.
    ///
    /// `NanLast<Descending<f32>>` is the order from +∞ to −∞ and then NaNs. A descending sort by [`NanOrder::Last`] has
    /// this order. `Descending<NanLast<f32>>` is the reverse of `NanLast<f32>`: its NaNs come first.
    ///
    /// ```
    /// use merge_host::{Descending, Engine, Key, NanLast, nan_last, nan_last_mut};
    ///
    /// let (a, b, mut out) = ([1.0, 4.0, -f64::NAN], [2.0, f64::NAN], [0.0; 5]);
    /// Engine::auto().merge(nan_last(&a), nan_last(&b), nan_last_mut(&mut out))?;
    /// assert_eq!(out[..3], [1.0, 2.0, 4.0]);
    /// assert!(out[3].is_nan() && out[4].is_nan());
    ///
    /// let key = |float: f64| NanLast(Descending(float)).to_ordered();
    /// assert!([4.0, 1.0, f64::NAN].map(key).is_sorted());
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    ;
    /// Wraps keys in place, so that NaNs follow all numbers.
    nan_last;
    /// Wraps mutable keys in place, so that NaNs follow all numbers.
    nan_last_mut;
}
wrapper! {
    NanFirst: First, with_nans_first;
    /// A key in the order of `K`, except that all NaNs, of both signs, precede all numbers.
    ///
    /// [`nan_first`] and [`nan_first_mut`] wrap the keys of a slice in place. Everything else is as for [`NanLast`].
    ///
    /// ```
    /// use merge_host::{first_unsorted, nan_first};
    ///
    /// assert_eq!(first_unsorted(nan_first(&[f32::NAN, -f32::NAN, f32::NEG_INFINITY, 1.0])), None);
    /// assert_eq!(first_unsorted(nan_first(&[1.0, f32::NAN])), Some(1));
    /// ```
    ;
    /// Wraps keys in place, so that NaNs precede all numbers.
    nan_first;
    /// Wraps mutable keys in place, so that NaNs precede all numbers.
    nan_first_mut;
}
