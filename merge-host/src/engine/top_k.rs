//! The first keys of the order: of a slice, and of keys that come in parts.

use super::Engine;
use super::check::{check_k, check_length, check_values};
use crate::cpu::memory::collected;
use crate::cpu::top_k::Selection;
use crate::cpu::{sort, sort_by};
use crate::index::check_index_range;
use crate::{Error, Index, Key, SortOrder, Timing};
use bytemuck::allocation::cast_vec;
#[cfg(feature = "gpu")]
use bytemuck::cast_slice;
use std::cmp::Ordering;
use std::ops::Range;

impl Engine {
    /// Fills `out` with the first `out.len()` of `keys` in the total order of their type, or descending: sorted.
    ///
    /// `keys` stay as they are. Of several GPUs, each selects the first keys of its part, and the CPU selects among
    /// these. Keys for which a GPU has no kernels are handled by the CPU, also by an engine of GPUs. `Stream::top_k` is
    /// for keys that are in a GPU's memory, and [`TopK`] for keys that come in parts.
    ///
    /// # Complexity
    /// O(n + k log k) time for k of n keys, if their order is random; O(n log k) at most. The scratch memory is that of
    /// a [`TopK`], and of k keys.
    ///
    /// # Errors
    /// - [`Error::TooFewKeys`] if `out` is longer than `keys`.
    /// - [`Error::OutOfHostMemory`] if there is not enough memory.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if a GPU has not enough memory, and [`Error::Device`] if it fails.
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut greatest = [0.0; 2];
    /// Engine::auto().top_k(SortOrder::Descending, &[3.0, 9.5, -1.0, 7.0], &mut greatest)?;
    /// assert_eq!(greatest, [9.5, 7.0]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn top_k<K: Key>(&self, order: SortOrder, keys: &[K], out: &mut [K]) -> Result<Timing, Error> {
        check_k(keys.len(), out.len())?;
        let mut top = TopK::new(order, out.len());
        let selected = top.add(self, keys)?;
        let (first, sorted) = top.into_sorted(self)?;
        out.copy_from_slice(&first);
        Ok(Timing { compute: selected.compute + sorted.compute, ..selected })
    }

    /// As [`top_k`](Self::top_k), and sets `indices` to the indices that these keys have in `keys`. Stable: of equal
    /// keys, the first ones are taken, and they stay in their order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many indices as keys of `out`, [`Error::TooManyKeys`] if there are
    /// more than 2^32 keys and the indices are `u32`, and those of [`top_k`](Self::top_k).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let (mut least, mut indices) = ([0; 3], [0u32; 3]);
    /// Engine::auto().top_k_indices(SortOrder::Ascending, &[5, 1, 4, 1], &mut least, &mut indices)?;
    /// assert_eq!((least, indices), ([1, 1, 4], [1, 3, 2]));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn top_k_indices<K: Key, I: Index>(
        &self,
        order: SortOrder,
        keys: &[K],
        out: &mut [K],
        indices: &mut [I],
    ) -> Result<Timing, Error> {
        check_k(keys.len(), out.len())?;
        check_length("indices", out.len(), indices.len(), "|out|")?;
        check_index_range::<I>(keys.len())?;
        let mut top = TopKPairs::new(order, out.len());
        let selected = top.add_with(self, keys, |i| I::from_usize(i))?;
        let (first, first_indices, sorted) = top.into_sorted(self)?;
        out.copy_from_slice(&first);
        indices.copy_from_slice(&first_indices);
        Ok(Timing { compute: selected.compute + sorted.compute, ..selected })
    }
}

