//! The sort: a phase of sorted tiles, then passes of merges. For many keys, detecting runs and dividing come before
//! them.
//!
//! | file | contents |
//! | --- | --- |
//! | `plan` | which kernels sort, and in what shapes |
//! | `layout` | the parts of the workspace |
//! | `order` | detecting runs, and making use of them |
//! | `merges` | the sort of tiles, and the passes |
//! | `parts` | the sort of more keys than divisions can count |
//!
//! This file puts them together: the order of launches, and the launches that run beside each other.

mod layout;
mod merges;
mod order;
mod parts;
mod plan;

#[cfg(feature = "emulator")]
pub use layout::Layout;
pub use plan::SortPlan;

use super::divide::{DividePlan, Words};
use super::narrow::{counting_bytes, is_counted, sort_by_counting};
use super::radix::RadixPlan;
use super::words::SortWide;
use super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, bits, slice, with_values};
use crate::gpu::operation::{self, KeyCoding, OnNumbers, Operation, with_coding};
use crate::key::sealed::GpuBits;
use crate::{Error, SortKernel};
use cuda_std::Word;
use cuda_std::launch::Arguments;
use kernels_gpu::kernels::pad_keys::{self, PadKeys};
use kernels_gpu::kernels::sort::detect_runs::DETECTION_WORDS;
use kernels_gpu::kernels::sort::sort_small::SortSmall;
use kernels_gpu::key::{Bits, Coding};
use layout::Workspace;

/// Queues the sort of `at` by `kernel`, with or without values. Values begin as the keys' indices if it `indexes`.
///
/// # Safety
/// The arrays and `workspace`, which has [`SortPlan::workspace_bytes`], are in the GPU's memory. Nothing else uses them
/// until the sort has ended. There are at most [`MAX_KEYS`](layout::MAX_KEYS) keys.
pub(in crate::gpu) unsafe fn sort<B: Bits>(
    queue: &dyn Queue,
    (kernel, coding): (SortKernel, Coding<B>),
    at: Arrays,
    indexes: bool,
    workspace: Address,
) -> Result<(), Error> {
    let plan = SortPlan::of::<B>(at.len, at.value_bytes, indexes).with_kernel(kernel);
    // SAFETY: the plan is made for `at`, and the workspace for the automatic kernel is enough for any kernel.
    unsafe { sort_by_plan::<B>(queue, plan, coding, at, workspace) }
}

/// Queues the sort of `at` by `plan`, which is made for its number of keys and the width of its values.
///
/// # Safety
/// The conditions of `sort` hold, for the workspace of this plan.
pub unsafe fn sort_by_plan<B: Bits>(
    queue: &dyn Queue,
    plan: SortPlan,
    coding: Coding<B>,
    at: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let n = at.len;
    if n == 0 {
        return Ok(());
    }
    if let Some((shape, suffix)) = plan.one_block::<B>() {
        return with_values!(at.value_bytes, V => {
            let (random, indexes) = (queue.random(), u32::from(plan.indexes));
            let sort = SortSmall { at: slice::<B, V>(at), count: at.count as *const u64, coding, indexes, random };
            // SAFETY: `at` has 1 to as many elements as the shape has slots, with values of type `V`. The shape has the
            // kernel's threads and shared bytes.
            unsafe { queue.launch(&suffix, shape, &sort) }
        });
    }
    let layout = plan.layout::<B>(n);
    // If keys may be divided, a sample tells first whether they look as if they were in order.
    let detects = n >= plan.detection_keys && plan.divide.is_none() && !plan.in_parts;
    let parts = layout.at(workspace, detects || plan.divide.is_some(), !plan.small || plan.in_parts);
    let sort = Planned { plan, coding, at, workspace: parts, random: queue.random() };
    if plan.in_parts {
        // SAFETY: the conditions of this function are the conditions of `Planned`, which has the plan's workspace.
        return unsafe { sort.sort_in_parts(queue, workspace) };
    }
    if detects {
        // SAFETY: `parts.detected` has `RUNS_BYTES` in the workspace, which begin with the `DETECTION_WORDS` words that
        // are cleared.
        unsafe {
            queue.clear(parts.detected, DETECTION_WORDS)?;
            sort.detect_runs(queue)?;
        }
    }
    match (plan.divide, plan.radix) {
        // SAFETY: the layout has `CLEARED_WORDS` at `cleared`, `published_bytes` at `published`, and a copy of keys and
        // values at `scratch`.
        (None, Some(radix)) => unsafe {
            queue.clear(parts.radix.cleared, RadixPlan::CLEARED_WORDS)?;
            radix.sort::<B>(queue, coding, at, parts.scratch, parts.radix)
        },
        // SAFETY: the steps require the conditions of this function, and `parts` are the plan's parts of the workspace.
        (Some(divide), Some(radix)) if divide.is_once() => unsafe { sort.divide_once(queue, divide, radix) },
        // SAFETY: the conditions of this function are the conditions of `Planned`, which has the plan's workspace.
        (Some(divide), radix) if !divide.is_once() => unsafe {
            sort.divide(queue, divide, radix, layout.radix_words())
        },
        // SAFETY: the caller ensures the conditions of `sort` for this plan, and `sort` has its plan and arrays.
        _ => unsafe { sort.merge_sort(queue) },
    }
}

