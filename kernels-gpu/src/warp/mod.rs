//! Algorithms of the 32 lanes of a warp.
//!
//! | file | idea |
//! | --- | --- |
//! | [`carry`] | reductions that tiles carry to later tiles, in one pass |
//! | [`diagonal_search`] | the Merge Path search: 32 points of a diagonal per step |
//! | [`look_back`] | the sum over all tiles before a tile, in one pass |
//! | [`multiway_co_rank`] | a co-rank over up to 32 runs, one lane each |
//! | [`sort_lanes`] | sorting the keys that neighbouring lanes hold in registers |

pub mod carry;
pub mod diagonal_search;
pub mod look_back;
pub mod multiway_co_rank;
pub mod sort_lanes;
