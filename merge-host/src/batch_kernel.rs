//! The kernels that merge batches.

use crate::names::names;

/// How a GPU merges a batch of problems of one length. All kernels give the same result; they differ in how they move
/// the keys.
///
/// ```
/// use merge_host::BatchKernel;
///
/// assert_eq!("small".parse(), Ok(BatchKernel::Small));
/// assert_eq!(BatchKernel::Small.to_string(), "small");
/// assert_eq!(BatchKernel::default(), BatchKernel::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchKernel {
    /// The fastest kernel: a block of threads takes the problems that fill it, and each thread the same number of keys.
    #[default]
    Auto,
    /// One thread for each key of the output. The thread finds its key by a search in shared memory.
    Small,
}

names! {
    BatchKernel, "batch kernel":
    Auto = "auto",
    Small = "small",
}
