//! Merge and sort kernels in Rust: one source for the GPU and for the emulator.
//!
//! The layers, in the order in which they are read; each file imports from those above and from its own layer:
//!
//! | layer | contents |
//! | --- | --- |
//! | [`key`], [`keys`], [`elements`], [`sequence`] | ordered bits of keys; arrays of keys, with values; what is merged |
//! | [`textbook`] | the kernels of the textbook and of the course: one figure or algorithm a file |
//! | [`thread`] | what one thread does: searches, networks |
//! | [`warp`] | what the lanes of a warp do together: searches |
//! | [`block`] | what the threads of a block do together: tiles in shared memory |
//! | [`kernels`] | the kernels that the library launches, one a file |
//! | [`own`] | kernels for orders of a user's own |
//! | [`tuning`] | the shapes of tiles |
//! | [`modules`] | which compiled module holds which kernel |
//!
//! On the host the functions here are plain generic functions. On the GPU those marked `#[kernel]` are entry points,
//! one for each width of keys, named by function and width: `merge_basic_u32` merges keys of 4 bytes. Of which type
//! they are, and in which order, comes with each launch, as a [`Coding`](key::Coding).
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]
// Loops over register arrays count with an index, as the hardware sees them: strides and indices are the point.
#![allow(clippy::needless_range_loop)]

pub mod block;
pub mod elements;
pub mod kernels;
pub mod key;
pub mod keys;
#[cfg(not(target_arch = "nvptx64"))]
pub mod modules;
pub mod own;
pub mod sequence;
pub mod textbook;
pub mod thread;
pub mod tuning;
pub mod warp;
