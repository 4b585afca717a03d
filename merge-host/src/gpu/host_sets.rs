//! Operations on sorted slices in host memory, whose results are as long as it turns out: upload, compute, download.

use super::host::timed;
use super::launch::{bounds, groups, sets};
use super::{DeviceArray, Gpu, Stream};
use crate::{Error, GpuKey, Index, Reduction, SetOperation, Summand, Timing};
use bytemuck::Pod;

/// What an operation returns: keys, and how long it took.
type Keys<K> = Result<(Vec<K>, Timing), Error>;

impl Gpu {
    /// [`Engine::set_operation`](crate::Engine::set_operation).
    pub(crate) fn set_operation_host<K: GpuKey>(&self, operation: SetOperation, a: &[K], b: &[K]) -> Keys<K> {
        let (total, most) = (a.len() + b.len(), operation.most_keys(a.len(), b.len()));
        let workspace_bytes = Self::set_operation_workspace_bytes::<K>(total);
        self.check_memory((total + most).saturating_mul(size_of::<K>()).saturating_add(workspace_bytes))?;
        self.load(&sets::entries::<K>(0))?;
        let stream = self.stream()?;
        let ((a, b), upload) = timed(|| Ok::<_, Error>((stream.upload(a)?, stream.upload(b)?)))?;
        let (mut out, mut workspace) = (stream.unspecified::<K>(most)?, stream.unspecified(workspace_bytes)?);
        counted(&stream, upload, |count| {
            stream.set_operation(operation, &a, &b, &mut out, count, &mut workspace)?;
            Ok((out, ()))
        })
        .map(|(keys, (), timing)| (keys, timing))
    }

    /// [`Engine::unique`](crate::Engine::unique).
    pub(crate) fn unique_host<K: GpuKey>(&self, keys: &[K]) -> Keys<K> {
        self.load(&groups::entries_of_unique::<K>(0))?;
        let (stream, keys, mut workspace, upload) = self.upload_groups::<K>(keys, size_of::<K>())?;
        let mut out = stream.unspecified(keys.len())?;
        counted(&stream, upload, |count| {
            stream.unique(&keys, &mut out, count, &mut workspace)?;
            Ok((out, ()))
        })
        .map(|(keys, (), timing)| (keys, timing))
    }

    /// [`Engine::run_lengths`](crate::Engine::run_lengths).
    pub(crate) fn run_lengths_host<K: GpuKey>(&self, keys: &[K], lengths: &mut Vec<u64>) -> Keys<K> {
        self.load(&groups::entries_of_reductions::<K>(0))?;
        let (stream, keys, mut workspace, upload) = self.upload_groups::<K>(keys, size_of::<K>() + 8)?;
        let (mut out, mut counted_lengths) = (stream.unspecified(keys.len())?, stream.unspecified(keys.len())?);
        let (keys, found, timing) = counted(&stream, upload, |count| {
            stream.run_lengths(&keys, (&mut out, &mut counted_lengths), count, &mut workspace)?;
            Ok((out, counted_lengths))
        })?;
        *lengths = found;
        Ok((keys, timing))
    }

    /// [`Engine::reduce_by_key`](crate::Engine::reduce_by_key). Lengths have been checked.
    pub(crate) fn reduce_by_key_host<K: GpuKey, V: Summand>(
        &self,
        reduction: Reduction,
        keys: &[K],
        values: &[V],
        totals: &mut Vec<V>,
    ) -> Keys<K> {
        self.load(&groups::entries_of_reductions::<K>(size_of::<V>()))?;
        let (stream, keys, mut workspace, mut upload) =
            self.upload_groups::<K>(keys, size_of::<K>() + 2 * size_of::<V>())?;
        let (values, more) = timed(|| stream.upload(values))?;
        upload += more;
        let (mut out, mut reduced) = (stream.unspecified(keys.len())?, stream.unspecified(keys.len())?);
        let (keys, found, timing) = counted(&stream, upload, |count| {
            let to = (&mut out, &mut reduced);
            stream.reduce_by_key(reduction, (&keys, &values), to, count, &mut workspace)?;
            Ok((out, reduced))
        })?;
        *totals = found;
        Ok((keys, timing))
    }

