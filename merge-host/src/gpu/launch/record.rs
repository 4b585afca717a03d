//! A queue that records which entry points are launched, instead of launching them.

use super::*;
use crate::{BatchKernel, GpuKey, MergeKernel, Reduction, SetOperation, SortKernel, SortOrder};
use std::cell::RefCell;
use std::collections::HashSet;

/// The entry points launched so far.
#[derive(Default)]
pub(super) struct Record(RefCell<HashSet<Entry>>);

impl Queue for Record {
    fn multiprocessors(&self) -> usize {
        132
    }

    unsafe fn launch<A: Arguments>(&self, suffix: &str, shape: Shape, _: &A) -> Result<(), Error> {
        let kernel = A::KERNEL;
        assert!(A::instance(suffix).is_some(), "{} {suffix}", kernel.name);
        if shape.blocks > 0 {
            self.0.borrow_mut().insert((kernel.name, suffix.to_owned()));
        }
        Ok(())
    }

    unsafe fn clear(&self, _: Address, _: usize) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn copy(&self, _: Address, _: Address, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn join(&self, work: impl FnOnce(&Self, &Self) -> Result<(), Error>) -> Result<(), Error> {
        work(self, self)
    }
}

/// Addresses that nothing is read from.
const AT: Address = 1 << 20;

fn arrays(len: usize, value_bytes: usize) -> Arrays {
    Arrays { keys: AT, values: AT, len, value_bytes }
}

impl Record {
    /// All that is launched for keys of type `K` by the operations on a GPU, of all sizes and with all kinds of values.
    pub(super) fn of_all_operations<K: GpuKey>() -> HashSet<Entry> {
        let record = Self::default();
        for value_bytes in [0, 4, 8] {
            for kernel in SortKernel::ALL {
                record.sort_all_sizes::<K>(kernel, value_bytes).unwrap();
            }
            record.merge_all::<K>(value_bytes).unwrap();
            record.sort_segments::<K>(value_bytes).unwrap();
        }
        record.0.into_inner()
    }

    /// All that is launched by sorts of keys of type `K` alone or with values, by one kernel.
    pub(super) fn of_sorts<K: GpuKey>(kernel: SortKernel) -> HashSet<Entry> {
        let record = Self::default();
        for value_bytes in [0, 4, 8] {
            record.sort_all_sizes::<K>(kernel, value_bytes).unwrap();
        }
        record.0.into_inner()
    }

    /// Sorts at and around each power of two, among which are all sizes at which a sort takes other kernels.
    fn sort_all_sizes<K: GpuKey>(&self, kernel: SortKernel, value_bytes: usize) -> Result<(), Error> {
        for size in (0..=33).map(|log| 1 << log) {
            for n in [size - 1, size, size + 1] {
                for indexes in [false, value_bytes > 0] {
                    let how = (kernel, SortOrder::Ascending);
                    // SAFETY: nothing is launched.
                    unsafe { sort::sort::<K>(self, how, arrays(n, value_bytes), indexes, AT)? };
                }
            }
        }
        Ok(())
    }

    fn groups_all<K: GpuKey>(&self, at: Arrays, out: Arrays) -> Result<(), Error> {
        // SAFETY: nothing is launched.
        unsafe {
            groups::unique::<K>(self, at, out, AT, AT)?;
            for reduction in Reduction::ALL {
                match at.value_bytes {
                    0 => groups::run_lengths::<K>(self, at, out, AT, AT)?,
                    4 => {
                        groups::reduce_by_key::<K, i32>(self, reduction, at, out, AT, AT)?;
                        groups::reduce_by_key::<K, f32>(self, reduction, at, out, AT, AT)?;
                    }
                    _ => {
                        groups::reduce_by_key::<K, i64>(self, reduction, at, out, AT, AT)?;
                        groups::reduce_by_key::<K, f64>(self, reduction, at, out, AT, AT)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn sort_segments<K: GpuKey>(&self, value_bytes: usize) -> Result<(), Error> {
        let order = SortOrder::Ascending;
        // Indices of the latter have more than 32 bits.
        for n in [100_000, 1 << 33] {
            let at = arrays(n, value_bytes);
            // Of one length by a thread, by lanes, and by blocks.
            let of_length = [9, 100, 2000].map(|length| segments::Bounds::of_length(length, n));
            for bounds in [segments::Bounds::of_offsets(AT, 10, n)].into_iter().chain(of_length) {
                // SAFETY: nothing is launched.
                unsafe { segments::sort_segments::<K>(self, order, at, bounds, value_bytes > 0, AT)? };
            }
        }
        Ok(())
    }

    fn merge_all<K: GpuKey>(&self, value_bytes: usize) -> Result<(), Error> {
        let both = [10, 10_000, 100_000_000].map(|len| (arrays(len, value_bytes), arrays(2 * len, value_bytes)));
        let lengths = vec![1000; 40];
        let (many, tree) = (runs::ManyRuns::new(lengths.clone()), arrays(40_000, value_bytes));
        let batch = batch::Lengths { problems: 10, d: 100, a_len: 50 };
        // SAFETY: nothing is launched.
        unsafe {
            for (half, out) in both {
                batch::merge_ragged::<K>(self, (half, AT), (half, AT), 10, out, AT)?;
                sets::set_operation::<K>(self, SetOperation::Union, half, half, out, AT, AT)?;
                self.groups_all::<K>(half, out)?;
                top_k::top_k::<K>(self, SortOrder::Ascending, out, half, AT)?;
                if value_bytes > 0 {
                    let few = arrays(1, 0);
                    bounds::bounds::<K>(self, true, half, half, (AT, value_bytes), AT)?;
                    bounds::bounds::<K>(self, true, few, out, (AT, value_bytes), AT)?;
                }
                if value_bytes > 0 {
                    merge::merge_pairs::<K>(self, half, half, out, AT)?;
                    batch::merge_batch_pairs::<K>(self, [half, half, out], batch)?;
                    continue;
                }
                for kernel in MergeKernel::ALL {
                    merge::merge::<K>(self, kernel, half, half, AT, AT)?;
                }
                for kernel in BatchKernel::ALL {
                    batch::merge_batch::<K>(self, kernel, [AT; 3], batch)?;
                }
            }
            // Few of many, which are read once.
            let (all, first) = (arrays(1 << 28, value_bytes), arrays(1000, value_bytes));
            top_k::top_k::<K>(self, SortOrder::Ascending, all, first, AT)?;
            runs::merge_many::<K>(self, &many, tree, AT, AT)?;
            for count in [2, 40] {
                many_runs::merge_many_runs::<K>(self, SortOrder::Ascending, tree, (AT, count), tree, AT)?;
            }
            let groups = many_ragged::RunGroups {
                offsets: AT,
                runs: 40,
                groups: AT,
                count: 5,
                most_runs: usize::MAX,
                longest: usize::MAX,
            };
            many_ragged::merge_many_ragged::<K>(self, SortOrder::Ascending, tree, groups, tree, AT)?;
            runs::merge_tree::<K>(self, lengths, tree, tree, AT)?;
        }
        Ok(())
    }
}
