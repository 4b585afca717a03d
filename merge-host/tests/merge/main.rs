//! Tests of all merges, in one program, so that the engine is compiled only once for each key type.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod batch;
mod keys;
mod many;
mod pairs;
mod ragged;
mod set_operation;
