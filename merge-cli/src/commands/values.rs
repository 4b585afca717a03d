//! Values that go along with the keys of `merge` and `batch`: their files, their width, and the merge.
//!
//! Values of 4 and 8 bytes are numbers to the library, which moves them along with the keys. For others it moves the
//! numbers of the pairs, and the values are gathered here.

use super::pair::{Merge, Merging, Pairs};
use crate::engine::ChosenEngine;
use crate::error::{Failure, Result, name};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::memory;
use crate::order::mirror;
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};
use bytemuck::Pod;
use merge_host::{Engine, SortOrder};
use rayon::prelude::*;
use std::borrow::Cow;
use std::path::Path;

/// Values that a thread gathers at once.
const PIECE: usize = 1 << 14;

/// The files that `--values` and `--values-out` name.
#[derive(Debug)]
pub struct ValueFiles {
    pub inputs: Vec<Input>,
    pub output: Output,
}

impl ValueFiles {
    /// Opens the inputs and finds out whether the output can be written, if there are values. `counts` are the numbers
    /// of keys, as far as they are known, and `keys_output` is where the keys will go.
    pub fn open(files: &Merge, counts: &[Option<u64>], keys_output: &Output) -> Result<Option<Self>> {
        let (Some(values), Some(path)) = (&files.values, &files.args.values_out) else { return Ok(None) };
        let inputs = values.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>>>()?;
        let lengths = inputs.iter().map(Input::count::<u8>).collect::<Result<Vec<_>>>()?;
        let known = |numbers: &[Option<u64>]| numbers.iter().copied().collect::<Option<Vec<_>>>();
        if let (Some(counts), Some(lengths)) = (known(counts), known(&lengths)) {
            width(&sides(files, &counts, &lengths))?;
        }
        let output = prepare_output(path, keys_output)?;
        output.check_space(lengths.iter().map(|length| u128::from(length.unwrap_or(0))).sum())?;
        Ok(Some(Self { inputs, output }))
    }

    /// The number of bytes of a value of so many keys, if the files' lengths tell.
    pub fn width(&self, files: &Merge, counts: &[u64]) -> Result<Option<usize>> {
        let lengths = self.inputs.iter().map(Input::count::<u8>).collect::<Result<Option<Vec<_>>>>()?;
        lengths.map(|lengths| width(&sides(files, counts, &lengths))).transpose()
    }

    /// Reads the values of so many keys.
    pub fn read(mut self, files: &Merge, counts: &[u64]) -> Result<Values> {
        let inputs = self.inputs.iter_mut().map(Input::read_all::<u8>).collect::<Result<Vec<_>>>()?;
        let lengths: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let width = width(&sides(files, counts, &lengths))?;
        Ok(Values { width, inputs, output: self.output })
    }
}

/// Finds out whether the values can be written to `path`. `keys_output` is where the keys will go.
pub fn prepare_output(path: &Path, keys_output: &Output) -> Result<Output> {
    let output = Output::prepare(path)?;
    if output.is_same(keys_output) {
        return Err(Failure::file(path, "is where the keys go, expected another file for --values-out"));
    }
    Ok(output)
}

/// How many keys and bytes of values an input has, and the files' names.
pub struct Side {
    pub keys_name: String,
    pub keys: u64,
    pub name: String,
    pub bytes: u64,
}

impl Side {
    /// The number of bytes of a value, if there are keys.
    pub fn width(&self) -> Result<Option<u64>> {
        let Self { keys_name, keys, name, bytes } = self;
        if *keys == 0 {
            if *bytes > 0 {
                return Err(Failure::new(format!("{name}: has {bytes} bytes, expected none: {keys_name} has no keys")));
            }
            return Ok(None);
        }
        if *bytes == 0 {
            let expected = format!("a value for each of the {keys} keys of {keys_name}");
            return Err(Failure::new(format!("{name}: has no bytes, expected {expected}")));
        }
        if !bytes.is_multiple_of(*keys) {
            let expected = format!("a multiple of {keys}, the number of keys of {keys_name}");
            return Err(Failure::new(format!("{name}: has {bytes} bytes, expected {expected}")));
        }
        Ok(Some(bytes / keys))
    }
}

fn sides(files: &Merge, keys: &[u64], bytes: &[u64]) -> Vec<Side> {
    let names = files.keys.iter().zip(files.values.iter().flatten());
    let sizes = keys.iter().zip(bytes);
    let side = |((keys_name, value_name), (&keys, &bytes)): ((&&Path, &&Path), (&u64, &u64))| Side {
        keys_name: name(keys_name),
        keys,
        name: name(value_name),
        bytes,
    };
    names.zip(sizes).map(side).collect()
}

