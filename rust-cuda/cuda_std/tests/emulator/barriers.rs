//! Barriers of blocks and of warps that some threads never reach.

use crate::common::{
    SEEDS, assert_at, ballot, reduce_add, reduce_max, shared, shuffle_idx, shuffle_xor, sync_warp, tid,
};
use cuda_std::{
    emulator::{Barrier, Emulator, Fault, FaultKind, Index3},
    thread,
    warp::FULL_MASK,
};

/// The barrier, and the missing threads with the lines where they wait instead.
#[track_caller]
fn barrier(fault: &Fault) -> (Barrier, Vec<(Index3, Option<u32>)>) {
    match &fault.kind {
        FaultKind::Barrier { barrier, missing } => {
            let missing = missing.iter().map(|m| (m.thread, m.waits_at.as_ref().map(|location| location.line())));
            (*barrier, missing.collect())
        }
        _ => panic!("not about a barrier: {fault}"),
    }
}

#[test]
fn a_thread_returns_early() {
    for seed in SEEDS {
        let launch = |threads: u32, n: u32| {
            Emulator::new(seed).launch("early", 3, threads, 0, || {
                if tid() >= n {
                    return;
                }
                thread::sync_threads();
            })
        };
        launch(50, 50).unwrap();
        let fault = launch(50, 48).unwrap_err();
        assert_at(&fault, "early", fault.block, (0, 0, 0), file!(), line!() - 5);
        let missing = vec![((48, 0, 0), None), ((49, 0, 0), None)];
        assert_eq!(barrier(&fault), (Barrier::Block, missing));
        let end = "waits at a barrier of the block that 2 threads never reach: \
                   thread 48 has returned, thread 49 has returned";
        assert!(fault.to_string().ends_with(end), "{fault}");
    }
}

#[test]
fn fewer_barriers_in_a_loop() {
    for seed in SEEDS {
        let launch = |uneven: u32| {
            Emulator::new(seed).launch("rounds", 1, (4, 4), 0, || {
                for _ in 0..3 + uneven * u32::from(thread::thread_idx_y() == 2) {
                    thread::sync_threads();
                }
            })
        };
        launch(0).unwrap();
        let fault = launch(1).unwrap_err();
        assert_at(&fault, "rounds", (0, 0, 0), (0, 2, 0), file!(), line!() - 6);
        assert_eq!(barrier(&fault).1.len(), 12);
    }
}

#[test]
fn two_barriers_of_one_block() {
    // On a GPU, too, calls in different places are the same barrier.
    for seed in SEEDS {
        let ended = Emulator::new(seed).launch("branches", 1, 64, 4, || {
            if tid() == 0 {
                shared::<u32>(1).set(0, 7);
                thread::sync_threads();
            } else {
                thread::sync_threads();
                assert_eq!(shared::<u32>(1).get(0), 7);
            }
        });
        ended.unwrap();
    }
}

#[test]
fn a_part_of_a_warp_waits_for_the_block() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("diverged", 1, 32, 0, || {
            if tid() < 16 {
                thread::sync_threads();
            } else {
                sync_warp(FULL_MASK);
            }
        });
        let fault = fault.unwrap_err();
        let line = line!() - 6;
        assert_at(&fault, "diverged", (0, 0, 0), (0, 0, 0), file!(), line);
        let missing = (16..32).map(|lane| ((lane, 0, 0), Some(line + 2))).collect();
        assert_eq!(barrier(&fault), (Barrier::Block, missing));
        assert!(fault.to_string().contains(" 16 threads never reach: thread 16 waits at "), "{fault}");
        assert!(fault.to_string().ends_with(", and 12 more"), "{fault}");
    }
}

#[test]
fn a_warp_waits_for_lanes_at_the_barrier() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("diverged", 1, 64, 0, || {
            if tid() == 31 {
                thread::sync_threads();
            }
            sync_warp(FULL_MASK);
            thread::sync_threads();
        });
        let fault = fault.unwrap_err();
        let line = line!() - 6;
        assert_at(&fault, "diverged", (0, 0, 0), (0, 0, 0), file!(), line + 2);
        assert_eq!(barrier(&fault), (Barrier::Warp(FULL_MASK), vec![((31, 0, 0), Some(line))]));
    }
}

#[test]
fn a_lane_in_the_mask_returns() {
    for seed in SEEDS {
        let launch = |mask: u32| {
            Emulator::new(seed).launch("lane", 1, 64, 0, || {
                if tid() != 40 {
                    sync_warp(if tid() < 32 { FULL_MASK } else { mask });
                }
            })
        };
        launch(!(1 << 8)).unwrap();
        let fault = launch(FULL_MASK).unwrap_err();
        assert_at(&fault, "lane", (0, 0, 0), (32, 0, 0), file!(), line!() - 6);
        assert_eq!(barrier(&fault), (Barrier::Warp(FULL_MASK), vec![((40, 0, 0), None)]));
        let text = fault.to_string();
        assert!(
            text.ends_with(
                "waits at a warp operation with mask 0xffffffff that 1 thread never reaches: thread 40 has returned"
            ),
            "{text}"
        );
    }
}

