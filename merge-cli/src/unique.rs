//! Of equal keys, only the first.
//!
//! ```text
//!   pieces   │ 1 1 2 2 │ 2 3 3 3 │ 4 5 5 6 │
//!            │ 1 2     │ 3       │ 4 5 6   │    each by a thread
//!   keys     │ 1 2 3 4 5 6                      then moved together
//! ```

use crate::key_type::FileKey;
use rayon::prelude::*;

/// Keys that a thread looks at once.
const PIECE: usize = 1 << 16;

/// Moves the first of each run of equal keys, with its value of `width` bytes, to the front and gives their number. A key
/// that equals `before` is none of them. `keys` are sorted.
pub fn unique<K: FileKey>(keys: &mut [K], values: &mut [u8], width: usize, before: Option<K>) -> usize {
    let befores: Vec<Option<K>> =
        (0..keys.len()).step_by(PIECE).map(|begin| if begin == 0 { before } else { Some(keys[begin - 1]) }).collect();
    let parts: Vec<&mut [u8]> = match width {
        0 => befores.iter().map(|_| <&mut [u8]>::default()).collect(),
        _ => values.chunks_mut(PIECE * width).collect(),
    };
    let pieces = keys.par_chunks_mut(PIECE).zip(parts).zip(befores);
    let counts: Vec<usize> =
        pieces.map(|((keys, values), before)| unique_of_piece(keys, values, width, before)).collect();
    let mut end = 0;
    for (piece, count) in counts.into_iter().enumerate() {
        let begin = piece * PIECE;
        keys.copy_within(begin..begin + count, end);
        values.copy_within(begin * width..(begin + count) * width, end * width);
        end += count;
    }
    end
}

/// [`unique`] on one thread.
fn unique_of_piece<K: FileKey>(keys: &mut [K], values: &mut [u8], width: usize, before: Option<K>) -> usize {
    let mut before = before.map(K::to_ordered);
    let mut end = 0;
    for i in 0..keys.len() {
        let key = Some(keys[i].to_ordered());
        if key != before {
            keys[end] = keys[i];
            if end < i {
                values.copy_within(i * width..(i + 1) * width, end * width);
            }
            end += 1;
            before = key;
        }
    }
    end
}

/// Of places of keys in sorted order, those of the first of equal keys, moved to the front. Gives their number.
pub fn unique_places<K: FileKey>(keys: &[K], places: &mut [u64]) -> usize {
    let key = |place: u64| keys[place as usize].to_ordered();
    let mut before = None;
    let mut end = 0;
    for i in 0..places.len() {
        let place = places[i];
        if before != Some(key(place)) {
            before = Some(key(place));
            places[end] = place;
            end += 1;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_keys_stays_with_its_value() {
        // Runs of equal keys within a piece, at its edges, and longer than one.
        for repeats in [1, 2, 3, 7, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            let count = 3 * PIECE + 10;
            let sorted: Vec<u32> = (0..count).map(|i| (i / repeats) as u32).collect();
            for before in [None, Some(0)] {
                for width in [0, 1, 3] {
                    let mut keys = sorted.clone();
                    let mut values: Vec<u8> = (0..count * width).map(|i| (i * 7 % 251) as u8).collect();
                    let old = values.clone();
                    let kept = unique(&mut keys, &mut values, width, before);
                    let from = before.map_or(0, |_| 1);
                    let expected = from..count.div_ceil(repeats);
                    assert!(keys[..kept].iter().map(|&key| key as usize).eq(expected.clone()), "{repeats} {width}");
                    for (i, key) in expected.enumerate() {
                        let place = key * repeats;
                        assert_eq!(values[i * width..][..width], old[place * width..][..width]);
                    }
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
    fn places_of_the_first_of_equal_keys() {
        let mut places = [1, 3, 0, 4, 2];
        assert_eq!(unique_places(&[5u8, 2, 9, 2, 5], &mut places), 3);
        assert_eq!(places[..3], [1, 0, 2]);
    }
}
