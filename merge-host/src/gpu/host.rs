//! Operations on slices in host memory: upload, compute, download.

use super::launch::batch::{Batch, Lengths, Ragged};
use super::launch::bits::SortByBits;
use super::launch::groups::{ReduceByKey, RunLengths, SortUnique, Unique};
use super::launch::many_ragged::{MergeManyRagged, RunGroups};
use super::launch::many_runs::{MOST, MergeMany};
use super::launch::merge::{Merge, MergeTree};
use super::launch::sets::Sets;
use super::launch::sort::Sort;
use super::launch::top_k::TopK;
use super::launch::top_k_segments::TopKSegments;
use super::launch::{Arrays, OnStream, bounds, segments, with_numbers};
use super::numbers::{bytes_of, bytes_of_mut};
use super::operation::{KeyCoding, Operation, Record};
use super::{Address, Gpu, Stream, zeroed};
use crate::cpu::{Run, RunMut};
use crate::key::sealed::DeviceBits;
use crate::parallel::{self, Threads};
use crate::permutation::fill_identity;
use crate::timing::Steps;
use crate::{BatchKernel, Bound, Error, Index, MergeKernel, Reduction, SetOperation, SortKernel, Summand, allocation};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use cust::memory::DeviceBuffer;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Values that a thread of the CPU moves at once.
const BLOCK: usize = 1 << 14;

/// The bytes of values in host memory: `each` bytes per value, or 0 if there are none.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    bytes: &'a [u8],
    pub(super) each: usize,
}

impl<'a> Values<'a> {
    pub(super) const NONE: Self = Self { bytes: &[], each: 0 };

    /// `values` as bytes, if they are numbers of 4 or 8 bytes or have no bytes.
    pub(super) fn of_numbers<V: Copy>(values: &'a [V]) -> Option<Self> {
        if size_of::<V>() == 0 {
            return Some(Self::NONE);
        }
        Some(Self { bytes: bytes_of(values)?, each: size_of::<V>() })
    }

    /// The values with the indices `range`.
    pub(super) fn part(self, range: Range<usize>) -> Self {
        Self { bytes: &self.bytes[range.start * self.each..range.end * self.each], ..self }
    }

    /// Indices, which the GPU moves in place of values of other types.
    fn of_indices<I: Index>(indices: &'a [I]) -> Self {
        Self { bytes: cast_slice(indices), each: size_of::<I>() }
    }
}

/// The elements of an operation: data to upload, or room for a result.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    keys: &'a [u8],
    values: Values<'a>,
    len: usize,
    key_bytes: usize,
}

impl<'a> Slice<'a> {
    /// Room for a number of 8 bytes.
    const COUNT: Self = Self { keys: &[], values: Values::NONE, len: 1, key_bytes: size_of::<u64>() };

    /// Keys and their values, if there are any.
    fn of<T: Pod>(keys: &'a [T], values: Values<'a>) -> Self {
        Self { keys: cast_slice(keys), values, len: keys.len(), key_bytes: size_of::<T>() }
    }

    /// Room for `len` keys with values of `value_bytes` bytes; 0 for keys alone.
    pub(super) fn room<T>(len: usize, value_bytes: usize) -> Self {
        let values = Values { each: value_bytes, ..Values::NONE };
        Self { keys: &[], values, len, key_bytes: size_of::<T>() }
    }

    /// Room for `len` such elements.
    fn room_alike(self, len: usize) -> Self {
        Self { keys: &[], values: Values { each: self.values.each, ..Values::NONE }, len, ..self }
    }

    fn bytes(self) -> usize {
        self.len.saturating_mul(self.key_bytes + self.values.each)
    }

    /// Arrays of this length for an operation that is only recorded.
    fn recorded(self) -> Arrays {
        Record::arrays(self.len, self.values.each)
    }
}

/// Keys and values in the GPU's memory.
pub(super) struct OnGpu {
    pub(super) keys: DeviceBuffer,
    values: DeviceBuffer,
    len: usize,
    value_bytes: usize,
}

impl OnGpu {
    /// Allocates arrays for the elements of `slice`.
    pub(super) fn new(gpu: &Gpu, slice: Slice<'_>) -> Result<Self, Error> {
        let Slice { len, key_bytes, values: Values { each: value_bytes, .. }, .. } = slice;
        let (keys, values) = (len.saturating_mul(key_bytes), len.saturating_mul(value_bytes));
        Ok(Self { keys: gpu.buffer(keys)?, values: gpu.buffer(values)?, len, value_bytes })
    }

    /// Uploads the elements, unless the slice is only room.
    fn upload(&self, gpu: &Gpu, slice: Slice<'_>) -> Result<(), Error> {
        if !slice.keys.is_empty() {
            gpu.copy_to_gpu(slice.keys, &self.keys)?;
        }
        if slice.values.bytes.is_empty() { Ok(()) } else { gpu.copy_to_gpu(slice.values.bytes, &self.values) }
    }

