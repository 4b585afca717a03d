//! `gmerge merge`

use super::files0;
use super::pair::{self, Merge, Merging, Pairs, PairsMut};
use crate::args::{Kernel, MemoryArgs, MergeArgs, MergingArgs, SortArgs};
use crate::engine::start_threads;
use crate::error::{Failure, Result};
use crate::key_type::{FileKey, with_key_type};
use crate::order::first_unsorted;
use bytemuck::Pod;
use merge_host::{Engine, Error, MergeKernel, Timing};
use std::path::PathBuf;

pub fn run(args: &MergeArgs) -> Result<()> {
    let names = args.files0_from.as_deref().map(files0::read).transpose()?;
    let (inputs, values) = files(args, names.as_deref().unwrap_or(&args.inputs))?;
    let kernel = MergeKernel::from(args.kernel);
    if inputs.len() != 2 && args.kernel != Kernel::Auto {
        let count = inputs.len();
        return Err(Failure::new(format!("--kernel {kernel} merges two files, found {count}; take auto")));
    }
    if values.is_some() && !matches!(args.kernel, Kernel::Auto | Kernel::MergePath) {
        return Err(Failure::new(format!(
            "--kernel {kernel} merges keys only; with --values, take auto or merge-path, which are the same"
        )));
    }
    // The other kernels show how it is done, in memory.
    let memory = matches!(args.kernel, Kernel::Auto | Kernel::MergePath).then_some(&args.memory);
    let whole = Whole { kernel: (inputs.len() == 2).then_some(kernel), memory };
    let files = Merge::new(inputs, values, &args.merging);
    start_threads(args.merging.common.parallel)?;
    let (inputs, key_type) = files.open()?;
    with_key_type!(key_type, K => pair::run::<K, _>(&files, inputs, &whole))
}

/// The files of keys and of their values.
fn files<'a>(args: &'a MergeArgs, inputs: &'a [PathBuf]) -> Result<(&'a [PathBuf], Option<&'a [PathBuf]>)> {
    let Some(values) = &args.values else { return Ok((inputs, None)) };
    if inputs.is_empty() && values.len().is_multiple_of(2) {
        // Nothing tells where the values' files end, but that there are as many of keys.
        let (values, inputs) = values.split_at(values.len() / 2);
        return Ok((inputs, Some(values)));
    }
    let (count, expected) = (values.len(), inputs.len());
    if count != expected {
        return Err(Failure::new(format!(
            "--values names {count} files, expected {expected}, one for each file of keys"
        )));
    }
    Ok((inputs, Some(values)))
}

/// What `gmerge sort -m` asks for, as `gmerge merge` would have it.
pub fn of_sort(args: &SortArgs) -> MergeArgs {
    MergeArgs {
        inputs: [&args.input].into_iter().chain(&args.more).cloned().collect(),
        files0_from: None,
        values: None,
        merging: MergingArgs {
            output: args.output.as_output(),
            values_out: None,
            reverse: args.reverse,
            assume_sorted: false,
            engine: args.engine.clone(),
            common: args.common.clone(),
        },
        kernel: Kernel::Auto,
        memory: args.memory.clone(),
    }
}

/// One run in each file.
struct Whole<'a> {
    /// For two files.
    kernel: Option<MergeKernel>,
    memory: Option<&'a MemoryArgs>,
}

impl<K: FileKey> Merging<K> for Whole<'_> {
    const OP: &'static str = "merge";

    fn memory(&self) -> Option<&MemoryArgs> {
        self.memory
    }

    fn kernel(&self) -> Option<&'static str> {
        self.kernel.map(MergeKernel::name)
    }

    fn first_unsorted(&self, _input: usize, keys: &[K]) -> Option<usize> {
        first_unsorted(keys)
    }

    fn merge(&self, engine: &Engine, inputs: &[&[K]], out: &mut [K]) -> std::result::Result<Timing, Error> {
        match (inputs, self.kernel) {
            ([a, b], Some(kernel)) => engine.merge_with(kernel, a, b, out),
            _ => engine.merge_many(inputs, out),
        }
    }

    fn merge_pairs<V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        inputs: &[Pairs<K, V>],
        out: PairsMut<K, V>,
    ) -> std::result::Result<Timing, Error> {
        match inputs {
            [a, b] => engine.merge_pairs(*a, *b, out),
            _ => engine.merge_many_pairs(inputs, out),
        }
    }
}
