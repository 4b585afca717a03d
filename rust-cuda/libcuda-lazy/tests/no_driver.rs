//! A program that uses the driver links without it, and gets errors instead of crashes on machines without a driver.

use cust::error::CudaError;
use cust_raw as cuda;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

#[test]
fn initialisation_fails_without_a_driver_and_only_then() {
    match libcuda_lazy::open() {
        Err(reason) => {
            assert!(!reason.is_empty());
            let error = cust::quick_init().expect_err("there is no driver to initialise");
            assert_eq!(error, CudaError::NoDevice);
            assert!(error.to_string().contains("no CUDA driver"), "{error}");
        }
        Ok(()) => {
            let mut version = 0;
            // SAFETY: `version` is a `c_int`, which the driver writes.
            let status = unsafe { cuda::cuDriverGetVersion(&mut version) };
            assert_eq!((status as i32, version > 0), (0, true), "driver version {version}");
        }
    }
}

#[test]
fn names_and_descriptions_are_strings_either_way() {
    for status in [cuda::CUresult::CUDA_SUCCESS, cuda::CUresult::CUDA_ERROR_NO_DEVICE] {
        for describe in [cuda::cuGetErrorName, cuda::cuGetErrorString] {
            let mut text = null();
            // SAFETY: `text` is a pointer, which the function writes.
            let answer = unsafe { describe(status, &mut text) };
            assert_eq!(answer, cuda::CUresult::CUDA_SUCCESS);
            // SAFETY: the status is 0, so that `text` points to a C string, of the driver or of this crate. Both live
            // until the program ends.
            let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap();
            assert!(text.len() >= 8, "{status:?} is described as {text:?}");
        }
    }
}

#[test]
fn every_kind_of_call_answers_without_a_driver() {
    if libcuda_lazy::open().is_ok() {
        return; // The driver would look at the null pointers.
    }
    // SAFETY: without a driver, the functions do not access their arguments.
    let answers = unsafe {
        [
            cuda::cuInit(0),
            cuda::cuDeviceGetCount(null_mut()),
            cuda::cuDeviceGetName(null_mut(), 0, 0),
            cuda::cuDevicePrimaryCtxRetain(null_mut(), 0),
            cuda::cuCtxSynchronize(),
            cuda::cuModuleLoadDataEx(null_mut(), null(), 0, null_mut(), null_mut()),
            cuda::cuModuleGetFunction(null_mut(), null_mut(), null()),
            cuda::cuFuncSetAttribute(null_mut(), cuda::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS, 0),
            cuda::cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), null_mut(), 0, 0),
            cuda::cuMemGetInfo_v2(null_mut(), null_mut()),
            cuda::cuMemAlloc_v2(null_mut(), 0),
            cuda::cuMemFree_v2(0),
            cuda::cuMemHostAlloc(null_mut(), 0, 0),
            cuda::cuMemFreeHost(null_mut()),
            cuda::cuMemcpyHtoDAsync_v2(0, null(), 0, null_mut()),
            cuda::cuMemcpyDtoHAsync_v2(null_mut(), 0, 0, null_mut()),
            cuda::cuMemsetD8Async(0, 0, 0, null_mut()),
            cuda::cuMemsetD32_v2(0, 0, 0),
            cuda::cuStreamBeginCapture_v2(null_mut(), cuda::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL),
            cuda::cuStreamEndCapture(null_mut(), null_mut()),
            cuda::cuGraphInstantiate_v2(null_mut(), null_mut(), null_mut(), null_mut(), 0),
            cuda::cuGraphLaunch(null_mut(), null_mut()),
            cuda::cuGraphExecDestroy(null_mut()),
            cuda::cuGraphDestroy(null_mut()),
            cuda::cuEventElapsedTime(null_mut(), null_mut(), null_mut()),
            cuda::cuLaunchKernel(null_mut(), 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut()),
        ]
    };
    assert!(answers.iter().all(|&answer| answer == cuda::CUresult::CUDA_ERROR_NO_DEVICE), "{answers:?}");
}
