//! `gmerge-mpi sort`: files to files.
//!
//! All ranks take every step, and a failure of one rank ends all ranks. Rank 0 creates the temporary file of the
//! output, sends its location to the others, and renames it when all have written their parts. With `--parts`, each
//! rank creates and renames a file of its own.

use crate::agree::{agree, guarded, step};
use crate::engine::{Place, RankEngine};
use crate::exchange::{Exchange, Reduction};
use crate::output::{Owner, Window, open, write as write_items};
use crate::pieces::part;
use crate::sort::{Share, sort};
use crate::times::{Phase, Times, lines};
use merge_cli::shared::{
    self, Concatenation, Failure, Items, KeySource, MemorySize, Output, PayloadSource, Resources, Result, SharedWriter,
    SortFlags, SortJob, Word, is_in_memory, known_width, memory, report, temporary_folders, threads, with_word,
};
use merge_host::Work;
use merge_host::external::Options;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Stands for the number of a rank in the name of a file.
const RANK: &str = "{rank}";
/// Bytes of the longest key of records.
const LONGEST_KEY: usize = 16;
/// The least memory that a rank gets, in bytes.
const LEAST_MEMORY: u64 = 1 << 20;

/// How a rank sorts.
#[derive(Clone, Copy, Debug)]
pub struct Ranks<'a, X> {
    /// All ranks.
    pub exchange: &'a X,
    /// This rank on its machine.
    pub place: Place,
    /// The threads of this rank, unless `--parallel` is given.
    pub threads: usize,
}

/// Sorts files on all ranks. With `parts`, each writes a file of its own.
///
/// # Errors
/// If a rank fails: this rank returns its failure, and the others a failure without a message.
pub fn run<X: Exchange>(ranks: Ranks<X>, mut flags: SortFlags, parts: bool) -> Result<()> {
    let exchange = ranks.exchange;
    // The names are the same on all ranks, so all ranks get the same result.
    let has_rank = |path: &PathBuf| contains(path, RANK);
    let is_local = flags.inputs.iter().chain(flags.values.paths()).any(has_rank);
    let checked = check_names(&flags, is_local, parts);
    let number = exchange.rank().to_string();
    for path in flags
        .inputs
        .iter_mut()
        .chain(flags.values.paths_mut())
        .chain([&mut flags.output])
        .chain(&mut flags.written_values.values_out)
    {
        *path = replaced(path, RANK, &number);
    }
    let job = agree(exchange, checked.and_then(|()| guarded(|| decide(flags))))?;
    let size = match &job.items {
        Items::Keys(key_type) | Items::Values(key_type, _) => key_type.size(),
        Items::Records(_, key) if key.size() <= size_of::<u64>() => size_of::<u64>(),
        Items::Records(..) => size_of::<u128>(),
    };
    with_word!(size, W => sort_files::<W, X>(ranks, job, is_local, parts))
}

