//! The GPU backend: every function is one instruction, or the read of a register.
//!
//! Memory is accessed by inline assembly because rustc has no pointers into separate address spaces. A shared address
//! as a Rust pointer would be read with the slower generic `ld`.

use crate::Word;
use core::arch::{asm, global_asm, nvptx};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: ends the kernel with an error that the host receives.
    unsafe { nvptx::trap() }
}

// The launch's dynamic shared memory.
global_asm!(".extern .shared .align 128 .b8 dyn_smem[];");

/// Reads a special register.
///
/// Without the compiler's intrinsics: these tell it the range of an index. It then rewrites the arithmetic on the index
/// with bitwise operations, which prevents the hardware's `register + constant` addresses.
macro_rules! special_register {
    ($register:literal) => {{
        let value: u32;
        // SAFETY: reads a register that is constant for the thread.
        unsafe { asm!(concat!("mov.u32 {0}, %", $register, ";"), out(reg32) value, options(pure, nomem, nostack)) };
        value
    }};
}

macro_rules! indices {
    ($($name:ident = $register:literal;)*) => {$(
        #[inline(always)]
        pub fn $name() -> u32 {
            special_register!($register)
        }
    )*};
}
indices! {
    thread_idx_x = "tid.x"; thread_idx_y = "tid.y"; thread_idx_z = "tid.z";
    block_idx_x = "ctaid.x"; block_idx_y = "ctaid.y"; block_idx_z = "ctaid.z";
    lane_id = "laneid"; dynamic_shared_size = "dynamic_smem_size";
}

macro_rules! dimensions {
    ($($name:ident = $register:literal;)*) => {$(
        #[inline(always)]
        pub fn $name() -> u32 {
            let value = special_register!($register);
            // SAFETY: no dimension of a launch is 0. Without this hint, a division would compile to code that can
            // panic.
            unsafe { core::hint::assert_unchecked(value != 0) };
            value
        }
    )*};
}
dimensions! {
    block_dim_x = "ntid.x"; block_dim_y = "ntid.y"; block_dim_z = "ntid.z";
    grid_dim_x = "nctaid.x"; grid_dim_y = "nctaid.y"; grid_dim_z = "nctaid.z";
}

#[inline(always)]
pub fn sync_threads() {
    // SAFETY: a barrier accesses no memory; the kernel's author ensures that all threads of the block arrive. The
    // intrinsic is `convergent`, unlike inline assembly, so that the compiler does not duplicate or move it.
    unsafe { nvptx::_syncthreads() }
}

#[inline(always)]
pub fn sleep(nanoseconds: u32) {
    // SAFETY: the instruction only waits.
    unsafe { asm!("nanosleep.u32 {0};", in(reg32) nanoseconds, options(nomem, nostack)) };
}

