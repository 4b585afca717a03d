//! Gather of records in the order of a permutation.

use crate::Index;
use crate::cpu::memory::prefetch;

/// Prefetch distance, in records: enough to hide the latency of memory.
const AHEAD: usize = 16;
/// The number of bytes of a record to prefetch. The hardware prefetcher fetches the rest.
const FETCHED: usize = 256;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Fills `out` with the sorted records from byte `begin` on. `order` has the indices of the sorted records among
/// `records`, of `size` bytes each.
///
/// `out` is a part of the sorted records, which may begin and end within a record. Takes linear time on the calling
/// thread.
///
/// ```
/// let mut out = [0; 4];
/// merge_host::records::gather(b"aabbcc", 2, &[2u32, 0, 1], 1, &mut out);
/// assert_eq!(&out, b"caab");
/// ```
///
/// # Panics
/// Panics if `size` is 0, if an index is not less than the number of records, or if `begin` is behind the last record.
pub fn gather<I: Index>(records: &[u8], size: usize, order: &[I], begin: u64, out: &mut [u8]) {
    let (first, mut skipped) = ((begin / size as u64) as usize, (begin % size as u64) as usize);
    let order = &order[first..];
    order.iter().take(AHEAD).for_each(|index| fetch(records, size, *index));
    let mut rest = out;
    for (i, index) in order.iter().enumerate() {
        if let Some(next) = order.get(i + AHEAD) {
            fetch(records, size, *next);
        }
        let begin = index.to_usize().checked_mul(size).expect("an index is below the number of records");
        let record = &records[begin..][skipped..size];
        let count = record.len().min(rest.len());
        let (to, left) = rest.split_at_mut(count);
        to.copy_from_slice(&record[..count]);
        if left.is_empty() {
            return;
        }
        (rest, skipped) = (left, 0);
    }
}

#[inline(always)]
fn fetch<I: Index>(records: &[u8], size: usize, index: I) {
    // An index that is too great panics when its record is copied.
    let begin = index.to_usize().wrapping_mul(size);
    let fetched = size.min(FETCHED);
    for line in (0..fetched).step_by(LINE) {
        prefetch(records, begin.wrapping_add(line));
    }
    // The last byte may be in one more line.
    prefetch(records, begin.wrapping_add(fetched - 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_length_from_anywhere() {
        for size in [1, 3, 64, 100] {
            let count = 50;
            let records: Vec<u8> = (0..count * size).map(|i| (i * 31 / 7) as u8).collect();
            let order: Vec<u32> = (0..count as u32).map(|i| i * 37 % count as u32).collect();
            let whole = order.iter().flat_map(|&index| &records[index as usize * size..][..size]).copied();
            let whole: Vec<u8> = whole.collect();
            for begin in 0..whole.len() {
                for length in [0, 1, 2, size, size + 1, 3 * size + 1, whole.len()] {
                    let length = length.min(whole.len() - begin);
                    let mut out = vec![99; length];
                    gather(&records, size, &order, begin as u64, &mut out);
                    assert_eq!(out, whole[begin..][..length]);
                }
            }
        }
    }
}
