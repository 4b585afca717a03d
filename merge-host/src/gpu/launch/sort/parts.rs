//! The sort of more keys than divisions can count: parts are sorted one after another, and merged in pairs.
//!
//! ```text
//!   keys      │ part 0 │ part 1 │ part 2 │ part 3 │     each is sorted, with the scratch as its workspace
//!   scratch   │      0, 1       │      2, 3       │
//!   keys      │            0, 1, 2, 3            │
//! ```

use super::super::merge::{Runs, merge_in_pairs, two_phase};
use super::super::{Address, Arrays, Queue};
use super::layout::Workspace;
use super::{Planned, sort};
use crate::{Error, SortKernel};
use kernels_gpu::key::Bits;
use std::array;

/// The number of parts: two passes of merges end in the array. Parts that are too long have parts themselves.
const PARTS: usize = 4;

impl<B: Bits> Planned<B> {
    /// Queues the sort of parts, and the passes of merges. The parts' workspace is the workspace at this address.
    pub(super) unsafe fn sort_in_parts(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { plan, coding, workspace: Workspace { scratch, splits, .. }, .. } = *self;
        // A count has been used before: keys behind the first ones are the last in the order.
        let at = Arrays { count: 0, ..self.at };
        let scratch = Arrays { keys: scratch.0, values: scratch.1, ..at };
        let (n, most) = (at.len, at.len.div_ceil(PARTS));
        let lengths: [usize; PARTS] = array::from_fn(|i| most.min(n - n.min(i * most)));
        // SAFETY: this function requires the conditions of `sort`. Parts lie inside the arrays, and do not overlap. The
        // workspace of a part is less than a copy of all keys.
        unsafe {
            if plan.indexes {
                self.set_indices(queue, 0)?;
            }
            let mut begin = 0;
            for len in lengths {
                sort::<B>(queue, (SortKernel::Auto, coding), at.part::<B>(begin, len), false, workspace)?;
                begin += len;
            }
        }
        merge_in_pairs::<B>(&lengths, [at, scratch], |runs, out| {
            // SAFETY: the runs and `out` are parts of the array and of the scratch. The plan's workspace has the splits
            // of a merge of all keys.
            unsafe { two_phase::<B>(queue, coding, Runs::Apart(runs), out, splits) }
        })
    }
}
