//! Rows with their keys.

use super::bytes_of;
use arrow_array::{Array, BinaryArray, RecordBatch};

/// Rows of a table, without dictionaries, and the key of each.
#[derive(Clone, Debug)]
pub struct Rows {
    pub batch: RecordBatch,
    pub keys: BinaryArray,
    /// Bytes of the batch.
    bytes: u64,
}

impl Rows {
    /// Rows whose values were made for them alone.
    pub fn new(batch: RecordBatch, keys: BinaryArray) -> Self {
        let bytes = bytes_of(&batch);
        Self::with_bytes(batch, keys, bytes)
    }

    /// Rows of `bytes` bytes.
    pub fn with_bytes(batch: RecordBatch, keys: BinaryArray, bytes: u64) -> Self {
        Self { batch, keys, bytes }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of the rows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the rows and of their keys.
    pub fn memory(&self) -> u64 {
        let offsets = self.keys.value_offsets();
        let keys = offsets.last().zip(offsets.first()).map_or(0, |(end, begin)| end - begin);
        self.bytes + keys as u64 + size_of_val(offsets) as u64
    }

    /// The key of the last row, or of no row.
    pub fn last(&self) -> &[u8] {
        self.len().checked_sub(1).map_or(&[], |last| self.keys.value(last))
    }

    /// The number of rows before the first one that fails `is_before`, which no row after that one passes. Takes up
    /// to two calls where all rows pass, or none does.
    pub fn partition_point(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut begin, mut end) = (0, self.len());
        if end == 0 || !is_before(self.keys.value(0)) {
            return 0;
        }
        if is_before(self.last()) {
            return end;
        }
        while begin < end {
            let middle = begin.midpoint(end);
            if is_before(self.keys.value(middle)) { begin = middle + 1 } else { end = middle }
        }
        begin
    }

    /// `count` rows from `begin` on, which share their memory with these.
    pub fn slice(&self, begin: usize, count: usize) -> Self {
        let bytes = self.bytes / self.len().max(1) as u64 * count as u64;
        Self { batch: self.batch.slice(begin, count), keys: self.keys.slice(begin, count), bytes }
    }
}
