//! Everything that merges, in one program: the engine is compiled once for each type of keys.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod batch;
mod keys;
mod many;
mod pairs;
mod ragged;
mod set_operation;
