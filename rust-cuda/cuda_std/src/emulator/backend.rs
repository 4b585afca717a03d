//! The backend of the emulator: functions that the rest of the crate calls instead of instructions.

use super::{
    block::State,
    fault::{Access, FaultKind, Space},
    profile::{Code, Site},
    run::{Run, SHARED_BASE, stop, with_run},
    warp::{Operation, WarpCall},
};
use crate::Word;
use core::panic::Location;

#[cold]
#[track_caller]
fn not_in_a_kernel() -> ! {
    panic!("this function runs in a GPU kernel: call it within `Emulator::launch`")
}

/// Calls `f` with the current launch. Panics if there is none.
#[track_caller]
fn in_kernel<R>(f: impl FnOnce(&mut Run) -> R) -> R {
    match with_run(f) {
        Some(result) => result,
        None => not_in_a_kernel(),
    }
}

macro_rules! registers {
    ($($name:ident = |$run:ident| $value:expr;)*) => {$(
        #[track_caller]
        pub fn $name() -> u32 {
            in_kernel(|$run| $value)
        }
    )*};
}
registers! {
    thread_idx_x = |run| run.thread_index.0; thread_idx_y = |run| run.thread_index.1;
    thread_idx_z = |run| run.thread_index.2;
    block_idx_x = |run| run.block_index.0; block_idx_y = |run| run.block_index.1;
    block_idx_z = |run| run.block_index.2;
    block_dim_x = |run| run.block.x; block_dim_y = |run| run.block.y; block_dim_z = |run| run.block.z;
    grid_dim_x = |run| run.grid.x; grid_dim_y = |run| run.grid.y; grid_dim_z = |run| run.grid.z;
    lane_id = |run| run.lane();
    dynamic_shared_size = |run| run.shared_bytes();
}

#[track_caller]
pub fn dynamic_shared_base() -> u32 {
    in_kernel(|_| SHARED_BASE)
}

/// Yields to the scheduler until it changes the state.
#[track_caller]
fn wait(state: State) {
    let yielder = in_kernel(|run| run.wait(state));
    // SAFETY: the yielder is valid while the running thread's coroutine lives, and this call is inside that coroutine.
    unsafe { (*yielder).suspend(()) }
}

#[track_caller]
pub fn sync_threads() {
    wait(State::AtBarrier(Location::caller()));
}

#[track_caller]
pub fn device_fence() {
    in_kernel(Run::fence);
}

/// Other threads run.
#[track_caller]
pub fn sleep(_: u32) {
    wait(State::Polling(Location::caller()));
}

/// Lets other threads run after the use of a word that blocks communicate with: always if the thread `polls`, otherwise
/// at times.
#[track_caller]
fn let_others_run(polls: bool) {
    if polls {
        wait(State::Polling(Location::caller()));
    } else if in_kernel(Run::yields) {
        wait(State::Ready);
    }
}

/// A load of a communicated word, which has the value `last`.
#[track_caller]
fn load_word<T: Word>(p: *const T, last: T) -> T {
    let place = (p.addr(), size_of::<T>());
    let Some((bits, polls)) = with_run(|run| run.load_word(place, last.to_register())) else { return last };
    let_others_run(polls);
    T::from_register(bits)
}

/// Records a store or an update of a communicated word, which had the value `before`.
#[track_caller]
fn store_word<T: Word>(p: *const T, before: T, value: T, is_update: bool) {
    let (place, values) = ((p.addr(), size_of::<T>()), [before.to_register(), value.to_register()]);
    if let Some(polls) = with_run(|run| run.store_word(place, values, is_update)) {
        let_others_run(polls);
    }
}

#[track_caller]
fn warp_call(mask: u32, operation: Operation) -> u32 {
    let location = Location::caller();
    let call = WarpCall { mask, operation };
    let left_out = in_kernel(|run| {
        let left_out = call.left_out(run.lane());
        if let Some(lane) = left_out {
            run.fail(FaultKind::Mask { mask, lane }, location.into());
        }
        left_out
    });
    if left_out.is_some() {
        stop();
    }
    wait(State::AtWarpCall(call, location));
    in_kernel(|run| run.result())
}

#[track_caller]
pub fn sync_warp(mask: u32) {
    warp_call(mask, Operation::Sync);
}

#[track_caller]
pub fn shuffle_xor(mask: u32, value: u32, lane_mask: u32) -> u32 {
    warp_call(mask, Operation::ShuffleXor { value, lane_mask })
}

