//! What `merge` and `batch` share: sorted inputs to one output.

use super::merge_through::{self, Through};
use super::values::ValueFiles;
use crate::args::{MemoryArgs, MergingArgs};
use crate::engine::ChosenEngine;
use crate::error::Result;
use crate::format;
use crate::input::{Input, allow_files, check_standard_input};
use crate::key_type::{FileKey, KeyType};
use crate::memory;
use crate::order::{mirror, not_sorted, order_of};
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};
use bytemuck::Pod;
use merge_host::{Engine, Error, SortOrder, Timing};
use std::path::{Path, PathBuf};

/// The inputs of a merge, and the flags beside them.
#[derive(Debug)]
pub struct Merge<'a> {
    /// Files of keys.
    pub keys: Vec<&'a Path>,
    /// Files of their values, as many, if there are values.
    pub values: Option<Vec<&'a Path>>,
    pub args: &'a MergingArgs,
}

impl<'a> Merge<'a> {
    pub fn new(
        keys: impl IntoIterator<Item = &'a PathBuf>,
        values: Option<&'a [PathBuf]>,
        args: &'a MergingArgs,
    ) -> Self {
        let values = values.map(|values| values.iter().map(|path| &**path).collect());
        Self { keys: keys.into_iter().map(|path| &**path).collect(), values, args }
    }

    /// Opens all inputs, and finds out the type of their keys and the output's.
    pub fn open(&self) -> Result<(Vec<Input>, KeyType)> {
        self.check_standard_input([])?;
        allow_files(2 * self.keys.len());
        let mut inputs = self.keys.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>>>()?;
        let key_type = format::detect(&self.args.common, &mut inputs, Some(&self.args.output.output))?;
        Ok((inputs, key_type))
    }

    /// An error if more than one of the inputs and of `others`, by their names, is standard input. Two inputs are called A
    /// and B, others have numbers.
    pub fn check_standard_input<const N: usize>(&self, others: [(&str, &Path); N]) -> Result<()> {
        let count = self.keys.len();
        let names = |letter: &str, two: [&str; 2]| -> Vec<String> {
            if count == 2 {
                two.map(str::to_owned).into()
            } else {
                (1..=count).map(|i| format!("{letter}{i}")).collect()
            }
        };
        let names = [names("F", ["A", "B"]), names("V", ["VA", "VB"])].concat();
        let inputs = self.keys.iter().chain(self.values.iter().flatten());
        check_standard_input(names.iter().map(|name| &**name).zip(inputs.copied()).chain(others))
    }
}

/// How to merge. Slices of inputs are as long as there are inputs.
pub trait Merging<K: FileKey> {
    /// The command's name.
    const OP: &'static str;
    /// The merge kernel's name, where there is a choice.
    fn kernel(&self) -> Option<&'static str> {
        None
    }
    /// How much memory to use, where files can be merged while they are read.
    fn memory(&self) -> Option<&MemoryArgs> {
        None
    }
    /// Whether these numbers of keys can be merged.
    fn check_counts(&self, _counts: &[u64]) -> Result<()> {
        Ok(())
    }
    /// The first key of `keys`, which are those of an input, that is less than the one before it where it must not be.
    fn first_unsorted(&self, input: usize, keys: &[K]) -> Option<usize>;
    /// Where the key at `index` of an input is, beyond its index.
    fn place(&self, _input: usize, _index: usize) -> String {
        String::new()
    }
    /// Merges keys.
    fn merge(&self, engine: &Engine, inputs: &[&[K]], out: &mut [K]) -> std::result::Result<Timing, Error>;
    /// Merges keys with values.
    fn merge_pairs<V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        inputs: &[Pairs<K, V>],
        out: PairsMut<K, V>,
    ) -> std::result::Result<Timing, Error>;
}

/// Keys, and the value of each.
pub type Pairs<'a, K, V> = (&'a [K], &'a [V]);
/// Room for keys, and for the value of each.
pub type PairsMut<'a, K, V> = (&'a mut [K], &'a mut [V]);

/// Merges the inputs, which have been opened, as `merging` does, and writes the output; with their values, where there are
/// some. Threads have been started.
pub fn run<K: FileKey, M: Merging<K>>(files: &Merge, mut inputs: Vec<Input>, merging: &M) -> Result<()> {
    let args = files.args;
    let mut stats = Stats::begin::<K>(M::OP);
    let counts = inputs.iter().map(Input::count::<K>).collect::<Result<Vec<_>>>()?;
    let known: Option<Vec<u64>> = counts.iter().copied().collect();
    known.map_or(Ok(()), |counts| merging.check_counts(&counts))?;
    let output = Output::prepare_keys::<K>(&args.output, &args.common, &inputs)?;
    output.check_space(counts.iter().flatten().map(|&count| u128::from(count)).sum::<u128>() * K::SIZE as u128)?;
    let values = ValueFiles::open(files, &counts, &output)?;
    if let Some(memory) = merging.memory()
        && let Some(external) = merge_through::plan::<K>(files, memory, &counts, values.as_ref(), &output)?
    {
        return merge_through::run::<K>(Through { files, external, inputs, counts, values, output, stats });
    }

    let mut engine = ChosenEngine::start::<K>(args.engine.engine, args.common.parallel)?;
    let order = order_of(args.reverse);
    let mut keys =
        stats.time(Phase::Read, || inputs.iter_mut().map(Input::read_all::<K>).collect::<Result<Vec<_>>>())?;
    stats.time(Phase::Compute, || keys.iter_mut().for_each(|keys| mirror(order, keys)));
    let counts: Vec<u64> = keys.iter().map(|keys| keys.len() as u64).collect();
    merging.check_counts(&counts)?;
    let values = values.map(|values| stats.time(Phase::Read, || values.read(files, &counts))).transpose()?;
    if !args.assume_sorted {
        stats.time(Phase::Check, || check_order(order, &inputs, &keys, merging))?;
    }
    stats.keys = counts.iter().sum();
    let keys: Vec<&[K]> = keys.iter().map(|keys| &**keys).collect();
    match values {
        Some(values) => {
            stats.value_size = Some(values.width);
            values.merge(order, merging, &mut engine, &keys, output, &mut stats)?;
        }
        None => {
            let mut out = memory::zeroed::<K>(stats.keys, "the output")?;
            let merge = |engine: &Engine, out: &mut Vec<K>| merging.merge(engine, &keys, out);
            // The inputs are still what they were, and every key of the output is written again.
            stats.add(engine.run(&mut out, merge, |_| Ok(true))?);
            stats.time(Phase::Compute, || mirror(order, &mut out));
            stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&out))?]))?;
        }
    }
    stats.engine = engine.name()?;
    stats.kernel = merging.kernel();
    stats.print(args.common.stats);
    Ok(())
}

/// An error that names the first key out of order, if there is one, of keys that [`mirror`] has made ascending.
fn check_order<K: FileKey>(
    order: SortOrder,
    inputs: &[Input],
    keys: &[Vec<K>],
    merging: &impl Merging<K>,
) -> Result<()> {
    for (i, (input, keys)) in inputs.iter().zip(keys).enumerate() {
        if let Some(index) = merging.first_unsorted(i, keys) {
            let mut pair = [keys[index - 1], keys[index]];
            mirror(order, &mut pair);
            return Err(not_sorted(order, input, &pair, index as u64, &merging.place(i, index)));
        }
    }
    Ok(())
}
