//! `--check`: reads an output back and looks whether it is what it has to be.

use crate::error::{Failure, Result};
use crate::format::swap_all;
use crate::key_type::FileKey;
use crate::memory;
use crate::output::Writer;
use bytemuck::cast_slice_mut;
use merge_host::SortOrder;
use rayon::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of keys to hold in memory at once.
const ROOM: u64 = 8 << 20;
/// Bytes that a thread reads at once.
const PIECE: usize = 1 << 20;
/// Keys that a thread looks at once.
const KEYS: usize = 1 << 16;

/// What an output has to be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The number of keys.
    pub count: u64,
    pub order: SortOrder,
    /// Whether no two keys are equal.
    pub unique: bool,
}

impl Expected {
    /// An error if the keys that were written are not that. Nothing is read of what is no file.
    pub fn check<K: FileKey>(self, writer: &Writer) -> Result<()> {
        writer.check(|path, file, first, swap_size| self.check_file::<K>(path, file, first, swap_size))
    }

    /// An error if a file of values has not this number of bytes.
    pub fn check_values(self, writer: &Writer, width: usize) -> Result<()> {
        writer.check(|path, file, first, _| check_length(path, file, first + self.count * width as u64))
    }

    fn check_file<K: FileKey>(self, path: &Path, file: &File, first: u64, swap_size: usize) -> Result<()> {
        check_length(path, file, first + self.count * K::SIZE as u64)?;
        let room = (ROOM / K::SIZE as u64).min(self.count);
        // The first place is for the last key of the part before.
        let mut keys = memory::zeroed::<K>(room + 1, "a part of the output")?;
        let mut done = 0;
        while done < self.count {
            let count = room.min(self.count - done) as usize;
            let bytes: &mut [u8] = cast_slice_mut(&mut keys[1..1 + count]);
            let begin = first + done * K::SIZE as u64;
            let read = bytes
                .par_chunks_mut(PIECE)
                .enumerate()
                .try_for_each(|(i, piece)| file.read_exact_at(piece, begin + (i * PIECE) as u64));
            read.map_err(|error| Failure::io(path, &error))?;
            swap_all(bytes, swap_size);
            let carried = usize::from(done > 0);
            let part = &keys[1 - carried..1 + count];
            if let Some(i) = self.first_wrong(part) {
                let (index, offset) = (done - carried as u64 + i as u64, begin + ((i - carried) * K::SIZE) as u64);
                let (key, before) = (part[i].show(), part[i - 1].show());
                return Err(Failure::file(
                    path,
                    format!(
                        "--check: what was written is wrong at index {index}, offset {offset}: {key} after {before}"
                    ),
                ));
            }
            keys[0] = keys[count];
            done += count as u64;
        }
        Ok(())
    }

    /// The index of the first key that must not come after the one before it.
    fn first_wrong<K: FileKey>(self, keys: &[K]) -> Option<usize> {
        let wrong = |pair: &[K]| {
            let (x, y) = (pair[0].to_ordered(), pair[1].to_ordered());
            let (x, y) = if self.order == SortOrder::Ascending { (x, y) } else { (y, x) };
            x > y || (self.unique && x == y)
        };
        let pieces = (0..keys.len()).into_par_iter().step_by(KEYS);
        pieces.find_map_first(|begin| {
            // One key more, to compare the last of this piece with the first of the next.
            let piece = &keys[begin..keys.len().min(begin + KEYS + 1)];
            piece.windows(2).position(wrong).map(|i| begin + i + 1)
        })
    }
}

fn check_length(path: &Path, file: &File, expected: u64) -> Result<()> {
    let found = file.metadata().map_err(|error| Failure::io(path, &error))?.len();
    if found == expected {
        return Ok(());
    }
    Err(Failure::file(path, format!("--check: {found} bytes were written, expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[u32], expected: Expected) -> std::result::Result<(), String> {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytemuck::cast_slice(keys)).unwrap();
        let result = expected.check_file::<u32>(Path::new("out"), &file, 0, 1);
        result.map_err(|failure| failure.message().unwrap().to_owned())
    }

    #[test]
    fn order_and_count_are_checked() {
        let expected = Expected { count: 4, order: SortOrder::Ascending, unique: false };
        let descending = Expected { order: SortOrder::Descending, ..expected };
        let unique = Expected { unique: true, ..expected };
        assert_eq!(check(&[1, 2, 2, 3], expected), Ok(()));
        assert_eq!(check(&[3, 2, 2, 1], descending), Ok(()));
        assert_eq!(check(&[1, 2, 3, 4], unique), Ok(()));
        let wrong = |what| Err(format!("out: --check: what was written is wrong at {what}"));
        assert_eq!(check(&[1, 2, 1, 3], expected), wrong("index 2, offset 8: 1 after 2"));
        assert_eq!(check(&[1, 2, 2, 3], descending), wrong("index 1, offset 4: 2 after 1"));
        assert_eq!(check(&[1, 2, 2, 3], unique), wrong("index 2, offset 8: 2 after 2"));
        assert_eq!(check(&[1, 2, 2], expected), Err("out: --check: 12 bytes were written, expected 16".to_owned()));
    }

    #[test]
    fn parts_are_compared_with_each_other() {
        let count = ROOM as u32 / 2 + 5;
        let mut keys: Vec<u32> = (0..count).collect();
        let expected = Expected { count: count.into(), order: SortOrder::Ascending, unique: true };
        assert_eq!(check(&keys, expected), Ok(()));
        let edge = ROOM as usize / 4;
        keys[edge - 1] = u32::MAX;
        assert!(check(&keys, expected).unwrap_err().contains(&format!("index {edge}, offset {ROOM}: ")));
    }
}
