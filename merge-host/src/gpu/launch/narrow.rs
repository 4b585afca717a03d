//! Keys of 1 and 2 bytes: the sort by counting, and all other operations by the kernels for keys of 4 bytes.
//!
//! ```text
//!   workspace   │ widened keys of A │ widened keys of B │ room for the result │ workspace of the operation │
//! ```

use super::{Address, Arrays, Queue, align, bits};
use crate::Error;
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers};
use kernels_gpu::kernels::narrow::Narrow;
use kernels_gpu::kernels::narrow::count_keys::{self, CountKeys};
use kernels_gpu::kernels::narrow::fill_keys::{self, FillKeys};
use kernels_gpu::kernels::narrow::scan_counts::{self, ScanCounts};
use kernels_gpu::kernels::narrow::widen::{NarrowKeys, THREADS, TILE, WidenKeys};
use kernels_gpu::key::Coding;

/// Most keys that are sorted by counting. Counters have 32 bits.
const MOST_COUNTED: usize = u32::MAX as usize;

/// Bytes of a widened key.
const WIDE: usize = size_of::<u32>();

/// Most bytes between two arrays of widened keys.
const PADDING: usize = align(1);

/// Which keys of an array an operation writes.
#[derive(Clone, Copy)]
enum Writes {
    Nothing,
    All,
    /// The first keys. Their number is at this address. All keys if it is 0.
    First(Address),
}

/// How an operation uses an array of keys.
#[derive(Clone, Copy)]
pub struct Use {
    reads: bool,
    writes: Writes,
}

impl Use {
    pub const READ: Self = Self { reads: true, writes: Writes::Nothing };
    pub const WRITE: Self = Self { reads: false, writes: Writes::All };
    /// Keys that are not written are kept.
    pub const UPDATE: Self = Self { reads: true, writes: Writes::All };
    /// The operation uses the array, but its content before and afterwards does not matter.
    pub const SCRATCH: Self = Self { reads: false, writes: Writes::Nothing };

    /// The operation writes the first keys. In the end, their number is at `count`. It writes all keys if `count` is 0.
    pub const fn write_first(count: Address) -> Self {
        Self { reads: false, writes: Writes::First(count) }
    }

    /// The operation reads all keys, and then writes the first ones.
    pub const fn update_first(count: Address) -> Self {
        Self { reads: true, writes: Writes::First(count) }
    }
}

/// An operation that can be run on copies of its keys.
pub trait Widened: OnNumbers + Copy {
    /// The arrays of keys, and how they are used. Two of them may be the same array.
    fn arrays(&mut self) -> Vec<(Use, &mut Arrays)>;

    /// Sets the coding of the keys.
    fn set_coding(&mut self, coding: KeyCoding);
}

/// The most bytes of workspace that the widened keys of `arrays` arrays take, `keys` keys in all.
pub const fn widened_bytes(arrays: usize, keys: usize) -> usize {
    keys.saturating_mul(WIDE).saturating_add(arrays * PADDING)
}

/// An array of an operation, and its widened keys.
struct Copied {
    usage: Use,
    keys: Address,
    wide: Address,
    len: usize,
}

/// The same operation on arrays of widened keys that begin at `workspace`, the arrays, and their end.
fn widened<O: Widened>(operation: &O, workspace: Address) -> (O, Vec<Copied>, Address) {
    let (mut operation, mut end) = (*operation, workspace);
    let copy = |(usage, arrays): (Use, &mut Arrays)| {
        let (keys, wide, len) = (arrays.keys, end, arrays.len);
        arrays.keys = wide;
        end = end.saturating_add(align(len.saturating_mul(WIDE)) as Address);
        Copied { usage, keys, wide, len }
    };
    let copied = operation.arrays().into_iter().map(copy).collect();
    operation.set_coding(Coding::<u32>::NONE.into());
    (operation, copied, end)
}

/// [`Operation::workspace_bytes`](crate::gpu::operation::Operation::workspace_bytes) of an operation on narrow keys.
pub fn workspace_bytes<O: Widened>(operation: &O) -> usize {
    let (wide, _, end) = widened(operation, 0);
    wide.workspace_bytes_of::<u32>().saturating_add(end as usize)
}

