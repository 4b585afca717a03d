//! Groups of equal keys: unique keys, run lengths and reductions by key.

use super::sort::Sort;
use super::{Address, Arrays, Queue, align, bits, counted, elements, slice, suffix, with_values};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers, with_coding};
use crate::key::sealed::GpuBits;
use crate::{Error, Reduction, SortKernel};
use kernels_gpu::elements::Output;
use kernels_gpu::kernels::groups::reduce_groups::{self, ReduceGroups};
use kernels_gpu::kernels::groups::run_lengths::{self, RunLengths as RunLengthsKernel};
use kernels_gpu::kernels::groups::unique::{self, Unique as UniqueKernel};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning::{ROW, Tile};

/// Bytes of workspace for `n` keys with values of at most 8 bytes: three words for each tile of the smallest shape.
pub(in crate::gpu) const fn workspace_bytes<B: Bits>(n: usize) -> usize {
    let keys = [ROW.unique, ROW.run_lengths, ROW.reduce];
    let (mut fewest, mut i) = (usize::MAX, 0);
    while i < keys.len() {
        let of = keys[i].fewest_keys(size_of::<B>());
        fewest = if of < fewest { of } else { fewest };
        i += 1;
    }
    align(reduce_groups::words(n.div_ceil(fewest), 8) * size_of::<u64>())
}

/// Clears the words of a launch and returns its shape. If there are no keys, and thus no groups, sets `count` to 0 and
/// returns `None`.
///
/// # Safety
/// `count` has 8 bytes and `workspace` has [`workspace_bytes`], in the GPU's memory. Nothing else uses them until the
/// work has ended.
unsafe fn begin<B: Bits>(
    queue: &dyn Queue,
    n: usize,
    tile: Tile,
    shared_bytes: u32,
    count: Address,
    workspace: Address,
) -> Result<Option<Shape>, Error> {
    if n == 0 {
        // SAFETY: `count` has 8 bytes, which are two words.
        unsafe { queue.clear(count, 2)? };
        return Ok(None);
    }
    // SAFETY: `workspace` has `workspace_bytes::<K>(n)` bytes, which are a quarter of that many words.
    unsafe { queue.clear(workspace, workspace_bytes::<B>(n) / size_of::<u32>())? };
    Ok(Some(Shape { blocks: n.div_ceil(tile.keys()), threads: tile.threads as u32, shared_bytes }))
}

/// The result of a launch, with values of type `V`.
fn output<B: Bits, V>(out: Arrays, count: Address) -> Output<B, V> {
    Output { at: elements::<B, V>((out.keys, out.values)), capacity: out.len, count: count as *mut u64 }
}

/// The first key of each group of `at`, with its value, and the number of groups. `out` has at least the length of
/// `at`.
#[derive(Clone, Copy)]
pub struct Unique {
    /// Only its width counts.
    pub coding: KeyCoding,
    pub at: Arrays,
    pub out: Arrays,
    pub count: Address,
}

impl OnNumbers for Unique {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.at.len)
    }

    unsafe fn queue<B: GpuBits>(&self, _: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { at, out, count, .. } = *self;
        let tile = ROW.unique.of(size_of::<B>(), at.value_bytes);
        let shared_bytes =
            unique::shared_bytes(tile.threads, tile.items_per_thread, size_of::<B>(), at.value_bytes > 0);
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart. `begin` clears the kernel's words
        // in `workspace`, and its shape has a block for each tile. There are at most `at.len` groups.
        unsafe {
            let Some(shape) = begin::<B>(queue, at.len, tile, shared_bytes, count, workspace)? else { return Ok(()) };
            with_values!(at.value_bytes, V => {
                let (from, out) = (slice::<B, V>(at), output::<B, V>(out, count));
                let from_count = at.count as *const u64;
                let arguments = UniqueKernel { from, from_count, out, tiles: workspace as *mut u64 };
                queue.launch(&format!("{}{}", suffix::<B>(size_of::<V>()), counted(&[at])), shape, &arguments)
            })
        }
    }
}

/// The sort of `at` that keeps only the first of equal keys, at the front. Their number goes to `count`.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct SortUnique {
    pub(in crate::gpu) kernel: SortKernel,
    pub(in crate::gpu) coding: KeyCoding,
    pub(in crate::gpu) at: Arrays,
    pub(in crate::gpu) count: Address,
}

impl SortUnique {
    fn sort(&self) -> Sort {
        let Self { kernel, coding, at, .. } = *self;
        Sort::new(kernel, coding, at, false)
    }

    /// The unique elements, which are written to the workspace of the sort first, and the end of their range.
    fn unique<B>(&self, workspace: Address) -> (Arrays, Address) {
        let Arrays { len, value_bytes, .. } = self.at;
        let values = workspace + align(len.saturating_mul(size_of::<B>())) as Address;
        let end = values.saturating_add(align(len.saturating_mul(value_bytes)) as Address);
        (Arrays { keys: workspace, values, len, value_bytes, count: 0 }, end)
    }
}

