//! Tests of the library as its users see it. They are one program, so that the engine is compiled once for each type.

#[macro_use]
mod common;

mod arguments;
mod descending;
mod edges;
mod engine;
mod errors;
mod examples;
mod external;
mod first_unsorted;
mod groups;
#[cfg(target_os = "linux")]
mod memory_limit;
mod merge;
mod nan_order;
mod pools;
mod properties;
mod sort;
mod top_k;
