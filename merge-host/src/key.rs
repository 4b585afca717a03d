//! The types of keys.

use crate::sort_key::sort_key;
use crate::{NanOrder, SortKey, Word};
use half::f16;
#[cfg(feature = "gpu")]
use kernels_gpu::key::Coding;
use kernels_gpu::key::Key as Kernels;
use std::fmt::{Debug, Display};

/// A number that can be merged and sorted.
///
/// Keys are all integers of the language, `u8` to `u128`, `i8` to `i128`, `usize` and `isize`, and the floats
/// [`f16`](struct@crate::f16), `f32` and `f64`. A [`Descending`](crate::Descending), [`NanLast`](crate::NanLast) or
/// [`NanFirst`](crate::NanFirst) wrapper of a key is a key. No other type is a key.
///
/// Integers are in their usual order and floats in the order of `total_cmp`. Elements of other types are sorted by a
/// [`SortKey`](crate::SortKey) or by a comparison.
///
/// ```
/// fn name_of<K: merge_host::Key>(_: &[K]) -> &'static str {
///     K::NAME
/// }
/// assert_eq!(name_of(&[1.0f64]), "f64");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no number that can be merged and sorted",
    note = "elements of other types are sorted by a key with `Engine::sort_by_key`, or by a comparison with \
            `Engine::sort_by`"
)]
pub trait Key: bytemuck::Pod + SortKey + Send + Sync + Debug + Display + sealed::Sealed {
    /// An unsigned integer of the same width. It is its own ordered bits.
    type Bits: Word;
    /// The type's name.
    const NAME: &'static str;
    /// Whether a GPU engine can merge and sort keys of this type. They are then [`GpuKey`]s, or `usize` or `isize`,
    /// which an engine passes to the GPU as `u64` or `i64`.
    const ON_GPU: bool;
    /// Encodes the key as ordered bits: `a` precedes `b` in the type's order if and only if `a.to_ordered() <
    /// b.to_ordered()`.
    fn to_ordered(self) -> Self::Bits;
    /// Decodes ordered bits: returns the key with the ordered bits `bits`.
    fn from_ordered(bits: Self::Bits) -> Self;
}

/// A key that the GPU has kernels for: `u32`, `i32`, `f32`, `u64`, `i64` or `f64`, a [`Descending`](crate::Descending),
/// [`NanLast`](crate::NanLast) or [`NanFirst`](crate::NanFirst) wrapper of such a key, and no other type.
#[diagnostic::on_unimplemented(
    message = "the GPU has no kernels for keys of type `{Self}`",
    label = "not `u32`, `i32`, `f32`, `u64`, `i64` or `f64`",
    note = "structs and other types are sorted and merged on a GPU by `Stream::sort_by` and its like, whose kernels \
            `kernels_gpu::own` makes"
)]
pub trait GpuKey: Key {}

macro_rules! gpu_key {
    ($($t:ident)*) => {$(impl GpuKey for $t {})*};
}
gpu_key!(u32 i32 f32 u64 i64 f64);

pub(crate) mod sealed {
    #[cfg(feature = "gpu")]
    use crate::gpu::KeyCoding;
    #[cfg(feature = "gpu")]
    use kernels_gpu::key::Coding;
    use std::ops::{BitOr, BitXor, Not, Shl, Shr};

    pub trait Sealed {
        /// The type of the keys' bits on the GPU if [`ON_GPU`](super::Key::ON_GPU), and otherwise an unused type.
        type OnGpu: GpuBits;
        /// The order of the keys as kernels take it, if [`ON_GPU`](super::Key::ON_GPU).
        #[cfg(feature = "gpu")]
        fn gpu_coding() -> Coding<Self::OnGpu>;
        /// The number of NaNs of one sign; 0 for integers.
        const NANS: u64;
        /// Where NaNs lie in the order of the type.
        const NAN_ORDER: super::NanOrder;
    }

    /// Bits that kernels sort and merge: `u32` or `u64`.
    pub trait GpuBits: kernels_gpu::key::Bits + super::Word {
        /// This coding, for code that is not generic.
        #[cfg(feature = "gpu")]
        fn key_coding(coding: Coding<Self>) -> KeyCoding;
    }

    impl GpuBits for u32 {
        #[cfg(feature = "gpu")]
        fn key_coding(coding: Coding<Self>) -> KeyCoding {
            KeyCoding::U32(coding)
        }
    }

    impl GpuBits for u64 {
        #[cfg(feature = "gpu")]
        fn key_coding(coding: Coding<Self>) -> KeyCoding {
            KeyCoding::U64(coding)
        }
    }

