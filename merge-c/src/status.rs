//! Results of calls.

use merge_host::Error;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a call. `gmerge_last_error` describes a result other than `GMERGE_OK`.
pub type gmerge_status = i32;
/// The call has done its work.
pub const GMERGE_OK: gmerge_status = 0;
/// An argument is wrong. Nothing has been written.
pub const GMERGE_INVALID_ARGUMENT: gmerge_status = 1;
/// There is not enough memory on the host or on the GPU.
pub const GMERGE_OUT_OF_MEMORY: gmerge_status = 2;
/// There is no GPU, no driver, or no kernel for the type of the keys.
pub const GMERGE_NO_GPU: gmerge_status = 3;
/// A call of the CUDA driver failed.
pub const GMERGE_DEVICE_ERROR: gmerge_status = 4;
/// The engine's threads cannot be started, or their number is not 1 to 4096.
pub const GMERGE_NO_THREADS: gmerge_status = 5;
/// A defect of this library. The arrays may have changed.
pub const GMERGE_INTERNAL_ERROR: gmerge_status = 6;

/// Why a call failed.
pub(crate) struct Failure {
    status: gmerge_status,
    message: String,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// An argument is wrong.
pub(crate) fn invalid(message: String) -> Failure {
    Failure { status: GMERGE_INVALID_ARGUMENT, message }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::OutOfHostMemory { .. } | Error::OutOfDeviceMemory { .. } => GMERGE_OUT_OF_MEMORY,
            Error::NoDevice { .. } | Error::NoGpuSupport | Error::NoKernels { .. } | Error::DeviceOrdinal { .. } => {
                GMERGE_NO_GPU
            }
            Error::Device { .. } => GMERGE_DEVICE_ERROR,
            Error::Threads { .. } => GMERGE_NO_THREADS,
            _ => GMERGE_INVALID_ARGUMENT,
        };
        Self { status, message: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Calls `work`, and keeps the message of a failure. A panic becomes an error.
pub(crate) fn guard(work: impl FnOnce() -> Outcome) -> gmerge_status {
    let panicked = |_| Err(Failure { status: GMERGE_INTERNAL_ERROR, message: "the library has panicked".to_owned() });
    match catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked) {
        Ok(()) => GMERGE_OK,
        Err(Failure { status, message }) => {
            let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
            LAST.with_borrow_mut(|last| *last = message);
            status
        }
    }
}

/// The message of the last call of this thread that failed: which argument is wrong, what was expected and what was
/// found. Empty if no call has failed. A call that succeeds does not change it. It is valid until the next call of this
/// thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn gmerge_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}
