//! The kernels that sort on a GPU.

use crate::names::names;

/// How a GPU sorts. All kernels give the same result, in the same workspace; they differ in how they move the keys.
///
/// ```
/// use merge_host::SortKernel;
///
/// assert_eq!("merge-path".parse(), Ok(SortKernel::MergePath));
/// assert_eq!(SortKernel::MergePath.to_string(), "merge-path");
/// assert_eq!(SortKernel::default(), SortKernel::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SortKernel {
    /// The fastest: many keys that are spread evenly are divided by their leading digits until one block sorts what is left
    /// together. Others are merged as by [`MergePath`](Self::MergePath).
    #[default]
    Auto,
    /// Sorted tiles, and passes of exact splits that merge up to 32 runs at a time, whatever the keys are.
    MergePath,
}

names! {
    SortKernel, "sort kernel":
    Auto = "auto",
    MergePath = "merge-path",
}
