//! `--check`: reads a table back.

use super::check::first_disorder;
use crate::file::Writer;
use crate::format::Format;
use crate::run::checksum::Checksum;
use crate::say::error::{Failure, Result};
use crate::table::{Chunk, Limits, Reader, Rows, TableKey};
use arrow_array::Array;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the output must have: the number of its rows, and the checksum of their keys.
pub struct Sum {
    rows: AtomicU64,
    /// None if the output is not read back.
    keys: Option<Checksum>,
    limits: Limits,
}

impl Sum {
    /// The sum of no rows.
    pub fn new(is_needed: bool, limits: Limits) -> Self {
        Self { rows: AtomicU64::new(0), keys: is_needed.then(Checksum::default), limits }
    }

    /// Whether some rows may not be written.
    fn is_limited(&self) -> bool {
        self.limits.unique || self.limits.most < u64::MAX
    }

    fn add<'a>(&self, count: usize, keys: impl Iterator<Item = &'a [u8]>) {
        if let Some(sum) = &self.keys {
            self.rows.fetch_add(count as u64, Ordering::Relaxed);
            sum.add_strings(keys);
        }
    }

    /// Adds rows that were read, if all of them are written.
    pub fn add_read(&self, rows: &Rows) {
        if !self.is_limited() {
            self.add(rows.len(), (0..rows.len()).map(|row| rows.keys.value(row)));
        }
    }

    /// Adds rows that are written, if they are not all that were read.
    pub fn add_written(&self, chunk: &Chunk, order: &[u32]) {
        if self.is_limited() {
            self.add(order.len(), order.iter().map(|&row| chunk.key(row)));
        }
    }
}

/// An error unless the output is in order and has the keys of `sum`. Some `memory` bytes are read at once.
pub fn verify(writer: &Writer, format: Format, key: &TableKey, sum: &Sum, memory: u64) -> Result<()> {
    let mut reader = Reader::open(writer.read_back()?, format)?;
    let (mut last, found) = (None, Sum::new(true, Limits { unique: false, most: u64::MAX }));
    let path = reader.path().to_owned();
    let wrong = |message: String| Err(Failure::file(&path, format!("--check: {message}")));
    loop {
        let batches = reader.next(memory)?;
        if batches.is_empty() {
            break;
        }
        let keys = key.of_batches(&batches, &path)?;
        let before = found.rows.load(Ordering::Relaxed);
        let is_wrong = |before: &[u8], after: &[u8]| before > after || sum.limits.unique && before == after;
        if let Some(row) = first_disorder(&keys, &mut last, is_wrong) {
            return wrong(format!("the output is wrong at index {}", before + row as u64));
        }
        keys.iter().for_each(|keys| found.add(keys.len(), (0..keys.len()).map(|row| keys.value(row))));
    }
    let [rows, expected] = [&found, sum].map(|sum| sum.rows.load(Ordering::Relaxed));
    if rows != expected {
        return wrong(format!("{rows} rows were written, expected {expected}"));
    }
    let [keys, expected] = [&found, sum].map(|sum| sum.keys.as_ref().map_or(0, Checksum::get));
    if keys != expected {
        return wrong(format!(
            "the checksum of the output's keys is {keys:016x}, expected {expected:016x} of the input"
        ));
    }
    Ok(())
}
