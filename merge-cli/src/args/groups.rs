//! Flags that several commands share.

use crate::say::error::{Failure, Result};
use crate::spec::{
    Compression, Devices, Endian, EngineChoice, Format, KeyFields, KeyType, MemorySize, NanOrder, StatsFormat, number,
};
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, value_parser};
use std::path::PathBuf;
use std::str::FromStr;

/// Flags of every command that reads or writes keys.
#[derive(Debug, clap::Args)]
pub struct CommonArgs {
    /// Type of the keys; default: by header or extension. NumPy's names (uint32, float64) work too
    #[arg(long = "type", value_name = "TYPE", ignore_case = true)]
    pub key_type: Option<KeyType>,
    /// Byte order of raw files of keys and of offsets, and of the output
    ///
    /// Without it, raw files are little endian, and an .npy output has the byte order of the first input. An extension
    /// such as `.u32be` or `.f64le` and the header of an .npy input take precedence for that file. It also applies to
    /// fields of records without a byte order of their own.
    #[arg(long, value_name = "ORDER")]
    pub endian: Option<Endian>,
    /// Use at most N threads of the CPU, instead of one for each core
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>(1..=4096))]
    pub parallel: Option<usize>,
    /// Print on standard error the time of each phase
    ///
    /// The GB/s of a phase are the bytes of keys and values divided by its time.
    #[arg(long, value_name = "FORMAT")]
    pub stats: Option<StatsFormat>,
}

/// Flags of every command that runs an engine.
#[derive(Debug, clap::Args)]
pub struct EngineArgs {
    /// Engine: `auto` is the CPU or the GPU, whichever takes less time for the input
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineChoice,
    /// GPUs to use: `all`, or numbers counted from 0, such as 0,1; default: 0
    ///
    /// Several GPUs work together, each on a part of the keys; the first one does set operations. `--engine auto`
    /// chooses all listed GPUs or the CPU. `gmerge info` lists the GPUs.
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    pub device: Option<Devices>,
}

/// The order of keys, except its direction.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct OrderArgs {
    /// Where NaNs lie in the order of floating-point keys and fields, with --reverse too; `total` is IEEE 754's order
    ///
    /// `last` is the order of numpy.sort, pandas, Polars, DuckDB and PostgreSQL. -0.0 comes before 0.0, and NaNs with
    /// different bits have an order, too. NaT of .npy files and fields of dates and durations lies where NaNs do;
    /// `total` has it first. Integers are not affected.
    #[arg(long = "nan", value_name = "ORDER", default_value = "last")]
    pub nans: NanOrder,
}

/// The output and its format.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// File to write, which may be an input; default: `-`, standard output, unless it is a terminal
    ///
    /// A file that exists is replaced, and keeps its owner, group, mode and ACL as far as permitted. A symbolic link is
    /// followed. Devices and pipes are written to directly.
    #[arg(short, long, value_name = "OUT", default_value = "-", hide_default_value = true)]
    pub output: PathBuf,
    #[command(flatten)]
    pub writing: WritingArgs,
}

/// How an output is written.
#[derive(Debug, clap::Args)]
pub struct WritingArgs {
    /// Format of OUT; default: by its extension (.npy, .arrow, .feather, .ipc, .arrows, .parquet), otherwise raw, and
    /// for a table that of the first input
    ///
    /// `raw` also reads inputs as raw if they begin like another format, unless their extension names that format.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Wait until OUT and its name are on their disk, also where there is no old file, and fail if that fails
    ///
    /// Without it, that is done for outputs that replace a file, and for values or keys beside them. Where there is no
    /// disk, as behind a pipe, there is nothing to wait for.
    #[arg(long)]
    pub sync: bool,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct TableArgs {
    /// Compression of the columns of OUT, a table; default: none for Arrow, snappy for Parquet
    ///
    /// Arrow has none, lz4 and zstd. Parquet has all of these.
    #[arg(long, value_name = "CODEC")]
    pub compression: Option<Compression>,
}

/// The limit of memory, and the handling of larger inputs.
#[derive(Debug, Default, clap::Args)]
pub struct MemoryArgs {
    /// Use at most SIZE of memory for keys and values, for example 8G, 500M or 50%; default: most of what is available
    ///
    /// As in sort(1), K, M, G and T are powers of 1024, % is a share of the machine's memory, b stands for bytes, and a
    /// number alone is in units of 1024 bytes. At least 1M. Keys that do not fit are sorted in chunks, which are
    /// spilled to a temporary file and merged; sorted files are merged while they are read. The program itself needs
    /// some megabytes more. A sort of a table whose record batches, or pages of all columns, need more is an error that
    /// names the least SIZE.
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<MemorySize>,
    /// Folder of the temporary file; default: $TMPDIR, or /tmp, or /var/tmp if /tmp is in memory
    ///
    /// Given several times, each folder has a file, and chunks are spilled to them in turn.
    #[arg(short = 'T', long, value_name = "DIR")]
    pub tmp_dir: Vec<PathBuf>,
    /// Merge at most N runs at once; default: as many as memory allows
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>(2..=u64::MAX))]
    pub batch_size: Option<usize>,
}

