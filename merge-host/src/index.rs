//! Places of keys, as numbers of 4 or 8 bytes.

use crate::Error;

/// The place of a key, counted from 0: `u32` or `u64`, and no other type.
pub trait Index: bytemuck::Pod + Send + Sync + sealed::Sealed {}

pub(crate) mod sealed {
    pub trait Sealed {
        /// The type's name.
        const NAME: &'static str;
        /// How many places it can tell apart.
        const PLACES: u128;
        /// The place `place`, which is below `PLACES`.
        fn new(place: usize) -> Self;
        /// The place.
        fn place(self) -> usize;
    }
}

macro_rules! index {
    ($($t:ident)*) => {$(
        impl sealed::Sealed for $t {
            const NAME: &'static str = stringify!($t);
            const PLACES: u128 = $t::MAX as u128 + 1;
            #[inline(always)]
            fn new(place: usize) -> Self {
                place as $t
            }
            #[inline(always)]
            fn place(self) -> usize {
                self as usize
            }
        }
        impl Index for $t {}
    )*};
}
index!(u32 u64);

/// Checks that `I` can tell the places of so many keys apart.
pub(crate) fn check_places<I: Index>(keys: usize) -> Result<(), Error> {
    if keys as u128 <= I::PLACES {
        return Ok(());
    }
    Err(Error::TooManyKeys { found: keys, most: I::PLACES as usize, index: I::NAME })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_4_bytes_are_enough_for_2_to_the_32_keys() {
        assert_eq!(check_places::<u32>(1 << 32), Ok(()));
        assert_eq!(check_places::<u64>(usize::MAX), Ok(()));
        let error = check_places::<u32>((1 << 32) + 1).unwrap_err();
        assert_eq!(error, Error::TooManyKeys { found: (1 << 32) + 1, most: 1 << 32, index: "u32" });
        assert_eq!(error.to_string(), "there are 4294967297 keys, u32 indices are enough for 4294967296");
    }
}
