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
        Arrays { keys, values, len: self.len, value_bytes: self.value_bytes, count: 0 }
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
pub fn sort<C: Kernels<V>, V: Pod + Send + Sync>(
    items: &mut [C::Item],
    values: &mut [V],
    indexes: bool,
    seed: u64,
) -> Device {
    sort_with::<(C, V), _, _, _>(items, values, seed, |at| Sort { at, indexes })
}

/// Sorts by the operation that `make` builds.
pub fn sort_with<K, T: Pod, V: Pod, O: Operation<K>>(
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
pub fn merge<C: Kernels<V>, V: Pod + Send + Sync>(
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
pub fn merge_ragged<C: Kernels<V>, V: Pod + Send + Sync>(
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
pub fn set_operation<C: Kernels<V>, V: Pod + Send + Sync>(
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
