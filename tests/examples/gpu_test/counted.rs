//! The first k of the first keys, bounds of and in such keys, and segments and runs: only the GPU knows how many there
//! are.

use super::sets::first;
use super::{KINDS, Test, graph, poison};
use merge_host::{
    Bound, Counted, DeviceArray, DeviceOffsets, Error, GpuKey, Key, Segments, SortOrder, Stream, workspace,
};

/// The arrays of a chain of operations: the first k of keys, and the bounds of needles in the sorted keys.
struct Selection<K> {
    keys: DeviceArray<K>,
    sorted: DeviceArray<K>,
    needles: DeviceArray<K>,
    /// The numbers of keys and of needles.
    counts: [DeviceArray<u64>; 2],
    values: DeviceArray<u64>,
    out: DeviceArray<K>,
    out_values: DeviceArray<u64>,
    selected: DeviceArray<u64>,
    indices: DeviceArray<u32>,
    bounds: [DeviceArray<u32>; 2],
    memory: DeviceArray<u8>,
}

impl<K: GpuKey> Selection<K> {
    fn new(stream: &Stream, n: usize, m: usize, k: usize) -> Result<Self, Error> {
        let bytes = [
            workspace::top_k::<K, u64>(n, k),
            workspace::top_k::<K, u32>(n, k),
            workspace::sort::<K, ()>(n),
            workspace::bounds::<K>(n + m),
        ];
        Ok(Self {
            keys: stream.zeroed(n)?,
            sorted: stream.zeroed(n)?,
            needles: stream.zeroed(m)?,
            counts: [stream.zeroed(1)?, stream.zeroed(1)?],
            values: stream.upload(&(0..n as u64).map(|i| 3 * i).collect::<Vec<_>>())?,
            out: stream.upload(&poison::<K>(k))?,
            out_values: stream.upload(&poison(k))?,
            selected: stream.zeroed(1)?,
            indices: stream.upload(&poison(k))?,
            bounds: [stream.upload(&poison(m))?, stream.upload(&poison(m))?],
            memory: stream.upload(&poison::<u8>(bytes.into_iter().max().unwrap_or(0)))?,
        })
    }

    /// Queues the operations: the selection with values and with indices, a sort of a copy, and both bounds.
    fn run(&mut self, stream: &Stream) -> Result<(), Error> {
        let ([n, m], memory) = (&self.counts, &mut self.memory);
        let out = Counted((&mut self.out, &mut self.indices), &mut self.selected);
        stream.top_k(SortOrder::Descending, Counted(&self.keys, n), out, memory)?;
        let (from, out) = ((&self.keys, &self.values), (&mut self.out, &mut self.out_values));
        stream.top_k(SortOrder::Descending, Counted(from, n), Counted(out, &mut self.selected), memory)?;
        self.sorted.copy_from(&self.keys)?;
        stream.sort(SortOrder::Ascending, Counted(&mut self.sorted, n), memory)?;
        let [lower, upper] = &mut self.bounds;
        let (needles, keys) = (Counted(&self.needles, m), Counted(&self.sorted, n));
        stream.bounds(Bound::Lower, needles, keys, lower, memory)?;
        stream.bounds(Bound::Upper, needles, keys, upper, memory)
    }
}

/// The arrays of a chain of operations: groups of equal neighbours as segments, which are sorted, and then merged.
struct Grouping<K> {
    groups: DeviceArray<u32>,
    number: DeviceArray<u64>,
    heads: DeviceArray<u32>,
    lengths: DeviceArray<u64>,
    count: DeviceArray<u64>,
    offsets: DeviceOffsets,
    keys: DeviceArray<K>,
    out: DeviceArray<K>,
    memory: DeviceArray<u8>,
}

impl<K: GpuKey> Grouping<K> {
    fn new(stream: &Stream, n: usize) -> Result<Self, Error> {
        let bytes =
            [workspace::groups::<u32>(n), workspace::sort_segments::<K, ()>(n), workspace::merge_many::<K, ()>(n, n)];
        Ok(Self {
            groups: stream.zeroed(n)?,
            number: stream.zeroed(1)?,
            heads: stream.upload(&poison(n))?,
            lengths: stream.upload(&poison(n))?,
            count: stream.zeroed(1)?,
            offsets: DeviceOffsets::empty(stream, n, n)?,
            keys: stream.zeroed(n)?,
            out: stream.upload(&poison::<K>(n))?,
            memory: stream.upload(&poison::<u8>(bytes.into_iter().max().unwrap_or(0)))?,
        })
    }

    fn run(&mut self, stream: &Stream) -> Result<(), Error> {
        let (from, heads) = (Counted(&self.groups, &self.number), (&mut self.heads, &mut self.lengths));
        stream.run_lengths(from, heads, &mut self.count, &mut self.memory)?;
        self.offsets.set(stream, Counted(&self.lengths, &self.count))?;
        let segments = Segments::Offsets(&self.offsets);
        stream.sort_segments(SortOrder::Ascending, &mut self.keys, segments, &mut self.memory)?;
        stream.merge_many(SortOrder::Ascending, &self.keys, &self.offsets, &mut self.out, &mut self.memory)
    }
}

