//! Sorts, merges and set operations in a user's own order, against the standard library's stable sort.

use crate::common::{self, fresh_random, fresh_seed, offsets_of};
use crate::sets::expected;
use bytemuck::{Pod, Zeroable};
use kernels_gpu::own::merge_groups::Groups;
use kernels_gpu::own::set_operation::set_tile_items;
use kernels_gpu::own::tile::tile_items;
use kernels_gpu::own::{Compare, Kernels, Key, kernels};
use merge_host::launches::Operation;
use merge_host::launches::emulated::own::{merge, merge_ragged, set_operation, sort, sort_with};
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::own::{Sets, by_bits};
use merge_host::launches::{Address, Arrays, Queue};
use merge_host::{Error, SetOperation};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cmp::Ordering;
use std::fmt::Debug;

/// 20 bytes: 4 are compared first, and then the other 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    date: u32,
    name: [u8; 16],
}

#[derive(Clone, Copy)]
struct ByDateThenName;

impl Compare for ByDateThenName {
    type Item = Entry;
    fn is_before(a: &Entry, b: &Entry) -> bool {
        (a.date, a.name) < (b.date, b.name)
    }
}

impl Entry {
    /// An entry of a date, with a number that [`ByDate`] does not compare.
    fn of_date(date: u32, number: usize) -> Self {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&(number as u64).to_ne_bytes());
        Self { date, name }
    }
}

#[derive(Clone, Copy)]
struct ByDate;

impl Compare for ByDate {
    type Item = Entry;
    fn is_before(a: &Entry, b: &Entry) -> bool {
        a.date < b.date
    }
}

/// 64 bytes: 4 are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Wide([u32; 16]);

impl Key for Wide {
    type Bits = u32;
    fn to_ordered(self) -> u32 {
        self.0[3]
    }
}

/// 16 bytes: 8 are compared, as a signed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Day {
    number: u64,
    rest: [u32; 2],
}

