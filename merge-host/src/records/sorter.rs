//! Order of records: a sort of the first words of their keys with indices, and a sort by the next word of each group of
//! equal words.
//!
//! ```text
//!   words     2 2 2 2 │ 5 │ 7 7 │ 8 8 8      sorted
//!   indices    4 0 9 3 │ 1 │ 2 5 │ 6 7 8      groups of equal words: the next words decide
//! ```
//!
//! One thread sorts a small group, many groups at once. There are few large groups, and the engine sorts each like the
//! whole.

use super::key::{RecordKey, Word as KeyWord};
use crate::cpu::memory::{self, prefetch};
use crate::cpu::sort_by;
use crate::external::{Engines, Observer, Phase, RunError};
use crate::permutation::fill_identity;
use crate::{Engine, Error, Index, SortKernel, SortOptions, Timing, Word, allocation, parallel};
use std::ops::Range;

/// The number of words of a block.
const BLOCK: usize = 1 << 14;
/// The greatest number of indices of a group that is sorted by comparing records.
const TINY: usize = 16;
/// A group of up to `LARGE` indices is never large: the engine sorts only large groups.
const LARGE: usize = 1 << 16;
/// Parts of all indices for each thread. A group of more than one part is large, so that small groups keep all threads
/// busy to the end.
const PARTS_A_THREAD: usize = 8;
/// Prefetch distance, in records.
const AHEAD: usize = 16;

/// Sorts the indices of records that are all in memory.
///
/// [`sort`](super::sort) and [`argsort`](super::argsort) call it with one engine. A word is a number of up to 8 bytes
/// of a record's key. First words may be extracted while records are read from a file.
#[derive(Debug)]
pub struct Sorter<'a> {
    /// The records, one after the other.
    pub records: &'a [u8],
    /// Bytes of a record.
    pub size: usize,
    /// The key that orders the records.
    pub key: &'a RecordKey,
    /// How a GPU sorts.
    pub kernel: SortKernel,
}

/// Some indices and their words.
struct Part<'a, W, I> {
    words: &'a mut [W],
    indices: &'a mut [I],
}

