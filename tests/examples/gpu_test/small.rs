//! Sorts by one block, and operations on elements whose number only the GPU knows.

use super::sets::first;
use super::table::{Table, keys_of};
use super::widths::time;
use super::{KINDS, KINDS_BY_LOW_BITS, KINDS_TO_DIVIDE, Test, graph, poison};
use kernels_gpu::tuning::ROW;
use merge_host::{
    Counted, DeviceArray, Error, GpuKey, Key, MergeKernel, SortKernel, SortOptions, SortOrder, Stream, workspace,
};
use tests::distribution::mix;

/// The largest number of keys that is timed with lengths that only the GPU knows.
const MANY: usize = 1 << 24;

/// Numbers of keys around warps, the shapes of blocks, and the threshold.
fn sizes(key_bytes: usize) -> Vec<usize> {
    let one_block = [ROW.sort_tiny, ROW.sort_small].map(|shapes| shapes.of(4, 0).keys());
    let shapes = [0, 4, 8].map(|value_bytes| ROW.block_sort.of(key_bytes, value_bytes).keys());
    let around = one_block.into_iter().chain(shapes).chain([1024, 2048, 4096, 8192]).flat_map(|n| [n - 1, n, n + 1]);
    let mut sizes: Vec<usize> = [0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1000].into_iter().chain(around).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The arrays of a chain of operations: the first of equal neighbours, sorted, and merged with other keys.
struct Chain<K> {
    keys: DeviceArray<K>,
    others: DeviceArray<K>,
    /// The numbers of keys and of other keys.
    counts: [DeviceArray<u64>; 2],
    heads: DeviceArray<K>,
    head_values: DeviceArray<u32>,
    values: DeviceArray<u32>,
    of_others: DeviceArray<u32>,
    of_heads: DeviceArray<u64>,
    out: DeviceArray<K>,
    out_values: DeviceArray<u32>,
    total: DeviceArray<u64>,
    memory: DeviceArray<u8>,
}

impl<K: GpuKey> Chain<K> {
    fn new(stream: &Stream, n: usize, m: usize) -> Result<Self, Error> {
        let bytes = [
            workspace::groups::<K>(n),
            workspace::sort::<K, u32>(n),
            workspace::merge::<K, u32>(MergeKernel::MergePath, n + m),
        ];
        Ok(Self {
            keys: stream.zeroed(n)?,
            others: stream.zeroed(m)?,
            counts: [stream.zeroed(1)?, stream.zeroed(1)?],
            heads: stream.upload(&poison::<K>(n))?,
            head_values: stream.zeroed(n)?,
            values: stream.upload(&(0..n as u32).collect::<Vec<_>>())?,
            of_others: stream.upload(&vec![u32::MAX; m])?,
            of_heads: stream.zeroed(1)?,
            out: stream.upload(&poison::<K>(n + m))?,
            out_values: stream.zeroed(n + m)?,
            total: stream.zeroed(1)?,
            memory: stream.upload(&poison::<u8>(bytes.into_iter().max().unwrap_or(0)))?,
        })
    }

    /// Queues the operations, with values.
    fn run(&mut self, stream: &Stream) -> Result<(), Error> {
        let [n, m] = &self.counts;
        let from = Counted((&self.keys, &self.values), n);
        let heads = (&mut self.heads, &mut self.head_values);
        stream.unique(from, heads, &mut self.of_heads, &mut self.memory)?;
        let heads = Counted((&mut self.heads, &mut self.head_values), &self.of_heads);
        stream.sort(SortOrder::Ascending, heads, &mut self.memory)?;
        let a = Counted((&self.heads, &self.head_values), &self.of_heads);
        let b = Counted((&self.others, &self.of_others), m);
        let out = Counted((&mut self.out, &mut self.out_values), &mut self.total);
        stream.merge(MergeKernel::Auto, a, b, out, &mut self.memory)
    }

    /// The merged keys and their values.
    fn download(&self) -> Result<(Vec<K>, Vec<u32>), Error> {
        first(&self.out, &self.out_values, &self.total)
    }
}

impl Test {
    /// Sorts at the edges of the kernels of one block, of all kinds of keys that bins sort or give up.
    pub(super) fn check_small<K: GpuKey + merge_host::GpuSortKey>(&mut self) {
        let kinds = [&KINDS[..], &KINDS_TO_DIVIDE, &KINDS_BY_LOW_BITS].concat();
        self.check_array_sorts::<K>(&kinds, &sizes(size_of::<K>()));
    }

    /// A graph of operations whose numbers of elements change between launches.
    pub(super) fn check_counted<K: GpuKey>(&mut self) {
        for most in [1, 1000, 8192, 100_003, 3_000_017] {
            let others = most / 3 + 1;
            let gpu = self.device();
            gpu.prepare::<K>().expect("kernels load");
            let stream = gpu.stream().expect("the device makes streams");
            let mut chain = Chain::<K>::new(&stream, most, others).expect("the device has memory");
            let graph = match graph::capture(&stream, || chain.run(&stream)) {
                Ok(graph) => graph,
                Err(error) => return self.expect::<K>(|| "capture of a chain".to_owned(), Err(error), &[]),
            };
            for (i, n) in [most, 0, most / 2, 1, most - 1, most + 1].into_iter().enumerate() {
                let (name, kind) = KINDS[i % 3];
                let m = [others, others / 2, 0][i % 3];
                let (keys, mut side): (Vec<K>, Vec<K>) = (self.keys(most, kind), self.keys(others, kind));
                self.cpu.sort(&mut side[..m]).expect("the CPU sorts");
                chain.keys.upload(&keys).expect("the device copies");
                chain.others.upload(&side).expect("the device copies");
                for (array, number) in chain.counts.iter_mut().zip([n, m]) {
                    array.upload(&[number as u64]).expect("the device copies");
                }
                // SAFETY: the arrays of the capture belong to this stream, and live until the downloads have waited for
                // it.
                unsafe { graph.launch(&stream) };
                let mut first: Vec<(K, u32)> = keys[..n.min(most)].iter().copied().zip(0..).collect();
                first.dedup_by_key(|(key, _)| Key::to_ordered(*key));
                let (mut expected, mut values): (Vec<K>, Vec<u32>) = first.into_iter().unzip();
                expected.extend(&side[..m]);
                values.resize(expected.len(), u32::MAX);
                let both = (&mut expected[..], &mut values[..]);
                self.cpu.sort_with(SortOrder::Ascending, both).expect("the CPU sorts");
                let what = format!("chain of {n} of {most} and {m} {name}");
                self.expect_both(&what, chain.download(), (&expected, &values));
            }
        }
    }

    /// Prints rows of sorts of few keys, by one block and by merges.
    pub(super) fn time_small<K: GpuKey + merge_host::GpuSortKey>(&self) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, 1 << 13)?;
        for n in [8, 10, 11, 12, 13, 14].map(|log| 1usize << log) {
            for (name, kind) in [KINDS[0], KINDS[1], KINDS_TO_DIVIDE[4], KINDS_TO_DIVIDE[5]] {
                let unsorted = stream.upload(&keys_of::<K>(n, |i| kind(mix(i ^ 1 << 40))))?;
                let (mut out, mut values, mut wide) =
                    (stream.zeroed(n)?, stream.zeroed::<u32>(n)?, stream.zeroed::<u64>(n)?);
                let mut memory = stream.zeroed(workspace::sort::<K, u64>(n).max(workspace::argsort::<K, u32>(n)))?;
                let moved = 2 * n * size_of::<K>();
                for kernel in SortKernel::ALL {
                    let (options, what) = (SortOptions::default().kernel(kernel), format!("{name}, {kernel}"));
                    let ms = time(&stream, &unsorted, &mut out, |out| stream.sort(options, out, &mut memory))?;
                    table.row(&format!("sort, {what}"), "", n, ms, moved);
                    let ms = time(&stream, &unsorted, &mut out, |out| {
                        stream.sort(options, (out, &mut values), &mut memory)
                    })?;
                    table.row(&format!("sort, {what}"), "+u32", n, ms, moved + 8 * n);
                    let ms =
                        time(&stream, &unsorted, &mut out, |out| stream.sort(options, (out, &mut wide), &mut memory))?;
                    table.row(&format!("sort, {what}"), "+u64", n, ms, moved + 16 * n);
                    let ms = time(&stream, &unsorted, &mut out, |out| {
                        stream.argsort(options, out, &mut values, &mut memory)
                    })?;
                    table.row(&format!("argsort, {what}"), "+u32", n, ms, moved + 4 * n);
                }
            }
        }
        Ok(())
    }

    /// Prints rows of operations on all and on half of the elements of arrays, by lengths that the host and the GPU
    /// know.
    pub(super) fn time_counted<K: GpuKey>(&self) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let (table, key) = (Table::new::<K>(&stream, MANY)?, size_of::<K>());
        for n in [1 << 13, 1 << 20, MANY] {
            let unsorted = stream.upload(&keys_of::<K>(n, |i| mix(i ^ 1 << 40)))?;
            let (mut sorted, mut out, mut both) = (stream.zeroed(n)?, stream.zeroed(n)?, stream.zeroed(2 * n)?);
            let (mut count, mut total) = (stream.zeroed(1)?, stream.zeroed(1)?);
            let bytes = [
                workspace::sort::<K, ()>(n),
                workspace::groups::<K>(n),
                workspace::merge::<K, ()>(MergeKernel::MergePath, 2 * n),
            ];
            let mut memory = stream.zeroed(bytes.into_iter().max().unwrap_or(0))?;
            let (order, auto) = (SortOrder::Ascending, MergeKernel::Auto);
            sorted.copy_from(&unsorted)?;
            stream.sort(order, &mut sorted, &mut memory)?;
            let ms = time(&stream, &unsorted, &mut out, |out| stream.sort(order, out, &mut memory))?;
            table.row("sort, length of the host", "", n, ms, 2 * n * key);
            let ms = table.time(|| stream.unique(&sorted, &mut out, &mut count, &mut memory))?;
            table.row("unique, length of the host", "", n, ms, 2 * n * key);
            let ms = table.time(|| stream.merge(auto, &sorted, &sorted, &mut both, &mut memory))?;
            table.row("merge, lengths of the host", "", 2 * n, ms, 4 * n * key);
            for (part, name) in [(n, "all"), (n / 2, "half")] {
                let number = stream.upload(&[part as u64])?;
                let first = || Counted(&sorted, &number);
                let ms =
                    time(&stream, &unsorted, &mut out, |out| stream.sort(order, Counted(out, &number), &mut memory))?;
                table.row(&format!("sort, length of the GPU, {name}"), "", n, ms, 2 * part * key);
                let ms = table.time(|| stream.unique(first(), &mut out, &mut count, &mut memory))?;
                table.row(&format!("unique, length of the GPU, {name}"), "", n, ms, 2 * part * key);
                let ms =
                    table.time(|| stream.merge(auto, first(), first(), Counted(&mut both, &mut total), &mut memory))?;
                table.row(&format!("merge, lengths of the GPU, {name}"), "", 2 * n, ms, 4 * part * key);
            }
        }
        Ok(())
    }
}
