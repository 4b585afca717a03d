//! Functions of the driver that the library does not call.

use libloading::Library;
use std::sync::LazyLock;

static DRIVER: LazyLock<Library> = LazyLock::new(|| {
    // SAFETY: the driver's initialisers may run in any program at any time.
    unsafe { Library::new("libcuda.so.1") }.expect("the library has opened the driver")
});

/// The driver's function with this name, which ends in a zero byte.
///
/// # Safety
/// `F` is the type of the function.
pub unsafe fn function<F: Copy>(name: &str) -> F {
    // SAFETY: `F` is the type of the function, by `# Safety`. The library is never closed.
    *unsafe { DRIVER.get(name.as_bytes()) }.expect("the driver has the function")
}

/// Defines functions that call a function of the driver. Their arguments are those of the driver's header.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[allow(non_snake_case, reason = "the name in the driver's header")]
        unsafe fn $name($($argument: $type),*) -> i32 {
            // SAFETY: the declaration has the types of the driver's header.
            let function: unsafe extern "C" fn($($type),*) -> i32 =
                unsafe { $crate::driver::function(concat!(stringify!($name), "\0")) };
            // SAFETY: the caller meets the requirements of the driver's function.
            unsafe { function($($argument),*) }
        }
    )*};
}
pub(crate) use functions;
