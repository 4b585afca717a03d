//! Work on slices in host memory: upload, compute, download.

use super::failure::OrFailure;
use super::launch::many_ragged::{self, RunGroups};
use super::launch::runs::{self, ManyRuns};
use super::launch::sort::{self, SortPlan};
use super::launch::{Arrays, Entry, OnStream, batch, groups, merge, segments};
use super::numbers::{bytes_of, bytes_of_mut};
use super::{Address, Gpu, zeroed};
use crate::parallel::{self, Threads};
use crate::permutation::fill_identity;
use crate::{BatchKernel, Error, GpuKey, Index, MergeKernel, SortKernel, SortOrder, Timing, allocation};
use bytemuck::{cast_slice, cast_slice_mut};
use cust::memory::DeviceBuffer;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Values that a thread of the CPU moves at once.
const BLOCK: usize = 1 << 14;

/// The bytes of values in host memory, `each` for a value, or none.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    bytes: &'a [u8],
    pub(super) each: usize,
}

impl<'a> Values<'a> {
    pub(super) const NONE: Self = Self { bytes: &[], each: 0 };

    /// `values`, if they are numbers of 4 or 8 bytes.
    pub(super) fn of_numbers<V: Copy>(values: &'a [V]) -> Option<Self> {
        Some(Self { bytes: bytes_of(values)?, each: size_of::<V>() })
    }

    /// The values with the indices `range`.
    pub(super) fn part(self, range: Range<usize>) -> Self {
        Self { bytes: &self.bytes[range.start * self.each..range.end * self.each], ..self }
    }

    /// Indices, which are moved in place of values of other types.
    fn of_indices<I: Index>(indices: &'a [I]) -> Self {
        Self { bytes: cast_slice(indices), each: size_of::<I>() }
    }
}

/// Keys and values in the GPU's memory.
pub(super) struct OnGpu {
    pub(super) keys: DeviceBuffer<u8>,
    values: DeviceBuffer<u8>,
    len: usize,
    value_bytes: usize,
}

impl OnGpu {
    /// Allocates arrays for `len` keys of type `K` with values of `value_bytes` bytes, or none if that is 0.
    pub(super) fn new<K: GpuKey>(gpu: &Gpu, len: usize, value_bytes: usize) -> Result<Self, Error> {
        let (keys, values) = (len.saturating_mul(size_of::<K>()), len.saturating_mul(value_bytes));
        Ok(Self { keys: gpu.buffer(keys)?, values: gpu.buffer(values)?, len, value_bytes })
    }

    /// Allocates arrays and uploads keys and values.
    fn upload<K: GpuKey>(gpu: &Gpu, keys: &[K], values: Values<'_>) -> Result<Self, Error> {
        let to = Self::new::<K>(gpu, keys.len(), values.each)?;
        to.fill(gpu, keys, values)?;
        Ok(to)
    }

    /// Uploads keys and values, of which there are as many.
    pub(super) fn fill<K: GpuKey>(&self, gpu: &Gpu, keys: &[K], values: Values<'_>) -> Result<(), Error> {
        gpu.copy_to_gpu(cast_slice(keys), &self.keys)?;
        gpu.copy_to_gpu(values.bytes, &self.values)
    }

    /// Downloads keys and the bytes of values, of which there are at least as many.
    fn download<K: GpuKey>(&self, gpu: &Gpu, keys: &mut [K], values: &mut [u8]) -> Result<(), Error> {
        let (keys, values) = (&mut keys[..self.len], &mut values[..self.len * self.value_bytes]);
        gpu.copy_from_gpu(&self.keys.index(..size_of_val(keys)), keys)?;
        gpu.copy_from_gpu(&self.values.index(..values.len()), values)
    }

    pub(super) fn arrays(&self) -> Arrays {
        let (keys, values) = (address(&self.keys), address(&self.values));
        Arrays { keys, values, len: self.len, value_bytes: self.value_bytes }
    }
}

