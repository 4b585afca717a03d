//! The plan of a sort: which kernels sort these keys, and in what shapes.

use super::super::divide::DividePlan;
use super::super::radix::RadixPlan;
use super::super::{Thresholds, suffix};
use crate::SortKernel;
use crate::gpu::kernels::Shape;
use kernels_gpu::kernels::sort::block_sort;
use kernels_gpu::kernels::sort::merge_pass::{self, merge_runs};
use kernels_gpu::kernels::sort::runs::{Passes, Runs};
use kernels_gpu::kernels::sort::sort_small;
use kernels_gpu::key::Bits;
use kernels_gpu::tuning::{self, Tile};

/// The shapes of a sort's two phases.
#[derive(Clone, Copy)]
pub struct SortPlan {
    pub(super) value_bytes: usize,
    /// Whether values begin as the keys' indices.
    pub(super) indexes: bool,
    /// The shape of the one block that sorts all keys, and the suffix of its kernel, if there is one block. The other
    /// shapes are for other kernels ([`with_kernel`](Self::with_kernel)).
    one_block: Option<(Tile, &'static str)>,
    pub(super) block: Tile,
    /// The suffix of the first phase's kernels.
    block_shape: &'static str,
    pub(super) runs: Tile,
    /// Few keys: other shapes, and no launches that find splits.
    pub(super) small: bool,
    /// Keys that are merged in any case have their runs detected from this number on.
    pub(super) detection_keys: usize,
    /// The division of keys that are spread evenly.
    pub(super) divide: Option<DividePlan>,
    /// The sort by all bits of keys that are not divided, instead of merges.
    pub(super) radix: Option<RadixPlan>,
    /// Whether parts are sorted by plans of their own, and merged. The shapes are then for other kernels
    /// ([`with_kernel`](Self::with_kernel)).
    pub(super) in_parts: bool,
}

impl SortPlan {
    /// The plan for `n` keys with bits `B` and values of `value_bytes` bytes, or 0. Values begin as the keys' indices
    /// if it `indexes`.
    pub(in crate::gpu) const fn of<B: Bits>(n: usize, value_bytes: usize, indexes: bool) -> Self {
        Self::by::<B>(&Thresholds::DEFAULT, n, value_bytes, indexes)
    }

    /// [`of`](Self::of) by the given thresholds.
    ///
    /// # Panics
    /// If runs may be detected of few keys, since the kernels that merge runs have the shape for many keys. Also if
    /// runs may be detected of keys that are sorted by all bits without an attempt to divide them.
    pub const fn by<B: Bits>(thresholds: &Thresholds, n: usize, value_bytes: usize, indexes: bool) -> Self {
        let small = n <= thresholds.small_sort;
        let ((block, block_shape), runs) = match (value_bytes, small) {
            (0, false) => ((tuning::block(size_of::<B>()), ""), tuning::runs(size_of::<B>())),
            (0, true) => (tuning::small_block(size_of::<B>(), n), tuning::small_runs(size_of::<B>())),
            (value_bytes, _) => {
                let (block, runs) = tuning::sort_pairs(size_of::<B>(), value_bytes);
                ((block, ""), runs)
            }
        };
        let in_parts = n > thresholds.whole;
        let divide = if n <= thresholds.undivided(size_of::<B>(), value_bytes) || in_parts {
            None
        } else {
            DividePlan::of::<B>(thresholds, n, value_bytes, indexes)
        };
        let radix = if n <= thresholds.merged(value_bytes) || in_parts {
            None
        } else {
            RadixPlan::of::<B>(thresholds, n, value_bytes, indexes)
        };
        let detection_keys = thresholds.detection_keys;
        let one_block =
            if n <= thresholds.one_block { tuning::sort_small(size_of::<B>(), value_bytes, n) } else { None };
        let plan = Self {
            value_bytes,
            indexes,
            one_block,
            block,
            block_shape,
            runs,
            small,
            detection_keys,
            divide,
            radix,
            in_parts,
        };
        assert!(!(small && plan.detects(n)), "runs are detected of few keys");
        assert!(
            divide.is_some() || radix.is_none() || n < detection_keys,
            "runs are detected of keys that are not divided"
        );
        plan
    }

    /// This plan with the given kernel. The workspace of [`SortKernel::Auto`] is enough for any kernel.
    pub const fn with_kernel(self, kernel: SortKernel) -> Self {
        match kernel {
            SortKernel::Auto => self,
            SortKernel::MergePath => Self { one_block: None, divide: None, radix: None, in_parts: false, ..self },
        }
    }

