//! Parts of this program that `gmerge-mpi` uses, too, so that both programs read and write the same files and print the
//! same messages, and that the Python package uses.
//!
//! They are for these only and may change with any version.

pub use crate::args::usage;
pub use crate::coding::Word;
pub use crate::file::values::known_width;
pub use crate::file::{Concatenation, Identity, Input, KeyRegion, Location, Output, Outputs, SharedWriter};
pub use crate::os::disk::{TemporaryFolder, is_in_memory, temporary_folders};
pub use crate::os::{memory, signals, threads};
pub use crate::records::{Key, Layout};
pub use crate::run::engine::failure;
pub use crate::run::order::{Scan, describe, first_disorder};
pub use crate::run::spilled::{KeySource, PayloadSource};
pub use crate::say::error::{name, os_message};
pub use crate::say::progress::bytes as progress;
pub use crate::say::{Failure, Result, report};
pub use crate::spec::{EngineChoice, KeyType, MemorySize};
pub use crate::with_word;

use crate::args::{
    CheckArgs, CommonArgs, EngineArgs, ListArgs, MemoryArgs, OrderArgs, SortArgs, TableArgs, UniqueArgs, WritingArgs,
};
pub use crate::args::{RecordArgs, ValuesArgs, WrittenValuesArgs};
use crate::coding::KeyOrder;
pub use crate::job::Resources;
use crate::job::{self, Job, Payload};
use crate::records::Records;
use crate::spec::{Endian, Format, SortKernel, When, number};
use std::path::PathBuf;

/// The flags of `gmerge sort` that `gmerge-mpi sort` has, too.
#[derive(Debug, clap::Args)]
pub struct SortFlags {
    /// Files to sort, as if they were one; `{rank}` in a name stands for the number of the rank that reads it
    #[arg(value_name = "IN", required_unless_present = "values")]
    pub inputs: Vec<PathBuf>,
    /// File to write, which may be an input
    ///
    /// A file that exists is replaced, and keeps its owner, group, mode and ACL as far as permitted.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of OUT, raw or npy; default: by its extension
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Wait until OUT and its name are on their disk, also where there is no old file, and fail if that fails
    #[arg(long)]
    pub sync: bool,
    /// Sort from the greatest key to the least
    #[arg(short, long)]
    pub reverse: bool,
    /// Accepted because sort(1) has it: every sort is stable
    #[arg(short, long)]
    pub stable: bool,
    /// Files of the keys' values.
    #[command(flatten)]
    pub values: ValuesArgs,
    /// The file to write the values to, and their size.
    #[command(flatten)]
    pub written_values: WrittenValuesArgs,
    /// Use at most SIZE of memory for keys and values in each rank, for example 8G or 500M; default: most of what is
    /// available
    ///
    /// As in `gmerge sort`. Of SIZE% of the machine's memory, each rank on the machine gets its share.
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<MemorySize>,
    /// Folder of the temporary files; default: $TMPDIR, or /tmp, or /var/tmp if /tmp is in memory
    #[arg(short = 'T', long, value_name = "DIR")]
    pub tmp_dir: Option<PathBuf>,
    /// Merge at most N runs of a rank at once; default: as many as memory allows
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>(2..=u64::MAX))]
    pub batch_size: Option<usize>,
    /// The records' size and key.
    #[command(flatten)]
    pub records: RecordArgs,
    /// Engine: `auto` is the CPU or the GPU, whichever takes less time for the keys of a rank
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineChoice,
    /// How keys are read.
    #[command(flatten)]
    pub keys: KeyFlags,
}

/// The flags of `gmerge check` that `gmerge-mpi check` has, too.
#[derive(Debug, clap::Args)]
pub struct CheckFlags {
    /// File to check
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Expect the greatest key first and the least last
    #[arg(short, long)]
    pub reverse: bool,
    /// Expect strictly ascending keys, or strictly descending ones with --reverse
    #[arg(short, long)]
    pub unique: bool,
    /// The records' size and key.
    #[command(flatten)]
    pub records: RecordArgs,
    /// How keys are read.
    #[command(flatten)]
    pub keys: KeyFlags,
}

/// Flags about keys, and the number of threads.
#[derive(Debug, clap::Args)]
pub struct KeyFlags {
    /// Type of the keys; default: by header or extension. NumPy's names (uint32, float64) work too
    #[arg(long = "type", value_name = "TYPE", ignore_case = true)]
    pub key_type: Option<KeyType>,
    /// Byte order of raw files, and of the output, as in `gmerge sort`
    #[arg(long, value_name = "ORDER")]
    endian: Option<Endian>,
    #[command(flatten)]
    order: OrderArgs,
    /// Use at most N threads of the CPU in each rank, instead of its share of the cores
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>(1..=4096))]
    pub parallel: Option<usize>,
}

