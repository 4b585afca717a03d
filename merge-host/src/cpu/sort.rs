//! Merge sort: each thread sorts a run, then pairs of runs are merged along the merge path until one is left.
//!
//! ```text
//!   keys     ├── run ──┼── run ──┼── run ──┼── run ──┤    sorted by one thread each
//!   scratch  ├───────────────────┼───────────────────┤    merged by all
//!   keys     ├───────────────────────────────────────┤    merged by all
//! ```

use super::run::{Run, RunMut};
use super::{merge_path, radix};
use crate::sorted::first_unsorted_in_block;
use crate::{Error, Key};
use kernels_gpu::key::Bits;
use rayon::prelude::*;

/// Below this, a comparison sort beats counting digits, and needs no scratch memory.
const SMALL: usize = 1 << 10;

/// Sorts `keys`. If `threads` is more than 1, this thread belongs to the pool to use.
pub(super) fn sort<K: Key>(keys: &mut [K], threads: usize) -> Result<(), Error> {
    // Equal keys have equal bits, so that nobody can tell a stable sort of keys from another.
    if keys.len() <= SMALL {
        radix::sort_leaf(keys, &mut [K::Bits::MIN; SMALL]);
        return Ok(());
    }
    // Ends early unless the keys are sorted, or nearly.
    if first_unsorted_in_block(keys).is_none() {
        return Ok(());
    }
    // Zeroed memory comes from the system untouched: each thread maps the part that it writes to first.
    let mut scratch = bytemuck::allocation::try_zeroed_slice_box::<K>(keys.len())
        .map_err(|()| Error::OutOfHostMemory { needed: size_of_val(keys) as u64 })?;
    if threads == 1 {
        radix::sort(keys, &mut scratch, false);
        return Ok(());
    }

    // Every pass of merges moves the keys to the other memory, and the last one is to end in `keys`.
    let mut run = keys.len().div_ceil(threads);
    let runs = keys.len().div_ceil(run);
    let passes = runs.next_power_of_two().ilog2();
    let start_in_scratch = passes % 2 == 1;
    let pairs = keys.par_chunks_mut(run).zip(scratch.par_chunks_mut(run));
    pairs.for_each(|(keys, scratch)| radix::sort(keys, scratch, start_in_scratch));

    let (mut from, mut to) = if start_in_scratch { (&mut *scratch, keys) } else { (keys, &mut *scratch) };
    while run < from.len() {
        let pairs = from.par_chunks(2 * run).zip(to.par_chunks_mut(2 * run));
        pairs.for_each(|(from, to)| {
            // The last pair may have a shorter second run, or none.
            let (a, b) = from.split_at(run.min(from.len()));
            merge_path::merge(Run::of_keys(a), Run::of_keys(b), RunMut::of_keys(to), threads);
        });
        run *= 2;
        (from, to) = (to, from);
    }
    Ok(())
}
