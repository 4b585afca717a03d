//! The offsets of runs whose lengths only the GPU knows.

use super::{Address, Arrays, Queue, bits};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::Operation;
use kernels_gpu::kernels::sum_lengths::{MOST, SHARED_BYTES, SumLengths, THREADS};

/// The offsets of runs with these lengths, numbers of 8 bytes, as the keys of an array, which may have a count. There
/// are at most `most` keys, and the runs behind them are empty. `offsets` has a number more than there are lengths.
#[derive(Clone, Copy)]
pub struct SetOffsets {
    pub lengths: Arrays,
    pub most: usize,
    pub offsets: Address,
}

impl Operation for SetOffsets {
    unsafe fn launch(&self, queue: &dyn Queue, _: Address) -> Result<(), Error> {
        let Self { lengths: Arrays { keys, len: runs, count, .. }, most, offsets } = *self;
        let shape = Shape { blocks: 1, threads: THREADS as u32, shared_bytes: SHARED_BYTES };
        let (lengths, count, offsets) = (keys as *const u64, count as *const u64, offsets as *mut usize);
        let sum = SumLengths { lengths, runs, count, most: most.min(MOST), offsets };
        // SAFETY: `Operation::launch` requires valid arrays, and a count that nothing else writes. The launch is one
        // block, with the kernel's threads and shared bytes.
        unsafe { queue.launch(&bits(size_of::<u64>()), shape, &sum) }
    }
}
