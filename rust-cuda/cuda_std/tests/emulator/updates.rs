//! Atomic updates: they race with every access that no barrier orders, except other atomic updates.

use crate::common::{SEEDS, assert_at, fault, global, global_mut, shared, sync_warp, tid};
use cuda_std::{
    GlobalMut, Shared,
    emulator::{Access, Emulator, Fault, FaultKind, Space},
    thread::{self, block_idx_x},
    warp::FULL_MASK,
};

/// Both accesses of a race in global memory, the earlier one first.
#[track_caller]
fn race(fault: &Fault) -> [Access; 2] {
    match &fault.kind {
        FaultKind::Race { space: Space::Global, byte: 0..4, access, with } => [with.access, *access],
        _ => panic!("not a race of the first word in global memory: {fault}"),
    }
}

/// Asserts that an update raced with an access of kind `access`, in either order.
#[track_caller]
fn assert_race_with(access: Access, fault: &Fault) {
    assert!([[Access::Update, access], [access, Access::Update]].contains(&race(fault)), "{fault}");
}

/// Adds 1 to element `i`.
#[track_caller]
fn add(counters: GlobalMut<u32>, i: usize) {
    counters.fetch_add(i, 1);
}

/// Runs `kernel` with one counter, initially 0, and returns its final value.
fn launch(seed: u64, (blocks, threads): (u32, u32), kernel: impl Fn(GlobalMut<u32>)) -> Result<u32, Fault> {
    let mut emulator = Emulator::new(seed);
    let counter = emulator.buffer(&[0u32]);
    emulator.launch("count", blocks, threads, 0, || kernel(global_mut(counter.as_mut_ptr(), 1)))?;
    Ok(emulator.read(counter).unwrap()[0])
}

#[test]
fn many_threads_may_add() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let (counter, seen) = (emulator.buffer(&[7u32]), emulator.uninit::<u32>(4 * 70));
        emulator
            .launch("count", 4, 70, 0, || {
                let before = global_mut(counter.as_mut_ptr(), 1).fetch_add(0, 1);
                global_mut(seen.as_mut_ptr(), 4 * 70).set((block_idx_x() * 70 + tid()) as usize, before);
            })
            .unwrap();
        let mut seen = emulator.read(seen).unwrap();
        seen.sort();
        assert!(seen.into_iter().eq(7..7 + 4 * 70));
        assert_eq!(emulator.read(counter).unwrap(), [7 + 4 * 70]);
    }
}

#[test]
fn many_threads_may_raise() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let x = emulator.buffer(&[0u32; 3]);
        let raise = |emulator: &mut Emulator, i: usize| {
            emulator.launch("raise", 5, 64, 0, || {
                // All threads of all blocks but the first, twice each.
                if block_idx_x() > 0 {
                    global_mut(x.as_mut_ptr(), 3).raise(i);
                    thread::sync_threads();
                    global_mut(x.as_mut_ptr(), 3).raise(i);
                }
            })
        };
        raise(&mut emulator, 1).unwrap();
        assert_eq!(emulator.read(x).unwrap(), [0, 1, 0]);
        // Launches are ordered: a later launch may read the word, write it and raise it again.
        emulator.launch("read", 4, 32, 0, || assert_eq!(global(x.as_ptr(), 3).get(1), 1)).unwrap();
        emulator.launch("lower", 1, 1, 0, || global_mut(x.as_mut_ptr(), 3).set(1, 0)).unwrap();
        assert_eq!(emulator.read(x).unwrap(), [0; 3]);
        raise(&mut emulator, 1).unwrap();
        raise(&mut emulator, 0).unwrap();
        assert_eq!(emulator.read(x).unwrap(), [1, 1, 0]);
        emulator.launch("read", 4, 32, 0, || assert_eq!(global_mut(x.as_mut_ptr(), 3).get(1), 1)).unwrap();
    }
}

#[test]
fn a_word_raised_by_some_and_written_by_others() {
    for seed in SEEDS {
        let fault = launch(seed, (1, 64), |flag| if tid() == 9 { flag.set(0, 1) } else { flag.raise(0) });
        assert_race_with(Access::Write, &fault.unwrap_err());
    }
}

#[test]
fn threads_of_all_blocks_may_load_and_store_a_word() {
    for seed in SEEDS {
        let last = launch(seed, (4, 64), |word| {
            let before = word.load(0);
            assert!(before == 0 || (1..=4 * 64).contains(&before), "{before}");
            word.store(0, block_idx_x() * 64 + tid() + 1);
        });
        assert!((1..=4 * 64).contains(&last.unwrap()));
        // Blocks take numbers in the order of their execution, and wait for lower numbers.
        let mut emulator = Emulator::new(seed);
        let words = emulator.buffer(&[0u32; 2]);
        let kernel = || {
            let words = global_mut(words.as_mut_ptr(), 2);
            let number = words.fetch_add(0, 1);
            while words.load(1) < number {}
            thread::device_fence();
            words.store(1, number + 1);
        };
        emulator.launch("wait", 3, 1, 0, kernel).unwrap();
        assert_eq!(emulator.read(words).unwrap(), [3, 3]);
    }
}

