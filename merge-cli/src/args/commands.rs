//! The flags and arguments of each command, as the user types them. [`job`](crate::job) refuses wrong combinations.

use super::groups::{
    CommonArgs, EngineArgs, ListArgs, MemoryArgs, OrderArgs, OutputArgs, RecordArgs, TableArgs, UniqueArgs, ValuesArgs,
    WritingArgs, WrittenValuesArgs,
};
use crate::spec::{Distribution, Kernel, MemorySize, SortKernel, number};
use clap_complete::Shell;
use merge_host::MAX_BATCH_LENGTH;
use std::path::PathBuf;

/// `gmerge sort`
#[derive(Debug, clap::Args)]
pub struct SortArgs {
    /// Files to sort, as if they were one; `-` is standard input
    #[arg(value_name = "IN", required_unless_present_any = ["values", "files0_from"])]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub list: ListArgs,
    /// File to write, which may be an input; default: `-`, standard output, unless it is a terminal
    ///
    /// A file that exists is replaced, and keeps its owner, group, mode and ACL as far as permitted. A symbolic link is
    /// followed. Devices and pipes are written to directly.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub writing: WritingArgs,
    #[command(flatten)]
    pub table: TableArgs,
    /// Sort from the greatest key to the least
    #[arg(short, long)]
    pub reverse: bool,
    #[command(flatten)]
    pub order: OrderArgs,
    /// Write only the N keys that come first in the order, with their values or indices, without sorting the others
    ///
    /// Of equal keys, the first ones are taken. The input may be larger than memory. With --engine gpu, the GPU selects
    /// the first N keys of each part that is read, and the CPU selects from these keys; with values or indices, and of
    /// records, the GPU sorts the candidates.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>(0..=u64::MAX))]
    pub top: Option<u64>,
    /// Check whether IN is sorted, as `gmerge check` does
    #[arg(short = 'c')]
    pub only_check: bool,
    /// As -c, without a message; see the exit code
    #[arg(short = 'C')]
    pub only_check_silently: bool,
    /// Merge sorted files, as `gmerge merge` does
    #[arg(short, long)]
    pub merge: bool,
    /// Accepted because sort(1) has it: every sort is stable
    #[arg(short, long)]
    pub stable: bool,
    #[command(flatten)]
    pub values: ValuesArgs,
    #[command(flatten)]
    pub written_values: WrittenValuesArgs,
    /// Copy the first N bytes of IN, a header, to OUT unchanged; keys begin after them
    ///
    /// For one raw file and a raw output.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>(0..=u64::MAX))]
    pub skip: Option<u64>,
    /// Write the sorted keys over IN itself, one raw or .npy file that fits in memory
    ///
    /// For a disk without room for a second copy. IN keeps its inode, length and header, and is unchanged until all
    /// keys are sorted. Then a second process writes it, which goes on even if this one is killed. A failure of the
    /// system meanwhile can lose keys.
    #[arg(long)]
    pub in_place: bool,
    /// Write the permutation that sorts IN instead of the keys: indices from 0, as u64, or as the integer type of 4 or
    /// 8 bytes that the extension of OUT names
    #[arg(long)]
    pub argsort: bool,
    #[command(flatten)]
    pub distinct: UniqueArgs,
    /// Read OUT back before it replaces an old file, and fail unless it is sorted and has the keys of IN
    ///
    /// Checks the order, the number of keys, and a checksum of keys and values that does not depend on the order. OUT
    /// must be a regular file, raw or .npy.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Sort each segment of IN on its own: those between the offsets in this file
    ///
    /// The file has one more offset than there are segments. Offsets count keys, ascend from 0, and end with the number
    /// of keys. They are unsigned numbers of 8 bytes unless the file's header or extension names another type.
    #[arg(long, value_name = "OFFSETS")]
    pub segments: Option<PathBuf>,
    /// Sort each segment of D keys of IN on its own
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = number::<usize>(1..=u64::MAX))]
    pub segment_len: Option<usize>,
    /// Sort along the last or the first axis of an .npy array with several dimensions: for two dimensions, each row on
    /// its own with --axis 1 or -1, and each column with --axis 0
    #[arg(long, value_name = "AXIS", allow_negative_numbers = true)]
    pub axis: Option<i64>,
    #[command(flatten)]
    pub records: RecordArgs,
    /// How the GPU sorts; all give the same file. merge-path needs a GPU, as --engine gpu does
    #[arg(long, value_name = "KERNEL", default_value = "auto")]
    pub kernel: SortKernel,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Flags of the commands that merge.
