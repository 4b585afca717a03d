//! The first k keys of each segment: of arrays of a stream, and in a graph with keys and offsets that change.

use super::table::Table;
use super::{KINDS, Kind, Test, graph, poison};
use merge_host::{DeviceArray, DeviceOffsets, Error, Gpu, GpuKey, Segments, SortOrder, Stream, workspace};
use tests::distribution::Distribution;

/// The numbers of segments, and their length. Rows for each size of block, parts of long rows, and longest rows.
const ROWS: [(usize, usize); 14] = [
    (1, 1),
    (3, 8),
    (1000, 31),
    (1000, 129),
    (5000, 512),
    (300, 1025),
    (2000, 2048),
    (200, 8192),
    (64, 8193),
    (100, 32_000),
    (16, 120_000),
    (1, 200_000),
    (2, 1_000_003),
    (1, 5_000_000),
];

/// Selected keys of each segment, up to the greatest number that is selected and one that is sorted.
const COUNTS: [usize; 8] = [1, 8, 50, 64, 512, 1000, 2048, 2049];

/// The timed shapes: rows, their length, and selected keys.
const TIMED: [(usize, usize, usize); 8] = [
    (4096, 8192, 512),
    (64, 8192, 512),
    (65_536, 2048, 64),
    (262_144, 512, 8),
    (4096, 32_000, 64),
    (16, 120_000, 50),
    (1, 200_000, 64),
    (4096, 8192, 2048),
];

/// Calls between two events. One call may take less time than its launch.
const CALLS: usize = 10;

const ORDERS: [SortOrder; 2] = [SortOrder::Descending, SortOrder::Ascending];

/// The outputs of the three calls: keys alone, with values, and with indices.
struct Outputs<K> {
    keys: [DeviceArray<K>; 3],
    values: DeviceArray<u64>,
    indices: DeviceArray<u32>,
    workspace: DeviceArray<u8>,
    k: usize,
}

impl<K: GpuKey> Outputs<K> {
    /// Arrays for the first `k` keys of each of `segments` segments of `n` keys.
    fn new(stream: &Stream, n: usize, segments: usize, k: usize) -> Result<Self, Error> {
        let keys = || stream.upload(&poison::<K>(segments * k));
        Ok(Self {
            keys: [keys()?, keys()?, keys()?],
            values: stream.upload(&poison(segments * k))?,
            indices: stream.upload(&poison(segments * k))?,
            workspace: stream.zeroed(workspace::top_k_segments::<K, u64>(n, segments, k))?,
            k,
        })
    }

    fn launch(
        &mut self,
        order: SortOrder,
        from: (&DeviceArray<K>, &DeviceArray<u64>),
        segments: Segments<'_>,
    ) -> Result<(), Error> {
        let Self { keys: [alone, with_values, with_indices], values, indices, workspace, k } = self;
        let stream = from.0.stream();
        stream.top_k_segments(order, from.0, segments, *k, alone, workspace)?;
        stream.top_k_segments(order, from, segments, *k, (with_values, values), workspace)?;
        stream.top_k_segments(order, from.0, segments, *k, (with_indices, indices), workspace)
    }
}

/// The first keys of all segments, in slots that are poisoned where there are fewer.
struct Expected<K> {
    keys: Vec<K>,
    values: Vec<u64>,
    indices: Vec<u32>,
}

impl Test {
    /// The first keys of segments, alone, with values and with indices, compared with a stable sort by the CPU.
    pub(super) fn check_top_k_segments<K: GpuKey>(&mut self) {
        let stream = self.device().stream().expect("the device makes streams");
        for (i, (rows, length)) in ROWS.into_iter().enumerate() {
            let ends: Vec<usize> = (0..=rows).map(|row| row * length).collect();
            for (j, kind) in KINDS.into_iter().enumerate() {
                let counts = COUNTS.into_iter().filter(|k| *k <= length).chain([length.min(3000)]);
                let segments = Segments::Length(length);
                self.check_segments_of::<K>(&stream, (kind, ORDERS[(i + j) % 2]), &ends, Some(segments), counts);
            }
        }
        for most in [9, 300, 30_000] {
            for (kind, order) in KINDS.into_iter().zip([ORDERS[0], ORDERS[1], ORDERS[0]]) {
                let mut ends = vec![0];
                while ends[ends.len() - 1] < 1_000_000 {
                    ends.push(ends[ends.len() - 1] + self.random.next() as usize % (most + 1));
                }
                self.check_segments_of::<K>(&stream, (kind, order), &ends, None, [1, 8, 300, 2049].into_iter());
            }
        }
    }

