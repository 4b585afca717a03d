//! Histogram of a block in shared memory: the number of keys of each digit.
//!
//! ```text
//!   digit      │    0    │    1    │    2    │ …
//!   copy       │ 0  1    │ 0  1    │ 0  1    │
//!   lane         0  1 …    0  1 …    0  1 …       2 and 4 and so on add where 0 does
//! ```
//!
//! Lanes that add to the same word wait for each other. So each digit has several counters, which lanes use in turn. If
//! many keys have the same digit, fewer lanes of a warp add to the same word.

use cuda_std::prelude::*;

/// The counters of a block's digits: `COPIES` of each digit, a power of two. Copy `copy` of the counter of a digit is
/// word `digit * COPIES + copy`.
#[derive(Clone, Copy)]
pub struct Counters<const COPIES: u32>(pub Shared<u32>);

impl<const COPIES: u32> Counters<COPIES> {
    /// Clears the counters of the first `count` digits. All `NT` threads of the block make this call.
    #[inline(always)]
    #[track_caller]
    pub fn clear<const NT: usize>(self, count: u32) {
        super::clear::<NT>(self.0, count * COPIES);
    }

    /// Adds a key of `digit`.
    #[inline(always)]
    #[track_caller]
    pub fn add(self, digit: u32) {
        let copy = warp::lane_id() % COPIES;
        self.0.slice(copy, self.0.len() + 1 - COPIES).fetch_add(digit * COPIES, 1);
    }

    /// Number of keys that have been added for `digit`.
    #[inline(always)]
    #[track_caller]
    pub fn of(self, digit: u32) -> u32 {
        let mut sum = 0;
        for copy in 0..COPIES {
            // Neighbouring lanes read neighbouring digits, each another copy, so that they use more banks.
            let copy = if COPIES > 2 { (copy + digit) % COPIES } else { copy };
            sum += self.0.get(digit * COPIES + copy);
        }
        sum
    }

    /// Adds the block's counts to the `counters` of all blocks. All `NT` threads of the block make this call, after a
    /// barrier.
    #[inline(always)]
    #[track_caller]
    pub fn add_to<const NT: usize>(self, counters: GlobalMut<u32>) {
        let mut digit = thread::thread_idx_x();
        while digit < counters.len() as u32 {
            let of_block = self.of(digit);
            if of_block > 0 {
                counters.fetch_add(digit as usize, of_block);
            }
            digit += NT as u32;
        }
    }
}
