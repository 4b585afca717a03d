//! Which kernels a merge or a sort is made of, and in what shapes they are launched.
//!
//! Arrays are addresses in the GPU's memory here, so that slices of the host and of the device come the same way.

use super::Gpu;
use super::failure::OrFailure;
use super::kernels::{Shape, arguments};
use crate::MAX_BATCH_LENGTH;
use crate::{BatchKernel, Error, MergeKernel, SortOrder};
use cust::memory::{DevicePointer, DeviceSlice};
use cust::stream::Stream;
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::sort::runs::{Division, MAX_RUNS, Passes};
use kernels_gpu::sort::{block_sort, merge_pass, order, packed, packing, pairs};
use kernels_gpu::tuning::Tile;
use kernels_gpu::{
    merge_batch, merge_batch_tiled, merge_circular, merge_fused, merge_path, merge_ragged, merge_small, merge_tiled,
    stable_tile, tile, tuning,
};
use std::ffi::c_void;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Threads of a block where the kernel leaves the choice.
const THREADS: u32 = 256;

/// Fewer keys are sorted without a look whether they are in order, which takes about 40 µs.
const ORDER_CHECK_KEYS: usize = 1 << 26;

/// Bytes of what tells the order that has been found: the words, and twice where runs begin.
const ORDER_BYTES: usize = ORDER_WORDS_BYTES + 2 * RUN_STARTS_BYTES;

/// Bytes of the words among them.
const ORDER_WORDS_BYTES: usize = align(order::ORDER_WORDS * size_of::<u32>());

/// Bytes of the places where long runs begin, and of the array's end.
const RUN_STARTS_BYTES: usize = align((MAX_RUNS as usize + 1) * size_of::<usize>());

/// Blocks on a multiprocessor of kernels whose blocks stay: as many as it holds.
const BLOCKS_THAT_STAY: usize = 8;

/// Keys of a tile of the book's tiled and circular merges.
const BOOK_TILE: u32 = 2048;

/// The address of an array in the GPU's memory.
pub(super) type Address = u64;

/// What [`MergeKernel::Auto`] takes for a merge of so many bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoMerge {
    /// One block.
    Small,
    /// One launch of blocks that stay.
    Fused,
    /// Partition, then merge.
    TwoPhase,
}

impl AutoMerge {
    /// The fused merge saves a launch and the partition; at larger sizes it is behind, because a tile's search keeps the
    /// block waiting. `docs/tuning.md` has the figures.
    pub(super) const fn of<K: Key>(total: usize) -> Self {
        if total <= merge_small::MAX_KEYS {
            Self::Small
        } else if total * size_of::<K>() <= 64 << 20 {
            Self::Fused
        } else {
            Self::TwoPhase
        }
    }
}

/// The next multiple of the alignment that any element needs.
pub(super) const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}

/// One thread for each of `count` items.
fn one_thread_each(count: usize) -> Shape {
    Shape { blocks: count.div_ceil(THREADS as usize), threads: THREADS, shared_bytes: 0 }
}

/// The launch of `path_big` for so many tiles.
fn path_shape(tiles: usize) -> Shape {
    Shape {
        blocks: tiles.div_ceil(merge_path::PATH_THREADS as usize),
        threads: merge_path::PATH_THREADS,
        shared_bytes: merge_path::PATH_SHARED_BYTES,
    }
}

/// The launch that finds splits for so many tiles of a pass of the sort.
fn splits_shape(tiles: usize) -> Shape {
    Shape { blocks: merge_pass::split_blocks(tiles), threads: merge_pass::SPLIT_THREADS, shared_bytes: 0 }
}

/// The launch of a batch of `pairs` pairs of length `d`.
fn batch_shape<K: Key>(pairs: usize, d: usize) -> Shape {
    const { assert!(MAX_BATCH_LENGTH <= tuning::stable(size_of::<K>()).keys(), "a block holds a pair") };
    let shape = tuning::stable(size_of::<K>());
    Shape {
        blocks: pairs.div_ceil(merge_batch_tiled::pairs_per_block(shape.keys(), d)),
        threads: shape.threads as u32,
        shared_bytes: stable_tile::shared_bytes::<K>(shape.keys(), shape.values),
    }
}

/// Keys in the GPU's memory: address and length.
pub(super) type Keys = (Address, usize);

/// Keys and their values in the GPU's memory: addresses, and the length of both.
#[derive(Clone, Copy)]
pub(super) struct PairsAt {
    pub(super) keys: Address,
    pub(super) values: Address,
    pub(super) len: usize,
}

