//! Sort of more than memory holds: sorted runs go to a temporary file, and are merged to the output. Sorted files are runs
//! already, so that this merges them, too.
//!
//! ```text
//!   input    │ chunk │ chunk │ chunk │ …      read, sorted and written at the same time, each in its own chunk
//!                │       │       │
//!   spill    │  run  │  run  │  run  │ …
//!                └───────┼───────┘
//!   output   ├───────────────────────────┤    one streaming pass, or several if there are too many runs
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `sizes` | how the memory is shared out |
//! | `coding` | keys as unsigned integers in the order that is wanted |
//! | `block` | a part of the input or of a run in memory |
//! | `chunks` | from the input to sorted runs |
//! | `run` | runs, spilled or in files, and reading them |
//! | `spill` | the temporary file, with checksums |
//! | `window` | how much of each run can be merged when only a part of each is in memory |
//! | `merge` | one streaming pass from many runs to one |
//! | `sink` | where merged keys go |
//!
mod block;
mod chunks;
mod coding;
mod merge;
mod run;
mod sink;
mod sizes;
mod spill;
mod window;

pub use block::{Along, Block};
pub use chunks::{KeyOf, Source};
pub use coding::Coding;
pub use run::SortedFile;
pub use sink::{Outputs, Target};
pub use sizes::Shape;
pub use spill::check_space;

use crate::engine::ChosenEngine;
use crate::error::Result;
use crate::key_type::FileKey;
use crate::stats::{Phase, Stats};
use chunks::{Chunk, Sorter, make_runs, write_run};
use merge::Pass;
use merge_host::Engine;
use run::{Run, SpilledRun};
use sink::{RunWriter, Sink};
use spill::Spill;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

/// How to sort, or to merge files.
#[derive(Debug)]
pub struct External {
    pub shape: Shape,
    /// Bytes of memory to use at most.
    pub memory: u64,
    /// Where runs are spilled to.
    pub folder: PathBuf,
    /// The most runs to merge at once.
    pub batch_size: Option<usize>,
    /// Whether only the first of equal keys is wanted.
    pub unique: bool,
}

impl External {
    /// Sorts what is left of `source`, and before it the keys in `first`, which were read from it already. Gives the
    /// outputs, which `begin` starts, with all that belongs there, and how many keys that is.
    pub fn sort<O: FileKey>(
        &self,
        mut source: Source<O>,
        first: Option<Vec<O>>,
        mut engine: ChosenEngine,
        begin: impl FnOnce() -> Result<Outputs<O>>,
        stats: &mut Stats,
    ) -> Result<(Outputs<O>, u64)> {
        let fan_in = self.shape.fan_in(self.memory, self.batch_size)?;
        let spill = Arc::new(Spill::create(&self.folder)?);
        let runs = self.make_runs(&mut source, first, &mut engine, &spill, stats)?;
        stats.keys = source.position;
        stats.engine = engine.name()?;

        let runs = runs.into_iter().map(Run::Spilled).collect();
        self.merge_runs(runs, fan_in, Some(spill), &engine.into_cpu()?, begin, stats)
    }

    /// Merges sorted files, of which those with keys that nobody has counted are no more than [`fan_in`](Shape::fan_in).
    /// Gives the target, which `begin` makes, with all that belongs there, and how many keys that is.
    pub fn merge<O: FileKey, T: Target<O>>(
        &self,
        files: Vec<SortedFile<O>>,
        engine: &Engine,
        begin: impl FnOnce() -> Result<T>,
        stats: &mut Stats,
    ) -> Result<(T, u64)> {
        let fan_in = self.shape.fan_in(self.memory, self.batch_size)?;
        self.merge_runs(
            files.into_iter().map(|file| Run::File(Box::new(file))).collect(),
            fan_in,
            None,
            engine,
            begin,
            stats,
        )
    }

