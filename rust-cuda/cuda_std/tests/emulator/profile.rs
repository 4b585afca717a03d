//! Profiles: requests, wavefronts and sectors of known accesses.

use crate::common::*;
use cuda_std::{
    emulator::{Access, Emulator, Fault, Profile, Space},
    prelude::*,
};
use std::hint::black_box;

/// Requests, units and ideal units of each row of the profile in the order of source lines, and of columns in a line.
type Counts = Vec<(Space, Access, [u64; 3])>;

const ALL: u32 = u32::MAX;

fn counts(profile: &Profile) -> Counts {
    let mut rows: Vec<_> = profile.rows.iter().collect();
    rows.sort_by_key(|row| (row.location.line(), row.location.column()));
    rows.iter().map(|row| (row.space, row.access, [row.requests, row.units, row.ideal])).collect()
}

/// The profile of the launch, which does not depend on the interleaving.
#[track_caller]
fn profile(launch: impl Fn(&mut Emulator) -> Result<(), Fault>) -> Profile {
    let of_seed = |seed| {
        let mut emulator = Emulator::new(seed);
        emulator.set_profiled(true);
        launch(&mut emulator).unwrap();
        emulator.profile()
    };
    let first = of_seed(SEEDS.start);
    assert!(SEEDS.skip(1).all(|seed| of_seed(seed) == first));
    first
}

/// Asserts the requests, wavefronts and ideal wavefronts of writes of type `T`, of a block of `threads` threads. Thread
/// `t` writes element `index(t)`.
#[track_caller]
fn assert_writes<T: Word>(threads: u32, index: impl Fn(u32) -> u32, expected: [u64; 3]) {
    let len = (0..threads).map(&index).max().unwrap() + 1;
    let bytes = len * size_of::<T>() as u32;
    let profile = profile(|emulator| {
        emulator.launch("writes", 3, threads, bytes, || shared::<T>(len).set(index(tid()), T::from_register(1)))
    });
    assert_eq!(counts(&profile), [(Space::Shared, Access::Write, expected.map(|count| 3 * count))]);
    assert_eq!(profile.rows[0].size, size_of::<T>());
}

#[test]
fn strides_in_shared_memory() {
    assert_writes::<u32>(32, |t| t, [1, 1, 1]);
    assert_writes::<u32>(32, |t| 31 - t, [1, 1, 1]);
    assert_writes::<u32>(32, |t| 2 * t, [1, 2, 1]);
    assert_writes::<u32>(32, |t| 32 * t, [1, 32, 1]);
    assert_writes::<u32>(32, |t| 33 * t, [1, 1, 1]);
    // Three warps, the last one with 6 lanes.
    assert_writes::<u32>(70, |t| 2 * t, [3, 5, 3]);
    assert_writes::<u32>(70, |t| 32 * t, [3, 70, 3]);
}

#[test]
fn sizes_in_shared_memory() {
    assert_writes::<u64>(32, |t| t, [1, 2, 2]);
    assert_writes::<u64>(32, |t| 2 * t, [1, 4, 2]);
    assert_writes::<u64>(32, |t| 16 * t, [1, 32, 2]);
    assert_writes::<u64>(16, |t| t, [1, 1, 1]);
    // Several lanes share a word.
    assert_writes::<u8>(32, |t| t, [1, 1, 1]);
    assert_writes::<u16>(32, |t| t, [1, 1, 1]);
    assert_writes::<u16>(32, |t| 64 * t, [1, 32, 1]);
}

#[test]
fn lanes_that_access_the_same_word() {
    let profile = profile(|emulator| {
        emulator.launch("same", 1, 64, 65 * 4, || {
            let (words, t) = (shared::<u32>(65), tid());
            words.set(t, t);
            if t == 0 {
                words.set(64, 0);
            }
            thread::sync_threads();
            words.get(5);
            words.get(t % 2 * 32);
            words.fetch_add(64, 1);
        })
    });
    let (reads, writes) =
        (|counts| (Space::Shared, Access::Read, counts), |counts| (Space::Shared, Access::Write, counts));
    let updates = (Space::Shared, Access::Update, [2, 64, 2]);
    assert_eq!(counts(&profile), [writes([2, 2, 2]), writes([1, 1, 1]), reads([2, 2, 2]), reads([2, 4, 2]), updates]);
}

