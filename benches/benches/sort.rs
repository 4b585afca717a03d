//! Sorts by size, key type and distribution, of key-value pairs and of indices, on the CPU engine and on a GPU.
//!
//! The keys are the same as in `gpu_test` and in `benches/peers/peers.cu`. A line with the digest of an array on the
//! GPU precedes its rows. The other two programs print this digest, too.

use benches::{Device, brief, one_size, sizes};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use merge_host::{DeviceArray, Engine, GpuKey, Key, SortKernel, SortOptions, SortOrder, f16, workspace};
use std::cell::RefCell;
use tests::course_sort::{CourseSort, FirstPasses};
use tests::distribution::{Distribution, digest};

/// The name of a size.
fn power(lg: u32) -> String {
    format!("2^{lg}")
}

/// The name of a row of key-value pairs.
fn with_values<K: Key, V: Key>(lg: u32) -> BenchmarkId {
    BenchmarkId::new(format!("{}+{}", K::NAME, V::NAME), power(lg))
}

/// The name of a row of keys.
fn of_distribution<K: Key>(distribution: Distribution, lg: u32) -> BenchmarkId {
    BenchmarkId::new(format!("{}-{}", K::NAME, distribution.name()), power(lg))
}

/// The name of a row of an argsort.
fn of_indices<K: Key>(lg: u32) -> BenchmarkId {
    BenchmarkId::new(format!("argsort-{}", K::NAME), power(lg))
}

fn cpu<K: Key>(group: &mut BenchmarkGroup<WallTime>, engine: &Engine, id: BenchmarkId, keys: &[K]) {
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function(id, |bencher| {
        let sort = |mut keys: Vec<K>| {
            engine.sort(&mut keys).expect("the CPU sorts");
            keys
        };
        bencher.iter_batched(|| keys.to_vec(), sort, BatchSize::LargeInput);
    });
}

/// Random bits, including NaNs for floats.
fn cpu_uniform<K: Key>(group: &mut BenchmarkGroup<WallTime>, engine: &Engine, lg: u32) {
    cpu(group, engine, BenchmarkId::new(K::NAME, power(lg)), &Distribution::Uniform.keys::<K>(1 << lg));
}

fn cpu_pairs<K: Key, V: Key>(group: &mut BenchmarkGroup<WallTime>, engine: &Engine, lg: u32) {
    let (keys, values) = (Distribution::Uniform.keys::<K>(1 << lg), Distribution::Sorted.keys::<V>(1 << lg));
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function(with_values::<K, V>(lg), |bencher| {
        let sort = |(mut keys, mut values): (Vec<K>, Vec<V>)| {
            engine.sort_with(SortOrder::Ascending, (&mut keys, &mut values)).expect("the CPU sorts");
            (keys, values)
        };
        bencher.iter_batched(|| (keys.clone(), values.clone()), sort, BatchSize::LargeInput);
    });
}

fn cpu_argsort<K: Key>(group: &mut BenchmarkGroup<WallTime>, engine: &Engine, lg: u32) {
    let keys = Distribution::Uniform.keys::<K>(1 << lg);
    let mut indices = vec![0u32; keys.len()];
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function(of_indices::<K>(lg), |bencher| {
        bencher.iter(|| engine.argsort(SortOrder::Ascending, &keys, &mut indices).expect("the CPU sorts"));
    });
}

fn cpu_distributions<K: Key>(
    group: &mut BenchmarkGroup<WallTime>,
    engine: &Engine,
    distributions: &[Distribution],
    lg: u32,
) {
    for &distribution in distributions {
        cpu(group, engine, of_distribution::<K>(distribution, lg), &distribution.keys::<K>(1 << lg));
    }
}

