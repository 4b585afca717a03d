//! The indices that a sort of keys with their indices begins with.

use crate::kernels::sort::detect_runs::Detection;
use cuda_std::prelude::*;

/// Kernel: sets each of `n` elements to `first` plus its index, unless keys are divided, which does without; only where
/// they are in order, if `merges` is 0, since nothing else needs it then. `order` is null or what `detect_runs` and
/// `choose_digits` wrote.
///
/// # Safety
/// `to` has `n` elements, in global memory.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn set_indices<I: Word>(to: *mut I, n: usize, first: usize, order: *mut u32, merges: u32) {
    // SAFETY: `order` is null, or `DETECTION_WORDS` words that this launch only reads.
    let detection = unsafe { Detection::new(order) };
    if detection.is_divided() || merges == 0 && !detection.is_ordered() {
        return;
    }
    // SAFETY: `to` has `n` elements. A thread writes those with `i < n` that its number has modulo the number of
    // threads, so that no two threads write one.
    let to = unsafe { GlobalMut::new(to, n) };
    let threads = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
    let mut i = thread::index_1d() as usize;
    while i < n {
        to.set(i, I::from_register((first + i) as u64));
        i += threads;
    }
}
