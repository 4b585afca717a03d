//! Items of several words, in global and in shared memory.
//!
//! An item is read and written word by word, 4 bytes each. Threads move the words of a whole tile, independent of
//! items, so that neighbouring threads access neighbouring words:
//!
//! ```text
//!   items    │ 0       │ 1       │ 2       │ …
//!   words    │ 0  1  2 │ 3  4  5 │ 6  7  8 │ …         thread t moves words t, t + NT, …
//! ```

use super::order::{Compare, Ordered};
use crate::elements::{Elements, Slice};
use crate::sequence::Sequence;
use bytemuck::Pod;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Maximum bytes of an item, and of a value.
pub const MOST_BYTES: usize = 64;

/// Number of words of an item of type `T`. Fails to compile for an unsupported size.
pub const fn words<T>() -> usize {
    const {
        check_size::<T>();
        size_of::<T>() / 4
    }
}

/// Checks the size of `T` at compile time.
///
/// # Panics
/// If the size of `T` is not a multiple of 4 bytes, or is above [`MOST_BYTES`].
pub const fn check_size<T>() {
    assert!(size_of::<T>().is_multiple_of(4), "an item or a value has a multiple of 4 bytes");
    assert!(size_of::<T>() <= MOST_BYTES, "an item or a value has at most 64 bytes: sort the indices of longer ones");
}

/// The item with the words that `word` returns.
#[inline(always)]
fn of_words<T: Pod>(word: impl Fn(usize) -> u32) -> T {
    let mut item = T::zeroed();
    let first = (&raw mut item).cast::<u32>();
    let mut i = 0;
    while i < const { words::<T>() } {
        // SAFETY: `i` is below the number of words of the item, and `T: Pod` is valid for any bytes.
        unsafe { first.add(i).write_unaligned(word(i)) };
        i += 1;
    }
    item
}

/// Calls `put` with the index and the value of each word of an item.
#[inline(always)]
fn to_words<T: Pod>(item: &T, put: impl Fn(usize, u32)) {
    let first = (&raw const *item).cast::<u32>();
    let mut i = 0;
    while i < const { words::<T>() } {
        // SAFETY: `i` is below the number of words of the item, and `T: Pod` has no uninitialized bytes.
        put(i, unsafe { first.add(i).read_unaligned() });
        i += 1;
    }
}

/// Items in global memory that this launch does not write.
#[derive(Clone, Copy)]
pub struct Items<T> {
    words: Global<u32>,
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> Items<T> {
    /// The `len` items from `first`.
    ///
    /// # Safety
    /// `first` points to `len` items in global memory that meet the requirements of [`Global::new`]. An alignment of 4
    /// bytes is sufficient.
    #[inline(always)]
    pub unsafe fn new(first: *const T, len: usize) -> Self {
        // SAFETY: `len` items are `len * words` words of 4 bytes, which the caller passes at an address aligned to 4
        // bytes.
        Self { words: unsafe { Global::new(first.cast(), len * words::<T>()) }, len, of: PhantomData }
    }

    /// Length in items.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Item `i`.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: usize) -> T {
        of_words(|word| self.words.get(i * words::<T>() + word))
    }

    /// The `len` items from item `start`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        Self { words: self.words.slice(start * words::<T>(), len * words::<T>()), len, of: PhantomData }
    }
}

/// Items in global memory that this launch writes.
#[derive(Clone, Copy)]
pub struct ItemsMut<T> {
    words: GlobalMut<u32>,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> ItemsMut<T> {
    /// The `len` items from `first`.
    ///
    /// # Safety
    /// `first` points to `len` items in global memory that meet the requirements of [`GlobalMut::new`]. An alignment of
    /// 4 bytes is sufficient.
    #[inline(always)]
    pub unsafe fn new(first: *mut T, len: usize) -> Self {
        // SAFETY: `len` items are `len * words` words of 4 bytes, which the caller passes at an address aligned to 4
        // bytes.
        Self { words: unsafe { GlobalMut::new(first.cast(), len * words::<T>()) }, of: PhantomData }
    }

    /// The `len` items from item `start`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        Self { words: self.words.slice(start * words::<T>(), len * words::<T>()), of: PhantomData }
    }

    /// Sets each item `i`, at most a tile, to item `source(i)` of `from`, with all `threads` threads of the block.
    #[inline(always)]
    #[track_caller]
    pub fn gather(self, from: Items<T>, source: impl Fn(usize) -> usize, threads: u32) {
        // Types without words need no division, but a divisor of 0 would compile to code that can panic.
        let each = const { if words::<T>() == 0 { 1 } else { words::<T>() as u32 } };
        for_each_word(self.words.len(), threads, |word| {
            let (i, of_item) = (word as u32 / each, word as u32 % each);
            self.words.set(word, from.words.get(source(i as usize) * each as usize + of_item as usize));
        });
    }
}

/// Items with their values, in global memory, that this launch does not write.
#[derive(Clone, Copy)]
pub(super) struct Source<T, V> {
    pub items: Items<T>,
    pub values: Items<V>,
}

