//! `gmerge-mpi` sorts files on several machines, by MPI.
//!
//! | module | contents |
//! | --- | --- |
//! | `args` | the command line |
//! | `job`, `check` | the commands: files to files |
//! | `output` | the part of a file that a rank writes |
//! | [`sort`] | a sort on all ranks |
//! | [`run`] | the sorted run of a rank, in memory or in files |
//! | [`search`] | exact splits of the runs of all ranks |
//! | [`pieces`], [`merge`] | the exchange in pieces, which are merged and written during the exchange |
//! | [`reach`] | runs in the memory of other processes of the same machine, which are not sent |
//! | [`windows`] | merges of such runs, through windows in the cache |
//! | [`exchange`] | communication between ranks: by MPI, by threads, or of a single rank |
//! | [`agree`] | steps that succeed on all ranks, or end all ranks |
//! | `engine` | the GPU of a rank, or its cores |
//!
//! ```text
//!   rank 0   slice ─ sort ─► run ─┐            ┌─ merge ─► part 0 of the output
//!   rank 1   slice ─ sort ─► run ─┤  exchange  ├─ merge ─► part 1
//!   rank 2   slice ─ sort ─► run ─┘            └─ merge ─► part 2
//! ```

pub mod agree;
mod args;
mod bytes;
mod check;
mod engine;
pub mod exchange;
mod job;
pub mod merge;
mod output;
pub mod pieces;
pub mod reach;
pub mod run;
pub mod search;
pub mod sort;
mod times;
pub mod windows;

pub use args::main;
pub use bytes::Bytes;
pub use times::{Phase, Times};
