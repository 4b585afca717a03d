//! Sorts, merges and set operations in a user's own order by the emulator: the same kernels and the same launches,
//! without a GPU.
//!
//! For tests of an order. The emulator checks every access to memory: bounds, memory that nothing has written, races.
//! It is many thousand times as slow as a GPU.
//!
//! ```
//! use kernels_gpu::own::{Compare, kernels};
//! use merge_host::emulated;
//!
//! #[derive(Clone, Copy)]
//! struct OddFirst;
//!
//! impl Compare for OddFirst {
//!     type Item = u32;
//!     fn is_before(a: &u32, b: &u32) -> bool {
//!         a % 2 > b % 2
//!     }
//! }
//!
//! kernels! {
//!     odd_first: OddFirst;
//! }
//!
//! let mut numbers = [4, 3, 2, 1];
//! emulated::sort_by::<OddFirst>(&mut numbers, 1);
//! assert_eq!(numbers, [3, 1, 4, 2]);
//! ```
//!
//! The seed decides in which order threads take turns.
//!
//! # Panics
//! All functions panic with the emulator's words if a kernel does what it must not, and if lengths do not fit: as many
//! values as items, and an output as long as both inputs.

use super::launch::emulated::own;
use crate::SetOperation;
use bytemuck::Pod;
use kernels_gpu::own::Kernels;
use kernels_gpu::own::merge_groups::Groups;

/// As [`Stream::sort_by`](crate::Stream::sort_by).
pub fn sort_by<C: Kernels>(items: &mut [C::Item], seed: u64) {
    own::sort::<C, ()>(items, &mut [], false, seed);
}

/// As [`Stream::sort_by`](crate::Stream::sort_by), with values.
pub fn sort_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(items: &mut [C::Item], values: &mut [V], seed: u64) {
    own::sort::<C, V>(items, values, false, seed);
}

/// As [`Stream::merge_by`](crate::Stream::merge_by).
pub fn merge_by<C: Kernels>(a: &[C::Item], b: &[C::Item], out: &mut [C::Item], seed: u64) {
    assert_eq!(out.len(), a.len() + b.len(), "items of the output");
    own::merge::<C, ()>([(a, &[]), (b, &[])], (out, &mut []), Groups::of_two(a.len(), b.len()), seed);
}

/// As [`Stream::merge_by`](crate::Stream::merge_by), with values.
pub fn merge_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
    a: (&[C::Item], &[V]),
    b: (&[C::Item], &[V]),
    out: (&mut [C::Item], &mut [V]),
    seed: u64,
) {
    assert_eq!(out.0.len(), a.0.len() + b.0.len(), "items of the output");
    assert_eq!(out.1.len(), out.0.len(), "values of the output");
    let groups = Groups::of_two(a.0.len(), b.0.len());
    own::merge::<C, V>([a, b], out, groups, seed);
}

/// As [`Stream::merge_ragged_by`](crate::Stream::merge_ragged_by): each side is its items and their offsets.
pub fn merge_ragged_by<C: Kernels>(
    a: (&[C::Item], &[usize]),
    b: (&[C::Item], &[usize]),
    out: &mut [C::Item],
    seed: u64,
) {
    merge_ragged_pairs_by::<C, ()>((a.0, &[], a.1), (b.0, &[], b.1), (out, &mut []), seed);
}

/// As [`Stream::merge_ragged_by`](crate::Stream::merge_ragged_by), with values: each side is its items, their values
/// and their offsets.
pub fn merge_ragged_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
    a: (&[C::Item], &[V], &[usize]),
    b: (&[C::Item], &[V], &[usize]),
    out: (&mut [C::Item], &mut [V]),
    seed: u64,
) {
    assert_eq!(a.2.len(), b.2.len(), "offsets of both sides");
    assert_eq!(out.0.len(), a.0.len() + b.0.len(), "items of the output");
    for (items, offsets) in [(a.0.len(), a.2), (b.0.len(), b.2)] {
        let (first, last) = (offsets.first(), offsets.last());
        assert!(
            first == Some(&0) && last == Some(&items) && offsets.is_sorted(),
            "offsets ascend from 0 to the number of items"
        );
    }
    own::merge_ragged::<C, V>([((a.0, a.1), a.2), ((b.0, b.1), b.2)], out, seed);
}

/// As [`Stream::set_operation_by`](crate::Stream::set_operation_by): the items that are kept.
pub fn set_operation_by<C: Kernels>(operation: SetOperation, a: &[C::Item], b: &[C::Item], seed: u64) -> Vec<C::Item> {
    own::set_operation::<C, ()>(operation, [(a, &[]), (b, &[])], seed).0.0
}

/// As [`Stream::set_operation_by`](crate::Stream::set_operation_by), with values: the items that are kept, and their
/// values.
pub fn set_operation_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
    operation: SetOperation,
    a: (&[C::Item], &[V]),
    b: (&[C::Item], &[V]),
    seed: u64,
) -> (Vec<C::Item>, Vec<V>) {
    own::set_operation::<C, V>(operation, [a, b], seed).0
}
