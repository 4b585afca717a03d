//! The types of the driver's header.

use crate::error::{CudaError, CudaResult};
use std::ffi::{c_int, c_void};

/// The number of a GPU.
pub type CUdevice = c_int;

/// An address in a GPU's memory.
pub type CUdeviceptr = u64;

/// The status that every function of the driver returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[must_use]
pub struct CUresult(pub c_int);

impl CUresult {
    /// The call has succeeded.
    pub const CUDA_SUCCESS: Self = Self(0);
    /// There is no GPU. Functions of this crate also return it if there is no driver.
    pub const CUDA_ERROR_NO_DEVICE: Self = Self(100);
    /// There is nothing of this name. Functions of this crate also return it if the driver does not have them.
    pub const CUDA_ERROR_NOT_FOUND: Self = Self(500);

    /// The status as a `Result`.
    ///
    /// # Errors
    /// The status, unless it is [`CUDA_SUCCESS`](Self::CUDA_SUCCESS).
    pub const fn to_result(self) -> CudaResult<()> {
        match self {
            Self::CUDA_SUCCESS => Ok(()),
            status => Err(CudaError(status)),
        }
    }
}

/// Defines types of handles.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub *mut c_void);

        impl $name {
            /// The handle of nothing.
            pub const NULL: Self = Self(std::ptr::null_mut());
        }

        // SAFETY: a handle is a number that only the driver reads. Calls that take it are `unsafe`, and the driver
        // accepts it from every thread.
        unsafe impl Send for $name {}
        // SAFETY: a shared handle can only be copied, and a copy may be sent.
        unsafe impl Sync for $name {}
    )*};
}

handles! {
    /// A context: the state of a program on a GPU.
    CUcontext;
    /// A module that has been loaded into a context.
    CUmodule;
    /// A kernel of a module.
    CUfunction;
    /// A stream. 0, 1 and 2 are default streams.
    CUstream;
    /// An event.
    CUevent;
}
