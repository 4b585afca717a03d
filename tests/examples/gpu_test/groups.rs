//! Several GPUs: operations of a group, on slices in host memory and on arrays distributed over its members, compared
//! with the CPU engine.

use super::{KINDS, Test, poison};
use merge_host::{DeviceArray, Engine, Error, GpuGroup, GpuKey, Gpus, Key, SortOrder, workspace};

/// Numbers of keys: fewer than members, some, and enough to merge a part in several pieces.
const LENGTHS: [usize; 7] = [0, 1, 2, 3, 1000, 100_003, 40_000_003];

impl Test {
    /// Checks groups of all GPUs, and of the first GPU alone.
    pub fn check_groups<K: GpuKey>(&mut self) {
        for engine in [Engine::gpu(Gpus::All), Engine::gpu([0])] {
            let engine = engine.expect("there is a GPU");
            let group = engine.as_gpu_group().expect("this is an engine of GPUs").clone();
            for n in LENGTHS {
                // Long arrays have one kind, because the comparison on the CPU takes most of the time.
                let kinds = if n > 1 << 20 { &KINDS[..1] } else { &KINDS };
                for &(name, kind) in kinds {
                    let what = format!("{name} on {} GPUs, {n} keys", group.gpus().len());
                    let keys: Vec<K> = self.keys(n, kind);
                    self.check_group_host(&engine, &keys, &what);
                    self.check_group_arrays(&group, &keys, &what);
                }
            }
        }
    }

    /// Slices in host memory.
    fn check_group_host<K: GpuKey>(&mut self, engine: &Engine, keys: &[K], what: &str) {
        let n = keys.len();
        for order in SortOrder::ALL {
            let what = |name: &str| format!("{name}, {order}, {what}");
            let (mut found, mut expected) = (keys.to_vec(), keys.to_vec());
            self.cpu.sort_with(order, &mut expected).expect("the CPU sorts");
            let result = engine.sort_with(order, &mut found).map(|_| found);
            self.expect(|| what("sort"), result, &expected);

            let sorted = std::sync::Mutex::new(keys.to_vec());
            let read = |begin: usize, part: &mut [K]| {
                part.copy_from_slice(&keys[begin..][..part.len()]);
                Ok::<_, Error>(())
            };
            let write = |begin: usize, part: &[K]| {
                sorted.lock().expect("no panic")[begin..][..part.len()].copy_from_slice(part);
                Ok(())
            };
            let result = engine.sort_streamed(order, n, read, write);
            let result = result.map(|_| sorted.into_inner().expect("no panic"));
            self.expect(|| what("streamed sort"), result, &expected);

            self.check_group_pairs(engine, order, keys, &what("sort with u32"), |i| i as u32);
            self.check_group_pairs(engine, order, keys, &what("sort with u64"), |i| i as u64);
            self.check_group_pairs(engine, order, keys, &what("sort with 12 bytes"), |i| [i as u32; 3]);

            let (mut found, mut expected) = (vec![7u32; n], vec![7u32; n]);
            self.cpu.argsort(order, keys, &mut expected).expect("the CPU sorts");
            let result = engine.argsort(order, keys, &mut found).map(|_| found);
            self.expect(|| what("argsort"), result, &expected);
        }
        // Runs of different lengths, one of length 0.
        let ends = [0, n / 7, n / 7, n / 2, n - n / 5, n];
        let mut sorted = keys.to_vec();
        for range in ends.windows(2) {
            self.cpu.sort(&mut sorted[range[0]..range[1]]).expect("the CPU sorts");
        }
        let runs: Vec<&[K]> = ends.windows(2).map(|range| &sorted[range[0]..range[1]]).collect();
        let values: Vec<u32> = (0..n as u32).collect();
        let pairs: Vec<(&[K], &[u32])> =
            ends.windows(2).map(|range| (&sorted[range[0]..range[1]], &values[range[0]..range[1]])).collect();
        let mut expected = (keys.to_vec(), vec![0; n]);
        self.cpu.merge_many(&pairs, (&mut expected.0, &mut expected.1)).expect("the CPU merges");
        let mut found = keys.to_vec();
        let result = engine.merge_many(&runs, &mut found).map(|_| found);
        self.expect(|| format!("merge of many, {what}"), result, &expected.0);
        let mut found = (keys.to_vec(), vec![0; n]);
        let result = engine.merge_many(&pairs, (&mut found.0, &mut found.1));
        self.expect(|| format!("merge of many with values, {what}"), result.map(|_| found.1), &expected.1);

        let (a, b) = (pairs[2], pairs[3]);
        let total = a.0.len() + b.0.len();
        let (mut expected, mut found) = ((poison::<K>(total), vec![0; total]), (poison::<K>(total), vec![1; total]));
        self.cpu.merge(a, b, (&mut expected.0, &mut expected.1)).expect("the CPU merges");
        let mut merged = poison::<K>(total);
        let result = engine.merge(a.0, b.0, &mut merged).map(|_| merged);
        self.expect(|| format!("merge, {what}"), result, &expected.0);
        let result = engine.merge(a, b, (&mut found.0, &mut found.1));
        self.expect(|| format!("merge with values, {what}"), result.clone().map(|_| found.0), &expected.0);
        self.expect(|| format!("values of the merge, {what}"), result.map(|_| found.1), &expected.1);
        self.check_group_batches(engine, keys, what);
    }

