//! Merge of any number of runs, in several passes if necessary.

use super::error::Error;
use super::merge::Pass;
use super::observer::Observer;
use super::run::{Run, RunWriter};
use super::sink::Sink;
use super::source::{Begin, Source};
use super::spill::Spills;
use super::threads::Helpers;
use super::{Options, Summary};
use crate::{Engine, Word};

/// Merges runs to a target, and counts keys and runs.
pub(super) struct Merger<'a, O> {
    pub(super) options: &'a Options,
    pub(super) engine: &'a Engine,
    pub(super) helpers: Helpers,
    pub(super) observer: &'a mut O,
    /// The temporary file for runs, created at the first use.
    pub(super) spills: Option<Spills>,
    pub(super) summary: Summary,
}

impl<O: Observer> Merger<'_, O> {
    /// Merges `runs`, at most `fan_in` at once, to the target that `begin` opens. Equal keys keep the order of their
    /// runs.
    pub(super) fn merge<W, S, E>(
        mut self,
        mut runs: Vec<Run<W, S>>,
        fan_in: usize,
        begin: Begin<W, E>,
    ) -> Result<Summary, Error<E>>
    where
        W: Word,
        S: Source<W, Error = E>,
        E: Send,
    {
        while runs.len() > fan_in {
            runs = reduced(runs, fan_in, |group| self.merge_to_run(group))?;
        }
        let target = begin().map_err(Error::Other)?;
        self.summary.keys_written =
            self.pass(runs, false, |keys, payload| target.write(keys, payload).map_err(Error::Other))?;
        Ok(self.summary)
    }

    /// Merges a group of runs to one run in the temporary file.
    fn merge_to_run<W, S, E>(&mut self, group: Vec<Run<W, S>>) -> Result<Run<W, S>, Error<E>>
    where
        W: Word,
        S: Source<W, Error = E>,
        E: Send,
    {
        let spills = match &self.spills {
            Some(spills) => spills,
            None => self.spills.insert(Spills::create(&self.options.folders)?),
        };
        let mut writer = RunWriter::new(spills.next());
        self.pass(group, true, |keys, payload| Ok(writer.write(keys, payload)?))?;
        self.summary.runs += 1;
        Ok(Run::Spilled(writer.finish()))
    }

    /// Merges `runs` at once, and frees their space in the temporary file. `write` takes the keys, and writes them to
    /// the temporary file if `is_spilled`. Returns the number of keys written.
    fn pass<W, S, E>(
        &mut self,
        mut runs: Vec<Run<W, S>>,
        is_spilled: bool,
        mut write: impl FnMut(&mut [W], &mut [u8]) -> Result<(), Error<E>> + Send,
    ) -> Result<u64, Error<E>>
    where
        W: Word,
        S: Source<W, Error = E>,
        E: Send,
    {
        let Self { options, engine, helpers, .. } = self;
        let pass = Pass { shape: options.shape::<W>(), memory: options.memory, engine, helpers };
        let sink = Sink::new(&mut write, is_spilled, options.unique);
        let written = pass.merge(&mut runs, sink, self.observer)?;
        self.summary.keys_read += runs.into_iter().map(Run::release).sum::<u64>();
        Ok(written)
    }
}

/// Merges groups of neighbouring runs to one run each, from the first run on. Merges only the groups that are necessary
/// to leave `fan_in` runs, and each run at most once.
fn reduced<R, E>(runs: Vec<R>, fan_in: usize, mut merge: impl FnMut(Vec<R>) -> Result<R, E>) -> Result<Vec<R>, E> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_runs_are_merged_in_order_and_no_more_than_it_takes() {
        for (count, fan_in) in [(1, 2), (2, 2), (3, 2), (17, 16), (31, 16), (256, 16), (257, 16), (1000, 3)] {
            let mut runs: Vec<Vec<u32>> = (0..count).map(|run| vec![run]).collect();
            let mut merged = 0;
            while runs.len() > fan_in {
                let before = runs.len();
                let merge = |group: Vec<Vec<u32>>| {
                    assert!((2..=fan_in).contains(&group.len()));
                    merged += group.iter().map(Vec::len).sum::<usize>();
                    Ok::<_, ()>(group.concat())
                };
                runs = reduced(runs, fan_in, merge).unwrap();
                assert!(runs.len() < before && runs.len() >= fan_in.min(before.div_ceil(fan_in)));
            }
            assert!(runs.concat().into_iter().eq(0..count), "{count} {fan_in}");
            if (count, fan_in) == (17, 16) {
                assert_eq!(merged, 2);
            }
        }
    }
}