/// Flags of the commands that can write equal keys once.
#[derive(Debug, Default, clap::Args)]
pub struct UniqueArgs {
    /// Write only the first of equal keys, with its value
    ///
    /// Keys are equal if all of their bits are: -0.0 differs from 0.0, and a NaN equals itself. Records with equal
    /// fields are equal. With `sort -c` and `-C`, equal keys are out of order.
    #[arg(short, long)]
    pub unique: bool,
    /// Write the last of equal keys instead of the first, with its value or index
    #[arg(long, requires = "unique")]
    pub last: bool,
    /// File to write the number of occurrences of each written key to, as u64, or as the integer type that its
    /// extension names
    ///
    /// Number i belongs to key i of OUT. All files are replaced as one: all or none. A number that does not fit the
    /// type is an error.
    #[arg(long, value_name = "COUNTS", requires = "unique")]
    pub count: Option<PathBuf>,
}

/// Flags of the commands that also handle records.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// The file is records of R bytes each, ordered by --key; not needed for .npy files with a structured dtype
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = number::<usize>(1..=isize::MAX as u64))]
    pub record_size: Option<usize>,
    /// Fields that order records or columns that order a table, the most significant one first, with commas between
    /// them: OFFSET:TYPE, or NAME in an .npy file with a structured dtype, an Arrow or a Parquet file; append `:desc`
    /// for descending, `:nulls-first` for a column whose nulls come first
    ///
    /// OFFSET is in bytes from the beginning of the record. TYPE is a type as for --type, with the byte order of
    /// --endian or its own (`u32be`). It can also be `bytesN`, for N bytes that are compared like memcmp(3). A NAME
    /// that is a number, or has a comma or colon, is in double quotes, with double quotes in it doubled: '"a,b":desc'.
    /// Fields must not overlap. Records with equal fields keep their order.
    #[arg(long, value_name = "FIELD", value_parser = KeyFields::from_str)]
    pub key: Vec<KeyFields>,
    /// Each row of an .npy array with two dimensions is a record, ordered by its items from the first to the last, or
    /// by the columns of --key, counted from 0: `--key 2,0:desc`
    #[arg(long)]
    pub rows: bool,
}

/// The names of the inputs of commands with any number of files, if a file has them.
#[derive(Debug, Default, clap::Args)]
pub struct ListArgs {
    /// Read the names of the input files from F, each ended by a zero byte, as `find -print0` writes them; `-` is
    /// standard input
    #[arg(long, value_name = "F")]
    pub files0_from: Option<PathBuf>,
}

/// Flags about values that are written beside their keys.
#[derive(Debug, clap::Args)]
pub struct WrittenValuesArgs {
    /// File to write the values of OUT's keys to, which must differ from OUT; its extension names the format
    ///
    /// Both files are replaced as one: both or none.
    #[arg(long, value_name = "OUTV", requires = "values")]
    pub values_out: Option<PathBuf>,
    /// Bytes of a value; default: the bytes of a file of values divided by the number of its keys
    ///
    /// A file of another length than its keys need is an error. Pipes of keys or values need not fit in memory then:
    /// `sort` and `merge` read them part by part, keys and values in turn.
    #[arg(
        long,
        value_name = "N",
        requires = "values",
        allow_negative_numbers = true,
        value_parser = number::<usize>(1..=isize::MAX as u64),
    )]
    pub value_size: Option<usize>,
}

/// `--values` of commands with any number of files: the names after each flag.
#[derive(Debug, Default)]
pub struct ValuesArgs(Vec<Vec<PathBuf>>);

