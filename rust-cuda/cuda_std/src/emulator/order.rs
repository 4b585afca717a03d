//! The order in which the threads of a launch run.

use super::{block::Block, random::Random};
use std::vec::Vec;

/// How the next block is chosen. Within a block, the next thread is a random one.
pub(super) enum Order {
    /// A random block, after one in `stay` steps on average.
    Random { stay: usize },
    /// The block with the highest priority that has a thread that is ready. At a few random steps, after one in `stay`
    /// on average, the running block gets the lowest priority. This finds errors that need one block to be late at one
    /// place. The source is "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (Burckhardt and
    /// others, 2010).
    Priorities { stay: usize, of: Vec<u64>, lowest: u64 },
}

impl Order {
    /// A random way to choose between `places` blocks.
    pub(super) fn new(places: usize, random: &mut Random) -> Self {
        if random.below(2) == 0 {
            return Self::Random { stay: [2, 16, 128][random.below(3)] };
        }
        let of = (0..places).map(|_| u64::MAX / 2 + (random.next() >> 1)).collect();
        Self::Priorities { stay: [16, 256, 4096][random.below(3)], of, lowest: u64::MAX / 2 }
    }

    /// The place of the next block, of those that `may_run`. `current` is the place of the last one.
    pub(super) fn next(
        &mut self,
        blocks: &[Block],
        current: usize,
        may_run: impl Fn(&Block) -> bool,
        random: &mut Random,
    ) -> Option<usize> {
        if blocks.len() == 1 {
            return may_run(&blocks[0]).then_some(0);
        }
        match self {
            Self::Random { stay } => {
                if may_run(&blocks[current]) && random.below(*stay) > 0 {
                    return Some(current);
                }
                let first = random.below(blocks.len());
                (0..blocks.len()).map(|i| (first + i) % blocks.len()).find(|&at| may_run(&blocks[at]))
            }
            Self::Priorities { stay, of, lowest } => {
                if random.below(*stay) == 0 {
                    *lowest -= 1;
                    of[current] = *lowest;
                }
                (0..blocks.len()).filter(|&at| may_run(&blocks[at])).max_by_key(|&at| of[at])
            }
        }
    }
}