fn on_cpu(criterion: &mut Criterion) {
    let (engine, mut group) = (Engine::cpu(), criterion.benchmark_group("sort-cpu"));
    brief(&mut group);
    for lg in sizes(22) {
        cpu_uniform::<u32>(&mut group, &engine, lg);
    }
    let lg = one_size(22);
    macro_rules! types {
        ($($K:ty)*) => {
            $(cpu_uniform::<$K>(&mut group, &engine, lg);)*
        };
    }
    types!(f32 u64 f64 u8 f16 u128);
    cpu_distributions::<u32>(&mut group, &engine, other_than_uniform(), lg);
    cpu_distributions::<f32>(&mut group, &engine, &Distribution::OF_FLOATS, lg);
    cpu_distributions::<f64>(&mut group, &engine, &Distribution::OF_FLOATS, lg);
    cpu_pairs::<u32, u32>(&mut group, &engine, lg);
    cpu_pairs::<u64, u32>(&mut group, &engine, lg);
    cpu_pairs::<u64, u64>(&mut group, &engine, lg);
    cpu_argsort::<u32>(&mut group, &engine, lg);
    cpu_argsort::<u64>(&mut group, &engine, lg);
}

/// The distributions of integers, without uniform, the first. Rows of uniform keys have only the name of the type.
fn other_than_uniform() -> &'static [Distribution] {
    &Distribution::OF_INTEGERS[1..]
}

/// Makes keys in the GPU's memory, and prints their digest.
fn upload<K: Key>(device: &Device, distribution: Distribution, lg: u32) -> DeviceArray<K> {
    let keys: Vec<K> = distribution.keys(1 << lg);
    println!("{} {} {}: digest {:016x}", K::NAME, distribution.name(), power(lg), digest(&keys));
    device.upload(&keys)
}

fn gpu<K: GpuKey>(
    group: &mut BenchmarkGroup<WallTime>,
    device: &Device,
    kernel: SortKernel,
    id: BenchmarkId,
    unsorted: &DeviceArray<K>,
) {
    let n = unsorted.len();
    let keys = RefCell::new(device.buffer::<K>(n));
    let mut workspace = device.buffer(workspace::sort::<K, ()>(n));
    let restore = || device.copy(unsorted, &mut keys.borrow_mut());
    device.bench(group, id, 2 * n * size_of::<K>(), restore, || {
        let (options, keys) = (SortOptions::default().kernel(kernel), &mut *keys.borrow_mut());
        device.stream.sort(options, keys, &mut workspace).expect("the GPU sorts");
    });
}

/// Sorts keys with their indices as values.
fn gpu_pairs<K: GpuKey, V: Key>(
    group: &mut BenchmarkGroup<WallTime>,
    device: &Device,
    id: BenchmarkId,
    unsorted: &DeviceArray<K>,
) {
    let n = unsorted.len();
    let arrays = RefCell::new((device.buffer::<K>(n), device.upload(&Distribution::Sorted.keys::<V>(n))));
    let mut workspace = device.buffer(workspace::sort::<K, V>(n));
    let restore = || device.copy(unsorted, &mut arrays.borrow_mut().0);
    device.bench(group, id, 2 * n * (size_of::<K>() + size_of::<V>()), restore, || {
        let (keys, values) = &mut *arrays.borrow_mut();
        let sorted = device.stream.sort(SortOrder::Ascending, (keys, values), &mut workspace);
        sorted.expect("the GPU sorts");
    });
}

/// Computes the permutation that sorts the keys.
fn gpu_argsort<K: GpuKey>(group: &mut BenchmarkGroup<WallTime>, device: &Device, unsorted: &DeviceArray<K>, lg: u32) {
    let n = unsorted.len();
    let (keys, mut indices) = (RefCell::new(device.buffer::<K>(n)), device.buffer::<u32>(n));
    let mut workspace = device.buffer(workspace::argsort::<K, u32>(n));
    let restore = || device.copy(unsorted, &mut keys.borrow_mut());
    device.bench(group, of_indices::<K>(lg), n * (2 * size_of::<K>() + size_of::<u32>()), restore, || {
        let mut keys = keys.borrow_mut();
        let sorted = device.stream.argsort(SortOrder::Ascending, &mut *keys, &mut indices, &mut workspace);
        sorted.expect("the GPU sorts");
    });
}

fn gpu_distributions<K: GpuKey>(
    group: &mut BenchmarkGroup<WallTime>,
    device: &Device,
    distributions: &[Distribution],
    lg: u32,
) {
    for &distribution in distributions {
        let unsorted = upload::<K>(device, distribution, lg);
        gpu(group, device, SortKernel::Auto, of_distribution::<K>(distribution, lg), &unsorted);
    }
}

