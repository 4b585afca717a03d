//! Merge Path for arrays of any size, in two phases: `path_big` divides, `merge_big` merges.
//!
//! ```text
//!   C        ├────────┼────────┼────────┼────────┼───┤      tiles of NT * VT keys
//!            ↓        ↓        ↓        ↓        ↓          path_big: a search a boundary, in global memory
//!   splits   0        i₁       i₂       i₃       i₄  m      keys of A before each boundary
//!
//!   tile     A[i₁..i₂] and B[j₁..j₂]  → shared memory       merge_big: one block a tile
//!   thread   VT keys from its own diagonal → registers → shared memory → C
//! ```
//!
//! Splits depend on the keys only. If keys have values, a block also stores the source index of each merged key, and
//! then gathers the values by these indices.
//!
//! The two runs may also be one array. Only the device then knows where the second run begins.
//!
//! The partition is exact: for any data, every block merges one tile of keys, and every thread VT keys. This is Modern
//! GPU's two-phase design; the course calls the kernels `pathBig_k` and `mergeBig_k`.

use crate::block::indexed_merge::{self, Cursors, Parts};
use crate::block::tile;
use crate::elements::{Arrays, Elements, counted, has_values};
use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::co_rank::clamp_split;
use crate::thread::diagonal::search_near;
use crate::tuning::ROW;
use crate::warp::diagonal_search::warp_diagonal_search;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads of a block of [`path_big`].
pub const PATH_THREADS: u32 = 2 * WARP_SIZE;

/// Half the width of the window in which a split of uniform keys lies almost certainly, around its expected place.
/// Between two known splits that are L keys apart, the standard deviation in the middle is sqrt(L) / 4: 217 keys for 64
/// tiles of 11776.
const WINDOW: usize = 512;

/// The two runs of a merge: two arrays, or one array that is divided at an offset in the GPU's memory. The numbers of
/// elements of two arrays may also be in the GPU's memory.
///
/// ```text
///   offsets   0              m           n
///   keys      │ A            │ B         │ …   the second and the third offset are read
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TwoRuns<B, V> {
    /// A, or the whole array.
    pub a: Elements<B, V>,
    /// B, or again the whole array.
    pub b: Elements<B, V>,
    /// Number of elements of both runs, at most if there are counts.
    pub len: usize,
    /// Number of elements of A, if there are no offsets, and at most if A has a count.
    pub a_len: usize,
    /// Null, or three offsets. The second is the number of elements of A, and the third that of both, at most `len`.
    pub offsets: *const usize,
    /// Null, or the address of the number of elements of A. Null if there are offsets.
    pub a_count: *const u64,
    /// Null, or the address of the number of elements of B. Null if there are offsets.
    pub b_count: *const u64,
}

impl<B: Word> TwoRuns<B, ()> {
    /// The keys of A and of B.
    ///
    /// # Safety
    /// The fields meet their descriptions, and nothing writes the arrays and the offsets during the launch.
    #[inline(always)]
    pub(super) unsafe fn keys(self) -> (Global<B>, Global<B>) {
        // SAFETY: if `offsets` is not null, there are three. A has the first `m` elements, and B the others up to
        // `end`, at most `len`. Otherwise A has at most `a_len` elements, and B at most the others, in an array of its
        // own.
        unsafe {
            if self.offsets.is_null() {
                let (m, n) = (counted(self.a_count, self.a_len), counted(self.b_count, self.len - self.a_len));
                return (self.a.source(m).keys, self.b.source(n).keys);
            }
            let offsets = Global::new(self.offsets, 3);
            let (m, end) = (offsets.get(1), offsets.get(2));
            (self.a.source(m).keys, self.b.from(m).source(end - m).keys)
        }
    }
}

