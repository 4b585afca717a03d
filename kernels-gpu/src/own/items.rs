//! Items of several words, in global and in shared memory.
//!
//! An item is read and written word by word, 4 bytes each. Threads that move a whole tile move its words, without regard to
//! items, so that neighbouring threads use neighbouring words:
//!
//! ```text
//!   items    │ 0       │ 1       │ 2       │ …
//!   words    │ 0  1  2 │ 3  4  5 │ 6  7  8 │ …         thread t moves words t, t + NT, …
//! ```

use super::order::{Compare, Ordered};
use crate::sequence::Sequence;
use bytemuck::Pod;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The most bytes of an item, and of a value.
pub const MOST_BYTES: usize = 64;

/// The words of an item of type `T`, which the compiler refuses if it has another size than an item can have.
pub const fn words<T>() -> usize {
    const {
        check_size::<T>();
        size_of::<T>() / 4
    }
}

/// Stops the compiler where it computes this for a type of another size than an item can have.
///
/// # Panics
/// If `T` has no multiple of 4 bytes, or more than [`MOST_BYTES`].
pub const fn check_size<T>() {
    assert!(size_of::<T>().is_multiple_of(4), "an item or a value has a multiple of 4 bytes");
    assert!(size_of::<T>() <= MOST_BYTES, "an item or a value has at most 64 bytes: sort the indices of longer ones");
}

/// The item whose words `word` gives.
#[inline(always)]
fn of_words<T: Pod>(word: impl Fn(usize) -> u32) -> T {
    let mut item = T::zeroed();
    let first = (&raw mut item).cast::<u32>();
    let mut i = 0;
    while i < const { words::<T>() } {
        // SAFETY: the item has so many words, and any bytes are an item.
        unsafe { first.add(i).write_unaligned(word(i)) };
        i += 1;
    }
    item
}

/// Calls `put` with the words of an item and their numbers.
#[inline(always)]
fn to_words<T: Pod>(item: &T, put: impl Fn(usize, u32)) {
    let first = (&raw const *item).cast::<u32>();
    let mut i = 0;
    while i < const { words::<T>() } {
        // SAFETY: the item has so many words, all of whose bytes are initialized.
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
    /// The `len` items from `first` on.
    ///
    /// # Safety
    /// As for [`Global::new`], but that `first` is aligned to 4 bytes.
    #[inline(always)]
    pub unsafe fn new(first: *const T, len: usize) -> Self {
        // SAFETY: an item is so many words; the caller's promise for the rest.
        Self { words: unsafe { Global::new(first.cast(), len * words::<T>()) }, len, of: PhantomData }
    }

    /// Length in items.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
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

    /// The `len` items from `start` on.
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
    /// The `len` items from `first` on.
    ///
    /// # Safety
    /// As for [`GlobalMut::new`], but that `first` is aligned to 4 bytes.
    #[inline(always)]
    pub unsafe fn new(first: *mut T, len: usize) -> Self {
        // SAFETY: an item is so many words; the caller's promise for the rest.
        Self { words: unsafe { GlobalMut::new(first.cast(), len * words::<T>()) }, of: PhantomData }
    }

    /// The `len` items from `start` on.
    #[inline(always)]
    #[track_caller]
    pub fn slice(self, start: usize, len: usize) -> Self {
        Self { words: self.words.slice(start * words::<T>(), len * words::<T>()), of: PhantomData }
    }

    /// Makes each of these items, which are at most a tile, the one of `from` whose index `source` says, with all `threads` threads of the block.
    #[inline(always)]
    #[track_caller]
    pub fn gather(self, from: Items<T>, source: impl Fn(usize) -> usize, threads: u32) {
        // Of no words there are none to divide, but the compiler would keep the code of a panic.
        let each = const { if words::<T>() == 0 { 1 } else { words::<T>() as u32 } };
        for_each_word(self.words.len(), threads, |word| {
            let (i, of_item) = (word as u32 / each, word as u32 % each);
            self.words.set(word, from.words.get(source(i as usize) * each as usize + of_item as usize));
        });
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
    /// Room for `len` items, `byte_offset` bytes into the dynamic shared memory of the launch.
    ///
    /// # Safety
    /// As for [`Shared::dynamic`], of as many words.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn dynamic(byte_offset: u32, len: u32) -> Self {
        // SAFETY: an item is so many words; the caller's promise for the rest.
        Self { words: unsafe { Shared::dynamic(byte_offset, len * words::<T>() as u32) }, len, of: PhantomData }
    }

    /// Item `i`.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: u32) -> T {
        of_words(|word| self.words.get(i * words::<T>() as u32 + word as u32))
    }

    /// Makes item `i` be `item`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: u32, item: T) {
        to_words(&item, |word, value| self.words.set(i * words::<T>() as u32 + word as u32, value));
    }

    /// The `len` items from `start` on.
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

    /// The same from an array that this launch writes.
    #[inline(always)]
    #[track_caller]
    pub fn fill_mut(self, from: ItemsMut<T>, threads: u32) {
        for_each_word(from.words.len(), threads, |word| self.words.set(word as u32, from.words.get(word)));
    }

    /// Copies as many of the first items as `to` has to it.
    #[inline(always)]
    #[track_caller]
    pub fn copy_to(self, to: ItemsMut<T>, threads: u32) {
        for_each_word(to.words.len(), threads, |word| to.words.set(word, self.words.get(word as u32)));
    }
}

/// Calls `work` with the numbers of `count` words, shared among the `threads` threads of the block.
#[inline(always)]
#[track_caller]
fn for_each_word(count: usize, threads: u32, work: impl Fn(usize)) {
    let mut word = thread::thread_idx_x() as usize;
    while word < count {
        work(word);
        word += threads as usize;
    }
}

/// Items as a sequence in an order.
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