impl PairsAt {
    /// `len` keys of type `K` from `begin` on, and their values of so many bytes.
    const fn part<K>(self, value_bytes: usize, begin: usize, len: usize) -> Self {
        let keys = self.keys + (begin * size_of::<K>()) as u64;
        Self { keys, values: self.values + (begin * value_bytes) as u64, len }
    }
}

/// The suffix of kernels for keys of type `K` with values of `bytes` bytes, 4 or 8.
fn with_values<K: Key>(bytes: usize) -> String {
    format!("{}v{bytes}", K::NAME)
}

/// The suffix of kernels for all numbers of so many bytes, 4 or 8.
fn bits(bytes: usize) -> &'static str {
    if bytes == 8 { "u64" } else { "u32" }
}

/// The kernels of the sort's two phases, and the one for long runs, for keys of type `K` with values of so many bytes, or 0.
const fn sort_kernels<K: Key>(value_bytes: usize) -> [&'static str; 3] {
    match (size_of::<K>(), value_bytes) {
        (_, 0) => ["block_sort", "merge_runs", "merge_long_runs"],
        (4, 4) => ["block_sort_pairs", "merge_runs_pairs", "merge_long_runs_pairs"],
        _ => ["block_sort_packed", "merge_runs_packed", "merge_long_runs_packed"],
    }
}

/// The suffix of these kernels, which serve all keys of the width of `K`.
fn sort_suffix<K: Key>(value_bytes: usize, small: bool) -> String {
    let bits = bits(size_of::<K>());
    match value_bytes {
        0 if small => format!("{bits}small"),
        0 => bits.to_owned(),
        _ => format!("{bits}v{value_bytes}"),
    }
}

/// The shapes of a sort's two phases.
#[derive(Clone, Copy)]
pub(super) struct SortPlan {
    value_bytes: usize,
    block: Tile,
    runs: Tile,
    /// Few keys: other shapes, and no launches to find splits.
    small: bool,
}

impl SortPlan {
    /// For `n` keys of type `K` with values of so many bytes, or 0.
    pub(super) const fn of<K: Key>(n: usize, value_bytes: usize) -> Self {
        let small = n <= tuning::ROW.small_sort;
        let (block, runs) = match (value_bytes, small) {
            (0, false) => (tuning::block(size_of::<K>()), tuning::runs(size_of::<K>())),
            (0, true) => (tuning::small_block(size_of::<K>()), tuning::small_runs(size_of::<K>())),
            (value_bytes, _) => tuning::sort_pairs(size_of::<K>(), value_bytes),
        };
        Self { value_bytes, block, runs, small }
    }

    /// How many keys earlier or later than at their rank tiles may begin. Those of many keys with values begin at whole lines of
    /// memory.
    const fn slack(self) -> u32 {
        match self.value_bytes {
            _ if self.small => tuning::ROW.small_slack,
            0 => tuning::ROW.slack,
            _ => 0,
        }
    }

    fn passes(self, n: usize) -> Passes {
        Passes::of(n.div_ceil(self.block.keys()))
    }

    /// Bytes of workspace for `n` keys of type `K`: room for keys and values once more, and for splits.
    pub(super) fn workspace_bytes<K: Key>(self, n: usize) -> usize {
        let mut run = self.block.keys();
        let splits = self.passes(n).map(|k| {
            let runs = merge_pass::runs_in_tiles(n, run, k, self.runs, self.slack());
            run *= k as usize;
            runs.tile_count() * k as usize * size_of::<u32>()
        });
        // If it is found that there are only so many runs, all are merged at once.
        let long_runs = if n >= ORDER_CHECK_KEYS { self.long_run_split_bytes(n) } else { 0 };
        splits
            .max()
            .map(|splits| splits.max(long_runs))
            .map_or(0, |splits| align(n * size_of::<K>()) + align(n * self.value_bytes) + align(ORDER_BYTES) + splits)
    }

    /// Keys of a tile where as many runs are merged as can be.
    const fn long_run_tile_keys(self) -> u32 {
        merge_pass::tile_keys(self.runs.keys(), self.runs.values, MAX_RUNS, 0)
    }

    /// For long runs of keys of type `K`, however many keys: the kernels for these have one shape.
    const fn of_long_runs<K: Key>(value_bytes: usize) -> Self {
        Self::of::<K>(usize::MAX, value_bytes)
    }

    /// Bytes of the splits of long runs of `n` keys in all.
    const fn long_run_split_bytes(self, n: usize) -> usize {
        n.div_ceil(self.long_run_tile_keys() as usize) * MAX_RUNS as usize * size_of::<u32>()
    }

