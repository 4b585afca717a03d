//! Several GPUs of one host.
//!
//! | file | contents |
//! | --- | --- |
//! | `member` | one GPU of a group: its streams, and copies from the memory of other members |
//! | `operations` | sorts and merges of arrays that are distributed over the GPUs |
//! | `host` | sorts and merges of slices in host memory |
//! | `batches` | batches of merges, groups of runs, and segments of slices in host memory |

mod batches;
mod host;
mod member;
mod operations;

pub(super) use operations::{group_merge, group_sort};

use super::launch::exchange::{Share, bytes_beside_slots, exchange};
use super::operation::{KeyCoding, with_coding};
use super::{DeviceArray, Gpu, Stream};
use crate::key::sealed::DeviceBits;
use crate::{Error, Gpus, parallel};
use bytemuck::Pod;
use member::GroupMember;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Several GPUs of one host, which sort and merge together.
///
/// An array of the group is distributed: each GPU, a *member*, has a part of it, a [`DeviceArray`] of its stream. The
/// array is the parts, one after the other in the order of the members. Parts may have any lengths, 0 included.
///
/// ```no_run
/// use merge_host::{GpuGroup, Gpus, SortOrder, workspace};
///
/// let group = GpuGroup::new(Gpus::All)?;
/// let (mut keys, mut sorted) = (group.upload(&[3.5f32, -1.0, 2.0, 0.5])?, group.zeroed(4)?);
/// let bytes = |i: usize| workspace::group_sort::<f32, ()>(group.gpus().len(), keys[i].len(), sorted[i].len());
/// let memory = group.streams().enumerate().map(|(i, stream)| stream.zeroed(bytes(i)));
/// let mut memory = memory.collect::<Result<Vec<_>, _>>()?;
/// group.sort(SortOrder::Ascending, &mut keys[..], &mut sorted[..], &mut memory)?;
/// assert_eq!(group.download(&sorted)?, [-1.0, 0.5, 2.0, 3.5]);
/// # Ok::<(), merge_host::Error>(())
/// ```
///
/// # How it works
///
/// Each member sorts its part. The exact splits of the sorted runs ([`splits`](crate::splits)) say which keys each
/// member gets. A member copies keys directly from GPU to GPU where the driver can, and otherwise through host memory,
/// which the driver does by itself. It merges copied keys with its own while the next ones are copied. Every key moves
/// from one GPU to another at most once.
///
/// A clone is the same group.
#[derive(Clone)]
pub struct GpuGroup {
    members: Arc<[GroupMember]>,
}

impl GpuGroup {
    /// Opens some GPUs, in the order of their ordinals in `gpus`, or all GPUs of this machine.
    ///
    /// # Errors
    /// [`Error::NoMembers`] if there are no ordinals, [`Error::RepeatedDevice`] if an ordinal occurs twice,
    /// [`Error::NoDevice`] if all GPUs are asked for and there is none, and the errors of [`Gpu::new`].
    pub fn new(gpus: impl Into<Gpus>) -> Result<Self, Error> {
        match gpus.into() {
            Gpus::Of(ordinals) => Self::of(&ordinals),
            Gpus::All => {
                let ordinals: Vec<usize> = super::devices()?.iter().map(|device| device.ordinal).collect();
                if ordinals.is_empty() {
                    return Err(Error::NoDevice { reason: "the driver shows none".to_owned() });
                }
                Self::of(&ordinals)
            }
        }
    }

    fn of(ordinals: &[usize]) -> Result<Self, Error> {
        if ordinals.is_empty() {
            return Err(Error::NoMembers);
        }
        if let Some(&ordinal) = ordinals.iter().enumerate().find(|(i, o)| ordinals[..*i].contains(o)).map(|(_, o)| o) {
            return Err(Error::RepeatedDevice { ordinal });
        }
        // New threads start the GPUs at the same time. A waiting thread of a pool could take up other work that waits
        // for these GPUs.
        let gpus = parallel::map_on_new(ordinals.iter().copied(), Gpu::new);
        let members =
            gpus.into_iter().map(|gpu| GroupMember::new(gpu?, ordinals.len())).collect::<Result<Vec<_>, Error>>()?;
        for member in &members {
            member.reach(&members)?;
        }
        Ok(Self { members: members.into() })
    }

    /// The number of members.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The GPUs.
    pub fn gpus(&self) -> impl ExactSizeIterator<Item = &Gpu> {
        self.streams().map(Stream::gpu)
    }

    /// The streams of the members' arrays.
    pub fn streams(&self) -> impl ExactSizeIterator<Item = &Stream> {
        self.members.iter().map(|member| &member.stream)
    }