    /// Uploads keys and their values.
    pub(super) fn fill<B: DeviceBits>(&self, gpu: &Gpu, keys: &[B], values: Values<'_>) -> Result<(), Error> {
        self.upload(gpu, Slice::of(keys, values))
    }

    /// Downloads the first bytes of keys and the first bytes of values.
    fn download(&self, gpu: &Gpu, keys: &mut [u8], values: &mut [u8]) -> Result<(), Error> {
        gpu.copy_from_gpu(&self.keys.index(..keys.len()), keys)?;
        gpu.copy_from_gpu(&self.values.index(..values.len()), values)
    }

    /// Downloads the first `count` keys.
    fn first_keys<B: Pod>(&self, gpu: &Gpu, count: usize) -> Result<Vec<B>, Error> {
        let mut keys = zeroed(count)?;
        self.download(gpu, cast_slice_mut(&mut keys), &mut [])?;
        Ok(keys.into_vec())
    }

    /// Downloads the first `count` values.
    fn first_values<V: Pod>(&self, gpu: &Gpu, count: usize) -> Result<Vec<V>, Error> {
        let mut values = zeroed(count)?;
        gpu.copy_from_gpu(&self.values.index(..count * size_of::<V>()), cast_slice_mut(&mut values))?;
        Ok(values.into_vec())
    }

    pub(super) fn arrays(&self) -> Arrays {
        let (keys, values) = (address(&self.keys), address(&self.values));
        Arrays { keys, values, len: self.len, value_bytes: self.value_bytes, count: 0 }
    }
}

/// The kernel of a sort, and the order of the keys.
pub(crate) type SortHow = (SortKernel, KeyCoding);

/// Why a run has ended early.
pub(super) enum Ended {
    /// Its upload has failed, and has kept the error.
    Upload,
    Error(Error),
}

impl Ended {
    /// The error. `of_upload` is the error that the upload has kept, if it has failed.
    pub(super) fn error<E: From<Error>>(self, of_upload: Option<E>) -> E {
        match self {
            Self::Upload => of_upload.expect("the upload has kept its error"),
            Self::Error(error) => error.into(),
        }
    }
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Queues the launches of an operation on uploaded arrays and a workspace.
type Launch<'a> = dyn Fn(&[OnGpu], &Stream, Address) -> Result<(), Error> + 'a;

/// Uploads elements and puts all or some in order on the GPU. Returns the result and its number of elements.
type InPlace<'a> = dyn Fn(Slice<'_>) -> Result<(OnGpu, usize, Steps), Error> + 'a;

