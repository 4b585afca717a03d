//! Merges of files that fit in memory, for `merge` and `batch`.

use super::checksum::Checksum;
use super::engine::ChosenEngine;
use super::runs::Runs;
use crate::coding::Word;
use crate::file::values;
use crate::file::{Input, Outputs, Writers};
use crate::os::memory;
use crate::say::error::Result;
use crate::say::stats::{Phase, Stats};
use bytemuck::Pod;
use merge_host::{Engine, Index, permutation};
use std::borrow::Cow;

/// The files of a merge.
#[derive(Debug)]
pub struct Files {
    pub inputs: Vec<Input>,
    /// The files of values, one for each input, if there are values.
    pub values: Option<Vec<Input>>,
    pub assume_sorted: bool,
    /// The checksum of all keys and values that are read.
    pub checksum: Option<Checksum>,
}

/// The keys of all inputs, merged.
#[derive(Debug)]
pub struct Merged<W> {
    pub keys: Vec<W>,
    pub values: Vec<u8>,
    /// Bytes of a value, or 0.
    pub width: usize,
}

/// Reads and merges the files.
pub fn merge<W: Word>(files: Files, runs: &Runs, engine: &mut ChosenEngine, stats: &mut Stats) -> Result<Merged<W>> {
    let Files { mut inputs, values, assume_sorted, checksum } = files;
    let keys = stats.time(Phase::Read, || read_each::<W>(&mut inputs))?;
    let counts: Vec<u64> = keys.iter().map(|keys| keys.len() as u64).collect();
    runs.check_counts(&inputs, &counts)?;
    let (mut width, mut bytes) = (0, Vec::new());
    if let Some(mut values) = values {
        bytes = stats.time(Phase::Read, || read_each::<u8>(&mut values))?;
        let lengths: Vec<u64> = bytes.iter().map(|bytes| bytes.len() as u64).collect();
        width = values::width(&inputs, &counts, &values, &lengths)?;
        stats.value_size = Some(width);
    }
    if !assume_sorted {
        let mut files = inputs.iter().zip(&keys).enumerate();
        stats.time(Phase::Check, || files.try_for_each(|(i, (input, keys))| runs.check_order(i, input, keys)))?;
    }
    if let Some(checksum) = checksum {
        let none = Vec::new();
        let values = bytes.iter().chain(std::iter::repeat(&none));
        keys.iter().zip(values).for_each(|(keys, values)| checksum.add(keys, values, width));
    }
    stats.keys = counts.iter().sum();
    let mut merge = Merge { runs, engine, keys, count: stats.keys, stats };
    let (keys, values) = match width {
        0 => (merge.keys()?, Vec::new()),
        4 => merge.numbers::<u32>(bytes)?,
        8 => merge.numbers::<u64>(bytes)?,
        // Indices of 4 bytes where they suffice.
        _ if u32::try_from(merge.count).is_ok() => merge.by_index::<u32>(width, &bytes)?,
        _ => merge.by_index::<u64>(width, &bytes)?,
    };
    Ok(Merged { keys, values, width })
}

/// All items of each input.
fn read_each<W: Word>(inputs: &mut [Input]) -> Result<Vec<Vec<W>>> {
    let read = |input: &mut Input| {
        let items = input.read_all()?;
        input.close();
        Ok(items)
    };
    inputs.iter_mut().map(read).collect()
}

/// A merge of keys in memory. The engine does not change the inputs, and every run of the engine writes the whole
/// output.
struct Merge<'a, W> {
    runs: &'a Runs,
    engine: &'a mut ChosenEngine,
    /// The keys of the inputs, until they are merged.
    keys: Vec<Vec<W>>,
    count: u64,
    stats: &'a mut Stats,
}