    /// Merges runs, at most `fan_in` at once. What is merged again goes to `spill`.
    fn merge_runs<O: FileKey, T: Target<O>>(
        &self,
        mut runs: Vec<Run<O>>,
        fan_in: usize,
        mut spill: Option<Arc<Spill>>,
        engine: &Engine,
        begin: impl FnOnce() -> Result<T>,
        stats: &mut Stats,
    ) -> Result<(T, u64)> {
        let pass = Pass { shape: self.shape, memory: self.memory };
        while runs.len() > fan_in {
            let spill = match &mut spill {
                Some(spill) => &*spill,
                None => spill.insert(Arc::new(Spill::create(&self.folder)?)),
            };
            runs = reduced(runs, fan_in, |mut group| {
                let count = group.iter().filter_map(Run::count).sum();
                let sink = Sink::new(RunWriter::begin(spill, count, O::SIZE, self.shape.along.width()), self.unique);
                let run = pass.merge(engine, &mut group, sink, stats)?.target.finish();
                group.into_iter().for_each(Run::release);
                Ok(Run::Spilled(run))
            })?;
        }
        let sink = pass.merge(engine, &mut runs, Sink::new(begin()?, self.unique), stats)?;
        Ok((sink.target, sink.count))
    }

    fn make_runs<O: FileKey>(
        &self,
        source: &mut Source<O>,
        first: Option<Vec<O>>,
        engine: &mut ChosenEngine,
        spill: &Arc<Spill>,
        stats: &mut Stats,
    ) -> Result<Vec<SpilledRun>> {
        let chunk = self.shape.chunk(self.memory, engine.device_memory()?)?;
        let mut sorter = Sorter::new(engine, self.unique, source)?;
        let mut runs = Vec::new();
        if let Some(first) = first {
            let mut block = Block::new(chunk.min(first.len()), self.shape.along.width())?;
            for keys in first.chunks(chunk) {
                block.keys[..keys.len()].copy_from_slice(keys);
                let before = source.position;
                source.prepare(&mut block, 0..keys.len())?;
                let count = sorter.sort(&mut block, Chunk { count: keys.len(), before }, stats)?;
                runs.push(stats.time(Phase::Write, || write_run(spill, &mut block, count))?);
            }
        }
        runs.extend(make_runs::<O>(source, &mut sorter, spill, chunk, stats)?);
        Ok(runs)
    }
}

/// Merges groups of neighbouring runs to one each, from the first on: no more than it takes for `fan_in` to be left, and
/// each run once at most.
fn reduced<R>(runs: Vec<R>, fan_in: usize, mut merge: impl FnMut(Vec<R>) -> Result<R>) -> Result<Vec<R>> {
    let mut reduced = Vec::new();
    let mut rest = runs.into_iter();
    loop {
        let excess = (reduced.len() + rest.len()).saturating_sub(fan_in);
        let group: Vec<R> = rest.by_ref().take(fan_in.min(excess + 1)).collect();
        match group.len() {
            0 => return Ok(reduced),
            1 => reduced.extend(group),
            _ => reduced.push(merge(group)?),
        }
    }
}

/// What a thread gives in the end.
fn joined<T>(thread: ScopedJoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_runs_are_merged_in_order_and_no_more_than_it_takes() {
        let merge = |group: Vec<Vec<u32>>| Ok(group.concat());
        for (count, fan_in) in [(1, 2), (2, 2), (3, 2), (17, 16), (31, 16), (256, 16), (257, 16), (1000, 3)] {
            let mut runs: Vec<Vec<u32>> = (0..count).map(|run| vec![run]).collect();
            let mut merged = 0;
            while runs.len() > fan_in {
                let before = runs.len();
                runs = reduced(runs, fan_in, |group: Vec<Vec<u32>>| {
                    assert!((2..=fan_in).contains(&group.len()));
                    merged += group.iter().map(Vec::len).sum::<usize>();
                    merge(group)
                })
                .unwrap();
                assert!(runs.len() < before && runs.len() >= fan_in.min(before.div_ceil(fan_in)));
            }
            assert!(runs.concat().into_iter().eq(0..count), "{count} {fan_in}");
            if (count, fan_in) == (17, 16) {
                assert_eq!(merged, 2);
            }
        }
    }
}
