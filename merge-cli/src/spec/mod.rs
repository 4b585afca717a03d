//! Types of the values on the command line, with their syntax. These modules import nothing else of this program.

mod choice;
mod devices;
mod endian;
mod field;
mod key_type;
mod memory_size;
mod number;

pub use choice::{
    Compression, Distribution, EngineChoice, Format, Kernel, NanOrder, Processors, SortKernel, StatsFormat, When,
};
pub use devices::Devices;
pub use endian::Endian;
pub use field::{FieldType, KeyField, KeyFields, Location, quoted};
pub use key_type::{KeyType, Kind};
pub use memory_size::MemorySize;
pub use number::number;
