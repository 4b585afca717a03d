//! The kernels that the library launches, one a file.
//!
//! | file | idea |
//! | --- | --- |
//! | [`merge_path`] | partition, then merge: arrays of any size |
//! | [`merge_fused`] | arrays of any size in one launch |
//! | [`merge_batch`] | many pairs of runs of one length, several to a tile |
//! | [`merge_ragged`] | many pairs of runs of any lengths |
//! | [`set_operation`] | unions, intersections and differences of sorted keys |
//! | [`groups`] | groups of equal keys: unique keys, run lengths, reductions by key |
//! | [`bounds`] | lower and upper bounds of sorted needles |
//! | [`count_below`] | exact splits of runs on several GPUs |
//! | [`sort`] | sorted tiles, then passes of merges; or divisions, then sorted buckets; or sweeps by all bits |
//! | [`top_k`] | the first k keys in their order |
//! | [`pad_keys`] | keys behind a number of keys that only the GPU knows |
//! | [`sum_lengths`] | offsets of runs whose lengths only the GPU knows |
//! | [`narrow`] | keys of 1 and 2 bytes: a sort by counting, and conversions to keys of 4 bytes |
//! | [`extract_bits`] | some bits of keys |
//! | [`words`] | keys of 16 bytes as words of 8 bytes |

pub mod bounds;
pub mod count_below;
pub mod extract_bits;
pub mod groups;
pub mod merge_batch;
pub mod merge_fused;
pub mod merge_path;
pub mod merge_ragged;
pub mod narrow;
pub mod pad_keys;
pub mod set_operation;
pub mod sort;
pub mod sum_lengths;
pub mod top_k;
pub mod words;
