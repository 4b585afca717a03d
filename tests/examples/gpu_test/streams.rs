//! Data in a GPU's memory: streams and arrays of this library, and those that other libraries own.

use super::{KINDS, Test, bytes, poison};
use bytemuck::Pod;
use merge_host::{
    BatchKernel, DeviceArray, DeviceOffsets, Engine, Error, Gpu, GpuKey, MergeKernel, SortKernel, SortOptions,
    SortOrder, Stream, workspace,
};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::thread;
use tests::parts::part;

/// A number of keys that is divided often. The sort has work on a second stream.
const MANY: usize = (1 << 24) + 3;

/// Sizes of sorts: of one block, of merges, of one division, and of several.
const SIZES: [usize; 6] = [0, 1, 1000, 100_003, 600_011, MANY];

/// Keys and their values.
type Pairs<K> = (Vec<K>, Vec<u32>);

/// Keys and their values as outputs.
type PairsMut<'a, K> = (&'a mut [K], &'a mut [u32]);

/// Expected results, by the CPU.
struct Expected<K> {
    sorted: Vec<K>,
    permutation: Vec<u32>,
}

impl<K: GpuKey> Expected<K> {
    fn new(cpu: &Engine, order: SortOrder, keys: &[K]) -> Self {
        let (mut sorted, mut permutation) = (keys.to_vec(), (0..keys.len() as u32).collect::<Vec<_>>());
        cpu.sort_with(order, (&mut sorted, &mut permutation)).expect("the CPU sorts");
        Self { sorted, permutation }
    }
}

/// Two sorted sides with values, with the same number of runs, and the results of merging them.
struct Merge<K> {
    a: Vec<K>,
    b: Vec<K>,
    offsets: [Vec<usize>; 2],
    /// The keys' indices in `a` followed by `b`.
    values: Vec<u32>,
    whole: Pairs<K>,
    batch: Pairs<K>,
    ragged: Pairs<K>,
}

/// Keys of a run of a side of a batch.
const RUN: usize = 50;

impl<K: GpuKey> Merge<K> {
    fn new(test: &mut Test, runs: usize) -> Self {
        let (_, kind) = KINDS[0];
        let mut side = || test.sorted::<K>(runs * RUN, kind);
        let (a, b) = (side(), side());
        // Ranges of a sorted array are sorted.
        let mut offsets = |keys: usize| {
            let mut offsets: Vec<usize> = (1..runs).map(|_| test.random.next() as usize % (keys + 1)).collect();
            offsets.sort_unstable();
            [vec![0], offsets, vec![keys]].concat()
        };
        let offsets = [offsets(a.len()), offsets(b.len())];
        let total = a.len() + b.len();
        let values: Vec<u32> = (0..total as u32).collect();
        let (av, bv) = values.split_at(a.len());
        let cpu = &test.cpu;
        let result = |merge: &dyn Fn(PairsMut<'_, K>)| {
            let mut out = (poison::<K>(total), vec![0; total]);
            merge((&mut out.0, &mut out.1));
            out
        };
        let whole = result(&|out| _ = cpu.merge((&a, av), (&b, bv), out).expect("the CPU merges"));
        let batch = result(&|out| {
            _ = cpu.merge_batch((&a, av), (&b, bv), out, 2 * RUN, RUN).expect("the CPU merges");
        });
        let ragged = result(&|out| {
            let (a, b) = (((&a, av), &offsets[0][..]), ((&b, bv), &offsets[1][..]));
            _ = cpu.merge_ragged(a, b, out).expect("the CPU merges");
        });
        Self { a, b, offsets, whole, batch, ragged, values }
    }
}

