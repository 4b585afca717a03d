//! Operations on sorted keys: set operations, groups of equal keys, and bounds.

use super::table::{Table, keys_of};
use super::{KINDS, Kind, Test, graph, poison};
use bytemuck::Pod;
use merge_host::{
    Bound, DeviceArray, Engine, Error, Gpu, GpuKey, Key, MergeKernel, Reduction, SetOperation, SortOrder, Stream,
    Summand, workspace,
};
use tests::distribution::mix;

/// Kinds of keys that occur in both arrays once, several times, and more often than a tile has keys.
const KINDS_OF_SETS: [Kind; 3] = [
    ("a million", |word| mix(word % 1_000_003)),
    ("a thousand", |word| mix(word % 1009)),
    ("half alike", |word| if word & 1 == 0 { 7 << 40 | 7 } else { mix(word) }),
];

/// Numbers of keys: below and above the keys of a tile, and several tiles.
const SIZES: [usize; 7] = [0, 1, 2, 4351, 4352, 10_000, 300_007];

/// A large number of keys. Comparing them with the CPU takes seconds, so it is done once for each kind.
const MANY: usize = 10_000_019;

/// The outputs of an operation: keys, their values if there are any, and the number of keys.
struct Kept<K> {
    keys: DeviceArray<K>,
    values: DeviceArray<u64>,
    count: DeviceArray<u64>,
}

impl<K: GpuKey> Kept<K> {
    /// Arrays for up to `most` keys.
    fn new(stream: &Stream, most: usize) -> Result<Self, Error> {
        Ok(Self {
            keys: stream.upload(&poison::<K>(most))?,
            values: stream.upload(&poison(most))?,
            count: stream.upload(&[u64::MAX])?,
        })
    }

    fn download(&self) -> Result<(Vec<K>, Vec<u64>), Error> {
        first(&self.keys, &self.values, &self.count)
    }
}

/// The first keys and their values, whose number is `count`.
pub(super) fn first<K: GpuKey, V: Pod>(
    keys: &DeviceArray<K>,
    values: &DeviceArray<V>,
    count: &DeviceArray<u64>,
) -> Result<(Vec<K>, Vec<V>), Error> {
    let (count, mut keys, mut values) = (count.download()?[0] as usize, keys.download()?, values.download()?);
    keys.truncate(count);
    values.truncate(count);
    Ok((keys, values))
}

impl Test {
    /// All operations on sorted keys, by the engines and, with values, on arrays of a stream.
    pub(super) fn check_sets<K: GpuKey>(&mut self) {
        for (name, kind) in KINDS.into_iter().chain(KINDS_OF_SETS) {
            for n in SIZES {
                for m in [0, n / 3, n / 2, n] {
                    self.check_two_arrays::<K>(name, kind, m, n - m);
                }
            }
            self.check_two_arrays::<K>(name, kind, MANY / 3, MANY - MANY / 3);
            for n in SIZES.into_iter().chain([MANY]) {
                let keys: Vec<K> = self.sorted(n, kind);
                self.check_equal_keys(&format!("{n} {name}"), &keys);
            }
        }
    }

    fn check_two_arrays<K: GpuKey>(&mut self, name: &str, kind: fn(u64) -> u64, m: usize, n: usize) {
        let (a, b): (Vec<K>, Vec<K>) = (self.sorted(m, kind), self.sorted(n, kind));
        let what = format!("{name}, {m} and {n}");
        self.check_set_operations(&what, &a, &b);
        self.check_bounds::<K>(&what, &a, &b);
    }

    fn check_set_operations<K: GpuKey>(&mut self, what: &str, a: &[K], b: &[K]) {
        for operation in SetOperation::ALL {
            let by = |engine: &Engine| {
                let mut out = Vec::new();
                engine.set_operation(operation, a, b, &mut out).map(|_| out)
            };
            let (expected, found) = (by(&self.cpu).expect("the CPU combines"), by(&self.gpu));
            self.expect(|| format!("{operation} of {what}"), found, &expected);
            let values = self.values_kept(operation, a, b, &expected);
            let what = format!("{operation} of {what}");
            self.expect_pairs(&what, self.set_operation_pairs(operation, a, b), &expected, &values);
        }
    }

