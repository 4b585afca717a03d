//! Set operations, groups of equal keys, bounds, sorts of segments and the first k keys, on the CPU engine and on a
//! GPU.
//!
//! `gpu_test --sets --segments --top` has more rows, with the names of the peers' rows in `benches/peers/operations`.

use benches::{Device, brief, one_size, sizes, uniform};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use merge_host::{Bound, Engine, Error, GpuKey, Key, Reduction, Segments, SetOperation, SortOrder, workspace};
use std::cell::RefCell;
use tests::distribution::{key, mix, random};

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// The length of a segment.
const SEGMENT: usize = 100;

/// The number of first keys, which equals the smallest number of keys.
const FIRST: usize = 1024;

/// The keys of all rows, and the numbers of keys in the results.
struct Inputs<T> {
    /// Two sorted halves. Keys have n / 2 possible values.
    a: Vec<T>,
    b: Vec<T>,
    /// The keys of both halves, sorted.
    all: Vec<T>,
    unsorted: Vec<T>,
    kept: [usize; 4],
    groups: usize,
}

impl<T: Key> Inputs<T> {
    fn new(n: usize) -> Self {
        let cpu = Engine::cpu();
        let side = |seed: u64| {
            let mut keys: Vec<T> = (0..n as u64 / 2).map(|i| key(mix(random(i, seed) % (n as u64 / 2)))).collect();
            cpu.sort(&mut keys).expect("the CPU sorts");
            keys
        };
        let (a, b, mut all, mut out) = (side(1), side(2), vec![T::zeroed(); n], Vec::new());
        cpu.merge(&a, &b, &mut all).expect("the CPU merges");
        let kept = SetOperation::ALL.map(|operation| {
            cpu.set_operation(operation, &a, &b, &mut out).expect("the CPU combines");
            out.len()
        });
        cpu.unique(&all, &mut out).expect("the CPU finds them");
        Self { a, b, all, unsorted: uniform(n, 3), kept, groups: out.len() }
    }

    /// The bytes of all keys and of `written` keys, with `more` additional bytes for each key.
    fn bytes(&self, written: usize, more: [usize; 2]) -> usize {
        self.all.len() * (size_of::<T>() + more[0]) + written * (size_of::<T>() + more[1])
    }
}

fn id<T: Key>(name: &str, lg: u32) -> BenchmarkId {
    BenchmarkId::new(format!("{}/{name}", T::NAME), format!("2^{lg}"))
}

/// Additional bytes for each key in rows of bounds: half of the keys are needles, and a needle has a bound.
const OF_BOUND: usize = size_of::<u32>() / 2;

/// Measures calls that do not change their inputs: the name of a row, the bytes read and written, and the call.
macro_rules! rows {
    ($row:ident: $($name:expr, $bytes:expr, $call:expr;)*) => {
        $($row(&$name.to_string(), $bytes, &mut || $call.map(|_| ()));)*
    };
}

fn cpu<T: Key>(group: &mut Group, engine: &Engine, lg: u32) {
    let inputs = Inputs::<T>::new(1 << lg);
    let Inputs { a, b, all, unsorted, kept, groups } = &inputs;
    let (n, numbers) = (all.len(), vec![1u32; all.len()]);
    let (mut out, mut lengths, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bounds, mut first) = (vec![0u32; n / 2], vec![T::zeroed(); FIRST]);
    let mut row = |name: &str, bytes: usize, call: &mut dyn FnMut() -> Result<(), Error>| {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(id::<T>(name, lg), |bencher| bencher.iter(|| call().expect("the CPU works")));
    };
    for (operation, kept) in SetOperation::ALL.into_iter().zip(*kept) {
        rows!(row: operation, inputs.bytes(kept, [0, 0]), engine.set_operation(operation, a, b, &mut out););
    }
    rows!(row:
        "unique", inputs.bytes(*groups, [0, 0]), engine.unique(all, &mut out);
        "run-lengths", inputs.bytes(*groups, [0, 8]), engine.run_lengths(all, (&mut out, &mut lengths));
        "sums-of-u32", inputs.bytes(*groups, [4, 4]),
            engine.reduce_by_key(Reduction::Sum, (all, &numbers), (&mut out, &mut sums));
        "lower-bounds", inputs.bytes(0, [OF_BOUND, 0]), engine.bounds(Bound::Lower, a, b, &mut bounds);
        "top-1024", inputs.bytes(FIRST, [0, 0]), engine.top_k(SortOrder::Descending, unsorted, &mut first);
    );
    let offsets: Vec<usize> = (0..n).step_by(SEGMENT).chain([n]).collect();
    group.throughput(Throughput::Bytes(inputs.bytes(n, [0, 0]) as u64));
    group.bench_function(id::<T>("segments-of-100", lg), |bencher| {
        let sort = |mut keys: Vec<T>| {
            engine.sort_segments(SortOrder::Ascending, &mut keys, &offsets).expect("the CPU sorts");
            keys
        };
        bencher.iter_batched(|| unsorted.clone(), sort, BatchSize::LargeInput);
    });
}