impl Test {
    /// Sorts and merges of arrays of streams.
    pub fn check_streams<K: GpuKey>(&mut self) {
        // Streams and arrays keep the `Gpu` alive, which is dropped here.
        let streams = [(); 2].map(|()| Gpu::new(0).and_then(|gpu| gpu.stream()).expect("the device makes streams"));
        for (n, order) in SIZES.into_iter().flat_map(|n| [(n, SortOrder::Ascending), (n, SortOrder::Descending)]) {
            let keys: Vec<K> = self.keys(n, KINDS[0].1);
            let expected = Expected::new(&self.cpu, order, &keys);
            let what = |call: &str| format!("{call} of {n}, {order:?}, in arrays of a stream");
            let stream = &streams[0];
            let sorted = sort(stream, order, &keys).and_then(|sorted| sorted.0.download());
            self.expect(|| what("sort"), sorted, &expected.sorted);
            let (sorted, values) = split(sort_pairs(stream, order, &keys));
            self.expect(|| what("sort of pairs"), sorted, &expected.sorted);
            self.expect(|| what("values of the sort of pairs"), values, &expected.permutation);
            self.expect(|| what("argsort"), argsort(stream, order, &keys), &expected.permutation);
        }
        for runs in [0, 1, 20_000] {
            let merge = Merge::<K>::new(self, runs);
            for (call, expected) in [("merge", &merge.whole), ("batch", &merge.batch), ("ragged batch", &merge.ragged)]
            {
                let what = format!("{call} of {runs} runs, in arrays of a stream");
                let (alone, with_values) = match call {
                    "merge" => (merge_whole(&streams[0], &merge, false), merge_whole(&streams[0], &merge, true)),
                    "batch" => (merge_batch(&streams[0], &merge, false), merge_batch(&streams[0], &merge, true)),
                    _ => (merge_ragged(&streams[0], &merge, false), merge_ragged(&streams[0], &merge, true)),
                };
                self.expect(|| what.clone(), split(alone).0, &expected.0);
                let (keys, values) = split(with_values);
                self.expect(|| format!("{what}, with values"), keys, &expected.0);
                self.expect(|| format!("values of the {what}"), values, &expected.1);
            }
        }
        self.check_moves::<K>(&streams);
        self.check_drops::<K>();
        self.check_threads::<K>(&streams[0]);
    }

    /// Arrays that are sorted on one stream each, and merged on a third stream during the sorts.
    fn check_moves<K: GpuKey>(&mut self, streams: &[Stream; 2]) {
        for round in 0..6 {
            let sides = [(); 2].map(|()| self.keys::<K>(MANY / (1 + round % 3), KINDS[0].1));
            let mut expected = sides.concat();
            self.cpu.sort(&mut expected).expect("the CPU sorts");
            let found = (|| {
                let third = streams[0].gpu().stream()?;
                let (mut out, mut workspace) = (
                    third.zeroed(expected.len())?,
                    third.zeroed(workspace::merge::<K, ()>(MergeKernel::Auto, expected.len()))?,
                );
                let (mut a, _of_a) = sort(&streams[0], SortOrder::Ascending, &sides[0])?;
                let (mut b, _of_b) = sort(&streams[1], SortOrder::Ascending, &sides[1])?;
                a.move_to(&third)?;
                b.move_to(&third)?;
                third.merge(MergeKernel::Auto, &a, &b, &mut out, &mut workspace)?;
                // The first stream gets an array back, and changes it after the merge.
                a.move_to(&streams[0])?;
                a.copy_from(&streams[0].zeroed(a.len())?)?;
                out.download()
            })();
            self.expect(|| format!("merge of arrays that were moved, round {round}"), found, &expected);
        }
    }

    /// Arrays, workspace, streams and the GPU, dropped during a sort. The sort does not write to memory that is
    /// allocated next.
    fn check_drops<K: GpuKey>(&mut self) {
        let keys: Vec<K> = self.keys(MANY, KINDS[0].1);
        let mut expected = keys.clone();
        self.cpu.sort(&mut expected).expect("the CPU sorts");
        for order in 0..4 {
            let found = (|| {
                let gpu = Gpu::new(0)?;
                let stream = gpu.stream()?;
                let mut sorted = stream.upload(&keys)?;
                let mut workspace = stream.zeroed(workspace::sort::<K, ()>(keys.len()))?;
                stream.sort(SortOrder::Ascending, &mut sorted, &mut workspace)?;
                match order {
                    0 => drop((workspace, stream, gpu)),
                    1 => drop((gpu, stream, workspace)),
                    2 => drop((stream, gpu, workspace)),
                    // Values that are never dropped are never freed.
                    _ => std::mem::forget((workspace, stream, gpu)),
                }
                let other = Gpu::new(0)?.stream()?;
                let next = other.zeroed::<u8>(keys.len() * size_of::<K>())?.download()?;
                assert!(next.iter().all(|&byte| byte == 0), "new memory has been written");
                sorted.download()
            })();
            self.expect(|| format!("sort whose workspace is dropped at once, order {order}"), found, &expected);
            let next = (|| {
                let stream = Gpu::new(0)?.stream()?;
                drop(sort(&stream, SortOrder::Ascending, &keys)?);
                Gpu::new(0)?.stream()?.zeroed::<u8>(keys.len() * size_of::<K>())?.download()
            })();
            let is_zero = next.map(|next| vec![u32::from(next.iter().all(|&byte| byte == 0))]);
            self.expect(|| "memory after a sort whose keys are dropped at once".to_owned(), is_zero, &[1]);
        }
    }

