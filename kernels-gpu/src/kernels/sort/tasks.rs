//! Tasks of a launch, in phases that wait for each other.
//!
//! ```text
//!   tasks      │ 0 1 2 3 │ 4 5 6 7 │ 8 9 …       blocks take them in ascending order
//!   phases     │    0    │    1    │    2         a task waits until all tasks of the phases before are finished
//! ```
//!
//! Running blocks hold all earlier tasks, so that the launch ends whatever the number of blocks that run at once.

use cuda_std::prelude::*;

/// The counters of the tasks: words that are 0 before the launch, and that nothing else uses.
#[derive(Clone, Copy)]
pub(super) struct Tasks {
    /// One word: the number of tasks taken.
    pub taken: GlobalMut<u32>,
    /// Numbers of finished tasks, for example one for each phase.
    pub finished: GlobalMut<u32>,
}

impl Tasks {
    /// Takes the next task of any phase. Calls return distinct numbers, in ascending order.
    #[inline(always)]
    #[track_caller]
    pub fn take(self) -> u32 {
        self.taken.fetch_add(0, 1)
    }

    /// Publishes that `tasks` more tasks are finished, in counter `counter`. One thread makes this call, after a
    /// barrier of the block.
    #[inline(always)]
    #[track_caller]
    pub fn finish(self, counter: u32, tasks: u32) {
        thread::device_fence();
        self.finished.fetch_add(counter as usize, tasks);
    }

    /// Waits until `tasks` tasks are finished, by counter `counter`, with pauses of `pause` nanoseconds if that is not
    /// 0. Their writes are visible to the block after the next barrier.
    #[inline(always)]
    #[track_caller]
    pub fn wait_for(self, counter: u32, tasks: u32, pause: u32) {
        while self.finished.load(counter as usize) < tasks {
            if pause > 0 {
                thread::sleep(pause);
            }
        }
        thread::device_fence();
    }
}
