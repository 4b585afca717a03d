//! The kernels that merge two runs.

use crate::names::names;

/// A kernel that merges two runs. All kernels give the same result; they differ in how they move the keys.
///
/// ```
/// use merge_host::MergeKernel;
///
/// assert_eq!("merge-path".parse(), Ok(MergeKernel::MergePath));
/// assert_eq!(MergeKernel::Tiled.to_string(), "tiled");
/// assert_eq!(MergeKernel::default(), MergeKernel::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MergeKernel {
    /// The fastest kernel for the number of keys. On a GPU, one block merges up to 1024 keys, one launch of persistent
    /// blocks merges up to 64 MiB of keys, and [`MergePath`](Self::MergePath) merges more. On a CPU it is
    /// [`MergePath`](Self::MergePath).
    #[default]
    Auto,
    /// Each thread finds the co-ranks of its part of the output in A and B, and merges directly from memory (figure
    /// 12.9).
    Basic,
    /// A and B pass tile by tile through memory close to the threads: shared memory on a GPU, a small buffer on a CPU
    /// (figures 12.11 to 12.13).
    Tiled,
    /// Like [`Tiled`](Self::Tiled), but the tiles are circular buffers, so no key is loaded twice (figures 12.16 to
    /// 12.20).
    Circular,
    /// Two levels of exact splits along the Merge Path give every thread the same number of keys. A thread merges them
    /// in registers on a GPU, and from both ends at once on a CPU.
    MergePath,
}

names! {
    MergeKernel, "merge kernel":
    Auto = "auto",
    Basic = "basic",
    Tiled = "tiled",
    Circular = "circular",
    MergePath = "merge-path",
}
