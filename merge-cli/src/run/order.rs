//! Checks of the order of keys, on all threads. Keys are encoded, so that every order is ascending.

use crate::coding::{KeyOrder, Word};
use crate::file::Input;
use crate::os::memory;
use crate::say::error::{Failure, Result};
use merge_host::{NanOrder, SortOrder, parallel};

/// Keys that a thread checks at once. The library's block has the same size.
const BLOCK: usize = 1 << 16;

/// The index of the first key that is less than its predecessor, or, if `strict`, not greater.
pub fn first_disorder<W: Word>(keys: &[W], strict: bool) -> Option<usize> {
    if !strict {
        return merge_host::first_unsorted(keys);
    }
    parallel::find_first((0..keys.len()).step_by(BLOCK), |begin| {
        // One key more, to compare the last of this block with the first of the next.
        let block = &keys[begin..keys.len().min(begin + BLOCK + 1)];
        Some(begin + block.windows(2).position(|pair| pair[0] >= pair[1])? + 1)
    })
}

/// As [`first_disorder`], but only within runs. A run begins at each of `offsets`, which ascend.
pub fn first_disorder_between<W: Word>(keys: &[W], offsets: &[usize]) -> Option<usize> {
    parallel::find_first((0..keys.len()).step_by(BLOCK), |mut begin| {
        // One key more, to compare the last of this block with the first of the next.
        let end = keys.len().min(begin + BLOCK + 1);
        loop {
            let index = begin + merge_host::first_unsorted(&keys[begin..end])?;
            if offsets.binary_search(&index).is_err() {
                return Some(index);
            }
            begin = index;
        }
    })
}

/// As [`first_disorder`], but only within runs of `length` keys each.
pub fn first_disorder_in_runs<W: Word>(keys: &[W], length: usize) -> Option<usize> {
    if length == 0 {
        return None;
    }
    let runs = BLOCK.div_ceil(length);
    parallel::find_first(keys.chunks(runs * length).enumerate(), |(block, keys)| {
        let mut runs_of_block = keys.chunks(length).enumerate();
        runs_of_block.find_map(|(run, keys)| Some((block * runs + run) * length + merge_host::first_unsorted(keys)?))
    })
}

/// A sequence of items that is read part by part. The last item of a part is kept before the next part.
#[derive(Debug)]
pub struct Scan<W> {
    /// One item, which is the last item of the part before, and a part.
    words: Vec<W>,
    /// Words of an item.
    size: usize,
    /// The number of items that have been read.
    done: u64,
}

impl<W: Word> Scan<W> {
    /// Memory for parts of up to `capacity` items of `size` words each. Messages name it `purpose`.
    ///
    /// # Errors
    /// If there is too little memory.
    pub fn new(capacity: u64, size: usize, purpose: &str) -> Result<Self> {
        Ok(Self { words: memory::zeroed((capacity + 1) * size as u64, purpose)?, size, done: 0 })
    }

    /// The memory for the next part.
    pub fn part(&mut self) -> &mut [W] {
        &mut self.words[self.size..]
    }

    /// The first item out of order in the first `read` words of the [part](Self::part): its index, its predecessor,
    /// and the item. `first` finds it among items.
    pub fn first_disorder(
        &mut self,
        read: usize,
        first: impl FnOnce(&[W]) -> Option<usize>,
    ) -> Option<(u64, [&[W]; 2])> {
        let (size, kept) = (self.size, usize::from(self.done > 0));
        let items = (1 - kept) * size..size + read;
        if let Some(i) = first(&self.words[items.clone()]) {
            let [before, after] = [i - 1, i].map(|i| &self.words[items.clone()][i * size..][..size]);
            return Some((self.done - kept as u64 + i as u64, [before, after]));
        }
        self.words.copy_within(read..read + size, 0);
        self.done += (read / size) as u64;
        None
    }
}

/// The error of an input to merge that is not sorted. The key at `index`, the second of `pair`, is less than its
/// predecessor. `location` is added to the index, and `sort` is the command that sorts such files.
pub fn not_sorted<W: Word>(input: &Input, pair: [W; 2], index: u64, location: &str, sort: &str) -> Failure {
    let (keys, byte) = (describe(input, pair), input.offset_of::<W>(index));
    let KeyOrder { direction, nans } = input.coding().order;
    let reverse = if direction == SortOrder::Descending { " --reverse" } else { "" };
    let nans = if nans == NanOrder::Last { String::new() } else { format!(" --nan {nans}") };
    Failure::file(
        input.path(),
        format!(
            "not sorted at index {index}{location}: {keys} (byte {byte}); sort it first, with gmerge \
             sort{reverse}{nans}{sort}"
        ),
    )
}

/// A description of two neighbouring keys of an input, the second out of order.
pub fn describe<W: Word>(input: &Input, [before, after]: [W; 2]) -> String {
    let coding = input.coding();
    format!("{} after {}", coding.show(after), coding.show(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_disorder_is_found_wherever_it_is() {
        let count = 3 * BLOCK + 5;
        let sorted: Vec<u32> = (0..count as u32).collect();
        assert_eq!((first_disorder(&sorted, false), first_disorder(&sorted, true)), (None, None));
        for index in [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, count - 1] {
            let mut keys = sorted.clone();
            keys[index] = keys[index - 1];
            assert_eq!((first_disorder(&keys, false), first_disorder(&keys, true)), (None, Some(index)));
            keys[index - 1] = u32::MAX;
            assert_eq!(first_disorder(&keys, false), Some(index));
            keys[count - 1] = 0;
            assert_eq!(first_disorder(&keys, false), Some(index));
        }
    }

    #[test]
    fn runs_of_any_lengths_count_by_themselves() {
        let keys = [5u32, 6, 1, 2, 0, 9, 4, 3];
        assert_eq!(first_disorder_between(&keys, &[0, 2, 2, 4, 6, 8]), Some(7));
        assert_eq!(first_disorder_between(&keys, &[0, 2, 4, 6, 7, 8]), None);
        assert_eq!(first_disorder_between(&keys, &[0, 0, 0, 2, 8]), Some(4));
        assert_eq!(first_disorder_between::<u32>(&[], &[0, 0]), None);
        // Runs begin at the ends of blocks, one key before and one key after.
        let mut keys = vec![7u32; 3 * BLOCK];
        for begin in [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK] {
            keys[begin] = 1;
            keys[begin + 1..begin + 3].fill(2);
            let offsets = [0, begin, 3 * BLOCK];
            assert_eq!(first_disorder_between(&keys, &offsets), None, "{begin}");
            assert_eq!(first_disorder_between(&keys, &[0, 3 * BLOCK]), Some(begin));
            keys[begin..begin + 3].fill(7);
        }
    }

    #[test]
    fn runs_of_one_length_count_by_themselves() {
        assert_eq!(first_disorder_in_runs(&[1u8, 2, 0, 1, 5, 4], 2), Some(5));
        assert_eq!(first_disorder_in_runs(&[1u8, 2, 0, 1, 5, 4], 1), None);
        assert_eq!(first_disorder_in_runs::<u8>(&[], 0), None);
        let keys: Vec<u32> = (0..2 * BLOCK as u32 + 6).map(|i| i % 3).collect();
        assert_eq!(first_disorder_in_runs(&keys, 3), None);
        assert_eq!(first_disorder_in_runs(&keys, 6), Some(3));
    }
}
