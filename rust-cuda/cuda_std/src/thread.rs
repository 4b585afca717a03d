//! The indices of the running thread, and the barrier of its block.

use crate::backend;

macro_rules! index_functions {
    ($($name:ident: $what:literal;)*) => {$(
        #[doc = $what]
        #[inline(always)]
        pub fn $name() -> u32 {
            backend::$name()
        }
    )*};
}
index_functions! {
    thread_idx_x: "The thread's index in its block along x, below [`block_dim_x`].";
    thread_idx_y: "The thread's index in its block along y, below [`block_dim_y`].";
    thread_idx_z: "The thread's index in its block along z, below [`block_dim_z`].";
    block_idx_x: "The block's index in the grid along x, below [`grid_dim_x`].";
    block_idx_y: "The block's index in the grid along y, below [`grid_dim_y`].";
    block_idx_z: "The block's index in the grid along z, below [`grid_dim_z`].";
    block_dim_x: "Threads of a block along x.";
    block_dim_y: "Threads of a block along y.";
    block_dim_z: "Threads of a block along z.";
    grid_dim_x: "Blocks of the grid along x.";
    grid_dim_y: "Blocks of the grid along y.";
    grid_dim_z: "Blocks of the grid along z.";
}

/// The thread's index in a one-dimensional grid: `block_idx_x() * block_dim_x() + thread_idx_x()`.
///
/// The result has 32 bits, as in Rust-CUDA: a grid of 2^32 threads or more needs the product in 64 bits.
#[inline(always)]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// Waits until every thread of the block has arrived here (`__syncthreads`). After the barrier, all threads see the
/// writes before it.
///
/// Every thread of the block must arrive at the same barrier. The emulator reports a barrier that some threads never
/// reach.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::sync_threads();
}

/// Waits for about `nanoseconds`, at most twice that time (`__nanosleep`). A thread that polls memory for another
/// thread's store should pause, since polling slows down the memory for that store.
#[inline(always)]
#[track_caller]
pub fn sleep(nanoseconds: u32) {
    backend::sleep(nanoseconds);
}

/// Orders this thread's earlier writes before its later writes, for all threads of the GPU, and its earlier reads
/// before its later reads (`__threadfence`).
///
/// A block communicates with other blocks through a flag. After a barrier of the block, one thread's fence suffices for
/// the whole block: before it sets the flag, or after it reads it.
#[inline(always)]
#[track_caller]
pub fn device_fence() {
    backend::device_fence();
}
