//! Sorts by some bits of the keys.

use super::check::{check_bits, check_length};
use super::{Engine, On, Work};
use crate::cpu::{RunMut, scratch::Scratch, sort_by_key};
use crate::index::check_index_range;
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use crate::permutation::{Permutation, fill_identity_on};
use crate::timing::Steps;
use crate::{ElementsMut, Error, Index, Key, SortOptions, Timing};
#[cfg(feature = "gpu")]
use bytemuck::cast_slice;
use std::ops::Range;

impl Engine {
    /// Sorts `elements`, keys alone or with values, by the bits `bits` of their ordered bits
    /// ([`Key::to_ordered`], in the order of `options`), counted from the least significant bit, 0. Stable: keys that
    /// differ only in other bits keep their order, and so do their values.
    ///
    /// A sort by few bits takes less time than a sort by all bits. Sorts by the bits `0..b` and then `b..` of the keys
    /// are a sort by all bits.
    ///
    /// # Complexity
    /// O(n) time on one thread, plus O(n log t) on t threads. The scratch memory holds n keys, as 4, 8 or 16 bytes, n
    /// indices, and the elements.
    ///
    /// # Errors
    /// [`Error::BitRange`] if `bits` ends before it begins, or after the bits of a key. A GPU engine has no kernels for
    /// keys of 16 bytes here ([`Error::NoKernels`]). Otherwise the errors of [`sort_with`](Self::sort_with).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut keys = [0x21u8, 0x12, 0x11, 0x32];
    /// Engine::auto().sort_by_bits(SortOrder::Ascending, 0..4, &mut keys)?;
    /// assert_eq!(keys, [0x21, 0x11, 0x12, 0x32]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_by_bits<K: Key, V: Copy + Send + Sync>(
        &self,
        options: impl Into<SortOptions>,
        bits: Range<u32>,
        mut elements: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        let (options, run) = (options.into(), elements.run_mut("the input")?);
        let (begin, end) = check_bits::<K>(bits)?;
        let place = self.place_for::<K>(&work::<K>(run.keys.len(), size_of::<V>()))?;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => gpus.gpu(0).sort_by_bits_host(options.on_gpu::<K>(), (begin, end), run.on_gpu()),
            On::Cpu(workers) => workers.sort(run.keys.len(), |threads| match run.keys.len() as u64 > 1 << 32 {
                false => sort::<K, V, u32>(options.order, (begin, end), run, threads),
                true => sort::<K, V, u64>(options.order, (begin, end), run, threads),
            }),
        }?;
        Ok(place.timing(steps))
    }

    /// Writes to `indices` the permutation that sorts `keys` as [`sort_by_bits`](Self::sort_by_bits) does.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `indices` has another length than `keys`, [`Error::TooManyKeys`] if there are more
    /// than 2^32 keys and the indices are `u32`, and the errors of [`sort_by_bits`](Self::sort_by_bits).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut indices = [0u32; 3];
    /// Engine::auto().argsort_by_bits(SortOrder::Descending, 4..8, &[0x21u8, 0x12, 0x11], &mut indices)?;
    /// assert_eq!(indices, [0, 1, 2]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn argsort_by_bits<K: Key, I: Index>(
        &self,
        options: impl Into<SortOptions>,
        bits: Range<u32>,
        keys: &[K],
        indices: &mut [I],
    ) -> Result<Timing, Error> {
        let options = options.into();
        check_length("indices", keys.len(), indices.len(), "|keys|")?;
        check_index_range::<I>(keys.len())?;
        let bits = check_bits::<K>(bits)?;
        let place = self.place_for::<K>(&work::<K>(keys.len(), size_of::<I>()))?;
        let steps: Steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let keys = cast_slice::<K, K::OnGpu>(keys);
                gpus.gpu(0).argsort_by_bits_host(options.on_gpu::<K>(), bits, keys, indices)
            }
            On::Cpu(workers) => {
                workers.sort(keys.len(), |threads| argsort(options.order, bits, keys, indices, threads))
            }
        }?;
        Ok(place.timing(steps))
    }
}

/// The work of a sort by bits, which moves the keys as values.
fn work<K: Key>(keys: usize, value_bytes: usize) -> Work {
    Work::sort::<K>(keys).with_values(size_of::<K>() + value_bytes).on_one_gpu()
}

/// The function from a key to the bits `begin..end` of its ordered bits. The range is not empty.
fn code<K: Key>(order: KeyOrder, (begin, end): (u32, u32)) -> impl Fn(&K) -> K::Bits + Sync {
    let (above, all_but) = (K::Bits::COUNT - end, K::Bits::COUNT - (end - begin));
    move |&key| order.encode(key) << above >> all_but
}

/// Sorts `run` on up to `threads` threads, with indices of a type that can number all keys.
fn sort<K: Key, V: Send, I: Index>(
    order: KeyOrder,
    bits: (u32, u32),
    RunMut { keys, values }: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    if bits.0 == bits.1 {
        return Ok(());
    }
    if const { size_of::<V>() == 0 } {
        return sort_by_key::sort_by_key(keys, &code::<K>(order, bits), threads);
    }
    let mut indices = Scratch::<I>::init(keys.len())?;
    argsort(order, bits, keys, &mut indices, threads)?;
    Permutation::check(&indices, keys.len(), threads)?.permute_both(keys, values, threads)
}

fn argsort<K: Key, I: Index>(
    order: KeyOrder,
    bits: (u32, u32),
    keys: &[K],
    indices: &mut [I],
    threads: usize,
) -> Result<(), Error> {
    if bits.0 == bits.1 {
        fill_identity_on(threads, indices);
        return Ok(());
    }
    sort_by_key::argsort_by_key(keys, &code::<K>(order, bits), indices, threads)
}
