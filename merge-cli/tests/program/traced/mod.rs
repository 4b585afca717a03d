//! Tests that see every system call of a run on a file, and may let one fail.

mod calls;
mod disk;
mod faults;
mod order;
mod tracer;
