//! The CUDA driver's functions, opened at the first call instead of at program start.
//!
//! A program linked against libcuda does not start on a machine without the driver. This crate defines the driver's
//! functions under their own names, so that the linker needs no libcuda. The first call of any function opens
//! `libcuda.so.1`, and each function forwards to the function of the same name there. If the library cannot be opened,
//! they all return `CUDA_ERROR_NO_DEVICE`, which a caller handles like a machine without a GPU.
//!
//! On Linux the functions are hidden: a shared library that uses this crate does not export them. Otherwise calls of
//! other libraries in the process could be bound to them.
//!
//! The table at the end has the functions that the crate `cust` 0.3 calls, and other common ones. To use the crate,
//! mention it (`use libcuda_lazy as _;`): otherwise it is not linked. The linker also needs an empty libcuda. The
//! folder `stub` of this crate has one, for the variable `CUDA_LIBRARY_PATH` of `cust`'s build script.

use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// The result of a driver function.
type Status = c_int;
/// A pointer, or a handle that is a pointer. This crate never dereferences it.
type Pointer = *mut c_void;
/// An enumeration of the driver.
type Enum = c_int;

const SUCCESS: Status = 0;
/// CUDA_ERROR_NO_DEVICE
const NO_DEVICE: Status = 100;
/// CUDA_ERROR_NOT_FOUND
const NOT_FOUND: Status = 500;

#[cfg(target_os = "linux")]
const LIBRARY: &str = "libcuda.so.1";
#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(any(target_os = "linux", windows)))]
const LIBRARY: &str = "libcuda.dylib";

/// Opens the driver's library, unless an earlier call has.
///
/// # Errors
/// The system loader's reason that it cannot be opened. The result stays the same for the lifetime of the program.
///
/// ```
/// match libcuda_lazy::open() {
///     Ok(()) => println!("there is a driver"),
///     Err(reason) => println!("there is none: {reason}"),
/// }
/// ```
pub fn open() -> Result<(), &'static str> {
    library().map(|_| ())
}

fn library() -> Result<&'static Library, &'static str> {
    static OPENED: OnceLock<Result<Library, String>> = OnceLock::new();
    // SAFETY: opening a library runs its initialisers. The NVIDIA driver's may run in any program at any time.
    let opened = OPENED.get_or_init(|| unsafe { Library::new(LIBRARY) }.map_err(|error| error.to_string()));
    opened.as_ref().map_err(String::as_str)
}

/// The driver's function `name`, which ends in a zero byte, or the status to return instead.
///
/// # Safety
/// `F` is the function's type.
unsafe fn function<F: Copy>(name: &str) -> Result<F, Status> {
    let library = library().map_err(|_| NO_DEVICE)?;
    // SAFETY: the caller passes the function's type as `F`. The library is never closed, so that the function may be
    // called at any later time.
    unsafe { library.get::<F>(name.as_bytes()) }.map(|symbol| *symbol).map_err(|_| NOT_FOUND)
}

/// Writes a name or a description of `status`, for machines without the driver.
///
/// # Safety
/// `text` is null or valid for writes.
unsafe fn describe(status: Status, text: *mut *const c_char, words: [&'static CStr; 4]) -> Status {
    let [success, no_device, not_found, other] = words;
    let chosen = match status {
        SUCCESS => success,
        NO_DEVICE => no_device,
        NOT_FOUND => not_found,
        _ => other,
    };
    if !text.is_null() {
        // SAFETY: `text` is not null, and the caller passes a pointer that is then valid for writes.
        unsafe { *text = chosen.as_ptr() };
    }
    SUCCESS
}

/// Keeps a function of this crate out of the dynamic symbols of a shared library. `no_mangle` exports a function from
/// every shared library that it is linked into. The most restrictive visibility in an object file takes precedence.
macro_rules! hide {
    ($name:ident) => {
        #[cfg(target_os = "linux")]
        std::arch::global_asm!(concat!(".hidden ", stringify!($name)));
    };
}

/// Describes a status in words.
///
/// # Safety
/// `text` is null or valid for writes.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cuGetErrorString(status: Enum, text: *mut *const c_char) -> Status {
    type Function = unsafe extern "C" fn(Enum, *mut *const c_char) -> Status;
    static FOUND: OnceLock<Result<Function, Status>> = OnceLock::new();
    // SAFETY: `Function` is the type of `cuGetErrorString` in the driver's interface.
    match FOUND.get_or_init(|| unsafe { function("cuGetErrorString\0") }) {
        // SAFETY: the caller passes a `text` that is null or valid for writes, as the driver's function requires.
        Ok(function) => unsafe { function(status, text) },
        Err(_) => {
            let words = [c"no error", c"no CUDA driver, or no device", c"not found in the CUDA driver", c"CUDA error"];
            // SAFETY: the caller passes a `text` that is null or valid for writes.
            unsafe { describe(status, text, words) }
        }
    }
}

