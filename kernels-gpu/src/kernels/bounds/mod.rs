//! Lower and upper bounds of sorted needles in sorted keys: the number of keys less than each needle, or not greater
//! than it.
//!
//! In a merge where needles precede equal keys, the keys before a needle are the keys less than it. In a merge where
//! keys precede equal needles, they are the keys not greater than it. The arrays are therefore divided as in a merge,
//! and the number of keys before each needle is the only output:
//!
//! ```text
//!   needles     2 5 5 9             lower: 2 before the 2s     upper: 5s after the 5
//!   keys        1 2 2 5 7
//!   lower       1 3 3 5
//!   upper       3 4 4 5
//! ```
//!
//! | file | idea |
//! | --- | --- |
//! | [`merge_bounds`] | reads all needles and keys once, in tiles |
//! | [`search_bounds`] | few needles: one binary search each |

pub mod merge_bounds;
pub mod search_bounds;
