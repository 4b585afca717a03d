//! The sort by the plan of each size, against the standard library's stable sort.

#[path = "../../../tests/src/bank_conflicts.rs"]
mod bank_conflicts;

use crate::common::{self, *};
use cuda_std::Word;
use kernels_gpu::kernels::sort::detect_runs::DETECTION_WORDS;
use kernels_gpu::kernels::sort::divide::MOST_LEVELS;
use kernels_gpu::kernels::sort::divide::workspace::{HEAD_WORDS, RESTS};
use kernels_gpu::kernels::sort::merge_pass;
use kernels_gpu::kernels::sort::runs::MAX_RUNS;
use kernels_gpu::kernels::sort::windows;
use kernels_gpu::tuning::{self, ROW};
use merge_host::launches::KeyOrder;
use merge_host::launches::Operation;
use merge_host::launches::Thresholds;
use merge_host::launches::emulated::Device;
use merge_host::launches::sort::{Layout, SortPlan, sort_by_plan};
use merge_host::launches::{Address, Arrays, Entry, Queue};
use merge_host::{Error, Key, SortKernel, SortOrder};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;

/// The values that move with the keys, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Nothing,
    Values(usize),
    Indices(usize),
}

impl With {
    /// None, values and indices, of random widths, or all of both widths.
    fn tried() -> Vec<Self> {
        let [values, indices] = [Self::Values, Self::Indices].map(|with| tried([with(4), with(8)]));
        [vec![Self::Nothing], values, indices].concat()
    }

    fn value_bytes(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Values(bytes) | Self::Indices(bytes) => bytes,
        }
    }
}

/// The order that a sort has found in its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// No order that the sort can use.
    None,
    Ascending,
    Descending,
    LongRuns,
    /// No order, and keys were divided.
    Divided,
}

/// A sort by a kernel of a plan for the automatic kernel, whose workspace is enough for any kernel.
struct ByPlan {
    plan: SortPlan,
    kernel: SortKernel,
    order: KeyOrder,
    at: Arrays,
}

impl<K: TestKey> Operation<K> for ByPlan {
    fn workspace_bytes(&self) -> usize {
        self.plan.workspace_bytes::<K::OnGpu>(self.at.len)
    }

    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let plan = self.plan.with_kernel(self.kernel);
        // SAFETY: `Operation::launch` requires valid arrays and `workspace_bytes` of workspace.
        unsafe { sort_by_plan(queue, plan, self.order.coding::<K>(), self.at, workspace) }
    }
}

/// A sort that has run.
struct Sorted {
    device: Device,
    workspace: Address,
    layout: Layout,
}

/// Sorts `keys` on a new device, and compares with the standard library's sort.
fn sort<K: TestKey>(
    thresholds: &Thresholds,
    (kernel, order): (SortKernel, KeyOrder),
    keys: &[K],
    with: With,
    seed: u64,
) -> Sorted {
    fn run<K: TestKey, V: Word>(sort: ByPlan, keys: &[K], with: common::With, device: &Device) -> Address {
        let pairs = Pairs::<K, V>::with(device, keys, with);
        let what = format!("{} keys with {with:?}, {:?}, {:?}", keys.len(), sort.kernel, sort.order);
        let expected = sorted_segments(keys, sort.order, &[0, keys.len()]);
        let workspace = device.run::<K>(&ByPlan { at: pairs.arrays(), ..sort });
        pairs.check(device, keys, &expected, &|| what.clone());
        workspace
    }
    let (device, n, indexes) = (Device::new(seed), keys.len(), matches!(with, With::Indices(_)));
    let plan = SortPlan::by::<K::OnGpu>(thresholds, n, with.value_bytes(), indexes);
    let sort = ByPlan { plan, kernel, order, at: Arrays::keys(0, n) };
    let way = if indexes { common::With::Indices } else { common::With::Values };
    let workspace = match with.value_bytes() {
        0 => run::<K, ()>(sort, keys, common::With::Nothing, &device),
        4 => run::<K, u32>(sort, keys, way, &device),
        _ => run::<K, u64>(sort, keys, way, &device),
    };
    Sorted { device, workspace, layout: plan.with_kernel(kernel).layout::<K::OnGpu>(n) }
}

impl Sorted {
    /// The words of `detect_runs`.
    fn detected(&self) -> Vec<u32> {
        self.device.words(self.workspace + self.layout.runs as Address, DETECTION_WORDS)
    }

    /// The order of the keys, if it may have been detected or the keys may have been divided.
    fn order(&self) -> Order {
        match self.detected()[..] {
            [_, _, _, 1, ..] => Order::Divided,
            [_, _, 0, ..] => Order::Descending,
            [0, 0, ..] => Order::Ascending,
            [_, 0, ..] => Order::LongRuns,
            _ => Order::None,
        }
    }

