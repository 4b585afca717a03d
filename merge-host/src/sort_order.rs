//! The order of a sort.

use crate::names::names;

/// The order of a sort.
///
/// A sort is stable in either order: equal keys keep the order of the input.
///
/// ```
/// use merge_host::{Engine, SortOrder};
///
/// let mut keys = [2, 3, 1];
/// Engine::auto().sort_with(SortOrder::Descending, &mut keys)?;
/// assert_eq!(keys, [3, 2, 1]);
/// assert_eq!(SortOrder::default(), SortOrder::Ascending);
/// assert_eq!("descending".parse(), Ok(SortOrder::Descending));
/// assert_eq!(SortOrder::Descending.to_string(), "descending");
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SortOrder {
    /// From the least key to the greatest.
    #[default]
    Ascending,
    /// From the greatest key to the least.
    Descending,
}

names! {
    SortOrder, "order":
    Ascending = "ascending",
    Descending = "descending",
}