/// A sort by a plan: what its steps have in common. The conditions of [`sort`] are the conditions of each step.
struct Planned<B: Bits> {
    plan: SortPlan,
    coding: Coding<B>,
    at: Arrays,
    /// The plan's parts of the workspace.
    workspace: Workspace,
    random: u64,
}

impl<B: Bits> Planned<B> {
    /// The words of the divisions.
    fn words(&self) -> Words {
        Words { lists: self.workspace.lists, order: self.workspace.detected }
    }

    /// Queues a single division, and the sort by all bits for keys that are not divided.
    unsafe fn divide_once(&self, queue: &dyn Queue, divide: DividePlan, radix: RadixPlan) -> Result<(), Error> {
        let Self { coding, at, workspace: Workspace { scratch, radix: radix_words, .. }, random, .. } = *self;
        let (sides, words) = ([at.keys, scratch.0], self.words());
        // SAFETY: both sides have `at.len` keys, and the words are parts of the workspace. Only one of the last two
        // launches has something to do.
        unsafe {
            divide.divide_once::<B>(queue, coding, sides, words, random)?;
            radix.sort::<B>(queue, coding, at, scratch, radix_words)?;
            divide.sort_once::<B>(queue, coding, sides, None, words, random)
        }
    }

    /// Queues the divisions of all levels and, beside them, the sort by all bits or the merges for keys that are not
    /// divided. `radix_words` are the words of the sort by all bits, which are cleared.
    unsafe fn divide(
        &self,
        queue: &dyn Queue,
        divide: DividePlan,
        radix: Option<RadixPlan>,
        radix_words: u32,
    ) -> Result<(), Error> {
        let Self { coding, at, workspace, random, .. } = *self;
        let division = divide.division::<B>(coding, at, workspace.scratch, self.words(), radix_words, random);
        // SAFETY: all arrays are `at` or parts of the workspace. Once `decide` has run, only the divisions, the sort by
        // all bits or the merges have something to do. Their parts of the workspace are behind the heads of the lists.
        unsafe {
            division.decide(queue)?;
            // The host takes longer to queue either than the GPU takes to find that there is nothing to do. Launches
            // that may have something to do therefore come first.
            queue.join(&|queue, side| {
                division.begin(queue)?;
                if divide.has_windows() {
                    self.sort_windows(side)?;
                }
                self.detect_runs(side)?;
                let Some(radix) = radix else {
                    division.finish(queue)?;
                    return self.merge_sort(side);
                };
                radix.sort::<B>(side, coding, at, workspace.scratch, workspace.radix)?;
                division.finish(queue)?;
                self.use_order(side)
            })
        }
    }
}

