//! One streaming pass from many runs to one.
//!
//! Of each run there is a window in memory, and the block behind it is read meanwhile. In each round, all that can be
//! merged of the windows (see [`window`](super::window)) is merged, on all threads, to a block of output, which is written
//! while the next round goes on.
//!
//! ```text
//!   a run's two blocks    │ head │ window ┄┄┄┄┄┄┄┄┄ │    what is left of the window when it has become short …
//!                              ┌──────────────┘
//!                              ▼
//!                         │ head │ being read       │    … goes before what was read, which then is the window
//! ```
//!
//! So a window is always one slice of memory, and each key is copied once at most on its way into it.

use super::block::{Block, zeroed};
use super::error::Error;
use super::observer::{Observer, Phase};
use super::run::{Reader, Run};
use super::shape::{Shape, head};
use super::sink::Sink;
use super::source::Source;
use super::threads::{join, spawn};
use super::window::{Window, splits};
use crate::permutation::{fill_identity, gather_with};
use crate::{Engine, Word, parallel};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Blocks of output: one is merged to, one written.
const OUTPUTS: usize = 2;

/// What a pass needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass<'a> {
    pub(super) shape: Shape,
    pub(super) memory: u64,
    pub(super) engine: &'a Engine,
}

impl Pass<'_> {
    /// Merges `runs` to `sink`, and returns the number of keys handed on. Of equal keys, those of an earlier run come first.
    pub(super) fn merge<W, S, E>(
        self,
        runs: &mut [Run<W, S>],
        mut sink: Sink<W, E>,
        observer: &mut impl Observer,
    ) -> Result<u64, Error<E>>
    where
        W: Word,
        S: Source<W, Error = E>,
        E: Send,
    {
        let Self { shape: Shape { width, .. }, engine, .. } = self;
        let count = runs.len();
        let slot = self.slot(runs);
        std::thread::scope(|scope| {
            let (requests, requested) = channel();
            let (mut replies, mut streams) = (Vec::new(), Vec::new());
            for (number, run) in runs.iter_mut().enumerate() {
                let (reply, ahead) = channel();
                let (reader, block) = (run.reader(), Block::new(slot, width)?);
                streams.push(Stream::new(number, Block::new(slot, width)?, reader.left(), ahead));
                replies.push(reply);
                // The receiver is there.
                let _ = requests.send((number, Reading { reader, block, slots: 0..0 }));
            }

            let (give_back, empty) = channel();
            for _ in 0..OUTPUTS {
                let _ = give_back.send(Block::new(slot * count, width)?);
            }
            let indices = if width == 0 { 0 } else { slot * count };
            let mut merge =
                Merge { engine, streams, requests, slot, identity: zeroed(indices)?, merged: zeroed(indices)? };
            fill_identity(&mut merge.identity);

            let (merged, unwritten) = sync_channel::<(Block<W>, usize)>(1);
            let reader = spawn(scope, "read", move || read_ahead(&requested, &replies))?;
            let writer = spawn(scope, "write", move || {
                for (mut block, count) in unwritten {
                    sink.put(&mut block, count)?;
                    // It fails where all has been merged.
                    let _ = give_back.send(block);
                }
                Ok(sink.written())
            })?;
            let merging = merge.rounds(&empty, merged, observer);
            // Now the others have nothing more to wait for.
            drop(merge);
            let written = observer.time(Phase::Write, || join(writer));
            join(reader);
            merging?;
            written
        })
    }

    /// Keys of the blocks that these runs are read to: no more than the longest has.
    fn slot<W: Word, S: Source<W>>(self, runs: &[Run<W, S>]) -> usize {
        let longest = runs.iter().map(Run::left).max().unwrap_or(0);
        let slot = self.shape.slot(self.memory, runs.len());
        slot.min(usize::try_from(longest).unwrap_or(slot).saturating_add(head(slot)))
    }
}

/// A part of a run that is being read.
#[derive(Debug)]
struct Reading<'a, W, S> {
    reader: Reader<'a, W, S>,
    block: Block<W>,
    /// The slots of the block that were read.
    slots: Range<usize>,
}

impl<W: Word, S: Source<W>> Reading<'_, W, S> {
    /// Fills the block behind its head.
    fn read(&mut self) -> Result<(), Error<S::Error>> {
        let (begin, end) = (head(self.block.len()), self.block.len());
        let count = self.reader.read(&mut self.block, begin..end)?;
        self.slots = begin..begin + count;
        Ok(())
    }
}

/// A run's number and a part of it that is to be read.
type Request<'a, W, S> = (usize, Reading<'a, W, S>);
/// A part of a run that was read.
type Reply<'a, W, S, E> = Result<Reading<'a, W, S>, Error<E>>;

/// Serves requests until there can be no more, and replies to the run's stream.
fn read_ahead<'a, W: Word, S: Source<W>>(
    requested: &Receiver<Request<'a, W, S>>,
    replies: &[Sender<Reply<'a, W, S, S::Error>>],
) {
    while let Ok(first) = requested.recv() {
        let all: Vec<_> = [first].into_iter().chain(requested.try_iter()).collect();
        parallel::for_each(all, |(number, mut reading)| {
            // The stream is gone where another thread has failed.
            let _ = replies[number].send(reading.read().map(|()| reading));
        });
    }
}

