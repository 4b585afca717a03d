//! The payload of a sort: nothing or a value that moves with each key.
//!
//! ```text
//!   Nothing    │ keys …                    │     keys only
//!   Beside     │ keys …  │ values …        │     a round moves each value with its key
//!   Packed     │ keys and slots … │ … bits │     a round moves each key with its slot; values come last
//! ```
//!
//! A [`Payload`] defines how a block sorts and merges a tile of such keys. The kernels
//! [`block_sort`](super::block_sort), [`merge_runs`](super::merge_pass::merge_runs),
//! [`merge_many_runs`](super::merge_pass::many_runs) and
//! [`merge_segments`](super::segments::merge_segments) are generic over it.
//!
//! | file | idea |
//! | --- | --- |
//! | [`nothing`] | keys only, where the order of equal keys does not matter |
//! | [`beside`] | keys of 4 bytes and values of 4 bytes, in two arrays |
//! | [`packed`] | keys or values of 8 bytes: a key and its slot are one number |
//! | `packing` | the conversion to one number, and the treatment of bits that do not fit |

pub mod beside;
pub mod nothing;
pub mod packed;
mod packing;

use super::merge_pass::plan::Plan;
use crate::block::sort_tile::KeyTile;
use crate::elements::{Arrays, Source};
use crate::key::{Bits, Coding};
use cuda_std::Word;

/// Sorts and merges tiles of `NT * VT` keys, with their values, in a block of `NT` threads.
pub trait Payload<B: Bits, V: Word, const NT: usize, const VT: usize> {
    /// Whether the sort is stable. Without values, equal keys are indistinguishable.
    const KEEPS_ORDER: bool;

    /// Bytes of shared memory per tile.
    const TILE_BYTES: u32;

    /// Sorts the elements of `from`, a tile or the last, shorter one, into `to`. Keys are encoded by `encode` when
    /// loaded and decoded by `decode` when stored. `random` may be any number.
    ///
    /// # Safety
    /// All `NT` threads of the block, which are whole warps, make this call. [`TILE_BYTES`](Self::TILE_BYTES) from the
    /// start of the block's shared memory are used by nothing else. `from` and `to` have the same length, from 1 to
    /// `NT * VT`, and nothing else uses them. They are the same arrays or do not overlap.
    unsafe fn sort(from: Arrays<B, V>, to: Arrays<B, V>, encode: Coding<B>, decode: Coding<B>, random: u64);

    /// Merges the segments of `from` that `plan` describes into the tile's part of `to`. Keys are encoded by `encode`
    /// when loaded and decoded by `decode` when stored.
    ///
    /// # Safety
    /// All `NT` threads of the block, which are whole warps, make this call. [`TILE_BYTES`](Self::TILE_BYTES) from the
    /// start of the block's shared memory are used by nothing else, and the memory of `plan` follows them. `plan` is
    /// divided and has at most `NT * VT` slots. Nothing writes `from` during the launch, and nothing else uses the
    /// tile's part of `to`.
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

/// Bytes of dynamic shared memory of [`merge_runs`](super::merge_pass::merge_runs::merge_runs) and of
/// [`merge_many_runs`](super::merge_pass::many_runs::merge_many_runs), with the same parameters.
pub const fn merge_runs_bytes(key_bytes: usize, value_bytes: usize, slots: usize) -> u32 {
    Plan::end(block_sort_bytes(key_bytes, value_bytes, slots))
}

/// Whether `P` is the payload that the host uses for keys of type `B` with values of type `V`.
pub(super) const fn is_of_host<B: Bits, V: Word, P: Payload<B, V, NT, VT>, const NT: usize, const VT: usize>() -> bool {
    P::TILE_BYTES == block_sort_bytes(size_of::<B>(), size_of::<V>(), NT * VT)
}
