//! The first keys of slices in host memory: upload, select, download.

use super::host::timed;
use super::launch::sort::SortPlan;
use super::launch::top_k;
use super::{Gpu, GpuGroup};
use crate::{Error, GpuKey, SortOrder, Timing};

/// The first keys of a slice, sorted, and the indices that they have there, if these were asked for.
pub(crate) struct First<K> {
    pub keys: Vec<K>,
    pub indices: Vec<u64>,
    pub timing: Timing,
}

impl Gpu {
    /// The first `k` of `keys`, or all if they are fewer, with their indices if it `indexes`. Stable.
    fn top_k_host<K: GpuKey>(&self, order: SortOrder, keys: &[K], k: usize, indexes: bool) -> Result<First<K>, Error> {
        let k = k.min(keys.len());
        let (value_bytes, indexed) = if indexes { (size_of::<u64>(), k) } else { (0, 0) };
        let workspace_bytes = top_k::workspace_bytes::<K>(keys.len(), k, value_bytes);
        let bytes = (keys.len() + k) * size_of::<K>() + indexed * size_of::<u64>();
        self.check_memory(bytes.saturating_add(workspace_bytes))?;
        let sort = SortPlan::of::<K>(k, value_bytes, false);
        self.load(&[top_k::entries::<K>(value_bytes), sort.entries::<K>(k)].concat())?;
        let stream = self.stream()?;
        let (keys, upload) = timed(|| stream.upload(keys))?;
        let (mut out, mut indices) = (stream.unspecified::<K>(k)?, stream.unspecified::<u64>(indexed)?);
        let mut workspace = stream.unspecified(workspace_bytes)?;
        let ((), compute) = timed(|| {
            if indexes {
                stream.top_k_indices(order, &keys, (&mut out, &mut indices), &mut workspace)?;
            } else {
                stream.top_k(order, &keys, &mut out, &mut workspace)?;
            }
            stream.synchronize()
        })?;
        let ((keys, indices), download) = timed(|| Ok::<_, Error>((out.download()?, indices.download()?)))?;
        Ok(First { keys, indices, timing: Timing { upload, compute, download, ..Timing::default() } })
    }
}

impl GpuGroup {
    /// The first `k` keys of each member's part of `keys`, or all if they are fewer, one part after the other, with
    /// their indices in `keys` if it `indexes`. The first `k` of these are those of `keys`.
    pub(crate) fn top_k_host<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: &[K],
        k: usize,
        indexes: bool,
    ) -> Result<First<K>, Error> {
        let of_members = self.map_members(|i| {
            let part = self.part(i, keys.len());
            let mut first = self.gpu(i).top_k_host(order, &keys[part.clone()], k, indexes)?;
            first.indices.iter_mut().for_each(|index| *index += part.start as u64);
            Ok::<_, Error>(first)
        })?;
        let mut all = First { keys: Vec::new(), indices: Vec::new(), timing: Timing::default() };
        for First { keys, indices, timing } in of_members {
            all.keys.extend(keys);
            all.indices.extend(indices);
            all.timing = all.timing.longest(timing);
        }
        Ok(all)
    }
}