/// The part of a run that is in memory.
#[derive(Debug)]
struct Stream<'a, W, S, E> {
    window: Block<W>,
    /// The slots of the window whose keys are not merged yet.
    slots: Range<usize>,
    /// Keys of the run that come after the window, at most. 0 is exact.
    behind: u64,
    number: usize,
    ahead: Receiver<Reply<'a, W, S, E>>,
}

impl<'a, W: Word, S: Source<W>> Stream<'a, W, S, S::Error> {
    /// A run of at most `behind` keys, of which none is in memory.
    fn new(number: usize, window: Block<W>, behind: u64, ahead: Receiver<Reply<'a, W, S, S::Error>>) -> Self {
        Self { window, slots: 0..0, behind, number, ahead }
    }

    /// Refills the window if it is short and the run goes on. Returns `false` if the thread that reads has ended.
    fn refill(
        &mut self,
        requests: &Sender<Request<'a, W, S>>,
        observer: &mut impl Observer,
    ) -> Result<bool, Error<S::Error>> {
        let left = self.slots.len();
        if self.behind == 0 || left > head(self.window.len()) {
            return Ok(true);
        }
        let Ok(reading) = observer.time(Phase::Read, || self.ahead.recv()) else { return Ok(false) };
        let mut reading = reading?;
        let begin = reading.slots.start - left;
        let (keys, payload) = reading.block.parts_mut(begin..reading.slots.start);
        let (left_keys, left_payload) = self.window.parts(self.slots.clone());
        keys.copy_from_slice(left_keys);
        payload.copy_from_slice(left_payload);
        self.slots = begin..reading.slots.end;
        self.behind = reading.reader.left();
        std::mem::swap(&mut self.window, &mut reading.block);
        if self.behind > 0 {
            // It fails only where the thread has ended, which the next to wait for it will see.
            let _ = requests.send((self.number, reading));
        }
        Ok(true)
    }

    fn window(&self) -> Window<'_, W> {
        Window { keys: self.window.parts(self.slots.clone()).0, continues: self.behind > 0 }
    }
}

struct Merge<'e, 'a, W, S, E> {
    engine: &'e Engine,
    streams: Vec<Stream<'a, W, S, E>>,
    requests: Sender<Request<'a, W, S>>,
    /// Keys of a block.
    slot: usize,
    /// The index of each payload in all runs' windows as if these lay one after the other: 0, 1, 2 and so on.
    identity: Vec<u32>,
    /// Memory for as many.
    merged: Vec<u32>,
}

impl<W: Word, S: Source<W>> Merge<'_, '_, W, S, S::Error> {
    /// Merges round by round to blocks from `empty`, and sends them on to `merged`, until nothing is left or another
    /// thread has failed.
    fn rounds(
        &mut self,
        empty: &Receiver<Block<W>>,
        merged: SyncSender<(Block<W>, usize)>,
        observer: &mut impl Observer,
    ) -> Result<(), Error<S::Error>> {
        loop {
            for stream in &mut self.streams {
                if !stream.refill(&self.requests, observer)? {
                    return Ok(());
                }
            }
            let splits = splits(&self.streams.iter().map(Stream::window).collect::<Vec<_>>());
            let count = splits.iter().sum();
            if count == 0 {
                return Ok(());
            }
            let Ok(mut block) = observer.time(Phase::Write, || empty.recv()) else { return Ok(()) };
            observer.time(Phase::Compute, || self.merge(&splits, &mut block, count))?;
            for (stream, split) in self.streams.iter_mut().zip(&splits) {
                stream.slots.start += split;
            }
            if observer.time(Phase::Write, || merged.send((block, count))).is_err() {
                return Ok(());
            }
        }
    }

    /// Merges the first keys of each window, as many as `splits` says, to the first `count` slots of a block.
    fn merge(&mut self, splits: &[usize], block: &mut Block<W>, count: usize) -> Result<(), crate::Error> {
        let Self { engine, streams, slot, identity, merged, .. } = self;
        let slot = *slot;
        let (width, (out, payload)) = (block.width(), block.parts_mut(0..count));
        let runs = streams.iter().zip(splits).map(|(stream, split)| {
            let slots = stream.slots.start..stream.slots.start + split;
            (stream.number, slots.clone(), stream.window.parts(slots).0)
        });
        if width == 0 {
            engine.merge_many(&runs.map(|(_, _, keys)| keys).collect::<Vec<_>>(), out)?;
            return Ok(());
        }
        let runs = runs.map(|(number, slots, keys)| {
            let begin = number * slot;
            (keys, &identity[begin + slots.start..begin + slots.end])
        });
        let merged = &mut merged[..count];
        engine.merge_many_pairs(&runs.collect::<Vec<_>>(), (out, &mut *merged))?;
        let windows: Vec<&[u8]> = streams.iter().map(|stream| stream.window.parts(0..slot).1).collect();
        gather_with(width, merged, payload, |index| &windows[index / slot][index % slot * width..][..width]);
        Ok(())
    }
}