    /// Several threads that sort arrays of their own on one stream.
    fn check_threads<K: GpuKey>(&mut self, stream: &Stream) {
        let inputs: Vec<Vec<K>> = (0..4).map(|i| self.keys(MANY / (i + 1), KINDS[0].1)).collect();
        let found: Vec<_> = thread::scope(|scope| {
            let sort = |keys: &[K]| sort(stream, SortOrder::Ascending, keys)?.0.download();
            let threads: Vec<_> = inputs.iter().map(|keys| scope.spawn(move || sort(keys))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });
        for (mut keys, found) in inputs.into_iter().zip(found) {
            self.cpu.sort(&mut keys).expect("the CPU sorts");
            self.expect(|| format!("sort of {} by one of several threads", keys.len()), found, &keys);
        }
    }

    /// Arrays of other streams and of another GPU are errors, and stay unchanged.
    pub fn check_misuse(&mut self) {
        let gpu = Gpu::new(0).expect("there is a GPU");
        let [one, other] = [(); 2].map(|()| gpu.stream().expect("the device makes streams"));
        let keys: Vec<u32> = self.keys(1000, KINDS[0].1);
        let upload = |stream: &Stream| stream.upload(&keys).expect("the device has memory");
        let (mut foreign, mut own, mut empty) = (upload(&other), upload(&one), one.zeroed(0).expect("that is nothing"));
        let mut foreign_workspace = other.zeroed(0).expect("that is nothing");
        let foreign_offsets = DeviceOffsets::new(&other, &[0, 1000]).expect("the device has memory");
        let offsets = DeviceOffsets::new(&one, &[0, 1000]).expect("the device has memory");
        let short_offsets = DeviceOffsets::new(&one, &[0, 999]).expect("the device has memory");
        let [one_group, foreign_group] =
            [&one, &other].map(|stream| DeviceOffsets::new(stream, &[0, 1]).expect("the device has memory"));
        let order = SortOrder::Ascending;
        let [mut out, mut out_values] = [(); 2].map(|()| one.zeroed::<u32>(2000).expect("the device has memory"));
        let mut values = upload(&one);
        let stream = |what| Error::OtherStream { what };
        let (auto, tiled, small) = (MergeKernel::Auto, MergeKernel::Tiled, BatchKernel::Small);
        let found = [
            (one.sort(order, &mut foreign, &mut empty), stream("keys")),
            (one.sort(order, &mut own, &mut foreign_workspace), stream("workspace")),
            (one.sort(order, (&mut own, &mut foreign), &mut empty), stream("values")),
            (one.argsort(order, &mut own, &mut foreign, &mut empty), stream("indices")),
            (one.merge(auto, &foreign, &own, &mut out, &mut empty), stream("a")),
            (one.merge(auto, &own, &foreign, &mut out, &mut empty), stream("b")),
            (other.merge(auto, &foreign, &foreign, &mut out, &mut foreign_workspace), stream("out")),
            (
                one.merge(auto, (&own, &foreign), (&own, &own), (&mut out, &mut values), &mut empty),
                stream("values of a"),
            ),
            (one.merge_batch(BatchKernel::Auto, &own, &foreign, &mut out, 2, 1), stream("b")),
            (
                one.merge_ragged((&own, &offsets), (&own, &foreign_offsets), &mut out, &mut empty),
                stream("offsets of b"),
            ),
            (
                one.merge_ragged((&own, &offsets), (&own, &short_offsets), &mut out, &mut empty),
                Error::LastOffset { what: "b", found: 999, expected: 1000 },
            ),
            (one.merge_many(order, &own, (&foreign_offsets, &one_group), &mut values, &mut empty), stream("offsets")),
            (one.merge_many(order, &own, (&offsets, &foreign_group), &mut values, &mut empty), stream("groups")),
            (
                one.merge_many(order, &own, (&short_offsets, &one_group), &mut values, &mut empty),
                Error::LastOffset { what: "keys", found: 999, expected: 1000 },
            ),
            (
                one.merge_many(order, &own, (&offsets, &offsets), &mut values, &mut empty),
                Error::LastGroup { found: 1000, expected: 1 },
            ),
            (
                one.merge(tiled, (&own, &values), (&own, &values), (&mut out, &mut out_values), &mut empty),
                Error::KeysAlone { kernel: tiled.name() },
            ),
            (
                one.merge_batch(small, (&own, &values), (&own, &values), (&mut out, &mut out_values), 2, 1),
                Error::KeysAlone { kernel: small.name() },
            ),
            (own.copy_from(&foreign), stream("from")),
            (
                one.sort(order, &mut one.zeroed::<u32>(1 << 20).expect("the device has memory"), &mut empty),
                Error::WorkspaceTooSmall { needed: workspace::sort::<u32, ()>(1 << 20), found: 0 },
            ),
            (
                DeviceOffsets::new(&one, &[0, 2, 1]).map(|_| ()),
                Error::DescendingOffsets { what: "the array", index: 2, found: 1, before: 2 },
            ),
        ];
        for (i, (found, expected)) in found.into_iter().enumerate() {
            let is_refused = found == Err(expected);
            self.expect(|| format!("misuse {i}: {found:?}"), Ok(vec![u32::from(is_refused)]), &[1]);
        }
        self.expect(|| "an array that was refused".to_owned(), foreign.download(), &keys);
        self.expect(|| "an array beside one that was refused".to_owned(), own.download(), &keys);
        if merge_host::devices().is_ok_and(|devices| devices.len() > 1) {
            let second = Gpu::new(1).and_then(|gpu| gpu.stream()).expect("there is a second GPU");
            let elsewhere = |what| Err(Error::OtherGpu { what, found: 0, expected: 1 });
            let refused = foreign.move_to(&second) == elsewhere("the array")
                && second.sort(order, &mut own, &mut empty) == elsewhere("keys");
            self.expect(|| "arrays of another GPU".to_owned(), Ok(vec![u32::from(refused)]), &[1]);
        } else {
            println!("one GPU: arrays of another one were not tested");
        }
    }

    /// Sorts and merges of arrays by address, on foreign streams, without a current context.
    pub fn check_addresses<K: GpuKey>(&mut self) {
        let gpu = Gpu::new(0).expect("there is a GPU");
        let foreign = driver::Stream::new();
        for (name, on) in [("the default stream", null_mut()), ("another library's stream", foreign.0)] {
            for n in SIZES {
                let keys: Vec<K> = self.keys(n, KINDS[0].1);
                let expected = Expected::new(&self.cpu, SortOrder::Ascending, &keys);
                for kernel in SortKernel::ALL {
                    let (sorted, values, indices) = match sorts_by_address(&gpu, kernel, &keys, on) {
                        Ok(((sorted, values), indices)) => (Ok(sorted), Ok(values), Ok(indices)),
                        Err(error) => (Err(error.clone()), Err(error.clone()), Err(error)),
                    };
                    let what = |call: &str| format!("{kernel} {call} of {n} by address on {name}");
                    self.expect(|| what("sort"), sorted, &expected.sorted);
                    self.expect(|| what("sort of pairs"), values, &expected.permutation);
                    self.expect(|| what("argsort"), indices, &expected.permutation);
                }
            }
            let merge = Merge::<K>::new(self, 20_000);
            let expected = [&merge.whole, &merge.batch, &merge.ragged];
            match merges_by_address(&gpu, &merge, on) {
                Err(error) => self.expect::<K>(|| format!("merges by address on {name}"), Err(error), &[]),
                Ok(found) => {
                    for (i, ((keys, values), expected)) in found.into_iter().zip(expected.repeat(2)).enumerate() {
                        self.expect(|| format!("merge {i} by address on {name}"), Ok(keys), &expected.0);
                        if i < 3 {
                            self.expect(|| format!("values of merge {i} on {name}"), Ok(values), &expected.1);
                        }
                    }
                }
            }
        }
        self.check_refused_addresses(&gpu, foreign.0);
        let (before, during) = driver::without_context(|| {
            let keys: Vec<K> = self.keys(1000, KINDS[0].1);
            let expected = Expected::new(&self.cpu, SortOrder::Ascending, &keys);
            let found = sorts_by_address(&gpu, SortKernel::Auto, &keys, foreign.0).map(|found| found.0.0);
            self.expect(|| "sort where no context is current".to_owned(), found, &expected.sorted);
        });
        let same = u32::from(before == during);
        self.expect(|| "the context that was current before".to_owned(), Ok(vec![same]), &[1]);
    }

    /// Addresses that can be seen to be wrong, by themselves and in calls.
    fn check_refused_addresses(&mut self, gpu: &Gpu, on: *mut c_void) {
        const N: usize = 100_000;
        let (auto, order) = (MergeKernel::Auto, SortOrder::Ascending);
        let needed = workspace::sort::<u32, ()>(N);
        // SAFETY: the caller keeps the stream and the GPU.
        let stream = unsafe { gpu.stream_from_handle(on) };
        // SAFETY: nothing is at these addresses, and nothing is put on the stream, because every call is refused.
        let words = |address, len| unsafe { DeviceArray::<u32>::from_address(&stream, address, len) };
        // SAFETY: nothing is put on the stream, because every call is refused.
        let bytes = |address, len| unsafe { DeviceArray::<u8>::from_address(&stream, address, len) };
        let sort = |address, len| stream.sort(order, &mut words(0x1000, N)?, &mut bytes(address, len)?);
        let sort_pairs = || {
            let (mut keys, mut values) = (words(0x1000, N)?, words(0x100_0000, 7)?);
            stream.sort(order, (&mut keys, &mut values), &mut bytes(0x200_0000, needed)?)
        };
        let merge = || {
            let (a, b, mut out) = (words(0x1000, 10)?, words(0x1000 + 40, 10)?, words(0x1000 + 76, 20)?);
            stream.merge(auto, &a, &b, &mut out, &mut bytes(0x100_0000, needed)?)
        };
        let at = |address| words(address, 100).map(|_| ());
        let bad = |address| Error::BadAddress { what: "the array", address, align: 4 };
        let found = [
            (sort(0x100_0000, needed - 1), Error::WorkspaceTooSmall { needed, found: needed - 1 }),
            (sort(0x100_0001, needed + 14), Error::WorkspaceTooSmall { needed, found: needed - 1 }),
            (sort(0x1010, needed), Error::Overlap { what: "keys", other: "workspace" }),
            (at(0x1002), bad(0x1002)),
            (at(0), bad(0)),
            (sort_pairs(), Error::ValuesMismatch { what: "keys", keys: N, values: 7 }),
            (merge(), Error::Overlap { what: "out", other: "b" }),
        ];
        for (i, (found, expected)) in found.into_iter().enumerate() {
            let is_refused = found == Err(expected);
            self.expect(|| format!("refused address {i}: {found:?}"), Ok(vec![u32::from(is_refused)]), &[1]);
        }
    }
}

/// Both results, or the error twice.
fn split<A, B>(result: Result<(A, B), Error>) -> (Result<A, Error>, Result<B, Error>) {
    match result {
        Ok((a, b)) => (Ok(a), Ok(b)),
        Err(error) => (Err(error.clone()), Err(error)),
    }
}

/// Uploads and sorts keys. Does not wait for the sort, so the workspace is returned, too.
fn sort<K: GpuKey>(stream: &Stream, order: SortOrder, keys: &[K]) -> Result<(DeviceArray<K>, DeviceArray<u8>), Error> {
    let mut workspace = stream.zeroed(workspace::sort::<K, ()>(keys.len()))?;
    let mut keys = stream.upload(keys)?;
    stream.sort(order, &mut keys, &mut workspace)?;
    Ok((keys, workspace))
}

fn sort_pairs<K: GpuKey>(stream: &Stream, order: SortOrder, keys: &[K]) -> Merged<K> {
    let mut values = stream.upload(&(0..keys.len() as u32).collect::<Vec<_>>())?;
    let mut workspace = stream.zeroed(workspace::sort::<K, u32>(keys.len()))?;
    let mut keys = stream.upload(keys)?;
    stream.sort(order, (&mut keys, &mut values), &mut workspace)?;
    Ok((keys.download()?, values.download()?))
}

fn argsort<K: GpuKey>(stream: &Stream, order: SortOrder, keys: &[K]) -> Result<Vec<u32>, Error> {
    let (mut keys, mut indices) = (stream.upload(keys)?, stream.zeroed(keys.len())?);
    let mut workspace = stream.zeroed(workspace::argsort::<K, u32>(keys.len()))?;
    stream.argsort(order, &mut keys, &mut indices, &mut workspace)?;
    indices.download()
}

type Merged<K> = Result<Pairs<K>, Error>;

/// The sides of a merge, and its output, in arrays of a stream.
struct OnStream<K> {
    a: (DeviceArray<K>, DeviceArray<u32>),
    b: (DeviceArray<K>, DeviceArray<u32>),
    out: (DeviceArray<K>, DeviceArray<u32>),
}

impl<K: GpuKey> OnStream<K> {
    fn new(stream: &Stream, merge: &Merge<K>) -> Result<Self, Error> {
        let (av, bv) = merge.values.split_at(merge.a.len());
        Ok(Self {
            a: (stream.upload(&merge.a)?, stream.upload(av)?),
            b: (stream.upload(&merge.b)?, stream.upload(bv)?),
            out: (stream.zeroed(merge.values.len())?, stream.zeroed(merge.values.len())?),
        })
    }

