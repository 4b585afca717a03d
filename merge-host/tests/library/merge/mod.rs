//! Tests of all merges.

mod batch;
mod keys;
mod many;
mod many_ragged;
mod pairs;
mod ragged;
mod set_operation;
