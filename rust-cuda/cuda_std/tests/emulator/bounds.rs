//! Accesses outside of memory, outside of a view, and at misaligned addresses.

use crate::common::{SEEDS, assert_at, fault, global, global_mut, shared, tid};
use cuda_std::emulator::{Access, Emulator, FaultKind, Space};
use std::cell::Cell;

#[test]
fn shared_beyond_the_launch() {
    for seed in SEEDS {
        // The view has 65 elements, but the launch has memory for 64.
        let line = line!() + 2;
        let fault = fault(seed, |emulator| {
            emulator.launch("beyond", 1, 64, 256, || shared::<u32>(65).set(if tid() == 63 { 64 } else { tid() }, 1))
        });
        assert_at(&fault, "beyond", (0, 0, 0), (63, 0, 0), file!(), line);
        let (space, access) = (Space::Shared, Access::Write);
        assert_eq!(fault.kind, FaultKind::OutOfBounds { space, access, byte: 256, size: 4, len: 256 });
        let text = fault.to_string();
        assert!(
            text.ends_with(": writes element 64 (bytes 256..260 of 256) of shared memory: out of bounds"),
            "{text}"
        );

        Emulator::new(seed).launch("within", 1, 64, 256, || shared::<u32>(64).set(tid(), 1)).unwrap();
    }
}

#[test]
fn shared_that_straddles_the_end() {
    let fault = fault(1, |emulator| emulator.launch("straddle", 1, 1, 12, || shared::<u64>(2).set(1, 1)));
    let (space, access) = (Space::Shared, Access::Write);
    assert_eq!(fault.kind, FaultKind::OutOfBounds { space, access, byte: 8, size: 8, len: 12 });
}

#[test]
fn shared_beyond_the_view() {
    // The launch has the memory, and the view is a part of it.
    let line = line!() + 2;
    let fault = fault(1, |emulator| {
        emulator.launch("view", 1, 32, 256, || shared::<u32>(32).set(if tid() == 9 { 32 } else { tid() }, 1))
    });
    assert_at(&fault, "view", (0, 0, 0), (9, 0, 0), file!(), line);
    assert_eq!(fault.kind, FaultKind::OutOfView { start: 32, count: 1, len: 32 });
    assert!(fault.to_string().ends_with(": uses element 32 of a view of 32: out of bounds"), "{fault}");
}

#[test]
fn global_beyond_the_view() {
    for seed in SEEDS {
        let last = Cell::new(16);
        let mut emulator = Emulator::new(seed);
        let x = emulator.buffer(&[1u64; 32]);
        let line = line!() + 2;
        let mut launch = || {
            emulator.launch("view", 4, 4, 0, || {
                // The buffer has 32 elements, but the kernel gets a length of 15.
                let view = global(x.as_ptr(), 15);
                let i = thread_index();
                if i < last.get() {
                    view.get(i);
                }
            })
        };
        let fault = launch().unwrap_err();
        assert_at(&fault, "view", (3, 0, 0), (3, 0, 0), file!(), line + 5);
        assert_eq!(fault.kind, FaultKind::OutOfView { start: 15, count: 1, len: 15 });
        last.set(15);
        launch().unwrap();
    }
}