impl Gpu {
    /// [`Engine::sort_with`](crate::Engine::sort_with).
    pub(crate) fn sort_host<K: GpuKey>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut [K],
    ) -> Result<Timing, Error> {
        let (sorted, mut timing) = self.sort_slices(kernel, order, keys, Values::NONE)?;
        ((), timing.download) = timed(|| self.copy_from_gpu(&sorted.keys, keys))?;
        Ok(timing)
    }

    /// [`Engine::sort_streamed`](crate::Engine::sort_streamed).
    pub(crate) fn sort_streamed<K: GpuKey, E: From<Error> + Send>(
        &self,
        (kernel, order): (SortKernel, SortOrder),
        len: usize,
        threads: Threads,
        read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
        write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
    ) -> Result<Timing, E> {
        let (sorted, mut timing) = self.sort_on_gpu::<K, E>((kernel, order), len, 0, false, |on_gpu| {
            self.fill(&on_gpu.keys, threads, |begin, part| read(begin / size_of::<K>(), cast_slice_mut(part)))
        })?;
        let write = |begin, part: &[u8]| write(begin / size_of::<K>(), cast_slice(part));
        ((), timing.download) = timed(|| self.drain(&sorted.keys, threads, write))?;
        Ok(timing)
    }

    /// [`Engine::sort_pairs`](crate::Engine::sort_pairs). Lengths have been checked.
    pub(crate) fn sort_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
    ) -> Result<Timing, Error> {
        let (_, timing) =
            self.pairs_in_place(keys, values, |keys, values| self.sort_slices(kernel, order, keys, values))?;
        Ok(timing)
    }

    /// [`Engine::sort_unique`](crate::Engine::sort_unique).
    pub(crate) fn sort_unique_host<K: GpuKey>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut [K],
    ) -> Result<(usize, Timing), Error> {
        let sorted = self.sort_slices(kernel, order, keys, Values::NONE)?;
        let (unique, mut timing) = self.unique_on_gpu::<K>(sorted)?;
        ((), timing.download) = timed(|| unique.download(self, keys, &mut []))?;
        Ok((unique.len, timing))
    }

    /// [`Engine::sort_unique_pairs`](crate::Engine::sort_unique_pairs). Lengths have been checked.
    pub(crate) fn sort_unique_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
    ) -> Result<(usize, Timing), Error> {
        self.pairs_in_place(keys, values, |keys, values| {
            self.unique_on_gpu::<K>(self.sort_slices(kernel, order, keys, values)?)
        })
    }

    /// The first of equal keys of an array that was sorted in the GPU's memory, with their values. Adds to the time
    /// that the sort took.
    fn unique_on_gpu<K: GpuKey>(&self, (sorted, mut timing): (OnGpu, Timing)) -> Result<(OnGpu, Timing), Error> {
        self.load(&groups::entries_of_unique::<K>(sorted.value_bytes))?;
        // The workspace of the sort was as large, and has been freed.
        let mut unique = OnGpu::new::<K>(self, sorted.len, sorted.value_bytes)?;
        let workspace: DeviceBuffer<u8> = self.buffer(groups::workspace_bytes::<K>(sorted.len))?;
        let count: DeviceBuffer<u8> = self.buffer(size_of::<u64>())?;
        let stream = self.new_stream()?;
        let (found, compute) = timed(|| {
            let (from, to, workspace) = (sorted.arrays(), unique.arrays(), address(&workspace));
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait.
            unsafe { groups::unique::<K>(&self.queue(&stream)?, from, to, address(&count), workspace)? };
            stream.synchronize().or_failure("unique keys on the GPU")?;
            let mut found = [0u64];
            self.copy_from_gpu(&count, &mut found)?;
            Ok::<_, Error>(found[0])
        })?;
        unique.len = found as usize;
        timing.compute += compute;
        Ok((unique, timing))
    }

    /// [`Engine::argsort`](crate::Engine::argsort). Lengths have been checked.
    pub(crate) fn argsort_host<K: GpuKey, I: Index>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &[K],
        indices: &mut [I],
    ) -> Result<Timing, Error> {
        let upload = |on_gpu: &OnGpu| self.copy_to_gpu(cast_slice(keys), &on_gpu.keys);
        let (how, index_bytes) = ((kernel, order), size_of::<I>());
        let (sorted, mut timing) = self.sort_on_gpu::<K, Error>(how, keys.len(), index_bytes, true, upload)?;
        ((), timing.download) = timed(|| self.copy_from_gpu(&sorted.values, indices))?;
        Ok(timing)
    }

    /// [`Engine::sort_segments`](crate::Engine::sort_segments). Offsets have been checked.
    pub(crate) fn sort_segments_host<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        let (sorted, mut timing) = self.sort_segments_on_gpu(order, keys, Values::NONE, offsets)?;
        ((), timing.download) = timed(|| self.copy_from_gpu(&sorted.keys, keys))?;
        Ok(timing)
    }

    /// [`Engine::sort_segments_pairs`](crate::Engine::sort_segments_pairs). Lengths and offsets have been checked.
    pub(crate) fn sort_segments_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
        offsets: &[usize],
    ) -> Result<Timing, Error> {
        let (_, timing) =
            self.pairs_in_place(keys, values, |keys, values| self.sort_segments_on_gpu(order, keys, values, offsets))?;
        Ok(timing)
    }

    /// Uploads keys, values and offsets, and sorts the segments in the GPU's memory.
    fn sort_segments_on_gpu<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &[K],
        values: Values<'_>,
        offsets: &[usize],
    ) -> Result<(OnGpu, Timing), Error> {
        let workspace_bytes = segments::workspace_bytes::<K>(keys.len(), values.each);
        let data_bytes = size_of_val(keys) + values.bytes.len() + size_of_val(offsets);
        self.check_memory(data_bytes.saturating_add(workspace_bytes))?;
        self.load(&segments::entries::<K>(values.each))?;
        let stream = self.new_stream()?;
        let ((sorted, on_gpu), upload) =
            timed(|| Ok((OnGpu::upload(self, keys, values)?, self.upload::<u64>(cast_slice(offsets))?)))?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let longest = offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let bounds = segments::Bounds::of_offsets(on_gpu.as_device_ptr().as_raw(), offsets.len() - 1, longest);
        let ((), compute) = timed(|| {
            let (queue, at) = (self.queue(&stream)?, sorted.arrays());
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait. `Engine`
            // has checked the offsets.
            unsafe { segments::sort_segments::<K>(&queue, order, at, bounds, false, address(&workspace))? };
            stream.synchronize().or_failure("the sort of segments on the GPU")
        })?;
        Ok((sorted, Timing { upload, compute, ..Timing::default() }))
    }

    /// [`Engine::merge_many`](crate::Engine::merge_many). Lengths have been checked.
    pub(crate) fn merge_many_host<K: GpuKey>(&self, runs: &[&[K]], out: &mut [K]) -> Result<Timing, Error> {
        if out.is_empty() {
            return Ok(Timing::default());
        }
        let lengths = lengths(runs.iter().map(|run| run.len()));
        concatenate(runs, out);
        let (merged, mut timing) = self.merge_runs_on_gpu(lengths, out, Values::NONE)?;
        ((), timing.download) = timed(|| self.copy_from_gpu(&merged.keys, out))?;
        Ok(timing)
    }

    /// [`Engine::merge_many_pairs`](crate::Engine::merge_many_pairs). Lengths have been checked.
    pub(crate) fn merge_many_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        runs: &[(&[K], &[V])],
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        if out.0.is_empty() {
            return Ok(Timing::default());
        }
        let (keys, values): (Vec<&[K]>, Vec<&[V]>) = runs.iter().copied().unzip();
        let lengths = lengths(keys.iter().map(|run| run.len()));
        concatenate(&keys, out.0);
        concatenate(&values, out.1);
        let (_, timing) =
            self.pairs_in_place(out.0, out.1, |keys, values| self.merge_runs_on_gpu(lengths, keys, values))?;
        Ok(timing)
    }

    /// [`Engine::merge_many_ragged`](crate::Engine::merge_many_ragged). Lengths and offsets have been checked.
    pub(crate) fn merge_many_ragged_host<K: GpuKey>(
        &self,
        (keys, offsets): (&[K], &[usize]),
        groups: &[usize],
        out: &mut [K],
    ) -> Result<Timing, Error> {
        if out.is_empty() {
            return Ok(Timing::default());
        }
        let (merged, mut timing) = self.merge_groups_on_gpu(keys, Values::NONE, offsets, groups)?;
        ((), timing.download) = timed(|| self.copy_from_gpu(&merged.keys, out))?;
        Ok(timing)
    }

    /// [`Engine::merge_many_ragged_pairs`](crate::Engine::merge_many_ragged_pairs). Lengths and offsets have been
    /// checked.
    pub(crate) fn merge_many_ragged_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        (keys, values, offsets): (&[K], &[V], &[usize]),
        groups: &[usize],
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        if out.0.is_empty() {
            return Ok(Timing::default());
        }
        concatenate(&[keys], out.0);
        concatenate(&[values], out.1);
        let (_, timing) =
            self.pairs_in_place(out.0, out.1, |keys, values| self.merge_groups_on_gpu(keys, values, offsets, groups))?;
        Ok(timing)
    }

    /// Uploads keys, values and offsets, and merges the runs of each group in the GPU's memory.
    fn merge_groups_on_gpu<K: GpuKey>(
        &self,
        keys: &[K],
        values: Values<'_>,
        offsets: &[usize],
        groups: &[usize],
    ) -> Result<(OnGpu, Timing), Error> {
        let widest = |ends: &[usize]| ends.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let ends_of_groups: Vec<usize> = groups.iter().map(|&run| offsets[run]).collect();
        let mut described = RunGroups {
            offsets: 0,
            runs: offsets.len() - 1,
            groups: 0,
            count: groups.len() - 1,
            most_runs: widest(groups),
            longest: widest(&ends_of_groups),
        };
        let workspace_bytes = many_ragged::workspace_bytes::<K>(keys.len(), described, values.each);
        let in_place = described.can_be_in_place::<K>(keys.len(), values.each);
        let arrays = if in_place { 1 } else { 2 };
        let data_bytes = arrays * (size_of_val(keys) + values.bytes.len()) + size_of_val(offsets) + size_of_val(groups);
        self.check_memory(data_bytes.saturating_add(workspace_bytes))?;
        self.load(&many_ragged::entries::<K>(keys.len(), described, values.each))?;
        let stream = self.new_stream()?;
        let ((from, offsets, groups), upload) = timed(|| {
            let upload = |offsets: &[usize]| self.upload::<u64>(cast_slice(offsets));
            Ok((OnGpu::upload(self, keys, values)?, upload(offsets)?, upload(groups)?))
        })?;
        (described.offsets, described.groups) = (offsets.as_device_ptr().as_raw(), groups.as_device_ptr().as_raw());
        let other = if in_place { None } else { Some(OnGpu::new::<K>(self, keys.len(), values.each)?) };
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let ((), compute) = timed(|| {
            let (queue, at) = (self.queue(&stream)?, from.arrays());
            let out = other.as_ref().map_or(at, OnGpu::arrays);
            let (order, workspace) = (SortOrder::Ascending, address(&workspace));
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait. `Engine`
            // has checked the offsets.
            unsafe { many_ragged::merge_many_ragged::<K>(&queue, order, at, described, out, workspace)? };
            stream.synchronize().or_failure("the merge on the GPU")
        })?;
        Ok((other.unwrap_or(from), Timing { upload, compute, ..Timing::default() }))
    }

    /// [`Engine::merge_with`](crate::Engine::merge_with). Lengths have been checked.
    pub(crate) fn merge_host<K: GpuKey>(
        &self,
        kernel: MergeKernel,
        a: &[K],
        b: &[K],
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let problem = Problem {
            entries: merge::entries_of_kernel::<K>(kernel),
            workspace_bytes: merge::workspace_bytes::<K>(kernel, out.len()),
            a: (a, Values::NONE),
            b: (b, Values::NONE),
        };
        self.merge_on_gpu(problem, out, &mut [], |queue, [a, b, out], workspace| {
            // SAFETY: these are arrays of the slices' lengths, apart, and they are waited for.
            unsafe { merge::merge::<K>(queue, kernel, a, b, out.keys, workspace) }
        })
    }

    /// [`Engine::merge_batch`](crate::Engine::merge_batch). Lengths have been checked.
    pub(crate) fn merge_batch_host<K: GpuKey>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let lengths = batch::Lengths { problems: out.len() / d, d, a_len };
        let entries = batch::entries::<K>(0);
        let problem = Problem { entries, workspace_bytes: 0, a: (a, Values::NONE), b: (b, Values::NONE) };
        self.merge_on_gpu(problem, out, &mut [], |queue, arrays, _| {
            let at = arrays.map(|array| array.keys);
            // SAFETY: as for `merge_host`; `Engine` has checked that they hold whole runs.
            unsafe { batch::merge_batch::<K>(queue, BatchKernel::Auto, at, lengths) }
        })
    }

    /// [`Engine::merge_pairs`](crate::Engine::merge_pairs). Lengths have been checked.
    pub(crate) fn merge_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        let workspace_bytes = merge::pairs_workspace_bytes::<K>(out.0.len());
        self.merge_values(a, b, out, (merge::entries::<K>, workspace_bytes), |queue, [a, b, out], workspace| {
            // SAFETY: as for `merge_host`.
            unsafe { merge::merge_pairs::<K>(queue, a, b, out, workspace) }
        })
    }

    /// [`Engine::merge_batch_pairs`](crate::Engine::merge_batch_pairs). Lengths have been checked.
    pub(crate) fn merge_batch_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let lengths = batch::Lengths { problems: out.0.len() / d, d, a_len };
        self.merge_values(a, b, out, (batch::entries::<K>, 0), |queue, arrays, _| {
            // SAFETY: as for `merge_host`; `Engine` has checked that they are whole runs.
            unsafe { batch::merge_batch_pairs::<K>(queue, arrays, lengths) }
        })
    }

    /// [`Engine::merge_ragged`](crate::Engine::merge_ragged). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_host<K: GpuKey>(
        &self,
        a: (&[K], &[usize]),
        b: (&[K], &[usize]),
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let problem = Problem {
            entries: batch::entries::<K>(0),
            workspace_bytes: batch::ragged_workspace_bytes::<K>(out.len()),
            a: (a.0, Values::NONE),
            b: (b.0, Values::NONE),
        };
        let offsets = Offsets::upload(self, a.1, b.1)?;
        self.merge_on_gpu(problem, out, &mut [], |queue, arrays, workspace| {
            offsets.merge::<K>(queue, arrays, workspace)
        })
    }

    /// [`Engine::merge_ragged_pairs`](crate::Engine::merge_ragged_pairs). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V], &[usize]),
        b: (&[K], &[V], &[usize]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        let workspace_bytes = batch::ragged_workspace_bytes::<K>(out.0.len());
        let entries = |value_bytes| [batch::entries::<K>(0), batch::entries::<K>(value_bytes)].concat();
        let offsets = Offsets::upload(self, a.2, b.2)?;
        let (a, b) = ((a.0, a.1), (b.0, b.1));
        self.merge_values(a, b, out, (entries, workspace_bytes), |queue, arrays, workspace| {
            offsets.merge::<K>(queue, arrays, workspace)
        })
    }

    /// Has `work` upload keys and values and put them in order, or some of them, and downloads these. Returns their
    /// number.
    ///
    /// Values that are numbers of 4 or 8 bytes are moved with the keys. For others the GPU moves the indices, and the
    /// values are gathered here.
    fn pairs_in_place<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        keys: &mut [K],
        values: &mut [V],
        work: impl FnOnce(&[K], Values<'_>) -> Result<(OnGpu, Timing), Error>,
    ) -> Result<(usize, Timing), Error> {
        if let Some(numbers) = Values::of_numbers(values) {
            let (done, mut timing) = work(keys, numbers)?;
            let numbers = bytes_of_mut(values).unwrap_or_default();
            ((), timing.download) = timed(|| done.download(self, keys, numbers))?;
            return Ok((done.len, timing));
        }
        let mut permutation = identity(keys.len())?;
        let (done, mut timing) = work(keys, Values::of_indices(&permutation))?;
        ((), timing.download) = timed(|| done.download(self, keys, cast_slice_mut(&mut permutation)))?;
        gather(values, &permutation[..done.len])?;
        Ok((done.len, timing))
    }

    /// Uploads keys and values in runs of these lengths, and merges the runs in the GPU's memory: many at once, unless
    /// there are more keys than 32 bits count.
    fn merge_runs_on_gpu<K: GpuKey>(
        &self,
        lengths: Vec<usize>,
        keys: &[K],
        values: Values<'_>,
    ) -> Result<(OnGpu, Timing), Error> {
        if u32::try_from(keys.len()).is_err() {
            return self.merge_tree_on_gpu(lengths, keys, values);
        }
        let many = ManyRuns::new(lengths);
        let workspace_bytes = many.workspace_bytes::<K>(values.each);
        let data_bytes = size_of_val(keys) + values.bytes.len();
        self.check_memory(data_bytes.saturating_add(many.described.len() + workspace_bytes))?;
        self.load(&runs::entries::<K>(values.each))?;
        let stream = self.new_stream()?;
        let ((merged, described), upload) =
            timed(|| Ok((OnGpu::upload(self, keys, values)?, self.upload(&many.described)?)))?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let ((), compute) = timed(|| {
            let (at, described, workspace) = (merged.arrays(), address(&described), address(&workspace));
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait.
            unsafe { runs::merge_many::<K>(&self.queue(&stream)?, &many, at, described, workspace)? };
            stream.synchronize().or_failure("the merge on the GPU")
        })?;
        Ok((merged, Timing { upload, compute, ..Timing::default() }))
    }

    /// [`merge_runs_on_gpu`](Self::merge_runs_on_gpu) by merges of two.
    fn merge_tree_on_gpu<K: GpuKey>(
        &self,
        lengths: Vec<usize>,
        keys: &[K],
        values: Values<'_>,
    ) -> Result<(OnGpu, Timing), Error> {
        let (workspace_bytes, entries) = match values.each {
            0 => {
                let kernel = MergeKernel::Auto;
                (merge::workspace_bytes::<K>(kernel, keys.len()), merge::entries_of_kernel::<K>(kernel))
            }
            each => (merge::pairs_workspace_bytes::<K>(keys.len()), merge::entries::<K>(each)),
        };
        let data_bytes = size_of_val(keys) + values.bytes.len();
        self.check_memory(data_bytes.saturating_mul(2).saturating_add(workspace_bytes))?;
        self.load(&entries)?;
        let stream = self.new_stream()?;
        let (from, upload) = timed(|| OnGpu::upload(self, keys, values))?;
        let to = OnGpu::new::<K>(self, keys.len(), values.each)?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let (in_to, compute) = timed(|| {
            let (queue, workspace) = (self.queue(&stream)?, address(&workspace));
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait.
            let in_to = unsafe { runs::merge_tree::<K>(&queue, lengths, from.arrays(), to.arrays(), workspace)? };
            stream.synchronize().or_failure("the merge on the GPU")?;
            Ok(in_to)
        })?;
        Ok((if in_to { to } else { from }, Timing { upload, compute, ..Timing::default() }))
    }

    /// Uploads keys and values, and sorts them in the GPU's memory.
    fn sort_slices<K: GpuKey>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &[K],
        values: Values<'_>,
    ) -> Result<(OnGpu, Timing), Error> {
        let upload = |on_gpu: &OnGpu| on_gpu.fill(self, keys, values);
        self.sort_on_gpu::<K, Error>((kernel, order), keys.len(), values.each, false, upload)
    }

    /// Sorts in the GPU's memory what `upload` puts there: `len` keys, and values of `value_bytes` bytes, or none if
    /// that is 0. If it `indexes`, values are the keys' indices, and nothing has to be put there.
    fn sort_on_gpu<K: GpuKey, E: From<Error> + Send>(
        &self,
        how: (SortKernel, SortOrder),
        len: usize,
        value_bytes: usize,
        indexes: bool,
        upload: impl FnOnce(&OnGpu) -> Result<(), E> + Send,
    ) -> Result<(OnGpu, Timing), E> {
        let plan = SortPlan::of::<K>(len, value_bytes, indexes).with_kernel(how.0);
        let workspace_bytes = plan.workspace_bytes::<K>(len);
        self.check_memory(len.saturating_mul(size_of::<K>() + value_bytes).saturating_add(workspace_bytes))?;
        let sorted = OnGpu::new::<K>(self, len, value_bytes)?;
        // The driver compiles the kernels meanwhile.
        let (uploaded, loaded) = parallel::join(|| timed(|| upload(&sorted)), || self.load(&plan.entries::<K>(len)));
        loaded?;
        let ((), upload) = uploaded?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let stream = self.new_stream()?;
        let ((), compute) = timed(|| {
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait.
            unsafe { sort::sort::<K>(&self.queue(&stream)?, how, sorted.arrays(), indexes, address(&workspace))? };
            stream.synchronize().or_failure("the sort on the GPU")
        })?;
        Ok((sorted, Timing { upload, compute, ..Timing::default() }))
    }

    /// [`merge_on_gpu`](Self::merge_on_gpu) of keys with values. `needs` are the entry points for values of a number of
    /// bytes, and the bytes of workspace.
    ///
    /// Values that are numbers of 4 or 8 bytes are moved with the keys. For others the GPU moves the indices, in A
    /// followed by B, and the values are gathered here.
    fn merge_values<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        (entries, workspace_bytes): (impl Fn(usize) -> Vec<Entry>, usize),
        work: impl FnOnce(&OnStream<'_>, [Arrays; 3], Address) -> Result<(), Error>,
    ) -> Result<Timing, Error> {
        if let (Some(of_a), Some(of_b)) = (Values::of_numbers(a.1), Values::of_numbers(b.1)) {
            let problem = Problem { entries: entries(of_a.each), workspace_bytes, a: (a.0, of_a), b: (b.0, of_b) };
            return self.merge_on_gpu(problem, out.0, bytes_of_mut(out.1).unwrap_or_default(), work);
        }
        let (indices, mut merged) = (identity(out.0.len())?, zeroed::<u64>(out.0.len())?);
        let (of_a, of_b) = indices.split_at(a.0.len());
        let (of_a, of_b) = (Values::of_indices(of_a), Values::of_indices(of_b));
        let problem = Problem { entries: entries(of_a.each), workspace_bytes, a: (a.0, of_a), b: (b.0, of_b) };
        let timing = self.merge_on_gpu(problem, out.0, cast_slice_mut(&mut merged), work)?;
        let blocks = out.1.chunks_mut(BLOCK).zip(merged.chunks(BLOCK));
        parallel::for_each(blocks, |(out, merged)| {
            for (value, &from) in out.iter_mut().zip(merged) {
                let from = from as usize;
                *value = if from < a.1.len() { a.1[from] } else { b.1[from - a.1.len()] };
            }
        });
        Ok(timing)
    }

    /// Uploads A and B, has `work` merge them on the GPU, and downloads the result: keys, and bytes of as many values.
    ///
    /// `work` gets arrays of the slices' lengths, A, B and the result, which are apart, and a workspace.
    fn merge_on_gpu<K: GpuKey>(
        &self,
        Problem { entries, workspace_bytes, a, b }: Problem<'_, K>,
        keys: &mut [K],
        values: &mut [u8],
        work: impl FnOnce(&OnStream<'_>, [Arrays; 3], Address) -> Result<(), Error>,
    ) -> Result<Timing, Error> {
        if keys.is_empty() {
            return Ok(Timing::default());
        }
        self.load(&entries)?;
        let data_bytes = size_of_val(keys) + values.len();
        self.check_memory(data_bytes.saturating_mul(2).saturating_add(workspace_bytes))?;
        let stream = self.new_stream()?;
        let ((on_gpu_a, on_gpu_b), upload) =
            timed(|| Ok((OnGpu::upload(self, a.0, a.1)?, OnGpu::upload(self, b.0, b.1)?)))?;
        let out = OnGpu::new::<K>(self, keys.len(), a.1.each)?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let ((), compute) = timed(|| {
            let arrays = [&on_gpu_a, &on_gpu_b, &out].map(OnGpu::arrays);
            work(&self.queue(&stream)?, arrays, address(&workspace))?;
            stream.synchronize().or_failure("the merge on the GPU")
        })?;
        let ((), download) = timed(|| out.download(self, keys, values))?;
        Ok(Timing { upload, compute, download, ..Timing::default() })
    }

    /// Says before anything is allocated that the whole does not fit.
    pub(super) fn check_memory(&self, needed: usize) -> Result<(), Error> {
        let (free, _) = self.memory()?;
        let needed = needed as u64;
        if needed > free { Err(Error::OutOfDeviceMemory { needed, free }) } else { Ok(()) }
    }
}

