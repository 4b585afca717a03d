//! Sort and merge of more keys than memory holds.
//!
//! Keys come from a [`Source`] and go to a [`Target`], part by part. Keys that fit in memory are sorted there. More
//! keys are sorted in chunks, as runs that go to a temporary file and are merged to the target:
//!
//! ```text
//!   source   │ chunk │ chunk │ chunk │ …      read, sorted and written at the same time, each in its own chunk
//!                │       │       │
//!   file     │  run  │  run  │  run  │ …
//!                └───────┼───────┘
//!   target   ├───────────────────────────┤    one streaming pass, or several if there are too many runs
//! ```
//!
//! Keys are unsigned numbers ([`Word`]) in ascending order. [`Key::to_ordered`](crate::Key::to_ordered) encodes keys of
//! other types as words, and `!` makes the order descending. A source encodes keys as it reads them, and a target
//! decodes them before it writes them. Each key may have a payload of any number of bytes, the same number for all
//! keys: a value, a whole record, or the key's index.
//!
//! # Example
//!
//! Sorts the signed numbers of a file larger than memory, in descending order:
//!
//! ```
//! use merge_host::external::{self, Options, Source, Target};
//! use merge_host::{Engine, Key};
//! use std::fs::File;
//! use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
//!
//! struct Numbers(BufReader<File>);
//!
//! impl Source<u64> for Numbers {
//!     type Error = io::Error;
//!
//!     fn len(&self) -> Option<u64> {
//!         None // Then reading tells.
//!     }
//!
//!     fn read(&mut self, keys: &mut [u64], _payload: &mut [u8]) -> io::Result<usize> {
//!         for (i, key) in keys.iter_mut().enumerate() {
//!             let mut bytes = [0; 8];
//!             match self.0.read_exact(&mut bytes) {
//!                 Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(i),
//!                 result => result?,
//!             }
//!             *key = !i64::from_le_bytes(bytes).to_ordered();
//!         }
//!         Ok(keys.len())
//!     }
//! }
//!
//! struct Sorted(BufWriter<File>);
//!
//! impl Target<u64> for Sorted {
//!     type Error = io::Error;
//!
//!     fn write(&mut self, keys: &mut [u64], _payload: &mut [u8]) -> io::Result<()> {
//!         keys.iter().try_for_each(|key| self.0.write_all(&i64::from_ordered(!key).to_le_bytes()))
//!     }
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let (input, output) = (folder.path().join("input"), folder.path().join("output"));
//! let numbers = (0..500_000i64).map(|i| i * 7919 % 500_000 - 1000);
//! std::fs::write(&input, numbers.flat_map(i64::to_le_bytes).collect::<Vec<u8>>())?;
//!
//! let source = Numbers(BufReader::new(File::open(&input)?));
//! let begin = || Ok(Sorted(BufWriter::new(File::create(&output)?)));
//! let options = Options::new(1 << 20);
//! let (mut target, summary) = external::sort(&options, source, begin, &mut &Engine::cpu(), &mut ())?;
//! target.0.flush()?;
//!
//! assert_eq!((summary.keys_read, summary.keys_written), (500_000, 500_000));
//! assert!(summary.runs > 1);
//! let bytes = std::fs::read(&output)?;
//! let sorted = bytes.chunks_exact(8).map(|key| i64::from_le_bytes(key.try_into().unwrap()));
//! assert!(sorted.eq((-1000..499_000).rev()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Memory and complexity
//!
//! [`Options::memory`] bounds the memory for keys, for payloads and for everything that grows with their number.
//! [`Shape`] documents its division. A sort of more than fits in memory needs at least [`Shape::least_memory`], which
//! is 16 KiB for small keys and payloads. Less memory is an error. With 16 KiB a sort of 64 MB takes some seconds, and
//! with 1 MiB half a second. Memory of sources and targets is not counted.
//!
//! Each key is read from the source once and written to the target once. In between, each pass writes it to the
//! temporary file once and reads it from there once. One pass merges [`fan_in`](Shape::fan_in) runs. With 1 GiB of
//! memory one pass suffices for 200 GB of `u64` keys, and with 8 GiB for 8 TB. A sort of n keys in r runs takes O(n log
//! r) time.
//!
//! # Threads
//!
//! In addition to the engine's threads, two threads read and write, and other threads help them. All calls share the
//! helping threads. A call by a thread of a pool has its own helping threads, which end with the call. So all threads
//! of a pool may call [`sort`] and [`merge`] at once, and so may sources and targets. The calling thread takes up no
//! other work of its pool while it waits. If sources and targets use rayon, their loops run on the helping threads.
//! With an engine [`on_current_pool`](Engine::on_current_pool), and a calling thread that belongs to no pool, the
//! threads of rayon's global pool help.
//!
//! # Errors
//!
//! An [`Error`] names the part that failed: a source or a target, the engine, the temporary file, or the memory if it
//! is too little. Blocks of the temporary file have checksums, so damage to the file is an error. The file is unnamed,
//! so its space is free again however the program ends. Keys that a target has taken before an error stay in the
//! target.

mod block;
mod chunks;
mod engines;
mod error;
mod merge;
mod observer;
mod passes;
mod positioned;
mod run;
mod shape;
mod sink;
mod sort;
mod sorter;
mod source;
mod spill;
mod threads;
mod ties;
pub mod window;

