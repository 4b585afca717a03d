//! What the program says: errors, warnings, decisions, progress and statistics.

pub mod error;
pub mod progress;
pub mod report;
pub mod stats;

pub use error::{Failure, Result};
