//! Inputs and measurements that the benchmarks share.
//!
//! `cargo bench` runs the benchmarks `merge`, `batch`, `sort` and `operations` on the CPU engine and, if there is a
//! GPU, on the GPU. Criterion writes its measurements as JSON to `target/criterion`, where `scripts/plot` reads them.
//!
//! A GPU works on data in its memory and is timed by events, so the time excludes transfers and the host. A line after
//! each GPU row compares it with a copy of the same number of bytes.
//!
//! The variable `GMERGE_BENCH_MAX_LG` is the binary logarithm of the greatest number of keys. The default is 22 on the
//! CPU and 28 on the GPU.

use bytemuck::Pod;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Throughput};
use merge_host::{DeviceArray, Engine, Event, Key, Stream};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tests::distribution::{key, random};

/// The distribution of the keys of a merge. [`tests::distribution`] has the distributions of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Random bits in both inputs.
    Uniform,
    /// All keys of A precede all keys of B.
    ABeforeB,
    /// Keys of A and of B alternate.
    Alternating,
    /// Keys with sixteen distinct values.
    Dups16,
    /// A has about 1/1000 of the keys, and B the others.
    Skewed,
}

impl Distribution {
    /// All distributions.
    pub const ALL: [Self; 5] = [Self::Uniform, Self::ABeforeB, Self::Alternating, Self::Dups16, Self::Skewed];

    /// The name in the output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::ABeforeB => "a-before-b",
            Self::Alternating => "alternating",
            Self::Dups16 => "dups16",
            Self::Skewed => "skewed",
        }
    }

    /// Two ascending arrays with `n` keys in total.
    pub fn sides<K: Key>(self, n: usize) -> (Vec<K>, Vec<K>) {
        let m = if self == Self::Skewed { n / 1001 } else { n / 2 };
        let side = |name: u64, len: usize| {
            let mut keys: Vec<K> = match self {
                Self::Uniform | Self::Skewed => uniform(len, name),
                Self::Dups16 => (0..len as u64).map(|i| key(random(i, name) & 15)).collect(),
                // The bits ascend, so the arrays ascend for every key type: bits of positive floats are ordered like
                // the floats.
                Self::ABeforeB => (0..len as u64).map(|i| key(i + (name - 1) * n as u64)).collect(),
                Self::Alternating => (0..len as u64).map(|i| key(2 * i + name)).collect(),
            };
            Engine::cpu().sort(&mut keys).expect("there is memory for the inputs");
            keys
        };
        (side(1, m), side(2, n - m))
    }
}

/// `n` keys of random bits.
pub fn uniform<K: Key>(n: usize, seed: u64) -> Vec<K> {
    (0..n as u64).map(|i| key(random(i, seed))).collect()
}

/// The binary logarithms of the numbers of keys to measure.
pub fn sizes(default_most: u32) -> Vec<u32> {
    let most = std::env::var("GMERGE_BENCH_MAX_LG").ok().and_then(|lg| lg.parse().ok()).unwrap_or(default_most);
    (10..=most).step_by(2).collect()
}

/// The binary logarithm of the number of keys in benchmarks of one size.
pub fn one_size(default_most: u32) -> u32 {
    sizes(default_most).last().map_or(20, |&most| most.min(24))
}

/// Settings that shorten a benchmark of many rows.
pub fn brief(group: &mut BenchmarkGroup<'_, WallTime>) {
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));
}

/// A GPU with a stream, and the durations of copies on it.
pub struct Device {
    /// The stream of all work and all arrays.
    pub stream: Stream,
    copies: RefCell<HashMap<usize, Duration>>,
}

impl Device {
    /// The first GPU, or `None` after a line that gives the reason.
    pub fn first() -> Option<Self> {
        let engine = match Engine::gpu(0) {
            Ok(engine) => engine,
            Err(error) => {
                eprintln!("no rows of the GPU: {error}");
                return None;
            }
        };
        let stream = engine.as_gpu_group()?.gpus().next()?.stream().expect("a GPU makes streams");
        Some(Self { stream, copies: RefCell::default() })
    }

    /// A copy of `from` in the GPU's memory.
    pub fn upload<T: Pod>(&self, from: &[T]) -> DeviceArray<T> {
        self.stream.upload(from).expect("the GPU has memory for the inputs")
    }

    /// An array in the GPU's memory.
    pub fn buffer<T: Pod>(&self, len: usize) -> DeviceArray<T> {
        self.stream.zeroed(len).expect("the GPU has memory for the output")
    }

    /// Copies `from` to `to`, which has the same length.
    pub fn copy<T: Pod>(&self, from: &DeviceArray<T>, to: &mut DeviceArray<T>) {
        to.copy_from(from).expect("a GPU copies");
    }

    /// The total duration of `repeats` calls of `work`. Each follows a call of `prepare`, which is not included.
    pub fn time(&self, repeats: u64, mut prepare: impl FnMut(), mut work: impl FnMut()) -> Duration {
        let event = || Event::new(&self.stream).expect("a GPU makes events");
        let mut total = Duration::ZERO;
        for _ in 0..repeats {
            let (start, end) = (event(), event());
            prepare();
            start.record().expect("a stream takes events");
            work();
            end.record().expect("a stream takes events");
            total += end.elapsed_since(&start).expect("the work ends well");
        }
        total
    }

    /// Measures `work`, which reads and writes `bytes` bytes in total, as one row, and compares it with a copy.
    pub fn bench(
        &self,
        group: &mut BenchmarkGroup<'_, WallTime>,
        id: BenchmarkId,
        bytes: usize,
        mut prepare: impl FnMut(),
        mut work: impl FnMut(),
    ) {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(id, |bencher| {
            bencher.iter_custom(|repeats| self.time(repeats, &mut prepare, &mut work));
        });
        let mean = self.time(5, &mut prepare, &mut work) / 5;
        println!(
            "{:>24}fraction of copy bandwidth: {:.3}",
            "",
            self.copy_time(bytes).as_secs_f64() / mean.as_secs_f64()
        );
    }

    /// Measures a copy of `bytes` bytes as a row.
    pub fn bench_copy(&self, group: &mut BenchmarkGroup<'_, WallTime>, id: BenchmarkId, bytes: usize) {
        let (from, mut to) = (self.buffer::<u8>(bytes), self.buffer::<u8>(bytes));
        self.bench(group, id, 2 * bytes, || {}, || self.copy(&from, &mut to));
    }

    /// The duration of a copy that reads and writes `bytes` bytes in total, measured once.
    fn copy_time(&self, bytes: usize) -> Duration {
        *self.copies.borrow_mut().entry(bytes).or_insert_with(|| {
            let (from, mut to) = (self.buffer::<u8>(bytes / 2), self.buffer::<u8>(bytes / 2));
            let mut copy = |repeats| self.time(repeats, || {}, || self.copy(&from, &mut to));
            copy(3);
            copy(9) / 9
        })
    }
}
