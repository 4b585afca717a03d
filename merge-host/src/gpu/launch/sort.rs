//! The sort: a phase of sorted tiles, then passes of merges; and before them, for many keys, detecting runs, and dividing.

use super::divide::{DividePlan, Words};
use super::radix::{self, RadixPlan};
use super::runs::{DetectedRuns, RUNS_BYTES, merge_long_runs, runs_begin_at};
use super::{
    Address, Arrays, Entry, PERSISTENT_BLOCKS, Queue, Thresholds, align, bits, elements, suffix, with_numbers,
    with_values,
};
use crate::gpu::kernels::Shape;
use crate::{Error, SortKernel, SortOrder};
use kernels_gpu::kernels::sort::block_sort::{self, BlockSort};
use kernels_gpu::kernels::sort::detect_runs::{self, DetectRuns, Reverse};
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::kernels::sort::merge_pass;
use kernels_gpu::kernels::sort::merge_pass::merge_runs::{self, MergeRuns};
use kernels_gpu::kernels::sort::merge_pass::split_runs::{self, SplitRuns};
use kernels_gpu::kernels::sort::runs::{MAX_RUNS, Passes, Runs, Shuffle};
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::tuning::{self, Tile};

/// Blocks of a multiprocessor for passes of merges where keys may have been divided: many more than it holds at once, which is
/// faster, but fewer than there are tiles.
const FALLBACK_BLOCKS: usize = 24;

/// The most keys of a sort. Runs of the last pass then have fewer than 2^32 keys, as the kernels require; and twice the keys
/// exceed the memory of any GPU.
const MAX_KEYS: usize = 1 << 35;

/// The shapes of a sort's two phases.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct SortPlan {
    value_bytes: usize,
    /// Values are to begin as the keys' indices.
    indexes: bool,
    block: Tile,
    /// How the names of the first phase's kernels end.
    block_shape: &'static str,
    runs: Tile,
    /// Few keys: other shapes, and no launches that find splits.
    small: bool,
    /// Runs are detected of so many keys that are merged in any case.
    detection_keys: usize,
    /// Keys are divided if they are spread evenly.
    divide: Option<DividePlan>,
    /// Keys that are not divided are sorted by all bits, instead of being merged.
    radix: Option<RadixPlan>,
}

/// Where the parts of a sort's workspace begin, in bytes, and where it ends. The keys' scratch array is at its start.
pub(super) struct Layout {
    values: usize,
    /// What is known of the keys.
    pub(super) runs: usize,
    radix: usize,
    /// The lists of the divisions.
    pub(super) lists: usize,
    splits: usize,
    end: usize,
}

impl SortPlan {
    /// For `n` keys of type `K` with values of `value_bytes` bytes, or 0, which are the keys' indices if it `indexes`.
    pub(in crate::gpu) const fn of<K: Key>(n: usize, value_bytes: usize, indexes: bool) -> Self {
        Self::by::<K>(&Thresholds::DEFAULT, n, value_bytes, indexes)
    }

    /// The same by these thresholds.
    ///
    /// # Panics
    /// If runs may be detected of keys that are few, since the kernels that merge runs have the shape for many keys, or of keys that are sorted by
    /// all bits without an attempt to divide them.
    pub(super) const fn by<K: Key>(thresholds: &Thresholds, n: usize, value_bytes: usize, indexes: bool) -> Self {
        let small = n <= thresholds.small_sort;
        let ((block, block_shape), runs) = match (value_bytes, small) {
            (0, false) => ((tuning::block(size_of::<K>()), ""), tuning::runs(size_of::<K>())),
            (0, true) => (tuning::small_block(size_of::<K>(), n), tuning::small_runs(size_of::<K>())),
            (value_bytes, _) => {
                let (block, runs) = tuning::sort_pairs(size_of::<K>(), value_bytes);
                ((block, ""), runs)
            }
        };
        let divide = if n <= thresholds.undivided(size_of::<K>(), value_bytes) {
            None
        } else {
            DividePlan::of::<K>(thresholds, n, value_bytes, indexes)
        };
        let radix = if n <= thresholds.merged(value_bytes) {
            None
        } else {
            RadixPlan::of::<K>(thresholds, n, value_bytes, indexes)
        };
        let detection_keys = thresholds.detection_keys;
        let plan = Self { value_bytes, indexes, block, block_shape, runs, small, detection_keys, divide, radix };
        assert!(!(small && plan.detects(n)), "runs are detected of few keys");
        assert!(
            divide.is_some() || radix.is_none() || n < detection_keys,
            "runs are detected of keys that are not divided"
        );
        plan
    }

