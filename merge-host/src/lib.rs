//! Merge, batch merge and sort of arrays of numbers, on one or several NVIDIA GPUs or on all CPU cores.
//!
//! An [`Engine`] does the work. Its methods take keys in host memory, alone or with a value for each:
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
//! let (mut keys, mut values) = (vec![5u64, 1, 4], ["five", "one", "four"]);
//! engine.sort((&mut keys, &mut values))?;
//! assert_eq!((keys, values), (vec![1, 4, 5], ["one", "four", "five"]));
//! # Ok::<(), merge_host::Error>(())
//! ```
//!
#![doc = include_str!("guide.md")]
//!
//! # Tasks
//!
//! | task | methods |
//! | --- | --- |
//! | sort, ascending or as [`SortOptions`] say | [`sort`](Engine::sort), [`sort_with`](Engine::sort_with) |
//! | sort keys that come from a file and go to one | [`sort_streamed`](Engine::sort_streamed) |
//! | find the permutation that sorts keys | [`argsort`](Engine::argsort) |
//! | sort each segment of an array | [`sort_segments`](Engine::sort_segments) |
//! | select the first keys of each segment | [`top_k_segments`](Engine::top_k_segments) |
//! | merge two runs | [`merge`](Engine::merge), [`merge_with`](Engine::merge_with) |
//! | merge any number of runs | [`merge_many`](Engine::merge_many) |
//! | solve many merge problems of one length | [`merge_batch`](Engine::merge_batch) |
//! | solve many merge problems of any lengths | [`merge_ragged`](Engine::merge_ragged) |
//! | merge any number of runs in each of many groups | [`merge_many_ragged`](Engine::merge_many_ragged) |
//! | sort elements of any type by a key | [`sort_by_key`](Engine::sort_by_key) |
//! | sort elements of any type by a string | [`sort_by_bytes`](Engine::sort_by_bytes) |
//! | make the permutation that sorts strings | [`argsort_by_bytes`](Engine::argsort_by_bytes) |
//! | sort elements of any type by a comparison | [`sort_by`](Engine::sort_by) |
//! | find the permutation that sorts elements of any type by a key | [`argsort_by_key`](Engine::argsort_by_key) |
//! | find the permutation by a comparison | [`sort_by`](Engine::sort_by) of [indices](permutation::fill_identity) |
//! | merge two runs of elements of any type | [`merge_by`](Engine::merge_by) |
//! | sort values of any type by separate keys | [`sort_owned`](Engine::sort_owned) |
//! | unite, intersect or subtract sorted arrays | [`set_operation`](Engine::set_operation) |
//! | keep each key of a sorted array once | [`unique`](Engine::unique) |
//! | sort keys and keep each once | [`sort_unique`](Engine::sort_unique) |
//! | count equal keys of a sorted array | [`run_lengths`](Engine::run_lengths) |
//! | reduce the values of equal keys of a sorted array | [`reduce_by_key`](Engine::reduce_by_key) |
//! | find sorted needles in sorted keys | [`bounds`](Engine::bounds) |
//! | find the first keys of the order | [`top_k`](Engine::top_k), also with their indices |
//! | find the first keys of an input that comes in parts | [`TopK`] |
//! | work on several GPUs | [`gpu`](Engine::gpu), [`auto_with`](Engine::auto_with) |
//!
//! A run is an ascending array of keys. A descending run is an ascending array of [`Descending`] keys. The value of a
//! key is the element with the same index in a second array: see [`Elements`].
//!
//! | task | module |
//! | --- | --- |
//! | sort and merge more keys than memory holds | [`external`] |
//! | find exact splits of sorted runs in any memory | [`splits`] |
//! | apply the result of an argsort | [`permutation`] |
//! | sort records of bytes by fields | [`records`] |
//! | run loops over blocks on all threads | [`parallel`] |
//!
//! # Order
//!
//! Fifteen types are keys (see [`Key`]): the twelve integers of the language, and the floats [`f16`](struct@f16), `f32`
//! and `f64`. Integers are in their usual order. Floats are in IEEE 754's total
//! order, as by [`f32::total_cmp`]: −NaN, −∞, …, −0.0, +0.0, …, +∞, +NaN. The bits of every key are preserved,
//! including the payload of a NaN and the sign of a zero. [`SortOptions::nans`] has all NaNs of a sort at one end, and
//! [`NanLast`] and [`NanFirst`] are keys in such an order for every operation.
//!
//! A GPU merges and sorts keys of 1 to 8 bytes (see [`GpuKey`]), and sorts keys of 16 bytes. The CPU merges these, and
//! handles elements of any type that a [`SortKey`] or a comparison orders.
//!
//! Every merge and every sort is stable: equal keys keep the order of the input. In a merge, equal keys of an earlier
//! run precede keys of a later run.
//!
//! # Features
//!
//! `gpu` (enabled by default) is the GPU engine. Without it, [`Engine::gpu`] and [`devices`] return
//! [`Error::NoGpuSupport`], and [`Engine::auto`] and [`Engine::auto_with`] return a CPU engine.
//! It needs no CUDA toolkit and no settings to build. A program that is built with it also starts on a machine without
//! an NVIDIA driver: the first call that needs the driver opens it.
//!
//! `external` has the modules [`external`] and [`records`].
//!
//! # Versions
//!
//! Versions follow semantic versioning. Rust 1.95 is the minimum, and a later minimum comes with a new minor version.