#[track_caller]
pub fn shuffle_idx(mask: u32, value: u32, src: u32) -> u32 {
    warp_call(mask, Operation::ShuffleIndex { value, source: src })
}

#[track_caller]
pub fn shuffle_up(mask: u32, value: u32, distance: u32) -> u32 {
    warp_call(mask, Operation::ShuffleUp { value, distance })
}

#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    warp_call(mask, Operation::Ballot(predicate))
}

/// Bit `bit` of `value`, in its place.
pub fn bit_of(value: u32, bit: u32) -> u32 {
    value & 1 << bit
}

/// The lanes in `lanes` that agree with this lane in both ballots. This lane's own bits are `own`.
pub fn and_alike(lanes: u32, ballots: [u32; 2], own: [u32; 2]) -> u32 {
    let alike = |i: usize| if own[i] != 0 { ballots[i] } else { !ballots[i] };
    lanes & alike(0) & alike(1)
}

#[track_caller]
pub fn reduce_add(mask: u32, value: u32) -> u32 {
    warp_call(mask, Operation::ReduceAdd(value))
}

#[track_caller]
pub fn reduce_max(mask: u32, value: u32) -> u32 {
    warp_call(mask, Operation::ReduceMax(value))
}

/// The value arrives when the thread waits for it.
#[inline(always)]
#[track_caller]
pub unsafe fn copy_async<T: Word>(to: u32, from: *const T) {
    // SAFETY: the caller passes a `from` that is readable and constant during the launch.
    begin_copy(to, unsafe { load_global_const(from) }, Code::here());
}

/// Like [`copy_async`], from memory that the launch may write.
#[inline(always)]
#[track_caller]
pub unsafe fn copy_async_mut<T: Word>(to: u32, from: *const T) {
    // SAFETY: the caller passes a `from` that is readable.
    begin_copy(to, unsafe { load_global(from) }, Code::here());
}

#[track_caller]
fn begin_copy<T: Word>(to: u32, value: T, code: Code) {
    let begun = in_kernel(|run| run.begin_copy(to, size_of::<T>(), value.to_register(), code));
    begun.unwrap_or_else(|()| stop());
}

pub unsafe fn prefetch<T: Word>(_from: *const T) {}

pub fn commit_copies() {
    in_kernel(Run::commit_copies);
}

#[track_caller]
pub fn wait_for_all_but_last_commit() {
    in_kernel(Run::finish_all_but_last_commit);
}

#[track_caller]
pub fn wait_for_copies() {
    in_kernel(Run::finish_copies);
}

#[inline(always)]
#[track_caller]
pub unsafe fn load_shared<T: Word>(address: u32) -> T {
    T::from_register(load_shared_bits(address, size_of::<T>(), Code::here()))
}

#[inline(always)]
#[track_caller]
pub unsafe fn store_shared<T: Word>(address: u32, value: T) {
    store_shared_bits(address, size_of::<T>(), value.to_register(), Code::here());
}

#[inline(always)]
#[track_caller]
pub unsafe fn load_next_shared_if<T: Word>(is_next: bool, address: u32, word: T) -> (u32, T) {
    let code = Code::here();
    if !is_next {
        execute_without_access(Access::Read, size_of::<T>(), code);
        return (address, word);
    }
    let address = address + size_of::<T>() as u32;
    (address, T::from_register(load_shared_bits(address, size_of::<T>(), code)))
}

#[inline(always)]
#[track_caller]
pub unsafe fn store_shared_if<T: Word>(bits: u32, mask: u32, address: u32, value: T) -> u32 {
    let code = Code::here();
    if bits & mask == 0 {
        execute_without_access(Access::Write, size_of::<T>(), code);
        return address;
    }
    store_shared_bits(address, size_of::<T>(), value.to_register(), code);
    address + size_of::<T>() as u32
}

/// Counts an access to shared memory whose condition is false: the lanes of a warp execute it together.
#[track_caller]
fn execute_without_access(access: Access, size: usize, code: Code) {
    in_kernel(|run| run.profile(Site { code, space: Space::Shared, access, size }, None));
}

#[inline(always)]
#[track_caller]
pub unsafe fn add_shared(address: u32, value: u32) -> u32 {
    add_shared_word(address, value, Code::here())
}

#[track_caller]
fn add_shared_word(address: u32, value: u32, code: Code) -> u32 {
    let before = in_kernel(|run| {
        run.shared(Access::Update, address, size_of::<u32>(), code).map(|bytes| {
            let word: &mut [u8; 4] = bytes.try_into().expect("a word has four bytes");
            let before = u32::from_le_bytes(*word);
            *word = before.wrapping_add(value).to_le_bytes();
            before
        })
    });
    before.unwrap_or_else(|()| stop())
}

