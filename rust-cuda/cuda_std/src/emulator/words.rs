//! The values of words that the blocks of a launch use to communicate.
//!
//! A load of such a word may return an older value than the last one. Another block's store may be on its way, or the
//! load may be executed before an earlier load of the thread. A word therefore keeps its last values. A load returns
//! any of them, except values before
//!
//! - the last value that is ordered before the load (by a fence and a flag, or as a store of the same block), and
//! - the value that the block has loaded last.
//!
//! Atomic updates always use the last value.

use super::{
    clock::{SharedClock, joined},
    random::Random,
    shadow::At,
};
use std::{
    collections::{HashMap, VecDeque},
    vec::Vec,
};

/// Maximum number of values that a word keeps.
const KEPT: usize = 8;

/// A value of a word.
struct Value {
    bits: u64,
    /// The phase, thread and stamp of the store. `None` for the value before the first one.
    author: Option<(u32, u16, u32)>,
    /// What the store publishes.
    clock: SharedClock,
}

struct Word {
    size: usize,
    values: VecDeque<Value>,
    /// The number of values before the first of `values`.
    dropped: usize,
    /// The number of the value that a block has loaded last, for each block that has.
    loaded: Vec<(Option<u32>, usize)>,
}

impl Word {
    /// The number of the oldest value that a load may return.
    fn oldest(&self, at: &At<'_>) -> usize {
        let is_before = |value: &Value| {
            value
                .author
                .is_none_or(|(phase, thread, stamp)| at.is_own_block(phase) || at.is_ordered(phase, thread, stamp))
        };
        let ordered = self.values.iter().rposition(is_before).unwrap_or(0) + self.dropped;
        let loaded = self.loaded.iter().find(|(of, _)| *of == at.own_block()).map_or(0, |(_, at)| *at);
        ordered.max(loaded)
    }

    fn last(&self) -> usize {
        self.dropped + self.values.len() - 1
    }

    fn note_loaded(&mut self, block: Option<u32>, number: usize) {
        match self.loaded.iter_mut().find(|(of, _)| *of == block) {
            Some((_, loaded)) => *loaded = number,
            None => self.loaded.push((block, number)),
        }
    }
}

/// The words that a launch has stored or updated atomically, by address.
#[derive(Default)]
pub(super) struct Words(HashMap<usize, Word>);

impl Words {
    /// A load of the word at `address`, which has the value `last`. Takes an older one at times if `random` is given.
    /// Returns the value and what its store has published.
    pub(super) fn load(
        &mut self,
        (address, size): (usize, usize),
        last: u64,
        at: &At<'_>,
        random: Option<&mut Random>,
    ) -> (u64, SharedClock) {
        let Some(word) = self.0.get_mut(&address).filter(|word| word.size == size) else { return (last, None) };
        let mut number = word.last();
        if let Some(random) = random
            && random.below(4) == 0
        {
            let oldest = word.oldest(at);
            number = oldest + random.below(number - oldest + 1);
        }
        word.note_loaded(at.own_block(), number);
        let value = &word.values[number - word.dropped];
        (value.bits, value.clock.clone())
    }

    /// A store of `bits` by the thread `at`, which publishes `clock`. An update loads the last value, and continues
    /// what its store has published. Returns that.
    pub(super) fn store(
        &mut self,
        (address, size): (usize, usize),
        [before, bits]: [u64; 2],
        at: &At<'_>,
        clock: &SharedClock,
        is_update: bool,
    ) -> SharedClock {
        let first = || Value { bits: before, author: None, clock: None };
        let new = || Word { size, values: [first()].into(), dropped: 0, loaded: Vec::new() };
        let word = self.0.entry(address).or_insert_with(new);
        if word.size != size {
            *word = new();
        }
        let published = word.values.back().and_then(|value| value.clock.clone());
        let published = published.filter(|_| is_update);
        let clock = joined(&published, clock);
        word.values.push_back(Value { bits, author: Some((at.now.phase, at.now.thread, at.now.stamp)), clock });
        if word.values.len() > KEPT {
            word.values.pop_front();
            word.dropped += 1;
        }
        published
    }

    /// A plain write of the word at `address`: its older values are gone.
    pub(super) fn forget(&mut self, address: usize) {
        if !self.0.is_empty() {
            self.0.remove(&address);
        }
    }
}