    /// Whether keys were to be sorted by windows, and whether all windows were sorted.
    fn windows(&self) -> (bool, bool) {
        let words = self.detected();
        (words[4] == 1, words[4] == 1 && words[5] == 0)
    }

    /// The number of launches of that kernel.
    fn launches(&self, name: &str) -> usize {
        self.device.launched().iter().filter(|(kernel, _)| *kernel == name).count()
    }

    /// The heads of the lists of a sort that divides several times.
    fn heads(&self) -> Vec<u32> {
        self.device.words(self.workspace + self.layout.lists as Address, HEAD_WORDS)
    }

    /// The number of levels that had something to divide. There are three heads for each level, and the first one
    /// counts segments.
    fn levels(&self) -> usize {
        self.heads()[..3 * MOST_LEVELS].chunks(3).filter(|level| level[0] > 0).count()
    }

    /// The number of rests, the number of buckets that could not be sorted, whether digits were to be counted twice,
    /// the number of overflows of a counter, and the number of long buckets.
    fn left(&self) -> [u32; 5] {
        let heads = self.heads();
        std::array::from_fn(|i| heads[RESTS + i])
    }
}

/// More keys than a block of any shape sorts, and more than a tile of any pass has.
const N: usize = 40_000;

/// No number of keys is sorted by one block in one launch.
const SEVERAL_LAUNCHES: Thresholds = Thresholds { one_block: 0, ..Thresholds::DEFAULT };

/// No number of keys is small.
const MERGED: Thresholds = Thresholds { small_sort: 0, ..SEVERAL_LAUNCHES };

/// 4-byte keys are sorted by all bits, with shapes for few, for more, and for many keys.
const BY_ALL_BITS: Thresholds = Thresholds { merged: [0; 2], few_radix: [[10_000, 18_000]; 2], ..MERGED };

/// Keys may be divided once, and are merged otherwise.
const DIVIDED_ONCE: Thresholds = Thresholds {
    merged: [usize::MAX; 2],
    undivided: [0; 2],
    undivided_with_values: [0; 2],
    several_tiles: (usize::MAX, 1),
    ..MERGED
};

/// Keys alone may be divided twice, and keys with values three times, by few digits at a time.
const DIVIDED_TWICE: Thresholds = Thresholds { most_digits: [1, 1], digits_in_order: 1, ..DIVIDED_ONCE };

/// Keys may be divided three times.
const DIVIDED_THREE_TIMES: Thresholds = Thresholds { two_divisions: 0, ..DIVIDED_TWICE };

/// 4-byte keys alone may be divided four times.
const DIVIDED_FOUR_TIMES: Thresholds = Thresholds { four_divisions: 0, ..DIVIDED_THREE_TIMES };

const ORDERS: [KeyOrder; 2] =
    [KeyOrder::ASCENDING, KeyOrder { direction: SortOrder::Descending, ..KeyOrder::ASCENDING }];

/// Sorts random keys of a new seed by the automatic kernel, in either order. For a descending sort the keys are
/// reversed, so that kinds with an order keep it.
fn sort_random<K: TestKey>(thresholds: &Thresholds, keys: Keys, n: usize, with: With) -> Sorted {
    let seed = fresh_seed();
    let order = KeyOrder::from(order_of(seed).direction);
    let mut keys = keys.random::<K>(n, seed);
    if order.direction == SortOrder::Descending {
        keys.reverse();
    }
    sort::<K>(thresholds, (SortKernel::Auto, order), &keys, with, seed)
}

/// Repeats [`sort_random`] until the sort takes the path that `is_there` looks for, since a sample may mislead the sort
/// by chance.
fn sort_until<K: TestKey>(
    (thresholds, keys, n, with): (&Thresholds, Keys, usize, With),
    what: &str,
    is_there: impl Fn(&Sorted) -> bool,
) {
    let mut others = vec![];
    for _ in 0..20 {
        let sorted = sort_random::<K>(thresholds, keys, n, with);
        if is_there(&sorted) {
            return;
        }
        let seed = sorted.device.seed();
        others.push(format!("{:?}, seed {seed}, {:?}", sorted.order(), sorted.device.kernels()));
    }
    panic!("{n} keys {keys:?} of type {} with {with:?}: never {what}, but {others:#?}", <K as Key>::NAME);
}

