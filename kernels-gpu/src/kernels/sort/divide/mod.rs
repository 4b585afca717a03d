//! Dividing: keys are divided by their leading digits, again and again, until one block can sort each bucket.
//!
//! ```text
//!   choose_digits     a sample decides the digits that divide a segment         │ for each level:
//!   count_twice       how many keys have each digit of the first two levels     │
//!   count_digits      how many of its keys have each digit                      │ segments that are too long
//!   place_parts       with values: the places of the keys of each part          │ for a block are segments of
//!   place_buckets     the places of the keys of each digit                      │ the next level
//!   divide            the scatter: keys move to these places                    │
//!   sort_buckets      each bucket sorted by one block, in shared memory; long buckets by larger blocks
//!   sort_rest         keys that remain after all levels, by a quicksort of all blocks
//! ```
//!
//! Keys of 4 bytes that are too skewed are sorted by all of their bits instead: [`radix`](super::radix).
//!
//! A small input needs only one division, in three launches: `count_once`, `divide_once` and `sort_once`, in [`once`].
//!
//! The first level has one segment, the array; or it has the long ones of a user's [segments](super::segments), which
//! are listed before. Blocks count and move one part of a segment at a time. A division reads one buffer and writes the
//! other. Between divisions, keys are ordered bits, as between the passes of a merge sort.
//! Equal keys without values may change places, since the result is the same. Keys with values are sorted stably. So
//! kernels move keys without values `in_any_order` and sort them `by_keys`. They move keys with values `in_order` and
//! sort them `by_numbers`.

mod bins;
mod by_keys;
mod by_numbers;
pub mod choose_digits;
pub mod count_digits;
pub mod count_twice;
pub mod digits;
#[allow(clippy::module_inception)]
pub mod divide;
mod in_any_order;
mod in_order;
mod offsets;
pub mod once;
pub mod place_buckets;
pub mod place_parts;
mod quicksort;
mod rest_in_order;
pub mod sort_buckets;
pub mod sort_rest;
mod tiles;
pub mod workspace;

pub use tiles::FEW_LEFT;

/// Upper limit on the keys of an array that is one segment.
pub const MOST_KEYS: usize = 1 << 31;

/// Upper limit on the keys of an array of listed segments. Indices have 32 bits, and so has the end of a part or of a
/// pass behind the last key.
pub const MOST_LISTED_KEYS: usize = u32::MAX as usize - (1 << 20);

/// Upper limit on the digits of a division of keys without values. Digits for keys beyond the sample's come on top.
pub const MOST_DIGITS: u32 = 1024;

/// Upper limit on the digits of a division of keys with values, digits beyond the sample included.
pub const MOST_DIGITS_IN_ORDER: u32 = 256;

/// Room for a counter for each digit of a segment.
pub(crate) const DIGITS_CAPACITY: u32 = MOST_DIGITS + 2;

/// Upper limit on the levels of divisions.
pub const MOST_LEVELS: usize = 6;

/// Usual number of keys in a bucket if keys are spread evenly and a bucket has at most `bucket` keys. It lies five and
/// a half standard deviations below `bucket`, so that hardly any bucket is too long by chance.
pub const fn usual_len(bucket: usize) -> usize {
    // The standard deviation is about the square root.
    bucket - 11 * bucket.isqrt() / 2
}

/// Approximate number of buckets for `n` evenly spread keys, in buckets of at most `bucket` keys.
pub const fn usual_buckets(n: usize, bucket: usize) -> usize {
    n / usual_len(bucket) + 64
}
