//! Stacks of the emulated threads: each is mapped once, with a guard page, and reused.

use corosensei::stack::DefaultStack;
use std::{
    io,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    vec::Vec,
};

/// Generous, for kernels compiled without optimisation. Only accessed pages use memory.
const STACK_BYTES: usize = 256 << 10;

/// Maximum number of stacks in use by all launches of the process. A stack takes two mappings, and Linux allows 65 530
/// per process. Launches beyond this limit wait.
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

/// The stacks of one launch, which return to the pool at its end.
pub(super) struct Stacks {
    idle: Vec<DefaultStack>,
    reserved: usize,
}

impl Stacks {
    /// Waits until `count` stacks, far fewer than [`MOST`], may be taken.
    pub(super) fn reserve(count: usize) -> Self {
        let mut pool = pool();
        while pool.reserved + count > MOST {
            pool = RELEASED.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        pool.reserved += count;
        Self { idle: Vec::new(), reserved: count }
    }

    /// The stack returned last, if any, since it is in the cache.
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