impl Sorter<'_> {
    /// Writes the first words of the keys of all `records`, of `size` bytes each, to `words`. The words are `u32` if
    /// the key has at most 4 bytes, and otherwise `u64`.
    ///
    /// # Panics
    /// Panics if `size` is 0 or less than the [`end`](RecordKey::end) of the key.
    pub fn first_words<W: Word>(key: &RecordKey, size: usize, records: &[u8], words: &mut [W]) {
        let word = &key.words()[0];
        words
            .iter_mut()
            .zip(records.chunks_exact(size))
            .for_each(|(to, record)| *to = W::narrowed(word.of(record).into()));
    }

    /// Sorts `indices` and `words` by the keys of the records. Stable. `indices` are the indices of all records in the
    /// order of the file, and `words` the first words of their keys.
    ///
    /// # Errors
    /// The errors of the engines, and [`Error::OutOfHostMemory`] if there is not enough memory.
    ///
    /// # Panics
    /// Panics if `words` and `indices` have different lengths, if an index is not less than the number of records, or
    /// if [`RecordKey::compare`] panics.
    pub fn sort<W: Word, I: Index, E>(
        &self,
        engine: &mut impl Engines<E>,
        words: &mut [W],
        indices: &mut [I],
        observer: &mut impl Observer,
    ) -> Result<(), RunError<E>> {
        assert_eq!(words.len(), indices.len(), "words, one for each index");
        let whole = indices.len();
        let large = LARGE.max(whole / (PARTS_A_THREAD * parallel::threads_for(whole, BLOCK)));
        // Large groups of equal words, each with the number of the word that decides next.
        let mut groups = vec![(0, 0..whole)];
        while let Some((word, range)) = groups.pop() {
            let mut part = Part { words: &mut words[range.clone()], indices: &mut indices[range.clone()] };
            if word > 0 {
                observer.time(Phase::Compute, || self.make_words(word, &mut part));
            }
            observer.add(self.sort_part(engine, word, &mut part)?);
            let found = observer.time(Phase::Compute, || self.sort_small_groups(word + 1, large, part))?;
            for group in found {
                memory::push(&mut groups, (word + 1, range.start + group.start..range.start + group.end))?;
            }
        }
        Ok(())
    }

    /// Sorts a part by word number `word` on the engine.
    fn sort_part<W: Word, I: Index, E>(
        &self,
        engine: &mut impl Engines<E>,
        word: usize,
        part: &mut Part<W, I>,
    ) -> Result<Timing, RunError<E>> {
        let Some(&first) = part.words.first() else { return Ok(Timing::default()) };
        let differs = |words: &[W]| words.iter().any(|word| *word != first).then_some(());
        if parallel::find_first_on(parallel::threads_for(part.words.len(), BLOCK), part.words.chunks(BLOCK), differs)
            .is_none()
        {
            return Ok(Timing::default());
        }
        // A GPU that fails may leave any contents. Before the first sort the indices are 0, 1, 2 and so on, and need no
        // copy.
        let before = memory::collected(part.indices[..if word == 0 { 0 } else { part.indices.len() }].iter().copied())?;
        let sort = |engine: &Engine, part: &mut Part<W, I>| {
            let options = SortOptions::default().kernel(self.kernel);
            Ok(engine.sort_with(options, (&mut *part.words, &mut *part.indices))?)
        };
        let restore = |part: &mut Part<W, I>| {
            if word == 0 {
                fill_identity(part.indices)
            } else {
                part.indices.copy_from_slice(&before)
            }
            self.make_words(word, part);
            Ok(true)
        };
        engine.run(part, sort, restore)
    }

    /// Extracts word number `word` for the indices of a part.
    fn make_words<W: Word, I: Index>(&self, word: usize, part: &mut Part<W, I>) {
        let word = &self.key.words()[word];
        let threads = parallel::threads_for(part.words.len(), BLOCK);
        let blocks = part.words.chunks_mut(BLOCK).zip(part.indices.chunks(BLOCK));
        parallel::for_each_on(threads, blocks, |(words, indices)| {
            words.iter_mut().zip(self.words_of(word, indices)).for_each(|(to, word)| *to = W::narrowed(word.into()));
        });
    }

    /// Sorts the groups of equal words in a part by the words from number `word` on. Groups longer than `large` are
    /// left, and their ranges are returned.
    fn sort_small_groups<W: Word, I: Index>(
        &self,
        word: usize,
        large: usize,
        part: Part<W, I>,
    ) -> Result<Vec<Range<usize>>, Error> {
        if word == self.key.words().len() {
            return Ok(Vec::new());
        }
        let threads = parallel::threads_for(part.words.len(), BLOCK);
        let groups = parallel::try_map_on(threads, whole_groups(part)?, |(mut begin, block)| {
            let mut left = Vec::new();
            let mut scratch = Vec::new();
            let mut indices = block.indices;
            for group in block.words.chunk_by(PartialEq::eq) {
                let (of_group, rest) = indices.split_at_mut(group.len());
                if group.len() > large {
                    memory::push(&mut left, begin..begin + group.len())?;
                } else if group.len() > 1 {
                    self.sort_group(word, of_group, &mut scratch)?;
                }
                begin += group.len();
                indices = rest;
            }
            Ok::<_, Error>(left)
        })?;
        let mut all = Vec::new();
        for group in groups {
            group?.into_iter().try_for_each(|group| memory::push(&mut all, group))?;
        }
        Ok(all)
    }

    /// Sorts indices with equal words before number `word`, on this thread.
    fn sort_group<I: Index>(&self, word: usize, indices: &mut [I], scratch: &mut Vec<(u64, I)>) -> Result<(), Error> {
        // A list of groups instead of recursion: there may be many words, and a thread's stack is small.
        let mut groups = vec![(word, 0..indices.len())];
        while let Some((mut word, range)) = groups.pop() {
            let indices = &mut indices[range.clone()];
            if indices.len() <= TINY {
                indices.sort_by(|a, b| self.key.compare_from(word, self.record(*a), self.record(*b)));
                continue;
            }
            while word < self.key.words().len() {
                scratch.clear();
                allocation::handled(|| scratch.try_reserve(indices.len()))
                    .map_err(|_| memory::out_of_memory::<(u64, I)>(indices.len()))?;
                scratch.extend(self.words_of(&self.key.words()[word], indices).zip(indices.iter().copied()));
                word += 1;
                if scratch.iter().any(|pair| pair.0 != scratch[0].0) {
                    break;
                }
            }
            sort_by::sort_by(scratch, &|a, b| a.0.cmp(&b.0), 1)?;
            let mut from = range.start;
            for group in scratch.chunk_by(|a, b| a.0 == b.0) {
                if group.len() > 1 && word < self.key.words().len() {
                    memory::push(&mut groups, (word, from..from + group.len()))?;
                }
                from += group.len();
            }
            indices.iter_mut().zip(&*scratch).for_each(|(index, pair)| *index = pair.1);
        }
        Ok(())
    }

    /// One word of the keys of the records at `indices`.
    fn words_of<I: Index>(&self, word: &KeyWord, indices: &[I]) -> impl Iterator<Item = u64> {
        indices.iter().enumerate().map(move |(i, index)| {
            if let Some(next) = indices.get(i + AHEAD) {
                prefetch(self.records, next.to_usize().wrapping_mul(self.size).wrapping_add(word.begin()));
            }
            word.of(self.record(*index))
        })
    }

    fn record<I: Index>(&self, index: I) -> &[u8] {
        let begin = index.to_usize().checked_mul(self.size).expect("an index is below the number of records");
        &self.records[begin..][..self.size]
    }
}

