//! Groups of equal keys that are next to each other, as those of a sorted array are: one launch that reads and writes all once.
//!
//! ```text
//!   keys      3 3 3│3 5 5│7 9 9     tiles
//!   heads     1 0 0│0 1 0│1 1 0     a key that differs from the one before it
//!   unique    3    │  5  │7 9       heads side by side: the number of those in all tiles before comes from a look-back
//!   totals         │  4  │2 1   2   a group is closed by the next head, whose tile writes what the group has in all
//! ```
//!
//! Keys are equal if their bits are, so that kernels need not know their type.
//!
//! | file | idea |
//! | --- | --- |
//! | [`heads`] | a tile of keys, and which of them begin a group |
//! | [`unique`] | the first key of each group, with its value |
//! | [`run_lengths`] | the key of each group and how many keys it has |
//! | [`reduction`] | what the values of a group are reduced by |
//! | [`reduce_groups`] | the key of each group and the reduction of its values |

pub mod heads;
pub mod reduce_groups;
pub mod reduction;
pub mod run_lengths;
pub mod unique;
