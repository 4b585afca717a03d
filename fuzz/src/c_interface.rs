//! Calls of the C interface with any types, lengths, null pointers, alignments and overlaps. A wrong argument is an
//! error that writes nothing. A call that succeeds keeps the elements, and does the same again.
#![no_main]

use gmerge::*;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::ffi::c_void;
use std::ptr::null_mut;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Call {
    Sort,
    SortSegments,
    SortUnique,
    Argsort,
    TopK,
    TopKIndices,
    Merge,
    MergePairs,
    MergeGroups,
    Set,
    Unique,
    ReduceByKey,
    Bounds,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    call: Call,
    key_type: u8,
    order: u8,
    value_size: u8,
    index_size: u8,
    /// An operation, a reduction or a type of values.
    choice: u8,
    /// Bit `i`: whether array `i` is null.
    nulls: u8,
    /// Bit `i`: whether array `i` begins at an odd address.
    odd: u8,
    /// Bit `i`: whether array `i` overlaps the array before it.
    overlaps: u8,
    counts: [u8; 4],
    offsets: Vec<u8>,
    groups: Vec<u8>,
    bytes: &'a [u8],
}

/// Memory that the arrays of a call are in.
struct Arena<'a> {
    input: &'a Input<'a>,
    words: Vec<u128>,
    /// The first byte that no array has, and the number of arrays.
    used: usize,
    arrays: u32,
}

impl<'a> Arena<'a> {
    /// Memory with the bytes of `input`, repeated.
    fn new(input: &'a Input<'a>) -> Self {
        let mut bytes = input.bytes.iter().copied().cycle();
        let words = (0..1 << 13).map(|_| u128::from_le_bytes([0; 16].map(|zero| bytes.next().unwrap_or(zero))));
        Self { input, words: words.collect(), used: 0, arrays: 0 }
    }

    /// The next array, of `bytes` bytes.
    fn array(&mut self, bytes: usize) -> *mut c_void {
        let is = |bits: u8| bits >> self.arrays & 1 == 1;
        let (is_null, is_odd, overlaps) = (is(self.input.nulls), is(self.input.odd), is(self.input.overlaps));
        self.arrays += 1;
        if is_null {
            return null_mut();
        }
        let begin = self.used.next_multiple_of(16) - if overlaps { self.used.min(16) } else { 0 } + usize::from(is_odd);
        self.used = self.used.max(begin + bytes);
        assert!(self.used <= size_of_val(&*self.words));
        self.words.as_mut_ptr().wrapping_byte_add(begin).cast()
    }

    fn output(&mut self, count: u8) -> gmerge_output {
        let count = usize::from(count);
        let values = self.array(count * value_size(self.input));
        gmerge_output { keys: self.array(16 * count), values, count }
    }

    fn input(&mut self, count: u8) -> gmerge_input {
        let gmerge_output { keys, values, count } = self.output(count);
        gmerge_input { keys, values, count }
    }
}

/// Bytes of a value: few enough that all arrays are in the arena.
fn value_size(input: &Input) -> usize {
    usize::from(input.value_size % 40)
}

fuzz_target!(|input: Input| {
    let mut arena = Arena::new(&input);
    let mut engine = null_mut();
    // SAFETY: `engine` is valid for a write.
    assert_eq!(unsafe { gmerge_engine_cpu(1, &mut engine) }, GMERGE_OK);
    let before = arena.words.clone();
    let status = call(&input, &mut arena, engine);
    assert_ne!(status, GMERGE_INTERNAL_ERROR);
    if status != GMERGE_OK {
        assert_eq!(arena.words, before);
        // SAFETY: the message is valid until the next call that fails.
        assert_ne!(unsafe { *gmerge_last_error() }, 0);
    } else if matches!(input.call, Call::Sort) {
        let once = arena.words.clone();
        (arena.used, arena.arrays) = (0, 0);
        assert_eq!(call(&input, &mut arena, engine), GMERGE_OK);
        assert_eq!(arena.words, once);
        let sum = |words: &[u128]| words.iter().flat_map(|word| word.to_le_bytes()).map(u64::from).sum::<u64>();
        assert_eq!(sum(&once), sum(&before));
    }
    // SAFETY: nothing uses the engine any more.
    unsafe { gmerge_engine_free(engine) };
});

