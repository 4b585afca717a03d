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
//! emulated::sort_by::<OddFirst, ()>(&mut numbers, 1);
//! assert_eq!(numbers, [3, 1, 4, 2]);
//! ```
//!
//! The seed decides the order of the threads' turns.
//!
//! # Panics
//! All functions panic with the emulator's message if a kernel breaks a rule. They also panic if lengths do not match:
//! there is a value for each item, and an output is as long as both inputs together.

use super::launch::emulated::own;
use crate::elements::{Elements, ElementsMut};
use crate::{Error, SetOperation};
use bytemuck::Pod;
use kernels_gpu::own::Kernels;
use kernels_gpu::own::merge_groups::Groups;

/// [`Stream::sort_by`](crate::Stream::sort_by).
pub fn sort_by<C: Kernels<V>, V: Pod + Send + Sync>(mut elements: impl ElementsMut<C::Item, V>, seed: u64) {
    let run = matching(elements.run_mut("items"));
    own::sort::<C, V>(run.keys, run.values, false, seed);
}

/// [`Stream::merge_by`](crate::Stream::merge_by).
pub fn merge_by<C: Kernels<V>, V: Pod + Send + Sync>(
    a: impl Elements<C::Item, V>,
    b: impl Elements<C::Item, V>,
    mut out: impl ElementsMut<C::Item, V>,
    seed: u64,
) {
    let (a, b, out) = (matching(a.run("a")), matching(b.run("b")), matching(out.run_mut("out")));
    assert_eq!(out.keys.len(), a.keys.len() + b.keys.len(), "items of the output");
    let groups = Groups::of_two(a.keys.len(), b.keys.len());
    own::merge::<C, V>([(a.keys, a.values), (b.keys, b.values)], (out.keys, out.values), groups, seed);
}

/// [`Stream::merge_ragged_by`](crate::Stream::merge_ragged_by). Each side is its elements and their offsets.
pub fn merge_ragged_by<C: Kernels<V>, V: Pod + Send + Sync>(
    (a, of_a): (impl Elements<C::Item, V>, &[usize]),
    (b, of_b): (impl Elements<C::Item, V>, &[usize]),
    mut out: impl ElementsMut<C::Item, V>,
    seed: u64,
) {
    let (a, b, out) = (matching(a.run("a")), matching(b.run("b")), matching(out.run_mut("out")));
    assert_eq!(of_a.len(), of_b.len(), "offsets of both sides");
    assert_eq!(out.keys.len(), a.keys.len() + b.keys.len(), "items of the output");
    for (items, offsets) in [(a.keys.len(), of_a), (b.keys.len(), of_b)] {
        let (first, last) = (offsets.first(), offsets.last());
        assert!(
            first == Some(&0) && last == Some(&items) && offsets.is_sorted(),
            "offsets ascend from 0 to the number of items"
        );
    }
    let runs = [((a.keys, a.values), of_a), ((b.keys, b.values), of_b)];
    own::merge_ragged::<C, V>(runs, (out.keys, out.values), seed);
}

/// [`Stream::set_operation_by`](crate::Stream::set_operation_by). Returns the items of the result, and their values.
pub fn set_operation_by<C: Kernels<V>, V: Pod + Send + Sync>(
    operation: SetOperation,
    a: impl Elements<C::Item, V>,
    b: impl Elements<C::Item, V>,
    seed: u64,
) -> (Vec<C::Item>, Vec<V>) {
    let (a, b) = (matching(a.run("a")), matching(b.run("b")));
    own::set_operation::<C, V>(operation, [(a.keys, a.values), (b.keys, b.values)], seed).0
}

/// The elements, which have a value for each item.
fn matching<T>(elements: Result<T, Error>) -> T {
    elements.unwrap_or_else(|error| panic!("{error}"))
}
