//! Merges of one piece: a run from each rank, of keys with payloads of any width.

use crate::bytes::Bytes;
use merge_cli::shared::{Result, Word, memory};
use merge_host::Engine;
use merge_host::permutation::{fill_identity, gather};

/// The runs of a piece, one after the other in memory.
#[derive(Debug)]
pub struct Piece<W> {
    /// The index of its first key in the part of this rank.
    pub begin: u64,
    /// The number of keys from each rank.
    pub counts: Vec<usize>,
    /// Their keys. More may follow, which are of an earlier piece.
    pub keys: Vec<W>,
    /// Their payload.
    pub payload: Bytes,
}

impl<W: Word> Piece<W> {
    /// Memory for pieces of up to `count` keys.
    ///
    /// # Errors
    /// If there is not as much.
    pub fn with_capacity(count: usize, width: usize) -> Result<Self> {
        let mut keys = memory::zeroed(count as u64, "a piece of the keys")?;
        memory::prefer_large_pages(&mut keys);
        Ok(Self { begin: 0, counts: Vec::new(), keys, payload: Bytes::zeroed(count, width)? })
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Merges pieces, one after the other.
#[derive(Debug)]
pub struct Merger<W> {
    engine: Engine,
    width: usize,
    keys: Vec<W>,
    payload: Bytes,
    /// The payloads' indices before and after the merge, where the engine does not move them with the keys.
    indices: [Vec<u32>; 2],
}

impl<W: Word> Merger<W> {
    /// Memory for pieces of up to `capacity` keys with payloads of `width` bytes.
    ///
    /// # Errors
    /// If there is not as much.
    pub fn new(engine: Engine, capacity: usize, width: usize) -> Result<Self> {
        let mut keys = memory::zeroed(capacity as u64, "the merged keys")?;
        memory::prefer_large_pages(&mut keys);
        let indexed = if is_indexed(width) { capacity } else { 0 };
        let indices = [vec![0; indexed], vec![0; indexed]];
        Ok(Self { engine, width, keys, payload: Bytes::zeroed(capacity, width)?, indices })
    }

    /// The keys of a piece and their payload, merged. Of equal keys, those of an earlier rank come first.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn merge<'a>(&'a mut self, piece: &'a Piece<W>) -> Result<(&'a [W], &'a [u8])> {
        let (count, width) = (piece.len(), self.width);
        let (keys, payload) = (&piece.keys[..count], &piece.payload.get()[..count * width]);
        if piece.counts.iter().filter(|count| **count > 0).count() <= 1 {
            return Ok((keys, payload));
        }
        let (merged, merged_payload) = (&mut self.keys[..count], &mut self.payload.get_mut()[..count * width]);
        match width {
            0 => self.engine.merge_many(&runs(&piece.counts, keys), merged)?,
            4 => {
                let values = bytemuck::cast_slice_mut::<u8, u32>(merged_payload);
                let runs = runs_of_pairs::<W, u32>(&piece.counts, keys, bytemuck::cast_slice(payload));
                self.engine.merge_many_pairs(&runs, (merged, values))?
            }
            8 => {
                let values = bytemuck::cast_slice_mut::<u8, u64>(merged_payload);
                let runs = runs_of_pairs::<W, u64>(&piece.counts, keys, bytemuck::cast_slice(payload));
                self.engine.merge_many_pairs(&runs, (merged, values))?
            }
            _ => {
                let [before, after] = &mut self.indices;
                let (before, after) = (&mut before[..count], &mut after[..count]);
                fill_identity(before);
                let timing =
                    self.engine.merge_many_pairs(&runs_of_pairs(&piece.counts, keys, before), (merged, &mut *after))?;
                gather(width, &[payload], after, merged_payload);
                timing
            }
        };
        Ok((&self.keys[..count], &self.payload.get()[..count * width]))
    }
}

/// Whether payloads of that width are moved by their indices.
pub fn is_indexed(width: usize) -> bool {
    !matches!(width, 0 | 4 | 8)
}

/// Slices of that many elements each, one after the other.
fn runs<'a, T>(counts: &[usize], mut elements: &'a [T]) -> Vec<&'a [T]> {
    let run = |count: &usize| {
        let (run, rest) = elements.split_at(*count);
        elements = rest;
        run
    };
    counts.iter().map(run).collect()
}

/// The same of keys and values.
fn runs_of_pairs<'a, W, V>(counts: &[usize], keys: &'a [W], values: &'a [V]) -> Vec<(&'a [W], &'a [V])> {
    runs(counts, keys).into_iter().zip(runs(counts, values)).collect()
}
