//! Tests of all sorts.

mod bits;
mod elements;
mod keys;
mod pairs;
mod segments;
mod skewed;
mod streamed;
mod unique;