    /// The same with that kernel. The workspace of [`SortKernel::Auto`] is enough for any.
    pub(in crate::gpu) const fn with_kernel(self, kernel: SortKernel) -> Self {
        match kernel {
            SortKernel::Auto => self,
            SortKernel::MergePath => Self { divide: None, radix: None, ..self },
        }
    }

    /// For long runs of keys of type `K`, however many keys: the kernels for these have one shape.
    pub(super) const fn of_long_runs<K: Key>(value_bytes: usize) -> Self {
        Self::of::<K>(usize::MAX, value_bytes, false)
    }

    /// The suffix of the kernels of the passes, which serve all keys of the width of `K`.
    pub(super) fn suffix<K: Key>(self) -> String {
        self.suffix_of_shape::<K>(if self.value_bytes == 0 && self.small { "small" } else { "" })
    }

    /// The suffix of the kernel that sorts tiles.
    fn block_suffix<K: Key>(self) -> String {
        self.suffix_of_shape::<K>(self.block_shape)
    }

    fn suffix_of_shape<K: Key>(self, shape: &str) -> String {
        format!("{}{shape}", suffix::<K>(self.value_bytes))
    }

    /// The entry points that a sort of `n` keys of type `K` may launch.
    pub(in crate::gpu) fn entries<K: Key>(self, n: usize) -> Vec<Entry> {
        let keys = bits(size_of::<K>());
        let mut entries = vec![];
        if let Some(radix) = self.radix {
            entries.push(radix.entry::<K>());
        } else {
            entries.push(("merge_runs", self.suffix::<K>()));
            if self.once().is_none() {
                entries.push(("block_sort", self.block_suffix::<K>()));
            }
            if !self.small {
                entries.push(("split_runs", keys.clone()));
            }
        }
        if let Some(divide) = self.divide {
            entries.extend(divide.entries::<K>());
        }
        if self.sets_indices(n) {
            entries.push(("set_indices", bits(self.value_bytes)));
        }
        if self.detects(n) {
            entries.extend([("detect_runs", keys.clone()), ("reverse", keys)]);
            if self.value_bytes > 0 {
                entries.push(("reverse", bits(self.value_bytes)));
            }
            entries.extend(super::runs::entries::<K>(self.value_bytes));
        }
        entries
    }

    /// How many keys earlier or later than at their rank tiles may begin. Those of many keys with values begin at whole lines of
    /// memory.
    const fn rank_tolerance(self) -> u32 {
        match self.value_bytes {
            _ if self.small => tuning::ROW.small_rank_tolerance,
            0 => tuning::ROW.rank_tolerance,
            _ => 0,
        }
    }

    /// Whether values are set to their keys' indices before keys are sorted: a sort by all bits does so by itself, but keys may be in order.
    const fn sets_indices(self, n: usize) -> bool {
        self.indexes && (self.radix.is_none() || self.detects(n))
    }

    /// Whether `detect_runs` is launched: where keys may be divided several times, after a sample that looks as if they were in order, and where
    /// they are merged in any case, if they are many.
    const fn detects(self, n: usize) -> bool {
        n >= self.detection_keys || matches!(self.divide, Some(divide) if !divide.is_once())
    }

    /// The plan of a division, if one is enough.
    fn once(self) -> Option<DividePlan> {
        self.divide.filter(|divide| divide.is_once())
    }