impl<W: Word> Merge<'_, W> {
    fn keys(&mut self) -> Result<Vec<W>> {
        let mut out = memory::zeroed::<W>(self.count, "the output")?;
        let inputs: Vec<&[W]> = self.keys.iter().map(|keys| &**keys).collect();
        let timing = self.engine.run(&mut out, |engine, out| self.runs.merge(engine, &inputs, out))?;
        self.stats.add(timing);
        Ok(out)
    }

    /// Merges the keys with these values of each input.
    fn pairs<'v, V: Pod + Send + Sync>(&mut self, values: impl Iterator<Item = &'v [V]>) -> Result<(Vec<W>, Vec<V>)> {
        let inputs: Vec<(&[W], &[V])> = self.keys.iter().map(|keys| &**keys).zip(values).collect();
        let keys = memory::zeroed::<W>(self.count, "the output")?;
        let mut out = (keys, memory::zeroed::<V>(self.count, "the output's values")?);
        let merge =
            |engine: &Engine, out: &mut (Vec<W>, Vec<V>)| self.runs.merge(engine, &inputs, (&mut out.0, &mut out.1));
        let timing = self.engine.run(&mut out, merge)?;
        self.stats.add(timing);
        // Frees the inputs, because the next step takes the same amount of memory.
        self.keys = Vec::new();
        Ok(out)
    }

    /// Merges keys with numbers of type `V` as values.
    fn numbers<V: Pod + Send + Sync>(&mut self, values: Vec<Vec<u8>>) -> Result<(Vec<W>, Vec<u8>)> {
        let numbers: Vec<Cow<[V]>> = values.iter().map(|bytes| as_numbers(bytes)).collect();
        let (keys, merged) = self.pairs(numbers.iter().map(|values| &**values))?;
        drop(numbers);
        drop(values);
        Ok((keys, bytemuck::cast_slice(&merged).to_vec()))
    }

    /// Merges keys with the indices of their values. The values, of `width` bytes each, are moved only once.
    fn by_index<I: Index>(&mut self, width: usize, values: &[Vec<u8>]) -> Result<(Vec<W>, Vec<u8>)> {
        let mut indices = memory::zeroed::<I>(self.count, "the indices of the values")?;
        self.stats.time(Phase::Compute, || permutation::fill_identity(&mut indices));
        let mut rest = &indices[..];
        let lengths: Vec<usize> = self.keys.iter().map(Vec::len).collect();
        let of_input = |length: usize| {
            let (own, others) = rest.split_at(length);
            rest = others;
            own
        };
        let (keys, merged) = self.pairs(lengths.into_iter().map(of_input))?;
        drop(indices);
        let inputs: Vec<&[u8]> = values.iter().map(|bytes| &**bytes).collect();
        let mut out = memory::zeroed::<u8>(inputs.iter().map(|bytes| bytes.len() as u64).sum(), "the output's values")?;
        self.stats.time(Phase::Compute, || permutation::gather(width, &inputs, &merged, &mut out));
        Ok((keys, out))
    }
}

/// The bytes as numbers, copied only if they are not aligned for numbers.
fn as_numbers<V: Pod>(bytes: &[u8]) -> Cow<'_, [V]> {
    bytemuck::try_cast_slice(bytes).map_or_else(|_| bytemuck::pod_collect_to_vec(bytes).into(), Cow::Borrowed)
}

/// Writes keys in memory and their values of `width` bytes.
pub fn write_all<W: Word>(
    mut outputs: Outputs,
    keys: &[W],
    values: &[u8],
    width: usize,
    stats: &mut Stats,
) -> Result<Writers> {
    outputs.set_width(width);
    outputs.expect(keys.len() as u64);
    stats.time(Phase::Write, || {
        let mut writers = outputs.begin()?;
        writers.write(keys, values)?;
        Ok(writers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_begin_anywhere_are_numbers() {
        let bytes: Vec<u8> = (0..24).collect();
        for begin in 0..8 {
            let part = &bytes[begin..][..16];
            let expected: Vec<u64> = part.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
            assert_eq!(*as_numbers::<u64>(part), expected);
        }
    }
}