/// Asserts the requests, sectors and ideal sectors of a warp's reads of type `T`. Lane `t` reads element `index(t)`.
#[track_caller]
fn assert_reads<T: Word>(index: impl Fn(u32) -> u32, expected: [u64; 3]) {
    let values = vec![T::from_register(1); (0..32).map(&index).max().unwrap() as usize + 1];
    let profile = profile(|emulator| {
        let values = emulator.buffer(&values);
        emulator.launch("reads", 1, 32, 0, || _ = global(values.as_ptr(), values.len()).get(index(tid()) as usize))
    });
    assert_eq!(counts(&profile), [(Space::Global, Access::ReadConstant, expected)]);
}

#[test]
fn sectors_of_global_memory() {
    assert_reads::<u32>(|t| t, [1, 4, 4]);
    assert_reads::<u32>(|t| 31 - t, [1, 4, 4]);
    // Across five sectors.
    assert_reads::<u32>(|t| t + 1, [1, 5, 4]);
    assert_reads::<u32>(|t| 2 * t, [1, 8, 4]);
    assert_reads::<u32>(|t| 8 * t, [1, 32, 4]);
    assert_reads::<u32>(|_| 9, [1, 1, 1]);
    assert_reads::<u32>(|t| t % 2 * 8, [1, 2, 1]);
    assert_reads::<u64>(|t| t, [1, 8, 8]);
    assert_reads::<u64>(|t| 4 * t, [1, 32, 8]);
    assert_reads::<u8>(|t| t, [1, 1, 1]);
}

/// An asynchronous copy reads global memory and writes shared memory.
#[test]
fn asynchronous_copies() {
    let profile = profile(|emulator| {
        let from = emulator.buffer(&[7u32; 64]);
        emulator.launch("copies", 1, 32, 64 * 4, || {
            let from = global(from.as_ptr(), 64);
            shared::<u32>(64).copy_async(2 * tid(), from, tid() as usize);
            shared::wait_for_copies();
        })
    });
    assert_eq!(
        profile.rows.iter().map(|row| (row.space, row.access, row.units, row.ideal)).collect::<Vec<_>>(),
        [(Space::Shared, Access::Copy, 2, 1), (Space::Global, Access::ReadConstant, 4, 4)]
    );
}

/// The profile of a launch of one warp with `words` words of shared memory.
#[track_caller]
fn of_warp(words: u32, kernel: impl Fn(Shared<u32>, u32)) -> Profile {
    profile(|emulator| emulator.launch("warp", 1, 32, words * 4, || kernel(shared(words), tid())))
}

/// Requests, wavefronts and ideal wavefronts of the writes of a profile without other accesses.
fn writes(profile: &Profile) -> Vec<[u64; 3]> {
    let write = |(space, access, counts)| {
        assert_eq!((space, access), (Space::Shared, Access::Write));
        counts
    };
    counts(profile).into_iter().map(write).collect()
}

#[test]
fn divergent_branches() {
    let profile = of_warp(96, |words, t| {
        if t.is_multiple_of(2) {
            words.set(2 * t, 1);
        } else {
            words.set(t, 1);
        }
        words.set(64 + t, 2);
    });
    assert_eq!(writes(&profile), [[1, 2, 1], [1, 1, 1], [1, 1, 1]]);
}

#[test]
fn executions_in_a_loop() {
    // The second execution has a stride of 4 words.
    let all = of_warp(192, |words, t| (0..2).for_each(|i| words.set(64 * i + (1 + 3 * i) * t, i)));
    assert_eq!(writes(&all), [[2, 1 + 4, 2]]);
    // Half of the lanes execute it.
    let half = of_warp(192, |words, t| (0..1 + t / 16).for_each(|i| words.set(64 * i + (1 + 3 * i) * t, i)));
    assert_eq!(writes(&half), [[2, 1 + 2, 2]]);
}

/// A line that one half of the lanes executes before `align`, and the other half after it.
fn in_halves(align: impl Fn(u32)) -> Vec<[u64; 3]> {
    writes(&of_warp(32, |words, t| {
        // In a loop of unknown length, which the compiler does not unroll: unrolled code has an address for each half.
        for half in 0..black_box(2) {
            if t / 16 == half {
                words.set(t, 1);
            }
            align(t);
        }
    }))
}

