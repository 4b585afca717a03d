//! Reads of memory that no thread has written.

use crate::common::{SEEDS, assert_at, fault, global, global_mut, shared, tid};
use cuda_std::{
    GlobalMut,
    emulator::{Emulator, FaultKind, Space},
    thread,
};

#[test]
fn shared_memory() {
    for seed in SEEDS {
        let launch = |emulator: &mut Emulator, readers: u32| {
            emulator.launch("tile", 1, 64, 256, || {
                let tile = shared::<u32>(64);
                if tid() < 40 {
                    tile.set(tid(), tid());
                }
                thread::sync_threads();
                if tid() < readers {
                    assert_eq!(tile.get(tid()), tid());
                }
            })
        };
        launch(&mut Emulator::new(seed), 40).unwrap();
        let fault = fault(seed, |emulator| launch(emulator, 41));
        assert_at(&fault, "tile", (0, 0, 0), (40, 0, 0), file!(), line!() - 6);
        assert_eq!(fault.kind, FaultKind::Uninitialised { space: Space::Shared, byte: 160, size: 4, len: 256 });
        assert!(
            fault.to_string().ends_with(": reads element 40 (bytes 160..164 of 256) of shared memory: never written")
        );
    }
}

#[test]
fn shared_memory_is_new_in_every_block_and_launch() {
    let mut emulator = Emulator::new(3);
    let tile = || shared::<u8>(16);
    for blocks in [1, 8] {
        // The block that runs first writes for the others. A GPU does not guarantee this.
        let first = std::cell::Cell::new(true);
        let fault = emulator.launch("leftover", blocks, 1, 16, || {
            if first.take() {
                tile().set(3, 1);
            } else {
                tile().get(3);
            }
        });
        assert_eq!(fault.is_err(), blocks > 1);
    }
    let fault = emulator.launch("next", 1, 1, 16, || assert_eq!(tile().get(3), 1)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Uninitialised { space: Space::Shared, byte: 3, size: 1, len: 16 });
}

#[test]
fn global_memory() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let x = emulator.uninit::<f64>(10);
        let mut read = |i: usize| {
            emulator.launch("global", 1, 1, 0, || {
                assert_eq!(global(x.as_ptr(), 10).get(i), 0.5);
            })
        };
        let fault = read(7).unwrap_err();
        assert_at(&fault, "global", (0, 0, 0), (0, 0, 0), file!(), line!() - 4);
        assert_eq!(fault.kind, FaultKind::Uninitialised { space: Space::Global, byte: 56, size: 8, len: 80 });
        emulator.launch("write", 1, 1, 0, || global_mut(x.as_mut_ptr(), 10).set(7, 0.5)).unwrap();
        emulator.launch("global", 1, 1, 0, || assert_eq!(global(x.as_ptr(), 10).get(7), 0.5)).unwrap();
    }
}

#[test]
fn half_of_an_element() {
    let mut emulator = Emulator::new(1);
    let x = emulator.uninit::<u64>(4);
    let half = |i: usize| global_mut(x.as_mut_ptr().cast::<u32>(), 8).set(i, 1);
    let whole = || global_mut(x.as_mut_ptr(), 4).get(1);
    emulator.launch("half", 1, 1, 0, || half(2)).unwrap();
    let fault = emulator.launch("whole", 1, 1, 0, || assert_ne!(whole(), 0)).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Uninitialised { byte: 8, size: 8, .. }), "{fault}");
    emulator.launch("first", 1, 1, 0, || global_mut(x.as_mut_ptr(), 4).set(0, 1)).unwrap();
    let fault = emulator.read(x).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Uninitialised { byte: 8, size: 8, .. }), "{fault}");
    emulator.launch("other_half", 1, 1, 0, || half(3)).unwrap();
    emulator.launch("whole", 1, 1, 0, || assert_eq!(whole(), 1 << 32 | 1)).unwrap();
}