impl KeyFlags {
    fn common(self) -> CommonArgs {
        let Self { key_type, endian, order: _, parallel } = self;
        CommonArgs { key_type, endian, parallel, stats: None }
    }
}

/// The contents of the files that are sorted or checked.
#[derive(Debug)]
pub enum Items {
    /// Keys of this type.
    Keys(KeyType),
    /// Keys of this type with values in other files.
    Values(KeyType, Concatenation),
    /// Records.
    Records(Layout, Key),
}

impl Items {
    fn records(layout: Layout, order: KeyOrder) -> Self {
        let key = layout.key(order);
        Self::Records(layout, key)
    }
}

/// A decided sort: files are open, and the type of the keys is known.
#[derive(Debug)]
pub struct SortJob {
    /// Keys or records.
    pub input: Concatenation,
    /// The kind of the items.
    pub items: Items,
    /// The outputs of keys or records, and of values.
    pub outputs: Outputs,
    /// What each rank may use.
    pub resources: Resources,
}

/// A decided check of the order of keys or records.
#[derive(Debug)]
pub struct CheckJob {
    /// The file.
    pub input: Input,
    /// The kind of its items, without values.
    pub items: Items,
    /// Whether equal keys count as out of order.
    pub unique: bool,
    /// Threads of the CPU, if `--parallel` is given.
    pub threads: Option<usize>,
}

/// Makes the job of these flags, as `gmerge sort` does.
///
/// # Errors
/// The errors of `gmerge sort`.
pub fn sort(flags: SortFlags) -> Result<SortJob> {
    let SortFlags {
        inputs,
        output,
        format,
        sync,
        reverse,
        stable,
        values,
        written_values,
        memory,
        tmp_dir,
        batch_size,
        records,
        engine,
        keys,
    } = flags;
    let job = Job::sort(SortArgs {
        inputs,
        list: ListArgs::default(),
        output: Some(output),
        writing: WritingArgs { format, sync },
        table: TableArgs { compression: None },
        reverse,
        order: keys.order,
        top: None,
        only_check: false,
        only_check_silently: false,
        merge: false,
        stable,
        values,
        written_values,
        skip: None,
        argsort: false,
        distinct: UniqueArgs::default(),
        check: false,
        memory: MemoryArgs { memory, tmp_dir: tmp_dir.into_iter().collect(), batch_size },
        segments: None,
        segment_len: None,
        axis: None,
        records,
        in_place: false,
        kernel: SortKernel::Auto,
        // The rank determines the GPU.
        engine: EngineArgs { engine, device: None },
        common: keys.common(),
    })?;
    match job {
        Job::Sort(job) => {
            let items = match (job.items, job.payload) {
                (job::Items::Records(Records { layout, key }), _) => Items::Records(layout, key),
                (job::Items::Keys(key_type), Payload::Values(values)) => Items::Values(key_type, values),
                (job::Items::Keys(key_type), Payload::None | Payload::Indices(_)) => Items::Keys(key_type),
            };
            Ok(SortJob { input: job.keys, items, outputs: job.outputs, resources: job.resources })
        }
        _ => Err(Failure::new("these flags ask for no sort")),
    }
}

/// Makes the job of these flags, as `gmerge check` does.
///
/// # Errors
/// The errors of `gmerge check`.
pub fn check(flags: CheckFlags) -> Result<CheckJob> {
    let CheckFlags { input, reverse, unique, records, keys } = flags;
    match Job::check(CheckArgs { input, reverse, order: keys.order, unique, records, common: keys.common() })? {
        Job::Check(job) => {
            let (items, threads) = (Items::Keys(job.key_type), job.resources.threads);
            Ok(CheckJob { input: job.input, items, unique: job.unique, threads })
        }
        Job::CheckRecords(job) => {
            let (items, threads) = (Items::records(job.layout, job.order), job.resources.threads);
            Ok(CheckJob { input: job.input, items, unique: job.unique, threads })
        }
        _ => Err(Failure::new("these flags ask for no check")),
    }
}

/// Starts like `gmerge`: refuses environment variables with values that would be ignored, and handles signals. Sets the
/// verbosity by `quiet` and `verbose`, and the name `program` at the beginning of each line.
///
/// # Errors
/// If the value of an environment variable is unknown, or the system refuses to handle signals.
pub fn begin(program: String, quiet: bool, verbose: bool) -> Result<()> {
    report::set_name(program);
    crate::os::limits::share_heap();
    signals::install()?;
    crate::check_environment()?;
    report::start(quiet, verbose, When::Never);
    Ok(())
}
