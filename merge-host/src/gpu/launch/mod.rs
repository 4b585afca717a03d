//! Which kernels an operation is made of, and in what shapes they are launched.
//!
//! | file | operation |
//! | --- | --- |
//! | `merge` | two arrays, with values or without |
//! | `batch` | many pairs of runs, of one length or of any lengths |
//! | `sort` | the two phases of the sort, and detecting runs before them |
//! | `divide` | the sort that divides keys, if they are spread evenly |
//! | `radix` | the sort by all bits, for keys that are not divided |
//! | `narrow` | keys of 1 and 2 bytes: the sort by counting, and all operations on widened keys |
//! | `runs` | many runs at once, in place |
//! | `bits` | sorts by some bits of the keys |
//! | `many_runs` | the runs of an array, into another array |
//! | `many_ragged` | groups of the runs of an array, each group by itself |
//! | `top_k` | the first k keys in their order |
//! | `top_k_segments` | the first k keys of each segment of an array |
//! | `own` | sorts and merges in a user's own order |
//! | `sets` | unions, intersections and differences |
//! | `groups` | unique keys, run lengths and reductions by key |
//! | `bounds` | lower and upper bounds of sorted needles |
//! | `segments` | the sort of each segment of an array |
//! | `offsets` | the offsets of runs whose lengths only the GPU knows |
//! | `exchange` | each GPU's part of the merged runs of a group |
//! | `thresholds` | the numbers of keys at which a sort changes its kernels |
//! | `words` | sorts of keys of 16 bytes |
//! | `all` | every operation, with lengths that reach all of its kernels, for a record |
//!
//! Each operation is a value ([`Operation`](super::operation::Operation)). Its arrays are addresses in the GPU's
//! memory. Launches go to a [`Queue`]: a stream, a record of entry points, or in tests the emulator.

pub(super) mod all;
pub mod batch;
pub mod bits;
pub mod bounds;
mod divide;
#[cfg(feature = "emulator")]
pub mod emulated;
pub mod exchange;
pub mod groups;
pub mod many_ragged;
pub mod many_runs;
pub mod merge;
pub mod narrow;
pub mod offsets;
pub mod own;
mod radix;
mod runs;
pub mod segments;
pub mod sets;
pub mod sort;
pub mod thresholds;
pub mod top_k;
pub mod top_k_segments;
pub mod words;

use super::failure::OrFailure;
use super::kernels::Shape;
use super::{Address, Stream};
use crate::Error;
use cuda_std::launch::Arguments;
use cust::event::{Event, EventFlags};
use cust::memory::DeviceSlice;
use cust::stream::Stream as Handle;
use kernels_gpu::elements::{Elements, Slice};
use kernels_gpu::key::Bits;
use std::ffi::c_void;
use std::hash::{BuildHasher, Hasher, RandomState};
use thresholds::Thresholds;

/// Blocks of persistent kernels for each multiprocessor, which holds this many.
const PERSISTENT_BLOCKS: usize = 8;

/// A kernel's name and the suffix of one of its instances, which together name an entry point of a module.
pub type Entry = (&'static str, String);

/// A launch of any kernel.
pub struct Launch<'a> {
    /// The kernel's name.
    pub(super) kernel: &'static str,
    /// The suffix of the kernel's instance.
    pub(super) suffix: &'a str,
    /// Whether the instance exists and takes the arguments.
    pub(super) exists: bool,
    pub(super) shape: Shape,
    /// Pointers to the arguments, which stay where they are while there is a launch.
    pub(super) pointers: &'a [*mut c_void],
    /// The work of a thread in the emulator, if the instance exists.
    #[cfg(feature = "emulator")]
    thread: Option<Box<dyn Fn() + Send + Sync>>,
}

/// Work on two queues.
pub type OnTwo<'a> = dyn Fn(&dyn Queue, &dyn Queue) -> Result<(), Error> + 'a;

/// A queue of launches. Operations take a `&dyn Queue`, so that their launches are compiled once for all queues.
pub trait Queue {
    /// Multiprocessors of the GPU.
    fn multiprocessors(&self) -> usize;

    /// Adds a launch.
    ///
    /// # Safety
    /// The arguments meet the requirements of the kernel's documentation until the launch has ended.
    unsafe fn add(&self, launch: Launch<'_>) -> Result<(), Error>;

    /// Sets `count` words of 4 bytes at `at` to 0, in order with the launches.
    ///
    /// # Safety
    /// The words are in the GPU's memory, and nothing else uses them until then.
    unsafe fn clear(&self, at: Address, count: usize) -> Result<(), Error>;

    /// Copies `bytes` bytes, a multiple of 4, in order with the launches.
    ///
    /// # Safety
    /// Both ranges are in the GPU's memory and do not overlap. Until the copy has ended, nothing else uses the range at
    /// `to`, and nothing else writes the range at `from`.
    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), Error>;