    fn download(&self) -> Merged<K> {
        Ok((self.out.0.download()?, self.out.1.download()?))
    }
}

fn merge_whole<K: GpuKey>(stream: &Stream, merge: &Merge<K>, with_values: bool) -> Merged<K> {
    let mut on = OnStream::new(stream, merge)?;
    let (a, b, out) = ((&on.a.0, &on.a.1), (&on.b.0, &on.b.1), (&mut on.out.0, &mut on.out.1));
    let kernel = MergeKernel::Auto;
    if with_values {
        let mut workspace = stream.zeroed(workspace::merge::<K, u32>(kernel, merge.values.len()))?;
        stream.merge(kernel, a, b, out, &mut workspace)?;
    } else {
        let mut workspace = stream.zeroed(workspace::merge::<K, ()>(kernel, merge.values.len()))?;
        stream.merge(kernel, a.0, b.0, out.0, &mut workspace)?;
    }
    on.download()
}

fn merge_batch<K: GpuKey>(stream: &Stream, merge: &Merge<K>, with_values: bool) -> Merged<K> {
    let mut on = OnStream::new(stream, merge)?;
    let (a, b, out) = ((&on.a.0, &on.a.1), (&on.b.0, &on.b.1), (&mut on.out.0, &mut on.out.1));
    if with_values {
        stream.merge_batch(BatchKernel::Auto, a, b, out, 2 * RUN, RUN)?;
    } else {
        stream.merge_batch(BatchKernel::Auto, a.0, b.0, out.0, 2 * RUN, RUN)?;
    }
    on.download()
}

fn merge_ragged<K: GpuKey>(stream: &Stream, merge: &Merge<K>, with_values: bool) -> Merged<K> {
    let mut on = OnStream::new(stream, merge)?;
    let (ao, bo) = (DeviceOffsets::new(stream, &merge.offsets[0])?, DeviceOffsets::new(stream, &merge.offsets[1])?);
    let (a, b, out) = ((&on.a.0, &on.a.1), (&on.b.0, &on.b.1), (&mut on.out.0, &mut on.out.1));
    let mut workspace = stream.zeroed(workspace::merge_ragged::<K>(merge.values.len()))?;
    if with_values {
        stream.merge_ragged((a, &ao), (b, &bo), out, &mut workspace)?;
    } else {
        stream.merge_ragged((a.0, &ao), (b.0, &bo), out.0, &mut workspace)?;
    }
    on.download()
}

/// `from` after an element that is not part of it, so that it begins where only its elements are aligned: the array,
/// and `from` as an array of `stream`. Waits for the copy.
///
/// # Safety
/// The first array is dropped after the work on the second one.
unsafe fn shifted<T: Pod>(
    memory: &Stream,
    stream: &Stream,
    from: &[T],
) -> Result<(DeviceArray<T>, DeviceArray<T>), Error> {
    let array = memory.upload(&[&[T::zeroed()], from].concat())?;
    // SAFETY: the caller keeps the array, on which there is no other work than that of the part.
    let part = unsafe { part(stream, &array, 1..array.len()) };
    Ok((array, part))
}

/// The keys that are sorted, the values that are sorted with them, which are the keys' indices at first, and the
/// indices of an argsort. The work is on a stream of any library.
fn sorts_by_address<K: GpuKey>(
    gpu: &Gpu,
    kernel: SortKernel,
    keys: &[K],
    on: *mut c_void,
) -> Result<(Pairs<K>, Vec<u32>), Error> {
    let (memory, n) = (gpu.stream()?, keys.len());
    let indices: Vec<u32> = (0..n as u32).collect();
    // SAFETY: the caller keeps the stream and the GPU.
    let stream = unsafe { gpu.stream_from_handle(on) };
    // SAFETY: the arrays live until the stream has been waited for, by `synchronize` below.
    let ([mut a, mut b, mut c], [mut values, mut found]) = unsafe {
        let keys = || shifted(&memory, &stream, keys);
        ([keys()?, keys()?, keys()?], [shifted(&memory, &stream, &indices)?, shifted(&memory, &stream, &vec![7; n])?])
    };
    let bytes_of_pairs = workspace::sort::<K, u32>(n).max(workspace::argsort::<K, u32>(n));
    let in_workspace = memory.zeroed::<u8>(bytes_of_pairs + 16)?;
    // The workspace begins 15 bytes before a multiple of 16. SAFETY: `in_workspace` lives until the stream has been
    // waited for. Its zeros are written before the calls, because `memory` is waited for first.
    let mut workspace = unsafe { part(&stream, &in_workspace, 1..bytes_of_pairs + 16) };
    memory.synchronize()?;
    let options = SortOptions::from(SortOrder::Ascending).kernel(kernel);
    stream.sort(options, &mut a.1, &mut workspace)?;
    stream.sort(options, (&mut b.1, &mut values.1), &mut workspace)?;
    stream.argsort(options, &mut c.1, &mut found.1, &mut workspace)?;
    stream.synchronize()?;
    let keys = a.0.download()?;
    assert_eq!(bytes(&keys[..1]), bytes(&[K::zeroed()]), "the element before the array");
    Ok(((a.1.download()?, values.1.download()?), found.1.download()?))
}

/// A merge, a batch and a ragged batch, with values and then without.
fn merges_by_address<K: GpuKey>(gpu: &Gpu, merge: &Merge<K>, on: *mut c_void) -> Result<Vec<Pairs<K>>, Error> {
    let (memory, total) = (gpu.stream()?, merge.values.len());
    // SAFETY: the caller keeps the stream and the GPU.
    let stream = unsafe { gpu.stream_from_handle(on) };
    let (av, bv) = merge.values.split_at(merge.a.len());
    // SAFETY: the arrays live until the stream has been waited for, by `synchronize` below.
    let (a, av, b, bv) = unsafe {
        let keys = |from: &[K]| shifted(&memory, &stream, from);
        let values = |from: &[u32]| shifted(&memory, &stream, from);
        (keys(&merge.a)?, values(av)?, keys(&merge.b)?, values(bv)?)
    };
    let offsets = |i: usize| {
        let (offsets, end) = (&merge.offsets[i], [merge.a.len(), merge.b.len()][i]);
        let array = memory.upload(&offsets.iter().map(|&offset| offset as u64).collect::<Vec<_>>())?;
        // SAFETY: the caller keeps `array` until the stream has been waited for. The offsets ascend from 0 to `end`,
        // and a length is at most `usize::MAX`.
        let offsets = unsafe { DeviceOffsets::from_array(part(&stream, &array, 0..array.len()), end, usize::MAX) }?;
        Ok::<_, Error>((array, offsets))
    };
    let (ao, bo) = (offsets(0)?, offsets(1)?);
    let mut outs = Vec::new();
    for _ in 0..6 {
        outs.push((stream.zeroed::<K>(total)?, stream.zeroed::<u32>(total)?));
    }
    let bytes = [
        workspace::merge::<K, u32>(MergeKernel::Auto, total),
        workspace::merge::<K, ()>(MergeKernel::MergePath, total),
        workspace::merge_ragged::<K>(total),
    ];
    let mut workspace = stream.zeroed::<u8>(bytes.into_iter().fold(0, usize::max))?;
    let ((a, b), pairs) = ((&a.1, &b.1), ((&a.1, &av.1), (&b.1, &bv.1)));
    let (ao, bo, w) = (&ao.1, &bo.1, &mut workspace);
    let mut out = outs.iter_mut().map(|(keys, values)| (keys, values));
    let mut next = || out.next().expect("there are six");
    stream.merge(MergeKernel::Auto, pairs.0, pairs.1, next(), w)?;
    stream.merge_batch(BatchKernel::Auto, pairs.0, pairs.1, next(), 2 * RUN, RUN)?;
    stream.merge_ragged((pairs.0, ao), (pairs.1, bo), next(), w)?;
    stream.merge(MergeKernel::MergePath, a, b, next().0, w)?;
    stream.merge_batch(BatchKernel::Small, a, b, next().0, 2 * RUN, RUN)?;
    stream.merge_ragged((a, ao), (b, bo), next().0, w)?;
    stream.synchronize()?;
    outs.iter().map(|out| Ok((out.0.download()?, out.1.download()?))).collect()
}

mod driver {
    //! What another library does: its own streams, and its own idea of the current context.
    use crate::cuda::{cuCtxGetCurrent, cuCtxSetCurrent, cuStreamCreate, cuStreamDestroy_v2};
    use std::ffi::c_void;
    use std::ptr::null_mut;

