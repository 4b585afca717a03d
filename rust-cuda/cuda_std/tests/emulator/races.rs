//! Accesses that no barrier orders. Every race must be found in any interleaving, and correct code must pass.

use crate::common::{
    SEEDS, assert_at, global, global_mut, reduce_add, reduce_max, shared, shuffle_xor, sync_warp, tid,
};
use cuda_std::{
    Word,
    emulator::{Access, Conflict, Emulator, Fault, FaultKind, Space},
    thread::{self, block_idx_x},
    warp::FULL_MASK,
};

/// The parts of a race.
#[track_caller]
fn race(fault: &Fault) -> (Space, usize, Access, &Conflict) {
    match &fault.kind {
        FaultKind::Race { space, byte, access, with } => (*space, *byte, *access, with),
        _ => panic!("not a race: {fault}"),
    }
}

/// The line of the reported access and the line of the other one, given the lines of the read and of the write.
#[track_caller]
fn assert_lines(fault: &Fault, read: u32, write: u32) {
    let (_, _, access, with) = race(fault);
    let line = |access| if access == Access::Write { write } else { read };
    assert_eq!((fault.location.file(), with.location.file()), (file!(), file!()));
    assert_eq!((fault.location.line(), with.location.line()), (line(access), line(with.access)), "{fault}");
}

#[test]
fn shared_memory_without_a_barrier() {
    for seed in SEEDS {
        let launch = |barrier: bool| {
            Emulator::new(seed).launch("neighbour", 1, 64, 256, || {
                let tile = shared::<u32>(64);
                tile.set(tid(), tid());
                thread::sync_threads();
                let next = tile.get((tid() + 1) % 64);
                if barrier {
                    thread::sync_threads();
                }
                tile.set(tid(), next);
                thread::sync_threads();
                assert_eq!(tile.get(tid()), (tid() + 1) % 64);
            })
        };
        launch(true).unwrap();
        let fault = launch(false).unwrap_err();
        let line = line!() - 11;
        assert_lines(&fault, line, line + 4);
        let (space, byte, access, with) = race(&fault);
        assert_eq!((space, byte % 4, with.block), (Space::Shared, 0, (0, 0, 0)));
        let writer_after_reader = byte as u32 / 4 == (with.thread.0 + 1) % 64;
        match access {
            Access::Write => assert!(fault.thread.0 == byte as u32 / 4 && writer_after_reader, "{fault}"),
            _ => assert!(with.thread.0 == byte as u32 / 4, "{fault}"),
        }
    }
}

#[test]
fn two_writes_of_one_value() {
    for seed in SEEDS {
        let line = line!() + 3;
        let fault = Emulator::new(seed).launch("both", 1, 64, 8, || {
            if tid() % 40 == 3 {
                shared::<u64>(1).set(0, 1)
            }
        });
        let fault = fault.unwrap_err();
        let (first, second) = if fault.thread.0 == 3 { (43, 3) } else { (3, 43) };
        assert_at(&fault, "both", (0, 0, 0), (second, 0, 0), file!(), line);
        let (space, byte, access, with) = race(&fault);
        assert_eq!((space, byte, access), (Space::Shared, 0, Access::Write));
        assert_eq!((with.block, with.thread, with.access), ((0, 0, 0), (first, 0, 0), Access::Write));
        let text = fault.to_string();
        let end = format!(
            "writes byte 0 of shared memory, which block 0, thread {first} wrote at {}, \
             and no barrier is between: race",
            with.location
        );
        assert!(text.ends_with(&end), "{text}");
    }
}

/// An access of `size` bytes at byte `offset`.
#[derive(Clone, Copy)]
struct Touch {
    size: u32,
    offset: u32,
    write: bool,
}

impl Touch {
    /// All accesses in 16 bytes.
    fn all() -> impl Iterator<Item = Self> {
        let places = [1, 2, 4, 8].into_iter().flat_map(|size| (0..16 / size).map(move |i| (size, i * size)));
        places.flat_map(|(size, offset)| [false, true].map(|write| Self { size, offset, write }))
    }

    fn overlaps(self, other: Self) -> bool {
        self.offset < other.offset + other.size && other.offset < self.offset + self.size
    }

    fn has(self, byte: usize) -> bool {
        (self.offset..self.offset + self.size).contains(&(byte as u32))
    }

