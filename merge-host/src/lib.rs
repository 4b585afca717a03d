//! Merge, batch merge and sort of arrays of numbers, on an NVIDIA GPU or on all CPU cores.
//!
//! An [`Engine`] is where the work is done. All of its functions take and give slices in host memory:
//!
//! ```
//! use merge_host::Engine;
//!
//! let engine = Engine::auto();
//! let (a, b) = ([1.5f32, 3.0, 8.0], [-2.0f32, 3.5]);
//! let mut out = [0.0; 5];
//! engine.merge(&a, &b, &mut out)?;
//! assert_eq!(out, [-2.0, 1.5, 3.0, 3.5, 8.0]);
//!
//! let mut keys = [5u64, 1, 4, 1];
//! engine.sort(&mut keys)?;
//! assert_eq!(keys, [1, 1, 4, 5]);
//! # Ok::<(), merge_host::Error>(())
//! ```
//!
//! Keys may have values, which go along with them: [`Engine::sort_pairs`], [`Engine::merge_pairs`]. A sort is ascending or
//! descending, [`Engine::sort_with`], and it may leave the keys where they are and tell their places in order,
//! [`Engine::argsort`]. Many pairs of short runs are merged by one
//! call, whether they are all of one length, [`Engine::merge_batch`], or of any, [`Engine::merge_ragged`]; both take
//! values too. Any number of runs are merged to one, [`Engine::merge_many`], and segments are sorted each on its own,
//! [`Engine::sort_segments`]. Sorted arrays are also sets, or multisets:
//! [`Engine::set_operation`].
//!
//! What does not fit in memory is sorted and merged by the module [`external`].
//!
//! # Order
//!
//! Twelve types are keys (see [`Key`]): `u8`, `i8`, `u16`, `i16`, [`f16`](struct@f16), `u32`, `i32`, `f32`, `u64`, `i64`,
//! `f64` and `u128`. Integers are in their usual order and floats in IEEE 754's total order, the one of
//! [`f32::total_cmp`]: −NaN, −∞, …, −0.0, +0.0, …, +∞, +NaN. Every key comes out with the very bits it went in with, the
//! payload of a NaN and the sign of a zero included.
//!
//! The GPU has kernels for types of 4 and 8 bytes (see [`GpuKey`]); keys of the others are for the CPU.
//!
//! Every merge and every sort is stable: equal keys keep the order A before B, and the input's order within each.
//!
//! # Features
//!
//! `gpu` (on by default) is the GPU engine. Without it, [`Engine::gpu`] and [`devices`] give
//! [`Error::NoGpuSupport`] and [`Engine::auto`] is the CPU engine. With it, a program still starts on a machine that
//! has no NVIDIA driver: the driver is opened at the first call.

mod cpu;
mod device;
mod engine;
mod error;
pub mod external;
#[cfg(feature = "gpu")]
mod gpu;
mod index;
mod key;
mod merge_kernel;
pub mod permutation;
mod set_operation;
mod sort_order;
mod sorted;
mod unique;
mod word;

#[cfg(feature = "gpu")]
pub use cust;
pub use device::{DeviceInfo, devices, driver_version};
pub use engine::{Engine, EngineKind, MAX_BATCH_LENGTH, Timing};
pub use error::Error;
#[cfg(feature = "gpu")]
pub use gpu::{BatchKernel, Gpu, kernel_modules};
#[doc(no_inline)]
pub use half::f16;
pub use index::Index;
pub use key::{GpuKey, Key};
pub use merge_kernel::MergeKernel;
pub use set_operation::SetOperation;
pub use sort_order::SortOrder;
pub use sorted::first_unsorted;
pub use unique::{unique, unique_indices};
pub use word::Word;