hide!(cuGetErrorString);

/// The name of a status.
///
/// # Safety
/// `text` is null or valid for writes.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cuGetErrorName(status: Enum, text: *mut *const c_char) -> Status {
    type Function = unsafe extern "C" fn(Enum, *mut *const c_char) -> Status;
    static FOUND: OnceLock<Result<Function, Status>> = OnceLock::new();
    // SAFETY: `Function` is the type of `cuGetErrorName` in the driver's interface.
    match FOUND.get_or_init(|| unsafe { function("cuGetErrorName\0") }) {
        // SAFETY: the caller passes a `text` that is null or valid for writes, as the driver's function requires.
        Ok(function) => unsafe { function(status, text) },
        Err(_) => {
            let words = [c"CUDA_SUCCESS", c"CUDA_ERROR_NO_DEVICE", c"CUDA_ERROR_NOT_FOUND", c"CUDA_ERROR_UNKNOWN"];
            // SAFETY: the caller passes a `text` that is null or valid for writes.
            unsafe { describe(status, text, words) }
        }
    }
}

hide!(cuGetErrorName);

/// Defines functions that forward to the driver's functions of the same name. The driver's header documents them.
macro_rules! forward {
    ($($name:ident($($type:ty),*);)*) => {
        $(forward! { @arguments $name [a b c d e f g h i j k] [] $($type,)* })*
    };
    // Names the argument of each type with the next letter.
    (@arguments $name:ident [$letter:ident $($letters:ident)*] [$($named:tt)*] $type:ty, $($types:ty,)*) => {
        forward! { @arguments $name [$($letters)*] [$($named)* ($letter: $type)] $($types,)* }
    };
    (@arguments $name:ident [$($letters:ident)*] [$(($argument:ident: $type:ty))*]) => {
        /// Forwards to the driver's function of this name.
        ///
        /// # Safety
        /// The requirements of the driver's function.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> Status {
            type Function = unsafe extern "C" fn($($type),*) -> Status;
            static FOUND: OnceLock<Result<Function, Status>> = OnceLock::new();
            // SAFETY: the table below lists the functions with the types of the driver's interface, so that `Function`
            // is the type of `$name`.
            match FOUND.get_or_init(|| unsafe { function(concat!(stringify!($name), "\0")) }) {
                // SAFETY: the caller passes arguments that meet the requirements of the driver's function `$name`.
                Ok(function) => unsafe { function($($argument),*) },
                Err(status) => *status,
            }
        }
        hide!($name);
    };
}

