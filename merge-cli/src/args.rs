//! The command line: every flag once, with its help.

use crate::format::{Endian, Format};
use crate::key_type::KeyType;
use crate::memory::MemorySize;
use crate::records::KeyField;
use clap::builder::RangedU64ValueParser;
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use merge_host::MAX_BATCH_LENGTH;
use std::path::PathBuf;

/// Sorts and merges files of binary numbers, on an NVIDIA GPU or on all CPU cores
///
/// A file is keys one after the other. Raw files have no header, and the least significant byte of a key comes first;
/// the type of their keys is told by their extension (`keys.u32`) or by --type. NumPy's .npy files with one dimension
/// are read whatever they are called, and written to names that end so. Sorts and merges are stable, and floating point is in IEEE 754's total
/// order: -NaN, -inf, ..., -0.0, +0.0, ..., +inf, +NaN. Every key comes out with the bits it went in with.
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

Exit codes: 0 done, 1 `check` found a key out of order, 2 error, 130 interrupted, 143 terminated."
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Flags of all commands: what is said on standard error.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Say nothing but errors: no warnings, and no progress unless `--progress always` asks for it
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what was decided and why: the type of the keys, engine, threads, memory, how files are read and written
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Show how far the work is: bytes read and written of those that there will be, rate, and time left
    ///
    /// `auto` does so where standard error is a terminal, and not with --quiet.
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub progress: When,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sort a file
    ///
    /// Keys that compare equal come out in the order that they had, with --reverse too.
    #[command(after_help = "\
Examples:
  gmerge sort keys.u32 -o sorted.u32
  gmerge sort keys.u32 --values keys.rows -o sorted.u32 --values-out sorted.rows --reverse
  gmerge sort keys.f64 --argsort -o places
  gmerge sort gensort.dat -o sorted.dat --record-size 100 --key 0:bytes10
  gmerge sort trades.bin -o trades.bin --record-size 24 --key 8:u32,16:f64:desc
  gmerge sort huge.u64 -o sorted.u64 --memory 8G --tmp-dir /scratch --check")]
    Sort(SortArgs),
    /// Merge sorted files, as many as there are, into one
    ///
    /// Keys that compare equal come out in the order of the files.
    #[command(after_help = "\
Examples:
  gmerge merge a.f32 b.f32 c.f32 -o merged.f32
  gmerge merge a.f32 b.f32 -o merged.f32 --kernel tiled
  gmerge merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows")]
    Merge(MergeArgs),
    /// Merge many pairs of short sorted runs
    ///
    /// With -d, A holds N runs of L keys one after the other, B N runs of D - L. Run i of A and run i of B are merged to run
    /// i of OUT, which holds N runs of D keys. With --offsets, runs are of any lengths, and so are OUT's, which follow one
    /// another.
    #[command(after_help = "\
Examples:
  gmerge batch a.u32 b.u32 -o out.u32 -d 256 --a-len 100
  gmerge batch a.u32 b.u32 -o out.u32 --offsets a.offsets b.offsets")]
    Batch(BatchArgs),
    /// Write the keys that are in either of two sorted files
    ///
    /// A key that is m times in A and n times in B is max(m, n) times in the output, as in C++'s std::set_union. Keys are
    /// the same if all of their bits are: -0.0 is not 0.0, and a NaN is the same as itself.
    #[command(after_help = "Example: gmerge union a.u32 b.u32 -o either.u32")]
    Union(SetArgs),
    /// Write the keys that are in both of two sorted files
    ///
    /// A key that is m times in A and n times in B is min(m, n) times in the output, as in C++'s std::set_intersection.
    /// Keys are the same if all of their bits are: -0.0 is not 0.0, and a NaN is the same as itself.
    #[command(after_help = "Example: gmerge intersect a.u32 b.u32 -o both.u32")]
    Intersect(SetArgs),
    /// Write the keys of a sorted file that are not in another
    ///
    /// A key that is m times in A and n times in B is m - n times in the output, or not at all if n is greater, as in
    /// C++'s std::set_difference. Keys are the same if all of their bits are: -0.0 is not 0.0, and a NaN is the same as
    /// itself.
    #[command(after_help = "Example: gmerge difference a.u32 b.u32 -o a-only.u32")]
    Difference(SetArgs),
    /// Write the keys that are in one of two sorted files and not in the other
    ///
    /// A key that is m times in A and n times in B is |m - n| times in the output, as in C++'s
    /// std::set_symmetric_difference. Keys are the same if all of their bits are: -0.0 is not 0.0, and a NaN is the same as
    /// itself.
    #[command(after_help = "Example: gmerge symmetric-difference a.u32 b.u32 -o either-only.u32")]
    SymmetricDifference(SetArgs),
    /// Tell whether a file is sorted
    ///
    /// Says nothing and exits with 0 if it is. If not, names the first key that is less than the one before it, by its
    /// index from 0, and exits with 1. The file may be larger than memory.
    #[command(after_help = "\
