//! Sorts of one array.

use super::check::check_length;
use super::{Engine, On, Work};
use crate::cpu::blocks::try_for_each_callback;
use crate::cpu::{self, RunMut, Workers, memory, sort_pairs};
use crate::index::check_index_range;
use crate::key_order::KeyOrder;
use crate::parallel::Threads;
use crate::timing::{Steps, timed};
use crate::{ElementsMut, Error, Index, Key, SortOptions, Timing};
#[cfg(feature = "gpu")]
use bytemuck::{cast_slice, cast_slice_mut};

impl Engine {
    /// Sorts `elements`, keys alone or with values, in ascending order. Stable.
    ///
    /// This is [`sort_with`](Self::sort_with) with the default [`SortOptions`].
    ///
    /// # Errors
    /// The errors of [`sort_with`](Self::sort_with).
    ///
    /// ```
    /// let mut keys = [0.0f32, f32::NAN, -1.0, -0.0];
    /// merge_host::Engine::auto().sort(&mut keys)?;
    /// assert_eq!(keys[..3], [-1.0, -0.0, 0.0]);
    /// assert!(keys[1].is_sign_negative() && keys[3].is_nan());
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    #[inline]
    pub fn sort<K: Key, V: Copy + Send + Sync>(&self, elements: impl ElementsMut<K, V>) -> Result<Timing, Error> {
        self.sort_with(SortOptions::default(), elements)
    }

    /// Sorts `elements`, keys alone or with values, as `options` say: a [`SortOrder`](crate::SortOrder) or
    /// [`SortOptions`]. Stable: values of equal keys keep their order, also in a descending sort.
    ///
    /// Descending order is the reverse of total order: +NaN, +∞, …, −∞, −NaN. [`SortOptions::nans`] has all NaNs last
    /// or first in either order. [`sort_owned`](Self::sort_owned) takes values that are not `Copy`.
    ///
    /// # Complexity
    /// O(n) time for keys of a fixed width on one thread, plus O(n log t) on t threads. The scratch memory holds n keys
    /// and n values. A CPU engine needs 4 more bytes for each key with a value of more than 16 bytes (8 if there are
    /// more than 2^32 keys). A CPU engine needs less time for keys that ascend, descend, have up to 8 long runs or up
    /// to 16 distinct values.
    ///
    /// # Errors
    /// - [`Error::ValuesMismatch`] if the numbers of keys and values differ.
    /// - [`Error::OutOfHostMemory`] or [`Error::OutOfDeviceMemory`] if there is not enough memory.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::Device`] if the GPU fails.
    /// - [`Error::NoKernels`] if the engine is restricted to a GPU that has no kernels for keys of this type.
    ///
    /// ```
    /// use merge_host::{Engine, SortKernel, SortOptions, SortOrder};
    ///
    /// let (mut keys, mut values) = ([2, 7, 2, 5], ["first 2", "7", "second 2", "5"]);
    /// Engine::auto().sort_with(SortOrder::Descending, (&mut keys, &mut values))?;
    /// assert_eq!(keys, [7, 5, 2, 2]);
    /// assert_eq!(values, ["7", "5", "first 2", "second 2"]);
    ///
    /// let options = SortOptions::default().kernel(SortKernel::MergePath);
    /// Engine::auto().sort_with(options, &mut keys)?;
    /// assert_eq!(keys, [2, 2, 5, 7]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    #[inline]
    pub fn sort_with<K: Key, V: Copy + Send + Sync>(
        &self,
        options: impl Into<SortOptions>,
        mut elements: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        let (options, run) = (options.into(), elements.run_mut("the input")?);
        if self.is_untimed(&Work::sort::<K>(run.keys.len()).with_values(size_of::<V>())) {
            cpu::sort::sort_untimed(options.order, run)?;
            return Ok(self.no_time());
        }
        self.sort_run(options, run)
    }

