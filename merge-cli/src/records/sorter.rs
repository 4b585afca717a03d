//! The order of records: a sort of the first words of their keys with their places, and of the next words wherever words
//! are equal.
//!
//! ```text
//!   words     2 2 2 2 │ 5 │ 7 7 │ 8 8 8      sorted
//!   places    4 0 9 3 │ 1 │ 2 5 │ 6 7 8      groups of equal words: the next words decide
//! ```
//!
//! Small groups are sorted by one thread each, many at once. There are only a few large ones, and each is sorted by the
//! engine as the whole was.

use super::key::{Key, Word};
use super::prefetch;
use crate::commands::values::{Index, number};
use crate::engine::ChosenEngine;
use crate::error::Result;
use crate::stats::{Phase, Stats};
use merge_host::{Engine, SortOrder, Timing};
use rayon::prelude::*;
use std::ops::Range;

/// Words that a thread makes or looks at at once.
const PIECE: usize = 1 << 14;
/// The most places of a group that are compared record by record.
const TINY: usize = 16;
/// The least places of a group that the engine sorts.
const LARGE: usize = 1 << 16;
/// Parts of the whole for each thread, of which none is large, that keep all threads busy to the end.
const PARTS_A_THREAD: usize = 8;
/// Records that are being fetched from memory while a word of one is made.
const AHEAD: usize = 16;

/// The number that a word is for the engine: one of 4 bytes where that is enough.
pub trait WordNumber: crate::key_type::FileKey + Ord {
    fn new(word: u64) -> Self;
}

macro_rules! word_number {
    ($($t:ty)*) => {$(
        impl WordNumber for $t {
            #[inline(always)]
            fn new(word: u64) -> Self {
                word as $t
            }
        }
    )*};
}
word_number!(u32 u64);

/// Sorts records, all in memory.
#[derive(Debug)]
pub struct Sorter<'a> {
    pub records: &'a [u8],
    /// Bytes of a record.
    pub size: usize,
    pub key: &'a Key,
}

/// The words of some places.
struct Part<'a, W, I> {
    words: &'a mut [W],
    places: &'a mut [I],
}

impl Sorter<'_> {
    /// The first words of all `records`, of `size` bytes each, to `words`.
    pub fn first_words<W: WordNumber>(key: &Key, size: usize, records: &[u8], words: &mut [W]) {
        let word = &key.words()[0];
        words.iter_mut().zip(records.chunks_exact(size)).for_each(|(to, record)| *to = W::new(word.of(record)));
    }

    /// Sorts `places`, which are those of all records in the order of the file, and `words`, the first words of their keys,
    /// by their keys. Stable.
    pub fn sort<W: WordNumber, I: Index>(
        &self,
        engine: &mut ChosenEngine,
        words: &mut [W],
        places: &mut [I],
        stats: &mut Stats,
    ) -> Result<()> {
        let large = LARGE.max(places.len() / (PARTS_A_THREAD * rayon::current_num_threads()));
        let whole = places.len();
        // Large groups of equal words up to the one that is to decide.
        let mut groups = vec![(0, 0..whole)];
        while let Some((word, range)) = groups.pop() {
            let mut part = Part { words: &mut words[range.clone()], places: &mut places[range.clone()] };
            if word > 0 {
                stats.time(Phase::Compute, || self.make_words(word, &mut part));
            }
            stats.add(self.sort_part(engine, word, &mut part)?);
            let found = stats.time(Phase::Compute, || self.sort_small_groups(word + 1, large, part));
            groups
                .extend(found.into_iter().map(|group| (word + 1, range.start + group.start..range.start + group.end)));
        }
        Ok(())
    }

    /// Sorts a part by its words, the ones numbered `word`, on the engine.
    fn sort_part<W: WordNumber, I: Index>(
        &self,
        engine: &mut ChosenEngine,
        word: usize,
        part: &mut Part<W, I>,
    ) -> Result<Timing> {
        let Some(&first) = part.words.first() else { return Ok(Timing::default()) };
        if part.words.par_iter().all(|word| *word == first) {
            return Ok(Timing::default());
        }
        // A GPU that fails may leave anything behind. In the beginning, places are just numbers.
        let before = if word == 0 { Vec::new() } else { part.places.to_vec() };
        let sort =
            |engine: &Engine, part: &mut Part<W, I>| engine.sort_pairs(SortOrder::Ascending, part.words, part.places);
        engine.run(part, sort, |part| {
            if word == 0 {
                number(part.places)
            } else {
                part.places.copy_from_slice(&before)
            }
            self.make_words(word, part);
            Ok(true)
        })
    }

    /// Makes the words numbered `word` of a part's places.
    fn make_words<W: WordNumber, I: Index>(&self, word: usize, part: &mut Part<W, I>) {
        let word = &self.key.words()[word];
        let pieces = part.words.par_chunks_mut(PIECE).zip(part.places.par_chunks(PIECE));
        pieces.for_each(|(words, places)| {
            words.iter_mut().zip(self.words_of(word, places)).for_each(|(to, word)| *to = W::new(word));
        });
    }

    /// Sorts the groups of equal words in a part, by their words from the one numbered `word` on, but for those that are
    /// longer than `large`. Where these are is returned.
    fn sort_small_groups<W: WordNumber, I: Index>(
        &self,
        word: usize,
        large: usize,
        part: Part<W, I>,
    ) -> Vec<Range<usize>> {
        if word == self.key.words().len() {
            return Vec::new();
        }
        let groups = whole_groups(part).into_par_iter().flat_map_iter(|(mut begin, piece)| {
            let mut left = Vec::new();
            let mut room = Vec::new();
            let mut places = piece.places;
            for group in piece.words.chunk_by(PartialEq::eq) {
                let (of_group, rest) = places.split_at_mut(group.len());
                if group.len() > large {
                    left.push(begin..begin + group.len());
                } else if group.len() > 1 {
                    self.sort_group(word, of_group, &mut room);
                }
                begin += group.len();
                places = rest;
            }
            left
        });
        groups.collect()
    }

    /// Sorts places whose words before the one numbered `word` are equal, on this thread.
    fn sort_group<I: Index>(&self, word: usize, places: &mut [I], room: &mut Vec<(u64, I)>) {
        // A list of what is left to do: there may be many words, and a thread's stack is small.
        let mut groups = vec![(word, 0..places.len())];
        while let Some((mut word, range)) = groups.pop() {
            let places = &mut places[range.clone()];
            if places.len() <= TINY {
                places.sort_by(|a, b| self.key.compare_from(word, self.record(*a), self.record(*b)));
                continue;
            }
            while word < self.key.words().len() {
                room.clear();
                room.extend(self.words_of(&self.key.words()[word], places).zip(places.iter().copied()));
                word += 1;
                if room.iter().any(|pair| pair.0 != room[0].0) {
                    break;
                }
            }
            room.sort_by_key(|pair| pair.0);
            let mut from = range.start;
            for group in room.chunk_by(|a, b| a.0 == b.0) {
                if group.len() > 1 && word < self.key.words().len() {
                    groups.push((word, from..from + group.len()));
                }
                from += group.len();
            }
            places.iter_mut().zip(&*room).for_each(|(place, pair)| *place = pair.1);
        }
    }

    /// A word of the keys at some places.
    fn words_of<I: Index>(&self, word: &Word, places: &[I]) -> impl Iterator<Item = u64> {
        places.iter().enumerate().map(move |(i, place)| {
            if let Some(next) = places.get(i + AHEAD) {
                prefetch(self.records, next.get() * self.size + word.begin());
            }
            word.of(self.record(*place))
        })
    }

    fn record<I: Index>(&self, place: I) -> &[u8] {
        &self.records[place.get() * self.size..][..self.size]
    }
}

