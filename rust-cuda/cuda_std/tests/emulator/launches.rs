//! Grids and blocks, interleavings, and the results of launches.

use crate::common::{self, SEEDS, assert_at, fault, global, global_mut, shared, tid};
use cuda_std::{
    emulator::{Dim3, Emulator, FaultKind, MAX_SHARED_BYTES},
    prelude::*,
    thread::*,
};
use std::cell::RefCell;

#[test]
fn indices_in_three_dimensions() {
    let seen = RefCell::new(Vec::new());
    let (grid, block) = ((3, 4, 2), (5, 2, 3));
    let kernel = || {
        assert_eq!((grid_dim_x(), grid_dim_y(), grid_dim_z()), grid);
        assert_eq!((block_dim_x(), block_dim_y(), block_dim_z()), block);
        let (b, t) = ((block_idx_z(), block_idx_y(), block_idx_x()), (thread_idx_z(), thread_idx_y(), thread_idx_x()));
        seen.borrow_mut().push((b, t));
    };
    Emulator::new(1).launch("indices", grid, block, 0, kernel).unwrap();
    let mut seen = seen.into_inner();
    seen.sort();
    let triples =
        |(x, y, z): (u32, u32, u32)| (0..z).flat_map(move |c| (0..y).flat_map(move |b| (0..x).map(move |a| (c, b, a))));
    let all: Vec<_> = triples(grid).flat_map(|b| triples(block).map(move |t| (b, t))).collect();
    assert_eq!(seen, all);
}

#[test]
fn indices_outlast_a_barrier() {
    for seed in SEEDS {
        let kernel = || {
            let before = (block_idx_x(), tid(), warp::lane_id());
            for _ in 0..3 {
                sync_threads();
                assert_eq!((block_idx_x(), tid(), warp::lane_id()), before);
            }
        };
        Emulator::new(seed).launch("indices", 5, 70, 0, kernel).unwrap();
    }
}

#[test]
fn a_fault_in_three_dimensions() {
    let line = line!() + 3;
    let fault = fault(1, |emulator| {
        emulator.launch("deep", (2, 3, 2), (2, 2, 2), 4, || {
            shared::<u32>(2).set(u32::from(block_idx_z() * block_idx_y() * thread_idx_x() * thread_idx_z() == 2), 0)
        })
    });
    // Threads of the other blocks race for element 0; in one block, only the first thread may access it.
    assert_eq!((fault.location.file(), fault.location.line()), (file!(), line));
    let fault = common::fault(1, |emulator| {
        emulator.launch("deep", (2, 3, 2), (2, 2, 2), 64, || {
            let at = (block_idx_x(), block_idx_y(), block_idx_z(), thread_idx_x(), thread_idx_y(), thread_idx_z());
            shared::<u32>(16).set(if at == (1, 2, 1, 1, 0, 1) { 16 } else { at.3 + 2 * at.4 + 4 * at.5 }, 0)
        })
    });
    assert_at(&fault, "deep", (1, 2, 1), (1, 0, 1), file!(), line!() - 3);
}

/// A block-wide sum of 1024 numbers, as in kernels, which is correct in any interleaving.
#[test]
fn a_block_of_1024_threads() {
    for seed in 0..5 {
        let mut emulator = Emulator::new(seed);
        let x = emulator.buffer(&(0..4096).collect::<Vec<u32>>());
        let sums = emulator.uninit::<u32>(4);
        let kernel = || {
            let tile = shared::<u32>(1024);
            tile.set(tid(), global(x.as_ptr(), x.len()).get(index_1d() as usize));
            let mut half = 512;
            while half > 0 {
                sync_threads();
                if tid() < half {
                    tile.set(tid(), tile.get(tid()) + tile.get(tid() + half));
                }
                half /= 2;
            }
            if tid() == 0 {
                global_mut(sums.as_mut_ptr(), 4).set(block_idx_x() as usize, tile.get(0));
            }
        };
        emulator.launch("sum", 4, 1024, 4096, kernel).unwrap();
        let expected: Vec<u32> = (0..4).map(|b| (b * 1024..(b + 1) * 1024).sum()).collect();
        assert_eq!(emulator.read(sums).unwrap(), expected);
    }
}