#[test]
fn a_word_loaded_or_stored_by_some_and_used_plainly_by_others() {
    for seed in SEEDS {
        let loads: fn(GlobalMut<u32>) = |word| {
            word.load(0);
        };
        let reads: fn(GlobalMut<u32>) = |word| {
            word.get(0);
        };
        for told in [loads, |word| word.store(0, 1)] {
            for (access, plain) in [(Access::Read, reads), (Access::Write, |word| word.set(0, 1))] {
                // By another thread of the block, or of another block, which a barrier does not order.
                for blocks in [1, 2] {
                    let is_other = || tid() == 9 && block_idx_x() == 0;
                    let fault = launch(seed, (blocks, 64), |word| if is_other() { plain(word) } else { told(word) });
                    assert_race_with(access, &fault.unwrap_err());
                }
            }
        }
    }
}

#[test]
fn a_read_or_write_needs_a_barrier() {
    for seed in SEEDS {
        for (access, plain) in [
            (Access::Read, (|counter| assert_eq!(counter.get(0), 63)) as fn(GlobalMut<u32>)),
            (Access::Write, |counter| counter.set(0, 63)),
        ] {
            // Thread 9 accesses the counter before or after the others update it.
            let of_block = |is_first: bool, barrier: bool| {
                launch(seed, (1, 64), |counter| {
                    for step in [is_first, !is_first] {
                        if step && tid() == 9 {
                            if is_first && access == Access::Read {
                                assert_eq!(counter.get(0), 0)
                            } else {
                                plain(counter)
                            }
                        } else if !step && tid() != 9 {
                            add(counter, 0);
                        }
                        if barrier {
                            thread::sync_threads();
                        }
                    }
                })
            };
            for is_first in [false, true] {
                of_block(is_first, true).unwrap();
            }
            assert_race_with(access, &of_block(true, false).unwrap_err());
        }
    }
}

#[test]
fn a_barrier_does_not_order_blocks() {
    for seed in SEEDS {
        let fault = launch(seed, (2, 32), |counter| {
            add(counter, 0);
            thread::sync_threads();
            if tid() == 0 {
                counter.get(0);
            }
        });
        assert_race_with(Access::Read, &fault.unwrap_err());
        // The end of a launch does.
        let mut emulator = Emulator::new(seed);
        let counter = emulator.buffer(&[0u32]);
        let counter = || global_mut(counter.as_mut_ptr(), 1);
        for launch in 0..3 {
            emulator.launch("count", 3, 40, 0, || add(counter(), 0)).unwrap();
            emulator.launch("read", 3, 40, 0, || assert_eq!(counter().get(0), (launch + 1) * 120)).unwrap();
        }
    }
}

#[test]
fn an_update_of_another_block_is_remembered() {
    // The last update is by the same thread.
    for seed in SEEDS {
        let fault = launch(seed, (2, 1), |counter| {
            add(counter, 0);
            counter.set(0, 5);
        });
        assert_race_with(Access::Write, &fault.unwrap_err());
    }
}

#[test]
fn sync_warp_orders_the_updates_of_a_warp() {
    for seed in SEEDS {
        let of_threads = |threads: u32, sync: bool| {
            launch(seed, (1, threads), |counter| {
                add(counter, 0);
                if sync {
                    sync_warp(FULL_MASK);
                }
                if tid() == 5 {
                    counter.set(0, counter.get(0) + 100);
                }
            })
        };
        assert_eq!(of_threads(32, true).unwrap(), 132);
        // Without it, or with updates of another warp, which `sync_warp` does not order.
        for fault in [of_threads(32, false).unwrap_err(), of_threads(64, true).unwrap_err()] {
            let accesses = race(&fault);
            assert!(accesses.contains(&Access::Update) && accesses != [Access::Update; 2], "{fault}");
        }
    }
}

#[test]
fn sync_warp_of_some_lanes_orders_theirs() {
    for seed in SEEDS {
        // Lanes 0 to 15 update and read. The other lanes' updates are not ordered before.
        let fault = launch(seed, (1, 32), |counter| {
            add(counter, 0);
            if tid() < 16 {
                sync_warp(0xffff);
                if tid() == 3 {
                    counter.get(0);
                }
            }
        });
        assert_race_with(Access::Read, &fault.unwrap_err());
    }
}