fn gpu<T: GpuKey>(group: &mut Group, device: &Device, lg: u32) {
    let (n, stream) = (1 << lg, &device.stream);
    let inputs = Inputs::<T>::new(n);
    let [a, b, all, unsorted] = [&inputs.a, &inputs.b, &inputs.all, &inputs.unsorted].map(|keys| device.upload(keys));
    let (numbers, mut out) = (device.upload(&vec![1u32; n]), device.buffer::<T>(n));
    let (mut lengths, mut sums, mut bounds) =
        (device.buffer::<u64>(n), device.buffer::<u32>(n), device.buffer::<u32>(n / 2));
    let (mut count, mut first) = (device.buffer::<u64>(1), device.buffer::<T>(FIRST));
    let most = [
        workspace::set_operation::<T>(n),
        workspace::groups::<T>(n),
        workspace::bounds::<T>(n),
        workspace::top_k::<T, ()>(n, FIRST),
        workspace::sort_segments::<T, ()>(n),
    ];
    let mut workspace = device.buffer::<u8>(most.into_iter().max().unwrap_or(0));
    let mut row = |name: &str, bytes: usize, call: &mut dyn FnMut() -> Result<(), Error>| {
        device.bench(group, id::<T>(name, lg), bytes, || {}, || call().expect("the GPU works"));
    };
    for (operation, kept) in SetOperation::ALL.into_iter().zip(inputs.kept) {
        rows!(row: operation, inputs.bytes(kept, [0, 0]),
            stream.set_operation(operation, &a, &b, &mut out, &mut count, &mut workspace););
    }
    rows!(row:
        "unique", inputs.bytes(inputs.groups, [0, 0]), stream.unique(&all, &mut out, &mut count, &mut workspace);
        "run-lengths", inputs.bytes(inputs.groups, [0, 8]),
            stream.run_lengths(&all, (&mut out, &mut lengths), &mut count, &mut workspace);
        "sums-of-u32", inputs.bytes(inputs.groups, [4, 4]), {
            let out = (&mut out, &mut sums);
            stream.reduce_by_key(Reduction::Sum, (&all, &numbers), out, &mut count, &mut workspace)
        };
        "lower-bounds", inputs.bytes(0, [OF_BOUND, 0]),
            stream.bounds(Bound::Lower, &a, &b, &mut bounds, &mut workspace);
        "top-1024", inputs.bytes(FIRST, [0, 0]),
            stream.top_k(SortOrder::Descending, &unsorted, &mut first, &mut workspace);
    );
    let keys = RefCell::new(out);
    let restore = || device.copy(&unsorted, &mut keys.borrow_mut());
    device.bench(group, id::<T>("segments-of-100", lg), inputs.bytes(n, [0, 0]), restore, || {
        let (keys, segments) = (&mut *keys.borrow_mut(), Segments::Length(SEGMENT));
        stream.sort_segments(SortOrder::Ascending, keys, segments, &mut workspace).expect("the GPU sorts");
    });
}

fn on_cpu(criterion: &mut Criterion) {
    let (engine, mut group) = (Engine::cpu(), criterion.benchmark_group("operations-cpu"));
    brief(&mut group);
    let lg = one_size(22);
    cpu::<u32>(&mut group, &engine, lg);
    cpu::<u64>(&mut group, &engine, lg);
}

fn on_gpu(criterion: &mut Criterion) {
    let Some(device) = Device::first() else { return };
    let mut group = criterion.benchmark_group("operations-gpu");
    brief(&mut group);
    for lg in sizes(28) {
        gpu::<u32>(&mut group, &device, lg);
        gpu::<u64>(&mut group, &device, lg);
    }
}

criterion_group!(operations, on_cpu, on_gpu);
criterion_main!(operations);
