//! The CPU engine: merges and sorts on a pool of threads.
//!
//! Every function takes the number of threads to use. With more than 1 thread, the calling thread must belong to the
//! pool that does the work. With 1 thread, no pool is needed.
//!
//! A failed allocation is an error, or the work is done in a way that needs less memory. Large scratch memory is
//! allocated before the input is changed.
//!
//! | file | contents |
//! | --- | --- |
//! | `workers` | the threads of an engine, and how many an input is worth |
//! | `limit` | the environment variable that limits vector instructions |
//! | `blocks` | loops over the blocks of an output |
//! | `run`, `memory`, `scratch` | runs of key-value pairs, and scratch memory |
//! | `merge_path`, `bidirectional`, `merge_avx2` | merge of two runs |
//! | `split`, `multiway_split` | exact splits of two or more runs at the bounds of an output block |
//! | `merge_batch`, `merge_ragged`, `merge_many`, `merge_many_ragged` | many merges, and merges of many runs |
//! | `reference` | counterparts of the textbook kernels |
//! | `streamed` | sort of keys that callbacks read and write |
//! | `sort`, `sort_pairs`, `sort_segments` | choice of the method of a sort |
//! | `few_keys`, `few_values` | sorts of few keys, and of few distinct keys |
//! | `presorted`, `misplaced` | sorts of arrays of long runs, and of arrays with few keys out of place |
//! | `parallel_radix`, `radix`, `lsd`, `prefix_index` | radix sorts on all threads and on one |
//! | `key_index` | sort of the indices of keys, and of keys of 16 bytes, by numbers |
//! | `vector` | sorts of keys without values, and merges of few keys, by vector instructions |
//! | `counting` | sort of keys of 1 and 2 bytes |
//! | `digit`, `buckets`, `write_combiner` | digits of keys, buckets of keys, and writes to many buckets |
//! | `set_operation` | set operations on sorted arrays |
//! | `top_k`, `top_k_segments` | the first keys of the order, of all keys and of each segment |
//! | `sort_by`, `merge_by` | sort and merge of elements of any type by a comparison |
//! | `sort_by_key`, `sort_by_bytes` | sorts of elements of any type by ordered bits, and by strings of bytes |
//! | `equal_keys` | work on groups of adjacent equal keys |
//! | `moved` | elements of any type, moved in the order of a permutation |
//! | `groups`, `bounds` | groups of equal keys; lower and upper bounds |

pub(crate) mod blocks;
pub(crate) mod bounds;
pub(crate) mod groups;
pub(crate) mod memory;
pub(crate) mod merge_batch;
pub(crate) mod merge_by;
pub(crate) mod merge_many;
pub(crate) mod merge_many_ragged;
pub(crate) mod merge_path;
pub(crate) mod merge_ragged;
pub(crate) mod moved;
pub(crate) mod reference;
pub(crate) mod scratch;
pub(crate) mod set_operation;
pub(crate) mod sort;
pub(crate) mod sort_by;
pub(crate) mod sort_by_bytes;
pub(crate) mod sort_by_key;
pub(crate) mod sort_pairs;
pub(crate) mod sort_segments;
pub(crate) mod streamed;
pub(crate) mod top_k;
pub(crate) mod top_k_segments;

mod bidirectional;
mod buckets;
mod counting;
mod digit;
mod equal_keys;
mod few_keys;
mod few_values;
mod key_index;
mod limit;
mod lsd;
#[cfg(target_arch = "x86_64")]
mod merge_avx2;
mod misplaced;
mod multiway_split;
mod parallel_radix;
mod prefix_index;
mod presorted;
mod radix;
mod run;
pub(crate) mod split;
#[cfg_attr(not(target_arch = "x86_64"), path = "no_vector.rs")]
mod vector;
mod workers;
mod write_combiner;

pub(crate) use run::{Run, RunMut};
pub(crate) use vector::wide;
pub(crate) use workers::{UNTIMED_KEYS, Workers};

/// A new seed at each run of the tests. A failing test prints it.
#[cfg(test)]
pub(crate) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
