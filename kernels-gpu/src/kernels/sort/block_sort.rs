//! Block sort: each tile sorted by one block.
//!
//! ```text
//!   from       │ 7 1 5 3 │ 2 8 4 6 │ 9 0 │
//!   to         │ 1 3 5 7 │ 2 4 6 8 │ 0 9 │     runs for the passes of merges
//! ```

use crate::block::shared_memory;
use crate::elements::Elements;
use crate::kernels::sort::detect_runs::Detection;
use crate::kernels::sort::is_whole_warps;
use crate::kernels::sort::merge_pass::MIN_BLOCKS_PER_SM;
use crate::kernels::sort::payload::beside::Beside;
use crate::kernels::sort::payload::nothing::Nothing;
use crate::kernels::sort::payload::packed::Packed;
use crate::kernels::sort::payload::{Payload, is_of_host};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

pub use crate::kernels::sort::payload::block_sort_bytes as shared_bytes;

/// Kernel: sorts each tile of `NT * VT` keys of `from`, with their payload, to the same indices of `to`, which may be
/// the same arrays.
///
/// Keys are loaded as `encode` encodes them and stored as `decode` decodes them. Nothing is done if `order` is not null
/// and says that keys are in order or divided. `random` is any number: the seed of the order in which a block takes its
/// keys at first.
///
/// # Safety
/// All arrays have `n` elements, in global memory. `to` is `from` or does not overlap it. Blocks have `NT` threads, a
/// power of two from 32 to 1024, one block for each tile, with [`shared_bytes`] of dynamic shared memory. `order` is
/// null, or `detect_runs` or `choose_digits` has written it; nothing writes it during the launch.
#[kernel(
    u32 = <u32, (), Nothing, { ROW.block_sort.of(4, 0).threads }, { ROW.block_sort.of(4, 0).items_per_thread }>
        within (ROW.block_sort.of(4, 0).threads, 5),
    u64 = <u64, (), Nothing, { ROW.block_sort.of(8, 0).threads }, { ROW.block_sort.of(8, 0).items_per_thread }>,
    u32small = <u32, (), Nothing,
        { ROW.block_sort_small.of(4, 0).threads }, { ROW.block_sort_small.of(4, 0).items_per_thread }>,
    u64small = <u64, (), Nothing,
        { ROW.block_sort_small.of(8, 0).threads }, { ROW.block_sort_small.of(8, 0).items_per_thread }>,
    u32tiny = <u32, (), Nothing,
        { ROW.block_sort_tiny.of(4, 0).threads }, { ROW.block_sort_tiny.of(4, 0).items_per_thread }>,
    u64tiny = <u64, (), Nothing,
        { ROW.block_sort_tiny.of(8, 0).threads }, { ROW.block_sort_tiny.of(8, 0).items_per_thread }>,
    u32v4 = <u32, u32, Beside, { ROW.block_sort.of(4, 4).threads }, { ROW.block_sort.of(4, 4).items_per_thread }>
        within (ROW.block_sort.of(4, 4).threads, MIN_BLOCKS_PER_SM),
    u32v8 = <u32, u64, Packed, { ROW.block_sort.of(4, 8).threads }, { ROW.block_sort.of(4, 8).items_per_thread }>
        within (ROW.block_sort.of(4, 8).threads, MIN_BLOCKS_PER_SM),
    u64v4 = <u64, u32, Packed, { ROW.block_sort.of(8, 4).threads }, { ROW.block_sort.of(8, 4).items_per_thread }>
        within (ROW.block_sort.of(8, 4).threads, MIN_BLOCKS_PER_SM),
    u64v8 = <u64, u64, Packed, { ROW.block_sort.of(8, 8).threads }, { ROW.block_sort.of(8, 8).items_per_thread }>
        within (ROW.block_sort.of(8, 8).threads, MIN_BLOCKS_PER_SM),
)]
pub unsafe fn block_sort<B: Bits, V: Word, P: Payload<B, V, NT, VT>, const NT: usize, const VT: usize>(
    from: Elements<B, V>,
    to: Elements<B, V>,
    n: usize,
    encode: Coding<B>,
    decode: Coding<B>,
    order: *mut u32,
    random: u64,
) {
    const { assert!(NT.is_power_of_two() && is_whole_warps(NT), "threads are a power of two, in whole warps") };
    const { assert!(is_of_host::<B, V, P, NT, VT>(), "the host launches with memory for another payload") };
    const { shared_memory::check(P::TILE_BYTES) };
    // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
    if unsafe { Detection::new(order) }.is_done() {
        return;
    }
    let start = thread::block_idx_x() as usize * NT * VT;
    let count = (n - start).min(NT * VT);
    // SAFETY: all arrays have `n` elements, and there is one block for each tile, so that `start < n`. Only this block
    // uses elements `start .. start + count`. `from` is not a constant view, since it may be `to`. In that case,
    // barriers of `P::sort` come between the reads and the writes.
    let (from, to) = unsafe { (from.arrays(n).slice(start, count), to.arrays(n).slice(start, count)) };
    // SAFETY: `is_done` reads words of earlier launches, so that all `NT` threads of the block make the call. The
    // launch has `shared_bytes`, which are `P::TILE_BYTES`.
    unsafe { P::sort(from, to, encode, decode, random) };
}