/// Bins sort keys that are spread evenly, and few values. They give up nested clusters, which are merged instead, with
/// and without values.
#[test]
fn few_keys_that_one_launch_sorts() {
    fn check<K: TestKey>() {
        let whole = Thresholds { one_block: usize::MAX, ..Thresholds::DEFAULT };
        let (tiny, small) = (ROW.sort_tiny.of(4, 0).keys(), ROW.sort_small.of(4, 0).keys());
        for (case, with) in With::tried().into_iter().enumerate() {
            for (i, n) in [0, 1, 2, 31, 33, 1000, tiny - 1, tiny, tiny + 1, small - 1, small].into_iter().enumerate() {
                let is_small = tuning::sort_small(size_of::<K>(), with.value_bytes(), n).is_some();
                if !is_small || n > tiny + 1 && !takes_turn::<K>(case + i) {
                    continue;
                }
                let keys = [Keys::Any, Keys::Nested, Keys::Few, Keys::Nested, Keys::Equal, Keys::Cluster];
                for keys in [keys[(case + i) % 6], keys[(case + i + 1) % 6]] {
                    let sorted = sort_random::<K>(&whole, keys, n, with);
                    let launched = sorted.device.launched();
                    assert_eq!(launched.len(), usize::from(n > 0), "{n} keys with {with:?}: {launched:?}");
                    let is_small =
                        |(kernel, suffix): &Entry| *kernel == "sort_small" && suffix.ends_with("tiny") == (n <= tiny);
                    assert!(launched.iter().all(is_small), "{n} keys with {with:?}: {launched:?}");
                }
            }
        }
    }
    for_all_types!(check());
}

#[test]
fn one_block_sorts_up_to_the_threshold_and_what_a_block_holds() {
    let kernels = |n: usize, with: With| {
        let sorted = sort_random::<u32>(&Thresholds::DEFAULT, Keys::Any, n, with);
        sorted.device.kernels()
    };
    let (most, with_values) = (Thresholds::DEFAULT.one_block, ROW.sort_tiny.of(4, 8).keys());
    for (n, with, is_one) in [
        (most, With::Nothing, true),
        (most + 1, With::Nothing, false),
        (most, With::Indices(4), false),
        (with_values, With::Values(8), true),
        (with_values + 1, With::Values(8), false),
    ] {
        let kernels = kernels(n, with);
        assert_eq!(kernels == HashSet::from(["sort_small"]), is_one, "{n} keys with {with:?}: {kernels:?}");
    }
}

#[test]
fn keys_that_one_block_sorts_and_few_more() {
    fn check<K: TestKey>() {
        let (tiny, small) = match size_of::<K>() {
            4 => (ROW.block_sort_tiny.of(4, 0).keys(), ROW.block_sort_small.of(4, 0).keys()),
            _ => (ROW.block_sort_tiny.of(8, 0).keys(), ROW.block_sort_small.of(8, 0).keys()),
        };
        for n in [0, 1, 2, tiny - 1, tiny, tiny + 1, small - 1, small, small + 1, 3 * tiny + 1] {
            for (keys, order) in [Keys::Any, Keys::Few].into_iter().flat_map(|keys| ORDERS.map(|order| (keys, order))) {
                let seed = fresh_seed();
                let kernel = SortKernel::ALL[(seed / 2 % 2) as usize];
                let sorted = sort::<K>(&SEVERAL_LAUNCHES, (kernel, order), &keys.random(n, seed), With::Nothing, seed);
                let merges =
                    if n > small { ["block_sort", "merge_runs"].into() } else { HashSet::from(["block_sort"]) };
                assert_eq!(sorted.device.kernels(), if n == 0 { HashSet::new() } else { merges }, "{n} keys");
            }
        }
    }
    for_all_types!(check());
}

#[test]
fn few_keys_that_two_passes_merge() {
    fn check<K: TestKey>([tiny, small]: [usize; 2]) {
        let [most, more] = [tiny, small].map(|block| block * MAX_RUNS as usize);
        for (n, block, passes) in [(most, "tiny", 1), (most + 1, "small", 1), (more + 1, "small", 2)] {
            let seed = fresh_seed();
            let how = (SortKernel::MergePath, order_of(seed));
            let sorted = sort::<K>(&Thresholds::DEFAULT, how, &Keys::Any.random(n, seed), With::Nothing, seed);
            assert_eq!(sorted.launches("merge_runs"), passes, "{n} keys");
            let is_block_sort = |(kernel, suffix): &Entry| *kernel == "block_sort" && suffix.ends_with(block);
            assert!(sorted.device.launched().iter().any(is_block_sort));
        }
    }
    check::<u32>([ROW.block_sort_tiny, ROW.block_sort_small].map(|shapes| shapes.of(4, 0).keys()));
    check::<i64>([ROW.block_sort_tiny, ROW.block_sort_small].map(|shapes| shapes.of(8, 0).keys()));
}