    /// Keys of a run of the first pass.
    fn first_run(self) -> usize {
        self.once().map_or(self.block, DividePlan::tile).keys()
    }

    fn passes(self, n: usize) -> Passes {
        Passes::of(n.div_ceil(self.first_run()))
    }

    /// Whether a block of `merge_runs` may be given several tiles.
    fn takes_several<K: Key>(self) -> bool {
        match (size_of::<K>(), self.value_bytes) {
            (_, 0) => !self.small,
            widths => widths == (4, 4),
        }
    }

    /// The runs of `run` keys of an array of `n`, for a pass that merges `k` of them at a time.
    const fn runs_of_pass(self, n: usize, run: usize, k: u32) -> Runs {
        merge_pass::runs_in_tiles(n, run, k, self.runs, self.rank_tolerance())
    }

    /// Bytes of the splits of any of the passes, and of long runs if they may be detected. The kernels for few keys find splits by themselves.
    fn split_bytes(self, n: usize) -> usize {
        if self.small {
            return 0;
        }
        let mut run = self.first_run();
        let of_passes = self.passes(n).map(|k| {
            let tiles = self.runs_of_pass(n, run, k).tile_count();
            run *= k as usize;
            tiles * k as usize * size_of::<u32>()
        });
        let of_long_runs = if self.detects(n) { self.long_run_split_bytes(n) } else { 0 };
        of_passes.max().unwrap_or(0).max(of_long_runs)
    }

    /// The workspace for `n` keys of type `K`, at most [`MAX_KEYS`].
    pub(super) fn layout<K: Key>(self, n: usize) -> Layout {
        let values = align(n * size_of::<K>());
        let runs = values + align(n * self.value_bytes);
        let radix = runs + align(RUNS_BYTES);
        let cleared = self.radix.map_or(0, |_| RadixPlan::CLEARED_WORDS * size_of::<u32>());
        let published = self.radix.map_or(0, RadixPlan::published_bytes);
        let lists = radix + align(cleared);
        // Of splits, lists and what tiles of a sort by all bits publish one is needed, and the heads of the lists, which say that there is nothing
        // to divide where it is one of the others.
        let (heads, list_bytes) = self.divide.map_or((0, 0), |divide| (DividePlan::HEAD_BYTES, divide.list_bytes()));
        let splits = lists + align(heads);
        let end = (splits + self.split_bytes(n)).max(lists + list_bytes).max(splits + published);
        Layout { values, runs, radix, lists, splits, end }
    }

    /// Bytes of workspace for `n` keys of type `K`: keys and values once more, and splits or counters;
    /// none where one block sorts all, and `usize::MAX` for more keys than a GPU sorts.
    pub(in crate::gpu) fn workspace_bytes<K: Key>(self, n: usize) -> usize {
        match n {
            _ if n <= self.block.keys() => 0,
            _ if n > MAX_KEYS => usize::MAX,
            _ => self.layout::<K>(n).end,
        }
    }

    /// Keys of a tile where as many runs are merged as can be.
    pub(super) const fn long_run_tile_keys(self) -> u32 {
        merge_pass::tile_keys(self.runs.keys(), self.runs.items_per_thread, MAX_RUNS, 0)
    }

    /// Bytes of the splits of long runs of `n` keys in all.
    pub(super) const fn long_run_split_bytes(self, n: usize) -> usize {
        n.div_ceil(self.long_run_tile_keys() as usize) * MAX_RUNS as usize * size_of::<u32>()
    }

    fn block_shape<K: Key>(self, n: usize) -> Shape {
        let slots = self.block.keys();
        let shared_bytes = block_sort::shared_bytes(size_of::<K>(), self.value_bytes, slots);
        Shape { blocks: n.div_ceil(slots), threads: self.block.threads as u32, shared_bytes }
    }