/// The offsets of an input.
fn numbers(bytes: &[u8]) -> Vec<usize> {
    bytes.iter().map(|&byte| byte.into()).collect()
}

/// Calls the function of `input.call`.
fn call(input: &Input, arena: &mut Arena, engine: *const gmerge_engine) -> gmerge_status {
    let (key_type, order, value_size) = (input.key_type.into(), input.order.into(), value_size(input));
    let (format, choice) = (gmerge_format { key_type, order, value_size }, u32::from(input.choice));
    // The interface takes indices of 4 and 8 bytes.
    let (index_size, [a, b, c, d]) = (usize::from(input.index_size % 10), input.counts);
    let [offsets, groups] = [&input.offsets, &input.groups].map(|all| numbers(all));
    let (segments, group_count) = (offsets.len().saturating_sub(1), groups.len().saturating_sub(1));
    // A pointer to at least one offset, as the interface reads `count + 1`.
    let at = |offsets: &[usize]| if offsets.is_empty() { std::ptr::null() } else { offsets.as_ptr() };
    let runs = |elements| gmerge_runs { elements, offsets: at(&offsets), count: segments };
    let mut count = 0;
    // SAFETY: the engine is one. Each array is null or has its length, in `arena`, `offsets` or `groups`.
    unsafe {
        match input.call {
            Call::Sort => gmerge_sort(engine, format, arena.output(a)),
            Call::SortSegments => gmerge_sort_segments(engine, format, arena.output(a), at(&offsets), segments),
            Call::SortUnique => gmerge_sort_unique(engine, format, arena.output(a), &mut count),
            Call::Argsort => {
                let keys = arena.input(a);
                gmerge_argsort(engine, format, keys, arena.array(keys.count * index_size), index_size)
            }
            Call::TopK => gmerge_top_k(engine, format, arena.input(a), arena.output(b)),
            Call::TopKIndices => {
                let keys = arena.input(a);
                let indices = arena.array(usize::from(b) * index_size);
                gmerge_top_k_indices(engine, format, keys, indices, index_size, b.into())
            }
            Call::Merge => {
                let from = [a, b, c].map(|count| arena.input(count));
                gmerge_merge(engine, format, from.as_ptr(), from.len(), arena.output(d))
            }
            Call::MergePairs => {
                let [from_a, from_b] = [a, b].map(|count| arena.input(count));
                gmerge_merge_pairs(engine, format, runs(from_a), runs(from_b), arena.output(d))
            }
            Call::MergeGroups => {
                let from = runs(arena.input(a));
                gmerge_merge_groups(engine, format, from, at(&groups), group_count, arena.output(d))
            }
            Call::Set => {
                let [from_a, from_b] = [a, b].map(|count| arena.input(count));
                gmerge_set(engine, format, choice, from_a, from_b, arena.output(d), &mut count)
            }
            Call::Unique => {
                let (from, out) = (arena.input(a), arena.output(b));
                let lengths = arena.array(8 * out.count).cast();
                gmerge_unique(engine, format, from, out, lengths, &mut count)
            }
            Call::ReduceByKey => {
                let (from, out) = (arena.input(a), arena.output(b));
                gmerge_reduce_by_key(engine, format, choice % 8, choice / 8, from, out, &mut count)
            }
            Call::Bounds => {
                let [needles, keys] = [a, b].map(|count| arena.input(count));
                let bounds = arena.array(needles.count * index_size);
                gmerge_bounds(engine, format, choice as i32, needles, keys, bounds, index_size)
            }
        }
    }
}
