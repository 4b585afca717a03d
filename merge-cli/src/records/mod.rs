//! The layout of records, from `--record-size` and `--key`, or from a file's header. `merge_host::records` sorts
//! records.

pub mod layout;

use crate::coding::KeyOrder;
use crate::say::error::{Failure, Result};
pub use layout::Layout;
pub use merge_host::records::RecordKey as Key;

/// The layout of records, and the key that orders them.
#[derive(Clone, Debug)]
pub struct Records {
    pub layout: Layout,
    pub key: Key,
}

impl Records {
    /// Records of this layout in this order. An error if the key is too long.
    pub fn new(layout: Layout, order: KeyOrder) -> Result<Self> {
        let key = layout.key(order);
        key.check(layout.size).map_err(|error| Failure::new(format!("--key: {error}")))?;
        Ok(Self { layout, key })
    }

    /// Whether records with equal first 16 bytes of the key may have different keys.
    pub fn has_long_key(&self) -> bool {
        self.key.size() > size_of::<u128>()
    }
}
