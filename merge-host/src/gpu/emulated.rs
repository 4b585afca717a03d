//! Sorts, merges and set operations in a user's own order, run by the emulator: the same kernels and the same launches,
//! without a GPU.
//!
//! They are for tests of an order. The emulator checks every access to memory: bounds, uninitialised memory, races. It
//! is many thousand times slower than a GPU.
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
//! The seed decides the order of the threads' turns.
//!
//! # Panics
//! All functions panic with the emulator's message if a kernel breaks a rule. They also panic if lengths do not match:
//! there is a value for each item, and an output is as long as both inputs together.

use super::launch::emulated::own;
use crate::SetOperation;
use bytemuck::Pod;
use kernels_gpu::own::Kernels;
use kernels_gpu::own::merge_groups::Groups;

/// [`Stream::sort_by`](crate::Stream::sort_by) of items alone.
pub fn sort_by<C: Kernels>(items: &mut [C::Item], seed: u64) {
    own::sort::<C, ()>(items, &mut [], false, seed);
}

/// [`Stream::sort_by`](crate::Stream::sort_by) of items with values.
pub fn sort_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(items: &mut [C::Item], values: &mut [V], seed: u64) {
    own::sort::<C, V>(items, values, false, seed);
}

/// [`Stream::merge_by`](crate::Stream::merge_by) of items alone.
pub fn merge_by<C: Kernels>(a: &[C::Item], b: &[C::Item], out: &mut [C::Item], seed: u64) {
    assert_eq!(out.len(), a.len() + b.len(), "items of the output");
    own::merge::<C, ()>([(a, &[]), (b, &[])], (out, &mut []), Groups::of_two(a.len(), b.len()), seed);
}

/// [`Stream::merge_by`](crate::Stream::merge_by) of items with values.
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

/// [`Stream::merge_ragged_by`](crate::Stream::merge_ragged_by) of items alone. Each side is its items and their
/// offsets.
pub fn merge_ragged_by<C: Kernels>(
    a: (&[C::Item], &[usize]),
    b: (&[C::Item], &[usize]),
    out: &mut [C::Item],
    seed: u64,
) {
    merge_ragged_pairs_by::<C, ()>((a.0, &[], a.1), (b.0, &[], b.1), (out, &mut []), seed);
}

/// [`Stream::merge_ragged_by`](crate::Stream::merge_ragged_by) of items with values. Each side is its items, their
/// values and their offsets.
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

/// [`Stream::set_operation_by`](crate::Stream::set_operation_by) of items alone. Returns the items of the result.
pub fn set_operation_by<C: Kernels>(operation: SetOperation, a: &[C::Item], b: &[C::Item], seed: u64) -> Vec<C::Item> {
    own::set_operation::<C, ()>(operation, [(a, &[]), (b, &[])], seed).0.0
}

/// [`Stream::set_operation_by`](crate::Stream::set_operation_by) of items with values. Returns the items of the result,
/// and their values.
pub fn set_operation_pairs_by<C: Kernels<V>, V: Pod + Send + Sync>(
    operation: SetOperation,
    a: (&[C::Item], &[V]),
    b: (&[C::Item], &[V]),
    seed: u64,
) -> (Vec<C::Item>, Vec<V>) {
    own::set_operation::<C, V>(operation, [a, b], seed).0
}
