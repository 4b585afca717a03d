//! Merges of the runs of an array: on a stream, and in a graph with offsets that change.

use super::table::Table;
use super::{KINDS, KINDS_BY_LOW_BITS, Random, Test, graph, poison};
use merge_host::{DeviceOffsets, Error, GpuKey, Key, SortOrder, workspace};
use tests::distribution::Distribution;

/// Numbers of runs and numbers of keys.
const RUNS: [(usize, usize); 16] = [
    (0, 0),
    (1, 1000),
    (2, 1),
    (2, 3_000_017),
    (3, 500_000),
    (4, 1_000_003),
    (5, 77),
    (8, 2_000_000),
    (16, 3_000_000),
    (31, 217),
    (32, 3_000_000),
    (33, 3_000_000),
    (100, 1_000_000),
    (1024, 500_000),
    (1025, 2_000_000),
    (5000, 1_000_000),
];

/// Numbers of runs that are timed.
const TIMED_RUNS: [usize; 6] = [2, 4, 8, 16, 32, 256];

/// The offsets of `count` runs of `n` keys in all, with the end. Lengths are random. Some runs are empty, and sometimes
/// one run has nearly all keys.
fn offsets(random: &mut Random, count: usize, n: usize) -> Vec<usize> {
    let near_end = random.next().is_multiple_of(3);
    let mut offsets: Vec<usize> = (1..count.max(1))
        .map(|_| random.next() as usize % (n + 1))
        .map(|offset| if near_end { n - offset / 100 } else { offset })
        .collect();
    // About every fifth run is empty.
    for i in (4..offsets.len()).step_by(5) {
        offsets[i] = offsets[i - 1];
    }
    offsets.extend(if count > 0 { vec![0, n] } else { vec![0] });
    offsets.sort_unstable();
    offsets
}

impl Test {
    /// Keys in sorted runs.
    fn runs<K: GpuKey>(&mut self, order: SortOrder, offsets: &[usize], kind: fn(u64) -> u64) -> Vec<K> {
        let mut keys = self.keys::<K>(offsets[offsets.len() - 1], kind);
        self.cpu.sort_segments(order, &mut keys, offsets).expect("the CPU sorts");
        keys
    }

    /// Merges of keys, alone and with values, in both orders, compared with the CPU's stable sort of all keys.
    pub(super) fn check_many_runs<K: GpuKey>(&mut self) {
        for (name, kind) in KINDS.into_iter().chain(KINDS_BY_LOW_BITS) {
            for (count, n) in RUNS {
                for order in [SortOrder::Ascending, SortOrder::Descending] {
                    let offsets = offsets(&mut self.random, count, n);
                    let keys = self.runs::<K>(order, &offsets, kind);
                    let what = format!("merge of {n} {name} in {count} runs, {order:?}");
                    let (mut expected, mut indices) = (keys.clone(), (0..n as u32).collect::<Vec<_>>());
                    self.cpu.sort_with(order, (&mut expected, &mut indices)).expect("the CPU sorts");
                    let found = self.merge_runs(order, &keys, &offsets);
                    self.expect(|| what.clone(), found, &expected);
                    let (found, values) = self.merge_runs_with_indices(order, &keys, &offsets, |i| i as u32);
                    self.expect(|| format!("{what}, with values of 4 bytes"), found, &expected);
                    self.expect(|| format!("{what}, values of 4 bytes"), values, &indices);
                    let wide: Vec<u64> = indices.iter().map(|&i| i as u64).collect();
                    let (found, values) = self.merge_runs_with_indices(order, &keys, &offsets, |i| i as u64);
                    self.expect(|| format!("{what}, with values of 8 bytes"), found, &expected);
                    self.expect(|| format!("{what}, values of 8 bytes"), values, &wide);
                }
            }
        }
        // Unsorted runs: any order is accepted, but the stream must stay usable.
        let offsets = offsets(&mut self.random, 20, 1_000_003);
        let keys = self.keys::<K>(1_000_003, KINDS[0].1);
        let found = self.merge_runs(SortOrder::Ascending, &keys, &offsets).map(|_| Vec::new());
        self.expect::<K>(|| "merge of runs that are not sorted".to_owned(), found, &[]);
        let (found, _) = self.merge_runs_with_indices(SortOrder::Ascending, &keys, &offsets, |i| i as u64);
        self.expect::<K>(
            || "merge of runs that are not sorted, with values".to_owned(),
            found.map(|_| Vec::new()),
            &[],
        );
    }

    fn merge_runs<K: GpuKey>(&self, order: SortOrder, keys: &[K], offsets: &[usize]) -> Result<Vec<K>, Error> {
        let stream = self.device().stream()?;
        let (from, mut out) = (stream.upload(keys)?, stream.upload(&poison::<K>(keys.len()))?);
        let mut workspace = stream.zeroed(workspace::merge_many::<K, ()>(keys.len(), offsets.len() - 1))?;
        stream.merge_many(order, &from, &DeviceOffsets::new(&stream, offsets)?, &mut out, &mut workspace)?;
        out.download()
    }

