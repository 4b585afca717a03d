//! Tests of the kernels, in the emulator. They are one program, so that what they share is compiled once.

#[macro_use]
mod common;

mod bank_conflicts;
mod batch;
mod co_rank;
mod course_sort;
mod divide;
mod functions;
mod keys;
mod look_back;
mod merge;
mod misprints;
mod multiway_co_rank;
mod narrow;
mod pairs;
mod printed;
mod radix;
mod slides;
mod sort;
mod stability;
