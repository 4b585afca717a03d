//! Devices, contexts, streams, events, modules and memory of NVIDIA GPUs, by the CUDA driver.
//!
//! The crate has the parts of Rust-CUDA's `cust` that `merge-host` uses, with the same names where the two do the same.
//! It needs no CUDA toolkit, and no driver to build or to start a program: the first call opens the driver's library.
//! On a machine without a driver, every call returns [`CudaError::NO_DEVICE`](error::CudaError::NO_DEVICE).
//!
//! ```
//! use cust::device::Device;
//! use cust::error::CudaError;
//!
//! match cust::init() {
//!     Ok(()) => println!("{} GPUs", Device::num_devices()?),
//!     Err(error) => println!("no GPU: {error}"),
//! }
//! # Ok::<(), CudaError>(())
//! ```
//!
//! Most functions need a current context, and return an error if there is none.
//! [`CurrentContext::set_current`](context::CurrentContext::set_current) makes a context current on the calling thread.
//!
//! | module | contents |
//! | --- | --- |
//! | [`device`] | the GPUs of the machine and their properties |
//! | [`context`] | a GPU's primary context, and the context that is current on a thread |
//! | [`stream`], [`event`] | queues of work, and points in them |
//! | [`module`], [`function`] | compiled kernels and their launches |
//! | [`memory`] | memory of a GPU, page-locked memory of the host, and copies |
//! | [`error`] | the driver's errors |
//! | [`sys`] | the driver's functions themselves |

pub mod context;
pub mod device;
pub mod error;
pub mod event;
pub mod function;
pub mod memory;
pub mod module;
pub mod stream;
pub mod sys;

use error::{CudaError, CudaResult};
use std::ffi::CString;

/// Initialises the driver. Every program calls this before any other function. Later calls do nothing.
///
/// # Errors
/// [`CudaError::NO_DEVICE`] if there is no driver or no GPU. Other errors of the driver.
pub fn init() -> CudaResult<()> {
    // SAFETY: the function takes no pointer. It defines no flags.
    unsafe { sys::cuInit(0) }.to_result()
}

/// The major and the minor version of CUDA that the driver supports, such as (13, 0).
///
/// # Errors
/// The driver's.
pub fn driver_version() -> CudaResult<(u32, u32)> {
    let mut version = 0;
    // SAFETY: the driver writes one number, to `version`.
    unsafe { sys::cuDriverGetVersion(&mut version) }.to_result()?;
    let version = version as u32;
    Ok((version / 1000, version % 1000 / 10))
}

/// A text for the driver, which ends with a zero byte.
fn c_string(text: &str) -> CudaResult<CString> {
    CString::new(text).map_err(|_| CudaError::INVALID_VALUE)
}
