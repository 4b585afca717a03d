//! Merge of keys with values: the two-phase merge, with values that follow their keys.
//!
//! The splits are those of `path_big`, which looks at keys only. A block merges its tile's keys and remembers for each
//! the place that it came from; the values then take the same way.

use crate::co_rank::in_step;
use crate::key::Key;
use crate::stable_tile::{Cursors, Parts, load_keys, merge_to_registers, move_values, store_keys};
use crate::tuning::STABLE_VALUES as VALUES;
use cuda_std::prelude::*;

/// Kernel: merges the keys `a_keys` and `b_keys` into `c_keys`, and the values accordingly, one block a tile, at the splits
/// that [`path_big`](crate::merge_path::path_big) found.
///
/// # Safety
/// `a_keys` and `b_keys` are ascending arrays of `m` and `n` keys with as many values each, and `c_keys` and `c_values` have
/// room for `m + n`; `splits` are those of `path_big` for tiles of `blockDim * VT` keys. One block for each tile, with
/// [`shared_bytes`](crate::stable_tile::shared_bytes) of dynamic shared memory for the wider of keys and values.
#[kernel(
    u32v4 = <u32, u32, VALUES>, i32v4 = <i32, u32, VALUES>, f32v4 = <f32, u32, VALUES>,
    u64v4 = <u64, u32, VALUES>, i64v4 = <i64, u32, VALUES>, f64v4 = <f64, u32, VALUES>,
    u32v8 = <u32, u64, VALUES>, i32v8 = <i32, u64, VALUES>, f32v8 = <f32, u64, VALUES>,
    u64v8 = <u64, u64, VALUES>, i64v8 = <i64, u64, VALUES>, f64v8 = <f64, u64, VALUES>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_pairs<K: Key, V: Word, const VT: usize>(
    a_keys: *const K,
    a_values: *const V,
    m: usize,
    b_keys: *const K,
    b_values: *const V,
    n: usize,
    c_keys: *mut K,
    c_values: *mut V,
    splits: *const usize,
) {
    let (total, threads) = (m + n, thread::block_dim_x() as usize);
    let (tile_keys, tiles) = (threads * VT, total.div_ceil(threads * VT));
    let t = thread::block_idx_x() as usize;
    let k = t * tile_keys;
    let count = (total - k).min(tile_keys);
    // SAFETY: the caller's promise.
    let splits = unsafe { Global::new(splits, tiles) };
    let a_curr = splits.get(t);
    let a_next = in_step(a_curr, if t + 1 < tiles { splits.get(t + 1) } else { m }, count);
    let (b_curr, b_next) = (k - a_curr, k + count - a_next);
    // SAFETY: the caller's promise.
    let (keys, values, to_keys, to_values) = unsafe {
        (
            Parts {
                a: Global::new(a_keys, m).slice(a_curr, a_next - a_curr),
                b: Global::new(b_keys, n).slice(b_curr, b_next - b_curr),
            },
            Parts {
                a: Global::new(a_values, m).slice(a_curr, a_next - a_curr),
                b: Global::new(b_values, n).slice(b_curr, b_next - b_curr),
            },
            GlobalMut::new(c_keys, total).slice(k, count),
            GlobalMut::new(c_values, total).slice(k, count),
        )
    };
    let slots = (tile_keys + VT + 1) as u32;
    // SAFETY: the caller's promise; barriers divide writing from reading, and keys from values.
    let (tile, value_tile) = unsafe { (Shared::<K::Bits>::dynamic(0, slots), Shared::<V>::dynamic(0, slots)) };

    load_keys::<K, VT>(keys, tile);
    thread::sync_threads();
    let a_count = keys.a.len() as u32;
    let place = (thread::thread_idx_x() * VT as u32).min(count as u32);
    let cursors = Cursors { a: 0, b: a_count, a_end: a_count, b_end: count as u32 }.at(place, tile);
    let (merged, places): (_, [u32; VT]) = merge_to_registers(tile, cursors, |_, _| {});
    thread::sync_threads();
    store_keys::<K, VT>(merged, tile, to_keys);
    thread::sync_threads();
    move_values(values, places, value_tile, to_values);
}
