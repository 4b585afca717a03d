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

/// Bytes of a column to read at once, if a block has that many rows.
const COLUMN: u64 = 4096;
/// Bytes of whole columns to read at once.
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
        let Header { dtype, count, row, is_fortran, .. } = header;
        let items = row.iter().product();
        (*is_fortran && count * items > 0 && dtype.item() > 0).then(|| Self {
            item: dtype.item() as u64,
            count: *count,
            row: row.clone(),
            items,
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
        // Whole columns are adjacent.
        let is_whole = first == 0 && last == count * items;
        let at_once = if is_whole { (COLUMNS / (count * item)).max(1) } else { 1 };
        let mut part = Vec::new();
        for columns in (0..items).step_by(at_once as usize).map(|column| column..items.min(column + at_once)) {
            let rows = |place: u64| {
                let from = |index: u64| index.saturating_sub(place).div_ceil(items);
                from(first)..from(last)
            };
            let of_first = rows(self.place(columns.start));
            let length = (of_first.end - of_first.start) * item * (columns.end - columns.start);
            part.resize(length as usize, 0);
            read(&mut part, (columns.start * count + of_first.start) * item)?;
            let mut values = part.chunks_exact(item as usize);
            for place in columns.map(|column| self.place(column)) {
                for (row, value) in rows(place).zip(&mut values) {
                    let at = (row * items + place) * item;
                    let (from, to) = (at.max(begin), (at + item).min(end));
                    bytes[(from - begin) as usize..(to - begin) as usize]
                        .copy_from_slice(&value[(from - at) as usize..(to - at) as usize]);
                }
            }
        }
        Ok(())
    }
}