impl Test {
    /// A graph of operations on segments and runs whose number and lengths change between launches.
    pub(super) fn check_counted_groups<K: GpuKey>(&mut self) {
        for most in [1, 2, 1000, 100_003, 3_000_017] {
            let gpu = self.device();
            gpu.prepare::<K>().expect("kernels load");
            gpu.prepare::<u32>().expect("kernels load");
            let stream = gpu.stream().expect("the device makes streams");
            let mut chain = Grouping::<K>::new(&stream, most).expect("the device has memory");
            let graph = match graph::capture(&stream, || chain.run(&stream)) {
                Ok(graph) => graph,
                Err(error) => return self.expect::<K>(|| "capture of groups".to_owned(), Err(error), &[]),
            };
            for (i, n) in [most, 0, most / 2, 1, most - 1, most + 1].into_iter().enumerate() {
                // Groups of a few keys, of some hundred, and of many more than a block sorts.
                let longest = [5, 500, 300_000][i % 3];
                let mut groups = vec![];
                while groups.len() < most {
                    let length = 1 + (self.random.next() % longest) as usize;
                    groups.resize(most.min(groups.len() + length), groups.last().map_or(0, |group| group ^ 1));
                }
                let (name, kind) = KINDS[i % 3];
                let mut keys: Vec<K> = self.keys(most, kind);
                chain.groups.upload(&groups).expect("the device copies");
                chain.keys.upload(&keys).expect("the device copies");
                chain.number.upload(&[n as u64]).expect("the device copies");
                // SAFETY: the arrays of the capture belong to this stream, and live until the downloads have waited for
                // it.
                unsafe { graph.launch(&stream) };
                keys.truncate(n);
                let (what, mut begin) = (format!("groups of {n} of {most} {name}"), 0);
                for group in groups[..keys.len()].chunk_by(|a, b| a == b) {
                    self.cpu.sort(&mut keys[begin..][..group.len()]).expect("the CPU sorts");
                    begin += group.len();
                }
                let first = |found: Result<Vec<K>, Error>| found.map(|found| found[..begin].to_vec());
                self.expect(|| format!("segments, {what}"), first(chain.keys.download()), &keys);
                self.cpu.sort(&mut keys).expect("the CPU sorts");
                self.expect(|| format!("runs, {what}"), first(chain.out.download()), &keys);
            }
        }
    }

    /// A graph of selections and bounds whose numbers of keys change between launches.
    pub(super) fn check_counted_selections<K: GpuKey>(&mut self) {
        for (most, k) in [(1, 1), (1000, 10), (100_003, 5000), (3_000_017, 100), (5_000_011, 1 << 20)] {
            let gpu = self.device();
            gpu.prepare::<K>().expect("kernels load");
            let stream = gpu.stream().expect("the device makes streams");
            // Few needles are searched one by one.
            let needles = if most % 2 == 0 { most / 40 + 1 } else { most / 3 + 1 };
            let mut chain = Selection::<K>::new(&stream, most, needles, k).expect("the device has memory");
            let graph = match graph::capture(&stream, || chain.run(&stream)) {
                Ok(graph) => graph,
                Err(error) => return self.expect::<K>(|| "capture of selections".to_owned(), Err(error), &[]),
            };
            for (i, n) in [most, 0, most / 2, 1, k - 1, k, most + 1].into_iter().enumerate() {
                let (name, kind) = KINDS[i % 3];
                let m = [needles, needles / 2, 0][i % 3];
                let (keys, mut sought): (Vec<K>, Vec<K>) = (self.keys(most, kind), self.keys(needles, kind));
                self.cpu.sort(&mut sought[..m]).expect("the CPU sorts");
                chain.keys.upload(&keys).expect("the device copies");
                chain.needles.upload(&sought).expect("the device copies");
                for (array, number) in chain.counts.iter_mut().zip([n, m]) {
                    array.upload(&[number as u64]).expect("the device copies");
                }
                // SAFETY: the arrays of the capture belong to this stream, and live until the downloads have waited for
                // it.
                unsafe { graph.launch(&stream) };
                let what = format!("first {k} of {n} of {most} and {m} needles, {name}");
                self.expect_selection(&what, &chain, &keys[..n.min(most)], &sought[..m]);
            }
        }
    }

    /// Compares the results of a chain with those of the CPU.
    fn expect_selection<K: GpuKey>(&mut self, what: &str, chain: &Selection<K>, keys: &[K], needles: &[K]) {
        let (mut sorted, permutation) = self.stable_sort(SortOrder::Descending, keys);
        let k = chain.out.len().min(keys.len());
        let values: Vec<u64> = permutation[..k].iter().map(|i| 3 * u64::from(*i)).collect();
        let found = first(&chain.out, &chain.out_values, &chain.selected);
        self.expect_both(what, found, (&sorted[..k], &values));
        let found = chain.indices.download().map(|indices| indices[..k].to_vec());
        self.expect(|| format!("indices, {what}"), found, &permutation[..k]);
        sorted.reverse();
        let ordered: Vec<_> = sorted.into_iter().map(Key::to_ordered).collect();
        for (which, found) in [Bound::Lower, Bound::Upper].into_iter().zip(&chain.bounds) {
            let bound = |needle: &K| {
                let needle = needle.to_ordered();
                ordered.partition_point(|key| *key < needle || which == Bound::Upper && *key == needle) as u32
            };
            let expected: Vec<u32> = needles.iter().map(bound).collect();
            let found = found.download().map(|bounds| bounds[..needles.len()].to_vec());
            self.expect(|| format!("{which:?} bounds, {what}"), found, &expected);
        }
    }
}
