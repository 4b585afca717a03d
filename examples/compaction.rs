//! A small log-structured store: it collects writes in memory, flushes them to sorted runs, and compacts the runs.
//!
//! ```text
//!   level 0   ├── run ──┤  ├─── run ───┤  ├── run ──┤     one for each flush, the newest last; their keys overlap
//!                    └──────────┬───────────┘             merge_many: into one run
//!                 ├───────┊────────────┊────────┤         split where tables begin
//!                     │         │           │             merge_ragged: each part with its table, in one call
//!   level 1   ├ table ┼── table ───┼─ table ────┤         adjacent; their keys do not overlap
//! ```
//!
//! Of entries with equal keys, the newest is valid. Merges are stable, so it comes first if newer runs precede older
//! runs, and the others are dropped. An entry may mark its key as deleted. The last level keeps no such entries.
//!
//! ```sh
//! cargo run --release --example compaction
//! ```

use merge_host::{Engine, Error, SortOrder};
use std::collections::BTreeMap;

/// Entries of a flush.
const FLUSH: usize = 5_000;
/// Runs of level 0 that start a compaction.
const RUNS: usize = 6;
/// Keys of a table of level 1.
const TABLE: usize = 1_000;

/// A write for a key.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    /// The number of the write. Newer writes have greater numbers.
    sequence: u64,
    /// `None` if the key was deleted.
    value: Option<u32>,
}

const NONE: Entry = Entry { sequence: 0, value: None };

/// Keys in ascending order, and the entry of each.
#[derive(Default)]
struct Run {
    keys: Vec<u64>,
    entries: Vec<Entry>,
}

impl Run {
    /// A run of `length` slots, for the output of a merge.
    fn with_length(length: usize) -> Self {
        Run { keys: vec![0; length], entries: vec![NONE; length] }
    }

    /// The first entry of each key, unless `keep` returns false for it.
    fn first_of_each(&self, keep: impl Fn(&Entry) -> bool) -> Self {
        let mut first = Run::default();
        let mut last = None;
        for (&key, &entry) in self.keys.iter().zip(&self.entries) {
            if last.replace(key) != Some(key) && keep(&entry) {
                first.keys.push(key);
                first.entries.push(entry);
            }
        }
        first
    }

    fn get(&self, key: u64) -> Option<Entry> {
        self.keys.binary_search(&key).ok().map(|i| self.entries[i])
    }
}

struct Store {
    engine: Engine,
    writes: u64,
    /// Writes that have not been flushed, the oldest first.
    memory: Run,
    level_0: Vec<Run>,
    /// All tables of level 1.
    level_1: Run,
    /// The index of the first key of each table, followed by the number of keys.
    tables: Vec<usize>,
}

impl Store {
    fn new() -> Self {
        let (memory, level_1) = (Run::default(), Run::default());
        Store { engine: Engine::auto(), writes: 0, memory, level_0: Vec::new(), level_1, tables: vec![0, 0] }
    }

    /// Writes a value for `key`, or deletes it.
    fn write(&mut self, key: u64, value: Option<u32>) -> Result<(), Error> {
        self.writes += 1;
        self.memory.keys.push(key);
        self.memory.entries.push(Entry { sequence: self.writes, value });
        if self.memory.keys.len() == FLUSH {
            self.flush()?;
        }
        if self.level_0.len() == RUNS {
            self.compact()?;
        }
        Ok(())
    }

    fn get(&self, key: u64) -> Option<u32> {
        let in_memory = self.memory.keys.iter().rposition(|&other| other == key).map(|i| self.memory.entries[i]);
        let in_level_0 = || self.level_0.iter().rev().find_map(|run| run.get(key));
        in_memory.or_else(in_level_0).or_else(|| self.level_1.get(key))?.value
    }

    /// Sorts the writes in memory into a run of level 0.
    fn flush(&mut self) -> Result<(), Error> {
        let mut run = std::mem::take(&mut self.memory);
        // The newest entry comes first. The sort is stable, so it also comes first among the entries of its key.
        run.keys.reverse();
        run.entries.reverse();
        self.engine.sort_with(SortOrder::Ascending, (&mut run.keys, &mut run.entries))?;
        self.level_0.push(run.first_of_each(|_| true));
        Ok(())
    }

    /// Merges all runs of level 0 into level 1.
    fn compact(&mut self) -> Result<(), Error> {
        let runs: Vec<(&[u64], &[Entry])> =
            self.level_0.iter().rev().map(|run| (&run.keys[..], &run.entries[..])).collect();
        let mut merged = Run::with_length(runs.iter().map(|run| run.0.len()).sum());
        let timing = self.engine.merge_many(&runs, (&mut merged.keys, &mut merged.entries))?;
        println!("merged {} runs on {} ({})", runs.len(), timing.engine, timing.reason);
        let new = merged.first_of_each(|_| true);

        // Keys before the first table belong to it, and keys between two tables to the earlier one.
        let tables = self.tables.len() - 1;
        let begins = self.tables[1..tables].iter().map(|&begin| self.level_1.keys[begin]);
        let mut parts = vec![0];
        parts.extend(begins.map(|key| new.keys.partition_point(|&other| other < key)));
        parts.push(new.keys.len());
        let old = &self.level_1;
        let mut merged = Run::with_length(new.keys.len() + old.keys.len());
        self.engine.merge_ragged(
            ((&new.keys, &new.entries), &parts),
            ((&old.keys, &old.entries), &self.tables),
            (&mut merged.keys, &mut merged.entries),
        )?;
        self.level_1 = merged.first_of_each(|entry| entry.value.is_some());
        let keys = self.level_1.keys.len();
        self.tables = (0..keys.max(1)).step_by(TABLE).chain([keys]).collect();
        self.level_0.clear();
        println!("compacted {tables} tables to {}, of {keys} keys", self.tables.len() - 1);
        Ok(())
    }
}

/// Writes many entries, and checks that the store returns them.
pub fn main() -> Result<(), Error> {
    let mut store = Store::new();
    let mut expected = BTreeMap::new();
    let mut random = 1u64;
    for i in 0..105_000u32 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = random >> 33 & 0xffff;
        // One write in four deletes its key.
        let value = (random >> 60 >= 4).then_some(i);
        store.write(key, value)?;
        expected.insert(key, value);
    }
    for key in 0..=0xffff {
        assert_eq!(store.get(key), expected.get(&key).copied().flatten(), "key {key}");
    }
    // Level 1 is ascending, has no duplicates, and is older than level 0.
    assert!(store.level_1.keys.windows(2).all(|pair| pair[0] < pair[1]));
    let newest = |run: &Run| run.entries.iter().map(|entry| entry.sequence).max();
    assert!(store.level_0.iter().all(|run| newest(run) > newest(&store.level_1)));
    println!("{} keys have the values that were written last", expected.len());
    Ok(())
}