/// Refuses names that are equal on all ranks but must differ.
fn check_names(flags: &SortFlags, is_local: bool, parts: bool) -> Result<()> {
    let inputs = flags.inputs.iter().chain(flags.values.paths());
    if let Some(path) = inputs.clone().find(|path| is_local != contains(path, RANK)) {
        let with = if contains(path, RANK) { "has" } else { "has no" };
        return Err(Failure::file(
            path,
            format!("{with} {RANK} in its name, expected it in all names of inputs or in none"),
        ));
    }
    for path in [&flags.output].into_iter().chain(&flags.written_values.values_out) {
        match (parts, contains(path, RANK)) {
            (true, false) => {
                return Err(Failure::file(path, format!("has no {RANK} in its name, expected it there with --parts")));
            }
            (false, true) => {
                return Err(Failure::file(path, format!("has {RANK} in its name, expected --parts with it")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn contains(path: &Path, text: &str) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The path with every `from` replaced by `to`.
fn replaced(path: &Path, from: &str, to: &str) -> PathBuf {
    let (mut rest, mut bytes) = (path.as_os_str().as_bytes(), Vec::new());
    while let Some(at) = rest.windows(from.len()).position(|window| window == from.as_bytes()) {
        bytes.extend_from_slice(&rest[..at]);
        bytes.extend_from_slice(to.as_bytes());
        rest = &rest[at + from.len()..];
    }
    bytes.extend_from_slice(rest);
    OsString::from_vec(bytes).into()
}

/// The job of these flags, after checks of the conditions for several ranks.
fn decide(flags: SortFlags) -> Result<SortJob> {
    let job = shared::sort(flags)?;
    job.outputs.iter().try_for_each(Output::check_can_be_shared)?;
    check_regular(&job.input)?;
    match &job.items {
        Items::Keys(_) => {}
        Items::Values(_, values) => check_regular(values)?,
        Items::Records(_, key) if key.size() > LONGEST_KEY => {
            let message = format!("expected a --key of at most {LONGEST_KEY} bytes, found {}", key.size());
            return Err(Failure::file(job.input.path(), message));
        }
        Items::Records(..) => {}
    }
    Ok(job)
}

/// An error unless all inputs can be read at any offset.
fn check_regular(inputs: &Concatenation) -> Result<()> {
    match inputs.inputs().iter().find(|input| !input.is_regular()) {
        Some(input) => {
            Err(Failure::file(input.path(), "is no regular file, expected one: each rank reads a part of it"))
        }
        None => Ok(()),
    }
}

/// The keys that a rank reads.
struct Extent {
    /// The indices of the keys that it reads, in its inputs.
    slice: Range<u64>,
    /// The number of keys of all ranks.
    all: u64,
    /// Bytes of a key's payload.
    width: usize,
}

impl Extent {
    /// An even slice of the files that all ranks see, or all of the files that only this one reads.
    fn of<W: Word>(exchange: &impl Exchange, job: &SortJob, is_local: bool) -> Result<Self> {
        let (count, width) = step(exchange, || {
            Ok(match &job.items {
                Items::Keys(_) => (known(job.input.count::<W>()?), 0),
                Items::Values(_, values) => (
                    known(job.input.count::<W>()?),
                    known_width(job.input.inputs(), W::SIZE, values.inputs())?.unwrap_or(0),
                ),
                Items::Records(layout, _) => {
                    let files = job.input.inputs().iter();
                    let counts = files.map(|file| layout.count(file.path(), known(file.length())));
                    (counts.sum::<Result<u64>>()?, layout.size)
                }
            })
        })?;
        let mut sums = [count];
        exchange.all_reduce(Reduction::Sum, &mut sums);
        let (mut most, mut least) = ([count, width as u64], [if count > 0 { width as u64 } else { u64::MAX }, count]);
        exchange.all_reduce(Reduction::Max, &mut most);
        exchange.all_reduce(Reduction::Min, &mut least);
        let path = job.input.path();
        let same = if least[0] != u64::MAX && least[0] != most[1] && count > 0 && width as u64 != most[1] {
            Err(Failure::file(path, format!("has values of {width} bytes, expected {} as on another rank", most[1])))
        } else if !is_local && least[1] != most[0] && count != most[0] {
            let found = format!("has {count} keys on this rank, expected the {} of another rank", most[0]);
            Err(Failure::file(path, format!("{found}: do all see the same files?")))
        } else {
            Ok(())
        };
        agree(exchange, same)?;
        let (slice, all) =
            if is_local { (0..count, sums[0]) } else { (part(count, exchange.size(), exchange.rank()), count) };
        Ok(Self { slice, all, width: most[1] as usize })
    }
}

/// The length of a regular file.
fn known(length: Option<u64>) -> u64 {
    length.unwrap_or(0)
}

/// The budget of a rank for keys and payloads, in bytes. All ranks of its machine together write `files` bytes to files
/// in memory.
fn budget(asked: Option<MemorySize>, place: Place, files: u64) -> Result<u64> {
    let share = |asked| Ok::<_, Failure>((memory::budget(asked, files)? / place.size as u64).max(LEAST_MEMORY));
    match asked {
        Some(MemorySize::Bytes(_)) => Ok(memory::budget(asked, 0)?.min(share(Some(MemorySize::Percent(100)))?)),
        asked => share(asked),
    }
}

/// Starts the threads of a rank, `threads` unless `--parallel` is given. Returns the limits of its sort of `own` keys
/// with payloads of `width` bytes. All ranks of its machine together write `files` bytes to files in memory.
fn options<W: Word>(
    resources: Resources,
    place: Place,
    threads: usize,
    (own, width): (u64, usize),
    files: u64,
) -> Result<Options> {
    let Resources { processors: _, sort_kernel: _, threads: wanted, memory, folders, fan_in } = resources;
    let useful = threads::useful(Some(own.saturating_mul((W::SIZE + width) as u64)));
    threads::start(Some(wanted.unwrap_or(threads)), useful)?;
    let memory = budget(memory, place, files)?;
    let options = Options { fan_in, width, ..Options::new(memory) };
    let fits = options.shape::<W>().in_memory(own) <= memory.into();
    report::verbose(format_args!(
        "memory: {memory} bytes for {own} keys, {}",
        if fits { "which fit" } else { "in chunks" }
    ));
    // A named folder is checked even if it is not needed.
    let folders = if fits && folders.is_empty() { Vec::new() } else { temporary_folders(&folders)? };
    Ok(Options { folders: folders.into_iter().map(|folder| folder.path).collect(), ..options })
}

fn sort_files<W: Word, X: Exchange>(ranks: Ranks<X>, job: SortJob, is_local: bool, parts: bool) -> Result<()> {
    let Ranks { exchange, place, threads } = ranks;
    let Extent { slice, all, width } = Extent::of::<W>(exchange, &job, is_local)?;
    let SortJob { input, items, mut outputs, resources } = job;
    let (own, choice) = (slice.end - slice.start, resources.processors.engine);
    let part = part(all, exchange.size(), exchange.rank());
    let count = part.end - part.start;
    let window = if parts { Window { first: 0, count, all: count } } else { Window { first: part.start, count, all } };
    let owner = if parts { Owner::Each } else { Owner::First { on_one_machine: place.size == exchange.size() } };
    // Records are payloads, and their keys are not written.
    let has_keys = !matches!(items, Items::Records(..));
    let payload = match items {
        Items::Keys(_) => PayloadSource::None,
        Items::Values(_, values) => PayloadSource::Values(values, width),
        Items::Records(layout, key) => PayloadSource::records(layout, key),
    };
    let source = KeySource::of_range::<W>(input, payload, slice);
    outputs.set_width(width);
    let in_memory = |output: &&Output| output.folder().is_some_and(is_in_memory);
    let item: u64 = outputs.iter().filter(in_memory).map(|output| output.size() as u64).sum();
    let files = count.saturating_mul(item).saturating_mul(place.size as u64);
    let options = step(exchange, || options::<W>(resources, place, threads, (own, width), files))?;
    outputs.expect(window.all);
    let keys_writer = open(exchange, outputs.keys, window, owner)?;
    let values_writer = outputs.values.map(|values| open(exchange, values, window, owner)).transpose()?;
    let mut engine = step(exchange, || {
        let count = usize::try_from(own).map_err(|_| Failure::new("a rank has more keys than it can address"))?;
        RankEngine::start(choice, W::SIZE, Work::sort::<W>(count).with_values(width), place)
    })?;
    let times = Times::default();
    // Pages of files in memory are requested from here on, while keys are read and sorted.
    let regions = step(exchange, || {
        let keys = keys_writer.region(window.first, window.count)?;
        let values = values_writer.as_ref().map(|writer| writer.region(window.first, window.count));
        Ok((keys, values.transpose()?))
    })?;
    let write = |begin: u64, keys: &[W], payload: &[u8]| {
        let (keys_region, values_region) = &regions;
        if !has_keys {
            return write_items(keys_region, begin * width as u64, payload);
        }
        write_items(keys_region, begin, keys)?;
        values_region.as_ref().map_or(Ok(()), |region| write_items(region, begin * width as u64, payload))
    };
    sort(exchange, source, Share { own, all }, &options, &mut engine, &times, write)?;
    drop(regions);

    let writers: Vec<SharedWriter> = [keys_writer].into_iter().chain(values_writer).collect();
    step(exchange, || times.of(Phase::Write, || writers.iter().try_for_each(SharedWriter::sync)))?;
    step(exchange, || SharedWriter::commit(writers))?;
    say_times(exchange, &times);
    Ok(())
}

/// Prints the longest time of any rank for each phase.
fn say_times(exchange: &impl Exchange, times: &Times) {
    let mut most = times.all();
    exchange.all_reduce(Reduction::Max, &mut most);
    if exchange.rank() == 0 {
        lines(&most).iter().for_each(|line| report::verbose(format_args!("{line}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_rank_is_in_every_name_or_in_none() {
        let path = Path::new("a{rank}/b{rank}.u32");
        assert!(contains(path, RANK) && !contains(Path::new("{ran}k"), RANK));
        assert_eq!(replaced(path, RANK, "12"), Path::new("a12/b12.u32"));
        assert_eq!(replaced(Path::new("a.u32"), RANK, "12"), Path::new("a.u32"));
    }
}
