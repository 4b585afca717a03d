//! Algorithms that one thread runs by itself.
//!
//! | file | idea |
//! | --- | --- |
//! | [`diagonal`] | the Merge Path search with one comparison per step |
//! | [`balanced_path`] | the same search, where equal keys are taken in pairs |
//! | [`network`] | keys in registers, sorted by a network |
//! | [`insertion`] | a few keys put in order by insertion |
//! | [`indexed_key`] | a key with a small index, as one number |

pub mod balanced_path;
pub mod diagonal;
pub mod indexed_key;
pub mod insertion;
pub mod network;
