//! One streaming pass from many runs to one.
//!
//! Of each run there is a window in memory, and the block behind it is read meanwhile. In each round, all that can be
//! merged of the windows (see [`window`](super::window)) is, with all threads, to a block of output, which is written
//! while the next round goes on.
//!
//! ```text
//!   a run's two blocks    │ head │ window ┄┄┄┄┄┄┄┄┄ │    what is left of the window when it has become short …
//!                              ┌──────────────┘
//!                              ▼
//!                         │ head │ being read       │    … goes before what was read, which then is the window
//! ```
//!
//! So a window is always one piece of memory, and each key is copied once at most on its way into it.

use super::block::Block;
use super::joined;
use super::run::{Reader, Run};
use super::sink::{Sink, Target};
use super::sizes::{Shape, head};
use super::window::{Window, cuts};
use crate::error::{Failure, Result};
use crate::key_type::FileKey;
use crate::memory;
use crate::stats::{Phase, Stats};
use merge_host::Engine;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Blocks of output: one is merged to, one written.
const OUTPUTS: usize = 2;
/// Values that a thread gathers at once.
const PIECE: usize = 1 << 14;

/// What a pass needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    pub shape: Shape,
    pub memory: u64,
}

impl Pass {
    /// Merges `runs` to `sink`, and gives it back. Of equal keys, those of an earlier run come first.
    pub fn merge<O: FileKey, T: Target<O>>(
        self,
        engine: &Engine,
        runs: &mut [Run<O>],
        sink: Sink<O, T>,
        stats: &mut Stats,
    ) -> Result<Sink<O, T>> {
        let width = self.shape.along.width();
        // Of one whose length nobody knows, all blocks are full, as far as we know.
        let longest = runs.iter().map(|run| run.count().unwrap_or(u64::MAX)).max().unwrap_or(0);
        let (slot, count) = (self.shape.slot(self.memory, runs.len()), runs.len());
        let slot = slot.min(usize::try_from(longest).unwrap_or(slot).saturating_add(head(slot)));
        std::thread::scope(|scope| {
            let (requests, requested) = channel();
            let (replies, streams) = runs
                .iter_mut()
                .enumerate()
                .map(|(number, run)| {
                    let (reply, ahead) = channel();
                    let (reader, block) = (run.reader(), Block::<O>::new(slot, width)?);
                    let behind = reader.left();
                    let _ = requests.send((number, Reading { reader, block, range: 0..0 }));
                    Ok((reply, Stream { window: Block::new(slot, width)?, range: 0..0, behind, number, ahead }))
                })
                .collect::<Result<(Vec<_>, Vec<_>)>>()?;
            let reader = scope.spawn(move || read_ahead(&requested, &replies));

            let (give_back, empty) = channel();
            for _ in 0..OUTPUTS {
                let _ = give_back.send(Block::new(slot * count, width)?);
            }
            let (merged, unwritten) = sync_channel::<(Block<O>, usize)>(1);
            let writer = scope.spawn(move || {
                let mut sink = sink;
                for (mut block, count) in unwritten {
                    sink.put(&mut block, count)?;
                    let _ = give_back.send(block);
                }
                Ok(sink)
            });

            let places = if width == 0 { 0 } else { slot * count } as u64;
            let mut merge = Merge {
                engine,
                streams,
                requests,
                slot,
                places: memory::zeroed(places, "the values' places")?,
                merged: memory::zeroed(places, "the values' merged places")?,
            };
            merge.places.par_iter_mut().enumerate().for_each(|(i, place)| *place = i as u32);
            let merging = merge.rounds(&empty, &merged, stats);
            // Now the others have nothing more to wait for.
            drop((merge, merged));
            let sink = stats.time(Phase::Write, || joined(writer));
            joined(reader)?;
            merging?;
            sink
        })
    }
}

/// What is read of a run: where, and to which block.
#[derive(Debug)]
struct Reading<'a, O> {
    reader: Reader<'a, O>,
    block: Block<O>,
    /// The keys of the block that were read.
    range: Range<usize>,
}

impl<O: FileKey> Reading<'_, O> {
    /// Fills the block behind its head.
    fn read(&mut self) -> Result<()> {
        let room = self.block.keys.len();
        self.range = self.reader.read(&mut self.block, head(room)..room)?;
        Ok(())
    }
}

/// Reads what is asked for, by the number of the run, and sends it where that run's blocks are waited for.
fn read_ahead<'a, O: FileKey>(
    requested: &Receiver<(usize, Reading<'a, O>)>,
    replies: &[Sender<Result<Reading<'a, O>>>],
) -> Result<()> {
    while let Ok(first) = requested.recv() {
        let all: Vec<_> = [first].into_iter().chain(requested.try_iter()).collect();
        all.into_par_iter().for_each(|(number, mut reading)| {
            // Nobody waits for it any more where something else failed.
            let _ = replies[number].send(reading.read().map(|()| reading));
        });
    }
    Ok(())
}

/// A run as far as it is in memory.
#[derive(Debug)]
struct Stream<'a, O> {
    window: Block<O>,
    /// The keys of the window that are not merged yet.
    range: Range<usize>,
    /// Keys of the run that come after the window, at most.
    behind: u64,
    number: usize,
    ahead: Receiver<Result<Reading<'a, O>>>,
}