    /// This plan for keys of which only the lowest `bits` bits differ from 0, as they are encoded. Two passes of a sort
    /// by all bits are faster than divisions.
    pub(super) const fn with_bits(self, bits: u32) -> Self {
        match self.radix {
            Some(radix) if bits <= 16 => {
                Self { divide: None, detection_keys: usize::MAX, radix: Some(radix.with_bits(bits)), ..self }
            }
            _ => self,
        }
    }

    /// The shape of the launch of one block for all keys, and the suffix of its kernel, if there is one block.
    pub(super) fn one_block<B: Bits>(self) -> Option<(Shape, String)> {
        let (tile, shape) = self.one_block?;
        let shared_bytes = sort_small::shared_bytes(tile, size_of::<B>(), self.value_bytes);
        Some((Shape { blocks: 1, threads: tile.threads as u32, shared_bytes }, self.suffix_of_shape::<B>(shape)))
    }

    /// The suffix of the kernels of the passes, which serve all keys of the width of `B`.
    pub(super) fn suffix<B: Bits>(self) -> String {
        self.suffix_of_shape::<B>(if self.value_bytes == 0 && self.small { "small" } else { "" })
    }

    /// The suffix of the kernel that sorts tiles.
    pub(super) fn block_suffix<B: Bits>(self) -> String {
        self.suffix_of_shape::<B>(self.block_shape)
    }

    fn suffix_of_shape<B: Bits>(self, shape: &str) -> String {
        format!("{}{shape}", suffix::<B>(self.value_bytes))
    }

    /// How far before or behind its rank a tile may begin, in keys. With values and many keys this is 0, and tiles
    /// begin at whole lines of memory.
    const fn rank_tolerance(self) -> u32 {
        match self.value_bytes {
            _ if self.small => tuning::ROW.small_rank_tolerance,
            0 => tuning::ROW.rank_tolerance,
            _ => 0,
        }
    }

    /// Whether values are set to their keys' indices before keys are sorted. A sort by all bits sets them by itself,
    /// but it does nothing if keys are in order.
    pub(super) const fn sets_indices(self, n: usize) -> bool {
        self.indexes && (self.radix.is_none() || self.detects(n))
    }

    /// Whether `detect_runs` is launched. It is if keys may be divided several times, after a sample that looks as if
    /// they were in order. It is also for many keys that are merged in any case.
    pub(super) const fn detects(self, n: usize) -> bool {
        n >= self.detection_keys || matches!(self.divide, Some(divide) if !divide.is_once())
    }

    /// The plan of a division, if one is enough.
    pub(super) fn once(self) -> Option<DividePlan> {
        self.divide.filter(|divide| divide.is_once())
    }

    /// Keys of a run of the first pass.
    pub(super) fn first_run(self) -> usize {
        self.once().map_or(self.block, DividePlan::tile).keys()
    }

    pub(super) fn passes(self, n: usize) -> Passes {
        Passes::of(n.div_ceil(self.first_run()))
    }

    /// Whether a block of `merge_runs` may be given several tiles.
    pub(super) fn takes_several<B: Bits>(self) -> bool {
        let is_of_few = self.small && self.value_bytes == 0;
        !is_of_few && merge_pass::takes_several(size_of::<B>(), self.value_bytes)
    }

    /// The runs of `run` keys of an array of `n`, for a pass that merges `k` runs at a time.
    pub(super) const fn runs_of_pass(self, n: usize, run: usize, k: u32) -> Runs {
        merge_pass::runs_in_tiles(n, run, k, self.runs, self.rank_tolerance())
    }

    pub(super) fn block_shape<B: Bits>(self, n: usize) -> Shape {
        let slots = self.block.keys();
        let shared_bytes = block_sort::shared_bytes(size_of::<B>(), self.value_bytes, slots);
        Shape { blocks: n.div_ceil(slots), threads: self.block.threads as u32, shared_bytes }
    }

    pub(super) fn runs_shape<B: Bits>(self, tiles: usize) -> Shape {
        let shared_bytes = merge_runs::shared_bytes(size_of::<B>(), self.value_bytes, self.runs.keys());
        Shape { blocks: tiles, threads: self.runs.threads as u32, shared_bytes }
    }
}
