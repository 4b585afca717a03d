//! Calls on machines without a driver return errors, and with a GPU they do their work.

use cust::context::{Context, CurrentContext};
use cust::device::Device;
use cust::error::{CudaError, CudaResult};
use cust::event::{Event, EventFlags};
use cust::memory::{DeviceBuffer, LockedBuffer, mem_get_info};
use cust::module::Module;
use cust::stream::Stream;
use cust::sys::{self, CUcontext, CUfunction, CUmodule, CUresult, CUstream};
use std::ptr::{null, null_mut};

#[test]
fn initialisation_fails_without_a_driver_and_only_then() {
    match sys::open() {
        Err(reason) => {
            assert!(!reason.is_empty());
            let error = cust::init().expect_err("there is no driver to initialise");
            assert_eq!((error, error.code()), (CudaError::NO_DEVICE, 100));
            assert_eq!(error.to_string(), format!("no CUDA driver: {reason}"));
        }
        Ok(()) => {
            let version = cust::driver_version().unwrap();
            assert!(version > (11, 0), "driver version {version:?}");
            assert_eq!(CudaError::INVALID_VALUE.to_string(), "invalid argument (CUDA_ERROR_INVALID_VALUE)");
        }
    }
}

#[test]
fn without_a_driver_each_value_is_an_error() {
    if sys::open().is_ok() {
        return; // There may be a GPU.
    }
    let errors: [CudaResult<()>; 12] = [
        cust::init(),
        cust::driver_version().map(drop),
        Device::num_devices().map(drop),
        Device::get_device(0).map(drop),
        CurrentContext::get_current().map(drop),
        CurrentContext::get_device().map(drop),
        mem_get_info().map(drop),
        DeviceBuffer::uninitialized(4).map(drop),
        LockedBuffer::<u32>::zeroed(1).map(drop),
        Module::from_ptx(".version 7.0\n.target sm_80\n.address_size 64\n").map(drop),
        Stream::new(0).map(drop),
        Event::new(EventFlags::DEFAULT).map(drop),
    ];
    assert!(errors.iter().all(|error| *error == Err(CudaError::NO_DEVICE)), "{errors:?}");
    // What needs no call does not fail.
    assert!(DeviceBuffer::uninitialized(0).unwrap().is_empty());
    assert!(LockedBuffer::<u32>::zeroed(0).unwrap().is_empty());
    assert_eq!(Module::from_ptx("a\0b").unwrap_err(), CudaError::INVALID_VALUE);
}

#[test]
fn without_a_driver_functions_do_not_read_their_arguments() {
    if sys::open().is_ok() {
        return; // The driver would look at the null pointers.
    }
    // SAFETY: without a driver, the functions do not access their arguments.
    let answers = unsafe {
        [
            sys::cuInit(0),
            sys::cuDeviceGetCount(null_mut()),
            sys::cuDeviceGetName(null_mut(), 0, 0),
            sys::cuDevicePrimaryCtxRetain(null_mut(), 0),
            sys::cuCtxSetCurrent(CUcontext::NULL),
            sys::cuModuleLoadData(null_mut(), null()),
            sys::cuModuleGetFunction(null_mut(), CUmodule::NULL, null()),
            sys::cuFuncSetAttribute(CUfunction::NULL, 0, 0),
            sys::cuMemAllocHost_v2(null_mut(), 0),
            sys::cuMemcpyHtoDAsync_v2(0, null(), 0, CUstream::NULL),
            sys::cuMemcpyPeerAsync(0, CUcontext::NULL, 0, CUcontext::NULL, 0, CUstream::NULL),
            sys::cuMemsetD8Async(0, 0, 0, CUstream::NULL),
            sys::cuLaunchKernel(CUfunction::NULL, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, null_mut(), null_mut()),
            sys::cuGetErrorName(CUresult::CUDA_SUCCESS, null_mut()),
        ]
    };
    assert!(answers.iter().all(|&answer| answer == CUresult::CUDA_ERROR_NO_DEVICE), "{answers:?}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_context_of_the_first_gpu_has_memory() {
    cust::init().unwrap();
    let device = Device::get_device(0).unwrap();
    let context = Context::new(device).unwrap();
    let before = CurrentContext::get_current().unwrap();
    CurrentContext::set_current(context.handle()).unwrap();
    let (free, total) = mem_get_info().unwrap();
    assert!(free <= total && total <= device.total_memory().unwrap());
    assert_eq!(CurrentContext::get_device(), Ok(context.device()));

    let stream = Stream::new(0).unwrap();
    let (memory, mut to) = (DeviceBuffer::uninitialized(6).unwrap(), LockedBuffer::zeroed(6).unwrap());
    // SAFETY: the buffers have 6 bytes, and nothing uses or drops them until `synchronize` has returned.
    unsafe {
        memory.set_8_async(7, &stream).unwrap();
        memory.index(2..4).async_copy_from_host(&[1, 2], &stream).unwrap();
        memory.index(4..).async_copy_from(memory.index(2..4), &stream).unwrap();
        memory.async_copy_to_host(&mut to, &stream).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(to[..], [7, 7, 1, 2, 1, 2]);
    drop(memory);
    CurrentContext::set_current(before).unwrap();
}
