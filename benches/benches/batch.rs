//! Batches of merge problems of several lengths, and of random lengths, on the CPU engine and on a GPU.

use benches::{Device, brief, one_size, sizes, uniform};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use merge_host::{BatchKernel, DeviceOffsets, Engine, workspace};

const LENGTHS: [usize; 12] = [4, 8, 16, 30, 32, 64, 100, 128, 256, 512, 1000, 1024];

/// `count` ascending runs of `len` keys each.
fn runs(count: usize, len: usize, seed: u64) -> Vec<u32> {
    let mut keys = uniform::<u32>(count * len, seed);
    if len > 0 {
        keys.chunks_mut(len).for_each(<[u32]>::sort_unstable);
    }
    keys
}

/// `count` ascending runs of 0 to 100 keys with their offsets. The last run ends at `n` keys.
fn ragged(n: usize, count: usize, seed: u64) -> (Vec<u32>, Vec<usize>) {
    let (mut keys, mut offsets) = (uniform::<u32>(n, seed), vec![0]);
    for length in uniform::<u32>(count, seed ^ 9) {
        let start = offsets[offsets.len() - 1];
        let end = (start + length as usize % 101).min(n);
        keys[start..end].sort_unstable();
        offsets.push(end);
    }
    let last = offsets.len() - 1;
    keys[offsets[last - 1]..].sort_unstable();
    offsets[last] = n;
    (keys, offsets)
}

fn on_cpu(criterion: &mut Criterion) {
    let (engine, mut group) = (Engine::cpu(), criterion.benchmark_group("batch-cpu"));
    brief(&mut group);
    let n = 1usize << one_size(22);
    for d in LENGTHS {
        let (problems, a_len) = (n / d, d / 2);
        let (a, b) = (runs(problems, a_len, 1), runs(problems, d - a_len, 2));
        let mut out = vec![0u32; problems * d];
        group.throughput(Throughput::Bytes(8 * (problems * d) as u64));
        group.bench_function(BenchmarkId::new("u32", format!("d{d}")), |bencher| {
            bencher.iter(|| engine.merge_batch(&a, &b, &mut out, d, a_len).expect("the CPU merges"));
        });
    }
    let problems = n / 100;
    let ((a, a_offsets), (b, b_offsets)) = (ragged(n / 2, problems, 1), ragged(n / 2, problems, 2));
    let mut out = vec![0u32; n];
    group.throughput(Throughput::Bytes(8 * n as u64));
    group.bench_function(BenchmarkId::new("u32", "ragged"), |bencher| {
        bencher.iter(|| engine.merge_ragged((&a, &a_offsets), (&b, &b_offsets), &mut out).expect("the CPU merges"));
    });
}

fn on_gpu(criterion: &mut Criterion) {
    let Some(device) = Device::first() else { return };
    let mut group = criterion.benchmark_group("batch-gpu");
    brief(&mut group);
    let n = 1usize << sizes(28).last().copied().unwrap_or(20);
    for d in LENGTHS {
        let (problems, a_len) = (n / d, d / 2);
        let (a, b) = (device.upload(&runs(problems, a_len, 1)), device.upload(&runs(problems, d - a_len, 2)));
        let mut out = device.buffer::<u32>(problems * d);
        for (name, kernel) in [("u32", BatchKernel::Auto), ("u32/one-thread-a-key", BatchKernel::Small)] {
            device.bench(
                &mut group,
                BenchmarkId::new(name, format!("d{d}")),
                8 * problems * d,
                || {},
                || {
                    device.stream.merge_batch(kernel, &a, &b, &mut out, d, a_len).expect("the GPU merges");
                },
            );
        }
    }
    // Half of the keys, because memory also holds two offsets for each problem.
    let n = n / 2;
    let problems = n / 100;
    let side = |seed| {
        let (keys, offsets) = ragged(n / 2, problems, seed);
        let offsets = DeviceOffsets::new(&device.stream, &offsets).expect("the GPU has memory for the offsets");
        (device.upload(&keys), offsets)
    };
    let ((a, a_offsets), (b, b_offsets)) = (side(1), side(2));
    let mut out = device.buffer::<u32>(n);
    let mut workspace = device.buffer(workspace::merge_ragged::<u32>(n));
    device.bench(
        &mut group,
        BenchmarkId::new("u32", "ragged"),
        8 * n,
        || {},
        || {
            let (a, b) = ((&a, &a_offsets), (&b, &b_offsets));
            device.stream.merge_ragged(a, b, &mut out, &mut workspace).expect("the GPU merges");
        },
    );
}

criterion_group!(batch, on_cpu, on_gpu);
criterion_main!(batch);
