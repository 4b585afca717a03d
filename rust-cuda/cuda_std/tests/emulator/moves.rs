//! Loads, stores and copies that advance an address conditionally.

use crate::common::{SEEDS, fault, global, global_mut, shared, tid};
use cuda_std::emulator::{Emulator, FaultKind};
use cuda_std::shared::wait_for_copies;
use cuda_std::{Word, thread};
use std::fmt::Debug;

/// Pushes the values with a bit in `kept` to shared memory, in one thread.
fn pushed<T: Word + PartialEq + Debug>(seed: u64, values: &[T], kept: u32) {
    let mut emulator = Emulator::new(seed);
    let n = values.len();
    let (from, to) = (emulator.buffer(values), emulator.buffer(values));
    emulator
        .launch("push", 1, 1, size_of_val(values) as u32, || {
            let (slots, from) = (shared::<T>(n as u32), global(from.as_ptr(), n));
            let mut address = slots.address(0);
            for i in 0..n {
                address = slots.push_if(kept, 1 << i, address, from.get(i));
            }
            for i in 0..slots.index(address) {
                global_mut(to.as_mut_ptr(), n).set(i as usize, slots.get(i));
            }
        })
        .unwrap();
    let expected: Vec<T> =
        values.iter().enumerate().filter(|(i, _)| kept >> i & 1 != 0).map(|(_, value)| *value).collect();
    let found = emulator.read(to).unwrap();
    assert_eq!(found[..expected.len()], expected);
    assert_eq!(found[expected.len()..], values[expected.len()..], "what is not pushed is not written");
}

#[test]
fn words_are_pushed_if_their_bit_is_set() {
    for seed in SEEDS {
        for kept in [0, 1, 0b1010_0110, 0b1111_1111, 1 << 7] {
            pushed(seed, &[3u16, 1, 4, 1, 5, 9, 2, 6], kept);
            pushed(seed, &[3u32, 1, 4, 1, 5, 9, 2, 6], kept);
            pushed(seed, &[3u64 << 40, 1, 4, 1, 5, 9, 2, 6], kept);
        }
    }
}

#[test]
fn a_word_pushed_beyond_the_view() {
    for (kept, is_beyond) in [(0b11, true), (0b01, false)] {
        let launch = |emulator: &mut Emulator| {
            emulator.launch("push", 1, 1, 64, || {
                let slots = shared::<u32>(1);
                let next = slots.push_if(kept, 1, slots.address(0), 7);
                slots.push_if(kept, 2, next, 8);
            })
        };
        if is_beyond {
            assert_eq!(fault(1, launch).kind, FaultKind::OutOfView { start: 1, count: 1, len: 1 });
        } else {
            launch(&mut Emulator::new(1)).unwrap();
        }
    }
}

#[test]
fn the_next_word_is_loaded_if_it_is_asked_for() {
    fn check<T: Word + PartialEq + Debug>(seed: u64, values: [T; 3]) {
        let (mut emulator, n) = (Emulator::new(seed), values.len());
        let from = emulator.buffer(&values);
        emulator
            .launch("next", 1, 1, size_of_val(&values) as u32, || {
                let slots = shared::<T>(n as u32);
                for i in 0..n {
                    slots.set(i as u32, global(from.as_ptr(), n).get(i));
                }
                let first = (slots.address(0), values[0]);
                assert_eq!(slots.next_if(false, first.0, first.1), first);
                let second = slots.next_if(true, first.0, first.1);
                assert_eq!(second, (slots.address(1), values[1]));
                assert_eq!(slots.next_if(true, second.0, second.1), (slots.address(2), values[2]));
            })
            .unwrap();
    }
    for seed in SEEDS {
        check(seed, [7u32, 8, 9]);
        check(seed, [7u64 << 35, 8, 9]);
    }
    let beyond = fault(1, |emulator| {
        emulator.launch("next", 1, 1, 64, || {
            let slots = shared::<u32>(1);
            slots.set(0, 1);
            slots.next_if(true, slots.address(0), 1);
        })
    });
    assert_eq!(beyond.kind, FaultKind::OutOfView { start: 1, count: 1, len: 1 });
}

#[test]
fn what_is_copied_from_a_place_is_there_after_the_wait() {
    for seed in SEEDS {
        let mut emulator = Emulator::new(seed);
        let from = emulator.buffer(&[10u32, 11, 12, 13]);
        emulator
            .launch("copy", 1, 2, 16, || {
                let (slots, from) = (shared::<u32>(4), global(from.as_ptr(), 4));
                let place = from.place(tid() as usize + 1);
                slots.copy_async_from(tid(), place, -1);
                slots.copy_async_from(tid() + 2, place, 1);
                wait_for_copies();
                thread::sync_threads();
                assert_eq!([0, 1, 2, 3].map(|i| slots.get(i)), [10, 11, 12, 13]);
            })
            .unwrap();
    }
    let beyond = fault(1, |emulator| {
        let from = emulator.buffer(&[10u32, 11, 12, 13]);
        emulator.launch("copy", 1, 1, 16, || {
            shared::<u32>(4).copy_async_from(0, global(from.as_ptr(), 4).place(2), 2);
        })
    });
    assert_eq!(beyond.kind, FaultKind::OutOfView { start: 4, count: 1, len: 4 });
}
