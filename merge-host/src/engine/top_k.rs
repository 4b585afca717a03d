//! The first keys of the order: of a slice, and of keys that come in parts.

#[cfg(feature = "gpu")]
use super::On;
use super::check::check_k;
use super::{Engine, Place, Work};
use crate::cpu::memory::collected;
use crate::cpu::top_k::Selection;
use crate::cpu::{Run, RunMut, Workers, sort, sort_by};
use crate::key_order::KeyOrder;
use crate::timing::Steps;
use crate::{Elements, ElementsMut, Error, Key, SelectedAs, SortOptions, Timing};
use bytemuck::allocation::cast_vec;
#[cfg(feature = "gpu")]
use bytemuck::cast_slice;
use std::cmp::Ordering;
use std::ops::Range;

impl Engine {
    /// Fills `out` with the first `out.len()` elements of `from` in the order of `options`, sorted. `options` is a
    /// [`SortOrder`](crate::SortOrder) or [`SortOptions`]. Stable: of equal keys, the first ones are taken, and they
    /// stay in their order.
    ///
    /// If `from` is keys alone, `out` may be `(&mut keys, &mut indices)`, with indices of `u32`, `u64` or `usize`. The
    /// indices of the selected keys are written then.
    ///
    /// Of several GPUs, each selects the first keys of its part, and the CPU selects among these. [`TopK`] is for keys
    /// that come in parts.
    ///
    /// # Complexity
    /// O(n + k log k) time for k of n keys, if their order is random; O(n log k) at most. The scratch memory is the
    /// memory of a [`TopK`] and k elements.
    ///
    /// # Errors
    /// - [`Error::ValuesMismatch`] if an argument has different numbers of keys and values.
    /// - [`Error::TooFewKeys`] if `out` is longer than `from`.
    /// - [`Error::TooManyKeys`] if there are more than 2^32 keys and the indices are `u32`.
    /// - [`Error::OutOfHostMemory`] if there is not enough memory.
    /// - [`Error::Threads`] if the system refuses to start the engine's threads.
    /// - [`Error::OutOfDeviceMemory`] if a GPU has not enough memory, and [`Error::Device`] if it fails.
    /// - [`Error::NoKernels`] if the engine is restricted to a GPU that has no kernels for keys of this type.
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let (keys, names) = ([3.0, 9.5, -1.0, 7.0], ["three", "nine and a half", "minus one", "seven"]);
    /// let (mut greatest, mut named) = ([0.0; 2], [""; 2]);
    /// Engine::auto().top_k(SortOrder::Descending, &keys, &mut greatest)?;
    /// assert_eq!(greatest, [9.5, 7.0]);
    /// Engine::auto().top_k(SortOrder::Descending, (&keys, &names), (&mut greatest, &mut named))?;
    /// assert_eq!(named, ["nine and a half", "seven"]);
    ///
    /// let (mut least, mut indices) = ([0; 3], [0u32; 3]);
    /// Engine::auto().top_k(SortOrder::Ascending, &[5, 1, 4, 1], (&mut least, &mut indices))?;
    /// assert_eq!((least, indices), ([1, 1, 4], [1, 3, 2]));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn top_k<K: Key, V: SelectedAs<W> + Sync, W: Copy + Send + Sync>(
        &self,
        options: impl Into<SortOptions>,
        from: impl Elements<K, V>,
        mut out: impl ElementsMut<K, W>,
    ) -> Result<Timing, Error> {
        self.top_k_of_run(options.into(), from.run("keys")?, out.run_mut("out")?)
    }

    /// [`top_k`](Self::top_k), compiled once for all forms of its arguments.
    fn top_k_of_run<K: Key, V: SelectedAs<W> + Sync, W: Copy + Send + Sync>(
        &self,
        options: SortOptions,
        from: Run<K, V>,
        out: RunMut<K, W>,
    ) -> Result<Timing, Error> {
        check_k(from.keys.len(), out.keys.len())?;
        V::check_range(from.keys.len())?;
        let mut top = TopK::new(options, out.keys.len());
        let selected = top.add_run(self, from)?;
        let (first, values, sorted) = top.into_sorted(self)?;
        out.keys.copy_from_slice(&first);
        out.values.copy_from_slice(&values);
        Ok(selected.and_compute(sorted.compute))
    }
}

