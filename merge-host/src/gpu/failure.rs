//! Converts the driver's errors to this library's errors.

use crate::Error;
use cust::error::CudaResult;

/// Names the call that failed.
pub(crate) trait OrFailure<T> {
    /// The value, or an error that names `call` and the cause.
    fn or_failure(self, call: &str) -> Result<T, Error>;
}

impl<T> OrFailure<T> for CudaResult<T> {
    fn or_failure(self, call: &str) -> Result<T, Error> {
        self.map_err(|error| Error::Device {
            call: call.to_owned(),
            reason: error.to_string(),
            code: Some(error.code()),
            cause: Some(error.into()),
        })
    }
}

/// Initialises the driver. Does nothing if that has been done before.
pub(crate) fn initialise() -> Result<(), Error> {
    cust::init().map_err(|error| Error::NoDevice { reason: format!("cuInit: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cust::error::CudaError;
    use std::error::Error as _;

    #[test]
    fn a_failure_of_the_driver_keeps_its_code_and_its_error() {
        let error = Err::<(), _>(CudaError::ILLEGAL_ADDRESS).or_failure("cuLaunchKernel").unwrap_err();
        assert!(error.to_string().starts_with("cuLaunchKernel failed: "), "{error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        assert_eq!(error.source().unwrap().downcast_ref(), Some(&CudaError::ILLEGAL_ADDRESS));
        assert!(matches!(error, Error::Device { code: Some(700), .. }), "{error:?}");
        assert_eq!(error, error.clone());
    }
}
