//! Sorts and merges of elements of any type, which are moved and never cloned.

use super::Engine;
use super::check::check_length;
use crate::cpu::{RunMut, merge_by, scratch::Scratch, sort_by, sort_by_bytes, sort_by_key};
use crate::index::check_index_range;
use crate::index::sealed::Sealed;
use crate::permutation::Permutation;
use crate::{ElementsMut, Error, Index, Key, SortKey, SortOptions, Timing};

impl Engine {
    /// Sorts elements of any type by the keys that `key` returns for them, in ascending order. Stable.
    ///
    /// A key is any [`SortKey`], such as a number, a `char` or a tuple of keys. [`Reverse`](std::cmp::Reverse) makes
    /// the order descending. Elements are moved, not cloned. `key` is called on several threads at the same time, for
    /// different elements, and once for each element, except that it may be called several times for each of few
    /// elements.
    ///
    /// Every engine does this on the CPU cores, a GPU engine too.
    ///
    /// # Complexity
    /// O(n) time on one thread, plus O(n log t) on t threads, as for [`argsort`](Self::argsort); each element moves
    /// twice. The scratch memory holds n elements and n indices, and before that n keys, as 4, 8 or 16 bytes, n indices
    /// and the scratch memory of the argsort.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is not enough scratch memory, and [`Error::Threads`] if the system refuses
    /// to start the engine's threads. The elements are unchanged then.
    ///
    /// # Panics
    /// Panics if `key` does. All elements are still there then, in an unspecified order.
    ///
    /// ```
    /// use merge_host::Engine;
    /// use std::cmp::Reverse;
    ///
    /// let mut words = ["pear", "fig", "apple", "kiwi"].map(String::from);
    /// Engine::auto().sort_by_key(&mut words, |word| Reverse(word.len()))?;
    /// assert_eq!(words, ["apple", "pear", "kiwi", "fig"]);
    ///
    /// let mut points = [(1.5, 'b'), (-0.5, 'c'), (1.5, 'a')];
    /// Engine::auto().sort_by_key(&mut points, |&(x, name)| (x, name))?;
    /// assert_eq!(points, [(-0.5, 'c'), (1.5, 'a'), (1.5, 'b')]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_by_key<T: Send, S: SortKey>(
        &self,
        items: &mut [T],
        key: impl Fn(&T) -> S + Sync,
    ) -> Result<Timing, Error> {
        let steps = self.workers.sort(items.len(), |threads| sort_by_key::sort_by_key(items, &key, threads))?;
        Ok(self.timing_on_cpu(steps))
    }

    /// Sorts elements of any type by a comparison. Stable: elements that compare as
    /// [`Equal`](std::cmp::Ordering::Equal) keep their order.
    ///
    /// `compare` is called on several threads at the same time, for different elements. Elements are moved, not cloned.
    /// If `compare` is not a total order, the order of the elements is unspecified, or the call panics.
    ///
    /// Every engine does this on the CPU cores, a GPU engine too. Where elements have a [`SortKey`],
    /// [`sort_by_key`](Self::sort_by_key) takes less time.
    ///
    /// # Complexity
    /// O(n log n) comparisons. The scratch memory holds n elements, or n / 2 on one thread.
    ///
    /// # Errors
    /// The errors of [`sort_by_key`](Self::sort_by_key).
    ///
    /// # Panics
    /// Panics if `compare` does. All elements are still there then, in an unspecified order.
    ///
    /// ```
    /// let mut words = ["pear", "Fig", "apple", "Kiwi"].map(String::from);
    /// merge_host::Engine::auto().sort_by(&mut words, |a, b| a.to_lowercase().cmp(&b.to_lowercase()))?;
    /// assert_eq!(words, ["apple", "Fig", "Kiwi", "pear"]);
    ///
    /// // The permutation that sorts words.
    /// let mut indices = [0, 1, 2, 3];
    /// merge_host::Engine::auto().sort_by(&mut indices, |&a, &b| words[b].cmp(&words[a]))?;
    /// assert_eq!(indices, [3, 0, 2, 1]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_by<T: Send>(
        &self,
        items: &mut [T],
        compare: impl Fn(&T, &T) -> std::cmp::Ordering + Sync,
    ) -> Result<Timing, Error> {
        let steps = sort_by::sort_by_on(&self.workers, items, &compare)?;
        Ok(self.timing_on_cpu(steps))
    }

    /// Sorts elements of any type by the strings of bytes that `bytes` returns for them, in lexicographic order, which
    /// is also the order of `str`. Stable.
    ///
    /// `bytes` is called several times for an element, and on several threads at the same time, for different elements.
    /// Elements are moved, not cloned. If an element's string changes during the call, the order is unspecified.
    ///
    /// Every engine does this on the CPU cores, a GPU engine too. It reads each string once or twice where the first
    /// bytes after a prefix of all strings distinguish most of them. A [`sort_by`](Self::sort_by) reads strings at each
    /// comparison.
    ///
    /// # Complexity
    /// O(n log n) comparisons of strings at most. The scratch memory holds n elements and 12 or 16 bytes for each
    /// element.
    ///
    /// # Errors
    /// The errors of [`sort_by_key`](Self::sort_by_key), except that the elements may be in another order then.
    ///
    /// # Panics
    /// Panics if `bytes` does. All elements are still there then, in an unspecified order.
    ///
    /// ```
    /// use merge_host::Engine;
    ///
    /// let mut words = ["pear", "fig", "apple"].map(String::from);
    /// Engine::auto().sort_by_bytes(&mut words, |word| word.as_bytes())?;
    /// assert_eq!(words, ["apple", "fig", "pear"]);
    ///
    /// // The permutation that sorts names.
    /// let names = ["pear", "fig", "apple"];
    /// let mut indices = [0, 1, 2];
    /// Engine::auto().sort_by_bytes(&mut indices, |&i| names[i].as_bytes())?;
    /// assert_eq!(indices, [2, 1, 0]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_by_bytes<T: Send>(&self, items: &mut [T], bytes: impl Fn(&T) -> &[u8] + Sync) -> Result<Timing, Error> {
        let steps = sort_by_bytes::sort_by_bytes_on(&self.workers, items, &bytes)?;
        Ok(self.timing_on_cpu(steps))
    }

    /// Writes to `indices` the permutation that sorts byte strings in the order of [`memcmp`], as `<[u8]>::cmp` has it:
    /// `bytes(indices[0])` is the first string, and so on. Stable.
    ///
    /// `indices` has one element for each string, and `bytes` returns the string at an index. The strings may lie in one
    /// array with offsets, as in Arrow, or anywhere else.
    ///
    /// [`memcmp`]: https://en.cppreference.com/w/c/string/byte/memcmp
    ///
    /// # Complexity
    /// That of [`sort_by_bytes`](Self::sort_by_bytes) of the indices.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`] if there are more than 2^32 strings and the indices are `u32`, and the errors of
    /// [`sort_by_bytes`](Self::sort_by_bytes).
    ///
    /// # Panics
    /// Panics if `bytes` does. The contents of `indices` are unspecified then.
    ///
    /// ```
    /// let (text, offsets) = (b"pearfigapple", [0, 4, 7, 12]);
    /// let mut indices = [0u32; 3];
    /// merge_host::Engine::auto().argsort_by_bytes(&mut indices, |i| &text[offsets[i]..offsets[i + 1]])?;
    /// assert_eq!(indices, [2, 1, 0]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn argsort_by_bytes<'a, I: Index>(
        &self,
        indices: &mut [I],
        bytes: impl Fn(usize) -> &'a [u8] + Sync,
    ) -> Result<Timing, Error> {
        check_index_range::<I>(indices.len())?;
        let steps = sort_by_bytes::argsort_by_bytes_on(&self.workers, indices, &bytes)?;
        Ok(self.timing_on_cpu(steps))
    }

    /// Writes to `indices` the permutation that sorts `items` by the keys that `key` returns for them. Stable.
    ///
    /// `items[indices[0]]` is the first element in ascending order, and so on. `indices` has the length of `items`, and
    /// its elements are `u32`, `u64` or `usize`. [`permutation::permute`](crate::permutation::permute) applies it.
    /// `key` is as for [`sort_by_key`](Self::sort_by_key).
    ///
    /// # Complexity
    /// That of [`argsort`](Self::argsort), and memory for n keys of 4, 8 or 16 bytes.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `indices` has another length, [`Error::TooManyKeys`] if there are more than 2^32
    /// elements and the indices are `u32`, and the errors of [`sort_by_key`](Self::sort_by_key).
    ///
    /// # Panics
    /// Panics if `key` does.
    ///
    /// ```
    /// let mut indices = [0u32; 3];
    /// merge_host::Engine::auto().argsort_by_key(&["pear", "fig", "kiwi"], &mut indices, |word| word.len())?;
    /// assert_eq!(indices, [1, 0, 2]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn argsort_by_key<T: Sync, S: SortKey, I: Index>(
        &self,
        items: &[T],
        indices: &mut [I],
        key: impl Fn(&T) -> S + Sync,
    ) -> Result<Timing, Error> {
        check_length("indices", items.len(), indices.len(), "|items|")?;
        check_index_range::<I>(items.len())?;
        let steps =
            self.workers.sort(items.len(), |threads| sort_by_key::argsort_by_key(items, &key, indices, threads))?;
        Ok(self.timing_on_cpu(steps))
    }

    /// Merges two runs of elements of any type by a comparison. Stable: equal elements of `a` precede equal elements of
    /// `b`.
    ///
    /// `a` and `b` must be ascending by `compare`, which is as for [`sort_by`](Self::sort_by). If they are not, the
    /// order of the elements is unspecified.
    ///
    /// # Complexity
    /// At most |a| + |b| comparisons, plus O(log min(|a|, |b|)) for each block of the output. Each element moves once,
    /// and there is no scratch memory.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is not enough memory for the result, and [`Error::Threads`] if the system
    /// refuses to start the engine's threads. The elements are dropped then.
    ///
    /// # Panics
    /// Panics if `compare` does. The elements are dropped then.
    ///
    /// ```
    /// let (a, b) = (["fig", "pear"].map(String::from), ["apple", "figs", "nut"].map(String::from));
    /// let (merged, _) = merge_host::Engine::auto().merge_by(a.to_vec(), b.to_vec(), |a, b| a.cmp(b))?;
    /// assert_eq!(merged, ["apple", "fig", "figs", "nut", "pear"]);
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn merge_by<T: Send>(
        &self,
        a: Vec<T>,
        b: Vec<T>,
        compare: impl Fn(&T, &T) -> std::cmp::Ordering + Sync,
    ) -> Result<(Vec<T>, Timing), Error> {
        let is_less = |a: &T, b: &T| compare(a, b).is_lt();
        let mut merged = Vec::new();
        let steps = self.workers.try_merge(a.len().saturating_add(b.len()), |threads| {
            merged = merge_by::merge_by(a, b, &is_less, threads)?;
            Ok(())
        })?;
        Ok((merged, self.timing_on_cpu(steps)))
    }

    /// Sorts keys with values, as [`sort_with`](Self::sort_with) does. The values are of any type, are moved, and need
    /// not be `Copy`. Stable.
    ///
    /// # Complexity
    /// That of [`argsort`](Self::argsort), on the GPU if the engine uses one. The values are moved on the CPU cores,
    /// twice each. The scratch memory holds n indices and n keys or values, whichever are larger.
    ///
    /// # Errors
    /// The errors of [`sort_with`](Self::sort_with). If there is not enough memory to move the values, keys and values
    /// are unchanged.
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let (mut keys, mut values) = ([2, 7, 2], ["first 2", "7", "second 2"].map(String::from));
    /// Engine::auto().sort_owned(SortOrder::Ascending, (&mut keys, &mut values))?;
    /// assert_eq!((keys, values), ([2, 2, 7], ["first 2", "second 2", "7"].map(String::from)));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_owned<K: Key, V: Send>(
        &self,
        options: impl Into<SortOptions>,
        mut elements: impl ElementsMut<K, V>,
    ) -> Result<Timing, Error> {
        let (options, run) = (options.into(), elements.run_mut("the input")?);
        if run.keys.len() as u128 <= u32::COUNT {
            self.sort_owned_by::<K, V, u32>(options, run)
        } else {
            self.sort_owned_by::<K, V, u64>(options, run)
        }
    }

    /// [`sort_owned`](Self::sort_owned) with indices of a type that can number all keys.
    fn sort_owned_by<K: Key, V: Send, I: Index>(
        &self,
        options: SortOptions,
        RunMut { keys, values }: RunMut<K, V>,
    ) -> Result<Timing, Error> {
        let mut indices = Scratch::<I>::init(keys.len())?;
        let sorted = self.argsort(options, keys, &mut indices)?;
        let moved = self.workers.sort(keys.len(), |threads| {
            let permutation = Permutation::check(&indices, keys.len(), threads)?;
            permutation.permute_both(keys, values, threads)
        })?;
        Ok(sorted.and_compute(moved.compute))
    }
}