/// The number of bytes of a value; 0 where there are no keys at all.
fn width(sides: &[Side]) -> Result<usize> {
    let mut found: Option<(&Side, u64)> = None;
    for b in sides {
        match (found, b.width()?) {
            (Some((a, of_a)), Some(of_b)) if of_a != of_b => {
                return Err(Failure::new(format!(
                    "{}: has values of {of_a} bytes ({} bytes for {} keys), expected values as long as in {}: {of_b} \
                     bytes ({} bytes for {} keys)",
                    a.name, a.bytes, a.keys, b.name, b.bytes, b.keys
                )));
            }
            (None, Some(width)) => found = Some((b, width)),
            _ => {}
        }
    }
    Ok(found.map_or(0, |(_, width)| width) as usize)
}

/// The values of the inputs' keys, and where those of the output go.
#[derive(Debug)]
pub struct Values {
    /// The number of bytes of a value.
    pub width: usize,
    inputs: Vec<Vec<u8>>,
    output: Output,
}

impl Values {
    /// Merges keys with these values as `merging` does, and writes both outputs. [`mirror`] has made the keys ascending.
    pub fn merge<K: FileKey, M: Merging<K>>(
        self,
        order: SortOrder,
        merging: &M,
        engine: &mut ChosenEngine,
        keys: &[&[K]],
        keys_output: Output,
        stats: &mut Stats,
    ) -> Result<()> {
        let Self { width, inputs, output } = self;
        let count: usize = keys.iter().map(|keys| keys.len()).sum();
        let mut merge = MergeValues { order, merging, engine, keys, stats };
        match width {
            4 => {
                let (keys, values) = merge.run_as_numbers::<u32>(&inputs)?;
                merge.write(keys_output, &keys, output, bytemuck::cast_slice(&values))
            }
            8 => {
                let (keys, values) = merge.run_as_numbers::<u64>(&inputs)?;
                merge.write(keys_output, &keys, output, bytemuck::cast_slice(&values))
            }
            // Numbers of half the size where they suffice.
            _ if u32::try_from(count).is_ok() => {
                let (keys, values) = merge.run_by_index::<u32>(width, &inputs)?;
                merge.write(keys_output, &keys, output, &values)
            }
            _ => {
                let (keys, values) = merge.run_by_index::<u64>(width, &inputs)?;
                merge.write(keys_output, &keys, output, &values)
            }
        }
    }
}

struct MergeValues<'a, K, M> {
    order: SortOrder,
    merging: &'a M,
    engine: &'a mut ChosenEngine,
    keys: &'a [&'a [K]],
    stats: &'a mut Stats,
}

impl<K: FileKey, M: Merging<K>> MergeValues<'_, K, M> {
    /// Merges the keys with these values of each input.
    fn run<'v, V: Pod + Send + Sync>(&mut self, values: impl Iterator<Item = &'v [V]>) -> Result<(Vec<K>, Vec<V>)> {
        let inputs: Vec<Pairs<K, V>> = self.keys.iter().copied().zip(values).collect();
        let count = inputs.iter().map(|input| input.0.len() as u64).sum();
        let mut out = (memory::zeroed::<K>(count, "the output")?, memory::zeroed::<V>(count, "the output's values")?);
        let merging = self.merging;
        let merge = |engine: &Engine, out: &mut (Vec<K>, Vec<V>)| {
            merging.merge_pairs(engine, &inputs, (&mut out.0, &mut out.1))
        };
        // The inputs are still what they were, and all of the output is written again.
        let timing = self.engine.run(&mut out, merge, |_| Ok(true))?;
        self.stats.add(timing);
        self.stats.time(Phase::Compute, || mirror(self.order, &mut out.0));
        Ok(out)
    }

    /// As [`run`](Self::run), for values in bytes.
    fn run_as_numbers<V: Pod + Send + Sync>(&mut self, inputs: &[Vec<u8>]) -> Result<(Vec<K>, Vec<V>)> {
        let numbers: Vec<Cow<[V]>> = inputs.iter().map(|bytes| as_numbers(bytes)).collect();
        self.run(numbers.iter().map(|values| &**values))
    }

    /// As [`run`](Self::run), for values of `width` bytes.
    fn run_by_index<I: Index>(&mut self, width: usize, inputs: &[Vec<u8>]) -> Result<(Vec<K>, Vec<u8>)> {
        let count = self.keys.iter().map(|keys| keys.len() as u64).sum();
        let mut indices = memory::zeroed::<I>(count, "the values' places")?;
        self.stats.time(Phase::Compute, || number(&mut indices));
        let mut rest = &indices[..];
        let indices_of = |keys: &&[K]| {
            let indices;
            (indices, rest) = rest.split_at(keys.len());
            indices
        };
        let (keys, merged) = self.run(self.keys.iter().map(indices_of))?;
        drop(indices);
        let inputs: Vec<&[u8]> = inputs.iter().map(|bytes| &**bytes).collect();
        let bytes = inputs.iter().map(|bytes| bytes.len() as u64).sum();
        let mut values = memory::zeroed::<u8>(bytes, "the output's values")?;
        self.stats.time(Phase::Compute, || gather(width, &inputs, &merged, &mut values));
        Ok((keys, values))
    }

    /// Writes both outputs.
    fn write(&mut self, keys_output: Output, keys: &[K], values_output: Output, values: &[u8]) -> Result<()> {
        self.stats.time(Phase::Write, || {
            let keys = keys_output.write(bytemuck::cast_slice(keys))?;
            let values = values_output.write(values)?;
            output::finish([keys, values])
        })
    }
}

