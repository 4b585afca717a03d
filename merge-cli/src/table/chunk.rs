//! Rows in memory: record batches, and the keys of their rows.

use super::gather::gather;
use super::write::{ROWS, gathered};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions};
use arrow_row::{Row, RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};
use merge_host::{Engine, Timing, parallel};
use std::collections::HashSet;

/// Bytes of memory that the sort of a row takes: its index, and scratch memory.
const SORT: u64 = 40;
/// The number of rows between two entries of the table of batches, as a power of 2.
const STEP: u32 = 10;

/// The most rows of a sample that shows whether values repeat.
const SAMPLE: usize = 1 << 14;
/// The number of consecutive rows in a sample: values of a sorted column repeat in neighbouring rows.
const SPAN: usize = 1 << 8;
/// A column has repeated values if 1 / `REPEATED` of a sample are. Of random values, that many are the same in a full
/// sample if 2^17 are distinct: about as many as a dictionary of a Parquet file holds.
const REPEATED: usize = 16;

/// Which of the sorted rows are kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Whether only the first of rows with equal keys is kept.
    pub unique: bool,
    /// The number of rows that are kept.
    pub most: u64,
}

/// Rows in memory.
#[derive(Debug)]
pub struct Chunk {
    batches: Vec<RecordBatch>,
    /// The index of the first row of each batch, and the number of all rows.
    starts: Vec<usize>,
    keys: Vec<u8>,
    /// Where the key of each row begins, and the end of the last.
    offsets: Vec<usize>,
    /// Bytes of all batches.
    bytes: u64,
}

impl Default for Chunk {
    fn default() -> Self {
        Self { batches: Vec::new(), starts: vec![0], keys: Vec::new(), offsets: vec![0], bytes: 0 }
    }
}

impl Chunk {
    /// The most rows of a chunk.
    pub const MOST: usize = u32::MAX as usize;

