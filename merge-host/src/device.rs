//! The GPUs of this machine.

use crate::Error;

/// The properties of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The ordinal, for [`Engine::gpu`](crate::Engine::gpu).
    pub ordinal: usize,
    /// The name, such as "NVIDIA H200".
    pub name: String,
    /// The size of the memory, in bytes.
    pub memory_bytes: u64,
    /// The size of the free memory, in bytes, if it is known.
    pub free_bytes: Option<u64>,
    /// The compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// The number of multiprocessors.
    pub multiprocessors: u32,
}

/// The GPUs of this machine, in the order of their ordinals.
///
/// # Errors
/// [`Error::NoDevice`] if there is no driver or no GPU, [`Error::Device`] if the driver fails, and
/// [`Error::NoGpuSupport`] in a build without the feature `gpu`.
///
/// ```
/// match merge_host::devices() {
///     Ok(devices) => devices.iter().for_each(|device| println!("{}: {}", device.ordinal, device.name)),
///     Err(error) => println!("{error}"),
/// }
/// ```
pub fn devices() -> Result<Vec<DeviceInfo>, Error> {
    #[cfg(feature = "gpu")]
    return crate::gpu::devices();
    #[cfg(not(feature = "gpu"))]
    Err(Error::NoGpuSupport)
}

/// The newest CUDA version that the installed driver supports, major and minor.
///
/// # Errors
/// The errors of [`devices`].
pub fn driver_version() -> Result<(u32, u32), Error> {
    #[cfg(feature = "gpu")]
    return crate::gpu::driver_version();
    #[cfg(not(feature = "gpu"))]
    Err(Error::NoGpuSupport)
}
