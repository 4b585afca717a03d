//! Work on slices in host memory: upload, compute, download.

use super::failure::OrFailure;
use super::launches::{ManyRuns, PairsAt, SortPlan};
use super::staging::PIECE;
use super::{BatchKernel, Gpu};
use crate::{Error, GpuKey, Index, MergeKernel, SortOrder, Timing};
use bytemuck::{cast_slice, cast_slice_mut};
use cust::memory::{CopyDestination, DeviceBuffer};
use rayon::prelude::*;
use std::any::TypeId;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that it takes several threads to copy fast.
const LEAST_TO_STAGE: usize = 4 * PIECE;

/// Keys and values in the GPU's memory.
type OnGpu = (DeviceBuffer<u8>, DeviceBuffer<u8>);

impl Gpu {
    /// [`Engine::sort_with`](crate::Engine::sort_with).
    pub(crate) fn sort_host<K: GpuKey>(&self, order: SortOrder, keys: &mut [K]) -> Result<Timing, Error> {
        let (sorted, mut timing) = self.sort_slices(order, keys, &[], 0)?;
        ((), timing.download) = timed(|| self.download_into(&sorted.0, keys))?;
        Ok(timing)
    }

    /// [`Engine::sort_through`](crate::Engine::sort_through).
    pub(crate) fn sort_through<K: GpuKey, E: From<Error> + Send>(
        &self,
        order: SortOrder,
        len: usize,
        read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
        write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
    ) -> Result<Timing, E> {
        let (sorted, mut timing) = self.sort_on_gpu::<K, E>(order, len, 0, |keys, _| {
            self.fill(keys, |begin, part| read(begin / size_of::<K>(), cast_slice_mut(part)))
        })?;
        ((), timing.download) =
            timed(|| self.drain(&sorted.0, |begin, part| write(begin / size_of::<K>(), cast_slice(part))))?;
        Ok(timing)
    }