/// A sorted part, cut into pieces that no group of equal words goes across, and where each begins.
fn whole_groups<W: WordNumber, I: Index>(part: Part<W, I>) -> Vec<(usize, Part<W, I>)> {
    let (mut words, mut places) = (part.words, part.places);
    let (mut pieces, mut begin) = (Vec::new(), 0);
    while !words.is_empty() {
        // To the end of the group that the last word of a piece belongs to.
        let last = words[PIECE.min(words.len()) - 1];
        let count = words.partition_point(|word| *word <= last);
        let (of_piece, rest) = words.split_at_mut(count);
        let (places_of_piece, places_left) = places.split_at_mut(count);
        pieces.push((begin, Part { words: of_piece, places: places_of_piece }));
        begin += count;
        (words, places) = (rest, places_left);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::EngineChoice;
    use crate::records::Layout;

    /// Sorts records whose key is `count` bytes in the beginning, and whose other bytes tell them apart.
    fn sorts<W: WordNumber, I: Index>(count: usize, records: &[[u8; 24]]) {
        let layout = Layout { size: 24, fields: vec![format!("0:bytes{count}").parse().unwrap()] };
        let (key, bytes) = (Key::new(&layout, false), records.as_flattened());
        let (mut words, mut places) = (vec![W::new(99); records.len()], vec![I::new(0); records.len()]);
        Sorter::first_words(&key, 24, bytes, &mut words);
        number(&mut places);
        let mut engine = ChosenEngine::start::<W>(EngineChoice::Cpu, Some(2)).unwrap();
        let sorter = Sorter { records: bytes, size: 24, key: &key };
        sorter.sort(&mut engine, &mut words, &mut places, &mut Stats::begin_sized("sort", "record", 24)).unwrap();
        let mut expected: Vec<usize> = (0..records.len()).collect();
        expected.sort_by_key(|&place| &records[place][..count]);
        assert!(places.iter().map(|place| place.get()).eq(expected), "{count} bytes");
    }

    #[test]
    fn places_and_words_of_either_size() {
        // Bytes of few values, so that groups of equal words are of all sizes.
        let record = |i: u64| std::array::from_fn(|j| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (2 * j) & 1) as u8);
        let records: Vec<[u8; 24]> = (0..300_000).map(record).collect();
        sorts::<u32, u32>(4, &records);
        sorts::<u32, u64>(3, &records);
        for count in [1, 8, 9, 16, 17, 24] {
            sorts::<u64, u32>(count, &records);
            sorts::<u64, u64>(count, &records);
        }
        // All words but the last equal, and all equal.
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
        for distinct in [1, 3, 1000, 10 * PIECE] {
            let mut words: Vec<u64> = (0..3 * PIECE + 7).map(|i| (i * distinct / (3 * PIECE + 7)) as u64).collect();
            let mut places = vec![0u32; words.len()];
            let pieces = whole_groups(Part { words: &mut words, places: &mut places });
            let mut end = 0;
            for (begin, piece) in &pieces {
                assert_eq!((*begin, piece.words.len()), (end, piece.places.len()));
                end += piece.words.len();
            }
            assert_eq!(end, 3 * PIECE + 7);
            assert!(pieces.windows(2).all(|pair| pair[0].1.words.last() < pair[1].1.words.first()), "{distinct}");
        }
    }
}