#[test]
fn few_keys_with_values() {
    fn check<K: TestKey>() {
        for with in With::tried().into_iter().skip(1) {
            let (block, runs) = tuning::sort_pairs(size_of::<K>(), with.value_bytes());
            let (block, tolerance) = (block.keys(), ROW.small_rank_tolerance);
            let tile = merge_pass::tile_keys(runs.keys(), runs.items_per_thread, 2, tolerance) as usize;
            // A last tile of one key, which may belong to the tile before, within the tolerance.
            for n in [0, 1, block - 1, block, block + 1, tile + 1] {
                let sorted = sort_random::<K>(&SEVERAL_LAUNCHES, [Keys::Any, Keys::Few][n % 2], n, with);
                assert_eq!(sorted.device.kernels().contains("merge_runs"), n > block, "{n} keys with {with:?}");
            }
        }
    }
    for_all_types!(check());
}

/// Four parts are sorted and merged in pairs. The last one has fewer keys than the others, or none.
#[test]
fn keys_are_sorted_in_parts() {
    fn check<K: TestKey>() {
        let in_parts = Thresholds { whole: 4, ..SEVERAL_LAUNCHES };
        for (with, n) in With::tried().into_iter().flat_map(|with| [5, 6, 4001, N].map(|n| (with, n))) {
            let sorted = sort_random::<K>(&in_parts, [Keys::Any, Keys::Few][n % 2], n, with);
            assert_eq!(sorted.launches("merge_big"), 3, "{n} keys with {with:?}");
        }
    }
    for_all_types!(check());
}

#[test]
fn many_keys_are_merged_with_splits_that_another_kernel_finds() {
    fn check<K: TestKey>() {
        for with in With::tried() {
            let block = match with {
                With::Nothing => tuning::block(size_of::<K>()),
                _ => tuning::sort_pairs(size_of::<K>(), with.value_bytes()).0,
            };
            for n in [block.keys() - 1, block.keys() + 1, N] {
                for kernel in SortKernel::ALL {
                    let seed = fresh_seed();
                    // The other kernel would divide these keys.
                    let thresholds = if kernel == SortKernel::Auto { &WITHOUT_DIVISION } else { &DIVIDED_TWICE };
                    let keys = Keys::Any.random::<K>(n, seed);
                    let sorted = sort::<K>(thresholds, (kernel, order_of(seed)), &keys, with, seed);
                    let mut kernels = HashSet::from(["block_sort"]);
                    kernels.extend(matches!(with, With::Indices(_)).then_some("set_indices"));
                    kernels.extend((n > block.keys()).then_some(["split_runs", "merge_runs"]).into_iter().flatten());
                    assert_eq!(sorted.device.kernels(), kernels, "{n} keys with {with:?}");
                }
            }
        }
    }
    const WITHOUT_DIVISION: Thresholds = Thresholds { merged: [usize::MAX; 2], ..MERGED };
    check::<f32>();
    check::<i64>();
}

#[test]
fn keys_are_sorted_by_all_bits_in_tiles_of_every_shape() {
    fn check<K: TestKey>(numbers: &[usize]) {
        for (i, &n) in numbers.iter().enumerate() {
            // Values and indices are for half of the numbers each.
            for with in
                [With::Nothing, [With::Values(4), With::Indices(4)][i % 2], [With::Indices(8), With::Values(8)][i % 2]]
            {
                let sorted = sort_random::<K>(&BY_ALL_BITS, [Keys::Any, Keys::Cluster, Keys::Few][n % 3], n, with);
                let shape = match with.value_bytes() {
                    0 if n <= 10_000 => "u32small",
                    0 if n <= 18_000 => "u32middle",
                    0 => "u32",
                    4 if n <= 10_000 => "u32v4small",
                    4 if n <= 18_000 => "u32v4middle",
                    4 => "u32v4",
                    _ => "u32v8",
                };
                let launched = HashSet::from([("sort_by_radix", shape.to_owned())]);
                assert_eq!(HashSet::from_iter(sorted.device.launched()), launched, "{n} keys with {with:?}");
            }
        }
    }
    check::<u32>(&[10_000, 10_001, 18_000, 18_001, N]);
    check::<i32>(&[10_001]);
    check::<f32>(&[18_001]);
}

/// More tiles than one pass merges, with values that tell whether equal keys keep their order.
#[test]
fn many_keys_that_two_passes_merge() {
    fn check<K: TestKey>(keys: Keys, with: With) {
        let n = tuning::ROW.block_sort.of(size_of::<K>(), with.value_bytes()).keys() * MAX_RUNS as usize + 1;
        let thresholds = Thresholds { merged: [usize::MAX; 2], detection_keys: usize::MAX, ..MERGED };
        let seed = fresh_seed();
        let how = (SortKernel::MergePath, order_of(seed));
        let sorted = sort::<K>(&thresholds, how, &keys.random(n, seed), with, seed);
        assert_eq!(sorted.launches("merge_runs"), 2, "{n} keys with {with:?}");
    }
    check::<u64>(Keys::Any, With::Nothing);
    check::<f32>(Keys::Few, With::Values(4));
    check::<i64>(Keys::Few, With::Indices(8));
}