    fn check_group_pairs<K: GpuKey, V: Copy + Send + Sync + bytemuck::Pod>(
        &mut self,
        engine: &Engine,
        order: SortOrder,
        keys: &[K],
        what: &str,
        value: impl Fn(usize) -> V,
    ) {
        let values: Vec<V> = (0..keys.len()).map(value).collect();
        let (mut found, mut expected) = ((keys.to_vec(), values.clone()), (keys.to_vec(), values));
        self.cpu.sort_with(order, (&mut expected.0, &mut expected.1)).expect("the CPU sorts");
        let result = engine.sort_with(order, (&mut found.0, &mut found.1));
        let words = |values: &[V]| bytemuck::cast_slice::<V, u32>(values).to_vec();
        self.expect(|| format!("values of the {what}"), result.clone().map(|_| words(&found.1)), &words(&expected.1));
        self.expect(|| format!("keys of the {what}"), result.map(|_| found.0), &expected.0);
    }

    fn check_group_batches<K: GpuKey>(&mut self, engine: &Engine, keys: &[K], what: &str) {
        let (d, a_len) = (100, 37);
        let problems = keys.len() / d;
        let mut sorted = keys[..problems * d].to_vec();
        let (a, b) = sorted.split_at_mut(problems * a_len);
        a.chunks_mut(a_len).for_each(|run| run.sort_by_key(|key| Key::to_ordered(*key)));
        b.chunks_mut(d - a_len).for_each(|run| run.sort_by_key(|key| Key::to_ordered(*key)));
        let (mut found, mut expected) = (keys[..problems * d].to_vec(), keys[..problems * d].to_vec());
        let (a, b) = (&*a, &*b);
        // A batch of no problems is refused.
        self.cpu.merge_batch(a, b, &mut expected, d, a_len).expect("the CPU merges");
        let result = engine.merge_batch(a, b, &mut found, d, a_len).map(|_| found);
        self.expect(|| format!("batch, {what}"), result, &expected);

        let offsets = |each: usize| (0..=problems).map(|i| i * each).collect::<Vec<_>>();
        let (a_offsets, b_offsets) = (offsets(a_len), offsets(d - a_len));
        let mut found = keys[..problems * d].to_vec();
        let result = engine.merge_ragged((a, &a_offsets), (b, &b_offsets), &mut found).map(|_| found);
        self.expect(|| format!("ragged batch, {what}"), result, &expected);
    }

