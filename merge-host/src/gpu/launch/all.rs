//! All operations on keys of one type, with lengths that reach all of their kernels.

use super::Arrays;
use super::batch::{Batch, Lengths, Ragged};
use super::bits::SortByBits;
use super::bounds::Bounds;
use super::exchange;
use super::groups::{ReduceByKey, RunLengths, Unique};
use super::many_ragged::{MergeManyRagged, RunGroups};
use super::many_runs::MergeMany;
use super::merge::Merge;
use super::offsets::SetOffsets;
use super::segments::{self, SortSegments};
use super::sets::Sets;
use super::sort::Sort;
use super::top_k::TopK;
use super::top_k_segments::TopKSegments;
use crate::gpu::operation::{KeyCoding, Record};
use crate::{BatchKernel, Error, MergeKernel, Reduction, SetOperation, SortKernel};
use kernels_gpu::key::Key;

/// Adds all operations to the record.
pub(in crate::gpu) fn record(record: &Record, coding: KeyCoding) -> Result<(), Error> {
    for value_bytes in [0, 4, 8] {
        SortKernel::ALL.into_iter().try_for_each(|kernel| sorts(record, coding, kernel, value_bytes))?;
        sorts_by_bits(record, coding, value_bytes)?;
        segments(record, coding, value_bytes)?;
        merges(record, coding, value_bytes)?;
        selections(record, coding, value_bytes)?;
        exchange::record(record, coding, value_bytes)?;
    }
    Ok(())
}

/// Sorts by few bits, and by many bits if there are.
fn sorts_by_bits(record: &Record, coding: KeyCoding, value_bytes: usize) -> Result<(), Error> {
    let most = if matches!(coding, KeyCoding::U64(_)) { 64 } else { 8 };
    let few = [10, 1 << 17, 1 << 28].map(|n| (n, (0, 3)));
    for (n, bits) in few.into_iter().chain([10, 1 << 28, 1 << 33].map(|n| (n, (0, most)))) {
        for indexes in [false, value_bytes > 0] {
            let at = Record::arrays(n, value_bytes);
            record.add(&SortByBits { kernel: SortKernel::Auto, coding, at, indexes, bits })?;
        }
    }
    Ok(())
}

/// Sorts at and around each power of two. Every threshold lies between two such lengths.
pub(in crate::gpu) fn sorts(
    record: &Record,
    coding: KeyCoding,
    kernel: SortKernel,
    value_bytes: usize,
) -> Result<(), Error> {
    for size in (0..=33).map(|log| 1usize << log) {
        for n in [size - 1, size, size + 1] {
            for indexes in [false, value_bytes > 0] {
                let at = Record::arrays(n, value_bytes);
                record.add(&Sort::new(kernel, coding, at, indexes))?;
            }
        }
    }
    Ok(())
}

fn segments(record: &Record, coding: KeyCoding, value_bytes: usize) -> Result<(), Error> {
    let lengths = Record::arrays(10, 0);
    record.add(&SetOffsets { lengths, most: 100, offsets: lengths.keys })?;
    // The second number has indices of more than 32 bits.
    for n in [100_000, 1 << 33] {
        let at = Record::arrays(n, value_bytes);
        // Rows that a thread sorts, rows that lanes sort, and rows that blocks sort.
        let of_length = [9, 100, 2000].map(|length| segments::Bounds::of_length(length, n));
        for bounds in [segments::Bounds::of_offsets(at.keys, 10, n)].into_iter().chain(of_length) {
            record.add(&SortSegments { coding, at, bounds, indexes: value_bytes > 0 })?;
            // Few keys are selected, and more are sorted.
            for k in [10, 5000] {
                let out = Record::arrays(bounds.count() * k, value_bytes);
                record.add(&TopKSegments { coding, from: at, bounds, k, out })?;
            }
        }
    }
    Ok(())
}