    /// Free and total bytes of the members' memory that evenly distributed arrays may use: the bytes of the member with
    /// the fewest, times the number of members.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        let mut least = (u64::MAX, u64::MAX);
        for gpu in self.gpus() {
            let (free, total) = gpu.memory()?;
            least = (least.0.min(free), least.1.min(total));
        }
        let members = self.len() as u64;
        Ok((least.0.saturating_mul(members), least.1.saturating_mul(members)))
    }

    /// Free bytes of the members' memory for an evenly distributed array that is to be sorted, and for a second array
    /// of the same size. This is [`memory`](Self::memory) less the slots of the exchange.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub(crate) fn memory_to_sort(&self) -> Result<u64, Error> {
        Ok(bytes_beside_slots(self.len(), self.memory()?.0))
    }

    /// The indices of a member's elements, if `len` elements are distributed evenly.
    pub fn part(&self, member: usize, len: usize) -> Range<usize> {
        even_part(self.len(), member, len)
    }

    /// Distributes `from` evenly. Waits for the copies. O(n).
    ///
    /// # Errors
    /// The errors of [`Stream::upload`].
    pub fn upload<T: Pod + Send + Sync>(&self, from: &[T]) -> Result<Vec<DeviceArray<T>>, Error> {
        let parts = self.streams().enumerate().map(|(i, stream)| (stream, &from[self.part(i, from.len())]));
        parallel::map(parts, |(stream, part)| stream.upload(part)).into_iter().collect()
    }

    /// Makes arrays of zeros, `len` in all, distributed evenly.
    ///
    /// # Errors
    /// The errors of [`Stream::zeroed`].
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<Vec<DeviceArray<T>>, Error> {
        self.streams().enumerate().map(|(i, stream)| stream.zeroed(self.part(i, len).len())).collect()
    }

    /// Copies the parts of an array into host memory, one after the other, after the work on their streams. Waits for
    /// all copies. O(n).
    ///
    /// # Errors
    /// The errors of [`DeviceArray::download`].
    pub fn download<T: Pod>(&self, parts: &[DeviceArray<T>]) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        parts.iter().try_for_each(|part| part.download().map(|part| all.extend(part)))?;
        Ok(all)
    }

    /// Waits until all work on the members' streams is done.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        self.streams().try_for_each(Stream::synchronize)
    }

    /// Puts the exchange of the members' runs on their streams. After an error no work is under way.
    ///
    /// # Safety
    /// The conditions of [`exchange`] hold, and the arrays live until the work on the members' streams has ended.
    unsafe fn exchange(&self, coding: KeyCoding, shares: &[Share]) -> Result<(), Error> {
        // SAFETY: this function requires the conditions of `exchange` for the same shares, one for each member.
        let exchanged =
            unsafe { with_coding!(coding, coding => exchange(coding, &self.members, shares), else Err(NOT_EXCHANGED)) };
        if exchanged.is_err() {
            // Copies that are under way use arrays of other streams, which do not wait for these copies.
            for member in &*self.members {
                let _ = (member.copies.synchronize(), member.stream.synchronize());
            }
        }
        exchanged
    }
}

/// Whether members exchange keys with bits `B`: there are kernels for them.
const fn is_exchanged<B: DeviceBits>() -> bool {
    size_of::<B>() == size_of::<B::Kernels>()
}

/// The error of an exchange of keys that kernels convert first. Callers leave such keys to one GPU.
const NOT_EXCHANGED: Error = Error::NoKernels { key: "converted" };

/// The indices of a member's elements, if `len` elements are distributed evenly over `members` members.
fn even_part(members: usize, member: usize, len: usize) -> Range<usize> {
    let each = len.div_ceil(members);
    let begin = |member: usize| member.saturating_mul(each).min(len);
    begin(member)..begin(member + 1)
}

impl fmt::Debug for GpuGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.gpus()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_make_up_the_whole() {
        let parts = |members, len| (0..members).map(|member| even_part(members, member, len)).collect::<Vec<_>>();
        assert_eq!(parts(3, 8), [0..3, 3..6, 6..8]);
        assert_eq!(parts(4, 5), [0..2, 2..4, 4..5, 5..5]);
        assert_eq!(parts(2, 0), [0..0, 0..0]);
        // No memory holds that many elements. A length is checked only when memory is allocated for a part.
        let most = usize::MAX;
        assert_eq!(parts(2, most), [0..most / 2 + 1, most / 2 + 1..most]);
        assert_eq!(parts(3, most)[2].end, most);
    }
}
