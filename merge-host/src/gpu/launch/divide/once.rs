//! A single division: three launches. The last one sorts the buckets of the division, or tiles of keys that the
//! division could not divide.

use super::super::{Address, Queue, bits};
use super::{DividePlan, Words};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::divide::count_digits;
use kernels_gpu::kernels::sort::divide::once::{self, CountOnce, DivideOnce, SortOnce, TileSort};
use kernels_gpu::kernels::sort::divide::usual_buckets;
use kernels_gpu::kernels::sort::divide::workspace::Job;
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::tuning::Tile;

impl DividePlan {
    /// Queues the single division of `keys`, with `scratch` as the other side. First clears the words of `order`, the
    /// lists behind them, and the words between both.
    ///
    /// # Safety
    /// Both sides and the words are in the GPU's memory, and the sides have the plan's number of keys. Nothing else
    /// uses them until the sort has ended. `words.order` is not 0, and the plan [`is_once`](Self::is_once).
    pub(in crate::gpu::launch) unsafe fn divide_once<B: Bits>(
        self,
        queue: &dyn Queue,
        coding: Coding<B>,
        [keys, scratch]: [Address; 2],
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, tile, .. } = self;
        let suffix = bits(size_of::<B>());
        let (keys, scratch) = (keys as *mut B, scratch as *mut B);
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let (first, count) = job.at.once(&plan);
        let end = words.lists + ((first + count) * size_of::<u32>()) as Address;
        // SAFETY: the words of the order, the words of the lists and the words between them are one range of the
        // workspace.
        unsafe { queue.clear(words.order, (end - words.order) as usize / size_of::<u32>())? };
        let parts = plan.parts(plan.n) as usize;
        let count = Shape {
            blocks: parts.min(once::ONCE_BLOCKS * queue.multiprocessors()),
            threads: count_digits::COUNT_THREADS as u32,
            shared_bytes: once::COUNT_ONCE_SHARED_BYTES,
        };
        // SAFETY: both sides have `plan.n` keys, and the words of the job are 0. The shape has the kernel's threads and
        // shared bytes.
        unsafe { queue.launch(&suffix, count, &CountOnce { job, keys, coding, random, always_divides: 0 })? };
        let divide = Shape {
            blocks: parts + 1,
            threads: tile.threads as u32,
            shared_bytes: once::shared_bytes(tile.keys(), size_of::<B>()),
        };
        let decodes = u32::from(coding != Coding::NONE);
        // SAFETY: both sides have `plan.n` keys, and the launch before has counted the digits. The shape has the
        // threads of `tile` and the kernel's shared bytes.
        unsafe { queue.launch(&suffix, divide, &DivideOnce { job, from: keys, to: scratch, coding, decodes }) }
    }

    /// Queues the sort of the buckets of [`divide_once`](Self::divide_once), in place. If keys were not divided and
    /// there is `tiles_to`, sorts each tile to the same indices of its array, one of both sides, decoded by its coding.
    ///
    /// # Safety
    /// The conditions of [`divide_once`](Self::divide_once) hold, which has been called before.
    pub(in crate::gpu::launch) unsafe fn sort_once<B: Bits>(
        self,
        queue: &dyn Queue,
        coding: Coding<B>,
        [keys, scratch]: [Address; 2],
        tiles_to: Option<(Address, Coding<B>)>,
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, bucket, .. } = self;
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let Tile { threads, items_per_thread } = bucket;
        let shape = Shape {
            blocks: usual_buckets(plan.n as usize, bucket.keys()),
            threads: threads as u32,
            shared_bytes: once::sort_shared_bytes(threads, items_per_thread, size_of::<B>()),
        };
        let (merges, (to, decode)) = (u32::from(tiles_to.is_some()), tiles_to.unwrap_or((keys, Coding::NONE)));
        let [keys, scratch, to] = [keys, scratch, to].map(|at| at as *mut B);
        let sort = SortOnce { job, keys, scratch, coding, tiles: TileSort { to, decode, merges }, random };
        // SAFETY: the sides, and `to`, which is one of both, have `plan.n` keys. The launches before have filled the
        // lists. The shape has the threads of `bucket` and the kernel's shared bytes.
        unsafe { queue.launch(&bits(size_of::<B>()), shape, &sort) }
    }
}