/// Running operations on slices. What depends on no type is compiled once, in this crate.
impl Gpu {
    /// Uploads `slices` and runs the operation that `make` builds from their arrays.
    fn run<O: Operation, const N: usize>(
        &self,
        slices: [Slice<'_>; N],
        make: impl Fn([Arrays; N]) -> O,
    ) -> Result<([OnGpu; N], Steps), Error> {
        let upload =
            |arrays: &[OnGpu]| arrays.iter().zip(slices).try_for_each(|(array, slice)| array.upload(self, slice));
        self.run_with(slices, upload, make)
    }

    /// Runs the operation that `make` builds from arrays for `slices`. `upload` fills the arrays.
    fn run_with<O: Operation, E: From<Error> + Send, const N: usize>(
        &self,
        slices: [Slice<'_>; N],
        upload: impl FnOnce(&[OnGpu]) -> Result<(), E> + Send,
        make: impl Fn([Arrays; N]) -> O,
    ) -> Result<([OnGpu; N], Steps), E> {
        // The bytes of workspace and the entry points do not depend on addresses.
        let planned = make(slices.map(Slice::recorded));
        let workspace_bytes = planned.workspace_bytes();
        // Launches are planned only for lengths that a GPU holds.
        self.check_memory_for(&slices, workspace_bytes)?;
        let record = Record::new(self.shared.multiprocessors);
        record.add(&planned)?;
        let (mut upload, mut error) = (Some(upload), None);
        let mut upload = |arrays: &[OnGpu]| {
            error = upload.take().and_then(|upload| upload(arrays).err());
            error.is_none()
        };
        let launch = |arrays: &[OnGpu], stream: &Stream, workspace: Address| {
            let operation = make(arrays_of(arrays));
            // SAFETY: `run_dyn` passes arrays with the lengths of the slices, and a workspace of `workspace_bytes` at
            // a multiple of 256. All are new allocations that nothing else uses, and it keeps them until the launches
            // have ended.
            unsafe { operation.launch(&OnStream::new(stream), workspace) }
        };
        let ran = self.run_dyn(&slices, workspace_bytes, record, &mut upload, &launch);
        let (arrays, steps) = ran.map_err(|ended| ended.error(error))?;
        let Ok(arrays): Result<[OnGpu; N], _> = arrays.try_into() else { unreachable!("there is an array a slice") };
        Ok((arrays, steps))
    }

    /// [`run_with`](Self::run_with), compiled once. `upload` returns whether it has succeeded. `launch` queues the
    /// launches on the arrays of `slices` and a workspace.
    fn run_dyn(
        &self,
        slices: &[Slice<'_>],
        workspace_bytes: usize,
        record: Record,
        upload: &mut (dyn FnMut(&[OnGpu]) -> bool + Send),
        launch: &Launch<'_>,
    ) -> Result<(Vec<OnGpu>, Steps), Ended> {
        let arrays = slices.iter().map(|slice| OnGpu::new(self, *slice)).collect::<Result<Vec<_>, Error>>()?;
        // The driver compiles the kernels during the upload.
        let upload = || if upload(&arrays) { Ok(()) } else { Err(Ended::Upload) };
        let (uploaded, loaded) = parallel::join(|| timed(upload), || self.load(record.entries()));
        loaded?;
        let ((), upload) = uploaded?;
        let workspace = self.buffer(workspace_bytes)?;
        let stream = self.stream()?;
        let ((), compute) = timed(|| {
            let _entered = self.enter()?;
            // Arrays and workspace live until `synchronize` has returned, or, after an error, until the drop of
            // `stream`, which comes first and waits as well.
            launch(&arrays, &stream, address(&workspace))?;
            stream.synchronize()
        })?;
        Ok((arrays, Steps { upload, compute, ..Steps::default() }))
    }

    /// Refuses work on `slices` that does not fit free memory, before anything is allocated.
    fn check_memory_for(&self, slices: &[Slice<'_>], workspace_bytes: usize) -> Result<(), Error> {
        let data_bytes = slices.iter().fold(0, |sum: usize, slice| sum.saturating_add(slice.bytes()));
        self.check_memory(data_bytes.saturating_add(workspace_bytes))
    }

    /// Refuses work that does not fit free memory, before anything is allocated.
    pub(super) fn check_memory(&self, needed: usize) -> Result<(), Error> {
        let (free, _) = self.memory()?;
        let needed = needed as u64;
        if needed > free { Err(Error::OutOfDeviceMemory { needed, free }) } else { Ok(()) }
    }

    /// Runs `work`, which uploads elements and puts all or some in order on the GPU, and downloads the result. Returns
    /// the number of elements.
    ///
    /// Values that are numbers of 4 or 8 bytes move with the keys. For other values the GPU moves indices, and the host
    /// gathers the values.
    fn in_place<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        RunMut { keys, values }: RunMut<'_, B, V>,
        work: &InPlace<'_>,
    ) -> Result<(usize, Steps), Error> {
        if let Some(numbers) = Values::of_numbers(values) {
            let (done, count, mut timing) = work(Slice::of(keys, numbers))?;
            let numbers = bytes_of_mut(values).unwrap_or_default();
            let numbers = &mut numbers[..count * done.value_bytes];
            ((), timing.download) = timed(|| done.download(self, cast_slice_mut(&mut keys[..count]), numbers))?;
            return Ok((count, timing));
        }
        let mut permutation = identity(keys.len())?;
        let (done, count, mut timing) = work(Slice::of(keys, Values::of_indices(&permutation)))?;
        let sources = &mut permutation[..count];
        ((), timing.download) =
            timed(|| done.download(self, cast_slice_mut(&mut keys[..count]), cast_slice_mut(sources)))?;
        gather(values, sources)?;
        Ok((count, timing))
    }

    /// Runs a merge of A and B, and downloads the output.
    ///
    /// Values are handled as in [`in_place`](Self::in_place). Indices count through A and then through B.
    fn merged<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        merge: TwoSides<'_>,
        coding: KeyCoding,
        [a, b]: [Run<'_, B, V>; 2],
        out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        if out.keys.is_empty() {
            return Ok(Steps::default());
        }
        let run = |of_a, of_b| self.run_merge(merge, coding, [Slice::of(a.keys, of_a), Slice::of(b.keys, of_b)]);
        if let (Some(of_a), Some(of_b)) = (Values::of_numbers(a.values), Values::of_numbers(b.values)) {
            let (merged, mut timing) = run(of_a, of_b)?;
            let numbers = bytes_of_mut(out.values).unwrap_or_default();
            ((), timing.download) = timed(|| merged.download(self, cast_slice_mut(out.keys), numbers))?;
            return Ok(timing);
        }
        let (indices, mut sources) = (identity(out.keys.len())?, zeroed::<u64>(out.keys.len())?);
        let (of_a, of_b) = indices.split_at(a.keys.len());
        let (merged, mut timing) = run(Values::of_indices(of_a), Values::of_indices(of_b))?;
        ((), timing.download) =
            timed(|| merged.download(self, cast_slice_mut(out.keys), cast_slice_mut(&mut sources)))?;
        parallel::for_each(out.values.chunks_mut(BLOCK).zip(sources.chunks(BLOCK)), |(out, sources)| {
            for (value, &from) in out.iter_mut().zip(sources) {
                let from = from as usize;
                *value = if from < a.values.len() { a.values[from] } else { b.values[from - a.values.len()] };
            }
        });
        Ok(timing)
    }
}

/// A merge of two sides.
#[derive(Clone, Copy)]
enum TwoSides<'a> {
    Runs(MergeKernel),
    Batch(Lengths),
    /// A pair of runs between each two offsets.
    Ragged([&'a [usize]; 2]),
}

/// The operations on elements of any types, with values that are numbers.
impl Gpu {
    /// Uploads and merges the keys and values of both sides.
    fn run_merge(
        &self,
        merge: TwoSides<'_>,
        coding: KeyCoding,
        [a, b]: [Slice<'_>; 2],
    ) -> Result<(OnGpu, Steps), Error> {
        let slices = [a, b, a.room_alike(a.len + b.len)];
        let ([_, _, merged], timing) = match merge {
            TwoSides::Runs(kernel) => self.run::<_, 3>(slices, |[a, b, out]| Merge { kernel, coding, a, b, out }),
            TwoSides::Batch(lengths) => {
                let kernel = BatchKernel::Auto;
                self.run::<_, 3>(slices, |arrays| Batch { kernel, coding, arrays, lengths })
            }
            TwoSides::Ragged(offsets) => {
                let ([a, b, room], problems) = (slices, offsets[0].len() - 1);
                let [a_offsets, b_offsets] = offsets.map(|offsets| Slice::of(offsets, Values::NONE));
                let make = |[a, b, out, of_a, of_b]: [Arrays; 5]| {
                    let offsets = [of_a.keys, of_b.keys];
                    Ragged { coding, a, b, offsets, problems, out }
                };
                let ([a, b, out, ..], timing) = self.run::<_, 5>([a, b, room, a_offsets, b_offsets], make)?;
                Ok(([a, b, out], timing))
            }
        }?;
        Ok((merged, timing))
    }

    /// Values begin as the indices of the keys if it `indexes`.
    fn run_sort(
        &self,
        (kernel, coding): SortHow,
        from: Slice<'_>,
        indexes: bool,
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let ([sorted], timing) = self.run::<_, 1>([from], |[at]| Sort::new(kernel, coding, at, indexes))?;
        Ok((sorted, from.len, timing))
    }

    /// Values begin as the indices of the keys if it `indexes`.
    fn run_sort_by_bits(
        &self,
        (kernel, coding): SortHow,
        bits: (u32, u32),
        from: Slice<'_>,
        indexes: bool,
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let make = |[at]: [Arrays; 1]| SortByBits { kernel, coding, at, indexes, bits };
        let ([sorted], timing) = self.run::<_, 1>([from], make)?;
        Ok((sorted, from.len, timing))
    }

    /// The number is the number of keys that are left.
    fn run_sort_unique(&self, (kernel, coding): SortHow, from: Slice<'_>) -> Result<(OnGpu, usize, Steps), Error> {
        let make = |[at, count]: [Arrays; 2]| SortUnique { kernel, coding, at, count: count.keys };
        let slices = [from, Slice::COUNT];
        let ([unique, count], timing) = self.run::<_, 2>(slices, make)?;
        Ok((unique, self.count(&count)?, timing))
    }

    fn run_sort_segments(
        &self,
        coding: KeyCoding,
        offsets: &[usize],
        from: Slice<'_>,
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let (count, longest) = (offsets.len() - 1, widest(offsets));
        let sort = |[at, offsets]: [Arrays; 2]| {
            let bounds = segments::Bounds::of_offsets(offsets.keys, count, longest);
            segments::SortSegments { coding, at, bounds, indexes: false }
        };
        let ([sorted, _], timing) = self.run::<_, 2>([from, Slice::of(offsets, Values::NONE)], sort)?;
        Ok((sorted, from.len, timing))
    }

    /// Uploads elements in runs of the given lengths and merges the runs: many at once, or two by two if there are more
    /// keys than 32 bits count.
    fn run_merge_many(
        &self,
        coding: KeyCoding,
        lengths: &[usize],
        from: Slice<'_>,
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let (len, room) = (from.len, |is_needed: bool| from.room_alike(if is_needed { from.len } else { 0 }));
        if len > MOST {
            let make = |[from, to]: [Arrays; 2]| MergeTree { coding, lengths, from, to };
            let ([from, to], timing) = self.run::<_, 2>([from, room(true)], make)?;
            return Ok((if MergeTree::ends_in_to(lengths.len()) { to } else { from }, len, timing));
        }
        let (offsets, runs, in_place) = (ends_of(lengths), lengths.len(), MergeMany::can_be_in_place(lengths.len()));
        let make = |[from, to, offsets]: [Arrays; 3]| {
            let out = if in_place { from } else { to };
            MergeMany { coding, from, offsets: (offsets.keys, runs), out }
        };
        let slices = [from, room(!in_place), Slice::of(&offsets, Values::NONE)];
        let ([from, to, _], timing) = self.run::<_, 3>(slices, make)?;
        Ok((if in_place { from } else { to }, len, timing))
    }

    /// Uploads groups of runs between offsets, and merges the runs of each group.
    fn run_merge_groups(
        &self,
        coding: KeyCoding,
        (offsets, groups): (&[usize], &[usize]),
        from: Slice<'_>,
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let ends_of_groups: Vec<usize> = groups.iter().map(|&run| offsets[run]).collect();
        let described = |offsets_at: Address, groups_at: Address| RunGroups {
            offsets: offsets_at,
            runs: offsets.len() - 1,
            groups: groups_at,
            count: groups.len() - 1,
            most_runs: widest(groups),
            longest: widest(&ends_of_groups),
        };
        let (len, value_bytes) = (from.len, from.values.each);
        let in_place =
            with_numbers!(from.key_bytes.max(4), B => described(0, 0).can_be_in_place::<B>(len, value_bytes));
        let make = |[from, to, offsets, groups]: [Arrays; 4]| {
            let out = if in_place { from } else { to };
            let groups = described(offsets.keys, groups.keys);
            MergeManyRagged { coding, from, groups, out }
        };
        let room = from.room_alike(if in_place { 0 } else { len });
        let [of_runs, of_groups] = [offsets, groups].map(|offsets| Slice::of(offsets, Values::NONE));
        let ([from, to, ..], timing) = self.run::<_, 4>([from, room, of_runs, of_groups], make)?;
        Ok((if in_place { from } else { to }, len, timing))
    }

    fn run_sets(
        &self,
        (operation, coding): (SetOperation, KeyCoding),
        [a, b]: [Slice<'_>; 2],
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let slices = [a, b, a.room_alike(operation.most_keys(a.len, b.len)), Slice::COUNT];
        let make = |[a, b, out, count]: [Arrays; 4]| Sets { coding, operation, a, b, out, count: count.keys };
        let ([_, _, out, count], timing) = self.run::<_, 4>(slices, make)?;
        Ok((out, self.count(&count)?, timing))
    }

    /// Runs the operation on groups of equal keys that `make` builds from an input, an output of the same length with
    /// values of `value_bytes` bytes, and the address of the number of groups.
    fn run_groups<O: Operation>(
        &self,
        from: Slice<'_>,
        value_bytes: usize,
        make: impl Fn(Arrays, Arrays, Address) -> O,
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let room = Slice { values: Values { each: value_bytes, ..Values::NONE }, ..from.room_alike(from.len) };
        let make = |[at, out, count]: [Arrays; 3]| make(at, out, count.keys);
        let ([_, out, count], timing) = self.run::<_, 3>([from, room, Slice::COUNT], make)?;
        Ok((out, self.count(&count)?, timing))
    }

    fn run_unique(&self, coding: KeyCoding, from: Slice<'_>) -> Result<(OnGpu, usize, Steps), Error> {
        self.run_groups(from, 0, |at, out, count| Unique { coding, at, out, count })
    }

    fn run_run_lengths(&self, coding: KeyCoding, from: Slice<'_>) -> Result<(OnGpu, usize, Steps), Error> {
        self.run_groups(from, size_of::<u64>(), |at, out, count| RunLengths { coding, at, out, count })
    }

    fn run_reduce_by_key(
        &self,
        reduction: Reduction,
        [coding, summands]: [KeyCoding; 2],
        from: Slice<'_>,
    ) -> Result<(OnGpu, usize, Steps), Error> {
        let make = |at, out, count| ReduceByKey { reduction, coding, summands, at, out, count };
        self.run_groups(from, from.values.each, make)
    }

    fn run_bounds(&self, (bound, coding): (Bound, KeyCoding), slices: [Slice<'_>; 3]) -> Result<(OnGpu, Steps), Error> {
        let (lower, index_bytes) = (bound == Bound::Lower, slices[2].key_bytes);
        let make = |[needles, keys, bounds]: [Arrays; 3]| {
            let bounds = (bounds.keys, index_bytes);
            bounds::Bounds { coding, lower, needles, keys, bounds }
        };
        let ([_, _, bounds], timing) = self.run::<_, 3>(slices, make)?;
        Ok((bounds, timing))
    }

    fn run_top_k(&self, coding: KeyCoding, slices: [Slice<'_>; 2]) -> Result<(OnGpu, Steps), Error> {
        // A source without values makes the operation write indices.
        let make = |[from, out]: [Arrays; 2]| TopK { coding, from: Arrays { values: 0, ..from }, out };
        let ([_, out], timing) = self.run::<_, 2>(slices, make)?;
        Ok((out, timing))
    }

    fn run_top_k_segments(
        &self,
        coding: KeyCoding,
        (offsets, k): (&[usize], usize),
        [from, out]: [Slice<'_>; 2],
    ) -> Result<(OnGpu, Steps), Error> {
        let (count, longest) = (offsets.len() - 1, widest(offsets));
        let select = |[from, out, offsets]: [Arrays; 3]| {
            let bounds = segments::Bounds::of_offsets(offsets.keys, count, longest);
            // A source without values makes the operation write indices.
            let values = if from.value_bytes == 0 { 0 } else { from.values };
            TopKSegments { coding, from: Arrays { values, ..from }, bounds, k, out }
        };
        let ([_, selected, _], timing) = self.run::<_, 3>([from, out, Slice::of(offsets, Values::NONE)], select)?;
        Ok((selected, timing))
    }

    /// The number that an operation has written to `count`.
    fn count(&self, count: &OnGpu) -> Result<usize, Error> {
        Ok(count.first_keys::<u64>(self, 1)?[0] as usize)
    }
}

/// The operations. The callers have checked lengths and offsets.
impl Gpu {
    /// [`Engine::sort`](crate::Engine::sort).
    pub(crate) fn sort_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        how: SortHow,
        data: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        Ok(self.in_place(data, &|from| self.run_sort(how, from, false))?.1)
    }

    /// [`Engine::sort_by_bits`](crate::Engine::sort_by_bits).
    pub(crate) fn sort_by_bits_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        how: SortHow,
        bits: (u32, u32),
        data: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        Ok(self.in_place(data, &|from| self.run_sort_by_bits(how, bits, from, false))?.1)
    }

    /// [`Engine::argsort_by_bits`](crate::Engine::argsort_by_bits).
    pub(crate) fn argsort_by_bits_host<B: DeviceBits, I: Index>(
        &self,
        how: SortHow,
        bits: (u32, u32),
        keys: &[B],
        indices: &mut [I],
    ) -> Result<Steps, Error> {
        self.argsorted(keys, indices, &|from| self.run_sort_by_bits(how, bits, from, true))
    }

    /// [`Engine::sort_streamed`](crate::Engine::sort_streamed).
    pub(crate) fn sort_streamed<B: DeviceBits, E: From<Error> + Send>(
        &self,
        (kernel, coding): SortHow,
        len: usize,
        threads: Threads,
        read: impl Fn(usize, &mut [B]) -> Result<(), E> + Sync,
        write: impl Fn(usize, &[B]) -> Result<(), E> + Sync,
    ) -> Result<Steps, E> {
        let upload = |on_gpu: &[OnGpu]| {
            self.fill(&on_gpu[0].keys, threads, |begin, part| read(begin / size_of::<B>(), cast_slice_mut(part)))
        };
        let sort = |[at]: [Arrays; 1]| Sort::new(kernel, coding, at, false);
        let ([sorted], mut timing) = self.run_with::<_, E, 1>([Slice::room::<B>(len, 0)], upload, sort)?;
        ((), timing.download) =
            timed(|| self.drain(&sorted.keys, threads, |begin, part| write(begin / size_of::<B>(), cast_slice(part))))?;
        Ok(timing)
    }

    /// [`Engine::sort_unique`](crate::Engine::sort_unique).
    pub(crate) fn sort_unique_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        how: SortHow,
        data: RunMut<'_, B, V>,
    ) -> Result<(usize, Steps), Error> {
        self.in_place(data, &|from| self.run_sort_unique(how, from))
    }

    /// [`Engine::argsort`](crate::Engine::argsort).
    pub(crate) fn argsort_host<B: DeviceBits, I: Index>(
        &self,
        how: SortHow,
        keys: &[B],
        indices: &mut [I],
    ) -> Result<Steps, Error> {
        self.argsorted(keys, indices, &|from| self.run_sort(how, from, true))
    }

    /// Uploads keys, sorts them with their indices by `sort`, and downloads the indices.
    fn argsorted<B: DeviceBits, I: Index>(
        &self,
        keys: &[B],
        indices: &mut [I],
        sort: &InPlace<'_>,
    ) -> Result<Steps, Error> {
        let slice = Slice { values: Values { each: size_of::<I>(), ..Values::NONE }, ..Slice::of(keys, Values::NONE) };
        let (sorted, _, mut timing) = sort(slice)?;
        ((), timing.download) = timed(|| self.copy_from_gpu(&sorted.values, cast_slice_mut(indices)))?;
        Ok(timing)
    }

    /// [`Engine::sort_segments`](crate::Engine::sort_segments).
    pub(crate) fn sort_segments_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        data: RunMut<'_, B, V>,
        offsets: &[usize],
    ) -> Result<Steps, Error> {
        Ok(self.in_place(data, &|from| self.run_sort_segments(coding, offsets, from))?.1)
    }

    /// [`Engine::merge_many`](crate::Engine::merge_many).
    pub(crate) fn merge_many_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        runs: &[Run<'_, B, V>],
        mut out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        if out.keys.is_empty() {
            return Ok(Steps::default());
        }
        let runs: Vec<_> = runs.iter().filter(|run| !run.keys.is_empty()).copied().collect();
        concatenate(&runs, &mut out);
        let lengths: Vec<usize> = runs.iter().map(|run| run.keys.len()).collect();
        Ok(self.in_place(out, &|from| self.run_merge_many(coding, &lengths, from))?.1)
    }

    /// [`Engine::merge_many_ragged`](crate::Engine::merge_many_ragged).
    pub(crate) fn merge_many_ragged_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        (from, offsets): (Run<'_, B, V>, &[usize]),
        groups: &[usize],
        mut out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        if out.keys.is_empty() {
            return Ok(Steps::default());
        }
        out.copy_from(from);
        Ok(self.in_place(out, &|from| self.run_merge_groups(coding, (offsets, groups), from))?.1)
    }

    /// [`Engine::merge`](crate::Engine::merge).
    pub(crate) fn merge_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        (kernel, coding): (MergeKernel, KeyCoding),
        a: Run<'_, B, V>,
        b: Run<'_, B, V>,
        out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        self.merged(TwoSides::Runs(kernel), coding, [a, b], out)
    }

    /// [`Engine::merge_batch`](crate::Engine::merge_batch).
    pub(crate) fn merge_batch_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        a: Run<'_, B, V>,
        b: Run<'_, B, V>,
        out: RunMut<'_, B, V>,
        (d, a_len): (usize, usize),
    ) -> Result<Steps, Error> {
        let lengths = Lengths { problems: out.keys.len() / d, d, a_len };
        self.merged(TwoSides::Batch(lengths), coding, [a, b], out)
    }

    /// [`Engine::merge_ragged`](crate::Engine::merge_ragged).
    pub(crate) fn merge_ragged_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        a: (Run<'_, B, V>, &[usize]),
        b: (Run<'_, B, V>, &[usize]),
        out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        self.merged(TwoSides::Ragged([a.1, b.1]), coding, [a.0, b.0], out)
    }

    /// [`Engine::set_operation`](crate::Engine::set_operation).
    pub(crate) fn set_operation_host<B: DeviceBits>(
        &self,
        how: (SetOperation, KeyCoding),
        a: &[B],
        b: &[B],
    ) -> Result<(Vec<B>, Steps), Error> {
        let (keys, _, timing) =
            self.first::<B, ()>(self.run_sets(how, [a, b].map(|keys| Slice::of(keys, Values::NONE)))?)?;
        Ok((keys, timing))
    }

    /// [`Engine::unique`](crate::Engine::unique).
    pub(crate) fn unique_host<B: DeviceBits>(&self, coding: KeyCoding, keys: &[B]) -> Result<(Vec<B>, Steps), Error> {
        let (keys, _, timing) = self.first::<B, ()>(self.run_unique(coding, Slice::of(keys, Values::NONE))?)?;
        Ok((keys, timing))
    }

    /// [`Engine::run_lengths`](crate::Engine::run_lengths).
    pub(crate) fn run_lengths_host<B: DeviceBits>(
        &self,
        coding: KeyCoding,
        keys: &[B],
    ) -> Result<(Vec<B>, Vec<u64>, Steps), Error> {
        self.first(self.run_run_lengths(coding, Slice::of(keys, Values::NONE))?)
    }

    /// [`Engine::reduce_by_key`](crate::Engine::reduce_by_key).
    pub(crate) fn reduce_by_key_host<B: DeviceBits, V: Summand>(
        &self,
        reduction: Reduction,
        coding: KeyCoding,
        keys: &[B],
        values: &[V],
    ) -> Result<(Vec<B>, Vec<V>, Steps), Error> {
        let from = Slice::of(keys, Values { bytes: cast_slice(values), each: size_of::<V>() });
        self.first(self.run_reduce_by_key(reduction, [coding, V::gpu_coding().into()], from)?)
    }

    /// Downloads the first `count` elements.
    fn first<B: Pod, V: Pod>(
        &self,
        (out, count, timing): (OnGpu, usize, Steps),
    ) -> Result<(Vec<B>, Vec<V>, Steps), Error> {
        let ((keys, values), download) =
            timed(|| Ok::<_, Error>((out.first_keys(self, count)?, out.first_values(self, count)?)))?;
        Ok((keys, values, Steps { download, ..timing }))
    }

    /// [`Engine::bounds`](crate::Engine::bounds).
    pub(crate) fn bounds_host<B: DeviceBits, I: Index>(
        &self,
        how: (Bound, KeyCoding),
        needles: &[B],
        keys: &[B],
        found: &mut [I],
    ) -> Result<Steps, Error> {
        let [needles, keys] = [needles, keys].map(|keys| Slice::of(keys, Values::NONE));
        let (bounds, mut timing) = self.run_bounds(how, [needles, keys, Slice::room::<I>(found.len(), 0)])?;
        ((), timing.download) = timed(|| bounds.download(self, cast_slice_mut(found), &mut []))?;
        Ok(timing)
    }

    /// The first `k` of `keys`, or all if there are fewer, with their indices if it `indexes`. Stable.
    pub(super) fn top_k_host<B: DeviceBits>(
        &self,
        coding: KeyCoding,
        keys: &[B],
        k: usize,
        indexes: bool,
    ) -> Result<(Vec<B>, Vec<u64>, Steps), Error> {
        let k = k.min(keys.len());
        let (value_bytes, indexed) = if indexes { (size_of::<u64>(), k) } else { (0, 0) };
        let slices = [Slice::of(keys, Values::NONE), Slice::room::<B>(k, value_bytes)];
        let (out, timing) = self.run_top_k(coding, slices)?;
        let ((keys, indices), download) =
            timed(|| Ok::<_, Error>((out.first_keys(self, k)?, out.first_values(self, indexed)?)))?;
        Ok((keys, indices, Steps { download, ..timing }))
    }

    /// [`Engine::top_k_segments`](crate::Engine::top_k_segments).
    ///
    /// Values are handled as in [`in_place`](Self::in_place). Indices count from the beginning of the segment.
    pub(crate) fn top_k_segments_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        (from, offsets): (Run<'_, B, V>, &[usize]),
        k: usize,
        out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        if out.keys.is_empty() {
            return Ok(Steps::default());
        }
        // The slots behind short segments keep their contents, which are uploaded, too. Narrow keys are widened before
        // the selection, and must have been uploaded.
        let has_short = size_of::<B>() < 4 || offsets.windows(2).any(|ends| ends[1] - ends[0] < k);
        let run = |of_from, of_out| {
            let (from, to) = (Slice::of(from.keys, of_from), Slice::of(out.keys, of_out));
            let to = if has_short { to } else { to.room_alike(to.len) };
            self.run_top_k_segments(coding, (offsets, k), [from, to])
        };
        if let (Some(of_from), Some(of_out)) = (Values::of_numbers(from.values), Values::of_numbers(out.values)) {
            let (selected, mut timing) = run(of_from, of_out)?;
            let numbers = bytes_of_mut(out.values).unwrap_or_default();
            ((), timing.download) = timed(|| selected.download(self, cast_slice_mut(out.keys), numbers))?;
            return Ok(timing);
        }
        let mut sources = zeroed::<u64>(out.keys.len())?;
        let (selected, mut timing) = run(Values::NONE, Values::of_indices(&sources))?;
        ((), timing.download) =
            timed(|| selected.download(self, cast_slice_mut(out.keys), cast_slice_mut(&mut sources)))?;
        let slots = out.values.chunks_mut(k).zip(sources.chunks(k));
        parallel::for_each(slots.zip(offsets.windows(2)), |((out, sources), ends)| {
            let values = &from.values[ends[0]..ends[1]];
            // A short segment has no further indices.
            for (value, &index) in out.iter_mut().zip(sources).take(values.len()) {
                *value = values[index as usize];
            }
        });
        Ok(timing)
    }
}

/// The addresses and lengths of `N` arrays.
fn arrays_of<const N: usize>(arrays: &[OnGpu]) -> [Arrays; N] {
    std::array::from_fn(|i| arrays[i].arrays())
}

/// The greatest difference between neighbours.
fn widest(ends: &[usize]) -> usize {
    ends.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
}

/// The offsets of consecutive runs of the given lengths: where each begins, and the end.
fn ends_of(lengths: &[usize]) -> Vec<usize> {
    let ends = lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    [0].into_iter().chain(ends).collect()
}

/// Copies runs one after the other to `out`, which has their total length.
fn concatenate<B: Copy + Send + Sync, V: Copy + Send + Sync>(runs: &[Run<'_, B, V>], out: &mut RunMut<'_, B, V>) {
    let (mut keys, mut values, mut copies) = (&mut *out.keys, &mut *out.values, Vec::with_capacity(runs.len()));
    for run in runs {
        let (to_keys, to_values);
        (to_keys, keys) = keys.split_at_mut(run.keys.len());
        (to_values, values) = values.split_at_mut(run.keys.len());
        copies.push((run, to_keys, to_values));
    }
    parallel::for_each(copies, |(run, keys, values)| {
        keys.copy_from_slice(run.keys);
        values.copy_from_slice(run.values);
    });
}

/// The value of `work`, and the time that it took.
pub(super) fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Duration), E> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed()))
}

pub(super) fn address(buffer: &DeviceBuffer) -> Address {
    buffer.address()
}

/// The numbers from 0 to `len`, or an error if the host has too little memory.
fn identity(len: usize) -> Result<Box<[u64]>, Error> {
    let mut indices = zeroed::<u64>(len)?;
    fill_identity(&mut indices);
    Ok(indices)
}

/// Gathers `values` by `permutation`: value `i` becomes the value at index `permutation[i]`, for each index of
/// `permutation`.
pub(super) fn gather<T: Copy + Send + Sync>(values: &mut [T], permutation: &[u64]) -> Result<(), Error> {
    let mut gathered: Vec<T> = Vec::new();
    let memory = allocation::handled(|| gathered.try_reserve_exact(permutation.len()));
    memory.map_err(|_| Error::OutOfHostMemory { needed: (permutation.len() * size_of::<T>()) as u64 })?;
    let slots = &mut gathered.spare_capacity_mut()[..permutation.len()];
    parallel::for_each(slots.chunks_mut(BLOCK).zip(permutation.chunks(BLOCK)), |(slots, indices)| {
        slots.iter_mut().zip(indices).for_each(|(slot, &index)| _ = slot.write(values[index as usize]));
    });
    // SAFETY: `slots` and `permutation` have one length and the same blocks, so each slot has been written, or
    // `for_each` has panicked and this line is not reached.
    unsafe { gathered.set_len(permutation.len()) };
    values[..permutation.len()].copy_from_slice(&gathered);
    Ok(())
}
