//! One streaming pass from many runs to one.
//!
//! Each run has a window in memory, and the block behind it is read meanwhile. A round merges all keys of the windows
//! that can be merged (see [`window`](super::window)), on all threads, to a block of output. The block is written while
//! the next round goes on.
//!
//! ```text
//!   a run's two blocks    │ head │ window ┄┄┄┄┄┄┄┄┄ │    the rest of the window, once it is short …
//!                              ┌──────────────┘
//!                              ▼
//!                         │ head │ being read       │    … moves before the keys that were read: the next window
//! ```
//!
//! So a window is always one slice of memory, and each key is copied at most once on its way into the window.

use super::block::{Block, zeroed};
use super::error::Error;
use super::observer::{Observer, Phase};
use super::run::{Reader, Run};
use super::shape::{Shape, head};
use super::sink::Sink;
use super::source::Source;
use super::threads::{Helpers, join, spawn};
use super::window::{Window, splits};
use crate::cpu::memory::reserved;
use crate::permutation::{fill_identity_on, gather_with};
use crate::{Engine, Word, parallel};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Output blocks: one receives merged keys, and one is written.
const OUTPUTS: usize = 2;

/// The parameters of a pass.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) shape: Shape,
    pub(super) memory: u64,
    pub(super) engine: &'a Engine,
    pub(super) helpers: &'a Helpers,
}

impl Pass<'_> {
    /// Merges `runs` to `sink`, and returns the number of keys handed on. Equal keys keep the order of their runs.
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
        let Self { shape, engine, helpers, .. } = self;
        let count = runs.len();
        let slot = self.slot(runs);
        // Whether a block has too few bytes of the temporary file to be worth waking a thread.
        let is_little = shape.is_little(slot * count);
        let reads_alone = is_little && runs.iter().all(|run| matches!(run, Run::Spilled(_)));
        let writes_alone = is_little && sink.is_spilled();
        std::thread::scope(|scope| {
            let (requests, requested) = channel();
            let (mut readers, mut streams) = (Readers::reserved(count)?, reserved(count)?);
            for (number, run) in runs.iter_mut().enumerate() {
                let reader = run.reader();
                let (behind, window) = (reader.left(), Block::new(slot, shape)?);
                streams.push(Stream { number, window, slots: 0..0, behind, ahead: readers.add(reader) });
                // The receiver exists, so sending succeeds.
                let _ = requests.send((number, Block::new(slot, shape)?));
            }
            let (give_back, empty) = channel();
            for _ in 0..OUTPUTS {
                let _ = give_back.send(Block::new(slot * count, shape)?);
            }
            let indices = if shape.width == 0 { 0 } else { slot * count };
            let mut merge =
                Merge { engine, streams, requests, slot, identity: zeroed(indices)?, merged: zeroed(indices)? };
            engine.compute(indices, |threads| fill_identity_on(threads, &mut merge.identity))?;
            let (merged, unwritten) = sync_channel::<(Block, usize)>(1);
            let readers_help = (!reads_alone).then_some(helpers);
            let reader = spawn(scope, "read", move || readers.serve(&requested, readers_help))?;
            let writer = spawn(scope, "write", move || {
                for (mut block, count) in unwritten {
                    if writes_alone {
                        sink.put(&mut block, count)?;
                    } else {
                        helpers.run(|| sink.put(&mut block, count))?;
                    }
                    // Sending fails if everything has been merged.
                    let _ = give_back.send(block);
                }
                Ok(sink.written())
            })?;
            let merging = merge.rounds::<W>(&empty, merged, observer);
            // Dropping the requests ends the other threads.
            drop(merge);
            let written = observer.time(Phase::Write, || join(writer));
            join(reader);
            merging?;
            written
        })
    }

    /// The number of keys of a block of a run: at most the keys of the longest run and a head.
    fn slot<W: Word, S: Source<W>>(self, runs: &[Run<W, S>]) -> usize {
        let longest = runs.iter().map(Run::left).max().unwrap_or(0);
        let slot = self.shape.slot(self.memory, runs.len());
        slot.min(usize::try_from(longest).unwrap_or(slot).saturating_add(head(slot)))
    }
}

/// The number of a run, and a block for the next part of it.
type Request = (usize, Block);

/// A part of a run.
#[derive(Debug)]
struct Part {
    block: Block,
    /// The slots of the block that were read.
    slots: Range<usize>,
    /// The greatest number of keys of the run after this part. 0 is exact.
    behind: u64,
}

/// A part of a run that was read.
type Reply<E> = Result<Part, Error<E>>;

/// The server of requests: the reader of each run, and the channel for its replies.
struct Readers<'a, W: Word, S: Source<W>> {
    readers: Vec<Mutex<Reader<'a, W, S>>>,
    replies: Vec<Sender<Reply<S::Error>>>,
    /// Memory for one request of each run.
    requests: Vec<Request>,
}

impl<'a, W: Word, S: Source<W>> Readers<'a, W, S> {
    /// No readers, with memory for the readers of `count` runs.
    fn reserved(count: usize) -> Result<Self, crate::Error> {
        Ok(Self { readers: reserved(count)?, replies: reserved(count)?, requests: reserved(count)? })
    }

    /// Adds the reader of the next run, and returns the channel of its replies.
    fn add(&mut self, reader: Reader<'a, W, S>) -> Receiver<Reply<S::Error>> {
        let (reply, ahead) = channel();
        self.readers.push(Mutex::new(reader));
        self.replies.push(reply);
        ahead
    }

