//! Merges of the parts of runs that are in memory: keys with payloads of any width.

use crate::bytes::Bytes;
use bytemuck::Pod;
use merge_cli::shared::{Result, Word, memory};
use merge_host::Engine;
use merge_host::permutation::{fill_identity, gather};

/// A part of a run: keys and their payloads.
pub type Part<'a, W> = (&'a [W], &'a [u8]);

/// The runs of a piece, contiguous in memory.
#[derive(Debug)]
pub struct Piece<W> {
    /// The index of the first key of the piece in the part of this rank.
    pub begin: u64,
    /// The number of keys from each rank.
    pub counts: Vec<usize>,
    /// The keys. Behind them there may be keys of an earlier piece.
    pub keys: Vec<W>,
    /// The payload of the keys.
    pub payload: Bytes,
}

impl<W: Word> Piece<W> {
    /// Memory for pieces of up to `count` keys.
    ///
    /// # Errors
    /// If there is too little memory.
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

    /// The runs.
    pub fn runs(&self) -> Vec<Part<'_, W>> {
        let (count, width) = (self.len(), self.payload.get().len() / self.keys.len().max(1));
        let bytes: Vec<usize> = self.counts.iter().map(|count| count * width).collect();
        let payloads = runs(&bytes, &self.payload.get()[..count * width]);
        runs(&self.counts, &self.keys[..count]).into_iter().zip(payloads).collect()
    }
}

/// Merges parts of runs, repeatedly with the same memory.
#[derive(Debug)]
pub struct Merger<W> {
    engine: Engine,
    width: usize,
    keys: Vec<W>,
    payload: Bytes,
    /// The indices of the payloads before and after the merge, if the engine does not move payloads with the keys.
    indices: [Vec<u32>; 2],
}

impl<W: Word> Merger<W> {
    /// Memory for up to `capacity` keys at once with payloads of `width` bytes.
    ///
    /// # Errors
    /// If there is too little memory.
    pub fn new(engine: Engine, capacity: usize, width: usize) -> Result<Self> {
        let mut keys = memory::zeroed(capacity as u64, "the merged keys")?;
        memory::prefer_large_pages(&mut keys);
        let indexed = if is_indexed(width) { capacity } else { 0 };
        let indices = [vec![0; indexed], vec![0; indexed]];
        Ok(Self { engine, width, keys, payload: Bytes::zeroed(capacity, width)?, indices })
    }

    /// The merged keys of runs, with their payloads. Equal keys keep the order of the runs.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn merge<'a>(&'a mut self, runs: &[Part<'a, W>]) -> Result<(&'a [W], &'a [u8])> {
        let mut filled = runs.iter().filter(|(keys, _)| !keys.is_empty());
        if let (first, None) = (filled.next(), filled.next()) {
            return Ok(first.copied().unwrap_or_default());
        }
        let (count, width) = (runs.iter().map(|(keys, _)| keys.len()).sum(), self.width);
        let (merged, merged_payload) = (&mut self.keys[..count], &mut self.payload.get_mut()[..count * width]);
        match width {
            0 => self.engine.merge_many(&runs.iter().map(|(keys, _)| *keys).collect::<Vec<_>>(), merged)?,
            4 => self.engine.merge_many(&pairs::<W, u32>(runs), (merged, bytemuck::cast_slice_mut(merged_payload)))?,
            8 => self.engine.merge_many(&pairs::<W, u64>(runs), (merged, bytemuck::cast_slice_mut(merged_payload)))?,
            _ => {
                let [before, after] = &mut self.indices;
                let (mut before, after) = (&mut before[..count], &mut after[..count]);
                fill_identity(before);
                let with_index = |(keys, _): &Part<'a, W>| {
                    let indices;
                    (indices, before) = std::mem::take(&mut before).split_at_mut(keys.len());
                    (*keys, &*indices)
                };
                let indexed: Vec<_> = runs.iter().map(with_index).collect();
                let timing = self.engine.merge_many(&indexed, (merged, &mut *after))?;
                gather(width, &runs.iter().map(|(_, payload)| *payload).collect::<Vec<_>>(), after, merged_payload);
                timing
            }
        };
        Ok((&self.keys[..count], &self.payload.get()[..count * width]))
    }
}

/// Whether payloads of this width are moved by their indices.
pub fn is_indexed(width: usize) -> bool {
    !matches!(width, 0 | 4 | 8)
}

/// Consecutive slices of `counts` elements.
fn runs<'a, T>(counts: &[usize], mut elements: &'a [T]) -> Vec<&'a [T]> {
    let run = |count: &usize| {
        let (run, rest) = elements.split_at(*count);
        elements = rest;
        run
    };
    counts.iter().map(run).collect()
}

/// The runs with their payloads as numbers.
fn pairs<'a, W, V: Pod>(runs: &[Part<'a, W>]) -> Vec<(&'a [W], &'a [V])> {
    runs.iter().map(|(keys, payload)| (*keys, bytemuck::cast_slice(payload))).collect()
}
