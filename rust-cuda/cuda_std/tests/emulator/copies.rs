//! Asynchronous copies from global to shared memory.

use crate::common::{SEEDS, assert_at, global, global_mut, shared, tid};
use cuda_std::{
    Word,
    emulator::{Access, Conflict, Emulator, Fault, FaultKind, Space},
    shared::{commit_copies, wait_for_all_but_last_commit, wait_for_copies},
    thread::{self, block_idx_x},
};
use std::fmt::Debug;

/// The parts of a race.
#[track_caller]
fn race(fault: &Fault) -> (Space, Access, &Conflict) {
    match &fault.kind {
        FaultKind::Race { space, access, with, .. } => (*space, *access, with),
        _ => panic!("not a race: {fault}"),
    }
}

#[test]
fn what_is_copied_is_there_after_the_wait() {
    fn check<T: Word + PartialEq + Debug>(seed: u64, values: &[T]) {
        let (blocks, threads, n) = (3, 40, values.len());
        let keys = n / blocks as usize;
        let (tile_bytes, keys_of_thread) = ((keys * size_of::<T>()) as u32, keys / threads as usize);
        let mut emulator = Emulator::new(seed);
        let (x, y) = (emulator.buffer(values), emulator.uninit::<T>(n));
        for constant in [true, false] {
            let kernel = || {
                let (tile, start) = (shared::<T>(keys as u32), block_idx_x() as usize * keys);
                for step in 0..keys_of_thread as u32 {
                    let i = tid() + step * threads;
                    if constant {
                        tile.copy_async(i, global(x.as_ptr(), n), start + i as usize);
                    } else {
                        tile.copy_async_mut(i, global_mut(x.as_mut_ptr(), n), start + i as usize);
                    }
                }
                wait_for_copies();
                // A thread reads its own copies without a barrier, and others' copies after one.
                assert_eq!(tile.get(tid()), values[start + tid() as usize]);
                thread::sync_threads();
                for i in (tid() as usize..keys).step_by(threads as usize) {
                    global_mut(y.as_mut_ptr(), n).set(start + i, tile.get((keys - 1 - i) as u32));
                }
            };
            emulator.launch("copy", blocks, threads, tile_bytes, kernel).unwrap();
            let expected: Vec<T> = values.chunks(keys).flat_map(|part| part.iter().rev().copied()).collect();
            assert_eq!(emulator.read(y).unwrap(), expected);
        }
    }
    for seed in SEEDS {
        check(seed, &(0..360).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect::<Vec<u32>>());
        check(seed, &(0..360).map(|i| i as f32 / 8.0 - 9.0).collect::<Vec<f32>>());
        check(seed, &(0..360).map(|i: i64| (i - 99) << 40 | i).collect::<Vec<i64>>());
    }
}

#[test]
fn an_array_that_the_launch_writes() {
    // Copies may only read from a view of mutable memory, after a barrier behind the writes.
    for seed in SEEDS {
        let launch = |constant: bool, barrier: bool| {
            let mut emulator = Emulator::new(seed);
            let x = emulator.buffer(&[0u32; 64]);
            let ended = emulator.launch("exchange", 1, 64, 256, || {
                let (tile, other) = (shared::<u32>(64), 63 - tid());
                global_mut(x.as_mut_ptr(), 64).set(tid() as usize, tid());
                if barrier {
                    thread::sync_threads();
                }
                if constant {
                    tile.copy_async(tid(), global(x.as_ptr(), 64), other as usize);
                } else {
                    tile.copy_async_mut(tid(), global_mut(x.as_mut_ptr(), 64), other as usize);
                }
                wait_for_copies();
                assert!(!barrier || tile.get(tid()) == other);
                thread::sync_threads();
                // The copies are complete: their sources may be written again.
                global_mut(x.as_mut_ptr(), 64).set(tid() as usize, 7);
            });
            ended.map(|()| assert_eq!(emulator.read(x).unwrap(), [7; 64]))
        };
        launch(false, true).unwrap();
        for (constant, barrier) in [(false, false), (true, true), (true, false)] {
            let fault = launch(constant, barrier).unwrap_err();
            let (space, access, with) = race(&fault);
            assert_eq!(space, Space::Global);
            let read = if constant { Access::ReadConstant } else { Access::Read };
            assert!([access, with.access].contains(&read), "{fault}");
            assert!([access, with.access].contains(&Access::Write), "{fault}");
        }
    }
}