#[test]
fn one_byte_of_a_word() {
    for seed in SEEDS {
        for missing in 0..4 {
            let fault = fault(seed, |emulator| {
                emulator.launch("bytes", 1, 4, 4, || {
                    if tid() != missing {
                        shared::<u8>(4).set(tid(), 0xab);
                    }
                    thread::sync_threads();
                    shared::<u32>(1).get(0);
                })
            });
            assert!(matches!(fault.kind, FaultKind::Uninitialised { byte: 0, size: 4, .. }), "{fault}");
        }
        let mut emulator = Emulator::new(seed);
        let all = emulator.launch("bytes", 1, 4, 4, || {
            shared::<u8>(4).set(tid(), 0xab);
            thread::sync_threads();
            assert_eq!(shared::<u32>(1).get(0), 0xabababab);
            thread::sync_threads();
            if tid() == 2 {
                shared::<u32>(1).set(0, 0x04030201);
            }
            thread::sync_threads();
            assert_eq!(u32::from(shared::<u8>(4).get(tid())), tid() + 1);
        });
        all.unwrap();
    }
}

#[test]
fn read_by_the_host() {
    let mut emulator = Emulator::new(1);
    for len in [1, 3, 5, 64] {
        let x = emulator.uninit::<i8>(len);
        let fault = emulator.read(x).unwrap_err();
        assert_eq!(
            (fault.kernel, fault.location.file(), fault.location.line()),
            ("Emulator::read", file!(), line!() - 3)
        );
        assert_eq!(fault.kind, FaultKind::Uninitialised { space: Space::Global, byte: 0, size: 1, len });
        let mut write = |from: usize, to: usize| {
            emulator.launch("fill", 1, 1, 0, || (from..to).for_each(|i| global_mut(x.as_mut_ptr(), len).set(i, -3)))
        };
        write(0, len - 1).unwrap();
        let fault = emulator.read(x).unwrap_err();
        let last = len - 1;
        assert_eq!(fault.kind, FaultKind::Uninitialised { space: Space::Global, byte: last, size: 1, len });
        let prefix = format!("Emulator::read: {}:{}:", file!(), line!() - 3);
        assert!(fault.to_string().starts_with(&prefix), "{fault}");
        emulator.launch("last", 1, 1, 0, || global_mut(x.as_mut_ptr(), len).set(last, -3)).unwrap();
        assert_eq!(emulator.read(x).unwrap(), vec![-3; len]);
    }
}

#[test]
fn host_copies_keep_what_is_unwritten() {
    let mut emulator = Emulator::new(1);
    let (from, to) = (emulator.allocate(20), emulator.allocate(16));
    emulator.upload(from + 3, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
    emulator.copy(from + 2, to + 4, 9).unwrap();
    let mut bytes = [0; 7];
    emulator.download(to + 5, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7]);
    for at in [to + 4, to + 6, to] {
        let fault = emulator.download(at, &mut bytes).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Uninitialised { .. }), "{fault}");
    }
    emulator.fill(to, 9, 16).unwrap();
    emulator.download(to + 9, &mut bytes).unwrap();
    assert_eq!(bytes, [9; 7]);
    let fault = emulator.upload(to + 10, &bytes).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }), "{fault}");
    assert!(emulator.free(to) && !emulator.free(to) && !emulator.free(from + 4));
    assert!(emulator.download(to, &mut bytes).is_err());
}

#[test]
fn a_kernel_sees_what_the_host_has_written() {
    let mut emulator = Emulator::new(1);
    let at = emulator.allocate(16);
    // SAFETY: the buffer has 4 elements, and the emulator outlives the launches that use the view.
    let words = || unsafe { GlobalMut::<u32>::new(at as *mut u32, 4) };
    emulator.upload(at + 4, &7u32.to_le_bytes()).unwrap();
    emulator.launch("read", 1, 1, 0, || words().set(2, words().get(1))).unwrap();
    let mut bytes = [0; 8];
    emulator.download(at + 4, &mut bytes).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0, 7, 0, 0, 0]);
    let fault = emulator.launch("unwritten", 1, 1, 0, || _ = words().get(3)).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Uninitialised { byte: 12, .. }), "{fault}");
    let shared = emulator.allocate_shared(8).cast::<u32>();
    // SAFETY: the buffer has 2 elements, and no launch runs beside the accesses of this function.
    unsafe { shared.write(5) };
    // SAFETY: the buffer has 2 elements, and the emulator outlives the launches that use the view.
    let view = || unsafe { GlobalMut::<u32>::new(shared.as_ptr(), 2) };
    emulator.launch("add", 1, 1, 0, || view().set(1, view().get(0) + 1)).unwrap();
    // SAFETY: the buffer has 2 elements, and no launch runs beside the accesses of this function.
    assert_eq!(unsafe { shared.add(1).read() }, 6);
}
