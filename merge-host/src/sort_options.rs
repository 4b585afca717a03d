//! How arrays are sorted.

use crate::key_order::KeyOrder;
use crate::{NanOrder, SortKernel, SortOrder};

/// How arrays are sorted: the order, the place of NaNs, and the kernel of a GPU. By default ascending, in the order of
/// the keys' type, by the kernel that the library chooses.
///
/// ```
/// use merge_host::{NanOrder, SortKernel, SortOptions, SortOrder};
///
/// assert_eq!(SortOptions::from(SortOrder::Ascending), SortOptions::default());
/// let options = SortOptions::default().order(SortOrder::Descending).kernel(SortKernel::MergePath);
/// assert_ne!(options, SortOptions::default());
/// assert_eq!(SortOptions::from(NanOrder::Last), SortOptions::default().nans(NanOrder::Last));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortOptions {
    pub(crate) order: KeyOrder,
    pub(crate) kernel: SortKernel,
}

impl SortOptions {
    /// The same in that order.
    #[must_use]
    pub const fn order(self, order: SortOrder) -> Self {
        Self { order: KeyOrder { direction: order, ..self.order }, ..self }
    }

    /// The same with NaNs at that place of the result, in either order. Integers are not affected.
    #[must_use]
    pub const fn nans(self, nans: NanOrder) -> Self {
        Self { order: KeyOrder { nans, ..self.order }, ..self }
    }

    /// The same by that kernel, where a GPU sorts an array. All kernels give the same result. Calls of a `GpuGroup`,
    /// and calls that sort segments, select the first keys or merge, ignore the kernel.
    #[must_use]
    pub const fn kernel(self, kernel: SortKernel) -> Self {
        Self { kernel, ..self }
    }

    /// The kernel of a GPU, and the order of keys of type `K` as kernels take it.
    #[cfg(feature = "gpu")]
    pub(crate) fn on_gpu<K: crate::Key>(self) -> (SortKernel, crate::gpu::KeyCoding) {
        (self.kernel, self.order.coding::<K>().into())
    }
}

impl From<SortOrder> for SortOptions {
    fn from(order: SortOrder) -> Self {
        Self::default().order(order)
    }
}

impl From<NanOrder> for SortOptions {
    fn from(nans: NanOrder) -> Self {
        Self::default().nans(nans)
    }
}
