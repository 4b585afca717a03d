//! Kernels for user-defined orders: of structs by some of their fields, of strings, of numbers in another order.
//!
//! A kernel crate that depends on this one defines an order and names the kernels for its PTX:
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
//! // Without values, and with values of 4 bytes.
//! kernels! {
//!     by_distance: ByDistance;
//!     by_distance_u32: ByDistance, values u32;
//! }
//! ```
//!
//! | file | idea |
//! | --- | --- |
//! | [`order`] | an order, defined by a comparison or by ordered bits |
//! | [`items`] | items of several words, in global and in shared memory |
//! | `tile` | items of a block, sorted or merged in shared memory |
//! | [`sort_tiles`] | sorts the tiles of an array |
//! | [`by_bits`] | converts items to ordered bits, which the library sorts, and gathers the items |
//! | [`merge_groups`] | merges many pairs of runs: a pass of a sort, two arrays, a batch |
//! | [`merge_ragged`] | merges pairs of runs of any lengths |
//! | [`set_operation`] | unions, intersections and differences of two multisets |
//! | [`instances`] | the kernels of a crate |
//!
//! This crate exports no entry points for such orders. The kernels only compare and move items, so that they work for
//! every order. They are slower than the kernels for numbers. Only a sort of many [keys](Key) sorts their bits, if
//! these have 4 or 8 bytes.

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