    /// Runs `work` with this queue and a second one. The two queues are in no order with each other. Later work waits
    /// for both.
    fn join(&self, work: &OnTwo<'_>) -> Result<(), Error>;

    /// An unpredictable number, another one at each call.
    fn random(&self) -> u64 {
        RandomState::new().build_hasher().finish()
    }

    /// A number of blocks that take their work in turns: `each` on each multiprocessor. Any other number is right, too.
    fn blocks(&self, each: usize) -> usize {
        each * self.multiprocessors()
    }

    /// The shape of a launch of persistent blocks, with `blocks` blocks on each multiprocessor.
    fn persistent(&self, blocks: usize, threads: u32, shared_bytes: u32) -> Shape {
        Shape { blocks: self.blocks(blocks), threads, shared_bytes }
    }
}

impl dyn Queue + '_ {
    /// Adds a launch of the kernel's instance with this suffix.
    ///
    /// # Safety
    /// The arguments meet the requirements of the kernel's documentation until the launch has ended.
    pub unsafe fn launch<A: Arguments>(&self, suffix: &str, shape: Shape, arguments: &A) -> Result<(), Error> {
        let pointers = arguments.pointers();
        let launch = Launch {
            kernel: A::KERNEL.name,
            suffix,
            exists: A::instance(suffix).is_some(),
            shape,
            pointers: pointers.as_ref(),
            #[cfg(feature = "emulator")]
            thread: emulated::thread(suffix, *arguments),
        };
        // SAFETY: this function and `add` require the same of the arguments.
        unsafe { self.add(launch) }
    }
}

/// A stream of a GPU. Its context is current.
pub(super) struct OnStream<'a> {
    stream: &'a Stream,
    /// The stream itself, or the second stream beside it.
    handle: &'a Handle,
}

impl<'a> OnStream<'a> {
    /// The queue of launches on `stream`.
    pub(super) fn new(stream: &'a Stream) -> Self {
        Self { stream, handle: stream.inner() }
    }

    /// Makes later work of this stream wait for the work that is on `other` now.
    fn wait_for(&self, other: &Self) -> Result<(), Error> {
        let now = Event::new(EventFlags::DISABLE_TIMING).or_failure("cuEventCreate")?;
        now.record(other.handle).or_failure("cuEventRecord")?;
        self.handle.wait_event(&now).or_failure("cuStreamWaitEvent")
    }
}

impl Queue for OnStream<'_> {
    fn multiprocessors(&self) -> usize {
        self.stream.gpu().shared.multiprocessors
    }

    unsafe fn add(&self, launch: Launch<'_>) -> Result<(), Error> {
        // SAFETY: this function and `Kernels::launch` require the same of the arguments, until the launch has ended.
        unsafe { self.stream.gpu().shared.kernels.launch(&launch, self.handle) }
    }

    unsafe fn clear(&self, at: Address, count: usize) -> Result<(), Error> {
        let words = DeviceSlice::from_raw_parts(at, count * size_of::<u32>());
        // SAFETY: `at` has `count` words that nothing else uses, by `# Safety`.
        unsafe { words.set_32_async(0, self.handle) }.or_failure("cuMemsetD32Async")
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), Error> {
        let [to, from] = [to, from].map(|address| DeviceSlice::from_raw_parts(address, bytes));
        // SAFETY: both addresses have `bytes` bytes, which do not overlap and are used by nothing else, by `# Safety`.
        unsafe { to.async_copy_from(from, self.handle) }.or_failure("cuMemcpyDtoDAsync")
    }

    fn join(&self, work: &OnTwo<'_>) -> Result<(), Error> {
        let side = OnStream { handle: self.stream.side()?, ..*self };
        side.wait_for(self)?;
        let both = work(self, &side);
        // Also if a launch has failed, so that nothing runs beside later work.
        self.wait_for(&side).or_else(|error| {
            // Work on the side stream ends before the caller may free the arrays.
            side.handle.synchronize().or_failure("cuStreamSynchronize")?;
            Err(error)
        })?;
        both
    }
}

/// Keys in the GPU's memory, and a value for each unless `value_bytes` is 0.
#[derive(Clone, Copy)]
pub struct Arrays {
    /// The address of the keys.
    pub keys: Address,
    /// The address of the values.
    pub values: Address,
    /// The number of keys.
    pub len: usize,
    /// Bytes of a value: 0, 4 or 8.
    pub value_bytes: usize,
    /// The address of the number of elements, which is at most `len`, or 0 if the number is `len`. Sorts, merges, set
    /// operations, operations on groups of equal keys, bounds and the first k keys read the number, or write it if the
    /// array is the result.
    pub count: Address,
}

impl Arrays {
    /// Keys alone.
    pub const fn keys(keys: Address, len: usize) -> Self {
        Self { keys, values: 0, len, value_bytes: 0, count: 0 }
    }