#![cfg_attr(feature = "gpu", doc = include_str!("gpu/overview.md"))]

pub mod allocation;
mod batch_kernel;
mod bound;
mod cpu;
mod descending;
mod device;
mod elements;
mod engine;
mod engine_kind;
mod error;
#[cfg(feature = "external")]
pub mod external;
#[cfg(feature = "gpu")]
mod gpu;
mod index;
#[cfg(feature = "instances")]
mod instances;
mod key;
mod key_order;
mod merge_kernel;
mod names;
mod nan_order;
pub mod parallel;
pub mod permutation;
mod pool;
mod reason;
#[cfg(feature = "external")]
pub mod records;
mod reduction;
mod set_operation;
mod sort_kernel;
mod sort_key;
mod sort_options;
mod sort_order;
mod sorted;
pub mod splits;
mod timing;
mod unique;
mod word;

pub use batch_kernel::BatchKernel;
pub use bound::Bound;
pub use descending::{Descending, descending, descending_mut};
pub use device::{DeviceInfo, devices, driver_version};
pub use elements::{Elements, ElementsMut};
pub use engine::{COSTS, CostModel, Engine, Gpus, MAX_BATCH_LENGTH, TopK, Work};
pub use engine_kind::EngineKind;
pub use error::{Cause, Error};
#[cfg(all(feature = "gpu", feature = "emulator"))]
pub use gpu::emulated;
#[cfg(all(feature = "gpu", feature = "emulator"))]
#[doc(hidden)]
pub use gpu::launches;
#[cfg(feature = "gpu")]
pub use gpu::{
    Counted, DeviceArray, DeviceElements, DeviceElementsMut, DeviceInOut, DeviceInput, DeviceOffsets, DeviceOutput,
    Event, Gpu, GpuGroup, GroupElements, GroupElementsMut, Runs, Segments, Stream, kernel_modules, workspace,
};
#[doc(no_inline)]
pub use half::f16;
pub use index::{Index, SelectedAs};
#[cfg(feature = "instances")]
#[doc(hidden)]
pub use instances::instances;
pub use key::{GpuKey, GpuSortKey, Key};
pub use merge_kernel::MergeKernel;
pub use nan_order::{NanFirst, NanLast, NanOrder, nan_first, nan_first_mut, nan_last, nan_last_mut};
pub use reason::Reason;
pub use reduction::{Reduction, Summand};
pub use set_operation::SetOperation;
pub use sort_kernel::SortKernel;
pub use sort_key::SortKey;
pub use sort_options::SortOptions;
pub use sort_order::SortOrder;
pub use sorted::first_unsorted;
pub use timing::Timing;
pub use unique::{unique, unique_indices};
pub use word::Word;

/// The programs of the README, which `cargo test --doc` compiles.
#[cfg(all(doctest, feature = "gpu"))]
#[doc = include_str!("../../README.md")]
mod readme {}

/// Returns the memory that sorts on the CPU have kept for later calls to the system: up to 64 MiB in the whole process.
///
/// The system zeroes each page that a program gets. That takes longer than a sort of the keys on the page. Therefore
/// scratch memory is kept when a sort ends, and the next sort uses it.
///
/// ```
/// let mut keys = vec![3u64; 100_000];
/// merge_host::Engine::cpu().sort(&mut keys)?;
/// merge_host::release_memory();
/// # Ok::<(), merge_host::Error>(())
/// ```
pub fn release_memory() {
    cpu::scratch::release();
}

/// The environment variable that limits the vector instructions of the CPU, and its valid values. Without it, the best
/// instructions of the processor are used. The variable is read once. With another value, every call that works on the
/// CPU fails with [`Error::Vectors`].
///
/// ```
/// assert_eq!(merge_host::VECTORS, ("MERGE_HOST_VECTORS", ["none", "avx2", "avx512"]));
/// ```
pub const VECTORS: (&str, [&str; 3]) = ("MERGE_HOST_VECTORS", ["none", "avx2", "avx512"]);
