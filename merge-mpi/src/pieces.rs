//! The exchange of sorted runs in pieces. A piece is merged and written while the next piece is received.
//!
//! Each rank gets an even part of the sorted keys, and a part is divided into pieces of equal length. All ranks
//! exchange their first pieces, then their second pieces, and so on. Exact splits determine the keys of each run that
//! belong to a piece.
//!
//! ```text
//!   run of a rank    │ 0.0 │ 0.1 │ 0.2 │ 1.0 │ 1.1 │ 1.2 │      part.piece that the keys go to
//!                       └───────────┬─────┘
//!   round 0          all to all of pieces 0.0 and 1.0
//!   round 1          all to all of pieces 0.1 and 1.1          round 0 is merged and written meanwhile
//! ```

use crate::agree::{agree, guarded, internal_error};
use crate::bytes::Bytes;
use crate::exchange::{Exchange, Reduction};
use crate::merge::{Merger, Piece, is_indexed};
use crate::run::Run;
use crate::search::splits;
use crate::times::{Phase, Times};
use merge_cli::shared::{Failure, Result, Word, memory};
use merge_host::Engine;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// The most bytes of a piece's keys and payload with few ranks. Pieces that fit in a processor's cache are merged and
/// written from the cache.
const PIECE: usize = 4 << 20;
/// Bytes of a message that justify its latency. With many ranks, pieces are longer, so that messages do not become
/// shorter.
const MESSAGE: usize = 256 << 10;
/// The number of receive buffers: the network fills one piece while another is merged.
const RECEIVED: usize = 2;
/// The most splits that are searched at once. This bounds the length of a message for a sum.
const SPLITS: usize = 1024;

/// The part of rank `rank` of `size` in `count` keys. The lengths of two parts differ by at most one.
pub fn part(count: u64, size: usize, rank: usize) -> Range<u64> {
    let bound = |rank: usize| (u128::from(count) * rank as u128 / size as u128) as u64;
    bound(rank)..bound(rank + 1)
}

/// The most keys of a piece, at least one, that `memory` bytes allow in addition to the run.
pub fn keys_of_piece<W: Word>(run: &Run<W>, width: usize, size: usize, memory: u64) -> usize {
    let item = W::SIZE + width;
    // Received pieces, a merged piece, scratch memory for merges of many runs, and indices of payloads.
    let mut bytes = (RECEIVED + 2) * item + if is_indexed(width) { 3 * size_of::<u32>() } else { 0 };
    if matches!(run, Run::Spilled(_)) {
        // All pieces of a round may come from one rank.
        bytes += size * item;
    }
    let free = memory.saturating_sub(run.memory() as u64);
    ((free / bytes as u64) as usize).min(PIECE.max(size * MESSAGE) / item).max(1)
}

/// Exchanges the runs of all ranks in pieces of up to `keys` keys. There are `count` keys in all, with payloads of
/// `width` bytes. Calls `write` with merged keys, their payload, and the index of the first key in this rank's part.
///
/// # Errors
/// If any rank cannot read its run or write its keys, or has too little memory.
pub fn exchange<W: Word, X: Exchange>(
    exchange: &X,
    run: Run<W>,
    (count, width): (u64, usize),
    keys: usize,
    engine: Engine,
    times: &Times,
    write: impl Fn(u64, &[W], &[u8]) -> Result<()> + Sync,
) -> Result<()> {
    let (rank, size) = (exchange.rank(), exchange.size());
    let mut least = [keys as u64];
    exchange.all_reduce(Reduction::Min, &mut least);
    let keys = least[0] as usize;
    let own = part(count, size, rank);
    let rounds = (0..size).map(|rank| length(&part(count, size, rank))).max().unwrap_or(0).div_ceil(keys as u64);
    let capacity = keys.min(length(&own) as usize);
    let prepared = guarded(|| {
        let pieces = (0..RECEIVED).map(|_| Piece::with_capacity(capacity, width)).collect::<Result<Vec<_>>>()?;
        Ok((pieces, Merger::new(engine, capacity, width)?))
    });
    let (pieces, merger) = agree(exchange, prepared)?;
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        let (give_back, empty) = channel();
        pieces.into_iter().for_each(|piece| drop(give_back.send(piece)));
        let (received, unmerged) = channel();
        let worker = || write_pieces(merger, unmerged, give_back, &failure, times, &write);
        let worker = std::thread::Builder::new().name("merge".to_owned()).spawn_scoped(scope, worker);
        let worker = worker.map_err(|error| Failure::new(format!("cannot start a thread: {error}")));
        let worker = agree(exchange, worker)?;
        let mut sender = Rounds { exchange, run, width, parts: count, keys: keys as u64, times };
        let sent = sender.all(rounds, &empty, received, &failure);
        // The thread ends when it has written all received pieces.
        let written = times.of(Phase::Write, || worker.join()).map_err(|panic| internal_error(&*panic));
        sent?;
        agree(exchange, written.and_then(|()| taken(&failure)))
    })
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// The failure of the writing thread, if there is one.
fn taken(failure: &Mutex<Option<Failure>>) -> Result<()> {
    failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}