    /// The expected values of the `kept` keys, 0 for keys of `a` and 1 for keys of `b`. Of a pair of equal keys, A's
    /// key is kept. In a group of equal keys, the keys of A come first: all of A's keys, or all that have no partner.
    fn values_kept<K: GpuKey>(&self, operation: SetOperation, a: &[K], b: &[K], kept: &[K]) -> Vec<u64> {
        let mut values = vec![0; kept.len()];
        if matches!(operation, SetOperation::Union | SetOperation::SymmetricDifference) {
            let mut of_b = Vec::new();
            self.cpu.set_operation(SetOperation::Difference, b, a, &mut of_b).expect("the CPU combines");
            // In reverse order, a group's keys of B come first.
            let mut alone: Vec<_> = of_b.iter().map(|key| Key::to_ordered(*key)).collect();
            for (key, value) in kept.iter().zip(&mut values).rev() {
                if alone.last() == Some(&Key::to_ordered(*key)) {
                    alone.pop();
                    *value = 1;
                }
            }
        }
        values
    }

    /// Compares keys and values.
    fn expect_pairs<K: GpuKey>(
        &mut self,
        what: &str,
        found: Result<(Vec<K>, Vec<u64>), Error>,
        keys: &[K],
        values: &[u64],
    ) {
        let (found, with) = match found {
            Ok((keys, values)) => (Ok(keys), Ok(values)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        self.expect(|| format!("{what}, with values"), found, keys);
        self.expect(|| format!("values of the {what}"), with, values);
    }

    /// The operation with value 0 for keys of `a`, and 1 for keys of `b`.
    fn set_operation_pairs<K: GpuKey>(
        &self,
        operation: SetOperation,
        a: &[K],
        b: &[K],
    ) -> Result<(Vec<K>, Vec<u64>), Error> {
        let stream = self.device().stream()?;
        let mut kept = Kept::new(&stream, operation.most_keys(a.len(), b.len()))?;
        let (of_a, of_b) = (stream.zeroed::<u64>(a.len())?, stream.upload(&vec![1u64; b.len()])?);
        let (a, b) = (stream.upload(a)?, stream.upload(b)?);
        let mut workspace = stream.zeroed(workspace::set_operation::<K>(a.len() + b.len()))?;
        let out = (&mut kept.keys, &mut kept.values);
        stream.set_operation(operation, (&a, &of_a), (&b, &of_b), out, &mut kept.count, &mut workspace)?;
        kept.download()
    }

    /// Each distinct key once, with the index of its first occurrence.
    fn unique_pairs<K: GpuKey>(&self, keys: &[K]) -> Result<(Vec<K>, Vec<u64>), Error> {
        let stream = self.device().stream()?;
        let mut kept = Kept::new(&stream, keys.len())?;
        let (keys, values) = (stream.upload(keys)?, stream.upload(&indices(keys.len()))?);
        let mut workspace = stream.zeroed(workspace::groups::<K>(keys.len()))?;
        let out = (&mut kept.keys, &mut kept.values);
        stream.unique((&keys, &values), out, &mut kept.count, &mut workspace)?;
        kept.download()
    }

    /// The CPU's result of a reduction of the keys' indices.
    fn reduced_indices<K: GpuKey>(&self, reduction: Reduction, keys: &[K]) -> (Vec<K>, Vec<u64>) {
        let (mut out, mut totals) = (Vec::new(), Vec::new());
        let by = self.cpu.reduce_by_key(reduction, (keys, &indices(keys.len())), (&mut out, &mut totals));
        by.expect("the CPU reduces");
        (out, totals)
    }

    fn check_equal_keys<K: GpuKey>(&mut self, what: &str, keys: &[K]) {
        let by = |engine: &Engine| {
            let mut out = Vec::new();
            engine.unique(keys, &mut out).map(|_| out)
        };
        let (expected, found) = (by(&self.cpu).expect("the CPU finds them"), by(&self.gpu));
        self.expect(|| format!("unique keys of {what}"), found, &expected);
        let (keys_once, first) = self.reduced_indices(Reduction::Min, keys);
        self.expect_pairs(&format!("unique keys of {what}"), self.unique_pairs(keys), &keys_once, &first);
        let by = |engine: &Engine| {
            let (mut out, mut lengths) = (Vec::new(), Vec::new());
            engine.run_lengths(keys, (&mut out, &mut lengths)).map(|_| lengths)
        };
        let (expected, found) = (by(&self.cpu).expect("the CPU counts"), by(&self.gpu));
        self.expect(|| format!("run lengths of {what}"), found, &expected);
        self.check_reductions::<K, u32>(what, keys, |i| i as u32);
        self.check_reductions::<K, i64>(what, keys, |i| mix(i as u64) as i64);
        // Sums of these numbers are exact.
        self.check_reductions::<K, f32>(what, keys, |i| (i % 3) as f32 - 1.0);
        self.check_reductions::<K, f64>(what, keys, |i| (i % 1000) as f64 - 500.0);
    }

    fn check_reductions<K: GpuKey, V: Summand>(&mut self, what: &str, keys: &[K], value: fn(usize) -> V) {
        let values: Vec<V> = (0..keys.len()).map(value).collect();
        for reduction in Reduction::ALL {
            let by = |engine: &Engine| {
                let (mut out, mut totals) = (Vec::new(), Vec::new());
                engine.reduce_by_key(reduction, (keys, &values), (&mut out, &mut totals)).map(|_| totals)
            };
            let (expected, found) = (by(&self.cpu).expect("the CPU reduces"), by(&self.gpu));
            let name = <V as Key>::NAME;
            self.expect(|| format!("{reduction} of {name} values of {what}"), found, &expected);
        }
    }

    fn check_bounds<K: GpuKey>(&mut self, what: &str, needles: &[K], keys: &[K]) {
        let by = |engine: &Engine| {
            let (mut lower, mut upper) = (vec![7u32; needles.len()], vec![7u32; needles.len()]);
            engine.bounds(Bound::Lower, needles, keys, &mut lower)?;
            engine.bounds(Bound::Upper, needles, keys, &mut upper).map(|_| [lower, upper].concat())
        };
        let (expected, found) = (by(&self.cpu).expect("the CPU finds them"), by(&self.gpu));
        self.expect(|| format!("bounds of {what}"), found, &expected);
    }

    /// All operations in one graph, launched with other keys than in the capture. The number of kept keys depends on
    /// the present keys.
    pub(super) fn check_sets_graph<K: GpuKey>(&mut self) {
        const M: usize = 300_007;
        const N: usize = 200_003;
        let gpu = Gpu::new(0).expect("there is a GPU");
        gpu.prepare::<K>().expect("kernels load");
        let stream = gpu.stream().expect("the device makes streams");
        let array = |n| stream.zeroed::<K>(n).expect("the device has memory");
        let upload = |values: &[u64]| stream.upload(values).expect("the device has memory");
        let kept = |most| Kept::<K>::new(&stream, most).expect("the device has memory");
        let (mut a, mut b) = (array(M), array(N));
        let (of_a, of_b, by_index) = (upload(&[0; M]), upload(&[1; N]), upload(&indices(M)));
        let mut sets = SetOperation::ALL.map(|_| [(); 2].map(|()| kept(M + N)));
        let mut groups = [(); 4].map(|()| kept(M));
        let [mut lower, mut upper] = [(); 2].map(|()| stream.zeroed::<u32>(N).expect("the device has memory"));
        let bytes = workspace::set_operation::<K>(M + N).max(workspace::groups::<K>(M));
        let bytes = bytes.max(workspace::bounds::<K>(M + N));
        let mut workspace = stream.zeroed::<u8>(bytes).expect("the device has memory");
        let graph = graph::capture(&stream, || {
            let workspace = &mut workspace;
            for (operation, [alone, pairs]) in SetOperation::ALL.into_iter().zip(&mut sets) {
                stream.set_operation(operation, &a, &b, &mut alone.keys, &mut alone.count, workspace)?;
                let out = (&mut pairs.keys, &mut pairs.values);
                stream.set_operation(operation, (&a, &of_a), (&b, &of_b), out, &mut pairs.count, workspace)?;
            }
            let [alone, first, lengths, sums] = &mut groups;
            stream.unique(&a, &mut alone.keys, &mut alone.count, workspace)?;
            let out = (&mut first.keys, &mut first.values);
            stream.unique((&a, &by_index), out, &mut first.count, workspace)?;
            stream.run_lengths(&a, (&mut lengths.keys, &mut lengths.values), &mut lengths.count, workspace)?;
            let out = (&mut sums.keys, &mut sums.values);
            stream.reduce_by_key(Reduction::Sum, (&a, &by_index), out, &mut sums.count, workspace)?;
            stream.bounds(Bound::Lower, &b, &a, &mut lower, workspace)?;
            stream.bounds(Bound::Upper, &b, &a, &mut upper, workspace)
        });
        let graph = match graph {
            Ok(graph) => graph,
            Err(error) => {
                return self.expect::<K>(|| "capture of operations on sorted keys".to_owned(), Err(error), &[]);
            }
        };
        for (name, kind) in KINDS.into_iter().chain(KINDS_OF_SETS) {
            let (x, y): (Vec<K>, Vec<K>) = (self.sorted(M, kind), self.sorted(N, kind));
            a.upload(&x).expect("the device copies");
            b.upload(&y).expect("the device copies");
            // SAFETY: the arrays of the capture belong to this stream, and live until the downloads below have waited
            // for it.
            unsafe { graph.launch(&stream) };
            for (operation, [alone, pairs]) in SetOperation::ALL.into_iter().zip(&sets) {
                let mut expected = Vec::new();
                self.cpu.set_operation(operation, &x, &y, &mut expected).expect("the CPU combines");
                let what = format!("graph of {operation}, {name}");
                self.expect(|| what.clone(), alone.download().map(|(keys, _)| keys), &expected);
                let values = self.values_kept(operation, &x, &y, &expected);
                self.expect_pairs(&what, pairs.download(), &expected, &values);
            }
            let [alone, first, lengths, sums] = &groups;
            let (once, expected) = self.reduced_indices(Reduction::Min, &x);
            self.expect(|| format!("graph of unique, {name}"), alone.download().map(|(keys, _)| keys), &once);
            self.expect_pairs(&format!("graph of unique, {name}"), first.download(), &once, &expected);
            let (mut once, mut expected) = (Vec::new(), Vec::new());
            self.cpu.run_lengths(&x, (&mut once, &mut expected)).expect("the CPU counts");
            self.expect_pairs(&format!("graph of run lengths, {name}"), lengths.download(), &once, &expected);
            let (once, expected) = self.reduced_indices(Reduction::Sum, &x);
            self.expect_pairs(&format!("graph of sums, {name}"), sums.download(), &once, &expected);
            let mut expected = vec![u32::MAX; N];
            self.cpu.bounds(Bound::Lower, &y, &x, &mut expected).expect("the CPU finds them");
            self.expect(|| format!("graph of lower bounds, {name}"), lower.download(), &expected);
            self.cpu.bounds(Bound::Upper, &y, &x, &mut expected).expect("the CPU finds them");
            self.expect(|| format!("graph of upper bounds, {name}"), upper.download(), &expected);
        }
    }

    /// Prints rows for operations on sorted keys, `n` in all, alone and with values of type `u32`. Only the values of
    /// kept keys count as read and written.
    pub(super) fn time_sets<K: GpuKey>(&self, n: usize) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, n)?;
        let (key, value) = (size_of::<K>(), size_of::<u32>());
        let (mut all, mut out) = (stream.zeroed::<K>(n)?, stream.zeroed::<K>(n)?);
        let (of_a, of_b) = (stream.zeroed::<u32>(n / 2)?, stream.zeroed::<u32>(n / 2)?);
        let (of_all, mut out_values) = (stream.zeroed::<u32>(n)?, stream.zeroed::<u32>(n)?);
        let (mut lengths, mut bounds) = (stream.zeroed::<u64>(n)?, stream.zeroed::<u32>(n / 2)?);
        let mut count = stream.zeroed::<u64>(1)?;
        let most = [
            workspace::sort::<K, ()>(n / 2),
            workspace::merge::<K, ()>(MergeKernel::Auto, n),
            workspace::set_operation::<K>(n),
            workspace::groups::<K>(n),
            workspace::bounds::<K>(n),
        ];
        let mut workspace = stream.zeroed::<u8>(most.into_iter().max().unwrap_or(0))?;
        let kept = |count: &DeviceArray<u64>| count.download().map(|count| count[0] as usize);
        for (kinds, different) in [("all different", u64::MAX), ("of n / 2", n as u64 / 2), ("of 1000", 1000)] {
            let mut side = |seed: u64| {
                let mut side = stream.upload(&keys_of::<K>(n / 2, |i| mix(mix(i ^ seed << 40) % different)))?;
                stream.sort(SortOrder::Ascending, &mut side, &mut workspace).map(|()| side)
            };
            let (a, b) = (side(1)?, side(2)?);
            let ms = table.time(|| stream.merge(MergeKernel::Auto, &a, &b, &mut all, &mut workspace))?;
            table.row(&format!("merge, {kinds}"), "", n, ms, 2 * n * key);
            for operation in SetOperation::ALL {
                let what = format!("{operation}, {kinds}");
                let ms =
                    table.time(|| stream.set_operation(operation, &a, &b, &mut out, &mut count, &mut workspace))?;
                let keys = kept(&count)?;
                table.row(&what, "", n, ms, (n + keys) * key);
                let (a, b) = ((&a, &of_a), (&b, &of_b));
                let ms = table.time(|| {
                    let out = (&mut out, &mut out_values);
                    stream.set_operation(operation, a, b, out, &mut count, &mut workspace)
                })?;
                table.row(&what, "+u32", n, ms, (n + keys) * key + 2 * keys * value);
            }

            let ms = table.time(|| stream.unique(&all, &mut out, &mut count, &mut workspace))?;
            let groups = kept(&count)?;
            table.row(&format!("unique, {kinds}"), "", n, ms, (n + groups) * key);
            let pairs = (&all, &of_all);
            let ms = table.time(|| stream.unique(pairs, (&mut out, &mut out_values), &mut count, &mut workspace))?;
            table.row(&format!("unique, {kinds}"), "+u32", n, ms, (n + groups) * key + 2 * groups * value);
            let ms = table.time(|| stream.run_lengths(&all, (&mut out, &mut lengths), &mut count, &mut workspace))?;
            table.row(&format!("run lengths, {kinds}"), "", n, ms, (n + groups) * key + groups * size_of::<u64>());
            for reduction in [Reduction::Sum, Reduction::Min] {
                let ms = table.time(|| {
                    let out = (&mut out, &mut out_values);
                    stream.reduce_by_key(reduction, pairs, out, &mut count, &mut workspace)
                })?;
                table.row(&format!("{reduction} by key, {kinds}"), "+u32", n, ms, (n + groups) * (key + value));
            }

            let moved = n * key + n / 2 * size_of::<u32>();
            let ms = table.time(|| stream.bounds(Bound::Lower, &a, &b, &mut bounds, &mut workspace))?;
            table.row(&format!("lower bounds, {kinds}"), "", n, ms, moved);
            let ms = table.time(|| stream.bounds(Bound::Upper, &a, &b, &mut bounds, &mut workspace))?;
            table.row(&format!("upper bounds, {kinds}"), "", n, ms, moved);
        }
        Ok(())
    }
}

/// The numbers from 0 to `n`, without `n`.
fn indices(n: usize) -> Vec<u64> {
    (0..n as u64).collect()
}