pub use engines::Engines;
pub use error::{Error, RunError, ScratchError, TooLittleMemory};
pub use observer::{Observer, Phase};
pub use shape::Shape;
pub use source::{Source, Target};
pub use ties::Ties;

use crate::cpu::memory::collected;
use crate::{Engine, SortKernel, Word};
use passes::Merger;
use run::Run;
use sort::Sort;
use source::{AnySource, Begin, Input};
use std::path::PathBuf;
use threads::Helpers;

/// The options of a sort or merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The greatest number of bytes of memory to use: at least [`Shape::least_memory`], unless all keys fit.
    pub memory: u64,
    /// The folders of the temporary files, in which runs are spilled in turn. The files are created only if not all
    /// keys fit in memory. If there is no folder, it is [`std::env::temp_dir`].
    pub folders: Vec<PathBuf>,
    /// The greatest number of runs to merge at once. `None` derives it from `memory`. Less than 2 counts as 2.
    pub fan_in: Option<usize>,
    /// Whether to keep only the first of equal keys.
    pub unique: bool,
    /// The number of bytes of each key's payload.
    pub width: usize,
    /// How a GPU sorts what fits in memory.
    pub kernel: SortKernel,
}

impl Options {
    /// Options for keys without payload that keep equal keys, in the folder [`std::env::temp_dir`].
    pub fn new(memory: u64) -> Self {
        Self { memory, folders: Vec::new(), fan_in: None, unique: false, width: 0, kernel: SortKernel::Auto }
    }

    /// The sizes of a key of type `W` and its payload.
    pub fn shape<W: Word>(&self) -> Shape {
        Shape { key: size_of::<W>(), width: self.width }
    }
}

/// The numbers of keys and runs of a sort or merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of keys that the sources gave.
    pub keys_read: u64,
    /// The number of keys that the target received. It is less than `keys_read` only with [`Options::unique`].
    pub keys_written: u64,
    /// The number of runs written to the temporary file.
    pub runs: u64,
}

/// Sorts all keys of `source` to the target that `begin` opens, and returns that target. Stable: payloads of equal keys
/// keep the order of the source.
///
/// Keys that fit in memory are sorted there. Otherwise they are sorted as runs in a temporary file, and the runs are
/// merged. `begin` is called once, on this thread, before the first write. If there are no keys, nothing is written to
/// the target.
///
/// The engine moves a payload of 4 or 8 bytes together with its key. Other payloads are moved once, by their indices.
///
/// # Errors
/// [`Error::Other`] has the errors of `source`, `begin` and the target. [`Error::TooLittleMemory`] if the keys do not
/// fit in memory, and the memory is less than [`Shape::least_memory`]. The other variants of [`Error`] if another part
/// fails.
pub fn sort<W, S, T, E>(
    options: &Options,
    source: S,
    begin: impl FnOnce() -> Result<T, E>,
    engines: &mut impl Engines<E>,
    observer: &mut impl Observer,
) -> Result<(T, Summary), Error<E>>
where
    W: Word,
    S: Source<W, Error = E>,
    T: Target<W, Error = E>,
    E: Send,
{
    let source: AnySource<W, E> = Box::new(source);
    with_target(begin, |begin| Sort::new(options, source, engines, observer).run(begin))
}

/// Merges `sources`, which are sorted, to the target that `begin` opens, and returns that target. Equal keys keep the
/// order of their sources.
///
/// Sources are merged while they are read. More than [`Shape::fan_in`] sources are merged in several passes, by way of
/// a temporary file. `begin` is called once, on this thread, before the first write. If there are no keys, nothing is
/// written to the target.
///
/// The order of each source is not checked. If a source is not sorted, neither is the output, but it still has every
/// key.
///
/// # Errors
/// [`Error::Other`] has the errors of `sources`, `begin` and the target. [`Error::TooLittleMemory`] if the memory is
/// less than [`Shape::least_memory`]. The other variants of [`Error`] if another part fails.
pub fn merge<W, S, T, E>(
    options: &Options,
    sources: Vec<S>,
    begin: impl FnOnce() -> Result<T, E>,
    engine: &Engine,
    observer: &mut impl Observer,
) -> Result<(T, Summary), Error<E>>
where
    W: Word,
    S: Source<W, Error = E>,
    T: Target<W, Error = E>,
    E: Send,
{
    let fan_in = options.shape::<W>().fan_in(options.memory, options.fan_in)?;
    let any = |source| -> AnySource<W, E> { Box::new(source) };
    let runs = collected(sources.into_iter().map(|source| Run::Source(Input::new(any(source)))))?;
    let helpers = Helpers::of(engine)?;
    let merger = Merger { options, engine, helpers, observer, spills: None, summary: Summary::default() };
    with_target(begin, |begin| merger.merge(runs, fan_in, begin))
}

/// Calls `work` with a function that opens a target of any type by `begin`, and returns the target. `work` calls the
/// function once.
fn with_target<W: Word, T: Target<W, Error = E>, E>(
    begin: impl FnOnce() -> Result<T, E>,
    work: impl FnOnce(Begin<W, E>) -> Result<Summary, Error<E>>,
) -> Result<(T, Summary), Error<E>> {
    let mut target = None;
    let summary = work(Box::new(|| Ok(target.insert(begin()?))))?;
    Ok((target.expect("`work` opens the target"), summary))
}
