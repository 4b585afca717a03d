//! The runs that a merge in memory merges.

use super::order::{first_disorder, first_disorder_between, first_disorder_in_runs, not_sorted};
use crate::coding::Word;
use crate::file::Input;
use crate::file::offsets::Offsets;
use crate::say::error::{Failure, Result, name};
use bytemuck::Pod;
use merge_host::{Elements, ElementsMut, Engine, Error, MergeKernel, Timing};

/// The runs to merge. Except with `Whole`, there are two inputs.
#[derive(Debug)]
pub enum Runs {
    /// Each input is a run. The kernel is for two inputs.
    Whole(Option<MergeKernel>),
    /// Each merge gives `d` keys: `a_len` from the first input, and the others from the second.
    OfLength { d: usize, a_len: usize },
    /// Each input has runs between these offsets.
    Between([Offsets; 2]),
}

impl Runs {
    /// An error unless these numbers of keys of the inputs can be merged.
    pub fn check_counts(&self, inputs: &[Input], counts: &[u64]) -> Result<()> {
        match self {
            Self::Whole(_) => Ok(()),
            Self::OfLength { d, a_len } => check_lengths(inputs, counts, [*a_len, d - a_len]),
            Self::Between(offsets) => {
                let mut inputs = offsets.iter().zip(inputs).zip(counts);
                inputs.try_for_each(|((offsets, input), &count)| offsets.check(input.path(), count))
            }
        }
    }

    /// An error that names the first key out of order: less than its predecessor in the same run. `keys` are all keys
    /// of `input`, which is the input with this index.
    pub fn check_order<W: Word>(&self, index: usize, input: &Input, keys: &[W]) -> Result<()> {
        let (disorder, length) = match self {
            Self::Whole(_) => (first_disorder(keys, false), 0),
            Self::OfLength { d, a_len } => {
                let length = if index == 0 { *a_len } else { d - a_len };
                (first_disorder_in_runs(keys, length), length)
            }
            Self::Between(offsets) => (first_disorder_between(keys, offsets[index].get()), 0),
        };
        let Some(i) = disorder else { return Ok(()) };
        // The location of the key, and the flags of `gmerge sort` that sort such a file.
        let (location, flags) = match self {
            Self::Whole(_) => Default::default(),
            Self::OfLength { .. } => (format!(" (in run {})", i / length), format!(" --segment-len {length}")),
            Self::Between(offsets) => {
                let offsets = &offsets[index];
                (format!(" (in run {})", offsets.run_of(i)), format!(" --segments {}", offsets.name()))
            }
        };
        Err(not_sorted(input, [keys[i - 1], keys[i]], i as u64, &location, &flags))
    }

    /// Merges keys, alone or with values.
    pub fn merge<W: Word, V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        inputs: &[impl Elements<W, V> + Copy + Sync],
        out: impl ElementsMut<W, V>,
    ) -> std::result::Result<Timing, Error> {
        match (self, inputs) {
            (Self::Whole(Some(kernel)), &[a, b]) => engine.merge_with(*kernel, a, b, out),
            (Self::Whole(_), _) => engine.merge_many(inputs, out),
            (Self::OfLength { d, a_len }, _) => engine.merge_batch(inputs[0], inputs[1], out, *d, *a_len),
            (Self::Between([a, b]), _) => engine.merge_ragged((inputs[0], a.get()), (inputs[1], b.get()), out),
        }
    }
}

/// An error unless inputs of these numbers of keys have the same number of runs, of `lengths` keys in A and in B.
fn check_lengths(inputs: &[Input], counts: &[u64], lengths: [usize; 2]) -> Result<()> {
    let mut runs = [None; 2];
    for (i, &count) in counts.iter().enumerate() {
        let (name, length) = (name(inputs[i].path()), lengths[i] as u64);
        // If the runs of a side have no keys, their number is the number of runs of the other side.
        if length == 0 && count > 0 {
            let side = ["A", "B"][i];
            return Err(Failure::new(format!(
                "{name}: has {count} keys, expected none: -d and --a-len leave no keys of {side} in a run"
            )));
        }
        if length > 0 {
            if !count.is_multiple_of(length) {
                return Err(Failure::new(format!(
                    "{name}: has {count} keys, expected a multiple of {length}, \
                     the length of its runs by -d and --a-len"
                )));
            }
            runs[i] = Some(count / length);
        }
    }
    if let [Some(of_a), Some(of_b)] = runs
        && of_a != of_b
    {
        let [a_name, b_name] = [0, 1].map(|i| name(inputs[i].path()));
        let ([a_len, b_len], a, b) = (lengths, counts[0], counts[1]);
        return Err(Failure::new(format!(
            "{a_name}: {a} keys in runs of {a_len} make {of_a}, expected as many runs as in {b_name}: \
             {b} keys in runs of {b_len} make {of_b}"
        )));
    }
    Ok(())
}
