//! The backend of the host without the emulator: memory is accessed directly, and functions of threads panic.

use crate::Word;

#[cold]
fn not_in_a_kernel() -> ! {
    panic!("this function runs in a GPU kernel, or on the host with cuda_std's feature `emulator`")
}

macro_rules! missing {
    ($($name:ident($($arg:ident: $t:ty),*) -> $out:ty;)*) => {$(
        pub fn $name($($arg: $t),*) -> $out {
            $(let _ = $arg;)*
            not_in_a_kernel()
        }
    )*};
}
missing! {
    thread_idx_x() -> u32; thread_idx_y() -> u32; thread_idx_z() -> u32;
    block_idx_x() -> u32; block_idx_y() -> u32; block_idx_z() -> u32;
    block_dim_x() -> u32; block_dim_y() -> u32; block_dim_z() -> u32;
    grid_dim_x() -> u32; grid_dim_y() -> u32; grid_dim_z() -> u32;
    lane_id() -> u32;
    sync_threads() -> ();
    device_fence() -> ();
    sleep(nanoseconds: u32) -> ();
    sync_warp(mask: u32) -> ();
    shuffle_xor(mask: u32, value: u32, lane_mask: u32) -> u32;
    shuffle_idx(mask: u32, value: u32, src: u32) -> u32;
    shuffle_up(mask: u32, value: u32, distance: u32) -> u32;
    ballot(mask: u32, predicate: bool) -> u32;
    reduce_add(mask: u32, value: u32) -> u32;
    reduce_max(mask: u32, value: u32) -> u32;
    commit_copies() -> ();
    wait_for_all_but_last_commit() -> ();
    wait_for_copies() -> ();
    dynamic_shared_base() -> u32;
    dynamic_shared_size() -> u32;
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

pub unsafe fn copy_async<T: Word>(_to: u32, _from: *const T) {
    not_in_a_kernel()
}

pub unsafe fn copy_async_mut<T: Word>(_to: u32, _from: *const T) {
    not_in_a_kernel()
}

pub unsafe fn prefetch<T: Word>(_from: *const T) {
    not_in_a_kernel()
}

pub unsafe fn load_shared<T: Word>(_address: u32) -> T {
    not_in_a_kernel()
}

pub unsafe fn store_shared<T: Word>(_address: u32, _value: T) {
    not_in_a_kernel()
}

pub unsafe fn load_next_shared_if<T: Word>(_is_next: bool, _address: u32, _word: T) -> (u32, T) {
    not_in_a_kernel()
}

pub unsafe fn store_shared_if<T: Word>(_bits: u32, _mask: u32, _address: u32, _value: T) -> u32 {
    not_in_a_kernel()
}

pub unsafe fn add_shared(_address: u32, _value: u32) -> u32 {
    not_in_a_kernel()
}

pub fn recomputed<T: Word>(value: T) -> T {
    value
}

pub unsafe fn load_global_const<T: Word>(p: *const T) -> T {
    // SAFETY: the caller passes a `p` that is readable and aligned.
    unsafe { p.read() }
}

pub unsafe fn load_global<T: Word>(p: *const T) -> T {
    // SAFETY: the caller passes a `p` that is readable and aligned.
    unsafe { p.read() }
}

pub unsafe fn store_global<T: Word>(p: *mut T, value: T) {
    // SAFETY: the caller passes a `p` that is writable and aligned.
    unsafe { p.write(value) }
}

pub unsafe fn load_relaxed<T: Word>(p: *const T) -> T {
    // SAFETY: the caller passes a `p` that is readable and aligned.
    unsafe { p.read() }
}

pub unsafe fn store_relaxed<T: Word>(p: *mut T, value: T) {
    // SAFETY: the caller passes a `p` that is writable and aligned.
    unsafe { p.write(value) }
}

pub unsafe fn raise_global(p: *mut u32) {
    // SAFETY: the caller passes a `p` that is writable and aligned.
    unsafe { p.write(1) }
}

pub unsafe fn add_global(p: *mut u32, value: u32) -> u32 {
    // SAFETY: the caller passes a `p` that is writable and aligned, and that no other thread accesses.
    unsafe {
        let before = p.read();
        p.write(before.wrapping_add(value));
        before
    }
}

#[track_caller]
pub fn check_index(i: usize, len: usize) {
    assert!(i < len, "index {i} of a view of {len} elements");
}

#[track_caller]
pub fn check_range(start: usize, count: usize, len: usize) {
    assert!(start <= len && count <= len - start, "{count} elements from {start} of a view of {len}");
}
