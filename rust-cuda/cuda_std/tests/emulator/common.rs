//! Functions that the emulator's tests share.

use cuda_std::{
    emulator::{Emulator, Fault, Index3},
    prelude::*,
};

/// Seeds of the interleavings: enough for a result that depends on the interleaving to differ.
pub const SEEDS: std::ops::Range<u64> = 0..40;

/// The thread's index along x.
pub fn tid() -> u32 {
    thread::thread_idx_x()
}

/// The first `len` elements of the launch's shared memory.
pub fn shared<T: Word>(len: u32) -> Shared<T> {
    // SAFETY: the emulator checks every access of a launch and reports it instead of executing it. Tests break the
    // requirements of `Shared::dynamic` on purpose.
    unsafe { Shared::dynamic(0, len) }
}

/// A view to read.
pub fn global<T: Word>(p: *const T, len: usize) -> Global<T> {
    // SAFETY: the emulator checks every access of a launch and reports it instead of executing it. Tests break the
    // requirements of `Global::new` on purpose.
    unsafe { Global::new(p, len) }
}

/// A view to write.
pub fn global_mut<T: Word>(p: *mut T, len: usize) -> GlobalMut<T> {
    // SAFETY: the emulator checks every access of a launch and reports it instead of executing it. Tests break the
    // requirements of `GlobalMut::new` on purpose.
    unsafe { GlobalMut::new(p, len) }
}

// The warp operations below are safe in the emulator: it reports lanes of the mask that do not arrive.

/// Waits for the lanes in `mask`.
#[track_caller]
pub fn sync_warp(mask: u32) {
    // SAFETY: the emulator reports a call that lacks a lane of `mask`, or that a lane outside of `mask` makes.
    unsafe { warp::sync_warp(mask) }
}

/// The value that lane `lane_id() ^ lane_mask` passed.
#[track_caller]
pub fn shuffle_xor(mask: u32, value: u32, lane_mask: u32) -> u32 {
    // SAFETY: the emulator reports a call that lacks a lane of `mask`, or that a lane outside of `mask` makes.
    unsafe { warp::shuffle_xor(mask, value, lane_mask) }
}

/// The value that lane `src` passed.
#[track_caller]
pub fn shuffle_idx(mask: u32, value: u32, src: u32) -> u32 {
    // SAFETY: the emulator reports a call that lacks a lane of `mask`, or that a lane outside of `mask` makes.
    unsafe { warp::shuffle_idx(mask, value, src) }
}

/// The value that the lane `distance` below passed.
#[track_caller]
pub fn shuffle_up(mask: u32, value: u32, distance: u32) -> u32 {
    // SAFETY: the emulator reports a call that lacks a lane of `mask`, or that a lane outside of `mask` makes.
    unsafe { warp::shuffle_up(mask, value, distance) }
}

/// The lanes with a true `predicate`.
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: the emulator reports a call that lacks a lane of `mask`, or that a lane outside of `mask` makes.
    unsafe { warp::ballot(mask, predicate) }
}

/// The sum of the lanes' values.
#[track_caller]
pub fn reduce_add(mask: u32, value: u32) -> u32 {
    // SAFETY: the emulator reports a call that lacks a lane of `mask`, or that a lane outside of `mask` makes.
    unsafe { warp::reduce_add(mask, value) }
}

/// The greatest of the lanes' values.
#[track_caller]
pub fn reduce_max(mask: u32, value: u32) -> u32 {
    // SAFETY: the emulator reports a call that lacks a lane of `mask`, or that a lane outside of `mask` makes.
    unsafe { warp::reduce_max(mask, value) }
}

/// The fault of one launch with `seed`.
#[track_caller]
pub fn fault(seed: u64, launch: impl FnOnce(&mut Emulator) -> Result<(), Fault>) -> Fault {
    let mut emulator = Emulator::new(seed);
    launch(&mut emulator).expect_err("the kernel is wrong, and the emulator did not see it")
}

/// Asserts the block and thread at fault, and the line `line` of this file.
#[track_caller]
pub fn assert_at(fault: &Fault, kernel: &str, block: Index3, thread: Index3, file: &str, line: u32) {
    assert_eq!(fault.kernel, kernel, "{fault}");
    assert_eq!((fault.block, fault.thread), (block, thread), "{fault}");
    assert_eq!((fault.location.file(), fault.location.line()), (file, line), "{fault}");
    let prefix = format!("{kernel}: block {}, thread {}, {file}:{line}:", short(block), short(thread));
    assert!(fault.to_string().starts_with(&prefix), "{fault}");
}

fn short((x, y, z): Index3) -> String {
    match (y, z) {
        (0, 0) => format!("{x}"),
        (_, 0) => format!("({x}, {y})"),
        _ => format!("({x}, {y}, {z})"),
    }
}
