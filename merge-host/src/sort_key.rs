//! Keys that elements of any type can be sorted by.

use std::cmp::{Ordering, Reverse};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZero;
use std::time::{Duration, SystemTime};

/// A value that elements can be sorted by. It converts to at most 128 ordered bits: an unsigned number in the order of
/// the values.
///
/// These types are sort keys:
///
/// | type | order | bits |
/// | --- | --- | ---: |
/// | every [`Key`](crate::Key) | numbers, floats in total order | its width |
/// | [`NonZero`] integers | numbers | its width |
/// | `bool` | `false`, `true` | 1 |
/// | `char` | by code point | 21 |
/// | [`Ordering`] | `Less`, `Equal`, `Greater` | 2 |
/// | [`Duration`], [`SystemTime`] | by time | 94, 95 |
/// | [`Ipv4Addr`], [`Ipv6Addr`] | of [`Ord`] | 32, 128 |
/// | [`Option`] of a sort key | `None` first | 1 more |
/// | [`Reverse`] of a sort key | descending | the same |
/// | a reference to a sort key | the same | the same |
/// | arrays of sort keys, and tuples of up to eight | lexicographic | the sum |
///
/// An `IpAddr` has more than 2^128 values, so it is no sort key. Strings are none either:
/// [`Engine::sort_by_bytes`](crate::Engine::sort_by_bytes) sorts by them.
///
/// A type that converts to more than 128 bits, such as `(u128, bool)`, does not compile where it is used.
///
/// The trait can be implemented for other types. A wrong implementation leads to a wrong order, and to nothing worse.
///
/// ```
/// use merge_host::{Engine, SortKey};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Rank {
///     High,
///     Low,
/// }
///
/// impl SortKey for Rank {
///     const BITS: u32 = 1;
///     fn ordered_bits(&self) -> u128 {
///         matches!(self, Rank::High).into()
///     }
/// }
///
/// let mut tasks = [("a", Rank::High, 5u8), ("b", Rank::Low, 7), ("c", Rank::Low, 3)];
/// Engine::cpu().sort_by_key(&mut tasks, |&(_, rank, time)| (rank, time))?;
/// assert_eq!(tasks.map(|task| task.0), ["c", "b", "a"]);
/// # Ok::<(), merge_host::Error>(())
/// ```
pub trait SortKey {
    /// The number of bits, at most 128.
    const BITS: u32;
    /// The ordered bits, a number below 2^[`BITS`](Self::BITS): `a` comes before `b` if and only if `a.ordered_bits() <
    /// b.ordered_bits()`.
    ///
    /// Higher bits are ignored or make the order wrong.
    fn ordered_bits(&self) -> u128;
}

/// Makes a key a sort key, `K` being a parameter of the type if given. An implementation for all types that are keys
/// would leave no other for references.
macro_rules! sort_key {
    (($($K:ident)?) $key:ty) => {
        impl$(<$K: $crate::Key>)? $crate::SortKey for $key {
            const BITS: u32 = <<$key as $crate::Key>::Bits as $crate::key::sealed::Bits>::COUNT;
            #[inline(always)]
            fn ordered_bits(&self) -> u128 {
                $crate::key::sealed::Bits::widened($crate::Key::to_ordered(*self))
            }
        }
    };
}
pub(crate) use sort_key;

impl SortKey for bool {
    const BITS: u32 = 1;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        (*self).into()
    }
}

impl SortKey for char {
    const BITS: u32 = 21;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        u32::from(*self).into()
    }
}

macro_rules! non_zero {
    ($($integer:ty)+) => {$(
        impl SortKey for NonZero<$integer> {
            const BITS: u32 = <$integer as SortKey>::BITS;
            #[inline(always)]
            fn ordered_bits(&self) -> u128 {
                self.get().ordered_bits()
            }
        }
    )+};
}
non_zero!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

impl SortKey for Ordering {
    const BITS: u32 = 2;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        (*self as i8 + 1) as u128
    }
}

impl SortKey for Duration {
    const BITS: u32 = u64::BITS + NANOSECOND_BITS;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        u128::from(self.as_secs()) << NANOSECOND_BITS | u128::from(self.subsec_nanos())
    }
}

/// The number of bits of the nanoseconds of a second.
const NANOSECOND_BITS: u32 = 30;

impl SortKey for SystemTime {
    const BITS: u32 = Duration::BITS + 1;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        const EPOCH: u128 = 1 << Duration::BITS;
        match self.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => EPOCH | after.ordered_bits(),
            Err(before) => EPOCH - before.duration().ordered_bits(),
        }
    }
}

impl SortKey for Ipv4Addr {
    const BITS: u32 = u32::BITS;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        self.to_bits().into()
    }
}

impl SortKey for Ipv6Addr {
    const BITS: u32 = u128::BITS;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        self.to_bits()
    }
}

impl<S: SortKey> SortKey for &S {
    const BITS: u32 = S::BITS;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        S::ordered_bits(self)
    }
}

impl<S: SortKey> SortKey for Option<S> {
    const BITS: u32 = sum(&[1, S::BITS]);
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        // The first bit is 1 if there is a key.
        self.as_ref().map_or(0, |key| 1 << (Self::BITS - 1) | key.ordered_bits())
    }
}

impl<S: SortKey> SortKey for Reverse<S> {
    const BITS: u32 = S::BITS;
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        self.0.ordered_bits() ^ mask(S::BITS)
    }
}