/// Keys of 8 bytes are sorted as words that have a key's leading bits and its slot. Here keys differ in few upper bits,
/// and in lower bits that exceed the capacity of such a word. All but one key are close together.
#[test]
fn keys_that_differ_in_what_is_not_packed_keep_their_order() {
    let n = 2 * ROW.block_sort.of(8, 4).keys() + 7;
    for upper_bits in [0u32, 1, 3, 6, 12, 64] {
        for lower_bits in tried([1u32, 2, 5, 12, 13, 14, 20]) {
            let seed = fresh_seed();
            let mut random = StdRng::seed_from_u64(seed);
            let upper: Vec<u64> = (0..1 << upper_bits.min(12)).map(|_| random.random()).collect();
            let mut keys: Vec<u64> = (0..n)
                .map(|_| {
                    let upper = upper[random.random_range(0..upper.len())] >> lower_bits << lower_bits;
                    upper | random.random::<u64>() >> (64 - lower_bits)
                })
                .collect();
            let how = (SortKernel::MergePath, order_of(seed));
            sort::<u64>(&MERGED, how, &keys, With::Values(4), seed);
            for key in &mut keys {
                *key &= (1 << lower_bits) - 1;
            }
            let outlier = random.random_range(0..n);
            keys[outlier] = random.random();
            sort::<u64>(&MERGED, how, &keys, With::Values(8), seed);
        }
    }
}

/// Input made for many bank conflicts, with long searches for where threads begin. The test `bank_conflicts` of
/// `kernels-gpu` counts the conflicts.
#[test]
fn keys_with_many_bank_conflicts_are_merged() {
    fn check<K: TestKey>(thresholds: &Thresholds, n: usize, block: tuning::Tile, runs: tuning::Tile) {
        let seed = fresh_seed();
        let keys = bank_conflicts::conflicting(n, block, runs, size_of::<K>());
        let keys: Vec<K> = keys.into_iter().map(|key| K::from_register(key.into())).collect();
        let how = (SortKernel::MergePath, KeyOrder::ASCENDING);
        let sorted = sort::<K>(thresholds, how, &keys, With::Nothing, seed);
        assert!(sorted.launches("merge_runs") > 0);
    }
    let thresholds = Thresholds { detection_keys: usize::MAX, ..MERGED };
    for bytes in [4, 8] {
        let (block, runs) = (ROW.block_sort.of(bytes, 0), ROW.merge_runs.of(bytes, 0));
        let (small, runs_small) = (ROW.block_sort_small.of(bytes, 0), ROW.merge_runs_small.of(bytes, 0));
        let (n, few) = (3 * block.keys() + 99, (MAX_RUNS as usize + 1) * small.keys());
        if bytes == 4 {
            check::<u32>(&thresholds, n, block, runs);
            check::<u32>(&Thresholds::DEFAULT, few, small, runs_small);
        } else {
            check::<u64>(&thresholds, n, block, runs);
            check::<u64>(&Thresholds::DEFAULT, few, small, runs_small);
        }
    }
}

/// Ordered keys are recognised, and keys with one key out of order are not taken for ordered. Long runs are the most
/// that are merged at once, and one more.
#[test]
fn keys_that_are_nearly_in_order() {
    /// `keys` in `runs` ascending runs: of equal lengths, or of one key each except for the last run.
    fn in_runs<K: TestKey>(mut keys: Vec<K>, runs: usize, is_even: bool) -> Vec<K> {
        let (n, mut begin) = (keys.len(), 0);
        for run in 1..=runs {
            let end = if run == runs { n } else { run * if is_even { n / runs } else { 1 } };
            keys[begin..end].sort_by(K::compare);
            begin = end;
        }
        keys
    }
    fn check<K: TestKey>(keys: Keys, with: With) {
        let thresholds = Thresholds { detection_keys: 0, merged: [usize::MAX; 2], ..MERGED };
        let seed = fresh_seed();
        let check = |input: &[K], what: &str, expected: Option<Order>| {
            let how = (SortKernel::Auto, KeyOrder::ASCENDING);
            let found = sort::<K>(&thresholds, how, input, with, seed).order();
            // Keys of few values have runs by chance, and equal keys on both sides of a step.
            let expected = expected.filter(|_| keys == Keys::Any).unwrap_or(found);
            assert_eq!(found, expected, "{what}, {keys:?} with {with:?}, seed {seed}");
        };
        let any: Vec<K> = keys.random(N, seed);
        let ascending = in_runs(any.clone(), 1, true);
        let tile = ROW.block_sort.of(size_of::<K>(), with.value_bytes()).keys();
        for at in [tile, N - 1] {
            let mut input = ascending.clone();
            input.swap(at - 1, at);
            check(&input, "one out of order", Some(Order::LongRuns));
        }
        check(&ascending.iter().rev().copied().collect::<Vec<K>>(), "reversed", None);
        for runs in [2, 3, MAX_RUNS as usize - 1, MAX_RUNS as usize, MAX_RUNS as usize + 1] {
            let expected = if runs > MAX_RUNS as usize { Order::None } else { Order::LongRuns };
            check(&in_runs(any.clone(), runs, true), &format!("{runs} runs"), Some(expected));
            check(&in_runs(any.clone(), runs, false), &format!("{runs} uneven runs"), None);
        }
    }
    check::<i32>(Keys::Any, With::Nothing);
    check::<f64>(Keys::Any, With::Nothing);
    check::<i32>(Keys::Few, With::Values(4));
    check::<f64>(Keys::Any, With::Values(4));
    check::<i32>(Keys::Any, With::Values(8));
    check::<f64>(Keys::Few, With::Values(8));
}