    pub(super) fn runs_shape<K: Key>(self, tiles: usize) -> Shape {
        let shared_bytes = merge_runs::shared_bytes(size_of::<K>(), self.value_bytes, self.runs.keys());
        Shape { blocks: tiles, threads: self.runs.threads as u32, shared_bytes }
    }
}

/// Keys that one division is not enough for.
const SEVERAL_DIVISIONS: usize = 1 << 24;

/// The entry points that sorts of any number of keys may launch, alone or with values of `value_bytes` bytes.
pub(super) fn entries_of_any_size<K: Key>(value_bytes: usize) -> Vec<Entry> {
    let thresholds = &Thresholds::DEFAULT;
    let sizes = [
        1,
        // More than one larger block sorts, and more than one pass merges the tiles of smaller blocks of.
        tuning::ROW.block_sort_tiny.of(4, 0).keys() + 1,
        tuning::ROW.block_sort_small.of(4, 0).keys() + 1,
        tuning::ROW.block_sort_tiny.of(4, 0).keys() * MAX_RUNS as usize + 1,
        thresholds.merged(value_bytes) + 1,
        thresholds.few_radix[0] + 1,
        thresholds.few_radix[1] + 1,
        thresholds.few_radix_v4 + 1,
        thresholds.undivided(size_of::<K>(), value_bytes) + 1,
        thresholds.small_sort + 1,
        SEVERAL_DIVISIONS,
        thresholds.detection_keys,
        thresholds.many_4,
    ];
    let entries = |n, indexes| {
        let plan = SortPlan::of::<K>(n, value_bytes, indexes);
        SortKernel::ALL.into_iter().flat_map(move |kernel| plan.with_kernel(kernel).entries::<K>(n))
    };
    let indexes = [false, true].into_iter().filter(|&indexes| !indexes || value_bytes > 0);
    indexes.flat_map(|indexes| sizes.into_iter().flat_map(move |n| entries(n, indexes))).collect()
}

/// The launch that finds splits for `tiles` tiles.
pub(super) fn splits_shape(tiles: usize) -> Shape {
    Shape { blocks: split_runs::split_blocks(tiles), threads: split_runs::SPLIT_THREADS, shared_bytes: 0 }
}

/// Where the parts of a sort's workspace are.
#[derive(Clone, Copy)]
struct Workspace {
    /// Arrays for the keys and the values once more.
    scratch: (Address, Address),
    /// What `detect_runs` finds, or 0 if it is not called and keys are not divided.
    detected: Address,
    /// The words of a sort by all bits.
    radix: radix::Words,
    /// The lists of the divisions.
    lists: Address,
    /// The splits of runs, or 0 where kernels find them by themselves.
    splits: Address,
}

/// Queues the sort of `at` by that kernel, with values or without, which begin as the keys' indices if it `indexes`.
///
/// # Safety
/// The arrays are in the GPU's memory, as is `workspace`, which has [`SortPlan::workspace_bytes`], and nothing else uses
/// them until the sort has ended. There are at most [`MAX_KEYS`] keys.
pub(in crate::gpu) unsafe fn sort<K: Key>(
    queue: &impl Queue,
    (kernel, order): (SortKernel, SortOrder),
    at: Arrays,
    indexes: bool,
    workspace: Address,
) -> Result<(), Error> {
    let plan = SortPlan::of::<K>(at.len, at.value_bytes, indexes).with_kernel(kernel);
    // SAFETY: the caller's promise; the workspace for the automatic kernel is enough for any.
    unsafe { sort_by_plan::<K>(queue, plan, order, at, workspace) }
}