impl<'a, O: FileKey> Stream<'a, O> {
    /// Sees to it that the window is not short, unless the run ends.
    fn refill(&mut self, requests: &Sender<(usize, Reading<'a, O>)>, stats: &mut Stats) -> Result<()> {
        let left = self.range.len();
        if self.behind == 0 || left > head(self.window.keys.len()) {
            return Ok(());
        }
        let reading = stats.time(Phase::Read, || self.ahead.recv());
        let mut reading = reading.map_err(|_| Failure::new("the thread that reads sorted runs has ended"))??;
        let begin = reading.range.start - left;
        let (keys, values) = reading.block.parts(begin..reading.range.start);
        keys.copy_from_slice(&self.window.keys[self.range.clone()]);
        values.copy_from_slice(self.window.values(self.range.clone()));
        self.range = begin..reading.range.end;
        self.behind = reading.reader.left();
        std::mem::swap(&mut self.window, &mut reading.block);
        if self.behind > 0 {
            // It fails only where the thread has ended, which the next one to wait will see.
            let _ = requests.send((self.number, reading));
        }
        Ok(())
    }

    fn window(&self) -> Window<'_, O> {
        Window { keys: &self.window.keys[self.range.clone()], goes_on: self.behind > 0 }
    }
}

struct Merge<'e, 'a, O> {
    engine: &'e Engine,
    streams: Vec<Stream<'a, O>>,
    requests: Sender<(usize, Reading<'a, O>)>,
    /// Keys of a block.
    slot: usize,
    /// The place of each value in all runs' blocks as if these lay one after the other: 0, 1, 2 and so on.
    places: Vec<u32>,
    /// Room for as many.
    merged: Vec<u32>,
}

impl<O: FileKey> Merge<'_, '_, O> {
    /// Merges round by round to blocks from `empty`, and sends them on to `merged`, until nothing is left or nobody
    /// takes them.
    fn rounds(
        &mut self,
        empty: &Receiver<Block<O>>,
        merged: &SyncSender<(Block<O>, usize)>,
        stats: &mut Stats,
    ) -> Result<()> {
        loop {
            for stream in &mut self.streams {
                stream.refill(&self.requests, stats)?;
            }
            let cuts = cuts(&self.streams.iter().map(Stream::window).collect::<Vec<_>>());
            let count = cuts.iter().sum();
            if count == 0 {
                return Ok(());
            }
            let Ok(mut block) = stats.time(Phase::Write, || empty.recv()) else { return Ok(()) };
            stats.time(Phase::Compute, || self.merge(&cuts, &mut block, count))?;
            for (stream, cut) in self.streams.iter_mut().zip(&cuts) {
                stream.range.start += cut;
            }
            if stats.time(Phase::Write, || merged.send((block, count))).is_err() {
                return Ok(());
            }
        }
    }

    /// Merges the first keys of each window, as many as `cuts` says, to the first `count` places of a block.
    fn merge(&mut self, cuts: &[usize], block: &mut Block<O>, count: usize) -> Result<()> {
        let Self { engine, streams, slot, places, merged, .. } = self;
        let (width, (out, values)) = (block.width, block.parts(0..count));
        let parts =
            streams.iter().zip(cuts).map(|(stream, cut)| (stream, stream.range.start..stream.range.start + cut));
        if width == 0 {
            let runs: Vec<&[O]> = parts.map(|(stream, part)| &stream.window.keys[part]).collect();
            engine.merge_many(&runs, out)?;
            return Ok(());
        }
        let runs = parts.map(|(stream, part)| {
            let begin = stream.number * *slot;
            (&stream.window.keys[part.clone()], &places[begin + part.start..begin + part.end])
        });
        let merged = &mut merged[..count];
        engine.merge_many_pairs(&runs.collect::<Vec<(&[O], &[u32])>>(), (out, merged))?;
        let windows: Vec<&Block<O>> = streams.iter().map(|stream| &stream.window).collect();
        values.par_chunks_mut(PIECE * width).zip(merged.par_chunks(PIECE)).for_each(|(values, merged)| {
            for (to, &place) in values.chunks_exact_mut(width).zip(merged) {
                let (number, key) = (place as usize / *slot, place as usize % *slot);
                to.copy_from_slice(windows[number].values(key..key + 1));
            }
        });
        Ok(())
    }
}