/// If keys are not divided and not sorted by all bits, runs are detected first. Keys are merged only if they are in no
/// order.
#[test]
fn order_is_detected_before_keys_are_merged() {
    fn check<K: TestKey>(thresholds: &Thresholds) {
        let expected = [
            (Keys::Any, Order::None),
            (Keys::Ascending, Order::Ascending),
            (Keys::Descending, Order::Descending),
            (Keys::Runs, Order::LongRuns),
        ];
        for (keys, expected) in expected {
            for with in tried(With::tried()) {
                let seed = fresh_seed();
                let how = (SortKernel::Auto, KeyOrder::ASCENDING);
                let sorted = sort::<K>(thresholds, how, &keys.random(N, seed), with, seed);
                assert_eq!(sorted.order(), expected, "{keys:?} with {with:?}, seed {seed}");
            }
        }
    }
    check::<u32>(&Thresholds { detection_keys: 0, merged: [usize::MAX; 2], ..MERGED });
    check::<f32>(&Thresholds { detection_keys: 0, merged: [usize::MAX; 2], ..MERGED });
    check::<f64>(&Thresholds { detection_keys: 0, ..MERGED });
}

/// Keys that are nearly in their places are sorted by windows, if there are kernels for their widths. If they are not
/// in order then, another sort continues, also if a key is far from its place, and if bins do not sort a window.
#[test]
fn keys_that_are_nearly_in_their_places() {
    fn check<K: TestKey>(with: With) {
        let thresholds = Thresholds { windows: 0, merged: [0; 2], ..DIVIDED_TWICE };
        let is_compiled = windows::is_compiled(size_of::<K>(), with.value_bytes()) && !matches!(with, With::Indices(_));
        let half = windows::WINDOW / 2;
        for n in [6 * half - 1, 6 * half, 7 * half, 7 * half + 1, N] {
            let sorted = sort_random::<K>(&thresholds, Keys::Displaced, n, with);
            let seed = sorted.device.seed();
            assert_eq!(sorted.windows(), (is_compiled, is_compiled), "{n} keys with {with:?}, seed {seed}");
            assert!(!is_compiled || sorted.order() == Order::Ascending, "{n} keys with {with:?}, seed {seed}");
        }
        assert!(!sort_random::<K>(&thresholds, Keys::Any, N, with).windows().0);
        if !is_compiled {
            return;
        }
        // The sample may hit the key that is far from its place. Then no windows are sorted.
        let is_not_enough = |sorted: &Sorted| sorted.windows() == (true, true) && sorted.order() != Order::Ascending;
        sort_until::<K>((&thresholds, Keys::DisplacedButOne, N, with), "a descent after windows", is_not_enough);
        let is_left = |sorted: &Sorted| sorted.windows() == (true, false) && sorted.order() == Order::None;
        sort_until::<K>((&thresholds, Keys::NestedDisplaced, N, with), "a window that bins do not sort", is_left);
    }
    for with in With::tried() {
        crate::for_tried_types!(tried(0..2), [(u32)(f32)], check(with));
    }
    check::<u64>(With::Nothing);
}

