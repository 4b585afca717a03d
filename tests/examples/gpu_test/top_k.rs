//! The first k keys: of arrays of a stream, and in a graph.

use super::table::{Table, keys_of};
use super::{KINDS, KINDS_TO_DIVIDE, Kind, Test, graph, poison};
use merge_host::{DeviceArray, Error, Gpu, GpuKey, Key, SortOrder, Stream, workspace};
use tests::distribution::mix;

/// Numbers of keys: below, at and above the keys of a tile, and numbers with which candidates are collected once and
/// twice.
const SIZES: [usize; 9] = [0, 1, 2, 1000, 2047, 4097, 65_536, 300_007, 5_000_011];

/// The timed kinds of keys.
const TIMED_KINDS: [Kind; 4] = [
    ("uniform", |word| word),
    ("all equal", |_| 7),
    ("of 1000", |word| mix(word % 1000)),
    ("in a narrow range", |word| 5_000_000_000 + word % 1000),
];

const ORDERS: [SortOrder; 2] = [SortOrder::Descending, SortOrder::Ascending];

/// The outputs of the three calls: keys alone, with values, and with indices.
struct Outputs<K> {
    keys: [DeviceArray<K>; 3],
    values: DeviceArray<u64>,
    indices: DeviceArray<u32>,
    workspaces: [DeviceArray<u8>; 3],
}

impl<K: GpuKey> Outputs<K> {
    /// Arrays for the first `k` of `n` keys, and the workspace of each call.
    fn new(stream: &Stream, n: usize, k: usize) -> Result<Self, Error> {
        let keys = || stream.upload(&poison::<K>(k));
        Ok(Self {
            keys: [keys()?, keys()?, keys()?],
            values: stream.upload(&poison(k))?,
            indices: stream.upload(&poison(k))?,
            workspaces: [
                stream.zeroed(workspace::top_k::<K, ()>(n, k))?,
                stream.zeroed(workspace::top_k::<K, u64>(n, k))?,
                stream.zeroed(workspace::top_k::<K, u32>(n, k))?,
            ],
        })
    }

    fn launch(&mut self, order: SortOrder, from: &DeviceArray<K>, values: &DeviceArray<u64>) -> Result<(), Error> {
        let stream = from.stream();
        let ([alone, with_values, with_indices], [first, second, third]) = (&mut self.keys, &mut self.workspaces);
        stream.top_k(order, from, alone, first)?;
        stream.top_k(order, (from, values), (with_values, &mut self.values), second)?;
        stream.top_k(order, from, (with_indices, &mut self.indices), third)
    }
}

impl Test {
    /// The first keys of arrays of a stream, in both orders, compared with a stable sort by the CPU.
    pub(super) fn check_top_k<K: GpuKey>(&mut self) {
        let stream = self.device().stream().expect("the device makes streams");
        for (name, kind) in KINDS.into_iter().chain(KINDS_TO_DIVIDE.into_iter().skip(1)) {
            for n in SIZES {
                let keys: Vec<K> = self.keys(n, kind);
                let from = stream.upload(&keys).expect("the device has memory");
                let values = stream.upload(&values(n)).expect("the device has memory");
                for order in ORDERS {
                    let (sorted, permutation) = self.stable_sort(order, &keys);
                    let mut counts: Vec<usize> = [0, 1, 2, 1000, 1 << 16, n / 8, n / 8 + 1, n].into();
                    counts.retain(|k| *k <= n);
                    counts.sort_unstable();
                    counts.dedup();
                    for k in counts {
                        let found = Outputs::<K>::new(&stream, n, k)
                            .and_then(|mut outputs| outputs.launch(order, &from, &values).map(|()| outputs));
                        let what = format!("first {k} of {n} {name}, {order:?}");
                        self.expect_first(&what, found.as_ref(), &sorted[..k], &permutation[..k]);
                    }
                }
            }
        }
        self.check_too_few_keys::<K>(&stream);
    }

    /// A `k` above the number of keys is refused.
    fn check_too_few_keys<K: GpuKey>(&mut self, stream: &Stream) {
        let launch = |n: usize, k: usize| {
            let (from, values) = (stream.upload(&poison::<K>(n))?, stream.upload(&values(n))?);
            Outputs::<K>::new(stream, n, k)?.launch(SortOrder::Ascending, &from, &values)
        };
        for (found, k) in [(0, 1), (1000, 1001)] {
            let error = launch(found, k).err();
            let is_refused = error == Some(Error::TooFewKeys { k, found });
            self.expect(|| format!("first {k} of {found} keys: {error:?}"), Ok(vec![u32::from(is_refused)]), &[1]);
        }
    }

