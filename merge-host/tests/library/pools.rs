//! Calls from threads of pools, from all threads at once and nested: they end, and do not pile up.

use crate::external::slices::{Calls, FromSlice, Pairs, ToVec, pairs};
use merge_host::external::{self, Options, Source, Target};
use merge_host::{Engine, Error, SortOrder, parallel};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use std::{env, thread};

/// Runs `work` on a new thread, and fails if it takes longer than any of these tests should.
fn ends(work: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    let waited = is_done.recv_timeout(Duration::from_secs(120));
    assert!(waited != Err(mpsc::RecvTimeoutError::Timeout), "the work does not end");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// A number of keys that is worth two threads to sort.
const LARGE: usize = 1 << 19;

fn large() -> Vec<u32> {
    (0..LARGE as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

/// A source or a target that also calls other functions in its calls. These functions use other threads.
struct Nesting<T> {
    inner: T,
    engine: Engine,
    levels: usize,
    calls: usize,
}

impl<T> Nesting<T> {
    fn nest(&mut self) {
        self.calls += 1;
        if self.calls % 8 != 1 {
            return;
        }
        (0..10_000u64).into_par_iter().for_each(|i| assert!(i < 10_000));
        assert_eq!(parallel::map(0..100, |i| i).len(), 100);
        let mut keys = large();
        self.engine.sort(&mut keys).unwrap();
        assert!(keys.is_sorted());
        if self.levels > 0 && self.calls == 1 {
            sort_file(&self.engine, self.levels - 1);
        }
    }
}

impl<T: Source<u32, Error = String>> Source<u32> for Nesting<T> {
    type Error = String;

    fn len(&self) -> Option<u64> {
        self.inner.len()
    }

    fn read(&mut self, keys: &mut [u32], payload: &mut [u8]) -> Result<usize, String> {
        self.nest();
        self.inner.read(keys, payload)
    }
}

impl<T: Target<u32, Error = String>> Target<u32> for Nesting<T> {
    type Error = String;

    fn write(&mut self, keys: &mut [u32], payload: &mut [u8]) -> Result<(), String> {
        self.nest();
        self.inner.write(keys, payload)
    }
}

/// Sorts and merges more keys than memory holds, in several passes. Sources and targets nest `levels` levels deep.
fn sort_file(engine: &Engine, levels: usize) {
    for width in [0, 9] {
        let input = pairs::<u32>(6000, 1 << 31, width);
        let options = Options { width, fan_in: Some(3), ..Options::new(16 << 10) };
        let source = |pairs: Pairs<u32>| Nesting {
            inner: FromSlice::new(pairs, width),
            engine: engine.clone(),
            levels,
            calls: 0,
        };
        let begin = || {
            let inner = ToVec::new(width, Calls::default());
            Ok(Nesting { inner, engine: engine.clone(), levels: 0, calls: 0 })
        };
        let (target, summary) = external::sort(&options, source(input.clone()), begin, &mut &*engine, &mut ()).unwrap();
        assert!(summary.runs > 3 && target.inner.pairs == input.sorted(&options));
        let runs = (0..4).map(|_| source(pairs::<u32>(300, 1 << 31, width).sorted(&options))).collect();
        let (target, _) = external::merge(&options, runs, begin, engine, &mut ()).unwrap();
        assert!(target.inner.pairs.keys.is_sorted());
    }
}

/// Sorts several blocks by callbacks that use rayon and the engine. All callbacks take one lock.
fn sort_streamed(engine: &Engine, lock: &Mutex<()>) {
    let keys: Vec<u32> = (0..5 << 18).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
    let written = Mutex::new(vec![0; keys.len()]);
    let use_threads = || {
        let _held = lock.lock().unwrap();
        (0..1000u64).into_par_iter().for_each(|i| assert!(i < 1000));
        engine.sort(&mut large()).unwrap();
    };
    let read = |begin: usize, part: &mut [u32]| {
        use_threads();
        part.copy_from_slice(&keys[begin..][..part.len()]);
        Ok::<_, Error>(())
    };
    let write = |begin: usize, part: &[u32]| {
        use_threads();
        written.lock().unwrap()[begin..][..part.len()].copy_from_slice(part);
        Ok(())
    };
    engine.sort_streamed(SortOrder::Ascending, keys.len(), read, write).unwrap();
    assert!(written.into_inner().unwrap().is_sorted());
}

/// Engines with the threads that all engines share, with threads of their own, and with the threads of the current
/// pool.
fn engines() -> [Engine; 3] {
    [Engine::cpu(), Engine::cpu_with_threads(2).unwrap(), Engine::cpu().on_current_pool()]
}

#[test]
fn files_are_sorted_on_all_threads_of_the_global_pool() {
    ends(|| {
        for engine in engines() {
            (0..3 * rayon::current_num_threads()).into_par_iter().for_each(|_| sort_file(&engine, 0));
            rayon::broadcast(|_| sort_file(&engine, 0));
            parallel::for_each(0..2 * rayon::current_num_threads(), |_| sort_file(&engine, 0));
        }
    });
}

#[test]
fn files_are_sorted_on_all_threads_of_a_pool() {
    ends(|| {
        for threads in [1, 2, 5] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for engine in engines() {
                pool.broadcast(|_| sort_file(&engine, 0));
            }
        }
    });
}

#[test]
fn files_are_sorted_by_sources_that_sort_files() {
    ends(|| {
        let engine = Engine::cpu();
        sort_file(&engine, 1);
        rayon::broadcast(|_| sort_file(&engine, 1));
        ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| sort_file(&engine, 1));
    });
}

#[test]
fn files_are_sorted_by_threads_that_all_threads_of_the_global_pool_wait_for() {
    ends(|| {
        rayon::broadcast(|_| {
            thread::scope(|scope| _ = scope.spawn(|| sort_file_without_rayon(&Engine::cpu())));
        });
    });
}

/// [`sort_file`] with sources and targets that do not use the global pool.
fn sort_file_without_rayon(engine: &Engine) {
    for width in [0, 9] {
        let input = pairs::<u32>(200_000, 1 << 31, width);
        let options = Options { width, fan_in: Some(3), ..Options::new(512 << 10) };
        let begin = || Ok(ToVec::new(width, Calls::default()));
        let source = FromSlice { is_len_known: false, ..FromSlice::new(input.clone(), width) };
        let (target, summary) = external::sort(&options, source, begin, &mut &*engine, &mut ()).unwrap();
        assert!(summary.runs > 3 && target.pairs == input.sorted(&options));
    }
}

#[test]
fn callbacks_may_hold_a_lock_and_use_threads() {
    ends(|| {
        for engine in [Engine::cpu(), Engine::cpu_with_threads(2).unwrap()] {
            let lock = Mutex::new(());
            sort_streamed(&engine, &lock);
            rayon::broadcast(|_| sort_streamed(&engine, &lock));
            for threads in [1, 2] {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.broadcast(|_| sort_streamed(&engine, &lock));
            }
        }
    });
}

#[test]
fn a_thread_of_a_pool_may_hold_a_lock_while_it_sorts() {
    ends(|| {
        let (engine, lock) = (Engine::cpu(), Mutex::new(large()));
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| {
            (0..50).into_par_iter().for_each(|_| {
                let mut keys = lock.lock().unwrap();
                keys.reverse();
                engine.sort(&mut keys[..]).unwrap();
            });
        });
    });
}