impl<T: Pod, V: Pod> Source<T, V> {
    /// The elements of `slice`.
    ///
    /// # Safety
    /// There are `slice.len` items and values, and both meet the requirements of [`Items::new`].
    #[inline(always)]
    pub unsafe fn new(slice: Slice<T, V>) -> Self {
        let Slice { at, len } = slice;
        // SAFETY: the caller passes `len` items and `len` values that meet the requirements of `Items::new`.
        unsafe { Self { items: Items::new(at.keys, len), values: Items::new(at.values, len) } }
    }

    /// The `len` elements from element `start`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        Self { items: self.items.slice(start, len), values: self.values.slice(start, len) }
    }
}

/// Items with their values, in global memory, that this launch writes.
#[derive(Clone, Copy)]
pub(super) struct Target<T, V> {
    pub items: ItemsMut<T>,
    pub values: ItemsMut<V>,
}

impl<T: Pod, V: Pod> Target<T, V> {
    /// The `len` elements at `at`.
    ///
    /// # Safety
    /// There are `len` items and values, and both meet the requirements of [`ItemsMut::new`].
    #[inline(always)]
    pub unsafe fn new(at: Elements<T, V>, len: usize) -> Self {
        // SAFETY: the caller passes `len` items and `len` values that meet the requirements of `ItemsMut::new`.
        unsafe { Self { items: ItemsMut::new(at.keys, len), values: ItemsMut::new(at.values, len) } }
    }

    /// The `len` elements from element `start`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        Self { items: self.items.slice(start, len), values: self.values.slice(start, len) }
    }
}

/// Items in the block's shared memory.
#[derive(Clone, Copy)]
pub struct Tile<T> {
    words: Shared<u32>,
    len: u32,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> Tile<T> {
    /// An array of `len` items, `byte_offset` bytes into the dynamic shared memory of the launch.
    ///
    /// # Safety
    /// The words of `len` items meet the requirements of [`Shared::dynamic`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn dynamic(byte_offset: u32, len: u32) -> Self {
        // SAFETY: `len` items are `len * words` words, which meet the requirements of `Shared::dynamic`, as the caller
        // ensures.
        Self { words: unsafe { Shared::dynamic(byte_offset, len * words::<T>() as u32) }, len, of: PhantomData }
    }

    /// Item `i`.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: u32) -> T {
        of_words(|word| self.words.get(i * words::<T>() as u32 + word as u32))
    }

    /// Sets item `i` to `item`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: u32, item: T) {
        to_words(&item, |word, value| self.words.set(i * words::<T>() as u32 + word as u32, value));
    }

    /// The `len` items from item `start`.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: u32, len: u32) -> Self {
        Self { words: self.words.slice(start * words::<T>() as u32, len * words::<T>() as u32), len, of: PhantomData }
    }

    /// Copies `from` to the first items, with all `threads` threads of the block.
    #[inline(always)]
    #[track_caller]
    pub fn fill(self, from: Items<T>, threads: u32) {
        for_each_word(from.words.len(), threads, |word| self.words.set(word as u32, from.words.get(word)));
    }

    /// Like [`fill`](Self::fill), from an array that this launch writes.
    #[inline(always)]
    #[track_caller]
    pub fn fill_mut(self, from: ItemsMut<T>, threads: u32) {
        for_each_word(from.words.len(), threads, |word| self.words.set(word as u32, from.words.get(word)));
    }

    /// Copies the first items to all of `to`, with all `threads` threads of the block.
    #[inline(always)]
    #[track_caller]
    pub fn copy_to(self, to: ItemsMut<T>, threads: u32) {
        for_each_word(to.words.len(), threads, |word| to.words.set(word, self.words.get(word as u32)));
    }
}

/// Calls `work` with the indices of `count` words, striped over the `threads` threads of the block.
#[inline(always)]
#[track_caller]
fn for_each_word(count: usize, threads: u32, work: impl Fn(usize)) {
    let mut word = thread::thread_idx_x() as usize;
    while word < count {
        work(word);
        word += threads as usize;
    }
}

/// Items as a sequence in the order `C`.
pub(super) struct InOrder<C: Compare, S>(pub S, PhantomData<fn() -> C>);

impl<C: Compare, S> InOrder<C, S> {
    #[inline(always)]
    pub fn new(items: S) -> Self {
        Self(items, PhantomData)
    }
}

impl<C: Compare, S: Copy> Clone for InOrder<C, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Compare, S: Copy> Copy for InOrder<C, S> {}

impl<C: Compare> Sequence for InOrder<C, Items<C::Item>> {
    type Index = usize;
    type Item = Ordered<C>;
    #[inline(always)]
    fn length(self) -> usize {
        self.0.len
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: usize) -> Ordered<C> {
        Ordered(self.0.get(i))
    }
}

impl<C: Compare> Sequence for InOrder<C, Tile<C::Item>> {
    type Index = u32;
    type Item = Ordered<C>;
    #[inline(always)]
    fn length(self) -> u32 {
        self.0.len
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: u32) -> Ordered<C> {
        Ordered(self.0.get(i))
    }
}
