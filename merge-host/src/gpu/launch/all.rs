//! All operations on keys of one type, with lengths that reach all of their kernels.

use super::batch::{Batch, Lengths, Ragged};
use super::bounds::Bounds;
use super::exchange;
use super::groups::{ReduceByKey, RunLengths, Unique};
use super::many_ragged::{MergeManyRagged, RunGroups};
use super::many_runs::MergeMany;
use super::merge::Merge;
use super::segments::{self, SortSegments};
use super::sets::Sets;
use super::sort::Sort;
use super::top_k::TopK;
use crate::gpu::operation::Record;
use crate::{BatchKernel, Error, MergeKernel, Reduction, SetOperation, SortKernel};
use kernels_gpu::key::{Bits, Coding};

/// Adds all operations to the record.
pub(in crate::gpu) fn record<B: Bits>(record: &Record) -> Result<(), Error> {
    for value_bytes in [0, 4, 8] {
        SortKernel::ALL.into_iter().try_for_each(|kernel| sorts::<B>(record, kernel, value_bytes))?;
        segments::<B>(record, value_bytes)?;
        merges::<B>(record, value_bytes)?;
        selections::<B>(record, value_bytes)?;
        exchange::record::<B>(record, value_bytes)?;
    }
    Ok(())
}

/// Sorts at and around each power of two. Every threshold lies between two such lengths.
pub(in crate::gpu) fn sorts<B: Bits>(record: &Record, kernel: SortKernel, value_bytes: usize) -> Result<(), Error> {
    for size in (0..=33).map(|log| 1usize << log) {
        for n in [size - 1, size, size + 1] {
            for indexes in [false, value_bytes > 0] {
                record.add::<B>(&Sort { kernel, coding: Coding::NONE, at: Record::arrays(n, value_bytes), indexes })?;
            }
        }
    }
    Ok(())
}

fn segments<B: Bits>(record: &Record, value_bytes: usize) -> Result<(), Error> {
    // The second number has indices of more than 32 bits.
    for n in [100_000, 1 << 33] {
        let at = Record::arrays(n, value_bytes);
        // Rows that a thread sorts, rows that lanes sort, and rows that blocks sort.
        let of_length = [9, 100, 2000].map(|length| segments::Bounds::of_length(length, n));
        for bounds in [segments::Bounds::of_offsets(at.keys, 10, n)].into_iter().chain(of_length) {
            record.add::<B>(&SortSegments { coding: Coding::NONE, at, bounds, indexes: value_bytes > 0 })?;
        }
    }
    Ok(())
}

fn merges<B: Bits>(record: &Record, value_bytes: usize) -> Result<(), Error> {
    for len in [10, 10_000, 100_000_000] {
        let (a, out, coding) = (Record::arrays(len, value_bytes), Record::arrays(2 * len, value_bytes), Coding::NONE);
        let (b, offsets) = (a, [a.keys; 2]);
        let kernels = if value_bytes == 0 { &MergeKernel::ALL[..] } else { &[MergeKernel::Auto] };
        kernels.iter().try_for_each(|&kernel| record.add::<B>(&Merge { kernel, coding, a, b, out }))?;
        let lengths = Lengths { problems: 10, d: 100, a_len: 50 };
        let kernels = if value_bytes == 0 { &BatchKernel::ALL[..] } else { &[BatchKernel::Auto] };
        kernels
            .iter()
            .try_for_each(|&kernel| record.add::<B>(&Batch { kernel, coding, arrays: [a, b, out], lengths }))?;
        record.add::<B>(&Ragged { coding, a, b, offsets, problems: 10, out })?;
    }
    let array = Record::arrays(40_000, value_bytes);
    for runs in [2, 40] {
        record.add::<B>(&MergeMany { coding: Coding::NONE, from: array, offsets: (array.keys, runs), out: array })?;
    }
    let (offsets, most_runs) = (array.keys, usize::MAX);
    let groups = RunGroups { offsets, runs: 40, groups: offsets, count: 5, most_runs, longest: usize::MAX };
    record.add::<B>(&MergeManyRagged { coding: Coding::NONE, from: array, groups, out: array })
}

fn selections<B: Bits>(record: &Record, value_bytes: usize) -> Result<(), Error> {
    for len in [10, 10_000, 100_000_000] {
        let (half, all) = (Record::arrays(len, value_bytes), Record::arrays(2 * len, value_bytes));
        let count = half.keys;
        record.add::<B>(&TopK { coding: Coding::NONE, from: all, out: half })?;
        record.add::<B>(&Sets {
            coding: Coding::NONE,
            operation: SetOperation::Union,
            a: half,
            b: half,
            out: all,
            count,
        })?;
        record.add::<B>(&Unique { at: half, out: all, count })?;
        for reduction in Reduction::ALL {
            match value_bytes {
                0 => record.add::<B>(&RunLengths { at: half, out: all, count })?,
                4 => {
                    record.add::<(B, i32)>(&ReduceByKey { reduction, at: half, out: all, count })?;
                    record.add::<(B, f32)>(&ReduceByKey { reduction, at: half, out: all, count })?;
                }
                _ => {
                    record.add::<(B, i64)>(&ReduceByKey { reduction, at: half, out: all, count })?;
                    record.add::<(B, f64)>(&ReduceByKey { reduction, at: half, out: all, count })?;
                }
            }
        }
        if value_bytes > 0 {
            let (few, bounds) = (Record::arrays(1, 0), (half.keys, value_bytes));
            record.add::<B>(&Bounds { coding: Coding::NONE, lower: true, needles: half, keys: half, bounds })?;
            record.add::<B>(&Bounds { coding: Coding::NONE, lower: true, needles: few, keys: all, bounds })?;
        }
    }
    // A few of many keys, which are gathered in one reading.
    record.add::<B>(&TopK {
        coding: Coding::NONE,
        from: Record::arrays(1 << 28, value_bytes),
        out: Record::arrays(1000, value_bytes),
    })
}