impl OnNumbers for SortUnique {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        let (_, end) = self.unique::<B>(0);
        self.sort().workspace_bytes_of::<B>().max(end as usize + workspace_bytes::<B>(self.at.len))
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let (at, (out, words)) = (self.at, self.unique::<B>(workspace));
        let unique = Unique { coding: self.coding, at, out, count: self.count };
        // SAFETY: the workspace is enough for the sort, and then for the unique elements and the words behind `end`.
        // Launches are in order, so the sort has ended when `unique` writes there. `out` and `at` have one length and
        // do not overlap.
        unsafe {
            self.sort().queue(coding, queue, workspace)?;
            unique.queue(coding, queue, words)?;
            queue.copy(out.keys, at.keys, at.len * size_of::<B>())?;
            queue.copy(out.values, at.values, at.len * at.value_bytes)
        }
    }
}

/// The first key of each group of `at`, with the group's length as its value of 8 bytes, and the number of groups.
#[derive(Clone, Copy)]
pub struct RunLengths {
    /// Only its width counts.
    pub coding: KeyCoding,
    pub at: Arrays,
    pub out: Arrays,
    pub count: Address,
}

impl OnNumbers for RunLengths {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.at.len)
    }

    unsafe fn queue<B: GpuBits>(&self, _: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { at, out, count, .. } = *self;
        let tile = ROW.run_lengths.of(size_of::<B>(), 0);
        let shared_bytes = run_lengths::shared_bytes(tile.threads, tile.items_per_thread, size_of::<B>());
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart. `begin` clears the kernel's words
        // in `workspace`, and its shape has a block for each tile. `out` has values of 8 bytes, and there are at most
        // `at.len` groups.
        unsafe {
            let Some(shape) = begin::<B>(queue, at.len, tile, shared_bytes, count, workspace)? else { return Ok(()) };
            let arguments = RunLengthsKernel {
                keys: at.keys as *const B,
                n: at.len,
                keys_count: at.count as *const u64,
                out_keys: out.keys as *mut B,
                lengths: out.values as *mut u64,
                count: count as *mut u64,
                shared_words: workspace as *mut u64,
            };
            queue.launch(&format!("{}{}", suffix::<B>(0), counted(&[at])), shape, &arguments)
        }
    }
}

/// The first key of each group of `at`, with the reduction of the group's values, and the number of groups.
#[derive(Clone, Copy)]
pub struct ReduceByKey {
    /// Only its width counts.
    pub coding: KeyCoding,
    pub reduction: Reduction,
    /// The coding of the values.
    pub summands: KeyCoding,
    pub at: Arrays,
    pub out: Arrays,
    pub count: Address,
}

impl OnNumbers for ReduceByKey {
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        workspace_bytes::<B>(self.at.len)
    }

    unsafe fn queue<B: GpuBits>(&self, _: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        // SAFETY: this function and `reduce` have the same conditions.
        unsafe {
            with_coding!(
                self.summands,
                summands => self.reduce::<B, _>(summands, queue, workspace),
                else Err(Error::NoKernels { key: "converted" })
            )
        }
    }
}

impl ReduceByKey {
    /// [`queue`](OnNumbers::queue) for values with this coding.
    ///
    /// # Safety
    /// The conditions of `queue` hold.
    unsafe fn reduce<B: GpuBits, V: GpuBits>(
        &self,
        summands: Coding<V>,
        queue: &dyn Queue,
        workspace: Address,
    ) -> Result<(), Error> {
        let Self { reduction, at, out, count, .. } = *self;
        let (key, value) = (size_of::<B>(), size_of::<V>());
        let (of, coding) = match reduction {
            Reduction::Sum if summands.is_of_floats() => ("float", Coding::NONE),
            Reduction::Sum => ("sum", Coding::NONE),
            Reduction::Min => ("greatest", summands.reversed()),
            Reduction::Max => ("greatest", summands),
        };
        let tile = ROW.reduce.of(key, value);
        let shared_bytes = reduce_groups::shared_bytes(tile.threads, tile.items_per_thread, key, value);
        // SAFETY: `Operation::launch` requires valid arrays, with written ones apart. `begin` clears the kernel's words
        // in `workspace`, and its shape has a block for each tile. `at` and `out` have values of type `V`, and there
        // are at most `at.len` groups.
        unsafe {
            let Some(shape) = begin::<B>(queue, at.len, tile, shared_bytes, count, workspace)? else { return Ok(()) };
            let arguments = ReduceGroups {
                from: slice::<B, V>(at),
                from_count: at.count as *const u64,
                out: output::<B, V>(out, count),
                shared_words: workspace as *mut u64,
                coding,
            };
            queue.launch(&format!("{}v{value}{of}{}", bits(key), counted(&[at])), shape, &arguments)
        }
    }
}