/// The place of a value, in all inputs one after the other.
pub trait Index: Pod + Send + Sync {
    fn new(place: usize) -> Self;
    fn get(self) -> usize;
}

macro_rules! index {
    ($($t:ty)*) => {$(
        impl Index for $t {
            fn new(place: usize) -> Self {
                place as $t
            }
            fn get(self) -> usize {
                self as usize
            }
        }
    )*};
}
index!(u32 u64);

/// Writes to `places` the places from 0 on.
pub fn number<I: Index>(places: &mut [I]) {
    places.par_iter_mut().enumerate().for_each(|(i, place)| *place = I::new(i));
}

/// Copies to `out` the values at `places` in `inputs`, which follow one another, each of `width` bytes.
pub fn gather<I: Index>(width: usize, inputs: &[&[u8]], places: &[I], out: &mut [u8]) {
    if width == 0 {
        return;
    }
    let begins: Vec<usize> = inputs
        .iter()
        .scan(0, |end, bytes| {
            *end += bytes.len();
            Some(*end - bytes.len())
        })
        .collect();
    out.par_chunks_mut(PIECE * width).zip(places.par_chunks(PIECE)).for_each(|(out, places)| {
        for (to, place) in out.chunks_exact_mut(width).zip(places) {
            let place = place.get() * width;
            // The last that begins there or before: an empty one begins where the next does.
            let input = begins.partition_point(|&begin| begin <= place) - 1;
            to.copy_from_slice(&inputs[input][place - begins[input]..][..width]);
        }
    });
}

/// The bytes as numbers, copied only if they do not lie as numbers have to.
fn as_numbers<V: Pod>(bytes: &[u8]) -> Cow<'_, [V]> {
    bytemuck::try_cast_slice(bytes).map_or_else(|_| bytemuck::pod_collect_to_vec(bytes).into(), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathers<I: Index>() {
        let (a, b): (Vec<u8>, Vec<u8>) = ((0..9).collect(), (9..30).collect());
        let places = [0, 3, 9, 2, 4].map(I::new);
        let mut out = [99; 15];
        gather(3, &[&a, &b], &places, &mut out);
        assert_eq!(out, [0, 1, 2, 9, 10, 11, 27, 28, 29, 6, 7, 8, 12, 13, 14]);
        let mut parts = [99; 15];
        gather(3, &[&[], &a[..3], &a[3..], &[], &b, &[]], &places, &mut parts);
        assert_eq!(parts, out);
    }

    #[test]
    fn values_come_from_their_places() {
        gathers::<u32>();
        gathers::<u64>();
        gather::<u32>(0, &[], &[], &mut []);
    }

    #[test]
    fn values_of_several_pieces_come_from_their_places() {
        let count = 2 * PIECE + 3;
        let values: Vec<u8> = (0..2 * count).map(|i| (i / 2 * 7) as u8).collect();
        let places: Vec<u32> = (0..count as u32).rev().collect();
        let mut out = vec![0; 2 * count];
        gather(2, &[&values[..10], &values[10..]], &places, &mut out);
        assert!(out.chunks(2).eq(values.chunks(2).rev()));
    }

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