/// A part of a part, and its beginning.
type Block<'a, W, I> = (usize, Part<'a, W, I>);

/// Cuts a sorted part into blocks such that each group of equal words is in one block. Returns the blocks with their
/// beginnings.
fn whole_groups<W: Word, I: Index>(part: Part<'_, W, I>) -> Result<Vec<Block<'_, W, I>>, Error> {
    let (mut words, mut indices) = (part.words, part.indices);
    let (mut blocks, mut begin) = (Vec::new(), 0);
    while !words.is_empty() {
        // The block ends with the group of its last word.
        let last = words[BLOCK.min(words.len()) - 1];
        let count = words.partition_point(|word| *word <= last);
        let (of_block, rest) = words.split_at_mut(count);
        let (indices_of_block, indices_left) = indices.split_at_mut(count);
        memory::push(&mut blocks, (begin, Part { words: of_block, indices: indices_of_block }))?;
        begin += count;
        (words, indices) = (rest, indices_left);
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::super::Field;
    use super::*;

    /// Sorts records with a key of the first `count` bytes. The other bytes make the records distinct.
    fn sorts<W: Word, I: Index>(count: usize, records: &[[u8; 24]]) {
        let (key, bytes) = (RecordKey::new(&[Field::bytes(0, count)]), records.as_flattened());
        let (mut words, mut indices) = (vec![W::narrowed(99); records.len()], vec![I::from_usize(0); records.len()]);
        Sorter::first_words(&key, 24, bytes, &mut words);
        fill_identity(&mut indices);
        let sorter = Sorter { records: bytes, size: 24, key: &key, kernel: SortKernel::Auto };
        let engine = Engine::cpu();
        sorter.sort::<W, I, ()>(&mut &engine, &mut words, &mut indices, &mut ()).unwrap();
        let mut expected: Vec<usize> = (0..records.len()).collect();
        expected.sort_by_key(|&index| &records[index][..count]);
        assert!(indices.iter().map(|index| index.to_usize()).eq(expected), "{count} bytes");
    }

    #[test]
    fn indices_and_words_of_either_size() {
        // Bytes of few values, so that groups of equal words have all sizes.
        let record = |i: u64| std::array::from_fn(|j| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (2 * j) & 1) as u8);
        let records: Vec<[u8; 24]> = (0..300_000).map(record).collect();
        sorts::<u32, u32>(4, &records);
        sorts::<u32, u64>(3, &records);
        for count in [1, 8, 9, 16, 17, 24] {
            sorts::<u64, u32>(count, &records);
            sorts::<u64, u64>(count, &records);
        }
        // With 24 bytes only the last word differs, and with 16 bytes no word differs.
        let records: Vec<[u8; 24]> = records
            .iter()
            .map(|record| [[7; 16].as_slice(), &record[..8]].concat())
            .map(|record| record.try_into().unwrap())
            .collect();
        sorts::<u64, u64>(24, &records);
        sorts::<u64, u64>(16, &records);
        sorts::<u64, u64>(24, &[]);
    }

    #[test]
    fn groups_are_never_cut() {
        for distinct in [1, 3, 1000, 10 * BLOCK] {
            let mut words: Vec<u64> = (0..3 * BLOCK + 7).map(|i| (i * distinct / (3 * BLOCK + 7)) as u64).collect();
            let mut indices = vec![0u32; words.len()];
            let blocks = whole_groups(Part { words: &mut words, indices: &mut indices }).unwrap();
            let mut end = 0;
            for (begin, block) in &blocks {
                assert_eq!((*begin, block.words.len()), (end, block.indices.len()));
                end += block.words.len();
            }
            assert_eq!(end, 3 * BLOCK + 7);
            assert!(blocks.windows(2).all(|pair| pair[0].1.words.last() < pair[1].1.words.first()), "{distinct}");
        }
    }
}
