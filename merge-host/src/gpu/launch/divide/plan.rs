//! The plan of a sort that divides: how often, by how many digits, and in what shapes.

use super::super::{Address, Thresholds, suffix};
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::divide::workspace::{HEAD_WORDS, Job, Layout, Plan};
use kernels_gpu::kernels::sort::divide::{self as divisions, MOST_DIGITS_IN_ORDER, divide};
use kernels_gpu::kernels::sort::windows;
use kernels_gpu::key::Bits;
use kernels_gpu::tuning::{self, DivideTile, Tile};
use std::ptr;

/// The shape of blocks that sort long buckets. A multiprocessor holds one block.
pub(super) const LONG_BUCKETS: Tile = tuning::ROW.sort_long_buckets.of(4, 0);

/// The most keys of a long bucket of keys with bits `B` and values of `value_bytes` bytes, or 0 if there are none.
const fn most_of_long_bucket<B: Bits>(value_bytes: usize) -> u32 {
    if value_bytes == 0 && size_of::<B>() == 4 { LONG_BUCKETS.keys() as u32 } else { 0 }
}

/// The suffix of the instance that sorts long buckets.
pub(super) fn long_suffix<B: Bits>() -> String {
    format!("{}long", suffix::<B>(0))
}

/// Tiles of a part of a listed segment with values. More make fewer counts, but a segment's last part has fewer tiles,
/// and a block for each tile of a full part.
const LISTED_TILES: u32 = 4;

/// The plan of the divisions.
#[derive(Clone, Copy)]
pub(in crate::gpu::launch) struct DividePlan {
    pub(super) plan: Plan,
    /// Bytes of a value, or 0.
    pub(super) value_bytes: usize,
    /// Whether values begin as the keys' indices.
    pub(super) indexes: bool,
    /// The most digits of a last division.
    pub(super) most_digits: u32,
    pub(super) tile: DivideTile,
    pub(super) bucket: Tile,
}

impl DividePlan {
    /// The plan by these thresholds for `n` keys with bits `B` and values of `value_bytes` bytes, or 0. `None` if there
    /// are too many keys. Values begin as the keys' indices if it `indexes`.
    pub(in crate::gpu::launch) const fn of<B: Bits>(
        thresholds: &Thresholds,
        n: usize,
        value_bytes: usize,
        indexes: bool,
    ) -> Option<Self> {
        if n > divisions::MOST_KEYS {
            return None;
        }
        let &Thresholds { two_divisions, four_divisions, most_digits, several_tiles, counted_twice, .. } = thresholds;
        let (tile, bucket) = thresholds.divide(size_of::<B>(), value_bytes, n);
        let usual = divisions::usual_len(bucket.keys());
        let digits_once = if value_bytes == 0 { most_digits[0] } else { thresholds.digits_in_order };
        let once = digits_once as usize * usual;
        // Enough divisions to make buckets, or more than evenly spread keys need.
        let levels = match n {
            _ if n <= once => 1,
            _ if value_bytes == 0 && n <= two_divisions => 2,
            // Uneven keys of 8 bytes are merged. Uneven keys with values are merged or sorted by all of their bits.
            _ if n < four_divisions || value_bytes > 0 || size_of::<B>() == 8 => 3,
            _ => 4,
        };
        // Two divisions by more digits are faster than three, and by fewer digits otherwise.
        let divided_twice = (most_digits[1] as usize).pow(2) * usual;
        let most_digits = if levels == 1 || n > divided_twice { most_digits[0] } else { most_digits[1] };
        let tiles = if value_bytes > 0 && n >= several_tiles.0 { several_tiles.1 } else { 1 };
        let (in_order, tile_keys, bucket_keys) = ((value_bytes > 0) as u32, tile.keys() as u32, bucket.keys() as u32);
        let twice = (value_bytes == 0 && n >= counted_twice) as u32;
        // Uneven keys of 8 bytes are merged. Among few keys, few digits have too many keys.
        let long = if levels > 2 { most_of_long_bucket::<B>(value_bytes) } else { 0 };
        // A sort that sets indices does so after it has looked for order.
        let has_windows = n >= thresholds.windows && !indexes && windows::is_compiled(size_of::<B>(), value_bytes);
        let window = if has_windows { windows::WINDOW as u32 } else { 0 };
        let n = n as u32;
        let plan =
            Plan { n, levels, tile: tile_keys, tiles, bucket: bucket_keys, long, in_order, twice, listed: 0, window };
        Some(Self { plan, value_bytes, indexes, most_digits, tile, bucket })
    }