fn merges(record: &Record, coding: KeyCoding, value_bytes: usize) -> Result<(), Error> {
    for len in [10, 10_000, 100_000_000] {
        let (a, out) = (Record::arrays(len, value_bytes), Record::arrays(2 * len, value_bytes));
        let (b, offsets) = (a, [a.keys; 2]);
        let kernels = if value_bytes == 0 { &MergeKernel::ALL[..] } else { &[MergeKernel::Auto] };
        kernels.iter().try_for_each(|&kernel| record.add(&Merge { kernel, coding, a, b, out }))?;
        let lengths = Lengths { problems: 10, d: 100, a_len: 50 };
        let kernels = if value_bytes == 0 { &BatchKernel::ALL[..] } else { &[BatchKernel::Auto] };
        kernels.iter().try_for_each(|&kernel| record.add(&Batch { kernel, coding, arrays: [a, b, out], lengths }))?;
        record.add(&Ragged { coding, a, b, offsets, problems: 10, out })?;
    }
    let array = Record::arrays(40_000, value_bytes);
    for runs in [2, 40] {
        record.add(&MergeMany { coding, from: array, offsets: (array.keys, runs), out: array })?;
    }
    let (offsets, most_runs) = (array.keys, usize::MAX);
    let groups = RunGroups { offsets, runs: 40, groups: offsets, count: 5, most_runs, longest: usize::MAX };
    record.add(&MergeManyRagged { coding, from: array, groups, out: array })
}

fn selections(record: &Record, coding: KeyCoding, value_bytes: usize) -> Result<(), Error> {
    for len in [10, 10_000, 100_000_000] {
        let (half, all) = (Record::arrays(len, value_bytes), Record::arrays(2 * len, value_bytes));
        record.add(&TopK { coding, from: all, out: half })?;
        sorted(record, coding, half, all)?;
        if value_bytes > 0 {
            let (few, bounds) = (Record::arrays(1, 0), (half.keys, value_bytes));
            record.add(&Bounds { coding, lower: true, needles: half, keys: half, bounds })?;
            record.add(&Bounds { coding, lower: true, needles: few, keys: all, bounds })?;
        }
    }
    // The number of keys is in the GPU's memory.
    let [half, all] = [1 << 20, 1 << 21].map(|len| Record::arrays(len, value_bytes));
    let [half, all] = [half, all].map(|array| Arrays { count: array.keys, ..array });
    sorted(record, coding, half, all)?;
    record.add(&Merge { kernel: MergeKernel::Auto, coding, a: half, b: half, out: all })?;
    record.add(&Sort::new(SortKernel::Auto, coding, half, false))?;
    record.add(&TopK { coding, from: all, out: half })?;
    // A few of many keys, which are gathered in one reading.
    record.add(&TopK { coding, from: Record::arrays(1 << 28, value_bytes), out: Record::arrays(1000, value_bytes) })
}

/// Operations on sorted keys, of arrays like `half`, to an array of twice the length.
fn sorted(record: &Record, coding: KeyCoding, half: Arrays, all: Arrays) -> Result<(), Error> {
    let (count, value_bytes) = (half.keys, half.value_bytes);
    record.add(&Sets { coding, operation: SetOperation::Union, a: half, b: half, out: all, count })?;
    record.add(&Unique { coding, at: half, out: all, count })?;
    if value_bytes == 0 {
        return record.add(&RunLengths { coding, at: half, out: all, count });
    }
    let of_floats: KeyCoding = if value_bytes == 4 { f32::coding().into() } else { f64::coding().into() };
    let of_integers = if value_bytes == 4 { i32::coding().into() } else { i64::coding().into() };
    for (reduction, summands) in Reduction::ALL.into_iter().flat_map(|by| [(by, of_integers), (by, of_floats)]) {
        record.add(&ReduceByKey { reduction, coding, summands, at: half, out: all, count })?;
    }
    Ok(())
}
