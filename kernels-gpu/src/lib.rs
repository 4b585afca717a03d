//! Merge and sort kernels in Rust: one source for the GPU and for the emulator.
//!
//! Read the layers in this order. A layer imports from the layers above it, and any layer may import shapes from
//! [`tuning`]. There are four exceptions: [`key`] uses `thread::network::Wire`, [`warp`] and [`block`] use
//! `kernels::groups::reduction`, `warp::carry` uses `block::segmented`, and [`tuning`] uses `MAX_RUNS` of
//! `kernels::sort`.
//!
//! | layer | contents |
//! | --- | --- |
//! | [`key`], [`keys`], [`elements`], [`sequence`] | six number types as ordered bits; arrays; inputs of merges |
//! | [`textbook`] | the kernels of the textbook and of the course: one figure or algorithm per file |
//! | [`thread`] | algorithms of one thread: searches, networks |
//! | [`warp`] | algorithms of the lanes of a warp: searches, look-back |
//! | [`block`] | algorithms of the threads of a block: tiles in shared memory |
//! | [`kernels`] | the kernels that the library launches, one per file |
//! | [`own`] | kernels for user-defined orders |
//! | [`tuning`] | tile shapes |
//!
//! On the host the functions here are plain generic functions. On the GPU, a function marked `#[kernel]` has one entry
//! point for each width of keys, named by function and width: `merge_basic_u32` merges keys of 4 bytes. Each launch
//! passes the type and the order of the keys as a [`Coding`](key::Coding).
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]
// Loops over register arrays use an index, which shows the strides in shared memory.
#![allow(clippy::needless_range_loop)]

pub mod block;
pub mod elements;
pub mod kernels;
pub mod key;
pub mod keys;
pub mod own;
pub mod sequence;
pub mod textbook;
pub mod thread;
pub mod tuning;
pub mod warp;