    /// Graphs of the three calls, launched with other keys than in the capture. The present keys determine how often
    /// digits are counted, and whether candidates are collected.
    pub(super) fn check_top_k_graph<K: GpuKey>(&mut self) {
        const KEYS: usize = 1_000_003;
        let gpu = Gpu::new(0).expect("there is a GPU");
        gpu.prepare::<K>().expect("kernels load");
        let stream = gpu.stream().expect("the device makes streams");
        let mut from = stream.zeroed::<K>(KEYS).expect("the device has memory");
        let values = stream.upload(&values(KEYS)).expect("the device has memory");
        for (k, order) in [16, 1000, 1 << 16].into_iter().flat_map(|k| ORDERS.map(|order| (k, order))) {
            let mut outputs = Outputs::<K>::new(&stream, KEYS, k).expect("the device has memory");
            let what = format!("first {k} of {KEYS}, {order:?}");
            let graph = match graph::capture(&stream, || outputs.launch(order, &from, &values)) {
                Ok(graph) => graph,
                Err(error) => return self.expect::<K>(|| format!("capture of the {what}"), Err(error), &[]),
            };
            for (name, kind) in KINDS.into_iter().chain(KINDS_TO_DIVIDE.into_iter().skip(1)) {
                let keys: Vec<K> = self.keys(KEYS, kind);
                from.upload(&keys).expect("the device copies");
                // SAFETY: the arrays of the capture belong to this stream, and live until the downloads below have
                // waited for it.
                unsafe { graph.launch(&stream) };
                let (sorted, permutation) = self.stable_sort(order, &keys);
                self.expect_first(&format!("graph, {what}, {name}"), Ok(&outputs), &sorted[..k], &permutation[..k]);
            }
        }
    }

    pub(super) fn stable_sort<K: Key>(&self, order: SortOrder, keys: &[K]) -> (Vec<K>, Vec<u32>) {
        let (mut sorted, mut permutation) = (keys.to_vec(), (0..keys.len() as u32).collect::<Vec<_>>());
        self.cpu.sort_with(order, (&mut sorted, &mut permutation)).expect("the CPU sorts");
        (sorted, permutation)
    }

    /// Compares what the three calls have written.
    fn expect_first<K: GpuKey>(
        &mut self,
        what: &str,
        found: Result<&Outputs<K>, &Error>,
        sorted: &[K],
        indices: &[u32],
    ) {
        let outputs = match found {
            Ok(outputs) => outputs,
            Err(error) => return self.expect::<K>(|| what.to_owned(), Err(error.clone()), &[]),
        };
        for (keys, with) in outputs.keys.iter().zip(["alone", "with values", "with indices"]) {
            self.expect(|| format!("{what}, {with}"), keys.download(), sorted);
        }
        let values: Vec<u64> = indices.iter().map(|&index| value(index as usize)).collect();
        self.expect(|| format!("values of the {what}"), outputs.values.download(), &values);
        self.expect(|| format!("indices of the {what}"), outputs.indices.download(), indices);
    }

    /// Prints rows for the first k of `n` keys, alone and with their indices. The fraction is relative to a copy that
    /// moves the same bytes. Such a copy takes about the time to read all keys once.
    pub(super) fn time_top_k<K: GpuKey>(&self, n: usize) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, n)?;
        for (name, kind) in TIMED_KINDS {
            let keys = stream.upload(&keys_of::<K>(n, |i| kind(mix(i ^ 1 << 40))))?;
            for (order, which) in ORDERS.into_iter().zip(["greatest", "least"]) {
                for k in [16, 1024, 1 << 16].into_iter().filter(|k| *k <= n) {
                    let (mut out, mut indices) = (stream.zeroed::<K>(k)?, stream.zeroed::<u32>(k)?);
                    let bytes = workspace::top_k::<K, u32>(n, k);
                    let mut workspace = stream.zeroed(bytes.max(workspace::top_k::<K, ()>(n, k)))?;
                    let ms = table.time(|| stream.top_k(order, &keys, &mut out, &mut workspace))?;
                    table.row(&format!("{which} {k}, {name}"), "", n, ms, (n + k) * size_of::<K>());
                    let ms = table.time(|| stream.top_k(order, &keys, (&mut out, &mut indices), &mut workspace))?;
                    let moved = (n + k) * size_of::<K>() + k * size_of::<u32>();
                    table.row(&format!("{which} {k}, indices, {name}"), "", n, ms, moved);
                }
            }
        }
        Ok(())
    }
}

/// The value of the key with this index, which differs from the index.
fn value(index: usize) -> u64 {
    3 * index as u64 + 1
}

fn values(n: usize) -> Vec<u64> {
    (0..n).map(value).collect()
}
