//! The job of a run: all decisions about the command line, made once.
//!
//! ```text
//!   arguments ──clap──► Args, as typed ──► Job: files opened, types and orders known ──► run
//! ```
//!
//! Flags that cannot be used together are refused here. The run destructures a job without `..`, so that an unused
//! field is a compile error.

mod check;
mod generate;
mod items;
mod key_type;
mod keys;
mod merge;
mod names;
mod numbers;
mod records;
mod refuse;
mod search;
mod sort;
mod tables;

pub use items::Items;
pub use numbers::NumberLimit;
pub use tables::Task as TableTask;

use crate::args::{Args, CheckArgs, Command, ReportArgs, SortArgs};
use crate::coding::KeyOrder;
use crate::file::{Concatenation, Input, Output, Outputs};
use crate::records::{Layout, Records};
use crate::run::generator::Generator;
use crate::say::error::Result;
use crate::say::stats::Stats;
use crate::spec::{KeyType, MemorySize, Processors};
use crate::table::{Dictionaries, Limits, Reader, TableKey, TableOutput};
use clap_complete::Shell;
use merge_host::{Bound, MergeKernel, SetOperation, SortKernel};
use std::path::PathBuf;

/// The work of a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one job")]
pub enum Job {
    Sort(Sort),
    Segments(Segments),
    Tables(Tables),
    Merge(Merge),
    Batch(Batch),
    Set(Set),
    Check(Check),
    CheckRecords(CheckRecords),
    CheckTable(CheckTable),
    LookUp(LookUp),
    Search(Search),
    Generate(Generate),
    Info,
    Completions(Shell),
    Man(Option<PathBuf>),
}

/// The resources that a run may use.
#[derive(Debug)]
pub struct Resources {
    /// The engine, and the GPUs that it may use.
    pub processors: Processors,
    /// The kernel of a GPU's sort. Only `Auto` also allows the CPU.
    pub sort_kernel: SortKernel,
    /// Threads of the CPU, if `--parallel` is given.
    pub threads: Option<usize>,
    /// Memory for keys and payloads, if `--memory` is given.
    pub memory: Option<MemorySize>,
    /// The folders for spilled runs that `--tmp-dir` names.
    pub folders: Vec<PathBuf>,
    /// The most runs to merge at once, if `--batch-size` is given.
    pub fan_in: Option<usize>,
}

impl Resources {
    /// The name of the sort kernel, if the user chose one.
    fn sort_kernel_name(&self) -> Option<&'static str> {
        Some(self.sort_kernel.name()).filter(|_| self.sort_kernel != SortKernel::Auto)
    }
}

/// The payload of a sort.
#[derive(Debug)]
pub enum Payload {
    /// No payload.
    None,
    /// Values from files.
    Values(Concatenation),
    /// The index of each key, which is written instead of the key.
    Indices(NumberLimit),
}

/// Which of equal keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    All,
    First,
    Last,
}

/// A sort of keys or records.
#[derive(Debug)]
pub struct Sort {
    pub keys: Concatenation,
    pub items: Items,
    pub payload: Payload,
    /// The outputs of the keys or records, or of their indices, and of the values.
    pub outputs: Outputs,
    pub keep: Keep,
    /// The number of items to write, if only the first ones are wanted.
    pub top: Option<u64>,
    pub verify: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// A sort of each segment on its own.
#[derive(Debug)]
pub struct Segments {
    pub keys: Concatenation,
    pub key_type: KeyType,
    pub values: Option<Concatenation>,
    pub bounds: SegmentBounds,
    pub outputs: Outputs,
    pub resources: Resources,
    pub stats: Stats,
}

/// The bounds of segments.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one job")]
pub enum SegmentBounds {
    /// Segments between the offsets in this file.
    Between(Input),
    OfLength(usize),
}

/// A sort or a merge of tables.
#[derive(Debug)]
pub struct Tables {
    pub task: TableTask,
    /// The tables, at least one, which have the same columns.
    pub readers: Vec<Reader>,
    /// Bytes of all files, if known.
    pub length: Option<u64>,
    pub key: TableKey,
    pub dictionaries: Dictionaries,
    /// Which rows are written.
    pub limits: Limits,
    pub output: TableOutput,
    /// Whether the output is read back.
    pub verify: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// A merge of sorted files.
#[derive(Debug)]
pub struct Merge {
    pub inputs: Vec<Input>,
    pub items: Items,
    pub values: Option<Vec<Input>>,
    /// The kernel for two files, if the user chose a kernel that merges only in memory.
    pub kernel: Option<MergeKernel>,
    pub outputs: Outputs,
    pub keep: Keep,
    pub verify: bool,
    pub assume_sorted: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// A merge of many pairs of runs.
#[derive(Debug)]
pub struct Batch {
    /// A and B.
    pub inputs: Vec<Input>,
    pub key_type: KeyType,
    pub values: Option<Vec<Input>>,
    pub runs: BatchRuns,
    pub outputs: Outputs,
    pub assume_sorted: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// The runs of a batch.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one job")]
pub enum BatchRuns {
    /// Runs of equal lengths: `d` keys in the output, `a_len` keys in A.
    OfLength { d: usize, a_len: usize },
    /// Runs between the offsets in these files, of A and of B.
    Between([Input; 2]),
}

/// A set operation.
#[derive(Debug)]
pub struct Set {
    pub operation: SetOperation,
    /// A and B.
    pub inputs: Vec<Input>,
    pub items: Items,
    pub output: Output,
    pub assume_sorted: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// A check of the order of keys.
#[derive(Debug)]
pub struct Check {
    pub input: Input,
    pub key_type: KeyType,
    pub unique: bool,
    pub silent: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// A check of the order of records.
#[derive(Debug)]
pub struct CheckRecords {
    pub input: Input,
    pub layout: Layout,
    pub order: KeyOrder,
    pub unique: bool,
    pub silent: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// A check of the order of a table.
#[derive(Debug)]
pub struct CheckTable {
    pub reader: Reader,
    /// Bytes of the file, if known.
    pub length: Option<u64>,
    pub key: TableKey,
    pub unique: bool,
    pub silent: bool,
    pub resources: Resources,
    pub stats: Stats,
}

/// A search of keys on the command line in a sorted file, which is not read as a whole.
#[derive(Debug)]
pub struct LookUp {
    /// A regular file.
    pub input: Input,
    /// The number of its records. A key is a record of one field.
    pub count: u64,
    pub records: Records,
    pub needles: Vec<Needle>,
    pub threads: Option<usize>,
    pub stats: Stats,
}

/// A key on the command line.
#[derive(Debug)]
pub struct Needle {
    /// The key as it was typed.
    pub text: String,
    /// A record with the first key, in the order of the file, that the text stands for, and one with the last.
    pub ends: [Vec<u8>; 2],
}

/// A search of the keys of a file in a sorted file.
#[derive(Debug)]
pub struct Search {
    /// The sorted file, and the file of needles.
    pub inputs: [Input; 2],
    pub key_type: KeyType,
    pub bound: Bound,
    /// The output of the bounds.
    pub output: Output,
    pub limit: NumberLimit,
    pub assume_sorted: bool,
    pub threads: Option<usize>,
    pub stats: Stats,
}

/// A file of test keys.
#[derive(Debug)]
pub struct Generate {
    pub generator: Generator,
    /// The number of items: keys, or bytes of records.
    pub count: u64,
    pub output: Output,
    pub threads: Option<usize>,
    pub stats: Stats,
}

impl Job {
    /// The job of the flags of `gmerge sort`.
    pub fn sort(args: SortArgs) -> Result<Self> {
        sort::job(args)
    }

