//! Checks of the lengths and offsets that a caller gives.

use crate::key::sealed::Bits;
use crate::{Error, Key};
use std::ops::Range;

/// The greatest length of the runs that [`Engine::merge_batch`](crate::Engine::merge_batch) makes, in keys.
pub const MAX_BATCH_LENGTH: usize = 1024;

/// Checks the lengths of a batch against each other and returns the number of merge problems.
pub(crate) fn check_batch(a: usize, b: usize, out: usize, d: usize, a_len: usize) -> Result<usize, Error> {
    if d == 0 || d > MAX_BATCH_LENGTH {
        return Err(Error::BadBatchLength { d });
    }
    if a_len > d {
        return Err(Error::BadSplit { a_len, d });
    }
    if !out.is_multiple_of(d) {
        return Err(Error::NotWholeRuns { what: "out", found: out, run: d });
    }
    // Neither product exceeds `out`, because `a_len <= d`.
    let problems = out / d;
    check_length("a", problems * a_len, a, "|out| / d * a_len")?;
    check_length("b", problems * (d - a_len), b, "|out| / d * (d - a_len)")?;
    Ok(problems)
}

/// Checks that the argument `what` has `expected` keys. `rule` says how that number is computed.
pub(crate) fn check_length(what: &'static str, expected: usize, found: usize, rule: &'static str) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found, rule }) }
}

/// Checks that the argument `what` has capacity for `needed` elements.
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "slices of the host are as long as the result"))]
pub(crate) fn check_capacity(what: &'static str, needed: usize, found: usize) -> Result<(), Error> {
    if found >= needed { Ok(()) } else { Err(Error::CapacityTooSmall { what, needed, found }) }
}

/// Checks that `out` is as long as two runs together.
pub(crate) fn check_two_runs(a: usize, b: usize, out: usize) -> Result<(), Error> {
    // The sum cannot overflow: each slice has at most `isize::MAX` keys.
    check_length("out", a + b, out, "|a| + |b|")
}

/// Checks that `out` is as long as all runs together.
pub(super) fn check_all_runs(runs: impl Iterator<Item = usize>, out: usize) -> Result<(), Error> {
    // A slice may occur many times among the runs, so the sum may exceed the address space.
    check_length("out", runs.fold(0, usize::saturating_add), out, "the runs' keys in all")
}

/// Checks that there are `k` keys.
pub(crate) fn check_k(keys: usize, k: usize) -> Result<(), Error> {
    if k <= keys { Ok(()) } else { Err(Error::TooFewKeys { k, found: keys }) }
}

/// Checks that the argument `what` has one value for each key.
pub(crate) fn check_values(what: &'static str, keys: usize, values: usize) -> Result<(), Error> {
    if values == keys { Ok(()) } else { Err(Error::ValuesMismatch { what, keys, values }) }
}

/// Checks that a kernel is not given values that it does not take.
pub(crate) fn check_kernel(is_right: bool, kernel: &'static str) -> Result<(), Error> {
    if is_right { Ok(()) } else { Err(Error::KeysAlone { kernel }) }
}

/// Checks the numbers of offsets of a ragged batch against each other and returns the number of merge problems.
pub(crate) fn check_offset_counts(a: usize, b: usize) -> Result<usize, Error> {
    if a != b {
        return Err(Error::OffsetsMismatch { a, b });
    }
    a.checked_sub(1).ok_or(Error::NoOffsets)
}

/// Checks that `offsets` begin with 0, never decrease and end with `keys`. There must be at least one.
pub(crate) fn check_offsets(what: &'static str, offsets: &[usize], keys: usize) -> Result<(), Error> {
    let (&first, &last) = offsets.first().zip(offsets.last()).ok_or(Error::NoOffsets)?;
    if first != 0 {
        return Err(Error::FirstOffset { what, found: first });
    }
    if let Some(i) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(Error::DescendingOffsets { what, index: i + 1, found: offsets[i + 1], before: offsets[i] });
    }
    if last == keys { Ok(()) } else { Err(Error::LastOffset { what, found: last, expected: keys }) }
}

/// Checks that the last of the offsets of groups is the number of runs.
pub(crate) fn check_last_group(found: usize, runs: usize) -> Result<(), Error> {
    if found == runs { Ok(()) } else { Err(Error::LastGroup { found, expected: runs }) }
}

/// Checks that `offsets` divide `keys` keys into runs, that `groups` divide the runs into groups, and that `out` has
/// `keys` keys.
pub(super) fn check_groups(keys: usize, offsets: &[usize], groups: &[usize], out: usize) -> Result<(), Error> {
    check_offsets("the runs", offsets, keys)?;
    let end = *groups.last().ok_or(Error::NoOffsets)?;
    check_offsets("the groups", groups, end)?;
    check_last_group(end, offsets.len() - 1)?;
    check_length("out", keys, out, "|keys|")
}

/// Checks the lengths and offsets of a ragged batch. `a` and `b` are each a number of keys and their offsets.
pub(super) fn check_ragged(a: (usize, &[usize]), b: (usize, &[usize]), out: usize) -> Result<(), Error> {
    check_offset_counts(a.1.len(), b.1.len())?;
    check_offsets("a", a.1, a.0)?;
    check_offsets("b", b.1, b.0)?;
    check_two_runs(a.0, b.0, out)
}

/// The begin and the end of a range of bits of a key of type `K`.
pub(crate) fn check_bits<K: Key>(Range { start: begin, end }: Range<u32>) -> Result<(u32, u32), Error> {
    let bits = <K::Bits as Bits>::COUNT;
    if begin <= end && end <= bits { Ok((begin, end)) } else { Err(Error::BitRange { begin, end, bits }) }
}