    /// [`Engine::sort_pairs`](crate::Engine::sort_pairs). Lengths have been checked.
    pub(crate) fn sort_pairs_host<K: GpuKey, V: Copy + Send + Sync + 'static>(
        &self,
        order: SortOrder,
        keys: &mut [K],
        values: &mut [V],
    ) -> Result<Timing, Error> {
        self.pairs_in_place(keys, values, |keys, values, bytes| self.sort_slices(order, keys, values, bytes))
    }

    /// Has `work` upload keys and the bytes of values and put them in order, and downloads them.
    ///
    /// Values that are numbers of 4 or 8 bytes go along with the keys. Of others the GPU moves the indices, and they are gathered
    /// here.
    fn pairs_in_place<K: GpuKey, V: Copy + Send + Sync + 'static>(
        &self,
        keys: &mut [K],
        values: &mut [V],
        work: impl FnOnce(&[K], &[u8], usize) -> Result<(OnGpu, Timing), Error>,
    ) -> Result<Timing, Error> {
        if let Some(value_bytes) = number_bytes::<V>() {
            // SAFETY: `V` is a number, whose bytes may be read, and written with those of another.
            let values =
                unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), size_of_val(values)) };
            let (done, mut timing) = work(keys, values, value_bytes)?;
            ((), timing.download) = timed(|| {
                self.download_into(&done.0, keys)?;
                self.download_into(&done.1, values)
            })?;
            return Ok(timing);
        }
        let mut places = zeroed::<u64>(keys.len())?;
        places.par_iter_mut().enumerate().for_each(|(i, place)| *place = i as u64);
        let (done, mut timing) = work(keys, cast_slice(&places), size_of::<u64>())?;
        ((), timing.download) = timed(|| {
            self.download_into(&done.0, keys)?;
            self.download_into(&done.1, &mut places)
        })?;
        gather(values, &places)?;
        Ok(timing)
    }

    /// [`Engine::merge_many`](crate::Engine::merge_many). Lengths have been checked.
    pub(crate) fn merge_many_host<K: GpuKey>(&self, runs: &[&[K]], out: &mut [K]) -> Result<Timing, Error> {
        if out.is_empty() {
            return Ok(Timing::default());
        }
        let lengths = lengths(runs.iter().map(|run| run.len()));
        concatenate(runs, out);
        let (merged, mut timing) = self.merge_runs_on_gpu(lengths, out, &[], 0)?;
        ((), timing.download) = timed(|| self.download_into(&merged.0, out))?;
        Ok(timing)
    }

    /// [`Engine::merge_many_pairs`](crate::Engine::merge_many_pairs). Lengths have been checked.
    pub(crate) fn merge_many_pairs_host<K: GpuKey, V: Copy + Send + Sync + 'static>(
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
        self.pairs_in_place(out.0, out.1, |keys, values, value_bytes| {
            self.merge_runs_on_gpu(lengths, keys, values, value_bytes)
        })
    }

    /// Uploads keys and values of `value_bytes` bytes each, or none if that is 0, in runs of these lengths, and merges
    /// these in the GPU's memory: many at once, unless there are more keys than 32 bits count.
    fn merge_runs_on_gpu<K: GpuKey>(
        &self,
        lengths: Vec<usize>,
        keys: &[K],
        values: &[u8],
        value_bytes: usize,
    ) -> Result<(OnGpu, Timing), Error> {
        if u32::try_from(keys.len()).is_err() {
            return self.merge_tree_on_gpu(lengths, keys, values, value_bytes);
        }
        let many = ManyRuns::new(lengths);
        let workspace_bytes = many.workspace_bytes::<K>(value_bytes);
        self.check_memory(size_of_val(keys) + values.len() + many.found.len() + workspace_bytes)?;
        self.load::<K>(&["copy_runs"], 0)?;
        self.load::<K>(&["copy_runs", "merge_long_runs"], value_bytes)?;
        let stream = self.stream()?;
        let ((merged, found), upload) =
            timed(|| Ok(((self.uploaded(keys)?, self.uploaded(values)?), self.uploaded(&many.found)?)))?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let ((), compute) = timed(|| {
            let at = PairsAt { keys: address(&merged.0), values: address(&merged.1), len: keys.len() };
            let (found, workspace) = (address(&found), address(&workspace));
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait.
            unsafe { self.merge_many_at::<K>(value_bytes, &many, at, found, workspace, &stream)? };
            stream.synchronize().or_failure("the merge on the GPU")
        })?;
        Ok((merged, Timing { upload, compute, ..Timing::default() }))
    }

    /// [`merge_runs_on_gpu`](Self::merge_runs_on_gpu) by merges of two.
    fn merge_tree_on_gpu<K: GpuKey>(
        &self,
        lengths: Vec<usize>,
        keys: &[K],
        values: &[u8],
        value_bytes: usize,
    ) -> Result<(OnGpu, Timing), Error> {
        let workspace_bytes = match value_bytes {
            0 => Self::merge_workspace_bytes::<K>(MergeKernel::Auto, keys.len()),
            _ => Self::merge_pairs_workspace_bytes::<K>(keys.len()),
        };
        self.check_memory(2 * (size_of_val(keys) + values.len()) + workspace_bytes)?;
        self.load::<K>(&["path_big"], 0)?;
        if value_bytes > 0 {
            self.load::<K>(&["merge_pairs"], value_bytes)?;
        }
        let stream = self.stream()?;
        let (from, upload) = timed(|| Ok((self.uploaded(keys)?, self.uploaded(values)?)))?;
        let to: OnGpu = (self.buffer(size_of_val(keys))?, self.buffer(values.len())?);
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let (in_to, compute) = timed(|| {
            let at = |array: &OnGpu| PairsAt { keys: address(&array.0), values: address(&array.1), len: keys.len() };
            let (from, to, workspace) = (at(&from), at(&to), address(&workspace));
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait.
            let in_to = unsafe { self.merge_tree_at::<K>(value_bytes, lengths, from, to, workspace, &stream)? };
            stream.synchronize().or_failure("the merge on the GPU")?;
            Ok(in_to)
        })?;
        Ok((if in_to { to } else { from }, Timing { upload, compute, ..Timing::default() }))
    }

    /// [`Engine::argsort`](crate::Engine::argsort). Lengths have been checked.
    pub(crate) fn argsort_host<K: GpuKey, I: Index>(
        &self,
        order: SortOrder,
        keys: &[K],
        indices: &mut [I],
    ) -> Result<Timing, Error> {
        indices.par_iter_mut().enumerate().for_each(|(i, index)| *index = I::new(i));
        let (sorted, mut timing) = self.sort_slices(order, keys, cast_slice(indices), size_of::<I>())?;
        ((), timing.download) = timed(|| self.download_into(&sorted.1, indices))?;
        Ok(timing)
    }

    /// Uploads keys and values of `value_bytes` bytes each, or none if that is 0, and sorts them in the GPU's memory.
    fn sort_slices<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &[K],
        values: &[u8],
        value_bytes: usize,
    ) -> Result<(OnGpu, Timing), Error> {
        self.sort_on_gpu::<K, Error>(order, keys.len(), value_bytes, |on_gpu_keys, on_gpu_values| {
            self.upload_into(cast_slice(keys), on_gpu_keys)?;
            self.upload_into(values, on_gpu_values)
        })
    }

    /// Sorts in the GPU's memory what `upload` puts there: `len` keys, and values of `value_bytes` bytes, or none if that
    /// is 0.
    fn sort_on_gpu<K: GpuKey, E: From<Error> + Send>(
        &self,
        order: SortOrder,
        len: usize,
        value_bytes: usize,
        upload: impl FnOnce(&mut DeviceBuffer<u8>, &mut DeviceBuffer<u8>) -> Result<(), E> + Send,
    ) -> Result<(OnGpu, Timing), E> {
        let workspace_bytes = SortPlan::of::<K>(len, value_bytes).workspace_bytes::<K>(len);
        self.check_memory(len * (size_of::<K>() + value_bytes) + workspace_bytes)?;
        let (mut keys, mut values) = (self.buffer(len * size_of::<K>())?, self.buffer(len * value_bytes)?);
        // The driver compiles the kernels meanwhile.
        let modules = || {
            self.load::<K>(&["block_sort"], 0)?;
            self.load::<K>(&["block_sort"], value_bytes)
        };
        let (uploaded, loaded) = rayon::join(|| timed(|| upload(&mut keys, &mut values)), modules);
        loaded?;
        let ((), upload) = uploaded?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let stream = self.stream()?;
        let ((), compute) = timed(|| {
            let at = PairsAt { keys: address(&keys), values: address(&values), len };
            // SAFETY: the arrays have just been allocated, for these lengths, and live until after the wait.
            unsafe { self.sort_at::<K>(order, value_bytes, at, address(&workspace), &stream)? };
            stream.synchronize().or_failure("the sort on the GPU")
        })?;
        Ok(((keys, values), Timing { upload, compute, ..Timing::default() }))
    }

    pub(crate) fn merge_host<K: GpuKey>(
        &self,
        kernel: MergeKernel,
        a: &[K],
        b: &[K],
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let module = match kernel {
            MergeKernel::Auto | MergeKernel::MergePath => "merge_big",
            MergeKernel::Basic | MergeKernel::Tiled | MergeKernel::Circular => "merge_basic",
        };
        self.load::<K>(&[module], 0)?;
        let workspace_bytes = Self::merge_workspace_bytes::<K>(kernel, out.len());
        self.on_host_slices(a, b, out, workspace_bytes, |a_at, b_at, out_at, workspace, stream| {
            // SAFETY: `on_host_slices` gives addresses of arrays as long as the slices, and waits.
            unsafe { self.merge_at::<K>(kernel, (a_at, a.len()), (b_at, b.len()), out_at, workspace, stream) }
        })
    }

    pub(crate) fn merge_batch_host<K: GpuKey>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let pairs = out.len() / d;
        self.load::<K>(&["merge_batch"], 0)?;
        self.on_host_slices(a, b, out, 0, |a_at, b_at, out_at, _, stream| {
            // SAFETY: `on_host_slices` gives addresses of arrays as long as the slices, and waits; `Engine` has checked
            // that they hold `pairs` runs.
            unsafe { self.merge_batch_at::<K>(BatchKernel::Auto, a_at, b_at, out_at, pairs, d, a_len, stream) }
        })
    }

    /// [`Engine::merge_pairs`](crate::Engine::merge_pairs). Lengths have been checked.
    pub(crate) fn merge_pairs_host<K: GpuKey, V: Copy + Send + Sync + 'static>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        self.load::<K>(&["path_big"], 0)?;
        let workspace_bytes = Self::merge_pairs_workspace_bytes::<K>(out.0.len());
        self.on_host_pairs("merge_pairs", a, b, out, workspace_bytes, |bytes, a, b, out, workspace, stream| {
            // SAFETY: `on_host_pairs` gives addresses of arrays as long as the slices, and waits.
            unsafe { self.merge_pairs_at::<K>(bytes, a, b, out, workspace, stream) }
        })
    }

    /// [`Engine::merge_batch_pairs`](crate::Engine::merge_batch_pairs). Lengths have been checked.
    pub(crate) fn merge_batch_pairs_host<K: GpuKey, V: Copy + Send + Sync + 'static>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        self.on_host_pairs("merge_batch_pairs", a, b, out, 0, |bytes, a, b, out, _, stream| {
            // SAFETY: `on_host_pairs` gives addresses of arrays as long as the slices, and waits; `Engine` has checked
            // that they are whole runs.
            unsafe { self.merge_batch_pairs_at::<K>(bytes, a, b, out, d, a_len, stream) }
        })
    }

    /// [`Engine::merge_ragged`](crate::Engine::merge_ragged). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_host<K: GpuKey>(
        &self,
        a: (&[K], &[usize]),
        b: (&[K], &[usize]),
        out: &mut [K],
    ) -> Result<Timing, Error> {
        self.load::<K>(&["merge_ragged"], 0)?;
        let (total, pairs) = (out.len(), a.1.len() - 1);
        let offsets = (self.uploaded(a.1)?, self.uploaded(b.1)?);
        let workspace_bytes = Self::merge_ragged_workspace_bytes::<K>(total);
        self.on_host_slices(a.0, b.0, out, workspace_bytes, |a_at, b_at, out_at, workspace, stream| {
            let at = |keys, len| PairsAt { keys, values: 0, len };
            let a = (at(a_at, a.0.len()), address(&offsets.0));
            let b = (at(b_at, b.0.len()), address(&offsets.1));
            // SAFETY: `on_host_slices` gives addresses of arrays as long as the slices, and waits; `Engine` has checked
            // the offsets.
            unsafe { self.merge_ragged_at::<K>(0, a, b, pairs, at(out_at, total), workspace, stream) }
        })
    }

    /// [`Engine::merge_ragged_pairs`](crate::Engine::merge_ragged_pairs). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_pairs_host<K: GpuKey, V: Copy + Send + Sync + 'static>(
        &self,
        a: (&[K], &[V], &[usize]),
        b: (&[K], &[V], &[usize]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        self.load::<K>(&["path_ragged"], 0)?;
        let pairs = a.2.len() - 1;
        let offsets = (self.uploaded(a.2)?, self.uploaded(b.2)?);
        let workspace_bytes = Self::merge_ragged_workspace_bytes::<K>(out.0.len());
        let (a, b) = ((a.0, a.1), (b.0, b.1));
        self.on_host_pairs("merge_ragged_pairs", a, b, out, workspace_bytes, |bytes, a, b, out, workspace, stream| {
            let (a, b) = ((a, address(&offsets.0)), (b, address(&offsets.1)));
            // SAFETY: `on_host_pairs` gives addresses of arrays as long as the slices, and waits; `Engine` has checked
            // the offsets.
            unsafe { self.merge_ragged_at::<K>(bytes, a, b, pairs, out, workspace, stream) }
        })
    }

    /// Uploads keys and values, has `work` merge them on the GPU, and downloads the result.
    ///
    /// Values that are numbers of 4 or 8 bytes go along. Of others the GPU moves the indices, in A followed by B, and the
    /// values are gathered here.
    fn on_host_pairs<K: GpuKey, V: Copy + Send + Sync + 'static>(
        &self,
        kernel: &str,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        workspace_bytes: usize,
        work: impl Fn(usize, PairsAt, PairsAt, PairsAt, u64, &cust::stream::Stream) -> Result<(), Error>,
    ) -> Result<Timing, Error> {
        let (m, total) = (a.0.len(), out.0.len());
        if total == 0 {
            return Ok(Timing::default());
        }
        let as_words = number_bytes::<V>();
        let mut indices = zeroed::<u64>(if as_words.is_some() { 0 } else { total })?;
        let mut merged = zeroed::<u64>(indices.len())?;
        indices.par_iter_mut().enumerate().for_each(|(i, index)| *index = i as u64);
        let (a_values, b_values, out_values): (&[u8], &[u8], &mut [u8]) = if as_words.is_some() {
            // SAFETY: `V` is a number, whose bytes may be read, and written with those of another.
            unsafe {
                let bytes = |values: &[V]| std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values));
                let to = std::slice::from_raw_parts_mut(out.1.as_mut_ptr().cast(), size_of_val(out.1));
                (bytes(a.1), bytes(b.1), to)
            }
        } else {
            let (of_a, of_b) = indices.split_at(m);
            (cast_slice(of_a), cast_slice(of_b), cast_slice_mut(&mut merged))
        };
        let value_bytes = as_words.unwrap_or(size_of::<u64>());
        self.load::<K>(&[kernel], value_bytes)?;
        self.check_memory(2 * (size_of_val(out.0) + out_values.len()) + workspace_bytes)?;
        let stream = self.stream()?;
        let ([ak, av, bk, bv], upload) = timed(|| {
            Ok([self.uploaded(a.0)?, self.uploaded(a_values)?, self.uploaded(b.0)?, self.uploaded(b_values)?])
        })?;
        let (ck, cv): (DeviceBuffer<u8>, DeviceBuffer<u8>) =
            (self.buffer(size_of_val(out.0))?, self.buffer(out_values.len())?);
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let ((), compute) = timed(|| {
            let at = |keys, values, len| PairsAt { keys: address(keys), values: address(values), len };
            let (a, b, out) = (at(&ak, &av, m), at(&bk, &bv, total - m), at(&ck, &cv, total));
            work(value_bytes, a, b, out, address(&workspace), &stream)?;
            stream.synchronize().or_failure("the merge on the GPU")
        })?;
        let ((), download) = timed(|| {
            self.download_into(&ck, out.0)?;
            self.download_into(&cv, out_values)
        })?;
        if as_words.is_none() {
            out.1.par_iter_mut().zip(&merged[..]).for_each(|(value, &from)| {
                let from = from as usize;
                *value = if from < m { a.1[from] } else { b.1[from - m] };
            });
        }
        Ok(Timing { upload, compute, download })
    }

    /// Uploads `a` and `b`, has `work` make `out` of them on the GPU, and downloads that.
    ///
    /// `work` gets the addresses of arrays of the slices' lengths and of a workspace, and a stream to put launches on.
    fn on_host_slices<K: GpuKey>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        workspace_bytes: usize,
        work: impl Fn(u64, u64, u64, u64, &cust::stream::Stream) -> Result<(), Error>,
    ) -> Result<Timing, Error> {
        if out.is_empty() {
            return Ok(Timing::default());
        }
        self.check_memory(2 * size_of_val(out) + workspace_bytes)?;
        let stream = self.stream()?;
        let ((a, b), upload) = timed(|| Ok((self.uploaded(a)?, self.uploaded(b)?)))?;
        let on_gpu: DeviceBuffer<u8> = self.buffer(size_of_val(out))?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let ((), compute) = timed(|| {
            work(address(&a), address(&b), address(&on_gpu), address(&workspace), &stream)?;
            stream.synchronize().or_failure("the merge on the GPU")
        })?;
        let ((), download) = timed(|| self.download_into(&on_gpu, out))?;
        Ok(Timing { upload, compute, download })
    }

    /// An array in the GPU's memory with what is in `from`.
    fn uploaded<T: bytemuck::Pod>(&self, from: &[T]) -> Result<DeviceBuffer<u8>, Error> {
        let mut to = self.buffer(size_of_val(from))?;
        self.upload_into(cast_slice(from), &mut to)?;
        Ok(to)
    }

    /// Copies `from`, which is as long, by all threads where there is much.
    fn upload_into(&self, from: &[u8], to: &mut DeviceBuffer<u8>) -> Result<(), Error> {
        self.make_current()?;
        if from.len() < LEAST_TO_STAGE {
            return to.copy_from(from).or_failure("cuMemcpyHtoD");
        }
        self.fill(to, |begin, part| {
            part.copy_from_slice(&from[begin..][..part.len()]);
            Ok(())
        })
    }

    /// Copies to `to`, which is as long, by all threads where there is much.
    fn download_into<T: bytemuck::Pod>(&self, from: &DeviceBuffer<u8>, to: &mut [T]) -> Result<(), Error> {
        let to: &mut [u8] = cast_slice_mut(to);
        if to.len() < LEAST_TO_STAGE {
            return from.copy_to(to).or_failure("cuMemcpyDtoH");
        }
        let parts: Vec<_> = to.chunks_mut(PIECE).map(Mutex::new).collect();
        self.drain(from, |begin, part| {
            parts[begin / PIECE].lock().unwrap_or_else(PoisonError::into_inner).copy_from_slice(part);
            Ok(())
        })
    }

    /// Says before anything is allocated that the whole does not fit.
    fn check_memory(&self, needed: usize) -> Result<(), Error> {
        let (free, _) = self.memory()?;
        let needed = needed as u64;
        if needed > free { Err(Error::OutOfDeviceMemory { needed, free }) } else { Ok(()) }
    }
}

