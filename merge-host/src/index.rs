//! Indices of keys: `u32`, `u64` or `usize`.

use crate::Error;

/// The index of a key, counted from 0: `u32`, `u64` or `usize`, and no other type.
pub trait Index: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// The index with this value. A `u32` takes the low 32 bits.
    fn from_usize(index: usize) -> Self;
    /// The value of this index.
    fn to_usize(self) -> usize;
}

/// Values that a selection of the first keys writes as values of type `V`: values as they are, and for keys alone the
/// keys' indices, `u32`, `u64` or `usize`.
#[diagnostic::on_unimplemented(
    message = "the first of keys with values `{Self}` cannot have values `{V}`: expected `{Self}`, or `u32`, `u64` or \
        `usize` for the indices of keys alone"
)]
pub trait SelectedAs<V>: sealed::SelectedAs<V> {}

impl<V: Copy> SelectedAs<V> for V {}
impl<I: Index> SelectedAs<I> for () {}

impl<V: Copy> sealed::SelectedAs<V> for V {
    #[cfg(feature = "gpu")]
    const NAME: &'static str = "values of out";

    #[inline(always)]
    fn selected(values: &[V], i: usize) -> V {
        values[i]
    }

    fn check_range(_: usize) -> Result<(), Error> {
        Ok(())
    }
}

impl<I: Index> sealed::SelectedAs<I> for () {
    #[cfg(feature = "gpu")]
    const NAME: &'static str = "indices";

    #[inline(always)]
    fn selected(_: &[()], i: usize) -> I {
        I::from_usize(i)
    }

    fn check_range(keys: usize) -> Result<(), Error> {
        check_index_range::<I>(keys)
    }
}

pub(crate) mod sealed {
    use crate::Error;

    pub trait Sealed {
        /// The type's name.
        const NAME: &'static str;
        /// The number of values of the type.
        const COUNT: u128;
    }

    pub trait SelectedAs<V>: Sized {
        /// The name of the written values in messages.
        #[cfg(feature = "gpu")]
        const NAME: &'static str;

        /// The value of the key with index `i`, of keys with these values.
        fn selected(values: &[Self], i: usize) -> V;

        /// Checks that the written values can be indices of `keys` keys, if they are indices.
        fn check_range(keys: usize) -> Result<(), Error>;
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
