//! A bucket of keys alone, sorted by bins of the keys themselves.

use super::bins::{Bins, BucketMemory, bins};
use crate::block::scan::block_range;
use crate::key::{Bits, Coding};
use core::hint::select_unpredictable;
use cuda_std::prelude::*;
use cuda_std::recomputed;

/// Sorts a bucket of up to `NT * VT` keys from `from`, which it encodes, to as many of `to`, which may be the same and
/// which it decodes; or leaves it as it is, and gives false. Keys may be `UNEVEN`, and bins are made finer up to
/// `FINER` times.
///
/// # Safety
/// All threads of the block make this call, which are `NT`; nothing else uses `memory`, nor where the keys are and go.
#[inline(always)]
pub(super) unsafe fn sort_by_keys<B: Bits, const NT: usize, const VT: usize, const UNEVEN: bool, const FINER: u32>(
    from: GlobalMut<B>,
    to: impl Fn() -> GlobalMut<B>,
    (encode, decode): (Coding<B>, Coding<B>),
    memory: BucketMemory<B>,
) -> bool {
    let (thread, len) = (thread::thread_idx_x(), from.len() as u32);
    // Compared anew wherever it is asked: the compiler would keep all answers in registers.
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
    // SAFETY: all threads of the block are here, as below.
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
    // SAFETY: as above.
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
