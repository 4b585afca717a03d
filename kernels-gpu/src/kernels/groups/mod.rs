//! Operations on groups of adjacent equal keys, such as the groups of a sorted array: one launch that reads and writes
//! all data once.
//!
//! ```text
//!   keys      3 3 3│3 5 5│7 9 9     tiles
//!   heads     1 0 0│0 1 0│1 1 0     a key that differs from the key before it
//!   unique    3    │  5  │7 9       the heads without gaps: a look-back counts the heads of earlier tiles
//!   totals         │  4  │2 1   2   the tile with the next head closes a group and writes its total
//! ```
//!
//! Keys are equal if their bits are, so that kernels need not know their type.
//!
//! | file | idea |
//! | --- | --- |
//! | [`heads`] | a tile of keys and its heads |
//! | [`unique`] | the first key of each group, with its value |
//! | [`run_lengths`] | the key of each group and the number of its keys |
//! | [`reduction`] | reductions: sums and maxima |
//! | [`reduce_groups`] | the key of each group and the reduction of its values |

pub mod heads;
pub mod reduce_groups;
pub mod reduction;
pub mod run_lengths;
pub mod unique;