// Pointers, handles and enumerations are forwarded without being read, so that one type represents all of a kind.
forward! {
    cuInit(c_uint);
    cuDriverGetVersion(Pointer);
    cuDeviceGet(Pointer, c_int);
    cuDeviceGetCount(Pointer);
    cuDeviceGetName(Pointer, c_int, c_int);
    cuDeviceGetUuid(Pointer, c_int);
    cuDeviceTotalMem_v2(Pointer, c_int);
    cuDeviceGetAttribute(Pointer, Enum, c_int);
    cuDeviceGetMemPool(Pointer, c_int);
    cuDeviceGetDefaultMemPool(Pointer, c_int);
    cuDevicePrimaryCtxRetain(Pointer, c_int);
    cuDevicePrimaryCtxRelease_v2(c_int);
    cuDevicePrimaryCtxSetFlags_v2(c_int, c_uint);
    cuDevicePrimaryCtxGetState(c_int, Pointer, Pointer);
    cuDevicePrimaryCtxReset_v2(c_int);
    cuCtxCreate_v2(Pointer, c_uint, c_int);
    cuCtxDestroy_v2(Pointer);
    cuCtxPushCurrent_v2(Pointer);
    cuCtxPopCurrent_v2(Pointer);
    cuCtxSetCurrent(Pointer);
    cuCtxGetCurrent(Pointer);
    cuCtxGetDevice(Pointer);
    cuCtxGetFlags(Pointer);
    cuCtxSynchronize();
    cuCtxSetLimit(Enum, usize);
    cuCtxGetLimit(Pointer, Enum);
    cuCtxGetCacheConfig(Pointer);
    cuCtxSetCacheConfig(Enum);
    cuCtxGetSharedMemConfig(Pointer);
    cuCtxSetSharedMemConfig(Enum);
    cuCtxGetApiVersion(Pointer, Pointer);
    cuCtxGetStreamPriorityRange(Pointer, Pointer);
    cuModuleLoad(Pointer, Pointer);
    cuModuleLoadData(Pointer, Pointer);
    cuModuleLoadDataEx(Pointer, Pointer, c_uint, Pointer, Pointer);
    cuModuleLoadFatBinary(Pointer, Pointer);
    cuModuleUnload(Pointer);
    cuModuleGetFunction(Pointer, Pointer, Pointer);
    cuModuleGetGlobal_v2(Pointer, Pointer, Pointer, Pointer);
    cuLinkCreate_v2(c_uint, Pointer, Pointer, Pointer);
    cuLinkAddData_v2(Pointer, Enum, Pointer, usize, Pointer, c_uint, Pointer, Pointer);
    cuLinkAddFile_v2(Pointer, Enum, Pointer, c_uint, Pointer, Pointer);
    cuLinkComplete(Pointer, Pointer, Pointer);
    cuLinkDestroy(Pointer);
    cuMemGetInfo_v2(Pointer, Pointer);
    cuMemAlloc_v2(Pointer, usize);
    cuMemFree_v2(u64);
    cuMemGetAddressRange_v2(Pointer, Pointer, u64);
    cuMemAllocHost_v2(Pointer, usize);
    cuMemFreeHost(Pointer);
    cuMemHostAlloc(Pointer, usize, c_uint);
    cuMemHostGetDevicePointer_v2(Pointer, Pointer, c_uint);
    cuMemAllocManaged(Pointer, usize, c_uint);
    cuDeviceGetPCIBusId(Pointer, c_int, c_int);
    cuMemHostRegister_v2(Pointer, usize, c_uint);
    cuMemHostUnregister(Pointer);
    cuMemcpy(u64, u64, usize);
    cuMemcpyPeer(u64, Pointer, u64, Pointer, usize);
    cuMemcpyHtoD_v2(u64, Pointer, usize);
    cuMemcpyDtoH_v2(Pointer, u64, usize);
    cuMemcpyDtoD_v2(u64, u64, usize);
    cuMemcpyHtoA_v2(Pointer, usize, Pointer, usize);
    cuMemcpyAtoH_v2(Pointer, Pointer, usize, usize);
    cuMemcpy2D_v2(Pointer);
    cuMemcpyAsync(u64, u64, usize, Pointer);
    cuMemcpyPeerAsync(u64, Pointer, u64, Pointer, usize, Pointer);
    cuMemcpyHtoDAsync_v2(u64, Pointer, usize, Pointer);
    cuMemcpyDtoHAsync_v2(Pointer, u64, usize, Pointer);
    cuMemcpyDtoDAsync_v2(u64, u64, usize, Pointer);
    cuMemsetD8_v2(u64, u8, usize);
    cuMemsetD16_v2(u64, u16, usize);
    cuMemsetD32_v2(u64, c_uint, usize);
    cuMemsetD8Async(u64, u8, usize, Pointer);
    cuMemsetD16Async(u64, u16, usize, Pointer);
    cuMemsetD32Async(u64, c_uint, usize, Pointer);
    cuArrayDestroy(Pointer);
    cuArray3DCreate_v2(Pointer, Pointer);
    cuArray3DGetDescriptor_v2(Pointer, Pointer);
    cuMemFreeAsync(u64, Pointer);
    cuMemAllocAsync(Pointer, usize, Pointer);
    cuMemPoolTrimTo(Pointer, usize);
    cuMemPoolSetAttribute(Pointer, Enum, Pointer);
    cuMemPoolGetAttribute(Pointer, Enum, Pointer);
    cuPointerGetAttribute(Pointer, Enum, u64);
    cuMemPrefetchAsync(u64, usize, c_int, Pointer);
    cuMemAdvise(u64, usize, Enum, c_int);
    cuStreamCreate(Pointer, c_uint);
    cuStreamCreateWithPriority(Pointer, c_uint, c_int);
    cuStreamGetPriority(Pointer, Pointer);
    cuStreamGetFlags(Pointer, Pointer);
    cuStreamWaitEvent(Pointer, Pointer, c_uint);
    cuStreamBeginCapture_v2(Pointer, Enum);
    cuStreamEndCapture(Pointer, Pointer);
    cuStreamIsCapturing(Pointer, Pointer);
    cuStreamQuery(Pointer);
    cuStreamSynchronize(Pointer);
    cuStreamDestroy_v2(Pointer);
    cuEventCreate(Pointer, c_uint);
    cuEventRecord(Pointer, Pointer);
    cuEventQuery(Pointer);
    cuEventSynchronize(Pointer);
    cuEventDestroy_v2(Pointer);
    cuEventElapsedTime(Pointer, Pointer, Pointer);
    cuImportExternalMemory(Pointer, Pointer);
    cuExternalMemoryGetMappedBuffer(Pointer, Pointer, Pointer);
    cuDestroyExternalMemory(Pointer);
    cuFuncGetAttribute(Pointer, Enum, Pointer);
    cuFuncSetAttribute(Pointer, Enum, c_int);
    cuFuncSetCacheConfig(Pointer, Enum);
    cuFuncSetSharedMemConfig(Pointer, Enum);
    cuLaunchKernel(Pointer, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Pointer, Pointer, Pointer);
    cuLaunchCooperativeKernel(Pointer, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Pointer, Pointer);
    cuLaunchHostFunc(Pointer, Pointer, Pointer);
    cuGraphCreate(Pointer, c_uint);
    cuGraphAddKernelNode(Pointer, Pointer, Pointer, usize, Pointer);
    cuGraphKernelNodeGetParams(Pointer, Pointer);
    cuGraphNodeGetType(Pointer, Pointer);
    cuGraphGetNodes(Pointer, Pointer, Pointer);
    cuGraphGetEdges(Pointer, Pointer, Pointer, Pointer);
    cuGraphInstantiate_v2(Pointer, Pointer, Pointer, Pointer, usize);
    cuGraphUpload(Pointer, Pointer);
    cuGraphLaunch(Pointer, Pointer);
    cuGraphExecDestroy(Pointer);
    cuGraphDestroy(Pointer);
    cuGraphDebugDotPrint(Pointer, Pointer, c_uint);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(Pointer, Pointer, c_int, usize);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Pointer, Pointer, c_int, usize, c_uint);
    cuOccupancyMaxPotentialBlockSize(Pointer, Pointer, Pointer, Pointer, usize, c_int);
    cuOccupancyAvailableDynamicSMemPerBlock(Pointer, Pointer, c_int, c_int);
    cuTexObjectCreate(Pointer, Pointer, Pointer, Pointer);
    cuTexObjectDestroy(u64);
    cuTexObjectGetResourceDesc(Pointer, u64);
    cuTexObjectGetResourceViewDesc(Pointer, u64);
    cuSurfObjectCreate(Pointer, Pointer);
    cuSurfObjectDestroy(u64);
    cuSurfObjectGetResourceDesc(Pointer, u64);
    cuDeviceCanAccessPeer(Pointer, c_int, c_int);
    cuCtxEnablePeerAccess(Pointer, c_uint);
    cuCtxDisablePeerAccess(Pointer);
}