    fn block_shape<K: Key>(self, n: usize) -> Shape {
        let slots = self.block.keys();
        let shared_bytes = match self.value_bytes {
            0 => block_sort::shared_bytes::<K::Bits>(self.block.threads, self.block.values),
            4 if size_of::<K>() == 4 => pairs::block_shared_bytes(slots),
            _ => packing::shared_bytes(slots),
        };
        Shape { blocks: n.div_ceil(slots), threads: self.block.threads as u32, shared_bytes }
    }

    fn runs_shape<K: Key>(self, tiles: usize) -> Shape {
        let slots = self.runs.keys();
        let shared_bytes = match self.value_bytes {
            0 => merge_pass::shared_bytes::<K::Bits>(slots),
            4 if size_of::<K>() == 4 => pairs::merge_shared_bytes(slots),
            _ => packed::merge_shared_bytes(slots),
        };
        Shape { blocks: tiles, threads: self.runs.threads as u32, shared_bytes }
    }
}

/// Passes that make one run of many: each merges groups of neighbouring runs, up to [`MAX_RUNS`] of them, in place.
pub(super) struct ManyRuns {
    /// Where each group begins, and its number of keys, in the order in which they are merged.
    groups: Vec<(usize, usize)>,
    /// For each group, what the sort's kernels note of long runs that they have found: [`ORDER_BYTES`].
    pub(super) found: Vec<u8>,
}

impl ManyRuns {
    /// For runs of these lengths, none of them 0, one after the other.
    pub(super) fn new(mut lengths: Vec<usize>) -> Self {
        let mut passes = Self { groups: Vec::new(), found: Vec::new() };
        while lengths.len() > 1 {
            let mut begin = 0;
            let merge_group = |runs: &[usize]| {
                let length = runs.iter().sum();
                if runs.len() > 1 {
                    passes.groups.push((begin, length));
                    passes.push_found(runs);
                }
                begin += length;
                length
            };
            lengths = lengths.chunks(MAX_RUNS as usize).map(merge_group).collect();
        }
        passes
    }

    /// Notes runs as `look_for_order` does: how many begin after the first, that they are not many, that there is an
    /// ascent, and where they begin.
    fn push_found(&mut self, runs: &[usize]) {
        let end = self.found.len() + ORDER_BYTES;
        let words: [u32; order::ORDER_WORDS] = [runs.len() as u32 - 1, 0, 1];
        self.found.extend_from_slice(bytemuck::cast_slice(&words));
        self.found.resize(end - 2 * RUN_STARTS_BYTES, 0);
        let mut begin = 0usize;
        for length in &runs[..runs.len() - 1] {
            begin += length;
            self.found.extend_from_slice(&begin.to_ne_bytes());
        }
        self.found.resize(end, 0);
    }

    /// Keys of the largest group.
    fn most(&self) -> usize {
        self.groups.iter().map(|&(_, length)| length).max().unwrap_or(0)
    }

    /// Bytes of workspace for keys of type `K` with values of so many bytes, or 0: room for a group's keys and values, and for
    /// splits.
    pub(super) fn workspace_bytes<K: Key>(&self, value_bytes: usize) -> usize {
        let (most, plan) = (self.most(), SortPlan::of_long_runs::<K>(value_bytes));
        align(most * size_of::<K>()) + align(most * value_bytes) + plan.long_run_split_bytes(most)
    }
}

impl Gpu {
    /// Loads the modules of kernels for keys of type `K` and values of so many bytes (0 for none), so that the driver does
    /// not compile them when time counts.
    pub(super) fn load<K: Key>(&self, kernels: &[&str], value_bytes: usize) -> Result<(), Error> {
        self.make_current()?;
        kernels.iter().try_for_each(|kernel| {
            let [block_sort, _, merge_long_runs] = sort_kernels::<K>(value_bytes);
            let (kernel, suffix) = match *kernel {
                "block_sort" => (block_sort, sort_suffix::<K>(value_bytes, false)),
                "merge_long_runs" => (merge_long_runs, sort_suffix::<K>(value_bytes, false)),
                "copy_runs" => (*kernel, bits(if value_bytes == 0 { size_of::<K>() } else { value_bytes }).to_owned()),
                kernel if kernel.ends_with("_pairs") => (kernel, with_values::<K>(value_bytes)),
                kernel => (kernel, K::NAME.to_owned()),
            };
            self.kernels.load(kernel, &suffix)
        })
    }

