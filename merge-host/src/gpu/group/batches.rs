//! Batches of merge problems, groups of runs, and segments in host memory, divided among the GPUs of a group. Each GPU
//! takes a range of whole problems, groups or segments.

use super::{GpuGroup, even_part};
use crate::Error;
use crate::cpu::{Run, RunMut};
use crate::gpu::KeyCoding;
use crate::key::sealed::DeviceBits;
use crate::timing::Steps;
use std::ops::Range;

/// The callers have checked lengths and offsets.
impl GpuGroup {
    /// [`Engine::merge_batch`](crate::Engine::merge_batch).
    pub(crate) fn merge_batch_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        a: Run<'_, B, V>,
        b: Run<'_, B, V>,
        out: RunMut<'_, B, V>,
        (d, a_len): (usize, usize),
    ) -> Result<Steps, Error> {
        let ranges = batch_ranges(self.len(), out.keys.len(), d);
        Self::for_each_part(divided(out, ranges.iter().map(|range| range.len() * d)), |i, out| {
            let (of_a, of_b) = (times(&ranges[i], a_len), times(&ranges[i], d - a_len));
            self.gpu(i).merge_batch_host(coding, a.part(of_a), b.part(of_b), out, (d, a_len))
        })
    }

    /// [`Engine::merge_ragged`](crate::Engine::merge_ragged).
    pub(crate) fn merge_ragged_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        a: (Run<'_, B, V>, &[usize]),
        b: (Run<'_, B, V>, &[usize]),
        out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        let parts = ragged_parts(self.len(), a.1, b.1);
        Self::for_each_part(divided(out, parts.iter().map(RaggedPart::len)), |i, out| {
            let RaggedPart { a: of_a, b: of_b, a_offsets, b_offsets } = &parts[i];
            let a = (a.0.part(of_a.clone()), &a_offsets[..]);
            self.gpu(i).merge_ragged_host(coding, a, (b.0.part(of_b.clone()), b_offsets), out)
        })
    }

    /// [`Engine::merge_many_ragged`](crate::Engine::merge_many_ragged).
    pub(crate) fn merge_many_ragged_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        (from, offsets): (Run<'_, B, V>, &[usize]),
        groups: &[usize],
        out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        let parts = group_parts(self.len(), offsets, groups);
        Self::for_each_part(divided(out, parts.iter().map(|part| part.keys.len())), |i, out| {
            let GroupsPart { keys: range, offsets, groups } = &parts[i];
            self.gpu(i).merge_many_ragged_host(coding, (from.part(range.clone()), offsets), groups, out)
        })
    }

    /// [`Engine::sort_segments`](crate::Engine::sort_segments).
    pub(crate) fn sort_segments_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        data: RunMut<'_, B, V>,
        offsets: &[usize],
    ) -> Result<Steps, Error> {
        let parts = segment_parts(self.len(), offsets);
        Self::for_each_part(divided(data, parts.iter().map(|(keys, _)| keys.len())), |i, data| {
            self.gpu(i).sort_segments_host(coding, data, &parts[i].1)
        })
    }

    /// [`Engine::top_k_segments`](crate::Engine::top_k_segments).
    pub(crate) fn top_k_segments_host<B: DeviceBits, V: Copy + Send + Sync>(
        &self,
        coding: KeyCoding,
        (from, offsets): (Run<'_, B, V>, &[usize]),
        k: usize,
        out: RunMut<'_, B, V>,
    ) -> Result<Steps, Error> {
        let parts = segment_parts(self.len(), offsets);
        Self::for_each_part(divided(out, parts.iter().map(|(_, offsets)| (offsets.len() - 1) * k)), |i, out| {
            let (range, offsets) = &parts[i];
            self.gpu(i).top_k_segments_host(coding, (from.part(range.clone()), offsets), k, out)
        })
    }
}

/// The segments of each of `members`: whole segments, with about the same number of keys for each member. A member's
/// entry is the range of its keys, and the offsets of its segments in that range.
fn segment_parts(members: usize, offsets: &[usize]) -> Vec<(Range<usize>, Vec<usize>)> {
    let segments = whole_ranges(members, offsets.len() - 1, |segment| offsets[segment]);
    segments.into_iter().map(|segments| part_of(offsets, &segments)).collect()
}

/// The groups of runs that a member merges: the range of their keys, the offsets of the runs in that range, and the
/// offsets of the groups among the runs.
#[derive(Debug)]
struct GroupsPart {
    keys: Range<usize>,
    offsets: Vec<usize>,
    groups: Vec<usize>,
}

/// The groups of each of `members`: whole groups, with about the same number of keys for each member.
fn group_parts(members: usize, offsets: &[usize], groups: &[usize]) -> Vec<GroupsPart> {
    let ranges = whole_ranges(members, groups.len() - 1, |group| offsets[groups[group]]);
    let part = |range| {
        let (runs, groups) = part_of(groups, &range);
        let (keys, offsets) = part_of(offsets, &runs);
        GroupsPart { keys, offsets, groups }
    };
    ranges.into_iter().map(part).collect()
}