    /// A stream that does not wait for the default stream (`CU_STREAM_NON_BLOCKING`).
    pub struct Stream(pub *mut c_void);

    impl Stream {
        pub fn new() -> Self {
            let mut stream = null_mut();
            // SAFETY: the call writes one handle to a local variable that is valid for it, and reads nothing.
            assert_eq!(unsafe { cuStreamCreate(&mut stream, 1) }, 0, "cuStreamCreate");
            Self(stream)
        }
    }

    impl Drop for Stream {
        fn drop(&mut self) {
            // SAFETY: `new` has created the stream, which is destroyed only here. The handle is not used afterwards.
            assert_eq!(unsafe { cuStreamDestroy_v2(self.0) }, 0, "cuStreamDestroy");
        }
    }

    fn current() -> *mut c_void {
        let mut context = null_mut();
        // SAFETY: the call writes one handle to a local variable that is valid for it, and reads nothing.
        assert_eq!(unsafe { cuCtxGetCurrent(&mut context) }, 0, "cuCtxGetCurrent");
        context
    }

    /// Calls `work` while no context is current. Returns the current contexts before and after `work`.
    pub fn without_context(work: impl FnOnce()) -> (*mut c_void, *mut c_void) {
        let outside = current();
        // SAFETY: a null pointer unbinds the current context, and reads no memory.
        assert_eq!(unsafe { cuCtxSetCurrent(null_mut()) }, 0, "cuCtxSetCurrent");
        let before = current();
        work();
        let after = current();
        // SAFETY: `outside` was the current context or null at the start of this function, and nothing has destroyed
        // it.
        assert_eq!(unsafe { cuCtxSetCurrent(outside) }, 0, "cuCtxSetCurrent");
        (before, after)
    }
}
