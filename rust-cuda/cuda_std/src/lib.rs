//! The primitives of GPU kernels, with the names of Rust-CUDA's `cuda_std`.
//!
//! A kernel is written once against this crate and runs in two places:
//!
//! | target | backend | a memory access is |
//! | --- | --- | --- |
//! | `nvptx64-nvidia-cuda` | `nvptx` | one instruction: `ld.global`, `st.shared`, … |
//! | the host, feature `emulator` | `emulator` | checked: bounds, uninitialised reads, races |
//!
//! [`thread`] and [`warp`] have the indices of the running thread and the barriers. [`Global`] and [`GlobalMut`] are
//! views of global memory, and [`Shared`] is a view of the block's shared memory. [`#[kernel]`](kernel) marks entry
//! points, and [`launch`] has their arguments on the host.
//!
//! The crate also compiles for a host without the feature `emulator`, so that kernels and host can share code, such as
//! the order of keys. A call that is only meaningful in a kernel then panics.
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(asm_experimental_arch, stdarch_nvptx, link_llvm_intrinsics),
    allow(internal_features)
)]

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
extern crate std;

pub use cuda_std_macros::kernel;
pub use global::{Global, GlobalMut, Place};
pub use shared::Shared;
pub use word::Word;

/// Returns `value` as if it were unknown to the compiler: expressions that depend on it are computed again, which saves
/// registers.
#[inline(always)]
pub fn recomputed<T: Word>(value: T) -> T {
    backend::recomputed(value)
}

mod global;
#[cfg(not(target_arch = "nvptx64"))]
pub mod launch;
pub mod shared;
pub mod thread;
pub mod warp;
mod word;

#[cfg(target_arch = "nvptx64")]
#[path = "nvptx/mod.rs"]
mod backend;

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
pub mod emulator;
#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
use emulator::backend;

#[cfg(not(any(feature = "emulator", target_arch = "nvptx64")))]
#[path = "no_backend.rs"]
mod backend;

/// The items that most kernels import.
pub mod prelude {
    pub use crate::{Global, GlobalMut, Shared, Word, kernel, shared, thread, warp};
}
