//! The sort of the course's question 3 on a GPU: passes that merge sibling runs of doubling length. Each merge is a
//! call of `pathBig_k` and a call of `mergeBig_k`.
//!
//! The course asks for this sort, and it is compared with the sort of the library. Two siblings take two launches. A
//! sort from runs of one key on takes about 2 d launches. The batch kernel of question 5 can merge the short runs of
//! the first passes, with one launch for each pass. `kernels-gpu/tests/kernels/course_sort.rs` runs the same passes in
//! the emulator.

use crate::parts::part;
use merge_host::{BatchKernel, DeviceArray, Error, GpuKey, MAX_BATCH_LENGTH, MergeKernel, Stream, workspace};
use std::mem::swap;

/// The kernels of the first passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPasses {
    /// `path_big` and `merge_big` from runs of one key on.
    MergePath,
    /// `merge_small_batch`, up to runs of 1024 keys.
    Batch,
}

/// The memory that a sort takes in addition to its keys.
pub struct CourseSort<K> {
    scratch: DeviceArray<K>,
    splits: DeviceArray<u8>,
}

impl<K: GpuKey> CourseSort<K> {
    /// Memory for sorts of `d` keys on `stream`.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`] where there is not enough memory, [`Error::Device`] where the driver fails.
    pub fn new(stream: &Stream, d: usize) -> Result<Self, Error> {
        let splits = stream.zeroed(workspace::merge::<K, ()>(MergeKernel::MergePath, d))?;
        Ok(Self { scratch: stream.zeroed(d)?, splits })
    }

    /// Puts the ascending sort of `keys` on their stream. O(d log d): ceil(log2 d) passes.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    ///
    /// # Panics
    /// If the number of keys differs from `d` of [`new`](Self::new). Also if it is no power of two and the batch kernel
    /// makes the first passes.
    pub fn sort(&mut self, first: FirstPasses, keys: &mut DeviceArray<K>) -> Result<(), Error> {
        let d = keys.len();
        assert_eq!(d, self.scratch.len(), "the memory is for another number of keys");
        let stream = keys.stream().clone();
        self.scratch.move_to(&stream)?;
        self.splits.move_to(&stream)?;
        let mut run = 1;
        if first == FirstPasses::Batch {
            assert!(d.is_power_of_two(), "batches sort a power of two of keys, not {d}");
            while run < d && 2 * run <= MAX_BATCH_LENGTH {
                // Siblings are run i of the first half and run i of the second: the kernel reads all A from one array.
                // SAFETY: the halves are read only, and `keys` is dropped after the work on its stream.
                let (a, b) = unsafe { (part(&stream, keys, 0..d / 2), part(&stream, keys, d / 2..d)) };
                stream.merge_batch(BatchKernel::Small, &a, &b, &mut self.scratch, 2 * run, run)?;
                swap(keys, &mut self.scratch);
                run *= 2;
            }
        }
        while run < d {
            for begin in (0..d).step_by(2 * run) {
                let (middle, end) = ((begin + run).min(d), (begin + 2 * run).min(d));
                // SAFETY: the runs are read only, and `out` is of another array. Both arrays are dropped after the work
                // on their stream, which is this one.
                let (a, b, mut out) = unsafe {
                    let (a, b) = (part(&stream, keys, begin..middle), part(&stream, keys, middle..end));
                    (a, b, part(&stream, &self.scratch, begin..end))
                };
                stream.merge(MergeKernel::MergePath, &a, &b, &mut out, &mut self.splits)?;
            }
            swap(keys, &mut self.scratch);
            run *= 2;
        }
        Ok(())
    }
}
