//! Byte order.

use clap::ValueEnum;

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Endian {
    /// The least significant byte first
    Little,
    /// The most significant byte first
    Big,
}