Examples:
  gmerge check sorted.u32 || gmerge sort sorted.u32 -o sorted.u32
  gmerge check sorted.dat --record-size 100 --key 0:bytes10")]
    Check(CheckArgs),
    /// Generate a file of test keys
    ///
    /// The same arguments give the same file on every machine, with any number of threads.
    #[command(after_help = "\
Examples:
  gmerge gen -n 1000000 --seed 7 --dist dups -o keys.i64
  gmerge gen -n 1000000 --record-size 100 -o records.dat")]
    Gen(GenArgs),
    /// Show the GPUs, the driver, the kernels, the CPU threads, and which engine `--engine auto` takes
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

/// Flags of every command that reads or writes keys.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
    /// Type of the keys; without it, the files' headers and extensions tell
    #[arg(long = "type", value_name = "TYPE")]
    pub key_type: Option<KeyType>,
    /// Byte order of raw files, and of the output
    ///
    /// Without it, raw files are little endian, and an .npy output has the byte order of the first input. An extension such
    /// as `.u32be` or `.f64le` tells that of its file, and the header of an .npy input its own, whatever is given here.
    #[arg(long, value_name = "ORDER")]
    pub endian: Option<Endian>,
    /// Use at most N threads of the CPU, instead of one for each core
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=4096))]
    pub parallel: Option<usize>,
    /// Print on standard error where the time went
    ///
    /// A phase's GB/s are the bytes of keys and values that it handled by its time, 0 where it took none.
    #[arg(long, value_name = "FORMAT")]
    pub stats: Option<StatsFormat>,
}

/// Flags of every command that runs an engine.
#[derive(Clone, Debug, clap::Args)]
pub struct EngineArgs {
    /// Where to compute: `auto` takes the GPU if it works, and the CPU otherwise and for types that the GPU has no kernels
    /// for
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineChoice,
}

/// Where output goes.
#[derive(Clone, Debug, clap::Args)]
pub struct OutputArgs {
    /// File to write, which may be an input; `-` is standard output
    ///
    /// A file that exists is replaced and keeps its mode. A symbolic link is followed. Devices and pipes are written to
    /// directly.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of OUT; without it, its extension tells: .npy, .arrow, or else raw
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
}

/// What makes no sense where `sort` only checks.
const NOT_WITH_CHECK: [&str; 7] = ["output", "values", "values_out", "argsort", "top", "segments", "segment_len"];
/// What makes no sense where `sort` only merges. Nor do more files without --merge, even where that cannot be asked for.
const NOT_WITH_MERGE: [&str; 9] = [
    "values",
    "values_out",
    "argsort",
    "top",
    "segments",
    "segment_len",
    "record_size",
    "only_check",
    "only_check_silently",
];

/// Where the output of `sort` goes, which has none where it only checks.
#[derive(Clone, Debug, clap::Args)]
pub struct SortOutputArgs {
    /// File to write, which may be an input; `-` is standard output
    ///
    /// A file that exists is replaced and keeps its mode. A symbolic link is followed. Devices and pipes are written to
    /// directly. Needed unless -c or -C only checks.
    #[arg(
        short,
        long,
        value_name = "OUT",
        required = false,
        required_unless_present_any = ["only_check", "only_check_silently"],
        default_value_ifs = [("only_check", "true", "/dev/null"), ("only_check_silently", "true", "/dev/null")]
    )]
    pub output: PathBuf,
    /// Format of OUT; without it, its extension tells: .npy, .arrow, or else raw
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
}

