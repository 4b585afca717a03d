//! Division of a source into sorted runs.
//!
//! Three threads work on one chunk each, and pass the chunks on in a circle:
//!
//! ```text
//!   read ──► sort ──► write
//!     ▲                 │
//!     └── empty chunks ─┘
//! ```

use super::block::Block;
use super::engines::Engines;
use super::error::Error;
use super::observer::{Observer, Phase};
use super::run::{RunWriter, SpilledRun};
use super::shape::{CHUNKS, Shape};
use super::sorter::{Chunk, Sorter, lock};
use super::source::{Input, Source};
use super::spill::Spills;
use super::threads::{Helpers, join, spawn};
use crate::Word;
use crate::cpu::memory;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

/// Reads the rest of `input`, sorts it in chunks of `slots` keys, and spills each chunk as a run.
pub(super) fn make_runs<W, S, E, G, O>(
    input: &Mutex<Input<W, S>>,
    sorter: &mut Sorter<W, S, G, O>,
    spills: &Spills,
    helpers: &Helpers,
    (slots, shape): (usize, Shape),
) -> Result<Vec<SpilledRun>, Error<E>>
where
    W: Word,
    S: Source<W, Error = E>,
    E: Send,
    G: Engines<E>,
    O: Observer,
{
    std::thread::scope(|scope| {
        let (give_back, empty) = channel();
        for _ in 0..CHUNKS {
            // The receiver exists, so sending succeeds.
            let _ = give_back.send(Block::new(slots, shape)?);
        }
        let (read, unsorted) = sync_channel(1);
        let (sorted, unwritten) = sync_channel::<(Block, usize)>(1);
        let reader = spawn(scope, "read", move || read_chunks(input, empty, &read, helpers))?;
        let writer = spawn(scope, "write", move || {
            let mut runs = Vec::new();
            for (block, count) in unwritten {
                let run = helpers.run(|| write_run::<W, E>(spills, &block, 0..count))?;
                memory::push(&mut runs, run)?;
                // Sending fails if everything has been read.
                let _ = give_back.send(block);
            }
            Ok(runs)
        })?;
        let sorting = sort_chunks(sorter, unsorted, sorted);
        let runs = sorter.observer.time(Phase::Write, || join(writer));
        join(reader)?;
        sorting?;
        runs
    })
}

/// Reads chunks to `empty` blocks until the source ends, or until `read` is closed because another thread has failed.
fn read_chunks<W: Word, S: Source<W>>(
    input: &Mutex<Input<W, S>>,
    empty: Receiver<Block>,
    read: &SyncSender<(Block, Chunk)>,
    helpers: &Helpers,
) -> Result<(), Error<S::Error>> {
    for mut block in empty {
        // The thread that sorts the chunk may read it again, so the input is locked only while it is read.
        let (index, count, ended) = helpers.run(|| {
            let mut input = lock(input);
            let (index, slots) = (input.position(), 0..block.len());
            let count = input.read(&mut block, slots).map_err(Error::Other)?;
            Ok::<_, Error<S::Error>>((index, count, input.left() == 0))
        })?;
        if count == 0 || read.send((block, Chunk { slots: 0..count, index })).is_err() || ended {
            break;
        }
    }
    Ok(())
}

/// Sorts chunks until there are no more, or until another thread has failed. Then the other threads end, too.
fn sort_chunks<W, S, E, G, O>(
    sorter: &mut Sorter<W, S, G, O>,
    unsorted: Receiver<(Block, Chunk)>,
    sorted: SyncSender<(Block, usize)>,
) -> Result<(), Error<E>>
where
    W: Word,
    S: Source<W, Error = E>,
    G: Engines<E>,
    O: Observer,
{
    while let Ok((mut block, chunk)) = sorter.observer.time(Phase::Read, || unsorted.recv()) {
        let count = sorter.sort(&mut block, &chunk)?;
        if sorter.observer.time(Phase::Write, || sorted.send((block, count))).is_err() {
            break;
        }
    }
    Ok(())
}

/// Spills the keys and payloads of `slots` of a sorted block.
pub(super) fn write_run<W: Word, E>(
    spills: &Spills,
    block: &Block,
    slots: Range<usize>,
) -> Result<SpilledRun, Error<E>> {
    let mut run = RunWriter::new(spills.next());
    let (keys, payload) = block.parts::<W>(slots);
    run.write(keys, payload)?;
    Ok(run.finish())
}
