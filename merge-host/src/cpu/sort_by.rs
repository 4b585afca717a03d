//! Stable sort of elements of any type by a comparison: each thread sorts a run, and all threads merge the runs, in rounds.
//!
//! ```text
//!   items    │ 5 2 7 │ 3 9 1 │ 8 4 6 │ 2 2 0 │
//!   items    │ 2 5 7 │ 1 3 9 │ 4 6 8 │ 0 2 2 │     each run by a thread
//!   scratch  │ 1 2 3 5 7 9   │ 0 2 2 4 6 8   │     pairs of runs merged, in blocks of one length
//!   items    │ 0 1 2 2 2 3 4 5 6 7 8 9       │
//! ```
//!
//! A round copies the bits of elements and leaves those that it reads, which count until the round ends. So a comparison that
//! panics neither loses nor duplicates an element: the elements stay where they are, or are copied from the scratch memory
//! back to `items`.
//!
//! No element is compared by two threads at the same time, and none after its bits have been copied. Therefore elements need
//! not be `Sync`, and a comparison may change what is in a `Cell` of an element.

use super::merge_by::merge_pairs_of_runs;
use super::moved::CopyBack;
use super::scratch::Scratch;
use crate::{Error, parallel};
use std::cmp::Ordering;
use std::mem::MaybeUninit;

/// Sorts `items` by `compare`, on up to `threads` threads. Stable.
pub(crate) fn sort_by<T: Send>(
    items: &mut [T],
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
    threads: usize,
) -> Result<(), Error> {
    if threads == 1 || size_of::<T>() == 0 {
        items.sort_by(compare);
        return Ok(());
    }
    let mut scratch = Scratch::<T>::uninit(items.len())?;
    let run = items.len().div_ceil(threads.next_power_of_two());
    parallel::for_each_on(threads, items.chunks_mut(run), |run| run.sort_by(compare));
    let is_less = |a: &T, b: &T| compare(a, b).is_lt();
    merge_runs(items, &mut scratch, run, &is_less, threads);
    Ok(())
}

/// Merges the runs of `items`, which have `run` elements each, the last of them fewer.
fn merge_runs<T: Send>(
    items: &mut [T],
    scratch: &mut [MaybeUninit<T>],
    mut run: usize,
    is_less: &(impl Fn(&T, &T) -> bool + Sync),
    threads: usize,
) {
    while run < items.len() {
        if (run..items.len()).step_by(run).all(|begin| !is_less(&items[begin], &items[begin - 1])) {
            return;
        }
        merge_pairs_of_runs(items, scratch, run, is_less, threads);
        run *= 2;
        // SAFETY: a round writes the bits of each element to one slot.
        let mut moved = unsafe { CopyBack::new(items, scratch) };
        if run >= moved.elements().len() {
            return moved.copy(threads);
        }
        let (slots, elements) = moved.slots_and_elements();
        merge_pairs_of_runs(elements, slots, run, is_less, threads);
        run *= 2;
        // SAFETY: as above.
        unsafe { moved.arrived() };
    }
}
