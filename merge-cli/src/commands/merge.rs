//! `gmerge merge`

use super::pair::{self, Pairing, Pairs, PairsMut};
use crate::args::{Kernel, MergeArgs};
use crate::error::{Failure, Result};
use crate::key_type::{FileKey, with_key_type};
use crate::order::first_unsorted;
use bytemuck::Pod;
use merge_host::{Engine, Error, MergeKernel, Timing};

pub fn run(args: &MergeArgs) -> Result<()> {
    if args.pair.values.is_some() && !matches!(args.kernel, Kernel::Auto | Kernel::MergePath) {
        let kernel = MergeKernel::from(args.kernel);
        return Err(Failure::new(format!(
            "--kernel {kernel} merges keys only; with --values, take auto or merge-path, which are the same"
        )));
    }
    let whole = Whole { kernel: args.kernel.into() };
    let (inputs, key_type) = pair::open(&args.pair)?;
    with_key_type!(key_type, K => pair::run::<K, _>(&args.pair, inputs, &whole))
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
