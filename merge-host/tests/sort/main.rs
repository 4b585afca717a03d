//! Tests of all sorts, in one program, so that the engine is compiled only once for each key type.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod keys;
mod pairs;
mod segments;
mod skewed;
mod streamed;
