//! Copies the first k elements of each segment of an array whose segments are sorted.
//!
//! ```text
//!   sorted     │ a a a a a a │ b b │ c c c c c c c │      k = 3
//!   out        │ a a a │ b b · │ c c c │
//! ```

use crate::elements::{Elements, Slice, has_values};
use crate::kernels::sort::segments::Segments;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = 256;

/// Kernel: copies the first `k` elements of segment `q` to `out` from element `q * k` on, or all elements if there are
/// fewer. If `has_indices`, values are indices in the array, and become indices in the segment.
///
/// # Safety
/// `segments` are the segments of `from`. `out` has `k` elements for each segment, and overlaps no other array. Blocks
/// have [`THREADS`] threads.
#[kernel(
    u32 = <u32, ()>,
    u64 = <u64, ()>,
    u32v4 = <u32, u32>,
    u32v8 = <u32, u64>,
    u64v4 = <u64, u32>,
    u64v8 = <u64, u64>,
)]
pub unsafe fn copy_firsts<B: Bits, V: Word>(
    from: Slice<B, V>,
    out: Elements<B, V>,
    segments: Segments,
    k: usize,
    has_indices: bool,
) {
    // SAFETY: the caller passes the elements of the segments, which nothing writes during the launch, and `k` elements
    // for each segment at `out`. A block writes the elements of its own segments, and a thread its own elements.
    let (from, out, bounds) = unsafe { (from.source(), out.arrays(segments.count * k), segments.of(from.len)) };
    let mut segment = thread::block_idx_x() as usize;
    while segment < segments.count {
        let begin = bounds.start(segment);
        let count = k.min(bounds.start(segment + 1) - begin);
        let mut i = thread::thread_idx_x() as usize;
        while i < count {
            let to = segment * k + i;
            out.keys.set(to, from.keys.get(begin + i));
            if has_values::<V>() {
                let value = from.values.get(begin + i);
                let in_segment = value.to_register().wrapping_sub(begin as u64);
                out.values.set(to, if has_indices { V::from_register(in_segment) } else { value });
            }
            i += THREADS;
        }
        segment += thread::grid_dim_x() as usize;
    }
}
