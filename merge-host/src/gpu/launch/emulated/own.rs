//! Sorts, merges and set operations in a user's own order, of slices.

use super::super::own::{Merge, Ragged, Sets, Sort};
use super::{Arrays, Device, address};
use crate::SetOperation;
use crate::gpu::operation::Operation;
use bytemuck::Pod;
use cuda_std::emulator::Buffer;
use kernels_gpu::own::Kernels;
use kernels_gpu::own::merge_groups::Groups;

/// Items and values in the device's memory.
struct Pairs {
    items: Buffer<u32>,
    values: Buffer<u32>,
    len: usize,
    value_bytes: usize,
}

impl Pairs {
    fn of<T: Pod, V: Pod>(device: &Device, items: &[T], values: &[V]) -> Self {
        assert!(size_of::<V>() == 0 || items.len() == values.len(), "there are as many values as items");
        let value_bytes = size_of::<V>();
        Self { items: array_of(device, items), values: array_of(device, values), len: items.len(), value_bytes }
    }

    fn uninit<T: Pod, V: Pod>(device: &Device, len: usize) -> Self {
        let words = |bytes: usize| len * bytes / size_of::<u32>();
        let (items, value_bytes) = (device.uninit(words(size_of::<T>())), size_of::<V>());
        Self { items, values: device.uninit(words(value_bytes)), len, value_bytes }
    }

    fn at(&self) -> Arrays {
        let (keys, values) = (address(self.items), address(self.values));
        Arrays { keys, values, len: self.len, value_bytes: self.value_bytes }
    }

    fn read<T: Pod, V: Pod>(&self, device: &Device, items: &mut [T], values: &mut [V]) {
        read_to(device, self.items, items);
        read_to(device, self.values, values);
    }

    /// The first `count` items and values, which have to be initialised. Later ones may be uninitialised.
    fn read_first<T: Pod, V: Pod>(&self, device: &Device, count: usize) -> (Vec<T>, Vec<V>) {
        (first_of(device, self.items, count), first_of(device, self.values, count))
    }
}

fn array_of<T: Pod>(device: &Device, elements: &[T]) -> Buffer<u32> {
    if size_of::<T>() == 0 {
        return device.uninit(0);
    }
    device.array(&bytemuck::pod_collect_to_vec::<T, u32>(elements))
}

fn read_to<T: Pod>(device: &Device, from: Buffer<u32>, to: &mut [T]) {
    if size_of::<T>() > 0 {
        bytemuck::cast_slice_mut::<T, u8>(to).copy_from_slice(bytemuck::cast_slice(&device.read(from)));
    }
}

fn first_of<T: Pod>(device: &Device, from: Buffer<u32>, count: usize) -> Vec<T> {
    let words = device.words(address(from), count * size_of::<T>() / size_of::<u32>());
    let mut first = vec![T::zeroed(); count];
    if size_of::<T>() > 0 {
        bytemuck::cast_slice_mut::<T, u8>(&mut first).copy_from_slice(bytemuck::cast_slice(&words));
    }
    first
}

/// Sorts `items` with `values`, or alone if values have no bytes, or with indices as values if it `indexes`. Returns
/// the device.
pub(in crate::gpu) fn sort<C: Kernels<V>, V: Pod + Send + Sync>(
    items: &mut [C::Item],
    values: &mut [V],
    indexes: bool,
    seed: u64,
) -> Device {
    sort_with::<(C, V), _, _, _>(items, values, seed, |at| Sort { at, indexes })
}

/// Sorts by the operation that `make` builds.
fn sort_with<K, T: Pod, V: Pod, O: Operation<K>>(
    items: &mut [T],
    values: &mut [V],
    seed: u64,
    make: impl FnOnce(Arrays) -> O,
) -> Device {
    let device = Device::new(seed);
    let pairs = Pairs::of(&device, items, values);
    device.run(&make(pairs.at()));
    pairs.read(&device, items, values);
    device
}

/// A sorted run: items and their values, or no values if these have no bytes.
type Run<'a, T, V> = (&'a [T], &'a [V]);