    /// The first keys of the segments between `ends`, for each number of keys. Without `segments`, by offsets.
    fn check_segments_of<K: GpuKey>(
        &mut self,
        stream: &Stream,
        (kind, order): (Kind, SortOrder),
        ends: &[usize],
        segments: Option<Segments<'_>>,
        counts: impl Iterator<Item = usize>,
    ) {
        let (n, count) = (ends[ends.len() - 1], ends.len() - 1);
        let keys: Vec<K> = self.keys(n, kind.1);
        let (sorted, permutation) = self.sorted_segments(order, &keys, ends);
        for k in counts {
            let found = || {
                let (from, values) = (stream.upload(&keys)?, stream.upload(&values(n))?);
                let offsets = DeviceOffsets::new(stream, ends)?;
                let mut outputs = Outputs::<K>::new(stream, n, count, k)?;
                outputs.launch(order, (&from, &values), segments.unwrap_or(Segments::Offsets(&offsets)))?;
                Ok::<_, Error>(outputs)
            };
            let what = format!("first {k} of each of {count} segments of {n} {}, {order:?}", kind.0);
            let found = found();
            self.expect_firsts(&what, found.as_ref(), &expected(&sorted, &permutation, ends, k));
        }
    }

    /// Graphs of the three calls, launched with other keys and other offsets than in the capture.
    pub(super) fn check_top_k_segments_graph<K: GpuKey>(&mut self) {
        const KEYS: usize = 1_000_003;
        const SEGMENTS: usize = 40;
        let gpu = Gpu::new(0).expect("there is a GPU");
        gpu.prepare::<K>().expect("kernels load");
        let stream = gpu.stream().expect("the device makes streams");
        let mut from = stream.zeroed::<K>(KEYS).expect("the device has memory");
        let values = stream.upload(&values(KEYS)).expect("the device has memory");
        let mut on_device = stream.zeroed::<u64>(SEGMENTS + 1).expect("the device has memory");
        for (k, order) in [50, 2049].into_iter().zip(ORDERS) {
            let mut outputs = Outputs::<K>::new(&stream, KEYS, SEGMENTS, k).expect("the device has memory");
            // SAFETY: `on_device` lives until the last download has waited. Before each launch of the graph it gets
            // offsets that ascend from 0 to `KEYS`, and the calls only read them.
            let ends = unsafe { graph::changing_offsets(&on_device, KEYS) };
            let captured =
                graph::capture(&stream, || outputs.launch(order, (&from, &values), Segments::Offsets(&ends)));
            let captured = match captured {
                Ok(captured) => captured,
                Err(error) => return self.expect::<K>(|| format!("capture of the first {k}"), Err(error), &[]),
            };
            for (name, kind) in KINDS {
                let mut ends: Vec<usize> = (1..SEGMENTS).map(|_| self.random.next() as usize % KEYS).collect();
                ends.sort_unstable();
                let ends = [&[0], &ends[..], &[KEYS]].concat();
                let keys: Vec<K> = self.keys(KEYS, kind);
                from.upload(&keys).expect("the device copies");
                on_device.upload(&ends.iter().map(|&end| end as u64).collect::<Vec<_>>()).expect("the device copies");
                outputs.poison().expect("the device copies");
                // SAFETY: the arrays of the capture belong to this stream, and live until the downloads below have
                // waited for it.
                unsafe { captured.launch(&stream) };
                let (sorted, permutation) = self.sorted_segments(order, &keys, &ends);
                let expected = expected(&sorted, &permutation, &ends, k);
                self.expect_firsts(&format!("graph, first {k}, {order:?}, {name}"), Ok(&outputs), &expected);
            }
        }
    }

