//! The sort of more keys than divisions can count: parts are sorted one after another, and merged in pairs.
//!
//! ```text
//!   keys      │ part 0 │ part 1 │ part 2 │ part 3 │     each is sorted, with the scratch as its workspace
//!   scratch   │      0, 1       │      2, 3       │
//!   keys      │            0, 1, 2, 3            │
//! ```

use super::super::merge::{Runs, two_phase};
use super::super::{Address, Arrays, Queue};
use super::{Planned, sort};
use crate::{Error, SortKernel};
use kernels_gpu::key::Bits;

/// The number of parts: two passes of merges end in the array. Parts that are too long have parts themselves.
const PARTS: usize = 4;

impl<B: Bits> Planned<B> {
    /// Queues the sort of parts, and the passes of merges. The parts' workspace is the workspace at this address.
    pub(super) unsafe fn sort_in_parts(&self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let Self { plan, coding, at, workspace: parts, .. } = *self;
        let (n, mut run) = (at.len, at.len.div_ceil(PARTS));
        let scratch = Arrays { keys: parts.scratch.0, values: parts.scratch.1, ..at };
        let run_at = |all: Arrays, begin: usize, len: usize| {
            let begin = begin.min(n);
            Arrays { count: 0, ..all.part::<B>(begin, len.min(n - begin)) }
        };
        // SAFETY: this function requires the conditions of `sort`. Parts lie inside the arrays, and do not overlap. The
        // workspace of a part is less than a copy of all keys. Merges write the scratch and the array in turn, and have
        // the splits of the plan's workspace.
        unsafe {
            if plan.indexes {
                self.set_indices(queue, 0)?;
            }
            for begin in (0..n).step_by(run) {
                sort::<B>(queue, (SortKernel::Auto, coding), run_at(at, begin, run), false, workspace)?;
            }
            for [from, to] in [[at, scratch], [scratch, at]] {
                for begin in (0..n).step_by(2 * run) {
                    let runs = [run_at(from, begin, run), run_at(from, begin + run, run)];
                    two_phase::<B>(queue, coding, Runs::Apart(runs), run_at(to, begin, 2 * run), parts.splits)?;
                }
                run *= 2;
            }
        }
        Ok(())
    }
}
