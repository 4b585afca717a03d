//! Unsigned numbers that encode keys of every type.

use crate::Key;
use crate::key::sealed::Bits;

/// An unsigned number that external sorts use as a key: `u8`, `u16`, `u32`, `u64` or `u128`, and no other type.
///
/// [`Key::to_ordered`] encodes a key of any type as a word of the same size, and keeps the order. [`Key::from_ordered`]
/// decodes it. The complement `!word` reverses the order.
///
/// ```
/// use merge_host::{Key, Word};
///
/// fn encode<K: Key<Bits = W>, W: Word>(keys: &[K]) -> Vec<W> {
///     keys.iter().map(|key| key.to_ordered()).collect()
/// }
/// assert!(encode(&[-1.5f32, -0.0, 0.0, 2.0]).is_sorted());
/// ```
pub trait Word: Key<Bits = Self> + Ord + Bits {}

macro_rules! word {
    ($($t:ty)*) => {$(impl Word for $t {})*};
}
word!(u8 u16 u32 u64 u128);