#[test]
fn one_division_is_enough_for_few_keys() {
    fn check<K: TestKey>(thresholds: &Thresholds, numbers: &[usize]) {
        for &n in numbers {
            let expected = [(Keys::Any, Order::Divided), (Keys::Equal, Order::Divided), (Keys::Nested, Order::None)];
            for (keys, expected) in expected {
                let sorted = sort_random::<K>(thresholds, keys, n, With::Nothing);
                assert_eq!(sorted.order(), expected, "{keys:?}, seed {}", sorted.device.seed());
                assert!(sorted.device.kernels().contains("sort_once"));
            }
        }
    }
    fn check_orders<K: TestKey>(thresholds: &Thresholds) {
        for (keys, expected) in [
            (Keys::Ascending, Order::Ascending),
            // A single division ends before detecting these orders would pay.
            (Keys::Descending, Order::None),
            (Keys::Runs, Order::None),
        ] {
            let sorted = sort_random::<K>(thresholds, keys, N, With::Nothing);
            assert_eq!(sorted.order(), expected, "{keys:?}, seed {}", sorted.device.seed());
        }
    }
    for_all_types!(check(&DIVIDED_ONCE, &[10_000]));
    check_orders::<i32>(&DIVIDED_ONCE);
    check_orders::<f64>(&DIVIDED_ONCE);
    check::<u32>(&DIVIDED_ONCE, &[60_000]);
    check::<i64>(&DIVIDED_ONCE, &[60_000]);
    let by_all_bits = Thresholds { merged: [0; 2], ..DIVIDED_ONCE };
    check::<f32>(&by_all_bits, &[10_000, 60_000]);
    check_orders::<f32>(&by_all_bits);
}

/// The fewest keys that may be divided, since one block sorts fewer, and numbers of keys around two full tiles.
#[test]
fn the_fewest_keys_are_divided_and_full_tiles() {
    fn check<K: TestKey>() {
        for (i, with) in With::tried().into_iter().enumerate() {
            let block = ROW.block_sort.of(size_of::<K>(), with.value_bytes()).keys();
            let tile = ROW.divide.of(size_of::<K>(), with.value_bytes()).keys();
            for (j, n) in [block + 1, 2 * tile - 1, 2 * tile, 2 * tile + 1].into_iter().enumerate() {
                let thresholds = [DIVIDED_ONCE, DIVIDED_TWICE, DIVIDED_THREE_TIMES][(i + j) % 3];
                let keys = [Keys::Any, Keys::Few, Keys::Equal, Keys::Any][(i + j) % 4];
                sort_random::<K>(&thresholds, keys, n, with);
            }
        }
    }
    check::<f32>();
    check::<i64>();
}

/// Larger tiles of divisions.
#[test]
fn very_many_keys_are_divided_in_larger_tiles() {
    let thresholds = Thresholds { many_4: 0, ..DIVIDED_TWICE };
    let sorted = sort_random::<i32>(&thresholds, Keys::Any, 60_000, With::Nothing);
    assert_eq!(sorted.order(), Order::Divided);
    assert!(sorted.device.launched().contains(&("divide", "u32many".to_owned())));
}

#[test]
fn keys_are_divided_as_often_as_they_need_to_be() {
    const FEW: (usize, With) = (60_000, With::Nothing);
    const MORE: (usize, With) = (150_000, With::Nothing);
    fn check<K: TestKey>(thresholds: &Thresholds, keys: Keys, (n, with): (usize, With), levels: usize) {
        sort_until::<K>((thresholds, keys, n, with), &format!("{levels} levels"), |sorted| {
            sorted.order() == Order::Divided && sorted.levels() == levels
        });
    }
    check::<u32>(&DIVIDED_TWICE, Keys::Equal, FEW, 1);
    check::<u32>(&DIVIDED_TWICE, Keys::Any, FEW, 2);
    check::<i64>(&DIVIDED_TWICE, Keys::Any, FEW, 2);
    check::<f64>(&DIVIDED_THREE_TIMES, Keys::Any, FEW, 3);
    check::<f32>(&DIVIDED_FOUR_TIMES, Keys::Any, MORE, 2);
    check::<u32>(&DIVIDED_FOUR_TIMES, Keys::Nested, (250_000, With::Nothing), 4);
    // Keys and values of both widths, and each pair of widths with values and with indices.
    for bytes in [4, 8] {
        check::<i32>(&DIVIDED_ONCE, Keys::Any, (FEW.0, With::Values(bytes)), 1);
        check::<u64>(&DIVIDED_ONCE, Keys::Any, (FEW.0, With::Indices(bytes)), 1);
        check::<f32>(&DIVIDED_TWICE, Keys::Any, (FEW.0, With::Indices(bytes)), 3);
        check::<f64>(&DIVIDED_TWICE, Keys::Any, (FEW.0, With::Values(bytes)), 3);
    }
}

#[test]
fn parts_are_of_several_tiles() {
    const THRESHOLDS: Thresholds = Thresholds { several_tiles: (0, 3), ..DIVIDED_TWICE };
    fn check<K: TestKey>(keys: Keys, with: With) {
        let sorted = sort_random::<K>(&THRESHOLDS, keys, 100_000, with);
        assert_eq!(sorted.order(), Order::Divided, "seed {}", sorted.device.seed());
        let tile = ROW.divide.of(size_of::<K>(), with.value_bytes()).keys();
        assert_eq!(sorted.heads()[1] as usize, 100_000usize.div_ceil(3 * tile), "parts, seed {}", sorted.device.seed());
    }
    check::<u32>(Keys::Any, With::Values(4));
    check::<i32>(Keys::Few, With::Indices(8));
    check::<f64>(Keys::Any, With::Indices(4));
    check::<u64>(Keys::Any, With::Values(8));
}