#[test]
fn only_aligned_lanes_count_anew() {
    assert_eq!(in_halves(|_| thread::sync_threads()), [[2, 2, 2]]);
    assert_eq!(in_halves(|_| sync_warp(ALL)), [[2, 2, 2]]);
    assert_eq!(in_halves(|_| _ = ballot(ALL, true)), [[2, 2, 2]]);
    // The model's error: a GPU executes the halves one after the other.
    assert_eq!(in_halves(|_| ()), [[1, 1, 1]]);
    assert_eq!(in_halves(|t| sync_warp(0xffff << (t / 16 * 16))), [[1, 1, 1]]);
}

/// A loop of different lengths, and an access after it, that have one location: of the caller.
#[test]
#[cfg(target_arch = "x86_64")]
fn accesses_with_one_location() {
    #[inline(always)]
    #[track_caller]
    fn search_and_write(words: Shared<u32>, t: u32) {
        for i in 0..black_box(t % 3) {
            words.set(32 * i + t, 0);
        }
        words.set(64 + t, 0);
    }
    let profile = of_warp(96, |words, t| search_and_write(words, t));
    // Two requests of the loop, and one after it.
    assert_eq!(writes(&profile), [[3, 3, 3]]);
}

/// Lanes whose condition is false execute an instruction, too.
#[test]
fn conditional_accesses() {
    let profile = of_warp(97, |words, t| {
        (0..3).for_each(|i| words.set(32 * i + t, 0));
        if t == 0 {
            words.set(96, 0);
        }
        thread::sync_threads();
        for i in 0..2 {
            words.next_if(t % 2 == i, words.address(t), 0);
        }
        // All or none.
        for i in 0..4 {
            words.next_if(i % 2 == 0, words.address(t), 0);
        }
        thread::sync_threads();
        for i in 0..2 {
            words.push_if(1 << (t % 2), 1 << i, words.address(3 * t), 1);
        }
    });
    let of = |access| {
        let rows = counts(&profile).into_iter().filter(move |row| row.1 == access);
        rows.map(|(_, _, counts)| counts).collect::<Vec<_>>()
    };
    assert_eq!(of(Access::Read), [[2, 2, 2], [2, 2, 2]]);
    assert_eq!(of(Access::Write), [[3, 3, 3], [1, 1, 1], [2, 2, 2]]);
}

#[test]
fn launches_are_counted_while_the_profile_is_on() {
    let mut emulator = Emulator::new(1);
    let launch = |emulator: &mut Emulator| {
        emulator.launch("write", 1, 32, 128, || shared::<u32>(32).set(tid(), 1)).unwrap();
        emulator.profile().rows.iter().map(|row| row.requests).sum::<u64>()
    };
    assert_eq!(launch(&mut emulator), 0);
    emulator.set_profiled(true);
    assert_eq!([launch(&mut emulator), launch(&mut emulator)], [1, 2]);
    emulator.set_profiled(true);
    assert_eq!(launch(&mut emulator), 1);
    emulator.set_profiled(false);
    assert_eq!(launch(&mut emulator), 0);
}

#[test]
fn a_table_for_each_memory() {
    let line = line!() + 4;
    let profile = profile(|emulator| {
        let to = emulator.uninit(256);
        emulator.launch("table", 1, 32, 640, || {
            let (words, to, t) = (shared::<u32>(160), global_mut::<u64>(to.as_mut_ptr(), 256), tid());
            words.set(t, 1);
            words.set(32 + 4 * t, 2);
            to.set(8 * t as usize, 3);
        })
    });
    let file = file!();
    let expected = format!(
        "      excess  wavefronts       ideal    requests  of shared memory
           3           4           1           1  writes 4 bytes at {file}:{}:19
           0           1           1           1  writes 4 bytes at {file}:{}:19
           3           5           2           2  in total
      excess     sectors       ideal    requests  of a buffer in global memory
          24          32           8           1  writes 8 bytes at {file}:{}:16
          24          32           8           1  in total
",
        line + 2,
        line + 1,
        line + 3
    );
    assert_eq!(profile.to_string(), expected);
}
