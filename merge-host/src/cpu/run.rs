//! A run of key-value pairs. Keys without values are pairs with the value `()`.
//!
//! A value `()` takes no memory and no time, so one function handles both.

use crate::Key;
use kernels_gpu::sequence::Sequence;
use std::ops::Range;

/// Keys as a sequence for the kernels' searches and merges.
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

/// A run to read: keys, and the value of each.
#[derive(Clone, Copy)]
pub struct Run<'a, K, V> {
    pub keys: &'a [K],
    pub values: &'a [V],
}

/// A run to write: slots for keys, and for the value of each.
pub struct RunMut<'a, K, V> {
    pub keys: &'a mut [K],
    pub values: &'a mut [V],
}

impl<'a, K> Run<'a, K, ()> {
    /// A run of keys without values.
    #[inline(always)]
    pub fn of_keys(keys: &'a [K]) -> Self {
        Run { keys, values: &[(); usize::MAX][..keys.len()] }
    }
}

impl<'a, K, V> Run<'a, K, V> {
    /// A run of keys and the same number of values.
    pub fn new((keys, values): (&'a [K], &'a [V])) -> Self {
        Run { keys, values }
    }

    /// The part with the indices `range`.
    #[inline(always)]
    pub fn part(self, range: Range<usize>) -> Self {
        Run { keys: &self.keys[range.clone()], values: &self.values[range] }
    }
}

#[cfg(feature = "gpu")]
impl<'a, K: Key, V> Run<'a, K, V> {
    /// The same run, of keys of the type that a GPU has kernels for.
    pub fn on_gpu(self) -> Run<'a, K::OnGpu, V> {
        Run { keys: bytemuck::cast_slice(self.keys), values: self.values }
    }
}

#[cfg(feature = "gpu")]
impl<'a, K: Key, V> RunMut<'a, K, V> {
    /// The same run, of keys of the type that a GPU has kernels for.
    pub fn on_gpu(self) -> RunMut<'a, K::OnGpu, V> {
        RunMut { keys: bytemuck::cast_slice_mut(self.keys), values: self.values }
    }
}

impl<'a, K> RunMut<'a, K, ()> {
    /// Slots for keys without values.
    #[inline(always)]
    pub fn of_keys(keys: &'a mut [K]) -> Self {
        // An array of elements without a size takes no memory, so that none leaks.
        RunMut { values: &mut Box::leak(Box::new([(); usize::MAX]))[..keys.len()], keys }
    }
}

impl<'a, K, V> RunMut<'a, K, V> {
    /// Slots for keys, and for the same number of values.
    pub fn new((keys, values): (&'a mut [K], &'a mut [V])) -> Self {
        RunMut { keys, values }
    }

    /// The part with the indices `range`.
    #[inline(always)]
    pub fn part(&mut self, range: Range<usize>) -> RunMut<'_, K, V> {
        RunMut { keys: &mut self.keys[range.clone()], values: &mut self.values[range] }
    }

    /// The whole run, to read.
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

    /// Copies the keys of `from` at the given indices, in the order of the indices, with their values.
    #[inline(always)]
    pub fn gather(&mut self, from: Run<K, V>, mut indices: impl Iterator<Item = usize>)
    where
        K: Copy,
        V: Copy,
    {
        // The equal lengths let the compiler check the index of a key and of its value together.
        let from_values = &from.values[..from.keys.len()];
        let values = &mut self.values[..self.keys.len()];
        for (i, key) in self.keys.iter_mut().enumerate() {
            let Some(index) = indices.next() else { break };
            (*key, values[i]) = (from.keys[index], from_values[index]);
        }
    }

    /// The parts before and after index `middle`.
    #[inline(always)]
    pub fn split_at(self, middle: usize) -> (Self, Self) {
        let (keys, keys_after) = self.keys.split_at_mut(middle);
        let (values, values_after) = self.values.split_at_mut(middle);
        (RunMut { keys, values }, RunMut { keys: keys_after, values: values_after })
    }

    /// Parts of `length` keys; the last may be shorter.
    pub fn chunks(&mut self, length: usize) -> impl Iterator<Item = RunMut<'_, K, V>> {
        self.keys.chunks_mut(length).zip(self.values.chunks_mut(length)).map(RunMut::new)
    }
}