impl SortOutputArgs {
    /// The same, as other commands have it.
    pub fn as_output(&self) -> OutputArgs {
        OutputArgs { output: self.output.clone(), format: self.format }
    }
}

/// `gmerge sort`
#[derive(Debug, clap::Args)]
pub struct SortArgs {
    /// File to sort; `-` is standard input
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// More files to merge, with -m
    #[arg(value_name = "MORE", requires = "merge", conflicts_with_all = NOT_WITH_MERGE)]
    pub more: Vec<PathBuf>,
    #[command(flatten)]
    pub output: SortOutputArgs,
    /// Sort from the greatest key to the least
    #[arg(short, long)]
    pub reverse: bool,
    /// Write only the N keys that come first in the order, without sorting the others
    ///
    /// The input is read part by part and may be larger than memory, which N keys must fit into twice. The CPU does it.
    #[arg(long, value_name = "N", conflicts_with_all = ["values", "values_out", "argsort", "segments", "segment_len", "record_size"])]
    pub top: Option<u64>,
    /// Do not sort but tell whether IN is sorted, as `gmerge check` does
    #[arg(short = 'c', conflicts_with_all = NOT_WITH_CHECK)]
    pub only_check: bool,
    /// As -c, but say nothing: the exit code tells
    #[arg(short = 'C', conflicts_with = "only_check", conflicts_with_all = NOT_WITH_CHECK)]
    pub only_check_silently: bool,
    /// Do not sort but merge files that are sorted, as `gmerge merge` does
    #[arg(short, long, conflicts_with_all = NOT_WITH_MERGE)]
    pub merge: bool,
    /// Accepted because sort(1) has it: every sort is stable
    #[arg(short, long)]
    pub stable: bool,
    /// File of the keys' values, which go along with them
    ///
    /// A value is any number of bytes, the same for all: as many as the file has for each key. Value i is that of key i.
    #[arg(long, value_name = "V", requires = "values_out", conflicts_with = "record_size")]
    pub values: Option<PathBuf>,
    /// File to write the values of OUT's keys to; not OUT
    ///
    /// Both files are written completely before the first of them replaces an old one.
    #[arg(long, value_name = "OUTV", requires = "values", conflicts_with = "record_size")]
    pub values_out: Option<PathBuf>,
    /// Write the places of IN's keys in sorted order instead of the keys: from 0, as unsigned numbers of 8 bytes
    #[arg(long, conflicts_with_all = ["values", "values_out", "record_size"])]
    pub argsort: bool,
    /// Write only the first of equal keys, with its value
    ///
    /// Keys are equal if all of their bits are: -0.0 is not 0.0, and a NaN is the same as itself.
    #[arg(short, long, conflicts_with_all = ["segments", "segment_len", "record_size", "top"])]
    pub unique: bool,
    /// Read OUT back before it replaces an old file, and fail unless it is sorted and has all keys
    #[arg(long, conflicts_with_all = ["argsort", "segments", "segment_len", "record_size"])]
    pub check: bool,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub segments: SegmentArgs,
    #[command(flatten)]
    pub records: RecordArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// How much memory to use, and what to do where that is too little.
#[derive(Clone, Debug, clap::Args)]
pub struct MemoryArgs {
    /// Use at most so much memory for keys and values: like 8G, 500M or 50%; without it, most of what is available
    ///
    /// As in sort(1), K, M, G and T are powers of 1024, % is a share of the machine's memory, b stands for bytes, and a
    /// number alone counts units of 1024 bytes. At least 1M. What does not fit is sorted in parts, which go to a temporary
    /// file and are merged; files that are sorted already are merged while they are read. The program itself takes some
    /// megabytes more.
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<MemorySize>,
    /// Folder for that temporary file, instead of $TMPDIR or /tmp
    #[arg(short = 'T', long, value_name = "DIR")]
    pub tmp_dir: Option<PathBuf>,
    /// Merge at most N parts at once; without it, as many as memory allows
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(2..))]
    pub batch_size: Option<usize>,
}