/// Kernel: writes to `splits[t]` the number of keys of A before tile `t`, in the order of `coding`. Behind the splits
/// of all tiles follow the number of keys of A, and of both runs. There are up to `tiles` tiles of `tile_keys` keys
/// each, and one thread for each tile. The number of keys of both runs also goes to `count`, unless this is null.
///
/// Two warps search a block's two ends. These ends bound the splits between them, and the threads' searches begin where
/// the splits would be if the path were straight.
///
/// # Safety
/// The runs are ascending, and `splits` has capacity for `tiles + 2` numbers, in global memory. `tiles` is
/// `ceil(runs.len / tile_keys)`. `count` is null or has one number. There are `ceil(tiles / PATH_THREADS)` blocks of
/// [`PATH_THREADS`] threads, with [`PATH_SHARED_BYTES`] of dynamic shared memory.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn path_big<B: Bits>(
    runs: TwoRuns<B, ()>,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
    count: *mut u64,
    coding: Coding<B>,
) {
    // SAFETY: `runs` are as described and `splits` has `tiles + 2` elements, as this kernel requires. Only thread `tile
    // < tiles` writes `splits[tile]`, and only the first thread writes the two numbers behind them.
    let ((a, b), splits) = unsafe { (runs.keys(), GlobalMut::new(splits, tiles + 2)) };
    if thread::index_1d() == 0 {
        let total = a.len() + b.len();
        splits.set(tiles, a.len());
        splits.set(tiles + 1, total);
        if !count.is_null() {
            // SAFETY: `count` has one number, which only this thread writes.
            unsafe { GlobalMut::new(count, 1) }.set(0, total as u64);
        }
    }
    let [a, b] = [a, b].map(|run| Keys::at(run, coding));
    // SAFETY: the launch meets the requirements of `path_big`. No branch surrounds the call, so that all threads of the
    // block make it.
    unsafe { find_splits(a, b, tile_keys, |tile, _, split| splits.set(tile, split)) }
}

/// Calls `found` for this thread's tile of `tile_keys` keys, if there is one: with the tile, its first diagonal, and
/// the number of keys of `a` before it.
///
/// # Safety
/// The launch meets the requirements of [`path_big`], and all threads of the block make this call.
#[inline(always)]
pub(super) unsafe fn find_splits<B: Bits>(
    a: Keys<B>,
    b: Keys<B>,
    tile_keys: usize,
    found: impl FnOnce(usize, usize, usize),
) {
    let (m, n) = (a.len(), b.len());
    // SAFETY: the two ends take the `PATH_SHARED_BYTES` of the launch. Lane 0 of warp 0 and of warp 1 writes `ends[0]`
    // and `ends[1]`, before the barrier; they are read after it.
    let ends = unsafe { Shared::<usize>::dynamic(0, 2) };
    let thread = thread::thread_idx_x();
    let first_tile = thread::block_idx_x() as usize * PATH_THREADS as usize;
    let k_first = first_tile * tile_keys;
    if k_first >= m + n {
        return;
    }
    let k_last = (k_first + PATH_THREADS as usize * tile_keys).min(m + n);
    let k = if thread < WARP_SIZE { k_first } else { k_last };
    // SAFETY: a block is two whole warps, none of whose threads has returned if one makes this call, and `k` is the
    // same for the lanes of each. `k <= m + n`: `k_first < m + n`, and `k_last` is limited to `m + n`. So `k - n <=
    // k.min(m)`, and every split of diagonal `k` lies in these bounds.
    let end = unsafe { warp_diagonal_search(k, a, b, k.saturating_sub(n), k.min(m)) };
    if thread.is_multiple_of(WARP_SIZE) {
        ends.set(thread / WARP_SIZE, end);
    }
    thread::sync_threads();

    let tile = first_tile + thread as usize;
    if tile * tile_keys < m + n {
        let a_first = ends.get(0);
        let a_length = clamp_split(a_first, ends.get(1), k_last - k_first) - a_first;
        let b_length = k_last - k_first - a_length;
        // Searches read below `m` and `n`, since their bounds lie within the diagonal's bounds.
        let from_first = tile * tile_keys - k_first;
        let low = a_first + from_first.saturating_sub(b_length);
        let high = a_first + from_first.min(a_length);
        // In floating point: a division of 64-bit integers takes longer, and a guess need not be exact.
        let share = from_first as f32 / (k_last - k_first) as f32;
        let guess = a_first + (a_length as f32 * share) as usize;
        let k = k_first + from_first;
        found(tile, k, search_near(k, a, b, (low, high), guess, WINDOW));
    }
}

/// Bytes of dynamic shared memory of [`path_big`].
pub const PATH_SHARED_BYTES: u32 = 2 * size_of::<usize>() as u32;

/// Bytes of dynamic shared memory of [`merge_big`] for tiles of `keys` keys, `items_per_thread` for each thread.
pub const fn shared_bytes<B>(keys: usize, items_per_thread: usize, has_values: bool) -> u32 {
    if has_values { indexed_merge::shared_bytes::<B>(keys, items_per_thread) } else { tile::shared_bytes::<B>(keys) }
}

