//! Choices among a few names.

use clap::ValueEnum;
use merge_host::Gpus;

/// How a file holds keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The keys and nothing else
    Raw,
    /// A header of NumPy, then the keys
    Npy,
    /// An IPC file of Apache Arrow, which is also a Feather file
    Arrow,
    /// An IPC stream of Apache Arrow
    Arrows,
    /// An Apache Parquet file, of a table
    Parquet,
}

impl Format {
    /// The name of a file in this format, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw file",
            Self::Npy => ".npy file",
            Self::Arrow => "Arrow file",
            Self::Arrows => "Arrow stream",
            Self::Parquet => "Parquet file",
        }
    }
}

/// How the columns of a table are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Not at all
    None,
    /// LZ4
    Lz4,
    /// Zstandard
    Zstd,
    /// Snappy, for Parquet files
    Snappy,
    /// gzip, for Parquet files
    Gzip,
}

/// Whether to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Not at all
    Never,
    /// On a terminal
    Auto,
    /// Always
    Always,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The CPU or the GPU, whichever takes less time
    Auto,
    /// The GPU, or an error
    Gpu,
    /// The CPU
    Cpu,
}

/// The engine that computes, and the GPUs that it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    pub engine: EngineChoice,
    pub gpus: Gpus,
}

impl From<EngineChoice> for Processors {
    /// The first GPU.
    fn from(engine: EngineChoice) -> Self {
        Self { engine, gpus: Gpus::Of(vec![0]) }
    }
}

/// How to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// The fastest one
    Auto,
    /// Each thread merges its segment of the output straight from memory
    Basic,
    /// Tile by tile through shared memory
    Tiled,
    /// Like tiled, with circular buffers, so that no key is loaded twice
    Circular,
    /// Two levels of exact splits, the same number of keys for every thread
    MergePath,
}

impl Kernel {
    /// Whether this kernel can merge files while they are read, and keys with values. Only the fastest kernel can.
    pub fn is_general(self) -> bool {
        matches!(self, Self::Auto | Self::MergePath)
    }
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

/// How a GPU sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortKernel {
    /// The fastest one
    Auto,
    /// Sorted tiles and passes of merges, without dividing keys by their digits
    MergePath,
}

impl From<SortKernel> for merge_host::SortKernel {
    fn from(kernel: SortKernel) -> Self {
        match kernel {
            SortKernel::Auto => Self::Auto,
            SortKernel::MergePath => Self::MergePath,
        }
    }
}

/// Where the NaNs lie in the result, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NanOrder {
    /// After all numbers
    Last,
    /// Before all numbers
    First,
    /// By their sign, as in IEEE 754's total order: -NaNs before all numbers, and +NaNs after them
    Total,
}

impl From<NanOrder> for merge_host::NanOrder {
    fn from(nans: NanOrder) -> Self {
        match nans {
            NanOrder::Last => Self::Last,
            NanOrder::First => Self::First,
            NanOrder::Total => Self::Total,
        }
    }
}

/// How to print statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// One JSON object on a line
    Json,
    /// A table
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
    /// Numbers k from 1 to 10000 with a probability proportional to 1/k; to 127 for i8, 255 for u8, 2048 for f16
    Zipf,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of all values on the command line.
    fn typed<T: ValueEnum>() -> Vec<String> {
        T::value_variants().iter().map(|value| value.to_possible_value().unwrap().get_name().to_owned()).collect()
    }

    #[test]
    fn orders_of_nans_are_those_of_the_library_by_the_same_names() {
        let of_library: Vec<_> =
            NanOrder::value_variants().iter().map(|nans| merge_host::NanOrder::from(*nans)).collect();
        assert_eq!(typed::<NanOrder>(), of_library.iter().map(|nans| nans.name()).collect::<Vec<_>>());
        assert!(merge_host::NanOrder::ALL.iter().all(|nans| of_library.contains(nans)));
    }

    #[test]
    fn kernels_are_those_of_the_library_by_the_same_names() {
        let names = |kernel: &Kernel| merge_host::MergeKernel::from(*kernel).name();
        assert_eq!(typed::<Kernel>(), merge_host::MergeKernel::ALL.map(|kernel| kernel.name()));
        assert!(typed::<Kernel>().iter().eq(Kernel::value_variants().iter().map(names)));
        let names = |kernel: &SortKernel| merge_host::SortKernel::from(*kernel).name();
        assert_eq!(typed::<SortKernel>(), merge_host::SortKernel::ALL.map(|kernel| kernel.name()));
        assert!(typed::<SortKernel>().iter().eq(SortKernel::value_variants().iter().map(names)));
    }
}