/// A merge of two arrays in host memory, and what it needs.
struct Problem<'a, K> {
    entries: Vec<Entry>,
    workspace_bytes: usize,
    a: (&'a [K], Values<'a>),
    b: (&'a [K], Values<'a>),
}

/// The offsets of a ragged batch in the GPU's memory.
struct Offsets {
    a: DeviceBuffer<u64>,
    b: DeviceBuffer<u64>,
    problems: usize,
}

impl Offsets {
    fn upload(gpu: &Gpu, a: &[usize], b: &[usize]) -> Result<Self, Error> {
        let upload = |offsets: &[usize]| gpu.upload::<u64>(cast_slice(offsets));
        Ok(Self { a: upload(a)?, b: upload(b)?, problems: a.len() - 1 })
    }

    /// Queues the merge of pairs of runs at these offsets.
    fn merge<K: GpuKey>(
        &self,
        queue: &OnStream<'_>,
        [a, b, out]: [Arrays; 3],
        workspace: Address,
    ) -> Result<(), Error> {
        let (a_offsets, b_offsets) = (self.a.as_device_ptr().as_raw(), self.b.as_device_ptr().as_raw());
        let (a, b) = ((a, a_offsets), (b, b_offsets));
        // SAFETY: as for `merge_host`; `Engine` has checked the offsets.
        unsafe { batch::merge_ragged::<K>(queue, a, b, self.problems, out, workspace) }
    }
}

