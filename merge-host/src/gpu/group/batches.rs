//! Batches of merge problems in host memory, divided among the GPUs of a group: each solves a range of whole problems.

use super::GpuGroup;
use crate::{Error, GpuKey, Timing};
use std::ops::Range;

impl GpuGroup {
    /// [`Engine::merge_batch`](crate::Engine::merge_batch). Lengths have been checked.
    pub(crate) fn merge_batch_host<K: GpuKey>(
        &self,
        a: &[K],
        b: &[K],
        out: &mut [K],
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let ranges = self.batch_ranges(out.len(), d);
        self.for_each_part(divided(out, ranges.iter().map(|range| range.len() * d)), |i, out| {
            let (of_a, of_b) = (times(&ranges[i], a_len), times(&ranges[i], d - a_len));
            self.gpu(i).merge_batch_host(&a[of_a], &b[of_b], out, d, a_len)
        })
    }

    /// [`Engine::merge_batch_pairs`](crate::Engine::merge_batch_pairs). Lengths have been checked.
    pub(crate) fn merge_batch_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
        d: usize,
        a_len: usize,
    ) -> Result<Timing, Error> {
        let ranges = self.batch_ranges(out.0.len(), d);
        let lengths = || ranges.iter().map(|range| range.len() * d);
        let parts = divided(out.0, lengths()).into_iter().zip(divided(out.1, lengths()));
        self.for_each_part(parts, |i, out| {
            let (of_a, of_b) = (times(&ranges[i], a_len), times(&ranges[i], d - a_len));
            let (a, b) = ((&a.0[of_a.clone()], &a.1[of_a]), (&b.0[of_b.clone()], &b.1[of_b]));
            self.gpu(i).merge_batch_pairs_host(a, b, out, d, a_len)
        })
    }

    /// [`Engine::merge_ragged`](crate::Engine::merge_ragged). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_host<K: GpuKey>(
        &self,
        a: (&[K], &[usize]),
        b: (&[K], &[usize]),
        out: &mut [K],
    ) -> Result<Timing, Error> {
        let parts = self.ragged_parts(a.1, b.1);
        self.for_each_part(divided(out, parts.iter().map(RaggedPart::len)), |i, out| {
            let RaggedPart { a: of_a, b: of_b, a_offsets, b_offsets } = &parts[i];
            let (a, b) = ((&a.0[of_a.clone()], &a_offsets[..]), (&b.0[of_b.clone()], &b_offsets[..]));
            self.gpu(i).merge_ragged_host(a, b, out)
        })
    }

    /// [`Engine::merge_ragged_pairs`](crate::Engine::merge_ragged_pairs). Lengths and offsets have been checked.
    pub(crate) fn merge_ragged_pairs_host<K: GpuKey, V: Copy + Send + Sync>(
        &self,
        a: (&[K], &[V], &[usize]),
        b: (&[K], &[V], &[usize]),
        out: (&mut [K], &mut [V]),
    ) -> Result<Timing, Error> {
        let parts = self.ragged_parts(a.2, b.2);
        let lengths = || parts.iter().map(RaggedPart::len);
        let outs = divided(out.0, lengths()).into_iter().zip(divided(out.1, lengths()));
        self.for_each_part(outs, |i, out| {
            let RaggedPart { a: of_a, b: of_b, a_offsets, b_offsets } = &parts[i];
            let a = (&a.0[of_a.clone()], &a.1[of_a.clone()], &a_offsets[..]);
            let b = (&b.0[of_b.clone()], &b.1[of_b.clone()], &b_offsets[..]);
            self.gpu(i).merge_ragged_pairs_host(a, b, out)
        })
    }

    /// The problems of each member, of a batch with `keys` keys in problems of `d`.
    fn batch_ranges(&self, keys: usize, d: usize) -> Vec<Range<usize>> {
        (0..self.len()).map(|member| self.part(member, keys / d)).collect()
    }

    /// The problems of each member, which have about as many keys as those of another one.
    fn ragged_parts(&self, a_offsets: &[usize], b_offsets: &[usize]) -> Vec<RaggedPart> {
        let problems = a_offsets.len() - 1;
        let keys_before = |problem: usize| a_offsets[problem] + b_offsets[problem];
        let total = keys_before(problems);
        // The first problem that begins at that rank or behind it.
        let end = |member: usize| match member + 1 == self.len() {
            true => problems,
            false => first_where(problems, |problem| keys_before(problem) >= self.part(member, total).end),
        };
        let ends: Vec<usize> = (0..self.len()).map(end).collect();
        let begins = [0].into_iter().chain(ends.clone());
        begins.zip(ends).map(|(begin, end)| RaggedPart::new(a_offsets, b_offsets, begin..end)).collect()
    }
}

/// The problems that a member solves.
struct RaggedPart {
    a: Range<usize>,
    b: Range<usize>,
    a_offsets: Vec<usize>,
    b_offsets: Vec<usize>,
}

impl RaggedPart {
    fn new(a_offsets: &[usize], b_offsets: &[usize], problems: Range<usize>) -> Self {
        let part = |offsets: &[usize]| {
            let keys = offsets[problems.start]..offsets[problems.end];
            let offsets = offsets[problems.start..=problems.end].iter().map(|offset| offset - keys.start);
            (keys.clone(), offsets.collect::<Vec<_>>())
        };
        let ((a, a_offsets), (b, b_offsets)) = (part(a_offsets), part(b_offsets));
        Self { a, b, a_offsets, b_offsets }
    }

    /// Keys of all problems.
    fn len(&self) -> usize {
        self.a.len() + self.b.len()
    }
}

/// The first of the numbers below `end` for which `found`, which then holds for all greater ones; or else `end`.
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

/// The range of elements of problems with `each` elements.
fn times(problems: &Range<usize>, each: usize) -> Range<usize> {
    problems.start * each..problems.end * each
}

/// Parts of these lengths, one after the other.
pub(super) fn divided<T>(mut array: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut parts = Vec::new();
    for length in lengths {
        let part;
        (part, array) = array.split_at_mut(length);
        parts.push(part);
    }
    parts
}
