//! The GPU engine: loads the compiled kernels through `cust` and launches them.
//!
//! | file | contents |
//! | --- | --- |
//! | `device` | [`Gpu`]: one GPU, and the sizes of workspaces |
//! | `raw` | sorts and merges of arrays by their addresses, which other libraries may own |
//! | `stream` | [`Stream`] and [`Event`]: the order of work |
//! | `segments` | sorts of segments, of a stream and by address |
//! | `many_runs` | merges of many runs, of a stream and by address |
//! | `many_ragged` | merges of groups of runs, of a stream and by address |
//! | `array` | [`DeviceArray`] and [`DeviceOffsets`], which belong to a stream |
//! | `operations` | sorts and merges of the arrays of a stream |
//! | `own` | the same in a user's own order |
//! | `emulated` | and in the emulator |
//! | `host` | sorts and merges of slices in host memory: upload, compute, download |
//! | `host_sets` | the same for operations on sorted slices whose results have any length |
//! | `host_top_k` | the same for the first keys |
//! | `group` | [`GpuGroup`]: several GPUs that sort and merge together |
//! | `context` | the context that is current during a call |
//! | `launch` | which kernels an operation is made of, and their shapes |
//! | `kernels` | the compiled modules and their launches |
//! | `numbers` | values that are numbers, as their bytes |
//! | `staging` | copies between the host and the GPU's memory, by several threads |
//! | `failure` | the driver's errors in this library's words |

mod array;
mod context;
mod device;
#[cfg(feature = "emulator")]
pub mod emulated;
mod failure;
mod group;
mod host;
mod host_sets;
mod host_top_k;
mod kernels;
mod launch;
mod many_ragged;
mod many_runs;
mod numbers;
mod operations;
mod own;
mod raw;
mod segments;
mod side;
mod staging;
mod stream;

pub use array::{DeviceArray, DeviceOffsets};
pub use device::Gpu;
pub use group::GpuGroup;
pub use kernels::kernel_modules;
pub use many_ragged::RawRunGroups;
pub use raw::RawArray;
pub use segments::{RawSegments, Segments};
pub use stream::{Event, Stream};

use crate::{DeviceInfo, Error, allocation};
use cust::device::{Device, DeviceAttribute};
use failure::{OrFailure, initialise};
use libcuda_lazy as _;

/// The address of an array in the GPU's memory.
type Address = u64;

/// `len` zeros, or an error where there is no memory for them.
fn zeroed<T: bytemuck::Zeroable>(len: usize) -> Result<Box<[T]>, Error> {
    allocation::handled(|| bytemuck::allocation::try_zeroed_slice_box(len))
        .map_err(|()| Error::OutOfHostMemory { needed: len.saturating_mul(size_of::<T>()) as u64 })
}

pub(crate) fn devices() -> Result<Vec<DeviceInfo>, Error> {
    initialise()?;
    let list = Device::devices().or_failure("cuDeviceGetCount")?;
    list.enumerate()
        .map(|(ordinal, device)| {
            let device = device.or_failure("cuDeviceGet")?;
            let attribute =
                |which| Ok::<_, Error>(device.get_attribute(which).or_failure("cuDeviceGetAttribute")? as u32);
            Ok(DeviceInfo {
                ordinal,
                name: device.name().or_failure("cuDeviceGetName")?,
                memory_bytes: device.total_memory().or_failure("cuDeviceTotalMem")? as u64,
                // Asking would mean to start a context on each device.
                free_bytes: None,
                compute_capability: (
                    attribute(DeviceAttribute::ComputeCapabilityMajor)?,
                    attribute(DeviceAttribute::ComputeCapabilityMinor)?,
                ),
                multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
            })
        })
        .collect()
}

pub(crate) fn driver_version() -> Result<(u32, u32), Error> {
    initialise()?;
    let version = cust::CudaApiVersion::get().or_failure("cuDriverGetVersion")?;
    Ok((version.major() as u32, version.minor() as u32))
}