impl Key for Day {
    type Bits = u64;
    fn to_ordered(self) -> u64 {
        self.number ^ 1 << 63
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Tag([u8; 16]);

impl Key for Tag {
    type Bits = u128;
    fn to_ordered(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

#[derive(Clone, Copy)]
struct Backwards;

impl Compare for Backwards {
    type Item = Tag;
    fn is_before(a: &Tag, b: &Tag) -> bool {
        Tag::is_before(b, a)
    }
}

/// Odd numbers before even ones.
#[derive(Clone, Copy)]
struct OddFirst;

impl Compare for OddFirst {
    type Item = u32;
    fn is_before(a: &u32, b: &u32) -> bool {
        a % 2 > b % 2
    }
}

kernels! {
    entry: ByDateThenName;
    entry_u32: ByDateThenName, values u32;
    by_date: ByDate;
    by_date_u32: ByDate, values u32;
    wide: Wide;
    wide_wide: Wide, values Wide;
    day: Day;
    day_u32: Day, values u32;
    tag: Tag;
    tag_back: Backwards;
    tag_back_u64: Backwards, values u64;
    odd_first: OddFirst;
    odd_first_u32: OddFirst, values u32;
}

/// A sort by bits of any number of items.
struct ByBits(Arrays);

impl<C: Kernels<V>, V: Pod + Send + Sync> Operation<(C, V)> for ByBits {
    fn workspace_bytes(&self) -> usize {
        by_bits::workspace_bytes::<C, V>(self.0.len)
    }

    unsafe fn launch(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        // SAFETY: `Operation::launch` requires valid arrays and `workspace_bytes` of workspace.
        unsafe { by_bits::sort::<C, V>(queue, self.0, workspace) }
    }
}

fn order<C: Compare>(a: &C::Item, b: &C::Item) -> Ordering {
    match (C::is_before(a, b), C::is_before(b, a)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// What the tests need of values.
trait Value: Pod + Send + Sync + Debug + PartialEq {
    fn number(i: usize) -> Self;
}

impl Value for u32 {
    fn number(i: usize) -> Self {
        i as u32
    }
}

impl Value for u64 {
    fn number(i: usize) -> Self {
        i as u64
    }
}

impl Value for Wide {
    fn number(i: usize) -> Self {
        Self([i as u32; 16])
    }
}

/// Items and their values.
type Pairs<C, V> = (Vec<<C as Compare>::Item>, Vec<V>);

/// `n` items, whose values are their numbers.
fn numbered<C: Compare, V: Value>(n: usize, mut item: impl FnMut() -> C::Item) -> Pairs<C, V> {
    (0..n).map(|i| (item(), V::number(i))).unzip()
}

/// The items and values with each segment between two offsets sorted, by the standard library's stable sort.
fn sorted<C: Compare, V: Value>((items, values): &Pairs<C, V>, offsets: &[usize]) -> Pairs<C, V> {
    let mut indices: Vec<usize> = (0..items.len()).collect();
    for ends in offsets.windows(2) {
        indices[ends[0]..ends[1]].sort_by(|&i, &j| order::<C>(&items[i], &items[j]));
    }
    indices.into_iter().map(|i| (items[i], values[i])).unzip()
}

/// Sorts with and without values, and merges, and compares with the standard library's stable sort, for numbers of
/// items at which kernels take other paths.
fn check<C: Kernels + Kernels<V>, V: Value>(item: impl Fn(&mut StdRng) -> C::Item)
where
    C::Item: Debug + PartialEq,
{
    let (seed, mut random) = (fresh_seed(), fresh_random());
    let tile = tile_items::<C::Item, V>();
    for n in [0, 1, 2, 6, 7, 8, 100, tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 3, 3 * tile - 1, 5 * tile + 17] {
        let pairs = numbered::<C, V>(n, || item(&mut random));
        let expected = sorted::<C, V>(&pairs, &[0, n]);
        let mut items = pairs.0.clone();
        let device = sort::<C, ()>(&mut items, &mut [], false, seed);
        assert!(items == expected.0, "{n} items, seed {seed}");
        assert_eq!(device.kernels().contains("own_merge_groups"), n > tile_items::<C::Item, ()>());
        let mut found = pairs.clone();
        sort::<C, V>(&mut found.0, &mut found.1, false, seed);
        assert!(found == expected, "{n} pairs, seed {seed}");
        for m in [0, n / 3, n] {
            let runs = sorted::<C, V>(&pairs, &[0, m, n]);
            let ((a, b), (of_a, of_b)) = (runs.0.split_at(m), runs.1.split_at(m));
            let mut found = (vec![C::Item::zeroed(); n], vec![V::zeroed(); n]);
            let groups = Groups::of_two(m, n - m);
            merge::<C, V>([(a, of_a), (b, of_b)], (&mut found.0, &mut found.1), groups, seed);
            assert!(found == expected, "{m} of {n} pairs, seed {seed}");
            let mut out = vec![C::Item::zeroed(); n];
            merge::<C, ()>([(a, &[]), (b, &[])], (&mut out, &mut []), groups, seed);
            assert!(out == expected.0, "{m} of {n} items, seed {seed}");
        }
    }
}

/// Sorts by bits, of any number of items, and compares with the standard library's stable sort.
fn check_by_bits<C: Kernels + Kernels<V>, V: Value>(n: usize, item: impl Fn(&mut StdRng) -> C::Item)
where
    C::Item: Debug + PartialEq,
{
    let (seed, mut random) = (fresh_seed(), fresh_random());
    let mut pairs = numbered::<C, V>(n, || item(&mut random));
    let expected = sorted::<C, V>(&pairs, &[0, n]);
    let mut items = pairs.0.clone();
    sort_with::<(C, ()), _, _, _>(&mut items, &mut [(); 0], seed, ByBits);
    assert!(items == expected.0, "{n} items, seed {seed}");
    let device = sort_with::<(C, V), _, _, _>(&mut pairs.0, &mut pairs.1, seed, ByBits);
    assert!(pairs == expected, "{n} pairs, seed {seed}");
    assert!(!device.kernels().contains("own_sort_tiles"));
}

#[test]
fn keys_are_sorted_by_their_bits() {
    let wide = |random: &mut StdRng, below: u32| {
        let key = random.random_range(0..below);
        Wide(std::array::from_fn(|i| if i == 3 { key } else { random.random() }))
    };
    let day = |random: &mut StdRng, far: i64| {
        let number = random.random_range(-far..=far);
        Day { number: number as u64, rest: random.random() }
    };
    for n in [0, 1, 2, 127, 128, 129, 1000, 5001] {
        for below in [1, 9, u32::MAX] {
            check_by_bits::<Wide, Wide>(n, |random| wide(random, below));
            check_by_bits::<Day, u32>(n, |random| day(random, i64::from(below) << 20));
        }
    }
    // For this many items, the library sorts numbers by other kernels.
    check_by_bits::<Day, u32>(40_001, |random| day(random, 100));
    check_by_bits::<Wide, Wide>(40_001, |random| wide(random, u32::MAX));
}

#[test]
fn many_keys_are_sorted_by_their_bits_and_all_else_by_merges() {
    fn launched<C: Kernels>(n: usize) -> bool {
        let mut items: Vec<C::Item> = vec![C::Item::zeroed(); n];
        let device = sort::<C, ()>(&mut items, &mut [], false, fresh_seed());
        let kernels = device.kernels();
        assert_ne!(kernels.contains("own_gather_items"), kernels.contains("own_sort_tiles"), "{kernels:?}");
        kernels.contains("own_gather_items")
    }
    assert!(!launched::<Day>(by_bits::FEWEST_ITEMS - 1) && launched::<Day>(by_bits::FEWEST_ITEMS));
    assert!(!launched::<OddFirst>(by_bits::FEWEST_ITEMS) && !launched::<Tag>(by_bits::FEWEST_ITEMS));
    assert!(by_bits::is_chosen::<Wide>(1 << 32) && !by_bits::is_chosen::<Wide>((1 << 32) + 1));
}

#[test]
fn an_argsort_of_many_keys_sets_indices() {
    let n = by_bits::FEWEST_ITEMS + 1;
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let days: Vec<Day> = (0..n).map(|_| Day { number: random.random_range(0..50), rest: [0; 2] }).collect();
    let mut expected: Vec<u32> = (0..n as u32).collect();
    expected.sort_by_key(|&i| days[i as usize].number);
    let (mut sorted, mut indices) = (days.clone(), vec![u32::MAX; n]);
    sort::<Day, u32>(&mut sorted, &mut indices, true, seed);
    assert!(indices == expected, "seed {seed}");
    assert!(sorted.iter().zip(&expected).all(|(day, &i)| *day == days[i as usize]), "seed {seed}");
}

#[test]
fn structs_by_two_fields() {
    check::<ByDateThenName, u32>(|random| {
        let name = std::array::from_fn(|i| if i < 2 { random.random_range(b'a'..b'd') } else { i as u8 });
        Entry { date: random.random_range(0..9), name }
    });
}

#[test]
fn the_longest_items_and_values() {
    check::<Wide, Wide>(|random| Wide(std::array::from_fn(|i| if i == 3 { random.random() } else { i as u32 })));
}

#[test]
fn sixteen_bytes_backwards() {
    check::<Backwards, u64>(|random| Tag(random.random()));
}

#[test]
fn an_order_in_which_many_are_equal() {
    check::<OddFirst, u32>(|random| random.random());
    check::<OddFirst, u32>(|_| 4);
}

/// All set operations on two sorted arrays, with and without values, against their definition.
fn check_sets_of<C: Kernels + Kernels<V>, V: Value>([a, b]: [&[C::Item]; 2], seed: u64)
where
    C::Item: Debug + PartialEq,
{
    let values: Vec<V> = (0..a.len() + b.len()).map(V::number).collect();
    let (of_a, of_b) = values.split_at(a.len());
    for operation in SetOperation::ALL {
        let kept = expected(operation, a, b, order::<C>);
        let expected: Pairs<C, V> =
            kept.into_iter().map(|i| (if i < a.len() { a[i] } else { b[i - a.len()] }, values[i])).unzip();
        let at = || format!("{operation} of {} and {}, seed {seed}", a.len(), b.len());
        let ((found, _), _) = set_operation::<C, ()>(operation, [(a, &[]), (b, &[])], seed);
        assert!(found == expected.0, "items alone: {}", at());
        let (found, device) = set_operation::<C, V>(operation, [(a, of_a), (b, of_b)], seed);
        assert!(found == expected, "items and values: {}", at());
        assert_eq!(device.kernels().contains("own_combine_sets"), a.len() + b.len() > 0);
    }
}

fn check_sets<C: Kernels + Kernels<V>, V: Value>(item: impl Fn(&mut StdRng) -> C::Item)
where
    C::Item: Debug + PartialEq,
{
    let (seed, mut random) = (fresh_seed(), fresh_random());
    let tile = set_tile_items::<C::Item, V>();
    for total in [0, 1, 2, 33, tile - 1, tile, tile + 1, tile + 2, 2 * tile, 3 * tile + 1, 4 * tile + 77] {
        for m in [0, total / 3, total / 2, total] {
            let [a, b] = [m, total - m].map(|len| {
                let mut items: Vec<C::Item> = (0..len).map(|_| item(&mut random)).collect();
                items.sort_by(order::<C>);
                items
            });
            check_sets_of::<C, V>([&a, &b], seed);
        }
    }
}

#[test]
fn sets_of_structs() {
    let entry = |date: u32, kind: u8| Entry { date, name: std::array::from_fn(|i| if i == 0 { kind } else { 7 }) };
    check_sets::<ByDateThenName, u32>(|random| entry(random.random_range(0..50), random.random()));
    check_sets::<ByDateThenName, u32>(|random| entry(random.random_range(0..3), 0));
}

/// A thread has one item, which may be the second item of a pair.
#[test]
fn sets_of_the_longest_items_and_values() {
    let wide = |key: u32, rest: u32| Wide(std::array::from_fn(|i| if i == 3 { key } else { rest }));
    for different in [1, 3, 60, 10_000] {
        check_sets::<Wide, Wide>(|random| wide(random.random_range(0..different), random.random()));
    }
}

/// Equal items differ: the result has the items that the C++ standard's algorithms keep.
#[test]
fn sets_in_which_equal_items_differ() {
    check_sets::<OddFirst, u32>(|random| random.random());
    check_sets::<OddFirst, u32>(|random| 2 * random.random_range(0..1000));
    check_sets::<Backwards, u64>(|random| Tag([random.random_range(0..9); 16]));
}

#[test]
fn groups_of_equal_items_that_span_tiles_are_paired() {
    for round in 0..20 {
        let mut random = fresh_random();
        let mut groups = |most: usize| {
            let lengths = [(); 5].map(|()| random.random_range(0..=most));
            let groups = (0..).zip(lengths).flat_map(|(key, len)| (0..len).map(move |i| Entry::of_date(key, i)));
            groups.collect::<Vec<Entry>>()
        };
        let [a, b] = [groups(800 + 50 * round), groups(if round % 2 == 0 { 1500 } else { 20 })];
        check_sets_of::<ByDate, u32>([&a, &b], fresh_seed());
    }
}

#[test]
fn sets_that_are_not_sorted_are_read_and_written_inside_their_arrays() {
    let (seed, mut random) = (fresh_seed(), fresh_random());
    for different in [2, 5, u32::MAX] {
        let mut items = |len: usize| -> Vec<u32> { (0..len).map(|_| random.random_range(0..different)).collect() };
        let (a, b) = (items(3000), items(5000));
        for operation in SetOperation::ALL {
            let device = Device::new(seed);
            let of = [&a, &b].map(|items| common::Pairs::<u32, u32>::of(&device, items, 0).arrays());
            let out = common::Pairs::<u32, u32>::uninit(&device, operation.most_keys(a.len(), b.len())).arrays();
            let count = address(device.uninit::<u64>(1));
            // The emulator would report an access outside of the arrays.
            device.run::<(OddFirst, u32)>(&Sets { operation, of, out, count });
        }
    }
}

#[test]
fn batches() {
    let (seed, mut random) = (fresh_seed(), fresh_random());
    for (problems, m, n) in [(0, 3, 4), (1, 0, 5), (7, 1, 1), (40, 13, 0), (5, 400, 700), (3, 896, 896)] {
        let [(a, _), (b, _)] = [m, n].map(|len| {
            let runs = numbered::<OddFirst, u32>(problems * len, || random.random());
            sorted::<OddFirst, u32>(&runs, &offsets_of(&vec![len; problems]))
        });
        let mut expected = Vec::new();
        for problem in 0..problems {
            let mut both = [&a[problem * m..][..m], &b[problem * n..][..n]].concat();
            both.sort_by(order::<OddFirst>);
            expected.extend(both);
        }
        let mut out = vec![0; expected.len()];
        merge::<OddFirst, ()>([(&a, &[]), (&b, &[])], (&mut out, &mut []), Groups::of_batch(problems, m, n), seed);
        assert!(out == expected, "{problems} problems of {m} and {n}, seed {seed}");
    }
}

/// Merges pairs of runs of the given lengths, with and without values, and compares with the standard library's stable
/// sort of each pair.
fn check_ragged<C: Kernels + Kernels<V>, V: Value>(lengths: &[[usize; 2]], item: impl Fn(&mut StdRng) -> C::Item)
where
    C::Item: Debug + PartialEq,
{
    let (seed, mut random) = (fresh_seed(), fresh_random());
    // The runs of each pair, one after the other.
    let of_runs = offsets_of(lengths.as_flattened());
    let of_pairs: Vec<usize> = of_runs.iter().copied().step_by(2).collect();
    let n = of_pairs[lengths.len()];
    let both = sorted::<C, V>(&numbered::<C, V>(n, || item(&mut random)), &of_runs);
    let expected = sorted::<C, V>(&both, &of_pairs);
    let offsets = [0, 1].map(|side| offsets_of(&lengths.iter().map(|lengths| lengths[side]).collect::<Vec<_>>()));
    let [a, b]: [Pairs<C, V>; 2] = [0, 1].map(|side| {
        let runs = of_runs.windows(2).skip(side).step_by(2).flat_map(|ends| ends[0]..ends[1]);
        runs.map(|i| (both.0[i], both.1[i])).unzip()
    });
    let mut found = (vec![C::Item::zeroed(); n], vec![V::zeroed(); n]);
    let of = [((&a.0[..], &a.1[..]), &offsets[0][..]), ((&b.0[..], &b.1[..]), &offsets[1][..])];
    merge_ragged::<C, V>(of, (&mut found.0, &mut found.1), seed);
    assert!(found == expected, "{} problems of {n} pairs, seed {seed}", lengths.len());
    let mut out = vec![C::Item::zeroed(); n];
    merge_ragged::<C, ()>(of.map(|((items, _), offsets)| ((items, &[][..]), offsets)), (&mut out, &mut []), seed);
    assert!(out == expected.0, "{} problems of {n} items, seed {seed}", lengths.len());
}

/// `count` pairs of lengths of up to `most` items.
fn any_lengths(count: usize, most: usize) -> Vec<[usize; 2]> {
    let mut random = fresh_random();
    (0..count).map(|_| [random.random_range(0..=most), random.random_range(0..=most)]).collect()
}

#[test]
fn pairs_of_runs_of_any_lengths_are_merged() {
    let tile = tile_items::<u32, u32>();
    let shapes = [
        vec![],
        vec![[0, 0]],
        vec![[0, 0]; 1000],
        vec![[1, 0], [0, 1], [1, 1]],
        vec![[tile, 0], [0, tile], [tile / 2, tile - tile / 2]],
        vec![[tile - 1, 1], [0, 0], [3, tile + 5], [0, 0]],
        vec![[0, 1]; 2 * tile + 3],
        [vec![[0, 0]; 3000], vec![[5, 2 * tile]], vec![[0, 0]; 3000], vec![[1, 1]]].concat(),
        any_lengths(700, 2),
        any_lengths(60, 70),
        any_lengths(4, 2000),
    ];
    for lengths in &shapes {
        check_ragged::<OddFirst, u32>(lengths, |random| random.random());
    }
    for lengths in [any_lengths(50, 60), any_lengths(2, 900)] {
        check_ragged::<Wide, Wide>(&lengths, |random| Wide(std::array::from_fn(|_| random.random_range(0..20))));
        let entry = |random: &mut StdRng| Entry::of_date(random.random_range(0..30), random.random_range(0..9));
        check_ragged::<ByDateThenName, u32>(&lengths, entry);
    }
}

/// The emulator would report an access outside of the arrays.
#[test]
fn runs_that_are_not_sorted_are_read_and_written_inside_their_arrays() {
    let (seed, mut random) = (fresh_seed(), fresh_random());
    let mut items = |len: usize| -> Vec<u32> { (0..len).map(|_| random.random()).collect() };
    for lengths in [any_lengths(3000, 3), any_lengths(90, 100), any_lengths(3, 3000)] {
        let offsets = [0, 1].map(|side| offsets_of(&lengths.iter().map(|lengths| lengths[side]).collect::<Vec<_>>()));
        let [a, b] = offsets.each_ref().map(|offsets| items(offsets[lengths.len()]));
        let mut out = vec![0; a.len() + b.len()];
        let of = [((&a[..], &[][..]), &offsets[0][..]), ((&b[..], &[][..]), &offsets[1][..])];
        merge_ragged::<OddFirst, ()>(of, (&mut out, &mut []), seed);
    }
    let (a, b) = (items(3000), items(5000));
    let groups = Groups::of_two(a.len(), b.len());
    merge::<OddFirst, ()>([(&a, &[]), (&b, &[])], (&mut vec![0; 8000], &mut []), groups, seed);
}
