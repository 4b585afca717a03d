//! Sort: by size and key type, on the CPU engine and on a GPU.

use benches::{Device, brief, one_size, sizes, uniform};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use merge_host::cust::memory::{AsyncCopyDestination, DeviceCopy};
use merge_host::{Engine, Gpu, GpuKey, Key, f16};

fn cpu<K: Key>(group: &mut BenchmarkGroup<WallTime>, engine: &Engine, lg: u32) {
    let keys = uniform::<K>(1 << lg, 7);
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function(BenchmarkId::new(K::NAME, format!("2^{lg}")), |bencher| {
        let sort = |mut keys: Vec<K>| {
            engine.sort(&mut keys).expect("the CPU sorts");
            keys
        };
        bencher.iter_batched(|| keys.clone(), sort, BatchSize::LargeInput);
    });
}

fn gpu<K: GpuKey + DeviceCopy>(group: &mut BenchmarkGroup<WallTime>, device: &Device, lg: u32) {
    let n = 1 << lg;
    let unsorted = device.upload(&uniform::<K>(n, 7));
    let keys = std::cell::RefCell::new(device.buffer::<K>(n));
    let mut workspace = device.buffer(Gpu::sort_workspace_bytes::<K>(n));
    let restore = || {
        // SAFETY: both arrays live until the sort that follows has been waited for.
        unsafe { unsorted.async_copy_to(&mut *keys.borrow_mut(), &device.stream) }.expect("the GPU copies");
    };
    device.bench(group, BenchmarkId::new(<K as Key>::NAME, format!("2^{lg}")), 2 * n * size_of::<K>(), restore, || {
        device.gpu().sort(&mut keys.borrow_mut(), &mut workspace, &device.stream).expect("the GPU sorts");
    });
}

fn on_cpu(criterion: &mut Criterion) {
    let (engine, mut group) = (Engine::cpu(), criterion.benchmark_group("sort-cpu"));
    brief(&mut group);
    sizes(22).into_iter().for_each(|lg| cpu::<u32>(&mut group, &engine, lg));
    let lg = one_size(22);
    cpu::<f32>(&mut group, &engine, lg);
    cpu::<u64>(&mut group, &engine, lg);
    cpu::<f64>(&mut group, &engine, lg);
    cpu::<u8>(&mut group, &engine, lg);
    cpu::<f16>(&mut group, &engine, lg);
    cpu::<u128>(&mut group, &engine, lg);
}

fn on_gpu(criterion: &mut Criterion) {
    let Some(device) = Device::first() else { return };
    let mut group = criterion.benchmark_group("sort-gpu");
    brief(&mut group);
    for lg in sizes(28) {
        gpu::<u32>(&mut group, &device, lg);
        gpu::<u64>(&mut group, &device, lg);
    }
    let lg = sizes(28).last().copied().unwrap_or(20);
    gpu::<f32>(&mut group, &device, lg);
    gpu::<f64>(&mut group, &device, lg);
}

criterion_group!(sort, on_cpu, on_gpu);
criterion_main!(sort);