    /// Adds a batch of `bytes` bytes, with the keys of its rows.
    pub fn push(&mut self, batch: RecordBatch, keys: &BinaryArray, bytes: u64) {
        let offsets = keys.value_offsets();
        let (Some(&begin), Some(&end)) = (offsets.first(), offsets.last()) else { return };
        let shift = self.keys.len().wrapping_sub(begin as usize);
        self.keys.extend_from_slice(&keys.value_data()[begin as usize..end as usize]);
        self.offsets.extend(offsets.iter().skip(1).map(|&offset| (offset as usize).wrapping_add(shift)));
        self.bytes += bytes;
        self.starts.push(self.rows() + batch.num_rows());
        self.batches.push(batch);
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Bytes of memory for the rows and their sort.
    pub fn memory(&self) -> u64 {
        self.bytes + self.keys.len() as u64 + self.rows() as u64 * (size_of::<usize>() as u64 + SORT)
    }

    /// Bytes of the rows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The key of a row.
    pub fn key(&self, row: u32) -> &[u8] {
        let row = row as usize;
        &self.keys[self.offsets[row]..self.offsets[row + 1]]
    }

    /// The order of the rows that `limits` keep. `before` is the key of the last row of an earlier chunk.
    pub fn sorted(
        &self,
        engine: &Engine,
        limits: Limits,
        before: Option<&[u8]>,
    ) -> Result<(Vec<u32>, Timing), merge_host::Error> {
        let mut order = vec![0u32; self.rows()];
        let timing = engine.argsort_by_bytes(&mut order, |row| self.key(row as u32))?;
        if limits.unique {
            order.dedup_by(|next, first| self.key(*next) == self.key(*first));
            if order.first().is_some_and(|&first| before == Some(self.key(first))) {
                order.remove(0);
            }
        }
        order.truncate(usize::try_from(limits.most).unwrap_or(usize::MAX));
        Ok((order, timing))
    }

    /// The batch of each row of `order`, and its index there.
    pub fn places(&self, order: &[u32]) -> Vec<(usize, usize)> {
        // The batch of every 2^STEP-th row.
        let mut batch = 0;
        let nearby: Vec<usize> = (0..self.rows())
            .step_by(1 << STEP)
            .map(|row| {
                batch += self.starts[batch + 1..].iter().take_while(|&&end| end <= row).count();
                batch
            })
            .collect();
        let place = |row: usize| {
            let mut batch = nearby[row >> STEP];
            while self.starts[batch + 1] <= row {
                batch += 1;
            }
            (batch, row - self.starts[batch])
        };
        let mut places = vec![(0, 0); order.len()];
        let share = parallel::share_length(order.len(), 1 << STEP).max(1);
        parallel::for_each(places.chunks_mut(share).zip(order.chunks(share)), |(places, order)| {
            places.iter_mut().zip(order).for_each(|(to, &row)| *to = place(row as usize));
        });
        places
    }

    /// A column of the rows at `places`.
    pub fn gather(&self, column: usize, places: &[(usize, usize)]) -> Result<ArrayRef, ArrowError> {
        let arrays: Vec<&dyn Array> = self.batches.iter().map(|batch| &**batch.column(column)).collect();
        gather(&arrays, places)
    }

    /// The rows of `order` as a chunk of their own.
    pub fn compacted(&self, order: &[u32]) -> Result<Self, ArrowError> {
        let mut compacted = Self::default();
        let columns = gathered(self, order, ROWS, |_, column| Ok(column))?;
        let Some(schema) = self.batches.first().map(RecordBatch::schema) else { return Ok(compacted) };
        for (columns, order) in columns.into_iter().zip(order.chunks(ROWS)) {
            let keys = BinaryArray::from_iter_values(order.iter().map(|&row| self.key(row)));
            let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
            let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
            let bytes = bytes_of(&batch);
            compacted.push(batch, &keys, bytes);
        }
        Ok(compacted)
    }

    /// For each column, whether values repeat in the rows of `order`, as far as a sample shows. True for columns of
    /// types that cannot be compared.
    pub fn has_repeats(&self, order: &[u32]) -> Result<Vec<bool>, ArrowError> {
        let step = order.len().div_ceil(SAMPLE / SPAN).max(SPAN);
        let spans = order.chunks(step).flat_map(|rows| &rows[..rows.len().min(SPAN)]);
        let places = self.places(&spans.copied().collect::<Vec<_>>());
        let columns = parallel::map(0..self.columns(), |column| {
            let array = self.gather(column, &places)?;
            let field = [SortField::new(array.data_type().clone())];
            if !RowConverter::supports_fields(&field) {
                return Ok(true);
            }
            let rows = RowConverter::new(field.into())?.convert_columns(&[array])?;
            let distinct: HashSet<Row> = rows.iter().collect();
            Ok(places.len() - distinct.len() >= places.len() / REPEATED)
        });
        columns.into_iter().collect()
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.batches.first().map_or(0, RecordBatch::num_columns)
    }
}

/// Bytes of the values of a batch. Parts of a nested column count as if they were the whole.
pub fn bytes_of(batch: &RecordBatch) -> u64 {
    let of_column = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View => column.len() * size_of::<u128>() + column.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => column.len() * size_of::<u128>() + column.as_binary_view().total_buffer_bytes_used(),
        _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size()),
    };
    batch.columns().iter().map(of_column).sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, StringArray};
    use std::sync::Arc;

    /// Whether values repeat among the rows of a column.
    fn has_repeats(column: ArrayRef) -> bool {
        let mut chunk = Chunk::default();
        let rows = column.len();
        let batch = RecordBatch::try_from_iter([("column", column)]).unwrap();
        chunk.push(batch, &BinaryArray::from_iter_values((0..rows).map(|_| b"")), 0);
        chunk.has_repeats(&(0..rows as u32).collect::<Vec<_>>()).unwrap()[0]
    }

    #[test]
    fn a_sample_shows_whether_values_repeat() {
        let rows = 1 << 20;
        let numbers =
            |of: &dyn Fn(i64) -> i64| Arc::new((0..rows).map(of).map(Some).collect::<Int64Array>()) as ArrayRef;
        let scattered = |distinct: i64| {
            numbers(&move |i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) as i64 % distinct)
        };
        assert!(!has_repeats(numbers(&|i| i)) && !has_repeats(scattered(i64::MAX)) && !has_repeats(scattered(1 << 22)));
        // Sorted values repeat in neighbouring rows, others anywhere.
        assert!(has_repeats(numbers(&|i| i / 8)) && has_repeats(numbers(&|_| 0)) && has_repeats(scattered(10_000)));
        let texts = |distinct: i64| (0..rows).map(|i| Some((i % distinct).to_string())).collect::<StringArray>();
        assert!(has_repeats(Arc::new(texts(999))) && !has_repeats(Arc::new(texts(rows))));
        assert!(has_repeats(Arc::new(Int64Array::from(Vec::<i64>::new()))));
    }
}
