//! The driver's errors in this library's words.

use crate::Error;
use cust::CudaFlags;
use cust::error::{CudaError, CudaResult};

/// Names the call that failed.
pub(crate) trait OrFailure<T> {
    /// The value, or an error that says that `call` failed and how.
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

/// An error that names the call, unless the driver's function returned 0: for functions that `cust` has no call for.
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

/// Opens the driver. Does nothing if it is open.
pub(crate) fn initialise() -> Result<(), Error> {
    cust::init(CudaFlags::empty()).map_err(|error| Error::NoDevice { reason: format!("cuInit: {}", describe(error)) })
}

/// What the driver's function returned, unless the error is one of `cust`'s own, whose numbers are greater than the
/// driver's.
fn code_of(error: CudaError) -> Option<u32> {
    Some(error as u32).filter(|code| *code <= CudaError::UnknownError as u32)
}

fn describe(error: CudaError) -> String {
    // The driver's text, and the error's name, by which it is documented.
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
