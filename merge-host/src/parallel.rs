//! Parallel loops on the threads of the calling thread's rayon pool, or of the global pool if the thread belongs to
//! none.
//!
//! A thread takes the next item of an ordinary iterator when it has finished the item before:
//!
//! ```text
//!   items     │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ …
//!   thread 0  ├── 0 ──┼─ 2 ─┼──── 4 ────┤
//!   thread 1  ├ 1 ┼───── 3 ─────┼── 5 ──┤
//! ```
//!
//! An item is best a block of some thousand keys, because a thread locks a mutex to take it.
//!
//! Only the body of a loop is compiled for each type of keys and values. The code that starts the threads is compiled
//! once. Rayon's parallel iterators are compiled anew for every loop and type, which made up a third of the program
//! `gmerge`.

use crate::Error;
use crate::cpu::memory;
use crate::pool::{OwnPool, processors, run_in_each, spawn};
use rayon::ThreadPoolBuilder;
use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Calls `work` with every item.
///
/// ```
/// let mut squares = [0; 1000];
/// merge_host::parallel::for_each(squares.chunks_mut(100).enumerate(), |(block, squares)| {
///     squares.iter_mut().zip(100 * block..).for_each(|(square, i)| *square = i * i);
/// });
/// assert_eq!(squares[999], 999 * 999);
/// ```
///
/// # Panics
/// Panics if `work` does.
pub fn for_each<T: Send>(items: impl IntoIterator<Item = T, IntoIter: Send>, work: impl Fn(T) + Sync) {
    for_each_on(usize::MAX, items, work);
}

/// [`for_each`] on up to `threads` threads of the pool. 1 is the calling thread.
pub(crate) fn for_each_on<T: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) + Sync,
) {
    share(Threads::OfPool(threads), items, |item| {
        work(item);
        Next::Take
    });
}

/// Calls `work` with every item, unless one call fails. After an error no further call begins.
///
/// # Errors
/// One of the errors of `work`.
///
/// # Panics
/// Panics if `work` does.
pub fn try_for_each<T: Send, E: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    try_for_each_on(Threads::OfPool(usize::MAX), items, work)
}

/// [`try_for_each`] on the given threads.
pub(crate) fn try_for_each_on<T: Send, E: Send>(
    threads: Threads,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let error = Mutex::new(None);
    share(threads, items, |item| match work(item) {
        Ok(()) => Next::Take,
        Err(found) => {
            lock(&error).get_or_insert(found);
            Next::Stop
        }
    });
    into_inner(error).map_or(Ok(()), Err)
}

/// The results of `work`, in the order of the items.
///
/// ```
/// let lengths = merge_host::parallel::map(["one", "three"], str::len);
/// assert_eq!(lengths, [3, 5]);
/// ```
///
/// # Panics
/// Panics if `work` does.
pub fn map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    map_to(Threads::OfPool(usize::MAX), Vec::new(), items, work)
}

/// [`map`] on up to `threads` threads of the pool. The iterator has an upper bound on the number of its items. 1 is the
/// calling thread.
///
/// # Errors
/// [`Error::OutOfHostMemory`] if there is no memory for the results. `work` has not been called then.
pub(crate) fn try_map_on<T: Send, R: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>, Error> {
    let items = items.into_iter();
    let most = items.size_hint().1.expect("the iterator knows how many items there are at most");
    let results = memory::reserved(most)?;
    Ok(map_to(Threads::OfPool(threads), results, items, work))
}

/// [`map`] of a few items, each on a new thread. They wait for each other and not for threads of a pool.
#[cfg(feature = "gpu")]
pub(crate) fn map_on_new<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    map_to(Threads::New(usize::MAX), Vec::new(), items, work)
}

/// The results of `work`, in the memory of `results`, which is empty.
fn map_to<T: Send, R: Send>(
    threads: Threads,
    results: Vec<Option<R>>,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let results = Mutex::new(results);
    share(threads, items.into_iter().enumerate(), |(i, item)| {
        set(&results, i, work(item));
        Next::Take
    });
    // The iterator reuses the memory.
    into_inner(results).into_iter().map(|result| result.expect("there is a result for each item")).collect()
}

/// Sets element `i`, and extends the vector if it is too short. Compiled once for each type of results, not for each
/// loop.
fn set<R>(results: &Mutex<Vec<Option<R>>>, i: usize, result: R) {
    let mut results = lock(results);
    if results.len() <= i {
        results.resize_with(i + 1, || None);
    }
    results[i] = Some(result);
}

/// The first result of `work` that is not `None`, in the order of the items.
///
/// ```
/// let first = merge_host::parallel::find_first(0..100, |i| (i * i > 50).then_some(i));
/// assert_eq!(first, Some(8));
/// ```
///
/// # Panics
/// Panics if `work` does.
pub fn find_first<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> Option<R> + Sync,
) -> Option<R> {
    find_first_on(usize::MAX, items, work)
}

