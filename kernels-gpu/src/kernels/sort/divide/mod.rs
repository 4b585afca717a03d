//! Dividing: keys are divided by their leading digits, again and again, until buckets are left that one block sorts.
//!
//! ```text
//!   choose_digits     a sample tells by which digits a segment is divided       │ for each level:
//!   count_twice       how many keys have each digit of the first two levels     │
//!   count_digits      how many of its keys have each digit                      │ segments that are too long
//!   place_parts       with values: where those of each part go                  │ for a block become those of
//!   place_buckets     where the keys of each digit go                           │ the next level
//!   divide            the keys go there                                         │
//!   sort_buckets      each bucket sorted by one block, in shared memory; long ones, by larger blocks, need not be divided again
//!   sort_rest         what is left when all levels are over, by merging
//! ```
//!
//! Keys of 4 bytes that are too uneven are sorted by all of their bits instead: [`radix`](super::radix).
//!
//! Few keys, which one division is enough for, take three launches: `count_once`, `divide_once` and `sort_once`, in
//! [`once`].
//!
//! At first there is one segment, the array. Blocks count and move a part of a segment at a time. A division reads one
//! buffer and writes the other. In between keys are ordered bits, as for the passes of merges. Keys alone that are
//! equal keep no order, which nothing can tell. Those with values do. So kernels move keys alone `in_any_order` and
//! sort them `by_keys`, and move keys with values `in_order` and sort them `by_numbers`.

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
mod rest_in_order;
pub mod sort_buckets;
pub mod sort_rest;
mod tiles;
pub mod workspace;

pub use tiles::FEW_LEFT;

/// The most keys: indices have 32 bits, and so has twice the length of a run in `sort_rest`.
pub const MOST_KEYS: usize = 1 << 31;

/// The most digits that keys are divided by, besides those for keys beyond the sample's.
pub const MOST_DIGITS: u32 = 1024;

/// The most digits that keys with values are divided by, all counted.
pub const MOST_DIGITS_IN_ORDER: u32 = 256;

/// Room for a counter for each digit of a segment.
pub(crate) const DIGITS_CAPACITY: u32 = MOST_DIGITS + 2;

/// The most levels of divisions.
pub const MOST_LEVELS: usize = 4;

/// About how many keys a bucket has of those that are spread evenly, if it has at most `bucket`: five and a half
/// standard deviations fewer, so that hardly any has too many by chance.
pub const fn usual_len(bucket: usize) -> usize {
    // The deviation is about the root.
    bucket - 11 * bucket.isqrt() / 2
}

/// About how many buckets there are of `n` keys that are spread evenly, in buckets of at most `bucket`.
pub const fn usual_buckets(n: usize, bucket: usize) -> usize {
    n / usual_len(bucket) + 64
}
