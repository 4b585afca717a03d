//! `gmerge batch`

use super::pair::{self, Merge, Merging, Pairs, PairsMut};
use crate::args::BatchArgs;
use crate::engine::start_threads;
use crate::error::{Failure, Result, name};
use crate::key_type::{FileKey, with_key_type};
use crate::offsets::Offsets;
use crate::order::{first_unsorted_between, first_unsorted_in_runs};
use bytemuck::Pod;
use merge_host::{Engine, Error, Timing};
use std::path::Path;

pub fn run(args: &BatchArgs) -> Result<()> {
    let files = Merge::new([&args.a, &args.b], args.values.as_deref(), &args.merging);
    let key_type = files.key_type()?;
    if let Some([a, b]) = args.offsets.as_deref() {
        files.check_standard_input([("OA", a), ("OB", b)])?;
        start_threads(args.merging.common.parallel)?;
        let ragged = RaggedRuns { offsets: [Offsets::read(a)?, Offsets::read(b)?], paths: [&args.a, &args.b] };
        ragged.offsets[0].check_as_many(&ragged.offsets[1])?;
        return with_key_type!(key_type, K => pair::run::<K, _>(&files, &ragged));
    }
    // Without offsets, clap asks for it.
    let d = args.d.unwrap_or(1);
    let a_len = args.a_len.unwrap_or(d / 2);
    if a_len > d {
        return Err(Failure::new(format!("--a-len is {a_len}, expected at most {d}, the -d given")));
    }
    start_threads(args.merging.common.parallel)?;
    let runs = Runs { d, lengths: [a_len, d - a_len], names: [&args.a, &args.b].map(|path| name(path)) };
    with_key_type!(key_type, K => pair::run::<K, _>(&files, &runs))
}

/// Many runs in each file, all of one length.
struct Runs {
    d: usize,
    /// Keys of a run, in A and in B.
    lengths: [usize; 2],
    /// The files' names, for messages.
    names: [String; 2],
}

impl<K: FileKey> Merging<K> for Runs {
    const OP: &'static str = "batch";

    fn check_counts(&self, counts: &[u64]) -> Result<()> {
        let mut runs = [None; 2];
        for (i, &count) in counts.iter().enumerate() {
            let (name, length) = (&self.names[i], self.lengths[i] as u64);
            // Of runs without keys, there are as many as are needed.
            if length == 0 && count > 0 {
                let side = ["A", "B"][i];
                return Err(Failure::new(format!(
                    "{name}: has {count} keys, expected none: -d and --a-len leave no keys of {side} in a run"
                )));
            }
            if length > 0 {
                if !count.is_multiple_of(length) {
                    return Err(Failure::new(format!(
                        "{name}: has {count} keys, expected a multiple of {length}, the length of its runs"
                    )));
                }
                runs[i] = Some(count / length);
            }
        }
        if let [Some(of_a), Some(of_b)] = runs
            && of_a != of_b
        {
            let [a_name, b_name] = &self.names;
            let [a_len, b_len] = self.lengths;
            let (a, b) = (counts[0], counts[1]);
            return Err(Failure::new(format!(
                "{a_name}: {a} keys in runs of {a_len} make {of_a}, expected as many runs as in \
                 {b_name}: {b} keys in runs of {b_len} make {of_b}"
            )));
        }
        Ok(())
    }

    fn first_unsorted(&self, input: usize, keys: &[K]) -> Option<usize> {
        first_unsorted_in_runs(keys, self.lengths[input])
    }

    fn place(&self, input: usize, index: usize) -> String {
        format!(" (in run {})", index / self.lengths[input])
    }

    fn merge(&self, engine: &Engine, inputs: &[&[K]], out: &mut [K]) -> std::result::Result<Timing, Error> {
        engine.merge_batch(inputs[0], inputs[1], out, self.d, self.lengths[0])
    }

    fn merge_pairs<V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        inputs: &[Pairs<K, V>],
        out: PairsMut<K, V>,
    ) -> std::result::Result<Timing, Error> {
        engine.merge_batch_pairs(inputs[0], inputs[1], out, self.d, self.lengths[0])
    }
}

/// Many runs in each file, of any lengths.
struct RaggedRuns<'a> {
    /// Where the runs of A and of B begin.
    offsets: [Offsets; 2],
    paths: [&'a Path; 2],
}

impl<K: FileKey> Merging<K> for RaggedRuns<'_> {
    const OP: &'static str = "batch";

    fn check_counts(&self, counts: &[u64]) -> Result<()> {
        let mut inputs = self.offsets.iter().zip(self.paths).zip(counts);
        inputs.try_for_each(|((offsets, path), &count)| offsets.check(path, count))
    }

    fn first_unsorted(&self, input: usize, keys: &[K]) -> Option<usize> {
        first_unsorted_between(keys, self.offsets[input].get())
    }

    fn place(&self, input: usize, index: usize) -> String {
        format!(" (in run {})", self.offsets[input].run_of(index))
    }

    fn merge(&self, engine: &Engine, inputs: &[&[K]], out: &mut [K]) -> std::result::Result<Timing, Error> {
        let [a, b] = self.offsets.each_ref().map(Offsets::get);
        engine.merge_ragged((inputs[0], a), (inputs[1], b), out)
    }

    fn merge_pairs<V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        inputs: &[Pairs<K, V>],
        out: PairsMut<K, V>,
    ) -> std::result::Result<Timing, Error> {
        let [a, b] = self.offsets.each_ref().map(Offsets::get);
        engine.merge_ragged_pairs((inputs[0].0, inputs[0].1, a), (inputs[1].0, inputs[1].1, b), out)
    }
}