/// [`find_first`] on up to `threads` threads of the pool. 1 is the calling thread.
pub(crate) fn find_first_on<T: Send, R: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> Option<R> + Sync,
) -> Option<R> {
    let found: Mutex<Option<(usize, R)>> = Mutex::new(None);
    share(Threads::OfPool(threads), items.into_iter().enumerate(), |(i, item)| {
        let Some(result) = work(item) else { return Next::Take };
        let mut found = lock(&found);
        if found.as_ref().is_none_or(|(first, _)| i < *first) {
            *found = Some((i, result));
        }
        // Threads take items in order, so all items before this one have been taken.
        Next::Stop
    });
    Some(into_inner(found)?.1)
}

/// Calls both functions, in parallel if there is a thread for each.
///
/// # Panics
/// Panics if one of the functions does.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut of_a, mut of_b) = (None, None);
    let (mut a, mut b) = (Some(a), Some(b));
    // Each function runs once. It is taken out of an `Option`, so that the closures for rayon have one type.
    let mut run_a = || of_a = a.take().map(|a| a());
    let mut run_b = || of_b = b.take().map(|b| b());
    join_dyn(&mut run_a, &mut run_b);
    of_a.zip(of_b).expect("both have run")
}

fn join_dyn(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    if threads_of_pool() > 1 {
        rayon::join(a, b);
    } else {
        a();
        b();
    }
}

/// Shares of an output for each thread: more than one, so that other threads take over some from a thread that is
/// delayed.
const SHARES_PER_THREAD: usize = 16;

/// The best length of shares of `total` items that threads write to: a multiple of `block`, and at least 1. A `block`
/// of 0 counts as 1. If the multiple exceeds `usize::MAX`, the length is `usize::MAX`.
///
/// Threads that write to adjacent blocks of fresh memory delay each other when the system provides its pages. So shares
/// are as long as possible without leaving a thread idle.
///
/// ```
/// let length = merge_host::parallel::share_length(1_000_000, 1000);
/// assert!(length >= 1000 && length % 1000 == 0);
/// ```
pub fn share_length(total: usize, block: usize) -> usize {
    share_length_for(threads_for(total, block), total, block)
}

/// [`share_length`] for `threads` threads.
pub(crate) fn share_length_for(threads: usize, total: usize, block: usize) -> usize {
    let block = block.max(1);
    total
        .div_ceil(threads.saturating_mul(SHARES_PER_THREAD))
        .max(1)
        .checked_next_multiple_of(block)
        .unwrap_or(usize::MAX)
}

/// The threads that work.
#[derive(Clone, Copy)]
pub(crate) enum Threads {
    /// Threads of the pool, up to this number. 1 is the calling thread.
    OfPool(usize),
    /// This number of threads, started for the work. The calling thread takes part if it belongs to no pool. Otherwise
    /// it only waits.
    ///
    /// These threads belong to no other pool, because a waiting thread of a pool takes up other work of that pool.
    /// Suppose that the work holds a lock and uses the pool. Its thread could then begin another call of the work, and
    /// wait for the lock that it holds itself. Each new thread is a pool of its own, so the work can use rayon while
    /// all threads of the other pools wait for it.
    New(usize),
}

/// The next step of a thread after an item.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    /// Take another item.
    Take,
    /// End the loop: no thread takes another item.
    Stop,
}

/// Calls `work` with items until one call stops the loop.
fn share<T: Send>(
    threads: Threads,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> Next + Sync,
) {
    let items = items.into_iter();
    let most = items.size_hint().1.unwrap_or(usize::MAX);
    run_steps(threads.up_to(most), &Steps { items: Mutex::new(items.fuse()), work });
}

/// The steps of a loop, which threads share. This is a trait and no `Fn`, because the compiler makes three more
/// functions of each closure that becomes a `dyn Fn`.
trait Step: Sync {
    /// Works on the next item. There may be none.
    fn step(&self) -> Next;
}

struct Steps<I, F> {
    items: Mutex<I>,
    work: F,
}

impl<I: Iterator<Item: Send> + Send, F: Fn(I::Item) -> Next + Sync> Step for Steps<I, F> {
    fn step(&self) -> Next {
        // A statement of its own, so that the mutex is free during the work.
        let item = lock(&self.items).next();
        item.map_or(Next::Stop, &self.work)
    }
}

/// Steps on all of the threads until one step stops the loop. Compiled once.
fn run_steps(threads: Threads, steps: &dyn Step) {
    let is_stopped = AtomicBool::new(false);
    threads.run(&|| {
        while !is_stopped.load(Ordering::Relaxed) {
            if steps.step() == Next::Stop {
                is_stopped.store(true, Ordering::Relaxed);
            }
        }
    });
}

impl Threads {
    /// At most `most` threads.
    pub(crate) fn up_to(self, most: usize) -> Self {
        match self {
            Self::OfPool(threads) => Self::OfPool(threads.min(most)),
            Self::New(threads) => Self::New(threads.min(most)),
        }
    }

    /// Calls `work` on each of the threads.
    fn run(self, work: &(dyn Fn() + Sync)) {
        match self {
            Self::OfPool(threads) => on_pool(threads, work),
            Self::New(threads) => on_new_threads(threads, work),
        }
    }
}