/// The lengths of runs that are not empty.
fn lengths(runs: impl Iterator<Item = usize>) -> Vec<usize> {
    runs.filter(|&length| length > 0).collect()
}

/// Copies runs one after the other to `out`, which is as long as they are together.
fn concatenate<T: Copy + Send + Sync>(runs: &[&[T]], mut out: &mut [T]) {
    let mut copies = Vec::with_capacity(runs.len());
    for run in runs {
        let to;
        (to, out) = out.split_at_mut(run.len());
        copies.push((*run, to));
    }
    parallel::for_each(copies, |(run, to)| to.copy_from_slice(run));
}

/// The value of `work`, and how long it took.
pub(super) fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Duration), E> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed()))
}

pub(super) fn address(buffer: &DeviceBuffer<u8>) -> Address {
    buffer.as_device_ptr().as_raw()
}

/// The numbers from 0 to `len`, or an error where there is no memory for them.
fn identity(len: usize) -> Result<Box<[u64]>, Error> {
    let mut indices = zeroed::<u64>(len)?;
    fill_identity(&mut indices);
    Ok(indices)
}

/// Puts `values` in the order of `permutation`: the first ones are replaced by the values at the indices that are
/// there.
pub(super) fn gather<T: Copy + Send + Sync>(values: &mut [T], permutation: &[u64]) -> Result<(), Error> {
    let mut gathered: Vec<T> = Vec::new();
    let memory = allocation::handled(|| gathered.try_reserve_exact(permutation.len()));
    memory.map_err(|_| Error::OutOfHostMemory { needed: (permutation.len() * size_of::<T>()) as u64 })?;
    let slots = &mut gathered.spare_capacity_mut()[..permutation.len()];
    parallel::for_each(slots.chunks_mut(BLOCK).zip(permutation.chunks(BLOCK)), |(slots, indices)| {
        slots.iter_mut().zip(indices).for_each(|(slot, &index)| _ = slot.write(values[index as usize]));
    });
    // SAFETY: there is an index for each slot, so that each slot has been written, or `for_each` has panicked.
    unsafe { gathered.set_len(permutation.len()) };
    values[..permutation.len()].copy_from_slice(&gathered);
    Ok(())
}