    /// [`sort_with`](Self::sort_with) of keys at an address, or [`sort_pairs`](Self::sort_pairs) if `value_bytes` is not 0.
    ///
    /// # Safety
    /// `at` and `workspace` are in this GPU's memory, have `at.len` elements and
    /// [`SortPlan::workspace_bytes`], and nothing else uses them until the stream has come so far.
    pub(super) unsafe fn sort_at<K: Key>(
        &self,
        order: SortOrder,
        value_bytes: usize,
        at: PairsAt,
        workspace: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let PairsAt { keys, values, len: n } = at;
        let plan = SortPlan::of::<K>(n, value_bytes);
        let [block_sort, merge_runs, _] = sort_kernels::<K>(value_bytes);
        let suffix = sort_suffix::<K>(value_bytes, plan.small);
        let launch = |kernel: &str, suffix: &str, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { self.kernels.launch(kernel, suffix, shape, arguments, stream) }
        };
        let coding = Coding::of::<K>(order == SortOrder::Descending);
        let mut passes = plan.passes(n);
        // The last kernel decodes.
        let decode = |passes: Passes| if passes.left() == 0 { coding } else { Coding::NONE };

        // Passes alternate between the arrays and the scratch in front of the workspace, and have to end in the arrays.
        let scratch_values = workspace + align(n * size_of::<K>()) as u64;
        let splits = scratch_values + align(n * value_bytes) as u64;
        // Worth the launches where there are many keys.
        let order_at: Address = if n >= ORDER_CHECK_KEYS { splits } else { 0 };
        let splits = if plan.small { 0 } else { splits + align(ORDER_BYTES) as u64 };
        let (e, e_n) = (coding.always, coding.when_negative);
        // Another number at each call, which nobody can know before.
        let random = RandomState::new().build_hasher().finish();
        if order_at != 0 {
            // SAFETY: the caller's promise; the places are in the workspace.
            unsafe { self.find_order::<K>(plan, coding, at, (workspace, scratch_values), order_at, splits, stream)? };
        }
        let (mut from, mut to) = ((keys, values), (workspace, scratch_values));
        if !passes.left().is_multiple_of(2) {
            (from, to) = (to, from);
        }
        let ((f, fv), Coding { always: d, when_negative: d_n }) = (from, decode(passes));
        let keys_alone = arguments![keys, f, n, e, e_n, d, d_n, order_at, random];
        // Kernels read as many as they have: the one that moves values along has no use for a random number.
        let with_values = arguments![keys, values, f, fv, n, e, e_n, d, d_n, order_at, random];
        let arguments = if value_bytes == 0 { &keys_alone[..] } else { &with_values };
        launch(block_sort, &suffix, plan.block_shape::<K>(n), arguments)?;
        let mut run = plan.block.keys();
        // Runs of which the order is not known before; merging them makes others that are not known either.
        let mut shuffled = if value_bytes == 0 { (n / run) as u32 } else { 0 };
        while let Some(k) = passes.next() {
            let runs = merge_pass::runs_in_tiles(n, run, k, plan.runs, plan.slack());
            let (tiles, tile_keys, slack) = (runs.tile_count(), runs.tile_keys(), runs.slack());
            let per_warp = merge_pass::boundaries_per_warp(tiles);
            let ((f, fv), (t, tv), Coding { always: d, when_negative: d_n }) = (from, to, decode(passes));
            if splits != 0 {
                let arguments =
                    arguments![f, n, run, k, tile_keys, slack, splits, per_warp, order_at, shuffled, random];
                launch("split_runs", bits(size_of::<K>()), splits_shape(tiles), &arguments)?;
            }
            let keys_alone = arguments![f, n, run, k, slack, t, splits, d, d_n, order_at, shuffled, random];
            let with_values = arguments![f, fv, n, run, k, slack, t, tv, splits, d, d_n, order_at];
            let arguments = if value_bytes == 0 { &keys_alone[..] } else { &with_values };
            launch(merge_runs, &suffix, plan.runs_shape::<K>(tiles), arguments)?;
            (from, to) = (to, from);
            run *= k as usize;
            shuffled = 0;
        }
        Ok(())
    }

    /// Puts what finds an order of the keys on the stream, and what is done then: nothing, turning them round, or a merge of
    /// a few long runs. The kernels of the sort do nothing if one is found.
    ///
    /// # Safety
    /// As for [`sort_at`](Self::sort_at); at `order_at` are [`ORDER_BYTES`], at `splits` the room for splits.
    #[allow(clippy::too_many_arguments)]
    unsafe fn find_order<K: Key>(
        &self,
        plan: SortPlan,
        Coding { always, when_negative }: Coding<K::Bits>,
        at: PairsAt,
        scratch: (Address, Address),
        order_at: Address,
        splits: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        // SAFETY: the words are in the workspace.
        unsafe {
            let words = DevicePointer::<u32>::from_raw(order_at);
            DeviceSlice::from_raw_parts_mut(words, order::ORDER_WORDS).set_32_async(0, stream)
        }
        .or_failure("cuMemsetD32Async")?;
        let (PairsAt { keys, values, len: n }, begins) = (at, order_at + ORDER_WORDS_BYTES as u64);
        let launch = |kernel: &str, width, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { self.kernels.launch(kernel, bits(width), shape, arguments, stream) }
        };
        let stays =
            |blocks, threads, shared_bytes| Shape { blocks: blocks * self.multiprocessors, threads, shared_bytes };
        let shape = stays(BLOCKS_THAT_STAY, order::ORDER_THREADS, 0);
        let width = size_of::<K>();
        // Equal keys are the same bits, and may be turned round, but not with their values.
        let merges_runs = u32::try_from(n).is_ok();
        let (equal_ascends, most_descents) =
            (u32::from(plan.value_bytes > 0), if merges_runs { MAX_RUNS - 1 } else { 0 });
        let look = arguments![keys, n, always, when_negative, equal_ascends, most_descents, order_at, begins];
        let look_shape = stays(BLOCKS_THAT_STAY, order::ORDER_THREADS, order::ORDER_SHARED_BYTES);
        launch("look_for_order", width, look_shape, &look)?;
        launch("reverse", width, shape, &arguments![keys, n, order_at])?;
        if plan.value_bytes > 0 {
            launch("reverse", plan.value_bytes, shape, &arguments![values, n, order_at])?;
        }
        if merges_runs {
            // SAFETY: the caller's promise.
            unsafe {
                let coding = Coding { always, when_negative };
                self.merge_long_runs::<K>(plan, coding, at, scratch, order_at, splits, stream)?;
            }
        }
        Ok(())
    }

    /// Puts on the stream what merges the long runs that the words at `order_at` tell of, if they do.
    ///
    /// # Safety
    /// As for [`find_order`](Self::find_order), and the words there are those that `look_for_order` writes.
    #[allow(clippy::too_many_arguments)]
    unsafe fn merge_long_runs<K: Key>(
        &self,
        plan: SortPlan,
        Coding { always, when_negative }: Coding<K::Bits>,
        PairsAt { keys, values, len: n }: PairsAt,
        (scratch, scratch_values): (Address, Address),
        order_at: Address,
        splits: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        let begins = order_at + ORDER_WORDS_BYTES as u64;
        let starts = begins + RUN_STARTS_BYTES as u64;
        let (width, value_bytes) = (bits(size_of::<K>()), plan.value_bytes);
        let launch = |kernel: &str, suffix: &str, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { self.kernels.launch(kernel, suffix, shape, arguments, stream) }
        };
        let stays =
            |blocks, threads, shared_bytes| Shape { blocks: blocks * self.multiprocessors, threads, shared_bytes };
        let copy_shape = stays(BLOCKS_THAT_STAY, order::ORDER_THREADS, 0);
        let copy = arguments![keys, scratch, n, always, when_negative, order_at, begins, starts];
        launch("copy_runs", width, copy_shape, &copy)?;
        if value_bytes > 0 {
            // As they are, and once more where runs begin.
            let none = 0u64;
            let copy = arguments![values, scratch_values, n, none, none, order_at, begins, starts];
            launch("copy_runs", bits(value_bytes), copy_shape, &copy)?;
        }
        let tile_keys = plan.long_run_tile_keys();
        let tiles = n.div_ceil(tile_keys as usize);
        let per_warp = merge_pass::boundaries_per_warp(tiles);
        let split = arguments![scratch, n, tile_keys, splits, starts, per_warp, order_at];
        launch("split_long_runs", width, splits_shape(tiles), &split)?;
        let Shape { threads, shared_bytes, .. } = plan.runs_shape::<K>(tiles);
        let keys_alone = arguments![scratch, n, keys, splits, starts, always, when_negative, order_at];
        let with_values =
            arguments![scratch, scratch_values, n, keys, values, splits, starts, always, when_negative, order_at];
        let arguments = if value_bytes == 0 { &keys_alone[..] } else { &with_values };
        let [.., merge_long_runs] = sort_kernels::<K>(value_bytes);
        let suffix = sort_suffix::<K>(value_bytes, false);
        launch(merge_long_runs, &suffix, stays(merge_pass::BLOCKS, threads, shared_bytes), arguments)
    }

    /// Merges the runs at `at` that `runs` was made for, in place, with values of `value_bytes` bytes, or keys alone if that is
    /// 0. There are fewer than 2^32 keys.
    ///
    /// # Safety
    /// The arrays are in this GPU's memory, `found_at` that of `runs.found`, aligned for it, and `workspace` of
    /// [`ManyRuns::workspace_bytes`]; nothing else uses them until the stream has come so far.
    pub(super) unsafe fn merge_many_at<K: Key>(
        &self,
        value_bytes: usize,
        runs: &ManyRuns,
        at: PairsAt,
        found_at: Address,
        workspace: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let (plan, coding) = (SortPlan::of_long_runs::<K>(value_bytes), Coding::of::<K>(false));
        let scratch_values = workspace + align(runs.most() * size_of::<K>()) as u64;
        let splits = scratch_values + align(runs.most() * value_bytes) as u64;
        for (group, &(begin, length)) in runs.groups.iter().enumerate() {
            let group_at = at.part::<K>(value_bytes, begin, length);
            let found_at = found_at + (group * ORDER_BYTES) as u64;
            let scratch = (workspace, scratch_values);
            // SAFETY: the caller's promise; a group lies inside the array, and what was found of it inside that.
            unsafe { self.merge_long_runs::<K>(plan, coding, group_at, scratch, found_at, splits, stream)? };
        }
        Ok(())
    }

    /// Merges the runs of `lengths` at `from`, one after the other, by merges of two: pass by pass into the other array.
    /// `value_bytes` is 0 for keys alone. Gives whether the result is in `to`.
    ///
    /// # Safety
    /// As for [`merge_at`](Self::merge_at) or [`merge_pairs_at`](Self::merge_pairs_at) of all keys. Both arrays are as long
    /// as the runs together, and both are written.
    pub(super) unsafe fn merge_tree_at<K: Key>(
        &self,
        value_bytes: usize,
        mut lengths: Vec<usize>,
        mut from: PairsAt,
        mut to: PairsAt,
        workspace: Address,
        stream: &Stream,
    ) -> Result<bool, Error> {
        let part = |array: PairsAt, begin: usize, len: usize| array.part::<K>(value_bytes, begin, len);
        let mut in_to = false;
        while lengths.len() > 1 {
            let mut begin = 0;
            for pair in lengths.chunks(2) {
                // A last one without a partner is merged with nothing, which copies it.
                let (m, n) = (pair[0], pair.get(1).copied().unwrap_or(0));
                let (a, b, out) = (part(from, begin, m), part(from, begin + m, n), part(to, begin, m + n));
                // SAFETY: the caller's promise; the parts lie inside the arrays, and those of one are apart from the other's.
                unsafe {
                    if value_bytes == 0 {
                        let (a, b) = ((a.keys, m), (b.keys, n));
                        self.merge_at::<K>(MergeKernel::Auto, a, b, out.keys, workspace, stream)?;
                    } else {
                        self.merge_pairs_at::<K>(value_bytes, a, b, out, workspace, stream)?;
                    }
                }
                begin += m + n;
            }
            lengths = lengths.chunks(2).map(|pair| pair.iter().sum()).collect();
            (from, to, in_to) = (to, from, !in_to);
        }
        Ok(in_to)
    }

    /// [`merge`](Self::merge) of arrays at addresses.
    ///
    /// # Safety
    /// The arrays are in this GPU's memory, of those lengths, `out` of their sum, `workspace` of
    /// [`merge_workspace_bytes`](Self::merge_workspace_bytes); `out` overlaps none; and nothing writes them, or uses
    /// `out` and `workspace`, until the stream has come so far.
    pub(super) unsafe fn merge_at<K: Key>(
        &self,
        kernel: MergeKernel,
        (a, m): Keys,
        (b, n): Keys,
        out: Address,
        workspace: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let total = m + n;
        if total == 0 {
            return Ok(());
        }
        let launch = |kernel, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { self.kernels.launch(kernel, K::NAME, shape, arguments, stream) }
        };
        match (kernel, AutoMerge::of::<K>(total)) {
            (MergeKernel::Basic, _) => {
                // Enough threads to fill the GPU, and then longer pieces.
                let blocks = total.div_ceil(16 * THREADS as usize).min(32 * self.multiprocessors);
                let shape = Shape { blocks, threads: THREADS, shared_bytes: 0 };
                launch("merge_basic", shape, &arguments![a, m, b, n, out])
            }
            (MergeKernel::Tiled | MergeKernel::Circular, _) => {
                let (name, shared_bytes) = match kernel {
                    MergeKernel::Tiled => ("merge_tiled", merge_tiled::shared_bytes::<K>(BOOK_TILE)),
                    _ => ("merge_circular", merge_circular::shared_bytes::<K>(BOOK_TILE)),
                };
                let blocks = total.div_ceil(BOOK_TILE as usize).min(8 * self.multiprocessors);
                let shape = Shape { blocks, threads: THREADS, shared_bytes };
                let tile_size = BOOK_TILE;
                launch(name, shape, &arguments![a, m, b, n, out, tile_size])
            }
            (MergeKernel::Auto, AutoMerge::Small) => {
                let threads = (total as u32).next_multiple_of(32);
                let shape = Shape { blocks: 1, threads, shared_bytes: merge_small::shared_bytes::<K>(total as u32) };
                launch("merge_small", shape, &arguments![a, m, b, n, out])
            }
            (MergeKernel::Auto, AutoMerge::Fused) => {
                let shape = tuning::fused(size_of::<K>());
                let blocks = total.div_ceil(shape.keys()).min(tuning::ROW.fused_blocks * self.multiprocessors);
                let shape = Shape {
                    blocks,
                    threads: merge_fused::block_threads(shape.threads),
                    shared_bytes: merge_fused::shared_bytes::<K>(shape.keys()),
                };
                launch("merge_fused", shape, &arguments![a, m, b, n, out])
            }
            (MergeKernel::Auto | MergeKernel::MergePath, _) => {
                let shape = tuning::merge(size_of::<K>());
                let (tile_keys, tiles, splits) = (shape.keys(), total.div_ceil(shape.keys()), workspace);
                let tile_shape = Shape {
                    blocks: tiles,
                    threads: shape.threads as u32,
                    shared_bytes: tile::shared_bytes::<K>(tile_keys),
                };
                launch("path_big", path_shape(tiles), &arguments![a, m, b, n, splits, tiles, tile_keys])?;
                launch("merge_big", tile_shape, &arguments![a, m, b, n, out, splits])
            }
        }
    }

    /// [`merge_pairs`](Self::merge_pairs) of arrays at addresses, for values of `value_bytes` bytes, 4 or 8.
    ///
    /// # Safety
    /// As for [`merge_at`](Self::merge_at), values included; `workspace` is of
    /// [`merge_pairs_workspace_bytes`](Self::merge_pairs_workspace_bytes).
    pub(super) unsafe fn merge_pairs_at<K: Key>(
        &self,
        value_bytes: usize,
        a: PairsAt,
        b: PairsAt,
        out: PairsAt,
        workspace: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let shape = tuning::stable(size_of::<K>());
        let (tile_keys, tiles, splits) = (shape.keys(), out.len.div_ceil(shape.keys()), workspace);
        let tile_shape = Shape {
            blocks: tiles,
            threads: shape.threads as u32,
            shared_bytes: stable_tile::shared_bytes::<K>(tile_keys, shape.values),
        };
        let path = arguments![a.keys, a.len, b.keys, b.len, splits, tiles, tile_keys];
        let merge = arguments![a.keys, a.values, a.len, b.keys, b.values, b.len, out.keys, out.values, splits];
        // SAFETY: the arguments are those of the kernels; the caller's promise for the arrays.
        unsafe {
            self.kernels.launch("path_big", K::NAME, path_shape(tiles), &path, stream)?;
            self.kernels.launch("merge_pairs", &with_values::<K>(value_bytes), tile_shape, &merge, stream)
        }
    }

    /// [`merge_batch`](Self::merge_batch) of arrays at addresses.
    ///
    /// # Safety
    /// The arrays are in this GPU's memory and hold `pairs` runs of `a_len`, `d - a_len` and `d` keys, `1 <= d <= 1024`;
    /// `out` overlaps no other; and nothing writes them, or uses `out`, until the stream has come so far.
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn merge_batch_at<K: Key>(
        &self,
        kernel: BatchKernel,
        a: Address,
        b: Address,
        out: Address,
        pairs: usize,
        d: usize,
        a_len: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let launch = |kernel, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { self.kernels.launch(kernel, K::NAME, shape, arguments, stream) }
        };
        match kernel {
            BatchKernel::Auto => {
                launch("merge_batch", batch_shape::<K>(pairs, d), &arguments![a, b, out, pairs, d, a_len])
            }
            BatchKernel::Small => {
                let (d, a_len) = (d as u32, a_len as u32);
                // A multiple of d: about as many threads as elsewhere, or one pair where that is longer.
                let threads = (THREADS / d).max(1) * d;
                let blocks = pairs.div_ceil((threads / d) as usize);
                let shape = Shape { blocks, threads, shared_bytes: merge_batch::shared_bytes::<K>(threads) };
                launch("merge_small_batch", shape, &arguments![a, b, out, pairs, d, a_len])
            }
        }
    }

    /// [`merge_batch_pairs`](Self::merge_batch_pairs) of arrays at addresses, for values of `value_bytes` bytes, 4 or 8.
    ///
    /// # Safety
    /// As for [`merge_batch_at`](Self::merge_batch_at), values included. Lengths are those of `out`.
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn merge_batch_pairs_at<K: Key>(
        &self,
        value_bytes: usize,
        a: PairsAt,
        b: PairsAt,
        out: PairsAt,
        d: usize,
        a_len: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let pairs = out.len / d;
        let shape = batch_shape::<K>(pairs, d);
        let arguments = arguments![a.keys, a.values, b.keys, b.values, out.keys, out.values, pairs, d, a_len];
        // SAFETY: the arguments are those of the kernel; the caller's promise for the arrays.
        unsafe { self.kernels.launch("merge_batch_pairs", &with_values::<K>(value_bytes), shape, &arguments, stream) }
    }

    /// [`merge_ragged`](Self::merge_ragged), or [`merge_ragged_pairs`](Self::merge_ragged_pairs) for values of
    /// `value_bytes` bytes if that is not 0, of arrays at addresses.
    ///
    /// # Safety
    /// As for [`merge_at`](Self::merge_at), values included; the offset arrays are of `pairs + 1` ascending offsets, the
    /// first 0 and the last the length of `a` or of `b`; `workspace` is of
    /// [`merge_ragged_workspace_bytes`](Self::merge_ragged_workspace_bytes).
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn merge_ragged_at<K: Key>(
        &self,
        value_bytes: usize,
        (a, a_offsets): (PairsAt, Address),
        (b, b_offsets): (PairsAt, Address),
        pairs: usize,
        out: PairsAt,
        workspace: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let shape = tuning::ragged(size_of::<K>());
        let (total, tile_keys, splits) = (out.len, shape.keys(), workspace);
        let tiles = total.div_ceil(tile_keys);
        let tile_shape = Shape {
            blocks: tiles,
            threads: shape.threads as u32,
            shared_bytes: merge_ragged::shared_bytes::<K>(tile_keys, shape.values, value_bytes > 0),
        };
        let path = arguments![a.keys, a_offsets, b.keys, b_offsets, pairs, splits, tiles, tile_keys];
        // SAFETY: the arguments here and below are those of the kernels; the caller's promise for the arrays.
        unsafe { self.kernels.launch("path_ragged", K::NAME, one_thread_each(tiles), &path, stream)? };
        if value_bytes == 0 {
            let merge = arguments![a.keys, a_offsets, b.keys, b_offsets, pairs, out.keys, total, splits];
            // SAFETY: as above.
            unsafe { self.kernels.launch("merge_ragged", K::NAME, tile_shape, &merge, stream) }
        } else {
            let merge = arguments![
                a.keys, a.values, a_offsets, b.keys, b.values, b_offsets, pairs, out.keys, out.values, total, splits
            ];
            let key = with_values::<K>(value_bytes);
            // SAFETY: as above.
            unsafe { self.kernels.launch("merge_ragged_pairs", &key, tile_shape, &merge, stream) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_are_merged_in_groups_until_one_is_left() {
        let lengths = |count: usize| (1..=count).collect::<Vec<_>>();
        let groups = |count| ManyRuns::new(lengths(count)).groups;
        assert_eq!(groups(0), []);
        assert_eq!(groups(1), []);
        assert_eq!(groups(2), [(0, 3)]);
        assert_eq!(groups(32), [(0, 528)]);
        // The last run is left alone in the first pass.
        assert_eq!(groups(33), [(0, 528), (0, 561)]);
        assert_eq!(groups(34), [(0, 528), (528, 67), (0, 595)]);
        assert_eq!(groups(1025).len(), 32 + 1 + 1);
        assert_eq!(groups(1025).last(), Some(&(0, 1025 * 1026 / 2)));
    }

    #[test]
    fn a_group_is_noted_as_the_sort_notes_runs_that_it_finds() {
        let many = ManyRuns::new(vec![5; 34]);
        assert_eq!(many.found.len(), 3 * ORDER_BYTES);
        let group = &many.found[ORDER_BYTES..][..ORDER_BYTES];
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&group[..order::ORDER_WORDS * size_of::<u32>()]);
        assert_eq!(words, [1, 0, 1]);
        let begins: Vec<usize> =
            bytemuck::pod_collect_to_vec(&many.found[2 * ORDER_BYTES..][ORDER_WORDS_BYTES..][..16]);
        assert_eq!(begins, [160, 0]);
        let first: Vec<usize> = bytemuck::pod_collect_to_vec(&many.found[ORDER_WORDS_BYTES..][..32 * 8]);
        assert!(first[..31].iter().copied().eq((5..160).step_by(5)));
        assert_eq!(first[31], 0);
    }
}
