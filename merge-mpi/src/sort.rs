//! A sort on all ranks: each sorts its slice to a run, and all exchange their runs.

use crate::agree::step;
use crate::exchange::Exchange;
use crate::pieces::{exchange as exchange_runs, keys_of_piece};
use crate::run::{Collected, Run, Spilled};
use crate::times::{Phase, Times};
use merge_cli::shared::{Failure, Result, Word, memory, os_message};
use merge_host::Engine;
use merge_host::external::{self, Engines, Options, Source, Target};

/// What a rank sorts.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The number of keys in its slice.
    pub own: u64,
    /// The number of keys in the slices of all ranks.
    pub all: u64,
}

/// Sorts the keys of all ranks' sources, with their payload, by rank and index where keys are equal. Calls `write` with the
/// sorted keys of this rank's part, their payload, and the index of the first of them in that part.
///
/// `options` bound what this rank uses, and `merging` is the engine that merges runs.
///
/// # Errors
/// If a rank fails: its failure there, and failures without a message on the others.
#[expect(clippy::too_many_arguments, reason = "each is used once")]
pub fn sort<W: Word, X: Exchange>(
    exchange: &X,
    source: impl Source<W, Error = Failure>,
    share: Share,
    options: &Options,
    engines: &mut impl Engines<Failure>,
    merging: Engine,
    times: &Times,
    mut write: impl FnMut(u64, &[W], &[u8]) -> Result<()> + Send,
) -> Result<()> {
    let is_alone = exchange.size() == 1;
    if is_alone && (options.width > 0 || !fits::<W>(share.own, options, engines)?) {
        // No run is made of what goes nowhere else.
        let begin = || Ok(Direct { written: 0, write });
        return step(exchange, || times.of(Phase::Sort, || external(options, source, begin, engines).map(drop)));
    }
    let run = step(exchange, || times.of(Phase::Sort, || make_run(source, share.own, options, engines)))?;
    if let (true, Run::Memory { keys, payload }) = (is_alone, &run) {
        return step(exchange, || times.of(Phase::Write, || write(0, keys, payload.get())));
    }
    // The sort's scratch memory is not needed any more.
    merge_host::release_memory();
    let keys = keys_of_piece(&run, options.width, exchange.size(), options.memory);
    exchange_runs(exchange, run, (share.all, options.width), keys, merging, times, write)
}

/// Whether `count` keys can be sorted at once.
fn fits<W: Word>(count: u64, options: &Options, engines: &mut impl Engines<Failure>) -> Result<bool> {
    let on_gpu = engines.device_memory().map_err(failure_of_run)?;
    let shape = options.shape::<W>();
    Ok(shape.in_memory(count) <= options.memory.into() && on_gpu.is_none_or(|bytes| count <= shape.most_on_gpu(bytes)))
}

/// Sorts the `count` keys of a source to a run: in memory, if they fit there.
fn make_run<W: Word>(
    mut source: impl Source<W, Error = Failure>,
    count: u64,
    options: &Options,
    engines: &mut impl Engines<Failure>,
) -> Result<Run<W>> {
    let fits = fits::<W>(count, options, engines)?;
    let count = usize::try_from(count).map_err(|_| Failure::new("a rank has more keys than it can address"))?;
    if !fits {
        let create = || Spilled::create(&options.folder, count, options.width, options.memory);
        return external(options, source, create, engines).map(Run::Spilled);
    }
    if options.width > 0 {
        let create = || Collected::new(count, options.width);
        return external(options, source, create, engines).map(Collected::run);
    }
    let mut keys = memory::zeroed::<W>(count as u64, "the keys of a rank")?;
    memory::prefer_large_pages(&mut keys);
    if count > 0 {
        source.read(&mut keys, &mut [])?;
        let sort = |engine: &Engine, keys: &mut Vec<W>| Ok(engine.sort(keys)?);
        let restore = |keys: &mut Vec<W>| source.read_again(0, keys, &mut []);
        engines.run(&mut keys, sort, restore).map_err(failure_of_run)?;
    }
    Ok(Run::Memory { keys, payload: Default::default() })
}

/// The library's external sort.
fn external<W: Word, T: Target<W, Error = Failure>>(
    options: &Options,
    source: impl Source<W, Error = Failure>,
    begin: impl FnOnce() -> Result<T>,
    engines: &mut impl Engines<Failure>,
) -> Result<T> {
    match external::sort::<W, _, _, _>(options, source, begin, engines, &mut ()) {
        Ok((target, _)) => Ok(target),
        Err(external::Error::Engine(error)) => Err(error.into()),
        Err(external::Error::Other(failure)) => Err(failure),
        Err(external::Error::TooLittleMemory(error)) => Err(Failure::new(format!("--memory: {error}"))),
        Err(external::Error::Scratch(error)) => Err(Failure::new(error.to_string())),
        Err(external::Error::Thread(error)) => {
            Err(Failure::new(format!("cannot start a thread: {}", os_message(&error))))
        }
        Err(_) => Err(Failure::new("the external sort failed")),
    }
}

fn failure_of_run(error: external::RunError<Failure>) -> Failure {
    match error {
        external::RunError::Engine(error) => error.into(),
        external::RunError::Other(failure) => failure,
    }
}

/// Writes what a sort gives, as it comes.
struct Direct<F> {
    /// Keys written so far.
    written: u64,
    write: F,
}

impl<W: Word, F: FnMut(u64, &[W], &[u8]) -> Result<()> + Send> Target<W> for Direct<F> {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        (self.write)(self.written, keys, payload)?;
        self.written += keys.len() as u64;
        Ok(())
    }
}