/// Runs `work` in 200 tasks on a pool of two threads. Returns the greatest number of tasks that had begun and not ended
/// at one time.
fn most_at_once(work: impl Fn() + Sync) -> usize {
    let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|_| {
                most.fetch_max(at_once.fetch_add(1, Relaxed) + 1, Relaxed);
                work();
                at_once.fetch_sub(1, Relaxed);
            });
        }
    });
    most.into_inner()
}

#[test]
fn tasks_that_wait_do_not_pile_up() {
    ends(|| {
        let engine = Engine::cpu();
        assert!(most_at_once(|| _ = engine.sort(&mut large()).unwrap()) <= 2);
        let options = Options::new(64 << 10);
        let input = pairs::<u32>(12_000, 1 << 31, 0);
        let sort = || {
            let begin = || Ok(ToVec::new(0, Calls::default()));
            external::sort(&options, FromSlice::new(input.clone(), 0), begin, &mut &engine, &mut ()).unwrap();
        };
        assert!(most_at_once(sort) <= 2);
    });
}

#[test]
fn no_more_threads_work_than_there_are_processors() {
    ends(|| {
        let processors = thread::available_parallelism().unwrap().get();
        let pool = ThreadPoolBuilder::new().num_threads(64).build().unwrap();
        let check = |engine: &Engine| {
            let threads = Mutex::new(HashSet::new());
            let mut items = large();
            let compare = |a: &u32, b: &u32| {
                if a.is_multiple_of(4096) {
                    threads.lock().unwrap().insert(thread::current().id());
                }
                a.cmp(b)
            };
            // Other threads of the pool may do the next step.
            engine.sort_by(&mut items, compare).unwrap();
            assert!(items.is_sorted());
            let found = threads.into_inner().unwrap().len();
            assert!((1..=3 * processors).contains(&found), "{found} threads, {engine:?}");
        };
        for threads in [processors, 1000, 4096] {
            check(&Engine::cpu_with_threads(threads).unwrap());
        }
        pool.install(|| check(&Engine::cpu().on_current_pool()));
        pool.install(|| check(&Engine::cpu()));
    });
}

