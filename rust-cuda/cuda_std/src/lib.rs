//! What a GPU kernel may use, under the names of Rust-CUDA's `cuda_std`.
//!
//! A kernel is written once against this crate and runs in two places:
//!
//! | target | backend | a memory access is |
//! | --- | --- | --- |
//! | `nvptx64-nvidia-cuda` | `nvptx` | one instruction: `ld.global`, `st.shared`, … |
//! | the host, feature `emulator` | `emulator` | checked: bounds, uninitialised reads, races |
//!
//! [`thread`] and [`warp`] say who the running thread is and let threads wait for each other, [`Global`] and
//! [`GlobalMut`] are views of global memory, [`Shared`] of the block's shared memory, and
//! [`#[kernel]`](kernel) marks entry points. On the host [`launch`] is what they are launched with.
//!
//! On a host target without the feature `emulator` the crate compiles, so that code shared between kernels and the
//! host can be used (a key's order, say), but a call that only makes sense inside a kernel panics.
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

/// The value, as one that the compiler knows nothing of: what is computed from it is computed again, instead of being kept in
/// registers from the first time on.
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

/// What most kernels import.
pub mod prelude {
    pub use crate::{Global, GlobalMut, Shared, Word, kernel, shared, thread, warp};
}
