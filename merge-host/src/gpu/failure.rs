//! Converts the driver's errors to this library's errors.

use crate::Error;
use cust::CudaFlags;
use cust::error::{CudaError, CudaResult};

/// Names the call that failed.
pub(crate) trait OrFailure<T> {
    /// The value, or an error that names `call` and the cause.
    fn or_failure(self, call: &str) -> Result<T, Error>;
}

impl<T> OrFailure<T> for CudaResult<T> {
    fn or_failure(self, call: &str) -> Result<T, Error> {
        self.map_err(|error| Error::Device {
            call: call.to_owned(),
            reason: describe(error),
            code: code_of(error),
            cause: Some(error.into()),
        })
    }
}

/// Turns a status of the driver into an error that names the call, for functions that `cust` does not wrap.
pub(crate) fn succeeded(call: &str, code: cust::sys::CUresult) -> Result<(), Error> {
    match code as u32 {
        0 => Ok(()),
        number => Err(Error::Device {
            call: call.to_owned(),
            reason: format!("error {number} ({code:?})"),
            code: Some(number),
            cause: None,
        }),
    }
}

/// Initialises the driver. Does nothing if that has been done before.
pub(crate) fn initialise() -> Result<(), Error> {
    cust::init(CudaFlags::empty()).map_err(|error| Error::NoDevice { reason: format!("cuInit: {}", describe(error)) })
}

/// The driver's error code, or `None` for an error of `cust` itself. Codes of `cust` are greater than all codes of the
/// driver.
fn code_of(error: CudaError) -> Option<u32> {
    Some(error as u32).filter(|code| *code <= CudaError::UnknownError as u32)
}

fn describe(error: CudaError) -> String {
    // The driver's text, and the name under which the driver documents the error.
    format!("{error} ({error:?})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_failure_of_the_driver_keeps_its_code_and_its_error() {
        let error = Err::<(), _>(CudaError::IllegalAddress).or_failure("cuLaunchKernel").unwrap_err();
        assert!(error.to_string().starts_with("cuLaunchKernel failed: "), "{error}");
        assert!(error.to_string().ends_with(" (IllegalAddress)") && error.to_string().lines().count() == 1, "{error}");
        assert_eq!(error.source().unwrap().downcast_ref(), Some(&CudaError::IllegalAddress));
        assert!(matches!(error, Error::Device { code: Some(700), .. }), "{error:?}");
        assert_eq!(error, error.clone());
    }

    #[test]
    fn an_error_of_cust_has_no_code_of_the_driver() {
        let error = Err::<(), _>(CudaError::InvalidMemoryAllocation).or_failure("cuMemAlloc").unwrap_err();
        assert!(matches!(error, Error::Device { code: None, cause: Some(_), .. }), "{error:?}");
    }
}
