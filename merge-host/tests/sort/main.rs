//! Everything that sorts, in one program: the engine is compiled once for each type of keys.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod keys;
mod pairs;
mod segments;
mod skewed;
mod streamed;
