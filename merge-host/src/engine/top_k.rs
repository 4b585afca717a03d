//! The first keys of the order.

use super::Engine;
use super::check::{check_k, check_length};
use crate::cpu::top_k;
use crate::index::check_index_range;
use crate::{Error, Index, Key, SortOrder, Timing};

impl Engine {
    /// Fills `out` with the first `out.len()` of `keys` in the total order of their type, or descending: sorted.
    ///
    /// `keys` stay as they are. Every engine does this on the CPU cores, because a copy to a GPU takes longer than to look at the keys.
    /// `Stream::top_k` is for keys that are in a GPU's memory.
    ///
    /// # Complexity
    /// O(n + k log k) time for k of n keys, if their order is random; O(n log k) at most. The scratch memory holds 2k keys, or some ten thousand.
    ///
    /// # Errors
    /// [`Error::TooFewKeys`] if `out` is longer than `keys`, and [`Error::Threads`] if the system refuses to start the engine's threads.
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
        self.workers.sort(keys.len(), |threads| {
            top_k::top_k(order, keys, out, threads);
            Ok(())
        })
    }

    /// As [`top_k`](Self::top_k), and sets `indices` to the indices that these keys have in `keys`. Stable: of equal keys, the first ones are taken, and
    /// they stay in their order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many indices as keys of `out`, [`Error::TooManyKeys`] if there are more than 2^32 keys and the
    /// indices are `u32`, and those of [`top_k`](Self::top_k).
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
        self.workers.sort(keys.len(), |threads| {
            top_k::top_k_indices(order, keys, (out, indices), threads);
            Ok(())
        })
    }
}