    /// Makes the access in shared memory, or in global memory at `global`.
    fn make(self, global: Option<*mut u8>) {
        fn make<T: Word>(touch: Touch, global: Option<*mut u8>) {
            let i = touch.offset / touch.size;
            let zero = T::from_register(0);
            match (global, touch.write) {
                (None, true) => shared::<T>(16 / touch.size).set(i, zero),
                (None, false) => _ = shared::<T>(16 / touch.size).get(i),
                (Some(p), true) => global_mut::<T>(p.cast(), 16).set(i as usize, zero),
                (Some(p), false) => _ = global_mut::<T>(p.cast(), 16).get(i as usize),
            }
        }
        match self.size {
            1 => make::<u8>(self, global),
            2 => make::<u16>(self, global),
            4 => make::<u32>(self, global),
            _ => make::<u64>(self, global),
        }
    }
}

/// Two threads race exactly if their accesses overlap and one writes. `memory` makes the memory, if it is global.
fn overlap(memory: impl Fn(&mut Emulator) -> Option<*mut u8>) {
    for one in Touch::all() {
        for other in Touch::all() {
            for seed in 0..4 {
                let mut emulator = Emulator::new(seed);
                let global = memory(&mut emulator);
                let ended = emulator.launch("overlap", 1, 64, 16, || {
                    if tid() < 2 {
                        shared::<u64>(2).set(tid(), 0);
                    }
                    thread::sync_threads();
                    match tid() {
                        5 => one.make(global),
                        6 => other.make(global),
                        _ => {}
                    }
                });
                assert_eq!(ended.is_err(), one.overlaps(other) && (one.write || other.write));
                if let Err(fault) = ended {
                    let byte = race(&fault).1;
                    assert!(one.has(byte) && other.has(byte), "{fault}");
                }
            }
        }
    }
}

#[test]
fn overlap_of_accesses_of_different_sizes() {
    overlap(|_| None);
    overlap(|emulator| Some(emulator.buffer(&[0u8; 16]).as_mut_ptr()));
    overlap(|emulator| Some(emulator.buffer(&[0u16; 8]).as_mut_ptr().cast()));
    overlap(|emulator| Some(emulator.buffer(&[0u32; 4]).as_mut_ptr().cast()));
    overlap(|emulator| Some(emulator.buffer(&[0u64; 2]).as_mut_ptr().cast()));
}

#[test]
fn a_reader_among_many() {
    // One reader that is not ordered with the writer is enough, whichever other reads come before or after.
    for seed in SEEDS {
        for writer in [0, 17, 31, 32, 95] {
            let launch = |barrier: bool| {
                Emulator::new(seed).launch("readers", 1, 96, 4, || {
                    if tid() == 7 {
                        shared::<i32>(1).set(0, 5);
                    }
                    thread::sync_threads();
                    assert_eq!(shared::<i32>(1).get(0), 5);
                    if barrier {
                        thread::sync_threads();
                    }
                    if tid() == writer {
                        shared::<i32>(1).set(0, 6);
                    }
                })
            };
            launch(true).unwrap();
            let fault = launch(false).unwrap_err();
            let line = line!() - 11;
            assert_lines(&fault, line, line + 5);
        }
    }
}

#[test]
fn the_only_other_reader() {
    for seed in SEEDS {
        for (reader, writer) in [(0, 1), (1, 0), (3, 40), (40, 3), (31, 32), (63, 62)] {
            let launch = |readers: &[u32]| {
                Emulator::new(seed).launch("reader", 1, 64, 4, || {
                    shared::<u32>(1).set_by(writer);
                    thread::sync_threads();
                    if readers.contains(&tid()) {
                        shared::<u32>(1).get(0);
                    }
                    shared::<u32>(1).set_by(writer);
                })
            };
            launch(&[]).unwrap();
            launch(&[writer]).unwrap();
            for readers in [&[reader] as &[u32], &[reader, writer]] {
                let fault = launch(readers).unwrap_err();
                let thread = if race(&fault).2 == Access::Write { race(&fault).3.thread } else { fault.thread };
                assert_eq!(thread, (reader, 0, 0), "{fault}");
            }
        }
    }
}

