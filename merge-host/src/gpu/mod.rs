//! The GPU engine: loads the compiled kernels through `cust` and launches them.
//!
//! | file | contents |
//! | --- | --- |
//! | `device` | [`Gpu`]: one GPU |
//! | `stream` | [`Stream`] and [`Event`]: the order of work |
//! | `array` | [`DeviceArray`] and [`DeviceOffsets`], which belong to a stream |
//! | `elements` | arguments of a stream's calls, and their checks |
//! | `operations`, `own` | the calls of a stream, for numbers and in a user's own order |
//! | `workspace` | the bytes of workspace that each call needs |
//! | `emulated` | calls in a user's own order, run by the emulator |
//! | `host` | operations on slices in host memory: upload, compute, download |
//! | `group` | [`GpuGroup`]: several GPUs that sort and merge together |
//! | `operation` | operations as values, and the record of what they launch |
//! | `launch` | which kernels an operation is made of, and their shapes |
//! | `context` | the context that is current during a call |
//! | `kernels` | the compiled modules and their launches |
//! | `numbers` | values that are numbers, as their bytes |
//! | `staging` | copies between the host and the GPU's memory, by several threads |
//! | `failure` | the driver's errors in this library's words |

mod array;
mod context;
mod device;
mod elements;
#[cfg(feature = "emulator")]
pub mod emulated;
mod failure;
mod group;
mod host;
#[doc(hidden)]
mod kernels;
#[doc(hidden)]
mod launch;
mod numbers;
#[doc(hidden)]
mod operation;
mod operations;
mod own;
mod staging;
mod stream;
pub mod workspace;

pub use array::{DeviceArray, DeviceOffsets};
pub use device::Gpu;
pub use elements::{
    Counted, DeviceElements, DeviceElementsMut, DeviceInOut, DeviceInput, DeviceOutput, GroupElements, GroupElementsMut,
};
pub use group::GpuGroup;
pub use kernels::kernel_modules;
pub(crate) use operation::KeyCoding;
pub use operations::{Runs, Segments};
pub use stream::{Event, Stream};

/// What tests of launches use. It is no part of the library's interface.
#[cfg(feature = "emulator")]
#[doc(hidden)]
pub mod launches {
    pub use super::Address;
    pub use super::kernels::Shape;
    pub use super::launch::thresholds::Thresholds;
    pub use super::launch::{
        Arrays, Entry, Queue, batch, bounds, emulated, exchange, groups, many_ragged, many_runs, merge, offsets, own,
        segments, sets, sort, top_k, top_k_segments,
    };
    pub use super::operation::{KeyCoding, Operation};
    pub use crate::key::sealed::GpuBits;
    pub use crate::key_order::KeyOrder;
}

use crate::{DeviceInfo, Error, allocation};
use cust::device::{Device, DeviceAttribute};
use failure::{OrFailure, initialise};

/// The address of an array in the GPU's memory.
pub type Address = u64;

/// `len` zeros, or an error if the host has too little memory.
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
                // The query needs a context on each device.
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
    cust::driver_version().or_failure("cuDriverGetVersion")
}
