//! The argsort of keys in GPU memory, as it is measured.

use crate::distribution::Distribution;
use merge_host::cust::memory::{AsyncCopyDestination, DeviceBuffer, DeviceCopy};
use merge_host::cust::stream::Stream;
use merge_host::{Error, Gpu, GpuKey, SortOrder};

/// An argsort with indices of type u32, and the memory that it needs beside keys and indices.
///
/// It is made of a sort of key-value pairs, whose values are indices. That sort is in place and an argsort leaves its keys as they
/// are, so it copies the keys and the identity permutation. The copies are part of the work.
pub struct Argsort<K: DeviceCopy> {
    keys: DeviceBuffer<K>,
    identity: DeviceBuffer<u32>,
    workspace: DeviceBuffer<u8>,
}

impl<K: GpuKey + DeviceCopy> Argsort<K> {
    /// The argsort of `n` keys, which is at most 2^32.
    ///
    /// # Errors
    /// Those of [`Gpu::upload`].
    pub fn new(gpu: &Gpu, n: usize) -> Result<Self, Error> {
        Ok(Self {
            keys: gpu.buffer(n)?,
            identity: gpu.upload(&Distribution::Sorted.keys::<u32>(n))?,
            workspace: gpu.buffer(Gpu::sort_pairs_workspace_bytes::<K, u32>(n))?,
        })
    }

    /// Puts the argsort of `keys` on a stream. As for the functions of [`Gpu`], the caller keeps all arrays until it has ended.
    ///
    /// # Errors
    /// Those of [`Gpu::sort_pairs`].
    ///
    /// # Panics
    /// Panics if there are not `n` keys and indices, or if the GPU cannot copy.
    pub fn launch(
        &mut self,
        gpu: &Gpu,
        keys: &DeviceBuffer<K>,
        indices: &mut DeviceBuffer<u32>,
        stream: &Stream,
    ) -> Result<(), Error> {
        // SAFETY: the arrays are in the GPU's memory, and the caller keeps them so.
        unsafe {
            keys.async_copy_to(&mut self.keys, stream).expect("the GPU copies");
            self.identity.async_copy_to(indices, stream).expect("the GPU copies");
        }
        gpu.sort_pairs(SortOrder::Ascending, &mut self.keys, indices, &mut self.workspace, stream)
    }
}