    /// Serves requests until there can be no more, and replies to the run's stream. Helpers take part if there are any.
    fn serve(mut self, requested: &Receiver<Request>, helpers: Option<&Helpers>) {
        let read = |number: usize, mut block: Block| {
            let mut reader = self.readers[number].lock().unwrap_or_else(PoisonError::into_inner);
            let (begin, end) = (head(block.len()), block.len());
            let count = reader.read(&mut block, begin..end)?;
            Ok(Part { block, slots: begin..begin + count, behind: reader.left() })
        };
        let serve = |(number, block): Request| {
            // The stream is gone if another thread has failed.
            let _ = self.replies[number].send(read(number, block));
        };
        while let Ok(first) = requested.recv() {
            self.requests.extend([first].into_iter().chain(requested.try_iter()));
            let all = self.requests.drain(..);
            match helpers {
                Some(helpers) => helpers.run(|| parallel::for_each(all, serve)),
                None => all.for_each(serve),
            }
        }
    }
}

/// The part of a run that is in memory.
#[derive(Debug)]
struct Stream<E> {
    number: usize,
    window: Block,
    /// The slots of the window that are not merged yet.
    slots: Range<usize>,
    /// The greatest number of keys of the run after the window. 0 is exact.
    behind: u64,
    ahead: Receiver<Reply<E>>,
}

impl<E> Stream<E> {
    /// Refills the window if it is short and the run goes on. Returns `false` if the reading thread has ended.
    fn refill<W: Word>(&mut self, requests: &Sender<Request>, observer: &mut impl Observer) -> Result<bool, Error<E>> {
        let left = self.slots.len();
        if self.behind == 0 || left > head(self.window.len()) {
            return Ok(true);
        }
        let Ok(part) = observer.time(Phase::Read, || self.ahead.recv()) else { return Ok(false) };
        let Part { mut block, slots, behind } = part?;
        let begin = slots.start - left;
        let (keys, payload) = block.parts_mut::<W>(begin..slots.start);
        let (left_keys, left_payload) = self.window.parts::<W>(self.slots.clone());
        keys.copy_from_slice(left_keys);
        payload.copy_from_slice(left_payload);
        self.slots = begin..slots.end;
        self.behind = behind;
        std::mem::swap(&mut self.window, &mut block);
        if behind > 0 {
            // Sending fails only if the reading thread has ended, which the next call of `recv` reports.
            let _ = requests.send((self.number, block));
        }
        Ok(true)
    }

    fn window<W: Word>(&self) -> Window<'_, W> {
        Window { keys: self.window.parts(self.slots.clone()).0, continues: self.behind > 0 }
    }
}

struct Merge<'e, E> {
    engine: &'e Engine,
    streams: Vec<Stream<E>>,
    requests: Sender<Request>,
    /// The number of keys of a block.
    slot: usize,
    /// The indices of the payloads of all windows in sequence: 0, 1, 2 and so on.
    identity: Vec<u32>,
    /// Memory for the merged indices.
    merged: Vec<u32>,
}

impl<E> Merge<'_, E> {
    /// Merges round by round to blocks from `empty`, and sends them to `merged`, until nothing is left or another
    /// thread has failed.
    fn rounds<W: Word>(
        &mut self,
        empty: &Receiver<Block>,
        merged: SyncSender<(Block, usize)>,
        observer: &mut impl Observer,
    ) -> Result<(), Error<E>> {
        loop {
            for stream in &mut self.streams {
                if !stream.refill::<W>(&self.requests, observer)? {
                    return Ok(());
                }
            }
            let splits = splits(&self.streams.iter().map(Stream::window::<W>).collect::<Vec<_>>());
            let count = splits.iter().sum();
            if count == 0 {
                return Ok(());
            }
            let Ok(mut block) = observer.time(Phase::Write, || empty.recv()) else { return Ok(()) };
            observer.time(Phase::Compute, || self.merge::<W>(&splits, &mut block, count))?;
            for (stream, split) in self.streams.iter_mut().zip(&splits) {
                stream.slots.start += split;
            }
            if observer.time(Phase::Write, || merged.send((block, count))).is_err() {
                return Ok(());
            }
        }
    }

    /// Merges the first `splits[i]` keys of window `i` of all windows to the first `count` slots of a block.
    fn merge<W: Word>(&mut self, splits: &[usize], block: &mut Block, count: usize) -> Result<(), crate::Error> {
        let Self { engine, streams, slot, identity, merged, .. } = self;
        let slot = *slot;
        let (width, (out, payload)) = (block.width(), block.parts_mut::<W>(0..count));
        let runs = streams.iter().zip(splits).map(|(stream, split)| {
            let slots = stream.slots.start..stream.slots.start + split;
            (stream.number, slots.clone(), stream.window.parts::<W>(slots).0)
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
        engine.merge_many(&runs.collect::<Vec<_>>(), (out, &mut *merged))?;
        let windows: Vec<&[u8]> = streams.iter().map(|stream| stream.window.parts::<W>(0..slot).1).collect();
        engine.compute(payload.len() / size_of::<u64>(), |threads| {
            let value_at = |index: usize| &windows[index / slot][index % slot * width..][..width];
            gather_with(width, merged, payload, threads, value_at);
        })?;
        Ok(())
    }
}