/// The first `k` of keys that come in parts, such as those of a file: what [`Engine::top_k`] finds among keys that are
/// together in memory.
///
/// A threshold, the last of k keys that were added, keeps most keys out. Those that pass are candidates, and when there
/// are 2k of them, or some ten thousand, the first k are selected, which lowers the threshold. A GPU selects the first
/// k keys of a part, and the CPU adds these to the candidates: parts of some hundred MiB are best for it.
///
/// # Complexity
/// O(n + k log k) time for k of n keys, if their order is random; O(n log k) at most. The candidates take the memory of
/// up to 4k keys, or of some hundred thousand ([`max_bytes`](Self::max_bytes)), and each call of [`add`](Self::add)
/// that of a part of its keys besides: of 2^18 for each thread, or of the first k for each GPU.
///
/// ```
/// use merge_host::{Engine, SortOrder, TopK};
///
/// let (engine, mut greatest) = (Engine::auto(), TopK::new(SortOrder::Descending, 2));
/// for part in [[3.0, 9.5], [-1.0, 7.0]] {
///     greatest.add(&engine, &part)?;
/// }
/// assert_eq!(greatest.into_sorted(&engine)?.0, [9.5, 7.0]);
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TopK<K: Key> {
    order: SortOrder,
    first: Selection<K::Bits>,
}

impl<K: Key> TopK<K> {
    /// The first `k` keys in that order, of none so far.
    pub fn new(order: SortOrder, k: usize) -> Self {
        Self { order, first: Selection::new(k) }
    }

    /// Bytes that the candidates for the first `k` keys take at most; `usize::MAX` if the number is greater.
    pub fn max_bytes(k: usize) -> usize {
        Selection::<K::Bits>::max_bytes(k)
    }

    /// Adds a part of the keys, by that engine, which may be another one for each part.
    ///
    /// # Errors
    /// Those of [`Engine::top_k`], but for [`Error::TooFewKeys`]. Unless it is [`Error::OutOfHostMemory`], no key has
    /// been added.
    pub fn add(&mut self, engine: &Engine, keys: &[K]) -> Result<Timing, Error> {
        #[cfg(feature = "gpu")]
        if let Some(gpus) = engine.gpus_to_select::<K>(keys.len(), self.first.k())? {
            let (first, _, timing) =
                gpus.top_k_host::<K::OnGpu>(self.order, cast_slice(keys), self.first.k(), false)?;
            let added = self.add_on_cpu(engine, cast_slice(&first))?;
            return Ok(Timing { compute: timing.compute + added.compute, ..timing });
        }
        self.add_on_cpu(engine, keys)
    }

    fn add_on_cpu(&mut self, engine: &Engine, keys: &[K]) -> Result<Timing, Error> {
        let Self { order, first } = self;
        let bits = |range: Range<usize>| keys[range].iter().map(|key| order.applied_to(key.to_ordered()));
        engine.workers.sort(keys.len(), |threads| first.add(keys.len(), bits, threads))
    }

    /// The first k of the keys that were added, or all if they are fewer: sorted by the CPU, on the threads of that
    /// engine.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is not enough memory for as many keys once more, and [`Error::Threads`] if
    /// the system refuses to start the engine's threads.
    pub fn into_sorted(self, engine: &Engine) -> Result<(Vec<K>, Timing), Error> {
        let Self { order, first } = self;
        let mut bits = Vec::new();
        let timing = engine.workers.sort(first.k(), |threads| {
            bits = first.into_items();
            sort::sort_keys(SortOrder::Ascending, &mut bits, threads)
        })?;
        // A key has the size and the alignment of its bits.
        let mut keys: Vec<K> = cast_vec(bits);
        keys.iter_mut().for_each(|key| *key = K::from_ordered(order.applied_to(bytemuck::cast(*key))));
        Ok((keys, timing))
    }
}

