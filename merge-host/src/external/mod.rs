//! Sort and merge of more keys than memory holds.
//!
//! Keys come from a [`Source`] and go to a [`Target`], part by part. What fits in memory is sorted there. More is
//! sorted in chunks, as runs that go to a temporary file and are merged to the target:
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
//! other types as such, and `!` makes the order descending: a source encodes keys as it reads them, and a target
//! decodes them before it writes them. Each key may have a payload, which is any number of bytes, the same for all
//! keys: a value, a whole record, or the key's index.
//!
//! # Example
//!
//! Sorts signed numbers of a file that is larger than memory, in descending order:
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
//! [`Options::memory`] bounds keys, payloads and everything that grows with their number; [`Shape`] says how it is
//! divided. What does not fit needs [`Shape::least_memory`], 16 KiB for small keys and payloads, and less is refused.
//! With so little a sort of 64 MB takes some seconds, and with 1 MiB half a second. Sources and targets have their own.
//! Each key is read from the source once and written to the target once, and between them it is written to the
//! temporary file and read from it once for each pass. One pass merges [`fan_in`](Shape::fan_in) runs: with 1 GiB of
//! memory it is enough for 200 GB of `u64` keys, and with 8 GiB for 8 TB. A sort of n keys in r runs takes O(n log r)
//! time.
//!
//! # Threads
//!
//! Besides the engine's threads, two threads read and write, and others help them. These are shared by all calls, and a
//! call by a thread of a pool has its own, which end with it. So [`sort`] and [`merge`] may be called by all threads of
//! a pool at once, and by sources and targets. The calling thread takes up no other work of its pool while it waits.
//! Sources and targets that use rayon do so on the threads that help. If the engine is one of
//! [`Engine::on_current_pool`], and the calling thread belongs to no pool, the threads of rayon's global pool help.
//!
//! # Errors
//!
//! An [`Error`] names what failed: a source or a target, the engine, the temporary file, or the memory, if it is too
//! little. Blocks of the temporary file have checksums, so that damage to it is an error. The file is unnamed, and its
//! space is free again however the program ends. What a target has taken before an error stays where it is.

mod block;
mod chunks;
mod engines;
mod error;
mod merge;
mod observer;
mod passes;
mod run;
mod shape;
mod sink;
mod sort;
mod sorter;
mod source;
mod spill;
mod threads;
pub mod window;

pub use engines::Engines;
pub use error::{Error, RunError, ScratchError, TooLittleMemory};
pub use observer::{Observer, Phase};
pub use shape::Shape;
pub use source::{Source, Target};

use crate::cpu::memory::collected;
use crate::{Engine, Word};
use passes::Merger;
use run::Run;
use sort::Sort;
use source::{AnySource, Begin, Input};
use std::path::PathBuf;
use threads::Helpers;

/// How to sort or merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of memory to use at most: [`Shape::least_memory`] or more, unless all keys fit.
    pub memory: u64,
    /// The folder of the temporary file, which is created only if not all keys fit in memory.
    pub folder: PathBuf,
    /// The most runs to merge at once; `None` is as many as `memory` is good for. Below 2 counts as 2.
    pub fan_in: Option<usize>,
    /// Whether only the first of equal keys is wanted.
    pub unique: bool,
    /// Bytes of each key's payload.
    pub width: usize,
}

impl Options {
    /// Keys without payload, and equal ones are kept. The folder is [`std::env::temp_dir`].
    pub fn new(memory: u64) -> Self {
        Self { memory, folder: std::env::temp_dir(), fan_in: None, unique: false, width: 0 }
    }

    /// The sizes of a key of type `W` and its payload.
    pub fn shape<W: Word>(&self) -> Shape {
        Shape { key: size_of::<W>(), width: self.width }
    }
}

/// What a sort or merge has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Keys that the sources gave.
    pub keys_read: u64,
    /// Keys that the target got. They are fewer only if [`Options::unique`] is set.
    pub keys_written: u64,
    /// Runs that were written to the temporary file.
    pub runs: u64,
}

/// Sorts all keys of `source` to the target that `begin` opens, and returns that target. Stable: payloads of equal keys
/// keep the order of the source.
///
/// Keys are sorted in memory if they fit, or else as runs in a temporary file, which are merged. `begin` is called
/// once, on this thread, before the first write. If there are no keys, nothing is written to the target.
///
/// A payload of 4 or 8 bytes moves with its key through the engine. Others are moved once, by their indices.
///
/// # Errors
/// Those of `source`, `begin` and the target as [`Error::Other`], and the other variants of [`Error`].
/// [`Error::TooLittleMemory`] if the keys do not fit in memory, and it is less than [`Shape::least_memory`].
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

/// Merges `sources`, each of which is sorted, to the target that `begin` opens, and returns that target. Of equal keys,
/// those of an earlier source come first.
///
/// Sources are merged while they are read. More than [`Shape::fan_in`] are merged in several passes, by way of a
/// temporary file. `begin` is called once, on this thread, before the first write. If there are no keys, nothing is
/// written to the target.
///
/// The order of each source is not checked. If one is not sorted, neither is the output, but it still has every key.
///
/// # Errors
/// Those of `sources`, `begin` and the target as [`Error::Other`], and the other variants of [`Error`].
/// [`Error::TooLittleMemory`] if the memory is less than [`Shape::least_memory`].
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
    let merger = Merger { options, engine, helpers, observer, spill: None, summary: Summary::default() };
    with_target(begin, |begin| merger.merge(runs, fan_in, begin))
}

/// Calls `work` with `begin`, which it calls once, as a function that opens a target of any type. Returns that target.
fn with_target<W: Word, T: Target<W, Error = E>, E>(
    begin: impl FnOnce() -> Result<T, E>,
    work: impl FnOnce(Begin<W, E>) -> Result<Summary, Error<E>>,
) -> Result<(T, Summary), Error<E>> {
    let mut target = None;
    let summary = work(Box::new(|| Ok(target.insert(begin()?))))?;
    Ok((target.expect("`work` opens the target"), summary))
}