/// Queues the sort of `at` by that plan, which is one for so many keys of type `K` with such values.
///
/// # Safety
/// As for [`sort`], by the workspace of this plan.
pub(super) unsafe fn sort_by_plan<K: Key>(
    queue: &impl Queue,
    plan: SortPlan,
    order: SortOrder,
    at: Arrays,
    workspace: Address,
) -> Result<(), Error> {
    let n = at.len;
    let layout = plan.layout::<K>(n);
    let coding = Coding::of::<K>(order == SortOrder::Descending);
    // Where keys may be divided a sample tells first whether they look as if they were in order.
    let detects = n >= plan.detection_keys && plan.divide.is_none();
    let in_workspace = |offset: usize| workspace + offset as u64;
    let detected = if detects || plan.divide.is_some() { in_workspace(layout.runs) } else { 0 };
    let radix_words =
        radix::Words { cleared: in_workspace(layout.radix), published: in_workspace(layout.splits), order: detected };
    let parts = Workspace {
        scratch: (workspace, in_workspace(layout.values)),
        detected,
        radix: radix_words,
        lists: in_workspace(layout.lists),
        splits: if plan.small { 0 } else { in_workspace(layout.splits) },
    };
    let random = queue.random();
    if detects {
        // SAFETY: the caller's promise; the words are in the workspace.
        unsafe {
            queue.clear(parts.detected, detect_runs::DETECTION_WORDS)?;
            detect_runs::<K>(queue, coding, at, parts.detected)?;
        }
    }
    match (plan.divide, plan.radix) {
        // SAFETY: the caller's promise.
        (None, None) => unsafe { merge_sort::<K>(queue, plan, coding, at, parts, random) },
        // SAFETY: the caller's promise; the words are in the workspace, and the other side as well.
        (None, Some(radix)) => unsafe {
            queue.clear(parts.radix.cleared, RadixPlan::CLEARED_WORDS)?;
            radix.sort::<K>(queue, coding, at, parts.scratch, parts.radix)
        },
        (Some(divide), None) if divide.is_once() => {
            // SAFETY: as above.
            unsafe { merge_sort::<K>(queue, plan, coding, at, parts, random) }
        }
        (Some(divide), Some(radix)) if divide.is_once() => {
            let words = Words { lists: parts.lists, order: parts.detected };
            let sides = [at.keys, parts.scratch.0];
            // SAFETY: as above. Of the last two one has something to do.
            unsafe {
                divide.divide_once::<K>(queue, coding, sides, words, random)?;
                radix.sort::<K>(queue, coding, at, parts.scratch, parts.radix)?;
                divide.sort_once::<K>(queue, coding, sides, None, words, random)
            }
        }
        (Some(divide), radix) => {
            let words = Words { lists: parts.lists, order: parts.detected };
            let cleared = ((layout.lists - layout.radix) / size_of::<u32>()) as u32;
            let division = divide.division::<K>(coding, at, parts.scratch, words, cleared, random);
            // SAFETY: as above. Once it is decided whether keys are divided, either the divisions have something to do, or the sort by all bits, or
            // the merges, and what these need is behind the heads of the lists.
            unsafe {
                division.decide(queue)?;
                // The host takes longer to queue either than the GPU to find that there is nothing to do: what may have something to do comes first.
                queue.join(|queue, side| {
                    division.begin(queue)?;
                    detect_runs::<K>(side, coding, at, parts.detected)?;
                    let Some(radix) = radix else {
                        division.finish(queue)?;
                        return merge_sort::<K>(side, plan, coding, at, parts, random);
                    };
                    radix.sort::<K>(side, coding, at, parts.scratch, parts.radix)?;
                    division.finish(queue)?;
                    use_order::<K>(side, plan, coding, at, parts)
                })
            }
        }
    }
}