impl MemoryArgs {
    /// The folder for the temporary file.
    pub fn folder(&self) -> PathBuf {
        self.tmp_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// Flags of `gmerge sort` for segments.
#[derive(Debug, clap::Args)]
pub struct SegmentArgs {
    /// Sort each segment of IN on its own: those between the offsets in this file
    ///
    /// Offsets are unsigned numbers of 8 bytes, one more than there are segments: in keys, ascending, the first 0 and the
    /// last the number of keys. Segments are sorted on the CPU.
    #[arg(long, value_name = "OFFSETS", conflicts_with_all = ["segment_len", "argsort", "record_size"])]
    pub segments: Option<PathBuf>,
    /// Sort each segment of D keys of IN on its own, on the CPU
    #[arg(long, value_name = "D", conflicts_with_all = ["argsort", "record_size"], value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub segment_len: Option<usize>,
}

impl SegmentArgs {
    /// Whether there are segments.
    pub fn are_given(&self) -> bool {
        self.segments.is_some() || self.segment_len.is_some()
    }
}

/// Flags of the commands that also handle records.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordArgs {
    /// The file is records of R bytes each, in the order that --key tells
    #[arg(
        long,
        value_name = "R",
        requires = "key",
        conflicts_with = "key_type",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=isize::MAX as u64)
    )]
    pub record_size: Option<usize>,
    /// Fields that records are ordered by, the first one first: OFFSET:TYPE, in bytes from 0, with `:desc` where the
    /// greatest comes first
    ///
    /// TYPE is one of those of --type, least significant byte first, or `bytesN` for N bytes that are compared one by one
    /// as unsigned numbers, as memcmp(3) does. Fields must not overlap. Records with equal fields keep their order.
    #[arg(long, value_name = "OFFSET:TYPE", value_delimiter = ',', requires = "record_size")]
    pub key: Vec<KeyField>,
}

/// Flags of the commands that merge.
#[derive(Debug, clap::Args)]
pub struct MergingArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    /// File to write the values of OUT's keys to; not OUT
    ///
    /// Both files are written completely before the first of them replaces an old one.
    #[arg(long, value_name = "OUTV", requires = "values")]
    pub values_out: Option<PathBuf>,
    /// The inputs are sorted from the greatest key to the least, as `gmerge sort --reverse` does, and so will the output be
    #[arg(short, long)]
    pub reverse: bool,
    /// Do not look whether the inputs are sorted; if they are not, the order of the output is unspecified
    #[arg(long)]
    pub assume_sorted: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `gmerge merge`
#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// Sorted files; `-` is standard input. Of equal keys, those of an earlier file come first
    #[arg(value_name = "FILE", required_unless_present_any = ["values", "files0_from"])]
    pub inputs: Vec<PathBuf>,
    /// Read the names of the files from F, each ended by a zero byte, as `find -print0` writes them; `-` is standard input
    #[arg(long, value_name = "F", conflicts_with = "inputs")]
    pub files0_from: Option<PathBuf>,
    /// Files of the values of the keys, one for each FILE, which go along with them
    ///
    /// A value is any number of bytes, the same for all: as many as the file has for each key. Value i is that of key i.
    /// Of equal keys, those of an earlier file come first with their values, and the keys of each in the order that they
    /// had.
    #[arg(long, value_name = "V", num_args = 1.., requires = "values_out")]
    pub values: Option<Vec<PathBuf>>,
    #[command(flatten)]
    pub merging: MergingArgs,
    /// How to merge two files, on either engine; all give the same file. Values need auto or merge-path
    #[arg(long, value_name = "KERNEL", default_value = "auto")]
    pub kernel: Kernel,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// `gmerge batch`
