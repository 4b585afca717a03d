//! Keys in shared memory without bank conflicts: any 32 neighbouring keys are in different banks, and any 32 keys at a
//! stride of 32, too.
//!
//! ```text
//!   row     key  0  1  2  3 …
//!    0      │  0  1  2  3 …        a key's column is XORed with its row number modulo 32:
//!    1      │ 33 32 35 34 …        lanes that each read a row of 32 keys access different columns
//!    2      │ 66 67 64 65 …
//! ```
//!
//! In contrast to padding, two more instructions find the slot of a key at any index, so that merges can start
//! anywhere.

use crate::block::tile::Slots;
use crate::key::Bits;
use crate::sequence::Sequence;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Keys per row.
pub const ROW_KEYS: usize = WARP_SIZE as usize;

/// A range of keys of an array of whole rows in shared memory.
#[derive(Clone, Copy)]
pub struct Swizzled<B> {
    rows: Shared<B>,
    first: u32,
    len: u32,
}

impl<B: Bits> Swizzled<B> {
    /// All keys of `rows`, a multiple of [`ROW_KEYS`].
    #[inline(always)]
    pub fn new(rows: Shared<B>) -> Self {
        Self { rows, first: 0, len: rows.len() }
    }

    /// The address of the key at `place`, in bytes from the first row.
    #[inline(always)]
    fn address(self, place: u32) -> u32 {
        let column = (place / WARP_SIZE) & const { (WARP_SIZE - 1) * size_of::<B>() as u32 };
        self.rows.address(0) + (place ^ column)
    }

    /// Key `i`.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, i: u32) -> B {
        self.at_place(self.place(i))
    }

    /// Sets key `i` to `key`.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, i: u32, key: B) {
        self.rows.set_at(self.address(self.place(i)), key);
    }

    /// Starts an asynchronous copy of element `j` of `from` to key `i`, like [`Shared::copy_async_mut`].
    #[inline(always)]
    #[track_caller]
    pub fn copy_async_mut(self, i: u32, from: GlobalMut<B>, j: usize) {
        self.rows.copy_async_mut(self.rows.index(self.address(self.place(i))), from, j);
    }

    /// Calls `access` for each key of the row at key `i`, a multiple of 32, with the key's number in the row and its
    /// address. If `reversed`, the numbers count from the last key of the row.
    #[inline(always)]
    fn for_row(self, i: u32, reversed: bool, mut access: impl FnMut(usize, u32)) {
        let size = size_of::<B>() as u32;
        let row = (self.first + i) / WARP_SIZE;
        let column = (if reversed { !row } else { row }) % WARP_SIZE;
        let place = self.place(i) + column * size;
        for j in 0..ROW_KEYS {
            access(j, self.rows.address(0) + (place ^ (j as u32 * size)));
        }
    }

    /// The keys of the row that begins at key `i`, a multiple of 32.
    #[inline(always)]
    #[track_caller]
    pub fn row(self, i: u32) -> [B; ROW_KEYS] {
        let mut keys = [B::MAX; ROW_KEYS];
        self.for_row(i, false, |j, address| keys[j] = self.rows.get_at(address));
        keys
    }

    /// The first `len` keys of the row at key `i`, a multiple of 32, padded with `other`.
    #[inline(always)]
    #[track_caller]
    pub fn part_of_row(self, i: u32, len: u32, other: B) -> [B; ROW_KEYS] {
        let mut keys = [other; ROW_KEYS];
        self.for_row(i, false, |j, address| {
            if (j as u32) < len {
                keys[j] = self.rows.get_at(address);
            }
        });
        keys
    }

    /// Sets the keys of the row at key `i`, a multiple of 32, to `keys`, in reverse order if `reversed`.
    #[inline(always)]
    #[track_caller]
    pub fn set_row(self, i: u32, reversed: bool, keys: &[B; ROW_KEYS]) {
        self.for_row(i, reversed, |j, address| self.rows.set_at(address, keys[j]));
    }
}

impl<B: Bits> Sequence for Swizzled<B> {
    type Index = u32;
    type Item = B;
    #[inline(always)]
    fn length(self) -> u32 {
        self.len
    }
    #[inline(always)]
    #[track_caller]
    fn at(self, i: u32) -> B {
        self.get(i)
    }
}

impl<B: Bits> Slots<B> for Swizzled<B> {
    #[inline(always)]
    fn part(self, start: u32, len: u32) -> Self {
        Self { first: self.first + start, len, ..self }
    }

    #[inline(always)]
    fn place(self, i: u32) -> u32 {
        (self.first + i) * size_of::<B>() as u32
    }

    #[inline(always)]
    #[track_caller]
    fn at_place(self, place: u32) -> B {
        self.rows.get_at(self.address(place))
    }
}
