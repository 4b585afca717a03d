//! A shared library that uses the driver. The test `exports` opens it.

use cust_raw as cuda;
use libcuda_lazy as _;

/// Initialises the driver and returns its status: 0, or 100 where there is no driver or no device.
#[unsafe(no_mangle)]
pub extern "C" fn initialise() -> i32 {
    // SAFETY: the driver allows this call at any time.
    unsafe { cuda::cuInit(0) as i32 }
}