#[test]
fn lanes_at_different_operations() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("different", 1, 32, 0, || {
            if tid() == 0 {
                sync_warp(FULL_MASK);
            } else {
                ballot(FULL_MASK, true);
            }
        });
        let fault = fault.unwrap_err();
        assert_at(&fault, "different", (0, 0, 0), (0, 0, 0), file!(), line!() - 6);
        let missing = (1..32).map(|lane| ((lane, 0, 0), Some(line!() - 5))).collect();
        assert_eq!(barrier(&fault), (Barrier::Warp(FULL_MASK), missing));
    }
}

#[test]
fn lanes_with_different_masks() {
    let fault = Emulator::new(1).launch("masks", 1, 2, 0, || sync_warp(if tid() == 0 { 0b11 } else { FULL_MASK }));
    assert_eq!(barrier(&fault.unwrap_err()).0, Barrier::Warp(0b11));
}

#[test]
fn a_mask_without_the_calling_lane() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("mask", 1, 64, 0, || {
            if tid() == 37 {
                sync_warp(0b1111);
            }
        });
        let fault = fault.unwrap_err();
        assert_at(&fault, "mask", (0, 0, 0), (37, 0, 0), file!(), line!() - 4);
        assert_eq!(fault.kind, FaultKind::Mask { mask: 0b1111, lane: 5 });
    }
}

#[test]
fn a_shuffle_from_a_lane_without_part() {
    let index = |source| {
        Emulator::new(1).launch("index", 1, 32, 0, || {
            if tid() < 16 {
                shuffle_idx(0xffff, 0, source);
            }
        })
    };
    index(15).unwrap();
    assert_eq!(index(16).unwrap_err().kind, FaultKind::Mask { mask: 0xffff, lane: 16 });
    assert_eq!(index(32).unwrap_err().kind, FaultKind::Mask { mask: 0xffff, lane: 32 });
    let xor = |lane_mask| {
        Emulator::new(1).launch("xor", 1, 1, 0, || {
            shuffle_xor(0b11, 0, lane_mask);
        })
    };
    xor(1).unwrap();
    assert_eq!(xor(2).unwrap_err().kind, FaultKind::Mask { mask: 0b11, lane: 2 });
    assert_eq!(xor(32).unwrap_err().kind, FaultKind::Mask { mask: 0b11, lane: 32 });
}

#[test]
fn a_reduction_that_a_lane_in_the_mask_never_makes() {
    for seed in SEEDS {
        for reduce in [reduce_add, reduce_max] {
            let launch = |mask: u32| {
                Emulator::new(seed).launch("reduce", 1, 64, 0, || {
                    if tid() != 40 {
                        reduce(if tid() < 32 { FULL_MASK } else { mask }, 1);
                    }
                })
            };
            launch(!(1 << 8)).unwrap();
            let fault = launch(FULL_MASK).unwrap_err();
            assert_eq!((fault.kernel, fault.thread), ("reduce", (32, 0, 0)), "{fault}");
            assert_eq!(barrier(&fault), (Barrier::Warp(FULL_MASK), vec![((40, 0, 0), None)]));
        }
    }
}

#[test]
fn lanes_at_different_reductions() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("different", 1, 32, 0, || {
            if tid() == 7 {
                reduce_max(FULL_MASK, 1);
            } else {
                reduce_add(FULL_MASK, 1);
            }
        });
        let fault = fault.unwrap_err();
        let line = line!() - 4;
        assert_at(&fault, "different", (0, 0, 0), (0, 0, 0), file!(), line);
        assert_eq!(barrier(&fault), (Barrier::Warp(FULL_MASK), vec![((7, 0, 0), Some(line - 2))]));
    }
}

#[test]
fn a_reduction_without_the_calling_lane() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("mask", 1, 64, 0, || {
            if tid() == 37 {
                reduce_add(!(1 << 5), 1);
            }
        });
        let fault = fault.unwrap_err();
        assert_at(&fault, "mask", (0, 0, 0), (37, 0, 0), file!(), line!() - 4);
        assert_eq!(fault.kind, FaultKind::Mask { mask: !(1 << 5), lane: 5 });
        let fault = Emulator::new(seed).launch("mask", 1, 1, 0, || _ = reduce_max(0b10, 1)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Mask { mask: 0b10, lane: 0 });
    }
}

#[test]
fn threads_left_waiting_are_unwound() {
    // Values that the kernel holds while it waits are dropped, although the launch has failed.
    struct Held<'a>(&'a std::cell::Cell<i32>);
    impl Drop for Held<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    let held = std::cell::Cell::new(0);
    let ended = Emulator::new(1).launch("held", 1, 100, 0, || {
        held.set(held.get() + 1);
        let _held = Held(&held);
        if tid() != 99 {
            thread::sync_threads();
        }
    });
    ended.unwrap_err();
    assert_eq!(held.get(), 0);
}
