//! Circular merge: a tiled merge that replaces only the consumed keys of a tile (figures 12.16 to 12.20).
//!
//! ```text
//!                start                        start advances by the consumed keys, wrapping at the end
//!   tile  ├··1··┼──▼─────0────────┤           0 keys left over from the last load
//!          ─────►  ▲                          1 keys loaded behind them, wrapping at the end
//!              loaded here
//! ```

use super::{BLOCK, TILE};
use crate::Key;
use crate::cpu::blocks::for_each_block_of_keys;
use crate::cpu::split::parts;
use kernels_gpu::sequence::Sequence;
use kernels_gpu::textbook::co_rank::co_rank;
use kernels_gpu::textbook::sequential::merge_sequential;

/// Merges `a` and `b` into `out`, which has the sum of their lengths.
pub(crate) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], threads: usize) {
    for_each_block_of_keys(out, BLOCK, threads, |begin, out| {
        let (mut a, mut b) = parts(a, b, begin, begin + out.len());
        let (mut a_tile, mut b_tile) = (CircularBuffer::new(), CircularBuffer::new());
        for out in out.chunks_mut(TILE) {
            a = a_tile.fill(a);
            b = b_tile.fill(b);
            // The buffers hold the next `out.len()` keys: a buffer that is not full holds the rest of its run.
            let i = co_rank(out.len(), a_tile.first(a_tile.length), b_tile.first(b_tile.length));
            let j = out.len() - i;
            merge_sequential(a_tile.first(i), b_tile.first(j), |k, key| out[k] = K::from_ordered(key));
            a_tile.consume(i);
            b_tile.consume(j);
        }
    });
}

/// A circular buffer of `length <= TILE` keys. The first key has index `start`, and the others follow, wrapping at the
/// end.
struct CircularBuffer<K> {
    keys: [K; TILE],
    start: usize,
    length: usize,
}

impl<K: Key> CircularBuffer<K> {
    fn new() -> Self {
        CircularBuffer { keys: [K::zeroed(); TILE], start: 0, length: 0 }
    }

    /// Loads keys until the buffer is full or `from` is exhausted, and returns the rest of `from`.
    fn fill<'a>(&mut self, from: &'a [K]) -> &'a [K] {
        let (load, rest) = from.split_at(from.len().min(TILE - self.length));
        // The free part of the buffer consists of two slices if it wraps at the end.
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

    /// Removes the first `count` keys.
    fn consume(&mut self, count: usize) {
        self.start = (self.start + count) % TILE;
        self.length -= count;
    }
}

/// Keys of a circular buffer as one sequence (figure 12.19).
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
