//! Lower and upper bounds of sorted needles in sorted keys: how many keys are less than each needle, or not greater than it.
//!
//! In the merge of needles and keys, in which of equal ones the needles go first, the keys before a needle are those that are less than
//! it; and if the keys go first, those that are not greater. So the two arrays are divided as for a merge, and nothing but the
//! keys before each needle is written:
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
//! | [`merge_bounds`] | all needles and keys are read once, in tiles |
//! | [`search_bounds`] | few needles: a binary search each |

pub mod merge_bounds;
pub mod search_bounds;
