//! Batch merge of pairs of any lengths, in tiles that ignore the boundaries of pairs.
//!
//! ```text
//!   A          │ run 0   │ run 1 │     run 2        │        a_offsets[p] .. a_offsets[p + 1]
//!   B          │ run 0 │     run 1     │ run 2 │            b_offsets[p] .. b_offsets[p + 1]
//!   C          │ pair 0         │ pair 1        │ pair 2 │  from a_offsets[p] + b_offsets[p] on
//!   tiles      ├──────────┼──────────┼──────────┼────────┤
//! ```
//!
//! The keys that C takes from A, pair after pair, are contiguous in A, and likewise in B. So a tile is again a part of
//! A and a part of B, and all tiles have the same number of keys. The split inside a pair is searched as in any merge.
//! Ten thousand empty pairs and one pair of a billion keys are equally easy.

use crate::block::indexed_merge::{self, Cursors, Parts};
use crate::block::tile;
use crate::elements::{Arrays, Elements, has_values};
use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::sequence::Sequence;
use crate::textbook::co_rank::clamp_split;
use crate::thread::diagonal::diagonal_search;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// The starts of the runs of each pair, and the ends of the last runs.
#[derive(Clone, Copy)]
pub(crate) struct Offsets {
    pub(crate) a: Global<usize>,
    b: Global<usize>,
}

impl Offsets {
    /// # Safety
    /// Both arrays have `pairs + 1` ascending offsets.
    #[inline(always)]
    pub(crate) unsafe fn new(a: *const usize, b: *const usize, pairs: usize) -> Self {
        // SAFETY: the caller ensures that both arrays have `pairs + 1` offsets, and they are indexed by pairs up to
        // `pairs`.
        unsafe { Self { a: Global::new(a, pairs + 1), b: Global::new(b, pairs + 1) } }
    }

    /// Start of pair `p` in C.
    #[inline(always)]
    fn start(self, p: usize) -> usize {
        self.a.get(p) + self.b.get(p)
    }

    /// The last of the pairs `low` to `high` that begins at or before `k`, which `low` does. If key `k` exists, this is
    /// its pair.
    #[inline(always)]
    fn pair_of(self, k: usize, low: usize, high: usize) -> usize {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = high - (high - low) / 2;
            if self.start(middle) <= k {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    /// The pair in which a tile from key `k` of C on begins, and the number of keys of that pair's run of A before the
    /// tile. There are `pairs` pairs. `a` and `b` return a run of a pair from its start and its end.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn split<S, T>(
        self,
        k: usize,
        pairs: usize,
        a: impl Fn(usize, usize) -> S,
        b: impl Fn(usize, usize) -> T,
    ) -> (usize, usize)
    where
        S: Sequence<Index = usize>,
        T: Sequence<Index = usize, Item = S::Item>,
    {
        let p = self.pair_of(k, 0, pairs - 1);
        let rank = k - self.start(p);
        let run_a = a(self.a.get(p), self.a.get(p + 1));
        let run_b = b(self.b.get(p), self.b.get(p + 1));
        (p, diagonal_search(rank, run_a, run_b))
    }
}

/// The runs of one side of all pairs, one after another.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RaggedRuns<B, V> {
    /// The elements of all runs.
    pub at: Elements<B, V>,
    /// Starts of the runs of the pairs, and the end of the last run: ascending, the first 0.
    pub offsets: *const usize,
}

/// Kernel: for each tile, writes the pair in which it begins to `splits[2 t]`, and the number of keys of A before it to
/// `splits[2 t + 1]`. Keys are in the order of `coding`. One thread for each tile.
///
/// # Safety
/// `a` and `b` have `pairs + 1` offsets, of ascending runs, and `pairs` is not 0. `splits` has capacity for `2 * tiles`
/// words. `tiles` is the number of tiles of `tile_keys` keys in C.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn path_ragged<B: Bits>(
    a: RaggedRuns<B, ()>,
    b: RaggedRuns<B, ()>,
    pairs: usize,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
    coding: Coding<B>,
) {
    // SAFETY: `a` and `b` have `pairs + 1` offsets, and `splits` has `2 * tiles` words. Only thread `t < tiles` writes
    // words `2 * t` and `2 * t + 1`.
    let (offsets, splits) = unsafe { (Offsets::new(a.offsets, b.offsets, pairs), GlobalMut::new(splits, 2 * tiles)) };
    let t = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if t >= tiles {
        return;
    }
    let run = |from: Elements<B, ()>| {
        // SAFETY: a run is `start .. end` of an array whose length is its last offset. Offsets ascend, so that `start
        // <= end`, and `end` is at most the last offset.
        move |start: usize, end: usize| Keys::at(unsafe { from.from(start).source(end - start) }.keys, coding)
    };
    let (p, taken) = offsets.split(t * tile_keys, pairs, run(a.at), run(b.at));
    splits.set(2 * t, p);
    splits.set(2 * t + 1, offsets.a.get(p) + taken);
}