/// The first `k` of keys that come in parts, such as the blocks of a file, alone or with a value for each. Stable: of
/// equal keys, those that were added first are taken, and they stay in their order. [`Engine::top_k`] does the same
/// with keys that are together in memory.
///
/// A threshold, the last of k keys that were added, keeps most keys out. Keys that pass it are candidates. The first k
/// candidates are selected when there are 2k candidates, or some ten thousand, which lowers the threshold. A GPU
/// selects the first k keys of a part, and the CPU adds these to the candidates: parts of some hundred MiB are best for
/// it.
///
/// # Complexity
/// O(n + k log k) time for k of n keys, if their order is random; O(n log k) at most. The candidates take the memory of
/// up to 4k keys, or of some hundred thousand ([`max_bytes`](Self::max_bytes)); a candidate with a value also has a
/// number of 8 bytes. Each call of [`add`](Self::add) takes the memory of 2^18 candidates for each thread, or of the
/// first k for each GPU.
///
/// ```
/// use merge_host::{Engine, SortOrder, TopK};
///
/// let (engine, mut greatest) = (Engine::auto(), TopK::new(SortOrder::Descending, 2));
/// for part in [[3.0, 9.5], [-1.0, 7.0]] {
///     greatest.add(&engine, &part)?;
/// }
/// let (keys, _, _) = greatest.into_sorted(&engine)?;
/// assert_eq!(keys, [9.5, 7.0]);
///
/// let mut least = TopK::new(SortOrder::Ascending, 2);
/// least.add(&engine, (&[5, 1], &["five", "one"]))?;
/// least.add(&engine, (&[7, 1], &["seven", "one again"]))?;
/// let (keys, values, _) = least.into_sorted(&engine)?;
/// assert_eq!((keys, values), (vec![1, 1], vec!["one", "one again"]));
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TopK<K: Key, V = ()> {
    order: KeyOrder,
    /// For values without bytes: the candidates, and one value, which stands for all values.
    keys: (Selection<K::Bits>, Option<V>),
    /// Where values have bytes: the candidates.
    pairs: Selection<Item<K::Bits, V>>,
    /// The number of keys that were added.
    added: u64,
}

impl<K: Key, V: Copy + Send + Sync> TopK<K, V> {
    /// Whether values have no bytes. A constant, so that the other way is not compiled.
    const KEYS_ALONE: bool = size_of::<V>() == 0;

    /// The first `k` keys in the order of `options`, of none so far.
    pub fn new(options: impl Into<SortOptions>, k: usize) -> Self {
        let SortOptions { order, .. } = options.into();
        Self { order, keys: (Selection::new(k), None), pairs: Selection::new(k), added: 0 }
    }

    /// Bytes that the candidates for the first `k` keys take at most; `usize::MAX` if the number is greater.
    pub fn max_bytes(k: usize) -> usize {
        if const { Self::KEYS_ALONE } {
            Selection::<K::Bits>::max_bytes(k)
        } else {
            Selection::<Item<K::Bits, V>>::max_bytes(k)
        }
    }

    /// Adds a part of the keys, by that engine, which may be another one for each part.
    ///
    /// # Errors
    /// The errors of [`Engine::top_k`], except [`Error::TooFewKeys`]. Unless it is [`Error::OutOfHostMemory`], no key
    /// has been added.
    pub fn add(&mut self, engine: &Engine, elements: impl Elements<K, V>) -> Result<Timing, Error> {
        self.add_run(engine, elements.run("the part")?)
    }

    /// [`add`](Self::add), also of keys without values that get their indices as values.
    fn add_run<F: SelectedAs<V> + Sync>(&mut self, engine: &Engine, run: Run<K, F>) -> Result<Timing, Error> {
        let (Run { keys, values }, k) = (run, self.pairs.k());
        let value = |i| F::selected(values, i);
        let place = engine.place_for::<K>(&Work::top_k::<K>(if k == 0 { 0 } else { keys.len() }))?;
        let by_gpus = selected_by_gpus(&place, self.order, keys, k, !Self::KEYS_ALONE)?;
        let added = if const { Self::KEYS_ALONE } {
            self.add_keys(&engine.workers, by_gpus.as_ref().map_or(keys, |by_gpus| &by_gpus.keys), value)
        } else {
            self.add_pairs(&engine.workers, keys, by_gpus.as_ref().map(|by_gpus| &by_gpus.indices[..]), value)
        }?;
        self.added += keys.len() as u64;
        let mut steps = by_gpus.map_or_else(Steps::default, |by_gpus| by_gpus.steps);
        steps.compute += added.compute;
        Ok(place.timing(steps))
    }