/// Queues the sort of tiles and the passes of merges, or what makes use of detected runs. Nothing is done where keys are divided, but for a
/// division that is enough by itself, which is queued here.
///
/// # Safety
/// As for [`sort`].
unsafe fn merge_sort<K: Key>(
    queue: &impl Queue,
    plan: SortPlan,
    coding: Coding<K::Bits>,
    at: Arrays,
    workspace: Workspace,
    random: u64,
) -> Result<(), Error> {
    let Arrays { keys, values, len: n, value_bytes } = at;
    let Workspace { scratch, detected, lists, splits, .. } = workspace;
    let (suffix, order, splits) = (plan.suffix::<K>(), detected as *mut u32, splits as *mut u32);
    let mut passes = plan.passes(n);
    // The last kernel decodes.
    let decode = |passes: Passes| if passes.left() == 0 { coding } else { Coding::NONE };
    // SAFETY: the caller's promise.
    unsafe { use_order::<K>(queue, plan, coding, at, workspace)? };
    // Blocks of most passes take one tile after the other, so that there are few where there is nothing to do.
    let few_blocks = |shape: Shape| match plan.divide {
        Some(_) if plan.takes_several::<K>() => {
            Shape { blocks: shape.blocks.min(FALLBACK_BLOCKS * queue.multiprocessors()), ..shape }
        }
        _ => shape,
    };
    // Passes alternate between the arrays and the scratch, and have to end in the arrays.
    let (mut from, mut to) = ((keys, values), scratch);
    if !passes.left().is_multiple_of(2) {
        (from, to) = (to, from);
    }
    if let Some(divide) = plan.once() {
        let (sides, tiles) = ([keys, scratch.0], (from.0, decode(passes)));
        let words = Words { lists, order: detected };
        // SAFETY: the caller's promise; the words are in the workspace, and the other side as well.
        unsafe {
            divide.divide_once::<K>(queue, coding, sides, words, random)?;
            divide.sort_once::<K>(queue, coding, sides, Some(tiles), words, random)?;
        }
    } else {
        let (input, output, encode, decode) = ((keys, values), from, coding, decode(passes));
        with_values!(value_bytes, V => {
            let (from, to) = (elements::<K, V>(input), elements::<K, V>(output));
            let sort = BlockSort { from, to, n, encode, decode, order, random };
            // SAFETY: the caller's promise for the arrays, here and below; shapes are those that the kernels ask for.
            unsafe { queue.launch(&plan.block_suffix::<K>(), plan.block_shape::<K>(n), &sort)? }
        });
    }
    let mut run = plan.first_run();
    // Runs whose order cannot be predicted; merging them makes runs of which that is true as well.
    let mut shuffled = if value_bytes == 0 { (n / run) as u32 } else { 0 };
    while let Some(k) = passes.next() {
        let runs = plan.runs_of_pass(n, run, k).shuffled(Shuffle { runs: shuffled, random });
        let tiles = runs.tile_count();
        let per_warp = split_runs::boundaries_per_warp(tiles);
        if !splits.is_null() {
            let split = SplitRuns { from: from.0 as *const K::Bits, runs, splits, per_warp, order };
            // SAFETY: as above.
            unsafe { queue.launch(&bits(size_of::<K>()), splits_shape(tiles), &split)? };
        }
        let (input, output, decode) = (from, to, decode(passes));
        with_values!(value_bytes, V => {
            let (from, to) = (elements::<K, V>(input), elements::<K, V>(output));
            let merge = MergeRuns { from, to, runs, splits, decode, order };
            // SAFETY: as above.
            unsafe { queue.launch(&suffix, few_blocks(plan.runs_shape::<K>(tiles)), &merge)? }
        });
        (from, to) = (to, from);
        run *= k as usize;
        shuffled = 0;
    }
    Ok(())
}

/// Queues what begins the sort of keys that are not divided: their indices, if there are to be any, and what makes use of detected runs.
///
/// # Safety
/// As for [`sort`].
unsafe fn use_order<K: Key>(
    queue: &impl Queue,
    plan: SortPlan,
    coding: Coding<K::Bits>,
    at: Arrays,
    Workspace { scratch, detected, splits, .. }: Workspace,
) -> Result<(), Error> {
    let Arrays { values, len: n, value_bytes, .. } = at;
    if plan.sets_indices(n) {
        let merges = u32::from(plan.radix.is_none());
        let shape = queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, 0);
        let order = detected as *mut u32;
        with_numbers!(value_bytes, I => {
            // SAFETY: the caller's promise for the arrays; the shape is the one that the kernel asks for.
            unsafe { queue.launch(&bits(value_bytes), shape, &SetIndices { to: values as *mut I, n, first: 0, order, merges })? }
        });
    }
    if plan.detects(n) {
        // SAFETY: the caller's promise; all of this is in the workspace.
        unsafe { use_runs::<K>(queue, plan, coding, at, DetectedRuns { at: detected, scratch, splits })? };
    }
    Ok(())
}

