//! Tests of all sorts.

mod elements;
mod keys;
mod pairs;
mod segments;
mod skewed;
mod streamed;
mod unique;
