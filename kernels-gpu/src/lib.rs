//! Merge and sort kernels in Rust: one source for the GPU and for the emulator.
//!
//! Read the files in this order:
//!
//! | file | idea |
//! | --- | --- |
//! | [`key`] | six number types as ordered bits |
//! | [`sequence`] | what a merge reads from |
//! | [`co_rank`] | where the first k keys of a merge come from |
//! | [`sequential`] | one thread, two cursors |
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod co_rank;
pub mod key;
pub mod sequence;
pub mod sequential;