/// Runs that are detected of `n` keys are merged by kernels that have indices of 32 bits.
fn merges_runs(n: usize) -> bool {
    u32::try_from(n).is_ok()
}

/// Queues the detection of runs.
///
/// # Safety
/// As for [`sort`]; at `words` are [`RUNS_BYTES`], of which the words are 0, or as `choose_digits` has set them.
unsafe fn detect_runs<K: Key>(
    queue: &impl Queue,
    coding: Coding<K::Bits>,
    at: Arrays,
    words: Address,
) -> Result<(), Error> {
    let Arrays { keys, len: n, value_bytes, .. } = at;
    // Equal keys are the same bits, and may be reversed, but not with their values.
    let equal_ascends = u32::from(value_bytes > 0);
    let most_descents = if merges_runs(n) { MAX_RUNS - 1 } else { 0 };
    let (keys, found, starts) = (keys as *const K::Bits, words as *mut u32, runs_begin_at(words) as *mut usize);
    let detect = DetectRuns { keys, n, coding, equal_ascends, most_descents, found, starts };
    let shape =
        queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, detect_runs::DETECTION_SHARED_BYTES);
    // SAFETY: the caller's promise for the arrays; the shape is the one that the kernel asks for.
    unsafe { queue.launch(&bits(size_of::<K>()), shape, &detect) }
}