    /// The job of the flags of `gmerge check`.
    pub fn check(args: CheckArgs) -> Result<Self> {
        check::job(args)
    }

    /// The job of `args`: opens the inputs, reads their headers, and checks whether outputs can be written.
    pub fn new(args: Args) -> Result<Self> {
        let Args { command, report } = args;
        let ReportArgs { quiet, verbose, progress: _ } = report;
        refuse::beside(("--quiet", quiet), &[("--verbose", verbose)], "--quiet prints less, and --verbose more")?;
        let job = match command {
            Command::Sort(args) => sort::job(args),
            Command::Merge(args) => merge::merge(args),
            Command::Batch(args) => merge::batch(args),
            Command::Union(args) => merge::set(SetOperation::Union, args),
            Command::Intersect(args) => merge::set(SetOperation::Intersection, args),
            Command::Difference(args) => merge::set(SetOperation::Difference, args),
            Command::SymmetricDifference(args) => merge::set(SetOperation::SymmetricDifference, args),
            Command::Check(args) => check::job(args),
            Command::Search(args) => search::job(args),
            Command::Gen(args) => generate::job(args),
            Command::Info => Ok(Self::Info),
            Command::Completions(args) => Ok(Self::Completions(args.shell)),
            Command::Man(args) => Ok(Self::Man(args.folder)),
        }?;
        job.check_outputs()?;
        Ok(job)
    }

    /// An error if an output is written directly to an input.
    fn check_outputs(&self) -> Result<()> {
        let (inputs, outputs) = self.files();
        outputs.iter().try_for_each(|output| inputs.iter().try_for_each(|input| output.check_is_no_input(input)))
    }

    /// All inputs and all outputs.
    fn files(&self) -> (Vec<&Input>, Vec<&Output>) {
        let (mut inputs, mut outputs): (Vec<&Input>, Vec<&Output>) = (Vec::new(), Vec::new());
        match self {
            Self::Sort(Sort { keys, payload, outputs: written, .. }) => {
                inputs.extend(keys.inputs());
                outputs.extend(written.iter());
                if let Payload::Values(values) = payload {
                    inputs.extend(values.inputs());
                }
            }
            Self::Segments(Segments { keys, values, bounds, outputs: written, .. }) => {
                inputs.extend([keys].into_iter().chain(values).flat_map(Concatenation::inputs));
                outputs.extend(written.iter());
                if let SegmentBounds::Between(offsets) = bounds {
                    inputs.push(offsets);
                }
            }
            Self::Merge(Merge { inputs: files, values, outputs: written, .. })
            | Self::Batch(Batch { inputs: files, values, outputs: written, .. }) => {
                inputs.extend(files.iter().chain(values.iter().flatten()));
                outputs.extend(written.iter());
                if let Self::Batch(Batch { runs: BatchRuns::Between(offsets), .. }) = self {
                    inputs.extend(offsets);
                }
            }
            Self::Set(Set { inputs: files, output, .. }) => {
                inputs.extend(files);
                outputs.push(output);
            }
            Self::Search(Search { inputs: files, output, .. }) => {
                inputs.extend(files);
                outputs.push(output);
            }
            Self::Generate(Generate { output, .. }) => outputs.push(output),
            // The inputs were checked before they became readers.
            Self::Tables(_) | Self::CheckTable(_) => {}
            Self::Check(_) | Self::CheckRecords(_) | Self::LookUp(_) => {}
            Self::Info | Self::Completions(_) | Self::Man(_) => {}
        }
        (inputs, outputs)
    }
}