/// Merges the runs of `groups`, and returns the device.
pub(in crate::gpu) fn merge<C: Kernels<V>, V: Pod + Send + Sync>(
    [a, b]: [Run<'_, C::Item, V>; 2],
    (out, out_values): (&mut [C::Item], &mut [V]),
    groups: Groups,
    seed: u64,
) -> Device {
    let device = Device::new(seed);
    let runs = [a, b].map(|(items, values)| Pairs::of(&device, items, values).at());
    let merged = Pairs::uninit::<C::Item, V>(&device, out.len());
    device.run::<(C, V)>(&Merge { runs, out: merged.at(), groups });
    merged.read(&device, out, out_values);
    device
}

/// Sorted runs, one after the other, and their offsets.
type RaggedRuns<'a, T, V> = (Run<'a, T, V>, &'a [usize]);

/// Merges pairs of runs, and returns the device.
pub(in crate::gpu) fn merge_ragged<C: Kernels<V>, V: Pod + Send + Sync>(
    [a, b]: [RaggedRuns<'_, C::Item, V>; 2],
    (out, out_values): (&mut [C::Item], &mut [V]),
    seed: u64,
) -> Device {
    let device = Device::new(seed);
    let problems = a.1.len() - 1;
    let of = [a, b].map(|((items, values), offsets)| {
        (Pairs::of(&device, items, values).at(), address(device.array(bytemuck::cast_slice::<usize, u64>(offsets))))
    });
    let merged = Pairs::uninit::<C::Item, V>(&device, out.len());
    device.run::<(C, V)>(&Ragged { runs: of, problems, out: merged.at() });
    merged.read(&device, out, out_values);
    device
}

/// The items and values of the result of the operation on `a` and `b`, and the device.
pub(in crate::gpu) fn set_operation<C: Kernels<V>, V: Pod + Send + Sync>(
    operation: SetOperation,
    [a, b]: [Run<'_, C::Item, V>; 2],
    seed: u64,
) -> ((Vec<C::Item>, Vec<V>), Device) {
    let device = Device::new(seed);
    let of = [a, b].map(|(items, values)| Pairs::of(&device, items, values).at());
    let out = Pairs::uninit::<C::Item, V>(&device, operation.most_keys(a.0.len(), b.0.len()));
    let count = device.uninit::<u64>(1);
    device.run::<(C, V)>(&Sets { operation, of, out: out.at(), count: address(count) });
    let kept = usize::try_from(device.read(count)[0]).expect("there are no more items than in both arrays");
    (out.read_first(&device, kept), device)
}

#[cfg(test)]
mod tests {
    use super::super::super::own::by_bits;
    use super::super::keys::fresh_seed;
    use super::super::sets::expected;
    use super::super::{Address, Queue};
    use super::*;
    use crate::Error;
    use bytemuck::Zeroable;
    use kernels_gpu::own::set_operation::set_tile_items;
    use kernels_gpu::own::tile::tile_items;
    use kernels_gpu::own::{Compare, Key, kernels};
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

        unsafe fn launch(&self, queue: &impl Queue, workspace: Address) -> Result<(), Error> {
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

    /// Numbers of items at which kernels take other paths.
    fn sizes(tile: usize) -> Vec<usize> {
        vec![0, 1, 2, 6, 7, 8, 100, tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 3, 3 * tile - 1, 5 * tile + 17]
    }

    /// Sorts with and without values, and merges, and compares with the standard library's stable sort.
    fn check<C: Kernels + Kernels<V>, V: Pod + Send + Sync + Debug + PartialEq>(
        item: impl Fn(&mut StdRng) -> C::Item,
        value: impl Fn(usize) -> V,
    ) where
        C::Item: Debug + PartialEq,
    {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let tile = tile_items::<C::Item, V>();
        for n in sizes(tile) {
            let items: Vec<C::Item> = (0..n).map(|_| item(&mut random)).collect();
            let pairs: Vec<(C::Item, V)> = items.iter().copied().zip((0..).map(&value)).collect();
            let mut expected = pairs.clone();
            expected.sort_by(|a, b| order::<C>(&a.0, &b.0));
            let (expected, expected_values): (Vec<_>, Vec<_>) = expected.into_iter().unzip();

            let mut sorted = items.clone();
            let device = sort::<C, ()>(&mut sorted, &mut [], false, seed);
            assert!(sorted == expected, "{n} items, seed {seed}");
            assert_eq!(device.kernels().contains("own_merge_groups"), n > tile_items::<C::Item, ()>());
            let (mut sorted, mut values): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            sort::<C, V>(&mut sorted, &mut values, false, seed);
            assert!(sorted == expected && values == expected_values, "{n} pairs, seed {seed}");

            for m in [0, n / 3, n] {
                let (mut a, mut b) = (pairs[..m].to_vec(), pairs[m..].to_vec());
                a.sort_by(|a, b| order::<C>(&a.0, &b.0));
                b.sort_by(|a, b| order::<C>(&a.0, &b.0));
                let (a, b): ((Vec<_>, Vec<_>), (Vec<_>, Vec<_>)) = (a.into_iter().unzip(), b.into_iter().unzip());
                let (mut out, mut values) = (vec![C::Item::zeroed(); n], vec![V::zeroed(); n]);
                let groups = Groups::of_two(m, n - m);
                merge::<C, V>([(&a.0, &a.1), (&b.0, &b.1)], (&mut out, &mut values), groups, seed);
                assert!(out == expected && values == expected_values, "{m} of {n} pairs, seed {seed}");
                let mut out = vec![C::Item::zeroed(); n];
                merge::<C, ()>([(&a.0, &[]), (&b.0, &[])], (&mut out, &mut []), groups, seed);
                assert!(out == expected, "{m} of {n} items, seed {seed}");
            }
        }
    }

    /// Sorts by bits, of any number of items, and compares with the standard library's stable sort.
    fn check_by_bits<C: Kernels + Kernels<V>, V: Pod + Send + Sync + Debug + PartialEq>(
        n: usize,
        item: impl Fn(&mut StdRng) -> C::Item,
        value: impl Fn(usize) -> V,
    ) where
        C::Item: Debug + PartialEq,
    {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let items: Vec<C::Item> = (0..n).map(|_| item(&mut random)).collect();
        let values: Vec<V> = (0..n).map(&value).collect();
        let mut expected: Vec<(C::Item, V)> = items.iter().copied().zip(values.iter().copied()).collect();
        expected.sort_by(|a, b| order::<C>(&a.0, &b.0));
        let (expected, expected_values): (Vec<_>, Vec<_>) = expected.into_iter().unzip();

        let mut sorted = items.clone();
        sort_with::<(C, ()), _, _, _>(&mut sorted, &mut [(); 0], seed, ByBits);
        assert!(sorted == expected, "{n} items, seed {seed}");
        let (mut sorted, mut moved) = (items, values);
        let device = sort_with::<(C, V), _, _, _>(&mut sorted, &mut moved, seed, ByBits);
        assert!(sorted == expected && moved == expected_values, "{n} pairs, seed {seed}");
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
                check_by_bits::<Wide, Wide>(n, |random| wide(random, below), |i| Wide([i as u32; 16]));
                check_by_bits::<Day, u32>(n, |random| day(random, i64::from(below) << 20), |i| i as u32);
            }
        }
        // For this many items, the library sorts numbers by other kernels.
        check_by_bits::<Day, u32>(40_001, |random| day(random, 100), |i| i as u32);
        check_by_bits::<Wide, Wide>(40_001, |random| wide(random, u32::MAX), |i| Wide([i as u32; 16]));
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
        let item = |random: &mut StdRng| {
            let name = std::array::from_fn(|i| if i < 2 { random.random_range(b'a'..b'd') } else { i as u8 });
            Entry { date: random.random_range(0..9), name }
        };
        check::<ByDateThenName, u32>(item, |i| i as u32);
    }

    #[test]
    fn the_longest_items_and_values() {
        let item = |random: &mut StdRng| Wide(std::array::from_fn(|i| if i == 3 { random.random() } else { i as u32 }));
        check::<Wide, Wide>(item, |i| Wide([i as u32; 16]));
    }

    #[test]
    fn sixteen_bytes_backwards() {
        check::<Backwards, u64>(|random| Tag(random.random()), |i| i as u64);
    }

    #[test]
    fn an_order_in_which_many_are_equal() {
        check::<OddFirst, u32>(|random| random.random(), |i| i as u32);
        check::<OddFirst, u32>(|_| 4, |i| i as u32);
    }

    /// All set operations on two sorted arrays, with and without values, against their definition.
    fn check_sets_of<C: Kernels + Kernels<V>, V: Pod + Send + Sync + Debug + PartialEq>(
        [a, b]: [&[C::Item]; 2],
        value: impl Fn(usize) -> V,
        seed: u64,
    ) where
        C::Item: Debug + PartialEq,
    {
        let of_a: Vec<V> = (0..a.len()).map(&value).collect();
        let of_b: Vec<V> = (a.len()..a.len() + b.len()).map(&value).collect();
        for operation in SetOperation::ALL {
            let kept = expected(operation, a, b, order::<C>);
            let items: Vec<C::Item> = kept.iter().map(|&(is_a, i)| if is_a { a[i] } else { b[i] }).collect();
            let values: Vec<V> = kept.iter().map(|&(is_a, i)| if is_a { of_a[i] } else { of_b[i] }).collect();
            let at = || format!("{operation} of {} and {}, seed {seed}", a.len(), b.len());
            let ((found, _), _) = set_operation::<C, ()>(operation, [(a, &[]), (b, &[])], seed);
            assert!(found == items, "items alone: {}", at());
            let ((found, found_values), device) = set_operation::<C, V>(operation, [(a, &of_a), (b, &of_b)], seed);
            assert!(found == items, "items: {}", at());
            assert!(found_values == values, "values: {}", at());
            assert_eq!(device.kernels().contains("own_combine_sets"), a.len() + b.len() > 0);
        }
    }

    fn check_sets<C: Kernels + Kernels<V>, V: Pod + Send + Sync + Debug + PartialEq>(
        item: impl Fn(&mut StdRng) -> C::Item,
        value: impl Fn(usize) -> V,
    ) where
        C::Item: Debug + PartialEq,
    {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let tile = set_tile_items::<C::Item, V>();
        for total in [0, 1, 2, 33, tile - 1, tile, tile + 1, tile + 2, 2 * tile, 3 * tile + 1, 4 * tile + 77] {
            for m in [0, total / 3, total / 2, total] {
                let [a, b] = [m, total - m].map(|len| {
                    let mut items: Vec<C::Item> = (0..len).map(|_| item(&mut random)).collect();
                    items.sort_by(order::<C>);
                    items
                });
                check_sets_of::<C, V>([&a, &b], &value, seed);
            }
        }
    }

    #[test]
    fn sets_of_structs() {
        let entry = |date: u32, kind: u8| Entry { date, name: std::array::from_fn(|i| if i == 0 { kind } else { 7 }) };
        check_sets::<ByDateThenName, u32>(|random| entry(random.random_range(0..50), random.random()), |i| i as u32);
        check_sets::<ByDateThenName, u32>(|random| entry(random.random_range(0..3), 0), |i| i as u32);
    }

    /// A thread has one item, which may be the second item of a pair.
    #[test]
    fn sets_of_the_longest_items_and_values() {
        let wide = |key: u32, rest: u32| Wide(std::array::from_fn(|i| if i == 3 { key } else { rest }));
        for different in [1, 3, 60, 10_000] {
            let item = |random: &mut StdRng| wide(random.random_range(0..different), random.random());
            check_sets::<Wide, Wide>(item, |i| Wide([i as u32; 16]));
        }
    }

    /// Equal items differ: the result has the items that the C++ standard's algorithms keep.
    #[test]
    fn sets_in_which_equal_items_differ() {
        check_sets::<OddFirst, u32>(|random| random.random(), |i| i as u32);
        check_sets::<OddFirst, u32>(|random| 2 * random.random_range(0..1000), |i| i as u32);
        check_sets::<Backwards, u64>(|random| Tag([random.random_range(0..9); 16]), |i| i as u64);
    }

    #[test]
    fn groups_of_equal_items_that_span_tiles_are_paired() {
        for round in 0..20 {
            let seed = fresh_seed();
            let mut random = StdRng::seed_from_u64(seed);
            let mut groups = |most: usize| {
                let mut items = Vec::new();
                for key in 0..5 {
                    let len = random.random_range(0..=most);
                    items.extend((0..len).map(|i| Entry::of_date(key, i)));
                }
                items
            };
            let [a, b] = [groups(800 + 50 * round), groups(if round % 2 == 0 { 1500 } else { 20 })];
            check_sets_of::<ByDate, u32>([&a, &b], |i| i as u32, seed);
        }
    }

    #[test]
    fn sets_that_are_not_sorted_are_read_and_written_inside_their_arrays() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for different in [2, 5, u32::MAX] {
            let [a, b] = [3000, 5000].map(|len| {
                let items: Vec<u32> = (0..len).map(|_| random.random_range(0..different)).collect();
                items
            });
            let values: Vec<u32> = (0..5000).collect();
            for operation in SetOperation::ALL {
                let device = Device::new(seed);
                let of = [(&a, &values[..a.len()]), (&b, &values[..b.len()])];
                let of = of.map(|(items, values)| Pairs::of::<u32, u32>(&device, items, values).at());
                let out = Pairs::uninit::<u32, u32>(&device, operation.most_keys(a.len(), b.len()));
                let count = address(device.uninit::<u64>(1));
                // The emulator would report an access outside of the arrays.
                device.run::<(OddFirst, u32)>(&Sets { operation, of, out: out.at(), count });
            }
        }
    }

    #[test]
    fn batches() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for (problems, m, n) in [(0, 3, 4), (1, 0, 5), (7, 1, 1), (40, 13, 0), (5, 400, 700), (3, 896, 896)] {
            let run = |len: usize, random: &mut StdRng| {
                let mut run: Vec<u32> = (0..len).map(|_| random.random()).collect();
                run.sort_by(order::<OddFirst>);
                run
            };
            let runs: Vec<[Vec<u32>; 2]> = (0..problems).map(|_| [run(m, &mut random), run(n, &mut random)]).collect();
            let [a, b] = [0, 1].map(|side| runs.iter().flat_map(|runs| runs[side].clone()).collect::<Vec<u32>>());
            let merged = |runs: &[Vec<u32>; 2]| {
                let mut both = runs.concat();
                both.sort_by(order::<OddFirst>);
                both
            };
            let expected: Vec<u32> = runs.iter().flat_map(merged).collect();
            let mut out = vec![0; expected.len()];
            merge::<OddFirst, ()>([(&a, &[]), (&b, &[])], (&mut out, &mut []), Groups::of_batch(problems, m, n), seed);
            assert!(out == expected, "{problems} problems of {m} and {n}, seed {seed}");
        }
    }

    /// Offsets of runs of the given lengths.
    fn offsets(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
        let ends = lengths.scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// Merges pairs of runs of the given lengths, with and without values, and compares with the standard library's
    /// stable sort of each pair.
    fn check_ragged<C: Kernels + Kernels<V>, V: Pod + Send + Sync + Debug + PartialEq>(
        lengths: &[[usize; 2]],
        item: impl Fn(&mut StdRng) -> C::Item,
        value: impl Fn(usize) -> V,
    ) where
        C::Item: Debug + PartialEq,
    {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let [a_offsets, b_offsets] = [0, 1].map(|side| offsets(lengths.iter().map(|lengths| lengths[side])));
        let mut number = 0;
        let [a, b] = [&a_offsets, &b_offsets].map(|offsets| {
            let mut pairs: Vec<(C::Item, V)> = Vec::new();
            for len in offsets.windows(2).map(|run| run[1] - run[0]) {
                let mut run: Vec<(C::Item, V)> =
                    (number..number + len).map(|i| (item(&mut random), value(i))).collect();
                run.sort_by(|a, b| order::<C>(&a.0, &b.0));
                number += len;
                pairs.extend(run);
            }
            pairs
        });
        let mut expected = Vec::new();
        for p in 0..lengths.len() {
            let run = [(&a, &a_offsets), (&b, &b_offsets)].map(|(of, offsets)| &of[offsets[p]..offsets[p + 1]]);
            let mut merged = run.concat();
            merged.sort_by(|a, b| order::<C>(&a.0, &b.0));
            expected.extend(merged);
        }
        let (expected, expected_values): (Vec<_>, Vec<_>) = expected.into_iter().unzip();
        let [a, b]: [(Vec<_>, Vec<_>); 2] = [a, b].map(|of| of.into_iter().unzip());
        let n = expected.len();
        let (mut out, mut values) = (vec![C::Item::zeroed(); n], vec![V::zeroed(); n]);
        let of = [((&a.0[..], &a.1[..]), &a_offsets[..]), ((&b.0[..], &b.1[..]), &b_offsets[..])];
        merge_ragged::<C, V>(of, (&mut out, &mut values), seed);
        assert!(out == expected && values == expected_values, "{} problems of {n} pairs, seed {seed}", lengths.len());
        let mut out = vec![C::Item::zeroed(); n];
        let of = [((&a.0[..], &[][..]), &a_offsets[..]), ((&b.0[..], &[][..]), &b_offsets[..])];
        merge_ragged::<C, ()>(of, (&mut out, &mut []), seed);
        assert!(out == expected, "{} problems of {n} items, seed {seed}", lengths.len());
    }

    #[test]
    fn pairs_of_runs_of_any_lengths_are_merged() {
        let tile = tile_items::<u32, u32>();
        let mut random = StdRng::seed_from_u64(7);
        let mut some = |count: usize, most: usize| -> Vec<[usize; 2]> {
            (0..count).map(|_| [random.random_range(0..=most), random.random_range(0..=most)]).collect()
        };
        let mut shapes = vec![
            vec![],
            vec![[0, 0]],
            vec![[0, 0]; 1000],
            vec![[1, 0], [0, 1], [1, 1]],
            vec![[tile, 0], [0, tile], [tile / 2, tile - tile / 2]],
            vec![[tile - 1, 1], [0, 0], [3, tile + 5], [0, 0]],
            vec![[0, 1]; 2 * tile + 3],
            [vec![[0, 0]; 3000], vec![[5, 2 * tile]], vec![[0, 0]; 3000], vec![[1, 1]]].concat(),
        ];
        shapes.extend([some(700, 2), some(60, 70), some(4, 2000)]);
        for lengths in &shapes {
            check_ragged::<OddFirst, u32>(lengths, |random| random.random(), |i| i as u32);
        }
        for lengths in [some(50, 60), some(2, 900)] {
            let wide = |random: &mut StdRng| Wide(std::array::from_fn(|_| random.random_range(0..20)));
            check_ragged::<Wide, Wide>(&lengths, wide, |i| Wide([i as u32; 16]));
            let entry = |random: &mut StdRng| Entry::of_date(random.random_range(0..30), random.random_range(0..9));
            check_ragged::<ByDateThenName, u32>(&lengths, entry, |i| i as u32);
        }
    }

    #[test]
    fn ragged_runs_that_are_not_sorted_are_read_and_written_inside_their_arrays() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for most in [3, 100, 3000] {
            let lengths: Vec<[usize; 2]> =
                (0..9000 / most).map(|_| [random.random_range(0..=most), random.random_range(0..=most)]).collect();
            let [a_offsets, b_offsets] = [0, 1].map(|side| offsets(lengths.iter().map(|lengths| lengths[side])));
            let [a, b]: [Vec<u32>; 2] =
                [&a_offsets, &b_offsets].map(|offsets| (0..offsets[lengths.len()]).map(|_| random.random()).collect());
            let mut out = vec![0; a.len() + b.len()];
            let of = [((&a[..], &[][..]), &a_offsets[..]), ((&b[..], &[][..]), &b_offsets[..])];
            // The emulator would report an access outside of the arrays.
            merge_ragged::<OddFirst, ()>(of, (&mut out, &mut []), seed);
        }
    }

    #[test]
    fn runs_that_are_not_sorted_are_read_and_written_inside_their_arrays() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let [a, b]: [Vec<u32>; 2] = [3000, 5000].map(|len| (0..len).map(|_| random.random()).collect());
        let mut out = vec![0; a.len() + b.len()];
        let groups = Groups::of_two(a.len(), b.len());
        // The emulator would report an access outside of the arrays.
        merge::<OddFirst, ()>([(&a, &[]), (&b, &[])], (&mut out, &mut []), groups, seed);
    }
}
