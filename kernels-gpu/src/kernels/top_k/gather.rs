//! Gathers the keys that do not exceed the sample's bound, in one pass over all keys.
//!
//! The number of keys that a warp and its predecessors will find is unknown. Warps therefore allocate pages from a
//! common counter, fill one page at a time, and record the owner of each page:
//!
//! ```text
//!   warp       0           1     2     …
//!   keys     │ ■■ ■■■ ■■ │  ■  │ ■■■ │            found: 40 by warp 0, 3 by warp 1, 50 by warp 2
//!
//!   pages    │ warp 2, first │ warp 0, first │ warp 1, first │ warp 0, second │ warp 2, second │ …
//!
//!   packed   │ warp 0, first, second │ warp 1, first │ warp 2, first, second │ …      the order of the keys
//! ```

use super::{Input, KEYS4, KEYS8, Progress, next_row};
use crate::elements::{Elements, Slice};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, shuffle_idx};

/// Threads of a block.
pub const THREADS: usize = 512;

/// Blocks per multiprocessor.
pub const BLOCKS: usize = 2;

/// Warps of a block.
pub const WARPS: usize = THREADS / WARP_SIZE as usize;

/// Elements per page: one for each lane.
pub const PAGE: usize = WARP_SIZE as usize;

/// The bookkeeping of pages, in a workspace.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Number of pages taken, initially 0. If it exceeds `count`, keys are missing.
    pub taken: *mut u32,
    /// Number of keys that each warp has found.
    pub of_warps: *mut u32,
    /// For each page, the warp that has taken it and the page's number in this warp.
    pub owners: *mut u32,
    /// Number of pages.
    pub count: u32,
    /// Number of warps of the launch of `gather`.
    pub warps: u32,
}

/// The parts of [`Pages`] as views.
pub(super) struct Opened {
    pub(super) taken: GlobalMut<u32>,
    pub(super) of_warps: GlobalMut<u32>,
    pub(super) owners: GlobalMut<u32>,
}

impl Pages {
    /// # Safety
    /// Each part has the documented number of words. No launch both reads and writes a word, except for atomic
    /// additions to `taken`.
    #[inline(always)]
    pub(super) unsafe fn open(self) -> Opened {
        // SAFETY: the caller passes one word at `taken`, `warps` words at `of_warps` and two words per page at
        // `owners`.
        unsafe {
            Opened {
                taken: GlobalMut::new(self.taken, 1),
                of_warps: GlobalMut::new(self.of_warps, self.warps as usize),
                owners: GlobalMut::new(self.owners, 2 * self.count as usize),
            }
        }
    }
}

