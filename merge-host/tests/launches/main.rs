//! All operations by the launches that a GPU gets, which an emulator runs.
#![cfg(feature = "gpu")]

#[macro_use]
mod common;

mod bounds;
mod counted;
mod exchange;
mod groups;
mod many_ragged;
mod many_runs;
mod merge;
mod offsets;
mod own;
mod segments;
mod sets;
mod sort;
mod top_k;
mod top_k_segments;