    /// Arrays with even and uneven distributions over members.
    fn check_group_arrays<K: GpuKey>(&mut self, group: &GpuGroup, keys: &[K], what: &str) {
        let n = keys.len();
        let members = group.gpus().len();
        let uneven = |turn: usize| -> Vec<usize> {
            // Member `turn` gets a third of the keys, and the last member the rest. A group of one member gets all
            // keys.
            let mut lengths = vec![0; members];
            lengths[turn % members] += n / 3;
            lengths[members - 1] += n - n / 3;
            lengths
        };
        let even: Vec<usize> = (0..members).map(|i| group.part(i, n).len()).collect();
        for (turn, (before, after)) in [(even.clone(), even), (uneven(0), uneven(1))].into_iter().enumerate() {
            let order = if turn == 0 { SortOrder::Ascending } else { SortOrder::Descending };
            let what = |name: &str| format!("{name} of arrays {before:?} to {after:?}, {order}, {what}");
            let values: Vec<u32> = (0..n as u32).map(|i| i ^ 0x5555).collect();
            let mut expected = (keys.to_vec(), values.clone());
            self.cpu.sort_with(order, (&mut expected.0, &mut expected.1)).expect("the CPU sorts");
            let mut indices = vec![0u64; n];
            self.cpu.argsort(order, keys, &mut indices).expect("the CPU sorts");

            let space =
                |bytes: &dyn Fn(usize) -> usize| zeroed::<u8>(group, &(0..members).map(bytes).collect::<Vec<_>>());
            let for_sort = |bytes: fn(usize, usize, usize) -> usize| space(&|i| bytes(members, before[i], after[i]));
            let for_merge = |bytes: fn(usize, usize) -> usize| space(&|i| bytes(members, after[i]));

            let sort = || {
                let (mut from, mut to) = (distributed(group, keys, &before)?, zeroed::<K>(group, &after)?);
                let mut space = for_sort(workspace::group_sort::<K, ()>)?;
                group.sort(order, &mut from[..], &mut to[..], &mut space)?;
                group.download(&to)
            };
            self.expect(|| what("sort"), sort(), &expected.0);

            let sort_pairs = || {
                let (mut from, mut to) = (distributed(group, keys, &before)?, zeroed::<K>(group, &after)?);
                let (mut with, mut out) = (distributed(group, &values, &before)?, zeroed::<u32>(group, &after)?);
                let mut space = for_sort(workspace::group_sort::<K, u32>)?;
                let (elements, sorted) = ((&mut from[..], &mut with[..]), (&mut to[..], &mut out[..]));
                group.sort(order, elements, sorted, &mut space)?;
                Ok((group.download(&to)?, group.download(&out)?))
            };
            let found: Result<(Vec<K>, Vec<u32>), Error> = sort_pairs();
            self.expect(|| what("sort with values"), found.clone().map(|found| found.0), &expected.0);
            self.expect(|| what("values of the sort"), found.map(|found| found.1), &expected.1);

            let argsort = || {
                let (mut from, mut to) = (distributed(group, keys, &before)?, zeroed::<K>(group, &after)?);
                let (mut with, mut out) = (zeroed::<u64>(group, &before)?, zeroed::<u64>(group, &after)?);
                let mut space = for_sort(workspace::group_sort::<K, u64>)?;
                group.argsort(order, (&mut from, &mut with), (&mut to, &mut out), &mut space)?;
                group.download(&out)
            };
            self.expect(|| what("argsort"), argsort(), &indices);

            // Each member's part is sorted to a run.
            let mut runs = keys.to_vec();
            let mut rest = &mut runs[..];
            for &length in &before {
                let part;
                (part, rest) = rest.split_at_mut(length);
                self.cpu.sort(part).expect("the CPU sorts");
            }
            let (mut merged, mut permutation) = (runs.clone(), vec![0u32; n]);
            self.cpu.argsort(SortOrder::Ascending, &runs, &mut permutation).expect("the CPU sorts");
            self.cpu.sort(&mut merged).expect("the CPU sorts");
            let merge = || {
                let (from, mut to) = (distributed(group, &runs, &before)?, zeroed::<K>(group, &after)?);
                let mut space = for_merge(workspace::group_merge::<K, ()>)?;
                group.merge(&from[..], &mut to[..], &mut space)?;
                let first = group.download(&to)?;
                let with = distributed(group, &(0..n as u32).collect::<Vec<_>>(), &before)?;
                let mut out = zeroed::<u32>(group, &after)?;
                let mut space = for_merge(workspace::group_merge::<K, u32>)?;
                group.merge((&from[..], &with[..]), (&mut to[..], &mut out[..]), &mut space)?;
                Ok((first, group.download(&out)?))
            };
            let found: Result<(Vec<K>, Vec<u32>), Error> = merge();
            self.expect(|| what("merge"), found.clone().map(|found| found.0), &merged);
            self.expect(|| what("merge with values"), found.map(|found| found.1), &permutation);
        }
    }
}

/// An array with parts of these lengths.
fn distributed<T: bytemuck::Pod>(
    group: &GpuGroup,
    from: &[T],
    lengths: &[usize],
) -> Result<Vec<DeviceArray<T>>, Error> {
    let mut rest = from;
    let parts = group.streams().zip(lengths).map(|(stream, &length)| {
        let part;
        (part, rest) = rest.split_at(length);
        stream.upload(part)
    });
    parts.collect()
}

/// An array of zeros with parts of these lengths.
fn zeroed<T: bytemuck::Pod>(group: &GpuGroup, lengths: &[usize]) -> Result<Vec<DeviceArray<T>>, Error> {
    group.streams().zip(lengths).map(|(stream, &length)| stream.zeroed(length)).collect()
}