/// Queues the padding of the keys of `at` behind the first ones, whose number is at its count: these keys become the
/// last ones in the order of `coding`. A stable sort of all keys then leaves them behind.
///
/// # Safety
/// The keys and the count are in the GPU's memory, and nothing else uses the keys or writes the count.
unsafe fn pad(queue: &dyn Queue, coding: KeyCoding, at: Arrays) -> Result<(), Error> {
    /// Pads with keys of these words.
    unsafe fn with<T: Word>(queue: &dyn Queue, at: Arrays, words: &[T]) -> Result<(), Error>
    where
        PadKeys<T>: Arguments,
    {
        let shape = queue.persistent(PERSISTENT_BLOCKS, pad_keys::THREADS, 0);
        let (keys, count, n) = (at.keys as *mut T, at.count as *const u64, at.len);
        let pad = PadKeys { keys, n, words: words.len(), count, low: words[0], high: words[words.len() - 1] };
        // SAFETY: there are `n` keys of `words.len()` words, which nothing else uses, and nothing writes the count, as
        // the caller ensures.
        unsafe { queue.launch(&bits(size_of::<T>()), shape, &pad) }
    }
    // SAFETY: the keys have the width of the coding. The conditions of this function hold.
    unsafe {
        match coding {
            KeyCoding::U8(coding) => with(queue, at, &[coding.decode(u8::MAX)]),
            KeyCoding::U16(coding) => with(queue, at, &[coding.decode(u16::MAX)]),
            KeyCoding::U32(coding) => with(queue, at, &[coding.decode(u32::MAX)]),
            KeyCoding::U64(coding) => with(queue, at, &[coding.decode(u64::MAX)]),
            KeyCoding::U128(coding) => {
                let last = coding.decode(u128::MAX);
                with(queue, at, &[last as u64, (last >> 64) as u64])
            }
        }
    }
}

/// The sort of `at`. If it has a count, only the first elements are sorted, and the others are unspecified. Values
/// begin as the keys' indices if it `indexes`.
#[derive(Clone, Copy)]
pub struct Sort {
    pub kernel: SortKernel,
    pub coding: KeyCoding,
    pub at: Arrays,
    pub indexes: bool,
    /// Only this number of bits of the encoded keys, from the lowest one on, may differ from 0.
    pub bits: u32,
}

impl OnNumbers for Sort {
    /// Enough for any kernel.
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        SortPlan::of::<B>(self.at.len, self.at.value_bytes, self.indexes).workspace_bytes::<B>(self.at.len)
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { kernel, at, indexes, bits, .. } = *self;
        let plan = SortPlan::of::<B>(at.len, at.value_bytes, indexes).with_kernel(kernel).with_bits(bits);
        // SAFETY: `Operation::launch` requires valid arrays and `workspace_bytes` of workspace. There are at most
        // `MAX_KEYS` keys, because more need `usize::MAX` bytes, which no workspace has.
        unsafe { sort_by_plan::<B>(queue, plan, coding, at, workspace) }
    }
}

impl Sort {
    /// The sort by all bits of keys.
    pub const fn new(kernel: SortKernel, coding: KeyCoding, at: Arrays, indexes: bool) -> Self {
        Self { kernel, coding, at, indexes, bits: u128::BITS }
    }

    /// Whether one block sorts all keys, which reads their number by itself.
    fn is_in_one_block(&self) -> bool {
        fn is<B: Bits>(sort: &Sort, _: Coding<B>) -> bool {
            let plan = SortPlan::of::<B>(sort.at.len, sort.at.value_bytes, sort.indexes);
            plan.with_kernel(sort.kernel).one_block::<B>().is_some()
        }
        with_coding!(self.coding, coding => is(self, coding), else false)
    }

    /// This sort of keys of 16 bytes.
    fn wide(&self, coding: Coding<u128>) -> SortWide {
        let Self { kernel, at, indexes, .. } = *self;
        SortWide { kernel, coding, at, indexes }
    }
}

impl Operation for Sort {
    fn workspace_bytes(&self) -> usize {
        match self.coding {
            KeyCoding::U8(_) if is_counted(self.at) => counting_bytes::<u8>(),
            KeyCoding::U16(_) if is_counted(self.at) => counting_bytes::<u16>(),
            KeyCoding::U128(coding) => self.wide(coding).workspace_bytes(),
            coding => operation::workspace_bytes(self, coding),
        }
    }

    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        // SAFETY: `Operation::launch` requires valid arrays, a count that nothing else writes, and `workspace_bytes` of
        // workspace.
        unsafe {
            if self.at.count != 0 && !self.is_in_one_block() {
                pad(queue, self.coding, self.at)?;
            }
            match self.coding {
                KeyCoding::U8(coding) if is_counted(self.at) => sort_by_counting(queue, coding, self.at, workspace),
                KeyCoding::U16(coding) if is_counted(self.at) => sort_by_counting(queue, coding, self.at, workspace),
                KeyCoding::U128(coding) => self.wide(coding).launch(queue, workspace),
                coding => operation::launch(self, coding, queue, workspace),
            }
        }
    }
}