    /// Ordered bits: an unsigned integer.
    pub trait Bits:
        Sized
        + Send
        + Sync
        + BitOr<Output = Self>
        + BitXor<Output = Self>
        + Not<Output = Self>
        + Shl<u32, Output = Self>
        + Shr<u32, Output = Self>
    {
        /// The number of bits.
        const COUNT: u32;
        /// The number of zeros before the most significant 1.
        fn leading_zeros(self) -> u32;
        /// The least significant bits, as a `usize`.
        fn low(self) -> usize;
        /// The number `low`, truncated to the width of this type.
        fn from_low(low: usize) -> Self;
        /// The same number with 128 bits.
        fn widened(self) -> u128;
        /// The number `wide`, truncated to the width of this type.
        fn narrowed(wide: u128) -> Self;
        /// The sum, modulo 2 to the number of bits.
        fn plus(self, other: Self) -> Self;
        /// The difference, modulo 2 to the number of bits.
        fn minus(self, other: Self) -> Self;
    }
}

macro_rules! bits {
    ($($t:ident)*) => {$(
        impl sealed::Bits for $t {
            const COUNT: u32 = $t::BITS;
            #[inline(always)]
            fn leading_zeros(self) -> u32 {
                self.leading_zeros()
            }
            #[inline(always)]
            fn low(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn from_low(low: usize) -> Self {
                low as $t
            }
            #[inline(always)]
            fn widened(self) -> u128 {
                self as u128
            }
            #[inline(always)]
            fn narrowed(wide: u128) -> Self {
                wide as $t
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}
bits!(u8 u16 u32 u64 u128);

macro_rules! on_gpu {
    (true $t:ident) => {
        $t
    };
    (false $t:ident) => {
        u32
    };
    ((true as $other:ident) $t:ident) => {
        $other
    };
}

/// Whether keys have a type on the GPU.
macro_rules! is_on_gpu {
    (false) => {
        false
    };
    ($($on_gpu:tt)*) => {
        true
    };
}

/// The number of NaNs of one sign.
macro_rules! nans {
    (f16) => {
        (1 << (f16::MANTISSA_DIGITS - 1)) - 1
    };
    (f32) => {
        (1 << (f32::MANTISSA_DIGITS - 1)) - 1
    };
    (f64) => {
        (1 << (f64::MANTISSA_DIGITS - 1)) - 1
    };
    ($integer:ident) => {
        0
    };
}

macro_rules! key {
    ($on_gpu:tt; $($t:ident as $bits:ident: $to_ordered:expr, $from_ordered:expr;)*) => {$(
        impl sealed::Sealed for $t {
            type OnGpu = <on_gpu!($on_gpu $t) as Kernels>::Bits;
            #[cfg(feature = "gpu")]
            fn gpu_coding() -> Coding<Self::OnGpu> {
                <on_gpu!($on_gpu $t) as Kernels>::coding()
            }
            const NANS: u64 = nans!($t);
            const NAN_ORDER: NanOrder = NanOrder::Total;
        }
        impl Key for $t {
            type Bits = $bits;
            const NAME: &'static str = stringify!($t);
            const ON_GPU: bool = is_on_gpu!($on_gpu);
            #[inline(always)]
            fn to_ordered(self) -> $bits {
                ($to_ordered)(self)
            }
            #[inline(always)]
            fn from_ordered(bits: $bits) -> Self {
                ($from_ordered)(bits)
            }
        }
        sort_key! { () $t }
    )*};
}
key! {
    true;
    u32 as u32: Kernels::to_ordered, Kernels::from_ordered;
    i32 as u32: Kernels::to_ordered, Kernels::from_ordered;
    f32 as u32: Kernels::to_ordered, Kernels::from_ordered;
    u64 as u64: Kernels::to_ordered, Kernels::from_ordered;
    i64 as u64: Kernels::to_ordered, Kernels::from_ordered;
    f64 as u64: Kernels::to_ordered, Kernels::from_ordered;
}
// The same encodings for types without kernels.
key! {
    false;
    u8 as u8: |key| key, |bits| bits;
    i8 as u8: |key: i8| (key ^ i8::MIN) as u8, |bits: u8| bits as i8 ^ i8::MIN;
    u16 as u16: |key| key, |bits| bits;
    i16 as u16: |key: i16| (key ^ i16::MIN) as u16, |bits: u16| bits as i16 ^ i16::MIN;
    f16 as u16: |key: f16| inverted(key.to_bits(), key.is_sign_negative()),
        |bits| f16::from_bits(inverted(bits, bits >> 15 == 0));
    u128 as u128: |key| key, |bits| bits;
    i128 as u128: |key: i128| (key ^ i128::MIN) as u128, |bits: u128| bits as i128 ^ i128::MIN;
}
// Numbers of the width of an address, which is 8 bytes.
#[cfg(target_pointer_width = "64")]
key! {
    (true as u64);
    usize as u64: |key| key as u64, |bits| bits as usize;
}
#[cfg(target_pointer_width = "64")]
key! {
    (true as i64);
    isize as u64: |key| Kernels::to_ordered(key as i64), |bits| <i64 as Kernels>::from_ordered(bits) as isize;
}

/// Inverts all bits of a negative float, and the sign bit of other floats.
#[inline(always)]
fn inverted(bits: u16, negative: bool) -> u16 {
    bits ^ if negative { u16::MAX } else { 1 << 15 }
}
