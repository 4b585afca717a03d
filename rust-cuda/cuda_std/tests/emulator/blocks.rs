//! Blocks of one launch that communicate. Each broken kernel stands beside its right counterpart. Where nothing orders
//! two accesses, every interleaving reports it. Where only values can be wrong, some interleavings do.

use crate::common::{SEEDS, global_mut, shared, sync_warp, tid};
use cuda_std::{
    GlobalMut,
    emulator::{Access, Emulator, Fault, FaultKind},
    thread::{block_dim_x, block_idx_x, device_fence, grid_dim_x, sync_threads},
    warp::FULL_MASK,
};

/// Words of global memory for a kernel: flags and counters that are 0, and memory that nobody has written.
#[derive(Clone, Copy)]
struct Words {
    flags: GlobalMut<u32>,
    data: GlobalMut<u32>,
}

/// Runs `kernel` in a grid of `grid` blocks of `block` threads, up to `resident` at the same time.
fn launch(seed: u64, (grid, block): (u32, u32), resident: usize, kernel: impl Fn(Words)) -> Result<(), Fault> {
    let mut emulator = Emulator::new(seed);
    emulator.set_resident_blocks(resident);
    let (flags, data) = (emulator.buffer(&[0u32; 64]), emulator.uninit::<u32>(4096));
    let words = Words { flags: global_mut(flags.as_mut_ptr(), 64), data: global_mut(data.as_mut_ptr(), 4096) };
    emulator.launch("blocks", grid, block, 1024, || kernel(words))
}

fn passes(size: (u32, u32), kernel: impl Fn(Words)) {
    for seed in SEEDS {
        for resident in [1, 2, 4] {
            launch(seed, size, resident, &kernel)
                .unwrap_or_else(|fault| panic!("seed {seed}, {resident} blocks: {fault}"));
        }
    }
}

/// The faults of `kernel`, which every interleaving reports.
fn always_fails(size: (u32, u32), kernel: impl Fn(Words)) -> Vec<Fault> {
    let launches = SEEDS.flat_map(|seed| [2, 4].map(|resident| launch(seed, size, resident, &kernel)));
    launches.map(|result| result.expect_err("the kernel is wrong, and the emulator did not see it")).collect()
}

/// The faults of `kernel`, which some interleavings report.
fn sometimes_fails(size: (u32, u32), kernel: impl Fn(Words)) -> Vec<Fault> {
    let launches = SEEDS.flat_map(|seed| [2, 4].map(|resident| launch(seed, size, resident, &kernel)));
    let faults: Vec<_> = launches.filter_map(Result::err).collect();
    assert!(!faults.is_empty(), "the kernel is wrong, and no interleaving shows it");
    faults
}

/// Asserts that two blocks race, or that one reads what the other has not yet written.
#[track_caller]
fn assert_races(faults: &[Fault]) {
    let is_race = |fault: &&Fault| matches!(fault.kind, FaultKind::Race { .. });
    assert!(faults.iter().any(|fault| is_race(&fault)));
    for fault in faults {
        match &fault.kind {
            FaultKind::Uninitialised { .. } => {}
            FaultKind::Race { with, .. } => {
                assert_ne!(fault.block, with.block, "{fault}");
                assert_eq!((fault.location.file(), with.location.file()), (file!(), file!()));
                assert!(fault.to_string().contains("nothing orders the two blocks"), "{fault}");
            }
            _ => panic!("not a race: {fault}"),
        }
    }
}

/// The sum of numbers that each block writes, by the block that finishes last. `order` has the calls between the writes
/// and the count, and between the count and the reads.
fn last_block(words: Words, before: fn(), after: fn()) {
    let of_block = block_dim_x() as usize;
    words.data.set(block_idx_x() as usize * of_block + tid() as usize, 1);
    before();
    let is_last = shared::<u32>(1);
    if tid() == 0 {
        is_last.set(0, (words.flags.fetch_add(0, 1) + 1 == grid_dim_x()) as u32);
    }
    after();
    if is_last.get(0) != 0 {
        let sum: u32 = (0..grid_dim_x() as usize).map(|block| words.data.get(block * of_block + tid() as usize)).sum();
        assert_eq!(sum, grid_dim_x());
    }
}

fn fence_of_first() {
    if tid() == 0 {
        device_fence();
    }
}

fn barrier_and_fence() {
    sync_threads();
    fence_of_first();
}

fn fence_and_barrier() {
    fence_of_first();
    sync_threads();
}

