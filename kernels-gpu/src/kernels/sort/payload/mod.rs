//! What moves with a key: nothing, or a value.
//!
//! ```text
//!   Nothing    │ keys …                    │     keys alone
//!   Beside     │ keys …  │ values …        │     a round moves each value as it moves its key
//!   Packed     │ keys and slots … │ … bits │     a round moves each key with the slot of its value, which is fetched in the end
//! ```
//!
//! A [`Payload`] is how a block sorts a tile of such keys, and how it merges one. The kernels,
//! [`block_sort`](super::block_sort), [`merge_runs`](super::merge_pass::merge_runs) and
//! [`merge_long_runs`](super::merge_pass::long_runs), are the same for all of them.
//!
//! | file | idea |
//! | --- | --- |
//! | [`nothing`] | keys alone, which may be sorted and merged in any order |
//! | [`beside`] | keys of 4 bytes and values of 4 bytes, in two arrays |
//! | [`packed`] | keys or values of 8 bytes: a key and its slot are one number |
//! | `packing` | how they become one number, and what is done about bits that do not fit |

pub mod beside;
pub mod nothing;
pub mod packed;
mod packing;

use super::merge_pass::plan::Plan;
use crate::block::sort_tile::KeyTile;
use crate::elements::{Arrays, Source};
use crate::key::{Bits, Coding};
use cuda_std::Word;

/// How a block of `NT` threads sorts and merges tiles of `NT * VT` keys and the values that move with them.
pub trait Payload<B: Bits, V: Word, const NT: usize, const VT: usize> {
    /// Whether equal keys stay in their order. Those of keys alone cannot be told apart.
    const KEEPS_ORDER: bool;

    /// Bytes of shared memory of a tile.
    const TILE_BYTES: u32;

    /// Sorts the elements of `from`, which are a tile or the last, shorter one, to `to`. Keys are loaded as `encode`
    /// encodes them and stored as `decode` decodes them. `random` is any number.
    ///
    /// # Safety
    /// All `NT` threads of the block make this call, with [`TILE_BYTES`](Self::TILE_BYTES) from the start of the
    /// block's shared memory on that nothing else uses. `from` and `to` are of the same length, from 1 to `NT * VT`,
    /// and nothing else uses them; they are the same arrays or do not overlap.
    unsafe fn sort(from: Arrays<B, V>, to: Arrays<B, V>, encode: Coding<B>, decode: Coding<B>, random: u64);

    /// Merges the segments of `from` that `plan` lays out to the tile's part of `to`. Keys are loaded as `encode`
    /// encodes them and stored as `decode` decodes them.
    ///
    /// # Safety
    /// As for [`sort`](Self::sort), but for the arrays; `plan` is divided, of no more than `NT * VT` slots, and behind
    /// the tile's memory. Nothing writes `from` during the launch, and nothing else uses the tile's part of `to`.
    unsafe fn merge(plan: Plan, from: Source<B, V>, to: Arrays<B, V>, encode: Coding<B>, decode: Coding<B>);
}

/// Bytes of dynamic shared memory of [`block_sort`](super::block_sort::block_sort), for tiles of `slots` keys of
/// `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn block_sort_bytes(key_bytes: usize, value_bytes: usize, slots: usize) -> u32 {
    match (key_bytes, value_bytes) {
        (4, 0) => KeyTile::<u32>::bytes(slots),
        (_, 0) => KeyTile::<u64>::bytes(slots),
        (4, 4) => beside::PairTile::bytes(slots),
        _ => packing::tile_bytes(slots),
    }
}

/// The same of [`merge_runs`](super::merge_pass::merge_runs::merge_runs) and of
/// [`merge_long_runs`](super::merge_pass::long_runs::merge_long_runs).
pub const fn merge_runs_bytes(key_bytes: usize, value_bytes: usize, slots: usize) -> u32 {
    Plan::end(block_sort_bytes(key_bytes, value_bytes, slots))
}

/// Whether `P` is the payload that the host takes for keys and values of these types.
pub(super) const fn is_of_host<B: Bits, V: Word, P: Payload<B, V, NT, VT>, const NT: usize, const VT: usize>() -> bool {
    P::TILE_BYTES == block_sort_bytes(size_of::<B>(), size_of::<V>(), NT * VT)
}