    /// A merge on a stream, with values that `value` computes from indices.
    fn merge_runs_with_indices<K: GpuKey, V: Key + bytemuck::Pod>(
        &self,
        order: SortOrder,
        keys: &[K],
        offsets: &[usize],
        value: fn(usize) -> V,
    ) -> (Result<Vec<K>, Error>, Result<Vec<V>, Error>) {
        let merge = || {
            let stream = self.device().stream()?;
            let (n, runs) = (keys.len(), offsets.len() - 1);
            let (from, mut out) = (stream.upload(keys)?, stream.upload(&poison::<K>(n))?);
            let values = stream.upload(&(0..n).map(value).collect::<Vec<V>>())?;
            let mut to_values = stream.upload(&poison::<V>(n))?;
            let mut workspace = stream.zeroed(workspace::merge_many::<K, V>(n, runs))?;
            let (offsets, to) = (DeviceOffsets::new(&stream, offsets)?, (&mut out, &mut to_values));
            stream.merge_many(order, (&from, &values), &offsets, to, &mut workspace)?;
            Ok::<_, Error>((out.download()?, to_values.download()?))
        };
        match merge() {
            Ok((keys, values)) => (Ok(keys), Ok(values)),
            Err(error) => (Err(error.clone()), Err(error)),
        }
    }

    /// Graphs of merges with offsets that change between launches: only the numbers of keys and of runs are captured.
    pub(super) fn check_many_runs_graph<K: GpuKey>(&mut self) {
        const KEYS: usize = 700_001;
        for count in [2, 32, 100] {
            let gpu = self.device().clone();
            gpu.prepare::<K>().expect("the device loads kernels");
            let stream = gpu.stream().expect("the device makes streams");
            let array = || stream.zeroed::<K>(KEYS).expect("the device has memory");
            let (mut from, mut out) = (array(), array());
            let mut on_device = stream.zeroed::<u64>(count + 1).expect("the device has memory");
            let bytes = workspace::merge_many::<K, ()>(KEYS, count);
            let mut workspace = stream.zeroed(bytes).expect("the device has memory");
            // SAFETY: `on_device` lives until the last download has waited. Before each launch of the graph it gets
            // offsets that ascend from 0 to `KEYS`, and the calls only read them.
            let changing = unsafe { graph::changing_offsets(&on_device, KEYS) };
            let graph = graph::capture(&stream, || {
                stream.merge_many(SortOrder::Ascending, &from, &changing, &mut out, &mut workspace)
            });
            let graph = match graph {
                Ok(graph) => graph,
                Err(error) => return self.expect::<K>(|| "capture of a merge of runs".to_owned(), Err(error), &[]),
            };
            for repeat in 0..4 {
                let offsets = offsets(&mut self.random, count, KEYS);
                let keys = self.runs::<K>(SortOrder::Ascending, &offsets, KINDS[0].1);
                from.upload(&keys).expect("the device copies");
                on_device
                    .upload(&offsets.iter().map(|&end| end as u64).collect::<Vec<_>>())
                    .expect("the device copies");
                // SAFETY: the arrays of the capture belong to this stream, and live until the download below has waited
                // for it.
                unsafe { graph.launch(&stream) };
                let found = out.download();
                let mut expected = keys;
                self.cpu.sort(&mut expected).expect("the CPU sorts");
                self.expect(|| format!("graph of a merge of {count} runs, launch {repeat}"), found, &expected);
            }
        }
    }

    /// Prints rows for merges of `n` keys in runs of equal length, alone and with values of 4 bytes.
    pub(super) fn time_many_runs<K: GpuKey>(&self, n: usize) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, n)?;
        let all: Vec<K> = Distribution::Uniform.keys(n);
        let (mut from, mut out) = (stream.zeroed::<K>(n)?, stream.zeroed::<K>(n)?);
        let (values, mut to_values) = (stream.zeroed::<u32>(n)?, stream.zeroed::<u32>(n)?);
        let bytes = 2 * n * size_of::<K>();
        for count in TIMED_RUNS {
            let offsets: Vec<usize> = (0..=count).map(|run| run * n / count).collect();
            let mut keys = all.clone();
            self.cpu.sort_segments(SortOrder::Ascending, &mut keys, &offsets)?;
            from.upload(&keys)?;
            let offsets = DeviceOffsets::new(&stream, &offsets)?;
            let pairs = workspace::merge_many::<K, u32>(n, count);
            let mut workspace = stream.zeroed(pairs.max(workspace::merge_many::<K, ()>(n, count)))?;
            let ms = table.time(|| {
                let to = (&mut out, &mut to_values);
                stream.merge_many(SortOrder::Ascending, (&from, &values), &offsets, to, &mut workspace)
            })?;
            table.row(&format!("{count} runs"), "+u32", n, ms, bytes + 2 * n * size_of::<u32>());
            for (order, name) in [(SortOrder::Ascending, ""), (SortOrder::Descending, ", descending")] {
                if order == SortOrder::Descending {
                    // The runs reversed, for descending order.
                    from.upload(&keys.iter().rev().copied().collect::<Vec<K>>())?;
                }
                let ms = table.time(|| stream.merge_many(order, &from, &offsets, &mut out, &mut workspace))?;
                table.row(&format!("{count} runs{name}"), "", n, ms, bytes);
            }
        }
        Ok(())
    }
}