#[test]
fn the_last_block_reads_what_all_have_written() {
    passes((6, 64), |words| last_block(words, barrier_and_fence, fence_and_barrier));
    // Fences of all threads, before the barrier that comes before the count, and after the one behind it.
    let (all_before, all_after) = (|| (device_fence(), sync_threads()).1, || (sync_threads(), device_fence()).1);
    passes((6, 64), |words| last_block(words, all_before, all_after));
}

/// Error 1: the block's writes are not finished when its first thread counts it.
#[test]
fn a_missing_barrier_before_the_count_of_the_last_block() {
    assert_races(&always_fails((6, 64), |words| last_block(words, fence_of_first, fence_and_barrier)));
}

/// Error 2, once on each side.
#[test]
fn a_missing_fence_before_a_flag_or_behind_it() {
    assert_races(&always_fails((6, 64), |words| last_block(words, sync_threads, fence_and_barrier)));
    assert_races(&always_fails((6, 64), |words| last_block(words, barrier_and_fence, sync_threads)));
    // A fence of a thread that has written nothing and does not count.
    let of_other = || {
        if tid() == 40 {
            device_fence();
        }
        sync_threads();
    };
    assert_races(&always_fails((6, 64), |words| last_block(words, of_other, fence_and_barrier)));
}

/// Error 3: a histogram that other blocks are still counting, or whose last counts have not arrived.
#[test]
fn a_stale_histogram() {
    let histogram = |before: fn(), after: fn(), read: fn(Words, usize) -> u32| {
        move |words: Words| {
            words.flags.fetch_add(1 + tid() as usize % 4, 1);
            before();
            let is_last = shared::<u32>(1);
            if tid() == 0 {
                is_last.set(0, (words.flags.fetch_add(0, 1) + 1 == grid_dim_x()) as u32);
            }
            after();
            if is_last.get(0) != 0 && tid() < 4 {
                assert_eq!(read(words, 1 + tid() as usize), grid_dim_x() * block_dim_x() / 4, "stale");
            }
        }
    };
    let load: fn(Words, usize) -> u32 = |words, i| words.flags.load(i);
    let get: fn(Words, usize) -> u32 = |words, i| words.flags.get(i);
    passes((4, 32), histogram(barrier_and_fence, fence_and_barrier, load));
    passes((4, 32), histogram(barrier_and_fence, fence_and_barrier, get));
    // Plain reads are reported, whatever they return. Loads return old counts at times.
    assert_races(&always_fails((4, 32), histogram(barrier_and_fence, sync_threads, get)));
    for (before, after) in [(barrier_and_fence as fn(), sync_threads as fn()), (sync_threads, fence_and_barrier)] {
        for fault in sometimes_fails((4, 32), histogram(before, after, load)) {
            assert!(matches!(&fault.kind, FaultKind::Panic(message) if message.contains("stale")), "{fault}");
        }
    }
}

/// Error 4: block 0 hands a number to each other block through one flag, and takes the flag back before it was seen.
#[test]
fn a_flag_that_is_reset_too_early() {
    let hand_over = |waits: bool| {
        move |words: Words| {
            let (flag, seen) = (0, 1);
            if block_idx_x() == 0 {
                words.data.set(0, 7);
                device_fence();
                words.flags.store(flag, 1);
                if waits {
                    while words.flags.load(seen) == 0 {}
                }
                words.flags.store(flag, 0);
            } else {
                while words.flags.load(flag) == 0 {}
                device_fence();
                assert_eq!(words.data.get(0), 7);
                words.flags.store(seen, 1);
            }
        }
    };
    for seed in SEEDS {
        launch(seed, (2, 1), 2, hand_over(true)).unwrap();
    }
    for fault in sometimes_fails((2, 1), hand_over(false)) {
        assert_eq!((fault.block, &fault.kind), ((1, 0, 0), &FaultKind::Deadlock { not_started: 0 }), "{fault}");
    }
}

/// Error 5: the second use of shared memory overwrites what other threads have not read.
#[test]
fn two_uses_of_shared_memory_without_a_barrier() {
    let uses = |barrier: bool| {
        move |_: Words| {
            let tile = shared::<u32>(64);
            for round in 0..2 {
                tile.set(tid(), round + tid());
                sync_threads();
                assert_eq!(tile.get((tid() + 1) % 64), round + (tid() + 1) % 64);
                if barrier {
                    sync_threads();
                }
            }
        }
    };
    passes((3, 64), uses(true));
    for fault in always_fails((3, 64), uses(false)) {
        assert!(matches!(&fault.kind, FaultKind::Race { with, .. } if with.block == fault.block), "{fault}");
    }
}

