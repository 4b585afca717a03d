//! Dividing: keys are divided by their leading digits, again and again, until buckets are left that one block sorts.
//!
//! ```text
//!   choose_digits     a sample tells by which digits a segment is divided       │ for each level:
//!   count_digits      how many of its keys have each digit                      │ segments that are too long
//!   place_buckets     where the keys of each digit go                           │ for a block become those of
//!   divide            the keys go there, in no order                            │ the next level
//!   sort_buckets      each bucket sorted by one block, in shared memory
//!   sort_rest         what is left when all levels are over, by merging
//! ```
//!
//! At first there is one segment, the array. Blocks count and move a part of a segment at a time. A division reads one buffer and
//! writes the other. In between keys are ordered bits, as for the passes of merges. Keys alone that are equal keep no order, which
//! nothing can tell. Keys with values come with their indices, which do: kernels whose names end in `_indexed` move both, and values.

pub mod choose_digits;
pub mod count_digits;
pub mod digits;
#[allow(clippy::module_inception)]
pub mod divide;
pub mod divide_indexed;
mod parts;
pub mod place_buckets;
mod room;
mod sectors;
pub mod sort_buckets;
pub mod sort_buckets_indexed;
pub mod sort_rest;
pub mod sort_rest_indexed;
pub mod workspace;

/// The most keys: indices have 32 bits, and so has twice the length of a run in `sort_rest`.
pub const MOST_KEYS: usize = 1 << 31;

/// The most digits that keys are divided by, besides those for keys beyond the sample's.
pub const MOST_DIGITS: u32 = 1024;

/// Room for the counters of a segment.
pub(crate) const DIGITS_CAPACITY: u32 = MOST_DIGITS + 2;

/// A segment has as many counters at most as it has keys, divided by this.
pub(crate) const fn keys_per_counter(bucket: usize) -> usize {
    if bucket < 9 { 1 } else { bucket / 9 }
}

/// The most levels of divisions.
pub const MOST_LEVELS: usize = 8;

/// About how many keys a bucket has of those that are spread evenly, if it has at most `bucket`: five and a half standard deviations
/// fewer, so that hardly any has too many by chance.
pub const fn usual_len(bucket: usize) -> usize {
    // The deviation is about the root.
    bucket - 11 * bucket.isqrt() / 2
}

/// About how many buckets there are of `n` keys that are spread evenly, in buckets of at most `bucket`.
pub const fn usual_buckets(n: usize, bucket: usize) -> usize {
    n / usual_len(bucket) + 64
}
