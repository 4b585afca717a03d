//! Indices of keys: `u32`, `u64` or `usize`.

use crate::Error;

/// The index of a key, counted from 0: `u32`, `u64` or `usize`, and no other type.
pub trait Index: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// The index with this value. A `u32` takes the low 32 bits.
    fn from_usize(index: usize) -> Self;
    /// The value of this index.
    fn to_usize(self) -> usize;
}

pub(crate) mod sealed {
    pub trait Sealed {
        /// The type's name.
        const NAME: &'static str;
        /// The number of values of the type.
        const COUNT: u128;
    }
}

macro_rules! index {
    ($($t:ident)*) => {$(
        impl sealed::Sealed for $t {
            const NAME: &'static str = stringify!($t);
            const COUNT: u128 = $t::MAX as u128 + 1;
        }
        impl Index for $t {
            #[inline(always)]
            fn from_usize(index: usize) -> Self {
                index as $t
            }
            #[inline(always)]
            fn to_usize(self) -> usize {
                self as usize
            }
        }
    )*};
}
index!(u32 u64 usize);

/// Checks that `I` has a value for the index of each of `keys` keys.
pub(crate) fn check_index_range<I: Index>(keys: usize) -> Result<(), Error> {
    if keys as u128 <= I::COUNT {
        return Ok(());
    }
    Err(Error::TooManyKeys { found: keys, most: I::COUNT as usize, index: I::NAME })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_4_bytes_are_enough_for_2_to_the_32_keys() {
        assert_eq!(check_index_range::<u32>(1 << 32), Ok(()));
        assert_eq!(check_index_range::<u64>(usize::MAX), Ok(()));
        let error = check_index_range::<u32>((1 << 32) + 1).unwrap_err();
        assert_eq!(error, Error::TooManyKeys { found: (1 << 32) + 1, most: 1 << 32, index: "u32" });
        assert_eq!(error.to_string(), "there are 4294967297 keys, but u32 indices allow at most 4294967296");
    }
}