trait SetBy {
    fn set_by(self, writer: u32);
}

impl SetBy for cuda_std::Shared<u32> {
    /// Thread `writer` writes element 0.
    fn set_by(self, writer: u32) {
        if tid() == writer {
            self.set(0, 1);
        }
    }
}

#[test]
fn global_memory_in_a_block() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let x = emulator.buffer(&[0u32; 64]);
        let mut launch = |barrier: bool| {
            emulator.launch("exchange", 1, 64, 0, || {
                let x = global_mut(x.as_mut_ptr(), 64);
                x.set(tid() as usize, tid());
                if barrier {
                    thread::sync_threads();
                }
                assert_eq!(x.get(63 - tid() as usize), 63 - tid());
            })
        };
        launch(true).unwrap();
        let fault = launch(false).unwrap_err();
        let line = line!() - 5;
        assert_lines(&fault, line, line - 4);
        let (space, _, _, with) = race(&fault);
        assert_eq!((space, fault.thread.0 + with.thread.0), (Space::Global, 63));
    }
}

#[test]
fn global_memory_across_blocks() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let x = emulator.buffer(&[0u32; 8]);
        // Barriers have no effect between blocks.
        let mut launch = |shift: usize| {
            emulator.launch("blocks", 4, 2, 0, || {
                let x = global_mut(x.as_mut_ptr(), 8);
                let own = thread::index_1d() as usize;
                thread::sync_threads();
                x.set(own, 1);
                thread::sync_threads();
                x.get((own + shift) % 8);
                thread::sync_threads();
            })
        };
        launch(0).unwrap();
        let fault = launch(2).unwrap_err();
        let line = line!() - 6;
        assert_lines(&fault, line, line - 2);
        let (space, byte, _, with) = race(&fault);
        assert_eq!((space, byte % 4), (Space::Global, 0));
        assert_ne!(with.block, fault.block);
        assert_eq!(with.thread, fault.thread);
        // The writer's own element.
        let (writer, thread) =
            if with.access == Access::Write { (with.block, with.thread) } else { (fault.block, fault.thread) };
        assert_eq!(byte as u32 / 4, writer.0 * 2 + thread.0);
    }
}

#[test]
fn a_reader_in_a_block_before() {
    // Blocks read, with barriers of their own, and one block writes: alone, after its own read, or in between.
    for seed in SEEDS {
        for (readers, threads) in [(1, 1), (1, 32), (1, 64), (3, 64), (6, 64), (7, 64)] {
            let mut emulator = Emulator::new(seed);
            let x = emulator.buffer(&[0u32; 1]);
            let fault = emulator.launch("blocks", 7, threads, 0, || {
                let x = global_mut(x.as_mut_ptr(), 1);
                if block_idx_x() < readers {
                    x.get(0);
                }
                thread::sync_threads();
                if block_idx_x() == 6 && tid() == threads / 2 {
                    x.set(0, 1);
                }
            });
            let fault = fault.unwrap_err();
            let with = race(&fault).3;
            assert_ne!(fault.block, with.block, "{fault}");
            assert!(fault.block == (6, 0, 0) || with.block == (6, 0, 0), "{fault}");
        }
    }
}

#[test]
fn launches_are_ordered() {
    let mut emulator = Emulator::new(5);
    let x = emulator.uninit::<u32>(64);
    for step in 0..64 {
        let write = || global_mut(x.as_mut_ptr(), 64).set((thread::index_1d() as usize + step) % 64, step as u32);
        emulator.launch("write", 4, 16, 0, write).unwrap();
        let read = || assert_eq!(global(x.as_ptr(), 64).get((thread::index_1d() as usize * 3) % 64), step as u32);
        emulator.launch("read", 2, 32, 0, read).unwrap();
    }
}

