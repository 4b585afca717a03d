//! Which keys of two sorted arrays to keep.

use std::fmt;

/// Which keys of two sorted arrays A and B to keep, as C++'s `std::set_union` and so on do.
///
/// The arrays may hold a key more than once. Of one that is m times in A and n times in B there are so many in the result:
///
/// | operation | times |
/// | --- | --- |
/// | [`Union`](Self::Union) | max(m, n) |
/// | [`Intersection`](Self::Intersection) | min(m, n) |
/// | [`Difference`](Self::Difference) | max(m − n, 0) |
/// | [`SymmetricDifference`](Self::SymmetricDifference) | \|m − n\| |
///
/// ```
/// use merge_host::{Engine, SetOperation};
///
/// let (engine, mut out) = (Engine::cpu(), Vec::new());
/// for operation in SetOperation::ALL {
///     engine.set_operation(operation, &[1, 2, 2, 2], &[2, 3], &mut out)?;
///     println!("{operation}: {out:?}");
/// }
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOperation {
    /// Keys that are in A or in B.
    Union,
    /// Keys that are in both.
    Intersection,
    /// Keys that are in A and not in B.
    Difference,
    /// Keys that are in one of the two and not in the other.
    SymmetricDifference,
}

impl SetOperation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Union, Self::Intersection, Self::Difference, Self::SymmetricDifference];

    /// "union", "intersection", "difference" or "symmetric-difference".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Union => "union",
            Self::Intersection => "intersection",
            Self::Difference => "difference",
            Self::SymmetricDifference => "symmetric-difference",
        }
    }

    /// The most keys that the result can have, for `a` keys of A and `b` of B.
    ///
    /// ```
    /// use merge_host::SetOperation;
    ///
    /// assert_eq!(SetOperation::Union.most_keys(5, 3), 8);
    /// assert_eq!(SetOperation::Intersection.most_keys(5, 3), 3);
    /// assert_eq!(SetOperation::Difference.most_keys(5, 3), 5);
    /// ```
    pub const fn most_keys(self, a: usize, b: usize) -> usize {
        match self {
            Self::Union | Self::SymmetricDifference => a.saturating_add(b),
            Self::Intersection => {
                if a < b {
                    a
                } else {
                    b
                }
            }
            Self::Difference => a,
        }
    }

    /// What is kept.
    pub(crate) const fn kept(self) -> Kept {
        let (a_alone, pairs, b_alone) = match self {
            Self::Union => (true, true, true),
            Self::Intersection => (false, true, false),
            Self::Difference => (true, false, false),
            Self::SymmetricDifference => (true, false, true),
        };
        Kept { a_alone, pairs, b_alone }
    }
}

impl fmt::Display for SetOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Every key of A has an equal one of B as its partner while there are any. What to keep of each kind.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// A key of A that has no partner.
    pub a_alone: bool,
    /// One key of each pair of partners.
    pub pairs: bool,
    /// A key of B that has no partner.
    pub b_alone: bool,
}

impl Kept {
    /// How many keys are kept of `a` and `b` keys, of which so many are `pairs`.
    pub const fn count(self, a: usize, b: usize, pairs: usize) -> usize {
        self.a_alone as usize * (a - pairs) + self.pairs as usize * pairs + self.b_alone as usize * (b - pairs)
    }
}
