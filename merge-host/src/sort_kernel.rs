//! The kernels that sort on a GPU.

use crate::Error;
use std::fmt;
use std::str::FromStr;

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
pub enum SortKernel {
    /// The fastest: many keys that are spread evenly are divided by their leading digits until one block sorts what is left
    /// together. Others are merged as by [`MergePath`](Self::MergePath).
    #[default]
    Auto,
    /// Sorted tiles, and passes of exact splits that merge up to 32 runs at a time, whatever the keys are.
    MergePath,
}

impl SortKernel {
    /// All kernels.
    pub const ALL: [SortKernel; 2] = [SortKernel::Auto, SortKernel::MergePath];

    /// The name that [`Display`](fmt::Display) writes and [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            SortKernel::Auto => "auto",
            SortKernel::MergePath => "merge-path",
        }
    }
}

impl fmt::Display for SortKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SortKernel {
    type Err = Error;

    /// The kernel with the given [`name`](Self::name), which is in lower case.
    ///
    /// # Errors
    /// [`Error::UnknownSortKernel`] if there is none.
    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| Error::UnknownSortKernel { name: name.to_owned() })
    }
}
