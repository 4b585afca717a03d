//! Flags that several commands share.

use crate::spec::{Devices, Endian, EngineChoice, Format, KeyFields, KeyType, MemorySize, StatsFormat, number};
use std::path::PathBuf;
use std::str::FromStr;

/// Flags of every command that reads or writes keys.
#[derive(Debug, clap::Args)]
pub struct CommonArgs {
    /// Type of the keys; default: by header or extension. NumPy's names (uint32, float64) work too
    #[arg(long = "type", value_name = "TYPE", ignore_case = true)]
    pub key_type: Option<KeyType>,
    /// Byte order of raw files, and of the output
    ///
    /// Without it, raw files are little endian, and an .npy output has the byte order of the first input. An extension such
    /// as `.u32be` or `.f64le` and the header of an .npy input take precedence for that file. It also applies to fields of
    /// records without a byte order of their own.
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
    /// Several GPUs work together, each on a part of the keys; the first one does set operations. `--engine auto` takes all of these
    /// or the CPU. `gmerge info` lists the GPUs.
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    pub device: Option<Devices>,
}

/// Where output goes.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// File to write, which may be an input; `-` is standard output
    ///
    /// A file that exists is replaced, and keeps its owner, group, mode and ACL as far as permitted. A symbolic link is
    /// followed. Devices and pipes are written to directly.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of OUT; default: by its extension (.npy, .arrow, .feather, .arrows), otherwise raw
    ///
    /// `raw` also reads inputs as raw if they begin like another format, unless their extension names that format.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
}

/// How much memory to use, and what to do where that is too little.
#[derive(Debug, Default, clap::Args)]
pub struct MemoryArgs {
    /// Use at most SIZE of memory for keys and values, for example 8G, 500M or 50%; default: most of what is available
    ///
    /// As in sort(1), K, M, G and T are powers of 1024, % is a share of the machine's memory, b stands for bytes, and a
    /// number alone is in units of 1024 bytes. At least 1M. Keys that do not fit are sorted in chunks, which are spilled to a
    /// temporary file and merged; sorted files are merged while they are read. The program itself needs some megabytes more.
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub memory: Option<MemorySize>,
    /// Folder of the temporary file; default: $TMPDIR, or /tmp, or /var/tmp if /tmp is in memory
    #[arg(short = 'T', long, value_name = "DIR")]
    pub tmp_dir: Option<PathBuf>,
    /// Merge at most N runs at once; default: as many as memory allows
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>(2..=u64::MAX))]
    pub batch_size: Option<usize>,
}

/// Flags of the commands that also handle records.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// The file is records of R bytes each, ordered by --key; not needed for .npy files with a structured dtype
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = number::<usize>(1..=isize::MAX as u64))]
    pub record_size: Option<usize>,
    /// Fields that order records, the most significant one first, with commas between them: OFFSET:TYPE, or NAME of an .npy
    /// file with a structured dtype; append `:desc` for descending
    ///
    /// OFFSET is in bytes from the beginning of the record. TYPE is one of those of --type, with the byte order of --endian
    /// or its own (`u32be`), or `bytesN` for N bytes that are compared as memcmp(3) does. A NAME that is a number, or has a
    /// comma or colon, is in double quotes, with double quotes in it doubled: '"a,b":desc'. Fields must not overlap. Records
    /// with equal fields keep their order.
    #[arg(long, value_name = "FIELD", value_parser = KeyFields::from_str)]
    pub key: Vec<KeyFields>,
}