/// As [`TopK`], with a value for each key. Stable: of equal keys, those that were added first are taken, and they stay
/// in their order.
///
/// A candidate takes the memory of a key, a value, and a number of 8 bytes.
///
/// ```
/// use merge_host::{Engine, SortOrder, TopKPairs};
///
/// let (engine, mut least) = (Engine::auto(), TopKPairs::new(SortOrder::Ascending, 2));
/// least.add(&engine, &[5, 1], &["five", "one"])?;
/// least.add(&engine, &[7, 1], &["seven", "one again"])?;
/// let (keys, values, _) = least.into_sorted(&engine)?;
/// assert_eq!((keys, values), (vec![1, 1], vec!["one", "one again"]));
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TopKPairs<K: Key, V> {
    order: SortOrder,
    first: Selection<Item<K::Bits, V>>,
    /// The number of keys that were added.
    added: u64,
}

impl<K: Key, V: Copy + Send + Sync> TopKPairs<K, V> {
    /// The first `k` keys in that order, of none so far.
    pub fn new(order: SortOrder, k: usize) -> Self {
        Self { order, first: Selection::new(k), added: 0 }
    }

    /// Adds a part of the keys. The value of `keys[i]` is `values[i]`. Otherwise as [`TopK::add`].
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if `keys` and `values` have different lengths, and those of [`TopK::add`].
    pub fn add(&mut self, engine: &Engine, keys: &[K], values: &[V]) -> Result<Timing, Error> {
        check_values("the part", keys.len(), values.len())?;
        self.add_with(engine, keys, |i| values[i])
    }

    /// Adds a part of the keys. The value of `keys[i]` is `value(i)`.
    fn add_with(&mut self, engine: &Engine, keys: &[K], value: impl Fn(usize) -> V + Sync) -> Result<Timing, Error> {
        let Self { order, first, added } = self;
        let begin = *added;
        let item = |i: usize| {
            let (bits, index) = (order.applied_to(keys[i].to_ordered()), begin + i as u64);
            Item { bits, index, value: value(i) }
        };
        let mut timing = Timing::default();
        #[cfg(feature = "gpu")]
        let of_part = match engine.gpus_to_select::<K>(keys.len(), first.k())? {
            Some(gpus) => {
                let (_, indices, of_part) = gpus.top_k_host::<K::OnGpu>(*order, cast_slice(keys), first.k(), true)?;
                timing = of_part;
                Some(indices)
            }
            None => None,
        };
        #[cfg(not(feature = "gpu"))]
        let of_part: Option<Vec<u64>> = None;
        let on_cpu = match of_part {
            Some(indices) => engine.workers.sort(indices.len(), |threads| {
                let items = |range: Range<usize>| indices[range].iter().map(|&i| item(i as usize));
                first.add(indices.len(), items, threads)
            }),
            None => engine.workers.sort(keys.len(), |threads| first.add(keys.len(), |range| range.map(&item), threads)),
        }?;
        *added += keys.len() as u64;
        timing.compute += on_cpu.compute;
        Ok(timing)
    }

    /// The first k of the keys that were added, with their values, or all if they are fewer. Otherwise as
    /// [`TopK::into_sorted`].
    ///
    /// # Errors
    /// Those of [`TopK::into_sorted`].
    pub fn into_sorted(self, engine: &Engine) -> Result<(Vec<K>, Vec<V>, Timing), Error> {
        let Self { order, first, added: _ } = self;
        let mut items = Vec::new();
        let timing = engine.workers.sort(first.k(), |threads| {
            items = first.into_items();
            sort_by::sort_by(&mut items, &Ord::cmp, threads)
        })?;
        let key = |item: &Item<K::Bits, V>| K::from_ordered(order.applied_to(item.bits));
        Ok((collected(items.iter().map(key))?, collected(items.iter().map(|item| item.value))?, timing))
    }
}

/// A key with its value, and how many were added before it.
#[derive(Clone, Copy, Debug)]
struct Item<B, V> {
    bits: B,
    index: u64,
    value: V,
}

impl<B: Ord, V> Ord for Item<B, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.bits, self.index).cmp(&(&other.bits, other.index))
    }
}

impl<B: Ord, V> PartialOrd for Item<B, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B: Ord, V> PartialEq for Item<B, V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<B: Ord, V> Eq for Item<B, V> {}
