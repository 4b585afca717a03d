//! The command line: every flag once, with its help.

mod commands;
mod groups;
mod sort_1;
pub mod usage;

pub use commands::{
    BatchArgs, CheckArgs, CompletionsArgs, GenArgs, ManArgs, MergeArgs, MergingArgs, SearchArgs, SetArgs, SortArgs,
};
pub use groups::{
    CommonArgs, EngineArgs, ListArgs, MemoryArgs, OrderArgs, OutputArgs, RecordArgs, TableArgs, UniqueArgs, ValuesArgs,
    WritingArgs, WrittenValuesArgs,
};

use crate::spec::When;
use clap::{Parser, Subcommand};

/// Sorts and merges files of binary numbers, on an NVIDIA GPU or on all CPU cores
///
/// A raw file is an array of keys without a header. The least significant byte of a key comes first, and the file's
/// extension (`keys.u32`) or --type names the type. NumPy's .npy files with one dimension and Apache Arrow's files and
/// streams with one column are recognized by content, and written where the name ends in .npy, .arrow, .feather, .ipc
/// or .arrows. `sort`, `merge` and `check` also take tables: Arrow files with any columns, and Parquet files. Sorts and
/// merges are stable. Floating-point keys are in the order -inf, ..., -0.0, +0.0, ..., +inf, and then NaNs, which --nan
/// moves. Every key keeps its bits.
///
/// Output goes to a temporary file beside its target, which it replaces when it is complete: a run that fails or is
/// interrupted leaves the old file as it was. The target may therefore also be an input.
#[derive(Debug, Parser)]
#[command(
    name = "gmerge",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  gmerge gen -n 100000000 --seed 1 --dist zipf -o keys.u32
  gmerge sort keys.u32 -o keys.u32 --stats text
  gmerge sort keys.u32 --values keys.rows -o sorted.u32 --values-out sorted.rows
  gmerge merge monday.f64 tuesday.f64 wednesday.f64 -o week.f64
  gmerge merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows
  gmerge batch a.bin b.bin -o out.bin -d 64 --type i64
  gmerge check week.f64 && echo in order
  gmerge intersect monday.u64 tuesday.u64 -o both.u64
  gmerge search both.u64 1234

Exit codes: 0 done, 1 `check` found a key out of order or `search` did not find a key, 2 error, 128 + n ended by \
signal n."
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Flags of all commands about the output on standard error.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Print errors only: no warnings, and no progress unless `--progress always` asks for it
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print decisions and their reasons: type of the keys, engine, threads, memory, how files are read and written
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Show progress: bytes read and written, rate, and time left
    ///
    /// `auto` shows it where standard error is a terminal, and not with --quiet.
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub progress: When,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sort one or more files into one
    ///
    /// The sort is stable, with --reverse too.
    #[command(after_help = "\
Examples:
  gmerge sort keys.u32 -o sorted.u32
  gmerge sort keys.u32 --values keys.rows -o sorted.u32 --values-out sorted.rows --reverse
  gmerge sort keys.f64 --argsort -o order.u64
  gmerge sort gensort.dat -o sorted.dat --record-size 100 --key 0:bytes10
  gmerge sort trades.bin -o trades.bin --record-size 24 --key 8:u32,16:f64:desc
  gmerge sort trades.parquet -o sorted.parquet --key symbol,price:desc:nulls-first
  gmerge sort huge.u64 -o sorted.u64 --memory 8G --tmp-dir /scratch --check")]
    Sort(SortArgs),
    /// Merge any number of sorted files into one
    ///
    /// Equal keys come out in the order of the files.
    #[command(after_help = "\
Examples:
  gmerge merge a.f32 b.f32 c.f32 -o merged.f32
  gmerge merge a.f32 b.f32 -o merged.f32 --kernel tiled
  gmerge merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows
  gmerge merge monday.parquet tuesday.parquet -o week.parquet --key symbol,price:desc")]
    Merge(MergeArgs),
    /// Merge many pairs of short sorted runs
    ///
    /// With -d, A holds N runs of L keys one after the other, and B holds N runs of D - L keys. Run i of A and run i of
    /// B are merged into run i of OUT, which holds N runs of D keys. With --offsets, runs have any lengths.
    #[command(after_help = "\