#[test]
fn copies_that_others_read_without_a_barrier() {
    for seed in SEEDS {
        let launch = |barrier: bool| {
            let mut emulator = Emulator::new(seed);
            let x = emulator.buffer(&(0..64).collect::<Vec<u32>>());
            emulator.launch("neighbour", 1, 64, 256, || {
                let tile = shared::<u32>(64);
                tile.copy_async(tid(), global(x.as_ptr(), 64), tid() as usize);
                wait_for_copies();
                if barrier {
                    thread::sync_threads();
                }
                assert_eq!(tile.get(tid() ^ 33), tid() ^ 33);
            })
        };
        launch(true).unwrap();
        let fault = launch(false).unwrap_err();
        // Uninitialised, if the reader happens to come first.
        match &fault.kind {
            FaultKind::Uninitialised { space, .. } => assert_eq!(*space, Space::Shared),
            _ => assert_eq!((race(&fault).0, race(&fault).2.thread.0), (Space::Shared, fault.thread.0 ^ 33)),
        }
    }
}

/// Copies to element 1.
fn copy_and_wait(tile: cuda_std::Shared<u64>, x: cuda_std::Global<u64>) {
    tile.copy_async(1, x, 0);
    wait_for_copies();
}

#[test]
fn uses_before_the_wait() {
    type Use = fn(cuda_std::Shared<u64>, cuda_std::Global<u64>);
    let uses: [(Access, Use); 3] = [
        (Access::Read, |tile, _| assert_eq!(tile.get(1), 5)),
        (Access::Write, |tile, _| tile.set(1, 6)),
        (Access::Copy, |tile, x| tile.copy_async(1, x, 2)),
    ];
    for seed in SEEDS {
        for (access, by_thread) in uses {
            // By the copying thread, and by another thread after a barrier, which does not wait for copies.
            for user in [3, 50] {
                let launch = |waiting: Option<u32>| {
                    let mut emulator = Emulator::new(seed);
                    let x = emulator.buffer(&[5u64; 4]);
                    emulator.launch("early", 1, 64, 16, || {
                        let (tile, x) = (shared::<u64>(2), global(x.as_ptr(), 4));
                        if tid() == 3 {
                            tile.copy_async(1, x, 0);
                        }
                        if waiting == Some(tid()) {
                            wait_for_copies();
                        }
                        thread::sync_threads();
                        if tid() == user {
                            by_thread(tile, x);
                        }
                    })
                };
                launch(Some(3)).unwrap();
                // Another thread's wait has no effect.
                for waiting in [None, Some(50)] {
                    let fault = launch(waiting).unwrap_err();
                    let (space, found, with) = race(&fault);
                    assert_eq!((space, found, with.access), (Space::Shared, access, Access::Copy), "{fault}");
                    assert_eq!((fault.thread.0, with.thread.0), (user, 3), "{fault}");
                    assert!(fault.to_string().ends_with("and has not waited for the copy: race"), "{fault}");
                }
            }
        }
    }
}

#[test]
fn groups_before_the_last_one() {
    for seed in SEEDS {
        // Words 0 and 1 are in a group, word 2 in another, and word 3 in none. The wait is for all groups but the last.
        let launch = |used: u32, groups: u32| {
            let mut emulator = Emulator::new(seed);
            let x = emulator.buffer(&[5u64; 4]);
            emulator.launch("groups", 1, 32, 32, || {
                if tid() == 3 {
                    let (tile, x) = (shared::<u64>(4), global(x.as_ptr(), 4));
                    for i in 0..4 {
                        tile.copy_async(i, x, i as usize);
                        if (i == 1 && groups > 1) || (i == 2 && groups > 0) {
                            commit_copies();
                        }
                    }
                    wait_for_all_but_last_commit();
                    assert_eq!(tile.get(used), 5);
                    wait_for_copies();
                    assert_eq!(tile.get(3), 5);
                    // No copy is pending, in any group.
                    wait_for_all_but_last_commit();
                }
            })
        };
        for (used, groups) in [(0, 2), (1, 2)] {
            launch(used, groups).unwrap();
        }
        for (used, groups) in [(2, 2), (3, 2), (0, 1), (2, 1), (3, 1), (0, 0)] {
            let fault = launch(used, groups).unwrap_err();
            assert_eq!(race(&fault).2.access, Access::Copy, "{fault}");
        }
    }
}

#[test]
fn a_copy_to_a_word_whose_bytes_were_used() {
    for seed in SEEDS {
        let launch = |wait: bool| {
            let mut emulator = Emulator::new(seed);
            let x = emulator.buffer(&[0x0403_0201u32]);
            emulator.launch("bytes", 1, 4, 4, || {
                shared::<u8>(4).set(tid(), 9);
                thread::sync_threads();
                if tid() == 2 {
                    shared::<u32>(1).copy_async(0, global(x.as_ptr(), 1), 0);
                }
                if wait {
                    wait_for_copies();
                }
                thread::sync_threads();
                assert_eq!(u32::from(shared::<u8>(4).get(tid())), tid() + 1);
            })
        };
        launch(true).unwrap();
        assert_eq!(race(&launch(false).unwrap_err()).2.access, Access::Copy);
    }
}

