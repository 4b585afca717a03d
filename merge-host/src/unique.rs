//! Compaction of sorted keys: the first of each group of equal keys is kept.
//!
//! ```text
//!   blocks   │ 1 1 2 2 │ 2 3 3 3 │ 4 5 5 6 │
//!            │ 1 2     │ 3       │ 4 5 6   │    one thread compacts each block
//!   keys     │ 1 2 3 4 5 6                      then the blocks are joined
//! ```

use crate::cpu::memory;
use crate::{Error, Index, Key, parallel};

/// The number of keys of a block.
const BLOCK: usize = 1 << 16;

/// Moves the first of each group of equal keys to the front, with its payload of `width` bytes, and returns the number
/// of keys kept. Keys that equal `before`, the last key of an earlier part, are not kept.
///
/// `keys` are sorted, in either order. Keys are equal if their bits are: `-0.0` and `0.0` are two keys. Both slices
/// have unspecified contents after the kept keys. Takes linear time, on the threads of [`parallel`] loops.
///
/// ```
/// let (mut keys, mut names) = ([1, 1, 2, 3, 3], *b"abcde");
/// let count = merge_host::unique(&mut keys, &mut names, 1, None);
/// assert_eq!((&keys[..count], &names[..count]), (&[1, 2, 3][..], &b"acd"[..]));
/// ```
///
/// # Panics
/// Panics if `payload` does not have `width` bytes for each key.
pub fn unique<K: Key>(keys: &mut [K], payload: &mut [u8], width: usize, before: Option<K>) -> usize {
    unique_on(parallel::threads_for(keys.len(), BLOCK), keys, payload, width, before)
}

/// [`unique`] on up to `threads` threads, or on the calling one if there is no memory to divide the work. The payload
/// of a key is `width` items of any type.
pub(crate) fn unique_on<K: Key, T: Copy + Send>(
    threads: usize,
    keys: &mut [K],
    payload: &mut [T],
    width: usize,
    before: Option<K>,
) -> usize {
    let bytes = keys.len().checked_mul(width);
    assert_eq!(Some(payload.len()), bytes, "the payload of {} keys", keys.len());
    let Ok(counts) = unique_in_blocks(threads, keys, payload, width, before) else {
        return unique_in_block(keys, payload, width, before);
    };
    let mut end = 0;
    for (block, count) in counts.into_iter().enumerate() {
        let begin = block * BLOCK;
        keys.copy_within(begin..begin + count, end);
        payload.copy_within(begin * width..(begin + count) * width, end * width);
        end += count;
    }
    end
}

/// [`unique`] in each block. Returns the number of keys kept in each block.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no memory for a list of blocks. Nothing has changed then.
fn unique_in_blocks<K: Key, T: Copy + Send>(
    threads: usize,
    keys: &mut [K],
    mut payload: &mut [T],
    width: usize,
    before: Option<K>,
) -> Result<Vec<usize>, Error> {
    let begins = (0..keys.len()).step_by(BLOCK);
    let befores = memory::collected(begins.map(|begin| if begin == 0 { before } else { Some(keys[begin - 1]) }))?;
    let blocks = keys.chunks_mut(BLOCK).zip(befores).map(|(keys, before)| {
        let of_block = payload.split_off_mut(..keys.len() * width);
        (keys, of_block.unwrap_or_default(), before)
    });
    parallel::try_map_on(threads, blocks, |(keys, payload, before)| unique_in_block(keys, payload, width, before))
}

/// [`unique`] on one thread.
fn unique_in_block<K: Key, T: Copy>(keys: &mut [K], payload: &mut [T], width: usize, before: Option<K>) -> usize {
    let mut before = before.map(K::to_ordered);
    let mut end = 0;
    for i in 0..keys.len() {
        let key = Some(keys[i].to_ordered());
        if key != before {
            keys[end] = keys[i];
            if end < i {
                payload.copy_within(i * width..(i + 1) * width, end * width);
            }
            end += 1;
            before = key;
        }
    }
    end
}

/// Moves the indices of the first of equal keys to the front, and returns the number of indices kept.
///
/// `indices` sort `keys`, as [`Engine::argsort`](crate::Engine::argsort) writes them. Indices after the kept ones are
/// unspecified. Takes linear time, on one thread.
///
/// ```
/// let mut indices = [1u32, 3, 0, 4, 2];
/// assert_eq!(merge_host::unique_indices(&[5, 2, 9, 2, 5], &mut indices), 3);
/// assert_eq!(indices[..3], [1, 0, 2]);
/// ```
///
/// # Panics
/// Panics if an index is not less than the number of keys.
pub fn unique_indices<K: Key, I: Index>(keys: &[K], indices: &mut [I]) -> usize {
    let mut before = None;
    let mut end = 0;
    for i in 0..indices.len() {
        let key = Some(keys[indices[i].to_usize()].to_ordered());
        if key != before {
            indices[end] = indices[i];
            end += 1;
            before = key;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_keys_stays_with_its_payload() {
        // Groups of equal keys within a block, at its edges, and longer than a block.
        for repeats in [1, 2, 3, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let count = 3 * BLOCK + 10;
            let sorted: Vec<u32> = (0..count).map(|i| (i / repeats) as u32).collect();
            for (before, width) in [(None, 0), (None, 3), (Some(0), 0), (Some(0), 1)] {
                let mut keys = sorted.clone();
                let mut payload: Vec<u8> = (0..count * width).map(|i| (i * 7 % 251) as u8).collect();
                let old = payload.clone();
                let kept = unique(&mut keys, &mut payload, width, before);
                let expected = before.map_or(0, |_| 1)..count.div_ceil(repeats);
                assert!(keys[..kept].iter().map(|&key| key as usize).eq(expected.clone()), "{repeats} {width}");
                for (i, key) in expected.enumerate() {
                    let first = key * repeats;
                    assert_eq!(payload[i * width..][..width], old[first * width..][..width]);
                }
            }
        }
        assert_eq!(unique::<f32>(&mut [], &mut [], 8, Some(1.0)), 0);
    }

    #[test]
    fn zeros_of_both_signs_are_two_keys() {
        let mut keys = [-0.0f32, -0.0, 0.0, f32::NAN, f32::NAN];
        assert_eq!(unique(&mut keys, &mut [], 0, None), 3);
        assert_eq!(keys[..2].iter().map(|key| key.to_bits()).collect::<Vec<_>>(), [1 << 31, 0]);
    }

    #[test]
    fn indices_of_the_first_of_equal_keys_stay() {
        let mut indices = [1u64, 3, 0, 4, 2];
        assert_eq!(unique_indices(&[5u8, 2, 9, 2, 5], &mut indices), 3);
        assert_eq!(indices[..3], [1, 0, 2]);
        assert_eq!(unique_indices::<u8, u32>(&[], &mut []), 0);
    }
}
