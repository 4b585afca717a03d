//! Work of a group on slices in host memory.
//!
//! A sort distributes the keys evenly: each GPU uploads its part over its own bus, sorts it, exchanges keys with the
//! others, and downloads its part of the result. A merge is divided on the host, before anything is uploaded: the host
//! finds the exact splits of the runs, and each GPU merges a part by itself. Batches are divided into whole problems.

use super::batches::divided;
use super::{GpuGroup, NOT_EXCHANGED, is_exchanged};
use crate::cpu::split::part_ranges;
use crate::cpu::{Run, RunMut};
use crate::gpu::host::{Ended, OnGpu, Slice, SortHow, Values, address, gather, timed};
use crate::gpu::launch::exchange::{self, ExchangePlan, Member, Share};
use crate::gpu::launch::sort::{Sort, SortPlan};
use crate::gpu::launch::{Arrays, align};
use crate::gpu::numbers::bytes_of_mut;
use crate::gpu::operation::{KeyCoding, Operation, Record, with_coding};
use crate::gpu::{Address, Gpu, zeroed};
use crate::key::sealed::{DeviceBits, GpuBits};
use crate::parallel::{self, Threads};
use crate::splits::{InMemory, ordered_splits};
use crate::timing::Steps;
use crate::{Error, Index, Key, MergeKernel, SortKernel};
use bytemuck::{cast_slice, cast_slice_mut};
use cust::memory::DeviceBuffer;
use kernels_gpu::key::Coding;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The sort of an array: its kernel and order, its length, and its values.
#[derive(Clone, Copy)]
struct Job {
    how: SortHow,
    len: usize,
    /// Bytes of a value, or 0.
    value_bytes: usize,
    /// Whether values are the keys' indices.
    indexes: bool,
}

/// A member's memory during a sort.
struct OnMember {
    key_bytes: usize,
    run: OnGpu,
    /// First the workspace of the sort, and then the member's part of the result: keys, followed by values.
    memory: DeviceBuffer,
    part: Arrays,
    workspace: DeviceBuffer,
}

impl OnMember {
    /// Allocates the memory that member `i` of `group` needs for `n` keys with bits `B` before and after the sort.
    fn new<B: GpuBits>(
        group: &GpuGroup,
        i: usize,
        n: usize,
        (kernel, _): (SortKernel, Coding<B>),
        value_bytes: usize,
    ) -> Result<Self, Error> {
        let gpu = group.gpu(i);
        let plan = SortPlan::of::<B>(n, value_bytes, false).with_kernel(kernel);
        let exchange = ExchangePlan::of::<B>(group.len(), n, value_bytes);
        let (keys, values) = (n.saturating_mul(size_of::<B>()), n.saturating_mul(value_bytes));
        let memory_bytes = plan.workspace_bytes::<B>(n).max(align(keys).saturating_add(values));
        let workspace_bytes = exchange.workspace_bytes::<B>();
        gpu.check_memory(keys.saturating_add(values).saturating_add(memory_bytes).saturating_add(workspace_bytes))?;
        let memory = gpu.buffer(memory_bytes)?;
        let begin = address(&memory);
        let part = Arrays { keys: begin, values: begin + align(keys) as Address, len: n, value_bytes, count: 0 };
        let (run, workspace) = (OnGpu::new(gpu, Slice::room::<B>(n, value_bytes))?, gpu.buffer(workspace_bytes)?);
        Ok(Self { key_bytes: size_of::<B>(), run, memory, part, workspace })
    }

    /// The bytes of the part's keys in `memory`, and the bytes of its values.
    fn ranges(&self) -> [Range<usize>; 2] {
        let keys = self.part.len * self.key_bytes;
        [0..keys, align(keys)..align(keys) + self.part.len * self.part.value_bytes]
    }
}