    /// The plan by these thresholds for listed segments of an array of `n` keys with bits `B` and values of
    /// `value_bytes` bytes, or 0. Each has more keys than one block sorts. `None` if there are too many keys.
    ///
    /// All distributions are divided. The digits of later levels come from samples of ever fewer keys, so that the
    /// levels separate keys that are close together. Evenly spread keys take one level or two.
    pub(in crate::gpu::launch) const fn of_segments<B: Bits>(
        thresholds: &Thresholds,
        n: usize,
        value_bytes: usize,
    ) -> Option<Self> {
        if n > divisions::MOST_LISTED_KEYS {
            return None;
        }
        let (tile, bucket) = thresholds.divide(size_of::<B>(), value_bytes, n);
        // With fewer digits, or without long buckets, uneven keys take more levels.
        let (levels, tiles, most_digits) = match (size_of::<B>(), value_bytes) {
            (4, 0) => (4, 1, thresholds.most_digits[1]),
            (_, 0) => (6, 1, thresholds.most_digits[1]),
            (4, _) => (5, LISTED_TILES, MOST_DIGITS_IN_ORDER - 2),
            _ => (6, LISTED_TILES, MOST_DIGITS_IN_ORDER - 2),
        };
        let plan = Plan {
            n: n as u32,
            levels,
            tile: tile.keys() as u32,
            tiles,
            bucket: bucket.keys() as u32,
            long: most_of_long_bucket::<B>(value_bytes),
            in_order: (value_bytes > 0) as u32,
            twice: 0,
            listed: 1,
            window: 0,
        };
        Some(Self { plan, value_bytes, indexes: false, most_digits, tile, bucket })
    }

    /// The job of this plan, with its lists at this address, as kernels take it.
    pub(in crate::gpu::launch) const fn job(&self, lists: Address) -> Job {
        Job::new(lists as *mut u32, ptr::null_mut(), self.plan)
    }

    /// Whether a single division is enough that need not keep an order.
    pub(in crate::gpu::launch) const fn is_once(self) -> bool {
        self.plan.is_once()
    }

    /// Whether keys that look as if they were nearly in their places are sorted by windows.
    pub(in crate::gpu::launch) const fn has_windows(self) -> bool {
        self.plan.window > 0
    }

    /// The launch of `blocks` blocks that divide tiles.
    pub(super) fn divide_shape<B: Bits>(self, blocks: usize) -> Shape {
        let Self { tile, value_bytes, .. } = self;
        let shared_bytes = divide::shared_bytes(tile.threads, tile.items_per_thread, size_of::<B>(), value_bytes);
        Shape { blocks, threads: tile.threads as u32, shared_bytes }
    }

    /// The suffix of the instance that divides tiles.
    pub(super) fn tile_suffix<B: Bits>(self) -> String {
        let is_large = self.value_bytes == 0 && self.tile == tuning::ROW.divide_many.of(4, 0);
        format!("{}{}", suffix::<B>(self.value_bytes), if is_large { "many" } else { "" })
    }

    /// Bytes of the heads of the lists. They say what there is to do, and that there is nothing to do if keys are not
    /// divided.
    pub(in crate::gpu::launch) const HEAD_BYTES: usize = HEAD_WORDS * size_of::<u32>();

    /// Bytes of the lists.
    pub(in crate::gpu::launch) const fn list_bytes(self) -> usize {
        Layout::of(&self.plan).words as usize * size_of::<u32>()
    }

    /// The tiles of the passes of merges if keys are not divided after all, and this [`is_once`](Self::is_once).
    pub(in crate::gpu::launch) const fn tile(self) -> Tile {
        self.bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_take_at_most_a_hundredth_of_what_keys_and_values_take() {
        fn check<B: Bits>() {
            for n in [(1 << 19) + 1, (1 << 21) + 1, 10_000_000, 1 << 24, 1 << 26, 1 << 28, divisions::MOST_KEYS] {
                for (value_bytes, indexes) in [(0, false), (4, true), (4, false), (8, false)] {
                    let plan = DividePlan::of::<B>(&Thresholds::DEFAULT, n, value_bytes, indexes)
                        .expect("there are not too many");
                    let bytes = plan.list_bytes();
                    assert!(bytes * 100 <= n * (size_of::<B>() + value_bytes), "{bytes} bytes for {n} keys");
                }
            }
        }
        fn check_segments<B: Bits>() {
            for n in [1 << 19, 5_000_000, 1 << 24, 1 << 28, divisions::MOST_LISTED_KEYS] {
                for value_bytes in [0, 4, 8] {
                    let plan = DividePlan::of_segments::<B>(&Thresholds::DEFAULT, n, value_bytes)
                        .expect("there are not too many");
                    let bytes = plan.list_bytes();
                    assert!(bytes * 60 <= n * (size_of::<B>() + value_bytes), "{bytes} bytes for {n} keys");
                }
            }
            let too_many = divisions::MOST_LISTED_KEYS + 1;
            assert!(DividePlan::of_segments::<B>(&Thresholds::DEFAULT, too_many, 0).is_none());
        }
        check::<u32>();
        check::<u64>();
        check_segments::<u32>();
        check_segments::<u64>();
        assert!(DividePlan::of::<u32>(&Thresholds::DEFAULT, divisions::MOST_KEYS + 1, 0, false).is_none());
    }
}
