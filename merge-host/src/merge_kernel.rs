//! The kernels that merge two runs.

use crate::Error;
use std::fmt;
use std::str::FromStr;

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
pub enum MergeKernel {
    /// The fastest kernel, which is [`MergePath`](Self::MergePath).
    #[default]
    Auto,
    /// Each thread finds the co-ranks of its part of the output in A and B, and merges directly from memory (figure 12.9).
    Basic,
    /// A and B pass tile by tile through memory close to the threads: shared memory on a GPU, a small buffer on a CPU
    /// (figures 12.11 to 12.13).
    Tiled,
    /// Like [`Tiled`](Self::Tiled), but the tiles are circular buffers, so no key is loaded twice (figures 12.16 to
    /// 12.20).
    Circular,
    /// Two levels of exact splits along the merge path give every thread the same number of keys, which it merges in
    /// registers on a GPU and from both ends at once on a CPU.
    MergePath,
}

impl MergeKernel {
    /// All kernels.
    pub const ALL: [MergeKernel; 5] =
        [MergeKernel::Auto, MergeKernel::Basic, MergeKernel::Tiled, MergeKernel::Circular, MergeKernel::MergePath];

    /// The name that [`Display`](fmt::Display) writes and [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            MergeKernel::Auto => "auto",
            MergeKernel::Basic => "basic",
            MergeKernel::Tiled => "tiled",
            MergeKernel::Circular => "circular",
            MergeKernel::MergePath => "merge-path",
        }
    }
}

impl fmt::Display for MergeKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MergeKernel {
    type Err = Error;

    /// The kernel with the given [`name`](Self::name), which is in lower case.
    ///
    /// # Errors
    /// [`Error::UnknownMergeKernel`] if there is none.
    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| Error::UnknownMergeKernel { name: name.to_owned() })
    }
}
