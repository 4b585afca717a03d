//! `gmerge merge`

use super::files0;
use super::pair::{self, Pairing, Pairs, PairsMut};
use crate::args::{Kernel, MergeArgs, OutputArgs, PairArgs, SortArgs};
use crate::error::{Failure, Result};
use crate::key_type::{FileKey, with_key_type};
use crate::order::first_unsorted;
use bytemuck::Pod;
use merge_host::{Engine, Error, MergeKernel, Timing};
use std::path::PathBuf;

pub fn run(args: &MergeArgs) -> Result<()> {
    if args.values.is_some() && !matches!(args.kernel, Kernel::Auto | Kernel::MergePath) {
        let kernel = MergeKernel::from(args.kernel);
        return Err(Failure::new(format!(
            "--kernel {kernel} merges keys only; with --values, take auto or merge-path, which are the same"
        )));
    }
    let whole = Whole { kernel: args.kernel.into() };
    let pair = pair_of(args)?;
    with_key_type!(pair::key_type(&pair)?, K => pair::run::<K, _>(&pair, &whole))
}

/// What `gmerge sort -m` asks for, as `gmerge merge` would have it.
pub fn of_sort(args: &SortArgs) -> MergeArgs {
    MergeArgs {
        inputs: [&args.input].into_iter().chain(&args.more).cloned().collect(),
        files0_from: None,
        output: OutputArgs { output: args.output.output.clone() },
        values: None,
        values_out: None,
        assume_sorted: false,
        engine: args.engine.clone(),
        common: args.common.clone(),
        kernel: Kernel::Auto,
    }
}

/// The two files to merge.
fn pair_of(args: &MergeArgs) -> Result<PairArgs> {
    let inputs = match &args.files0_from {
        Some(list) => files0::read(list)?,
        None => args.inputs.clone(),
    };
    let [a, b] = <[PathBuf; 2]>::try_from(inputs)
        .map_err(|inputs| Failure::new(format!("expected 2 files to merge, found {}", inputs.len())))?;
    Ok(PairArgs {
        a,
        b,
        output: args.output.clone(),
        values: args.values.clone(),
        values_out: args.values_out.clone(),
        assume_sorted: args.assume_sorted,
        engine: args.engine.clone(),
        common: args.common.clone(),
    })
}

/// One run in each file.
struct Whole {
    kernel: MergeKernel,
}

impl<K: FileKey> Pairing<K> for Whole {
    const OP: &'static str = "merge";

    fn kernel(&self) -> Option<&'static str> {
        Some(self.kernel.name())
    }

    fn check_counts(&self, _a: u64, _b: u64) -> Result<()> {
        Ok(())
    }

    fn first_unsorted(&self, a: &[K], b: &[K]) -> [Option<usize>; 2] {
        [first_unsorted(a), first_unsorted(b)]
    }

    fn merge(&self, engine: &Engine, a: &[K], b: &[K], out: &mut [K]) -> std::result::Result<Timing, Error> {
        engine.merge_with(self.kernel, a, b, out)
    }

    fn merge_pairs<V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        a: Pairs<K, V>,
        b: Pairs<K, V>,
        out: PairsMut<K, V>,
    ) -> std::result::Result<Timing, Error> {
        engine.merge_pairs(a, b, out)
    }
}