    /// The keys of each segment in order, and their indices in the array.
    fn sorted_segments<K: GpuKey>(&self, order: SortOrder, keys: &[K], ends: &[usize]) -> (Vec<K>, Vec<u32>) {
        let (mut sorted, mut permutation) = (keys.to_vec(), (0..keys.len() as u32).collect::<Vec<_>>());
        self.cpu.sort_segments(order, (&mut sorted, &mut permutation), ends).expect("the CPU sorts");
        (sorted, permutation)
    }

    /// Compares what the three calls have written.
    fn expect_firsts<K: GpuKey>(&mut self, what: &str, found: Result<&Outputs<K>, &Error>, expected: &Expected<K>) {
        let outputs = match found {
            Ok(outputs) => outputs,
            Err(error) => return self.expect::<K>(|| what.to_owned(), Err(error.clone()), &[]),
        };
        for (keys, with) in outputs.keys.iter().zip(["alone", "with values", "with indices"]) {
            self.expect(|| format!("{what}, {with}"), keys.download(), &expected.keys);
        }
        self.expect(|| format!("values of the {what}"), outputs.values.download(), &expected.values);
        self.expect(|| format!("indices of the {what}"), outputs.indices.download(), &expected.indices);
    }

    /// Prints rows for the first k keys of the rows of matrices, alone and with indices, behind the row of a copy of
    /// the same keys. The last column is the fraction of its bandwidth for a reading of all keys.
    pub(super) fn time_top_k_segments<K: GpuKey>(&self) -> Result<(), Error> {
        let stream = self.device().stream()?;
        for (rows, length, k) in TIMED {
            let n = rows * length;
            let table = Table::new::<K>(&stream, n)?;
            for (name, distribution) in [("normal", Distribution::Normal), ("all equal", Distribution::Equal)] {
                let keys = stream.upload(&distribution.keys::<K>(n))?;
                let (mut out, mut indices) = (stream.zeroed::<K>(rows * k)?, stream.zeroed::<u32>(rows * k)?);
                let mut memory = stream.zeroed(workspace::top_k_segments::<K, u32>(n, rows, k))?;
                let segments = Segments::Length(length);
                let what = format!("{k} of {rows} x {length}, {name}");
                let ms = table.time(|| {
                    let mut call =
                        || stream.top_k_segments(SortOrder::Descending, &keys, segments, k, &mut out, &mut memory);
                    (0..CALLS).try_for_each(|_| call())
                })?;
                let moved = (n + rows * k) * size_of::<K>();
                table.row(&what, "", n, ms / CALLS as f64, moved);
                let ms = table.time(|| {
                    (0..CALLS).try_for_each(|_| {
                        let to = (&mut out, &mut indices);
                        stream.top_k_segments(SortOrder::Descending, &keys, segments, k, to, &mut memory)
                    })
                })?;
                table.row(&format!("{what}, indices"), "", n, ms / CALLS as f64, moved + rows * k * size_of::<u32>());
            }
        }
        Ok(())
    }
}

impl<K: GpuKey> Outputs<K> {
    /// Fills the outputs again.
    fn poison(&mut self) -> Result<(), Error> {
        let len = self.values.len();
        self.keys.iter_mut().try_for_each(|keys| keys.upload(&poison(len)))?;
        self.values.upload(&poison(len))?;
        self.indices.upload(&poison(len))
    }
}

/// The first `k` elements of each segment, with the values of the sorted elements at these indices.
fn expected<K: GpuKey>(sorted: &[K], permutation: &[u32], ends: &[usize], k: usize) -> Expected<K> {
    let len = k * (ends.len() - 1);
    let mut expected = Expected { keys: poison(len), values: poison(len), indices: poison(len) };
    for (segment, ends) in ends.windows(2).enumerate() {
        for (to, i) in (segment * k..).zip(ends[0]..ends[1].min(ends[0] + k)) {
            expected.keys[to] = sorted[i];
            expected.values[to] = value(permutation[i] as usize);
            expected.indices[to] = permutation[i] - ends[0] as u32;
        }
    }
    expected
}

/// The value of the key with this index, which differs from the index.
fn value(index: usize) -> u64 {
    3 * index as u64 + 1
}

fn values(n: usize) -> Vec<u64> {
    (0..n).map(value).collect()
}
