//! A checksum of keys and payloads that does not depend on their order, as in valsort(1): the sum of the hashes of all
//! keys with their payloads.

use crate::coding::Word;
use merge_host::parallel;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys that a thread hashes at once.
const BLOCK: usize = 1 << 14;

/// The checksum of all added keys. Clones share one checksum.
#[derive(Clone, Debug, Default)]
pub struct Checksum(Arc<AtomicU64>);

impl Checksum {
    /// Adds keys with their payloads, of `width` bytes each.
    pub fn add<W: Word>(&self, keys: &[W], payload: &[u8], width: usize) {
        parallel::for_each(keys.chunks(BLOCK).enumerate(), |(block, keys)| {
            let sum = if width == 0 {
                sum(keys.iter().map(|key| hash(*key)))
            } else {
                let pairs = keys.iter().zip(payload[block * BLOCK * width..].chunks_exact(width));
                sum(pairs.map(|(key, payload)| mix(hash(*key) ^ u64::from(crc32fast::hash(payload)))))
            };
            // Addition wraps around, and its order does not matter.
            self.0.fetch_add(sum, Ordering::Relaxed);
        });
    }

    /// Adds keys that are strings of bytes.
    pub fn add_strings<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        self.0.fetch_add(sum(keys.map(|key| mix(u64::from(crc32fast::hash(key))))), Ordering::Relaxed);
    }

    /// The sum.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn sum(hashes: impl Iterator<Item = u64>) -> u64 {
    hashes.fold(0, u64::wrapping_add)
}

fn hash<W: Word>(key: W) -> u64 {
    let key = key.widen();
    let low = mix(key as u64);
    if W::SIZE > 8 { mix(low ^ (key >> 64) as u64) } else { low }
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014) on the next state: a bijective scrambling of 64 bits
/// that does not map 0 to 0.
fn mix(z: u64) -> u64 {
    let mut z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum<W: Word>(parts: &[(&[W], &[u8])], width: usize) -> u64 {
        let checksum = Checksum::default();
        parts.iter().for_each(|(keys, payload)| checksum.add(keys, payload, width));
        checksum.get()
    }

    #[test]
    fn order_and_parts_do_not_count_and_everything_else_does() {
        let keys = |keys: &[u32]| checksum(&[(keys, &[])], 0);
        assert_eq!(keys(&[1, 2, 3]), checksum::<u32>(&[(&[3], &[]), (&[2, 1], &[])], 0));
        // A lost key, a key twice in place of another key, and zeros.
        let others: [&[u32]; 5] = [&[1, 2], &[1, 2, 2], &[1, 3, 3], &[1, 2, 3, 0], &[]];
        assert!(others.iter().all(|other| keys(other) != keys(&[1, 2, 3])));
        let pairs = |payload: &[u8]| checksum::<u16>(&[(&[5, 6], payload)], 2);
        assert_ne!(pairs(b"aabb"), pairs(b"bbaa"));
        assert_eq!(pairs(b"aabb"), checksum::<u16>(&[(&[6, 5], b"bbaa")], 2));
        assert_ne!(checksum::<u128>(&[(&[1], &[])], 0), checksum::<u128>(&[(&[1 | 1 << 64], &[])], 0));
        let many: Vec<u64> = (0..3 * BLOCK as u64 + 7).collect();
        let reversed: Vec<u64> = many.iter().rev().copied().collect();
        let payload: Vec<u8> = many.iter().flat_map(|key| [*key as u8, 1, 2]).collect();
        let payload_reversed: Vec<u8> = reversed.iter().flat_map(|key| [*key as u8, 1, 2]).collect();
        assert_eq!(checksum(&[(&many, &payload)], 3), checksum(&[(&reversed, &payload_reversed)], 3));
        assert_ne!(checksum(&[(&many, &payload)], 3), checksum(&[(&many, &payload_reversed)], 3));
    }
}
