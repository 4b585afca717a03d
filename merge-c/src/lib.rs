//! The C interface of `merge-host`. `include/gmerge.h`, which cbindgen makes from these files, is its documentation.
//!
//! A crate that links this library has the same functions, types and constants, with the same contracts.
//!
//! | file | contents |
//! | --- | --- |
//! | `status` | results of calls, and the message of the last error of a thread |
//! | `objects` | objects that a caller holds, and places for results |
//! | `engine` | engines |
//! | `format` | types of keys, orders, and sizes of values |
//! | `arrays` | arrays of a caller, checked |
//! | `values` | values of any size: as numbers, or moved by indices |
//! | `ordered` | keys in an order other than that of their type, encoded for operations on sorted arrays |
//! | `sort` | sorts, permutations, the first keys, segments |
//! | `merge` | merges, batches of merges |
//! | `sorted` | set operations, groups of equal keys, bounds |
//! | `device` | operations on arrays in a GPU's memory, on a stream of the caller |
#![allow(non_camel_case_types, reason = "the names of a C interface")]

mod arrays;
#[cfg(feature = "gpu")]
mod device;
mod engine;
mod format;
mod merge;
mod objects;
mod ordered;
mod sort;
mod sorted;
mod status;
mod values;

pub use arrays::*;
#[cfg(feature = "gpu")]
pub use device::*;
pub use engine::*;
pub use format::*;
pub use merge::*;
pub use sort::*;
pub use sorted::*;
pub use status::*;
