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
    /// which an engine passes to the GPU as `u64` or `i64`. Keys of any type can be sorted on a GPU, those of 16 bytes,
    /// too.
    const ON_GPU: bool;
    /// Encodes the key as ordered bits: `a` precedes `b` in the type's order if and only if `a.to_ordered() <
    /// b.to_ordered()`.
    fn to_ordered(self) -> Self::Bits;
    /// Decodes ordered bits: returns the key with the ordered bits `bits`.
    fn from_ordered(bits: Self::Bits) -> Self;
}

/// A key that a GPU can merge and sort: an integer or float of 1, 2, 4 or 8 bytes, except `usize` and `isize`. Wrappers
/// of such a key are also keys: [`Descending`](crate::Descending), [`NanLast`](crate::NanLast) and
/// [`NanFirst`](crate::NanFirst). No other type is one.
///
/// Kernels are compiled for keys of 4 and 8 bytes. Keys of 1 and 2 bytes alone are sorted by counting. For all other
/// operations they are widened to 4 bytes, in the workspace, and the result is narrowed.
#[diagnostic::on_unimplemented(
    message = "the GPU has no kernels for keys of type `{Self}`",
    label = "not an integer or a float of 1, 2, 4 or 8 bytes",
    note = "structs and other types are sorted and merged on a GPU by `Stream::sort_by` and its like, whose kernels \
            `kernels_gpu::own` makes"
)]
pub trait GpuKey: GpuSortKey {}

/// A key that a GPU can sort: a [`GpuKey`], `u128` or `i128`, a wrapper of such a key, and no other type.
///
/// Keys of 16 bytes are sorted by their low words, and then by their high words.
#[diagnostic::on_unimplemented(
    message = "the GPU has no kernels for keys of type `{Self}`",
    label = "not an integer or a float of 1, 2, 4, 8 or 16 bytes",
    note = "structs and other types are sorted and merged on a GPU by `Stream::sort_by` and its like, whose kernels \
            `kernels_gpu::own` makes"
)]
pub trait GpuSortKey: Key {}

macro_rules! gpu_key {
    ($trait:ident: $($t:ident)*) => {$(impl $trait for $t {})*};
}
gpu_key!(GpuKey: u8 i8 u16 i16 f16 u32 i32 f32 u64 i64 f64);
gpu_key!(GpuSortKey: u8 i8 u16 i16 f16 u32 i32 f32 u64 i64 f64 u128 i128);

pub(crate) mod sealed {
    #[cfg(feature = "gpu")]
    use crate::gpu::KeyCoding;
    #[cfg(feature = "gpu")]
    use kernels_gpu::key::Coding;
    use std::ops::{BitOr, BitXor, Not, Shl, Shr};

    pub trait Sealed {
        /// The type of the keys' bits.
        type OnGpu: DeviceBits;
        /// The order of the keys as kernels take it.
        #[cfg(feature = "gpu")]
        fn gpu_coding() -> Coding<Self::OnGpu>;
        /// The number of NaNs of one sign; 0 for integers.
        const NANS: u64;
        /// Where NaNs lie in the order of the type.
        const NAN_ORDER: super::NanOrder;
    }

    /// Bits that keys may have in a GPU's memory: an unsigned integer.
    pub trait DeviceBits: kernels_gpu::key::Width + super::Word {
        /// The bits of the kernels that these bits are converted for.
        type Kernels: GpuBits;
        /// This coding, for code that is not generic.
        #[cfg(feature = "gpu")]
        fn key_coding(coding: Coding<Self>) -> KeyCoding;
    }

    macro_rules! device_bits {
        ($($t:ident: $coding:ident, $kernels:ident;)*) => {$(
            impl DeviceBits for $t {
                type Kernels = $kernels;
                #[cfg(feature = "gpu")]
                fn key_coding(coding: Coding<Self>) -> KeyCoding {
                    KeyCoding::$coding(coding)
                }
            }
        )*};
    }
    device_bits! {
        u8: U8, u32;
        u16: U16, u32;
        u32: U32, u32;
        u64: U64, u64;
        u128: U128, u64;
    }

    /// Bits that kernels sort and merge: `u32` or `u64`.
    pub trait GpuBits: kernels_gpu::key::Bits + DeviceBits {}
    impl GpuBits for u32 {}
    impl GpuBits for u64 {}

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
    ($coding:ident, $on_gpu:literal; $($t:ident as $bits:ident: $to_ordered:expr, $from_ordered:expr;)*) => {$(
        impl sealed::Sealed for $t {
            type OnGpu = $bits;
            #[cfg(feature = "gpu")]
            fn gpu_coding() -> Coding<$bits> {
                Coding::$coding
            }
            const NANS: u64 = nans!($t);
            const NAN_ORDER: NanOrder = NanOrder::Total;
        }
        impl Key for $t {
            type Bits = $bits;
            const NAME: &'static str = stringify!($t);
            const ON_GPU: bool = $on_gpu;
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
    NONE, true;
    u8 as u8: |key| key, |bits| bits;
    u16 as u16: |key| key, |bits| bits;
    u32 as u32: |key| key, |bits| bits;
    u64 as u64: |key| key, |bits| bits;
}
key! {
    SIGNED, true;
    i8 as u8: |key: i8| (key ^ i8::MIN) as u8, |bits: u8| bits as i8 ^ i8::MIN;
    i16 as u16: |key: i16| (key ^ i16::MIN) as u16, |bits: u16| bits as i16 ^ i16::MIN;
    i32 as u32: Kernels::to_ordered, Kernels::from_ordered;
    i64 as u64: Kernels::to_ordered, Kernels::from_ordered;
}
key! {
    FLOAT, true;
    f16 as u16: |key: f16| inverted(key.to_bits(), key.is_sign_negative()),
        |bits| f16::from_bits(inverted(bits, bits >> 15 == 0));
    f32 as u32: Kernels::to_ordered, Kernels::from_ordered;
    f64 as u64: Kernels::to_ordered, Kernels::from_ordered;
}
key! {
    NONE, false;
    u128 as u128: |key| key, |bits| bits;
}
key! {
    SIGNED, false;
    i128 as u128: |key: i128| (key ^ i128::MIN) as u128, |bits: u128| bits as i128 ^ i128::MIN;
}
// Numbers of the width of an address, which is 8 bytes.
#[cfg(target_pointer_width = "64")]
key! {
    NONE, true;
    usize as u64: |key| key as u64, |bits| bits as usize;
}
#[cfg(target_pointer_width = "64")]
key! {
    SIGNED, true;
    isize as u64: |key| Kernels::to_ordered(key as i64), |bits| <i64 as Kernels>::from_ordered(bits) as isize;
}

/// Inverts all bits of a negative float, and the sign bit of other floats.
#[inline(always)]
fn inverted(bits: u16, negative: bool) -> u16 {
    bits ^ if negative { u16::MAX } else { 1 << 15 }
}