#[test]
fn an_engine_of_the_current_pool_uses_no_other_threads() {
    ends(|| {
        let pool = ThreadPoolBuilder::new().num_threads(2).thread_name(|_| "current".to_owned()).build().unwrap();
        let compare = |a: &u32, b: &u32| {
            assert_eq!(thread::current().name(), Some("current"));
            a.cmp(b)
        };
        pool.install(|| Engine::cpu_with_threads(2).unwrap().on_current_pool().sort_by(&mut large(), compare).unwrap());
    });
}

/// Names the case of a child process.
const CASE: &str = "POOLS_TEST_CASE";

/// The number of threads of this process.
#[cfg(target_os = "linux")]
fn threads_of_process() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[cfg(target_os = "linux")]
#[test]
fn engines_share_their_threads() {
    if env::var(CASE).is_err() {
        let name = "pools::engines_share_their_threads";
        let mut child = Command::new(env::current_exe().unwrap());
        let output = child.args(["--exact", name, "--test-threads=1"]).env(CASE, name).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let (before, processors) = (threads_of_process(), thread::available_parallelism().unwrap().get());
    let engines: Vec<Engine> = (0..200).map(|i| if i % 2 == 0 { Engine::auto() } else { Engine::cpu() }).collect();
    assert_eq!(threads_of_process(), before, "no thread is started before there is work");
    engines.iter().for_each(|engine| _ = engine.sort(&mut large()).unwrap());
    assert!(threads_of_process() <= before + processors, "{} threads", threads_of_process());
    for _ in 0..10 {
        Engine::auto().sort(&mut large()).unwrap();
    }
    // The helping threads end with the call, or all calls share them.
    for _ in 0..2 {
        sort_file_without_rayon(&engines[0]);
    }
    assert!(threads_of_process() <= before + 2 * processors, "{} threads", threads_of_process());
    // An engine with a number of threads has threads of its own, at most one for each processor.
    let own = Engine::cpu_with_threads(4096).unwrap();
    own.sort(&mut large()).unwrap();
    assert!(threads_of_process() <= before + 3 * processors, "{} threads", threads_of_process());
}
