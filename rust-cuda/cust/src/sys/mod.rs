//! The driver's functions and types, under the names of its header.
//!
//! Here are the functions that this crate calls. The first call of any function opens the driver's library, and each
//! function looks itself up there at its first call. A program that uses this crate therefore defines and imports no
//! symbol of the driver.
//!
//! Without a driver, every function returns [`CUresult::CUDA_ERROR_NO_DEVICE`] and does not read its arguments. A
//! function that the driver does not have returns [`CUresult::CUDA_ERROR_NOT_FOUND`].

#![allow(non_snake_case, reason = "the names of the driver's header")]

mod library;
mod types;

pub use library::open;
pub use types::{CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUresult, CUstream};

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

/// Defines functions that call the driver's functions of the same name.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// The driver's function of this name, which its reference documents.
        ///
        /// # Safety
        /// The requirements of the driver's function.
        #[allow(clippy::too_many_arguments, reason = "the arguments of the driver's function")]
        pub unsafe fn $name($($argument: $type),*) -> CUresult {
            type Function = unsafe extern "system" fn($($type),*) -> CUresult;
            static FOUND: OnceLock<Result<Function, CUresult>> = OnceLock::new();
            // SAFETY: the table below has the types of the driver's header, so `Function` is the type of `$name`.
            match FOUND.get_or_init(|| unsafe { library::function(concat!(stringify!($name), "\0")) }) {
                // SAFETY: the caller meets the requirements of `$name`.
                Ok(function) => unsafe { function($($argument),*) },
                Err(status) => *status,
            }
        }
    )*};
}

// Enumerations of the driver are numbers here.
functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(status: CUresult, name: *mut *const c_char);
    cuGetErrorString(status: CUresult, text: *mut *const c_char);

    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice);
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);

    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);

    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuFuncSetAttribute(function: CUfunction, attribute: c_int, value: c_int);
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void
    );

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize);
    cuMemFreeHost(address: *mut c_void);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyPeerAsync(
        to: CUdeviceptr, to_context: CUcontext,
        from: CUdeviceptr, from_context: CUcontext,
        bytes: usize,
        stream: CUstream
    );
    cuMemsetD8Async(address: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream);
    cuMemsetD32Async(address: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);

    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuStreamSynchronize(stream: CUstream);
    cuStreamDestroy_v2(stream: CUstream);

    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventSynchronize(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    cuEventDestroy_v2(event: CUevent);
}