    /// Adds keys with values without bytes.
    fn add_keys(&mut self, workers: &Workers, keys: &[K], value: impl Fn(usize) -> V) -> Result<Steps, Error> {
        let Self { order, keys: (selection, any), .. } = self;
        let order = *order;
        *any = any.or_else(|| (!keys.is_empty()).then(|| value(0)));
        let bits = |range: Range<usize>| keys[range].iter().map(move |key| order.encode(*key));
        workers.sort(keys.len(), |threads| selection.add(keys.len(), bits, threads))
    }

    /// Adds keys with values: those with these indices, or all.
    fn add_pairs(
        &mut self,
        workers: &Workers,
        keys: &[K],
        indices: Option<&[u64]>,
        value: impl Fn(usize) -> V + Sync,
    ) -> Result<Steps, Error> {
        let Self { order, pairs, added: begin, .. } = self;
        let item = |i: usize| {
            let (bits, index) = (order.encode(keys[i]), *begin + i as u64);
            Item { bits, index, value: value(i) }
        };
        match indices {
            Some(indices) => workers.sort(indices.len(), |threads| {
                let items = |range: Range<usize>| indices[range].iter().map(|&i| item(i as usize));
                pairs.add(indices.len(), items, threads)
            }),
            None => workers.sort(keys.len(), |threads| pairs.add(keys.len(), |range| range.map(&item), threads)),
        }
    }

    /// The first k of the keys that were added, or all if they are fewer, with their values: sorted by the CPU, on the
    /// threads of that engine.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is not enough memory for a copy of the elements, and [`Error::Threads`] if
    /// the system refuses to start the engine's threads.
    pub fn into_sorted(self, engine: &Engine) -> Result<(Vec<K>, Vec<V>, Timing), Error> {
        let (keys, values, steps) = if const { Self::KEYS_ALONE } {
            self.into_sorted_keys(&engine.workers)
        } else {
            self.into_sorted_pairs(&engine.workers)
        }?;
        Ok((keys, values, engine.timing_on_cpu(steps)))
    }

    fn into_sorted_keys(self, workers: &Workers) -> Result<(Vec<K>, Vec<V>, Steps), Error> {
        let Self { order, keys: (selection, any), .. } = self;
        let mut bits = Vec::new();
        let steps = workers.sort(selection.k(), |threads| {
            bits = selection.into_items();
            sort::sort(KeyOrder::ASCENDING, RunMut::of_keys(&mut bits), threads)
        })?;
        let values = any.map_or_else(Vec::new, |any| vec![any; bits.len()]);
        // A key has the size and the alignment of its bits.
        let mut keys: Vec<K> = cast_vec(bits);
        keys.iter_mut().for_each(|key| *key = order.decode(bytemuck::cast(*key)));
        Ok((keys, values, steps))
    }

    fn into_sorted_pairs(self, workers: &Workers) -> Result<(Vec<K>, Vec<V>, Steps), Error> {
        let Self { order, pairs: selection, .. } = self;
        let mut items = Vec::new();
        let steps = workers.sort(selection.k(), |threads| {
            items = selection.into_items();
            sort_by::sort_by(&mut items, &Ord::cmp, threads)
        })?;
        let key = |item: &Item<K::Bits, V>| order.decode(item.bits);
        Ok((collected(items.iter().map(key))?, collected(items.iter().map(|item| item.value))?, steps))
    }
}

/// The first keys of a part, or their indices, which GPUs have selected.
struct Selected<K> {
    keys: Vec<K>,
    indices: Vec<u64>,
    steps: Steps,
}

/// The first `k` of `keys`, with their indices if it `indexes`, if GPUs are to select among them.
fn selected_by_gpus<K: Key>(
    place: &Place<'_>,
    order: KeyOrder,
    keys: &[K],
    k: usize,
    indexes: bool,
) -> Result<Option<Selected<K>>, Error> {
    #[cfg(feature = "gpu")]
    if let On::Gpus(gpus) = place.on
        && k > 0
        && !keys.is_empty()
    {
        let (first, indices, steps) =
            gpus.top_k_host::<K::OnGpu>(order.coding::<K>().into(), cast_slice(keys), k, indexes)?;
        return Ok(Some(Selected { keys: cast_vec(first), indices, steps }));
    }
    let _ = (place, order, keys, k, indexes);
    Ok(None)
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