/// A block's tile.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    offsets: Offsets,
    /// First and last pair with a part in the tile.
    first: usize,
    last: usize,
    /// The tile's part of A, `a_curr .. a_next`, and its part of B.
    pub(crate) a_curr: usize,
    pub(crate) a_next: usize,
    pub(crate) b_curr: usize,
    pub(crate) b_next: usize,
}

impl Tile {
    /// # Safety
    /// The requirements of [`merge_ragged`] hold, for tiles of `tile_keys` keys.
    #[inline(always)]
    pub(crate) unsafe fn new(
        offsets: Offsets,
        pairs: usize,
        splits: *const usize,
        total: usize,
        tile_keys: usize,
    ) -> Self {
        let (t, tiles) = (thread::block_idx_x() as usize, total.div_ceil(tile_keys));
        // SAFETY: `path_ragged` has written two words for each of `tiles` tiles. Words `2 * t` to `2 * t + 3` are read,
        // the last two only if `t + 1 < tiles`. There is one block for each tile.
        let splits = unsafe { Global::new(splits, 2 * tiles) };
        let k = t * tile_keys;
        let count = (total - k).min(tile_keys);
        let (first, a_curr) = (splits.get(2 * t), splits.get(2 * t + 1));
        let (last, a_next) = if t + 1 < tiles {
            (splits.get(2 * t + 2), splits.get(2 * t + 3))
        } else {
            (pairs - 1, offsets.a.get(pairs))
        };
        let a_next = clamp_split(a_curr, a_next, count);
        Self { offsets, first, last, a_curr, a_next, b_curr: k - a_curr, b_next: k + count - a_next }
    }

    /// # Safety
    /// `a` and `b` hold all runs.
    #[inline(always)]
    unsafe fn parts<B: Word, V: Word>(self, a: Elements<B, V>, b: Elements<B, V>) -> Parts<B, V> {
        // SAFETY: `a_curr <= a_next` and `b_curr <= b_next`, since `clamp_split` keeps ends in order. All four are at
        // most the lengths of A and B, since a split lies inside the runs of its pair.
        unsafe {
            Parts {
                a: a.from(self.a_curr).source(self.a_next - self.a_curr),
                b: b.from(self.b_curr).source(self.b_next - self.b_curr),
            }
        }
    }

    /// # Safety
    /// `c` has capacity for all runs.
    #[inline(always)]
    unsafe fn output<B: Word, V: Word>(self, c: Elements<B, V>) -> Arrays<B, V> {
        let (start, end) = (self.a_curr + self.b_curr, self.a_next + self.b_next);
        // SAFETY: the two sums are `k` and `k + count`, the bounds of the tile, which ends at or before `total`. Tiles
        // of two blocks do not overlap.
        unsafe { c.from(start).arrays(end - start) }
    }

    /// Number of pairs that have a part in the tile, or are empty there.
    #[inline(always)]
    pub(crate) fn pairs(self) -> usize {
        self.last - self.first + 1
    }

    /// End of pair `q` of the tile in the tile's parts of A and B.
    #[inline(always)]
    pub(crate) fn end(self, q: usize) -> Ends {
        let p = self.first + q + 1;
        let within = |at: usize, low: usize, high: usize| (at.max(low).min(high) - low) as u32;
        Ends {
            a: within(self.offsets.a.get(p), self.a_curr, self.a_next),
            b: within(self.offsets.b.get(p), self.b_curr, self.b_next),
        }
    }

