//! The driver's errors.

use crate::sys::{self, CUresult};
use std::error::Error;
use std::ffi::{CStr, c_char};
use std::{fmt, ptr};

/// The result of a call of the driver.
pub type CudaResult<T> = Result<T, CudaError>;

/// An error of the driver: a status other than success. Its text is the driver's description, followed by the name of
/// the status.
///
/// The constants are the errors that callers have to distinguish. Any other status of the driver is a value, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CudaError(pub(crate) CUresult);

impl CudaError {
    /// An argument is out of range.
    pub const INVALID_VALUE: Self = Self(CUresult(1));
    /// There is too little memory.
    pub const OUT_OF_MEMORY: Self = Self(CUresult(2));
    /// There is no GPU, or no driver.
    pub const NO_DEVICE: Self = Self(CUresult::CUDA_ERROR_NO_DEVICE);
    /// A kernel has accessed an address that is not in its memory.
    pub const ILLEGAL_ADDRESS: Self = Self(CUresult(700));
    /// The context can access the memory of the other GPU already.
    pub const PEER_ACCESS_ALREADY_ENABLED: Self = Self(CUresult(704));
    /// The GPU can access the memory of no further GPU.
    pub const TOO_MANY_PEERS: Self = Self(CUresult(711));

    /// The number of the status, such as 700 for `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub const fn code(self) -> u32 {
        self.0.0 as u32
    }

    /// The text that one of the driver's functions has for this status. `None` if the driver is missing, or older than
    /// the status.
    fn ask(self, function: unsafe fn(CUresult, *mut *const c_char) -> CUresult) -> Option<&'static str> {
        let mut text = ptr::null();
        // SAFETY: the function writes one pointer, to `text`.
        unsafe { function(self.0, &mut text) }.to_result().ok()?;
        // SAFETY: after success, `text` points at a constant C string of the driver, which is never unloaded.
        unsafe { CStr::from_ptr(text) }.to_str().ok()
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Self::NO_DEVICE, Err(reason)) = (*self, sys::open()) {
            return write!(f, "no CUDA driver: {reason}");
        }
        match (self.ask(sys::cuGetErrorString), self.ask(sys::cuGetErrorName)) {
            (Some(text), Some(name)) => write!(f, "{text} ({name})"),
            _ => write!(f, "error {} of the CUDA driver", self.code()),
        }
    }
}

impl Error for CudaError {}
