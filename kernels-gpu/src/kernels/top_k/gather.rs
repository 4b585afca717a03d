//! Keys that do not exceed the sample's bound, in one reading of all keys.
//!
//! Nobody knows before how many of these a warp will find, nor those before it. So each takes pages, of which a warp
//! writes one at once, and remembers whose they are:
//!
//! ```text
//!   warp       0           1     2     …
//!   keys     │ ■■ ■■■ ■■ │  ■  │ ■■■ │            found: 40 of warp 0, 3 of warp 1, 50 of warp 2
//!
//!   pages    │ warp 2, first │ warp 0, first │ warp 1, first │ warp 0, second │ warp 2, second │ …
//!
//!   packed   │ warp 0, first, second │ warp 1, first │ warp 2, first, second │ …      the order of the keys
//! ```

use super::{KEYS4, KEYS8, Progress, next_row};
use crate::elements::{Elements, Slice, Source, has_values};
use crate::key::{Bits, Coding};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, shuffle_idx};

/// Threads of a block.
pub const THREADS: usize = 512;

/// Blocks of a multiprocessor.
pub const BLOCKS: usize = 2;

/// Warps of a block.
pub const WARPS: usize = THREADS / WARP_SIZE as usize;

/// Elements of a page: one for each lane.
pub const PAGE: usize = WARP_SIZE as usize;

/// What is known of pages, in a workspace.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// How many have been taken, which is 0 before; if more than there are, these are not all of the keys.
    pub taken: *mut u32,
    /// How many keys each warp has found.
    pub of_warps: *mut u32,
    /// For each page the warp that has taken it, and its number among those of this warp.
    pub owners: *mut u32,
    /// How many there are.
    pub count: u32,
    /// The warps of the launch that takes pages.
    pub warps: u32,
}

/// The opened parts of [`Pages`].
pub(super) struct Opened {
    pub(super) taken: GlobalMut<u32>,
    pub(super) of_warps: GlobalMut<u32>,
    pub(super) owners: GlobalMut<u32>,
}

impl Pages {
    /// # Safety
    /// Each part has as many words as it is described to have. No launch both reads and writes a word but `taken`,
    /// which all add to.
    #[inline(always)]
    pub(super) unsafe fn open(self) -> Opened {
        // SAFETY: the caller's promise.
        unsafe {
            Opened {
                taken: GlobalMut::new(self.taken, 1),
                of_warps: GlobalMut::new(self.of_warps, self.warps as usize),
                owners: GlobalMut::new(self.owners, 2 * self.count as usize),
            }
        }
    }
}

/// Kernel: writes the keys of `from` that do not exceed the bound to pages of `to`, as ordered bits, with their values,
/// or their indices if `from` has no values, or none if `V` is `()`. If there is no bound, does nothing.
///
/// # Safety
/// `to` has [`PAGE`] elements for each page; `pages` are as they are described, and `progress` is what `take_sample`
/// has written. Blocks are of [`THREADS`] threads, with as many warps as `pages` says.
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
    // SAFETY: `progress` is only read here.
    let Some(bound) = (unsafe { Progress::new(progress) }).bound() else { return };
    let bound = B::from_register(bound);
    // SAFETY: there are so many elements, as the caller promises, which nothing writes during the launch; each page is
    // written by the warp that has taken it.
    let (n, has_indices) = (from.len, from.at.values.is_null());
    let (Source { keys, values }, to, of_pages) =
        unsafe { (from.source(), to.arrays(pages.count as usize * PAGE), pages.open()) };
    let lane = warp::lane_id();
    let warp = thread::block_idx_x() * WARPS as u32 + thread::thread_idx_x() / WARP_SIZE;
    // The next page for key `found` of this warp, for all lanes.
    let take_page = |found: u32| {
        let mut page = 0;
        if lane == 0 {
            page = of_pages.taken.fetch_add(0, 1);
            if page < pages.count {
                of_pages.owners.set(2 * page as usize, warp);
                of_pages.owners.set(2 * page as usize + 1, found / PAGE as u32);
            }
        }
        // SAFETY: `FULL_MASK` names the warp's 32 lanes, which are all here: what they branch on is the same for all,
        // here and below.
        unsafe { shuffle_idx(FULL_MASK, page, 0) }
    };
    let (tile, warps) = (WARP_SIZE as usize * VT, pages.warps as usize);
    // SAFETY: a grid has a warp. A division by 0 would bring in the code of a panic.
    unsafe { core::hint::assert_unchecked(warps != 0) };
    let share = n.div_ceil(warps).next_multiple_of(tile);
    let mut begin = (warp as usize * share).min(n);
    let end = (begin + share).min(n);
    let (mut found, mut page) = (0, 0);
    while begin < end {
        let row = |i: usize| begin + i * WARP_SIZE as usize + lane as usize;
        let mut own = [coding.decode(B::MAX); VT];
        // Each kind of tile has loads of its own, so that those of a full one are nothing else.
        if begin + tile <= end {
            for i in 0..VT {
                own[i] = keys.get(row(i));
            }
        } else {
            for i in 0..VT {
                if row(i) < end {
                    own[i] = keys.get(row(i));
                }
            }
        }
        coding.encode_all(&mut own);
        let mut rows = 0;
        for i in 0..VT {
            rows |= ((own[i] <= bound) as u32) << i;
        }
        // SAFETY: all lanes are here.
        while let Some((i, left)) = unsafe { next_row::<VT>(rows) } {
            let is_found = rows >> i & 1 != 0 && row(i) < end;
            rows = left;
            // SAFETY: as above.
            let of_row = unsafe { warp::ballot(FULL_MASK, is_found) };
            let count = of_row.count_ones();
            // Those of a row go to a page that has been begun, and to the next one.
            let taken = found % PAGE as u32;
            if taken == 0 && count > 0 {
                page = take_page(found);
            }
            let first = page;
            if taken + count > PAGE as u32 {
                page = take_page(found + count);
            }
            if first.max(page) >= pages.count {
                return;
            }
            if is_found {
                let slot = taken + (of_row & ((1 << lane) - 1)).count_ones();
                let of_slot = if slot < PAGE as u32 { first } else { page };
                let place = of_slot as usize * PAGE + (slot % PAGE as u32) as usize;
                // Read again: to find the key of a row in registers takes more.
                to.keys.set(place, coding.encode(keys.get(row(i))));
                if has_values::<V>() {
                    to.values
                        .set(place, if has_indices { V::from_register(row(i) as u64) } else { values.get(row(i)) });
                }
            }
            found += count;
        }
        begin += tile;
    }
    if lane == 0 {
        of_pages.of_warps.set(warp as usize, found);
    }
}
