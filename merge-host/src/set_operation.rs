//! Set operations on sorted arrays.

use crate::names::names;

/// The keys of two sorted arrays A and B to keep, as in C++'s `std::set_union` and its siblings.
///
/// The arrays are multisets. A key that occurs m times in A and n times in B occurs in the result:
///
/// | operation | times |
/// | --- | --- |
/// | [`Union`](Self::Union) | max(m, n) |
/// | [`Intersection`](Self::Intersection) | min(m, n) |
/// | [`Difference`](Self::Difference) | max(m − n, 0) |
/// | [`SymmetricDifference`](Self::SymmetricDifference) | \|m − n\| |
///
/// Other operations follow from these four, with A and B exchanged or merged.
///
/// ```
/// use merge_host::{Engine, SetOperation};
///
/// let (engine, mut out) = (Engine::cpu(), Vec::new());
/// for operation in SetOperation::ALL {
///     engine.set_operation(operation, &[1, 2, 2, 2], &[2, 3], &mut out)?;
///     println!("{operation}: {out:?}");
/// }
/// assert_eq!("union".parse(), Ok(SetOperation::Union));
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOperation {
    /// Keys of A or B.
    Union,
    /// Keys of both A and B.
    Intersection,
    /// Keys of A that are not in B.
    Difference,
    /// Keys of A or of B that are not in the other array.
    SymmetricDifference,
}

names! {
    SetOperation, "set operation":
    Union = "union",
    Intersection = "intersection",
    Difference = "difference",
    SymmetricDifference = "symmetric-difference",
}

impl SetOperation {
    /// The greatest number of keys of a result, for `a` keys of A and `b` of B.
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

    /// The keys that this operation keeps.
    pub(crate) const fn kept(self) -> Kept {
        let (a_alone, partners, b_alone) = match self {
            Self::Union => (true, true, true),
            Self::Intersection => (false, true, false),
            Self::Difference => (true, false, false),
            Self::SymmetricDifference => (true, false, true),
        };
        Kept { a_alone, partners, b_alone }
    }
}

/// The keys that an operation keeps. Each key of A is paired with an equal key of B, while there are any.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// Keys of A without a partner.
    pub a_alone: bool,
    /// One key of each pair of partners.
    pub partners: bool,
    /// Keys of B without a partner.
    pub b_alone: bool,
}

impl Kept {
    /// The number of keys kept of `a` keys of A and `b` keys of B with `partners` pairs of partners.
    pub const fn count(self, a: usize, b: usize, partners: usize) -> usize {
        let (a_alone, b_alone) = (a - partners, b - partners);
        self.a_alone as usize * a_alone + self.partners as usize * partners + self.b_alone as usize * b_alone
    }
}