#[derive(Debug, clap::Args)]
pub struct MergingArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub written_values: WrittenValuesArgs,
    /// The inputs are sorted from the greatest key to the least, as by `gmerge sort --reverse`, and so is the output
    #[arg(short, long)]
    pub reverse: bool,
    #[command(flatten)]
    pub order: OrderArgs,
    /// Do not check whether the inputs are sorted; if they are not, the order of the output is unspecified
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
    #[command(flatten)]
    pub list: ListArgs,
    #[command(flatten)]
    pub values: ValuesArgs,
    #[command(flatten)]
    pub merging: MergingArgs,
    #[command(flatten)]
    pub distinct: UniqueArgs,
    #[command(flatten)]
    pub records: RecordArgs,
    #[command(flatten)]
    pub table: TableArgs,
    /// Read OUT back before it replaces an old file, and fail unless it is sorted and has the keys of the files
    ///
    /// As in `gmerge sort`.
    #[arg(long)]
    pub check: bool,
    /// How to merge two files, on either engine; all give the same file. basic, tiled and circular merge keys alone, in
    /// memory
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
    /// Files of the values of A's keys and of B's keys, which are moved along with their keys
    ///
    /// All values have the same number of bytes, which may be any: that of --value-size, or the length of the file
    /// divided by the number of keys. In an .npy file or a column of an Arrow file, a value is one item or several.
    /// Value i belongs to key i. Of equal keys, A's keys come first with their values, and the keys of each file keep
    /// their order.
    #[arg(long, value_names = ["VA", "VB"], num_args = 2, requires = "values_out")]
    pub values: Vec<PathBuf>,
    #[command(flatten)]
    pub merging: MergingArgs,
    /// Keys in each run of the output, 1 to 1024
    #[arg(
        short,
        value_name = "D",
        required_unless_present = "offsets",
        allow_negative_numbers = true,
        value_parser = number::<usize>(1..=MAX_BATCH_LENGTH as u64),
    )]
    pub d: Option<usize>,
    /// Keys in each run of A; default: half of D, rounded down
    #[arg(
        long,
        value_name = "L",
        allow_negative_numbers = true,
        value_parser = number::<usize>(0..=MAX_BATCH_LENGTH as u64),
    )]
    pub a_len: Option<usize>,
    /// Files of the offsets where A's runs and B's runs begin
    ///
    /// There is one more offset than there are runs: in keys, ascending, the first 0 and the last the number of keys.
    /// They are unsigned numbers of 8 bytes unless the file's header or extension names another type. A and B must have
    /// the same number of runs.
    #[arg(long, value_names = ["OA", "OB"], num_args = 2)]
    pub offsets: Vec<PathBuf>,
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
    /// A and B are sorted from the greatest key to the least, and so is the output
    #[arg(short, long)]
    pub reverse: bool,
    #[command(flatten)]
    pub order: OrderArgs,
    /// Do not check whether A and B are sorted; if they are not, the output is unspecified
    #[arg(long)]
    pub assume_sorted: bool,
    /// Use at most SIZE of memory for keys, for example 8G, as in `gmerge sort`; default: most of what is available
    ///
    /// Files that do not fit are merged by the CPU while they are read, or an error with --engine gpu.
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<MemorySize>,
    #[command(flatten)]
    pub records: RecordArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
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
    pub order: OrderArgs,
    /// Expect strictly ascending keys, or strictly descending ones with --reverse
    #[arg(short, long)]
    pub unique: bool,
    #[command(flatten)]
    pub records: RecordArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `gmerge search`
#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// Sorted file to search; with --needles, `-` is standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Keys to look up: numbers, or for records the values of all fields of --key with commas between them
    ///
    /// The value of a field `bytesN` is hexadecimal digits. If it is the last field, fewer than 2 N digits stand for
    /// all keys that begin with them. NaT and dates are integers. Floating-point numbers are rounded to the type of the
    /// keys. `--` precedes keys that begin with a hyphen and are no numbers, such as -inf.
    #[arg(
        value_name = "KEY",
        allow_negative_numbers = true,
        required_unless_present = "needles",
        conflicts_with = "needles"
    )]
    pub keys: Vec<String>,
    /// Search each key of this file, in any order, and write the indices to OUT; `-` is standard input
    #[arg(long, value_name = "NEEDLES")]
    pub needles: Option<PathBuf>,
    /// Write the index behind the last equal key instead of the index of the first one, with --needles
    #[arg(long)]
    pub right: bool,
    /// File to write the indices to, with --needles: as u64, or as the integer type of 4 or 8 bytes that the extension
    /// of OUT names; default: `-`, standard output, unless it is a terminal
    ///
    /// A file that exists is replaced, and keeps its owner, group, mode and ACL as far as permitted. A symbolic link is
    /// followed. Devices and pipes are written to directly.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub writing: WritingArgs,
    /// FILE is sorted from the greatest key to the least
    #[arg(short, long)]
    pub reverse: bool,
    #[command(flatten)]
    pub order: OrderArgs,
    /// Do not check whether FILE is sorted, with --needles; if it is not, the indices are unspecified
    #[arg(long)]
    pub assume_sorted: bool,
    #[command(flatten)]
    pub records: RecordArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `gmerge gen`
#[derive(Debug, clap::Args)]
pub struct GenArgs {
    /// Number of keys
    #[arg(
        short,
        long = "count",
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = number::<u64>(0..=u64::MAX),
    )]
    pub n: u64,
    /// Generate N records of R random bytes each, instead of keys
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = number::<usize>(1..=isize::MAX as u64))]
    pub record_size: Option<usize>,
    /// Seed; another seed gives other keys
    #[arg(
        long,
        value_name = "S",
        default_value_t = 0,
        allow_negative_numbers = true,
        value_parser = number::<u64>(0..=u64::MAX),
    )]
    pub seed: u64,
    /// Distribution of the keys; default: uniform
    #[arg(long, value_name = "DIST")]
    pub dist: Option<Distribution>,
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