impl GpuGroup {
    /// [`Engine::sort_streamed`](crate::Engine::sort_streamed).
    pub(crate) fn sort_streamed<B: DeviceBits, E: From<Error> + Send>(
        &self,
        how: SortHow,
        len: usize,
        threads: Threads,
        read: impl Fn(usize, &mut [B]) -> Result<(), E> + Sync,
        write: impl Fn(usize, &[B]) -> Result<(), E> + Sync,
    ) -> Result<Steps, E> {
        if let Some(gpu) = self.only::<B>() {
            return gpu.sort_streamed(how, len, threads, read, write);
        }
        let job = Job { how, len, value_bytes: 0, indexes: false };
        let first = |member| self.part(member, len).start;
        let (sorted, mut timing) = self.sort_on_members::<E>(job, &|member, to| {
            let read = |begin, part: &mut [u8]| read(first(member) + begin / size_of::<B>(), cast_slice_mut(part));
            self.gpu(member).fill(&to.keys, threads, read)
        })?;
        let (_, download) = timed(|| {
            self.map_members(|member| {
                let [keys, _] = sorted[member].ranges();
                let write = |begin, part: &[u8]| write(first(member) + begin / size_of::<B>(), cast_slice(part));
                self.gpu(member).drain(&sorted[member].memory.index(keys), threads, write)
            })
        })?;
        timing.download = download;
        Ok(timing)
    }

