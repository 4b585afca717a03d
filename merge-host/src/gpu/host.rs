//! Work on slices in host memory: upload, compute, download.

use super::Gpu;
use super::failure::OrFailure;
use crate::{Error, Key, MergeKernel, Timing};
use cust::memory::{CopyDestination, DeviceBuffer};
use std::time::{Duration, Instant};

#[allow(dead_code)]
impl Gpu {
    pub(crate) fn sort_host<K: Key>(&self, keys: &mut [K]) -> Result<Timing, Error> {
        if keys.len() < 2 {
            return Ok(Timing::default());
        }
        let workspace_bytes = Self::sort_workspace_bytes::<K>(keys.len());
        self.check_memory(size_of_val(keys) + workspace_bytes)?;
        self.load::<K>(&["block_sort", "path_runs", "merge_runs"])?;
        let stream = self.stream()?;
        let (on_gpu, upload) = timed(|| self.upload(bytemuck::cast_slice::<K, u8>(keys)))?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let ((), compute) = timed(|| {
            let (at, workspace) = (on_gpu.as_device_ptr().as_raw(), workspace.as_device_ptr().as_raw());
            // SAFETY: both arrays have just been allocated, for these lengths, and live until after the wait.
            unsafe { self.sort_at::<K>(at, keys.len(), workspace, &stream)? };
            stream.synchronize().or_failure("the sort on the GPU")
        })?;
        let ((), download) = timed(|| self.download_into(&on_gpu, keys))?;
        Ok(Timing { upload, compute, download })
    }

    pub(crate) fn merge_host<K: Key>(
        &self,
        kernel: MergeKernel,
        a: &[K],
        b: &[K],
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let workspace_bytes = Self::merge_workspace_bytes::<K>(kernel, out.len());
        self.on_host_slices(a, b, out, workspace_bytes, |a_at, b_at, out_at, workspace, stream| {
            // SAFETY: `on_host_slices` gives addresses of arrays as long as the slices, and waits.
            unsafe { self.merge_at::<K>(kernel, (a_at, a.len()), (b_at, b.len()), out_at, workspace, stream) }
        })
    }

    pub(crate) fn merge_batch_host<K: Key>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let pairs = out.len() / d;
        self.on_host_slices(a, b, out, 0, |a_at, b_at, out_at, _, stream| {
            // SAFETY: `on_host_slices` gives addresses of arrays as long as the slices, and waits; `Engine` has checked
            // that they hold `pairs` runs.
            unsafe { self.merge_batch_at::<K>(a_at, b_at, out_at, pairs, d, a_len, stream) }
        })
    }

    /// [`Engine::merge_pairs`](crate::Engine::merge_pairs). Lengths have been checked.
    pub(crate) fn merge_pairs_host<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        _a: (&[K], &[V]),
        _b: (&[K], &[V]),
        _out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        Err(not_yet())
    }

    /// [`Engine::merge_batch_pairs`](crate::Engine::merge_batch_pairs). Lengths have been checked.
    pub(crate) fn merge_batch_pairs_host<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        _a: (&[K], &[V]),
        _b: (&[K], &[V]),
        _out: (&mut [K], &mut [V]),
        _d: usize,
        _a_len: usize,
    ) -> Result<Timing, Error> {
        Err(not_yet())
    }

    /// [`Engine::merge_ragged`](crate::Engine::merge_ragged). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_host<K: Key>(
        &self,
        _a: (&[K], &[usize]),
        _b: (&[K], &[usize]),
        _out: &mut [K],
    ) -> Result<Timing, Error> {
        Err(not_yet())
    }

    /// [`Engine::merge_ragged_pairs`](crate::Engine::merge_ragged_pairs). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_pairs_host<K: Key, V: Copy + Send + Sync + 'static>(
        &self,
        _a: (&[K], &[V], &[usize]),
        _b: (&[K], &[V], &[usize]),
        _out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        Err(not_yet())
    }

    /// Uploads `a` and `b`, has `work` make `out` of them on the GPU, and downloads that.
    ///
    /// `work` gets the addresses of arrays of the slices' lengths and of a workspace, and a stream to put launches on.
    fn on_host_slices<K: Key>(
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
        let ((a, b), upload) = timed(|| {
            Ok((self.upload(bytemuck::cast_slice::<K, u8>(a))?, self.upload(bytemuck::cast_slice::<K, u8>(b))?))
        })?;
        let on_gpu: DeviceBuffer<u8> = self.buffer(size_of_val(out))?;
        let workspace: DeviceBuffer<u8> = self.buffer(workspace_bytes)?;
        let address = |buffer: &DeviceBuffer<u8>| buffer.as_device_ptr().as_raw();
        let ((), compute) = timed(|| {
            work(address(&a), address(&b), address(&on_gpu), address(&workspace), &stream)?;
            stream.synchronize().or_failure("the merge on the GPU")
        })?;
        let ((), download) = timed(|| self.download_into(&on_gpu, out))?;
        Ok(Timing { upload, compute, download })
    }

    fn download_into<K: Key>(&self, from: &DeviceBuffer<u8>, to: &mut [K]) -> Result<(), Error> {
        from.copy_to(bytemuck::cast_slice_mut::<K, u8>(to)).or_failure("cuMemcpyDtoH")
    }

    /// Says before anything is allocated that the whole does not fit.
    fn check_memory(&self, needed: usize) -> Result<(), Error> {
        let (free, _) = self.memory()?;
        let needed = needed as u64;
        if needed > free { Err(Error::OutOfDeviceMemory { needed, free }) } else { Ok(()) }
    }
}

/// The value of `work`, and how long it took.
fn timed<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<(T, Duration), Error> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed()))
}

fn not_yet() -> Error {
    Error::Device { call: "this merge".to_owned(), reason: "there is no kernel for it yet".to_owned() }
}
