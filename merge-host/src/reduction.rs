//! Operations that reduce the values of equal keys.

use crate::names::names;
use crate::{GpuKey, Key};

/// The operation of [`Engine::reduce_by_key`](crate::Engine::reduce_by_key) on the values of equal keys.
///
/// ```
/// use merge_host::{Engine, Reduction};
///
/// let (keys, values) = ([1, 1, 2], [5.0f32, -3.0, 4.0]);
/// let (engine, mut groups, mut totals) = (Engine::cpu(), Vec::new(), Vec::new());
/// for reduction in Reduction::ALL {
///     engine.reduce_by_key(reduction, (&keys, &values), (&mut groups, &mut totals))?;
///     println!("{reduction}: {totals:?}");
/// }
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum. Integers are added modulo 2^32 or 2^64, and floats are rounded at each addition.
    Sum,
    /// The least value, in total order.
    Min,
    /// The greatest value, in total order.
    Max,
}

names! {
    Reduction, "reduction":
    Sum = "sum",
    Min = "min",
    Max = "max",
}

impl Reduction {
    /// The combination of `first` and `second`.
    pub(crate) fn combine<V: Summand>(self, first: V, second: V) -> V {
        let is_less = Key::to_ordered(second) < Key::to_ordered(first);
        match self {
            Self::Sum => first.plus(second),
            Self::Min => {
                if is_less {
                    second
                } else {
                    first
                }
            }
            Self::Max => {
                if is_less {
                    first
                } else {
                    second
                }
            }
        }
    }
}

/// A number that can be added: `u32`, `i32`, `f32`, `u64`, `i64` or `f64`, and no other type.
pub trait Summand: GpuKey + sealed::Sealed {
    /// The sum. Integers are added modulo 2^32 or 2^64.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! summand {
    ($($t:ident: $plus:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Summand for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                ($plus)(self, other)
            }
        }
    )*};
}
summand! {
    u32: u32::wrapping_add;
    i32: i32::wrapping_add;
    f32: |x, y| x + y;
    u64: u64::wrapping_add;
    i64: i64::wrapping_add;
    f64: |x, y| x + y;
}
