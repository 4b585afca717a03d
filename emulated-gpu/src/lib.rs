//! The functions of the CUDA driver on emulated GPUs, for tests of programs on machines without a GPU.
//!
//! A shared library with this crate and with kernels is a driver: under the name `libcuda.so.1`, in a folder of
//! `LD_LIBRARY_PATH`, a program opens it in place of NVIDIA's. It runs launches in the emulator of `cuda_std`, with
//! all checks of kernels, and can fail at any call. The example `driver` is that library for this repository's kernels.
//!
//! It has the functions that `cust` calls, and those that capture a stream. It differs from NVIDIA's driver in what it
//! checks, and in when work is done:
//!
//! - Work of a stream, copies included, is done late: at the latest by the call that waits for it. Streams that no
//!   event orders take turns at random.
//! - Memory that is freed while work uses it is a fault.
//! - A module is PTX whose entry points are kernels of the library. Machine code is refused.
//! - A kernel's fault is an error of all later calls, as on a GPU, and its text is in the log.
//!
//! # Settings
//! The environment variable `EMULATED_GPU` has settings of the form `name=value`, separated by commas:
//!
//! | name | value | default |
//! | --- | --- | --- |
//! | `devices` | number of GPUs | 1 |
//! | `memory` | bytes of memory of each | 2^30 |
//! | `capability` | compute capability, such as 75 for 7.5 | 90 |
//! | `multiprocessors` | number of multiprocessors of each | 2 |
//! | `seed` | determines the order of work and of threads | the time |
//! | `fail` | `FUNCTION:N:STATUS`: call N of this function, counted from 1, returns this status. May be repeated | |
//! | `log` | a file to which the names of all calls, and faults, are appended | standard error, for faults alone |
//!
//! A status that a GPU does not recover from, such as 700 (illegal address), is returned by all later calls.

mod driver;
mod functions;
mod graph;
mod queue;
mod settings;

pub use functions::*;