/// The problems of each of `members`, for a batch of `keys` keys in problems of `d` keys.
fn batch_ranges(members: usize, keys: usize, d: usize) -> Vec<Range<usize>> {
    (0..members).map(|member| even_part(members, member, keys / d)).collect()
}

/// The problems of each of `members`: whole problems, with about the same number of keys for each member.
fn ragged_parts(members: usize, a_offsets: &[usize], b_offsets: &[usize]) -> Vec<RaggedPart> {
    let problems = whole_ranges(members, a_offsets.len() - 1, |problem| a_offsets[problem] + b_offsets[problem]);
    problems.into_iter().map(|problems| RaggedPart::new(a_offsets, b_offsets, problems)).collect()
}

/// Divides `0..count` into a range for each of `members`, with about the same number of keys in each. `keys_before(i)`
/// is the number of keys before item `i`, and the number of all keys for `i = count`.
fn whole_ranges(members: usize, count: usize, keys_before: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let total = keys_before(count);
    // A member's range ends before the first item that begins at or behind the end of the member's even part of the
    // keys.
    let end = |member: usize| match member + 1 == members {
        true => count,
        false => first_where(count, |i| keys_before(i) >= even_part(members, member, total).end),
    };
    let ends: Vec<usize> = (0..members).map(end).collect();
    let begins = [0].into_iter().chain(ends.clone());
    begins.zip(ends).map(|(begin, end)| begin..end).collect()
}

/// The range of the keys of `runs`, and the offsets of the runs in that range.
fn part_of(offsets: &[usize], runs: &Range<usize>) -> (Range<usize>, Vec<usize>) {
    let keys = offsets[runs.start]..offsets[runs.end];
    (keys.clone(), offsets[runs.start..=runs.end].iter().map(|offset| offset - keys.start).collect())
}

/// The problems that a member solves: the ranges of their keys in the whole batch, and the offsets of the problems in
/// these ranges.
#[derive(Debug)]
struct RaggedPart {
    a: Range<usize>,
    b: Range<usize>,
    a_offsets: Vec<usize>,
    b_offsets: Vec<usize>,
}

impl RaggedPart {
    /// The given problems of the batch with these offsets.
    fn new(a_offsets: &[usize], b_offsets: &[usize], problems: Range<usize>) -> Self {
        let ((a, a_offsets), (b, b_offsets)) = (part_of(a_offsets, &problems), part_of(b_offsets, &problems));
        Self { a, b, a_offsets, b_offsets }
    }

    /// Keys of all problems.
    fn len(&self) -> usize {
        self.a.len() + self.b.len()
    }
}

