//! Offsets of runs whose lengths only the GPU knows: sums of lengths.
//!
//! ```text
//!   lengths   3   0   2 │ 7   9          count: 3
//!   offsets   0   3   3   5 │ 5   5      the runs behind the first ones are empty
//! ```

use crate::block::scan::block_sum_up_to;
use crate::block::shared_memory::shared_memory;
use crate::elements::counted;
use cuda_std::prelude::*;

/// Threads of the block.
pub const THREADS: usize = 1024;

/// Lengths of a thread that are added at once.
const ITEMS: usize = 4;

shared_memory! {
    struct Memory() {
        sums: [u64; THREADS],
    }
}

/// Bytes of dynamic shared memory.
pub const SHARED_BYTES: u32 = Memory::bytes();

/// The greatest `most`: sums of lengths fit 64 bits.
pub const MOST: usize = 1 << 48;

/// Kernel: writes to `offsets` where each of `runs` runs begins, and the end of the last one. Only the first runs have
/// keys. Their number is at `count`, or all have if `count` is null. No run ends behind key `most`.
///
/// # Safety
/// `lengths` has `runs` numbers, and `offsets` capacity for `runs + 1`, which nothing else uses. `count` is null or
/// points to a number. Nothing writes the number and the lengths. `most` is at most [`MOST`]. The launch is one block
/// of `NT` threads, with [`SHARED_BYTES`].
#[kernel(u64 = <THREADS>)]
pub unsafe fn sum_lengths<const NT: usize>(
    lengths: *const u64,
    runs: usize,
    count: *const u64,
    most: usize,
    offsets: *mut usize,
) {
    // SAFETY: the lengths are the requirements of this kernel. Only one thread writes each offset. A barrier of the
    // sums, or the last one of a round, separates the uses of `sums`.
    let (lengths, offsets, memory) = unsafe {
        let first = counted(count, runs);
        (Global::new(lengths, first), GlobalMut::new(offsets, runs + 1), Memory::at_start())
    };
    let (thread, most) = (thread::thread_idx_x(), most as u64);
    if thread == 0 {
        offsets.set(0, 0);
    }
    let (mut begin, mut before) = (0, 0);
    while begin < runs {
        let first = begin + thread as usize * ITEMS;
        let (mut sums, mut sum) = ([0; ITEMS], 0);
        for i in 0..ITEMS {
            if first + i < lengths.len() {
                sum += lengths.get(first + i).min(most);
            }
            sums[i] = sum;
        }
        let up_to = block_sum_up_to::<NT>(sum, memory.sums);
        for i in 0..ITEMS {
            if first + i < runs {
                offsets.set(first + i + 1, (before + up_to - sum + sums[i]).min(most) as usize);
            }
        }
        memory.sums.set(thread, up_to);
        thread::sync_threads();
        before = (before + memory.sums.get(NT as u32 - 1)).min(most);
        thread::sync_threads();
        begin += NT * ITEMS;
    }
}
