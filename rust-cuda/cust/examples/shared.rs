//! A shared library that uses the driver. The test `symbols` opens it.

/// Initialises the driver and returns its status: 0, or 100 without a driver or device.
#[unsafe(no_mangle)]
pub extern "C" fn initialise() -> u32 {
    cust::init().map_or_else(|error| error.code(), |()| 0)
}