/// Merges and writes pieces until no more arrive. After a failure, it only returns their memory.
fn write_pieces<W: Word>(
    mut merger: Merger<W>,
    unmerged: Receiver<Piece<W>>,
    give_back: Sender<Piece<W>>,
    failure: &Mutex<Option<Failure>>,
    times: &Times,
    write: &impl Fn(u64, &[W], &[u8]) -> Result<()>,
) {
    let mut has_failed = false;
    for piece in unmerged {
        if !has_failed && !piece.is_empty() {
            let written = guarded(|| {
                let (keys, payload) = times.beside(Phase::Merge, || merger.merge(&piece.runs()))?;
                times.beside(Phase::Write, || write(piece.begin, keys, payload))
            });
            if let Err(error) = written {
                has_failed = true;
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
        // Sending fails if the receiver has ended, when no more pieces are received.
        let _ = give_back.send(piece);
    }
}

/// The rounds of the exchange.
struct Rounds<'a, W, X> {
    exchange: &'a X,
    run: Run<W>,
    width: usize,
    /// The sum of the keys of all parts.
    parts: u64,
    /// Keys of a piece.
    keys: u64,
    times: &'a Times,
}

impl<W: Word, X: Exchange> Rounds<'_, W, X> {
    /// Exchanges all pieces. A piece is received into the memory of an `empty` piece.
    fn all(
        &mut self,
        rounds: u64,
        empty: &Receiver<Piece<W>>,
        received: Sender<Piece<W>>,
        failure: &Mutex<Option<Failure>>,
    ) -> Result<()> {
        let at_once = (SPLITS / self.exchange.size()).max(1) as u64;
        for first in (0..rounds).step_by(at_once as usize) {
            let rounds = first..rounds.min(first + at_once);
            let bounds = self.splits(rounds.clone())?;
            let slices: Vec<Vec<Range<usize>>> =
                bounds.windows(2).map(|pair| pair[0].iter().zip(&pair[1]).map(|(a, b)| *a..*b).collect()).collect();
            let counts = self.counts(&slices);
            for ((round, slices), counts) in rounds.zip(slices).zip(counts) {
                let piece = self.times.of(Phase::Wait, || empty.recv());
                let piece = piece.map_err(|_| Failure::new("the thread that merges is gone"));
                let loaded = self.times.of(Phase::Reread, || guarded(|| self.load(&slices)));
                // A failed write ends all ranks here.
                let ready = taken(failure).and_then(|()| Ok((piece?, loaded?)));
                let (mut piece, loaded) = agree(self.exchange, ready)?;
                (piece.begin, piece.counts) = (round * self.keys, counts);
                self.times.of(Phase::Exchange, || self.round(&mut piece, &slices, loaded));
                // Sending fails if the thread has ended, which the next round detects.
                let _ = received.send(piece);
            }
        }
        Ok(())
    }

    /// The numbers of keys that this rank receives from each rank in each round. It sends `slices` itself.
    fn counts(&self, slices: &[Vec<Range<usize>>]) -> Vec<Vec<usize>> {
        let ranks = 0..self.exchange.size();
        let sent = ranks.flat_map(|to| slices.iter().map(move |slices| slices[to].len() as u64));
        let received = self.exchange.transpose(&sent.collect::<Vec<u64>>());
        let of_round = |round| received.iter().skip(round).step_by(slices.len()).map(|count| *count as usize).collect();
        (0..slices.len()).map(of_round).collect()
    }

    /// The splits of the run at the beginning of each of `rounds`, and at the end of the last round. Each has a list
    /// with the number of keys before it, for each part.
    fn splits(&mut self, rounds: Range<u64>) -> Result<Vec<Vec<usize>>> {
        let size = self.exchange.size();
        let (parts, keys) = (self.parts, self.keys);
        let rank_of = |round: u64, of: usize| {
            let part = part(parts, size, of);
            part.start + round.saturating_mul(keys).min(length(&part))
        };
        let ranks: Vec<u64> =
            (rounds.start..=rounds.end).flat_map(|round| (0..size).map(move |of| rank_of(round, of))).collect();
        let (exchange, run) = (self.exchange, &mut self.run);
        let found = self.times.of(Phase::Split, || splits(exchange, run, &ranks))?;
        Ok(found.chunks(size).map(<[usize]>::to_vec).collect())
    }

    /// Reads these slices of the run into contiguous memory, if the run is in files.
    fn load(&self, slices: &[Range<usize>]) -> Result<Option<(Vec<W>, Bytes)>> {
        let Run::Spilled(spilled) = &self.run else { return Ok(None) };
        let count: usize = slices.iter().map(Range::len).sum();
        let mut keys = memory::zeroed::<W>(count as u64, "the keys to send")?;
        let mut payload = Bytes::zeroed(count, self.width)?;
        let mut at = 0;
        for slice in slices {
            let end = at + slice.len();
            spilled.read_keys(slice.start, &mut keys[at..end])?;
            spilled.read_payload(slice.start, &mut payload.get_mut()[at * self.width..end * self.width])?;
            at = end;
        }
        Ok(Some((keys, payload)))
    }

    /// Sends one slice to each rank, and receives a piece. The keys of a run in files have been `loaded`.
    fn round(&self, piece: &mut Piece<W>, slices: &[Range<usize>], loaded: Option<(Vec<W>, Bytes)>) {
        let (exchange, width) = (self.exchange, self.width);
        let bytes_of = |slice: &Range<usize>| slice.start * width..slice.end * width;
        let (keys, payload): (Vec<&[W]>, Vec<&[u8]>) = match (&self.run, &loaded) {
            (Run::Memory { keys, payload }, _) => {
                slices.iter().map(|slice| (&keys[slice.clone()], &payload.get()[bytes_of(slice)])).unzip()
            }
            (Run::Spilled(_), Some((keys, payload))) => {
                let first = &mut 0;
                let after = |slice: &Range<usize>| {
                    let here = *first..*first + slice.len();
                    *first = here.end;
                    (&keys[here.clone()], &payload.get()[bytes_of(&here)])
                };
                slices.iter().map(after).unzip()
            }
            (Run::Spilled(_), None) => unreachable!("a run in files is loaded"),
        };
        let send: Vec<&[u8]> = keys.into_iter().map(bytemuck::cast_slice).collect();
        let receive = parts_of(&piece.counts, &mut piece.keys[..]).into_iter();
        exchange.all_to_all(&send, &mut receive.map(bytemuck::cast_slice_mut).collect::<Vec<_>>());
        if width > 0 {
            let bytes: Vec<usize> = piece.counts.iter().map(|count| count * width).collect();
            exchange.all_to_all(&payload, &mut parts_of(&bytes, piece.payload.get_mut()));
        }
    }
}

/// Consecutive slices of `counts` elements.
fn parts_of<'a, T>(counts: &[usize], mut elements: &'a mut [T]) -> Vec<&'a mut [T]> {
    let part = |count: &usize| {
        let (part, rest) = std::mem::take(&mut elements).split_at_mut(*count);
        elements = rest;
        part
    };
    counts.iter().map(part).collect()
}