/// Pairs of u32 with u32 by the distribution of their keys.
fn gpu_pairs_distributions(
    group: &mut BenchmarkGroup<WallTime>,
    device: &Device,
    distributions: &[Distribution],
    lg: u32,
) {
    for &distribution in distributions {
        let unsorted = upload::<u32>(device, distribution, lg);
        let id = BenchmarkId::new(format!("u32+u32-{}", distribution.name()), power(lg));
        gpu_pairs::<u32, u32>(group, device, id, &unsorted);
    }
}

/// The most keys of the course's sort from runs of one key on, as a power of two: about 2^17 consecutive launches.
const MOST_OF_COURSE: u32 = 16;

/// The most keys if the batch kernel makes the first passes, as a power of two.
const MOST_OF_COURSE_BY_BATCHES: u32 = 24;

/// The course's sort of d keys, by passes of `pathBig_k` and `mergeBig_k`. The course asks for its time as a function
/// of d.
fn gpu_course(group: &mut BenchmarkGroup<WallTime>, device: &Device, unsorted: &DeviceArray<u32>, lg: u32) {
    let d = unsorted.len();
    let kinds = [
        ("u32-course", FirstPasses::MergePath, MOST_OF_COURSE),
        ("u32-course-batch", FirstPasses::Batch, MOST_OF_COURSE_BY_BATCHES),
    ];
    for (name, first, most) in kinds {
        if lg <= most {
            let keys = RefCell::new(device.buffer::<u32>(d));
            let mut sort = CourseSort::new(&device.stream, d).expect("the GPU has memory");
            let restore = || device.copy(unsorted, &mut keys.borrow_mut());
            device.bench(group, BenchmarkId::new(name, power(lg)), 2 * d * size_of::<u32>(), restore, || {
                sort.sort(first, &mut keys.borrow_mut()).expect("the GPU sorts");
            });
        }
    }
}

fn on_gpu(criterion: &mut Criterion) {
    let Some(device) = Device::first() else { return };
    let mut group = criterion.benchmark_group("sort-gpu");
    brief(&mut group);
    let [auto, merge_path] = SortKernel::ALL;
    for lg in sizes(28) {
        let k32 = upload::<u32>(&device, Distribution::Uniform, lg);
        gpu(&mut group, &device, auto, BenchmarkId::new("u32", power(lg)), &k32);
        gpu(&mut group, &device, merge_path, BenchmarkId::new("u32-merge-path", power(lg)), &k32);
        gpu_pairs::<u32, u32>(&mut group, &device, with_values::<u32, u32>(lg), &k32);
        gpu_argsort(&mut group, &device, &k32, lg);
        gpu_course(&mut group, &device, &k32, lg);
        drop(k32);
        let k64 = upload::<u64>(&device, Distribution::Uniform, lg);
        gpu(&mut group, &device, auto, BenchmarkId::new("u64", power(lg)), &k64);
        gpu(&mut group, &device, merge_path, BenchmarkId::new("u64-merge-path", power(lg)), &k64);
        gpu_pairs::<u64, u32>(&mut group, &device, with_values::<u64, u32>(lg), &k64);
        gpu_pairs::<u64, u64>(&mut group, &device, with_values::<u64, u64>(lg), &k64);
        gpu_argsort(&mut group, &device, &k64, lg);
    }
    for lg in sizes(28).into_iter().filter(|lg| [20, 24].contains(lg)) {
        gpu_distributions::<u32>(&mut group, &device, other_than_uniform(), lg);
        gpu_pairs_distributions(&mut group, &device, other_than_uniform(), lg);
    }
    let lg = sizes(28).last().copied().unwrap_or(20);
    gpu_distributions::<u32>(&mut group, &device, other_than_uniform(), lg);
    gpu_pairs_distributions(&mut group, &device, other_than_uniform(), lg);
    gpu_distributions::<u64>(&mut group, &device, other_than_uniform(), lg);
    gpu_distributions::<f32>(&mut group, &device, &Distribution::OF_FLOATS, lg);
    gpu_distributions::<f64>(&mut group, &device, &Distribution::OF_FLOATS, lg);
}

criterion_group!(sort, on_cpu, on_gpu);
criterion_main!(sort);
