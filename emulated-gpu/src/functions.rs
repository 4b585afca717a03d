//! The driver's functions, under the names of its header.

#![allow(non_snake_case, reason = "the names of the driver's header")]
#![allow(clippy::too_many_arguments, reason = "the arguments of the driver's functions")]

use crate::driver::{Status, call, current_or_none, set_current};
use crate::queue::{Event, Host, Launch, Work};
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::Arc;
use std::time::Instant;

/// A handle is a number: of a context or a stream, or one more than that of anything else.
type Handle = usize;

/// Defines functions of the driver: their bodies get the driver's state.
macro_rules! functions {
    ($(fn $name:ident($driver:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block)*) => {$(
        /// The driver's function of this name, which its reference documents.
        ///
        /// # Safety
        /// The requirements of the driver's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            call(stringify!($name), |$driver| $body)
        }
    )*};
}

/// Writes a result of a call.
fn put<T>(place: *mut T, value: T) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller of the driver passes a place for the result, by the requirements of each function.
    unsafe { place.write(value) };
    Ok(())
}

/// Attributes of a device.
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
const MAX_DYNAMIC_SHARED_BYTES: c_int = 8;
/// `CU_EVENT_DISABLE_TIMING`
const DISABLE_TIMING: c_uint = 2;

functions! {
    fn cuInit(driver, _flags: c_uint) { driver.initialise() }

    fn cuDriverGetVersion(driver, version: *mut c_int) {
        let _ = driver;
        put(version, 13_000)
    }

    fn cuDeviceGet(driver, device: *mut c_int, ordinal: c_int) {
        driver.device(ordinal)?;
        put(device, ordinal)
    }

    fn cuDeviceGetCount(driver, count: *mut c_int) { put(count, driver.devices.len() as c_int) }

    fn cuDeviceGetName(driver, name: *mut c_char, len: c_int, device: c_int) {
        driver.device(device)?;
        for (i, byte) in b"Emulated GPU\0".iter().enumerate().take(len as usize) {
            // SAFETY: `name` has room for `len` bytes, by the function's requirements.
            unsafe { name.add(i).write(*byte as c_char) };
        }
        Ok(())
    }

    fn cuDeviceTotalMem_v2(driver, bytes: *mut usize, device: c_int) {
        driver.device(device)?;
        put(bytes, driver.settings.memory)
    }

    fn cuDeviceGetAttribute(driver, value: *mut c_int, attribute: c_int, device: c_int) {
        driver.device(device)?;
        put(value, match attribute {
            MULTIPROCESSORS => driver.settings.multiprocessors,
            CAPABILITY_MAJOR => driver.settings.capability / 10,
            CAPABILITY_MINOR => driver.settings.capability % 10,
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    fn cuDeviceCanAccessPeer(driver, can: *mut c_int, device: c_int, peer: c_int) {
        put(can, c_int::from(driver.device(device)? != driver.device(peer)?))
    }

    fn cuDevicePrimaryCtxRetain(driver, context: *mut Handle, device: c_int) {
        let device = driver.device(device)?;
        driver.devices[device].retained += 1;
        put(context, device + 1)
    }

    fn cuDevicePrimaryCtxRelease_v2(driver, device: c_int) {
        let device = driver.device(device)?;
        driver.release(device)
    }

    fn cuCtxGetCurrent(driver, context: *mut Handle) {
        let _ = driver;
        put(context, current_or_none())
    }

    fn cuCtxSetCurrent(driver, context: Handle) {
        if context != 0 {
            driver.context(context)?;
        }
        set_current(context);
        Ok(())
    }

    fn cuCtxGetDevice(driver, device: *mut c_int) { put(device, driver.current()? as c_int - 1) }

    fn cuCtxEnablePeerAccess(driver, peer: Handle, _flags: c_uint) {
        driver.context(peer)?;
        let is_new = driver.current_device()?.peers.insert(peer);
        if is_new { Ok(()) } else { Err(Status::PEER_ACCESS_ALREADY_ENABLED) }
    }

    fn cuModuleLoadData(driver, module: *mut Handle, image: *const c_void) {
        // SAFETY: PTX ends with a zero byte. An ELF file, which is refused, has one behind its first seven bytes.
        let text = unsafe { CStr::from_ptr(image.cast()) };
        put(module, driver.load(text.to_bytes())? + 1)
    }

    fn cuModuleUnload(driver, module: Handle) {
        let at = module.wrapping_sub(1);
        driver.modules.get_mut(at).filter(|module| module.exists).ok_or(Status::INVALID_HANDLE)?.exists = false;
        Ok(())
    }

    fn cuModuleGetFunction(driver, function: *mut Handle, module: Handle, name: *const c_char) {
        // SAFETY: the name ends with a zero byte.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Status::INVALID_VALUE)?;
        put(function, driver.function(module.wrapping_sub(1), name)? + 1)
    }

    fn cuFuncSetAttribute(driver, function: Handle, attribute: c_int, value: c_int) {
        if attribute != MAX_DYNAMIC_SHARED_BYTES {
            return Err(Status::INVALID_VALUE);
        }
        driver.allow_shared(function.wrapping_sub(1), value)
    }

    fn cuLaunchKernel(
        driver,
        function: Handle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint,
        stream: Handle,
        parameters: *mut *mut c_void,
        _extra: *mut *mut c_void
    ) {
        let current = driver.current()?;
        let function = driver.functions.get(function.wrapping_sub(1)).ok_or(Status::INVALID_HANDLE)?;
        if function.context != current {
            return Err(Status::INVALID_HANDLE);
        }
        let (grid, block) = ((grid_x, grid_y, grid_z), (block_x, block_y, block_z));
        let is_empty = grid_x * grid_y * grid_z == 0 || block_x * block_y * block_z == 0;
        if is_empty || block_x * block_y * block_z > 1024 || shared_bytes > function.shared_bytes {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the caller passes a pointer to each argument of the kernel. The arguments meet its requirements until
        // the launch has ended.
        let thread = Arc::from(unsafe { function.instance.threads(parameters) });
        driver.add(stream, Work::Launch(Launch { kernel: function.kernel, grid, block, shared_bytes, thread }))
    }

    fn cuMemGetInfo_v2(driver, free: *mut usize, total: *mut usize) {
        put(free, driver.free_memory()?)?;
        put(total, driver.settings.memory)
    }

    fn cuMemAlloc_v2(driver, address: *mut u64, bytes: usize) { put(address, driver.allocate(bytes)? as u64) }

    fn cuMemFree_v2(driver, address: u64) { driver.free(address as usize) }

    fn cuMemAllocHost_v2(driver, address: *mut *mut c_void, bytes: usize) {
        put(address, driver.allocate_locked(bytes)?)
    }

    fn cuMemFreeHost(driver, address: *mut c_void) { driver.free_locked(address.addr()) }

    fn cuMemcpyHtoDAsync_v2(driver, to: u64, from: *const c_void, bytes: usize, stream: Handle) {
        driver.add(stream, Work::Upload { to: to as usize, from: Host { start: from.addr(), bytes } })
    }

    fn cuMemcpyDtoHAsync_v2(driver, to: *mut c_void, from: u64, bytes: usize, stream: Handle) {
        driver.add(stream, Work::Download { to: Host { start: to.addr(), bytes }, from: from as usize })
    }

    fn cuMemcpyDtoDAsync_v2(driver, to: u64, from: u64, bytes: usize, stream: Handle) {
        driver.add(stream, Work::Copy { to: to as usize, from: from as usize, bytes })
    }

    fn cuMemcpyPeerAsync(
        driver,
        to: u64, to_context: Handle,
        from: u64, from_context: Handle,
        bytes: usize,
        stream: Handle
    ) {
        driver.context(to_context)?;
        driver.context(from_context)?;
        driver.add(stream, Work::Copy { to: to as usize, from: from as usize, bytes })
    }

    fn cuMemsetD8Async(driver, address: u64, value: c_uchar, count: usize, stream: Handle) {
        driver.add(stream, Work::Fill { to: address as usize, word: vec![value], count })
    }

    fn cuMemsetD32Async(driver, address: u64, value: c_uint, count: usize, stream: Handle) {
        if !address.is_multiple_of(4) {
            return Err(Status::INVALID_VALUE);
        }
        driver.add(stream, Work::Fill { to: address as usize, word: value.to_ne_bytes().to_vec(), count })
    }

    fn cuStreamCreate(driver, stream: *mut Handle, _flags: c_uint) { put(stream, driver.new_stream(0)?) }

    fn cuStreamCreateWithPriority(driver, stream: *mut Handle, _flags: c_uint, priority: c_int) {
        put(stream, driver.new_stream(priority)?)
    }

    fn cuStreamGetPriority(driver, stream: Handle, priority: *mut c_int) {
        put(priority, driver.stream(stream)?.priority)
    }

    fn cuStreamWaitEvent(driver, stream: Handle, event: Handle, _flags: c_uint) {
        let at = event.wrapping_sub(1);
        let Event { recorded, capture, .. } = *driver.event(at)?;
        // A stream that waits for an event of a capture becomes a part of the capture.
        if capture.is_some() {
            driver.stream(stream)?.capture = capture;
            return Ok(());
        }
        driver.add(stream, Work::Wait(at, recorded))
    }

    fn cuStreamSynchronize(driver, stream: Handle) {
        if driver.stream(stream)?.capture.is_some() {
            return Err(Status::CAPTURE_UNSUPPORTED);
        }
        driver.drain(stream)
    }

    fn cuStreamDestroy_v2(driver, stream: Handle) {
        driver.stream(stream)?;
        driver.drain(stream)?;
        driver.stream(stream)?.exists = false;
        Ok(())
    }

    fn cuEventCreate(driver, event: *mut Handle, flags: c_uint) {
        let context = driver.current()?;
        driver.events.push(Event {
            context,
            has_time: flags & DISABLE_TIMING == 0,
            exists: true,
            recorded: 0,
            happened: 0,
            time: Instant::now(),
            capture: None,
        });
        put(event, driver.events.len())
    }

    fn cuEventRecord(driver, event: Handle, stream: Handle) {
        let at = event.wrapping_sub(1);
        let capture = driver.stream(stream)?.capture;
        let of = driver.event(at)?;
        of.capture = capture;
        if capture.is_some() {
            return Ok(());
        }
        of.recorded += 1;
        let (context, time) = (of.context, of.recorded);
        if stream != 0 && driver.stream(stream)?.context != context {
            return Err(Status::INVALID_HANDLE);
        }
        driver.add(stream, Work::Record(at, time))
    }

    fn cuEventSynchronize(driver, event: Handle) {
        let at = event.wrapping_sub(1);
        while driver.event(at)?.happened < driver.event(at)?.recorded {
            if !driver.step()? {
                return Err(driver.lose(Status::UNKNOWN));
            }
        }
        Ok(())
    }

    fn cuEventElapsedTime(driver, milliseconds: *mut f32, start: Handle, end: Handle) {
        let mut time = |event: Handle| {
            let event = driver.event(event.wrapping_sub(1))?;
            match event.happened {
                _ if !event.has_time => Err(Status::INVALID_HANDLE),
                0 => Err(Status::INVALID_HANDLE),
                happened if happened < event.recorded => Err(Status::NOT_READY),
                _ => Ok(event.time),
            }
        };
        let (start, end) = (time(start)?, time(end)?);
        put(milliseconds, end.saturating_duration_since(start).as_secs_f32() * 1e3)
    }

    fn cuEventDestroy_v2(driver, event: Handle) {
        driver.event(event.wrapping_sub(1))?.exists = false;
        Ok(())
    }

    fn cuStreamBeginCapture_v2(driver, stream: Handle, _mode: c_uint) { driver.begin_capture(stream) }

    fn cuStreamEndCapture(driver, stream: Handle, graph: *mut Handle) { put(graph, driver.end_capture(stream)? + 1) }

    fn cuGraphInstantiate_v2(
        driver,
        executable: *mut Handle,
        graph: Handle,
        _error_node: *mut Handle,
        _log: *mut c_char,
        _log_bytes: usize
    ) {
        let _ = driver;
        put(executable, graph)
    }

    fn cuGraphLaunch(driver, executable: Handle, stream: Handle) {
        driver.launch_graph(executable.wrapping_sub(1), stream)
    }
}

/// The names and texts of statuses.
const TEXTS: [(c_int, &CStr, &CStr); 9] = [
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

fn text(
    status: c_int,
    place: *mut *const c_char,
    of: fn(&(c_int, &'static CStr, &'static CStr)) -> &'static CStr,
) -> c_int {
    let found = TEXTS.iter().find(|(number, ..)| *number == status).map(of);
    let found = found.ok_or(Status::INVALID_VALUE).and_then(|text| put(place, text.as_ptr()));
    found.map_or_else(|status| status.0, |()| 0)
}

/// The driver's function of this name.
///
/// # Safety
/// `name` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(status: c_int, name: *mut *const c_char) -> c_int {
    text(status, name, |(_, name, _)| name)
}

/// The driver's function of this name.
///
/// # Safety
/// `description` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(status: c_int, description: *mut *const c_char) -> c_int {
    text(status, description, |(_, _, description)| description)
}