/// Kernel: merges both runs with their values into `c`, as `coding` orders their keys, at the splits of [`path_big`].
/// One block for each tile. Stable: of equal keys, the keys of A go first.
///
/// # Safety
/// The runs are ascending. If they have counts or offsets, the instance is `COUNTED`. `c` has capacity for the elements
/// of both and overlaps neither. `path_big` has written `splits`, for these runs and tiles of `NT * VT` keys. Blocks
/// have `NT` threads, one block for each tile, with [`shared_bytes`] of dynamic shared memory.
#[kernel(
    u32 = <u32, (), { ROW.merge.of(4, 0).threads }, { ROW.merge.of(4, 0).items_per_thread }, false>,
    u64 = <u64, (), { ROW.merge.of(8, 0).threads }, { ROW.merge.of(8, 0).items_per_thread }, false>,
    u32v4 = <u32, u32, { ROW.merge.of(4, 4).threads }, { ROW.merge.of(4, 4).items_per_thread }, false>,
    u32v8 = <u32, u64, { ROW.merge.of(4, 8).threads }, { ROW.merge.of(4, 8).items_per_thread }, false>,
    u64v4 = <u64, u32, { ROW.merge.of(8, 4).threads }, { ROW.merge.of(8, 4).items_per_thread }, false>,
    u64v8 = <u64, u64, { ROW.merge.of(8, 8).threads }, { ROW.merge.of(8, 8).items_per_thread }, false>,
    u32counted = <u32, (), { ROW.merge.of(4, 0).threads }, { ROW.merge.of(4, 0).items_per_thread }, true>,
    u64counted = <u64, (), { ROW.merge.of(8, 0).threads }, { ROW.merge.of(8, 0).items_per_thread }, true>,
    u32v4counted = <u32, u32, { ROW.merge.of(4, 4).threads }, { ROW.merge.of(4, 4).items_per_thread }, true>,
    u32v8counted = <u32, u64, { ROW.merge.of(4, 8).threads }, { ROW.merge.of(4, 8).items_per_thread }, true>,
    u64v4counted = <u64, u32, { ROW.merge.of(8, 4).threads }, { ROW.merge.of(8, 4).items_per_thread }, true>,
    u64v8counted = <u64, u64, { ROW.merge.of(8, 8).threads }, { ROW.merge.of(8, 8).items_per_thread }, true>,
)]
pub unsafe fn merge_big<B: Bits, V: Word, const NT: usize, const VT: usize, const COUNTED: bool>(
    runs: TwoRuns<B, V>,
    c: Elements<B, V>,
    splits: *const usize,
    coding: Coding<B>,
) {
    // SAFETY: `runs` are as described, and `c` has capacity for both. There is one block of `NT` threads for each tile,
    // with `shared_bytes`, and all threads of the block make the call. A block writes only its tile: at most `NT * VT`
    // elements from `t * NT * VT` on, below the number of all elements. Tiles do not overlap.
    unsafe { merge_block::<B, V, NT, VT, COUNTED>(runs, c.arrays(runs.len), splits, coding) }
}

/// A tile of the merge of two runs.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Tile<B, V> {
    /// Its parts of both runs.
    pub parts: Parts<B, V>,
    /// Starts of its parts in both runs.
    pub a_first: usize,
    pub b_first: usize,
}

