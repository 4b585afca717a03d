//! The layout of records: what `--record-size`, `--key` or a file's header say of them. `merge_host::records` sorts
//! them.

pub mod layout;

pub use layout::Layout;
pub use merge_host::records::RecordKey as Key;
