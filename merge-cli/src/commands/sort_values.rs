//! Values that go along with the keys of `sort`.
//!
//! As in a merge, values of 4 and 8 bytes are numbers to the library. Of others it moves the places.

use super::sort::{Written, read_at_most};
use super::sort_segments::Sorting;
use super::values::{Index, Side, gather, number, prepare_output};
use crate::args::SortArgs;
use crate::engine::ChosenEngine;
use crate::error::{Failure, Result, name};
use crate::external::{Along, Shape};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::memory;
use crate::output::Output;
use crate::stats::{Phase, Stats};
use crate::unique::unique;
use bytemuck::Pod;
use merge_host::Engine;

/// The files that `--values` and `--values-out` name.
#[derive(Debug)]
pub struct ValueFile {
    pub input: Input,
    pub output: Output,
    /// The length of the input, if it is known.
    bytes: Option<u64>,
}

impl ValueFile {
    /// Opens the input and finds out whether the output can be written, if there are values. `count` is the number of
    /// keys, if it is known, and `keys_output` is where they will go.
    pub fn open(args: &SortArgs, count: Option<u64>, keys_output: &Output) -> Result<Option<Self>> {
        let (Some(values), Some(path)) = (&args.values, &args.values_out) else { return Ok(None) };
        let input = Input::open(values)?;
        let bytes = input.count::<u8>()?;
        if let (Some(keys), Some(bytes)) = (count, bytes) {
            side(args, keys, bytes).width()?;
        }
        let output = prepare_output(path, keys_output)?;
        output.check_space(if args.unique { 0 } else { bytes.unwrap_or(0).into() })?;
        Ok(Some(Self { input, output, bytes }))
    }

    /// The bytes of each value of `count` keys, if the input's length is known.
    pub fn width(&self, args: &SortArgs, count: u64) -> Result<Option<usize>> {
        let width = |bytes| Ok(side(args, count, bytes).width()?.unwrap_or(0) as usize);
        self.bytes.map(width).transpose()
    }

    /// Reads the values, sorts them along with all the keys, which were read already, and writes both outputs.
    pub fn sort<K: FileKey>(mut self, sort: super::sort::Sort, how: impl Into<Sorting>, keys: Vec<K>) -> Result<()> {
        let error = sort.too_long();
        let super::sort::Sort {
            args,
            order,
            memory,
            mut engine,
            input: keys_input,
            output: keys_output,
            mut stats,
            ..
        } = sort;
        let count = keys.len() as u64;
        stats.keys = count;
        let most = memory.saturating_sub(count * K::SIZE as u64);
        let (mut bytes, all) = stats.time(Phase::Read, || read_at_most::<u8>(&mut self.input, most))?;
        if !all {
            return Err(error);
        }
        let width = side(args, count, bytes.len() as u64).width()?.unwrap_or(0) as usize;
        if (Shape { key: K::SIZE, along: Along::Values(width) }).in_memory(count) > memory.into() {
            return Err(error);
        }
        stats.value_size = Some(width);
        let mut sort = Sort { how: how.into(), engine: &mut engine, keys_input, keys, stats: &mut stats };
        let in_place = match width {
            4 => sort.run_in_place::<u32>(&mut bytes, &mut self.input)?,
            8 => sort.run_in_place::<u64>(&mut bytes, &mut self.input)?,
            _ => false,
        };
        if !in_place {
            // Numbers of half the size where they suffice.
            bytes = match u32::try_from(sort.keys.len()) {
                Ok(_) => sort.run_by_place::<u32>(width, &bytes)?,
                Err(_) => sort.run_by_place::<u64>(width, &bytes)?,
            };
        }
        let mut keys = sort.keys;
        if args.unique {
            let count = stats.time(Phase::Compute, || unique(&mut keys, &mut bytes, width, None));
            keys.truncate(count);
            bytes.truncate(keys.len() * width);
        }
        stats.engine = engine.name()?;
        let (keys_writer, values_writer) = stats.time(Phase::Write, || {
            let keys_writer = keys_output.write(bytemuck::cast_slice(&keys))?;
            Ok::<_, Failure>((keys_writer, self.output.write(&bytes)?))
        })?;
        let count = keys.len() as u64;
        Written { keys: Some(keys_writer), values: Some(values_writer), count, width }.finish::<K>(args, order, stats)
    }
}

fn side(args: &SortArgs, keys: u64, bytes: u64) -> Side {
    let value_name = args.values.iter().map(|path| name(path)).collect();
    Side { keys_name: name(&args.input), keys, name: value_name, bytes }
}

struct Sort<'a, K> {
    how: Sorting,
    engine: &'a mut ChosenEngine,
    keys_input: Input,
    keys: Vec<K>,
    stats: &'a mut Stats,
}

impl<K: FileKey> Sort<'_, K> {
    /// Sorts the keys with these values. `read_again` makes the values again what they were, if it can.
    fn run<V: Pod + Send + Sync>(
        &mut self,
        values: &mut [V],
        read_again: impl FnOnce(&mut [V]) -> Result<bool>,
    ) -> Result<()> {
        let (how, input) = (&self.how, &mut self.keys_input);
        let mut pairs = (&mut self.keys, values);
        let sort = |engine: &Engine, pairs: &mut (&mut Vec<K>, &mut [V])| how.sort_pairs(engine, pairs.0, pairs.1);
        let restore = |pairs: &mut (&mut Vec<K>, &mut [V])| Ok(input.read_again(pairs.0)? && read_again(pairs.1)?);
        self.stats.add(self.engine.run(&mut pairs, sort, restore)?);
        Ok(())
    }

    /// Sorts the keys with the values in `bytes` as numbers. False if they do not lie as numbers have to.
    fn run_in_place<V: Pod + Send + Sync>(&mut self, bytes: &mut [u8], input: &mut Input) -> Result<bool> {
        let Ok(values) = bytemuck::try_cast_slice_mut::<u8, V>(bytes) else { return Ok(false) };
        self.run(values, |values| input.read_again::<u8>(bytemuck::cast_slice_mut(values)))?;
        Ok(true)
    }

    /// Sorts the keys, and gives the values in `bytes`, of `width` bytes each, in their order.
    fn run_by_place<I: Index>(&mut self, width: usize, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut places = memory::zeroed::<I>(self.keys.len() as u64, "the values' places")?;
        self.stats.time(Phase::Compute, || number(&mut places));
        self.run(&mut places, |places| {
            number(places);
            Ok(true)
        })?;
        let mut values = memory::zeroed::<u8>(bytes.len() as u64, "the output's values")?;
        self.stats.time(Phase::Compute, || gather(width, &[bytes], &places, &mut values));
        Ok(values)
    }
}