#[test]
fn seeds_are_interleavings() {
    let order = |seed| {
        let order = RefCell::new(Vec::new());
        let note = || {
            order.borrow_mut().push((block_idx_x(), tid()));
            sync_threads();
            order.borrow_mut().push((block_idx_x(), tid()));
        };
        Emulator::new(seed).launch("order", 3, 8, 0, note).unwrap();
        order.into_inner()
    };
    let orders: Vec<_> = SEEDS.map(order).collect();
    assert_eq!(orders, SEEDS.map(order).collect::<Vec<_>>(), "a seed is always the same interleaving");
    let distinct: std::collections::HashSet<_> = orders.iter().collect();
    assert_eq!(distinct.len(), orders.len());
    // In some launches, blocks run at the same time.
    let is_mixed = |order: &Vec<(u32, u32)>| order.chunks(16).any(|part| part.iter().any(|&(b, _)| b != part[0].0));
    assert!(orders.iter().any(is_mixed) && !orders.iter().all(is_mixed));
    // All threads of a block arrive at the barrier before one leaves it.
    for order in orders {
        for block in 0..3 {
            let threads: Vec<_> = order.iter().filter(|&&(b, _)| b == block).map(|&(_, t)| t).collect();
            for half in threads.chunks(8) {
                let mut threads = half.to_vec();
                threads.sort();
                assert_eq!(threads, (0..8).collect::<Vec<_>>());
            }
        }
    }
    // A second launch on the same device has another interleaving.
    let mut emulator = Emulator::new(1);
    let mut first_blocks = std::collections::HashSet::new();
    for _ in 0..20 {
        let first = std::cell::Cell::new(None);
        emulator.launch("first", 8, 1, 0, || first.set(first.get().or(Some(block_idx_x())))).unwrap();
        first_blocks.insert(first.get());
    }
    assert!(first_blocks.len() > 1);
}

#[test]
fn a_panic_in_the_kernel() {
    for seed in SEEDS {
        let table = [1, 2, 3];
        let kernel = |limit: usize| {
            move || {
                sync_threads();
                let i = tid() as usize;
                assert!(table[if i < limit { i % 3 } else { i }] < 4);
            }
        };
        Emulator::new(seed).launch("table", 1, 32, 0, kernel(32)).unwrap();
        let fault = fault(seed, |emulator| emulator.launch("table", 1, 32, 0, kernel(31)));
        assert_at(&fault, "table", (0, 0, 0), (31, 0, 0), file!(), line!() - 5);
        let message = "index out of bounds: the len is 3 but the index is 31";
        assert_eq!(fault.kind, FaultKind::Panic(message.into()));
        assert!(fault.to_string().ends_with(&format!(": panics: {message}")), "{fault}");
    }
}

#[test]
fn a_panic_with_a_message_of_its_own() {
    let fault = fault(1, |emulator| emulator.launch("own", 1, 1, 0, || panic!("{} keys", 12)));
    assert_eq!(fault.kind, FaultKind::Panic("12 keys".into()));
    let fault =
        common::fault(1, |emulator| emulator.launch("payload", 1, 1, 0, || std::panic::resume_unwind(Box::new(1))));
    assert_eq!(fault.kind, FaultKind::Panic("no message".into()));
    assert_eq!((fault.location.file(), fault.location.line()), (file!(), line!() - 2));
}

#[test]
fn launches_that_a_gpu_refuses() {
    let refused = |grid: Dim3, block: Dim3, shared: u32| {
        let mut ran = std::cell::Cell::new(false);
        let fault = Emulator::new(1).launch("refused", grid, block, shared, || ran.set(true)).unwrap_err();
        assert_eq!((fault.location.file(), fault.location.line()), (file!(), line!() - 1));
        assert!(matches!(fault.kind, FaultKind::Launch(_)) && !*ran.get_mut(), "{fault}");
        fault.to_string()
    };
    let dim = |x, y, z| Dim3 { x, y, z };
    let one = dim(1, 1, 1);
    for empty in [dim(0, 1, 1), dim(1, 0, 1), dim(1, 1, 0)] {
        refused(empty, one, 0);
        refused(one, empty, 0);
    }
    for grid in [dim(1 << 31, 1, 1), dim(1, 65_536, 1), dim(1, 1, 65_536), dim(65_536, 65_535, 2)] {
        refused(grid, one, 0);
    }
    for block in [dim(1025, 1, 1), dim(33, 32, 1), dim(1, 1, 65), dim(u32::MAX, u32::MAX, u32::MAX)] {
        refused(one, block, 0);
    }
    let text = refused(one, dim(8, 8, 17), 0);
    assert!(text.starts_with("refused: ") && text.contains("a block of 8 x 8 x 17 threads is too large"), "{text}");
    let text = refused(one, one, MAX_SHARED_BYTES + 1);
    assert!(text.contains("232449 bytes of shared memory"), "{text}");
    Emulator::new(1)
        .launch("largest", 1, 1, MAX_SHARED_BYTES, || assert_eq!(shared::dynamic_shared_size(), 232_448))
        .unwrap();
}

