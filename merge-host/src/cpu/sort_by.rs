//! Stable sort of elements of any type by a comparison: each thread sorts a run, and all threads merge the runs in
//! rounds.
//!
//! ```text
//!   items    │ 5 2 7 │ 3 9 1 │ 8 4 6 │ 2 2 0 │
//!   items    │ 2 5 7 │ 1 3 9 │ 4 6 8 │ 0 2 2 │     one thread sorts each run
//!   scratch  │ 1 2 3 5 7 9   │ 0 2 2 4 6 8   │     pairs of runs merged, in blocks of one length
//!   items    │ 0 1 2 2 2 3 4 5 6 7 8 9       │
//! ```
//!
//! A round copies the bits of elements and leaves the originals, which count until the round ends. So a comparison that
//! panics does not lose or duplicate an element: the elements stay in `items`, or are copied back from the scratch
//! memory.
//!
//! No two threads compare an element at the same time, and no element is compared after its bits have been copied.
//! Therefore elements need not be `Sync`, and a comparison may change a `Cell` in an element.
//!
//! The standard library sorts the runs. It aborts the program if it gets no scratch memory. So the same amount is
//! allocated before, and freed just before the standard library allocates.

use super::merge_by::merge_pairs_of_runs;
use super::moved::CopyBack;
use super::scratch::Scratch;
use super::workers::timed_whole;
use super::{Workers, memory};
use crate::timing::Steps;
use crate::{Error, parallel};
use std::cmp::Ordering;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// The size in bytes up to which the standard library's stable sort allocates scratch memory for all elements. For more
/// elements it allocates scratch memory for half.
const MAX_FULL_SCRATCH: usize = 8_000_000;
/// Bytes of scratch memory that the standard library's sort has on the stack.
const STACK_SCRATCH: usize = 4096;
/// The least number of elements that the standard library allocates scratch memory for, and the greatest number that it
/// sorts without scratch memory.
const MIN_SCRATCH: usize = 48;
const MAX_INSERTED: usize = 20;

/// Memory of the size that the standard library's stable sort allocates for `len` elements.
fn scratch_of_std<T>(len: usize) -> Result<Vec<MaybeUninit<T>>, Error> {
    let full = MAX_FULL_SCRATCH.checked_div(size_of::<T>()).unwrap_or(0).min(len);
    let count = full.max(len - len / 2).max(MIN_SCRATCH);
    let is_on_stack = len <= MAX_INSERTED || count.saturating_mul(size_of::<T>()) <= STACK_SCRATCH;
    memory::reserved(if is_on_stack { 0 } else { count })
}

/// Sorts a run on the calling thread. `reserve` is the memory of [`scratch_of_std`].
fn sort_run<T>(run: &mut [T], reserve: Vec<MaybeUninit<T>>, compare: &impl Fn(&T, &T) -> Ordering) {
    // Without this the compiler removes the allocation, because nothing uses it.
    drop(black_box(reserve));
    run.sort_by(compare);
}

/// [`sort_by`] on the threads of `workers`, unless the elements are one run, ascending or descending.
pub(crate) fn sort_by_on<T: Send>(
    workers: &Workers,
    items: &mut [T],
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) -> Result<Steps, Error> {
    if workers.threads_to_compare(items.len()) == 1 {
        return workers.sort_by_comparisons(items.len(), |threads| sort_by(items, compare, threads));
    }
    timed_whole(|| match sort_run_at_sight(items, compare) {
        true => Ok(Steps::default()),
        false => workers.sort_by_comparisons(items.len(), |threads| sort_by(items, compare, threads)),
    })
}

/// Sorts elements that are one run. Returns `false`, and has moved nothing, for others.
pub(super) fn sort_run_at_sight<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> bool {
    if const { size_of::<T>() == 0 } {
        // There is no order to see, as in a sort of the standard library, and a loop may have 2^64 steps.
        return true;
    }
    let Some([first, second]) = items.first_chunk() else { return true };
    let descends = compare(first, second).is_gt();
    let is_run = items.windows(2).all(|pair| compare(&pair[0], &pair[1]).is_gt() == descends);
    if is_run && descends {
        items.reverse();
    }
    is_run
}

