//! The error type of the crate.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The reason why a call failed.
///
/// A call that refuses its arguments leaves its output unchanged. A call that fails later, for instance because the
/// device is lost, leaves its output in an unspecified state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no usable GPU: no driver, no device, or no device that is visible to this program.
    #[error("no GPU: {reason}")]
    NoDevice {
        /// The outcome of the search.
        reason: String,
    },
    /// A group of GPUs has no members.
    #[error("a group of GPUs has no members, expected one or more")]
    NoMembers,
    /// A group of GPUs has the same GPU twice.
    #[error("GPU {ordinal} is in the group twice")]
    RepeatedDevice {
        /// The GPU's ordinal.
        ordinal: usize,
    },
    /// The arguments for a group of GPUs do not have one array for each member.
    #[error("{what} has {found} arrays, expected {expected}, one for each GPU of the group")]
    MembersMismatch {
        /// The argument's name.
        what: &'static str,
        /// The number of arrays of the argument.
        found: usize,
        /// The number of members.
        expected: usize,
    },
    /// A call into the GPU's driver failed.
    #[error("{call} failed: {reason}")]
    Device {
        /// The driver's function, or a description of the operation.
        call: String,
        /// The driver's description of its code and the name of the code, or another reason.
        reason: String,
        /// The `CUresult` that the driver's function returned, such as 700 for `CUDA_ERROR_ILLEGAL_ADDRESS`; `None` if
        /// another part than the driver failed.
        code: Option<u32>,
        /// The error behind this one, if there is one, such as `cust::error::CudaError`. `reason` contains its text.
        #[source]
        cause: Option<Cause>,
    },
    /// A part of the constants of a [`CostModel`](crate::CostModel) is malformed.
    #[error("{part:?} among the costs, expected {expected}")]
    Costs {
        /// The malformed part.
        part: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The GPU does not have enough free memory.
    #[error("the GPU has {free} bytes of memory free, {needed} are needed")]
    OutOfDeviceMemory {
        /// Bytes that the call needs.
        needed: u64,
        /// Bytes that were free.
        free: u64,
    },
    /// The system refused to allocate host memory.
    #[error("no host memory for {needed} more bytes")]
    OutOfHostMemory {
        /// Requested bytes; `u64::MAX` if the number is greater.
        needed: u64,
    },
    /// A device workspace is too small.
    #[error("workspace has {found} bytes, {needed} are needed")]
    WorkspaceTooSmall {
        /// Bytes that the call needs.
        needed: usize,
        /// Bytes that the workspace has.
        found: usize,
    },
    /// An array in a GPU's memory belongs to another stream than the stream that works on it.
    #[error("{what} belongs to another stream (`move_to` moves it to this one)")]
    OtherStream {
        /// The argument's name.
        what: &'static str,
    },
    /// An array is in the memory of another GPU than the GPU of the stream that works on it.
    #[error("{what} is in the memory of GPU {found}, expected GPU {expected}")]
    OtherGpu {
        /// The argument's name.
        what: &'static str,
        /// The ordinal of the array's GPU.
        found: usize,
        /// The ordinal of the stream's GPU.
        expected: usize,
    },
    /// The address of an array in the GPU's memory is 0, or not a multiple of the alignment of its elements.
    #[error("{what} is at address {address:#x}, expected a multiple of {align} other than 0")]
    BadAddress {
        /// The argument's name.
        what: &'static str,
        /// The address.
        address: u64,
        /// The alignment of the elements, in bytes.
        align: usize,
    },
    /// A kernel that handles keys alone was asked for, and there are values.
    #[error("the kernel {kernel} handles keys without values")]
    KeysAlone {
        /// The kernel's name.
        kernel: &'static str,
    },
    /// A kernel that the host has to tell all lengths was asked for, and a length is in the GPU's memory.
    #[error("the kernel {kernel} needs lengths that the host knows")]
    LengthsOnGpu {
        /// The kernel's name.
        kernel: &'static str,
    },
    /// The number of elements of an input is in the GPU's memory, and there is no place for that of a result.
    #[error("there is no count for {what}, and an input has one")]
    NoCount {
        /// The argument that is written.
        what: &'static str,
    },
    /// Arrays in the GPU's memory overlap, but must not.
    #[error("{what} overlaps {other}")]
    Overlap {
        /// The argument that is written.
        what: &'static str,
        /// The argument that it overlaps.
        other: &'static str,
    },
    /// The length of a slice does not match the other arguments.
    #[error("{what} has {found} keys, expected {expected} ({rule})")]
    LengthMismatch {
        /// The argument's name.
        what: &'static str,
        /// The expected length.
        expected: usize,
        /// The actual length.
        found: usize,
        /// How the expected length is computed.
        rule: &'static str,
    },
    /// An array has fewer elements than the result may need.
    #[error("{what} has capacity for {found} elements, the result may have {needed}")]
    CapacityTooSmall {
        /// The argument's name.
        what: &'static str,
        /// The greatest number of elements of a result.
        needed: usize,
        /// The number of elements of the array.
        found: usize,
    },
    /// The length of a batch's output is not a multiple of the length of a run.
    #[error("{what} has {found} keys, expected a multiple of {run} (d)")]
    NotWholeRuns {
        /// The argument's name.
        what: &'static str,
        /// The actual length.
        found: usize,
        /// The length of one run.
        run: usize,
    },
    /// The length of a batch's runs is 0 or greater than [`MAX_BATCH_LENGTH`](crate::MAX_BATCH_LENGTH).
    #[error("d is {d}, expected 1 to {}", crate::MAX_BATCH_LENGTH)]
    BadBatchLength {
        /// The requested length.
        d: usize,
    },
    /// The runs of A are longer than the runs of the output.
    #[error("a_len is {a_len}, expected at most {d} (d)")]
    BadSplit {
        /// The number of keys of a run of A.
        a_len: usize,
        /// The number of keys of a run of the output.
        d: usize,
    },
    /// The length of segments of one length is 0.
    #[error("the length of the segments is 0, expected 1 or more")]
    SegmentLength,
    /// An argument has different numbers of keys and values.
    #[error("{what} has {keys} keys and {values} values, expected a value for each key")]
    ValuesMismatch {
        /// The argument's name.
        what: &'static str,
        /// The number of keys of the argument.
        keys: usize,
        /// The number of values of the argument.
        values: usize,
    },
    /// There are more keys than the type of the indices has values.
    #[error("there are {found} keys, but {index} indices allow at most {most}")]
    TooManyKeys {
        /// The number of keys.
        found: usize,
        /// The greatest number of keys for this type.
        most: usize,
        /// The type of the indices.
        index: &'static str,
    },
    /// A range of bits is not one of the bits of a key.
    #[error("bits {begin} to {end} were asked for, expected a range of the {bits} bits of a key")]
    BitRange {
        /// The first bit.
        begin: u32,
        /// The bit after the last one.
        end: u32,
        /// The number of bits of a key.
        bits: u32,
    },
    /// More keys are requested than there are.
    #[error("the first {k} keys were asked for, but there are {found}")]
    TooFewKeys {
        /// The requested number of keys.
        k: usize,
        /// The number of keys.
        found: usize,
    },
    /// An index of a permutation is not less than the number of elements.
    #[error("index {slot} of the permutation is {found}, expected less than {count}, the number of elements")]
    IndexOutOfRange {
        /// The position of the first such index in the permutation.
        slot: usize,
        /// The index.
        found: usize,
        /// The number of elements.
        count: usize,
    },
    /// A permutation has an index twice.
    #[error("index {slot} of the permutation is {found}, which it has before, expected each index once")]
    RepeatedIndex {
        /// The position of the first index that occurs earlier in the permutation, too.
        slot: usize,
        /// The index.
        found: usize,
    },
    /// The number of bytes of the records is not a multiple of the size of a record.
    #[error("the records have {found} bytes, expected a multiple of {size}, the size of a record")]
    NotWholeRecords {
        /// Bytes of all records.
        found: usize,
        /// Bytes of one record. A size of 0 is always an error.
        size: usize,
    },
    /// A field of a key is not within a record.
    #[error("a field of the key ends after {end} bytes, expected it to end within the {size} bytes of a record")]
    FieldOutOfRecord {
        /// Where the last field ends, in bytes.
        end: usize,
        /// Bytes of one record.
        size: usize,
    },
    /// A field of a key is a floating-point number of an unsupported size.
    #[error("a field of the key is a floating-point number of {size} bytes, expected 2, 4, 8 or 16")]
    FloatSize {
        /// Bytes of the field.
        size: usize,
    },
    /// The fields of a key have too many bytes in total.
    #[error("the fields of the key have {found} bytes, expected at most {most}")]
    KeyTooLong {
        /// Bytes of all fields; `usize::MAX` if the number is greater.
        found: usize,
        /// The greatest number of bytes of all fields.
        most: usize,
    },
    /// The two inputs of a ragged batch have different numbers of runs.
    #[error("a has {a} offsets and b has {b}, expected the same number")]
    OffsetsMismatch {
        /// The number of offsets of A.
        a: usize,
        /// The number of offsets of B.
        b: usize,
    },
    /// The offsets of a ragged batch, of groups of runs or of segments are empty. There must be one offset even if
    /// there are no runs.
    #[error("there are no offsets, expected one more than there are runs")]
    NoOffsets,
    /// The first offset of a ragged batch, of groups of runs or of segments is not 0.
    #[error("the first offset of {what} is {found}, expected 0")]
    FirstOffset {
        /// The argument's name.
        what: &'static str,
        /// The first offset.
        found: usize,
    },
    /// An offset of a ragged batch, of groups of runs or of segments is less than the offset before it.
    #[error("offset {index} of {what} is {found}, less than the one before it ({before})")]
    DescendingOffsets {
        /// The argument's name.
        what: &'static str,
        /// The index of the first such offset.
        index: usize,
        /// The offset.
        found: usize,
        /// The offset before it.
        before: usize,
    },
    /// The last offset of a ragged batch or of segments is not the number of keys.
    #[error("the last offset of {what} is {found}, expected {expected} (its number of keys)")]
    LastOffset {
        /// The argument's name.
        what: &'static str,
        /// The last offset.
        found: usize,
        /// The number of keys of the argument.
        expected: usize,
    },
    /// The last offset of groups of runs is not the number of runs.
    #[error("the groups end with run {found}, expected {expected} (the number of runs)")]
    LastGroup {
        /// The last offset of the groups.
        found: usize,
        /// The number of runs.
        expected: usize,
    },
    /// The library was built without the GPU engine.
    #[error("this build has no GPU engine (the feature `gpu` is off)")]
    NoGpuSupport,
    /// The GPU has no kernels for keys of this type.
    #[error(
        "the GPU has no kernels for {key} keys, only for integers and floats of 1 to 8 bytes, and sorts of 16 bytes: \
         use the CPU"
    )]
    NoKernels {
        /// The type of the keys.
        key: &'static str,
    },
    /// There is no GPU with this ordinal.
    #[error("there is no GPU {ordinal}, the number of GPUs is {count} and the first is GPU 0")]
    DeviceOrdinal {
        /// The requested ordinal.
        ordinal: usize,
        /// The number of GPUs.
        count: usize,
    },
    /// A CPU engine cannot have this number of threads, or the system refuses to start them.
    #[error("cannot use {threads} threads: {reason}")]
    Threads {
        /// The requested number.
        threads: usize,
        /// The reason for the refusal.
        reason: String,
    },
    /// The environment variable [`VECTORS`](crate::VECTORS) has an unknown value.
    #[error(
        "the environment variable {} is `{found}`, expected one of {}",
        crate::VECTORS.0,
        crate::VECTORS.1.join(", ")
    )]
    Vectors {
        /// The value.
        found: String,
    },
    /// No value of a type has this name.
    #[error("there is no {what} `{name}`, expected one of {expected}")]
    UnknownName {
        /// A description of the type, such as "merge kernel".
        what: &'static str,
        /// The requested name.
        name: String,
        /// The valid names, separated by commas.
        expected: &'static str,
    },
}

/// The error that caused another error, for instance an error of the crate `cust` if a call into the driver failed.
///
/// The clones of an error share it. Two causes are equal if their texts are equal.
///
/// ```
/// use merge_host::{Cause, Error};
/// use std::error::Error as _;
///
/// let cause = Cause::from("x".parse::<u32>().unwrap_err());
/// assert!(cause.is::<std::num::ParseIntError>());
/// let (call, reason) = ("reading a number".to_owned(), cause.to_string());
/// let error = Error::Device { call, reason, code: None, cause: Some(cause) };
/// assert_eq!(error.to_string(), "reading a number failed: invalid digit found in string");
/// assert!(error.source().unwrap().is::<std::num::ParseIntError>());
/// ```
#[derive(Clone)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Cause {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl Deref for Cause {
    type Target = dyn std::error::Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.to_string() == other.to_string()
    }
}

impl Eq for Cause {}
