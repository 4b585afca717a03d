//! What the lanes of a warp do together.
//!
//! | file | idea |
//! | --- | --- |
//! | [`carry`] | what tiles carry to the next ones, in one pass |
//! | [`diagonal_search`] | the Merge Path search: 32 points of a diagonal at once |
//! | [`look_back`] | the sum over all tiles before one, in one pass |
//! | [`multiway_co_rank`] | a co-rank over up to 32 runs, one lane each |
//! | [`sort_lanes`] | sorting the keys that neighbouring lanes hold in registers |

pub mod carry;
pub mod diagonal_search;
pub mod look_back;
pub mod multiway_co_rank;
pub mod sort_lanes;
