//! Merges of groups of the runs of an array: of slices by the engine, of arrays of a stream, and in a graph with
//! offsets that change.

use super::table::Table;
use super::{KINDS, KINDS_BY_LOW_BITS, Random, Test, graph, poison};
use merge_host::{DeviceOffsets, Error, Gpu, GpuKey, Key, SortOrder, workspace};
use tests::distribution::Distribution;

/// Groups of runs with about `n` keys in all: the lengths of the runs of each group.
type Groups = (&'static str, fn(&mut Random, usize) -> Vec<Vec<usize>>);

/// Mixes of groups: with few and many keys, with few runs and more runs than one pass merges, and empty groups.
const MIXES: [Groups; 9] = [
    ("none", |_, _| vec![]),
    ("one run each", |random, n| groups(random, n, 1, 100)),
    ("pairs of short runs", |random, n| groups(random, n, 2, 10)),
    ("up to 5 runs of up to 300 keys", |random, n| groups(random, n, 5, 300)),
    ("up to 5 runs of up to 10000 keys", |random, n| groups(random, n, 5, 10_000)),
    ("up to 32 runs of up to 3000 keys", |random, n| groups(random, n, 32, 3000)),
    ("up to 200 runs of up to 3000 keys", |random, n| groups(random, n, 200, 3000)),
    ("one", |_, n| vec![vec![n / 50; 50]]),
    ("a long one among empty ones", |_, n| {
        [vec![vec![]; 50_000], vec![vec![n / 7; 7]], vec![vec![0; 3]; 50_000]].concat()
    }),
];

/// The timed numbers of keys and of runs in a group.
const TIMED: [(usize, usize); 11] = [
    (32, 2),
    (256, 4),
    (1024, 4),
    (1 << 11, 2),
    (1 << 11, 4),
    (1 << 12, 4),
    (1 << 12, 16),
    (1 << 14, 4),
    (1 << 14, 16),
    (1 << 20, 4),
    (1 << 20, 16),
];

/// Groups of up to `most` runs of up to `longest` keys, of about `n` keys together. Some groups are empty.
fn groups(random: &mut Random, n: usize, most: usize, longest: usize) -> Vec<Vec<usize>> {
    let (mut groups, mut sum): (Vec<Vec<usize>>, usize) = (vec![], 0);
    while sum < n {
        let runs = random.next() as usize % (most + 1);
        groups.push((0..runs).map(|_| random.next() as usize % (longest + 1)).collect());
        sum += groups[groups.len() - 1].iter().sum::<usize>();
    }
    groups
}

/// Offsets of these lengths.
fn offsets(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    [0].into_iter().chain(ends).collect()
}

/// Sorted runs in groups to merge.
struct Case<K> {
    order: SortOrder,
    keys: Vec<K>,
    offsets: Vec<usize>,
    groups: Vec<usize>,
    /// The offsets of groups, in keys.
    ends: Vec<usize>,
}

impl<K: GpuKey> Case<K> {
    fn new(test: &mut Test, order: SortOrder, groups: &[Vec<usize>], kind: fn(u64) -> u64) -> Self {
        let (runs, groups) = (offsets(groups.iter().flatten().copied()), offsets(groups.iter().map(Vec::len)));
        let ends: Vec<usize> = groups.iter().map(|&run| runs[run]).collect();
        let mut keys = test.keys::<K>(runs[runs.len() - 1], kind);
        test.cpu.sort_segments(order, &mut keys, &runs).expect("the CPU sorts");
        Self { order, keys, offsets: runs, groups, ends }
    }

    /// The keys and their indices, by the CPU's stable sort of each group.
    fn expected(&self, test: &Test) -> (Vec<K>, Vec<u32>) {
        let (mut keys, mut indices) = (self.keys.clone(), (0..self.keys.len() as u32).collect::<Vec<_>>());
        test.cpu.sort_segments(self.order, (&mut keys, &mut indices), &self.ends).expect("the CPU sorts");
        (keys, indices)
    }

    /// Merges on a stream.
    fn merge(&self, gpu: &Gpu) -> Result<Vec<K>, Error> {
        let (stream, n) = (gpu.stream()?, self.keys.len());
        let (from, mut out) = (stream.upload(&self.keys)?, stream.upload(&poison::<K>(n))?);
        let (offsets, groups) =
            (DeviceOffsets::new(&stream, &self.offsets)?, DeviceOffsets::new(&stream, &self.groups)?);
        let (runs, count) = (offsets.len() - 1, groups.len() - 1);
        let bytes = workspace::merge_many_ragged::<K, ()>(n, runs, count, groups.longest());
        stream.merge_many(self.order, &from, (&offsets, &groups), &mut out, &mut stream.zeroed(bytes)?)?;
        out.download()
    }

    /// Merges on a stream, with values that `value` computes from indices.
    fn merge_with_indices<V: Key + bytemuck::Pod>(
        &self,
        gpu: &Gpu,
        value: fn(usize) -> V,
    ) -> (Result<Vec<K>, Error>, Result<Vec<V>, Error>) {
        let merge = || {
            let (stream, n) = (gpu.stream()?, self.keys.len());
            let (from, mut out) = (stream.upload(&self.keys)?, stream.upload(&poison::<K>(n))?);
            let values = stream.upload(&(0..n).map(value).collect::<Vec<V>>())?;
            let mut to_values = stream.upload(&poison::<V>(n))?;
            let (offsets, groups) =
                (DeviceOffsets::new(&stream, &self.offsets)?, DeviceOffsets::new(&stream, &self.groups)?);
            let (runs, count) = (offsets.len() - 1, groups.len() - 1);
            let bytes = workspace::merge_many_ragged::<K, V>(n, runs, count, groups.longest());
            let (mut workspace, to) = (stream.zeroed(bytes)?, (&mut out, &mut to_values));
            stream.merge_many(self.order, (&from, &values), (&offsets, &groups), to, &mut workspace)?;
            Ok::<_, Error>((out.download()?, to_values.download()?))
        };
        match merge() {
            Ok((keys, values)) => (Ok(keys), Ok(values)),
            Err(error) => (Err(error.clone()), Err(error)),
        }
    }
}

impl Test {
    /// Merges of groups of keys, alone and with values, in both orders, compared with the CPU's stable sort of each
    /// group.
    pub(super) fn check_many_ragged<K: GpuKey>(&mut self) {
        let gpu = self.device().clone();
        let kinds = KINDS.into_iter().chain(KINDS_BY_LOW_BITS);
        for (i, (name, kind)) in kinds.enumerate() {
            for (mix, groups) in MIXES {
                let order = [SortOrder::Ascending, SortOrder::Descending][i % 2];
                let groups = groups(&mut self.random, 2_000_000);
                let case = Case::<K>::new(self, order, &groups, kind);
                let what = format!("merge of groups, {mix}, {} {name}, {order:?}", case.keys.len());
                let (expected, indices) = case.expected(self);
                self.expect(|| what.clone(), case.merge(&gpu), &expected);
                let (found, values) = case.merge_with_indices(&gpu, |i| i as u32);
                self.expect(|| format!("{what}, with values of 4 bytes"), found, &expected);
                self.expect(|| format!("{what}, values of 4 bytes"), values, &indices);
                let wide: Vec<u64> = indices.iter().map(|&i| i as u64).collect();
                let (found, values) = case.merge_with_indices(&gpu, |i| i as u64);
                self.expect(|| format!("{what}, with values of 8 bytes"), found, &expected);
                self.expect(|| format!("{what}, values of 8 bytes"), values, &wide);
                if order == SortOrder::Ascending {
                    self.check_groups_of_slices(&case, &what, &expected, &indices);
                }
            }
        }
    }

    /// Merges of slices by the engine: keys alone, with values that the GPU moves, and with other values.
    fn check_groups_of_slices<K: GpuKey>(&mut self, case: &Case<K>, what: &str, expected: &[K], indices: &[u32]) {
        let Case { keys, offsets, groups, .. } = case;
        let mut out = poison::<K>(keys.len());
        let found = self.gpu.merge_many_ragged(keys, (offsets, groups), &mut out).map(|_| out);
        self.expect(|| format!("{what}, of slices"), found, expected);
        let numbers: Vec<u32> = (0..keys.len() as u32).collect();
        let (mut out, mut values) = (poison::<K>(keys.len()), vec![u32::MAX; keys.len()]);
        let (from, groups) = ((keys, &numbers), (&offsets[..], &groups[..]));
        let found = self.gpu.merge_many_ragged(from, groups, (&mut out, &mut values)).map(|_| values);
        self.expect(|| format!("{what}, values of slices"), found, indices);
        self.expect(|| format!("{what}, of slices, with values"), Ok(out), expected);
        let wide: Vec<(u32, [u8; 8])> = numbers.iter().map(|&i| (i, [7; 8])).collect();
        let (mut out, mut values) = (poison::<K>(keys.len()), vec![(u32::MAX, [0; 8]); keys.len()]);
        let found = self.gpu.merge_many_ragged((keys, &wide), groups, (&mut out, &mut values));
        let found = found.map(|_| values.iter().map(|value| value.0).collect());
        self.expect(|| format!("{what}, wide values of slices"), found, indices);
    }

    /// Graphs of merges with offsets that change between launches: only the numbers of keys, runs and groups are
    /// captured.
    pub(super) fn check_many_ragged_graph<K: GpuKey>(&mut self) {
        const KEYS: usize = 700_001;
        for (runs, count) in [(100, 20), (2000, 150), (9000, 3000)] {
            let gpu = self.device().clone();
            gpu.prepare::<K>().expect("the device loads kernels");
            let stream = gpu.stream().expect("the device makes streams");
            let array = || stream.zeroed::<K>(KEYS).expect("the device has memory");
            let (mut from, mut out) = (array(), array());
            let of = |count: usize| stream.zeroed::<u64>(count + 1).expect("the device has memory");
            let (mut offsets, mut groups) = (of(runs), of(count));
            let bytes = workspace::merge_many_ragged::<K, ()>(KEYS, runs, count, usize::MAX);
            let mut workspace = stream.zeroed(bytes).expect("the device has memory");
            // SAFETY: both arrays live until the last download has waited. Before each launch of the graph they get
            // offsets that ascend from 0 to `KEYS` and to `runs`, and the calls only read them.
            let of_both = unsafe { (graph::changing_offsets(&offsets, KEYS), graph::changing_offsets(&groups, runs)) };
            let graph = graph::capture(&stream, || {
                let of_both = (&of_both.0, &of_both.1);
                stream.merge_many(SortOrder::Ascending, &from, of_both, &mut out, &mut workspace)
            });
            let graph = match graph {
                Ok(graph) => graph,
                Err(error) => return self.expect::<K>(|| "capture of a merge of groups".to_owned(), Err(error), &[]),
            };
            for repeat in 0..4 {
                let ends = |random: &mut Random, count: usize, all: usize| {
                    let mut ends: Vec<usize> = (1..count).map(|_| random.next() as usize % (all + 1)).collect();
                    ends.extend([0, all]);
                    ends.sort_unstable();
                    ends
                };
                let (run_ends, group_ends) = (ends(&mut self.random, runs, KEYS), ends(&mut self.random, count, runs));
                let mut keys = self.keys::<K>(KEYS, KINDS[0].1);
                self.cpu.sort_segments(SortOrder::Ascending, &mut keys, &run_ends).expect("the CPU sorts");
                from.upload(&keys).expect("the device copies");
                let words = |ends: &[usize]| ends.iter().map(|&end| end as u64).collect::<Vec<_>>();
                offsets.upload(&words(&run_ends)).expect("the device copies");
                groups.upload(&words(&group_ends)).expect("the device copies");
                // SAFETY: the arrays of the capture belong to this stream, and live until the download below has waited
                // for it.
                unsafe { graph.launch(&stream) };
                let found = out.download();
                let key_ends: Vec<usize> = group_ends.iter().map(|&run| run_ends[run]).collect();
                self.cpu.sort_segments(SortOrder::Ascending, &mut keys, &key_ends).expect("the CPU sorts");
                self.expect(|| format!("graph of a merge of {count} groups, launch {repeat}"), found, &keys);
            }
        }
    }

    /// Prints rows for merges of `n` keys in groups of equal length, alone and with values of 4 bytes.
    pub(super) fn time_many_ragged<K: GpuKey>(&self, n: usize) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, n)?;
        let all: Vec<K> = Distribution::Uniform.keys(n);
        let (mut from, mut out) = (stream.zeroed::<K>(n)?, stream.zeroed::<K>(n)?);
        let (values, mut to_values) = (stream.zeroed::<u32>(n)?, stream.zeroed::<u32>(n)?);
        let bytes = 2 * n * size_of::<K>();
        for (length, runs) in TIMED.into_iter().filter(|(length, _)| *length <= n) {
            let count = n / length;
            let offsets: Vec<usize> =
                (0..=count * runs).map(|run| (run as u128 * n as u128 / (count * runs) as u128) as usize).collect();
            let groups: Vec<usize> = (0..=count).map(|group| group * runs).collect();
            let mut keys = all.clone();
            self.cpu.sort_segments(SortOrder::Ascending, &mut keys, &offsets)?;
            from.upload(&keys)?;
            let (offsets, groups) = (DeviceOffsets::new(&stream, &offsets)?, DeviceOffsets::new(&stream, &groups)?);
            let pairs = workspace::merge_many_ragged::<K, u32>(n, count * runs, count, runs);
            let keys = workspace::merge_many_ragged::<K, ()>(n, count * runs, count, runs);
            let (mut workspace, order) = (stream.zeroed(pairs.max(keys))?, SortOrder::Ascending);
            let name = format!("groups of {length} keys in {runs} runs");
            let ms = table.time(|| {
                let to = (&mut out, &mut to_values);
                stream.merge_many(order, (&from, &values), (&offsets, &groups), to, &mut workspace)
            })?;
            table.row(&name, "+u32", n, ms, bytes + 2 * n * size_of::<u32>());
            let ms = table.time(|| stream.merge_many(order, &from, (&offsets, &groups), &mut out, &mut workspace))?;
            table.row(&name, "", n, ms, bytes);
        }
        Ok(())
    }
}
