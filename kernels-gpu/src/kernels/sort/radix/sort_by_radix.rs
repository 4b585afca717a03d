//! The kernel: all phases of a radix sort.

use super::count::count_share;
use super::look_back::{MOST_KEYS, TILE_WORDS, own_tiles};
use super::sweep::{Memory, TaskWords, sweep_tile};
use super::{Job, Workspace};
use crate::block::shared_memory;
use crate::elements::Elements;
use crate::kernels::sort::is_whole_warps;
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: sorts the keys of `at`, with their values, unless the keys are already in order or divided. The first pass
/// encodes keys by `coding`, and the last one decodes them. If `indexes` is not 0, the first pass replaces each value
/// by the index of its key. There are no values if `V` is `()`.
///
/// # Safety
/// The requirements of [`Job`] are met. All arrays of `at` and `scratch` have capacity for `n` elements and do not
/// overlap. Blocks have `NT` threads, a multiple of 128, with [`shared_bytes`](super::sweep::shared_bytes), for tiles
/// of `NT * VT` keys. `OWN` is the result of [`own_tiles`].
#[kernel(
    u32 = <
        u32, (), { ROW.sort_by_radix.of(4, 0).threads }, { ROW.sort_by_radix.of(4, 0).items_per_thread },
        { own_tiles(ROW.sort_by_radix.of(4, 0).threads) }
    > within (ROW.sort_by_radix.of(4, 0).threads, ROW.sort_by_radix.of(4, 0).blocks),
    u32small = <
        u32, (), { ROW.sort_by_radix_small.of(4, 0).threads }, { ROW.sort_by_radix_small.of(4, 0).items_per_thread },
        { own_tiles(ROW.sort_by_radix_small.of(4, 0).threads) }
    > within (ROW.sort_by_radix_small.of(4, 0).threads, ROW.sort_by_radix_small.of(4, 0).blocks),
    u32middle = <
        u32, (), { ROW.sort_by_radix_middle.of(4, 0).threads }, { ROW.sort_by_radix_middle.of(4, 0).items_per_thread },
        { own_tiles(ROW.sort_by_radix_middle.of(4, 0).threads) }
    > within (ROW.sort_by_radix_middle.of(4, 0).threads, ROW.sort_by_radix_middle.of(4, 0).blocks),
    u32v4 = <
        u32, u32, { ROW.sort_by_radix.of(4, 4).threads }, { ROW.sort_by_radix.of(4, 4).items_per_thread },
        { own_tiles(ROW.sort_by_radix.of(4, 4).threads) }
    > within (ROW.sort_by_radix.of(4, 4).threads, ROW.sort_by_radix.of(4, 4).blocks),
    u32v4small = <
        u32, u32, { ROW.sort_by_radix_small.of(4, 4).threads }, { ROW.sort_by_radix_small.of(4, 4).items_per_thread },
        { own_tiles(ROW.sort_by_radix_small.of(4, 4).threads) }
    > within (ROW.sort_by_radix_small.of(4, 4).threads, ROW.sort_by_radix_small.of(4, 4).blocks),
    u32v4middle = <
        u32, u32, { ROW.sort_by_radix_middle.of(4, 4).threads }, { ROW.sort_by_radix_middle.of(4, 4).items_per_thread },
        { own_tiles(ROW.sort_by_radix_middle.of(4, 4).threads) }
    > within (ROW.sort_by_radix_middle.of(4, 4).threads, ROW.sort_by_radix_middle.of(4, 4).blocks),
    u32v8 = <
        u32, u64, { ROW.sort_by_radix.of(4, 8).threads }, { ROW.sort_by_radix.of(4, 8).items_per_thread },
        { own_tiles(ROW.sort_by_radix.of(4, 8).threads) }
    > within (ROW.sort_by_radix.of(4, 8).threads, ROW.sort_by_radix.of(4, 8).blocks),
)]
pub unsafe fn sort_by_radix<B: Bits, V: Word, const NT: usize, const VT: usize, const OWN: usize>(
    job: Job,
    at: Elements<B, V>,
    scratch: Elements<B, V>,
    coding: Coding<B>,
    indexes: u32,
) {
    const { assert!(size_of::<B>() == 4, "four sweeps are all bits of a key, and a key has the counts of two digits") };
    const {
        assert!(
            NT.is_multiple_of(128) && is_whole_warps(NT),
            "threads that look back have two digits each, and a scan has words for 32 warps"
        )
    };
    const { assert!(NT * VT <= MOST_KEYS, "the counts of a tile have 16 bits") };
    const { assert!(NT * VT >= TILE_WORDS as usize, "the counts of a tile are where its keys have been") };
    const { assert!(OWN >= own_tiles(NT), "a thread adds up all tiles that are its own") };
    const { shared_memory::check(Memory::<B, V>::bytes(NT, VT)) };
    // SAFETY: the caller passes a `Job` that meets its requirements, and this launch does not write to `order`.
    if unsafe { job.detection() }.is_done() {
        return;
    }
    // SAFETY: the launch has `shared_bytes`. Thread 0 alone writes `words`: the task before the first barrier of a
    // round, and the next number after the last barrier. The other threads read between the two. The functions of a
    // task synchronize the accesses to `memory`, and a barrier follows each task.
    let Memory { task: memory, words } = unsafe { Memory::<B, V>::at_start(NT, VT) };
    // SAFETY: the caller passes a `Job` that meets its requirements, and no other kernel uses its words during this
    // launch.
    let workspace = || unsafe { job.open() };
    if thread::thread_idx_x() == 0 {
        words.begin(workspace().tasks().take());
    }
    loop {
        if thread::thread_idx_x() == 0 {
            begin_task(&job, workspace(), words);
        }
        thread::sync_threads();
        let phase = words.phase();
        if phase > job.sweeps {
            return;
        }
        // SAFETY: all `NT` threads of the block make this call, after a barrier. They have the same task: a share below
        // `shares`, or a tile below `tiles`. A barrier comes before the next task uses the memory.
        unsafe {
            if phase == 0 {
                count_share::<B, NT>(&job, at.keys, coding, words.task(), memory.count);
            } else {
                sweep_tile::<B, V, NT, VT, OWN>(&job, [at, scratch], words, coding, indexes != 0, memory.sweep);
            }
        }
        thread::sync_threads();
        // Not earlier: other tiles wait until this one is counted.
        if thread::thread_idx_x() == 0 {
            words.set_next(workspace().tasks().take());
        }
    }
}

/// Sets the next task. One thread makes this call. If the task is of another phase than the one before, it first
/// reports the tasks of that phase as finished, and waits for all tasks of the phases before.
#[inline(always)]
#[track_caller]
fn begin_task(job: &Job, workspace: Workspace, words: TaskWords) {
    let (phase, task) = job.phase_of(words.next());
    let before = words.phase();
    if before < phase {
        workspace.tasks().finish(before, words.begun());
        if phase <= job.sweeps {
            workspace.tasks().wait_for(phase - 1, job.tasks(phase - 1), 0);
        }
    }
    words.set(phase, task);
}
