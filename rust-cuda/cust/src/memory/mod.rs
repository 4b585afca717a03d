//! Memory of a GPU, page-locked memory of the host, and copies.

mod buffer;
mod locked;
mod slice;

pub use buffer::DeviceBuffer;
pub use locked::LockedBuffer;
pub use slice::DeviceSlice;

use crate::error::CudaResult;
use crate::sys;

/// The free and the total bytes of the memory of the current context's GPU.
///
/// # Errors
/// The driver's.
pub fn mem_get_info() -> CudaResult<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the driver writes a number to `free` and one to `total`.
    unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }.to_result()?;
    Ok((free, total))
}
