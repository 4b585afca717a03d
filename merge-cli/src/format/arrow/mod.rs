//! Apache Arrow's IPC files and streams with one column of numbers: reading the location of the numbers, and writing.
//!
//! ```text
//! stream   schema │ batch │ batch │ … │ end
//! file     "ARROW1\0\0" │ stream │ footer │ its length, i32 │ "ARROW1"
//!
//! message  ff ff ff ff │ length of the metadata, i32 │ metadata, a FlatBuffer │ body, of a batch: the numbers
//! ```
//!
//! The footer has the schema, and the offset of every batch. The numbers of a batch are contiguous, as in a raw file,
//! so that only the metadata is read here. The crate `arrow-ipc` has the tables of the metadata.

mod column;
mod encoder;
mod layout;
mod message;
mod stream;

pub use column::Column;
pub use encoder::Writer;
pub use layout::Layout;
pub use message::is_stream;
pub use stream::Stream;

/// The first and last bytes of a file. A stream does not have them.
pub const MAGIC: &[u8] = b"ARROW1";
/// Bytes of a file before its first message: [`MAGIC`] and two zeros.
const FILE_HEAD: usize = 8;
/// The first bytes of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of a message before its metadata.
const MESSAGE_HEAD: usize = 8;
/// The longest metadata of a message to read, in bytes. The metadata of one column are far shorter.
const MAX_METADATA: usize = 1 << 20;
/// The longest footer to read, in bytes: the footer of a file with 2.7 million batches.
const MAX_FOOTER: usize = 1 << 26;

#[cfg(test)]
pub mod tests;