#[test]
fn a_read_before_other_updates_is_remembered() {
    for seed in SEEDS {
        // Thread 0 reads, and lane 1 updates after a `sync_warp`. Lane 40 is in another warp.
        let fault = launch(seed, (1, 64), |counter| {
            if tid() < 32 {
                if tid() == 0 {
                    counter.get(0);
                }
                sync_warp(FULL_MASK);
            }
            if tid() == 1 || tid() == 40 {
                add(counter, 0);
            }
        });
        let fault = fault.unwrap_err();
        assert_race_with(Access::Read, &fault);
    }
}

#[test]
fn updates_are_checked_like_other_accesses() {
    let mut emulator = Emulator::new(1);
    let (x, y) = (emulator.buffer(&[1u32; 4]), emulator.uninit::<u32>(4));
    let mut launch = |p: *mut u32, len: usize, i: usize| {
        let line = line!() + 1;
        let fault = emulator.launch("add", 1, 1, 0, || add(global_mut(p, len), i)).unwrap_err();
        assert_at(&fault, "add", (0, 0, 0), (0, 0, 0), file!(), line);
        fault.kind
    };
    let (space, access) = (Space::Global, Access::Update);
    assert_eq!(launch(x.as_mut_ptr(), 3, 3), FaultKind::OutOfView { start: 3, count: 1, len: 3 });
    let beyond = FaultKind::OutOfBounds { space, access, byte: 16, size: 4, len: 16 };
    assert_eq!(launch(x.as_mut_ptr(), 5, 4), beyond);
    let misaligned = FaultKind::Misaligned { space, access, byte: 2, size: 4 };
    assert_eq!(launch(x.as_mut_ptr().wrapping_byte_add(2), 2, 0), misaligned);
    assert_eq!(launch(y.as_mut_ptr(), 4, 1), FaultKind::Uninitialised { space, byte: 4, size: 4, len: 16 });
    assert_eq!(
        beyond.to_string(),
        "atomically updates element 4 (bytes 16..20 of 16) of a buffer in global memory: out of bounds"
    );
}

#[test]
fn the_message_says_what_was_updated() {
    let fault = fault(3, |emulator| {
        let counter = emulator.buffer(&[0u32]);
        emulator.launch("count", 1, 2, 0, || {
            let counter = global_mut(counter.as_mut_ptr(), 1);
            if tid() == 0 { add(counter, 0) } else { counter.set(0, 1) }
        })
    });
    let text = fault.to_string();
    assert!(text.contains("atomically update") && text.ends_with("and no barrier is between: race"), "{text}");
}

/// Runs `kernel` in one block of 64 threads, with three counters in shared memory. Two are initially 0, and the last
/// one is not written.
fn launch_shared(seed: u64, kernel: impl Fn(Shared<u32>)) -> Result<(), Fault> {
    Emulator::new(seed).launch("count", 1, 64, 12, || {
        if tid() < 2 {
            shared::<u32>(3).set(tid(), 0);
        }
        thread::sync_threads();
        kernel(shared(3));
    })
}

#[test]
fn many_threads_may_add_in_shared_memory() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let seen = emulator.uninit::<u32>(64);
        let kernel = || {
            let counter = shared::<u32>(1);
            if tid() == 40 {
                counter.set(0, 5);
            }
            thread::sync_threads();
            let before = counter.fetch_add(0, 3);
            global_mut(seen.as_mut_ptr(), 64).set(tid() as usize, before);
            thread::sync_threads();
            assert_eq!(counter.get(0), 5 + 64 * 3);
        };
        emulator.launch("count", 1, 64, 4, kernel).unwrap();
        let mut seen = emulator.read(seen).unwrap();
        seen.sort();
        assert!(seen.into_iter().eq((0..64).map(|i| 5 + 3 * i)));
    }
}

#[test]
fn updates_of_shared_memory_are_checked_like_other_accesses() {
    for seed in SEEDS {
        // No barrier orders thread 9's access with the others' updates.
        for plain in [
            (|counter| {
                counter.get(0);
            }) as fn(Shared<u32>),
            |counter| counter.set(0, 1),
        ] {
            let fault = launch_shared(seed, |counters| {
                if tid() == 9 {
                    plain(counters)
                } else {
                    {
                        counters.fetch_add(0, 1);
                    }
                }
            });
            let fault = fault.unwrap_err();
            assert!(matches!(fault.kind, FaultKind::Race { space: Space::Shared, byte: 0..4, .. }), "{fault}");
        }
        let unwritten = launch_shared(seed, |counters| {
            counters.fetch_add(2, 1);
        })
        .unwrap_err();
        assert!(
            matches!(unwritten.kind, FaultKind::Uninitialised { space: Space::Shared, byte: 8, .. }),
            "{unwritten}"
        );
        let beyond = launch_shared(seed, |counters| {
            counters.fetch_add(3, 1);
        })
        .unwrap_err();
        assert_eq!(beyond.kind, FaultKind::OutOfView { start: 3, count: 1, len: 3 });
    }
}