#[derive(Debug, clap::Args)]
pub struct BatchArgs {
    /// First input; `-` is standard input
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Second input; `-` is standard input
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Files of the values of A's keys and of B's keys, which go along with them
    ///
    /// A value is any number of bytes, the same for all: as many as the file has for each key. Value i is that of key i.
    /// Of equal keys, those of A come first with their values, and the keys of each in the order that they had.
    #[arg(long, value_names = ["VA", "VB"], num_args = 2, requires = "values_out")]
    pub values: Option<Vec<PathBuf>>,
    #[command(flatten)]
    pub merging: MergingArgs,
    /// Keys in each run of the output, 1 to 1024
    #[arg(short, value_name = "D", required_unless_present = "offsets", conflicts_with = "offsets", value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_BATCH_LENGTH as u64))]
    pub d: Option<usize>,
    /// Keys in each run of A; without it, half of D, rounded down
    #[arg(long, value_name = "L", conflicts_with = "offsets")]
    pub a_len: Option<usize>,
    /// Files that tell where A's runs and B's runs begin
    ///
    /// Offsets are unsigned numbers of 8 bytes, one more than there are runs: in keys, ascending, the first 0 and the last
    /// the number of keys. A and B have as many runs.
    #[arg(long, value_names = ["OA", "OB"], num_args = 2)]
    pub offsets: Option<Vec<PathBuf>>,
}

/// `gmerge union`, `intersect`, `difference` and `symmetric-difference`
#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// First sorted file; `-` is standard input
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Second sorted file; `-` is standard input
    #[arg(value_name = "B")]
    pub b: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Do not look whether A and B are sorted; if they are not, the output is unspecified
    #[arg(long)]
    pub assume_sorted: bool,
    /// Use at most so much memory for keys: like 8G, 500M or 50%, as in `gmerge sort`; without it, most of what is available
    ///
    /// Files that do not fit are handled while they are read.
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<MemorySize>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `gmerge check`
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// File to check; `-` is standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Expect the greatest key first and the least last
    #[arg(short, long)]
    pub reverse: bool,
    #[command(flatten)]
    pub records: RecordArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `gmerge gen`
#[derive(Debug, clap::Args)]
pub struct GenArgs {
    /// Number of keys
    #[arg(short, long = "count", value_name = "N")]
    pub n: u64,
    /// Generate N records of R random bytes each, instead of keys
    #[arg(
        long,
        value_name = "R",
        conflicts_with_all = ["key_type", "dist"],
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=isize::MAX as u64)
    )]
    pub record_size: Option<usize>,
    /// Seed; another seed gives other keys
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// How the keys are distributed
    #[arg(long, value_name = "DIST", default_value = "uniform")]
    pub dist: Distribution,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `gmerge completions`
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell to complete for
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `gmerge man`
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Folder to write the pages to instead, a file for each: gmerge.1, gmerge-sort.1 and so on
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// Whether to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Not at all
    Never,
    /// On a terminal
    Auto,
    /// Wherever standard error goes
    Always,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The GPU if it works, or else the CPU
    Auto,
    /// The GPU, or an error
    Gpu,
    /// The CPU
    Cpu,
}

/// How to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// The fastest one
    Auto,
    /// Each thread merges its piece of the output straight from memory
    Basic,
    /// Tile by tile through shared memory
    Tiled,
    /// Like tiled, with circular buffers, so that no key is loaded twice
    Circular,
    /// Two levels of exact splits, the same number of keys for every thread
    MergePath,
}

impl From<Kernel> for merge_host::MergeKernel {
    fn from(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Auto => Self::Auto,
            Kernel::Basic => Self::Basic,
            Kernel::Tiled => Self::Tiled,
            Kernel::Circular => Self::Circular,
            Kernel::MergePath => Self::MergePath,
        }
    }
}

/// How to print statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// One JSON object on a line
    Json,
    /// A table for people
    Text,
}

/// How generated keys are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// Evenly over the whole range of an integer type, or over [-1, 1) for floating point
    Uniform,
    /// As uniform, ascending
    Sorted,
    /// As uniform, descending
    Reverse,
    /// 16 distinct values, equally frequent
    Dups,
    /// The numbers 1 to 10000, or to 127 (i8), 255 (u8), 2048 (f16), k with a probability proportional to 1/k
    Zipf,
}
