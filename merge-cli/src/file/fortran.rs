//! Arrays in Fortran order, which are read as arrays in C order.
//!
//! ```text
//! index of an item in C order        0 1 2     0 = row 0, place 0; 3 = row 1, place 0; ...
//!                                    3 4 5
//! file, in Fortran order             0 3   1 4   2 5
//! ```
//!
//! In the file, the items of all rows at one place of a row are adjacent: they are a column. A block of rows is read
//! column by column, and the items are distributed to their rows.

use crate::format::npy::Header;
use crate::say::error::Result;

/// Bytes of a column to read at once, if a block has that many rows: those of a page.
const COLUMN: u64 = 4096;
/// Bytes of several columns to read at once, each of which has at most [`COLUMN`] bytes.
const COLUMNS: u64 = 1 << 20;

/// The order of the items in a file that is in Fortran order.
#[derive(Clone, Debug)]
pub struct FortranOrder {
    /// Bytes of an item.
    item: u64,
    /// The number of rows.
    count: u64,
    /// The lengths of the dimensions of a row.
    row: Vec<u64>,
    /// The number of items of a row.
    items: u64,
}

impl FortranOrder {
    /// The order of the array with this header, if it has items.
    pub fn of(header: &Header) -> Option<Self> {
        let Header { dtype, count, row, is_fortran, begin, end, .. } = header;
        (*is_fortran && begin < end).then(|| Self {
            item: dtype.item() as u64,
            count: *count,
            row: row.clone(),
            items: row.iter().product(),
        })
    }

    /// Bytes of a block of rows that is read in few parts.
    pub fn block(&self) -> usize {
        usize::try_from(self.items.saturating_mul(COLUMN)).unwrap_or(usize::MAX)
    }

    /// The place in a row, in C order, of the items of a column.
    fn place(&self, column: u64) -> u64 {
        let place =
            self.row.iter().fold((column, 0), |(rest, place), length| (rest / length, place * length + rest % length));
        place.1
    }

    /// The offset from the first item of the file of the byte that is at offset `begin` in C order.
    pub fn offset_of(&self, begin: u64) -> u64 {
        let (index, byte) = (begin / self.item, begin % self.item);
        let (row, mut place) = (index / self.items, index % self.items);
        // The last index of an item is the least significant one in C order, and the most significant one in the file.
        let column = self.row.iter().rev().fold(0, |column, length| {
            let index = place % length;
            place /= length;
            column * length + index
        });
        (column * self.count + row) * self.item + byte
    }

    /// Fills `bytes` with those from offset `begin` on in C order. `read` reads bytes from an offset of the file's
    /// items on.
    pub fn read(&self, begin: u64, bytes: &mut [u8], mut read: impl FnMut(&mut [u8], u64) -> Result<()>) -> Result<()> {
        let Self { item, count, items, .. } = *self;
        let end = begin + bytes.len() as u64;
        let (first, last) = (begin / item, end.div_ceil(item));
        // All rows that have some of these items.
        let rows = first / items..last.div_ceil(items);
        // Several short columns are read at once, with the rows between them.
        let at_once = if count * item <= COLUMN { COLUMNS / (count * item) } else { 1 };
        let mut part = Vec::new();
        for columns in (0..items).step_by(at_once as usize).map(|column| column..items.min(column + at_once)) {
            let between = (columns.end - columns.start - 1) * count;
            part.resize(((between + rows.end - rows.start) * item) as usize, 0);
            read(&mut part, (columns.start * count + rows.start) * item)?;
            for (column, place) in columns.clone().map(|column| (column, self.place(column))) {
                let from = |index: u64| index.saturating_sub(place).div_ceil(items);
                let values = &part[((column - columns.start) * count * item) as usize..];
                let skipped = from(first) - rows.start;
                let values = values[(skipped * item) as usize..].chunks_exact(item as usize);
                for (row, value) in (from(first)..from(last)).zip(values) {
                    let at = (row * items + place) * item;
                    let (from, to) = (at.max(begin), (at + item).min(end));
                    let to_fill = &mut bytes[(from - begin) as usize..(to - begin) as usize];
                    to_fill.copy_from_slice(&value[(from - at) as usize..(to - at) as usize]);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a file with an array of this shape, and the same array in C order. Items have `size` bytes, which
    /// are numbered in C order.
    fn array(size: usize, shape: &[u64]) -> (Vec<u8>, Vec<u8>) {
        let count = shape.iter().product::<u64>() as usize;
        let in_c_order: Vec<u8> = (0..count * size).map(|byte| (byte % 251) as u8).collect();
        let mut file = Vec::new();
        for place in 0..count as u64 {
            // The first index varies fastest.
            let mut rest = place;
            let indices: Vec<u64> = shape
                .iter()
                .map(|length| {
                    let index = rest % length;
                    rest /= length;
                    index
                })
                .collect();
            let index = shape.iter().zip(indices).fold(0, |at, (length, index)| at * length + index) as usize;
            file.extend_from_slice(&in_c_order[index * size..][..size]);
        }
        (file, in_c_order)
    }

    /// Checks reads of all ranges whose bounds are multiples of `step`, and the offsets of their first bytes.
    fn check(size: usize, shape: &[u64], step: usize) {
        let (file, expected) = array(size, shape);
        let (count, row) = (shape[0], shape[1..].to_vec());
        let order = FortranOrder { item: size as u64, count, items: row.iter().product(), row };
        for begin in (0..expected.len()).step_by(step) {
            assert_eq!(file[order.offset_of(begin as u64) as usize], expected[begin], "{shape:?} {begin}");
            for end in (begin..=expected.len()).step_by(step) {
                let mut bytes = vec![0; end - begin];
                let read = |part: &mut [u8], offset: u64| {
                    part.copy_from_slice(&file[offset as usize..][..part.len()]);
                    Ok(())
                };
                order.read(begin as u64, &mut bytes, read).unwrap();
                assert!(bytes == expected[begin..end], "{size} {shape:?} {begin}..{end}");
            }
        }
    }

    #[test]
    fn all_parts_of_small_arrays() {
        for shape in [&[1, 1][..], &[1, 5], &[5, 1], &[2, 3], &[4, 3], &[2, 3, 4], &[3, 2, 1, 2]] {
            (1..=3).for_each(|size| check(size, shape, 1));
        }
    }

    /// Columns that are read one by one, and more short columns than are read at once.
    #[test]
    fn parts_of_long_and_of_many_columns() {
        check(3, &[5000, 2, 2], 1999);
        check(4, &[3, 200_000], 200_003);
    }
}
