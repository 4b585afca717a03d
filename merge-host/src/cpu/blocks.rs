//! Loops over the blocks of an output, on one thread or on several.

use super::run::RunMut;
use rayon::prelude::*;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Keys that a callback reads or writes at once.
const CALLBACK_BLOCK: usize = 1 << 18;

/// Divides `out` into blocks of `block` keys, of which the last may be shorter, and calls `fill` with the index of each
/// block's first key and the block.
pub(super) fn for_each_block<K: Send, V: Send>(
    mut out: RunMut<K, V>,
    block: usize,
    threads: usize,
    fill: impl Fn(usize, RunMut<K, V>) + Sync,
) {
    let fill = |(i, out)| fill(i * block, out);
    if threads == 1 {
        out.chunks(block).enumerate().for_each(fill);
    } else {
        out.par_chunks(block).enumerate().for_each(fill);
    }
}

/// Calls `work` as [`try_for_each_callback`] does, on the threads of the current pool.
pub(crate) fn try_for_each_callback_in_pool<K: Send, E: Send>(
    keys: &mut [K],
    work: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let blocks = keys.par_chunks_mut(CALLBACK_BLOCK).enumerate();
    blocks.try_for_each(|(i, block)| work(i * CALLBACK_BLOCK, block))
}

/// [`for_each_block`] of keys alone.
pub(super) fn for_each_block_of_keys<K: Send>(
    out: &mut [K],
    block: usize,
    threads: usize,
    fill: impl Fn(usize, &mut [K]) + Sync,
) {
    for_each_block(RunMut::of_keys(out), block, threads, |begin, out| fill(begin, out.keys));
}

/// Calls `work`, which the user of the library provides, with blocks of `keys` and the index of each block's first key,
/// on up to `threads` threads. After an error no further call begins; gives one of the errors.
///
/// The threads belong to no pool, because a thread of a pool that waits takes up other work of that pool. If `work` held
/// a lock and called an engine, its thread could begin another call of `work`, and wait for the lock that it holds itself.
pub(crate) fn try_for_each_callback<K: Send, E: Send>(
    keys: &mut [K],
    threads: usize,
    work: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let blocks = Mutex::new(Some(keys.chunks_mut(CALLBACK_BLOCK).enumerate()));
    let lock = || blocks.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || lock().as_mut()?.next();
    let work = || {
        while let Some((i, block)) = next() {
            work(i * CALLBACK_BLOCK, block).inspect_err(|_| *lock() = None)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // If the system refuses to start a thread, those that it started and this one do the work.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..threads).map_while(start).collect();
        let join = |helper: thread::ScopedJoinHandle<_>| helper.join().unwrap_or_else(|panic| resume_unwind(panic));
        helpers.into_iter().map(join).fold(work(), Result::and)
    })
}
