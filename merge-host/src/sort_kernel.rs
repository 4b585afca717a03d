//! The kernels that sort on a GPU.

use crate::names::names;

/// How a GPU sorts. All kernels give the same result, in the same workspace. They differ in how they move the keys.
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
    /// The fastest way for the keys, chosen by a sample. One block sorts up to 8192 keys of 4 bytes, or up to 2304 keys
    /// with values, in one launch. Many evenly distributed keys are divided by their leading digits into buckets that
    /// one block sorts. Skewed keys of 4 bytes, and 4-byte keys with values up to 2^23, take a radix sort over all
    /// bits. Few keys, skewed keys of 8 bytes, and long runs are merged, as by [`MergePath`](Self::MergePath). Keys
    /// that are in order stay.
    #[default]
    Auto,
    /// Sorted tiles, and passes of exact splits that merge up to 32 runs at a time, for any keys.
    MergePath,
}

names! {
    SortKernel, "sort kernel":
    Auto = "auto",
    MergePath = "merge-path",
}
