//! Floats that Python's libraries hold to be equal, and this library does not: -0.0 and 0.0, and all NaNs. A stable
//! sort keeps their order. This library sorts them by their bits, so that each kind of such floats is a group of
//! consecutive elements afterwards. In the rare arrays that have groups of several bits, the groups are mended.
//!
//! ```text
//!   keys         0.0  3.0  -0.0  NaN  0.0  -NaN
//!   by bits      -0.0 0.0 0.0 │ 3.0 │ NaN -NaN
//!   mended       0.0 -0.0 0.0 │ 3.0 │ NaN -NaN
//! ```

use crate::buffer::Number;
use crate::call::Format;
use gmerge::*;
use std::ops::Range;

/// Bits of a float.
pub trait Float: Number + PartialEq {
    const ZERO: Self;
    const NEGATIVE_ZERO: Self;
    /// The first and the last NaN in the ascending orders that move NaNs, where positive NaNs precede negative ones.
    const FIRST_NAN: Self;
    const LAST_NAN: Self;
    fn is_nan(self) -> bool;
    /// -1, 0 or 1 for numbers below, at and above 0.
    fn signum(self) -> i32;
}

macro_rules! float {
    ($($bits:ident: $infinity:literal)*) => {$(
        impl Float for $bits {
            const ZERO: Self = 0;
            const NEGATIVE_ZERO: Self = 1 << ($bits::BITS - 1);
            const FIRST_NAN: Self = $infinity + 1;
            const LAST_NAN: Self = Self::NEGATIVE_ZERO + Self::FIRST_NAN;

            #[inline]
            fn is_nan(self) -> bool {
                self << 1 > $infinity << 1
            }

            #[inline]
            fn signum(self) -> i32 {
                match (self << 1 == 0, self >> ($bits::BITS - 1)) {
                    (true, _) => 0,
                    (false, 0) => 1,
                    (false, _) => -1,
                }
            }
        }
    )*};
}
float!(u16: 0x7c00 u32: 0x7f80_0000 u64: 0x7ff0_0000_0000_0000);

/// Evaluates an expression with `$B` as the bits of the floats of a format, or gives `$other` if keys are no floats, or
/// are in total order.
macro_rules! with_float {
    ($format:expr, $other:expr, $B:ident => $body:expr) => {{
        use gmerge::{GMERGE_DESCENDING, GMERGE_F16, GMERGE_F32, GMERGE_F64};
        let format: $crate::call::Format = $format;
        match format.key_type() {
            _ if format.order() & !GMERGE_DESCENDING == 0 => $other,
            GMERGE_F16 => {
                type $B = u16;
                $body
            }
            GMERGE_F32 => {
                type $B = u32;
                $body
            }
            GMERGE_F64 => {
                type $B = u64;
                $body
            }
            _ => $other,
        }
    }};
}
pub(crate) use with_float;

/// The ranges of NaNs and of zeros among `count` sorted keys.
fn groups<B: Float>(format: Format, count: usize, key: impl Fn(usize) -> B) -> [Range<usize>; 2] {
    let is_descending = format.order() & GMERGE_DESCENDING != 0;
    let first = |range: Range<usize>, is_before: &dyn Fn(B) -> bool| {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(key(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    };
    let (nans, numbers) = match format.order() & GMERGE_NANS_LAST {
        0 => {
            let end = first(0..count, &B::is_nan);
            (0..end, end..count)
        }
        _ => {
            let begin = first(0..count, &|key| !key.is_nan());
            (begin..count, 0..begin)
        }
    };
    let sign = |key: B| if is_descending { -key.signum() } else { key.signum() };
    let zeros = first(numbers.clone(), &|key| sign(key) < 0)..first(numbers, &|key| sign(key) <= 0);
    [nans, zeros]
}

/// Whether a group of `count` keys in the order of this library has keys of several bits.
pub fn are_mixed<B: Float>(format: Format, sorted: &[B]) -> bool {
    groups(format, sorted.len(), |i| sorted[i]).into_iter().any(|group| is_mixed(&sorted[group]))
}

/// Whether keys of a group, which are in order, have several bits.
fn is_mixed<B: Float>(group: &[B]) -> bool {
    group.first() != group.last()
}

/// Whether the group of the last of the first keys goes on among all `keys` with keys of other bits.
pub fn are_cut<B: Float>(first: &[B], keys: &[B]) -> bool {
    let Some(last) = first.last().copied().filter(|last| last.is_nan() || last.signum() == 0) else { return false };
    let belongs = |key: B| if last.is_nan() { key.is_nan() } else { key.signum() == 0 };
    keys.iter().any(|key| *key != last && belongs(*key))
}

/// Gives the groups of `sorted` the order that their keys have in `original`.
pub fn mend_keys<B: Float>(format: Format, original: &[B], sorted: &mut [B]) {
    let belongs: [fn(B) -> bool; 2] = [B::is_nan, |key| key.signum() == 0];
    let all = groups(format, sorted.len(), |i| sorted[i]);
    for (group, belongs) in all.into_iter().zip(belongs) {
        if is_mixed(&sorted[group.clone()]) {
            let keys = original.iter().filter(|key| belongs(**key));
            sorted[group].iter_mut().zip(keys).for_each(|(to, key)| *to = *key);
        }
    }
}

/// Puts the indices of each group in order. `indices` sort `keys` in the order of this library.
pub fn mend_indices<B: Float>(format: Format, keys: &[B], indices: &mut [i64]) {
    let key = |i: i64| keys[i as usize];
    for group in groups(format, indices.len(), |i| key(indices[i])) {
        let group = &mut indices[group];
        if let (Some(first), Some(last)) = (group.first(), group.last())
            && key(*first) != key(*last)
        {
            group.sort_unstable();
        }
    }
}

/// Whether sorted arrays together have zeros or NaNs of several bits. The arrays may have the order of another library.
pub fn are_mixed_together<B: Float>(format: Format, arrays: &[&[B]]) -> bool {
    let mut found: [Option<B>; 2] = [None; 2];
    for array in arrays {
        for (group, found) in groups(format, array.len(), |i| array[i]).into_iter().zip(&mut found) {
            let Some(first) = array[group.clone()].first() else { continue };
            let expected = *found.get_or_insert(*first);
            if array[group].iter().any(|key| *key != expected) {
                return true;
            }
        }
    }
    false
}

/// Gives zeros and NaNs the bits that no other zero or NaN precedes, or, if `is_upper`, that none follows. `needles`
/// are in the order of this library, and still are then.
pub fn widen<B: Float>(format: Format, needles: &mut [B], is_upper: bool) {
    let is_descending = format.order() & GMERGE_DESCENDING != 0;
    let bits = if is_upper == is_descending { [B::FIRST_NAN, B::NEGATIVE_ZERO] } else { [B::LAST_NAN, B::ZERO] };
    let all = groups(format, needles.len(), |i| needles[i]);
    all.into_iter().zip(bits).for_each(|(group, bits)| needles[group].fill(bits));
}
