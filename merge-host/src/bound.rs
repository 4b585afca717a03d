//! Which bound of a needle.

use crate::names::names;

/// Which bound of a needle among sorted keys.
///
/// ```
/// use merge_host::Bound;
///
/// assert_eq!("lower".parse(), Ok(Bound::Lower));
/// assert_eq!(Bound::Upper.to_string(), "upper");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The number of keys that are less: the index of the first key that is not less, as C++'s `std::lower_bound`.
    Lower,
    /// The number of keys that are less or equal: the index of the first greater key, as C++'s `std::upper_bound`.
    Upper,
}

names! {
    Bound, "bound":
    Lower = "lower",
    Upper = "upper",
}
