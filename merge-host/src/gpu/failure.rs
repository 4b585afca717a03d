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
        self.map_err(|error| Error::Device { call: call.to_owned(), reason: describe(error) })
    }
}

/// Opens the driver. Does nothing if it is open.
pub(crate) fn initialise() -> Result<(), Error> {
    cust::init(CudaFlags::empty()).map_err(|error| Error::NoDevice { reason: format!("cuInit: {}", describe(error)) })
}

fn describe(error: CudaError) -> String {
    // The driver's text, and the error's name, by which it is documented.
    format!("{error} ({error:?})")
}
