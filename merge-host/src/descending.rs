//! Keys in descending order.

use crate::sort_key::sort_key;
use crate::{GpuKey, GpuSortKey, Key, NanOrder};
use bytemuck::{Pod, TransparentWrapper, Zeroable};
use std::fmt;

/// A key in descending order: the greater of two keys comes first.
///
/// Everything that takes ascending keys takes descending keys in this wrapper: merges, batches, set operations, arrays
/// on a GPU, [`first_unsorted`](crate::first_unsorted) and [`unique`](crate::unique()). A sort of keys in
/// [`SortOrder::Descending`](crate::SortOrder::Descending) gives the order of a sort of wrapped keys. [`descending`]
/// and [`descending_mut`] wrap the keys of a slice in place. The reverse of total order has NaNs at both ends;
/// [`NanLast`](crate::NanLast)`<Descending<f32>>` has them at the end.
///
/// ```
/// use merge_host::{Engine, SetOperation, descending, descending_mut};
///
/// let (a, b, mut out) = ([6.5, 4.0, -0.0], [4.0, 2.0], [0.0; 5]);
/// Engine::auto().merge(descending(&a), descending(&b), descending_mut(&mut out))?;
/// assert_eq!(out, [6.5, 4.0, 4.0, 2.0, -0.0]);
///
/// let mut both = Vec::new();
/// Engine::auto().set_operation(SetOperation::Intersection, descending(&a), descending(&b), &mut both)?;
/// assert_eq!(both, descending(&[4.0]));
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Descending<K>(pub K);

// SAFETY: `Descending` is transparent, so a zeroed `Descending<K>` is a zeroed `K`.
unsafe impl<K: Zeroable> Zeroable for Descending<K> {}
// SAFETY: `Descending` is transparent. It has the layout and the values of `K`, which is plain data.
unsafe impl<K: Pod> Pod for Descending<K> {}
// SAFETY: `Descending` is transparent, and its only field is of type `K`.
unsafe impl<K> TransparentWrapper<K> for Descending<K> {}

impl<K: fmt::Display> fmt::Display for Descending<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Wraps keys in place, so that greater keys come first.
pub fn descending<K: Key>(keys: &[K]) -> &[Descending<K>] {
    Descending::wrap_slice(keys)
}

/// Wraps mutable keys in place, so that greater keys come first.
pub fn descending_mut<K: Key>(keys: &mut [K]) -> &mut [Descending<K>] {
    Descending::wrap_slice_mut(keys)
}

impl<K: Key> crate::key::sealed::Sealed for Descending<K> {
    type OnGpu = K::OnGpu;
    #[cfg(feature = "gpu")]
    fn gpu_coding() -> kernels_gpu::key::Coding<K::OnGpu> {
        K::gpu_coding().reversed()
    }
    const NANS: u64 = K::NANS;
    const NAN_ORDER: NanOrder = K::NAN_ORDER.reversed();
}

impl<K: Key> Key for Descending<K> {
    type Bits = K::Bits;
    const NAME: &'static str = K::NAME;
    const ON_GPU: bool = K::ON_GPU;
    #[inline(always)]
    fn to_ordered(self) -> K::Bits {
        !self.0.to_ordered()
    }
    #[inline(always)]
    fn from_ordered(bits: K::Bits) -> Self {
        Self(K::from_ordered(!bits))
    }
}

sort_key! { (K) Descending<K> }

impl<K: GpuKey> GpuKey for Descending<K> {}
impl<K: GpuSortKey> GpuSortKey for Descending<K> {}