    /// `len` keys with bits `B` from index `begin`, with their values.
    const fn part<B>(self, begin: usize, len: usize) -> Self {
        let keys = self.keys + (begin * size_of::<B>()) as u64;
        Self { keys, values: self.values + (begin * self.value_bytes) as u64, len, ..self }
    }
}

/// `bytes`, rounded up to the alignment of any element.
pub(super) const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}

/// The suffix of kernels for keys with bits `B`, alone or with values of `value_bytes` bytes.
fn suffix<B: Bits>(value_bytes: usize) -> String {
    let keys = bits(size_of::<B>());
    if value_bytes == 0 { keys } else { format!("{keys}v{value_bytes}") }
}

/// The end of the suffix of kernels for lengths in the GPU's memory.
const COUNTED: &str = "counted";

/// The end of a kernel's suffix: [`COUNTED`] if one of the arrays has its number of elements in the GPU's memory.
fn counted(arrays: &[Arrays]) -> &'static str {
    if arrays.iter().any(|array| array.count != 0) { COUNTED } else { "" }
}

/// Keys and values at these addresses.
fn elements<B: Bits, V>((keys, values): (Address, Address)) -> Elements<B, V> {
    Elements { keys: keys as *mut B, values: values as *mut V }
}

/// The elements of `arrays`, and their number.
fn slice<B: Bits, V>(arrays: Arrays) -> Slice<B, V> {
    Slice { at: elements::<B, V>((arrays.keys, arrays.values)), len: arrays.len }
}

/// Evaluates an expression with `V` as the type of numbers of this many bytes: `u32` or `u64`.
macro_rules! with_numbers {
    ($bytes:expr, $V:ident => $work:expr) => {
        if $bytes == 4 {
            type $V = u32;
            $work
        } else {
            type $V = u64;
            $work
        }
    };
}
pub(super) use with_numbers;

/// Evaluates an expression with `V` as the type of values of this many bytes: `()`, `u32` or `u64`.
macro_rules! with_values {
    ($bytes:expr, $V:ident => $work:expr) => {
        if $bytes == 0 {
            type $V = ();
            $work
        } else {
            $crate::gpu::launch::with_numbers!($bytes, $V => $work)
        }
    };
}
use with_values;

/// The suffix of kernels for all numbers of `bytes` bytes: 1, 2, 4 or 8.
fn bits(bytes: usize) -> String {
    format!("u{}", 8 * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SortKernel;
    use crate::gpu::kernels::module_name;
    use crate::gpu::operation::{KeyCoding, Record};
    use kernels_gpu::key::{Coding, Key};
    use std::collections::HashSet;

    #[test]
    fn the_sort_by_merge_path_launches_no_division_and_all_else_but_merges_of_parts() {
        fn check(coding: KeyCoding) {
            let [auto, merge_path] = SortKernel::ALL.map(|kernel| {
                let record = Record::new(132);
                [0, 4, 8].into_iter().try_for_each(|bytes| all::sorts(&record, coding, kernel, bytes)).unwrap();
                record.entries()
            });
            let divides = |(kernel, suffix): &Entry| {
                let module = module_name(kernel, suffix).expect("a module has it");
                ["divide", "radix", "windows", "sort_small"].iter().any(|family| module.starts_with(family))
            };
            let (divisions, mut others): (HashSet<Entry>, HashSet<Entry>) = auto.into_iter().partition(divides);
            assert!(!divisions.is_empty() && !merge_path.iter().any(divides));
            others.retain(|(kernel, _)| !["path_big", "merge_big"].contains(kernel));
            assert!(others.is_subset(&merge_path), "{:?}", others.difference(&merge_path));
        }
        check(u32::coding().into());
        check(u64::coding().into());
    }

    #[test]
    fn all_that_is_launched_is_in_a_module() {
        fn check(coding: KeyCoding) {
            let record = Record::new(132);
            record.add_all(coding).unwrap();
            for (kernel, suffix) in record.entries() {
                assert!(module_name(kernel, &suffix).is_some(), "no module has {kernel}_{suffix}");
            }
        }
        check(Coding::<u8>::NONE.into());
        check(Coding::<u16>::NONE.into());
        check(u32::coding().into());
        check(u64::coding().into());
    }

    #[test]
    fn sorts_of_wide_keys_are_in_modules() {
        let record = Record::new(132);
        for (kernel, bytes) in SortKernel::ALL.into_iter().flat_map(|kernel| [0, 4, 8].map(|bytes| (kernel, bytes))) {
            all::sorts(&record, Coding::<u128>::NONE.into(), kernel, bytes).unwrap();
        }
        let entries = record.entries();
        assert!(entries.iter().any(|(kernel, _)| *kernel == "split_words"));
        for (kernel, suffix) in entries {
            assert!(module_name(kernel, &suffix).is_some(), "no module has {kernel}_{suffix}");
        }
    }
}