#[test]
fn memory_read_as_constant() {
    for seed in SEEDS {
        for barrier in [false, true] {
            for (reader, writer) in [(3, 3), (3, 4), (60, 1)] {
                for (reading_block, writing_block) in [(0, 0), (0, 1), (1, 0)] {
                    let mut emulator = Emulator::new(seed);
                    let x = emulator.buffer(&[0u32; 2]);
                    let mut launch = |element: usize| {
                        emulator.launch("constant", 2, 64, 0, || {
                            if tid() == reader && block_idx_x() == reading_block {
                                global(x.as_ptr(), 2).get(0);
                            }
                            if barrier {
                                thread::sync_threads();
                            }
                            if tid() == writer && block_idx_x() == writing_block {
                                global_mut(x.as_mut_ptr(), 2).set(element, 1);
                            }
                        })
                    };
                    launch(1).unwrap();
                    let fault = launch(0).unwrap_err();
                    let line = line!() - 12;
                    assert_lines(&fault, line, line + 6);
                    let (space, byte, access, with) = race(&fault);
                    assert_eq!((space, byte), (Space::Global, 0));
                    let mut kinds = [access, with.access];
                    kinds.sort_by_key(|&access| access == Access::Write);
                    assert_eq!(kinds, [Access::ReadConstant, Access::Write]);
                    assert!(fault.to_string().ends_with(", in the same launch: race"), "{fault}");
                }
            }
        }
    }
}

#[test]
fn a_constant_read_is_not_forgotten() {
    // Reads that are ordered before the write come after the constant read, in its block and in another.
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let x = emulator.buffer(&[0u32; 1]);
        let fault = emulator.launch("constant", 1, 64, 0, || {
            if tid() == 9 {
                global(x.as_ptr(), 1).get(0);
            }
            thread::sync_threads();
            global_mut(x.as_mut_ptr(), 1).get(0);
            thread::sync_threads();
            if tid() == 9 {
                global_mut(x.as_mut_ptr(), 1).set(0, 1);
            }
        });
        let fault = fault.unwrap_err();
        assert_eq!((fault.thread, race(&fault).3.thread), ((9, 0, 0), (9, 0, 0)));
        assert_eq!(race(&fault).3.access, Access::ReadConstant);
    }
}

#[test]
fn lanes_without_sync_warp() {
    for seed in SEEDS {
        let launch = |ordered: bool| {
            Emulator::new(seed).launch("lanes", 1, 64, 256, || {
                let tile = shared::<u32>(64);
                tile.set(tid(), tid());
                sync_warp(FULL_MASK);
                let value = tile.get(tid() ^ 1);
                if ordered {
                    sync_warp(FULL_MASK);
                }
                tile.set(tid(), value);
                sync_warp(FULL_MASK);
                assert_eq!(tile.get(tid()), tid() ^ 1);
            })
        };
        launch(true).unwrap();
        let fault = launch(false).unwrap_err();
        let line = line!() - 11;
        assert_lines(&fault, line, line + 4);
        assert_eq!(race(&fault).3.thread.0, fault.thread.0 ^ 1, "{fault}");
    }
}

#[test]
fn sync_warp_is_of_one_warp() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("warps", 1, 64, 256, || {
            let tile = shared::<u32>(64);
            tile.set(tid(), tid());
            sync_warp(FULL_MASK);
            thread::sync_threads();
            tile.set(tid() ^ 32, 0);
            sync_warp(FULL_MASK);
            tile.get(tid());
        });
        let fault = fault.unwrap_err();
        assert_eq!(race(&fault).3.thread.0 ^ 32, fault.thread.0, "{fault}");
    }
}

#[test]
fn sync_warp_orders_the_lanes_in_its_mask() {
    // Pairs of lanes synchronize: a lane may then use its partner's writes, but not other lanes' writes.
    for seed in SEEDS {
        let launch = |distance: u32| {
            Emulator::new(seed).launch("pairs", 1, 32, 128, || {
                let tile = shared::<u32>(32);
                tile.set(tid(), 1);
                thread::sync_threads();
                tile.set(tid(), tid());
                sync_warp(0b11 << (tid() & !1));
                let value = tile.get(tid() ^ distance);
                assert!(distance != 1 || value == tid() ^ 1);
            })
        };
        launch(1).unwrap();
        let fault = launch(2).unwrap_err();
        assert_eq!(race(&fault).3.thread.0 ^ 2, fault.thread.0, "{fault}");
    }
}