#[test]
fn copies_over_what_others_use() {
    for seed in SEEDS {
        // Two copies to one slot, and a copy to a slot that another thread has written or read.
        let launch = |first: fn(cuda_std::Shared<u64>, cuda_std::Global<u64>), barrier: bool| {
            let mut emulator = Emulator::new(seed);
            let x = emulator.buffer(&[5u64; 4]);
            emulator.launch("over", 1, 64, 16, || {
                let (tile, x) = (shared::<u64>(2), global(x.as_ptr(), 4));
                if tid() == 3 {
                    tile.set(1, 5);
                }
                thread::sync_threads();
                if tid() == 3 {
                    first(tile, x);
                }
                if barrier {
                    thread::sync_threads();
                }
                if tid() == 50 {
                    tile.copy_async(1, x, 2);
                }
                wait_for_copies();
            })
        };
        let firsts: [fn(cuda_std::Shared<u64>, cuda_std::Global<u64>); 3] =
            [copy_and_wait, |tile, _| tile.set(1, 6), |tile, _| assert_eq!(tile.get(1), 5)];
        for first in firsts {
            launch(first, true).unwrap();
            let fault = launch(first, false).unwrap_err();
            let (space, _, with) = race(&fault);
            assert_eq!((space, fault.thread.0 + with.thread.0), (Space::Shared, 53), "{fault}");
        }
    }
}

#[test]
fn copies_out_of_bounds() {
    let mut emulator = Emulator::new(1);
    let x = emulator.buffer(&[1u32; 8]);
    // A view of 8 elements in shared memory for 6, and a view of 7 of the 8 elements in global memory.
    for mutable in [false, true] {
        let line = line!() + 4;
        let mut launch = |to: u32, from: usize| {
            emulator.launch("copy", 1, 1, 24, || {
                match mutable {
                    false => shared::<u32>(8).copy_async(to, global(x.as_ptr(), 7), from),
                    true => shared::<u32>(8).copy_async_mut(to, global_mut(x.as_mut_ptr(), 7), from),
                }
                wait_for_copies();
            })
        };
        launch(5, 6).unwrap();
        let (space, access) = (Space::Shared, Access::Copy);
        for (to, from, kind) in [
            (0, 7, FaultKind::OutOfView { start: 7, count: 1, len: 7 }),
            (8, 0, FaultKind::OutOfView { start: 8, count: 1, len: 8 }),
            (6, 0, FaultKind::OutOfBounds { space, access, byte: 24, size: 4, len: 24 }),
        ] {
            let fault = launch(to, from).unwrap_err();
            assert_at(&fault, "copy", (0, 0, 0), (0, 0, 0), file!(), line + u32::from(mutable));
            assert_eq!(fault.kind, kind);
        }
    }
}

#[test]
fn copies_beyond_a_buffer() {
    for mutable in [false, true] {
        let mut emulator = Emulator::new(1);
        let x = emulator.buffer(&[1u64; 8]);
        // The view claims more elements than the buffer has.
        let fault = emulator.launch("lying", 1, 1, 8, || match mutable {
            false => shared::<u64>(1).copy_async(0, global(x.as_ptr(), 9), 8),
            true => shared::<u64>(1).copy_async_mut(0, global_mut(x.as_mut_ptr(), 9), 8),
        });
        let fault = fault.unwrap_err();
        assert_at(&fault, "lying", (0, 0, 0), (0, 0, 0), file!(), line!() - 4 + u32::from(mutable));
        let (space, access) = (Space::Global, if mutable { Access::Read } else { Access::ReadConstant });
        assert_eq!(fault.kind, FaultKind::OutOfBounds { space, access, byte: 64, size: 8, len: 64 });
    }
}

#[test]
fn copies_of_what_was_never_written() {
    for mutable in [false, true] {
        let mut emulator = Emulator::new(1);
        let x = emulator.uninit::<u32>(4);
        emulator.launch("write", 1, 3, 0, || global_mut(x.as_mut_ptr(), 4).set(tid() as usize, tid())).unwrap();
        let mut launch = |from: usize| {
            emulator.launch("copy", 1, 1, 4, || match mutable {
                false => shared::<u32>(1).copy_async(0, global(x.as_ptr(), 4), from),
                true => shared::<u32>(1).copy_async_mut(0, global_mut(x.as_mut_ptr(), 4), from),
            })
        };
        launch(2).unwrap();
        let fault = launch(3).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Uninitialised { space: Space::Global, byte: 12, size: 4, len: 16 });
    }
}