/// Queues the operation on keys with this coding: widens the keys, runs the operation on them, and narrows the result.
///
/// # Safety
/// The conditions of [`Operation::launch`](crate::gpu::operation::Operation::launch) hold, for [`workspace_bytes`].
pub unsafe fn launch<O: Widened, N: Narrow>(
    operation: &O,
    coding: Coding<N>,
    queue: &dyn Queue,
    workspace: Address,
) -> Result<(), Error> {
    let shape = |n: usize| Shape { blocks: n.div_ceil(TILE), threads: THREADS, shared_bytes: 0 };
    let suffix = bits(size_of::<N>());
    let (wide, copied, end) = widened(operation, workspace);
    for &Copied { keys, wide, len: n, .. } in copied.iter().filter(|array| array.usage.reads) {
        let widen = WidenKeys { from: keys as *const N, n, to: wide as *mut u32, coding };
        // SAFETY: the array has `n` keys, and the workspace `n` numbers at `wide`. The blocks have `TILE` keys each.
        unsafe { queue.launch(&suffix, shape(n), &widen)? };
    }
    // SAFETY: the operation has arrays of the same lengths in the workspace, and `workspace_bytes` has added its
    // workspace, which begins at `end`, a multiple of 16.
    unsafe { wide.queue(Coding::<u32>::NONE, queue, end)? };
    for Copied { usage, keys, wide, len: n } in copied {
        let count = match usage.writes {
            Writes::Nothing => continue,
            Writes::All => 0,
            Writes::First(count) => count,
        };
        let (from, to, count) = (wide as *const u32, keys as *mut N, count as *const u64);
        // SAFETY: both arrays have `n` elements. The operation has written the first ones, and their number to `count`,
        // or all elements if `count` is null.
        unsafe { queue.launch(&suffix, shape(n), &NarrowKeys { from, n, count, to, coding })? };
    }
    Ok(())
}

/// Whether `keys` are sorted by counting.
pub fn is_counted(keys: Arrays) -> bool {
    keys.value_bytes == 0 && keys.len <= MOST_COUNTED
}

/// Bytes of workspace of a sort by counting of keys with bits `N`: counters and offsets.
pub const fn counting_bytes<N: Narrow>() -> usize {
    2 * N::VALUES * size_of::<u32>()
}

/// Queues the sort of keys alone, at most [`MOST_COUNTED`].
///
/// # Safety
/// The keys and [`counting_bytes`] of workspace, at a multiple of 16, are in the GPU's memory, and nothing else uses
/// them until the sort has ended.
pub unsafe fn sort_by_counting<N: Narrow>(
    queue: &dyn Queue,
    coding: Coding<N>,
    Arrays { keys, len: n, .. }: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let (key_bytes, suffix) = (size_of::<N>(), bits(size_of::<N>()));
    let counts = workspace as *mut u32;
    let (keys, offsets) = (keys as *mut N, counts.wrapping_add(N::VALUES));
    let tiles = n.div_ceil(N::IN_WORD * count_keys::tile(key_bytes));
    let blocks = queue.blocks(count_keys::BLOCKS[key_bytes - 1]).min(tiles);
    let threads = count_keys::THREADS[key_bytes - 1] as u32;
    let count_shape = Shape { blocks, threads, shared_bytes: count_keys::shared_bytes(key_bytes) };
    let threads = scan_counts::threads(key_bytes) as u32;
    let scan_shape = Shape { blocks: 1, threads, shared_bytes: scan_counts::SHARED_BYTES };
    let blocks = n.div_ceil(N::IN_WORD * fill_keys::BLOCK_WORDS);
    let fill_shape = Shape { blocks, threads: fill_keys::THREADS, shared_bytes: 0 };
    // SAFETY: the workspace has `VALUES` counters, which are cleared, and `VALUES` offsets. `keys` has `n` keys, fewer
    // than 2^32, and the blocks of the last launch have words for all keys. Launches are in order: all keys have been
    // counted when the first one is overwritten.
    unsafe {
        queue.clear(workspace, N::VALUES)?;
        queue.launch(&suffix, count_shape, &CountKeys { keys: keys.cast_const(), n, counts })?;
        queue.launch(&suffix, scan_shape, &ScanCounts { counts: counts.cast_const(), offsets, coding })?;
        queue.launch(&suffix, fill_shape, &FillKeys { keys, n, offsets: offsets.cast_const(), coding })
    }
}