impl<B: Word, V: Word> Tile<B, V> {
    /// The tile of this block, of `tile_keys` keys or the last, shorter one. `None` if the block has no tile, which
    /// only runs with counts or offsets have. For these it is `COUNTED`.
    ///
    /// # Safety
    /// `path_big` has written `splits` for `runs` and tiles of `tile_keys` keys, and there is one block for each tile.
    #[inline(always)]
    pub unsafe fn of_block<const COUNTED: bool>(
        runs: TwoRuns<B, V>,
        splits: *const usize,
        tile_keys: usize,
    ) -> Option<Self> {
        let (t, tiles) = (thread::block_idx_x() as usize, runs.len.div_ceil(tile_keys));
        // SAFETY: there is a split for each of the `tiles` tiles, and two numbers behind them. There is one block for
        // each tile, so that `t` is below `tiles`.
        let splits = unsafe { Global::new(splits, tiles + 2) };
        let (mut len, mut next) = (runs.len, t + 1);
        if COUNTED {
            len = splits.get(tiles + 1);
            if t * tile_keys >= len {
                return None;
            }
            // The last tile ends at the end of A. The number behind the splits of all tiles says where that is.
            if next * tile_keys >= len {
                next = tiles;
            }
        }
        let (a_first, a_next) = (splits.get(t), splits.get(next));
        // B begins here in its array. Not read from the offsets: the kernel has no registers to spare.
        let b_begin = if runs.offsets.is_null() { 0 } else { splits.get(tiles) };
        let k = t * tile_keys;
        let (b_first, count) = (k - a_first, (len - k).min(tile_keys));
        let a_count = clamp_split(a_first, a_next, count) - a_first;
        // SAFETY: the split of diagonal `k` is at most `k` and the length of A, and at least `k` less the length of B.
        // `clamp_split` keeps ends in order. So both parts are in their runs, even if these are not ascending.
        let parts = unsafe {
            Parts { a: runs.a.from(a_first).source(a_count), b: runs.b.from(b_begin + b_first).source(count - a_count) }
        };
        Some(Self { parts, a_first, b_first })
    }

    /// The rank of its first key in the merge of both runs.
    #[inline(always)]
    pub fn rank(&self) -> usize {
        self.a_first + self.b_first
    }
}

/// Merges the block's tile of `runs` to `c`, at the splits for tiles of `NT * VT` keys. Keys without values are
/// merged without source indices, which is faster.
///
/// # Safety
/// [`path_big`] has written `splits` for `runs`, and there is one block of `NT` threads for each tile. All threads of
/// the block make this call, with [`shared_bytes`] of dynamic shared memory.
#[inline(always)]
unsafe fn merge_block<B: Bits, V: Word, const NT: usize, const VT: usize, const COUNTED: bool>(
    runs: TwoRuns<B, V>,
    c: Arrays<B, V>,
    splits: *const usize,
    coding: Coding<B>,
) {
    // SAFETY: the caller ensures the splits of `path_big`, and a block for each tile of `NT * VT` keys.
    let Some(tile) = (unsafe { Tile::of_block::<COUNTED>(runs, splits, NT * VT) }) else { return };
    let (parts, to) = (tile.parts, c.slice(tile.rank(), tile.parts.len()));
    // SAFETY: `has_values` is a constant, so that all `NT` threads of the block make the same call. The launch has
    // `shared_bytes` for `NT * VT` keys, and a tile has at most `NT * VT`.
    unsafe {
        if has_values::<V>() {
            indexed_merge::merge_tile::<B, V, _, NT, VT>(parts, to, coding, |tile, rank| {
                (Cursors::of_pair(parts).after(rank, tile), |_, _: &mut Cursors| {})
            });
        } else {
            let [a, b] = [parts.a, parts.b].map(|part| Keys::at(part.keys, coding));
            merge_keys::<B, NT, VT>(a, b, KeysMut::at(to.keys, coding));
        }
    }
}

/// Merges `a` and `b`, at most `NT * VT` keys, to `to`, which has the same number of keys.
///
/// # Safety
/// All `NT` threads of the block make this call, with [`tile::shared_bytes`] of dynamic shared memory.
#[inline(always)]
unsafe fn merge_keys<B: Bits, const NT: usize, const VT: usize>(a: Keys<B>, b: Keys<B>, to: KeysMut<B>) {
    // SAFETY: `NT * VT` keys are the `tile::shared_bytes` of the launch. Thread `t < NT` writes slots `t + i * NT`, and
    // later `t * VT + i`, `i < VT`: below `NT * VT`, each by one thread. The first barrier separates loading and
    // merging. The second separates the merge's reads from the writes of merged keys. The third comes before these are
    // read.
    let tile = unsafe { Shared::<B>::dynamic(0, (NT * VT) as u32) };
    let keys = tile::ends_to_registers::<B, NT, VT>(a, b);
    tile::store_striped::<_, NT, VT>(keys, tile);
    thread::sync_threads();
    let slot = thread::thread_idx_x() * VT as u32;
    let merged: [B; VT] = tile::merge_to_registers(tile, (NT * VT - b.len()) as u32, slot);
    thread::sync_threads();
    tile::store_blocked(merged, slot, tile);
    thread::sync_threads();
    tile::shared_to_global::<B, NT, VT>(tile, to);
}