/// Error 6: a block waits for the next one, which a GPU need not have started. A number that a block takes at its start
/// is safe: blocks with lower numbers are running.
#[test]
fn a_wait_for_a_block_that_has_not_started() {
    let wait_for = |word: usize, words: Words| while words.flags.load(word) == 0 {};
    let waits_for_next = |words: Words| {
        words.flags.store(1 + block_idx_x() as usize, 1);
        if block_idx_x() + 1 < grid_dim_x() {
            wait_for(2 + block_idx_x() as usize, words);
        }
    };
    let waits_for_earlier = |words: Words| {
        let number = words.flags.fetch_add(0, 1) as usize;
        words.flags.store(1 + number, 1);
        if number > 0 {
            wait_for(number, words);
        }
    };
    passes((32, 1), waits_for_earlier);
    for fault in always_fails((32, 1), waits_for_next) {
        assert!(matches!(fault.kind, FaultKind::Deadlock { not_started: 1.. }), "{fault}");
        assert!(fault.to_string().contains("waits for a value that no running thread stores"), "{fault}");
    }
    // With all blocks running it goes well.
    (0..4).for_each(|seed| launch(seed, (32, 1), 32, waits_for_next).unwrap());
}

/// Error 7: a place in a list is counted before it is filled.
#[test]
fn a_counter_that_is_read_before_its_elements_are_published() {
    let (reserved, published) = (0, 1);
    let append = |words: Words| {
        let at = words.flags.fetch_add(reserved, 1);
        words.data.set(at as usize, 5);
        at
    };
    let right = |words: Words| {
        if block_idx_x() == 0 {
            while words.flags.load(published) < 3 {}
            device_fence();
            (0..3).for_each(|i| assert_eq!(words.data.get(i), 5));
        } else {
            let at = append(words);
            while words.flags.load(published) < at {}
            device_fence();
            words.flags.store(published, at + 1);
        }
    };
    let broken = |words: Words| {
        if block_idx_x() == 0 {
            while words.flags.load(reserved) < 3 {}
            device_fence();
            (0..3).for_each(|i| assert_eq!(words.data.get(i), 5));
        } else {
            append(words);
            device_fence();
        }
    };
    (0..20).for_each(|seed| launch(seed, (4, 1), 4, right).unwrap());
    for seed in SEEDS {
        let fault = launch(seed, (4, 1), 4, broken).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Race { .. } | FaultKind::Uninitialised { .. }), "{fault}");
    }
}

/// Message passing by two words that are loaded and stored, without plain accesses: only values can be wrong.
#[test]
fn loads_and_stores_are_in_no_order_without_fences() {
    let pass = |writer: fn(), reader: fn()| {
        move |words: Words| {
            if block_idx_x() == 0 {
                words.flags.store(0, 9);
                writer();
                words.flags.store(1, 1);
            } else {
                while words.flags.load(1) == 0 {}
                reader();
                assert_eq!(words.flags.load(0), 9, "stale");
            }
        }
    };
    (0..200).for_each(|seed| launch(seed, (2, 1), 2, pass(device_fence, device_fence)).unwrap());
    for (writer, reader) in [(device_fence as fn(), (|| ()) as fn()), (|| (), device_fence)] {
        for fault in sometimes_fails((2, 1), pass(writer, reader)) {
            assert!(matches!(&fault.kind, FaultKind::Panic(message) if message.contains("stale")), "{fault}");
        }
    }
}

/// Later loads of one word never return older values, and a thread sees its own stores.
#[test]
fn one_word_has_one_order() {
    passes((3, 32), |words| {
        let mut last = 0;
        for i in 0..20 {
            let now = words.flags.fetch_add(0, 1) + 1;
            assert!(now > last);
            let loaded = words.flags.load(0);
            assert!(loaded >= now);
            last = loaded;
            words.flags.store(1 + block_idx_x() as usize * 8 + tid() as usize % 8, i);
        }
    });
    passes((3, 1), |words| {
        for i in 1..9 {
            words.flags.store(block_idx_x() as usize, i);
            assert_eq!(words.flags.load(block_idx_x() as usize), i);
        }
    });
}

/// Updates of a flag continue what an earlier store has published, also without a fence. A store does not.
#[test]
fn updates_pass_on_what_was_published() {
    let chain = |middle: fn(GlobalMut<u32>)| {
        move |words: Words| match words.flags.fetch_add(0, 1) {
            0 => {
                words.data.set(0, 7);
                device_fence();
                words.flags.store(1, 1);
            }
            1 => {
                while words.flags.load(1) != 1 {}
                middle(words.flags);
            }
            _ => {
                while words.flags.load(1) != 2 {}
                device_fence();
                assert_eq!(words.data.get(0), 7);
            }
        }
    };
    passes((3, 1), chain(|flags| _ = flags.fetch_add(1, 1)));
    // In other interleavings, the third block loads the 1, too.
    assert_races(&sometimes_fails((3, 1), chain(|flags| flags.store(1, 2))));
    passes(
        (3, 1),
        chain(|flags| {
            device_fence();
            flags.store(1, 2);
        }),
    );
}

