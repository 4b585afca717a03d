//! The layout of records, from `--record-size` and `--key`, or from a file's header. `merge_host::records` sorts
//! records.

pub mod layout;

pub use layout::Layout;
pub use merge_host::records::RecordKey as Key;
