//! Operations on sorted keys: set operations, groups of equal keys, and bounds.

use super::{KINDS, Kind, Step, Test, median_ms};
use merge_host::{DeviceArray, Engine, Error, Gpu, GpuKey, Key, Reduction, SetOperation, Summand};
use tests::distribution::{Distribution, mix};

/// Kinds of keys that occur in both arrays, once or several times, and more often than a tile has keys.
const KINDS_OF_SETS: [Kind; 3] = [
    ("a million", |word| mix(word % 1_000_003)),
    ("a thousand", |word| mix(word % 1009)),
    ("half alike", |word| if word & 1 == 0 { 7 << 40 | 7 } else { mix(word) }),
];

impl Test {
    /// All operations on sorted keys, by the engines and, with values, on arrays of a stream.
    pub(super) fn check_sets<K: GpuKey>(&mut self) {
        let kinds: Vec<Kind> = KINDS.into_iter().chain(KINDS_OF_SETS).collect();
        for (name, kind) in kinds {
            for n in [0, 1, 2, 4351, 4352, 10_000, 300_007, 10_000_019] {
                for m in [0, n / 3, n / 2, n] {
                    let (a, b): (Vec<K>, Vec<K>) = (self.sorted(m, kind), self.sorted(n - m, kind));
                    let what = format!("{name}, {m} and {}", n - m);
                    self.check_set_operations(&what, &a, &b);
                    self.check_bounds::<K>(&what, &a, &b);
                }
                let keys: Vec<K> = self.sorted(n, kind);
                self.check_equal_keys(&format!("{n} {name}"), &keys);
            }
        }
    }

    fn check_set_operations<K: GpuKey>(&mut self, what: &str, a: &[K], b: &[K]) {
        for operation in SetOperation::ALL {
            let by = |engine: &Engine| {
                let mut out = Vec::new();
                engine.set_operation(operation, a, b, &mut out).map(|_| out)
            };
            let (expected, found) = (by(&self.cpu).expect("the CPU combines"), by(&self.gpu));
            self.expect(|| format!("{operation} of {what}"), found, &expected);
            // Of a pair A's key is kept, and of a group those of A go first: of as many as A has, or as have no partner.
            let found = self.set_operation_pairs(operation, a, b);
            let mut of_b = Vec::new();
            self.cpu.set_operation(SetOperation::Difference, b, a, &mut of_b).expect("the CPU combines");
            let keeps_b = matches!(operation, SetOperation::Union | SetOperation::SymmetricDifference);
            let mut values_of_pairs = vec![0u64; expected.len()];
            // Backwards, a group's keys of B come first.
            let mut alone: Vec<_> = of_b.iter().map(|key| Key::to_ordered(*key)).collect();
            for (key, value) in expected.iter().zip(&mut values_of_pairs).rev() {
                if keeps_b && alone.last() == Some(&Key::to_ordered(*key)) {
                    alone.pop();
                    *value = 1;
                }
            }
            let (keys, values) = match found {
                Ok((keys, values)) => (Ok(keys), Ok(values)),
                Err(error) => (Err(error.clone()), Err(error)),
            };
            self.expect(|| format!("{operation} of {what}, with values"), keys, &expected);
            self.expect(|| format!("values of the {operation} of {what}"), values, &values_of_pairs);
        }
    }

    /// The operation with values that are 0 for keys of `a`, and 1 for those of `b`.
    fn set_operation_pairs<K: GpuKey>(
        &self,
        operation: SetOperation,
        a: &[K],
        b: &[K],
    ) -> Result<(Vec<K>, Vec<u64>), Error> {
        let stream = self.gpu.as_gpu().expect("this is the GPU engine").stream()?;
        let most = operation.most_keys(a.len(), b.len());
        let (of_a, of_b) = (stream.zeroed::<u64>(a.len())?, stream.upload(&vec![1u64; b.len()])?);
        let (a, b) = (stream.upload(a)?, stream.upload(b)?);
        let (mut keys, mut values, mut count) = (stream.zeroed::<K>(most)?, stream.zeroed(most)?, stream.zeroed(1)?);
        let mut workspace = stream.zeroed(Gpu::set_operation_workspace_bytes::<K>(a.len() + b.len()))?;
        let out = (&mut keys, &mut values);
        stream.set_operation_pairs(operation, (&a, &of_a), (&b, &of_b), out, &mut count, &mut workspace)?;
        first(&count, &keys, &values)
    }

    fn check_equal_keys<K: GpuKey>(&mut self, what: &str, keys: &[K]) {
        let by = |engine: &Engine| {
            let mut out = Vec::new();
            engine.unique(keys, &mut out).map(|_| out)
        };
        let (expected, found) = (by(&self.cpu).expect("the CPU finds them"), by(&self.gpu));
        self.expect(|| format!("unique keys of {what}"), found, &expected);
        let by = |engine: &Engine| {
            let (mut out, mut lengths) = (Vec::new(), Vec::new());
            engine.run_lengths(keys, &mut out, &mut lengths).map(|_| lengths)
        };
        let (expected, found) = (by(&self.cpu).expect("the CPU counts"), by(&self.gpu));
        self.expect(|| format!("run lengths of {what}"), found, &expected);
        self.check_reductions::<K, u32>(what, keys, |i| i as u32);
        self.check_reductions::<K, i64>(what, keys, |i| mix(i as u64) as i64);
        // Sums of these are exact.
        self.check_reductions::<K, f32>(what, keys, |i| (i % 3) as f32 - 1.0);
        self.check_reductions::<K, f64>(what, keys, |i| (i % 1000) as f64 - 500.0);
    }