/// A fence orders what its thread knows: through `sync_warp` also what other lanes have written, and nothing that it
/// has written itself since.
#[test]
fn a_fence_covers_what_comes_before_it() {
    let publish = |before: fn(GlobalMut<u32>), lanes: u32| {
        move |words: Words| {
            if block_idx_x() == 0 {
                words.data.set(tid() as usize, 7);
                before(words.data);
                if tid() == 0 {
                    words.flags.store(0, 1);
                }
            } else if tid() == 0 {
                while words.flags.load(0) == 0 {}
                device_fence();
                (0..lanes as usize).for_each(|lane| assert_eq!(words.data.get(lane), 7));
            }
        }
    };
    let warp_and_fence: fn(GlobalMut<u32>) = |_| {
        sync_warp(FULL_MASK);
        fence_of_first();
    };
    let run = |seed, before, lanes| launch(seed, (2, 32), 2, publish(before, lanes));
    for seed in SEEDS {
        run(seed, warp_and_fence, 32).unwrap();
        run(seed, |_| fence_of_first(), 1).unwrap();
    }
    // Without the `sync_warp`, the fence orders the writes of its own lane.
    let of_two = |seed| run(seed, |_| fence_of_first(), 2).unwrap_err();
    assert_races(&SEEDS.map(of_two).collect::<Vec<_>>());
    // The second write comes after the fence.
    let again = |data: GlobalMut<u32>| {
        fence_of_first();
        data.set(tid() as usize, 7);
    };
    assert_races(&SEEDS.map(|seed| run(seed, again, 1).unwrap_err()).collect::<Vec<_>>());
}

/// A block may reuse what another block has read only after that block has said so.
#[test]
fn a_write_after_a_read_of_another_block() {
    let reuse = |fence: fn()| {
        move |words: Words| {
            if block_idx_x() == 0 {
                words.data.set(0, 1);
                device_fence();
                words.flags.store(0, 1);
                while words.flags.load(1) == 0 {}
                device_fence();
                words.data.set(0, 2);
            } else {
                while words.flags.load(0) == 0 {}
                device_fence();
                assert_eq!(words.data.get(0), 1);
                fence();
                words.flags.store(1, 1);
            }
        }
    };
    for seed in SEEDS {
        launch(seed, (2, 1), 2, reuse(device_fence)).unwrap();
        let fault = launch(seed, (2, 1), 2, reuse(|| ())).unwrap_err();
        let is_expected = |kind: &FaultKind| match kind {
            FaultKind::Race { access, with, .. } => (*access, with.access) == (Access::Write, Access::Read),
            _ => false,
        };
        assert!(is_expected(&fault.kind) && fault.block == (0, 0, 0), "{fault}");
    }
}

/// Waits that never end are found, however a thread polls.
#[test]
fn endless_waits() {
    let polls: [fn(Words); 4] = [
        |words| while words.flags.load(0) == 0 {},
        |words| while words.flags.fetch_add(0, 0) == 0 {},
        |words| while words.flags.load(0) == 0 || words.flags.load(1) == 0 {},
        |words| {
            // One thread polls for all.
            let ready = shared::<u32>(1);
            loop {
                if tid() == 0 {
                    ready.set(0, words.flags.load(0));
                }
                sync_threads();
                if ready.get(0) != 0 {
                    break;
                }
                sync_threads();
            }
        },
    ];
    for poll in polls {
        for fault in (0..5).map(|seed| launch(seed, (3, 32), 2, poll).unwrap_err()) {
            assert!(matches!(fault.kind, FaultKind::Deadlock { not_started: 1 }), "{fault}");
        }
        let (seed, gives) = (3, |words: Words| if block_idx_x() == 1 { words.flags.store(0, 1) } else { poll(words) });
        let needs_two =
            launch(seed, (2, 32), 2, |words| if block_idx_x() == 1 { words.flags.store(1, 1) } else { gives(words) });
        assert!(needs_two.is_err());
        launch(seed, (3, 32), 3, |words| if block_idx_x() == 2 { words.flags.store(1, 1) } else { gives(words) })
            .unwrap();
    }
}
