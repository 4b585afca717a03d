//! What can go wrong.

/// Why a call did not do its work.
///
/// A call that fails before it starts (a length that does not fit, say) leaves its output as it was. One that fails on
/// the way (the device is lost) leaves it in an unspecified state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no GPU to use: no driver, no device, or none that the driver shows to this program.
    #[error("no GPU: {reason}")]
    NoDevice {
        /// What the search for one ended with.
        reason: String,
    },
    /// A call into the GPU's driver failed.
    #[error("{call} failed: {reason}")]
    Device {
        /// The driver's function, or what was being done.
        call: String,
        /// What the driver said.
        reason: String,
    },
    /// The work does not fit into the GPU's memory.
    #[error("the GPU has {free} bytes of memory free, {needed} are needed")]
    OutOfDeviceMemory {
        /// Bytes that the work takes.
        needed: u64,
        /// Bytes that were free.
        free: u64,
    },
    /// The work does not fit into the host's memory.
    #[error("no host memory for {needed} more bytes")]
    OutOfHostMemory {
        /// Bytes that were asked for.
        needed: u64,
    },
    /// A device workspace is too small.
    #[error("workspace has {found} bytes, {needed} are needed")]
    WorkspaceTooSmall {
        /// Bytes that the work takes.
        needed: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// Device slices that have to be apart are not.
    #[error("{what} overlaps {other}")]
    Overlap {
        /// The argument that is written.
        what: &'static str,
        /// The argument that it overlaps.
        other: &'static str,
    },
    /// A slice has another length than the others call for.
    #[error("{what} has {found} keys, expected {expected} ({rule})")]
    LengthMismatch {
        /// The argument's name.
        what: &'static str,
        /// The length it should have.
        expected: usize,
        /// The length it has.
        found: usize,
        /// Where the expected length comes from.
        rule: &'static str,
    },
    /// The output of a batch is not a whole number of runs.
    #[error("{what} has {found} keys, expected a multiple of {run} (d)")]
    NotWholeRuns {
        /// The argument's name.
        what: &'static str,
        /// The length it has.
        found: usize,
        /// The length of one run.
        run: usize,
    },
    /// The length of a batch's runs is out of bounds.
    #[error("d is {d}, expected 1 to {}", crate::MAX_BATCH_LENGTH)]
    BadBatchLength {
        /// The length asked for.
        d: usize,
    },
    /// A batch's runs cannot hold that many keys of A.
    #[error("a_len is {a_len}, expected at most {d} (d)")]
    BadSplit {
        /// Keys of A in a run.
        a_len: usize,
        /// Keys in a run.
        d: usize,
    },
    /// There are not as many values as keys.
    #[error("{what} has {keys} keys and {values} values, expected a value for each key")]
    ValuesMismatch {
        /// The argument's name.
        what: &'static str,
        /// How many keys it has.
        keys: usize,
        /// How many values it has.
        values: usize,
    },
    /// There are more keys than indices of that type can tell apart.
    #[error("there are {found} keys, {index} indices are enough for {most}")]
    TooManyKeys {
        /// How many keys there are.
        found: usize,
        /// How many there may be.
        most: usize,
        /// The indices' type.
        index: &'static str,
    },
    /// The two sides of a ragged batch have different numbers of runs.
    #[error("a has {a} offsets and b has {b}, expected as many of each")]
    OffsetsMismatch {
        /// How many offsets A has.
        a: usize,
        /// How many offsets B has.
        b: usize,
    },
    /// The offsets of a ragged batch or of segments are empty, where even no runs at all have one.
    #[error("there are no offsets, expected one more than there are runs")]
    NoOffsets,
    /// The first run of a ragged batch, or the first segment, does not begin at the first key.
    #[error("the first offset of {what} is {found}, expected 0")]
    FirstOffset {
        /// The argument's name.
        what: &'static str,
        /// Its first offset.
        found: usize,
    },
    /// A run of a ragged batch, or a segment, ends before it begins.
    #[error("offset {index} of {what} is {found}, below the one before it ({before})")]
    DescendingOffsets {
        /// The argument's name.
        what: &'static str,
        /// The index of the first offset that is below the one before it.
        index: usize,
        /// That offset.
        found: usize,
        /// The offset before it.
        before: usize,
    },
    /// The last run of a ragged batch, or the last segment, does not end with the last key.
    #[error("the last offset of {what} is {found}, expected {expected} (its number of keys)")]
    LastOffset {
        /// The argument's name.
        what: &'static str,
        /// Its last offset.
        found: usize,
        /// How many keys it has.
        expected: usize,
    },
    /// This build of the library has no GPU engine.
    #[error("this build has no GPU engine (the feature `gpu` is off)")]
    NoGpuSupport,
    /// The GPU has no kernels for keys of that type.
    #[error("the GPU has no kernels for {key} keys, only for u32, i32, f32, u64, i64 and f64: take the CPU")]
    NoKernels {
        /// The keys' type.
        key: &'static str,
    },
    /// There is no GPU of that number.
    #[error("there is no GPU {ordinal}, only {count} of them, counted from 0")]
    DeviceOrdinal {
        /// The GPU asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// A CPU engine cannot have that many threads.
    #[error("cannot use {threads} threads: {reason}")]
    Threads {
        /// The number asked for.
        threads: usize,
        /// What stands against it.
        reason: String,
    },
    /// No merge kernel has that name.
    #[error("there is no merge kernel `{name}`, expected one of auto, basic, tiled, circular, merge-path")]
    UnknownMergeKernel {
        /// The name asked for.
        name: String,
    },
}
