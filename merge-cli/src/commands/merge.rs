//! `gmerge merge`

use super::pair::{self, Merge, Merging, Pairs, PairsMut};
use crate::args::{Kernel, MergeArgs};
use crate::engine::start_threads;
use crate::error::{Failure, Result};
use crate::key_type::{FileKey, with_key_type};
use crate::order::first_unsorted;
use bytemuck::Pod;
use merge_host::{Engine, Error, MergeKernel, Timing};
use std::path::PathBuf;

pub fn run(args: &MergeArgs) -> Result<()> {
    let (inputs, values) = files(args)?;
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
    let whole = Whole { kernel: (inputs.len() == 2).then_some(kernel) };
    let files = Merge::new(inputs, values, &args.merging);
    start_threads(args.merging.common.parallel)?;
    with_key_type!(files.key_type()?, K => pair::run::<K, _>(&files, &whole))
}

/// The files of keys and of their values.
fn files(args: &MergeArgs) -> Result<(&[PathBuf], Option<&[PathBuf]>)> {
    let Some(values) = &args.values else { return Ok((&args.inputs, None)) };
    if args.inputs.is_empty() && values.len().is_multiple_of(2) {
        // Nothing tells where the values' files end, but that there are as many of keys.
        let (values, inputs) = values.split_at(values.len() / 2);
        return Ok((inputs, Some(values)));
    }
    let (count, expected) = (values.len(), args.inputs.len());
    if count != expected {
        return Err(Failure::new(format!(
            "--values names {count} files, expected {expected}, one for each file of keys"
        )));
    }
    Ok((&args.inputs, Some(values)))
}

/// One run in each file.
struct Whole {
    /// For two files.
    kernel: Option<MergeKernel>,
}

impl<K: FileKey> Merging<K> for Whole {
    const OP: &'static str = "merge";

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
