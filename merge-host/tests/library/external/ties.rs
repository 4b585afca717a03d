//! Sorts of records with long keys, against the standard library's stable sort.

use super::slices::{FromSlice, Pairs};
use crate::common::{rng, seed};
use merge_host::Engine;
use merge_host::external::{Error, Options, Target, Ties, sort};
use merge_host::records::{Field, RecordKey};
use rand::Rng;

/// Bytes of a record, and of its key at the front.
const SIZE: usize = 48;
const KEY: usize = 44;

fn failure(error: Error<String>) -> String {
    error.to_string()
}

/// The records, sorted by an external sort in `memory` bytes, or its error. Writing fails once `most` bytes are there.
fn sorted(records: &[u8], memory: u64, most: usize) -> Result<Vec<u8>, String> {
    sorted_by((SIZE, KEY), records, memory, most)
}

/// [`sorted`], for records of `size` bytes, of which the first `key` are the key.
fn sorted_by((size, key): (usize, usize), records: &[u8], memory: u64, most: usize) -> Result<Vec<u8>, String> {
    let key = RecordKey::new(&[Field::bytes(0, key)]);
    // All records are kept, also those with equal keys.
    let options = Options { width: size, unique: true, ..Options::new(memory) };
    let parts = records.chunks(size).map(|record| key.part(0, record)).collect();
    let source = FromSlice::new(Pairs { keys: parts, payload: records.to_vec() }, size);
    let mut out = Written { key: &key, size, most, records: Vec::new(), word: None };
    let target = Ties::new(&key, &options, &mut out, failure);
    let of_sort = Ties::<u128, String>::sort_options(&key, &options);
    let engine = Engine::cpu_with_threads(2).unwrap();
    let (target, summary) = sort(&of_sort, source, || Ok(target), &mut &engine, &mut ()).map_err(failure)?;
    target.finish()?;
    assert_eq!(summary.keys_read as usize, records.len() / size);
    Ok(out.records)
}

/// Records in order, whose words are equal if and only if their keys are.
struct Written<'a> {
    key: &'a RecordKey,
    size: usize,
    /// Writing fails once this many bytes are there.
    most: usize,
    records: Vec<u8>,
    /// The last word.
    word: Option<u128>,
}

impl Target<u128> for Written<'_> {
    type Error = String;

    fn write(&mut self, words: &mut [u128], records: &mut [u8]) -> Result<(), String> {
        assert!(!words.is_empty() && records.len() == words.len() * self.size);
        for (word, record) in words.iter().zip(records.chunks(self.size)) {
            if let Some(before) = self.word.replace(*word) {
                let last = &self.records[self.records.len() - self.size..];
                assert_eq!(before == *word, self.key.compare(last, record).is_eq());
            }
            self.records.extend_from_slice(record);
        }
        if self.records.len() > self.most { Err("full".to_owned()) } else { Ok(()) }
    }
}

#[test]
fn groups_of_equal_first_bytes_of_any_size() {
    let seed = seed();
    let mut random = rng(seed);
    for count in [0, 1, 2, 1000, 30_000] {
        // How many of the 11 words of 4 bytes are equal in all records, and how many values the others have.
        for (alike, values) in [(0, 2), (0, 1 << 30), (3, 4), (4, 300), (8, 3), (10, 1 << 30), (11, 1)] {
            let mut records = Vec::new();
            for i in 0..count as u32 {
                let words = (0..11).map(|word| if word < alike { 7 } else { random.random_range(0..values) });
                records.extend(words.flat_map(u32::to_be_bytes).chain(i.to_le_bytes()));
            }
            let mut expected: Vec<&[u8]> = records.chunks(SIZE).collect();
            expected.sort_by_key(|record| &record[..KEY]);
            for memory in [256 << 10, 4 << 20, 64 << 20] {
                let what =
                    format!("{count} records, {alike} words alike, {values} values, {memory} bytes, seed {seed}");
                let found = sorted(&records, memory, usize::MAX).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(found == expected.concat(), "{what}");
            }
        }
    }
}

#[test]
fn errors_of_writing_and_of_too_little_memory_are_passed_on() {
    let records = vec![5; 20_000 * SIZE];
    for most in [0, 100 * SIZE, 19_999 * SIZE] {
        assert_eq!(sorted(&records, 1 << 20, most), Err("full".to_owned()));
    }
    let error = sorted(&records, 1000, usize::MAX).unwrap_err();
    assert!(error.contains("are too few"), "{error}");
}

/// In each part of the keys, one of the records differs from the others: groups in groups, none of which fits.
#[test]
fn groups_in_groups_as_often_as_keys_have_parts() {
    const PARTS: usize = 60;
    let size = 16 * PARTS + 4;
    for descends in [false, true] {
        let mut records = vec![0; 300 * size];
        for (i, record) in records.chunks_mut(size).enumerate() {
            // The first records of the sort leave the group early, or the last ones.
            let byte = if descends { 0 } else { 0xff };
            record[..16 * PARTS].fill(if descends { 0xff } else { 0 });
            if i < PARTS {
                record[16 * i] = byte;
            }
            record[16 * PARTS..].copy_from_slice(&(i as u32).to_le_bytes());
        }
        let mut expected: Vec<&[u8]> = records.chunks(size).collect();
        expected.sort_by_key(|record| &record[..16 * PARTS]);
        let found = sorted_by((size, 16 * PARTS), &records, 400 << 10, usize::MAX).unwrap();
        assert!(found == expected.concat(), "descends: {descends}");
    }
}
