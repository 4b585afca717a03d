//! Merge through circular buffers: like the tiled merge, but only what was consumed is loaded again (figures 12.16 to
//! 12.20).
//!
//! ```text
//!                start                        start moves by what was consumed, around the end
//!   tile  ├··1··┼──▼─────0────────┤           0 keys still there from the last load
//!          ─────►  ▲                          1 keys loaded behind them, around the end
//!              filled here
//! ```

use super::{for_each_piece_of_keys, split::parts};
use crate::Key;
use kernels_gpu::co_rank::co_rank;
use kernels_gpu::sequence::Sequence;
use kernels_gpu::sequential::merge_sequential;

/// Keys that a thread merges.
const PIECE: usize = 1 << 14;
/// Keys in a buffer.
const TILE: usize = 1 << 10;

/// Merges `a` and `b` into `out`, which has room for just these.
pub(super) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], threads: usize) {
    for_each_piece_of_keys(out, PIECE, threads, |begin, out| {
        let (mut a, mut b) = parts(a, b, begin, begin + out.len());
        let (mut a_tile, mut b_tile) = (CircularBuffer::new(), CircularBuffer::new());
        for out in out.chunks_mut(TILE) {
            a = a_tile.fill(a);
            b = b_tile.fill(b);
            // The buffers hold the next out.len() keys: where one is not full, it holds all that is left.
            let i = co_rank(out.len(), a_tile.first(a_tile.length), b_tile.first(b_tile.length));
            let j = out.len() - i;
            merge_sequential(a_tile.first(i), b_tile.first(j), |k, key| out[k] = K::from_ordered(key));
            a_tile.consume(i);
            b_tile.consume(j);
        }
    });
}

/// Up to `TILE` keys, of which the first lies at `start` and the others follow around the end.
struct CircularBuffer<K> {
    keys: [K; TILE],
    start: usize,
    length: usize,
}

impl<K: Key> CircularBuffer<K> {
    fn new() -> Self {
        CircularBuffer { keys: [K::zeroed(); TILE], start: 0, length: 0 }
    }

    /// Loads as many keys as there is room for, and returns those that are left.
    fn fill<'a>(&mut self, from: &'a [K]) -> &'a [K] {
        let (load, rest) = from.split_at(from.len().min(TILE - self.length));
        // The room is in two stretches if it goes around the end.
        let begin = (self.start + self.length) % TILE;
        let (to_the_end, from_the_start) = load.split_at(load.len().min(TILE - begin));
        self.keys[begin..begin + to_the_end.len()].copy_from_slice(to_the_end);
        self.keys[..from_the_start.len()].copy_from_slice(from_the_start);
        self.length += load.len();
        rest
    }

    /// The first `length` keys.
    fn first(&self, length: usize) -> CircularSlice<'_, K> {
        CircularSlice { keys: &self.keys, start: self.start, length }
    }

    /// Makes room of the first `count` keys.
    fn consume(&mut self, count: usize) {
        self.start = (self.start + count) % TILE;
        self.length -= count;
    }
}

/// Keys of a circular buffer, read as if they lay in one stretch (figure 12.19).
#[derive(Clone, Copy)]
struct CircularSlice<'a, K> {
    keys: &'a [K; TILE],
    start: usize,
    length: usize,
}

impl<K: Key> Sequence for CircularSlice<'_, K> {
    type Index = usize;
    type Item = K::Bits;

    #[inline(always)]
    fn length(self) -> usize {
        self.length
    }

    #[inline(always)]
    fn at(self, i: usize) -> K::Bits {
        self.keys[(self.start + i) % TILE].to_ordered()
    }
}
