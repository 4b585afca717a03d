//! A sort on all ranks: each rank sorts its slice to a run, and all ranks exchange their runs.

use crate::agree::step;
use crate::exchange::{Exchange, Reduction};
use crate::pieces::{exchange as exchange_runs, keys_of_piece, part};
use crate::reach::{Reached, reached};
use crate::run::{Collected, Run, Spilled};
use crate::search::splits;
use crate::times::{Phase, Times};
use crate::windows;
use merge_cli::shared::{Failure, Result, Word, failure, memory, os_message};
use merge_host::external::{self, Engines, Options, Source, Target};
use merge_host::{Engine, parallel};

/// The most parts of all ranks with borders that are searched at once. This bounds the length of a message for a sum.
const MOST_PARTS: usize = 1024;

/// The numbers of keys of a rank and of all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The number of keys in its slice.
    pub own: u64,
    /// The number of keys in the slices of all ranks.
    pub all: u64,
}

/// Sorts the keys of all ranks' sources, with their payload. Equal keys keep the order of ranks and indices. Calls
/// `write` with sorted keys of this rank's part, their payload, and the index of the first key in the part.
///
/// `options` limit the resources of this rank.
///
/// # Errors
/// If a rank fails: this rank returns its failure, and the others a failure without a message.
pub fn sort<W: Word, X: Exchange>(
    exchange: &X,
    source: impl Source<W, Error = Failure>,
    share: Share,
    options: &Options,
    engines: &mut impl Engines<Failure>,
    times: &Times,
    write: impl Fn(u64, &[W], &[u8]) -> Result<()> + Sync,
) -> Result<()> {
    let is_alone = exchange.size() == 1;
    if is_alone && (options.width > 0 || !fits::<W>(share.own, options, engines)?) {
        // A single rank exchanges nothing, so it writes directly without a run.
        let begin = || Ok(Direct { written: 0, write: &write });
        return step(exchange, || times.of(Phase::Sort, || external(options, source, begin, engines).map(drop)));
    }
    let mut run = step(exchange, || times.of(Phase::Sort, || make_run(source, share.own, options, engines)))?;
    if let (true, Run::Memory { keys, payload }) = (is_alone, &run) {
        return step(exchange, || times.of(Phase::Write, || write(0, keys, payload.get())));
    }
    // The sort's scratch memory is not needed any more.
    merge_host::release_memory();
    let windows = windows::memory::<W>(exchange.size(), options.width).saturating_mul(rayon::current_num_threads());
    let have_memory = run.memory().saturating_add(windows) as u64 <= options.memory;
    if let Some(runs) = reached(exchange, &run, have_memory) {
        return merge_reached(exchange, &mut run, runs, (share.all, options.width), times, write);
    }
    let merging = engines.cpu().map_err(failure)?.clone();
    let keys = keys_of_piece(&run, options.width, exchange.size(), options.memory);
    exchange_runs(exchange, run, (share.all, options.width), keys, merging, times, write)
}

/// Merges this rank's part of the sorted keys from the runs of all ranks, which are in reach. Each thread merges a part
/// of the part. There are `count` keys in all, with payloads of `width` bytes. `run` is the run of this rank.
fn merge_reached<W: Word, X: Exchange>(
    exchange: &X,
    run: &mut Run<W>,
    runs: Vec<Reached<W>>,
    (count, width): (u64, usize),
    times: &Times,
    write: impl Fn(u64, &[W], &[u8]) -> Result<()> + Sync,
) -> Result<()> {
    let (rank, size) = (exchange.rank(), exchange.size());
    let mut most = [rayon::current_num_threads() as u64];
    exchange.all_reduce(Reduction::Max, &mut most);
    let threads = (most[0] as usize).min(MOST_PARTS / size).max(1);
    let parts = (0..size).flat_map(|rank| {
        let all = part(count, size, rank);
        (0..threads).map(move |thread| all.start + part(all.end - all.start, threads, thread).start)
    });
    let borders: Vec<u64> = parts.chain([count]).collect();
    let bounds = times.of(Phase::Split, || splits(exchange, run, &borders))?;
    let bounds: Vec<u64> = bounds.windows(2).flat_map(|pair| [pair[0] as u64, pair[1] as u64]).collect();
    let bounds = exchange.transpose(&bounds);
    let own = &borders[rank * threads..][..threads];
    let merge = |(thread, begin): (usize, &u64)| {
        let of_run = |(run, bounds): (&Reached<W>, &[u64])| run.part(bounds[2 * thread]..bounds[2 * thread + 1], width);
        let parts = runs.iter().zip(bounds.chunks(2 * threads)).map(of_run).collect();
        windows::merge(parts, width, |at, keys, payload| write(begin - own[0] + at, keys, payload))
    };
    // Other ranks read this rank's run until all ranks have reached the end of this step.
    step(exchange, || times.of(Phase::Merge, || parallel::try_for_each(own.iter().enumerate(), merge)))
}

/// Whether `count` keys can be sorted at once.
fn fits<W: Word>(count: u64, options: &Options, engines: &mut impl Engines<Failure>) -> Result<bool> {
    let on_gpu = engines.device_memory().map_err(failure)?;
    let shape = options.shape::<W>();
    Ok(shape.in_memory(count) <= options.memory.into() && on_gpu.is_none_or(|bytes| count <= shape.most_on_gpu(bytes)))
}

/// Sorts the `count` keys of a source to a run: in memory if they fit, otherwise in files.
fn make_run<W: Word>(
    mut source: impl Source<W, Error = Failure>,
    count: u64,
    options: &Options,
    engines: &mut impl Engines<Failure>,
) -> Result<Run<W>> {
    let fits = fits::<W>(count, options, engines)?;
    let count = usize::try_from(count).map_err(|_| Failure::new("a rank has more keys than it can address"))?;
    if !fits {
        let folder = options.folders.first().cloned().unwrap_or_else(std::env::temp_dir);
        let create = || Spilled::create(&folder, count, options.width, options.memory);
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
        engines.run(&mut keys, sort, restore).map_err(failure)?;
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
    let sorted = external::sort::<W, _, _, _>(options, source, begin, engines, &mut ());
    sorted.map(|(target, _)| target).map_err(failure_of)
}

fn failure_of(error: external::Error<Failure>) -> Failure {
    match error {
        external::Error::Engine(error) => error.into(),
        external::Error::Other(failure) => failure,
        external::Error::TooLittleMemory(error) => Failure::new(format!("--memory: {error}")),
        external::Error::Scratch(error) => Failure::new(error.to_string()),
        external::Error::Thread(error) => Failure::new(format!("cannot start a thread: {}", os_message(&error))),
        _ => Failure::new("the external sort failed"),
    }
}

/// Passes the sorted keys directly to `write`.
struct Direct<F> {
    /// The number of keys that have been written.
    written: u64,
    write: F,
}

impl<W: Word, F: Fn(u64, &[W], &[u8]) -> Result<()> + Send> Target<W> for Direct<F> {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<()> {
        (self.write)(self.written, keys, payload)?;
        self.written += keys.len() as u64;
        Ok(())
    }
}
