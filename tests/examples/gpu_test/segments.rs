//! Sorts of segments: of slices by the engine, of arrays of a stream, and in a graph with offsets that change.

use super::table::Table;
use super::{KINDS, Random, Step, Test, graph, median_ms, poison};
use merge_host::{DeviceArray, DeviceOffsets, Error, Gpu, GpuKey, Segments, SortOrder, workspace};
use tests::distribution::Distribution;

/// Lengths of segments with about `n` keys in all.
type Lengths = (&'static str, fn(&mut Random, usize) -> Vec<usize>);

/// Mixes of short, long and empty segments, and one long segment among a million empty segments.
const MIXES: [Lengths; 7] = [
    ("none", |_, _| vec![]),
    ("up to 9", |random, n| until(n, || random.next() as usize % 10)),
    ("up to 300", |random, n| until(n, || random.next() as usize % 301)),
    ("up to 30000", |random, n| until(n, || random.next() as usize % 30_001)),
    ("2^(0…20)", |random, n| until(n, || power_of_two(random, 20))),
    ("one", |_, n| vec![n]),
    ("a long one among empty ones", |_, n| [vec![0; 500_000], vec![n], vec![0; 500_000]].concat()),
];

/// The timed lengths of segments.
const TIMED_LENGTHS: [usize; 16] =
    [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1 << 11, 1 << 12, 1 << 13, 1 << 16, 1 << 20, 1 << 24];

/// Lengths from `next`, until their sum is at least `n`.
fn until(n: usize, mut next: impl FnMut() -> usize) -> Vec<usize> {
    let (mut lengths, mut sum) = (vec![], 0);
    while sum < n {
        lengths.push(next());
        sum += lengths[lengths.len() - 1];
    }
    lengths
}

/// A power of two up to 2^`most`, with equally likely exponents.
fn power_of_two(random: &mut Random, most: u64) -> usize {
    1 << (random.next() % (most + 1))
}

/// The offsets of segments of these lengths, with the end.
fn offsets(lengths: &[usize]) -> Vec<usize> {
    let ends = lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    [0].into_iter().chain(ends).collect()
}

impl Test {
    /// Sorts of segments of keys, alone and with values, in both orders, on slices and on arrays of a stream.
    pub(super) fn check_segments<K: GpuKey>(&mut self) {
        for (mix, lengths) in MIXES {
            let offsets = offsets(&lengths(&mut self.random, 3_000_000));
            for (kind, order) in
                KINDS.into_iter().zip([SortOrder::Ascending, SortOrder::Descending, SortOrder::Ascending])
            {
                let what = format!("segments {mix}, {}, {order:?}", kind.0);
                let keys = self.keys::<K>(offsets[offsets.len() - 1], kind.1);
                let (mut sorted, mut permutation) = (keys.clone(), (0..keys.len() as u32).collect::<Vec<_>>());
                self.cpu.sort_segments(order, (&mut sorted, &mut permutation), &offsets).expect("the CPU sorts");

                let mut found = keys.clone();
                let result = self.gpu.sort_segments(order, &mut found, &offsets).map(|_| found);
                self.expect(|| format!("{what}, by the engine"), result, &sorted);
                let (mut found, mut values) = (keys.clone(), (0..keys.len() as u64).collect::<Vec<_>>());
                let result = self.gpu.sort_segments(order, (&mut found, &mut values), &offsets).map(|_| found);
                self.expect(|| format!("{what}, with values of 8 bytes"), result, &sorted);
                let wide: Vec<u64> = permutation.iter().map(|&i| i as u64).collect();
                self.expect(|| format!("{what}, values of 8 bytes"), Ok(values), &wide);

                let stream = self.device().stream().expect("the device makes streams");
                let on_device = || {
                    let offsets = DeviceOffsets::new(&stream, &offsets)?;
                    let (mut keys, mut indices) = (stream.upload(&keys)?, stream.upload(&poison::<u32>(keys.len()))?);
                    let mut workspace = stream.zeroed(workspace::sort_segments::<K, u32>(keys.len()))?;
                    stream.argsort_segments(
                        order,
                        &mut keys,
                        &mut indices,
                        Segments::Offsets(&offsets),
                        &mut workspace,
                    )?;
                    Ok::<_, Error>((keys.download()?, indices.download()?))
                };
                let (found, indices) = match on_device() {
                    Ok((found, indices)) => (Ok(found), indices),
                    Err(error) => (Err(error), vec![]),
                };
                self.expect(|| format!("{what}, argsort on a stream"), found, &sorted);
                self.expect(|| format!("{what}, indices"), Ok(indices), &permutation);
            }
        }
        for length in [
            1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 64, 100, 256, 300, 600, 1023, 1024, 1025, 3000, 10_000,
            1_000_000,
        ] {
            let keys = self.keys::<K>(1_234_567, KINDS[0].1);
            let mut sorted = keys.clone();
            let ends: Vec<usize> = (0..keys.len()).step_by(length).chain([keys.len()]).collect();
            self.cpu.sort_segments(SortOrder::Ascending, &mut sorted, &ends).expect("the CPU sorts");
            let stream = self.device().stream().expect("the device makes streams");
            let on_device = || {
                let mut workspace = stream.zeroed(workspace::sort_segments::<K, ()>(keys.len()))?;
                let mut keys = stream.upload(&keys)?;
                stream.sort_segments(SortOrder::Ascending, &mut keys, Segments::Length(length), &mut workspace)?;
                keys.download()
            };
            let found = on_device();
            self.expect(|| format!("segments of {length}"), found, &sorted);
            self.check_pairs_of_length::<K>(length);
        }
    }

    /// Sorts of segments of equal length on a stream, with values of 8 bytes and many equal keys.
    fn check_pairs_of_length<K: GpuKey>(&mut self, length: usize) {
        let keys = self.keys::<K>(1_234_567, KINDS[1].1);
        let values: Vec<u64> = (0..keys.len() as u64).collect();
        let (mut sorted, mut sorted_values) = (keys.clone(), values.clone());
        let ends: Vec<usize> = (0..keys.len()).step_by(length).chain([keys.len()]).collect();
        let order = SortOrder::Descending;
        self.cpu.sort_segments(order, (&mut sorted, &mut sorted_values), &ends).expect("the CPU sorts");
        let stream = self.device().stream().expect("the device makes streams");
        let on_device = || {
            let mut workspace = stream.zeroed(workspace::sort_segments::<K, u64>(keys.len()))?;
            let (mut keys, mut values) = (stream.upload(&keys)?, stream.upload(&values)?);
            let segments = Segments::Length(length);
            stream.sort_segments(order, (&mut keys, &mut values), segments, &mut workspace)?;
            Ok::<_, Error>((keys.download()?, values.download()?))
        };
        let (found, found_values) = match on_device() {
            Ok((found, values)) => (Ok(found), values),
            Err(error) => (Err(error), vec![]),
        };
        self.expect(|| format!("segments of {length} with values"), found, &sorted);
        self.expect(|| format!("values of segments of {length}"), Ok(found_values), &sorted_values);
    }

    /// A graph of one sort of segments, launched with other keys and other offsets than in the capture. The capture has
    /// no bound on the lengths of segments.
    pub(super) fn check_segments_graph<K: GpuKey>(&mut self) {
        const KEYS: usize = 2_000_003;
        const SEGMENTS: usize = 100_000;
        let gpu = Gpu::new(0).expect("there is a GPU");
        gpu.prepare::<K>().expect("kernels load");
        let stream = gpu.stream().expect("the device makes streams");
        let mut keys = stream.zeroed::<K>(KEYS).expect("the device has memory");
        let mut on_device = stream.zeroed::<u64>(SEGMENTS + 1).expect("the device has memory");
        let mut workspace = stream.zeroed(workspace::sort_segments::<K, ()>(KEYS)).expect("the device has memory");
        // SAFETY: `on_device` lives until the last download has waited. Before each launch of the graph it gets offsets
        // that ascend from 0 to `KEYS`, and the calls only read them.
        let ends = unsafe { graph::changing_offsets(&on_device, KEYS) };
        let graph = graph::capture(&stream, || {
            stream.sort_segments(SortOrder::Ascending, &mut keys, Segments::Offsets(&ends), &mut workspace)
        });
        let graph = match graph {
            Ok(graph) => graph,
            Err(error) => return self.expect::<K>(|| "capture of a sort of segments".to_owned(), Err(error), &[]),
        };
        for (mix, lengths) in MIXES {
            let mut ends = offsets(&lengths(&mut self.random, KEYS));
            ends.resize(SEGMENTS + 1, KEYS);
            ends.iter_mut().for_each(|end| *end = (*end).min(KEYS));
            ends[SEGMENTS] = KEYS;
            let mut sorted = self.keys::<K>(KEYS, KINDS[0].1);
            keys.upload(&sorted).expect("the device copies");
            on_device.upload(&ends.iter().map(|&end| end as u64).collect::<Vec<_>>()).expect("the device copies");
            // SAFETY: the arrays of the capture belong to this stream, and live until the download below has waited for
            // it.
            unsafe { graph.launch(&stream) };
            let found = keys.download();
            self.cpu.sort_segments(SortOrder::Ascending, &mut sorted, &ends).expect("the CPU sorts");
            self.expect(|| format!("graph of a sort of segments {mix}"), found, &sorted);
        }
    }

    /// Prints rows for sorts of `n` keys in segments of equal length, of mixed lengths, and in nearly empty segments.
    pub(super) fn time_segments<K: GpuKey>(&self, n: usize) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, n)?;
        let row = |what: &str, unsorted: &DeviceArray<K>, segments: Segments<'_>| {
            let (n, mut keys) = (unsorted.len(), stream.zeroed::<K>(unsorted.len())?);
            let mut workspace = stream.zeroed(workspace::sort_segments::<K, ()>(n))?;
            let ms = median_ms(&stream, |step| match step {
                Step::Prepare => keys.copy_from(unsorted),
                Step::Launch => stream.sort_segments(SortOrder::Ascending, &mut keys, segments, &mut workspace),
            })?;
            table.row(what, "", n, ms, 2 * n * size_of::<K>());
            Ok::<_, Error>(())
        };
        let pairs_row = |what: &str, unsorted: &DeviceArray<K>, segments: Segments<'_>| {
            let (n, mut keys) = (unsorted.len(), stream.zeroed::<K>(unsorted.len())?);
            let mut values = stream.zeroed::<u32>(n)?;
            let mut workspace = stream.zeroed(workspace::sort_segments::<K, u32>(n))?;
            let ms = median_ms(&stream, |step| match step {
                Step::Prepare => keys.copy_from(unsorted),
                Step::Launch => {
                    stream.sort_segments(SortOrder::Ascending, (&mut keys, &mut values), segments, &mut workspace)
                }
            })?;
            table.row(what, "+u32", n, ms, 2 * n * (size_of::<K>() + size_of::<u32>()));
            Ok::<_, Error>(())
        };
        let unsorted = stream.upload(&Distribution::Uniform.keys::<K>(n))?;
        // The sort of all keys, for comparison with very long segments.
        let mut keys = stream.zeroed::<K>(n)?;
        let mut workspace = stream.zeroed(workspace::sort::<K, ()>(n))?;
        let ms = median_ms(&stream, |step| match step {
            Step::Prepare => keys.copy_from(&unsorted),
            Step::Launch => stream.sort(SortOrder::Ascending, &mut keys, &mut workspace),
        })?;
        table.row("sort of the array", "", n, ms, 2 * n * size_of::<K>());
        let mut values = stream.zeroed::<u32>(n)?;
        let mut workspace = stream.zeroed(workspace::sort::<K, u32>(n))?;
        let ms = median_ms(&stream, |step| match step {
            Step::Prepare => keys.copy_from(&unsorted),
            Step::Launch => stream.sort(SortOrder::Ascending, (&mut keys, &mut values), &mut workspace),
        })?;
        table.row("sort of the array", "+u32", n, ms, 2 * n * (size_of::<K>() + size_of::<u32>()));
        drop((keys, values, workspace));
        for length in TIMED_LENGTHS {
            let ends: Vec<usize> = (0..n).step_by(length).chain([n]).collect();
            let offsets = DeviceOffsets::new(&stream, &ends)?;
            for (what, segments) in [("", Segments::Length(length)), (", offsets", Segments::Offsets(&offsets))] {
                row(&format!("segments of {length}{what}"), &unsorted, segments)?;
                pairs_row(&format!("segments of {length}{what}"), &unsorted, segments)?;
            }
        }
        for (name, distribution) in [
            ("all equal", Distribution::Equal),
            ("of 16 values", Distribution::Dups16),
            ("four words ANDed", Distribution::And4),
            ("ascending", Distribution::Sorted),
        ] {
            let uneven = stream.upload(&distribution.keys::<K>(n))?;
            row(&format!("segments of 4096, {name}"), &uneven, Segments::Length(4096))?;
        }
        for (name, distribution) in [("all equal", Distribution::Equal), ("four words ANDed", Distribution::And4)] {
            let uneven = stream.upload(&distribution.keys::<K>(n))?;
            row(&format!("segments of 2^20, {name}"), &uneven, Segments::Length(1 << 20))?;
            pairs_row(&format!("segments of 2^20, {name}"), &uneven, Segments::Length(1 << 20))?;
        }
        let mut random = Random(1);
        let mixed: Vec<usize> =
            offsets(&until(n, || power_of_two(&mut random, 20))).into_iter().map(|end| end.min(n)).collect();
        let mixed = DeviceOffsets::new(&stream, &mixed)?;
        row("segments of 2^(0…20)", &unsorted, Segments::Offsets(&mixed))?;
        pairs_row("segments of 2^(0…20)", &unsorted, Segments::Offsets(&mixed))?;
        let few = stream.upload(&Distribution::Uniform.keys::<K>(1000))?;
        let empty: Vec<usize> = (0..=1_000_000).map(|i| if i < 500_000 { 0 } else { few.len() }).collect();
        row("a million empty segments", &few, Segments::Offsets(&DeviceOffsets::new(&stream, &empty)?))
    }
}
