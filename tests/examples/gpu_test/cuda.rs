//! Functions of the CUDA driver that other libraries call, and that this library does not need.

#![allow(non_snake_case, reason = "the names of the driver's header")]

use libloading::Library;
use std::ffi::c_void;
use std::sync::LazyLock;

/// The driver's function `name`.
///
/// # Safety
/// `F` is the type of a pointer to that function.
unsafe fn function<F: Copy>(name: &str) -> F {
    // SAFETY: the initialisers of the NVIDIA driver may run in any program at any time.
    static DRIVER: LazyLock<Library> =
        LazyLock::new(|| unsafe { Library::new("libcuda.so.1") }.expect("there is a driver"));
    // SAFETY: `F` is the function's type, by `# Safety`, and the library is never closed.
    let found = unsafe { DRIVER.get::<F>(name.as_bytes()) };
    *found.expect("the driver has the function")
}

/// Defines functions that call the driver's functions of the same name.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// The driver's function of this name.
        ///
        /// # Safety
        /// The requirements of the driver's function.
        pub unsafe fn $name($($argument: $type),*) -> i32 {
            type Function = unsafe extern "C" fn($($type),*) -> i32;
            // SAFETY: the table below has the types of cuda.h, so `Function` is the type of `$name`.
            let function: Function = unsafe { function(stringify!($name)) };
            // SAFETY: the caller meets the requirements of `$name`.
            unsafe { function($($argument),*) }
        }
    )*};
}

functions! {
    cuStreamCreate(stream: *mut *mut c_void, flags: u32);
    cuStreamDestroy_v2(stream: *mut c_void);
    cuCtxGetCurrent(context: *mut *mut c_void);
    cuCtxSetCurrent(context: *mut c_void);
    cuStreamBeginCapture_v2(stream: *mut c_void, mode: u32);
    cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void);
    cuGraphInstantiate_v2(
        executable: *mut *mut c_void,
        graph: *mut c_void,
        error_node: *mut *mut c_void,
        log: *mut u8,
        log_bytes: usize
    );
    cuGraphLaunch(executable: *mut c_void, stream: *mut c_void);
}