    /// [`Engine::sort`](crate::Engine::sort). Lengths have been checked.
    pub(crate) fn sort_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        how: SortHow,
        RunMut { keys, values }: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        if let Some(gpu) = self.only::<B>() {
            return gpu.sort_host(how, RunMut { keys, values });
        }
        let len = keys.len();
        let Some(numbers) = Values::of_numbers(values) else {
            let mut permutation = zeroed::<u64>(len)?;
            let (sorted, mut timing) = self.sort_indexed::<B, u64>(how, keys)?;
            timing.download = self.download_sorted(&sorted, cast_slice_mut(keys), cast_slice_mut(&mut permutation))?;
            gather(values, &permutation)?;
            return Ok(timing);
        };
        let job = Job { how, len, value_bytes: numbers.each, indexes: false };
        let upload = |member: usize, to: &OnGpu| {
            let part = self.part(member, len);
            to.fill(self.gpu(member), &keys[part.clone()], numbers.part(part))
        };
        let (sorted, mut timing) = self.sort_on_members::<Error>(job, &upload)?;
        timing.download =
            self.download_sorted(&sorted, cast_slice_mut(keys), bytes_of_mut(values).unwrap_or_default())?;
        Ok(timing)
    }

    /// Sorts keys with their indices in the GPUs' memory.
    fn sort_indexed<B: DeviceBits, I: Index>(&self, how: SortHow, keys: &[B]) -> Result<(Vec<OnMember>, Steps), Error> {
        let job = Job { how, len: keys.len(), value_bytes: size_of::<I>(), indexes: true };
        self.sort_on_members::<Error>(job, &|member, to| {
            self.gpu(member).copy_to_gpu(cast_slice(&keys[self.part(member, keys.len())]), &to.keys)
        })
    }

    /// [`Engine::argsort`](crate::Engine::argsort). Lengths have been checked.
    pub(crate) fn argsort_host<B: DeviceBits, I: Index>(
        &self,
        how: SortHow,
        keys: &[B],
        indices: &mut [I],
    ) -> Result<Steps, Error> {
        if let Some(gpu) = self.only::<B>() {
            return gpu.argsort_host(how, keys, indices);
        }
        let (sorted, mut timing) = self.sort_indexed::<B, I>(how, keys)?;
        timing.download = self.download_sorted(&sorted, &mut [], cast_slice_mut(indices))?;
        Ok(timing)
    }

    /// Sorts, in the GPUs' memory, the elements that `upload` puts into each member's memory.
    fn sort_on_members<E: From<Error> + Send>(
        &self,
        job: Job,
        upload: &(dyn Fn(usize, &OnGpu) -> Result<(), E> + Sync),
    ) -> Result<(Vec<OnMember>, Steps), E> {
        let failed = Mutex::new(None);
        let sorted = self.sort_on_members_dyn(job, &|member, to| {
            upload(member, to).map_err(|error| {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                Ended::Upload
            })
        });
        sorted.map_err(|ended| ended.error(failed.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// [`sort_on_members`](Self::sort_on_members), compiled once. After [`Ended::Upload`] the caller has the error.
    fn sort_on_members_dyn(
        &self,
        job: Job,
        upload: &(dyn Fn(usize, &OnGpu) -> Result<(), Ended> + Sync),
    ) -> Result<(Vec<OnMember>, Steps), Ended> {
        let Job { how: (kernel, coding), len, value_bytes, indexes } = job;
        let (members, uploading) = timed(|| {
            self.map_members(|i| {
                let (gpu, n) = (self.gpu(i), self.part(i, len).len());
                // Indices count through the whole array, so they are values for the sort of a part.
                let member = with_coding!(
                    coding,
                    coding => OnMember::new(self, i, n, (kernel, coding), value_bytes),
                    else Err(NOT_EXCHANGED)
                )?;
                let record = Record::new(gpu.shared.multiprocessors);
                record.add(&Sort::new(kernel, coding, member.run.arrays(), false))?;
                exchange::record(&record, coding, value_bytes)?;
                let (uploaded, loaded) = parallel::join(|| upload(i, &member.run), || gpu.load(record.entries()));
                loaded?;
                uploaded?;
                Ok::<_, Ended>(member)
            })
        })?;
        let ((), compute) = timed(|| {
            let mut first = 0;
            for (member, here) in self.members.iter().zip(&members) {
                let at = here.run.arrays();
                let sort = Sort::new(kernel, coding, at, false);
                member.with_queue(|queue| {
                    // SAFETY: `at` has `n` elements and `memory` at least the plan's workspace. Both have just been
                    // allocated, nothing else uses them, and they live until `synchronize` has returned.
                    unsafe {
                        if indexes {
                            exchange::number(queue, at.values, at.len, value_bytes, first)?;
                        }
                        sort.launch(queue, address(&here.memory))
                    }
                })?;
                first += at.len;
            }
            self.synchronize()
        })?;
        let ((), exchange) = timed(|| {
            let share = |member: &OnMember| Share {
                run: member.run.arrays(),
                part: member.part,
                workspace: address(&member.workspace),
            };
            // SAFETY: `synchronize` has returned, so the runs are sorted and `memory` is free for the parts. Run, part
            // and workspace of a member are separate allocations with the lengths of its `ExchangePlan`.
            unsafe { self.exchange(coding, &members.iter().map(share).collect::<Vec<_>>())? };
            self.synchronize()
        })?;
        Ok((members, Steps { upload: uploading, compute, exchange, ..Steps::default() }))
    }

    /// Downloads the bytes of the sorted keys to `keys`, unless that is empty, and the bytes of the values to `values`.
    fn download_sorted(
        &self,
        sorted: &[OnMember],
        mut keys: &mut [u8],
        mut values: &mut [u8],
    ) -> Result<Duration, Error> {
        let mut parts = Vec::with_capacity(sorted.len());
        for member in sorted {
            let ([key_bytes, value_bytes], memory) = (member.ranges(), &member.memory);
            let (of_keys, of_values);
            (of_keys, keys) = keys.split_at_mut(key_bytes.len().min(keys.len()));
            (of_values, values) = values.split_at_mut(value_bytes.len());
            parts.push((memory.index(key_bytes), of_keys, memory.index(value_bytes), of_values));
        }
        let parts = self.gpus().zip(parts);
        let ((), download) = timed(|| {
            parallel::try_for_each(parts, |(gpu, (keys, to_keys, values, to_values))| {
                if !to_keys.is_empty() {
                    gpu.copy_from_gpu(&keys, to_keys)?;
                }
                gpu.copy_from_gpu(&values, to_values)
            })
        })?;
        Ok(download)
    }

    /// [`Engine::merge`](crate::Engine::merge). Lengths have been checked.
    pub(crate) fn merge_host<K: Key, V: Copy + Send + Sync>(
        &self,
        kernel: MergeKernel,
        a: Run<'_, K, V>,
        b: Run<'_, K, V>,
        out: RunMut<'_, K, V>,
    ) -> Result<Steps, Error> {
        let ranges = self.merge_ranges(a.keys, b.keys);
        Self::for_each_part(self.output_parts(out), |i, out| {
            let (of_a, of_b) = ranges[i].clone();
            self.gpu(i).merge_host(
                (kernel, K::gpu_coding().into()),
                a.part(of_a).on_gpu(),
                b.part(of_b).on_gpu(),
                out.on_gpu(),
            )
        })
    }

    /// [`Engine::merge_many`](crate::Engine::merge_many). Lengths have been checked.
    pub(crate) fn merge_many_host<K: Key, V: Copy + Send + Sync>(
        &self,
        runs: &[Run<'_, K, V>],
        out: RunMut<'_, K, V>,
    ) -> Result<Steps, Error> {
        let keys: Vec<&[K]> = runs.iter().map(|run| run.keys).collect();
        let splits = self.many_splits(&keys, out.keys.len());
        Self::for_each_part(self.output_parts(out), |i, out| {
            let ranges = splits[i].iter().zip(&splits[i + 1]);
            let runs: Vec<_> = runs.iter().zip(ranges).map(|(run, (&from, &to))| run.part(from..to).on_gpu()).collect();
            self.gpu(i).merge_many_host(K::gpu_coding().into(), &runs, out.on_gpu())
        })
    }

    /// The splits of the runs at the ends of the members' parts of an output of `len` keys.
    fn many_splits<K: Key>(&self, runs: &[&[K]], len: usize) -> Vec<Vec<usize>> {
        let ranks: Vec<u64> = (0..self.len()).map(|i| self.part(i, len).start as u64).chain([len as u64]).collect();
        let splits = ordered_splits(&mut InMemory::new(runs), &ranks, 1).unwrap_or_else(|never| match never {});
        (0..ranks.len()).map(|i| splits[i * runs.len()..][..runs.len()].to_vec()).collect()
    }

    /// The ranges of `a` and `b` that each member merges.
    fn merge_ranges<K: Key>(&self, a: &[K], b: &[K]) -> Vec<(Range<usize>, Range<usize>)> {
        let parts = (0..self.len()).map(|i| self.part(i, a.len() + b.len()));
        parts.map(|part| part_ranges(a, b, part.start, part.end)).collect()
    }

    /// Each member's part of an output.
    fn output_parts<'a, B, V>(&self, out: RunMut<'a, B, V>) -> Vec<RunMut<'a, B, V>> {
        let len = out.keys.len();
        divided(out, (0..self.len()).map(|member| self.part(member, len).len()))
    }

    /// Runs `work` for each member with its part, at the same time. The time of a step is the time of the slowest
    /// member.
    pub(super) fn for_each_part<T: Send>(
        parts: impl IntoIterator<Item = T>,
        work: impl Fn(usize, T) -> Result<Steps, Error> + Sync,
    ) -> Result<Steps, Error> {
        let parts: Vec<_> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
        Self::for_each_of(parts.len(), &|i| {
            let part = parts[i].lock().unwrap_or_else(PoisonError::into_inner).take();
            part.map_or(Ok(Steps::default()), |part| work(i, part))
        })
    }

    /// [`for_each_part`](Self::for_each_part) of this number of parts, compiled once for all types of parts.
    fn for_each_of(parts: usize, work: &(dyn Fn(usize) -> Result<Steps, Error> + Sync)) -> Result<Steps, Error> {
        let timings = parallel::map(0..parts, work);
        timings.into_iter().try_fold(Steps::default(), |all, timing| Ok(all.longest(timing?)))
    }

    /// The results of `work` for each member, run at the same time.
    pub(in crate::gpu) fn map_members<T: Send, E: Send>(
        &self,
        work: impl Fn(usize) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        parallel::map(0..self.len(), work).into_iter().collect()
    }

    /// The first `k` keys of each member's part of `keys`, or all if there are fewer, one part after the other, with
    /// their indices in `keys` if it `indexes`. The first `k` keys of the result are the first `k` of `keys`.
    pub(crate) fn top_k_host<B: DeviceBits>(
        &self,
        coding: KeyCoding,
        keys: &[B],
        k: usize,
        indexes: bool,
    ) -> Result<(Vec<B>, Vec<u64>, Steps), Error> {
        let of_members = self.map_members(|i| {
            let part = self.part(i, keys.len());
            let (keys, mut indices, timing) = self.gpu(i).top_k_host(coding, &keys[part.clone()], k, indexes)?;
            indices.iter_mut().for_each(|index| *index += part.start as u64);
            Ok::<_, Error>((keys, indices, timing))
        })?;
        let (mut all, mut all_indices, mut all_timing) = (Vec::new(), Vec::new(), Steps::default());
        for (keys, indices, timing) in of_members {
            all.extend(keys);
            all_indices.extend(indices);
            all_timing = all_timing.longest(timing);
        }
        Ok((all, all_indices, all_timing))
    }

    /// The GPU that does all of the work: the only one, or the first one for keys that kernels convert, which members
    /// cannot exchange.
    pub(crate) fn only<B: DeviceBits>(&self) -> Option<&Gpu> {
        (self.len() == 1 || !is_exchanged::<B>()).then(|| self.gpu(0))
    }

    /// A member's GPU.
    pub(crate) fn gpu(&self, member: usize) -> &Gpu {
        self.members[member].stream.gpu()
    }
}
