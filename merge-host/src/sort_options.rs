//! How arrays are sorted.

use crate::{SortKernel, SortOrder};

/// How arrays are sorted: the order, and the kernel of a GPU. By default ascending, by the kernel that the library
/// chooses.
///
/// ```
/// use merge_host::{SortKernel, SortOptions, SortOrder};
///
/// assert_eq!(SortOptions::from(SortOrder::Ascending), SortOptions::default());
/// let options = SortOptions::default().order(SortOrder::Descending).kernel(SortKernel::MergePath);
/// assert_ne!(options, SortOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortOptions {
    pub(crate) order: SortOrder,
    pub(crate) kernel: SortKernel,
}

impl SortOptions {
    /// The same in that order.
    #[must_use]
    pub const fn order(self, order: SortOrder) -> Self {
        Self { order, ..self }
    }

    /// The same by that kernel, where a GPU sorts. All kernels give the same result.
    #[must_use]
    pub const fn kernel(self, kernel: SortKernel) -> Self {
        Self { kernel, ..self }
    }
}

impl From<SortOrder> for SortOptions {
    fn from(order: SortOrder) -> Self {
        Self { order, ..Self::default() }
    }
}