/// Queues the work on detected runs: none on sorted keys, reversing descending keys, or a merge of a few long runs. The other kernels of
/// the sort do nothing then.
///
/// # Safety
/// As for [`detect_runs`], which has been called before.
unsafe fn use_runs<K: Key>(
    queue: &impl Queue,
    plan: SortPlan,
    coding: Coding<K::Bits>,
    at: Arrays,
    detected: DetectedRuns,
) -> Result<(), Error> {
    let Arrays { keys, values, len: n, value_bytes, .. } = at;
    let found = detected.at as *mut u32;
    let shape = queue.persistent(PERSISTENT_BLOCKS, detect_runs::DETECTION_THREADS, 0);
    let reverse = |array: Address, width| {
        with_numbers!(width, T => {
            // SAFETY: the caller's promise for the arrays; the shape is the one that the kernel asks for.
            unsafe { queue.launch(&bits(width), shape, &Reverse { array: array as *mut T, n, found }) }
        })
    };
    reverse(keys, size_of::<K>())?;
    if value_bytes > 0 {
        reverse(values, value_bytes)?;
    }
    if merges_runs(n) {
        // SAFETY: the caller's promise.
        unsafe { merge_long_runs::<K>(queue, plan, coding, at, detected)? };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_std::launch::Arguments;
    use kernels_gpu::kernels::sort::merge_pass::merge_runs::MERGE_RUNS;
    use std::cell::Cell;

    /// A GPU of few multiprocessors, which notes how many blocks merge runs.
    struct SmallGpu {
        merging: Cell<usize>,
    }

    impl Queue for SmallGpu {
        fn multiprocessors(&self) -> usize {
            4
        }

        unsafe fn launch<A: Arguments>(&self, _: &str, shape: Shape, _: &A) -> Result<(), Error> {
            if A::KERNEL.name == MERGE_RUNS.name {
                self.merging.set(shape.blocks);
            }
            Ok(())
        }

        unsafe fn clear(&self, _: Address, _: usize) -> Result<(), Error> {
            Ok(())
        }

        fn join(&self, work: impl FnOnce(&Self, &Self) -> Result<(), Error>) -> Result<(), Error> {
            work(self, self)
        }
    }

    #[test]
    fn blocks_that_take_one_tile_are_as_many_as_tiles() {
        // Keys of 8 bytes that may be divided, but are few.
        let (n, gpu) = (1 << 20, SmallGpu { merging: Cell::new(0) });
        let plan = SortPlan::of::<u64>(n, 0, false);
        assert!(plan.once().is_some() && plan.suffix::<u64>() == "u64small");
        let at = Arrays::keys(1 << 20, n);
        // SAFETY: nothing is launched.
        unsafe { sort::<u64>(&gpu, (SortKernel::Auto, SortOrder::Ascending), at, false, 1 << 20).unwrap() };
        assert!(gpu.merging.get() >= n.div_ceil(plan.runs.keys()), "{} blocks", gpu.merging.get());
    }

    #[test]
    fn a_workspace_for_more_keys_than_a_gpu_sorts_is_larger_than_any() {
        for n in [MAX_KEYS + 1, usize::MAX / 8, usize::MAX / 4 + 1, usize::MAX] {
            assert_eq!(SortPlan::of::<u32>(n, 0, false).workspace_bytes::<u32>(n), usize::MAX);
            assert_eq!(SortPlan::of::<f64>(n, 8, false).workspace_bytes::<f64>(n), usize::MAX);
        }
    }

    #[test]
    fn a_workspace_takes_a_hundredth_more_than_the_arrays_or_24_kib() {
        fn check<K: Key>() {
            let sizes = (12..32).flat_map(|log| [(1usize << log) - 1, 1 << log, (1 << log) + 1, 3 << (log - 1)]);
            for (n, value_bytes) in sizes.flat_map(|n| [0, 4, 8].map(|bytes| (n, bytes))) {
                for indexes in [false, value_bytes > 0] {
                    let bytes = SortPlan::of::<K>(n, value_bytes, indexes).workspace_bytes::<K>(n);
                    let arrays = n * (size_of::<K>() + value_bytes);
                    let more = (arrays / 100).max(24 << 10);
                    assert!(bytes <= arrays + more, "{} bytes more than {arrays} for {n} keys", bytes - arrays);
                }
            }
        }
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn the_workspace_is_enough_for_every_kernel() {
        fn check<K: Key>() {
            for (n, value_bytes) in (0..=33).map(|log| 1 << log).flat_map(|n| [0, 4, 8].map(|bytes| (n, bytes))) {
                let plan = SortPlan::of::<K>(n, value_bytes, false);
                for kernel in SortKernel::ALL {
                    let needed = plan.with_kernel(kernel).workspace_bytes::<K>(n);
                    assert!(needed <= plan.workspace_bytes::<K>(n), "{n} keys by {kernel}");
                }
            }
        }
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn runs_of_the_last_pass_have_fewer_than_2_to_the_32_keys() {
        fn check<K: Key>() {
            for value_bytes in [0, 4, 8] {
                // `Runs::new` panics for longer runs.
                let bytes = SortPlan::of::<K>(MAX_KEYS, value_bytes, false).workspace_bytes::<K>(MAX_KEYS);
                let arrays = MAX_KEYS * (size_of::<K>() + value_bytes);
                assert!((arrays..arrays + arrays / 50).contains(&bytes), "{bytes}");
            }
        }
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn keys_that_one_block_sorts_need_no_workspace() {
        assert_eq!(SortPlan::of::<u32>(0, 0, false).workspace_bytes::<u32>(0), 0);
        let block = tuning::ROW.block_sort_small.of(4, 0).keys();
        for n in
            [1, tuning::ROW.block_sort_tiny.of(4, 0).keys(), tuning::ROW.block_sort_tiny.of(4, 0).keys() + 1, block]
        {
            assert_eq!(SortPlan::of::<u32>(n, 0, false).workspace_bytes::<u32>(n), 0, "{n}");
        }
        assert!(SortPlan::of::<u32>(block + 1, 0, false).workspace_bytes::<u32>(block + 1) > 4 * block);
    }
}
