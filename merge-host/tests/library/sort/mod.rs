//! Tests of all sorts.

mod keys;
mod pairs;
mod segments;
mod skewed;
mod streamed;