    /// [`sort_with`](Self::sort_with), compiled once for all forms of its arguments.
    #[inline(never)]
    fn sort_run<K: Key, V: Copy + Send + Sync>(
        &self,
        options: SortOptions,
        run: RunMut<K, V>,
    ) -> Result<Timing, Error> {
        let place = self.place_to_sort::<K>(&Work::sort::<K>(run.keys.len()).with_values(size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => gpus.sort_host(options.on_gpu::<K>(), run.on_gpu()),
            On::Cpu(workers) => cpu::sort::sort_on(workers, options.order, run),
        }?;
        Ok(place.timing(steps))
    }

    /// Sorts `len` keys that `read` provides and passes them to `write`, sorted as `options` say. Stable.
    ///
    /// This is for keys that come from a file and go to a file. A GPU engine needs only some buffers in host memory,
    /// and it reads or writes while it copies to or from the GPU. A CPU engine holds all keys in memory.
    ///
    /// `read(i, keys)` must fill `keys` with the keys from index `i` on. `write(i, keys)` receives the sorted keys
    /// from index `i` on. Several threads call each function at the same time, for disjoint ranges of indices, in no
    /// particular order. Each index is read once and written once, and all reading ends before writing begins. In the
    /// returned [`Timing`], `upload` includes reading and `download` includes writing.
    ///
    /// # Locks
    /// The functions are called on threads that are started for the call, and on the calling thread if that belongs to
    /// no pool of rayon. A thread that waits takes up no other call. So a function may hold a lock while it uses an
    /// engine or rayon. [`on_current_pool`](Self::on_current_pool) differs, and says how.
    ///
    /// # Complexity
    /// That of [`sort_with`](Self::sort_with). The scratch memory of a CPU engine holds 2n keys.
    ///
    /// # Errors
    /// The first error of `read` or `write`, after which no further call begins, and the errors of
    /// [`sort_with`](Self::sort_with), converted to `E`.
    ///
    /// ```
    /// use merge_host::{Engine, Error, SortOrder};
    /// use std::sync::Mutex;
    ///
    /// let sorted = Mutex::new([0; 1000]);
    /// let read = |begin: usize, keys: &mut [u32]| {
    ///     keys.iter_mut().zip(begin..).for_each(|(key, i)| *key = i as u32 * 7 % 1000);
    ///     Ok::<_, Error>(())
    /// };
    /// let write = |begin: usize, keys: &[u32]| {
    ///     sorted.lock().unwrap()[begin..][..keys.len()].copy_from_slice(keys);
    ///     Ok(())
    /// };
    /// Engine::auto().sort_streamed(SortOrder::Descending, 1000, read, write)?;
    /// assert!(sorted.into_inner().unwrap().into_iter().eq((0..1000).rev()));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn sort_streamed<K: Key, E: From<Error> + Send>(
        &self,
        options: impl Into<SortOptions>,
        len: usize,
        read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
        write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
    ) -> Result<Timing, E> {
        let options = options.into();
        let is_on_current_pool = self.workers.are_of_current_pool();
        let threads = if is_on_current_pool { Threads::OfPool(usize::MAX) } else { Threads::New(usize::MAX) };
        let place = self.place_to_sort::<K>(&Work::sort::<K>(len).from_files())?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let read = |begin, keys: &mut [K::OnGpu]| read(begin, cast_slice_mut(keys));
                let write = |begin, keys: &[K::OnGpu]| write(begin, cast_slice(keys));
                gpus.sort_streamed::<K::OnGpu, E>(options.on_gpu::<K>(), len, threads, read, write)
            }
            On::Cpu(workers) => {
                let sort_threads = workers.threads_to_sort(len);
                let threads = if is_on_current_pool { threads } else { threads.up_to(sort_threads) };
                if cpu::streamed::can_sort::<K>(len, sort_threads) {
                    cpu::streamed::sort(workers, threads, options.order, len, read, write)
                } else {
                    streamed_by_sort(workers, threads, options.order, len, read, write)
                }
            }
        }?;
        Ok(place.timing(steps))
    }

    /// Writes to `indices` the permutation that sorts `keys` as `options` say: `keys[indices[0]]` is the first key in
    /// that order, and so on. Stable: of equal keys, the one with the least index comes first, also in a descending
    /// sort.
    ///
    /// `keys` stay as they are. `indices` has the length of `keys`, and its elements are `u32`, `u64` or `usize`.
    ///
    /// # Complexity
    /// O(n) time on one thread, plus O(n log t) on t threads; O(n log n) where the processor has vectors for keys of 4
    /// and 8 bytes. The scratch memory then holds n numbers of 8 bytes, and otherwise n keys and n indices; on one
    /// thread, and on a GPU, it holds 2n keys.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `indices` has another length, [`Error::TooManyKeys`] if there are more than 2^32
    /// keys and the indices are `u32`, and the errors of [`sort_with`](Self::sort_with).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut indices = [0u32; 4];
    /// Engine::cpu().argsort(SortOrder::Ascending, &[0.5, -1.0, 2.0, -1.0], &mut indices)?;
    /// assert_eq!(indices, [1, 3, 0, 2]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    #[inline]
    pub fn argsort<K: Key, I: Index>(
        &self,
        options: impl Into<SortOptions>,
        keys: &[K],
        indices: &mut [I],
    ) -> Result<Timing, Error> {
        let options = options.into();
        check_length("indices", keys.len(), indices.len(), "|keys|")?;
        if self.is_untimed(&Work::sort::<K>(keys.len()).with_values(size_of::<I>())) {
            sort_pairs::argsort_untimed(options.order, keys, indices)?;
            return Ok(self.no_time());
        }
        self.argsort_run(options, keys, indices)
    }

    /// [`argsort`](Self::argsort), compiled once for all forms of its options.
    #[inline(never)]
    fn argsort_run<K: Key, I: Index>(
        &self,
        options: SortOptions,
        keys: &[K],
        indices: &mut [I],
    ) -> Result<Timing, Error> {
        check_index_range::<I>(keys.len())?;
        let place = self.place_to_sort::<K>(&Work::sort::<K>(keys.len()).with_values(size_of::<I>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => gpus.argsort_host::<K::OnGpu, I>(options.on_gpu::<K>(), cast_slice(keys), indices),
            On::Cpu(workers) => sort_pairs::argsort_on(workers, options.order, keys, indices),
        }?;
        Ok(place.timing(steps))
    }
}

/// Reads all keys, sorts them, and writes them.
fn streamed_by_sort<K: Key, E: From<Error> + Send>(
    workers: &Workers,
    threads: Threads,
    order: KeyOrder,
    len: usize,
    read: impl Fn(usize, &mut [K]) -> Result<(), E> + Sync,
    write: impl Fn(usize, &[K]) -> Result<(), E> + Sync,
) -> Result<Steps, E> {
    let mut keys = memory::zeroed::<K>(len)?;
    let (read, upload) = timed(|| try_for_each_callback(threads, &mut keys, &read));
    read?;
    let sorted = cpu::sort::sort_on(workers, order, RunMut::of_keys(&mut keys))?;
    let write = |begin: usize, keys: &mut [K]| write(begin, keys);
    let (written, download) = timed(|| try_for_each_callback(threads, &mut keys, write));
    written?;
    Ok(Steps { upload, download, ..sorted })
}
