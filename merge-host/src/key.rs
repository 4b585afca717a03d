//! What can be merged and sorted.

use kernels_gpu::key::Key as _;
use std::fmt::{Debug, Display};

/// A number to merge or sort by: `u32`, `i32`, `f32`, `u64`, `i64` or `f64`, and no other type.
///
/// `Key::NAME` is the type's name, and `to_ordered` gives unsigned bits in the order of the keys.
///
/// ```
/// fn name_of<K: merge_host::Key>(_: &[K]) -> &'static str {
///     K::NAME
/// }
/// assert_eq!(name_of(&[1.0f64]), "f64");
/// ```
pub trait Key:
    kernels_gpu::key::Key<Bits: bytemuck::Pod + Into<u64>> + bytemuck::Pod + Debug + Display + sealed::Sealed
{
}

pub(crate) mod sealed {
    pub trait Sealed {
        /// The key as far from the greatest as this one is from the least: mirrored keys are in the opposite order.
        fn mirrored(self) -> Self;
    }
}

macro_rules! key {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {
            #[inline(always)]
            fn mirrored(self) -> Self {
                Self::from_ordered(!self.to_ordered())
            }
        }
        impl Key for $t {}
    )*};
}
key!(u32 i32 f32 u64 i64 f64);
