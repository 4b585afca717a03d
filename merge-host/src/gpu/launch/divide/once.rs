//! One division, where it is enough: three launches, of which the last one sorts what the division has made, or tiles
//! of keys that it could not divide.

use super::super::{Address, Queue, bits};
use super::{DividePlan, Words};
use crate::Error;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::divide::count_digits;
use kernels_gpu::kernels::sort::divide::once::{self, CountOnce, DivideOnce, SortOnce};
use kernels_gpu::kernels::sort::divide::usual_buckets;
use kernels_gpu::kernels::sort::divide::workspace::Job;
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::tuning::Tile;

impl DividePlan {
    /// Queues the one division of `keys`, with `scratch` as the other side. Words that are between those of `order` and
    /// the lists, which are behind these, become 0 before.
    ///
    /// # Safety
    /// All of these are in the GPU's memory, of the plan's number of keys, and nothing else uses them until the sort
    /// has ended. The words of `order` are some, and this [`is_once`](Self::is_once).
    pub(in crate::gpu::launch) unsafe fn divide_once<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        [keys, scratch]: [Address; 2],
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, tile, .. } = self;
        let suffix = bits(size_of::<K>());
        let (keys, scratch) = (keys as *mut K::Bits, scratch as *mut K::Bits);
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let (first, count) = job.at.once(&plan);
        let end = words.lists + ((first + count) * size_of::<u32>()) as Address;
        // SAFETY: these are the words of the order and of the lists, and what is between them.
        unsafe { queue.clear(words.order, (end - words.order) as usize / size_of::<u32>())? };
        let parts = plan.parts(plan.n) as usize;
        let count = Shape {
            blocks: parts.min(once::ONCE_BLOCKS * queue.multiprocessors()),
            threads: count_digits::COUNT_THREADS as u32,
            shared_bytes: once::COUNT_ONCE_SHARED_BYTES,
        };
        // SAFETY: the caller's promise for the arrays, here and below; shapes are those that the kernels ask for.
        unsafe { queue.launch(&suffix, count, &CountOnce { job, keys, coding, random, always_divides: 0 })? };
        let divide = Shape {
            blocks: parts + 1,
            threads: tile.threads as u32,
            shared_bytes: once::shared_bytes(tile.keys(), size_of::<K>()),
        };
        let decodes = u32::from(coding != Coding::NONE);
        // SAFETY: as above.
        unsafe { queue.launch(&suffix, divide, &DivideOnce { job, from: keys, to: scratch, coding, decodes }) }
    }

    /// Queues the sort of what [`divide_once`](Self::divide_once) has made, in place; or else, if there is `tiles_to`,
    /// the sort of each tile to the same indices of that array, one of both sides, as that coding decodes them.
    ///
    /// # Safety
    /// As for `divide_once`.
    pub(in crate::gpu::launch) unsafe fn sort_once<K: Key>(
        self,
        queue: &impl Queue,
        coding: Coding<K::Bits>,
        [keys, scratch]: [Address; 2],
        tiles_to: Option<(Address, Coding<K::Bits>)>,
        words: Words,
        random: u64,
    ) -> Result<(), Error> {
        let Self { plan, bucket, .. } = self;
        let job = Job::new(words.lists as *mut u32, words.order as *mut u32, plan);
        let Tile { threads, items_per_thread } = bucket;
        let shape = Shape {
            blocks: usual_buckets(plan.n as usize, bucket.keys()),
            threads: threads as u32,
            shared_bytes: once::sort_shared_bytes(threads, items_per_thread, size_of::<K>()),
        };
        let (merges, (to, decode)) = (u32::from(tiles_to.is_some()), tiles_to.unwrap_or((keys, Coding::NONE)));
        let [keys, scratch, to] = [keys, scratch, to].map(|at| at as *mut K::Bits);
        let sort = SortOnce { job, keys, scratch, coding, to, decode, random, merges };
        // SAFETY: the caller's promise for the arrays; the shape is the one that the kernel asks for.
        unsafe { queue.launch(&bits(size_of::<K>()), shape, &sort) }
    }
}