/// The lengths of runs that are not empty.
fn lengths(runs: impl Iterator<Item = usize>) -> Vec<usize> {
    runs.filter(|&length| length > 0).collect()
}

/// Copies runs one after the other to `out`, which has room for just these.
fn concatenate<T: Copy + Send + Sync>(runs: &[&[T]], mut out: &mut [T]) {
    let mut copies = Vec::with_capacity(runs.len());
    for run in runs {
        let to;
        (to, out) = out.split_at_mut(run.len());
        copies.push((*run, to));
    }
    copies.into_par_iter().for_each(|(run, to)| to.copy_from_slice(run));
}

/// The value of `work`, and how long it took.
fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Duration), E> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed()))
}

fn address(buffer: &DeviceBuffer<u8>) -> u64 {
    buffer.as_device_ptr().as_raw()
}

/// The size of `V` if it is a number of 4 or 8 bytes.
fn number_bytes<V: 'static>() -> Option<usize> {
    let id = TypeId::of::<V>();
    let four = [TypeId::of::<u32>(), TypeId::of::<i32>(), TypeId::of::<f32>()];
    let eight = [TypeId::of::<u64>(), TypeId::of::<i64>(), TypeId::of::<f64>(), TypeId::of::<usize>()];
    (four.contains(&id) || eight.contains(&id)).then_some(size_of::<V>())
}

/// So many zeros, or an error where there is no memory for them.
fn zeroed<T: bytemuck::Zeroable>(len: usize) -> Result<Box<[T]>, Error> {
    bytemuck::allocation::try_zeroed_slice_box(len)
        .map_err(|()| Error::OutOfHostMemory { needed: (len * size_of::<T>()) as u64 })
}

/// Puts what is at `places` in their order.
fn gather<T: Copy + Send + Sync>(values: &mut [T], places: &[u64]) -> Result<(), Error> {
    let mut gathered: Vec<T> = Vec::new();
    let memory = gathered.try_reserve_exact(values.len());
    memory.map_err(|_| Error::OutOfHostMemory { needed: size_of_val(values) as u64 })?;
    gathered.par_extend(places.par_iter().map(|&place| values[place as usize]));
    values.copy_from_slice(&gathered);
    Ok(())
}