#[test]
fn digits_of_two_levels_are_counted_at_once() {
    fn check<K: TestKey>() {
        for thresholds in [DIVIDED_TWICE, DIVIDED_THREE_TIMES] {
            let thresholds = Thresholds { counted_twice: 0, ..thresholds };
            let sorted = sort_random::<K>(&thresholds, Keys::Any, 60_000, With::Nothing);
            let [_, _, is_twice, overflows, _] = sorted.left();
            assert_eq!((sorted.order(), is_twice, overflows), (Order::Divided, 1, 0), "seed {}", sorted.device.seed());
        }
    }
    check::<u32>();
    check::<i64>();
}

#[test]
fn long_buckets_are_sorted_by_larger_blocks() {
    let sorted = sort_random::<i32>(&DIVIDED_THREE_TIMES, Keys::Any, 60_000, With::Nothing);
    assert!(sorted.order() == Order::Divided && sorted.left()[4] > 0, "seed {}", sorted.device.seed());
}

/// A frequent value and the keys close to it remain after two divisions. All blocks divide them by that value.
#[test]
fn frequent_values_are_sorted() {
    // Half of the keys are more than a bucket has.
    const MANY: usize = 60_000;
    fn check<K: TestKey>() {
        sort_until::<K>((&DIVIDED_TWICE, Keys::Frequent, MANY, With::Nothing), "a rest", |sorted| {
            sorted.order() == Order::Divided && sorted.left()[0] > 0
        });
        for with in tried([With::Nothing, With::Values(4), With::Indices(8)]) {
            // With values, there are three divisions, which may leave no rest.
            sort_random::<K>(&DIVIDED_TWICE, Keys::Frequent, MANY, with);
            sort_random::<K>(&DIVIDED_TWICE, Keys::Consecutive, MANY, with);
        }
    }
    check::<u32>();
    check::<f64>();
}

/// More keys than a bucket has are too close together for the last level to tell them apart.
#[test]
fn rests_are_sorted() {
    fn check<K: TestKey>(with: With) {
        sort_until::<K>((&DIVIDED_TWICE, Keys::Cluster, 150_000, with), "a rest", |sorted| {
            sorted.order() == Order::Divided && sorted.left()[0] > 0
        });
    }
    check::<u32>(With::Nothing);
    check::<i64>(With::Nothing);
    check::<f32>(With::Values(4));
    check::<f64>(With::Indices(8));
}

/// Keys that are too uneven, or in order, are given up by the division. The launches beside it sort them.
#[test]
fn what_is_not_divided_is_merged_or_sorted_by_all_bits() {
    fn check<K: TestKey>(thresholds: &Thresholds, with: With) {
        let expected = [
            (Keys::Nested, Order::None),
            (Keys::Ascending, Order::Ascending),
            (Keys::Descending, Order::Descending),
            (Keys::Runs, Order::LongRuns),
        ];
        for (keys, expected) in expected {
            // A sample may miss the steps between runs. If it does not, keys are divided.
            sort_until::<K>((thresholds, keys, N, with), &format!("{expected:?}"), |sorted| {
                let order = sorted.order();
                let may_be_divided = keys == Keys::Runs;
                assert!(may_be_divided || order != Order::Divided, "{keys:?}, seed {}", sorted.device.seed());
                order == expected
            });
        }
    }
    let by_all_bits = Thresholds { merged: [0; 2], ..DIVIDED_TWICE };
    for with in tried([With::Nothing, With::Values(4), With::Indices(8)]) {
        check::<u32>(&DIVIDED_TWICE, with);
    }
    for with in tried([With::Nothing, With::Indices(4), With::Values(8)]) {
        check::<f32>(&by_all_bits, with);
    }
    for with in tried([With::Nothing, With::Indices(4), With::Values(8)]) {
        check::<i64>(&DIVIDED_THREE_TIMES, with);
    }
}

/// A single division that keeps the order of keys is given up after counting, if some digits have too many keys. The
/// launches beside it must not have found before that there is nothing to do.
#[test]
fn a_single_division_with_values_is_given_up_before_keys_are_merged() {
    fn check<K: TestKey>(with: With) {
        for _ in 0..4 {
            let sorted = sort_random::<K>(&DIVIDED_ONCE, Keys::Few, 60_000, with);
            assert_eq!(sorted.order(), Order::None, "seed {}", sorted.device.seed());
        }
    }
    check::<u64>(With::Values(4));
    check::<f32>(With::Indices(8));
}
