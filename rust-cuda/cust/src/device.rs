//! The GPUs of the machine.

use crate::error::CudaResult;
use crate::sys::{self, CUdevice};
use std::ffi::{c_char, c_int};

/// A GPU of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device(pub(crate) CUdevice);

/// A property of a GPU that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(i32)]
pub enum DeviceAttribute {
    /// The number of multiprocessors.
    MultiprocessorCount = 16,
    /// The first part of the compute capability, such as 9 of 9.0.
    ComputeCapabilityMajor = 75,
    /// The second part of the compute capability, such as 0 of 9.0.
    ComputeCapabilityMinor = 76,
}

impl Device {
    /// The number of GPUs.
    ///
    /// # Errors
    /// The driver's.
    pub fn num_devices() -> CudaResult<u32> {
        let mut count = 0;
        // SAFETY: the driver writes one number, to `count`.
        unsafe { sys::cuDeviceGetCount(&mut count) }.to_result()?;
        Ok(count as u32)
    }

    /// All GPUs, in the order of their ordinals.
    ///
    /// # Errors
    /// The driver's.
    pub fn devices() -> CudaResult<impl Iterator<Item = CudaResult<Self>>> {
        Ok((0..Self::num_devices()?).map(Self::get_device))
    }

    /// The GPU with this ordinal, counted from 0.
    ///
    /// # Errors
    /// The driver's, if there is no such GPU.
    pub fn get_device(ordinal: u32) -> CudaResult<Self> {
        let mut device = 0;
        // SAFETY: the driver writes one number, to `device`.
        unsafe { sys::cuDeviceGet(&mut device, ordinal as c_int) }.to_result()?;
        Ok(Self(device))
    }

    /// The name of the GPU, such as "NVIDIA H100".
    ///
    /// # Errors
    /// The driver's.
    pub fn name(self) -> CudaResult<String> {
        let mut name = [0u8; 256];
        let (start, len) = (name.as_mut_ptr().cast::<c_char>(), name.len() as c_int);
        // SAFETY: the driver writes at most `len` bytes, to `name`.
        unsafe { sys::cuDeviceGetName(start, len, self.0) }.to_result()?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// The bytes of the GPU's memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn total_memory(self) -> CudaResult<usize> {
        let mut bytes = 0;
        // SAFETY: the driver writes one number, to `bytes`.
        unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, self.0) }.to_result()?;
        Ok(bytes)
    }

    /// A property of the GPU.
    ///
    /// # Errors
    /// The driver's.
    pub fn get_attribute(self, attribute: DeviceAttribute) -> CudaResult<i32> {
        let mut value = 0;
        // SAFETY: the driver writes one number, to `value`.
        unsafe { sys::cuDeviceGetAttribute(&mut value, attribute as c_int, self.0) }.to_result()?;
        Ok(value)
    }

    /// Whether this GPU can access the memory of `peer` directly.
    ///
    /// # Errors
    /// The driver's.
    pub fn can_access_peer(self, peer: Self) -> CudaResult<bool> {
        let mut can = 0;
        // SAFETY: the driver writes one number, to `can`.
        unsafe { sys::cuDeviceCanAccessPeer(&mut can, self.0, peer.0) }.to_result()?;
        Ok(can != 0)
    }
}