    /// [`Engine::lower_bounds`](crate::Engine::lower_bounds) and its sibling. Lengths have been checked.
    pub(crate) fn bounds_host<K: GpuKey, I: Index>(
        &self,
        lower: bool,
        needles: &[K],
        keys: &[K],
        found: &mut [I],
    ) -> Result<Timing, Error> {
        let total = needles.len() + keys.len();
        let workspace_bytes = Self::bounds_workspace_bytes::<K>(total);
        let bytes = total.saturating_mul(size_of::<K>()).saturating_add(size_of_val(found));
        self.check_memory(bytes.saturating_add(workspace_bytes))?;
        self.load(&bounds::entries::<K>(size_of::<I>()))?;
        let stream = self.stream()?;
        let ((needles, keys), upload) = timed(|| Ok::<_, Error>((stream.upload(needles)?, stream.upload(keys)?)))?;
        let (mut out, mut workspace) = (stream.unspecified::<I>(found.len())?, stream.unspecified(workspace_bytes)?);
        let ((), compute) = timed(|| {
            if lower {
                stream.lower_bounds(&needles, &keys, &mut out, &mut workspace)?;
            } else {
                stream.upper_bounds(&needles, &keys, &mut out, &mut workspace)?;
            }
            stream.synchronize()
        })?;
        let ((), download) = timed(|| out.download_to(found))?;
        Ok(Timing { upload, compute, download, ..Timing::default() })
    }

    /// Uploads keys and allocates the workspace for their groups, if there is memory for `more` bytes for each key
    /// besides.
    fn upload_groups<K: GpuKey>(
        &self,
        keys: &[K],
        more: usize,
    ) -> Result<(Stream, DeviceArray<K>, DeviceArray<u8>, std::time::Duration), Error> {
        let workspace_bytes = Self::groups_workspace_bytes::<K>(keys.len());
        let bytes = keys.len().saturating_mul(size_of::<K>() + more);
        self.check_memory(bytes.saturating_add(workspace_bytes))?;
        let stream = self.stream()?;
        let (keys, upload) = timed(|| stream.upload(keys))?;
        let workspace = stream.unspecified(workspace_bytes)?;
        Ok((stream, keys, workspace, upload))
    }
}

/// Arrays that a result is in, of which the first elements count.
trait Results {
    type Downloaded;
    fn download_first(&self, count: usize) -> Result<Self::Downloaded, Error>;
}

impl Results for () {
    type Downloaded = ();
    fn download_first(&self, _: usize) -> Result<(), Error> {
        Ok(())
    }
}

impl<T: Pod> Results for DeviceArray<T> {
    type Downloaded = Vec<T>;
    fn download_first(&self, count: usize) -> Result<Vec<T>, Error> {
        self.first(count)
    }
}

/// Has `work` put an operation on the stream that writes the number of its results, and downloads as many.
fn counted<T: Pod, R: Results>(
    stream: &Stream,
    upload: std::time::Duration,
    work: impl FnOnce(&mut DeviceArray<u64>) -> Result<(DeviceArray<T>, R), Error>,
) -> Result<(Vec<T>, R::Downloaded, Timing), Error> {
    let mut count = stream.unspecified(1)?;
    let ((out, more), compute) = timed(|| {
        let out = work(&mut count)?;
        stream.synchronize()?;
        Ok::<_, Error>(out)
    })?;
    let (downloaded, download) = timed(|| {
        let count = count.download()?[0] as usize;
        Ok::<_, Error>((out.first(count)?, more.download_first(count)?))
    })?;
    Ok((downloaded.0, downloaded.1, Timing { upload, compute, download, ..Timing::default() }))
}
