//! Sorts and merges in a user's own order, of slices.

use super::super::own::{self, Items};
use super::{Address, Device, address};
use crate::Error;
use bytemuck::Pod;
use cuda_std::emulator::Buffer;
use kernels_gpu::own::Kernels;
use kernels_gpu::own::merge_groups::Groups;

/// Items and values in the device's memory.
struct Pairs {
    items: Buffer<u32>,
    values: Buffer<u32>,
    len: usize,
}

impl Pairs {
    fn of<T: Pod, V: Pod>(device: &Device, items: &[T], values: &[V]) -> Self {
        assert!(size_of::<V>() == 0 || items.len() == values.len(), "there are as many values as items");
        Self { items: array_of(device, items), values: array_of(device, values), len: items.len() }
    }

    fn uninit<T: Pod, V: Pod>(device: &Device, len: usize) -> Self {
        let words = |bytes: usize| len * bytes / size_of::<u32>();
        Self { items: device.uninit(words(size_of::<T>())), values: device.uninit(words(size_of::<V>())), len }
    }

    fn at(&self) -> Items {
        Items { items: address(self.items), values: address(self.values), len: self.len }
    }

    fn read<T: Pod, V: Pod>(&self, device: &Device, items: &mut [T], values: &mut [V]) {
        read_to(device, self.items, items);
        read_to(device, self.values, values);
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

/// Sorts `items` with as many `values`, or none if these are of no bytes, and gives the device.
pub(in crate::gpu) fn sort<C: Kernels<V>, V: Pod + Send + Sync>(
    items: &mut [C::Item],
    values: &mut [V],
    seed: u64,
) -> Device {
    let device = Device::new(seed);
    let pairs = Pairs::of(&device, items, values);
    let workspace = device.workspace(own::sort_workspace_bytes::<C::Item, V>(items.len()));
    // SAFETY: the arrays are the device's, and nothing else uses them.
    queued(unsafe { own::sort::<C, V>(&device.queue(), pairs.at(), workspace) });
    pairs.read(&device, items, values);
    device
}

/// A sorted run: items and as many values, or none if these are of no bytes.
type Run<'a, T, V> = (&'a [T], &'a [V]);

/// Merges the runs of `groups`, and gives the device.
pub(in crate::gpu) fn merge<C: Kernels<V>, V: Pod + Send + Sync>(
    [a, b]: [Run<'_, C::Item, V>; 2],
    (out, out_values): (&mut [C::Item], &mut [V]),
    groups: Groups,
    seed: u64,
) -> Device {
    let device = Device::new(seed);
    let runs = [a, b].map(|(items, values)| Pairs::of(&device, items, values).at());
    let merged = Pairs::uninit::<C::Item, V>(&device, out.len());
    let workspace: Address = device.workspace(own::split_bytes::<C::Item, V>(groups));
    // SAFETY: as above.
    queued(unsafe { own::merge::<C, V>(&device.queue(), runs, merged.at(), groups, workspace) });
    merged.read(&device, out, out_values);
    device
}

/// The emulator reports its faults itself.
fn queued(result: Result<(), Error>) {
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[cfg(test)]
mod tests {
    use super::super::keys::fresh_seed;
    use super::*;
    use bytemuck::Zeroable;
    use kernels_gpu::own::tile::tile_items;
    use kernels_gpu::own::{Compare, Key, kernels};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::cmp::Ordering;
    use std::fmt::Debug;

    /// Of 20 bytes, of which 16 are compared after 4.
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

    /// Of 64 bytes, of which 4 are compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    #[repr(C)]
    struct Wide([u32; 16]);

    impl Key for Wide {
        type Bits = u32;
        fn to_ordered(self) -> u32 {
            self.0[3]
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
        wide: Wide;
        wide_wide: Wide, values Wide;
        tag_back: Backwards;
        tag_back_u64: Backwards, values u64;
        odd_first: OddFirst;
        odd_first_u32: OddFirst, values u32;
    }

    fn order<C: Compare>(a: &C::Item, b: &C::Item) -> Ordering {
        match (C::is_before(a, b), C::is_before(b, a)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }

    /// Numbers of items at which something else is done.
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
            let device = sort::<C, ()>(&mut sorted, &mut [], seed);
            assert!(sorted == expected, "{n} items, seed {seed}");
            assert_eq!(device.kernels().contains("own_merge_groups"), n > tile_items::<C::Item, ()>());
            let (mut sorted, mut values): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            sort::<C, V>(&mut sorted, &mut values, seed);
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

    #[test]
    fn runs_that_are_not_sorted_are_read_and_written_inside_their_arrays() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let [a, b]: [Vec<u32>; 2] = [3000, 5000].map(|len| (0..len).map(|_| random.random()).collect());
        let mut out = vec![0; a.len() + b.len()];
        let groups = Groups::of_two(a.len(), b.len());
        // The emulator would report anything else.
        merge::<OddFirst, ()>([(&a, &[]), (&b, &[])], (&mut out, &mut []), groups, seed);
    }
}
