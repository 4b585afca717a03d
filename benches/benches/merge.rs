//! Merges by size, key type, distribution and kernel, and of key-value pairs, on the CPU engine and on a GPU.

use benches::{Device, Distribution, brief, one_size, sizes, uniform};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use merge_host::{Engine, GpuKey, Key, MergeKernel, workspace};

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn id<K: Key>(name: &str, lg: u32) -> BenchmarkId {
    BenchmarkId::new(format!("{}/{name}", K::NAME), format!("2^{lg}"))
}

fn cpu<K: Key>(group: &mut Group, engine: &Engine, kernel: MergeKernel, distribution: Distribution, lg: u32) {
    let n = 1 << lg;
    let (a, b) = distribution.sides::<K>(n);
    let mut out = vec![K::zeroed(); n];
    group.throughput(Throughput::Bytes((2 * n * size_of::<K>()) as u64));
    group.bench_function(id::<K>(&format!("{}/{kernel}", distribution.name()), lg), |bencher| {
        bencher.iter(|| engine.merge_with(kernel, &a, &b, &mut out).expect("the CPU merges"));
    });
}

fn cpu_pairs<K: Key, V: Key>(group: &mut Group, engine: &Engine, lg: u32) {
    let n = 1 << lg;
    let (a, b) = Distribution::Uniform.sides::<K>(n);
    let values: Vec<V> = uniform(n, 3);
    let (av, bv) = values.split_at(a.len());
    let (mut out, mut out_values) = (vec![K::zeroed(); n], vec![V::zeroed(); n]);
    group.throughput(Throughput::Bytes((2 * n * (size_of::<K>() + size_of::<V>())) as u64));
    group.bench_function(id::<K>(&format!("values-{}", V::NAME), lg), |bencher| {
        bencher.iter(|| engine.merge((&a, av), (&b, bv), (&mut out, &mut out_values)).expect("the CPU merges"));
    });
}

fn gpu<K: GpuKey>(group: &mut Group, device: &Device, kernel: MergeKernel, distribution: Distribution, lg: u32) {
    let n = 1 << lg;
    let (a, b) = distribution.sides::<K>(n);
    let (a, b, mut out) = (device.upload(&a), device.upload(&b), device.buffer::<K>(n));
    let mut workspace = device.buffer(workspace::merge::<K, ()>(kernel, n));
    let id = id::<K>(&format!("{}/{kernel}", distribution.name()), lg);
    device.bench(
        group,
        id,
        2 * n * size_of::<K>(),
        || {},
        || {
            device.stream.merge(kernel, &a, &b, &mut out, &mut workspace).expect("the GPU merges");
        },
    );
}

fn gpu_pairs<K: GpuKey, V: Key>(group: &mut Group, device: &Device, lg: u32) {
    let n = 1 << lg;
    let (a, b) = Distribution::Uniform.sides::<K>(n);
    let (av, bv) = (device.upload(&uniform::<V>(a.len(), 3)), device.upload(&uniform::<V>(b.len(), 4)));
    let (a, b) = (device.upload(&a), device.upload(&b));
    let (mut out, mut out_values) = (device.buffer::<K>(n), device.buffer::<V>(n));
    let mut workspace = device.buffer(workspace::merge::<K, V>(MergeKernel::Auto, n));
    let bytes = 2 * n * (size_of::<K>() + size_of::<V>());
    device.bench(
        group,
        id::<K>(&format!("values-{}", V::NAME), lg),
        bytes,
        || {},
        || {
            let out = (&mut out, &mut out_values);
            device.stream.merge(MergeKernel::Auto, (&a, &av), (&b, &bv), out, &mut workspace).expect("the GPU merges");
        },
    );
}

const KERNELS: [MergeKernel; 4] =
    [MergeKernel::Basic, MergeKernel::Tiled, MergeKernel::Circular, MergeKernel::MergePath];

fn on_cpu(criterion: &mut Criterion) {
    let (engine, mut group) = (Engine::cpu(), criterion.benchmark_group("merge-cpu"));
    brief(&mut group);
    let (auto, uniform, lg) = (MergeKernel::Auto, Distribution::Uniform, one_size(22));
    sizes(22).into_iter().for_each(|lg| cpu::<u32>(&mut group, &engine, auto, uniform, lg));
    cpu::<i32>(&mut group, &engine, auto, uniform, lg);
    cpu::<f32>(&mut group, &engine, auto, uniform, lg);
    cpu::<u64>(&mut group, &engine, auto, uniform, lg);
    cpu::<i64>(&mut group, &engine, auto, uniform, lg);
    cpu::<f64>(&mut group, &engine, auto, uniform, lg);
    Distribution::ALL[1..].iter().for_each(|&other| cpu::<u32>(&mut group, &engine, auto, other, lg));
    KERNELS.into_iter().for_each(|kernel| cpu::<u32>(&mut group, &engine, kernel, uniform, lg));
    cpu_pairs::<u32, u32>(&mut group, &engine, lg);
    cpu_pairs::<u64, u32>(&mut group, &engine, lg);
    cpu_pairs::<u64, u64>(&mut group, &engine, lg);
}

fn on_gpu(criterion: &mut Criterion) {
    let Some(device) = Device::first() else { return };
    let mut group = criterion.benchmark_group("merge-gpu");
    brief(&mut group);
    let (auto, uniform) = (MergeKernel::Auto, Distribution::Uniform);
    let lg = sizes(28).last().copied().unwrap_or(20);
    for lg in sizes(28) {
        device.bench_copy(&mut group, id::<u32>("copy", lg), 4 << lg);
        gpu::<u32>(&mut group, &device, auto, uniform, lg);
        gpu::<u64>(&mut group, &device, auto, uniform, lg);
        gpu_pairs::<u32, u32>(&mut group, &device, lg);
        gpu_pairs::<u64, u32>(&mut group, &device, lg);
        KERNELS.into_iter().for_each(|kernel| gpu::<u32>(&mut group, &device, kernel, uniform, lg));
    }
    gpu::<i32>(&mut group, &device, auto, uniform, lg);
    gpu::<f32>(&mut group, &device, auto, uniform, lg);
    gpu::<i64>(&mut group, &device, auto, uniform, lg);
    gpu::<f64>(&mut group, &device, auto, uniform, lg);
    Distribution::ALL[1..].iter().for_each(|&other| gpu::<u32>(&mut group, &device, auto, other, lg));
    gpu_pairs::<u64, u64>(&mut group, &device, lg);
}

criterion_group!(merge, on_cpu, on_gpu);
criterion_main!(merge);