    fn check_reductions<K: GpuKey, V: Summand>(&mut self, what: &str, keys: &[K], value: fn(usize) -> V) {
        let values: Vec<V> = (0..keys.len()).map(value).collect();
        for reduction in Reduction::ALL {
            let by = |engine: &Engine| {
                let (mut out, mut totals) = (Vec::new(), Vec::new());
                engine.reduce_by_key(reduction, keys, &values, &mut out, &mut totals).map(|_| totals)
            };
            let (expected, found) = (by(&self.cpu).expect("the CPU reduces"), by(&self.gpu));
            let name = <V as Key>::NAME;
            self.expect(|| format!("{reduction} of {name} values of {what}"), found, &expected);
        }
    }

    fn check_bounds<K: GpuKey>(&mut self, what: &str, needles: &[K], keys: &[K]) {
        let by = |engine: &Engine| {
            let (mut lower, mut upper) = (vec![7u32; needles.len()], vec![7u32; needles.len()]);
            engine.lower_bounds(needles, keys, &mut lower)?;
            engine.upper_bounds(needles, keys, &mut upper).map(|_| [lower, upper].concat())
        };
        let (expected, found) = (by(&self.cpu).expect("the CPU finds them"), by(&self.gpu));
        self.expect(|| format!("bounds of {what}"), found, &expected);
    }

    /// Prints how long operations on two sorted halves of `n` keys take, and at which part of the speed of a copy what they read and
    /// write is moved.
    pub(super) fn time_sets<K: GpuKey>(&self, n: usize) -> Result<(), Error> {
        let stream = self.gpu.as_gpu().expect("this is the GPU engine").stream()?;
        let half = |seed: u64, different: u64| {
            let mut keys: Vec<K> =
                (0..n as u64 / 2).map(|i| tests::distribution::key(mix(mix(i ^ seed << 40) % different))).collect();
            self.cpu.sort(&mut keys).map(|_| keys)
        };
        let all: Vec<K> = Distribution::Uniform.keys(n);
        let (from, mut out) = (stream.upload(&all)?, stream.zeroed::<K>(n)?);
        let copy = median_ms(&stream, |step| if step == Step::Launch { stream.copy(&from, &mut out) } else { Ok(()) })?;
        let copied = (2 * n * size_of::<K>()) as f64 / copy;
        let mut count = stream.zeroed::<u64>(1)?;
        let bytes = Gpu::set_operation_workspace_bytes::<K>(n).max(Gpu::groups_workspace_bytes::<K>(n));
        let mut workspace = stream.zeroed::<u8>(bytes.max(Gpu::bounds_workspace_bytes::<K>(n)))?;
        let row = |what: &str, ms: f64, moved: usize| {
            let part = moved as f64 / ms / copied;
            println!("{what:<48} {n:>10} {} {ms:>9.4} ms {part:>7.3} of copy", <K as Key>::NAME);
        };
        for (name, different) in [("all different", u64::MAX), ("of n / 2", n as u64 / 2), ("of 1000", 1000)] {
            let (a, b) = (stream.upload(&half(1, different)?)?, stream.upload(&half(2, different)?)?);
            for operation in SetOperation::ALL {
                let ms = median_ms(&stream, |step| match step {
                    Step::Prepare => Ok(()),
                    Step::Launch => stream.set_operation(operation, &a, &b, &mut out, &mut count, &mut workspace),
                })?;
                let kept = count.download()?[0] as usize;
                row(&format!("{operation}, {name}"), ms, (n + kept) * size_of::<K>());
            }
            let mut values = stream.zeroed::<u32>(n / 2)?;
            let ms = median_ms(&stream, |step| match step {
                Step::Prepare => Ok(()),
                Step::Launch => stream.unique(&a, &mut out, &mut count, &mut workspace),
            })?;
            let groups = count.download()?[0] as usize;
            row(&format!("unique, {name}, half of the keys"), ms, (n / 2 + groups) * size_of::<K>());
            let of_a = stream.zeroed::<u32>(n / 2)?;
            let mut groups_of_a = stream.zeroed::<K>(n / 2)?;
            let ms = median_ms(&stream, |step| match step {
                Step::Prepare => Ok(()),
                Step::Launch => {
                    let to = (&mut groups_of_a, &mut values);
                    stream.reduce_by_key(Reduction::Sum, (&a, &of_a), to, &mut count, &mut workspace)
                }
            })?;
            row(&format!("sums of u32, {name}, half of the keys"), ms, (n / 2 + groups) * (size_of::<K>() + 4));
            let ms = median_ms(&stream, |step| match step {
                Step::Prepare => Ok(()),
                Step::Launch => stream.lower_bounds(&a, &b, &mut values, &mut workspace),
            })?;
            row(&format!("lower bounds, {name}"), ms, n * size_of::<K>() + n / 2 * 4);
        }
        Ok(())
    }
}

/// The first keys and values of which `count` is the number.
fn first<K: GpuKey>(
    count: &DeviceArray<u64>,
    keys: &DeviceArray<K>,
    values: &DeviceArray<u64>,
) -> Result<(Vec<K>, Vec<u64>), Error> {
    let (count, mut keys, mut values) = (count.download()?[0] as usize, keys.download()?, values.download()?);
    keys.truncate(count);
    values.truncate(count);
    Ok((keys, values))
}
