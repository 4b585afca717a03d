//! A run of keys with values, or of keys alone, which are keys with the value `()`.
//!
//! Of keys alone the values take no memory and no time, so that there is one merge for both.

use crate::Key;
use kernels_gpu::sequence::Sequence;
use rayon::prelude::*;
use std::ops::Range;

/// Keys alone, for the kernels' searches and merges.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a, K>(pub &'a [K]);

impl<K: Key> Sequence for Keys<'_, K> {
    type Index = usize;
    type Item = K::Bits;

    #[inline(always)]
    fn length(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn at(self, i: usize) -> K::Bits {
        self.0[i].to_ordered()
    }
}

/// A run to merge: keys, and the value of each.
#[derive(Clone, Copy)]
pub(super) struct Run<'a, K, V> {
    pub keys: &'a [K],
    pub values: &'a [V],
}

/// A run to fill: room for keys, and for the value of each.
pub(super) struct RunMut<'a, K, V> {
    pub keys: &'a mut [K],
    pub values: &'a mut [V],
}

impl<'a, K: Key> Run<'a, K, ()> {
    /// Keys alone.
    #[inline(always)]
    pub fn of_keys(keys: &'a [K]) -> Self {
        Run { keys, values: &[(); usize::MAX][..keys.len()] }
    }
}

impl<'a, K: Key, V> Run<'a, K, V> {
    /// Keys with as many values.
    pub fn new((keys, values): (&'a [K], &'a [V])) -> Self {
        Run { keys, values }
    }

    /// The part of it at `range`.
    #[inline(always)]
    pub fn part(self, range: Range<usize>) -> Self {
        Run { keys: &self.keys[range.clone()], values: &self.values[range] }
    }
}

impl<'a, K> RunMut<'a, K, ()> {
    /// Keys alone.
    #[inline(always)]
    pub fn of_keys(keys: &'a mut [K]) -> Self {
        // Without a size, they have no memory that could leak.
        let values = vec![(); keys.len()].leak();
        RunMut { keys, values }
    }
}

impl<'a, K, V> RunMut<'a, K, V> {
    /// Room for keys and as many values.
    pub fn new((keys, values): (&'a mut [K], &'a mut [V])) -> Self {
        RunMut { keys, values }
    }

    /// The part of it at `range`.
    #[inline(always)]
    pub fn part(&mut self, range: Range<usize>) -> RunMut<'_, K, V> {
        RunMut { keys: &mut self.keys[range.clone()], values: &mut self.values[range] }
    }

    /// All of it, to read.
    #[inline(always)]
    pub fn as_run(&self) -> Run<'_, K, V> {
        Run { keys: self.keys, values: self.values }
    }

    /// Copies a run of the same length.
    pub fn copy_from(&mut self, from: Run<K, V>)
    where
        K: Copy,
        V: Copy,
    {
        self.keys.copy_from_slice(from.keys);
        self.values.copy_from_slice(from.values);
    }

    /// Copies the keys of a run that are at `places`, with their values, one after another.
    #[inline(always)]
    pub fn gather(&mut self, from: Run<K, V>, places: impl Iterator<Item = usize>)
    where
        K: Copy,
        V: Copy,
    {
        // The compiler knows then that a place of a key is one of a value.
        let values = &from.values[..from.keys.len()];
        for (place, (key, value)) in places.zip(self.keys.iter_mut().zip(&mut *self.values)) {
            (*key, *value) = (from.keys[place], values[place]);
        }
    }

    /// What is before `middle`, and the rest.
    #[inline(always)]
    pub fn split_at(self, middle: usize) -> (Self, Self) {
        let (keys, keys_after) = self.keys.split_at_mut(middle);
        let (values, values_after) = self.values.split_at_mut(middle);
        (RunMut { keys, values }, RunMut { keys: keys_after, values: values_after })
    }

    /// Pieces of `length` keys, of which the last may be shorter.
    pub fn chunks(&mut self, length: usize) -> impl Iterator<Item = RunMut<'_, K, V>> {
        self.keys.chunks_mut(length).zip(self.values.chunks_mut(length)).map(RunMut::new)
    }

    /// [`chunks`](Self::chunks), for all threads.
    pub fn par_chunks(&mut self, length: usize) -> impl IndexedParallelIterator<Item = RunMut<'_, K, V>>
    where
        K: Send,
        V: Send,
    {
        self.keys.par_chunks_mut(length).zip(self.values.par_chunks_mut(length)).map(RunMut::new)
    }
}
