//! Rows that are sorted in memory: record batches, and the keys of their rows.

use super::Rows;
use super::gather::{Column, column};
use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_row::{Row, RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};
use merge_host::{Engine, Timing, parallel};
use std::collections::HashSet;
use std::sync::Arc;

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

/// The place of a row: the index of its batch, and its index there.
pub type Place = (usize, usize);

impl Default for Chunk {
    fn default() -> Self {
        Self { batches: Vec::new(), starts: vec![0], keys: Vec::new(), offsets: vec![0], bytes: 0 }
    }
}

impl Chunk {
    /// Bytes of memory that a row takes beside its values and its key: the offset of the key, the index, and scratch
    /// memory of the sort.
    pub const ROW: u64 = 56;

    /// Adds rows.
    pub fn push(&mut self, rows: Rows) {
        self.bytes += rows.bytes();
        let Rows { batch, keys, .. } = rows;
        let offsets = keys.value_offsets();
        let (Some(&begin), Some(&end)) = (offsets.first(), offsets.last()) else { return };
        let shift = self.keys.len().wrapping_sub(begin as usize);
        self.keys.extend_from_slice(&keys.value_data()[begin as usize..end as usize]);
        self.offsets.extend(offsets.iter().skip(1).map(|&offset| (offset as usize).wrapping_add(shift)));
        self.starts.push(self.rows() + batch.num_rows());
        self.batches.push(batch);
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
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
    pub fn places(&self, order: &[u32]) -> Vec<Place> {
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

    /// A column of the rows.
    pub fn column(&self, index: usize) -> Box<dyn Column + '_> {
        column(self.batches.iter().map(|batch| &**batch.column(index)).collect())
    }

    /// All columns of the rows.
    pub fn columns(&self) -> Vec<Box<dyn Column + '_>> {
        let count = self.batches.first().map_or(0, RecordBatch::num_columns);
        (0..count).map(|index| self.column(index)).collect()
    }

    /// The results of `work` on the rows of `order`, in parts of up to `rows` rows. All threads gather them.
    pub fn gather<R: Send>(
        &self,
        order: &[u32],
        rows: usize,
        work: impl Fn(Rows) -> R + Sync,
    ) -> Result<Vec<R>, ArrowError> {
        let Some(schema) = self.batches.first().map(RecordBatch::schema) else { return Ok(Vec::new()) };
        let columns = self.columns();
        self.map(order, rows, |order, places| {
            let columns = columns.iter().map(|column| column.gather(places).map(compacted));
            let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
            let batch =
                RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &options)?;
            let bytes = order.iter().map(|&row| self.key(row).len()).sum();
            let mut keys = BinaryBuilder::with_capacity(order.len(), bytes);
            order.iter().for_each(|&row| keys.append_value(self.key(row)));
            Ok(work(Rows::new(batch, keys.finish())))
        })
    }

    /// The results of `work` on parts of `order` of up to `rows` rows, and on the places of these rows. All threads
    /// work.
    pub fn map<R: Send, E: Send>(
        &self,
        order: &[u32],
        rows: usize,
        work: impl Fn(&[u32], &[Place]) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let places = self.places(order);
        let parts = order.chunks(rows).zip(places.chunks(rows));
        parallel::map(parts, |(order, places)| work(order, places)).into_iter().collect()
    }

    /// For each column, whether values repeat in the rows of `order`, as far as a sample shows. True for columns of
    /// types that cannot be compared.
    pub fn has_repeats(&self, order: &[u32]) -> Result<Vec<bool>, ArrowError> {
        let step = order.len().div_ceil(SAMPLE / SPAN).max(SPAN);
        let spans = order.chunks(step).flat_map(|rows| &rows[..rows.len().min(SPAN)]);
        let places = self.places(&spans.copied().collect::<Vec<_>>());
        let columns = parallel::map(self.columns(), |column| {
            let array = column.gather(&places)?;
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
}

/// The array without the bytes of strings that no view of it refers to.
pub fn compacted(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
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
    use arrow_array::{BinaryArray, Int64Array, StringArray};

    /// Whether values repeat among the rows of a column.
    fn has_repeats(column: ArrayRef) -> bool {
        let mut chunk = Chunk::default();
        let rows = column.len();
        let batch = RecordBatch::try_from_iter([("column", column)]).unwrap();
        chunk.push(Rows::new(batch, BinaryArray::from_iter_values((0..rows).map(|_| b""))));
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