/// Calls `work` on all threads of the pool, but on at most `most`.
fn on_pool(most: usize, work: &(dyn Fn() + Sync)) {
    let threads = if most <= 1 { 1 } else { most.min(threads_of_pool()) };
    if threads == 1 {
        return work();
    }
    rayon::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| work());
        }
        work();
    });
}

/// The number of threads of the pool for `count` items in blocks of `block`. Up to one block, the number of threads is
/// not looked up.
pub(crate) fn threads_for(count: usize, block: usize) -> usize {
    if count <= block { 1 } else { threads() }
}

/// The number of threads of the pool, but at most the number of processors.
pub(crate) fn threads() -> usize {
    threads_of_pool().min(processors())
}

/// The number of threads of the pool, or 1 if it is the global pool and the system refuses to start its threads.
fn threads_of_pool() -> usize {
    /// Whether the global pool runs. Rayon panics if it has to use a pool that it cannot start.
    static GLOBAL_POOL_RUNS: LazyLock<bool> = LazyLock::new(|| {
        let error = ThreadPoolBuilder::new().spawn_handler(|thread| spawn(thread).map(drop)).build_global().err();
        // An error without a source means that the pool has been started before.
        error.is_none_or(|error| error.source().is_none())
    });
    if rayon::current_thread_index().is_some() || *GLOBAL_POOL_RUNS { rayon::current_num_threads() } else { 1 }
}

/// Calls `work` on `threads` threads. All are new, except the calling thread if it belongs to no pool. If the system
/// refuses to start a thread, the started threads work, or the calling thread if there are none.
fn on_new_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    let is_free = rayon::current_thread_index().is_none();
    let new = if is_free { threads.saturating_sub(1) } else { threads };
    let pools: Vec<OwnPool> = (0..new).map_while(|_| OwnPool::start("merge-own", 1).ok()).collect();
    let pools_of_one: Vec<_> = pools.iter().map(OwnPool::pool).collect();
    run_in_each(&pools_of_one, is_free || pools.is_empty(), work);
}

/// Locks data that is consistent even if another thread has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The contents of a mutex, with data that is consistent even if another thread has panicked.
fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Barrier, Condvar};
    use std::time::Duration;

    /// Runs `test` on the calling thread alone, and on the threads of a pool.
    fn with_threads(test: impl Fn() + Sync) {
        test();
        for threads in [1, 2, 5] {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&test);
        }
    }

    #[test]
    fn every_item_is_taken_once() {
        with_threads(|| {
            for count in [0, 1, 2, 100] {
                let calls: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                for_each(&calls, |calls| _ = calls.fetch_add(1, Ordering::Relaxed));
                assert!(calls.iter().all(|calls| calls.load(Ordering::Relaxed) == 1));
                assert!(map(0..count, |i| i * i).into_iter().eq((0..count).map(|i| i * i)));
            }
        });
    }

    #[test]
    fn threads_work_at_the_same_time() {
        let all = Barrier::new(3);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        pool.install(|| for_each(0..3, |_| _ = all.wait()));
        try_for_each_on(Threads::New(3), 0..3, |_| Ok::<_, ()>(_ = all.wait())).unwrap();
        let both = Barrier::new(2);
        pool.install(|| join(|| both.wait(), || both.wait()));
    }

    #[test]
    fn no_call_begins_after_an_error() {
        with_threads(|| {
            let calls = AtomicUsize::new(0);
            let fail = |i| {
                calls.fetch_add(1, Ordering::Relaxed);
                if i == 3 { Err(i) } else { Ok(()) }
            };
            assert_eq!(try_for_each(0..1_000_000, fail), Err(3));
            assert_eq!(try_for_each_on(Threads::New(4), 0..1_000_000, fail), Err(3));
            assert!(calls.load(Ordering::Relaxed) < 2_000_000);
            assert_eq!(try_for_each(0..3, fail), Ok(()));
        });
    }

    #[test]
    fn the_first_is_found_though_a_later_one_is_found_sooner() {
        let (found_later, changed) = (Mutex::new(false), Condvar::new());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let find = |i| match i {
            5 => {
                let wait = changed.wait_timeout_while(lock(&found_later), Duration::from_secs(60), |later| !*later);
                assert!(!wait.unwrap().1.timed_out());
                Some(i)
            }
            6 => {
                *lock(&found_later) = true;
                changed.notify_all();
                Some(i)
            }
            _ => None,
        };
        assert_eq!(pool.install(|| find_first(0..100, find)), Some(5));
        assert_eq!(find_first(0..5, find), None);
    }

    #[test]
    fn loops_may_be_nested() {
        with_threads(|| {
            let sum = |count: usize| map(0..count, |i| i).into_iter().sum::<usize>();
            let sums = map(0..20, |i| map(0..i, sum).into_iter().sum::<usize>());
            let expected = |i: usize| (0..i).map(|j| (0..j).sum::<usize>()).sum();
            assert_eq!(sums, (0..20).map(expected).collect::<Vec<usize>>());
        });
    }

    #[test]
    #[should_panic(expected = "item 7")]
    fn a_panic_is_passed_on() {
        for_each(0..10, |i| assert!(i != 7, "item {i}"));
    }
}
