//! Sorts by size, key type and arrangement, of key-value pairs and of indices, on the CPU engine and on a GPU.

use benches::{Arrangement, Device, brief, one_size, sizes, uniform};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use merge_host::cust::memory::{AsyncCopyDestination, DeviceBuffer, DeviceCopy};
use merge_host::{Engine, Gpu, GpuKey, Key, SortKernel, SortOrder, f16};
use std::cell::RefCell;

/// The type of a value.
trait Value: bytemuck::Pod + DeviceCopy + Send + Sync {
    const NAME: &'static str;
}

impl Value for u32 {
    const NAME: &'static str = "u32";
}

impl Value for u64 {
    const NAME: &'static str = "u64";
}

/// The name of a size.
fn power(lg: u32) -> String {
    format!("2^{lg}")
}

/// The name of rows of key-value pairs.
fn with_values<K: Key, V: Value>() -> String {
    format!("{}+{}", K::NAME, V::NAME)
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

fn cpu_pairs<K: Key, V: Value>(group: &mut BenchmarkGroup<WallTime>, engine: &Engine, lg: u32) {
    let (keys, values) = (uniform::<K>(1 << lg, 7), vec![V::zeroed(); 1 << lg]);
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function(BenchmarkId::new(with_values::<K, V>(), power(lg)), |bencher| {
        let sort = |(mut keys, mut values): (Vec<K>, Vec<V>)| {
            engine.sort_pairs(SortOrder::Ascending, &mut keys, &mut values).expect("the CPU sorts");
            (keys, values)
        };
        bencher.iter_batched(|| (keys.clone(), values.clone()), sort, BatchSize::LargeInput);
    });
    let mut indices = vec![0u32; keys.len()];
    group.bench_function(BenchmarkId::new(format!("argsort-{}", K::NAME), power(lg)), |bencher| {
        bencher.iter(|| engine.argsort(SortOrder::Ascending, &keys, &mut indices).expect("the CPU sorts"));
    });
}

fn on_cpu(criterion: &mut Criterion) {
    let (engine, mut group) = (Engine::cpu(), criterion.benchmark_group("sort-cpu"));
    brief(&mut group);
    for lg in sizes(22) {
        cpu(&mut group, &engine, BenchmarkId::new("u32", power(lg)), &uniform::<u32>(1 << lg, 7));
    }
    let lg = one_size(22);
    macro_rules! types {
        ($($K:ty)*) => {
            $(cpu(&mut group, &engine, BenchmarkId::new(<$K as Key>::NAME, power(lg)), &uniform::<$K>(1 << lg, 7));)*
        };
    }
    types!(f32 u64 f64 u8 f16 u128);
    for arrangement in Arrangement::ALL {
        let id = BenchmarkId::new(format!("u32-{}", arrangement.name()), power(lg));
        cpu(&mut group, &engine, id, &arrangement.keys::<u32>(1 << lg));
    }
    cpu_pairs::<u32, u32>(&mut group, &engine, lg);
    cpu_pairs::<u64, u64>(&mut group, &engine, lg);
}

fn gpu<K: GpuKey + DeviceCopy>(
    group: &mut BenchmarkGroup<WallTime>,
    device: &Device,
    kernel: SortKernel,
    id: BenchmarkId,
    unsorted: &DeviceBuffer<K>,
) {
    let n = unsorted.len();
    let keys = RefCell::new(device.buffer::<K>(n));
    let mut workspace = device.buffer(Gpu::sort_workspace_bytes::<K>(n));
    let restore = || copy(device, unsorted, &mut keys.borrow_mut());
    device.bench(group, id, 2 * n * size_of::<K>(), restore, || {
        let (order, keys) = (SortOrder::Ascending, &mut keys.borrow_mut());
        device.gpu().sort_with_kernel(kernel, order, keys, &mut workspace, &device.stream).expect("the GPU sorts");
    });
}

/// Sorts key-value pairs.
fn gpu_pairs<K: GpuKey + DeviceCopy, V: Value>(
    group: &mut BenchmarkGroup<WallTime>,
    device: &Device,
    unsorted: &DeviceBuffer<K>,
    lg: u32,
) {
    let n = unsorted.len();
    let arrays = RefCell::new((device.buffer::<K>(n), device.upload(&vec![V::zeroed(); n])));
    let mut workspace = device.buffer(Gpu::sort_pairs_workspace_bytes::<K, V>(n));
    let restore = || copy(device, unsorted, &mut arrays.borrow_mut().0);
    let id = BenchmarkId::new(with_values::<K, V>(), power(lg));
    device.bench(group, id, 2 * n * (size_of::<K>() + size_of::<V>()), restore, || {
        let (keys, values) = &mut *arrays.borrow_mut();
        let sorted = device.gpu().sort_pairs(SortOrder::Ascending, keys, values, &mut workspace, &device.stream);
        sorted.expect("the GPU sorts");
    });
}

/// Copies `from` to `to` on the device's stream.
fn copy<K: DeviceCopy>(device: &Device, from: &DeviceBuffer<K>, to: &mut DeviceBuffer<K>) {
    // SAFETY: both arrays outlive `Device::bench`, which waits for the stream.
    unsafe { from.async_copy_to(to, &device.stream) }.expect("the GPU copies");
}

fn on_gpu(criterion: &mut Criterion) {
    let Some(device) = Device::first() else { return };
    let mut group = criterion.benchmark_group("sort-gpu");
    brief(&mut group);
    let [auto, merge_path] = SortKernel::ALL;
    for lg in sizes(28) {
        let (k32, k64) = (device.upload(&uniform::<u32>(1 << lg, 7)), device.upload(&uniform::<u64>(1 << lg, 7)));
        gpu(&mut group, &device, auto, BenchmarkId::new("u32", power(lg)), &k32);
        gpu(&mut group, &device, auto, BenchmarkId::new("u64", power(lg)), &k64);
        gpu(&mut group, &device, merge_path, BenchmarkId::new("u32-merge-path", power(lg)), &k32);
        gpu(&mut group, &device, merge_path, BenchmarkId::new("u64-merge-path", power(lg)), &k64);
        gpu_pairs::<u32, u32>(&mut group, &device, &k32, lg);
        gpu_pairs::<u64, u32>(&mut group, &device, &k64, lg);
    }
    let lg = sizes(28).last().copied().unwrap_or(20);
    gpu(&mut group, &device, auto, BenchmarkId::new("f32", power(lg)), &device.upload(&uniform::<f32>(1 << lg, 7)));
    gpu(&mut group, &device, auto, BenchmarkId::new("f64", power(lg)), &device.upload(&uniform::<f64>(1 << lg, 7)));
    for arrangement in Arrangement::ALL {
        let id = BenchmarkId::new(format!("u32-{}", arrangement.name()), power(lg));
        gpu(&mut group, &device, auto, id, &device.upload(&arrangement.keys::<u32>(1 << lg)));
    }
}

criterion_group!(sort, on_cpu, on_gpu);
criterion_main!(sort);