Examples:
  gmerge batch a.u32 b.u32 -o out.u32 -d 256 --a-len 100
  gmerge batch a.u32 b.u32 -o out.u32 --offsets a.offsets b.offsets")]
    Batch(BatchArgs),
    /// Write the keys that are in one or both of two sorted files
    ///
    /// A key that is m times in A and n times in B is max(m, n) times in the output, as in C++'s std::set_union. Keys
    /// are equal if all of their bits are: -0.0 differs from 0.0, and a NaN equals itself.
    #[command(after_help = "Example: gmerge union a.u32 b.u32 -o either.u32")]
    Union(SetArgs),
    /// Write the keys that are in both of two sorted files
    ///
    /// A key that is m times in A and n times in B is min(m, n) times in the output, as in C++'s std::set_intersection.
    /// Keys are equal if all of their bits are: -0.0 differs from 0.0, and a NaN equals itself.
    #[command(after_help = "Example: gmerge intersect a.u32 b.u32 -o both.u32")]
    Intersect(SetArgs),
    /// Write the keys of a sorted file that are not in another
    ///
    /// A key that is m times in A and n times in B is m - n times in the output, or not at all if n is greater, as in
    /// C++'s std::set_difference. Keys are equal if all of their bits are: -0.0 differs from 0.0, and a NaN equals
    /// itself.
    #[command(after_help = "Example: gmerge difference a.u32 b.u32 -o a-only.u32")]
    Difference(SetArgs),
    /// Write the keys that are in exactly one of two sorted files
    ///
    /// A key that is m times in A and n times in B is |m - n| times in the output, as in C++'s
    /// std::set_symmetric_difference. Keys are equal if all of their bits are: -0.0 differs from 0.0, and a NaN equals
    /// itself.
    #[command(after_help = "Example: gmerge symmetric-difference a.u32 b.u32 -o either-only.u32")]
    SymmetricDifference(SetArgs),
    /// Check whether a file is sorted
    ///
    /// Prints nothing and exits with 0 if it is. If not, prints the first key out of order, the key before it, its
    /// index from 0 and its offset, and exits with 1. The file may be larger than memory.
    #[command(after_help = "\
Examples:
  gmerge check sorted.u32 || gmerge sort sorted.u32 -o sorted.u32
  gmerge check sorted.dat --record-size 100 --key 0:bytes10")]
    Check(CheckArgs),
    /// Look up keys in a sorted file
    ///
    /// Prints a line for each KEY: KEY, the index of the first equal key in FILE, or of the first key behind if there
    /// is none, and the number of equal keys, with tabs between them. Exits with 1 if a KEY is not found. FILE, a
    /// regular file, is not read as a whole, and its order is not checked.
    ///
    /// With --needles, writes such an index for each key of a file, as numpy.searchsorted does. FILE is read as a
    /// whole. The keys of NEEDLES are held in memory. Keys are equal if all of their bits are: -0.0 differs from 0.0,
    /// and a NaN equals itself.
    #[command(after_help = "\
Examples:
  gmerge search sorted.u64 1234 5678
  gmerge search hashes.dat --record-size 20 --key 0:bytes20 a9993e364706816aba3e25717850c26c9cd0d89d
  gmerge search sorted.f64 --needles keys.f64 -o indices.u64

Exit codes: 0 all keys were found, or --needles, 1 a KEY was not found, 2 error.")]
    Search(SearchArgs),
    /// Generate a file of test keys
    ///
    /// The same arguments give the same file on every machine, with any number of threads.
    #[command(after_help = "\
Examples:
  gmerge gen -n 1000000 --seed 7 --dist dups -o keys.i64
  gmerge gen -n 1000000 --record-size 100 -o records.dat")]
    Gen(GenArgs),
    /// Show the GPUs, the driver, the kernels, the CPU threads, and the engine that `--engine auto` chooses
    Info,
    /// Print a script that completes gmerge's commands and flags in a shell
    #[command(after_help = "Example: gmerge completions bash > ~/.local/share/bash-completion/completions/gmerge")]
    Completions(CompletionsArgs),
    /// Print the manual pages, gmerge's and one for each command, one after the other
    #[command(after_help = "\
Examples:
  gmerge man | man -l -
  gmerge man -o ~/.local/share/man/man1")]
    Man(ManArgs),
}