#[test]
fn a_kernel_cannot_launch() {
    let mut outer = Emulator::new(1);
    let x = outer.buffer(&[4u32]);
    let kernel = || {
        let mut inner = Emulator::new(2);
        let y = inner.buffer(&[5u32]);
        let fault = inner.launch("inner", 1, 1, 0, || ()).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Launch(_)), "{fault}");
        assert_eq!(inner.read(y).unwrap(), [5]);
        assert_eq!(global(x.as_ptr(), 1).get(0), 4);
    };
    outer.launch("outer", 1, 1, 0, kernel).unwrap();
}

#[test]
fn a_device_goes_on_after_a_fault() {
    let mut emulator = Emulator::new(1);
    let x = emulator.buffer(&[0u32; 64]);
    for round in 1..=50 {
        let wrong = emulator.launch("wrong", 1, 64, 0, || {
            if tid() != 5 {
                sync_threads();
            }
        });
        wrong.unwrap_err();
        let right = || global_mut(x.as_mut_ptr(), 64).set(tid() as usize, round);
        emulator.launch("right", 1, 64, 0, right).unwrap();
        assert_eq!(emulator.read(x).unwrap(), [round; 64]);
    }
}

#[test]
fn devices_side_by_side() {
    // Together they need more stacks than the pool allows at a time, so that some wait.
    std::thread::scope(|scope| {
        for seed in 0..24 {
            scope.spawn(move || {
                let mut emulator = Emulator::new(seed);
                let x = emulator.uninit::<u64>(1024);
                let kernel = || {
                    sync_threads();
                    global_mut(x.as_mut_ptr(), 1024).set(tid() as usize, seed);
                };
                for _ in 0..3 {
                    emulator.launch("fill", 1, 1024, 0, kernel).unwrap();
                }
                assert_eq!(emulator.read(x).unwrap(), [seed; 1024]);
            });
        }
    });
}

#[test]
fn views_outside_a_launch() {
    let mut values = [1u32, 2, 3];
    let view = global_mut(values.as_mut_ptr(), 3);
    view.set(1, 20);
    assert_eq!(view.get(1), 20);
    assert_eq!(global(values.as_ptr(), 3).get(1), 20);
    let message = |f: fn()| *std::panic::catch_unwind(f).unwrap_err().downcast::<String>().unwrap();
    assert_eq!(
        message(|| _ = global(std::ptr::null::<u32>(), 3).get(3)),
        "uses element 3 of a view of 3: out of bounds"
    );
    let text = std::panic::catch_unwind(thread_idx_x).unwrap_err();
    assert!(text.downcast_ref::<&str>().unwrap().contains("call it within `Emulator::launch`"));
    std::panic::catch_unwind(sync_threads).unwrap_err();
    std::panic::catch_unwind(|| shared::<u32>(1).get(0)).unwrap_err();
}

/// Multiplies by `factor`. The arguments are slices and pointers, as in Rust-CUDA.
///
/// # Safety
/// `y` has capacity for `x.len()` elements, and the launch has one thread per element.
#[kernel]
pub unsafe fn scale(factor: f32, x: &[f32], y: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < x.len() {
        // SAFETY: `i < x.len()`, the caller passes a `y` of `x.len()` elements, and thread `i` alone writes element
        // `i`.
        unsafe { *y.add(i) = factor * x[i] };
    }
}

#[test]
fn a_kernel_on_plain_memory() {
    let mut emulator = Emulator::new(1);
    let x = emulator.buffer(&(0..100).map(|i| i as f32).collect::<Vec<_>>());
    let y = emulator.buffer(&[0f32; 100]);
    // SAFETY: `x` lives as long as the emulator, `y` has its length, and there are 128 threads.
    let kernel = || unsafe { scale(1.5, std::slice::from_raw_parts(x.as_ptr(), x.len()), y.as_mut_ptr()) };
    emulator.launch("scale", 4, 32, 0, kernel).unwrap();
    assert_eq!(emulator.read(y).unwrap(), (0..100).map(|i| i as f32 * 1.5).collect::<Vec<_>>());
}