    /// Merges the tile to `to`: first its keys, and then its values by their source indices.
    #[inline(always)]
    fn merge<B: Bits, V: Word, const NT: usize, const VT: usize>(
        self,
        parts: Parts<B, V>,
        memory: Memory<B>,
        to: Arrays<B, V>,
        coding: Coding<B>,
    ) {
        // Both loads are in flight together: the keys, and the ends of the pairs.
        let loaded = indexed_merge::load_keys::<B, V, NT, VT>(parts, coding);
        let listed = self.pairs() <= LISTED;
        if listed {
            let mut q = thread::thread_idx_x();
            while (q as usize) < self.pairs() {
                memory.ends.set(q, self.end(q as usize).packed());
                q += NT as u32;
            }
        }
        indexed_merge::put_keys::<_, NT, VT>(loaded, memory.tile);
        thread::sync_threads();
        let (ends, counts) = (memory.ends, (parts.a.len() as u32, to.len() as u32));
        if listed {
            self.merge_share::<B, V, VT>(memory, counts, |q| Ends::unpacked(ends.get(q as u32)));
        } else {
            self.merge_share::<B, V, VT>(memory, counts, |q| self.end(q));
        }
        thread::sync_threads();
        tile::shared_to_global::<B, NT, VT>(memory.merged, KeysMut::at(to.keys, coding));
        if has_values::<V>() {
            indexed_merge::gather_values::<B, V, NT, VT>(parts, memory.sources, to.values);
        }
    }

    /// Shared to shared: a thread's share of the merged keys, and their source indices if there are values.
    #[inline(always)]
    fn merge_share<B: Bits, V: Word, const VT: usize>(
        self,
        memory: Memory<B>,
        (a_count, count): (u32, u32),
        end_of: impl Fn(usize) -> Ends + Copy,
    ) {
        let first = (thread::thread_idx_x() * VT as u32).min(count);
        let steps = (count - first).min(VT as u32);
        if steps == 0 {
            return;
        }
        // The pair of key `k` of the tile: the first pair from `low` on that ends behind the key.
        let pair_of = |k: u32, low: usize| {
            let (mut low, mut high) = (low, self.pairs() - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if end_of(middle).key() > k {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            low
        };
        let mut q = pair_of(first, 0);
        let (start, end) = (if q > 0 { end_of(q - 1) } else { Ends { a: 0, b: 0 } }, end_of(q));
        let pair = Cursors { a: start.a, b: a_count + start.b, a_end: end.a, b_end: a_count + end.b };
        let mut last = end.key() - first;
        let next_pair = |i, cursors: &mut Cursors| {
            if i == last {
                q += 1;
                let mut end = end_of(q);
                if end.key() == first + i {
                    // An empty pair, perhaps followed by thousands more.
                    q = pair_of(first + i, q);
                    end = end_of(q);
                }
                (cursors.a_end, cursors.b_end) = (end.a, a_count + end.b);
                last = end.key() - first;
            }
        };
        let cursors = pair.after(first - start.key(), memory.tile);
        indexed_merge::merge(memory.tile, cursors, steps, next_pair, |i, key, from| {
            memory.merged.set(first + i, key);
            if has_values::<V>() {
                memory.sources.set(first + i, from as u16);
            }
        });
    }
}

/// End of a pair in a tile's part of A and in its part of B.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) a: u32,
    pub(crate) b: u32,
}

impl Ends {
    /// The key of the merged tile that follows the pair.
    #[inline(always)]
    pub(crate) fn key(self) -> u32 {
        self.a + self.b
    }

    /// As one word: a tile has fewer than 2^16 keys.
    #[inline(always)]
    fn packed(self) -> u32 {
        self.a | self.b << 16
    }

