//! A shared library that uses the driver. The test `exports` opens it.

use cust_raw as cuda;
use libcuda_lazy as _;

/// Initialises the driver and returns its status: 0, or 100 without a driver or device.
#[unsafe(no_mangle)]
pub extern "C" fn initialise() -> i32 {
    // SAFETY: `cuInit` may be called at any time, and 0 is the only valid flag.
    unsafe { cuda::cuInit(0) as i32 }
}
