//! The types that one load or store instruction moves.

/// A plain number that one instruction loads or stores, or `()`, for arrays without values.
///
/// Every bit pattern is valid, so that any memory of the right size can be read as such a number.
pub trait Word: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The value in the low `size_of::<Self>()` bytes of a register.
    fn from_register(bits: u64) -> Self;
    /// The value in the low bytes of a register. The other bytes are 0.
    fn to_register(self) -> u64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! word {
    ($($t:ty: $from:expr, $to:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Word for $t {
            #[inline(always)]
            fn from_register(bits: u64) -> Self {
                ($from)(bits)
            }
            #[inline(always)]
            fn to_register(self) -> u64 {
                ($to)(self)
            }
        }
    )*};
}
word! {
    (): |_| (), |()| 0;
    u8: |b| b as u8, |v| v as u64;
    i8: |b| b as u8 as i8, |v: i8| v as u8 as u64;
    u16: |b| b as u16, |v| v as u64;
    i16: |b| b as u16 as i16, |v: i16| v as u16 as u64;
    u32: |b| b as u32, |v| v as u64;
    i32: |b| b as u32 as i32, |v: i32| v as u32 as u64;
    f32: |b| f32::from_bits(b as u32), |v: f32| v.to_bits() as u64;
    u64: |b| b, |v| v;
    i64: |b| b as i64, |v: i64| v as u64;
    f64: f64::from_bits, f64::to_bits;
    usize: |b| b as usize, |v: usize| v as u64;
}
