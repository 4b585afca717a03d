//! Turning numbers round: the first byte of each becomes the last.

use rayon::prelude::*;

/// Bytes that a thread turns round at once.
const PIECE: usize = 1 << 20;

/// Turns round numbers of `size` bytes each, which is 1, 2, 4, 8 or 16.
pub fn swap(bytes: &mut [u8], size: usize) {
    macro_rules! swap {
        ($t:ty) => {
            for number in bytes.as_chunks_mut().0 {
                *number = <$t>::from_be_bytes(*number).to_le_bytes();
            }
        };
    }
    match size {
        2 => swap!(u16),
        4 => swap!(u32),
        8 => swap!(u64),
        16 => swap!(u128),
        _ => {}
    }
}

/// As [`swap`], with all threads.
pub fn swap_all(bytes: &mut [u8], size: usize) {
    if size > 1 {
        bytes.par_chunks_mut(PIECE).for_each(|piece| swap(piece, size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_turned_round() {
        for size in [1, 2, 4, 8, 16] {
            let bytes: Vec<u8> = (0..2 * PIECE + 48).map(|i| (i * 7 / 3) as u8).collect();
            let mut expected = bytes.clone();
            expected.chunks_mut(size).for_each(<[u8]>::reverse);
            let mut found = bytes.clone();
            swap_all(&mut found, size);
            assert!(found == expected, "{size}");
            // Numbers that do not lie as numbers have to.
            let mut found = bytes.clone();
            swap(&mut found[1..][..4 * size], size);
            assert!(found[1..][..4 * size].chunks(size).eq(bytes[1..].chunks(size).take(4).map(|number| {
                let mut number = number.to_vec();
                number.reverse();
                number
            })));
        }
    }
}