    #[inline(always)]
    fn unpacked(word: u32) -> Self {
        Self { a: word & 0xffff, b: word >> 16 }
    }
}

/// Upper limit on the pairs of a tile whose ends are listed in shared memory. In a tile with more pairs, most pairs are
/// empty or very short, and ends are read from global memory each time.
const LISTED: usize = 1024;

/// A block's shared memory.
#[derive(Clone, Copy)]
struct Memory<B: Bits> {
    /// The tile's keys.
    tile: Shared<B>,
    /// The merged keys. A thread's number of steps is not known at compile time, so that its keys cannot stay in
    /// registers.
    merged: Shared<B>,
    /// Ends of the tile's pairs.
    ends: Shared<u32>,
    /// Source indices of merged keys, only for keys with values.
    sources: Shared<u16>,
}

impl<B: Bits> Memory<B> {
    /// # Safety
    /// The launch has [`shared_bytes`] of dynamic shared memory for `NT * VT` keys. Source indices are used only if
    /// these bytes include them.
    #[inline(always)]
    unsafe fn new<const NT: usize, const VT: usize>() -> Self {
        let keys = NT * VT;
        let merged = indexed_merge::key_bytes::<B>(keys, VT);
        let ends = merged + (keys * size_of::<B>()) as u32;
        // SAFETY: the four arrays follow one another: `key_bytes` bytes, `keys` keys, `LISTED` words of 4 bytes, and
        // `keys` numbers of 2 bytes if there are values. Their sum is `shared_bytes`. `key_bytes` is a multiple of 8.
        // Each other array begins at a multiple of its element size, since the elements before are no smaller.
        unsafe {
            Self {
                tile: indexed_merge::key_memory::<B, NT, VT>(),
                merged: Shared::dynamic(merged, keys as u32),
                ends: Shared::dynamic(ends, LISTED as u32),
                sources: Shared::dynamic(ends + (LISTED * size_of::<u32>()) as u32, keys as u32),
            }
        }
    }
}

/// Bytes of dynamic shared memory for a tile of `keys` keys, `items_per_thread` for each thread, with values or
/// without.
pub const fn shared_bytes<B>(keys: usize, items_per_thread: usize, with_values: bool) -> u32 {
    let sources = if with_values { keys * size_of::<u16>() } else { 0 };
    indexed_merge::key_bytes::<B>(keys, items_per_thread)
        + (keys * size_of::<B>() + LISTED * size_of::<u32>() + sources) as u32
}

/// Kernel: merges pairs of any lengths with their values, as `coding` orders their keys, at the splits of
/// [`path_ragged`]. One block for each tile. Stable: of equal keys, the keys of `a` go first.
///
/// # Safety
/// `a` and `b` have `pairs + 1` offsets, of ascending runs, and `pairs` is not 0. `c` has capacity for `total`
/// elements, the sum of the last offsets, and overlaps no other array. `path_ragged` has written `splits` for tiles of
/// `NT * VT` keys. Blocks have `NT` threads, one block for each tile, with [`shared_bytes`] of dynamic shared memory.
#[kernel(
    u32 = <u32, (), { ROW.ragged.of(4, 0).threads }, { ROW.ragged.of(4, 0).items_per_thread }>,
    u64 = <u64, (), { ROW.ragged.of(8, 0).threads }, { ROW.ragged.of(8, 0).items_per_thread }>,
    u32v4 = <u32, u32, { ROW.ragged.of(4, 4).threads }, { ROW.ragged.of(4, 4).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.ragged.of(4, 8).threads }, { ROW.ragged.of(4, 8).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.ragged.of(8, 4).threads }, { ROW.ragged.of(8, 4).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.ragged.of(8, 8).threads }, { ROW.ragged.of(8, 8).items_per_thread }>,
)]
pub unsafe fn merge_ragged<B: Bits, V: Word, const NT: usize, const VT: usize>(
    a: RaggedRuns<B, V>,
    b: RaggedRuns<B, V>,
    pairs: usize,
    c: Elements<B, V>,
    total: usize,
    splits: *const usize,
    coding: Coding<B>,
) {
    // SAFETY: the offsets, `pairs`, `splits` and `shared_bytes` meet the requirements of this kernel. In `merge`, one
    // barrier separates the writes of the tile and the ends from their reads. A second barrier separates the writes of
    // merged keys and source indices from their reads. Thread `t` writes at most `VT` of these, from `t * VT` on, so
    // that no two threads write one slot.
    let (tile, memory) = unsafe {
        let offsets = Offsets::new(a.offsets, b.offsets, pairs);
        (Tile::new(offsets, pairs, splits, total, NT * VT), Memory::<B>::new::<NT, VT>())
    };
    // SAFETY: the lengths of `a` and `b` are their last offsets, and `c` has capacity for the sum, as this kernel
    // requires.
    let (parts, to) = unsafe { (tile.parts(a.at, b.at), tile.output(c)) };
    tile.merge::<B, V, NT, VT>(parts, memory, to, coding);
}
