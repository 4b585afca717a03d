//! `gmerge sort --top N`: the N first keys of the order, without sorting the others.
//!
//! The input is read part by part. A threshold, the last of N keys that were seen, keeps most keys out; those that pass
//! are candidates, and when there are many the N first of them are selected, which lowers the threshold:
//!
//! ```text
//!   part ──► keys below the threshold ──► candidates (2 N or more) ──select──► N candidates, a lower threshold
//! ```
//!
//! All of this is on ordered bits, which are turned over for the greatest keys first. Equal keys have equal bits, so that
//! it does not matter which of them are kept.

use crate::args::{EngineChoice, SortArgs};
use crate::engine::{ChosenEngine, start_threads};
use crate::error::{Failure, Result};
use crate::format;
use crate::input::Input;
use crate::key_type::{FileKey, with_key_type};
use crate::memory;
use crate::order::{order_of, turned};
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};
use merge_host::SortOrder;
use rayon::prelude::*;

/// Bytes of keys to read at once.
const ROOM: u64 = 32 << 20;
/// Keys that a thread looks through at once.
const PIECE: usize = 1 << 17;
/// Candidates to collect at least before selecting among them.
const LEAST_ROOM: usize = 1 << 16;

pub fn run(args: &SortArgs) -> Result<()> {
    if args.engine.engine == EngineChoice::Gpu {
        return Err(Failure::new("--engine gpu: --top is done by the CPU, expected --engine auto or cpu"));
    }
    let mut inputs = [Input::open(&args.input)?];
    let key_type = format::detect(&args.common, &mut inputs, Some(&args.output.output))?;
    with_key_type!(key_type, K => top::<K>(args, inputs))
}

fn top<K: FileKey>(args: &SortArgs, inputs: [Input; 1]) -> Result<()> {
    let mut stats = Stats::begin::<K>("top");
    let output = Output::prepare_keys::<K>(&args.output.as_output(), &args.common, &inputs)?;
    let [mut input] = inputs;
    let count = input.count::<K>()?;
    let wanted = args.top.unwrap_or(0).min(count.unwrap_or(u64::MAX));
    output.check_space(count.map_or(0, |_| u128::from(wanted) * K::SIZE as u128))?;
    start_threads(args.common.parallel)?;

    let order = order_of(args.reverse);
    let mut part = memory::zeroed::<K>((ROOM / K::SIZE as u64).min(count.unwrap_or(u64::MAX)), "a part of the file")?;
    let mut first = First::<K>::new(order, usize::try_from(wanted).unwrap_or(usize::MAX));
    loop {
        let read = stats.time(Phase::Read, || input.read(&mut part))?;
        stats.time(Phase::Compute, || first.add(&part[..read]))?;
        stats.keys += read as u64;
        if read < part.len() || read == 0 {
            break;
        }
    }
    let mut keys = stats.time(Phase::Compute, || first.finish())?;
    let mut engine = ChosenEngine::start::<K>(EngineChoice::Cpu, args.common.parallel)?;
    stats.add(engine.run(&mut keys, |engine, keys| engine.sort_with(order, keys), |_| Ok(false))?);
    stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&keys))?]))?;
    stats.engine = engine.name()?;
    stats.print(args.common.stats);
    Ok(())
}

/// The first keys of those that were added.
struct First<K: FileKey> {
    order: SortOrder,
    wanted: usize,
    /// All keys that may be among the first, as bits in order.
    candidates: Vec<K::Bits>,
    /// Where there are enough candidates already: the last of so many. Only keys before it count.
    threshold: Option<K::Bits>,
}

impl<K: FileKey> First<K> {
    fn new(order: SortOrder, wanted: usize) -> Self {
        Self { order, wanted, candidates: Vec::new(), threshold: None }
    }

    fn add(&mut self, keys: &[K]) -> Result<()> {
        if self.wanted == 0 {
            return Ok(());
        }
        let (order, wanted, threshold) = (self.order, self.wanted, self.threshold);
        let pieces = keys.par_chunks(PIECE).map(|piece| {
            let bits = piece.iter().map(|key| turned(order, key.to_ordered()));
            let mut passed: Vec<_> = bits.filter(|bits| threshold.is_none_or(|last| *bits < last)).collect();
            select(&mut passed, wanted);
            passed
        });
        for piece in pieces.collect::<Vec<_>>() {
            memory::reserve(&mut self.candidates, piece.len(), "the first keys")?;
            self.candidates.extend(piece);
            if self.candidates.len() >= self.wanted.saturating_mul(2).max(LEAST_ROOM) {
                self.threshold = select(&mut self.candidates, self.wanted).or(self.threshold);
            }
        }
        Ok(())
    }

    /// As many of the first keys as are wanted, or all, in any order.
    fn finish(mut self) -> Result<Vec<K>> {
        select(&mut self.candidates, self.wanted);
        let mut keys = Vec::new();
        memory::reserve(&mut keys, self.candidates.len(), "the output")?;
        keys.extend(self.candidates.iter().map(|&bits| K::from_ordered(turned(self.order, bits))));
        Ok(keys)
    }
}

/// Leaves the `wanted` least of `bits`, at least 1, in any order. Gives the greatest of these if there are that many.
fn select<B: Ord + Copy>(bits: &mut Vec<B>, wanted: usize) -> Option<B> {
    let last = wanted.checked_sub(1).filter(|&last| last < bits.len())?;
    let (_, &mut last, _) = bits.select_nth_unstable(last);
    bits.truncate(wanted);
    Some(last)
}
