//! Kernels for a user's own order: of structs by some of their fields, of strings, of numbers in another order.
//!
//! A kernel crate that depends on this one says what is compared and how, and which kernels it wants in its PTX:
//!
//! ```
//! use kernels_gpu::own::{Compare, kernels};
//! use bytemuck::{Pod, Zeroable};
//!
//! #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
//! #[repr(C)]
//! pub struct Point {
//!     pub x: i32,
//!     pub y: i32,
//! }
//!
//! /// By the distance from the origin.
//! #[derive(Clone, Copy)]
//! pub struct ByDistance;
//!
//! impl Compare for ByDistance {
//!     type Item = Point;
//!     fn is_before(a: &Point, b: &Point) -> bool {
//!         let square = |p: &Point| i64::from(p.x) * i64::from(p.x) + i64::from(p.y) * i64::from(p.y);
//!         square(a) < square(b)
//!     }
//! }
//!
//! // Alone, and with values of 4 bytes.
//! kernels! {
//!     by_distance: ByDistance;
//!     by_distance_u32: ByDistance, values u32;
//! }
//! ```
//!
//! | file | idea |
//! | --- | --- |
//! | [`order`] | what comes before what, by a comparison or by ordered bits |
//! | [`items`] | items of several words, in global and in shared memory |
//! | `tile` | items of a block, sorted or merged in shared memory |
//! | [`sort_tiles`] | the tiles of an array, sorted |
//! | [`by_bits`] | items to ordered bits, which the library sorts, and back |
//! | [`merge_groups`] | many pairs of runs, merged: a pass of a sort, two arrays, a batch |
//! | [`merge_ragged`] | pairs of runs of any lengths, merged |
//! | [`set_operation`] | unions, intersections and differences of two multisets |
//! | [`instances`] | which kernels a crate has |
//!
//! Nothing here is an entry point of this crate. Kernels compare, and do not compute with what they compare, so that they are right for every
//! order, and slower than those for numbers. Only a sort of many [keys](Key) goes by their bits, if these are 4 or 8 bytes.

pub mod by_bits;
pub mod instances;
pub mod items;
pub mod merge_groups;
pub mod merge_ragged;
pub mod order;
pub mod set_operation;
pub mod sort_tiles;
pub mod tile;

pub use crate::own_kernels as kernels;
pub use instances::Kernels;
pub use order::{Compare, Key};