#[test]
fn a_word_raised_beyond_the_view() {
    let mut emulator = Emulator::new(1);
    let x = emulator.buffer(&[0u32; 8]);
    let mut launch = |i: usize| emulator.launch("raise", 1, 1, 0, || global_mut(x.as_mut_ptr(), 7).raise(i));
    launch(6).unwrap();
    let fault = launch(7).unwrap_err();
    assert_at(&fault, "raise", (0, 0, 0), (0, 0, 0), file!(), line!() - 3);
    assert_eq!(fault.kind, FaultKind::OutOfView { start: 7, count: 1, len: 7 });
    assert_eq!(emulator.read(x).unwrap(), [0, 0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn a_word_loaded_or_stored_beyond_the_view() {
    let mut emulator = Emulator::new(1);
    let x = emulator.buffer(&[5u32; 8]);
    let word = || global_mut(x.as_mut_ptr(), 7);
    emulator.launch("store", 1, 1, 0, || word().store(6, word().load(0) + 1)).unwrap();
    let load = || {
        word().load(7);
    };
    for fault in [emulator.launch("load", 1, 1, 0, load), emulator.launch("store", 1, 1, 0, || word().store(7, 1))] {
        assert_eq!(fault.unwrap_err().kind, FaultKind::OutOfView { start: 7, count: 1, len: 7 });
    }
    assert_eq!(emulator.read(x).unwrap(), [5, 5, 5, 5, 5, 5, 6, 5]);
}

fn thread_index() -> usize {
    cuda_std::thread::index_1d() as usize
}

#[test]
fn part_beyond_the_view() {
    let mut emulator = Emulator::new(1);
    let x = emulator.buffer(&[1u32; 8]);
    for (start, count, fits) in [(0, 8, true), (8, 0, true), (5, 3, true), (5, 4, false), (9, 0, false), (1, !0, false)]
    {
        let line = line!() + 2;
        let ended = emulator.launch("part", 1, 1, 0, || {
            global(x.as_ptr(), 8).slice(start, count);
        });
        if fits {
            ended.unwrap();
        } else {
            let fault = ended.unwrap_err();
            assert_at(&fault, "part", (0, 0, 0), (0, 0, 0), file!(), line);
            assert_eq!(fault.kind, FaultKind::OutOfView { start, count, len: 8 });
        }
    }
}

#[test]
fn global_beyond_the_buffer() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        // Neighbouring buffers: an access just outside of one must not be attributed to another.
        let buffers = [(); 3].map(|()| emulator.buffer(&[1u16; 100]));
        let outside = [(100, Access::Read), (105, Access::Write), (-1, Access::Read), (-5, Access::Write)];
        for (x, (offset, access)) in buffers.iter().flat_map(|x| outside.map(|outside| (x, outside))) {
            // The view claims more elements than the buffer has.
            let view = global_mut(x.as_mut_ptr().wrapping_offset(offset), 1000);
            let lines = [line!() + 3, line!() + 4];
            let ended = emulator.launch("lying", 2, 1, 0, || match access {
                _ if cuda_std::thread::block_idx_x() == 0 => {}
                Access::Read => assert_eq!(view.get(0), 1),
                _ => view.set(0, 2),
            });
            let fault = ended.unwrap_err();
            assert_at(&fault, "lying", (1, 0, 0), (0, 0, 0), file!(), lines[usize::from(access != Access::Read)]);
            let (space, byte) = (Space::Global, offset as i64 * 2);
            assert_eq!(fault.kind, FaultKind::OutOfBounds { space, access, byte, size: 2, len: 200 });
        }
        for buffer in buffers {
            assert_eq!(emulator.read(buffer).unwrap(), [1; 100]);
        }
    }
}

#[test]
fn global_without_any_buffer() {
    let x = 0x1000usize as *const u32;
    let fault = fault(1, |emulator| {
        emulator.launch("wild", 1, 1, 0, || {
            global(x, 1).get(0);
        })
    });
    let (space, access) = (Space::Global, Access::ReadConstant);
    assert_eq!(fault.kind, FaultKind::OutOfBounds { space, access, byte: 0x1000, size: 4, len: 0 });
}

#[test]
fn a_buffer_of_length_zero() {
    let mut emulator = Emulator::new(1);
    let [empty, uninit] = [emulator.buffer::<u32>(&[]), emulator.uninit::<u32>(0)];
    assert!(empty.is_empty() && !empty.as_ptr().is_null() && empty.as_ptr() != uninit.as_ptr());
    assert_eq!(emulator.read(empty).unwrap(), []);
    assert_eq!(emulator.read(uninit).unwrap(), []);
    let ended = emulator.launch("empty", 1, 1, 0, || {
        global(empty.as_ptr(), 1).get(0);
    });
    let (space, access) = (Space::Global, Access::ReadConstant);
    assert_eq!(ended.unwrap_err().kind, FaultKind::OutOfBounds { space, access, byte: 0, size: 4, len: 0 });
}

#[test]
fn a_buffer_of_another_emulator() {
    let mut emulator = Emulator::new(1);
    let foreign = Emulator::new(2).buffer(&[1u32; 4]);
    let fault = emulator.read(foreign).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { size: 16, .. }), "{fault}");
}

#[test]
fn misaligned_global() {
    let mut emulator = Emulator::new(1);
    let x = emulator.buffer(&[1u32; 8]);
    let mut launch = |word: usize| {
        emulator.launch("misaligned", 1, 1, 0, || {
            let pairs = x.as_ptr().wrapping_add(word).cast::<u64>();
            assert_eq!(global(pairs, 3).get(0), 1 << 32 | 1);
        })
    };
    launch(2).unwrap();
    let fault = launch(1).unwrap_err();
    assert_at(&fault, "misaligned", (0, 0, 0), (0, 0, 0), file!(), line!() - 5);
    let (space, access) = (Space::Global, Access::ReadConstant);
    assert_eq!(fault.kind, FaultKind::Misaligned { space, access, byte: 4, size: 8 });
}

#[test]
fn misaligned_shared() {
    let launch = |offset| {
        Emulator::new(1).launch("misaligned", 1, 1, 64, || {
            // SAFETY: 2 words at a multiple of 4 are inside the launch's memory; the emulator rejects others.
            let view = unsafe { cuda_std::Shared::<u32>::dynamic(offset, 2) };
            view.set(1, 7);
        })
    };
    launch(8).unwrap();
    let fault = launch(10).unwrap_err();
    assert_at(&fault, "misaligned", (0, 0, 0), (0, 0, 0), file!(), line!() - 5);
    let (space, access) = (Space::Shared, Access::Write);
    assert_eq!(fault.kind, FaultKind::Misaligned { space, access, byte: 14, size: 4 });
    assert!(fault.to_string().ends_with(": writes bytes 14..18 of shared memory: not at a multiple of 4 bytes"));
}