#[track_caller]
fn load_shared_bits(address: u32, size: usize, code: Code) -> u64 {
    let bits = in_kernel(|run| {
        run.shared(Access::Read, address, size, code).map(|bytes| {
            let mut register = [0; 8];
            register[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(register)
        })
    });
    bits.unwrap_or_else(|()| stop())
}

#[track_caller]
fn store_shared_bits(address: u32, size: usize, bits: u64, code: Code) {
    let stored = in_kernel(|run| {
        run.shared(Access::Write, address, size, code).map(|bytes| {
            let size = bytes.len();
            bytes.copy_from_slice(&bits.to_le_bytes()[..size]);
        })
    });
    stored.unwrap_or_else(|()| stop());
}

/// Checks an access to global memory. Outside of a launch, the host is responsible.
fn check_global(access: Access, address: usize, size: usize, code: Code) {
    if let Some(Err(())) = with_run(|run| run.check_global(access, address, size, code)) {
        stop();
    }
}

pub fn recomputed<T: Word>(value: T) -> T {
    value
}

#[inline(always)]
#[track_caller]
pub unsafe fn load_global_const<T: Word>(p: *const T) -> T {
    check_global(Access::ReadConstant, p.addr(), size_of::<T>(), Code::here());
    // SAFETY: the caller passes a readable and aligned `p`; in a launch, `check_global` has checked it.
    unsafe { p.read() }
}

#[inline(always)]
#[track_caller]
pub unsafe fn load_global<T: Word>(p: *const T) -> T {
    check_global(Access::Read, p.addr(), size_of::<T>(), Code::here());
    // SAFETY: the caller passes a readable and aligned `p`; in a launch, `check_global` has checked it.
    unsafe { p.read() }
}

#[inline(always)]
#[track_caller]
pub unsafe fn store_global<T: Word>(p: *mut T, value: T) {
    check_global(Access::Write, p.addr(), size_of::<T>(), Code::here());
    // SAFETY: the caller passes a writable and aligned `p`; in a launch, `check_global` has checked it.
    unsafe { p.write(value) }
}

#[inline(always)]
#[track_caller]
pub unsafe fn load_relaxed<T: Word>(p: *const T) -> T {
    check_global(Access::Update, p.addr(), size_of::<T>(), Code::here());
    // SAFETY: the caller passes a readable and aligned `p`; in a launch, `check_global` has checked it. Emulated
    // threads take turns.
    load_word(p, unsafe { p.read() })
}

#[inline(always)]
#[track_caller]
pub unsafe fn store_relaxed<T: Word>(p: *mut T, value: T) {
    check_global(Access::Update, p.addr(), size_of::<T>(), Code::here());
    // SAFETY: the caller passes a writable and aligned `p`; in a launch, `check_global` has checked it. Emulated
    // threads take turns.
    let before = unsafe { p.replace(value) };
    store_word(p, before, value, false);
}

#[inline(always)]
#[track_caller]
pub unsafe fn raise_global(p: *mut u32) {
    // SAFETY: the caller passes a writable and aligned `p`.
    unsafe { store_relaxed(p, 1) }
}

#[inline(always)]
#[track_caller]
pub unsafe fn add_global(p: *mut u32, value: u32) -> u32 {
    check_global(Access::Update, p.addr(), size_of::<u32>(), Code::here());
    // SAFETY: the caller passes a writable and aligned `p`; in a launch, `check_global` has checked it. Emulated
    // threads take turns, so that the addition is atomic.
    let before = unsafe {
        let before = p.read();
        p.write(before.wrapping_add(value));
        before
    };
    store_word(p, before, before.wrapping_add(value), true);
    before
}

#[inline]
#[track_caller]
pub fn check_index(i: usize, len: usize) {
    if i >= len {
        out_of_view(i, 1, len);
    }
}

#[inline]
#[track_caller]
pub fn check_range(start: usize, count: usize, len: usize) {
    if start > len || count > len - start {
        out_of_view(start, count, len);
    }
}

#[cold]
#[track_caller]
fn out_of_view(start: usize, count: usize, len: usize) -> ! {
    let location = Location::caller();
    let kind = FaultKind::OutOfView { start, count, len };
    match with_run(|run| run.fail(kind.clone(), location.into())) {
        Some(()) => stop(),
        None => panic!("{kind}"),
    }
}