/// The first number below `end` that satisfies `found`, or `end` if there is none. All numbers behind the first one
/// satisfy `found`, too.
fn first_where(end: usize, found: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if found(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The range of the elements of `problems`, with `each` elements per problem.
fn times(problems: &Range<usize>, each: usize) -> Range<usize> {
    problems.start * each..problems.end * each
}

/// `data` divided into consecutive parts of the given lengths.
pub(super) fn divided<B, V>(mut data: RunMut<'_, B, V>, lengths: impl Iterator<Item = usize>) -> Vec<RunMut<'_, B, V>> {
    let mut parts = Vec::new();
    for length in lengths {
        let (part, rest) = data.split_at(length);
        parts.push(part);
        data = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The offsets of runs of the given lengths.
    fn offsets(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
        let ends = lengths.scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        [0].into_iter().chain(ends).collect()
    }

    /// The lengths of the runs between offsets.
    fn lengths(offsets: &[usize]) -> impl Iterator<Item = usize> {
        offsets.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// The number of keys that each member gets, for problems with the given numbers of keys. Half of each problem is
    /// A.
    fn keys_of_members(members: usize, problems: &[usize]) -> Vec<usize> {
        let a = offsets(problems.iter().map(|keys| keys / 2));
        let b = offsets(problems.iter().map(|keys| keys - keys / 2));
        ragged_parts(members, &a, &b).iter().map(RaggedPart::len).collect()
    }

    #[test]
    fn members_get_about_as_many_keys() {
        assert_eq!(keys_of_members(1, &[5, 1, 3]), [9]);
        assert_eq!(keys_of_members(2, &[4, 4, 4, 4]), [8, 8]);
        assert_eq!(keys_of_members(3, &[3, 3, 3, 3]), [6, 3, 3]);
        assert_eq!(keys_of_members(2, &[1, 1, 1, 100]), [103, 0]);
        assert_eq!(keys_of_members(4, &[100, 1, 1, 1]), [100, 0, 0, 3]);
        // Fewer problems than members, problems without keys, and no problems.
        assert_eq!(keys_of_members(3, &[7]), [7, 0, 0]);
        assert_eq!(keys_of_members(2, &[0, 0, 2, 0, 2, 0]), [2, 2]);
        assert_eq!(keys_of_members(2, &[0, 0]), [0, 0]);
        assert_eq!(keys_of_members(3, &[]), [0, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_problem_belongs_to_one_member(
            problems in prop::collection::vec((0..4usize, 0..20usize).prop_map(|(a, b)| (a * 5, b / 3 * 2)), 0..30),
            members in 1..9usize,
        ) {
            let (a, b) = (offsets(problems.iter().map(|keys| keys.0)), offsets(problems.iter().map(|keys| keys.1)));
            let parts = ragged_parts(members, &a, &b);
            prop_assert_eq!(parts.len(), members);
            let (mut solved, mut ends) = (vec![], (0, 0));
            for part in &parts {
                // The ranges follow one another, and the offsets form a batch of their own.
                prop_assert_eq!((part.a.start, part.b.start), ends);
                ends = (part.a.end, part.b.end);
                prop_assert_eq!((part.a_offsets[0], part.b_offsets[0]), (0, 0));
                prop_assert_eq!(part.a_offsets.last(), Some(&part.a.len()));
                prop_assert_eq!(part.b_offsets.last(), Some(&part.b.len()));
                prop_assert_eq!(part.a_offsets.len(), part.b_offsets.len());
                solved.extend(lengths(&part.a_offsets).zip(lengths(&part.b_offsets)));
            }
            prop_assert_eq!(&solved, &problems);
            prop_assert_eq!(ends, (a[problems.len()], b[problems.len()]));
            // A member exceeds an even part by less than one problem.
            let longest = problems.iter().map(|keys| keys.0 + keys.1).max().unwrap_or(0);
            let even = (ends.0 + ends.1).div_ceil(members);
            prop_assert!(parts.iter().all(|part| part.len() < (even + longest).max(1)), "{:?}", parts);
        }

        #[test]
        fn every_segment_belongs_to_one_member(
            segments in prop::collection::vec(0..20usize, 0..30),
            members in 1..9usize,
        ) {
            let all = offsets(segments.iter().copied());
            let parts = segment_parts(members, &all);
            prop_assert_eq!(parts.len(), members);
            let mut end = 0;
            for (keys, offsets) in &parts {
                prop_assert_eq!((keys.start, offsets[0], offsets.last()), (end, 0, Some(&keys.len())));
                end = keys.end;
            }
            prop_assert_eq!(end, all[segments.len()]);
            prop_assert!(parts.iter().flat_map(|(_, offsets)| lengths(offsets)).eq(segments.iter().copied()));
            // A member exceeds an even part by less than one segment.
            let most = end.div_ceil(members) + segments.iter().max().unwrap_or(&0);
            prop_assert!(parts.iter().all(|(keys, _)| keys.len() < most.max(1)), "{:?}", parts);
        }

        #[test]
        fn every_group_belongs_to_one_member(
            all in prop::collection::vec(prop::collection::vec(0..20usize, 0..5), 0..30),
            members in 1..9usize,
        ) {
            let (runs, groups) = (offsets(all.concat().into_iter()), offsets(all.iter().map(Vec::len)));
            let parts = group_parts(members, &runs, &groups);
            prop_assert_eq!(parts.len(), members);
            let (mut found, mut end) = (vec![], 0);
            for GroupsPart { keys, offsets, groups } in &parts {
                prop_assert_eq!((keys.start, offsets[0], offsets.last()), (end, 0, Some(&keys.len())));
                prop_assert_eq!((groups[0], groups.last()), (0, Some(&(offsets.len() - 1))));
                end = keys.end;
                let lengths: Vec<usize> = lengths(offsets).collect();
                found.extend(groups.windows(2).map(|ends| lengths[ends[0]..ends[1]].to_vec()));
            }
            prop_assert_eq!(found, all.clone());
            // A member exceeds an even part by less than one group.
            let most = end.div_ceil(members) + all.iter().map(|group| group.iter().sum()).max().unwrap_or(0);
            prop_assert!(parts.iter().all(|part| part.keys.len() < most.max(1)), "{:?}", parts);
        }

        #[test]
        fn every_problem_of_one_length_belongs_to_one_member(
            problems in 0..50usize,
            d in 1..9usize,
            members in 1..9usize,
        ) {
            let ranges = batch_ranges(members, problems * d, d);
            prop_assert_eq!(ranges.len(), members);
            prop_assert!(ranges.iter().cloned().flatten().eq(0..problems), "{:?}", ranges);
        }

        #[test]
        fn arrays_are_divided_at_the_ends_of_the_parts(parts in prop::collection::vec(0..5usize, 0..9)) {
            let mut array: Vec<usize> = (0..parts.iter().sum()).collect();
            let found: Vec<Vec<usize>> =
                divided(RunMut::of_keys(&mut array), parts.iter().copied())
                    .into_iter()
                    .map(|part| part.keys.to_vec())
                    .collect();
            prop_assert!(found.iter().map(Vec::len).eq(parts));
            prop_assert_eq!(found.concat(), array);
        }
    }
}
