//! Stacks for the emulated threads: mapped once, with a guard page each, and used again and again.

use corosensei::stack::DefaultStack;
use std::{
    io,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    vec::Vec,
};

/// Generous, for kernels compiled without optimisation; only touched pages take memory.
const STACK_BYTES: usize = 256 << 10;

/// Stacks in use by all launches of the process together. Each takes two mappings, of which Linux allows a process
/// 65 530, so more launches at a time than this wait for each other.
const MOST: usize = 16 << 10;

struct Pool {
    idle: Vec<DefaultStack>,
    reserved: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), reserved: 0 });
static RELEASED: Condvar = Condvar::new();

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stacks of one launch, which go back to the pool at its end.
pub(super) struct Stacks {
    idle: Vec<DefaultStack>,
    reserved: usize,
}

impl Stacks {
    /// Waits until `count` stacks, of which there are at most 1024 in a block, may be taken.
    pub(super) fn reserve(count: usize) -> Self {
        let mut pool = pool();
        while pool.reserved + count > MOST {
            pool = RELEASED.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        pool.reserved += count;
        Self { idle: Vec::new(), reserved: count }
    }

    /// The stack given back last, if there is one, because it is in the cache.
    pub(super) fn take(&mut self) -> io::Result<DefaultStack> {
        if let Some(stack) = self.idle.pop() {
            return Ok(stack);
        }
        let pooled = pool().idle.pop();
        pooled.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)
    }

    pub(super) fn give(&mut self, stack: DefaultStack) {
        self.idle.push(stack);
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut pool = pool();
        pool.idle.append(&mut self.idle);
        pool.reserved -= self.reserved;
        RELEASED.notify_all();
    }
}
