//! The indices with which a sort of keys and their indices begins.

use crate::kernels::sort::detect_runs::Detection;
use cuda_std::prelude::*;

/// Kernel: sets each of `n` elements to `first` plus its index. It does nothing if keys are divided, since the division
/// makes the indices. If `merges` is 0, it runs only if keys are in order, since nothing else needs the indices then.
/// `order` is null, or `detect_runs` and `choose_digits` have written it.
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
    // SAFETY: `to` has `n` elements. Thread `t` writes the elements `i < n` with `i` mod `threads` = `t`, so that no
    // two threads write the same one.
    let to = unsafe { GlobalMut::new(to, n) };
    let threads = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
    let mut i = thread::index_1d() as usize;
    while i < n {
        to.set(i, I::from_register((first + i) as u64));
        i += threads;
    }
}
