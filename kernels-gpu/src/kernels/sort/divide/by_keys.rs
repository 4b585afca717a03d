//! Sorting a bucket of keys without values, by bins of the keys themselves.

use super::bins::{Bins, BucketMemory, bins};
use crate::block::scan::block_range;
use crate::key::{Bits, Coding};
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// Sorts a bucket of up to `NT * VT` keys from `from` to `to`, which may be the same array, and returns whether it did.
/// `from` has keys as `encode` encodes them, and `to` gets keys as `decode` decodes them. A bucket that cannot be
/// sorted is left as it is. Keys may be `UNEVEN`. Bins are made finer up to `FINER` times.
///
/// # Safety
/// All `NT` threads of the block make this call. Nothing else uses `memory`, or the keys of `from` and `to`.
#[inline(always)]
pub(super) unsafe fn sort_by_keys<B: Bits, const NT: usize, const VT: usize, const UNEVEN: bool, const FINER: u32>(
    from: GlobalMut<B>,
    to: impl Fn() -> GlobalMut<B>,
    (encode, decode): (Coding<B>, Coding<B>),
    memory: BucketMemory<B>,
) -> bool {
    let (thread, len) = (thread::thread_idx_x(), from.len() as u32);
    // Compared again at each call: the compiler would keep all answers in registers.
    let is_here = |i: usize| thread + ((i * NT) as u32) < recomputed(len);
    let mut own = [encode.decode(B::MAX); VT];
    for i in 0..VT {
        if is_here(i) {
            own[i] = from.get(thread as usize + i * NT);
        }
    }
    encode.encode_all(&mut own);
    memory.clear::<NT>();
    let (mut least, mut greatest) = (B::MAX, B::MIN);
    for i in 0..VT {
        least = least.min(own[i]);
        greatest = greatest.max(select_unpredictable(is_here(i), own[i], B::MIN));
    }
    // SAFETY: no branch surrounds the call, so that all threads of the block make it. Nothing else uses `scan`, of
    // `BLOCK_WORDS` words.
    let (least, greatest) = unsafe { block_range(least, greatest, memory.scan) };
    if least == greatest {
        let to = to();
        for i in 0..VT {
            if is_here(i) {
                to.set(thread as usize + i * NT, decode.decode(least));
            }
        }
        return true;
    }
    // SAFETY: `least` and `greatest` are the same for all threads, so that all `NT` make the call. Barriers of
    // `block_range` come after `clear`.
    let is_sorted =
        unsafe { memory.sort::<NT, VT, UNEVEN, FINER>(own, len, Bins::new(least, greatest, bins(NT)), is_here) };
    if is_sorted {
        for i in 0..VT {
            own[i] = memory.tile.get(thread + (i * NT) as u32);
        }
        decode.decode_all(&mut own);
        let to = to();
        for i in 0..VT {
            if is_here(i) {
                to.set(thread as usize + i * NT, own[i]);
            }
        }
    }
    is_sorted
}