/// Sorts `items` by `compare`, on up to `threads` threads. Stable.
pub(crate) fn sort_by<T: Send>(
    items: &mut [T],
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
    threads: usize,
) -> Result<(), Error> {
    if threads == 1 || items.is_empty() || size_of::<T>() == 0 {
        let reserve = scratch_of_std::<T>(items.len())?;
        sort_run(items, reserve, compare);
        return Ok(());
    }
    let mut scratch = Scratch::<T>::uninit(items.len())?;
    let run = items.len().div_ceil(threads.next_power_of_two());
    let mut runs = memory::reserved(items.len().div_ceil(run))?;
    for run in items.chunks_mut(run) {
        let reserve = scratch_of_std::<T>(run.len())?;
        runs.push((run, reserve));
    }
    memory::check_headroom()?;
    parallel::for_each_on(threads, runs, |(run, reserve)| sort_run(run, reserve, compare));
    let is_less = |a: &T, b: &T| compare(a, b).is_lt();
    merge_runs(items, &mut scratch, run, &is_less, threads);
    Ok(())
}

/// Merges the runs of `items`. Each run has `run` elements, and the last may have fewer.
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
        // SAFETY: `sort_by` has allocated `scratch` with the length of `items`. The merge has written the bits of each
        // element to one slot of `scratch`, for any results of `is_less`.
        let mut moved = unsafe { CopyBack::new(items, scratch) };
        if run >= moved.elements().len() {
            return moved.copy(threads);
        }
        let (slots, elements) = moved.slots_and_elements();
        merge_pairs_of_runs(elements, slots, run, is_less, threads);
        run *= 2;
        // SAFETY: the merge has written the bits of each element of the scratch memory to one slot of `items`.
        unsafe { moved.arrived() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::fresh_seed;
    use crate::cpu::merge_by::merge_by;
    use crate::cpu::sort_by_key::sort_by_key;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use rayon::ThreadPool;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// An element that owns memory and is not `Copy`, `Clone` or `Sync`.
    struct Element {
        key: Box<u32>,
        index: usize,
        compared: Cell<Option<String>>,
    }

    impl Element {
        /// The key. Reading it changes memory that the element owns.
        fn touched(&self) -> u32 {
            self.compared.set(Some(self.compared.take().map_or(String::new(), |text| text + ".")));
            *self.key
        }
    }

    /// Elements with keys below `values`.
    fn elements(len: usize, values: u32, random: &mut StdRng) -> Vec<Element> {
        let element =
            |index| Element { key: Box::new(random.random_range(0..values)), index, compared: Cell::default() };
        (0..len).map(element).collect()
    }

    /// Fails unless each of `len` elements is present once.
    fn check_complete(elements: &[Element], len: usize, what: &str) {
        let mut indices: Vec<usize> = elements.iter().map(|element| element.index).collect();
        indices.sort();
        assert!(indices.into_iter().eq(0..len), "{what}");
        assert!(elements.iter().all(|element| *element.key < u32::MAX), "{what}");
    }

    /// Lengths around every edge. Miri has time for a few only.
    fn lengths() -> Vec<usize> {
        if cfg!(miri) {
            vec![0, 1, 2, 3, 5, 33, 130]
        } else {
            (0..70).chain([99, 100, 101, 127, 128, 129, 1000, 4095, 4096, 4097, 20_000, 40_001]).collect()
        }
    }

    fn pools() -> impl Iterator<Item = (usize, ThreadPool)> {
        let threads: &[usize] = if cfg!(miri) { &[1, 3] } else { &[1, 2, 3, 4, 7] };
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        threads.iter().map(move |&threads| (threads, pool(threads)))
    }

    #[test]
    fn equal_elements_keep_their_order() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for (threads, pool) in pools() {
            for len in lengths() {
                for values in [1, 3, 1000, u32::MAX] {
                    let what = format!("{len} elements, {values} values, {threads} threads, seed {seed}");
                    for by_key in [false, true] {
                        let mut found = elements(len, values, &mut random);
                        let mut expected: Vec<_> = found.iter().map(|element| (*element.key, element.index)).collect();
                        expected.sort();
                        pool.install(|| match by_key {
                            false => sort_by(&mut found, &|a, b| a.touched().cmp(&b.touched()), threads),
                            true => sort_by_key(&mut found, &Element::touched, threads),
                        })
                        .unwrap();
                        let order = found.iter().map(|element| (*element.key, element.index));
                        assert!(order.eq(expected), "by key: {by_key}, {what}");
                    }
                }
            }
        }
    }

    #[test]
    fn ordered_and_reversed_elements() {
        for (threads, pool) in pools() {
            for len in lengths() {
                let mut items: Vec<Box<usize>> = (0..len).map(Box::new).collect();
                for _ in 0..3 {
                    pool.install(|| sort_by(&mut items, &|a, b| b.cmp(a), threads)).unwrap();
                    assert!(items.iter().map(|item| **item).eq((0..len).rev()), "{len} elements, {threads} threads");
                    pool.install(|| sort_by(&mut items, &|a, b| a.cmp(b), threads)).unwrap();
                    assert!(items.iter().map(|item| **item).eq(0..len), "{len} elements, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn a_panic_loses_and_duplicates_no_element() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for (threads, pool) in pools() {
            for len in [2, 40, 130, 3000] {
                if cfg!(miri) && len > 130 {
                    continue;
                }
                for by_key in [false, true] {
                    let calls = AtomicUsize::new(0);
                    let mut run = |most: usize| {
                        let mut items = elements(len, 50, &mut random);
                        calls.store(0, Relaxed);
                        let touched = |element: &Element| {
                            assert!(calls.fetch_add(1, Relaxed) < most, "enough");
                            element.touched()
                        };
                        let sort = || match by_key {
                            false => sort_by(&mut items, &|a, b| touched(a).cmp(&touched(b)), threads),
                            true => sort_by_key(&mut items, &touched, threads),
                        };
                        let result = catch_unwind(AssertUnwindSafe(|| pool.install(sort)));
                        let what = format!("{len} elements, {threads} threads, {most} calls, seed {seed}");
                        assert_eq!(result.is_err(), calls.load(Relaxed) > most, "{what}");
                        check_complete(&items, len, &what);
                        calls.load(Relaxed)
                    };
                    let all = run(usize::MAX);
                    let tries = if cfg!(miri) { 4 } else { 40 };
                    (0..tries).for_each(|i| _ = run(all * i / tries));
                }
            }
        }
    }

    #[test]
    fn an_order_that_is_none_loses_and_duplicates_no_element() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let orders = [Ordering::Less, Ordering::Equal, Ordering::Greater];
        for (threads, pool) in pools() {
            for len in lengths() {
                let mut items = elements(len, 9, &mut random);
                let count = AtomicUsize::new(seed as usize);
                let any = |_: &Element, _: &Element| orders[count.fetch_add(0x9e37_79b9, Relaxed) / 77 % 3];
                // The sort may panic.
                let _ = catch_unwind(AssertUnwindSafe(|| pool.install(|| sort_by(&mut items, &any, threads))));
                check_complete(&items, len, &format!("{len} elements, {threads} threads, seed {seed}"));
                for order in orders {
                    let _ =
                        catch_unwind(AssertUnwindSafe(|| pool.install(|| sort_by(&mut items, &|_, _| order, threads))));
                    check_complete(&items, len, &format!("{len} elements, {order:?}, {threads} threads"));
                }
            }
        }
    }

    #[test]
    fn elements_without_a_size() {
        for (threads, pool) in pools() {
            let mut items = [(); 1000];
            pool.install(|| sort_by(&mut items, &|_, _| Ordering::Greater, threads)).unwrap();
            pool.install(|| sort_by_key(&mut items, &|_| 3u8, threads)).unwrap();
        }
    }

    #[test]
    fn merges_of_any_two_lengths() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        for (threads, pool) in pools() {
            let lengths = if cfg!(miri) { vec![0, 1, 7] } else { vec![0, 1, 2, 3, 15, 16, 17, 100, 5001] };
            for (m, n) in lengths.iter().flat_map(|m| lengths.iter().map(move |n| (*m, *n))) {
                for values in [1, 5, u32::MAX] {
                    let what = format!("{m} and {n} of {values} values, {threads} threads, seed {seed}");
                    let run = |len, first, random: &mut StdRng| {
                        let mut run = elements(len, values, random);
                        run.sort_by_key(|element| *element.key);
                        run.iter_mut().for_each(|element| element.index += first);
                        run
                    };
                    let (a, b) = (run(m, 0, &mut random), run(n, m, &mut random));
                    let mut expected: Vec<_> = a.iter().chain(&b).map(|item| (*item.key, item.index)).collect();
                    expected.sort_by_key(|(key, _)| *key);
                    let is_less = |a: &Element, b: &Element| a.touched() < b.touched();
                    let merged = pool.install(|| merge_by(a, b, &is_less, threads)).unwrap();
                    assert!(merged.iter().map(|item| (*item.key, item.index)).eq(expected), "{what}");
                    // If a comparison panics, the runs drop each element once.
                    let (a, b) = (run(m, 0, &mut random), run(n, m, &mut random));
                    let calls = AtomicUsize::new(0);
                    let most = random.random_range(0..=m + n);
                    let is_less = |a: &Element, b: &Element| {
                        assert!(calls.fetch_add(1, Relaxed) < most, "enough");
                        a.touched() < b.touched()
                    };
                    let _ = catch_unwind(AssertUnwindSafe(|| pool.install(|| merge_by(a, b, &is_less, threads))));
                }
            }
        }
    }
}