#[test]
fn order_passes_from_lane_to_lane() {
    // Lane 0 writes, 0 and 1 synchronize, then 1 and 2: lane 2 is ordered after the write, lane 3 is not.
    for seed in SEEDS {
        let launch = |reader: u32| {
            Emulator::new(seed).launch("chain", 1, 32, 4, || {
                shared::<u32>(1).set_by(0);
                if tid() < 2 {
                    sync_warp(0b011);
                }
                if tid() == 1 || tid() == 2 {
                    sync_warp(0b110);
                }
                thread_reads(reader);
            })
        };
        launch(0).unwrap();
        launch(1).unwrap();
        launch(2).unwrap();
        // Uninitialised, if the reader happens to come first.
        let fault = launch(3).unwrap_err();
        let raced = matches!(fault.kind, FaultKind::Race { .. });
        assert!(raced || matches!(fault.kind, FaultKind::Uninitialised { .. }), "{fault}");
    }
}

fn thread_reads(reader: u32) {
    if tid() == reader {
        shared::<u32>(1).get(0);
    }
}

#[test]
fn reads_in_several_intervals_of_a_warp() {
    // Lane 5 reads, and lanes 0 to 3 synchronize (without 5) and read, too: lane 0 may not write.
    for seed in SEEDS {
        let launch = |early: u32| {
            Emulator::new(seed).launch("intervals", 1, 32, 4, || {
                shared::<u32>(1).set_by(0);
                thread::sync_threads();
                thread_reads(early);
                if tid() < 4 {
                    thread_reads(tid());
                    sync_warp(0b1111);
                    thread_reads(0);
                    sync_warp(0b1111);
                    shared::<u32>(1).set_by(0);
                }
            })
        };
        launch(2).unwrap();
        let fault = launch(5).unwrap_err();
        let (_, _, access, with) = race(&fault);
        let threads = if access == Access::Write { [fault.thread, with.thread] } else { [with.thread, fault.thread] };
        assert_eq!(threads, [(0, 0, 0), (5, 0, 0)], "{fault}");
    }
}

#[test]
fn a_read_after_another_interval_of_the_warp() {
    // Lane 1 reads before the lanes synchronize, lane 2 after: lane 0 is ordered after the first read alone.
    for seed in SEEDS {
        let launch = |late: u32| {
            Emulator::new(seed).launch("late", 1, 32, 4, || {
                shared::<u32>(1).set_by(0);
                thread::sync_threads();
                thread_reads(1);
                sync_warp(FULL_MASK);
                thread_reads(late);
                shared::<u32>(1).set_by(0);
            })
        };
        launch(0).unwrap();
        let fault = launch(2).unwrap_err();
        let (_, _, access, with) = race(&fault);
        let threads = if access == Access::Write { [fault.thread, with.thread] } else { [with.thread, fault.thread] };
        assert_eq!(threads, [(0, 0, 0), (2, 0, 0)], "{fault}");
    }
}

#[test]
fn readers_that_meet_the_writer_one_by_one() {
    // Lanes 0 and 1 read, and each synchronizes with lane 2, which then writes: all accesses are ordered.
    for seed in SEEDS {
        let ended = Emulator::new(seed).launch("one_by_one", 1, 32, 4, || {
            shared::<u32>(1).set_by(2);
            thread::sync_threads();
            thread_reads(0);
            if tid() == 0 || tid() == 2 {
                sync_warp(0b101);
            }
            thread_reads(1);
            if tid() == 1 || tid() == 2 {
                sync_warp(0b110);
            }
            shared::<u32>(1).set_by(2);
        });
        ended.unwrap();
    }
}

#[test]
fn shuffles_order_no_memory() {
    for seed in SEEDS {
        let fault = Emulator::new(seed).launch("shuffle", 1, 32, 128, || {
            let tile = shared::<u32>(32);
            tile.set(tid(), tid());
            shuffle_xor(FULL_MASK, 0, 1);
            tile.get(tid() ^ 1);
        });
        let fault = fault.unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Race { .. }), "{fault}");
    }
}

#[test]
fn reductions_order_no_memory() {
    for seed in SEEDS {
        for reduce in [reduce_add, reduce_max] {
            let fault = Emulator::new(seed).launch("reduce", 1, 32, 128, || {
                let tile = shared::<u32>(32);
                tile.set(tid(), tid());
                reduce(FULL_MASK, 0);
                tile.get(tid() ^ 1);
            });
            let fault = fault.unwrap_err();
            assert!(matches!(fault.kind, FaultKind::Race { .. }), "{fault}");
        }
    }
}