impl<S: SortKey, const N: usize> SortKey for [S; N] {
    const BITS: u32 = {
        assert!(N <= 128, "a sort key has at most 128 bits");
        sum(&[S::BITS; N])
    };
    #[inline(always)]
    fn ordered_bits(&self) -> u128 {
        self.iter().fold(0, |bits, key| append(bits, key))
    }
}

macro_rules! tuple {
    ($($name:ident)+) => {
        impl<$($name: SortKey),+> SortKey for ($($name,)+) {
            const BITS: u32 = sum(&[$($name::BITS),+]);
            #[inline(always)]
            fn ordered_bits(&self) -> u128 {
                #[expect(non_snake_case, reason = "each key has the name of its type")]
                let ($($name,)+) = self;
                let bits = 0;
                $(let bits = append(bits, $name);)+
                bits
            }
        }
    };
}
tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);

/// The sum of the bits of all parts of a key.
const fn sum(parts: &[u32]) -> u32 {
    let (mut sum, mut i) = (0, 0);
    while i < parts.len() {
        sum += parts[i];
        i += 1;
    }
    assert!(sum <= u128::BITS, "a sort key has at most 128 bits");
    sum
}

/// A number with ones in the last `bits` bits.
const fn mask(bits: u32) -> u128 {
    if bits == 0 { 0 } else { u128::MAX >> (u128::BITS - bits) }
}

/// Appends the bits of the next part of a key to the bits of the parts before.
#[inline(always)]
fn append<S: SortKey>(bits: u128, next: &S) -> u128 {
    // If a part has 128 bits, all other parts have none.
    bits.unbounded_shl(S::BITS) | next.ordered_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Descending;
    use std::fmt::Debug;

    /// Fails unless `sorted`, which are distinct, have ascending ordered bits of at most `BITS` bits.
    fn check<S: SortKey + Debug>(sorted: &[S]) {
        for pair in sorted.windows(2) {
            assert!(pair[0].ordered_bits() < pair[1].ordered_bits(), "{pair:?}");
        }
        assert!(sorted.iter().all(|key| key.ordered_bits() <= mask(S::BITS)), "{sorted:?}");
    }

    #[test]
    fn bits_are_in_the_order_of_the_values() {
        check(&[false, true]);
        check(&['\0', 'a', 'b', 'é', '\u{d7ff}', '\u{e000}', char::MAX]);
        check(&[None, Some(i8::MIN), Some(-1), Some(0), Some(i8::MAX)]);
        check(&[isize::MIN, -1, 0, 1, isize::MAX]);
        check(&[0, 1, usize::MAX / 2, usize::MAX]);
        check(&[i128::MIN, i128::MIN + 1, -1, 0, 1, i128::MAX]);
        check(&[Reverse(u128::MAX), Reverse(1), Reverse(0)]);
        check(&[Descending(2.0f32), Descending(0.0), Descending(-0.0)]);
        check(&[Reverse(Some('b')), Reverse(Some('a')), Reverse(None)]);
        check(&[-f64::NAN, f64::NEG_INFINITY, -0.0, 0.0, f64::INFINITY, f64::NAN]);
        check(&[[0u8, 255], [1, 0], [1, 1], [2, 0]]);
        check(&[(-1i32, true, 'x'), (0, false, 'z'), (0, true, 'a'), (0, true, 'b')]);
        check(&[
            ((1u8,), Reverse(5u16), -3i64, false),
            ((1,), Reverse(4), i64::MIN, true),
            ((2,), Reverse(9), 0, false),
        ]);
    }

    #[test]
    fn times_addresses_and_other_types_of_the_standard_library() {
        check(&[NonZero::<u8>::MIN, NonZero::new(200).unwrap(), NonZero::<u8>::MAX]);
        check(&[NonZero::<i64>::MIN, NonZero::new(-1).unwrap(), NonZero::new(1).unwrap(), NonZero::<i64>::MAX]);
        check(&[Ordering::Less, Ordering::Equal, Ordering::Greater]);
        let times = [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, u64::MAX].map(Duration::from_nanos);
        check(&times);
        check(&[Duration::ZERO, Duration::from_secs(u64::MAX), Duration::MAX]);
        let epoch = SystemTime::UNIX_EPOCH;
        let before: Vec<SystemTime> = times[1..].iter().rev().map(|time| epoch - *time).collect();
        check(&[before, times.map(|time| epoch + time).to_vec()].concat());
        check(&[Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 1, 0, 0), Ipv4Addr::BROADCAST]);
        check(&[Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST, Ipv6Addr::new(1, 0, 0, 0, 0, 0, 0, 0)]);
        check(&[(&1u8, &'z', 0u8, 1u8, 2u8, 3u8, 4u8, 9u8), (&2, &'a', 0, 0, 0, 0, 0, 0)]);
    }

    #[test]
    fn keys_of_no_bits_and_of_all() {
        check::<[u64; 0]>(&[[]]);
        assert_eq!(<[u64; 0]>::BITS, 0);
        check(&[Reverse([0u8; 0])]);
        check(&[([], 0u128), ([0u32; 0], u128::MAX)]);
        check(&[(0u128, []), (u128::MAX, [true; 0])]);
        check(&[[0, u64::MAX], [1, 0]]);
        assert_eq!(<(u32, char, bool)>::BITS, 54);
    }
}