impl ValuesArgs {
    /// Whether the flag was given.
    pub fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// All names.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> + Clone {
        self.0.iter().flatten()
    }

    /// All names, as mutable references.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.0.iter_mut().flatten()
    }

    /// Splits names into files of keys and files of values. `inputs` are the names that do not follow the flag. If
    /// there are none, the files of keys follow the files of values. If `one_for_all`, one file may hold all values.
    pub fn split(self, inputs: Vec<PathBuf>, one_for_all: bool) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let Self(mut groups) = self;
        if !inputs.is_empty() {
            return Ok((inputs, groups.concat()));
        }
        let mut last = groups.pop().unwrap_or_default();
        let keys_begin = match last.len() {
            // The flag was given once for each file.
            2.. if !groups.is_empty() => 1,
            count @ 4.. if one_for_all && count % 2 == 0 => {
                return Err(Failure::new(format!(
                    "--values is followed by {count} names, which may be 1 file of values or {}: name the files of \
                     keys before --values",
                    count / 2
                )));
            }
            2.. if one_for_all => 1,
            count @ 2.. => count / 2,
            _ => return Err(Failure::new("--values needs files of keys: name them before --values")),
        };
        let keys = last.split_off(keys_begin);
        Ok((keys, [groups.concat(), last].concat()))
    }
}

impl clap::Args for ValuesArgs {
    fn augment_args(command: Command) -> Command {
        command.arg(
            Arg::new("values")
                .long("values")
                .value_name("V")
                .value_parser(value_parser!(PathBuf))
                .action(ArgAction::Append)
                .num_args(1..)
                .requires("values_out")
                .help(
                    "Files of the keys' values, which move with their keys: one for each file of keys; in a sort also \
                     one for all",
                )
                .long_help(
                    "Files of the keys' values, which move with their keys: one for each file of keys; in a sort also \
                     one for all\n\n\
                     One flag is followed by all names, or each name by a flag of its own. Name the files of keys \
                     before. A value is any number of bytes, the same for all: those of --value-size, or the bytes \
                     of the file divided by the number of keys, or the items of an .npy file or of a column in an \
                     Arrow file. Value i belongs to key i. Of equal keys, those of an earlier file come first with \
                     their values, and the keys of each file keep their order.",
                ),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ValuesArgs {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let groups = matches.get_occurrences::<PathBuf>("values").into_iter().flatten();
        Ok(Self(groups.map(|names| names.cloned().collect()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of keys and the files of values for `inputs`, the names before any flag, and `groups`, the names after
    /// each flag.
    fn split(inputs: &str, groups: &[&str], one_for_all: bool) -> std::result::Result<(String, String), String> {
        let names = |text: &str| text.split_whitespace().map(PathBuf::from).collect::<Vec<_>>();
        let text = |paths: Vec<PathBuf>| paths.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>().join(" ");
        let values = ValuesArgs(groups.iter().map(|group| names(group)).collect());
        let split = values.split(names(inputs), one_for_all).map(|(keys, values)| (text(keys), text(values)));
        split.map_err(|failure| failure.message().unwrap().to_owned())
    }

    #[test]
    fn files_of_keys_and_of_values_are_told_apart() {
        let ok = |keys: &str, values: &str| Ok((keys.to_owned(), values.to_owned()));
        for one_for_all in [false, true] {
            let split = |inputs, groups: &[&str]| split(inputs, groups, one_for_all);
            assert_eq!(split("a b", &[]), ok("a b", ""));
            assert_eq!(split("a b", &["v w"]), ok("a b", "v w"));
            assert_eq!(split("a b", &["v", "w"]), ok("a b", "v w"));
            assert_eq!(split("a", &["v"]), ok("a", "v"));
            assert_eq!(split("", &["v a"]), ok("a", "v"));
            assert_eq!(split("", &["v", "w a b"]), ok("a b", "v w"));
            assert!(split("", &["v"]).unwrap_err().contains("needs files of keys"));
            assert!(split("", &["v", "w"]).unwrap_err().contains("needs files of keys"));
        }
        assert_eq!(split("", &["v w a b"], false), ok("a b", "v w"));
        assert_eq!(split("", &["v a b"], true), ok("a b", "v"));
        assert!(split("", &["v a b c"], true).unwrap_err().contains("4 names, which may be 1 file of values or 2"));
    }
}
