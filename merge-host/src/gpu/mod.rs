//! The GPU engine: not here yet, so that no machine has a usable GPU.

use crate::{DeviceInfo, Error, Key, MergeKernel, Timing};
use libcuda_lazy as _;

pub(crate) struct GpuEngine {}

fn no_device() -> Error {
    Error::NoDevice { reason: "the GPU engine is not written yet".to_owned() }
}

impl GpuEngine {
    pub(crate) fn new(_ordinal: usize) -> Result<Self, Error> {
        Err(no_device())
    }

    pub(crate) fn sort<K: Key>(&self, _keys: &mut [K]) -> Result<Timing, Error> {
        Err(no_device())
    }

    pub(crate) fn merge_with<K: Key>(
        &self,
        _kernel: MergeKernel,
        _a: &[K],
        _b: &[K],
        _out: &mut [K],
    ) -> Result<Timing, Error> {
        Err(no_device())
    }

    pub(crate) fn merge_batch<K: Key>(
        &self,
        _a: &[K],
        _b: &[K],
        _out: &mut [K],
        _d: usize,
        _a_len: usize,
    ) -> Result<Timing, Error> {
        Err(no_device())
    }
}

pub(crate) fn devices() -> Result<Vec<DeviceInfo>, Error> {
    Err(no_device())
}

pub(crate) fn driver_version() -> Result<(u32, u32), Error> {
    Err(no_device())
}