// SAFETY: these are LLVM intrinsics with their own signatures; each is `convergent`.
unsafe extern "C" {
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_sync_bfly(mask: u32, value: u32, lane_mask: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn shfl_sync_up(mask: u32, value: u32, distance: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot_sync(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.add"]
    fn redux_sync_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    fn redux_sync_umax(value: u32, mask: u32) -> u32;
}

/// The clamp value of a shuffle with one segment of all 32 lanes.
const WHOLE_WARP: u32 = 31;

#[inline(always)]
pub fn sync_warp(mask: u32) {
    // SAFETY: the callers of this crate's function ensure that all lanes of `mask` make this call.
    unsafe { bar_warp_sync(mask) }
}

#[inline(always)]
pub fn device_fence() {
    // SAFETY: a fence has no operands. It is assumed to read and write memory, so that no access moves across it.
    unsafe { asm!("fence.acq_rel.gpu;", options(nostack)) }
}

#[inline(always)]
pub fn shuffle_xor(mask: u32, value: u32, lane_mask: u32) -> u32 {
    // SAFETY: the callers of this crate's function ensure that all lanes of `mask` make this call, including
    // `lane ^ lane_mask`.
    unsafe { shfl_sync_bfly(mask, value, lane_mask, WHOLE_WARP) }
}

#[inline(always)]
pub fn shuffle_idx(mask: u32, value: u32, src: u32) -> u32 {
    // SAFETY: the callers of this crate's function ensure that all lanes of `mask` make this call, including lane
    // `src`.
    unsafe { shfl_sync_idx(mask, value, src, WHOLE_WARP) }
}

#[inline(always)]
pub fn shuffle_up(mask: u32, value: u32, distance: u32) -> u32 {
    // SAFETY: the callers of this crate's function ensure that all lanes of `mask` make this call. The clamp value of a
    // shuffle up is its lowest lane, 0.
    unsafe { shfl_sync_up(mask, value, distance, 0) }
}

#[inline(always)]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: the callers of this crate's function ensure that all lanes of `mask` make this call.
    unsafe { vote_ballot_sync(mask, predicate) }
}

/// All bits set, as a value unknown to the compiler.
#[inline(always)]
fn all_ones() -> u32 {
    let ones;
    // SAFETY: reads two registers and computes. No lane is both less and greater than this one, so that the inputs have
    // no common bit.
    unsafe {
        asm!("{{ .reg .b32 %less, %greater; mov.u32 %less, %lanemask_lt; mov.u32 %greater, %lanemask_gt;",
            "lop3.b32 {0}, %less, %greater, 0, 0x3f; }}", out(reg32) ones, options(pure, nomem, nostack));
    }
    ones
}

/// In assembly: LLVM would shift each bit down before the comparison with 0.
#[inline(always)]
pub fn bit_of(value: u32, bit: u32) -> u32 {
    let own;
    // SAFETY: computes with registers only.
    unsafe {
        asm!("and.b32 {0}, {1}, {2};", out(reg32) own, in(reg32) value, in(reg32) 1 << bit,
            options(pure, nomem, nostack))
    }
    own
}

/// A complement is computed as a product with -1, minus 1: multiplications use otherwise idle execution units.
#[inline(always)]
pub fn and_alike(lanes: u32, ballots: [u32; 2], own: [u32; 2]) -> u32 {
    let alike;
    // SAFETY: computes with registers only.
    unsafe {
        asm!("{{ .reg .pred %first, %second; .reg .b32 %a, %b;",
            "setp.ne.u32 %first, {4}, 0; setp.ne.u32 %second, {5}, 0; mov.b32 %a, {2}; mov.b32 %b, {3};",
            "@!%first mad.lo.u32 %a, %a, {6}, {6}; @!%second mad.lo.u32 %b, %b, {6}, {6};",
            "lop3.b32 {0}, {1}, %a, %b, 0x80; }}",
            out(reg32) alike, in(reg32) lanes, in(reg32) ballots[0], in(reg32) ballots[1],
            in(reg32) own[0], in(reg32) own[1], in(reg32) all_ones(),
            options(pure, nomem, nostack));
    }
    alike
}

#[inline(always)]
pub fn reduce_add(mask: u32, value: u32) -> u32 {
    // SAFETY: the callers of this crate's function ensure that all lanes of `mask` make this call.
    unsafe { redux_sync_add(value, mask) }
}

#[inline(always)]
pub fn reduce_max(mask: u32, value: u32) -> u32 {
    // SAFETY: the callers of this crate's function ensure that all lanes of `mask` make this call.
    unsafe { redux_sync_umax(value, mask) }
}

/// Starts an asynchronous copy of a word of 4 or 8 bytes from global to shared memory.
#[inline(always)]
pub unsafe fn copy_async<T: Word>(to: u32, from: *const T) {
    const { assert!(matches!(size_of::<T>(), 0 | 4 | 8), "words of 4 or 8 bytes are copied") };
    // SAFETY: the caller passes a `to` in the block's shared memory and a readable `from`, both aligned to the size of
    // `T`.
    unsafe {
        if size_of::<T>() == 8 {
            asm!("cp.async.ca.shared.global [{0}], [{1}], 8;", in(reg32) to, in(reg64) from, options(nostack));
        } else if size_of::<T>() == 4 {
            asm!("cp.async.ca.shared.global [{0}], [{1}], 4;", in(reg32) to, in(reg64) from, options(nostack));
        }
    }
}

/// The same instruction: it does not require constant memory.
#[inline(always)]
pub unsafe fn copy_async_mut<T: Word>(to: u32, from: *const T) {
    // SAFETY: the caller passes a `to` in the block's shared memory and a readable `from`, both aligned to the size of
    // `T`.
    unsafe { copy_async(to, from) }
}

#[inline(always)]
pub unsafe fn prefetch<T: Word>(from: *const T) {
    // SAFETY: the caller passes a `from` that is readable.
    unsafe { asm!("prefetch.global.L2 [{0}];", in(reg64) from, options(nostack)) }
}

#[inline(always)]
pub fn commit_copies() {
    // SAFETY: commits a group of copies, which may be empty.
    unsafe { asm!("cp.async.commit_group;", options(nostack)) }
}

#[inline(always)]
pub fn wait_for_all_but_last_commit() {
    // SAFETY: the instruction only waits.
    unsafe { asm!("cp.async.wait_group 1;", options(nostack)) }
}

#[inline(always)]
pub fn wait_for_copies() {
    // SAFETY: the instruction only waits.
    unsafe { asm!("cp.async.wait_all;", options(nostack)) }
}

#[inline(always)]
pub fn dynamic_shared_base() -> u32 {
    let address;
    // SAFETY: takes an address, without an access.
    unsafe { asm!("mov.u32 {0}, dyn_smem;", out(reg32) address, options(pure, nomem, nostack)) }
    address
}

/// The `asm!` of one load, by the size of `T`.
macro_rules! load {
    ($T:ty, $space:literal, $address:expr, $class:ident) => {{
        let address = $address;
        if size_of::<$T>() == 8 {
            let bits: u64;
            asm!(concat!("ld.", $space, ".u64 {0}, [{1}];"), out(reg64) bits, in($class) address,
                options(pure, readonly, nostack));
            <$T>::from_register(bits)
        } else if size_of::<$T>() == 4 {
            let bits: u32;
            asm!(concat!("ld.", $space, ".u32 {0}, [{1}];"), out(reg32) bits, in($class) address,
                options(pure, readonly, nostack));
            <$T>::from_register(bits as u64)
        } else if size_of::<$T>() == 2 {
            let bits: u16;
            asm!(concat!("ld.", $space, ".u16 {0}, [{1}];"), out(reg16) bits, in($class) address,
                options(pure, readonly, nostack));
            <$T>::from_register(bits as u64)
        } else {
            let bits: u16;
            asm!(concat!("ld.", $space, ".u8 {0}, [{1}];"), out(reg16) bits, in($class) address,
                options(pure, readonly, nostack));
            <$T>::from_register(bits as u64)
        }
    }};
}

/// The `asm!` of one store, by the size of `T`.
macro_rules! store {
    ($T:ty, $space:literal, $address:expr, $class:ident, $value:expr) => {{
        let (address, bits) = ($address, $value.to_register());
        if size_of::<$T>() == 8 {
            asm!(concat!("st.", $space, ".u64 [{0}], {1};"), in($class) address, in(reg64) bits, options(nostack));
        } else if size_of::<$T>() == 4 {
            asm!(concat!("st.", $space, ".u32 [{0}], {1};"), in($class) address, in(reg32) bits as u32,
                options(nostack));
        } else if size_of::<$T>() == 2 {
            asm!(concat!("st.", $space, ".u16 [{0}], {1};"), in($class) address, in(reg16) bits as u16,
                options(nostack));
        } else {
            asm!(concat!("st.", $space, ".u8 [{0}], {1};"), in($class) address, in(reg16) bits as u16,
                options(nostack));
        }
    }};
}

/// Not `pure`, so that the compiler treats the result as a new value.
#[inline(always)]
pub fn recomputed<T: Word>(value: T) -> T {
    // SAFETY: moves a register.
    unsafe {
        if size_of::<T>() == 8 {
            let bits: u64;
            asm!("mov.b64 {0}, {1};", out(reg64) bits, in(reg64) value.to_register(), options(nomem, nostack));
            T::from_register(bits)
        } else {
            let bits: u32;
            asm!("mov.b32 {0}, {1};", out(reg32) bits, in(reg32) value.to_register() as u32, options(nomem, nostack));
            T::from_register(bits as u64)
        }
    }
}

#[inline(always)]
pub unsafe fn load_global_const<T: Word>(p: *const T) -> T {
    // SAFETY: the caller passes a `p` that is readable, aligned and constant during the launch.
    unsafe { load!(T, "global.nc", p, reg64) }
}

#[inline(always)]
pub unsafe fn load_global<T: Word>(p: *const T) -> T {
    // SAFETY: the caller passes a `p` that is readable and aligned.
    unsafe { load!(T, "global", p, reg64) }
}

#[inline(always)]
pub unsafe fn store_global<T: Word>(p: *mut T, value: T) {
    // SAFETY: the caller passes a `p` that is writable and aligned.
    unsafe { store!(T, "global", p, reg64, value) }
}

#[inline(always)]
pub unsafe fn load_shared<T: Word>(address: u32) -> T {
    // SAFETY: the caller passes an aligned `address` in the block's shared memory.
    unsafe { load!(T, "shared", address, reg32) }
}

#[inline(always)]
pub unsafe fn store_shared<T: Word>(address: u32, value: T) {
    // SAFETY: the caller passes an aligned `address` in the block's shared memory.
    unsafe { store!(T, "shared", address, reg32, value) }
}

/// If `bits & mask` is not 0, stores the value and advances the address: a test and two predicated instructions. For
/// the same code in Rust, the compilers convert each bit to a number to compute addresses.
#[inline(always)]
pub unsafe fn store_shared_if<T: Word>(bits: u32, mask: u32, address: u32, value: T) -> u32 {
    const { assert!(matches!(size_of::<T>(), 2 | 4 | 8), "words of 2, 4 or 8 bytes are stored") };
    let (mut address, value) = (address, value.to_register());
    macro_rules! store_if {
        ($type:literal, $class:ident, $word:ty) => {
            asm!("{{ .reg .pred %has; .reg .b32 %bits; and.b32 %bits, {1}, {2}; setp.ne.u32 %has, %bits, 0;",
                concat!("@%has st.shared.", $type, " [{0}], {3}; @%has add.u32 {0}, {0}, {4}; }}"),
                inout(reg32) address, in(reg32) bits, in(reg32) mask, in($class) value as $word,
                in(reg32) size_of::<T>() as u32, options(nostack))
        };
    }
    // SAFETY: if the value is stored, the caller passes an aligned `address` in the block's shared memory.
    unsafe {
        match size_of::<T>() {
            8 => store_if!("u64", reg64, u64),
            4 => store_if!("u32", reg32, u32),
            _ => store_if!("u16", reg16, u16),
        }
    }
    address
}

/// Two predicated instructions that update the address and the word in place. For the same code in Rust, the compilers
/// copy both.
#[inline(always)]
pub unsafe fn load_next_shared_if<T: Word>(is_next: bool, address: u32, word: T) -> (u32, T) {
    const { assert!(matches!(size_of::<T>(), 4 | 8), "words of 4 or 8 bytes are loaded") };
    let mut address = address;
    macro_rules! load_if {
        ($type:literal, $class:ident, $word:ty) => {{
            let mut bits = word.to_register() as $word;
            asm!("{{ .reg .pred %is; setp.ne.u32 %is, {2}, 0; @%is add.u32 {0}, {0}, {3};",
                concat!("@%is ld.shared.", $type, " {1}, [{0}]; }}"),
                inout(reg32) address, inout($class) bits, in(reg32) is_next as u32,
                in(reg32) size_of::<T>() as u32, options(nostack));
            T::from_register(bits as u64)
        }};
    }
    // SAFETY: if a word is loaded, the caller passes an `address` that another word in the block's shared memory
    // follows.
    let word = unsafe { if size_of::<T>() == 8 { load_if!("u64", reg64, u64) } else { load_if!("u32", reg32, u32) } };
    (address, word)
}

/// Not `readonly`, so that a loop that waits for another thread loads again.
#[inline(always)]
pub unsafe fn load_relaxed<T: Word>(p: *const T) -> T {
    // SAFETY: the caller passes a `p` that is readable and aligned.
    unsafe {
        if size_of::<T>() == 8 {
            let bits: u64;
            asm!("ld.relaxed.gpu.global.u64 {0}, [{1}];", out(reg64) bits, in(reg64) p, options(nostack));
            T::from_register(bits)
        } else {
            let bits: u32;
            asm!("ld.relaxed.gpu.global.u32 {0}, [{1}];", out(reg32) bits, in(reg64) p, options(nostack));
            T::from_register(bits as u64)
        }
    }
}

#[inline(always)]
pub unsafe fn store_relaxed<T: Word>(p: *mut T, value: T) {
    // SAFETY: the caller passes a `p` that is writable and aligned.
    unsafe { store!(T, "relaxed.gpu.global", p, reg64, value) }
}

#[inline(always)]
pub unsafe fn raise_global(p: *mut u32) {
    // SAFETY: the caller passes a `p` that is writable and aligned.
    unsafe { asm!("st.relaxed.gpu.global.u32 [{0}], 1;", in(reg64) p, options(nostack)) }
}

#[inline(always)]
pub unsafe fn add_global(p: *mut u32, value: u32) -> u32 {
    let before;
    // SAFETY: the caller passes a `p` that is writable and aligned.
    unsafe {
        asm!("atom.relaxed.gpu.global.add.u32 {0}, [{1}], {2};", out(reg32) before, in(reg64) p, in(reg32) value,
            options(nostack))
    };
    before
}

#[inline(always)]
pub unsafe fn add_shared(address: u32, value: u32) -> u32 {
    let before;
    // SAFETY: the caller passes an aligned `address` in the block's shared memory.
    unsafe {
        asm!("atom.relaxed.cta.shared.add.u32 {0}, [{1}], {2};", out(reg32) before, in(reg32) address, in(reg32) value,
            options(nostack))
    };
    before
}

/// Bounds are checked in the emulator only.
#[inline(always)]
pub fn check_index(_: usize, _: usize) {}

/// Bounds are checked in the emulator only.
#[inline(always)]
pub fn check_range(_: usize, _: usize, _: usize) {}