/// Kernel: writes the keys of `from` that do not exceed the bound to pages of `to`, as ordered bits, with their values.
/// Without `from.values`, an element's index is its value; if `V` is `()`, there are no values. Does nothing if there
/// is no bound.
///
/// # Safety
/// `to` has [`PAGE`] elements for each page. The fields of `pages` meet their descriptions, and `take_sample` has
/// written `progress`. Blocks have [`THREADS`] threads, and the grid has the number of warps in `pages`.
#[kernel(
    u32 = <u32, (), KEYS4> within (THREADS, BLOCKS),
    u64 = <u64, (), KEYS8> within (THREADS, BLOCKS),
    u32v4 = <u32, u32, KEYS4> within (THREADS, BLOCKS),
    u32v8 = <u32, u64, KEYS4> within (THREADS, BLOCKS),
    u64v4 = <u64, u32, KEYS8> within (THREADS, BLOCKS),
    u64v8 = <u64, u64, KEYS8> within (THREADS, BLOCKS),
)]
pub unsafe fn gather<B: Bits, V: Word, const VT: usize>(
    from: Slice<B, V>,
    to: Elements<B, V>,
    pages: Pages,
    progress: *mut u64,
    coding: Coding<B>,
) {
    const { assert!(VT < 32, "a lane has a bit for each of its keys") };
    // SAFETY: this launch only reads `progress`.
    let Some(bound) = (unsafe { Progress::new(progress) }).bound() else { return };
    let bound = B::from_register(bound);
    // SAFETY: the caller passes `n` elements at `from`, which nothing writes during the launch, and `PAGE` elements per
    // page at `to`. Only the warp that has taken a page writes it.
    let (input, to, of_pages) =
        unsafe { (Input::new(from, coding), to.arrays(pages.count as usize * PAGE), pages.open()) };
    let (lane, tile, warps) = (warp::lane_id(), WARP_SIZE as usize * VT, pages.warps as usize);
    let warp = thread::block_idx_x() * WARPS as u32 + thread::thread_idx_x() / WARP_SIZE;
    // SAFETY: `pages.warps` is the number of warps of this grid, at least 1. Without this hint, the division would
    // compile to code that can panic.
    unsafe { core::hint::assert_unchecked(warps != 0) };
    let part = from.len.div_ceil(warps).next_multiple_of(tile);
    let mut begin = (warp as usize * part).min(from.len);
    let end = (begin + part).min(from.len);
    let mut own = OfWarp { pages: of_pages, count: pages.count, warp, found: 0, page: 0 };
    while begin < end {
        let row = |i: usize| begin + i * WARP_SIZE as usize + lane as usize;
        let found: [B; VT] = input.rows(row(0), end, begin + tile <= end);
        let mut rows = 0;
        for i in 0..VT {
            rows |= ((found[i] <= bound) as u32) << i;
        }
        // SAFETY: all 32 lanes make this call: `begin` and `end` are equal in the warp, and `next_row` ends the loop
        // equally in all lanes.
        while let Some((i, left)) = unsafe { next_row::<VT>(rows) } {
            let is_found = rows >> i & 1 != 0 && row(i) < end;
            rows = left;
            // SAFETY: `next_row` returned the same row to all 32 lanes, which all make this call.
            let Some(place) = (unsafe { own.place(is_found) }) else { return };
            if is_found {
                // The key is read again, since a register array cannot be indexed by a variable.
                input.copy(row(i), input.key(row(i)), to, place);
            }
        }
        begin += tile;
    }
    if lane == 0 {
        own.pages.of_warps.set(warp as usize, own.found);
    }
}

/// The pages of a warp.
struct OfWarp {
    pages: Opened,
    /// Number of all pages.
    count: u32,
    /// Number of the warp.
    warp: u32,
    /// Number of keys that the warp has found.
    found: u32,
    /// The current page.
    page: u32,
}

impl OfWarp {
    /// Takes the next page, for key number `found` of this warp. Returns it to all lanes.
    ///
    /// # Safety
    /// All lanes of the warp make this call.
    #[inline(always)]
    #[track_caller]
    unsafe fn take(&self, found: u32) -> u32 {
        let mut page = 0;
        if warp::lane_id() == 0 {
            page = self.pages.taken.fetch_add(0, 1);
            if page < self.count {
                self.pages.owners.set(2 * page as usize, self.warp);
                self.pages.owners.set(2 * page as usize + 1, found / PAGE as u32);
            }
        }
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call.
        unsafe { shuffle_idx(FULL_MASK, page, 0) }
    }

    /// Room for a row of the warp: the index of this lane's key in the array of all pages. `None` if no page is left.
    ///
    /// # Safety
    /// All lanes of the warp make this call.
    #[inline(always)]
    #[track_caller]
    unsafe fn place(&mut self, is_found: bool) -> Option<usize> {
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which all make this call.
        let of_row = unsafe { warp::ballot(FULL_MASK, is_found) };
        // The keys of a row go to the current page and, once it is full, to the next one.
        let (count, taken) = (of_row.count_ones(), self.found % PAGE as u32);
        // SAFETY: `found` and `count` are sums of ballots, so that the branches are equal in all lanes, which all make
        // these calls.
        let first = unsafe {
            if taken == 0 && count > 0 {
                self.page = self.take(self.found);
            }
            let first = self.page;
            if taken + count > PAGE as u32 {
                self.page = self.take(self.found + count);
            }
            first
        };
        if first.max(self.page) >= self.count {
            return None;
        }
        self.found += count;
        let slot = taken + (of_row & ((1 << warp::lane_id()) - 1)).count_ones();
        let of_slot = if slot < PAGE as u32 { first } else { self.page };
        Some(of_slot as usize * PAGE + (slot % PAGE as u32) as usize)
    }
}
