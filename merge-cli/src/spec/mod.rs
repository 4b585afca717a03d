//! Values that the command line is made of, each with how it is written: leaves that import nothing of this program.

mod choice;
mod endian;
mod field;
mod key_type;
mod memory_size;

pub use choice::{Distribution, EngineChoice, Format, Kernel, SortKernel, StatsFormat, When};
pub use endian::Endian;
pub use field::{FieldType, KeyField, Location};
pub use key_type::{KeyType, Kind};
pub use memory_size::MemorySize;
